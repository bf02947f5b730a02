//! What is wrong with the table, its folder or the disk is said by name and once, nothing is half
//! written, what is not ours is left as it is, and the server works again afterwards.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    os::unix::fs::{PermissionsExt as _, chown},
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use rusqlite::TransactionBehavior;
use serde_json::json;

use crate::support::{
    agent::Agent,
    faults::{Dice, Place, eventually, failed, finish, messages_in, ok, open, skipped, write},
};

/// Every file below a folder, with its bytes.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    found
}

/// The table, and what `SQLite` may have put beside it.
fn table_files(place: &Place) -> BTreeMap<PathBuf, Vec<u8>> {
    let beside = |path: &PathBuf| path.parent() == Some(&place.comms());
    files(&place.comms()).into_iter().filter(|(path, _)| beside(path)).collect()
}

/// A command, a session's first call and its next one are refused by name; nothing is changed.
#[track_caller]
fn is_refused_untouched(place: &Place, what: &str) {
    let before = table_files(place);
    let path = place.table().display().to_string();
    for command in [&["send", "--as", "ada", "human", "hello"][..], &["status"], &["log"]] {
        let done = place.run(command);
        assert_eq!(done.code, Some(1), "{command:?}: {done:?}");
        assert!(done.stderr.contains(what) && done.stderr.contains(&path), "{command:?}: {done:?}");
    }
    let mut agent = place.started(&[], &[]);
    for tool in ["register", "get_messages", "wait_for_messages"] {
        let text = failed(agent.call(tool, json!({})));
        assert!(text.contains(what) && text.contains(&path), "{tool}: {text}");
    }
    agent.close_stdin();
    agent.wait_exit(super::PATIENCE);
    let after = table_files(place);
    assert!(before.keys().eq(after.keys()), "{:?}", after.keys());
    assert!(before == after, "{what}: the file was changed");
}

/// A table with some pages of messages, closed.
fn filled() -> Place {
    let place = Place::new();
    let mut ada = place.seated("ada");
    for _ in 0..30 {
        let arguments = json!({"recipient": "human", "content": "word ".repeat(400)});
        ok(ada.call("send_message", arguments));
    }
    ada.close_stdin();
    ada.wait_exit(super::PATIENCE);
    place
}

#[test]
fn a_table_of_a_newer_version_is_refused() {
    let place = filled();
    place.open().pragma_update(None, "user_version", 5_000).unwrap();
    is_refused_untouched(&place, "version 5000");
}

#[test]
fn a_table_that_became_newer_under_a_session_is_refused() {
    let place = Place::new();
    let mut ada = place.seated("ada");
    place.open().pragma_update(None, "user_version", 5_000).unwrap();
    let send = json!({"recipient": "human", "content": "hello"});
    let text = failed(ada.call("send_message", send.clone()));
    assert!(text.contains("version 5000"), "{text}");
    assert_eq!(place.number("SELECT count(*) FROM message"), 0);
    // Additions are not in the way.
    place.open().pragma_update(None, "user_version", 4_999).unwrap();
    ok(ada.call("send_message", send));
}

#[test]
fn a_database_of_another_program_is_refused() {
    for mode in ["delete", "wal"] {
        let place = Place::new();
        fs::create_dir(place.comms()).unwrap();
        write(&place.table(), b"");
        let conn = open(&place.table());
        conn.pragma_update(None, "journal_mode", mode).unwrap();
        conn.execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (1);").unwrap();
        drop(conn);
        is_refused_untouched(&place, "another program");
    }
}

#[test]
fn a_file_that_is_no_database_is_refused() {
    for text in ["These are my notes.\n".repeat(300), "short".to_owned()] {
        let place = Place::new();
        fs::create_dir(place.comms()).unwrap();
        write(&place.table(), text.as_bytes());
        is_refused_untouched(&place, "damaged, or not a database");
    }
}

