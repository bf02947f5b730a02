//! Calls that the client takes back, and answers that nobody reads.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::faults::{
    Place, Raw, Seen, Wire, best_of, call, eventually, id_in, messages_in, ok, rounds,
};

/// A seated session that is inside `wait_for_messages`; gives the call's id.
fn waiting(agent: &mut crate::support::agent::Agent) -> u64 {
    let id = agent.post_call("wait_for_messages", json!({"timeout_seconds": 50}));
    // Calls run in order: behind this answer the first look is done.
    ok(agent.call("heartbeat", json!({})));
    id
}

/// A session of bob's whose bytes the test itself reads.
fn registered(place: &Place, wire: Wire) -> Raw {
    let mut bob = Raw::started(place, wire, &["--name", "bob"]);
    bob.write(&call(1, "register", &json!({})));
    bob.result();
    bob
}

#[test]
fn a_wait_that_is_cancelled_ends_and_takes_no_mail() {
    let place = Place::new();
    let mut bob = place.seated("bob");
    let id = waiting(&mut bob);
    bob.cancel(id);
    // What was cancelled is answered by nobody.
    ok(bob.call("heartbeat", json!({})));
    let sent = place.send("ada", "bob", "hello");
    assert!(bob.try_wait(id, Duration::from_millis(300)).is_err(), "the wait went on");
    // Not even for a moment.
    assert_eq!(place.number("SELECT count(*) FROM event WHERE kind = 'message.handed'"), 0);
    let text = ok(bob.call("get_messages", json!({})));
    assert_eq!(messages_in(&text), [(sent, false)], "{text}");
}

#[test]
fn a_client_that_quits_ends_a_waiting_server_at_once() {
    for wire in [Wire::Pipes, Wire::Sockets] {
        let place = Place::new();
        place.send("bob", "human", "here I am");
        best_of(5, &format!("{wire:?}"), Duration::from_millis(50), || {
            let mut bob = registered(&place, wire);
            bob.write(&call(2, "wait_for_messages", &json!({"timeout_seconds": 50})));
            bob.write(&call(3, "heartbeat", &json!({})));
            bob.result();
            drop(bob.stdin.take());
            let (status, took) = bob.wait_exit();
            assert!(status.success(), "{wire:?}: {status}");
            took
        });
        let sent = place.send("ada", "bob", "hello");
        let mut bob = place.seated("bob");
        let text = ok(bob.call("get_messages", json!({})));
        assert_eq!(messages_in(&text), [(sent, false)], "{wire:?}: {text}");
    }
}

/// The moments of the cancel are spread over twice the time that a message takes to arrive. One
/// client reads whatever comes; another one, as the protocol asks, ignores what comes behind its
/// cancel.
#[test]
fn a_cancel_around_the_arrival_of_a_message_loses_nothing() {
    let n_rounds = rounds(300);
    for ignores in [false, true] {
        let place = Place::new();
        let (mut ada, mut bob) = (place.seated("ada"), place.seated("bob"));
        let (mut seen, mut sent) = (Seen::default(), Vec::new());
        let (mut took, mut n_arrived) = (Duration::from_millis(1), 0);
        for round in 0..n_rounds {
            let wait = waiting(&mut bob);
            let arguments = json!({"recipient": "bob", "content": "hello"});
            let call = ada.post_call("send_message", arguments);
            let start = Instant::now();
            let mut answer = None;
            // Every tenth round measures how long an arrival takes here and now.
            if round % 10 == 0 {
                answer = Some(bob.wait(wait, super::PATIENCE));
                took = start.elapsed();
            } else {
                let moment = took.min(Duration::from_millis(20)) * 2 * (round % 60) / 60;
                while start.elapsed() < moment {
                    std::hint::spin_loop();
                }
            }
            if ignores && answer.is_none() {
                answer = bob.try_wait(wait, Duration::ZERO).ok();
            }
            bob.cancel(wait);
            let reply = ada.wait(call, super::PATIENCE);
            sent.push(id_in(&ok(reply)));
            let look = ok(bob.call("get_messages", json!({})));
            let late = bob.try_wait(wait, Duration::ZERO).ok().filter(|_| !ignores);
            n_arrived += u32::from(answer.is_some() || late.is_some());
            // In the order in which they were written.
            answer.into_iter().chain(late).for_each(|reply| seen.add(&ok(reply)));
            seen.add(&look);
        }
        // A message may still be under way to nobody: the last look tells.
        seen.add(&ok(bob.call("get_messages", json!({}))));
        assert!(n_arrived > n_rounds / 20, "every cancel came before the answer");
        assert!(n_arrived < n_rounds * 19 / 20, "every cancel came after the answer");
        seen.assert_complete(sent);
    }
}

