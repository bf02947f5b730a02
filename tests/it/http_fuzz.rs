//! Mutated requests over the network, at every address that there is: never a fault of the server's,
//! never a panic, and at the end it answers as before. What is sent depends on the seed alone.

use std::{
    io::{ErrorKind, Read as _, Write as _},
    net::{Shutdown, SocketAddr, TcpStream},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use crate::support::{
    Table, faults,
    http::{Server, call, initialize, meta},
};

/// Requests under way at once.
const SENDERS: u64 = 8;
/// Who says nothing for so long is told that nothing more comes.
const PATIENCE: Duration = Duration::from_millis(60);

/// Thrown to choose among things.
struct Dice(faults::Dice);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.0.below(u64::try_from(n.max(1)).unwrap())).unwrap()
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

#[derive(Clone)]
struct Request {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    fn new(method: &str, path: &str, headers: &[(&str, &str)], body: &Value) -> Request {
        let own = |text: &str| text.to_owned();
        let mut headers: Vec<(String, String)> =
            headers.iter().map(|(name, value)| (own(name), own(value))).collect();
        headers.push((own("Accept"), own("application/json, text/event-stream")));
        headers.push((own("Content-Type"), own("application/json")));
        headers.push((own("Connection"), own("close")));
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        Request { method: own(method), path: own(path), headers, body }
    }

    fn bytes(&self, address: SocketAddr, dice: &mut Dice) -> Vec<u8> {
        let mut bytes = format!("{} {} HTTP/1.1\r\n", self.method, self.path).into_bytes();
        let mut add = |name: &str, value: &str| {
            bytes.extend([name, ": ", value, "\r\n"].concat().into_bytes());
        };
        if !dice.one_in(60) {
            add("Host", &address.to_string());
        }
        for (name, value) in &self.headers {
            add(name, value);
        }
        if dice.one_in(20) {
            add("Transfer-Encoding", "chunked");
            bytes.extend(b"\r\n");
            for part in self.body.chunks(1 + dice.below(300)) {
                bytes.extend(format!("{:x}\r\n", part.len()).into_bytes());
                bytes.extend(part);
                bytes.extend(b"\r\n");
            }
            bytes.extend(b"0\r\n\r\n");
            return bytes;
        }
        let length = if dice.one_in(60) { dice.below(9_000_000) } else { self.body.len() };
        add("Content-Length", &length.to_string());
        bytes.extend(b"\r\n");
        bytes.extend(&self.body);
        bytes
    }
}

const METHODS: &[&str] = &["GET", "POST", "DELETE", "PUT", "OPTIONS", "HEAD", "PATCH", "CONNECT"];

const PATHS: &[&str] = &[
    "/",
    "/mcp",
    "/mcp?name=ada",
    "/mcp?name=human",
    "/mcp?name=%00",
    "/mcp?name=a&name=b",
    "/sse",
    "/sse?name=bob",
    "/messages",
    "/messages?sessionId=",
    "/web/state",
    "/web/messages?before=5",
    "/web/messages?before=-9223372036854775808",
    "/web/task?id=1",
    "/web/task?id=99999999999999999999",
    "/web/context?key=k",
    "/web/context?key=%ff%00",
    "/web/events?epoch=1&event=1&message=1",
    "/web/events?epoch=&event=-1&message=9223372036854775807",
    "/web/enter",
    "/web/act",
    "/web/app.js",
    "*",
    "http://evil.example/mcp",
];

/// Headers that mean something here, and values that may or may not fit.
const HEADERS: &[&str] = &[
    "Host",
    "Origin",
    "Accept",
    "Content-Type",
    "Authorization",
    "Mcp-Session-Id",
    "MCP-Protocol-Version",
    "Mcp-Method",
    "Mcp-Name",
    "Last-Event-ID",
    "team-table-session",
    "X-Forwarded-For",
    "Connection",
    "Transfer-Encoding",
    "Content-Length",
    "Expect",
    "Upgrade",
];

const VALUES: &[&str] = &[
    "",
    "null",
    "0",
    "-1",
    "18446744073709551616",
    "localhost",
    "[::1]",
    "http://localhost",
    "application/json",
    "text/event-stream",
    "*/*;q=0",
    "Bearer tt_0",
    "Bearer",
    "2026-07-28",
    "2025-06-18",
    "1999-01-01",
    "tools/call",
    "tools/list",
    "initialize",
    "register",
    "0/0",
    "chunked",
    "100-continue",
    "keep-alive",
    "h2c",
    "\u{e9}\u{202e}",
    "a,b;c=\"d",
];

