//! Over the network: the real program at real sockets.

use std::{
    io::Write as _,
    net::{Shutdown, TcpListener},
    thread,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use serde_json::json;

use crate::support::{
    Table,
    faults::eventually,
    http::{Client, Events, Server, SseClient, call, initialize, receive, sits, token},
};

#[test]
fn sessions_and_stateless_requests_write_to_each_other() {
    let table = Table::new();
    let server = Server::streamable(&table);
    let mut ada = server.session("/mcp?name=ada");
    let mut bob = server.client("/mcp?name=bob");
    assert!(ada.call("register", json!({})).text.contains("you are `ada`"));
    let sent = bob.call("send_message", json!({"recipient": "ada", "content": "hi"}));
    assert_eq!(sent.text, "you are `bob`\nsent #1 to ada: active, nothing unread before it");
    let got = ada.call("get_messages", json!({}));
    assert!(got.text.contains("#1 bob to you") && got.text.contains("| hi"), "{}", got.text);
    ada.call("send_message", json!({"recipient": "bob", "content": "ho"}));
    assert!(bob.call("wait_for_messages", json!({})).text.contains("| ho"));
    // The next request says that the reply was read.
    let again = ada.call("get_messages", json!({}));
    assert!(!again.text.contains("| hi"), "{}", again.text);
    let status = table.ok(&["show", "1", "--as", "bob", "--json"]);
    assert!(status.contains("read"), "{status}");
}

#[test]
fn who_only_looks_around_needs_no_name() {
    let table = Table::new();
    let server = Server::streamable(&table);
    let nobody = server.client("/mcp");
    let found = nobody.ask("server/discover");
    assert_eq!(found.status, 200, "{found:?}");
    assert_eq!(found.header("content-type"), Some("application/json"));
    let tools = nobody.ask("tools/list").message();
    assert!(tools["result"]["tools"].as_array().unwrap().len() > 10, "{tools}");
    // MCP 2026-07-28 has no handshake.
    for unknown in ["nonsense", "initialize"] {
        let refused = nobody.ask(unknown);
        assert_eq!(refused.status, 404, "{refused:?}");
        assert_eq!(refused.message()["error"]["code"], -32601, "{refused:?}");
    }
    assert!(table.rows().is_empty(), "a look leaves no trace");
}

#[test]
fn a_stateless_request_says_who_asks() {
    let table = Table::new();
    let server = Server::streamable(&table);
    let refused = server.client("/mcp").call("get_messages", json!({}));
    assert!(refused.is_error && refused.text.contains("?name=NAME"), "{}", refused.text);
    for (path, says) in
        [("/mcp?name=a&name=b", "two names"), ("/mcp?name=human", "human"), ("/mcp?name=", "empty")]
    {
        let response = server.client(path).ask("tools/list");
        assert!(response.status == 400 && response.body.contains(says), "{response:?}");
    }
}

#[test]
fn a_session_without_a_name_is_named_or_names_itself() {
    let table = Table::new();
    let server = Server::streamable(&table);
    let mut one = server.client("/mcp");
    one.initialize("claude-code");
    assert!(one.call("register", json!({})).text.contains("you are `claude-1`"));
    let mut two = server.client("/mcp");
    two.initialize("claude-code");
    assert!(two.call("register", json!({})).text.contains("you are `claude-2`"));
    assert!(two.call("register", json!({"name": "eve"})).text.contains("you are `eve`"));
    // Whom the address names cannot be another.
    let mut ada = server.session("/mcp?name=ada");
    let refused = ada.call("register", json!({"name": "bob"}));
    assert!(refused.is_error && refused.text.contains("you are `ada`"), "{}", refused.text);
    // Nobody comes in between: neither with the seat of another, nor in another's session.
    let taken = server.session("/mcp?name=eve").call("register", json!({}));
    assert!(taken.is_error && taken.text.contains("seat of `eve`"), "{}", taken.text);
    let mut thief = server.client("/mcp?name=bob");
    thief.session = ada.session.clone();
    assert_eq!(thief.post(&call(9, "register", json!({}))).status, 404);
}

#[test]
fn agents_on_pipes_and_on_the_network_share_a_table() {
    let table = Table::new();
    let mut ada = table.agent("ada");
    ada.call("register", json!({}));
    let server = Server::streamable(&table);
    let mut bob = server.session("/mcp?name=bob");
    assert!(bob.call("register", json!({})).text.contains("ada"));
    let waiting = bob.open_call("wait_for_messages", json!({}));
    ada.call("send_message", json!({"recipient": "bob", "content": "over the wire"}));
    let woken = receive(waiting);
    assert!(woken.body.contains("| over the wire"), "{woken:?}");
    let id = ada.post_call("wait_for_messages", json!({}));
    bob.call("send_message", json!({"recipient": "ada", "content": "and back"}));
    assert!(ada.wait(id, Duration::from_secs(20)).text.contains("| and back"));
}

#[test]
fn the_old_transport_has_a_stream_and_an_address() {
    let table = Table::new();
    let server = Server::sse(&table);
    let mut ada = SseClient::connect(server.client("/sse?name=ada"));
    let mut bob = SseClient::connect(server.client("/sse?name=bob"));
    ada.call("register", json!({}));
    bob.call("send_message", json!({"recipient": "ada", "content": "hi"}));
    assert!(ada.call("get_messages", json!({})).text.contains("| hi"));
    assert!(!ada.call("get_messages", json!({})).text.contains("| hi"));
    // Not JSON, no such session, another's session.
    assert_eq!(ada.messages.send("POST", &[], "nonsense").status, 400);
    let stranger = Client { path: "/messages?sessionId=1".to_owned(), ..ada.messages.clone() };
    assert_eq!(stranger.post(&call(7, "register", json!({}))).status, 404);
    let path = ada.messages.path.replace("name=ada", "name=eve");
    let eve = Client { path, ..ada.messages.clone() };
    assert_eq!(eve.post(&call(7, "register", json!({}))).status, 404);
    assert_eq!(server.client("/mcp").ask("tools/list").status, 404);
    // With its stream the session ends.
    assert!(sits(&table, "ada"));
    drop(ada);
    eventually("the seat is free", || !sits(&table, "ada"));
}

#[test]
fn a_cut_stream_gives_back_what_was_under_way() {
    let table = Table::new();
    let server = Server::sse(&table);
    let mut ada = SseClient::connect(server.client("/sse?name=ada"));
    ada.call("register", json!({}));
    let waits = ada.messages.post(&call(9, "wait_for_messages", json!({})));
    assert_eq!(waits.status, 202);
    drop(ada);
    eventually("the seat is free", || !sits(&table, "ada"));
    table.ok(&["send", "ada", "hi", "--as", "human"]);
    let mut ada = SseClient::connect(server.client("/sse?name=ada"));
    assert!(ada.call("get_messages", json!({})).text.contains("| hi"));
}

#[test]
fn a_wait_ends_with_its_connection() {
    let table = Table::new();
    let server = Server::streamable(&table);
    for path in ["/mcp?name=ada", "/mcp?name=bob"] {
        let mut agent = server.client(path);
        if path.ends_with("ada") {
            agent.initialize("test");
        }
        let name = path.rsplit('=').next().unwrap();
        agent.call("register", json!({}));
        let waiting = agent.open_call("wait_for_messages", json!({}));
        thread::sleep(Duration::from_millis(200));
        waiting.shutdown(Shutdown::Both).unwrap();
        drop(waiting);
        thread::sleep(Duration::from_millis(200));
        table.ok(&["send", name, "hi", "--as", "human"]);
        // Had the wait gone on, it would have been handed the message for nobody.
        thread::sleep(Duration::from_millis(200));
        let got = agent.call("get_messages", json!({}));
        assert!(got.text.contains("| hi") && !got.text.contains("again"), "{}", got.text);
    }
}

/// The reply was written, and the client died without reading it.
#[test]
fn a_reply_that_nobody_read_is_given_back() {
    let table = Table::new();
    let server = Server::streamable(&table);
    let mut ada = server.client("/mcp?name=ada");
    ada.call("register", json!({}));
    table.ok(&["send", "ada", "hi", "--as", "human"]);
    let reply = ada.clone().with("Connection", "keep-alive").open_call("get_messages", json!({}));
    reply.peek(&mut [0; 1]).unwrap();
    // What lies unread in a socket that is closed resets the connection.
    drop(reply);
    eventually("it is unread again", || {
        let sql = "SELECT count(*) FROM delivery WHERE handed_session IS NULL AND read_at IS NULL";
        table.open().query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap() == 1
    });
    assert!(ada.call("get_messages", json!({})).text.contains("| hi"));
    assert!(!ada.call("get_messages", json!({})).text.contains("| hi"));
}

/// A client gives up as soon as it has asked: it ends its side before the reply comes, and asks again
/// over another connection.
#[test]
fn a_reply_to_who_was_gone_already_is_given_back() {
    let table = Table::new();
    let server = Server::streamable(&table);
    let mut ada = server.session("/mcp?name=ada");
    ada.call("register", json!({}));
    for round in 0..20 {
        table.ok(&["send", "ada", &format!("hi {round}."), "--as", "human"]);
        let mut gone = ada.clone().with("Connection", "keep-alive");
        drop(gone.open_call("get_messages", json!({})));
        thread::sleep(Duration::from_millis(50));
        let got = ada.call("get_messages", json!({})).text;
        assert!(got.contains(&format!("| hi {round}.")), "{got}");
    }
    assert!(!ada.call("get_messages", json!({})).text.contains("| hi"));
}

#[test]
fn a_cancelled_wait_takes_nothing_with_it() {
    let table = Table::new();
    let server = Server::streamable(&table);
    let mut ada = server.session("/mcp?name=ada");
    ada.call("register", json!({}));
    let waiting = ada.open_call("wait_for_messages", json!({}));
    thread::sleep(Duration::from_millis(200));
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
                        "params": {"requestId": 2}});
    assert_eq!(ada.post(&cancel).status, 202);
    table.ok(&["send", "ada", "hi", "--as", "human"]);
    assert!(ada.call("get_messages", json!({})).text.contains("| hi"));
    drop(waiting);
}

