//! The poll daemon: what the sender, the agent and the person see of it, and that nothing is
//! answered twice, whatever happens to it.

use std::{fs, path::Path, time::Duration};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{
    agent::{Agent, Missing, PATIENCE},
    faults::{Dice, PROGRAM, Place, eventually, id_in, messages_in, ok, rounds},
};

/// A daemon, and what it prints.
struct Daemon(Agent);

impl Daemon {
    /// A daemon of `name` that looks every second.
    #[track_caller]
    fn start(place: &Place, name: &str, args: &[&str]) -> Daemon {
        let mut daemon = Daemon::with(place, name, args, &[]);
        let first = daemon.line();
        assert!(first.starts_with(&format!("watching {name} (")), "{first}");
        daemon
    }

    fn with(place: &Place, name: &str, args: &[&str], env: &[(&str, &str)]) -> Daemon {
        let often: &[&str] = if args.contains(&"--interval") { &[] } else { &["--interval", "1"] };
        let args = [&["poll", name], often, args].concat();
        Daemon(Agent::spawn(Path::new(PROGRAM), &args, place.path(), env))
    }

    /// The next line without its time; a line of a body as it is.
    #[track_caller]
    fn line(&mut self) -> String {
        let line = self.0.read_line(PATIENCE);
        let line = line.unwrap_or_else(|why| unreachable!("{why:?}: {}", self.0.stderr()));
        match line.split_at_checked(20) {
            Some((time, text)) if time.starts_with("20") && time.ends_with(' ') => text.to_owned(),
            _ => line,
        }
    }

    #[track_caller]
    fn says(&mut self, expected: &str) {
        assert_eq!(self.line(), expected);
    }

    /// The first line that begins so; others may come before.
    #[track_caller]
    fn comes_to(&mut self, beginning: &str) -> String {
        loop {
            let line = self.line();
            if line.starts_with(beginning) {
                return line;
            }
        }
    }

    /// It prints nothing for a moment.
    #[track_caller]
    fn is_quiet(&mut self) {
        let line = self.0.read_line(Duration::from_millis(300));
        assert_eq!(line, Err(Missing::Timeout));
    }

    #[track_caller]
    fn exit_code(&mut self) -> Option<i32> {
        self.0.wait_exit(PATIENCE).0.code()
    }
}

/// A workspace where these have spoken, so that they can be written to.
fn place_of(names: &[&str]) -> Place {
    let place = Place::new();
    for name in names {
        place.send(name, "human", "here I am");
    }
    place
}

