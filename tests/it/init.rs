//! `init` over whole folders: `init/CLIENT/CASE/in` is a checkout before it, `out` after it, and
//! `gone`, where there is one, after `--remove` (else that is `in` again). A file `with` says what
//! is set up beside the server, a file `args` more of the command line. `UPDATE=1` writes `out`.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use clap::{Parser as _, ValueEnum as _};
use team_table::{
    clients::CLIENTS,
    commands::init::{self, Args, Setup, With},
    error::{Kind, Result},
    platform::write_atomic,
};

/// A checkout in a temporary folder, and the program beside it.
pub(crate) struct Desk {
    pub(crate) folder: tempfile::TempDir,
    /// What the person says, if there is one.
    answer: Option<bool>,
    pub(crate) has_comms: bool,
    top: &'static str,
    pub(crate) is_on_path: bool,
    pub(crate) exe: String,
}

/// What a run printed.
pub(crate) struct Printed {
    pub(crate) out: String,
    pub(crate) talk: String,
}

impl Printed {
    /// What was said, without line breaks.
    pub(crate) fn unwrapped(&self) -> String {
        self.talk.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

impl Desk {
    pub(crate) fn new() -> Desk {
        let folder = tempfile::tempdir().unwrap();
        let desk = Desk {
            folder,
            answer: None,
            has_comms: true,
            top: "project",
            is_on_path: true,
            exe: format!("team-table{}", std::env::consts::EXE_SUFFIX),
        };
        write(&desk.exe(), "#!");
        make_executable(&desk.exe());
        fs::create_dir(desk.at("")).unwrap();
        desk
    }

    pub(crate) fn with(file: &str, text: &str) -> Desk {
        let desk = Desk::new();
        write(&desk.at(file), text);
        desk
    }

    pub(crate) fn exe(&self) -> PathBuf {
        self.folder.path().join("bin").join(&self.exe)
    }

    pub(crate) fn at(&self, file: &str) -> PathBuf {
        self.folder.path().join(self.top).join(file)
    }

    pub(crate) fn comms(&self) -> PathBuf {
        self.folder.path().join("project/.agent-comms")
    }

    pub(crate) fn text(&self, file: &str) -> String {
        fs::read_to_string(self.at(file)).unwrap()
    }

    pub(crate) fn tree(&self) -> Tree {
        tree(&self.at(""))
    }

    pub(crate) fn run(&self, args: &Args) -> Result<Printed> {
        let (mut out, mut talk) = (Vec::new(), Vec::new());
        let comms = self.comms();
        let is_turn = std::cell::Cell::new(false);
        let path =
            if self.is_on_path { self.exe().parent().unwrap().into() } else { OsString::new() };
        init::run(
            args,
            &mut Setup {
                top: self.at(""),
                comms: self.has_comms.then(|| comms.clone()),
                cwd: self.at(""),
                path,
                current_exe: self.exe(),
                interactive: self.answer.is_some(),
                out: &mut out,
                talk: &mut talk,
                ask: &mut |_| {
                    assert!(!is_turn.get(), "everybody waits for the answer");
                    Ok(self.answer.unwrap())
                },
                now: 1_700_000_000_000,
                in_turn: &mut |work| {
                    if !args.remove {
                        write(&comms.join(".gitignore"), "*\n");
                    }
                    is_turn.set(true);
                    work()
                },
            },
        )?;
        Ok(Printed { out: String::from_utf8(out).unwrap(), talk: String::from_utf8(talk).unwrap() })
    }

    pub(crate) fn init(&self) -> Printed {
        self.run(&Args::default()).unwrap()
    }

    pub(crate) fn remove(&self) -> Printed {
        self.run(&remove()).unwrap()
    }
}

pub(crate) fn remove() -> Args {
    Args { remove: true, ..Args::default() }
}

/// A command line behind `init`.
pub(crate) fn parsed(line: &str) -> Args {
    #[derive(clap::Parser)]
    struct Cli {
        #[command(flatten)]
        args: Args,
    }
    Cli::try_parse_from(["init"].into_iter().chain(line.split_whitespace())).unwrap().args
}

/// What is set up beside the server, as `--with` takes it.
pub(crate) fn with(what: &str) -> Args {
    let with = what.split(',').filter(|word| !word.is_empty());
    Args {
        with: with.map(|word| With::from_str(word, false).unwrap()).collect(),
        ..Args::default()
    }
}

pub(crate) fn only(client: &str, args: Args) -> Args {
    Args { client: vec![client.to_owned()], ..args }
}

pub(crate) fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    write_atomic(path, text.as_bytes()).unwrap();
}

#[cfg(unix)]
fn make_executable(path: &Path) {
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(path, mode).unwrap();
}

#[cfg(not(unix))]
fn make_executable(_: &Path) {}

/// Files by their path, and empty folders with a `/` behind theirs; the table's folder aside.
pub(crate) type Tree = BTreeMap<String, Vec<u8>>;

pub(crate) fn tree(top: &Path) -> Tree {
    fn walk(folder: &Path, name: &str, tree: &mut Tree) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        let mut is_empty = true;
        for entry in entries.map(|entry| entry.unwrap()) {
            is_empty = false;
            let name = format!("{name}{}", entry.file_name().to_str().unwrap());
            if entry.path().is_dir() {
                walk(&entry.path(), &format!("{name}/"), tree);
            } else {
                tree.insert(name, fs::read(entry.path()).unwrap());
            }
        }
        if is_empty && !name.is_empty() {
            tree.insert(name.to_owned(), Vec::new());
        }
    }
    let mut tree = Tree::new();
    walk(top, "", &mut tree);
    tree.retain(|name, _| !name.starts_with(".agent-comms/"));
    tree
}

