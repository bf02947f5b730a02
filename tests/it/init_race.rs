//! Several `init` at one instant, and files that somebody changes while one is under way.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Child, Stdio},
};

use crate::support::faults::{Done, Place, eventually, rounds, write};

const OTHERS: &str = "{\"x\":{\"y\":1}}\n";

fn json(place: &Place) -> PathBuf {
    place.path().join(".mcp.json")
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

fn receipt(place: &Place) -> PathBuf {
    place.comms().join("backup/init.json")
}

fn has_ours(path: &Path) -> bool {
    fs::read_to_string(path).is_ok_and(|text| text.contains("team-table"))
}

fn done(child: Child) -> Done {
    let output = child.wait_with_output().unwrap();
    Done {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Starts the program with each of these, all at one instant.
fn all_at_once(place: &Place, runs: &[&[&str]]) -> Vec<Done> {
    let mut children: Vec<Child> = runs
        .iter()
        .map(|args| {
            let wait = "read -r _; exec \"$0\" \"$@\"";
            let mut shell =
                place.command_of("sh", &[&["-c", wait, super::PROGRAM], *args].concat());
            shell.stdin(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for child in &mut children {
        child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    }
    children.into_iter().map(done).collect()
}

#[test]
fn inits_at_one_instant_all_succeed_and_can_be_taken_back() {
    for n_runs in [2, 8] {
        for _ in 0..rounds(4) {
            let place = Place::new();
            write(&json(&place), OTHERS.as_bytes());
            let all = all_at_once(&place, &vec![&["init", "--yes"][..]; n_runs]);
            assert!(all.iter().all(|done| done.code == Some(0)), "{all:?}");
            assert!(has_ours(&json(&place)), "{all:?}");
            assert!(has_ours(&place.path().join(".codex/config.toml")), "{all:?}");
            for file in ["`.mcp.json`", "`.codex/config.toml`"] {
                let wrote = format!("wrote {file}");
                let n_wrote = all.iter().filter(|done| done.stderr.contains(&wrote)).count();
                assert_eq!(n_wrote, 1, "{file}: {all:?}");
            }
            place.ok(&["init", "--remove", "--yes"]);
            assert_eq!(text(&json(&place)), OTHERS);
            assert!(!place.path().join(".codex").exists() && !receipt(&place).exists());
        }
    }
}

#[test]
fn inits_for_one_client_each_lose_nothing_of_the_receipt() {
    for _ in 0..rounds(8) {
        let place = Place::new();
        let runs: &[&[&str]] =
            &[&["init", "--yes", "--client", "claude"], &["init", "--yes", "--client", "codex"]];
        let all = all_at_once(&place, runs);
        assert!(all.iter().all(|done| done.code == Some(0)), "{all:?}");
        let noted = text(&receipt(&place));
        assert!(noted.contains(".mcp.json") && noted.contains(".codex/config.toml"), "{noted}");
    }
}

/// Whoever comes second finds what the first one left, and says so truthfully.
#[test]
fn inits_of_different_names_do_not_mix() {
    for _ in 0..rounds(4) {
        let place = Place::new();
        write(&json(&place), OTHERS.as_bytes());
        let runs: &[&[&str]] =
            &[&["init", "--yes", "--name", "ada"], &["init", "--yes", "--name", "bob"]];
        let all = all_at_once(&place, runs);
        // The last one that succeeded is the one whose name stands there.
        let toml = text(&place.path().join(".codex/config.toml"));
        let names: Vec<&str> =
            ["ada", "bob"].into_iter().filter(|name| toml.contains(name)).collect();
        assert_eq!(names.len(), 1, "{toml}");
        assert!(text(&json(&place)).contains(names[0]), "{all:?}");
        for (done, name) in all.iter().zip(["ada", "bob"]) {
            let refused = done.code == Some(1)
                && done.stderr.contains("was changed meanwhile")
                && done.stderr.contains("no file was written");
            assert!(done.code == Some(0) || (refused && name != names[0]), "{all:?}");
        }
    }
}

/// The turn to write, in this process' hand until it is dropped.
fn turn(place: &Place) -> fs::File {
    let turn = fs::File::open(place.comms().join("seats/write.lock")).unwrap();
    fs2::FileExt::lock_exclusive(&turn).unwrap();
    turn
}

/// An `init` that has shown what it will do, and waits for its turn to do it.
fn waiting(place: &Place, args: &[&str]) -> Child {
    let shown = place.path().join("shown");
    let mut command = place.command(args);
    let child = command.stdout(fs::File::create(&shown).unwrap()).spawn().unwrap();
    eventually("the changes are shown", || text(&shown).contains("config.toml"));
    child
}

#[test]
fn an_edit_before_the_turn_to_write_is_kept() {
    let place = Place::new();
    place.send("ada", "human", "hello");
    write(&json(&place), OTHERS.as_bytes());
    let held = turn(&place);
    let child = waiting(&place, &["init", "--yes"]);
    // It has looked at the files; what is not locked out is a person.
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert_eq!(text(&json(&place)), OTHERS, "it is not its turn yet");
    write(&json(&place), b"{\"z\": 1}\n");
    drop(held);
    let done = done(child);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.stderr.contains(".mcp.json` was changed meanwhile"), "{done:?}");
    assert!(done.stderr.contains("no file was written"), "{done:?}");
    assert_eq!(text(&json(&place)), "{\"z\": 1}\n");
    assert!(!place.path().join(".codex").exists() && !receipt(&place).exists());
}

#[test]
fn a_removal_waits_for_its_turn_too() {
    let place = Place::new();
    write(&json(&place), OTHERS.as_bytes());
    place.ok(&["init", "--yes"]);
    let held = turn(&place);
    let child = waiting(&place, &["init", "--remove", "--yes"]);
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert!(has_ours(&json(&place)), "it is not its turn yet");
    drop(held);
    assert_eq!(done(child).code, Some(0));
    assert_eq!(text(&json(&place)), OTHERS);
}

#[test]
fn a_write_that_fails_leaves_a_persons_edit_of_the_others() {
    let place = Place::new();
    write(&json(&place), OTHERS.as_bytes());
    let mut command = place.command(&["init", "--yes"]);
    command.env("TEAM_TABLE_FAULT", "before_file:wait:2").stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    eventually("the first file is written", || has_ours(&json(&place)));
    let edited = text(&json(&place)).replace("\"y\"", "\"z\"");
    write(&json(&place), edited.as_bytes());
    fs::create_dir(place.path().join(".codex")).unwrap();
    write(&place.path().join(".codex/config.toml"), b"a = 2\n");
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let done = done(child);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.stderr.contains("config.toml` was changed meanwhile"), "{done:?}");
    let part = "`.mcp.json` was written before that and is not restored: somebody has changed it \
                since; no other file was changed";
    assert!(done.stderr.contains(part), "{done:?}");
    assert_eq!(text(&json(&place)), edited);
    // Our entry is in there, so the receipt knows it, and only it.
    let noted = text(&receipt(&place));
    assert!(noted.contains(".mcp.json") && !noted.contains("config.toml"), "{noted}");
    place.ok(&["init", "--remove", "--yes"]);
    assert_eq!(text(&json(&place)), OTHERS.replace('y', "z"));
}