/// The automatic messages that a member was sent, by what they answer.
fn automatic(place: &Place, member: &str) -> Vec<(i64, String)> {
    let conn = place.open();
    let mut statement = conn
        .prepare(
            "SELECT reply_to, body FROM message JOIN member ON member.id = recipient_id
             WHERE message.kind = 'auto' AND name = ?1 ORDER BY message.id",
        )
        .unwrap();
    let rows = statement.query_map([member], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    rows.map(Result::unwrap).collect()
}

/// The one that there is.
#[track_caller]
fn the_automatic(place: &Place, member: &str) -> (i64, String) {
    let mut all = automatic(place, member);
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

fn answered(place: &Place, member: &str) -> Vec<i64> {
    automatic(place, member).into_iter().map(|(id, _)| id).collect()
}

#[test]
fn what_comes_is_acknowledged_and_stays_unread() {
    let place = place_of(&["ada", "bob"]);
    let waiting = place.send("bob", "ada", "The parser is done.");
    let mut daemon = Daemon::with(&place, "ADA", &[], &[]);
    daemon.says("watching ada (active): 1 unread message; Ctrl-C ends this");
    daemon.says("acknowledged #3 of bob with #4 (1 of 13)");
    // An agent sits down meanwhile; the daemon writes in its name all the same.
    let mut ada = place.seated("ada");
    place.send("bob", "ada", "So is the lexer.");
    daemon.says("acknowledged #5 of bob with #6 (2 of 13)");
    let text = ok(ada.call("get_messages", json!({})));
    assert_eq!(messages_in(&text), [(waiting, false), (5, false)], "{text}");
    let inbox = place.ok(&["inbox", "--as", "bob"]);
    let expected = "#4 ada to you, just now, reply to #3, written by a program\n\
                    | [AUTO] ada (active) has not read this yet; it waits in its inbox. Nobody \
                    needs to answer this.\n#6 ada to you";
    assert!(inbox.contains(expected), "{inbox}");
    daemon.is_quiet();
    place.assert_sound();
}

/// It gives no sign of life in the member's name.
#[test]
fn the_heartbeat_is_left_alone() {
    let place = place_of(&["ada", "bob"]);
    let beat = "SELECT heartbeat_at FROM member WHERE name = 'ada'";
    place.open().execute("UPDATE member SET heartbeat_at = 1 WHERE name = 'ada'", []).unwrap();
    // Of 1970: that member has left, so nobody could write to it.
    let done = place.run(&["poll", "ada"]);
    assert_eq!(done.code, Some(1));
    assert!(done.stderr.contains("`ada` left"), "{}", done.stderr);
    let long_ago = "UPDATE member SET heartbeat_at = heartbeat_at - 3600000 * 3 WHERE name = 'bob'";
    place.open().execute(long_ago, []).unwrap();
    let before = place.number(&beat.replace("ada", "bob"));
    let mut daemon = Daemon::with(&place, "bob", &[], &[]);
    daemon.says("watching bob (away, last seen 3 h ago): no unread messages; Ctrl-C ends this");
    place.send("carol", "bob", "Hello.");
    daemon.says("acknowledged #3 of carol with #4 (1 of 13)");
    assert_eq!(place.number(&beat.replace("ada", "bob")), before);
    let (id, text) = the_automatic(&place, "carol");
    assert_eq!(id, 3);
    assert!(text.contains("bob (away, last seen 3 h ago) has not read this yet"), "{text}");
}

#[test]
fn what_was_read_before_is_not_new_and_what_comes_is() {
    let place = place_of(&["ada", "bob"]);
    place.send("bob", "ada", "read before there was a daemon");
    place.ok(&["inbox", "--as", "ada"]);
    let mut daemon = Daemon::start(&place, "ada", &[]);
    daemon.is_quiet();
    drop(daemon);
    // Read while no daemon ran: it was not dealt with yet, and the reply says the truth.
    let id = place.send("bob", "ada", "read before the daemon looks");
    place.ok(&["inbox", "--as", "ada"]);
    let mut daemon = Daemon::start(&place, "ada", &[]);
    daemon.says("acknowledged #4 of bob with #5 (1 of 13)");
    let (answered, text) = the_automatic(&place, "bob");
    assert_eq!(answered, i64::try_from(id).unwrap());
    assert_eq!(text, "[AUTO] ada (active) has read this. Nobody needs to answer this.");
}

#[test]
fn a_role_is_acknowledged_and_everyone_is_not() {
    let place = place_of(&["ada", "bob"]);
    place.ok(&["register", "--role", "reviewer", "--as", "ada"]);
    let mut daemon = Daemon::start(&place, "ada", &[]);
    place.ok(&["send", "@reviewer", "It is ready.", "--as", "bob"]);
    daemon.says("acknowledged #3 of bob with #4 (1 of 13)");
    place.ok(&["broadcast", "The freeze begins.", "--as", "bob"]);
    daemon.says("passed over #5 of bob: it went to everyone");
    // The human, too, gets an answer.
    place.send("human", "ada", "Take T4 next.");
    daemon.says("acknowledged #6 of human with #7 (2 of 13)");
    assert_eq!(answered(&place, "bob"), [3]);
    assert_eq!(answered(&place, "human"), [6]);
}

#[test]
fn instead_of_the_14th_reply_a_person_is_asked() {
    let place = place_of(&["ada", "bob"]);
    let sent: Vec<i64> = (1..=15)
        .map(|n| i64::try_from(place.send("bob", "ada", &format!("step {n} is done"))).unwrap())
        .collect();
    let mut daemon = Daemon::start(&place, "ada", &[]);
    for n in 1..=13 {
        let line = daemon.line();
        assert!(line.ends_with(&format!(" ({n} of 13)")), "{line}");
    }
    daemon.says(
        "#16 of bob is for a person: 13 automatic replies were sent; bob is told so with #31",
    );
    daemon.says("#16 bob to ada, just now");
    daemon.says("| step 14 is done");
    daemon.says("ended: #16 is yours now");
    assert_eq!(daemon.exit_code(), Some(4));
    let replies = automatic(&place, "bob");
    assert_eq!(answered(&place, "bob"), sent[..14]);
    let (_, last) = replies.last().unwrap();
    let begins = "[AUTO] There were 13 automatic replies, and no more come: the person who runs \
                  `team-table poll ada` is asked to look at it.";
    assert!(last.starts_with(begins), "{last}");
    // Started again, it counts anew and goes on behind the one that was the person's.
    let mut daemon = Daemon::start(&place, "ada", &["--max-messages", "1"]);
    daemon.says("acknowledged #17 of bob with #32 (1 of 1)");
    place.send("bob", "ada", "one more");
    let line = daemon.line();
    assert!(line.contains("#33 of bob is for a person: the one automatic reply"), "{line}");
    assert_eq!(daemon.exit_code(), Some(4));
    place.assert_sound();
}

#[test]
fn a_question_fetches_a_person() {
    let place = place_of(&["ada", "bob"]);
    // By `env`, and no variable that begins so was there before.
    let command = "env | grep ^TEAM_TABLE_ | sort > told";
    let mut daemon = Daemon::start(&place, "ada", &["--on-escalate", command]);
    let body = "Tests are green.\nShall I merge \u{1b}[31mnow?";
    place.send("bob", "ada", body);
    place.send("bob", "ada", "behind it");
    let line = daemon.line();
    assert!(line.starts_with("#3 of bob is for a person: it holds a question; bob is"), "{line}");
    daemon.says("#3 bob to ada, just now");
    daemon.says("| Tests are green.");
    daemon.says("| Shall I merge \\u{1b}[31mnow?");
    daemon.says(&format!("`{command}` is done"));
    daemon.says("ended: #3 is yours now");
    assert_eq!(daemon.exit_code(), Some(4));
    let told = fs::read_to_string(place.path().join("told")).unwrap();
    let expected = "TEAM_TABLE_BODY=Tests are green.\nTEAM_TABLE_MEMBER=ada\n\
                    TEAM_TABLE_MESSAGE_ID=3\nTEAM_TABLE_REASON=question\nTEAM_TABLE_SENDER=bob\n";
    assert_eq!(told, expected);
    let (id, text) = the_automatic(&place, "bob");
    assert_eq!(id, 3);
    assert!(text.starts_with("[AUTO] This holds a question, which no program answers: "), "{text}");
    // The agent finds all of it.
    let inbox = place.ok(&["inbox", "--as", "ada"]);
    assert_eq!(messages_in(&inbox).len(), 2, "{inbox}");
}

#[test]
fn a_decision_in_a_broadcast_fetches_a_person() {
    let place = place_of(&["ada", "bob"]);
    // A command that fails is said so, and ends nothing.
    let command = "test \"$TEAM_TABLE_REASON $TEAM_TABLE_BODY\" = 'decision Please decide: A or B.' \
                   && exit 7";
    let mut daemon = Daemon::start(&place, "ada", &["--on-escalate", command]);
    place.ok(&["broadcast", "Please decide: A or B.", "--as", "bob"]);
    let line = daemon.line();
    assert!(
        line.contains("is for a person: it asks for a decision; bob is told so with #"),
        "{line}"
    );
    daemon.says("#3 bob to everyone, just now");
    daemon.says("| Please decide: A or B.");
    daemon.says(&format!("`{command}` failed: exit status: 7"));
    daemon.says("ended: #3 is yours now");
    assert_eq!(daemon.exit_code(), Some(4));
    assert_eq!(answered(&place, "bob"), [3]);
    // Once.
    let mut daemon = Daemon::start(&place, "ada", &[]);
    daemon.is_quiet();
}

/// A body may hold what no variable can.
#[test]
fn any_body_reaches_the_command() {
    let place = place_of(&["ada"]);
    let mut bob = place.seated("bob");
    let arguments = json!({"recipient": "ada", "content": "a\u{0}b $(touch pwned) `x` \"?"});
    ok(bob.call("send_message", arguments));
    let mut daemon =
        Daemon::start(&place, "ada", &["--on-escalate", "echo $TEAM_TABLE_BODY >told"]);
    assert_eq!(daemon.exit_code(), Some(4));
    let told = fs::read_to_string(place.path().join("told")).unwrap();
    assert_eq!(told, "a\u{fffd}b $(touch pwned) `x` \"?\n");
    assert!(!place.path().join("pwned").exists());
}

#[test]
fn two_daemons_do_not_answer_each_other() {
    let place = place_of(&["ada", "bob"]);
    let mut of_ada = Daemon::start(&place, "ada", &[]);
    let mut of_bob = Daemon::start(&place, "bob", &[]);
    place.send("bob", "ada", "The parser is done.");
    of_ada.says("acknowledged #3 of bob with #4 (1 of 13)");
    of_bob.says("passed over #4 of ada: a program wrote it");
    of_ada.is_quiet();
    of_bob.is_quiet();
    // What daemons say when they escalate is no question to the other one.
    place.send("ada", "bob", "Shall I merge?");
    assert_eq!(of_bob.exit_code(), Some(4));
    let line = of_ada.line();
    assert!(line.starts_with("passed over #6 of bob: a program wrote it"), "{line}");
    of_ada.is_quiet();
    assert_eq!(place.number("SELECT count(*) FROM message"), 6);
}

#[test]
fn a_member_has_one_daemon() {
    let place = place_of(&["ada", "bob"]);
    let mut first = Daemon::start(&place, "ada", &[]);
    for name in ["ada", "ADA"] {
        let second = place.run(&["poll", name]);
        assert_eq!((second.code, second.stdout.as_str()), (Some(1), ""));
        let text = "error: a poll daemon for `ada` runs already\nhint: ";
        assert!(second.stderr.starts_with(text), "{}", second.stderr);
    }
    // Another member's is another one; a dead one is none.
    Daemon::start(&place, "bob", &[]);
    first.0.kill9();
    Daemon::start(&place, "ada", &[]);
}

#[test]
fn who_cannot_be_watched() {
    let place = Place::new();
    let nobody = place.run(&["poll", "ada"]);
    assert_eq!(nobody.code, Some(1));
    assert!(nobody.stderr.contains("no member named `ada`: no table here yet"), "{nobody:?}");
    assert!(!place.comms().exists(), "a look makes nothing");
    place.send("ada", "human", "here I am");
    for (name, text) in [
        ("adda", "error: no member named `adda`\nhint: did you mean `ada`? known sessions: "),
        ("team-table", "error: no member named `team-table`\n"),
        ("@all", "error: no member named `@all`\n"),
        ("a\u{1b}[2Jb", "error: no member named `a\\u{1b}[2Jb`\n"),
        ("", "error: no member named ``\n"),
    ] {
        let refused = place.run(&["poll", name]);
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""), "{name}");
        assert!(refused.stderr.starts_with(text), "{name}: {}", refused.stderr);
    }
    place.ok(&["leave", "--as", "ada"]);
    let left = place.run(&["poll", "ada"]);
    assert!(left.stderr.starts_with("error: `ada` left just now\n"), "{left:?}");
}