#[test]
fn a_new_session_of_a_member_is_shown_again_what_the_last_may_not_have_seen() {
    let table = Table::new();
    let server = Server::streamable(&table);
    let mut ada = server.session("/mcp?name=ada");
    ada.call("register", json!({}));
    table.ok(&["send", "ada", "hi", "--as", "human"]);
    assert!(ada.call("get_messages", json!({})).text.contains("| hi"));
    let mut again = server.session("/mcp?name=ada");
    assert!(again.call("get_messages", json!({})).text.contains("| hi"));
    assert!(!again.call("get_messages", json!({})).text.contains("| hi"));
}

#[test]
fn tokens_say_who_comes() {
    let table = Table::new().env("TEAM_TABLE_HURRY", "10");
    assert_eq!(table.ok(&["token", "list", "--json"]).trim(), "[]");
    let ada_token = token(&table, "ada");
    let bob_token = token(&table, "bob");
    assert!(ada_token.starts_with("tt_") && ada_token.len() == 67, "{ada_token}");
    assert_ne!(ada_token, bob_token);
    let kept: String = table
        .open()
        .query_row("SELECT group_concat(hash) FROM token", [], |row| row.get(0))
        .unwrap();
    assert!(!kept.contains(&ada_token[3..]), "only hashes are kept");
    assert!(table.ok(&["token", "list"]).contains("ada: made just now, never used"));
    let usage = table.run(&["token", "add", "human"]);
    assert_eq!(usage.code, 2, "{usage:?}");
    let server = Server::streamable(&table);

    for refused in [
        server.client("/mcp?name=ada").ask("tools/list"),
        server.client("/mcp?name=ada").post(&initialize("test")),
        server.client("/mcp").token("tt_0").ask("tools/list"),
        server.client("/mcp").token("").ask("tools/list"),
        server.client("/mcp").with("Authorization", "Basic YTpi").ask("tools/list"),
    ] {
        assert_eq!(refused.status, 401, "{refused:?}");
        assert!(refused.header("www-authenticate").unwrap().starts_with("Bearer"), "{refused:?}");
    }
    let start = Instant::now();
    server.client("/mcp").token("tt_1").ask("tools/list");
    assert!(start.elapsed() >= Duration::from_millis(80), "{:?}", start.elapsed());
    let said = server.process.stderr();
    let port = server.address.port();
    let board = format!(
        "\nthe board is at http://127.0.0.1:{port}/; `team-table web --port {port}` lets you write \
         there\n"
    );
    assert!(said.contains(&board), "{said}");
    assert!(said.contains("a wrong or revoked token came from") && !said.contains("tt_"), "{said}");

    let mut ada = server.client("/mcp").token(&ada_token);
    assert!(ada.call("register", json!({})).text.contains("you are `ada`"));
    let mut bob = server.client("/mcp").token(&bob_token);
    bob.initialize("test");
    bob.call("send_message", json!({"recipient": "ada", "content": "hi"}));
    assert!(ada.call("get_messages", json!({})).text.contains("#1 bob to you"));
    let both = server.client("/mcp?name=bob").token(&ada_token).ask("tools/list");
    assert_eq!(both.status, 403, "{both:?}");
    let refused = ada.call("register", json!({"name": "eve"}));
    assert!(refused.is_error, "{}", refused.text);
    eventually("the use is noted", || {
        table.ok(&["token", "list"]).contains("ada: made just now, last")
    });

    assert_eq!(table.run(&["token", "revoke", "eve"]).code, 1);
    table.ok(&["token", "revoke", "BOB"]);
    let gone = bob.post(&call(9, "get_messages", json!({})));
    assert_eq!(gone.status, 401, "{gone:?}");
    assert!(!table.ok(&["token", "list"]).contains("bob"));
    table.ok(&["token", "revoke", "ada"]);
    // Nobody has a token: on this machine a name does again, and a token that was revoked does not.
    assert_eq!(server.client("/mcp?name=ada").ask("tools/list").status, 200);
    assert_eq!(server.client("/mcp").token(&ada_token).ask("tools/list").status, 401);
}

