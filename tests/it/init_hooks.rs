//! What `init --with` puts into the clients' files beside the server, and takes out again; the
//! layouts are in the golden folders.

use std::fs;

use team_table::commands::init::Args;

use crate::{
    init::{Desk, Tree, assert_same, only, remove, with, write},
    support::Table,
};

const CLAUDE: &str = ".claude/settings.json";
const CODEX: &str = ".codex/hooks.json";
const GEMINI: &str = ".gemini/settings.json";

/// Hooks of others, in a layout that no program would write.
const OTHERS: &str = "{ \"model\":\"opus\",\n   \"hooks\": {\"Stop\" :[\n\t{\"hooks\": [{\"type\": \
                      \"command\", \"command\": \"say done\"}]} ]\n}, \"z\": [ ]}";

#[test]
fn hooks_of_others_keep_their_bytes() {
    let table = Table::new();
    for file in [CLAUDE, CODEX, GEMINI] {
        write(&table.path().join(file), OTHERS);
    }
    let text = |file: &str| fs::read_to_string(table.path().join(file)).unwrap();
    let dry = table.run(&["init", "--with", "hooks,wake", "--dry-run"]);
    assert!(dry.code == 0 && [CLAUDE, CODEX, GEMINI].iter().all(|file| text(file) == OTHERS));
    let done = table.run(&["init", "--with", "hooks", "--with", "wake", "--yes"]);
    assert_eq!((done.code, &done.stdout), (0, &dry.stdout));
    for file in [CLAUDE, CODEX, GEMINI] {
        let (added, mut others) = (text(file), OTHERS.chars().peekable());
        for char in added.chars() {
            others.next_if_eq(&char);
        }
        assert!(others.peek().is_none() && added.contains("team-table"), "{added}");
        serde_json::from_str::<serde_json::Value>(&added).unwrap();
    }
    let again = table.run(&["init", "--with", "hooks,wake", "--yes"]);
    assert_eq!((again.code, again.stdout.as_str()), (0, ""));
    table.ok(&["init", "--remove", "--yes"]);
    for file in [CLAUDE, CODEX, GEMINI] {
        assert_eq!(text(file), OTHERS, "{file}");
    }
    assert!(!table.path().join(".mcp.json").exists());
}

#[test]
fn nonsense_is_refused_with_what_there_is() {
    let table = Table::new();
    for args in [&["init", "--with", "nonsense"][..], &["init", "--with", "hooks,nothing", "--yes"]]
    {
        let output = table.run(args);
        assert_eq!(output.code, 2, "{args:?}");
        assert!(
            output.stderr.contains("[possible values: hooks, wake, allow]"),
            "{}",
            output.stderr
        );
    }
    assert_eq!(table.run(&["init", "--remove", "--with", "hooks"]).code, 2);
    assert!(!table.path().join(".mcp.json").exists());
}

#[test]
fn what_is_not_named_stays_as_it_is() {
    for (first, second) in [("hooks", "wake"), ("wake", "hooks")] {
        let desk = Desk::new();
        desk.run(&with("")).unwrap();
        desk.run(&with(first)).unwrap();
        let after_first = desk.tree();
        assert_eq!(after_first.contains_key(CODEX), first == "hooks");
        for args in [with(""), with(first)] {
            assert_eq!(desk.run(&args).unwrap().out, "", "{first}");
        }
        desk.run(&with(second)).unwrap();
        let after_second = desk.tree();
        assert!(desk.text(".codex/config.toml").contains("[\"serve\", \"--wake\"]"));
        assert_eq!(desk.text(CLAUDE).matches("announce").count(), 3);
        assert_eq!(desk.text(CLAUDE).matches("asyncRewake").count(), 1);
        for args in [with(""), with(first), with(second), with("hooks,wake")] {
            assert_eq!(desk.run(&args).unwrap().out, "", "{first}");
        }
        assert_same(&desk.tree(), &after_second, first);
        desk.remove();
        assert_same(&desk.tree(), &Tree::new(), "removed");
    }
}

#[test]
fn a_folder_goes_with_the_last_file_that_init_made_in_it() {
    for keeps_receipt in [true, false] {
        let desk = Desk::new();
        desk.init();
        desk.run(&with("hooks")).unwrap();
        if !keeps_receipt {
            fs::remove_dir_all(desk.comms()).unwrap();
        }
        desk.remove();
        assert_same(&desk.tree(), &Tree::new(), "removed");
    }
    let desk = Desk::with(".claude/agents/x.md", "");
    desk.run(&with("hooks")).unwrap();
    desk.remove();
    assert_eq!(desk.tree().into_keys().collect::<Vec<_>>(), [".claude/agents/x.md"]);
}