#[track_caller]
pub(crate) fn assert_same(found: &Tree, expected: &Tree, what: &str) {
    let shown = |tree: &Tree| -> BTreeMap<String, String> {
        tree.iter()
            .map(|(name, bytes)| (name.clone(), format!("{:?}", String::from_utf8_lossy(bytes))))
            .collect()
    };
    assert!(
        found == expected,
        "{what}: found {:#?}, expected {:#?}",
        shown(found),
        shown(expected)
    );
}

#[expect(clippy::disallowed_methods, reason = "a switch for whoever runs the tests")]
pub(crate) fn updates() -> bool {
    std::env::var_os("UPDATE").is_some()
}

pub(crate) fn put(tree: &Tree, top: &Path) {
    for (name, bytes) in tree {
        let path = top.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        write_atomic(&path, bytes).unwrap();
    }
}

#[test]
fn golden_folders() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/init");
    let mut n_cases = 0;
    for client in CLIENTS {
        for case in fs::read_dir(golden.join(client.name)).unwrap() {
            n_cases += 1;
            golden_folder(client.name, &case.unwrap().path());
        }
    }
    assert!(n_cases >= 110, "only {n_cases} cases were found");
}

fn golden_folder(client: &str, case: &Path) {
    let before = tree(&case.join("in"));
    let what = case.display();
    let with = fs::read_to_string(case.join("with")).unwrap_or_default();
    let line = fs::read_to_string(case.join("args")).unwrap_or_default();
    let args = || only(client, Args { with: self::with(with.trim_end()).with, ..parsed(&line) });
    for keeps_receipt in [true, false] {
        let desk = Desk::new();
        put(&before, &desk.at(""));

        let dry = Args { dry_run: true, ..args() };
        let shown = desk.run(&dry).unwrap().out;
        assert_same(&desk.tree(), &before, &format!("{what}: dry run"));
        assert!(!desk.comms().exists(), "{what}: dry run made a table");

        let printed = desk.run(&args()).unwrap();
        assert_eq!(printed.out, shown, "{what}: the dry run showed something else");
        let after = desk.tree();
        if updates() {
            fs::remove_dir_all(case.join("out")).ok();
            put(&after, &case.join("out"));
        }
        assert_same(&after, &tree(&case.join("out")), &format!("{what}: init"));
        assert_eq!(printed.out.is_empty(), after == before, "{what}: the diff");

        let again = desk.run(&args()).unwrap();
        assert_same(&desk.tree(), &after, &format!("{what}: second run"));
        assert!(again.out.is_empty() && again.talk.contains("nothing to change"), "{what}");

        if !keeps_receipt {
            fs::remove_dir_all(desk.comms()).unwrap();
        }
        let gone = case.join("gone");
        let gone = if gone.exists() { tree(&gone) } else { before.clone() };
        desk.run(&only(client, remove())).unwrap();
        // Without a receipt nobody knows whether an empty file was there, and it says nothing.
        let is_blank = before.values().all(Vec::is_empty);
        if keeps_receipt || !is_blank {
            assert_same(&desk.tree(), &gone, &format!("{what}: remove"));
        }
        assert_eq!(desk.comms().exists(), keeps_receipt, "{what}: remove made a folder");
    }
}