#[test]
fn what_comes_through_a_proxy_needs_a_token() {
    let table = Table::new();
    let args = ["--transport", "streamable-http", "--allow-host", "table.example"];
    let server = Server::start(&table, &args);
    let plain = server.client("/mcp?name=ada");
    assert_eq!(plain.ask("tools/list").status, 200);
    for client in [
        plain.clone().with("Host", "table.example"),
        plain.clone().with("X-Forwarded-For", "10.0.0.1"),
        plain.clone().with("Forwarded", "for=10.0.0.1"),
        plain.clone().with("X-Real-IP", "10.0.0.1"),
        plain.clone().with("Via", "1.1 table.example"),
    ] {
        assert_eq!(client.ask("tools/list").status, 401);
        assert_eq!(client.token("tt_x").ask("tools/list").status, 401);
    }
    let ada = token(&table, "ada");
    let through = server.client("/mcp").with("Host", "table.example").token(&ada);
    assert_eq!(through.ask("tools/list").status, 200);
    let page = through.with("Origin", "https://table.example").ask("tools/list");
    assert_eq!(page.status, 200, "{page:?}");
}

#[test]
fn only_its_own_hosts_and_origins_are_served() {
    let table = Table::new();
    for (server, paths) in [
        (Server::streamable(&table), ["/mcp?name=ada", "/nonsense"]),
        (Server::sse(&table), ["/sse?name=ada", "/messages?sessionId=1"]),
    ] {
        let port = server.address.port();
        for path in paths {
            let client = server.client(path);
            for method in ["GET", "POST", "OPTIONS", "DELETE"] {
                for (name, value) in [
                    ("Host", "evil.example"),
                    ("Host", "127.0.0.1.evil.example"),
                    ("Origin", "https://evil.example"),
                    ("Origin", "null"),
                    ("Origin", "http://localhost:1"),
                ] {
                    let refused = client.send(method, &[(name, value)], "");
                    assert_eq!(refused.status, 403, "{method} {path} {name} {value}: {refused:?}");
                }
                assert_eq!(client.send(method, &[("Host", "")], "").status, 400);
                let two = client.send(method, &[("Host", "localhost"), ("Host", "localhost")], "");
                assert_eq!(two.status, 400, "{two:?}");
            }
            let local = format!("http://localhost:{port}");
            let ours = client.send("PUT", &[("Origin", &local), ("Host", "localhost")], "");
            assert!([404, 405].contains(&ours.status), "{ours:?}");
        }
    }
}

