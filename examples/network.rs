//! Measures `team-table` over the network, and fails where it is slower or larger than it may be.
//!
//! ```text
//! cargo build --release && cargo run --release --example network -- \
//!     [FIGURE...] [--quick] [--bin PATH] [--against "PYTHON -m team_table"]
//! ```
//!
//! Figures: rtt, sessions; both if none is named. `rtt` calls ours in a session, without one and over
//! stdio, and the given command, a server of team-table 0.1.0 from PyPI, as streamable HTTP; each
//! over a connection that is kept, in turn, 100 times each, so that a busy machine slows down all of
//! them, and on one processor. Each ratio is of two medians of one run. `sessions` is what 100 sessions add to the memory
//! of a server. The exit code is 1 if a bound does not hold.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this program is here to print")]

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use measure::{
    Bench, Figure, Result, Row, Table, agent::Agent, bounded, grouped, human, median,
    stay_on_one_processor, timed,
};

#[expect(dead_code, reason = "the other examples use more of it")]
mod measure;

/// How many times faster than team-table 0.1.0 a call has to be,
const FASTER: f64 = 10.0;
/// and how many times longer than over stdio it may take.
const SLOWER: f64 = 3.0;
/// So many calls by one, then as many by the next: none finds its processor cold.
const BLOCK: usize = 100;
/// Theirs takes 30 messages a minute from each sender.
const SENDS_EACH: usize = 25;
/// What 100 sessions may cost, in KiB.
const SESSIONS_KIB: u32 = 10 * 1024;
/// A server that does not listen by then never will.
const PATIENCE: Duration = Duration::from_secs(20);

const FIGURES: &[(&str, Figure)] = &[("rtt", rtt), ("sessions", sessions)];

fn main() -> Result<()> {
    stay_on_one_processor();
    measure::run(FIGURES, &["--against"], &["p50", "p99", "max", "ratio", "bound"])
}

// --- The figures

/// The times of one way to call.
#[derive(Default)]
struct Times {
    send: Vec<Duration>,
    inbox: Vec<Duration>,
}

/// A message to somebody, and a look into an inbox that is empty.
fn rtt(bench: &Bench) -> Result<Vec<Row>> {
    let table = Table::new(bench)?;
    let server = table.serve(&["--transport", "streamable-http", "--port", "0"]);
    let port = port_of(&server)?;
    drop(table.join("bob"));
    let mut session = Http::connect(port, "/mcp?name=ada")?;
    session.initialize()?;
    session.call("register", json!({}))?;
    let mut alone = Http::connect(port, "/mcp?name=eve")?;
    alone.call("register", json!({}))?;
    let mut pipe = table.join("cyd");
    let mut against = bench.options.first().map(|(_, command)| Theirs::new(command)).transpose()?;
    let mut theirs = against.as_ref().map(Theirs::join).transpose()?;

    let [mut in_session, mut stateless, mut stdio, mut there]: [Times; 4] = Default::default();
    let message = |i: usize| json!({"recipient": "bob", "content": format!("message {i}")});
    let n = bench.count(2000, 200);
    for first in (0..n).step_by(BLOCK) {
        let block = first..n.min(first + BLOCK);
        for i in block.clone() {
            in_session.send.push(session.call("send_message", message(i))?);
            in_session.inbox.push(session.call("get_messages", json!({}))?);
        }
        for i in block.clone() {
            stateless.send.push(alone.call("send_message", message(i))?);
            stateless.inbox.push(alone.call("get_messages", json!({}))?);
        }
        for i in block.clone() {
            stdio.send.push(timed(&mut pipe, "send_message", message(i)).0);
            stdio.inbox.push(timed(&mut pipe, "get_messages", json!({})).0);
        }
        let (Some(against), Some(theirs)) = (&mut against, &mut theirs) else { continue };
        against.take_its_log();
        for i in block {
            let content = format!("message {i}");
            let sender = format!("ada-{}", i / SENDS_EACH);
            if i % SENDS_EACH == 0 {
                theirs.call("register", json!({"name": sender}))?;
            }
            let message = json!({"sender": sender, "recipient": "bob", "content": content});
            there.send.push(theirs.call("send_message", message)?);
            there.inbox.push(theirs.call("get_messages", json!({"agent_name": sender}))?);
        }
    }
    let mut rows = Vec::new();
    for (what, get) in [
        ("send a message", (|it| &it.send) as fn(&Times) -> &Vec<Duration>),
        ("empty inbox", |it| &it.inbox),
    ] {
        let ours = [("in a session", &in_session), ("stateless", &stateless)];
        for (how, times) in ours {
            let ratio =
                |other: &Times| median(get(other)).as_secs_f64() / median(get(times)).as_secs_f64();
            let row = Row::times(&format!("rtt: {what}, {how}"), get(times).clone());
            let slower = 1.0 / ratio(&stdio);
            let bound = format!("{SLOWER} x stdio");
            rows.push(bounded(row, slower, &bound, slower <= SLOWER));
            if theirs.is_some() {
                let row = Row::new(format!("rtt: {what}, {how}, against"), vec![String::new(); 3]);
                let faster = ratio(&there);
                rows.push(bounded(row, faster, &format!("{FASTER} x faster"), faster >= FASTER));
            }
        }
        rows.push(Row::times(&format!("rtt: {what}, stdio"), get(&stdio).clone()));
        if theirs.is_some() {
            rows.push(Row::times(&format!("rtt: {what}, the other"), get(&there).clone()));
        }
    }
    Ok(rows)
}

