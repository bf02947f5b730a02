//! The board as a web page: what it shows and to whom, who may write, and what comes live.

use std::{
    fmt::Write as _,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::support::{Table, http};

const SECOND: Duration = Duration::from_secs(1);
/// A change takes half a second; the machine may be busy.
const SOON: Duration = Duration::from_secs(5);

/// A server of the table's page.
struct Server {
    /// Killed when it is dropped.
    _process: http::Server,
    port: u16,
}

struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Server {
    fn start(table: &Table) -> Server {
        let process = http::Server::streamable(table);
        let port = process.address.port();
        Server { _process: process, port }
    }

    fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(20 * SECOND)).unwrap();
        let mut request = format!("{method} {path} HTTP/1.1\r\nhost: 127.0.0.1:{}\r\n", self.port);
        for (name, value) in headers {
            let _written = write!(request, "{name}: {value}\r\n");
        }
        let _written =
            write!(request, "content-length: {}\r\nconnection: close\r\n\r\n", body.len());
        stream.write_all((request + body).as_bytes()).unwrap();
        stream
    }

    fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut text = Vec::new();
        // A server that refuses a body unread may reset the connection behind its answer.
        let _ended = self.send(method, path, headers, body).read_to_end(&mut text);
        let text = String::from_utf8(text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }

    fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[], "")
    }

    #[track_caller]
    fn state(&self) -> Value {
        let answer = self.get("/web/state");
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.json()
    }

    fn post(&self, path: &str, session: Option<&str>, body: &Value) -> Answer {
        let mut headers = vec![("content-type", "application/json")];
        headers.extend(session.map(|secret| ("team-table-session", secret)));
        self.ask("POST", path, &headers, &body.to_string())
    }

    fn enter(&self, token: &str) -> Answer {
        self.post("/web/enter", None, &json!({ "token": token }))
    }

    /// A session, as `team-table web` lets one in.
    #[track_caller]
    fn session(&self, table: &Table) -> String {
        let answer = self.enter(&token(table, self.port));
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.json()["session"].as_str().unwrap().to_owned()
    }

    fn act(&self, session: &str, tool: &str, arguments: &Value) -> Answer {
        self.post("/web/act", Some(session), &json!({ "tool": tool, "arguments": arguments }))
    }

    /// The stream of changes from this state on.
    fn events(&self, state: &Value) -> Events {
        let cursor = &state["cursor"];
        let path = format!(
            "/web/events?epoch={}&event={}&message={}",
            cursor["epoch"].as_str().unwrap(),
            cursor["event"],
            cursor["message"]
        );
        let mut events = Events(BufReader::new(self.send("GET", &path, &[], "")));
        events.wait(|_, _| true);
        events
    }
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

struct Events(BufReader<TcpStream>);

impl Events {
    /// The first event that is the wanted one, and how long it took to come.
    #[track_caller]
    fn wait(&mut self, is_it: impl Fn(&str, &Value) -> bool) -> (Value, Duration) {
        let began = Instant::now();
        let mut name = String::new();
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "the stream has ended");
            if let Some(event) = line.strip_prefix("event: ") {
                event.trim_end().clone_into(&mut name);
            }
            if let Some(data) = line.strip_prefix("data: ") {
                let data: Value = serde_json::from_str(data).unwrap();
                if is_it(&name, &data) {
                    return (data, began.elapsed());
                }
            }
        }
    }

    #[track_caller]
    fn message(&mut self, body: &str) -> Duration {
        let is_it = |_: &str, data: &Value| {
            let messages = data["messages"].as_array();
            messages.is_some_and(|all| all.iter().any(|message| message["body"] == body))
        };
        self.wait(is_it).1
    }
}

fn token(table: &Table, port: u16) -> String {
    if !table.file().exists() {
        table.ok(&["register", "--as", "human"]);
    }
    let output = table.ok(&["web", "--port", &port.to_string()]);
    let address = format!("http://127.0.0.1:{port}/#t=");
    output.trim().strip_prefix(&address).unwrap().to_owned()
}