#[test]
fn bodies_have_a_kind_a_size_and_a_speed() {
    let table = Table::new().env("TEAM_TABLE_HURRY", "100");
    let server = Server::streamable(&table);
    let client = server.client("/mcp?name=ada");
    let kind = client.send("POST", &[("Content-Type", "text/plain")], "{}");
    assert_eq!(kind.status, 415, "{kind:?}");
    let declared = client.send("POST", &[("Content-Length", "4194305")], "");
    assert_eq!(declared.status, 413, "{declared:?}");
    let chunk = format!("100000\r\n{}\r\n", "x".repeat(0x10_0000)).repeat(5);
    let chunked = client.send("POST", &[("Transfer-Encoding", "chunked")], &chunk);
    assert_eq!(chunked.status, 413, "{}", chunked.status);
    let start = Instant::now();
    let mut slow = client.open("POST", &[("Content-Length", "10")], "{");
    let slow = {
        slow.write_all(b"\"a\"").unwrap();
        receive(slow)
    };
    assert!(slow.status == 408 && start.elapsed() < Duration::from_secs(10), "{slow:?}");
    let nonsense = client.send("POST", &[], "nonsense");
    assert!((400..500).contains(&nonsense.status), "{nonsense:?}");
    // Half characters and large texts that are within the bounds.
    let half = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"broadcast","arguments":{"content":"a \ud800 b"},"_meta":META}}"#
        .replace("META", &crate::support::http::meta().to_string());
    let more = [
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "broadcast"),
    ];
    let half = client.send("POST", &more, &half);
    assert!(half.status == 200 && half.body.contains("content"), "{half:?}");
}

