//! Which clients `init` sets up unasked, files that two of them read, and what lies in the place of
//! a file and is none.

use std::fs;

use team_table::{clients::CLIENTS, commands::init::Args, error::Kind};

#[cfg(unix)]
use crate::init::with;
use crate::init::{Desk, Tree, assert_same, only, remove, write};

fn files(desk: &Desk) -> Vec<String> {
    desk.tree().into_keys().collect()
}

#[test]
fn those_of_which_something_is_here_are_set_up_and_said() {
    for (sign, said, file) in [
        (".gemini/", "Gemini CLI is set up too, as `.gemini/` is here", ".gemini/settings.json"),
        ("opencode.json", "opencode is set up too, as `opencode.json` is here", "opencode.json"),
        (".opencode/", "opencode is set up too, as `.opencode/` is here", "opencode.json"),
        (".cursor/", "Cursor is set up too, as `.cursor/` is here", ".cursor/mcp.json"),
        (".vscode/", "VS Code is set up too, as `.vscode/` is here", ".vscode/mcp.json"),
        (".zed/", "Zed is set up too, as `.zed/` is here", ".zed/settings.json"),
    ] {
        let desk = Desk::new();
        if sign.ends_with('/') {
            fs::create_dir(desk.at(sign)).unwrap();
        } else {
            write(&desk.at(sign), "");
        }
        let before = desk.tree();
        let printed = desk.init();
        assert!(printed.talk.contains(said), "{}", printed.talk);
        assert_eq!(printed.talk.matches("set up too").count(), 1, "{}", printed.talk);
        assert!(desk.text(file).contains("team-table"));
        assert!(desk.at(".mcp.json").exists() && desk.at(".codex/config.toml").exists());
        desk.remove();
        assert_same(&desk.tree(), &before, sign);
    }
    let desk = Desk::new();
    desk.init();
    assert_eq!(files(&desk), [".codex/config.toml", ".mcp.json"]);
}

#[test]
fn each_is_set_up_alone_when_it_is_asked_for() {
    for client in CLIENTS {
        let desk = Desk::new();
        let printed = desk.run(&only(client.name, Args::default())).unwrap();
        assert_eq!(files(&desk), [client.server_file().path], "{client}");
        assert!(!printed.talk.contains("set up too"), "{}", printed.talk);
        assert!(printed.unwrapped().contains(&format!("{client}: ")), "{}", printed.talk);
        desk.run(&only(client.name, remove())).unwrap();
        assert_same(&desk.tree(), &Tree::new(), client.name);
    }
}

#[test]
fn two_clients_with_one_file_have_one_entry() {
    let desk = Desk::new();
    let both = Args { client: vec!["claude".into(), "copilot".into()], ..Args::default() };
    let printed = desk.run(&both).unwrap();
    assert_eq!(files(&desk), [".mcp.json"]);
    assert_eq!(desk.text(".mcp.json").matches("team-table\": {").count(), 1);
    assert!(printed.unwrapped().contains("Copilot CLI: start `copilot`"), "{}", printed.talk);
    let desk = Desk::with(".git/HEAD", "");
    let printed = desk.run(&both).unwrap();
    assert!(printed.unwrapped().contains("commit `.mcp.json`, so"), "{}", printed.talk);

    // Its own file is used only where the shared one is not written anyway.
    let desk = Desk::with(".github/mcp.json", "{}\n");
    assert!(desk.init().talk.contains("Copilot CLI is set up too, as `.github/mcp.json` is here"));
    assert_eq!(desk.text(".github/mcp.json"), "{}\n");
    desk.remove();
    desk.run(&only("copilot", Args::default())).unwrap();
    assert!(desk.text(".github/mcp.json").contains("team-table"));
    assert_eq!(files(&desk), [".github/mcp.json"]);
}

#[test]
fn who_else_reads_a_file_is_said() {
    let desk = Desk::new();
    let printed = desk.run(&only("copilot", Args::default())).unwrap();
    assert!(printed.talk.contains("Claude Code reads `.mcp.json` too\n"), "{}", printed.talk);
    let printed = desk.run(&only("claude", remove())).unwrap();
    assert!(printed.talk.contains("Copilot CLI reads `.mcp.json` too\n"), "{}", printed.talk);
    assert!(!desk.init().talk.contains(" too\n"));
}

/// opencode writes that into each file that it reads.
#[test]
fn a_schema_in_a_file_of_ours_is_nobodys() {
    let desk = Desk::new();
    desk.run(&only("opencode", Args::default())).unwrap();
    let schema = "{\n  \"$schema\": \"https://opencode.ai/config.json\",";
    let text = desk.text("opencode.json").replacen('{', schema, 1);
    write(&desk.at("opencode.json"), &text);
    assert_eq!(desk.run(&only("opencode", Args::default())).unwrap().out, "");
    desk.remove();
    assert_same(&desk.tree(), &Tree::new(), "removed");
}

#[test]
fn a_mark_is_kept_and_who_does_not_take_it_is_named() {
    for (client, says_so) in [("claude", false), ("copilot", true), ("gemini", true)] {
        let file = team_table::clients::Client::named(client).unwrap().server_file().path;
        let desk = Desk::with(file, "\u{feff}{}\n");
        let printed = desk.run(&only(client, Args::default())).unwrap();
        assert!(desk.text(file).starts_with("\u{feff}{"));
        let part = "as it is: line 1, column 1: a byte order mark\n";
        assert_eq!(printed.talk.contains(part), says_so, "{}", printed.talk);
    }
}