#[test]
fn what_init_made_is_deleted() {
    for (keeps_receipt, has_comms) in [(true, true), (false, true), (false, false)] {
        let mut desk = Desk::new();
        desk.has_comms = has_comms;
        let printed = desk.init();
        assert!(printed.out.contains("--- /dev/null\n+++ b/.mcp.json\n"), "{}", printed.out);
        assert!(printed.unwrapped().contains("trust the folder"), "{}", printed.talk);
        let files: Vec<String> = desk.tree().into_keys().collect();
        assert_eq!(files, [".codex/config.toml", ".mcp.json"]);
        if !keeps_receipt {
            fs::remove_dir_all(desk.comms()).unwrap();
        }
        desk.remove();
        assert_same(&desk.tree(), &Tree::new(), "removed");
        assert!(desk.remove().talk.starts_with("nothing to change\n"));
    }
}

#[test]
fn what_others_use_by_now_stays() {
    let desk = Desk::new();
    desk.init();
    let json = desk.text(".mcp.json").replace("{\n    \"team", "{\n    \"x\": {},\n    \"team");
    write(&desk.at(".mcp.json"), &json);
    write(&desk.at(".codex/config.toml"), &format!("{}\n[x]\n", desk.text(".codex/config.toml")));
    write(&desk.at(".codex/rules"), "");
    desk.remove();
    assert_eq!(desk.text(".mcp.json"), "{\n  \"mcpServers\": {\n    \"x\": {}\n  }\n}\n");
    assert_eq!(desk.text(".codex/config.toml"), "[x]\n");

    let desk = Desk::new();
    desk.init();
    write(&desk.at(".codex/rules"), "");
    desk.remove();
    assert_eq!(desk.tree().into_keys().collect::<Vec<_>>(), [".codex/rules"]);
}

#[test]
fn a_file_of_ours_that_was_emptied_again_is_deleted() {
    let desk = Desk::new();
    desk.init();
    write(&desk.at(".mcp.json"), "{\n  \"mcpServers\": {}\n}\n");
    desk.remove();
    assert_same(&desk.tree(), &Tree::new(), "removed");
}

#[test]
fn a_folder_that_was_there_stays() {
    let desk = Desk::new();
    fs::create_dir(desk.at(".codex")).unwrap();
    desk.init();
    desk.remove();
    assert_eq!(desk.tree().into_keys().collect::<Vec<_>>(), [".codex/"]);
}

#[test]
fn settings_added_to_our_entry_go_with_it_if_we_put_it_there() {
    let added = "[mcp_servers.team-table.env]\nA = \"b\"\n";
    let desk = Desk::with(".codex/config.toml", "a = 1\n");
    desk.init();
    let text = format!("{}\n{added}", desk.text(".codex/config.toml"));
    write(&desk.at(".codex/config.toml"), &text);
    assert!(desk.init().talk.contains("settings that init did not write (`env`)"));
    assert_eq!(desk.text(".codex/config.toml"), text);
    desk.remove();
    assert_eq!(desk.text(".codex/config.toml"), "a = 1\n");

    let desk = Desk::with(".codex/config.toml", &text);
    assert!(desk.remove().talk.contains("left as it is"));
    assert_eq!(desk.text(".codex/config.toml"), text);
}

