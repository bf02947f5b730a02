//! The smallest honest HTTP/1.1 client, and a server on the network for it.

use std::{
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{
    Table,
    agent::{Agent, PATIENCE, Reply},
    program,
};

/// `team-table serve` on the network, at a port of its own.
pub(crate) struct Server {
    pub(crate) process: Agent,
    pub(crate) address: SocketAddr,
}

impl Server {
    #[track_caller]
    pub(crate) fn streamable(table: &Table) -> Server {
        Server::start(table, &["--transport", "streamable-http"])
    }

    #[track_caller]
    pub(crate) fn sse(table: &Table) -> Server {
        Server::start(table, &["--transport", "sse"])
    }

    #[track_caller]
    pub(crate) fn start(table: &Table, args: &[&str]) -> Server {
        let port: &[&str] = if args.contains(&"--port") { &[] } else { &["--port", "0"] };
        let args = [&["serve"], port, args].concat();
        let env: Vec<(&str, &str)> =
            table.env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        Server::of(Agent::spawn(program(), &args, table.path(), &env))
    }

    /// A process that says where it listens.
    #[track_caller]
    pub(crate) fn of(mut process: Agent) -> Server {
        let start = Instant::now();
        let port = loop {
            let said = process.stderr();
            if let Some(rest) = said.split("listening on http://").nth(1)
                && let Some(address) = rest.split('/').next().filter(|_| rest.contains('\n'))
            {
                break address.rsplit(':').next().unwrap().parse().unwrap();
            }
            if start.elapsed() > PATIENCE {
                process.fail("it does not listen");
            }
            thread::sleep(Duration::from_millis(5));
        };
        Server { process, address: SocketAddr::from(([127, 0, 0, 1], port)) }
    }

    /// A client of this server at this path: `/mcp?name=ada`.
    pub(crate) fn client(&self, path: &str) -> Client {
        Client {
            address: self.address,
            path: path.to_owned(),
            headers: Vec::new(),
            session: None,
            last_id: 0,
        }
    }

    /// A client in a session of its own.
    #[track_caller]
    pub(crate) fn session(&self, path: &str) -> Client {
        let mut client = self.client(path);
        client.initialize("test");
        client
    }
}

/// What came back.
#[derive(Debug, Clone)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: String,
    pub(crate) body: String,
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// The last JSON-RPC message in the body, be it JSON or a stream of events.
    #[track_caller]
    pub(crate) fn message(&self) -> Value {
        let events = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        let last = events.rev().find(|data| data.starts_with('{')).unwrap_or(&self.body);
        serde_json::from_str(last).unwrap_or_else(|err| panic!("{err}: {self:?}"))
    }
}

/// One agent's client. Every request has a connection of its own.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) session: Option<String>,
    pub(crate) last_id: u64,
}

impl Client {
    pub(crate) fn with(mut self, name: &str, value: &str) -> Client {
        self.headers.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn token(self, token: &str) -> Client {
        self.with("Authorization", &format!("Bearer {token}"))
    }

    /// Sends a request and leaves the connection open.
    #[track_caller]
    pub(crate) fn open(&self, method: &str, more: &[(&str, &str)], body: &str) -> TcpStream {
        self.try_open(method, more, body).unwrap()
    }

    /// As [`Client::open`], where perhaps nobody listens any more.
    pub(crate) fn try_open(
        &self,
        method: &str,
        more: &[(&str, &str)],
        body: &str,
    ) -> io::Result<TcpStream> {
        let mut head = format!("{method} {} HTTP/1.1\r\n", self.path);
        let mut add = |name: &str, value: &str| {
            head.extend([name, ": ", value, "\r\n"]);
        };
        let own = self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let given: Vec<(&str, &str)> = more.iter().copied().chain(own).collect();
        let defaults = [
            ("Host", self.address.to_string()),
            ("Accept", "application/json, text/event-stream".to_owned()),
            ("Content-Type", "application/json".to_owned()),
            ("Content-Length", body.len().to_string()),
            ("Connection", "close".to_owned()),
        ];
        let is_chunked = given.iter().any(|(name, _)| *name == "Transfer-Encoding");
        for (name, value) in &defaults {
            let is_given = given.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
            if !(is_given || is_chunked && *name == "Content-Length") {
                add(name, value);
            }
        }
        // An empty value leaves a header away.
        for (name, value) in given.iter().filter(|(_, value)| !value.is_empty()) {
            add(name, value);
        }
        if let Some(session) = &self.session {
            add("Mcp-Session-Id", session);
        }
        head.push_str("\r\n");
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        // A server that refuses a body does not read all of it.
        stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes())).ok();
        Ok(stream)
    }

    #[track_caller]
    pub(crate) fn send(&self, method: &str, more: &[(&str, &str)], body: &str) -> Response {
        receive(self.open(method, more, body))
    }

    #[track_caller]
    pub(crate) fn post(&self, message: &Value) -> Response {
        self.send("POST", &[], &message.to_string())
    }

    /// The handshake of a session.
    #[track_caller]
    pub(crate) fn initialize(&mut self, name: &str) {
        let response = self.post(&initialize(name));
        assert_eq!(response.status, 200, "{response:?}");
        self.session = response.header("mcp-session-id").map(str::to_owned);
        assert!(self.session.is_some(), "{response:?}");
        let done = self.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        assert_eq!(done.status, 202, "{done:?}");
    }

    /// A tool call in the session, or as MCP 2026-07-28 has it where there is none.
    #[track_caller]
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Reply {
        let response = receive(self.open_call(tool, arguments));
        assert_eq!(response.status, 200, "{response:?}");
        Reply::new(response.message())
    }

    /// As [`Client::call`], without waiting for the reply.
    #[track_caller]
    pub(crate) fn open_call(&mut self, tool: &str, arguments: Value) -> TcpStream {
        self.try_open_call(tool, arguments).unwrap()
    }

    /// As [`Client::open_call`], where perhaps nobody listens any more.
    pub(crate) fn try_open_call(&mut self, tool: &str, arguments: Value) -> io::Result<TcpStream> {
        self.last_id += 1;
        let mut message = call(self.last_id, tool, arguments);
        if self.session.is_some() {
            return self.try_open("POST", &[], &message.to_string());
        }
        message["params"]["_meta"] = meta();
        let more = [
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", "tools/call"),
            ("Mcp-Name", tool),
        ];
        self.try_open("POST", &more, &message.to_string())
    }

    /// A request of MCP 2026-07-28 without parameters of its own.
    #[track_caller]
    pub(crate) fn ask(&self, method: &str) -> Response {
        let message =
            json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": meta()}});
        let more = [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", method)];
        self.send("POST", &more, &message.to_string())
    }
}

