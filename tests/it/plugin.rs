//! `plugin` over whole folders: `plugin/CLIENT` is the package of a client, with `VERSION` for ours.
//! `UPDATE=1` writes it.

use std::{ffi::OsString, fs, path::Path};

use team_table::{
    clients::package::PACKAGES,
    commands::plugin::{self, Args, Setup},
    error::{Kind, Result},
};

use crate::{
    init::{Desk, Tree, assert_same, put, tree, updates, write},
    support::Table,
};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What is said; the folder is taken from the desk's.
fn run(desk: &Desk, client: &str, folder: &str) -> Result<String> {
    let mut talk = Vec::new();
    let bin = desk.exe().parent().unwrap().to_owned();
    let path = if desk.is_on_path { bin.into() } else { OsString::new() };
    plugin::run(
        &Args { client: client.to_owned(), folder: folder.into() },
        &mut Setup { cwd: desk.at(""), path, current_exe: desk.exe(), talk: &mut talk },
    )?;
    Ok(String::from_utf8(talk).unwrap())
}

fn unwrapped(talk: &str) -> String {
    talk.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn with_version(tree: Tree, from: &str, to: &str) -> Tree {
    let replaced = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().replace(from, to).into();
    tree.into_iter().map(|(name, bytes)| (name, replaced(bytes))).collect()
}

#[test]
fn golden_packages() {
    for package in PACKAGES {
        let golden =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/plugin").join(package.client);
        let desk = Desk::new();
        let talk = run(&desk, package.client, "./package").unwrap();
        assert!(talk.starts_with("wrote 6 files to `"), "{talk}");
        let shown = desk.at("package").display().to_string();
        assert!(unwrapped(&talk).contains(&format!("marketplace add {shown}`")), "{talk}");
        assert!(!talk.contains("PATH"), "{talk}");

        let found = desk.tree();
        assert!(
            found.keys().all(|name| name.starts_with("package/")),
            "a draft is left: {found:?}"
        );
        let found = tree(&desk.at("package"));
        if updates() {
            fs::remove_dir_all(&golden).ok();
            put(&with_version(found.clone(), VERSION, "VERSION"), &golden);
        }
        let expected = with_version(tree(&golden), "VERSION", VERSION);
        assert_same(&found, &expected, package.client);

        let again = run(&desk, package.client, "package").unwrap();
        assert!(again.starts_with(&format!("`{shown}` is up to date\n")), "{again}");
        assert_same(&tree(&desk.at("package")), &expected, "the second run");
    }
}

#[test]
fn an_older_package_is_brought_up_to_date_and_keeps_what_is_not_ours() {
    for package in PACKAGES {
        let desk = Desk::new();
        run(&desk, package.client, "new").unwrap();
        let mut expected = tree(&desk.at("new"));
        let mut old = with_version(expected.clone(), VERSION, "0.0.1");
        old.remove("README.md");
        old.remove("skills/team-table/SKILL.md");
        for tree in [&mut expected, &mut old] {
            tree.insert(".git/HEAD".to_owned(), b"ref".to_vec());
        }
        put(&old, &desk.at("old"));
        let talk = run(&desk, package.client, "old").unwrap();
        assert_same(&tree(&desk.at("old")), &expected, package.client);
        let wrote: Vec<&str> = talk.lines().filter(|line| line.starts_with("wrote ")).collect();
        assert_eq!(wrote.len(), 3, "{talk}");
    }
}

#[test]
fn an_empty_folder_is_filled() {
    let desk = Desk::new();
    fs::create_dir(desk.at("empty")).unwrap();
    run(&desk, "claude", "empty").unwrap();
    run(&desk, "claude", "new").unwrap();
    assert_same(&tree(&desk.at("empty")), &tree(&desk.at("new")), "empty");
}

#[track_caller]
fn refused(desk: &Desk, client: &str, folder: &str, part: &str) {
    let before = desk.tree();
    let err = run(desk, client, folder).unwrap_err();
    assert!(matches!(err.kind(), Kind::Refused | Kind::Usage), "{err:?}");
    assert!(err.to_string().contains(part), "{err}");
    assert_same(&desk.tree(), &before, "refused");
}

#[test]
fn folders_of_others_are_refused() {
    let desk = Desk::with("mine/notes.txt", "mine");
    refused(&desk, "claude", "mine", "is not empty, and is no package of team-table for claude");
    refused(&desk, "claude", ".", "is not empty");
    refused(&desk, "claude", "mine/notes.txt", "is no folder");
    refused(&desk, "claude", "mine/notes.txt/package", "there is no folder");
    refused(&desk, "claude", "no/such/place", "there is no folder");
    refused(&desk, "claude", "", "the folder has no name");
    // The manifest of another plugin, one that cannot be read, and our own package for another client.
    for (manifest, text) in
        [(".claude-plugin/plugin.json", "{\"name\": \"x\"}"), (".claude-plugin/plugin.json", "{")]
    {
        write(&desk.at("other").join(manifest), text);
        refused(&desk, "claude", "other", "is not empty");
    }
    run(&desk, "codex", "codex").unwrap();
    refused(&desk, "claude", "codex", "is no package of team-table for claude");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("nowhere", desk.at("link")).unwrap();
        let err = run(&desk, "claude", "link").unwrap_err();
        assert!(err.to_string().contains("leads nowhere"), "{err}");
        assert!(!desk.at("nowhere").exists());
    }
}