#[test]
fn everything_is_shown() {
    let table = Table::new();
    let server = Server::start(&table);
    assert_eq!(server.state()["exists"], false, "a look makes no table");
    assert!(!table.file().exists());
    let (mut ada, mut bob) = (table.agent("ada"), table.agent("bob"));
    ada.call("register", json!({ "role": "lead", "note": "the parser" }));
    bob.call("register", json!({}));
    ada.call("send_message", json!({ "recipient": "bob", "content": "one" }));
    bob.call("send_message", json!({ "reply_to": 1, "content": "two" }));
    ada.call("create_task", json!({ "title": "first", "priority": "high" }));
    ada.call("create_task", json!({ "title": "second", "depends_on": [1] }));
    bob.call("claim_task", json!({ "task_id": 1 }));
    bob.call("reserve_files", json!({ "paths": ["src/**"], "reason": "work" }));
    ada.call("share_context", json!({ "key": "k", "value": "v".repeat(1000) }));

    let state = server.state();
    assert_eq!(state["may_write"], false);
    let member = |name: &str| {
        let all = state["members"].as_array().unwrap();
        all.iter().find(|member| member["name"] == name).unwrap().clone()
    };
    assert_eq!(member("ada")["role"], "lead");
    assert_eq!(member("ada")["note"], "the parser");
    assert_eq!(member("bob")["state"], "active");
    assert_eq!(member("bob")["tasks"][0]["title"], "first");
    let messages = &state["messages"];
    assert_eq!((&messages[1]["thread"], &messages[1]["from"]), (&json!(1), &json!("bob")));
    assert_eq!((&messages[0]["n"], &messages[0]["to"]), (&json!(1), &json!("bob")));
    let tasks = &state["tasks"];
    assert_eq!(tasks[0]["status"], "in_progress");
    assert_eq!(tasks[0]["steps"], json!(["cancelled"]), "the rest is its holder's");
    assert_eq!((&tasks[1]["waits"], &tasks[1]["steps"]), (&json!(1), &json!(["cancelled"])));
    assert_eq!(state["reservations"][0]["pattern"], "src/**");
    assert_eq!(state["context"][0]["is_whole"], false);
    let log: Vec<&Value> = state["log"].as_array().unwrap().iter().collect();
    let said = |words: &str| log.iter().any(|line| line["words"] == words);
    assert!(said("ada shared `k`, version 1") && said("bob wrote #2 to ada"), "{log:#?}");

    let whole = server.get("/web/context?key=k").json();
    assert_eq!(whole["value"], "v".repeat(1000));
    let task = server.get("/web/task?id=1").json();
    assert_eq!(task["blocks"], json!([{ "id": 2, "status": "pending" }]));
    assert_eq!(task["history"].as_array().unwrap().len(), 2);
    assert_eq!(server.get("/web/task?id=9").status, 404);
    assert_eq!(server.get("/web/task?id=x").status, 400);
    assert_eq!(server.get("/web/else").status, 404);
}

#[test]
fn old_messages_come_on_demand() {
    let table = Table::new().env("TEAM_TABLE_MAX_PER_MINUTE", "0");
    let mut ada = table.agent("ada");
    for n in 1..=205 {
        ada.call("broadcast", json!({ "content": format!("number {n}") }));
    }
    let server = Server::start(&table);
    let state = server.state();
    assert_eq!(state["messages"].as_array().unwrap().len(), 200);
    assert_eq!((&state["messages"][0]["id"], &state["older"]), (&json!(6), &json!(true)));
    let more = server.get("/web/messages?before=6").json();
    assert_eq!(more["messages"].as_array().unwrap().len(), 5);
    assert_eq!((&more["messages"][0]["body"], &more["older"]), (&json!("number 1"), &json!(false)));
}

