//! Somebody deletes, moves or replaces the table while sessions sit at it: the next call works and
//! says so, nobody sits on a seat that somebody else has, and mail in the new table wakes who waits.

use std::{fs, sync::Arc, thread, time::Duration};

use serde_json::json;

use crate::support::{
    agent::Agent,
    faults::{Place, eventually, messages_in, name_in, ok},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    TableDeleted,
    FolderDeleted,
    FolderMoved,
    ProjectMoved,
    Renamed,
    Reset,
}

const ALL: [How; 6] = [
    How::TableDeleted,
    How::FolderDeleted,
    How::FolderMoved,
    How::ProjectMoved,
    How::Renamed,
    How::Reset,
];

impl How {
    /// Gives what was moved away, to be kept as long as the test runs.
    fn happen(self, place: &Place) -> tempfile::TempDir {
        let aside = tempfile::tempdir().unwrap();
        match self {
            How::TableDeleted => fs::remove_file(place.table()).unwrap(),
            // Somebody may make a file in it at the same moment, as for `rm -rf`.
            How::FolderDeleted => eventually("deleted", || {
                fs::remove_dir_all(place.comms()).is_ok() || !place.comms().exists()
            }),
            How::FolderMoved => {
                fs::rename(place.comms(), aside.path().join("moved")).unwrap();
            }
            How::ProjectMoved => {
                fs::rename(place.path(), aside.path().join("moved")).unwrap();
                fs::create_dir_all(place.comms()).unwrap();
                fs::create_dir(place.path().join(".git")).unwrap();
            }
            How::Renamed => {
                let other = Place::new();
                for name in ["ada", "carol"] {
                    other.send(name, "human", "here I am");
                    other.send("dora", name, &format!("to {name} from another table"));
                }
                fs::rename(other.table(), place.table()).unwrap();
            }
            How::Reset => drop(place.ok(&["reset", "--force", "--yes"])),
        }
        aside
    }

    fn notice(self) -> &'static str {
        match self {
            How::Reset => "the table was reset",
            _ => "the table is a new one",
        }
    }

    /// The locks of seats are gone with the folder.
    fn frees_seats(self) -> bool {
        matches!(self, How::FolderDeleted | How::FolderMoved | How::ProjectMoved)
    }

    /// Messages that wait for ada and carol in the new table.
    fn n_waiting(self) -> usize {
        usize::from(self == How::Renamed)
    }
}

/// Sessions that have written, so that the log holds what the database does not yet.
fn two_sessions(place: &Place) -> (Agent, Agent) {
    let (mut ada, mut bob) = (place.seated("ada"), place.seated("bob"));
    let to_bob = json!({"recipient": "bob", "content": "old"});
    ok(ada.call("send_message", to_bob));
    ok(bob.call("send_message", json!({"recipient": "ada", "content": "old"})));
    (ada, bob)
}

/// What a session has seen of its files for 50 ms, it does not look for again at each call.
fn go_on_for_a_while(agents: [&mut Agent; 2]) {
    let [ada, bob] = agents;
    for _ in 0..3 {
        thread::sleep(Duration::from_millis(60));
        ok(ada.call("send_message", json!({"recipient": "bob", "content": "old"})));
        ok(bob.call("send_message", json!({"recipient": "ada", "content": "old"})));
    }
}

fn newcomer_works(place: &Place, how: How) -> Agent {
    let mut carol = place.started(&["--name", "carol"], &[]);
    let text = ok(carol.call("get_messages", json!({})));
    assert_eq!(messages_in(&text).len(), how.n_waiting(), "{how:?}: {text}");
    assert!(!text.contains("| old"), "{how:?}: {text}");
    carol
}

#[test]
fn without_sessions_a_newcomer_finds_the_new_table() {
    for how in ALL {
        for killed in [false, true] {
            let place = Place::new();
            let (mut ada, mut bob) = two_sessions(&place);
            for agent in [&mut ada, &mut bob] {
                if killed {
                    agent.kill9();
                } else {
                    agent.close_stdin();
                    agent.wait_exit(super::PATIENCE);
                }
            }
            let _aside = how.happen(&place);
            let mut carol = newcomer_works(&place, how);
            ok(carol.call("send_message", json!({"recipient": "human", "content": "hello"})));
            let mut ada = place.seated("ada");
            let text = ok(ada.call("get_messages", json!({})));
            assert_eq!(messages_in(&text).len(), how.n_waiting(), "{how:?}, {killed}: {text}");
            place.assert_sound();
        }
    }
}

#[test]
fn sessions_go_on_at_the_new_table_and_are_told() {
    for (how, is_young) in ALL.into_iter().flat_map(|how| [(how, true), (how, false)]) {
        let place = Place::new();
        let (mut ada, mut bob) = two_sessions(&place);
        if !is_young {
            go_on_for_a_while([&mut ada, &mut bob]);
        }
        let _aside = how.happen(&place);
        let text = ok(ada.call("get_messages", json!({})));
        assert!(text.contains(how.notice()), "{how:?}: {text}");
        assert!(text.contains("you are still `ada`"), "{how:?}: {text}");
        assert_eq!(messages_in(&text).len(), how.n_waiting(), "{how:?}: {text}");
        // It sits there again, so nobody else gets the seat.
        let mut other = place.started(&["--name", "ada"], &[]);
        assert_eq!(name_in(&ok(other.call("register", json!({})))), "ada-2", "{how:?}");
        let mut carol = newcomer_works(&place, how);
        let id = carol.post_call("send_message", json!({"recipient": "ada", "content": "new"}));
        ok(carol.wait(id, super::PATIENCE));
        assert!(ok(ada.call("get_messages", json!({}))).contains("| new"), "{how:?}");
        let text = ok(bob.call("send_message", json!({"recipient": "ada", "content": "b"})));
        assert!(text.contains(how.notice()), "{how:?}: {text}");
        assert!(text.contains("to ada: active"), "{how:?}: {text}");
        place.assert_sound();
    }
}