#[test]
fn a_damaged_table_is_refused() {
    let mut dice = Dice::new(5);
    // The header, without and with its first words; and all that comes behind the first page.
    for damaged in [0..100, 16..100, 4_096..usize::MAX] {
        let place = filled();
        let mut bytes = fs::read(place.table()).unwrap();
        for (at, byte) in bytes.iter_mut().enumerate() {
            if damaged.contains(&at) {
                *byte = u8::try_from(dice.below(256)).unwrap();
            }
        }
        write(&place.table(), &bytes);
        is_refused_untouched(&place, "it is");
    }
}

/// Runs the program as somebody who may not write where a mode says so; root may anywhere.
fn without_rights(place: &Place) -> Option<Vec<String>> {
    let program = super::PROGRAM.to_owned();
    if !rustix::process::geteuid().is_root() {
        return Some(vec![program]);
    }
    let ids = ["--reuid", "65534", "--regid", "65534", "--clear-groups"].map(str::to_owned);
    let words = [vec!["setpriv".to_owned()], ids.to_vec(), vec![program]].concat();
    let mut probe = Command::new("setpriv");
    probe.args(words.iter().skip(1)).arg("--version").current_dir("/");
    if !probe.output().is_ok_and(|output| output.status.success()) {
        skipped("setpriv is missing, or the program lies where another user cannot start it");
        return None;
    }
    give_away(place.path());
    Some(words)
}