#[test]
fn changes_come_soon() {
    let table = Table::on_the_clock();
    let mut ada = table.agent("ada");
    ada.call("register", json!({}));
    let server = Server::start(&table);
    let mut events = server.events(&server.state());
    ada.call("broadcast", json!({ "content": "from a process over stdio" }));
    let took = events.message("from a process over stdio");
    assert!(took < SOON, "{took:?}");

    let session = server.session(&table);
    let answer =
        server.act(&session, "send_message", &json!({ "recipient": "ada", "content": "hi" }));
    assert_eq!(answer.status, 200, "{}", answer.body);
    let took = events.message("hi");
    assert!(took < SOON, "{took:?}");
    assert!(ada.call("get_messages", json!({})).text.contains("human to you"));
    ada.call("heartbeat", json!({}));
    let is_read = |_: &str, data: &Value| data["standings"] == json!([[2, 1, 1, 1]]);
    assert!(events.wait(is_read).1 < SOON);

    ada.call("create_task", json!({ "title": "t" }));
    let has_task = |_: &str, data: &Value| data["tasks"][0]["title"] == "t";
    assert!(events.wait(has_task).1 < SOON);

    table.ok(&["reset", "--yes", "--force"]);
    assert!(events.wait(|name, _| name == "again").1 < SOON);
}

#[test]
fn only_who_has_entered_writes() {
    let table = Table::new();
    let server = Server::start(&table);
    let mut ada = table.agent("ada");
    ada.call("register", json!({}));
    let write = json!({ "recipient": "ada", "content": "x" });
    let asked = json!({ "tool": "send_message", "arguments": write });
    let check = |session: Option<&str>| {
        let answer = server.post("/web/act", session, &asked);
        assert_eq!(answer.status, 401, "{}", answer.body);
        assert!(answer.json()["hint"].as_str().unwrap().contains("team-table web"));
    };
    check(None);
    check(Some(""));
    check(Some("0123"));

    let token = token(&table, server.port);
    check(Some(&token));
    let hidden: Vec<String> = table
        .open()
        .prepare("SELECT hash FROM token WHERE kind = 'web'")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert!(hidden.len() == 1 && !hidden.contains(&token), "a token itself is nowhere");
    let entered = server.enter(&token);
    let session = entered.json()["session"].as_str().unwrap().to_owned();
    assert_eq!(server.enter(&token).status, 401, "it is good for once");
    assert_eq!(server.enter("").status, 401);
    assert_eq!(server.enter(&session).status, 401);

    let answer = server.act(&session, "send_message", &write);
    assert_eq!(answer.json()["text"], "sent #1 to ada: active, nothing unread before it");
    let state = server.ask("GET", "/web/state", &[("team-table-session", &session)], "").json();
    assert_eq!(state["may_write"], true);
    assert_eq!(state["messages"][0]["from"], "human");

    // Another page can make a browser send a form, not this.
    let form = [("content-type", "text/plain"), ("team-table-session", &*session)];
    assert_eq!(server.ask("POST", "/web/act", &form, &asked.to_string()).status, 415);
    let form = [("content-type", "text/plain")];
    assert_eq!(server.ask("POST", "/web/enter", &form, "{\"token\":\"\"}").status, 415);
    drop(server);
    let server = Server::start(&table);
    assert_eq!(server.act(&session, "send_message", &write).status, 401, "it ends with the server");
}

#[test]
fn a_token_gets_old() {
    let mut table = Table::new();
    let (early, late) = (token(&table, 1), token(&table, 1));
    let now = crate::support::NOW;
    table.set("TEAM_TABLE_NOW", &(now + 14 * 60_000).to_string());
    let server = Server::start(&table);
    assert_eq!(server.enter(&early).status, 200);
    drop(server);
    table.set("TEAM_TABLE_NOW", &(now + 15 * 60_000).to_string());
    assert_eq!(Server::start(&table).enter(&late).status, 401);
}