/// Sessions that each have a seat and a connection that is kept.
fn sessions(bench: &Bench) -> Result<Vec<Row>> {
    const N: usize = 100;
    let table = Table::new(bench)?;
    let server = table.serve(&["--transport", "streamable-http", "--port", "0"]);
    let port = port_of(&server)?;
    let begin = |n: usize| -> Result<Http> {
        let mut client = Http::connect(port, &format!("/mcp?name=agent-{n}"))?;
        client.initialize()?;
        client.call("register", json!({}))?;
        client.call("get_messages", json!({}))?;
        Ok(client)
    };
    // What the first one costs is the server's own.
    let first = begin(N)?;
    let Some(before) = memory(&server) else { return Ok(Vec::new()) };
    let all: Vec<Http> = (0..N).map(begin).collect::<Result<_>>()?;
    let after = memory(&server).unwrap_or_default();
    drop((first, all));
    let name = format!("sessions: memory (RSS) of {}, and of a server with one", grouped(N));
    let mib = |kib: u32| format!("{:.1} MiB", f64::from(kib) / 1024.0);
    let cost = after.saturating_sub(before);
    let mut row = Row::new(name, vec![mib(cost), mib(before), String::new(), String::new()]);
    row.columns.push(mib(SESSIONS_KIB));
    row.failed = cost > SESSIONS_KIB;
    Ok(vec![row])
}

/// Resident memory of a process in KiB, where the system tells.
fn memory(server: &Agent) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}

// --- Servers

/// The port that a server of ours says it listens at.
fn port_of(server: &Agent) -> Result<u16> {
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        let said = server.stderr();
        if let Some(port) =
            said.split("http://127.0.0.1:").nth(1).and_then(|it| it.split('/').next())
        {
            return Ok(port.parse()?);
        }
        thread::sleep(Duration::from_millis(5));
    }
    Err(format!("the server does not listen: {}", server.stderr()).into())
}

/// team-table 0.1.0: its tools are told who calls.
struct Theirs {
    port: u16,
    server: Agent,
    _folder: tempfile::TempDir,
}