/// Somebody's hook in our group, and our hook with another input.
#[test]
fn a_group_of_ours_that_somebody_extended_stays() {
    for (from, to) in [
        ("\"hooks\": [\n          {", "\"hooks\": [\n          {\"type\": \"command\"}, {"),
        ("${session_id}", "none"),
    ] {
        let desk = Desk::new();
        desk.run(&with("hooks")).unwrap();
        let text = desk.text(CLAUDE).replacen(from, to, 1);
        write(&desk.at(CLAUDE), &text);
        let part = "`.claude/settings.json` has a hook of team-table at `UserPromptSubmit` that \
                    was changed, or has another one beside it: left as it is";
        let printed = desk.run(&with("hooks")).unwrap();
        assert!(printed.out.is_empty() && printed.unwrapped().contains(part), "{}", printed.talk);
        let printed = desk.remove();
        assert!(printed.unwrapped().contains(part), "{}", printed.talk);
        let left = desk.text(CLAUDE);
        assert!(left.contains(to) && !left.contains("PostToolUse"), "{left}");
        assert_eq!(desk.tree().into_keys().collect::<Vec<_>>(), [CLAUDE]);
        // Once it is gone, the file is nobody's.
        write(&desk.at(CLAUDE), "{\"hooks\": {}}");
        desk.remove();
        assert_same(&desk.tree(), &Tree::new(), "removed");
    }
}

#[test]
fn a_bad_file_of_hooks_stops_everything() {
    for (file, text, part) in [
        (CLAUDE, "{\n  oops}", "line 2, column 3"),
        (CLAUDE, "[]", "line 1, column 1: expected an object at the top, found a list"),
        (CLAUDE, "{\"hooks\": []}", "line 1, column 11: expected an object as `hooks`"),
        (CLAUDE, "{\"hooks\": {\"Stop\": {}}}", "line 1, column 20: expected a list as `Stop`"),
        (CODEX, "{\"hooks\": {\n\"Stop\": 1}}", "line 2, column 9: expected a list as `Stop`"),
        (CODEX, "{\"hooks\": {}, \"hooks\": {}}", "line 1, column 15: the key `hooks` is there"),
        (GEMINI, "{\"hooks\": null}", "line 1, column 11: expected an object as `hooks`"),
        (GEMINI, "{\"hooks\": {\"AfterTool\": \"\"}}", "line 1, column 25: expected a list as"),
    ] {
        let desk = Desk::with(file, text);
        let before = desk.tree();
        let err = desk.run(&with("hooks")).err().unwrap();
        assert!(err.to_string().contains(part), "{file}: {err}");
        assert!(err.to_string().contains(file), "{file}: {err}");
        assert_same(&desk.tree(), &before, file);
        assert!(!desk.comms().exists(), "{file}");
        // Without hooks nothing is to be done there, nor could anything of ours be in it.
        desk.init();
        desk.remove();
        assert_same(&desk.tree(), &before, file);
    }
    let desk = Desk::new();
    desk.run(&with("hooks")).unwrap();
    write(&desk.at(CODEX), "{");
    let before = desk.tree();
    assert!(desk.run(&remove()).err().unwrap().to_string().contains("line 1, column 1"));
    assert_same(&desk.tree(), &before, "refused");
}

#[test]
fn gemini_is_set_up_where_its_folder_is_or_when_asked_for() {
    let said = "Gemini CLI is set up too, as `.gemini/` is here";
    let desk = Desk::new();
    assert!(!desk.init().talk.contains("Gemini"));
    assert!(!desk.at(".gemini").exists());
    fs::create_dir(desk.at(".gemini")).unwrap();
    assert!(desk.run(&with("hooks")).unwrap().talk.contains(said));
    assert!(desk.text(GEMINI).contains("team-table hook"));
    let printed = desk.run(&only("claude", with(""))).unwrap();
    assert!(!printed.talk.contains("Gemini"), "{}", printed.talk);
    desk.remove();
    assert_eq!(desk.tree().into_keys().collect::<Vec<_>>(), [".gemini/"]);

    let desk = Desk::new();
    let printed = desk.run(&only("gemini", with(""))).unwrap();
    assert!(!printed.talk.contains(said), "{}", printed.talk);
    assert_eq!(desk.tree().into_keys().collect::<Vec<_>>(), [GEMINI]);
    desk.remove();
    assert_same(&desk.tree(), &Tree::new(), "removed");

    let desk = Desk::with(GEMINI, "{\n  // mine\n  \"a\": 1\n}\n");
    assert!(!desk.init().talk.contains("Gemini CLI reads"));
    write(&desk.at(GEMINI), "{\n  \"a\": 1,\n}\n");
    let printed = desk.init();
    assert!(printed.talk.contains("Gemini CLI reads JSON with comments"), "{}", printed.talk);
}