#[test]
fn values_that_cannot_be_meant() {
    let place = place_of(&["ada"]);
    for args in [
        &["--interval", "0"][..],
        &["--interval", "-5"],
        &["--interval=-5"],
        &["--interval", "1.5"],
        &["--interval", "86401"],
        &["--interval", "99999999999999999999"],
        &["--interval", ""],
        &["--max-messages", "0"],
        &["--max-messages=-1"],
        &["--max-messages", "99999999999"],
        &["--max-messages", "many"],
        &["--on-escalate", ""],
        &["bob"],
    ] {
        let done = place.run(&[&["poll", "ada"], args].concat());
        assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""), "{args:?}: {done:?}");
    }
    assert_eq!(place.run(&["poll"]).code, Some(2));
}

#[test]
fn it_ends_cleanly_when_asked() {
    let place = place_of(&["ada", "bob"]);
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let mut daemon = Daemon::start(&place, "ada", &["--interval", "3600"]);
        place.send("bob", "ada", "The parser is done.");
        let line = daemon.line();
        assert!(line.starts_with("acknowledged "), "{line}");
        daemon.0.signal(signal);
        daemon.says("ended, as you asked");
        assert_eq!(daemon.exit_code(), Some(0), "{signal:?}");
    }
    // Also while the person's command runs: that one is left to itself.
    let mut daemon = Daemon::start(&place, "ada", &["--on-escalate", "touch runs; sleep 2"]);
    place.send("bob", "ada", "Shall I merge?");
    eventually("the command runs", || place.path().join("runs").exists());
    daemon.0.signal(Signal::TERM);
    daemon.comes_to("ended: ");
    assert_eq!(daemon.exit_code(), Some(4));
    place.assert_sound();
}