impl Theirs {
    fn new(command: &str) -> Result<Theirs> {
        let folder = tempfile::Builder::new().prefix("team-table-other-").tempdir()?;
        let mut words = command.split_whitespace();
        let program = words.next().ok_or("--against needs a command")?;
        let arguments: Vec<&str> = words.collect();
        let database = folder.path().join("team_table.db");
        let database = database.to_str().ok_or("the temporary folder has an odd name")?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let server = Agent::spawn(
            program.as_ref(),
            &arguments,
            folder.path(),
            &[
                ("TEAM_TABLE_DB", database),
                ("TEAM_TABLE_TRANSPORT", "streamable-http"),
                ("TEAM_TABLE_PORT", &port.to_string()),
            ],
        );
        let begin = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if begin.elapsed() > PATIENCE {
                return Err(format!("the other does not listen: {}", server.stderr()).into());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(Theirs { port, server, _folder: folder })
    }

    /// It tells of each request on stdout, and stops when nobody reads that.
    fn take_its_log(&mut self) {
        while self.server.read_line(Duration::ZERO).is_ok() {}
    }

    fn join(&self) -> Result<Http> {
        let mut http = Http::connect(self.port, "/mcp")?;
        http.initialize()?;
        http.call("register", json!({"name": "bob"}))?;
        Ok(http)
    }
}

// --- A client

/// A connection that is kept, and the session on it if there is one.
struct Http {
    stream: BufReader<TcpStream>,
    /// The request line and what is in each head.
    head: String,
    session: Option<String>,
    last_id: u64,
}

impl Http {
    fn connect(port: u16, path: &str) -> Result<Http> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\
             Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n"
        );
        Ok(Http { stream: BufReader::new(stream), head, session: None, last_id: 0 })
    }

    /// The handshake of a session.
    fn initialize(&mut self) -> Result<()> {
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize",
            "params": {"protocolVersion": "2025-06-18", "capabilities": {},
                       "clientInfo": {"name": "load", "version": "1"}}});
        let (_, head, _) = self.post("", &hello)?;
        let session = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("mcp-session-id").then(|| value.trim().to_owned())
        });
        self.session = Some(session.ok_or("no session")?);
        self.post("", &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Ok(())
    }

    /// A call that must succeed, in the session or, where there is none, as MCP 2026-07-28 has it; how
    /// long it took, from the request's first byte to the answer's last.
    #[expect(clippy::needless_pass_by_value, reason = "`json!` reads better without a `&`")]
    fn call(&mut self, tool: &str, arguments: Value) -> Result<Duration> {
        self.last_id += 1;
        let mut params = json!({"name": tool, "arguments": arguments});
        let mut more = String::new();
        if let (None, Some(params)) = (&self.session, params.as_object_mut()) {
            let meta = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": {"name": "load", "version": "1"}});
            params.insert("_meta".to_owned(), meta);
            more = format!(
                "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n"
            );
        }
        let message = json!({"jsonrpc": "2.0", "id": self.last_id, "method": "tools/call",
                             "params": params});
        let (time, head, body) = self.post(&more, &message)?;
        let is_good = head.starts_with("HTTP/1.1 200") && body.contains("\"result\"");
        if !is_good || body.contains("\"isError\":true") || body.contains("\\\"error\\\"") {
            return Err(format!("{tool} failed after {}: {head}{body}", human(time)).into());
        }
        Ok(time)
    }

    /// Sends a message; gives how long the answer took, its head and its body.
    fn post(&mut self, more: &str, message: &Value) -> Result<(Duration, String, String)> {
        let body = message.to_string();
        let mut request = self.head.clone();
        if let Some(session) = &self.session {
            request.extend(["Mcp-Session-Id: ", session, "\r\n"]);
        }
        let length = body.len().to_string();
        request.extend([more, "Content-Length: ", &length, "\r\n\r\n", &body]);
        let begin = Instant::now();
        self.stream.get_mut().write_all(request.as_bytes())?;
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if self.stream.read_line(&mut head)? == 0 {
                return Err(format!("the connection was closed: {head}").into());
            }
        }
        let low = head.to_ascii_lowercase();
        let mut body = Vec::new();
        if low.contains("transfer-encoding: chunked") {
            while self.chunk(&mut body)? {}
        } else if let Some(rest) = low.split("content-length:").nth(1) {
            let length = rest.lines().next().unwrap_or_default().trim().parse()?;
            body.resize(length, 0);
            self.stream.read_exact(&mut body)?;
        }
        let time = begin.elapsed();
        Ok((time, head, String::from_utf8(body)?))
    }

    /// Appends the next chunk of a body; whether it was not the last.
    fn chunk(&mut self, body: &mut Vec<u8>) -> Result<bool> {
        let mut size = String::new();
        self.stream.read_line(&mut size)?;
        let size = usize::from_str_radix(size.trim(), 16)?;
        let begin = body.len();
        body.resize(begin + size + 2, 0);
        self.stream.read_exact(body.get_mut(begin..).unwrap_or_default())?;
        body.truncate(begin + size);
        Ok(size > 0)
    }
}