/// All of it belongs to that user.
fn give_away(path: &Path) {
    if rustix::process::geteuid().is_root() {
        chown(path, Some(65_534), Some(65_534)).unwrap();
        if path.is_dir() {
            for entry in fs::read_dir(path).unwrap() {
                give_away(&entry.unwrap().path());
            }
        }
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_folder_that_may_not_be_written_to_is_named() {
    for table_is_there in [false, true] {
        let place = Place::new();
        if table_is_there {
            place.send("bob", "human", "here I am");
        }
        let Some(words) = without_rights(&place) else { return };
        let (program, args) = words.split_first().unwrap();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let (folder, files) = (place.comms(), ["comms.db", "seats", "seats/write.lock"]);
        let locked: Vec<(PathBuf, u32)> = if table_is_there {
            let files = files.iter().map(|name| folder.join(name));
            files.chain([folder.clone()]).map(|path| (path.clone(), mode_of(&path))).collect()
        } else {
            vec![(place.path().to_owned(), mode_of(place.path()))]
        };
        for (path, mode) in &locked {
            set_mode(path, mode & 0o555);
        }
        let write = ["broadcast", "--as", "ada", "hello"];
        let done = finish(place.command_of(program, &[&args, &write[..]].concat()));
        let mut agent =
            Agent::spawn(Path::new(program), &[&args, &["serve"][..]].concat(), place.path(), &[]);
        agent.initialize("tester");
        let text = failed(agent.call("register", json!({})));
        for (path, mode) in locked.iter().rev() {
            set_mode(path, *mode);
        }
        assert_eq!(done.code, Some(1), "{done:?}");
        for said in [&done.stderr, &text] {
            assert!(said.contains(".agent-comms"), "{said}");
            assert!(said.contains("permission denied") || said.contains("read-only"), "{said}");
        }
        // It works as soon as it may.
        let text = ok(agent.call("register", json!({})));
        assert!(text.contains("you are `tester-1`"), "{text}");
        place.assert_sound();
    }
}

fn mode_of(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// A small disk, gone with this value.
struct Disk(PathBuf);

impl Disk {
    fn mount(at: PathBuf) -> Option<Disk> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=512k,mode=700", "tmpfs"]).arg(&at);
        if mount.output().is_ok_and(|output| output.status.success()) {
            return Some(Disk(at));
        }
        skipped("a small disk cannot be mounted here");
        None
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazily, since a server may still have a file open there.
        Command::new("umount").arg("-l").arg(&self.0).output().ok();
    }
}

#[test]
fn a_full_disk_is_named_and_nothing_is_half_written() {
    let place = Place::new();
    fs::create_dir(place.comms()).unwrap();
    let Some(disk) = Disk::mount(place.comms()) else { return };
    let mut ada = place.seated("ada");
    let send = json!({"recipient": "human", "content": "word ".repeat(2_000)});
    let filler = place.comms().join("filler");
    ok(ada.call("send_message", send.clone()));
    fill(&filler);
    let mut n_sent = 1;
    // What the log has room for still goes through.
    let text = loop {
        let reply = ada.call("send_message", send.clone());
        if reply.is_error {
            break reply.text;
        }
        n_sent += 1;
        assert!(n_sent < 100, "the disk is never full");
    };
    assert!(text.contains("the disk is full") && text.contains("comms.db"), "{text}");
    let done = place.run(&["send", "--as", "bob", "human", &"word ".repeat(2_000)]);
    assert_eq!(done.code, Some(1), "{done:?}");
    fs::remove_file(&filler).unwrap();
    assert_eq!(place.number("SELECT count(*) FROM message"), n_sent);
    ok(ada.call("send_message", send));
    assert_eq!(place.number("SELECT count(*) FROM message"), n_sent + 1);
    place.assert_sound();
    drop((ada, disk));
}

/// A newcomer on a disk that is full already.
#[test]
fn a_table_cannot_be_made_on_a_full_disk_and_can_be_later() {
    let place = Place::new();
    fs::create_dir(place.comms()).unwrap();
    let Some(disk) = Disk::mount(place.comms()) else { return };
    let filler = place.comms().join("filler");
    fill(&filler);
    let mut ada = place.started(&["--name", "ada"], &[]);
    let text = failed(ada.call("register", json!({})));
    assert!(text.contains("disk is full") || text.contains("no space left"), "{text}");
    fs::remove_file(&filler).unwrap();
    assert!(ok(ada.call("register", json!({}))).contains("you are `ada`"));
    place.assert_sound();
    drop((ada, disk));
}

/// Writes until there is no room.
fn fill(path: &Path) {
    let mut file = File::create(path).unwrap();
    while std::io::Write::write(&mut file, &[0; 4_096]).is_ok_and(|n_bytes| n_bytes > 0) {}
}

/// By another writer of ours, and by a program that knows nothing of our queue.
#[test]
fn a_lock_that_is_held_for_long_is_named_and_the_server_works_afterwards() {
    let holders = [true, false].map(|by_ours| thread::spawn(move || held_for_long(by_ours)));
    for holder in holders {
        holder.join().unwrap();
    }
}

fn held_for_long(by_ours: bool) {
    let place = Place::new();
    let (mut ada, mut bob) = (place.seated("ada"), place.seated("bob"));
    let lock = File::open(place.comms().join("seats/write.lock")).unwrap();
    let mut conn = place.open();
    let transaction = if by_ours {
        fs2::FileExt::lock_exclusive(&lock).unwrap();
        None
    } else {
        Some(conn.transaction_with_behavior(TransactionBehavior::Immediate).unwrap())
    };
    let start = Instant::now();
    let send = json!({"recipient": "human", "content": "never"});
    let call = ada.post_call("send_message", send.clone());
    // A wait is no writer, and neither is who only looks.
    assert!(ok(bob.call("list_members", json!({}))).contains("bob (you)"));
    assert!(start.elapsed() < Duration::from_secs(3));
    let done = place.run(&["send", "--as", "carol", "human", "never"]);
    let text = failed(ada.wait(call, super::PATIENCE));
    let took = start.elapsed();
    assert!(took >= Duration::from_secs(4) && took < Duration::from_secs(9), "{took:?}");
    assert_eq!(done.code, Some(3), "{done:?}");
    for said in [&done.stderr, &text] {
        assert!(said.contains("another pro") && said.contains("try again"), "{said}");
    }
    drop(transaction);
    drop(lock);
    eventually("free again", || !ada.call("send_message", send.clone()).is_error);
    assert_eq!(place.number("SELECT count(*) FROM message"), 1);
    assert_eq!(place.number("SELECT count(*) FROM member WHERE name = 'carol'"), 0);
    let text = place.ok(&["inbox", "--as", "human"]);
    assert_eq!(messages_in(&text).len(), 1, "{text}");
    place.assert_sound();
}