#[test]
fn one_bad_file_stops_everything() {
    for (file, bytes, part) in [
        (".mcp.json", &b"{\n  oops}"[..], "line 2, column 3"),
        (".mcp.json", b"[]", "line 1, column 1: expected an object at the top, found a list"),
        (".mcp.json", b"{\"mcpServers\": []}", "line 1, column 16"),
        (".mcp.json", b"{\"a\": 1, \"a\": 2}", "line 1, column 10: the key `a` is there twice"),
        (".mcp.json", b"{\n\"\xff\": 1}", "line 2, column 2: expected UTF-8"),
        (".codex/config.toml", b"a = 1\na = 2\n", "line 2, column 1: duplicate key"),
        (".codex/config.toml", b"[[mcp_servers]]\n", "line 1, column 3"),
        (".codex/config.toml", b"a = \n", "line 1, column 5"),
        (".codex", b"", "project/.codex"),
    ] {
        let desk = Desk::new();
        fs::create_dir_all(desk.at(file).parent().unwrap()).unwrap();
        write_atomic(&desk.at(file), bytes).unwrap();
        let before = desk.tree();
        for args in [Args::default(), Args { dry_run: true, ..Args::default() }, remove()] {
            let err = desk.run(&args).err().unwrap();
            assert!(err.to_string().contains(part), "{file}: {err}");
            assert!(err.to_string().contains(file), "{file}: {err}");
            assert_same(&desk.tree(), &before, file);
            assert!(!desk.comms().exists(), "{file}");
        }
    }
}

#[test]
fn a_no_writes_nothing() {
    let mut desk = Desk::with(".mcp.json", "{}");
    desk.answer = Some(false);
    let before = desk.tree();
    assert_eq!(desk.run(&Args::default()).err().unwrap().kind(), Kind::Refused);
    assert_same(&desk.tree(), &before, "after the no");
    assert!(!desk.comms().exists());
    desk.run(&Args { yes: true, ..Args::default() }).unwrap();
    assert_ne!(desk.tree(), before);
    assert_eq!(desk.run(&remove()).err().unwrap().kind(), Kind::Refused);
    assert_ne!(desk.tree(), before);
    // Nothing to change, nothing to ask.
    desk.run(&Args::default()).unwrap();
}

#[test]
fn copies_and_a_receipt_are_kept_out_of_sight() {
    let desk = Desk::with(".mcp.json", "{\"a\": 1}");
    desk.init();
    let backup = desk.comms().join("backup");
    let copy = fs::read_to_string(backup.join("20231114T221320Z-.mcp.json")).unwrap();
    assert_eq!(copy, "{\"a\": 1}");
    assert!(backup.join("init.json").exists());
    desk.remove();
    assert!(!backup.join("init.json").exists());
    assert!(backup.join("20231114T221320Z-.mcp.json-2").exists());
}

#[test]
fn the_command_is_a_path_where_ours_does_not_lead_here() {
    let mut desk = Desk::new();
    desk.is_on_path = false;
    let printed = desk.init();
    let exe = serde_json::to_string(desk.exe().to_str().unwrap()).unwrap();
    assert!(desk.text(".mcp.json").contains(&format!("\"command\": {exe}")));
    assert!(printed.unwrapped().contains("PATH does not lead to this program"), "{}", printed.talk);
    desk.is_on_path = true;
    desk.init();
    assert!(desk.text(".mcp.json").contains("\"command\": \"team-table\""));
    assert!(desk.text(".codex/config.toml").contains("command = \"team-table\""));
    desk.remove();
    assert_same(&desk.tree(), &Tree::new(), "removed");
}

#[test]
fn a_program_of_another_name_would_not_be_known_again() {
    let mut desk = Desk::new();
    desk.exe = "other".to_owned();
    write(&desk.exe(), "#!");
    let err = desk.run(&Args::default()).err().unwrap();
    assert!(err.to_string().contains("not `team-table"), "{err}");
    assert_same(&desk.tree(), &Tree::new(), "refused");
}

#[test]
fn the_command_line_is_understood() {
    #[derive(clap::Parser)]
    struct Cli {
        #[command(flatten)]
        args: Args,
    }
    let parse = |args: &[&str]| Cli::try_parse_from([&["init"], args].concat());
    let args = parse(&["--client", "codex", "--client", "claude", "--dry-run"]).unwrap().args;
    assert_eq!((args.client.len(), args.dry_run, args.yes), (2, true, false));
    assert!(parse(&["--client", "emacs"]).is_err());
    assert!(parse(&["--name", "a", "--remove"]).is_err());
}