/// Off PATH the files name the program by its path, wherever they start it.
#[test]
fn a_program_that_path_does_not_find_is_named_by_its_path() {
    for package in PACKAGES {
        let mut desk = Desk::new();
        desk.is_on_path = false;
        let talk = run(&desk, package.client, "package").unwrap();
        assert!(unwrapped(&talk).contains("PATH does not lead to this program"), "{talk}");
        let exe = serde_json::to_string(desk.exe().to_str().unwrap()).unwrap();
        assert!(desk.text("package/.mcp.json").contains(&format!("\"command\": {exe}")));
        assert!(!desk.text("package/hooks/hooks.json").contains("\"command\": \"team-table"));
        // Found by then: the same package, for all machines.
        desk.is_on_path = true;
        run(&desk, package.client, "package").unwrap();
        assert!(desk.text("package/.mcp.json").contains("\"command\": \"team-table\""));
    }
}

#[test]
fn a_write_that_fails_takes_the_others_back() {
    let desk = Desk::new();
    run(&desk, "claude", "package").unwrap();
    fs::remove_dir_all(desk.at("package/skills")).unwrap();
    write(&desk.at("package/skills"), "a file");
    fs::remove_file(desk.at("package/.mcp.json")).unwrap();
    let manifest = desk.text("package/.claude-plugin/plugin.json").replace(VERSION, "0.0.1");
    write(&desk.at("package/.claude-plugin/plugin.json"), &manifest);
    let before = desk.tree();
    let err = run(&desk, "claude", "package").unwrap_err();
    assert_eq!((err.kind(), err.hint_text()), (Kind::Storage, Some("no file was changed")));
    assert_same(&desk.tree(), &before, "taken back");
}

/// As a person runs it: it says what to do next, and makes no table.
#[test]
fn on_the_command_line() {
    let table = Table::new();
    let output = table.run(&["plugin", "claude", "package"]);
    assert_eq!((output.code, output.stdout.as_str()), (0, ""), "{output:?}");
    assert!(output.stderr.contains("claude --plugin-dir"), "{output:?}");
    assert!(table.path().join("package/.claude-plugin/plugin.json").is_file());
    assert!(!table.file().exists());
    assert_eq!(table.run(&["plugin", "gemini", "other"]).code, 2);
    assert_eq!(table.run(&["plugin", "claude"]).code, 2);
    assert_eq!(table.run(&["plugin", "claude", ""]).code, 2);
    assert_eq!(table.run(&["plugin", "codex", "package"]).code, 1);
}