#[test]
fn a_file_of_two_clients_is_spoken_of_once() {
    let foreign = "{\"mcpServers\": {\"team-table\": {\"command\": \"npx\"}}}";
    let desk = Desk::with(".mcp.json", foreign);
    let printed = desk.remove();
    assert_eq!(
        printed.talk.matches("something else: left as it is").count(),
        1,
        "{}",
        printed.talk
    );
    write(&desk.at(".git/HEAD"), "");
    fs::create_dir_all(desk.at(".github/copilot")).unwrap();
    let printed = desk.init();
    assert!(
        printed.unwrapped().contains("commit `.mcp.json` and `.codex/config.toml`, so"),
        "{}",
        printed.talk
    );
}

#[test]
fn a_broken_file_of_a_client_without_our_entry_stands_in_no_removals_way() {
    let desk = Desk::new();
    desk.init();
    write(&desk.at(".zed/settings.json"), "{ oops");
    write(&desk.at(".gemini/settings.json"), "{ oops");
    desk.remove();
    assert_eq!(files(&desk), [".gemini/settings.json", ".zed/settings.json"]);
    write(&desk.at(".zed/settings.json"), "{ oops team-table");
    assert!(desk.run(&remove()).err().unwrap().to_string().contains(".zed/settings.json"));
}

#[test]
fn a_folder_in_the_place_of_a_file_is_refused() {
    for client in CLIENTS {
        let desk = Desk::new();
        let file = client.server_file().path;
        fs::create_dir_all(desk.at(file)).unwrap();
        let before = desk.tree();
        let err = desk.run(&only(client.name, Args::default())).err().unwrap();
        assert!(err.to_string().contains(file), "{client}: {err}");
        assert_same(&desk.tree(), &before, client.name);
        assert!(!desk.comms().exists(), "{client}");
    }
}

#[test]
fn a_read_only_file_is_left_alone() {
    for client in CLIENTS {
        let file = client.server_file().path;
        let desk = Desk::with(file, "");
        let read_only = |is_so: bool| {
            let mut permissions = fs::metadata(desk.at(file)).unwrap().permissions();
            permissions.set_readonly(is_so);
            fs::set_permissions(desk.at(file), permissions).unwrap();
        };
        read_only(true);
        for args in [Args::default(), Args { dry_run: true, ..Args::default() }] {
            let err = desk.run(&only(client.name, args)).err().unwrap();
            assert_eq!(err.kind(), Kind::Refused, "{err}");
            assert!(err.to_string().contains(&format!("{file}` is read-only")), "{err}");
        }
        assert_eq!(desk.text(file), "", "{client}");
        assert!(!desk.comms().exists(), "{client}");
        read_only(false);
        desk.run(&only(client.name, Args::default())).unwrap();
        read_only(true);
        // Nothing to change, nothing to refuse.
        desk.run(&only(client.name, Args::default())).unwrap();
        assert_eq!(desk.run(&only(client.name, remove())).err().unwrap().kind(), Kind::Refused);
        read_only(false);
    }
}

/// Once it was opened, it kept us waiting for ever.
#[cfg(unix)]
#[test]
fn a_pipe_in_the_place_of_a_file_is_refused() {
    let make = |path: &std::path::Path| {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
    };
    for client in CLIENTS {
        for file in client.files.iter().map(|file| file.path) {
            let desk = Desk::new();
            make(&desk.at(file));
            for args in [with("hooks,allow"), remove()] {
                let result = desk.run(&only(client.name, args));
                if client.server_file().path == file {
                    assert!(result.err().unwrap().to_string().contains("it is no file"), "{file}");
                }
            }
            assert!(desk.at(file).exists(), "{file}");
        }
    }
    for pipe in ["backup/init.json", "backup"] {
        let desk = Desk::new();
        make(&desk.comms().join(pipe));
        assert!(desk.run(&Args::default()).is_err(), "{pipe}");
        assert!(!desk.at(".mcp.json").exists(), "{pipe}");
    }
}

#[cfg(unix)]
#[test]
fn a_link_in_the_place_of_a_file_stays_one() {
    use std::os::unix::fs::symlink;

    for client in CLIENTS {
        let file = client.server_file().path;
        let desk = Desk::with("real", "");
        let depth = file.matches('/').count();
        fs::create_dir_all(desk.at(file).parent().unwrap()).unwrap();
        symlink(format!("{}real", "../".repeat(depth)), desk.at(file)).unwrap();
        desk.run(&only(client.name, Args::default())).unwrap();
        assert!(desk.at(file).is_symlink() && desk.text("real").contains("team-table"));
        desk.run(&only(client.name, remove())).unwrap();
        assert!(desk.at(file).is_symlink(), "{client}");
        assert_eq!(desk.text("real"), "");

        fs::remove_file(desk.at(file)).unwrap();
        symlink(desk.at(file), desk.at(file)).unwrap();
        let err = desk.run(&only(client.name, Args::default())).err().unwrap();
        assert!(err.to_string().contains(file), "{err}");
    }
}