#[test]
fn sessions_that_are_not_there() {
    let table = Table::new();
    let server = Server::streamable(&table);
    let mut client = server.client("/mcp?name=ada");
    client.session = Some("nope".to_owned());
    for method in ["GET", "DELETE"] {
        assert_eq!(client.send(method, &[("Content-Type", "")], "").status, 404, "{method}");
    }
    assert_eq!(client.post(&call(1, "register", json!({}))).status, 404);
    let mut ada = server.session("/mcp?name=ada");
    ada.call("register", json!({}));
    assert!(sits(&table, "ada"));
    assert_eq!(ada.send("DELETE", &[], "").status, 204);
    assert_eq!(ada.post(&call(1, "register", json!({}))).status, 404);
    eventually("the seat is free", || !sits(&table, "ada"));
}

#[test]
fn who_takes_leave_has_read_what_it_was_given() {
    let table = Table::new();
    let server = Server::streamable(&table);
    let mut bob = server.session("/mcp?name=bob");
    bob.call("register", json!({}));
    // Named by the address, or by itself; a call behind the one that brought the message, or none.
    for (path, name) in [("/mcp?name=ada", "ada"), ("/mcp", "carol")] {
        for calls_again in [true, false] {
            let mut session = server.session(path);
            assert!(!session.call("register", json!({"name": name})).is_error);
            let sent = bob.call("send_message", json!({"recipient": name, "content": "hello"}));
            let id = sent.text.split(['#', ' ']).find_map(|word| word.parse::<i64>().ok()).unwrap();
            assert!(session.call("get_messages", json!({})).text.contains("| hello"));
            if calls_again {
                assert!(!session.call("get_messages", json!({})).text.contains("| hello"));
            }
            assert_eq!(session.send("DELETE", &[], "").status, 204);
            let status = bob.call("message_status", json!({"message_id": id})).text;
            assert!(status.contains(&format!("{name}: read")), "{name} {calls_again}: {status}");
        }
    }
}

#[test]
fn an_open_stream_shows_that_it_lives_and_one_that_is_resumed_lost_nothing() {
    let table = Table::new().env("TEAM_TABLE_HURRY", "100");
    let server = Server::streamable(&table);
    let mut ada = server.session("/mcp?name=ada");
    ada.call("register", json!({}));
    let open = |more: &[(&str, &str)]| {
        Events::of(ada.open("GET", &[&[("Content-Type", "")], more].concat(), ""))
    };
    let mut stream = open(&[]);
    for _ in 0..3 {
        assert_eq!(stream.comment().as_deref(), Some("here"));
    }
    drop(stream);
    table.ok(&["send", "ada", "hi", "--as", "human"]);
    let mut resumed = open(&[("Last-Event-ID", "7")]);
    assert_eq!(resumed.comment().as_deref(), Some("here"));
    assert!(ada.call("get_messages", json!({})).text.contains("| hi"));

    let sse = Server::sse(&table);
    let mut bob = SseClient::connect(sse.client("/sse?name=bob"));
    for _ in 0..3 {
        assert_eq!(bob.events.comment().as_deref(), Some("here"));
    }
}