/// What each request of MCP 2026-07-28 tells of its client.
pub(crate) fn meta() -> Value {
    json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
           "io.modelcontextprotocol/clientCapabilities": {},
           "io.modelcontextprotocol/clientInfo": {"name": "codex-mcp-client", "version": "1"}})
}

pub(crate) fn initialize(name: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize",
           "params": {"protocolVersion": "2025-06-18", "capabilities": {},
                      "clientInfo": {"name": name, "version": "1"}}})
}

#[expect(clippy::needless_pass_by_value, reason = "`json!` reads better without a `&`")]
pub(crate) fn call(id: u64, tool: &str, arguments: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
           "params": {"name": tool, "arguments": arguments}})
}

/// Reads a response to its end, which is that of the connection.
#[track_caller]
pub(crate) fn receive(mut stream: TcpStream) -> Response {
    let mut all = Vec::new();
    if let Err(err) = stream.read_to_end(&mut all)
        && all.is_empty()
    {
        panic!("no response: {err}");
    }
    let all = String::from_utf8(all).unwrap();
    let (headers, body) = all.split_once("\r\n\r\n").unwrap_or((&all, ""));
    let status = headers.split(' ').nth(1).and_then(|it| it.parse().ok());
    let status = status.unwrap_or_else(|| panic!("no status: {all:?}"));
    let chunked = headers.to_ascii_lowercase().contains("transfer-encoding: chunked");
    let body = if chunked { whole(body) } else { body.to_owned() };
    Response { status, headers: headers.to_owned(), body }
}

/// A chunked body in one piece.
fn whole(mut rest: &str) -> String {
    let mut body = String::new();
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        if size == 0 || after.len() < size {
            break;
        }
        body.push_str(&after[..size]);
        rest = after[size..].trim_start_matches("\r\n");
    }
    body
}

/// A stream of events that stays open.
pub(crate) struct Events(BufReader<TcpStream>);

impl Events {
    pub(crate) fn of(stream: TcpStream) -> Events {
        Events(BufReader::new(stream))
    }

    /// The data of the next event; `None` at the end.
    pub(crate) fn next(&mut self) -> Option<String> {
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            if let Some(data) = line.trim_end().strip_prefix("data: ") {
                return Some(data.to_owned());
            }
        }
    }
}

impl Events {
    /// The next comment, without its colon; `None` at the end.
    pub(crate) fn comment(&mut self) -> Option<String> {
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            if let Some(comment) = line.trim_end().strip_prefix(": ") {
                return Some(comment.to_owned());
            }
        }
    }
}

/// A client over HTTP+SSE.
pub(crate) struct SseClient {
    pub(crate) events: Events,
    pub(crate) messages: Client,
    last_id: u64,
}

impl SseClient {
    #[track_caller]
    pub(crate) fn connect(client: Client) -> SseClient {
        let mut events = Events::of(client.open("GET", &[("Content-Type", "")], ""));
        let path = events.next().expect("the address for messages");
        let messages = Client { path, ..client };
        let accepted = messages.post(&initialize("test"));
        assert_eq!(accepted.status, 202, "{accepted:?}");
        let answer = events.next().expect("the answer to initialize");
        assert!(answer.contains("serverInfo"), "{answer}");
        messages.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        SseClient { events, messages, last_id: 0 }
    }

    #[track_caller]
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Reply {
        self.last_id += 1;
        let accepted = self.messages.post(&call(self.last_id, tool, arguments));
        assert_eq!(accepted.status, 202, "{accepted:?}");
        let raw: Value = serde_json::from_str(&self.events.next().expect("a reply")).unwrap();
        assert_eq!(raw["id"], self.last_id);
        Reply::new(raw)
    }
}

/// Whether a session sits there.
pub(crate) fn sits(table: &Table, name: &str) -> bool {
    let members = table.json(&["members", "--as", "human"]);
    let lines = members["members"].as_array().unwrap();
    lines.iter().any(|line| line["name"] == name && !line["session"].is_null())
}

/// A new token for a member.
pub(crate) fn token(table: &Table, name: &str) -> String {
    table.ok(&["token", "add", name]).trim().to_owned()
}
