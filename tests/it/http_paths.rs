//! Over the network: which paths there are, which methods they take, and who refuses first.

use std::{io::Write as _, thread, time::Duration};

use serde_json::json;

use crate::support::{
    Table,
    http::{Client, Server, call, initialize, meta, receive, token},
};

const METHODS: &[&str] =
    &["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "BREW"];

/// What a client is told of a path: the status, and which methods it takes, if that is said.
fn told(client: &Client, method: &str) -> String {
    let stream = client.open(method, &[("Content-Length", "")], "");
    let told = if (method, client.path.as_str()) == ("GET", "/sse?name=ada") {
        // The stream has no end.
        stream.peek(&mut [0; 1]).unwrap();
        return "a stream".to_owned();
    } else {
        receive(stream)
    };
    assert!(method != "HEAD" || told.body.is_empty(), "{told:?}");
    match told.header("allow") {
        Some(allow) => format!("{} {allow}", told.status),
        None => told.status.to_string(),
    }
}

#[test]
fn each_path_takes_its_methods() {
    let table = Table::new();
    let (streamable, sse) = (Server::streamable(&table), Server::sse(&table));
    let by_rmcp = "405 GET, POST, DELETE";
    for (server, path, exceptions, others) in [
        // A session is missing, or a body.
        (
            &streamable,
            "/mcp?name=ada",
            &[("GET", "400"), ("POST", "400"), ("DELETE", "400")][..],
            by_rmcp,
        ),
        (&streamable, "/sse", &[], "404"),
        (&streamable, "/messages", &[], "404"),
        (&sse, "/sse?name=ada", &[("GET", "a stream"), ("HEAD", "200")], "405 GET,HEAD"),
        (&sse, "/messages?sessionId=1&name=ada", &[("POST", "404")], "405 POST"),
        (&sse, "/mcp", &[], "404"),
        (&streamable, "/", &[("GET", "200"), ("HEAD", "200")], "405 GET,HEAD"),
        (&sse, "/web/state", &[("GET", "200"), ("HEAD", "200")], "405 GET,HEAD"),
        (&streamable, "/web/act", &[("POST", "401")], "405 POST"),
        (&sse, "/nonsense", &[], "404"),
    ] {
        for method in METHODS {
            let exception = exceptions.iter().find(|(it, _)| it == method);
            let expected = exception.map_or(others, |(_, told)| told);
            assert_eq!(told(&server.client(path), method), expected, "{method} {path}");
        }
    }
}

#[test]
fn a_path_is_taken_as_it_is_written() {
    let table = Table::new();
    let (streamable, sse) = (Server::streamable(&table), Server::sse(&table));
    for (server, paths) in [
        (&streamable, &["/mcp/", "/mcp/x", "/%6dcp", "/MCP", "//mcp", "/mcp;x", "/./mcp"][..]),
        (&sse, &["/sse/", "/%73se", "/SSE", "/messages/", "/message%73"]),
    ] {
        for path in paths {
            for method in METHODS {
                assert_eq!(told(&server.client(path), method), "404", "{method} {path}");
            }
        }
    }
    // As proxies ask.
    for (server, path, status) in [(&streamable, "/mcp", "400"), (&sse, "/messages", "404")] {
        let client = server.client(&format!("http://{}{path}", server.address));
        assert_eq!(told(&client, "POST"), status, "{path}");
    }
}

/// A page that is not there is a page, for whoever shows it.
#[test]
fn what_is_not_there_has_the_headers_of_the_page() {
    let table = Table::new();
    let (streamable, sse) = (Server::streamable(&table), Server::sse(&table));
    for (client, is_page) in [
        (streamable.client("/nonsense"), true),
        (streamable.client("/mcp/"), true),
        (sse.client("/mcp"), true),
        (streamable.client("/mcp"), false),
        (sse.client("/messages"), false),
    ] {
        let response = client.send("PUT", &[], "");
        let header = response.header("x-frame-options");
        assert_eq!(header.is_some(), is_page, "{response:?}");
    }
}

#[test]
fn the_guard_is_in_front_of_what_is_not_there() {
    let table = Table::new();
    for server in [Server::streamable(&table), Server::sse(&table)] {
        for path in ["/nonsense", "/mcp/", "/sse/", "/web/nonsense", "/", "/mcp", "/sse"] {
            let client = server.client(path);
            for (method, header, value, status) in [
                ("GET", "Host", "evil.example", 403),
                ("BREW", "Origin", "https://evil.example", 403),
                ("GET", "Host", "", 400),
                ("POST", "Content-Type", "text/plain", 415),
                ("POST", "Content-Length", "4194305", 413),
                ("PUT", "Content-Length", "4194305", 413),
            ] {
                let refused = client.send(method, &[(header, value)], "");
                assert_eq!(refused.status, status, "{method} {path} {header}: {refused:?}");
            }
        }
    }
}

/// A stranger is told that it needs a token before it is told anything of the path, if agents have
/// that path.
#[test]
fn who_asks_comes_before_what_is_asked() {
    let table = Table::new();
    token(&table, "ada");
    let (streamable, sse) = (Server::streamable(&table), Server::sse(&table));
    for (client, status) in [
        (streamable.client("/mcp"), 401),
        (sse.client("/sse"), 401),
        (sse.client("/messages"), 401),
        (streamable.client("/mcp/"), 404),
        (sse.client("/nonsense"), 404),
    ] {
        for method in ["PUT", "OPTIONS", "POST", "BREW"] {
            let refused = client.send(method, &[], "");
            assert_eq!(refused.status, status, "{method} {}: {refused:?}", client.path);
            let challenge = refused.header("www-authenticate");
            assert_eq!(challenge.is_some(), status == 401, "{refused:?}");
        }
        // The guard comes before that.
        assert_eq!(client.send("PUT", &[("Host", "evil.example")], "").status, 403);
    }
}

/// A call is a POST, whatever else has the body of one.
#[test]
fn only_a_post_is_a_call() {
    let table = Table::new();
    let server = Server::streamable(&table);
    let session = server.session("/mcp?name=ada");
    let send = call(1, "send_message", json!({"recipient": "human", "content": "hello"}));
    for method in METHODS.iter().filter(|method| !["GET", "POST", "DELETE"].contains(method)) {
        let response = session.send(method, &[], &send.to_string());
        assert_eq!(response.status, 405, "{method}: {response:?}");
        assert_eq!(response.header("allow"), Some("GET, POST, DELETE"), "{method}");
    }
    assert_eq!(session.send("POST", &[], &send.to_string()).status, 200);
    let n_messages: i64 =
        table.open().query_row("SELECT count(*) FROM message", [], |row| row.get(0)).unwrap();
    assert_eq!(n_messages, 1);
}

/// Bodies that come in pieces, with and without their length.
#[test]
fn a_body_is_there_as_a_whole() {
    let table = Table::new();
    let streamable = Server::streamable(&table);
    let session = streamable.session("/mcp?name=ada");
    let in_session = call(1, "register", json!({}));
    let alone = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list",
                       "params": {"_meta": meta()}});
    let stateless = [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/list")];
    // More than is read at once, and not all of it means anything.
    let padded = format!("{in_session}{}", " ".repeat(300_000));
    for (client, more, body, says) in [
        (&session, &[][..], in_session.to_string(), "you are `ada`"),
        (&session, &[], padded, "you are `ada`"),
        (&session, &[], initialize("test").to_string(), "protocolVersion"),
        (&streamable.client("/mcp?name=bob"), &stateless, alone.to_string(), "get_messages"),
        (&streamable.client("/web/enter"), &[], json!({"token": "x"}).to_string(), "no good"),
        (&streamable.client("/web/enter"), &[], "{\"token\"".to_owned(), "EOF"),
    ] {
        let (head, tail) = body.split_at(body.len() / 2);
        let length = body.len().to_string();
        let more = [more, &[("Content-Length", length.as_str())]].concat();
        let mut whole = client.open("POST", &more, head);
        thread::sleep(Duration::from_millis(50));
        whole.write_all(tail.as_bytes()).unwrap();
        let whole = receive(whole);
        assert!(whole.body.contains(says), "{whole:?}");

        let more = [&more[..more.len() - 1], &[("Transfer-Encoding", "chunked")]].concat();
        let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
        let mut chunked = client.open("POST", &more, &chunk(head));
        thread::sleep(Duration::from_millis(50));
        chunked.write_all(format!("{}0\r\n\r\n", chunk(tail)).as_bytes()).unwrap();
        let chunked = receive(chunked);
        assert!(chunked.body.contains(says), "{chunked:?}");
    }
    // The page takes less than the guard does.
    let large = streamable.client("/web/enter").send("POST", &[], &" ".repeat(200_000));
    assert_eq!(large.status, 413, "{large:?}");
}

/// A token that is revoked is refused from the next request on, whatever was read before.
#[test]
fn a_token_is_good_for_no_request_behind_its_end() {
    let table = Table::new().env("TEAM_TABLE_HURRY", "100");
    token(&table, "eve");
    let server = Server::streamable(&table);
    for _ in 0..5 {
        let mut ada = server.client("/mcp").token(&token(&table, "ada"));
        ada.call("register", json!({}));
        ada.call("get_messages", json!({}));
        table.ok(&["token", "revoke", "ada"]);
        assert_eq!(ada.ask("tools/list").status, 401);
        assert_eq!(ada.ask("tools/list").status, 401);
    }
    // Where nobody has one any more, a name is enough; and it is not, as soon as somebody has.
    let bob = server.client("/mcp?name=bob");
    for _ in 0..5 {
        assert_eq!(bob.ask("tools/list").status, 401);
        table.ok(&["token", "revoke", "eve"]);
        assert_eq!(bob.ask("tools/list").status, 200);
        token(&table, "eve");
    }
}