#[test]
fn idle_sessions_and_seats_end() {
    let table = Table::on_the_clock().env("TEAM_TABLE_HURRY", "1800");
    let server = Server::streamable(&table);
    let mut ada = server.session("/mcp?name=ada");
    ada.call("register", json!({}));
    let mut bob = server.client("/mcp?name=bob");
    bob.call("register", json!({}));
    let eve = server.session("/mcp?name=eve");
    let stream = Events::of(eve.open("GET", &[("Content-Type", "")], ""));
    table.ok(&["send", "bob", "hi", "--as", "human"]);
    assert!(bob.call("get_messages", json!({})).text.contains("| hi"));
    eventually("the seats are free", || !sits(&table, "ada") && !sits(&table, "bob"));
    assert_eq!(ada.post(&call(1, "register", json!({}))).status, 404);
    // What a request without a session was handed counts as read by the next one, however late.
    let got = bob.call("get_messages", json!({}));
    assert!(!got.text.contains("| hi"), "{}", got.text);
    // An open stream keeps its session.
    assert_eq!(eve.post(&call(1, "register", json!({}))).status, 200);
    drop(stream);
    eventually("the session ends", || {
        thread::sleep(Duration::from_millis(2200));
        eve.post(&call(2, "register", json!({}))).status == 404
    });
}

#[test]
fn the_last_session_too_many_is_turned_away() {
    let table = Table::new();
    let server = Server::streamable(&table);
    let mut first = server.session("/mcp?name=ada");
    for _ in 1..1_000 {
        assert_eq!(server.client("/mcp?name=ada").post(&initialize("test")).status, 200);
    }
    let full = server.client("/mcp?name=ada").post(&initialize("test"));
    assert!(full.status == 503 && full.header("retry-after").is_some(), "{full:?}");
    assert!(!first.call("register", json!({})).is_error);
    assert_eq!(first.send("DELETE", &[], "").status, 204);
    eventually("there is room again", || {
        server.client("/mcp?name=ada").post(&initialize("test")).status == 200
    });
}

#[test]
fn many_sessions_at_once() {
    const N: usize = 60;
    let table = Table::new().env("TEAM_TABLE_MAX_PER_MINUTE", "0");
    let server = Server::streamable(&table);
    let agents = |f: &(dyn Fn(usize) + Sync)| {
        thread::scope(|scope| {
            for number in 0..N {
                scope.spawn(move || f(number));
            }
        });
    };
    agents(&|number| {
        let mut agent = server.session(&format!("/mcp?name=a{number}"));
        let text = agent.call("register", json!({})).text;
        assert!(text.contains(&format!("you are `a{number}`")), "{text}");
    });
    agents(&|number| {
        let mut agent = server.session(&format!("/mcp?name=a{number}"));
        let to = format!("a{}", (number + 1) % N);
        let content = format!("from {number}");
        let sent = agent.call("send_message", json!({"recipient": to, "content": content}));
        assert!(!sent.is_error, "{}", sent.text);
        let from = format!("| from {}", (number + N - 1) % N);
        let got = agent.call("wait_for_messages", json!({}));
        assert!(got.text.contains(&from), "{}", got.text);
    });
}