/// A newcomer is faster than the session that sat there.
#[test]
fn no_seat_is_held_twice() {
    for how in ALL {
        let place = Place::new();
        let (mut ada, mut bob) = two_sessions(&place);
        go_on_for_a_while([&mut ada, &mut bob]);
        let _aside = how.happen(&place);
        let mut other = place.started(&["--name", "ada"], &[]);
        let newcomer = name_in(&ok(other.call("register", json!({}))));
        let text = ok(ada.call("list_members", json!({})));
        let old = text.lines().find(|line| line.contains(" (you)")).unwrap();
        let old = old.split(' ').next().unwrap().to_owned();
        assert_ne!(newcomer, old, "{how:?}: {text}");
        // The lock of a deleted folder is worth nothing; all others are.
        let expected = if how.frees_seats() { ("ada", "ada-2") } else { ("ada-2", "ada") };
        assert_eq!((newcomer.as_str(), old.as_str()), expected, "{how:?}: {text}");
        if how.frees_seats() {
            assert!(text.contains("somebody else sits on the seat of `ada` now"), "{text}");
        }
        place.assert_sound();
    }
}

#[test]
fn who_waits_is_woken_by_mail_in_the_new_table() {
    for how in ALL {
        let place = Place::new();
        let (mut ada, _bob) = two_sessions(&place);
        ok(ada.call("get_messages", json!({})));
        let wait = ada.post_call("wait_for_messages", json!({"timeout_seconds": 50}));
        ok(ada.call("heartbeat", json!({})));
        let _aside = how.happen(&place);
        if how != How::Renamed {
            // Nobody writes to it until it sits at the new table.
            eventually("seated anew", || {
                let done = place.run(&["send", "--as", "dora", "ada", "new"]);
                done.code == Some(0)
            });
        }
        let text = ok(ada.wait(wait, Duration::from_secs(10)));
        assert!(text.contains(how.notice()), "{how:?}: {text}");
        let body = if how == How::Renamed { "| to ada from another table" } else { "| new" };
        assert!(text.contains(body), "{how:?}: {text}");
        place.assert_sound();
    }
}

/// As a loop of `rm -rf` in another terminal would. A call may be hit in the middle; the next one
/// must not suffer from it.
#[test]
fn a_folder_that_is_deleted_all_the_time_breaks_nothing() {
    let place = Arc::new(Place::new());
    let mut agents = [place.seated("ada"), place.seated("bob")];
    let deleting = thread::spawn({
        let place = Arc::clone(&place);
        move || {
            let times = 0..40;
            let deleted = times.filter(|_| {
                thread::sleep(Duration::from_millis(50));
                fs::remove_dir_all(place.comms()).is_ok()
            });
            deleted.count()
        }
    });
    let (mut n_calls, mut n_failed) = (0, 0);
    while !deleting.is_finished() {
        let calls = agents.each_mut().map(|agent| {
            agent.post_call("send_message", json!({"recipient": "human", "content": "hello"}))
        });
        for (agent, id) in agents.iter_mut().zip(calls) {
            n_calls += 1;
            n_failed += u32::from(agent.wait(id, super::PATIENCE).is_error);
        }
    }
    assert!(deleting.join().unwrap() > 10);
    assert!(n_failed <= 4, "{n_failed} of {n_calls} failed");
    fs::remove_dir_all(place.comms()).ok();
    let names = agents.each_mut().map(|agent| {
        let text = ok(agent.call("list_members", json!({})));
        text.lines().find(|line| line.contains(" (you)")).unwrap().to_owned()
    });
    assert!(names[0].starts_with("ada (you)") && names[1].starts_with("bob (you)"), "{names:?}");
    place.assert_sound();
}

/// Somebody takes the log for a left-over.
#[test]
fn a_log_that_is_deleted_alone_leaves_no_session_behind() {
    let place = Place::new();
    let (mut ada, mut bob) = two_sessions(&place);
    go_on_for_a_while([&mut ada, &mut bob]);
    for suffix in ["-wal", "-shm"] {
        fs::remove_file(place.comms().join(format!("comms.db{suffix}"))).unwrap();
    }
    let mut carol = place.started(&["--name", "carol"], &[]);
    ok(carol.call("register", json!({})));
    for agent in [&mut ada, &mut bob] {
        let to_carol = json!({"recipient": "carol", "content": "new"});
        ok(agent.call("send_message", to_carol));
    }
    let text = ok(carol.call("get_messages", json!({})));
    assert_eq!(messages_in(&text).len(), 2, "{text}");
    place.assert_sound();
}