#[test]
fn an_agent_gets_no_address() {
    let table = Table::new();
    let output = table.run_with(&["web"], &[("CLAUDECODE", "1")], "");
    assert_eq!((output.code, output.stdout.as_str()), (1, ""));
    assert!(output.stderr.starts_with("error: an agent runs this"), "{}", output.stderr);
    table.ok(&["register", "--as", "human"]);
    let output = table.run(&["web", "--host", "::1", "--port", "1"]);
    assert!(output.stdout.starts_with("http://[::1]:1/#t="), "{}", output.stdout);
    assert!(output.stderr.contains("nobody answers at http://[::1]:1 yet"), "{}", output.stderr);
}

#[test]
fn an_address_behind_a_proxy() {
    let table = Table::new();
    table.ok(&["register", "--as", "human"]);
    let output = table.run(&["web", "--url", "https://Table.Example/"]);
    assert!(output.stdout.starts_with("https://table.example/#t="), "{}", output.stdout);
    assert!(!output.stderr.contains("nobody answers"), "{}", output.stderr);
    let token = output.stdout.trim().split_once("#t=").unwrap().1.to_owned();
    assert_eq!(Server::start(&table).enter(&token).status, 200);
    for given in [
        &["web", "--url", "https://table.example/board"][..],
        &["web", "--url", "table.example"],
        &["web", "--url", "https://table.example", "--port", "1"],
    ] {
        let output = table.run(given);
        assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{given:?}");
    }
}

#[test]
fn the_first_answer_is_bounded() {
    let table = Table::new().env("TEAM_TABLE_MAX_PER_MINUTE", "0");
    let mut ada = table.agent("ada");
    for n in 1..=40 {
        ada.call("broadcast", json!({ "content": format!("{n} {}", "x".repeat(16_000)) }));
    }
    let server = Server::start(&table);
    let mut answer = server.get("/web/state");
    let mut seen = Vec::new();
    while seen.first() != Some(&1) {
        assert!(answer.body.len() < 600_000, "{} bytes", answer.body.len());
        let messages = answer.json()["messages"].as_array().unwrap().clone();
        let ids: Vec<i64> = messages.iter().map(|it| it["id"].as_i64().unwrap()).collect();
        assert_eq!(answer.json()["older"], ids[0] > 1);
        seen.splice(0..0, ids);
        answer = server.get(&format!("/web/messages?before={}", seen[0]));
    }
    assert_eq!(seen, (1..=40).collect::<Vec<i64>>());
}

#[test]
fn the_human_acts_by_the_same_rules() {
    let table = Table::new();
    let server = Server::start(&table);
    let session = server.session(&table);
    let ok = |tool: &str, arguments: Value| {
        let answer = server.act(&session, tool, &arguments);
        assert_eq!(answer.status, 200, "{tool}: {}", answer.body);
        answer.json()["text"].as_str().unwrap().to_owned()
    };
    assert_eq!(ok("create_task", json!({ "title": "t" })), "created T1 (medium)");
    assert!(ok("claim_task", json!({ "task_id": 1 })).starts_with("T1 is yours"));
    ok("update_task", json!({ "task_id": 1, "status": "done", "comment": "so" }));
    ok("broadcast", json!({ "content": "hello" }));
    let refused = |tool: &str, arguments: Value, status: u16, text: &str| {
        let answer = server.act(&session, tool, &arguments);
        assert_eq!(answer.status, status, "{tool}: {}", answer.body);
        let told = answer.json();
        assert!(told["error"].as_str().unwrap().contains(text), "{told}");
    };
    let hint = server.act(&session, "broadcast", &json!({ "content": " " })).json()["hint"].clone();
    assert!(hint.is_string(), "{hint}");
    refused(
        "send_message",
        json!({ "recipient": "nobody", "content": "x" }),
        404,
        "no member named",
    );
    refused("send_message", json!({ "recipient": "all", "content": "x" }), 400, "all");
    refused("broadcast", json!({ "content": "x".repeat(20_000) }), 400, "16384");
    refused("create_task", json!({ "titel": "x" }), 400, "titel");
    refused(
        "update_task",
        json!({ "task_id": 1, "status": "review" }),
        409,
        "cannot go from there",
    );
    for tool in ["get_messages", "register", "deregister", "share_context", "reset", ""] {
        refused(tool, json!({}), 400, "the page cannot ask for that");
    }
    assert_eq!(server.post("/web/act", Some(&session), &json!([])).status, 400);
    let much = json!({ "tool": "broadcast", "arguments": { "content": "x".repeat(200_000) } });
    assert_eq!(server.post("/web/act", Some(&session), &much).status, 413);
}