#[test]
fn commands_are_paths_where_ours_does_not_lead_here_and_are_brought_up_to_date() {
    let mut desk = Desk::new();
    desk.exe = format!("my tools/{}", desk.exe);
    write(&desk.exe(), "#!");
    desk.is_on_path = false;
    fs::create_dir(desk.at(".gemini")).unwrap();
    let printed = desk.run(&with("hooks,wake")).unwrap();
    let exe = desk.exe();
    let path = exe.to_str().unwrap();
    let json = |text: &str| serde_json::to_string(text).unwrap();
    let quoted = if cfg!(windows) { format!("\"{path}\" hook") } else { format!("'{path}' hook") };
    assert_eq!(desk.text(GEMINI).matches(&json(&quoted)).count(), 4, "{}", desk.text(GEMINI));
    assert!(desk.text(CLAUDE).contains(&format!("\"command\": {}", json(path))));
    assert!(printed.unwrapped().contains("`team-table init --with hooks,wake` again"));
    desk.exe = format!("team-table{}", std::env::consts::EXE_SUFFIX);
    desk.is_on_path = true;
    let fresh = Desk::new();
    fs::create_dir(fresh.at(".gemini")).unwrap();
    fresh.run(&with("hooks,wake")).unwrap();
    desk.run(&with("hooks,wake")).unwrap();
    assert_same(&desk.tree(), &fresh.tree(), "brought up to date");
}

#[test]
fn a_server_of_somebody_else_gets_no_hooks_of_ours() {
    let desk =
        Desk::with(".mcp.json", "{\"mcpServers\": {\"team-table\": {\"command\": \"npx\"}}}");
    let printed = desk.run(&only("claude", with("hooks,wake"))).unwrap();
    assert!(printed.out.is_empty() && !desk.at(".claude").exists());
    let part = "so Claude Code gets nothing else here";
    assert!(printed.talk.contains(part), "{}", printed.talk);
}

#[test]
fn an_entry_with_settings_of_somebody_is_not_told_to_wake() {
    let text =
        "[mcp_servers.team-table]\ncommand = \"team-table\"\nargs = [\"serve\"]\ncwd = \"x\"\n";
    let mut desk = Desk::with(".codex/config.toml", text);
    desk.is_on_path = false;
    let printed = desk.run(&only("codex", with("wake"))).unwrap();
    assert_eq!(desk.text(".codex/config.toml"), text);
    assert!(printed.talk.contains("add `--wake` to its `args`"), "{}", printed.talk);
    desk.run(&only("codex", with("hooks"))).unwrap();
    assert!(!desk.text(CODEX).contains("bin/team-table"));
    assert!(!printed.talk.contains("the command is"), "{}", printed.talk);
}

#[test]
fn the_next_steps_are_those_of_what_was_set_up() {
    let desk = Desk::new();
    let plain = desk.init().unwrapped();
    assert!(!plain.contains("hooks:") && !plain.contains("wake:"), "{plain}");
    fs::create_dir(desk.at(".gemini")).unwrap();
    let all = desk.run(&with("hooks,wake")).unwrap().unwrapped();
    for part in [
        "Claude Code, hooks: it runs the hooks of a project once the folder is trusted",
        "Claude Code, wake: when a message comes while a session is idle",
        "Codex, hooks: at its next start it says `Hooks need review`: look at them and trust them; \
         it asks again after any edit of `.codex/hooks.json`",
        "by `codex queue`",
        "Gemini CLI, wake: nothing is known that wakes an idle session",
    ] {
        assert!(all.contains(part), "{part} is not in {all}");
    }
}