#[test]
fn a_name_is_written_only_when_it_is_given() {
    let desk = Desk::new();
    desk.init();
    assert!(desk.text(".mcp.json").contains("\"args\": [\"serve\"]"));
    let named = Args { name: Some("reviewer".to_owned()), ..Args::default() };
    desk.run(&named).unwrap();
    assert!(desk.text(".codex/config.toml").contains("[\"serve\", \"--name\", \"reviewer\"]"));
    desk.init();
    assert!(desk.text(".mcp.json").contains("[\"serve\", \"--name\", \"reviewer\"]"));
    for name in ["", "a b", "human-1", "Team-Table", "all", "-x", "é", &"x".repeat(65)] {
        let err = desk.run(&Args { name: Some(name.to_owned()), ..Args::default() }).err().unwrap();
        assert_eq!(err.kind(), Kind::Usage, "{name}");
    }
    desk.remove();
    assert_same(&desk.tree(), &Tree::new(), "removed");
}

#[test]
fn a_linked_worktree_gets_files_of_its_own() {
    let mut desk = Desk::new();
    desk.init();
    desk.top = "worktree";
    write(&desk.at(".git"), "gitdir: ../project/.git/worktrees/worktree\n");
    let before = desk.tree();
    let printed = desk.init();
    assert!(desk.at(".mcp.json").exists() && !desk.at(".agent-comms").exists());
    assert!(printed.unwrapped().contains("sit at the table of"), "{}", printed.talk);
    assert!(printed.unwrapped().contains("in each worktree"), "{}", printed.talk);
    desk.remove();
    assert_same(&desk.tree(), &before, "the worktree");
    desk.top = "project";
    assert!(desk.at(".mcp.json").exists());
    desk.remove();
    assert_same(&desk.tree(), &Tree::new(), "the main checkout");
}

#[test]
fn what_strict_json_is_not_is_kept_and_told() {
    let desk = Desk::with(".mcp.json", "{\n  // mine\n}\n");
    let printed = desk.run(&only("claude", Args::default())).unwrap();
    assert!(printed.talk.contains("Claude Code reads strict JSON"), "{}", printed.talk);
    assert!(desk.text(".mcp.json").contains("// mine"));
}

#[test]
fn an_unknown_client_is_refused_with_what_there_is() {
    let err = Desk::new().run(&only("emacs", Args::default())).err().unwrap();
    assert_eq!(
        (err.kind(), err.hint_text()),
        (
            Kind::Usage,
            Some("there are: claude, codex, gemini, opencode, copilot, cursor, vscode, zed")
        )
    );
}

#[cfg(unix)]
#[test]
fn links_and_modes_stay() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    let desk = Desk::with("real.json", "{}\n");
    fs::set_permissions(desk.at("real.json"), fs::Permissions::from_mode(0o640)).unwrap();
    symlink("real.json", desk.at(".mcp.json")).unwrap();
    desk.init();
    assert!(desk.at(".mcp.json").is_symlink());
    assert!(desk.text("real.json").contains("team-table"));
    assert_eq!(fs::metadata(desk.at("real.json")).unwrap().permissions().mode() & 0o777, 0o640);
    desk.remove();
    assert_eq!(desk.text("real.json"), "{}\n");
}

#[cfg(unix)]
#[test]
fn a_write_that_fails_takes_the_others_back() {
    use std::os::unix::fs::symlink;

    let desk = Desk::with(".mcp.json", "{}\n");
    fs::create_dir(desk.at(".codex")).unwrap();
    symlink("../nowhere/config.toml", desk.at(".codex/config.toml")).unwrap();
    let err = desk.run(&Args::default()).err().unwrap();
    assert_eq!((err.kind(), err.hint_text()), (Kind::Storage, Some("no file was changed")));
    assert_eq!(desk.text(".mcp.json"), "{}\n");
    assert!(!desk.comms().join("backup/init.json").exists());

    fs::remove_file(desk.at(".mcp.json")).unwrap();
    desk.run(&Args::default()).err().unwrap();
    assert!(!desk.at(".mcp.json").exists());
}