#[test]
fn hostile_text_stays_text() {
    let table = Table::new();
    let server = Server::start(&table);
    let mut ada = table.agent("ada");
    let hostile = "</script><script>alert(1)</script>\"'&amp; \u{202e}odd\u{0} \u{2028}\nevent: again\ndata: {}\n\n";
    let mut events = {
        ada.call("register", json!({}));
        server.events(&server.state())
    };
    ada.call("broadcast", json!({ "content": hostile }));
    let shown = "</script><script>alert(1)</script>\"'&amp; \\u{202e}odd\\u{0} \\u{2028}\nevent: again\ndata: {}\n\n";
    events.message(shown);
    ada.call("create_task", json!({ "title": "<img src=x onerror=alert(1)>" }));
    let state = server.get("/web/state");
    assert!(state.head.contains("content-type: application/json"), "{}", state.head);
    assert!(state.head.contains("x-content-type-options: nosniff"), "{}", state.head);
    assert_eq!(state.json()["messages"][0]["body"], shown);
    assert_eq!(state.json()["tasks"][0]["title"], "<img src=x onerror=alert(1)>");
    assert!(!server.get("/").body.contains("alert(1)"), "the page itself holds no text of others");
}

#[test]
fn who_comes_through_a_proxy_and_has_not_entered_sees_nothing() {
    let table = Table::new();
    let server = Server::start(&table);
    assert_eq!(server.get("/web/state").status, 200);
    for header in ["Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP"] {
        for path in ["/web/state", "/web/events?epoch=0&event=0&message=0"] {
            let refused = server.ask("GET", path, &[(header, "10.0.0.1")], "");
            assert_eq!(refused.status, 401, "{header} {path}: {}", refused.body);
        }
    }
}

#[test]
fn the_page_runs_nothing_but_its_files() {
    let table = Table::new();
    let server = Server::start(&table);
    for (path, kind) in [
        ("/", "text/html"),
        ("/web/app.css", "text/css"),
        ("/web/app.js", "text/javascript"),
        ("/web/icon.svg", "image/svg+xml"),
        ("/web/state", "application/json"),
        ("/web/task?id=1", "application/json"),
    ] {
        let head = server.get(path).head;
        assert!(head.contains(&format!("content-type: {kind}")), "{path}: {head}");
        let policy = head.lines().find(|line| line.starts_with("content-security-policy: "));
        let policy = policy.unwrap_or_else(|| panic!("{path} has no policy: {head}"));
        for rule in [
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "frame-ancestors 'none'",
        ] {
            assert!(policy.contains(rule), "{path}: {policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert!(head.contains("referrer-policy: no-referrer"), "{path}: {head}");
        assert!(head.contains("cache-control: no-store"), "{path}: {head}");
        assert!(head.contains("x-accel-buffering: no"), "{path}: {head}");
    }
}

/// Text becomes text nodes, at one place; nothing comes from elsewhere.
#[test]
fn the_page_makes_no_markup_of_text() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("templates/web");
    let mut n_files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let banned = [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
            "DOMParser",
            "createContextualFragment",
            "setHTML",
            "srcdoc",
            "style=",
            "onclick=",
            "https://",
        ];
        for word in banned {
            assert!(!text.contains(word), "{} has {word}", path.display());
        }
        assert!(text.lines().count() <= 500, "{} is long", path.display());
        n_files += 1;
    }
    assert!(n_files > 5);
}
