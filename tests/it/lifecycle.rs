//! A server's life: it ends with its client, whatever way that ends, and a client that only probes
//! leaves no trace.

use std::{
    io::Read as _,
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use serde_json::json;

use crate::support::faults::{Place, Raw, Wire, best_of, call, eventually, handshake, ok};

const AT_ONCE: Duration = Duration::from_millis(100);

/// How a client ends its server; `None` by the end of stdin.
const ENDINGS: [Option<Signal>; 4] =
    [Some(Signal::INT), Some(Signal::TERM), Some(Signal::HUP), None];

fn end(server: &mut Raw, how: Option<Signal>) -> Duration {
    match how {
        Some(signal) => server.signal(signal),
        None => drop(server.stdin.take()),
    }
    let (status, took) = server.wait_exit();
    assert!(status.success(), "{how:?}: {status}");
    took
}

#[test]
fn a_server_is_gone_at_once_whatever_it_does() {
    let place = Place::new();
    place.send("bob", "human", "here I am");
    for wire in [Wire::Pipes, Wire::Sockets] {
        for how in ENDINGS {
            for waits in [false, true] {
                best_of(5, &format!("{wire:?}, {how:?}, waits: {waits}"), AT_ONCE, || {
                    let mut bob = Raw::started(&place, wire, &["--name", "bob"]);
                    if waits {
                        bob.write(&call(1, "wait_for_messages", &json!({"timeout_seconds": 50})));
                    }
                    bob.write(&call(2, "heartbeat", &json!({})));
                    bob.result();
                    end(&mut bob, how)
                });
            }
        }
    }
    // The last one freed its seat.
    place.seated("bob");
}

/// A client that says all at once and ends its side, as a script does: each answer comes.
#[test]
fn what_was_asked_last_is_answered() {
    let place = Place::new();
    for last in [
        call(7, "send_message", &json!({"recipient": "human", "content": "hello"})),
        json!({"jsonrpc": "2.0", "id": 7, "method": "ping"}).to_string(),
        json!({"jsonrpc": "2.0", "id": 7, "method": "no/such"}).to_string(),
        json!({"jsonrpc": "2.0", "id": 7, "method": 3}).to_string(),
        call(7, "list_members", &json!({"a": 0})).replace(":0}", ":1e400}"),
    ] {
        let mut bob = Raw::started(&place, Wire::Pipes, &["--name", "bob"]);
        bob.write(&last);
        drop(bob.stdin.take());
        let mut said = String::new();
        bob.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(said.contains(r#""id":7,"#), "{last}: `{said}`");
        bob.wait_exit();
    }
}

/// Also while a call waits for its turn to write.
#[test]
fn a_server_in_the_queue_of_writers_is_gone_at_once() {
    let place = Place::new();
    place.send("bob", "human", "here I am");
    let lock = std::fs::File::open(place.comms().join("seats/write.lock")).unwrap();
    for how in ENDINGS {
        best_of(5, &format!("{how:?}"), AT_ONCE, || {
            let mut bob = Raw::started(&place, Wire::Pipes, &["--name", "bob"]);
            fs2::FileExt::lock_exclusive(&lock).unwrap();
            bob.write(&call(1, "register", &json!({})));
            // Answered beside the queue, so the call before it stands in it and blocks nothing.
            let start = Instant::now();
            bob.write("{\"jsonrpc\": \"2.0\", \"id\": 2, \"method\": \"ping\"}\n");
            bob.line();
            assert!(start.elapsed() < Duration::from_secs(1), "the call in the queue blocks");
            let took = end(&mut bob, how);
            fs2::FileExt::unlock(&lock).unwrap();
            took
        });
    }
    assert_eq!(place.number("SELECT count(*) FROM session"), 0);
}

/// The client is stopped, and the pipe to it is full.
#[test]
fn a_reader_that_stopped_does_not_keep_the_server_alive() {
    for wire in [Wire::Pipes, Wire::Sockets] {
        for signal in [Signal::TERM, Signal::INT] {
            let place = Place::new();
            best_of(5, &format!("{wire:?}, {signal:?}"), AT_ONCE, || {
                let mut bob = Raw::started(&place, wire, &[]);
                for id in 1..=200 {
                    let list = json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"});
                    bob.write(&format!("{list}\n"));
                }
                assert!(bob.wait_unread(30_000) < 300_000, "the pipe was never full");
                end(&mut bob, Some(signal))
            });
        }
    }
}

/// The parent dies, and somebody else holds stdin open. Whether the client has looked at what it was
/// handed last, nobody knows.
#[test]
fn an_orphan_does_not_live_on() {
    let place = Place::new();
    place.ok(&["register", "--as", "ada"]);
    place.send("bob", "ada", "here I am");
    let script = "exec 3<&0; \"$0\" serve --name ada <&3 & wait";
    let mut shell =
        Raw::start(place.command_of("sh", &["-c", script, super::PROGRAM]), Wire::Pipes);
    shell.write(&handshake());
    assert!(shell.line().contains("protocolVersion"));
    shell.write(&call(1, "get_messages", &json!({})));
    assert!(shell.line().contains("here I am"));
    shell.kill9();
    let mut stdout = shell.stdout.take().unwrap();
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        // Ends when the last process that has it is gone.
        let n_bytes = stdout.read_to_end(&mut Vec::new());
        sender.send(n_bytes.is_ok())
    });
    assert_eq!(receiver.recv_timeout(Duration::from_secs(10)), Ok(true), "it lives on");
    assert!(shell.stdin.is_some());
    let unread = place.ok(&["inbox", "--as", "ada"]);
    assert!(unread.contains("here I am"), "{unread}");
}

#[test]
fn a_probe_leaves_no_trace() {
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    for table_is_there in [false, true] {
        let place = Place::new();
        if table_is_there {
            place.send("bob", "human", "here I am");
        }
        for how in ENDINGS {
            for lists in [false, true] {
                let mut probe = Raw::started(&place, Wire::Pipes, &[]);
                if lists {
                    probe.write(&format!("{list}\n"));
                    probe.line();
                }
                end(&mut probe, how);
            }
            // Killed or closed before it said anything.
            let mut silent = Raw::start(place.command(&["serve"]), Wire::Pipes);
            drop(silent.stdin.take());
            silent.wait_exit();
        }
        if table_is_there {
            // The human, the program, and bob.
            assert_eq!(place.number("SELECT count(*) FROM member"), 3);
            assert_eq!(place.number("SELECT count(*) FROM session"), 0);
        } else {
            assert!(!place.comms().exists());
        }
    }
}

#[test]
fn a_session_that_listed_the_tools_can_be_found_where_a_table_is() {
    let (with, without) = (Place::new(), Place::new());
    with.send("bob", "human", "here I am");
    let mut agents = [with.started(&[], &[]), without.started(&[], &[])];
    for agent in &mut agents {
        agent.request("tools/list", json!({}));
    }
    eventually("seated without a call", || {
        with.number("SELECT count(*) FROM member WHERE name = 'tester-1'") == 1
    });
    let told = with.ok(&["send", "--as", "bob", "tester-1", "hello"]);
    assert!(told.contains("tester-1: active"), "{told}");
    thread::sleep(Duration::from_millis(300));
    assert!(!without.comms().exists(), "a table was made without a call");
    let [found, _] = &mut agents;
    assert!(ok(found.call("get_messages", json!({}))).contains("| hello"));
}

/// Just then another program holds the table.
#[test]
fn a_session_sits_down_as_soon_as_the_table_is_free() {
    let place = Place::new();
    place.send("bob", "human", "here I am");
    let mut agent = place.started(&[], &[]);
    let mut conn = place.open();
    let transaction =
        conn.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).unwrap();
    agent.request("tools/list", json!({}));
    thread::sleep(Duration::from_millis(3_500));
    drop(transaction);
    eventually("seated without a call", || {
        place.number("SELECT count(*) FROM member WHERE name = 'tester-1'") == 1
    });
}

/// Somebody stops a client with all that it started, and goes on later.
#[test]
fn a_server_that_is_stopped_is_in_nobodys_way() {
    let place = Place::new();
    let (mut ada, mut bob) = (place.seated("ada"), place.seated("bob"));
    let wait = bob.post_call("wait_for_messages", json!({"timeout_seconds": 50}));
    ok(bob.call("heartbeat", json!({})));
    bob.signal(Signal::STOP);
    let arguments = json!({"recipient": "bob", "content": "hello"});
    let text = ok(ada.call("send_message", arguments));
    assert!(text.contains("to bob: active"), "{text}");
    bob.signal(Signal::CONT);
    assert!(ok(bob.wait(wait, super::PATIENCE)).contains("| hello"));
}