/// What stands for a value in JSON.
const JSON: &[&str] = &[
    "null",
    "true",
    "-1",
    "1e999",
    "9223372036854775808",
    "1.5",
    "\"\"",
    "\"\\ud800\"",
    "\"\\u0000\"",
    "[]",
    "{}",
    "[[[[[[[[[[[[[[[[",
    "{\"a\":",
    "\"tools/call\"",
    "\"tools/list\"",
    "\"notifications/cancelled\"",
    "\"initialize\"",
    "\"ping\"",
    "\"subscriptions/listen\"",
    "\"server/discover\"",
    "\"resources/list\"",
    "\"logging/setLevel\"",
    "\"completion/complete\"",
    "\"2.0\"",
    "\"human\"",
    "\"#1\"",
    "\u{feff}",
];

fn modern(tool: &str, arguments: Value) -> Request {
    let mut message = call(1, tool, arguments);
    message["params"]["_meta"] = meta();
    let headers =
        [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", tool)];
    Request::new("POST", "/mcp?name=ada", &headers, &message)
}

/// Requests that are right, for every address; what they are mutated from.
fn right(session: &str, messages: &str, entered: &str) -> Vec<Request> {
    let session = [("Mcp-Session-Id", session)];
    let entered = [("team-table-session", entered)];
    let note =
        |method: &str, params: Value| json!({"jsonrpc": "2.0", "method": method, "params": params});
    let mut all = vec![
        modern("register", json!({"role": "r"})),
        modern("send_message", json!({"recipient": "bob", "content": "hi"})),
        modern("broadcast", json!({"content": "hi"})),
        modern("get_messages", json!({"limit": 5})),
        modern("wait_for_messages", json!({"timeout_seconds": 0})),
        modern("create_task", json!({"title": "t", "depends_on": [1]})),
        modern("list_tasks", json!({"task_id": 1})),
        modern("share_context", json!({"key": "k", "value": "v"})),
        modern("reserve_files", json!({"paths": ["src/**"]})),
        Request::new("POST", "/mcp?name=bob", &[], &initialize("claude-code")),
        Request::new("POST", "/mcp?name=eve", &session, &call(2, "list_members", json!({}))),
        Request::new("POST", "/mcp?name=eve", &session, &call(3, "get_messages", json!({}))),
        Request::new(
            "POST",
            "/mcp?name=eve",
            &session,
            &note("notifications/cancelled", json!({"requestId": 3})),
        ),
        Request::new(
            "POST",
            "/mcp?name=eve",
            &session,
            &json!({"jsonrpc": "2.0", "id": 4, "method": "tools/list"}),
        ),
        Request::new("GET", "/mcp?name=eve", &session, &Value::Null),
        Request::new("DELETE", "/mcp?name=eve", &[("Mcp-Session-Id", "0")], &Value::Null),
        Request::new("GET", "/sse?name=bob", &[], &Value::Null),
        Request::new("POST", messages, &[], &call(5, "list_members", json!({}))),
        Request::new("POST", messages, &[], &call(6, "get_messages", json!({}))),
        Request::new("POST", "/web/enter", &[], &json!({"token": "tw_0"})),
        Request::new(
            "POST",
            "/web/act",
            &entered,
            &json!({"tool": "send_message", "arguments": {"recipient": "ada", "content": "x"}}),
        ),
        Request::new(
            "POST",
            "/web/act",
            &entered,
            &json!({"tool": "update_task", "arguments": {"task_id": 1, "status": "done"}}),
        ),
    ];
    all.extend(
        PATHS
            .iter()
            .filter(|path| path.starts_with("/web/") || **path == "/")
            .map(|path| Request::new("GET", path, &entered, &Value::Null)),
    );
    all
}

fn mutated(dice: &mut Dice, right: &[Request]) -> Request {
    let mut request = dice.pick(right).clone();
    for _ in 0..=dice.below(3) {
        match dice.below(12) {
            0 => request.method = (*dice.pick(METHODS)).to_owned(),
            1 => request.path = (*dice.pick(PATHS)).to_owned(),
            2 => request.path = other_text(dice, &request.path),
            3 => {
                let at = dice.below(request.headers.len());
                request.headers.remove(at);
            }
            4 | 5 => {
                let header = (*dice.pick(HEADERS)).to_owned();
                request.headers.push((header, (*dice.pick(VALUES)).to_owned()));
            }
            6 => {
                let at = dice.below(request.headers.len());
                request.headers[at].1 = other_text(dice, &request.headers[at].1.clone());
            }
            7 => request.body = Vec::new(),
            8 => request.body.truncate(dice.below(request.body.len() + 1)),
            9 => {
                let text = "x".repeat(dice.below(200_000)).into_bytes();
                let at = dice.below(request.body.len() + 1);
                request.body.splice(at..at, text);
            }
            _ => request.body = other_json(dice, &request.body),
        }
        if request.headers.is_empty() {
            request.headers.push(("X".to_owned(), "x".to_owned()));
        }
    }
    request
}

/// Another value in the place of one that is there.
fn other_json(dice: &mut Dice, body: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(body).into_owned();
    let starts: Vec<usize> = text
        .char_indices()
        .filter(|(_, c)| matches!(c, ':' | ',' | '[' | '{' | '"'))
        .map(|(at, c)| at + c.len_utf8())
        .collect();
    if starts.len() < 2 {
        return dice.pick(JSON).as_bytes().to_vec();
    }
    let from = *dice.pick(&starts);
    let to = text[from..].find([',', '}', ']', '"']).map_or(text.len(), |n| from + n);
    let to = if dice.one_in(4) { from } else { to };
    [&text[..from], *dice.pick(JSON), &text[to..]].concat().into_bytes()
}

/// A text with some characters other ones, gone, or twice.
fn other_text(dice: &mut Dice, text: &str) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    for _ in 0..=dice.below(3) {
        let at = dice.below(chars.len() + 1);
        match dice.below(4) {
            0 => chars.truncate(at),
            1 if at < chars.len() => drop(chars.remove(at)),
            2 => chars.insert(at, char::from(u8::try_from(dice.below(256)).unwrap())),
            _ => chars.splice(at..at, dice.pick(VALUES).chars()).for_each(drop),
        }
    }
    chars.into_iter().collect()
}

