//! Over the network, what goes wrong: clients that mean harm or are cut off, and servers that end.

use std::{
    fs,
    io::Read as _,
    net::TcpStream,
    thread,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use serde_json::json;

#[cfg(target_os = "linux")]
use crate::support::faults::memory;
use crate::support::{
    Table,
    faults::eventually,
    http::{Client, Events, Server, SseClient, call, receive, sits, token},
};

#[test]
fn a_revoked_token_ends_what_is_under_way() {
    let table = Table::new();
    let ada_token = token(&table, "ada");
    let (server, sse) = (Server::streamable(&table), Server::sse(&table));
    let mut in_session = server.client("/mcp").token(&ada_token);
    in_session.initialize("test");
    in_session.call("register", json!({}));
    let mut stateless = server.client("/mcp").token(&ada_token);
    let stream = in_session.open("GET", &[("Content-Type", "")], "");
    let waiting = in_session.open_call("wait_for_messages", json!({}));
    let alone = stateless.open_call("wait_for_messages", json!({}));
    let bob_token = token(&table, "bob");
    let mut bob = SseClient::connect(sse.client("/sse").token(&bob_token));
    bob.call("register", json!({}));
    thread::sleep(Duration::from_millis(200));

    table.ok(&["token", "revoke", "ada"]);
    table.ok(&["token", "revoke", "bob"]);
    let start = Instant::now();
    assert_eq!(receive(alone).status, 401);
    assert!(!receive(waiting).body.contains("result"));
    assert_eq!(receive(stream).status, 200);
    while bob.events.next().is_some() {}
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    eventually("the seat of bob is free", || !sits(&table, "bob"));
    // The session is gone, too: a new token of the same member is another one's.
    let mut again = server.client("/mcp").token(&token(&table, "ada"));
    let old = Client { session: in_session.session.clone(), ..again.clone() };
    assert_eq!(old.post(&call(9, "register", json!({}))).status, 404);
    table.ok(&["send", "ada", "hi", "--as", "human"]);
    assert!(again.call("get_messages", json!({})).text.contains("| hi"));
}

#[test]
fn who_came_by_a_name_is_cut_when_somebody_has_a_token() {
    let table = Table::new();
    let server = Server::streamable(&table);
    let mut ada = server.client("/mcp?name=ada");
    ada.call("register", json!({}));
    let waiting = ada.open_call("wait_for_messages", json!({}));
    thread::sleep(Duration::from_millis(200));
    token(&table, "bob");
    let start = Instant::now();
    assert_eq!(receive(waiting).status, 401);
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}

#[test]
fn who_waits_is_told_that_the_server_ends() {
    let table = Table::new();
    let (mut server, mut sse) = (Server::streamable(&table), Server::sse(&table));
    let mut ada = server.session("/mcp?name=ada");
    let mut bob = server.client("/mcp?name=bob");
    let mut eve = SseClient::connect(sse.client("/sse?name=eve"));
    for text in [
        ada.call("register", json!({})).text,
        bob.call("register", json!({})).text,
        eve.call("register", json!({})).text,
    ] {
        assert!(text.contains("you are"), "{text}");
    }
    let stream = Events::of(ada.open("GET", &[("Content-Type", "")], ""));
    let waiting = [
        ada.open_call("wait_for_messages", json!({})),
        bob.open_call("wait_for_messages", json!({})),
    ];
    assert_eq!(eve.messages.post(&call(9, "wait_for_messages", json!({}))).status, 202);
    // One that has not arrived by then is told by a closed connection.
    thread::sleep(Duration::from_secs(1));
    let start = Instant::now();
    for server in [&mut server, &mut sse] {
        server.process.signal(Signal::TERM);
    }
    for reply in waiting.map(receive) {
        assert!(reply.status == 200 && reply.body.contains("being stopped"), "{reply:?}");
    }
    let reply = eve.events.next().expect("last words");
    assert!(reply.contains("being stopped"), "{reply}");
    let mut stream = stream;
    while stream.next().is_some() {}
    assert!(eve.events.next().is_none());
    for server in [&mut server, &mut sse] {
        let (status, _) = server.process.wait_exit(Duration::from_secs(10));
        assert_eq!(status.code(), Some(0));
        let said = server.process.stderr();
        assert!(!said.contains("ERROR"), "{said}");
    }
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

/// A crowd: 200 clients, 50 of which wait; one broadcast wakes them all, and who waits costs the
/// system next to nothing.
#[test]
fn fifty_of_two_hundred_wait_at_once() {
    const ALL: usize = 200;
    const WAIT: usize = 50;
    let table = Table::new().env("TEAM_TABLE_MAX_PER_MINUTE", "0");
    let server = Server::streamable(&table);
    let mut clients: Vec<Client> = (0..ALL)
        .map(|n| {
            let mut client = server.client(&format!("/mcp?name=a{n}"));
            if n % 2 == 0 {
                client.initialize("test");
            }
            client
        })
        .collect();
    for client in &mut clients {
        client.call("register", json!({}));
    }
    let waiting: Vec<TcpStream> = clients[..WAIT]
        .iter_mut()
        .map(|it| it.open_call("wait_for_messages", json!({"timeout_seconds": 50})))
        .collect();
    thread::sleep(Duration::from_millis(500));
    #[cfg(target_os = "linux")]
    {
        let fds = fs::read_dir(format!("/proc/{}/fd", server.process.pid())).unwrap();
        let names = fds.filter_map(|it| fs::read_link(it.unwrap().path()).ok());
        let n_watchers = names.filter(|it| it.ends_with("anon_inode:inotify")).count();
        assert_eq!(n_watchers, 1, "a user has 128 of them");
    }
    let start = Instant::now();
    clients[ALL - 1].call("broadcast", json!({"content": "wake up"}));
    for (n, reply) in waiting.into_iter().map(receive).enumerate() {
        assert!(reply.body.contains("| wake up"), "{n}: {reply:?}");
    }
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    for client in &mut clients[WAIT..ALL - 1] {
        assert!(client.call("get_messages", json!({})).text.contains("| wake up"));
    }
}

/// A client that asks and asks, and takes none of the replies.
#[test]
fn who_takes_no_replies_is_held_up_and_cut_off() {
    let table = Table::new().env("TEAM_TABLE_HURRY", "20");
    let server = Server::sse(&table);
    let mut stream = server.client("/sse?name=ada").open("GET", &[("Content-Type", "")], "");
    let mut hello = [0; 4096];
    let mut n = 0;
    while !String::from_utf8_lossy(&hello[..n]).contains("/messages?") {
        n += stream.read(&mut hello[n..]).unwrap();
    }
    let hello = String::from_utf8_lossy(&hello[..n]).into_owned();
    let path = hello.split("data: ").nth(1).unwrap().lines().next().unwrap().to_owned();
    let client = server.client(&path);
    client.post(&crate::support::http::initialize("test"));
    client.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    client.post(&call(1, "register", json!({})));
    #[cfg(target_os = "linux")]
    let before = memory(server.process.pid());
    let mut statuses = Vec::new();
    for id in 2..5_000 {
        let list = json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"});
        statuses.push(client.post(&list).status);
        if statuses.last() != Some(&202) {
            break;
        }
    }
    assert!([429, 404].contains(statuses.last().unwrap()), "{} were taken", statuses.len());
    #[cfg(target_os = "linux")]
    assert!(
        memory(server.process.pid()) < before + 40_000,
        "{} KiB behind {before}",
        memory(server.process.pid())
    );
    eventually("the session has ended", || !sits(&table, "ada"));
}

#[test]
fn a_body_that_is_no_message_is_answered_as_json_rpc_has_it() {
    let table = Table::new();
    let server = Server::streamable(&table);
    let session = server.session("/mcp?name=ada");
    for client in [server.client("/mcp?name=bob"), session] {
        for (body, code) in [
            ("", -32700),
            ("{\"jsonrpc\":", -32700),
            (&"[".repeat(100_000), -32700),
            ("null", -32600),
            ("[]", -32600),
            ("[\"2.0\",1,\"tools/call\",{\"name\":\"register\"}]", -32600),
            ("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", -32600),
            ("{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}", -32600),
        ] {
            let response = client.send("POST", &[], body);
            assert_eq!(response.status, 400, "{body:.60}: {response:?}");
            assert_eq!(response.message()["error"]["code"], code, "{body:.60}: {response:?}");
        }
    }
}

/// Whoever deletes the table does so file by file: a look in between is made again.
#[test]
fn nothing_is_a_fault_of_the_server_while_the_table_is_replaced() {
    let table = Table::new().env("TEAM_TABLE_MAX_PER_MINUTE", "0");
    let server = Server::streamable(&table);
    let end = Instant::now() + Duration::from_secs(if crate::runs_long() { 20 } else { 4 });
    thread::scope(|scope| {
        for n in 0..2 {
            let mut client = server.client(&format!("/mcp?name=a{n}"));
            if n == 0 {
                client.initialize("test");
            }
            scope.spawn(move || {
                while Instant::now() < end {
                    // Asserts that the status is 200.
                    client.call("broadcast", json!({"content": "x"}));
                    client.call("get_messages", json!({}));
                }
            });
        }
        for path in ["/web/state", "/web/messages?before=9", "/web/task?id=1", "/web/context?key=k"]
        {
            let page = server.client(path);
            scope.spawn(move || {
                while Instant::now() < end {
                    let answer = page.send("GET", &[("Content-Type", "")], "");
                    assert!(answer.status < 500, "{path}: {answer:?}");
                }
            });
        }
        let mut n = 0;
        while Instant::now() < end {
            thread::sleep(Duration::from_millis(60));
            let folder = table.file().parent().unwrap().to_owned();
            n += 1;
            if n % 2 == 0 {
                fs::remove_dir_all(&folder).ok();
                continue;
            }
            for end in ["", "-wal", "-shm"] {
                fs::remove_file(format!("{}{end}", table.file().display())).ok();
            }
        }
    });
    let said = server.process.stderr();
    assert!(!said.contains("panicked"), "{said}");
    assert!(!server.client("/mcp?name=a1").call("register", json!({})).is_error);
}

/// A session is a desk and a seat, no more.
#[cfg(target_os = "linux")]
#[test]
fn a_hundred_sessions_are_small() {
    let table = Table::new();
    let server = Server::streamable(&table);
    let begin = |n: usize| {
        let mut client = server.session(&format!("/mcp?name=a{n}"));
        client.call("register", json!({}));
        // A stream each, and its connection.
        let stream = client.open("GET", &[("Content-Type", "")], "");
        client.call("wait_for_messages", json!({"timeout_seconds": 0}));
        stream
    };
    let first = begin(100);
    let before = memory(server.process.pid());
    let all: Vec<TcpStream> = (0..100).map(begin).collect();
    let after = memory(server.process.pid());
    assert!(after < before + 10 * 1024, "{before} KiB, then {after} KiB");
    drop((first, all));
}

/// The wait of a session that is deleted ends, and so do calls that come too late.
#[test]
fn a_session_that_is_deleted_under_its_calls() {
    let table = Table::new();
    let server = Server::streamable(&table);
    for round in 0..20 {
        let mut ada = server.session("/mcp?name=ada");
        ada.call("register", json!({}));
        let waiting = ada.open_call("wait_for_messages", json!({}));
        let deleting = ada.clone();
        thread::scope(|scope| {
            let others: Vec<_> = (0..4)
                .map(|n| {
                    let other = ada.clone();
                    scope
                        .spawn(move || other.post(&call(100 + n, "list_members", json!({}))).status)
                })
                .collect();
            thread::sleep(Duration::from_millis(round % 5));
            assert!([204, 404].contains(&deleting.send("DELETE", &[], "").status));
            for other in others {
                let status = other.join().unwrap();
                assert!([200, 404].contains(&status), "{status}");
            }
        });
        assert!(!receive(waiting).body.contains("nothing new"));
    }
}

/// Servers and agents on pipes that wish for one name: one of them has it.
#[test]
fn one_seat_for_all_transports() {
    let table = Table::new();
    let (one, two) = (Server::streamable(&table), Server::sse(&table));
    let mut net = one.session("/mcp?name=ada");
    assert!(net.call("register", json!({})).text.contains("you are `ada`"));
    let mut pipe = table.agent("ada");
    assert!(pipe.call("register", json!({})).text.contains("you are `ada-2`"));
    let mut sse = SseClient::connect(two.client("/sse?name=ada"));
    let refused = sse.call("register", json!({}));
    assert!(refused.is_error && refused.text.contains("seat of `ada`"), "{}", refused.text);
    assert_eq!(net.send("DELETE", &[], "").status, 204);
    eventually("the seat is free", || !sse.call("register", json!({})).is_error);
    let port = one.address.port().to_string();
    let taken = table.run(&["serve", "--transport", "sse", "--port", &port]);
    assert!(taken.code == 1 && taken.stderr.contains("is taken"), "{taken:?}");
}

/// Clients read while the server is stopped or killed, and started anew at the same port.
#[test]
fn no_message_is_lost_when_the_server_ends_again_and_again() {
    let table = Table::new().env("TEAM_TABLE_MAX_PER_MINUTE", "0");
    let rounds = if crate::runs_long() { 30 } else { 4 };
    let mut server = Server::streamable(&table);
    let port = server.address.port().to_string();
    let mut got: Vec<Vec<String>> = vec![Vec::new(); 4];
    for round in 0..rounds {
        let mut clients: Vec<Client> = (0..got.len())
            .map(|n| {
                let path = format!("/mcp?name=a{n}");
                if n < 2 { server.session(&path) } else { server.client(&path) }
            })
            .collect();
        for client in &mut clients {
            got_by(client, "register", &mut Vec::new());
        }
        thread::scope(|scope| {
            for (client, got) in clients.iter_mut().zip(&mut got) {
                scope.spawn(move || while got_by(client, "wait_for_messages", got) {});
            }
            let sender = scope.spawn(|| {
                for n in 0..8 {
                    table.ok(&["broadcast", &format!("m{round}-{n}."), "--as", "human"]);
                }
            });
            thread::sleep(Duration::from_millis(40 + 30 * (round % 4)));
            if round % 2 == 0 {
                server.process.signal(Signal::TERM);
                server.process.wait_exit(Duration::from_secs(10));
            } else {
                server.process.kill9();
            }
            sender.join().unwrap();
        });
        server = Server::start(&table, &["--transport", "streamable-http", "--port", &port]);
    }
    for (n, got) in got.iter_mut().enumerate() {
        let mut client = server.client(&format!("/mcp?name=a{n}"));
        let mut before = usize::MAX;
        while before != got.len() {
            before = got.len();
            assert!(got_by(&mut client, "get_messages", got));
        }
        for round in 0..rounds {
            for number in 0..8 {
                let body = format!("m{round}-{number}");
                assert!(got.contains(&body), "a{n} has not seen {body}");
            }
        }
    }
}

/// A call, and the bodies in its reply; whether there was one.
fn got_by(client: &mut Client, tool: &str, got: &mut Vec<String>) -> bool {
    let wait = if tool == "wait_for_messages" { json!({"timeout_seconds": 5}) } else { json!({}) };
    let Ok(mut stream) = client.try_open_call(tool, wait) else { return false };
    let mut all = Vec::new();
    let is_whole = stream.read_to_end(&mut all).is_ok();
    let text = String::from_utf8_lossy(&all);
    if !is_whole || !text.contains("\"result\"") {
        return false;
    }
    let bodies = text.split("| ").skip(1).filter_map(|rest| rest.split_once('.'));
    got.extend(bodies.map(|(body, _)| body.to_owned()).filter(|body| body.starts_with('m')));
    !text.contains("being stopped")
}

/// All of a process's connections share what SQLite keeps of a log: none of them may stay behind.
#[test]
fn a_log_that_is_deleted_alone_breaks_nothing() {
    let table = Table::new();
    let server = Server::streamable(&table);
    let mut ada = server.session("/mcp?name=ada");
    let page = server.client("/web/state");
    for _ in 0..3 {
        assert!(!ada.call("register", json!({})).is_error);
        assert_eq!(page.send("GET", &[("Content-Type", "")], "").status, 200);
        for end in ["-wal", "-shm"] {
            fs::remove_file(format!("{}{end}", table.file().display())).unwrap();
        }
    }
    assert!(!ada.call("register", json!({})).is_error);
    assert_eq!(page.send("GET", &[("Content-Type", "")], "").status, 200);
}