/// Two requests in one write, or the second while the answer to the first lies in the pipe.
#[test]
fn an_answer_that_nobody_read_leaves_the_mail_unread() {
    for in_one_write in [true, false] {
        for killed in [true, false] {
            let place = Place::new();
            place.send("bob", "human", "here I am");
            let mut bob = Raw::started(&place, Wire::Pipes, &["--name", "bob"]);
            bob.write(&call(1, "register", &json!({})));
            bob.result();
            let sent = place.send("ada", "bob", "hello");
            let (first, second) =
                (call(2, "get_messages", &json!({})), call(3, "get_messages", &json!({})));
            if in_one_write {
                bob.write(&format!("{first}{second}"));
                bob.wait_unread(0);
            } else {
                bob.write(&first);
                let n_bytes = bob.wait_unread(0);
                bob.write(&second);
                bob.wait_unread(n_bytes);
            }
            // A third one, which writes: it would store what the second one told.
            let n_bytes = bob.unread();
            let hello = json!({"recipient": "human", "content": "hello"});
            bob.write(&call(4, "send_message", &hello));
            bob.wait_unread(n_bytes);
            if killed {
                bob.kill9();
            } else {
                // The client dies, and the server finds its stdin closed.
                drop((bob.stdin.take(), bob.stdout.take()));
                bob.wait_exit();
            }
            let case = format!("in one write: {in_one_write}, killed: {killed}");
            assert_eq!(place.number("SELECT count(*) FROM delivery WHERE read_at NOT NULL"), 0);
            let mut bob = place.seated("bob");
            let text = ok(bob.call("get_messages", json!({})));
            assert_eq!(messages_in(&text), [(sent, true)], "{case}: {text}");
        }
    }
}

/// A client on Node that dies with the answer still in its socket.
#[test]
fn an_answer_left_in_a_socket_leaves_the_mail_unread() {
    let place = Place::new();
    place.send("bob", "human", "here I am");
    let mut bob = Raw::started(&place, Wire::Sockets, &["--name", "bob"]);
    let sent = place.send("ada", "bob", "hello");
    bob.write(&call(1, "get_messages", &json!({})));
    bob.wait_unread(0);
    drop((bob.stdout.take(), bob.stdin.take()));
    bob.wait_exit();
    let mut bob = place.seated("bob");
    let text = ok(bob.call("get_messages", json!({})));
    assert_eq!(messages_in(&text), [(sent, true)], "{text}");
}

/// A session that ends cleanly has read what it was told last.
#[test]
fn an_answer_that_was_read_counts_when_the_client_quits() {
    for wire in [Wire::Pipes, Wire::Sockets] {
        for by_signal in [true, false] {
            let place = Place::new();
            place.send("bob", "human", "here I am");
            let sent = place.send("ada", "bob", "hello");
            let mut bob = Raw::started(&place, wire, &["--name", "bob"]);
            bob.write(&call(1, "get_messages", &json!({})));
            assert_eq!(messages_in(&bob.result()), [(sent, false)]);
            if by_signal {
                bob.signal(Signal::TERM);
            } else {
                drop(bob.stdin.take());
            }
            bob.wait_exit();
            let mut bob = place.seated("bob");
            let text = ok(bob.call("get_messages", json!({})));
            assert_eq!(messages_in(&text), [], "{wire:?}, signal {by_signal}: {text}");
        }
    }
}

/// opencode cancels every call that it has the answer to.
#[test]
fn a_client_that_cancels_what_was_answered_sees_each_message_once() {
    let place = Place::new();
    let (mut ada, mut bob) = (place.seated("ada"), place.seated("bob"));
    let (mut seen, mut sent) = (Seen::default(), Vec::new());
    for round in 0..12 {
        let arguments = json!({"recipient": "bob", "content": "hello"});
        sent.push(id_in(&ok(ada.call("send_message", arguments))));
        let tool = if round % 2 == 0 { "get_messages" } else { "wait_for_messages" };
        let id = bob.post_call(tool, json!({}));
        let text = ok(bob.wait(id, super::PATIENCE));
        assert!(!text.contains("(again)"), "{text}");
        seen.add(&text);
        std::thread::sleep(Duration::from_millis(100));
        bob.cancel(id);
    }
    let text = ok(bob.call("get_messages", json!({})));
    assert_eq!(messages_in(&text), [], "{text}");
    bob.close_stdin();
    bob.wait_exit(super::PATIENCE);
    seen.assert_complete(sent);
    eventually("all are read", || {
        place.number("SELECT count(*) FROM delivery WHERE read_at IS NULL") == 0
    });
}

/// What a cancelled call was handed is unread at once, not only at the next call: a cancel right
/// behind the answer may have been sent before it came.
#[test]
fn mail_of_a_cancelled_call_is_unread_for_all_to_see() {
    const HANDED: &str = "SELECT count(*) FROM delivery WHERE handed_at NOT NULL";
    let place = Place::new();
    let mut bob = place.seated("bob");
    // On a busy machine a cancel may be too late to count as one that crossed the answer.
    let came_back = (0..5).any(|_| {
        place.send("ada", "bob", "hello");
        let id = bob.post_call("get_messages", json!({}));
        ok(bob.wait(id, super::PATIENCE));
        let handed = place.number(HANDED);
        bob.cancel(id);
        let deadline = Instant::now() + Duration::from_secs(2);
        while place.number(HANDED) == handed && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(2));
        }
        place.number(HANDED) < handed
    });
    assert!(came_back, "what was cancelled stays handed out");
    assert!(ok(bob.call("get_messages", json!({}))).contains("(again)"));
}