#[test]
fn it_ends_when_nobody_reads() {
    let place = place_of(&["ada", "bob"]);
    let mut command = place.command(&["poll", "ada", "--interval", "1"]);
    let mut child = command.spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    std::io::Read::read_exact(&mut stdout, &mut [0; 30]).unwrap();
    drop(stdout);
    let mut status = None;
    eventually("the end", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    assert_eq!(status.unwrap().code(), Some(0));
}

/// Where the daemon stops and is killed: at its first message and at its second. The numbers are
/// how often it has passed there by then, also with looks.
const PLACES: [&str; 10] = [
    "after_lock:stop:2",
    "after_lock:stop:3",
    "after_lock:stop:4",
    "after_lock:stop:5",
    "after_insert:stop:1",
    "after_insert:stop:2",
    "before_commit:stop:2",
    "before_commit:stop:3",
    "after_commit:stop:1",
    "after_commit:stop:2",
];

#[test]
fn a_daemon_that_dies_loses_and_doubles_nothing() {
    for at in PLACES {
        for body in ["The parser is done.", "Shall I merge?"] {
            let place = place_of(&["ada", "bob"]);
            place.send("bob", "ada", "The lexer is done.");
            place.send("bob", "ada", body);
            let env = [("TEAM_TABLE_FAULT", at)];
            let mut daemon = Daemon::with(&place, "ada", &[], &env);
            let (point, _) = at.split_once(':').unwrap();
            eventually(at, || daemon.0.stderr().contains(&format!("fault: {point}")));
            daemon.0.kill9();
            place.send("bob", "ada", "All is done.");
            loop {
                let mut daemon = Daemon::start(&place, "ada", &[]);
                let done = "SELECT coalesce(polled_to, 0) FROM member WHERE name = 'ada'";
                let last = "SELECT max(id) FROM message WHERE kind = 'message'";
                eventually("all dealt with, or a person is asked", || {
                    place.number(done) >= place.number(last) || daemon.0.exited().is_some()
                });
                if place.number(done) >= place.number(last) {
                    break;
                }
            }
            let last = place.number("SELECT max(id) FROM message WHERE kind = 'message'");
            assert_eq!(answered(&place, "bob"), [3, 4, last], "{at}, {body}");
            place.assert_sound();
        }
    }
}

/// The escalated message is dealt with before the command is run; it is not run twice.
#[test]
fn a_daemon_that_dies_before_the_command_asks_nobody_twice() {
    let place = place_of(&["ada", "bob"]);
    place.send("bob", "ada", "Shall I merge?");
    let env = [("TEAM_TABLE_FAULT", "before_command:stop")];
    let mut daemon = Daemon::with(&place, "ada", &["--on-escalate", "touch ran"], &env);
    eventually("stopped", || daemon.0.stderr().contains("fault: before_command"));
    daemon.0.kill9();
    let mut daemon = Daemon::start(&place, "ada", &["--on-escalate", "touch ran"]);
    daemon.is_quiet();
    assert!(!place.path().join("ran").exists());
    assert_eq!(answered(&place, "bob"), [3]);
}

#[test]
fn a_kill_at_any_moment_neither_loses_nor_doubles() {
    let place = place_of(&["ada", "bob"]);
    let mut dice = Dice::new(23);
    let mut bob = place.seated("bob");
    let mut sent = Vec::new();
    for round in 0..rounds(12) {
        let mut daemon = Daemon::with(&place, "ada", &["--max-messages", "1000"], &[]);
        for n in 0..6 {
            let content = format!("round {round}, step {n} is done");
            let arguments = json!({"recipient": "ada", "content": content});
            sent.push(i64::try_from(id_in(&ok(bob.call("send_message", arguments)))).unwrap());
            std::thread::sleep(Duration::from_micros(dice.below(6_000)));
        }
        daemon.0.kill9();
    }
    let _daemon = Daemon::start(&place, "ada", &["--max-messages", "1000"]);
    eventually("all answered", || answered(&place, "bob").len() >= sent.len());
    assert_eq!(answered(&place, "bob"), sent);
    place.assert_sound();
}

/// It goes on at the table that is there then.
#[test]
fn it_survives_a_reset_and_a_new_table() {
    for deletes in [false, true] {
        let place = place_of(&["ada", "bob"]);
        let mut daemon = Daemon::start(&place, "ada", &[]);
        place.send("bob", "ada", "before");
        daemon.says("acknowledged #3 of bob with #4 (1 of 13)");
        if deletes {
            eventually("deleted", || {
                fs::remove_dir_all(place.comms()).is_ok() || !place.comms().exists()
            });
        } else {
            place.ok(&["reset", "--yes", "--force"]);
            daemon.says("the table was reset or is a new one");
            daemon.says("there is no member ada now: waiting for it to come");
        }
        place.send("ada", "human", "here I am again");
        let id = place.send("bob", "ada", "after");
        let answer = daemon.comes_to("acknowledged ");
        assert!(answer.starts_with(&format!("acknowledged #{id} of bob with ")), "{answer}");
        assert!(answer.ends_with(" (2 of 13)"), "{answer}");
        // It holds its place at the new table, too.
        assert!(place.run(&["poll", "ada"]).stderr.contains("runs already"));
        daemon.0.signal(Signal::TERM);
        daemon.says("ended, as you asked");
        place.assert_sound();
    }
}

/// Who sits there through a reset keeps its place, and its daemon goes on.
#[test]
fn a_reset_under_a_member_that_sits_there() {
    let place = place_of(&["bob"]);
    let mut ada = place.seated("ada");
    let mut daemon = Daemon::start(&place, "ada", &[]);
    place.send("bob", "ada", "before");
    daemon.says("acknowledged #2 of bob with #3 (1 of 13)");
    place.ok(&["reset", "--yes", "--force"]);
    daemon.says("the table was reset or is a new one");
    place.send("bob", "ada", "after");
    daemon.says("acknowledged #4 of bob with #5 (2 of 13)");
    let text = ok(ada.call("get_messages", json!({})));
    assert_eq!(messages_in(&text), [(4, false)], "{text}");
    place.assert_sound();
}

/// The person may have one, too, to be fetched.
#[test]
fn mail_for_the_human() {
    let place = place_of(&["ada"]);
    let mut daemon = Daemon::start(&place, "human", &["--on-escalate", "true"]);
    daemon.says("acknowledged #1 of ada with #2 (1 of 13)");
    place.send("ada", "human", "Which port should the server use?");
    let line = daemon.line();
    assert!(
        line.starts_with("#3 of ada is for a person: it holds a question; ada is told"),
        "{line}"
    );
    assert_eq!(daemon.exit_code(), Some(4));
    let status = place.ok(&["status"]);
    assert!(status.starts_with("2 unread messages (ada) for you"), "{status}");
}

/// A busy table is waited for.
#[test]
fn it_waits_for_a_table_that_is_held() {
    let place = place_of(&["ada", "bob"]);
    let mut daemon = Daemon::start(&place, "ada", &[]);
    place.send("bob", "ada", "first");
    daemon.says("acknowledged #3 of bob with #4 (1 of 13)");
    let conn = place.open();
    let tx = "BEGIN IMMEDIATE; UPDATE member SET window_n = window_n";
    conn.execute_batch(tx).unwrap();
    // By hand, since nobody else can write now.
    conn.execute_batch(
        "INSERT INTO message (id, sender_id, kind, audience, recipient_id, thread_id, body, sent_at)
         SELECT 5, bob.id, 'message', 'ada', ada.id, 5, 'second', 1800000000000
         FROM member AS ada, member AS bob WHERE ada.name = 'ada' AND bob.name = 'bob';
         INSERT INTO delivery (message_id, member_id, sender_id)
         SELECT 5, ada.id, bob.id FROM member AS ada, member AS bob
         WHERE ada.name = 'ada' AND bob.name = 'bob'; COMMIT; BEGIN IMMEDIATE",
    )
    .unwrap();
    daemon.says("cannot look now: another program holds the table");
    conn.execute_batch("COMMIT").unwrap();
    daemon.says("acknowledged #5 of bob with #6 (2 of 13)");
}

/// An agent takes another name: its daemon goes along, and answers nothing again.
#[test]
fn it_follows_a_member_to_its_new_name() {
    let place = place_of(&["bob"]);
    let mut ada = place.seated("ada");
    let mut daemon = Daemon::start(&place, "ada", &[]);
    let sent = place.send("bob", "ada", "first");
    let line = daemon.line();
    assert!(line.starts_with(&format!("acknowledged #{sent} of bob")), "{line}");
    ok(ada.call("register", json!({"name": "lovelace"})));
    daemon.says("ada is now lovelace, and watched as that");
    daemon.is_quiet();
    let next = place.send("bob", "lovelace", "second");
    let line = daemon.line();
    assert!(line.starts_with(&format!("acknowledged #{next} of bob")), "{line}");
    assert!(place.run(&["poll", "lovelace"]).stderr.contains("runs already"));
    let answers: Vec<Value> = answered(&place, "bob").into_iter().map(Value::from).collect();
    assert_eq!(answers, [json!(sent), json!(next)]);
}

/// A sender that is gone for good reads no reply; one with a new name gets it there.
#[test]
fn senders_who_left_or_moved() {
    let place = place_of(&["ada"]);
    let mut bob = place.seated("bob");
    place.send("carol", "ada", "I am done here.");
    place.ok(&["leave", "--as", "carol"]);
    ok(bob.call("send_message", json!({"recipient": "ada", "content": "I am bob."})));
    ok(bob.call("register", json!({"name": "robert"})));
    let mut daemon = Daemon::start(&place, "ada", &[]);
    daemon.says("passed over #2 of carol: its sender has left");
    daemon.says("acknowledged #3 of bob with #4 (1 of 13)");
    let text = ok(bob.call("get_messages", json!({})));
    assert!(text.contains("| [AUTO] ada (active) has not read this yet"), "{text}");
}

/// The person's command is run also where nobody reads what the daemon prints.
#[test]
fn a_person_is_fetched_though_nobody_reads() {
    let place = place_of(&["ada", "bob"]);
    let args =
        ["poll", "ada", "--interval", "3600", "--on-escalate", "echo lost; echo >&2; touch ran"];
    let mut command = place.command(&args);
    let mut child = command.stderr(std::process::Stdio::null()).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    std::io::Read::read_exact(&mut stdout, &mut [0; 30]).unwrap();
    // It waits for mail by now, or looks once more; either way it has seen that somebody reads.
    eventually("it watches", || {
        place.number("SELECT count(*) FROM member WHERE name = 'ada' AND polled_to IS NOT NULL") > 0
    });
    std::thread::sleep(Duration::from_millis(300));
    drop(stdout);
    place.send("bob", "ada", "Shall I merge?");
    // It has seen that nobody reads, and has left the message for the next one; or it was quicker.
    let mut status = None;
    eventually("the end", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    assert_eq!(status.unwrap().code(), Some(0));
    assert_eq!(place.path().join("ran").exists(), answered(&place, "bob") == [3]);
}
