//! What is shown to who is not on this machine.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    sync::Arc,
};

use tokio_util::sync::CancellationToken;

use crate::{
    config::Config,
    tools::{Desk, Who},
    transport::event_loop,
    view::{text::Front, web::PAGE},
    workspace::Workspace,
};

fn status(address: std::net::SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text.split(' ').nth(1).unwrap().to_owned()
}

#[test]
fn off_loopback_nothing_is_shown_without_a_session() {
    let folder = tempfile::tempdir().unwrap();
    let config = Config { cwd: folder.path().to_owned(), ..Config::default() };
    let table = folder.path().join("comms.db");
    let workspace = Workspace::find(&config, Some(&table)).unwrap();
    let desk = Desk::new(workspace, Arc::new(config), Who::Human, Front::Tools);
    event_loop().unwrap().block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let routes = super::routes(desk, true, CancellationToken::new());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        let asked = tokio::task::spawn_blocking(move || {
            for path in ["state", "events", "messages?before=1", "task?id=1", "context?key=k"] {
                assert_eq!(status(address, &format!("/web/{path}")), "401", "{path}");
            }
            // The page itself, which holds nothing: by it one enters.
            for file in PAGE {
                assert_eq!(status(address, file.path), "200", "{}", file.path);
            }
        });
        asked.await.unwrap();
    });
}