/// On a socket nobody can tell what was read while both ends live; but what came with one read of
/// ours cannot have been sent because of an answer to it.
#[test]
fn requests_of_one_write_say_nothing_about_the_answers() {
    for wire in [Wire::Pipes, Wire::Sockets] {
        let place = Place::new();
        place.send("bob", "human", "here I am");
        let sent = place.send("ada", "bob", "hello");
        let mut bob = Raw::started(&place, wire, &["--name", "bob"]);
        let looks = (2..40).map(|id| call(id, "list_members", &json!({})));
        let hello = json!({"recipient": "human", "content": "hello"});
        let calls: String = std::iter::once(call(1, "get_messages", &json!({})))
            .chain(looks)
            .chain([call(40, "send_message", &hello)])
            .collect();
        bob.write(&calls);
        eventually("all are done", || place.number("SELECT count(*) FROM message") == 3);
        bob.wait_unread(0);
        bob.kill9();
        let mut bob = place.seated("bob");
        let text = ok(bob.call("get_messages", json!({})));
        assert_eq!(messages_in(&text), [(sent, true)], "{wire:?}: {text}");
    }
}

#[test]
fn what_was_read_is_written_down_without_another_call() {
    let place = Place::new();
    let mut ada = place.seated("ada");
    let id = place.send("bob", "ada", "hello");
    assert!(ok(ada.call("get_messages", json!({}))).contains("| hello"));
    // The inbox is empty now: nothing to write but that the first answer was read.
    assert!(ok(ada.call("get_messages", json!({}))).contains("no unread messages"));
    let read =
        format!("SELECT count(*) FROM delivery WHERE message_id = {id} AND read_at IS NOT NULL");
    eventually("written down", || place.number(&read) == 1);
    // And while a call waits for more.
    let id = place.send("bob", "ada", "again");
    assert!(ok(ada.call("get_messages", json!({}))).contains("| again"));
    let wait = ada.post_call("wait_for_messages", json!({"timeout_seconds": 50}));
    let read =
        format!("SELECT count(*) FROM delivery WHERE message_id = {id} AND read_at IS NOT NULL");
    eventually("written down during a wait", || place.number(&read) == 1);
    ada.cancel(wait);
}

/// Plain calls go past rmcp, and still not past what came before them.
#[test]
fn calls_that_come_at_once_keep_their_order() {
    let place = Place::new();
    let mut bob = registered(&place, Wire::Pipes);
    // What tells of the protocol is left to rmcp.
    let created = |id: u64| {
        let meta =
            if id.is_multiple_of(2) { json!({"io.modelcontextprotocol/x": 1}) } else { json!({}) };
        let create = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
            "name": "create_task", "arguments": {"title": format!("{id}")}, "_meta": meta}});
        format!("{create}\n")
    };
    bob.write(&(10..40).map(created).collect::<String>());
    for _ in 10..40 {
        bob.result();
    }
    let titles = "SELECT group_concat(title, ' ') FROM (SELECT title FROM task ORDER BY id)";
    let titles: String = place.open().query_row(titles, [], |row| row.get(0)).unwrap();
    let in_order: Vec<String> = (10..40).map(|id: u64| id.to_string()).collect();
    assert_eq!(titles, in_order.join(" "));

    // The wait looks first: it is over at once, and has the message.
    let sent = place.send("ada", "bob", "hello");
    let both = [
        call(50, "wait_for_messages", &json!({"timeout_seconds": 50})),
        call(51, "get_messages", &json!({})),
    ];
    bob.write(&both.concat());
    let answers = [bob.result(), bob.result()].map(|answer| messages_in(&answer));
    assert_eq!(answers.concat(), [(sent, false)], "{answers:?}");
}

/// What is taken back in the same breath is handed to nobody.
#[test]
fn a_call_that_comes_with_its_cancel_takes_no_mail() {
    let place = Place::new();
    let mut bob = registered(&place, Wire::Pipes);
    let sent = place.send("ada", "bob", "hello");
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
                        "params": {"requestId": 2}});
    bob.write(&format!("{}{cancel}\n", call(2, "get_messages", &json!({}))));
    bob.write(&call(3, "get_messages", &json!({})));
    let answer: Value = serde_json::from_str(&bob.line()).unwrap();
    let text = answer.pointer("/result/content/0/text").and_then(Value::as_str).unwrap();
    assert_eq!(answer.get("id"), Some(&json!(3)), "what was taken back is not answered");
    assert_eq!(messages_in(text), [(sent, false)], "{text}");
}
