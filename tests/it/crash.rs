//! The program dies at any place. What was acknowledged stays, nothing is handed out as new twice,
//! and the seat is free at once.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{
    agent::Agent,
    faults::{Dice, Place, Seen, eventually, failed, id_in, messages_in, ok, rounds},
};

/// Calls a tool as `name`, its first call, and kills the server where it stops at `place`.
fn die_at(at: &str, place: &Place, name: &str, tool: &str, arguments: serde_json::Value) -> bool {
    // The first reply is the one to `initialize`.
    let fault = if at == "after_reply" { format!("{at}:stop:2") } else { format!("{at}:stop") };
    let mut agent = place.started(&["--name", name], &[("TEAM_TABLE_FAULT", fault.as_str())]);
    let id = agent.post_call(tool, arguments);
    eventually(at, || agent.stderr().contains(&format!("fault: {at}")));
    let answered = agent.try_wait(id, Duration::ZERO).is_ok();
    agent.kill9();
    answered
}

const PLACES: [&str; 5] =
    ["after_lock", "after_insert", "before_commit", "after_commit", "after_reply"];

#[test]
fn a_sender_that_dies_leaves_a_whole_message_or_none() {
    for at in PLACES {
        let place = Place::new();
        place.send("bob", "human", "here I am");
        let send = |body: &str| json!({"recipient": "bob", "content": body});
        let answered = die_at(at, &place, "ada", "send_message", send("first"));
        assert_eq!(answered, at == "after_reply", "{at}");
        // Nobody else sits there, so the next one gets that very name, without waiting.
        let mut again = place.seated("ada");
        ok(again.call("send_message", send("second")));
        let mut bob = place.seated("bob");
        let text = ok(bob.call("get_messages", json!({})));
        let stored = matches!(at, "after_commit" | "after_reply");
        assert_eq!(text.contains("| first"), stored, "{at}: {text}");
        assert!(text.contains("| second"), "{at}: {text}");
        assert_eq!(messages_in(&text).len(), 1 + usize::from(stored), "{at}: {text}");
        assert_eq!(
            place.number("SELECT count(*) FROM message"),
            place.number("SELECT count(*) FROM delivery"),
            "{at}"
        );
        place.assert_sound();
    }
}

#[test]
fn a_reader_that_dies_finds_its_mail_again() {
    for at in PLACES {
        let place = Place::new();
        place.send("bob", "human", "here I am");
        let sent = place.send("ada", "bob", "first");
        die_at(at, &place, "bob", "get_messages", json!({}));
        let mut again = place.seated("bob");
        let text = ok(again.call("get_messages", json!({})));
        let handed = matches!(at, "after_commit" | "after_reply");
        assert_eq!(messages_in(&text), [(sent, handed)], "{at}: {text}");
        assert_eq!(messages_in(&ok(again.call("get_messages", json!({})))), [], "{at}");
        // That call said that the reply before it had arrived; a crash changes nothing any more.
        ok(again.call("heartbeat", json!({})));
        again.kill9();
        let mut last = place.seated("bob");
        assert_eq!(messages_in(&ok(last.call("get_messages", json!({})))), [], "{at}");
        place.assert_sound();
    }
}

/// A writer that dies with the turn to write in its hand takes nobody's turn away.
#[test]
fn a_turn_to_write_dies_with_its_holder() {
    let place = Place::new();
    let mut bob = place.seated("bob");
    let env = [("TEAM_TABLE_FAULT", "before_commit:stop")];
    let mut ada = place.started(&["--name", "ada"], &env);
    ada.post_call("send_message", json!({"recipient": "bob", "content": "never"}));
    eventually("before_commit", || ada.stderr().contains("fault: before_commit"));
    let id = bob.post_call("send_message", json!({"recipient": "human", "content": "hello"}));
    assert!(bob.try_wait(id, Duration::from_millis(100)).is_err(), "it is not its turn yet");
    ada.kill9();
    assert!(ok(bob.wait(id, Duration::from_secs(4))).contains("#1"));
    place.assert_sound();
}

#[test]
fn a_kill_at_any_moment_loses_nothing() {
    let place = Place::new();
    let mut dice = Dice::new(7);
    let (mut acknowledged, mut seen) = (Vec::new(), Seen::default());
    place.send("bob", "human", "here I am");
    for round in 0..rounds(14) {
        let (mut ada, mut bob) = (place.seated("ada"), place.seated("bob"));
        let until = Instant::now() + Duration::from_micros(3_000 + dice.below(40_000));
        let mut open = Vec::new();
        while Instant::now() < until {
            // Two at once, so that a kill finds one under way.
            for _ in 0..2 {
                let arguments = json!({"recipient": "bob", "content": format!("round {round}")});
                open.push(ada.post_call("send_message", arguments));
            }
            if dice.below(3) == 0 {
                let id = bob.post_call("get_messages", json!({}));
                seen.add(&ok(bob.wait(id, super::PATIENCE)));
            }
            take_answers(&mut ada, &mut open, &mut acknowledged, Duration::ZERO);
        }
        let last = bob.post_call("get_messages", json!({}));
        if dice.below(2) == 0 {
            std::thread::sleep(Duration::from_micros(dice.below(3_000)));
        }
        bob.kill9();
        ada.kill9();
        take_answers(&mut ada, &mut open, &mut acknowledged, Duration::from_millis(5));
        // What it had written before it died was read, even if the table does not know it.
        if let Ok(reply) = bob.try_wait(last, Duration::from_millis(5)) {
            seen.add(&ok(reply));
        }
    }
    let mut bob = place.seated("bob");
    loop {
        let text = ok(bob.call("get_messages", json!({})));
        if messages_in(&text).is_empty() {
            break;
        }
        seen.add(&text);
    }
    assert!(acknowledged.len() > 50, "{} messages are no load", acknowledged.len());
    seen.assert_complete(acknowledged);
    place.assert_sound();
}

fn take_answers(agent: &mut Agent, open: &mut Vec<u64>, ids: &mut Vec<u64>, patience: Duration) {
    open.retain(|id| match agent.try_wait(*id, patience) {
        Ok(reply) => {
            ids.push(id_in(&ok(reply)));
            false
        }
        Err(_) => true,
    });
}

#[test]
fn a_panic_in_a_tool_is_an_error_and_the_server_goes_on() {
    let place = Place::new();
    place.send("bob", "human", "here I am");
    // The first pass is the call that sits down.
    let env = [("TEAM_TABLE_FAULT", "in_tool:panic:2")];
    let mut ada = place.started(&["--name", "ada"], &env);
    ok(ada.call("register", json!({})));
    let send = json!({"recipient": "bob", "content": "hello"});
    let text = failed(ada.call("send_message", send.clone()));
    assert!(text.contains("send_message failed; nothing was stored"), "{text}");
    assert_eq!(place.number("SELECT count(*) FROM message WHERE recipient_id <> 1"), 0);
    assert!(ok(ada.call("send_message", send)).contains("#2"));
    assert!(ok(ada.call("list_members", json!({}))).contains("ada (you): active"));
    place.assert_sound();
}