#[test]
fn a_killed_server_loses_nothing() {
    for at in ["in_tool", "before_commit", "after_commit", "after_reply"] {
        for is_session in [false, true] {
            let mut table = Table::new();
            table.ok(&["register", "--as", "ada"]);
            table.ok(&["send", "ada", "first", "--as", "bob"]);
            // Each request looks at the tokens first, in a transaction of its own.
            let fault = match (at, is_session) {
                ("before_commit", false) => "before_commit:stop:2".to_owned(),
                ("before_commit", true) => "before_commit:stop:4".to_owned(),
                _ => format!("{at}:stop"),
            };
            table.set("TEAM_TABLE_FAULT", &fault);
            let mut server = Server::streamable(&table);
            table.set("TEAM_TABLE_FAULT", "");
            let mut ada = server.client("/mcp?name=ada");
            if is_session {
                ada.initialize("test");
            }
            let reply = ada.open_call("get_messages", json!({}));
            eventually(at, || server.process.stderr().contains("fault: "));
            server.process.kill9();
            drop(reply);
            let server = Server::streamable(&table);
            let mut ada = server.client("/mcp?name=ada");
            let got = ada.call("get_messages", json!({}));
            assert!(got.text.contains("| first"), "{at}: {}", got.text);
            let got = ada.call("get_messages", json!({}));
            assert!(!got.text.contains("| first"), "{at}: {}", got.text);
        }
    }
}

#[test]
fn a_signal_ends_everything_and_frees_the_seats() {
    for signal in [Signal::TERM, Signal::INT] {
        let table = Table::new();
        let mut server = Server::streamable(&table);
        let mut sse = Server::sse(&table);
        let mut ada = server.session("/mcp?name=ada");
        ada.call("register", json!({}));
        let mut bob = server.client("/mcp?name=bob");
        bob.call("register", json!({}));
        let mut eve = SseClient::connect(sse.client("/sse?name=eve"));
        eve.call("register", json!({}));
        let mut stream = Events::of(ada.open("GET", &[("Content-Type", "")], ""));
        let in_session = ada.open_call("wait_for_messages", json!({}));
        let stateless = bob.open_call("wait_for_messages", json!({}));
        eve.messages.post(&call(9, "wait_for_messages", json!({})));
        thread::sleep(Duration::from_millis(200));
        for server in [&mut server, &mut sse] {
            server.process.signal(signal);
            let (status, took) = server.process.wait_exit(Duration::from_secs(10));
            assert_eq!(status.code(), Some(0), "{}", server.process.stderr());
            assert!(took < Duration::from_secs(5), "{took:?}");
        }
        while stream.next().is_some() {}
        while eve.events.next().is_some() {}
        drop((in_session, stateless));
        for name in ["ada", "bob", "eve"] {
            assert!(!sits(&table, name), "{name}");
        }
    }
}

#[test]
fn where_it_cannot_listen_it_says_so() {
    let table = Table::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let serve = |args: &[&str]| table.run(&[&["serve"], args].concat());
    let http = "--transport=streamable-http";
    let check = |args: &[&str], code: i32, says: &str| {
        let output = serve(args);
        assert!(output.code == code && output.stderr.contains(says), "{args:?}: {output:?}");
    };
    check(&[http, "--port", &port], 1, "is taken");
    check(&[http, "--host", "no.such.host.invalid"], 2, "is no address of this machine");
    check(&[http, "--host", "192.0.2.1"], 1, "token add NAME");
    check(&[http, "--host", "0.0.0.0"], 1, "serve --transport streamable-http --host 0.0.0.0");
    check(&["--port", "1"], 2, "--transport streamable-http");
    check(&[http, "--name", "ada"], 2, "token add NAME");
    token(&table, "ada");
    check(&[http, "--host", "192.0.2.1", "--port", "0"], 2, "is no address of this machine");
}

#[test]
fn with_a_token_it_listens_everywhere() {
    let table = Table::new()
        .env("TEAM_TABLE_TRANSPORT", "streamable-http")
        .env("TEAM_TABLE_HOST", "0.0.0.0");
    let ada = token(&table, "ada");
    let server = Server::start(&table, &[]);
    assert_eq!(server.client("/mcp").token(&ada).ask("tools/list").status, 200);
    assert_eq!(server.client("/mcp").ask("tools/list").status, 401);
    table.ok(&["token", "revoke", "ada"]);
    // It is still open to others: nobody comes in without a token.
    assert_eq!(server.client("/mcp?name=ada").ask("tools/list").status, 401);
    let wrong = table.run_with(&["serve"], &[("TEAM_TABLE_TRANSPORT", "pigeon")], "");
    assert!(wrong.code == 2 && wrong.stderr.contains("pigeon"), "{wrong:?}");
}