/// What came back, as far as it comes soon; nothing where the connection was closed.
fn answer(address: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    // Whoever refuses a body does not read all of it.
    stream.write_all(bytes).ok();
    let mut all = Vec::new();
    let mut part = vec![0; 64 * 1024];
    let mut is_told = false;
    loop {
        match stream.read(&mut part) {
            Ok(0) => break,
            Ok(n) => all.extend(&part[..n]),
            Err(err) if matches!(err.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                // A stream that has begun lasts; a request that is not whole ends here.
                if is_told || !all.is_empty() || stream.shutdown(Shutdown::Write).is_err() {
                    break;
                }
                is_told = true;
            }
            Err(_) => break,
        }
    }
    String::from_utf8_lossy(&all).into_owned()
}

/// What is wrong with an answer.
fn fault(answer: &str) -> Option<&'static str> {
    let status = answer.split(' ').nth(1).and_then(|it| it.parse::<u16>().ok());
    match status {
        Some(500..) if status != Some(503) => Some("a fault of the server's"),
        None if !answer.is_empty() => Some("no status"),
        _ if answer.contains("-32603") => Some("an internal error"),
        _ => None,
    }
}

fn fuzz(server: &Server, right: &[Request], seed: u64) {
    let each = if crate::runs_long() { 5_000 } else { 400 };
    thread::scope(|scope| {
        for sender in 0..SENDERS {
            scope.spawn(move || {
                let mut dice = Dice(faults::Dice::new(seed * SENDERS + sender));
                for n in 0..each {
                    let request = mutated(&mut dice, right);
                    let mut bytes = request.bytes(server.address, &mut dice);
                    if dice.one_in(10) {
                        let at = dice.below(bytes.len());
                        bytes[at] = u8::try_from(dice.below(256)).unwrap();
                    }
                    let answer = answer(server.address, &bytes);
                    if let Some(fault) = fault(&answer) {
                        let sent = String::from_utf8_lossy(&bytes);
                        panic!("{sender}/{n}: {fault}: {answer:.900}\nto {sent:.3000}");
                    }
                }
            });
        }
    });
    let said = server.process.stderr();
    assert!(!said.contains("panicked"), "{said}");
}

#[test]
fn mutated_requests_are_nobodys_fault_but_the_clients() {
    let table = Table::new().env("TEAM_TABLE_HURRY", "200").env("TEAM_TABLE_MAX_PER_MINUTE", "0");
    table.ok(&["register", "--as", "bob", "--role", "r"]);
    let (server, sse) = (Server::streamable(&table), Server::sse(&table));
    let eve = server.session("/mcp?name=eve");
    let stream = sse.client("/sse?name=dan").open("GET", &[("Content-Type", "")], "");
    let messages = crate::support::http::Events::of(stream.try_clone().unwrap()).next().unwrap();
    let entered = {
        let port = server.address.port().to_string();
        let address = table.ok(&["web", "--port", &port]);
        let token = address.trim().split("#t=").nth(1).unwrap().to_owned();
        let page = server.client("/web/enter").post(&json!({"token": token}));
        page.message()["session"].as_str().unwrap().to_owned()
    };
    let right = right(eve.session.as_deref().unwrap(), &messages, &entered);
    for (seed, server) in [&server, &sse].into_iter().enumerate() {
        fuzz(server, &right, u64::try_from(seed).unwrap() + 1);
    }
    drop(stream);
    let mut late = server.client("/mcp?name=late");
    assert!(late.call("register", json!({})).text.contains("you are `late`"));
    assert_eq!(server.client("/web/state").send("GET", &[("Content-Type", "")], "").status, 200);
    let mut late = crate::support::http::SseClient::connect(sse.client("/sse?name=later"));
    assert!(late.call("register", json!({})).text.contains("you are `later`"));
}