/// What was said once is not said again, and nothing is promised that will not be.
#[test]
fn the_next_steps_are_what_is_still_to_do() {
    const FIRST: &str = "\nthen type, in each of two sessions:\n\nWho else sits at the team table? Say \
                         hello to them, then wait for an answer.\n";
    let desk = Desk::with(".git/HEAD", "");
    let first = desk.init().talk;
    assert!(first.contains("- commit `.mcp.json`") && first.contains("AGENTS.md"), "{first}");
    assert!(first.ends_with(FIRST), "{first}");
    let again = desk.init().talk;
    let rest = "- `team-table doctor` says whether the clients start or call the server\n";
    assert_eq!(again, format!("nothing to change\nnext:\n{rest}{FIRST}"));

    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp?name=ada", listener.local_addr().unwrap());
    let args = Args { url: Some(url), ..only("claude", Args::default()) };
    let first = desk.run(&args).unwrap().unwrapped();
    assert!(first.contains("has to run: `team-table serve"), "{first}");
    assert!(!desk.run(&args).unwrap().talk.contains("has to run"));
    drop(listener);
    assert!(desk.run(&args).unwrap().talk.contains("has to run"));

    let desk = Desk::with(".mcp.json", "{} // mine\n");
    let mend = "- Claude Code: mend `.mcp.json` at the place named above, as it starts no server \
                until then; `team-table doctor` then says what is next";
    for _ in 0..2 {
        let said = desk.init();
        assert!(said.unwrapped().contains(mend), "{}", said.talk);
        assert!(!said.talk.contains("Connected"), "{}", said.talk);
    }
    let desk = Desk::with(CLAUDE, "{} // mine\n");
    let said = desk.run(&with("hooks")).unwrap().unwrapped();
    let mend = "mend `.claude/settings.json` at the place named above, as it heeds nothing in it";
    assert!(said.contains(mend), "{said}");
}

#[test]
fn what_a_person_allowed_stays_allowed() {
    const OWN: &str = "{\"permissions\": {\"allow\": [\"mcp__team-table\"]}}\n";
    let desk = Desk::with(CLAUDE, OWN);
    desk.run(&with("allow")).unwrap();
    assert_eq!(desk.text(CLAUDE), OWN);
    desk.run(&with("hooks")).unwrap();
    let part = "`.claude/settings.json` lets the tools of team-table run unasked, and init did not \
                put that there: left as it is\n";
    for _ in 0..2 {
        let printed = desk.remove();
        assert!(printed.talk.contains(part), "{}", printed.talk);
        assert_eq!(desk.text(CLAUDE), OWN);
    }
    assert_eq!(desk.tree().into_keys().collect::<Vec<_>>(), [CLAUDE]);
}

#[test]
fn permissions_are_put_in_once_and_go_with_what_else_is_set_up() {
    let desk = Desk::with("opencode.json", "{}\n");
    fs::create_dir(desk.at(".gemini")).unwrap();
    let before = desk.tree();
    let printed = desk.run(&with("allow")).unwrap();
    let all = desk.tree();
    for part in [
        "Claude Code, allow: it heeds the permissions of a project once the folder is trusted",
        "Codex, allow: it runs the tools without asking, so nothing was set up for that",
        "Gemini CLI, allow: `trust` in its entry",
        "opencode, allow: `permission` in its file",
    ] {
        assert!(printed.unwrapped().contains(part), "{}", printed.talk);
    }
    for args in [with("allow"), with("")] {
        assert_eq!(desk.run(&args).unwrap().out, "");
    }
    assert_same(&desk.tree(), &all, "again");
    desk.run(&with("hooks,wake")).unwrap();
    desk.remove();
    assert_same(&desk.tree(), &before, "removed");

    let desk = Desk::new();
    let printed = desk.run(&only("copilot", with("allow"))).unwrap();
    assert!(printed.unwrapped().contains("`copilot --allow-tool=team-table`"), "{}", printed.talk);
}

#[test]
fn rules_and_entries_of_somebody_are_not_allowed_over() {
    let rule = "{\"permission\": {\"team-table_*\": \"deny\"}}\n";
    let desk = Desk::with("opencode.json", rule);
    let printed = desk.run(&only("opencode", with("allow"))).unwrap();
    let part = "`opencode.json` has a rule of its own for the tools of team-table: left as it is\n";
    assert!(printed.talk.contains(part), "{}", printed.talk);
    desk.run(&only("opencode", remove())).unwrap();
    assert_eq!(desk.text("opencode.json"), rule);

    let entry = "{\"mcpServers\": {\"team-table\": {\"command\": \"team-table\", \"args\": \
                 [\"serve\"], \"timeout\": 9}}}\n";
    let desk = Desk::with(GEMINI, entry);
    let printed = desk.run(&only("gemini", with("allow"))).unwrap();
    assert!(printed.talk.contains("add `\"trust\": true` to it"), "{}", printed.talk);
    assert_eq!(desk.text(GEMINI), entry);

    let desk =
        Desk::with(".mcp.json", "{\"mcpServers\": {\"team-table\": {\"command\": \"npx\"}}}");
    desk.run(&only("claude", with("allow"))).unwrap();
    assert!(!desk.at(".claude").exists());
}
