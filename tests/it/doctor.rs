//! `doctor`: what is wrong is found, each by itself, with the one thing to do; what is well is not
//! complained of; and nothing on the disk is changed by the look.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};

use crate::support::{
    NOW, Output, Table,
    agent::{Agent, PATIENCE},
    faults::skipped,
    program,
};

/// A project in which all is well: both clients are set up, trusted and approved.
struct Project {
    table: Table,
}

impl Project {
    fn new() -> Project {
        let mut table = Table::new();
        let folder = program().parent().unwrap().display();
        let path = table.path_variable();
        table.set("PATH", &format!("{folder}:{path}"));
        table.ok(&["init", "--yes"]);
        let project = Project { table };
        project.write(
            ".home/.claude.json",
            &json!({"projects": {project.top(): {
                "hasTrustDialogAccepted": true, "enabledMcpjsonServers": ["team-table"]
            }}})
            .to_string(),
        );
        project.trust_in_codex("trusted");
        project
    }

    fn trust_in_codex(&self, level: &str) {
        let text = format!("[projects.'{}']\ntrust_level = \"{level}\"\n", self.top());
        self.write(".home/.codex/config.toml", &text);
    }

    /// The folder as the program names it.
    fn top(&self) -> String {
        dunce::canonicalize(self.table.path()).unwrap().display().to_string()
    }

    fn write(&self, file: &str, text: &str) {
        put(&self.table.path().join(file), text.as_bytes());
    }

    /// Makes the folder a checkout, and a linked worktree of it.
    fn worktree(&self) -> PathBuf {
        let (worktree, git) = (self.table.path().join("wt"), self.table.path().join(".git"));
        let own = git.join("worktrees/wt");
        put(&git.join("HEAD"), b"ref: refs/heads/main\n");
        put(&git.join("config"), b"[core]\n\tbare = false\n");
        put(&own.join("HEAD"), b"ref: refs/heads/topic\n");
        put(&own.join("commondir"), b"../..\n");
        put(&own.join("gitdir"), worktree.join(".git").display().to_string().as_bytes());
        put(&worktree.join(".git"), format!("gitdir: {}\n", own.display()).as_bytes());
        worktree
    }

    fn agent(&self, client: &str) -> Agent {
        let mut agent = self.table.session(&[], client, &[]);
        agent.call("register", json!({}));
        agent
    }

    fn send(&self, to: &str) -> String {
        self.table.ok(&["send", "--as", "human", to, "hello"])
    }

    /// Some minutes later.
    fn later(&mut self, minutes: i64) {
        self.table.set("TEAM_TABLE_NOW", &(NOW + minutes * 60_000).to_string());
    }

    fn sql(&self, sql: &str) {
        self.table.write().execute_batch(sql).unwrap();
    }

    #[track_caller]
    fn is_well(&self) {
        let output = self.table.run(&["doctor"]);
        if output.code != 0 || !output.stdout.ends_with("\nnothing wrong\n") {
            self.table.fail(&["doctor"], &output, "it finds something");
        }
    }

    /// The only finding is this one.
    #[track_caller]
    fn finds(&self, area: &str, what: &str, todo: &str) -> Output {
        self.says(&["doctor"], area, what, todo)
    }

    #[track_caller]
    fn says(&self, args: &[&str], area: &str, what: &str, todo: &str) -> Output {
        let output = self.table.run(args);
        let verdict = format!("{area}: 1 finding\n");
        let (what, todo) = (format!("\n! {what}"), format!("\n  do: {todo}"));
        let found = output.stdout.contains(&verdict)
            && one_line(&output.stdout).contains(&one_line(&what))
            && one_line(&output.stdout).contains(&one_line(&todo));
        if output.code != 1 || !found || !output.stdout.ends_with("\n1 finding\n") {
            self.table.fail(args, &output, &format!("not found:{what}{todo}"));
        }
        output
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[expect(clippy::disallowed_methods, reason = "a fixture needs no atomic write")]
fn put(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

/// A program is copied by another process: one of ours that is started meanwhile would have the
/// copy open for writing, and then nobody can run it.
fn copy_program(from: &Path, to: &Path) {
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    let status = Command::new("cp").arg("-f").arg(from).arg(to).status().unwrap();
    assert!(status.success());
}

/// Every file below a folder with its bytes; of a log's index the name alone, since it is memory
/// that readers share.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.insert(path.clone(), Vec::new());
            found.extend(files(&path));
        } else {
            let is_index = path.to_string_lossy().ends_with("-shm");
            found
                .insert(path.clone(), if is_index { Vec::new() } else { fs::read(&path).unwrap() });
        }
    }
    found
}

#[test]
fn where_all_is_well_nothing_is_found() {
    let project = Project::new();
    project.is_well();
    let mut ada = project.agent("claude-code");
    let mut bob = project.agent("codex-mcp-client");
    ada.call("send_message", json!({"recipient": "codex-1", "content": "hi"}));
    project.is_well();
    bob.call("get_messages", json!({}));
    project.is_well();
    let shown = project.table.ok(&["doctor"]);
    for part in
        ["codex-1: active; `codex-mcp-client 1` in ", "sound, version ", "Claude Code: `.mcp.json`"]
    {
        assert!(shown.contains(part), "{shown}");
    }
}

#[test]
fn the_look_changes_nothing() {
    #[track_caller]
    fn check(project: &Project) {
        let before = files(project.table.path());
        for args in [&["doctor"][..], &["doctor", "--json"], &["doctor", "1"]] {
            project.table.run(args);
        }
        let after = files(project.table.path());
        assert!(before.keys().eq(after.keys()), "{:?}", after.keys());
        let changed = before.iter().find(|(path, bytes)| after[*path] != **bytes);
        assert!(changed.is_none(), "{:?}", changed.unwrap().0);
    }
    let bare = Project { table: Table::new() };
    fs::remove_dir(bare.table.path().join(".agent-comms")).unwrap();
    check(&bare);
    let project = Project::new();
    check(&project);
    let mut agent = project.agent("codex-mcp-client");
    project.send("codex-1");
    check(&project);
    agent.kill9();
    check(&project);
    let index = project.table.path().join(".agent-comms/comms.db-shm");
    if index.exists() {
        fs::remove_file(index).unwrap();
        check(&project);
        project.table.ok(&["doctor"]);
    }
}

#[test]
fn what_is_not_there_yet_is_said() {
    let table = Table::new();
    let output = table.run(&["doctor"]);
    assert_eq!(output.code, 1);
    assert!(output.stdout.contains("it is not there yet: the first call"), "{}", output.stdout);
    assert!(
        output.stdout.contains("! no client starts team-table here\n  do: run `team-table init`")
    );
    assert!(!output.stdout.contains("members"), "not looked at: {}", output.stdout);
}

/// Installed for all projects: nothing has to be set up in this one.
#[test]
fn a_plugin_will_do() {
    let table = Table::new();
    table.ok(&["register", "--as", "ada"]);
    let plugin = json!({"enabledPlugins": {"team-table@team-table": true}}).to_string();
    put(&table.path().join(".home/.claude/settings.json"), plugin.as_bytes());
    let output = table.run(&["doctor"]);
    assert_eq!(output.code, 0, "{output:?}");
    assert!(output.stdout.contains("Claude Code: it has the plugin\n"), "{}", output.stdout);
    let hooks = "hooks: ok\n  Claude Code: its plugin has hooks\n";
    assert!(output.stdout.contains(hooks), "{}", output.stdout);
    assert!(!output.stdout.contains("--with hooks"), "{}", output.stdout);
    // Turned off, it does not.
    put(
        &table.path().join(".home/.claude/settings.json"),
        plugin.replace("true", "false").as_bytes(),
    );
    assert!(table.run(&["doctor"]).stdout.contains("! no client starts team-table here"));
    let plugin = "[plugins.\"team-table@team-table\"]\nenabled = true\n";
    put(&table.path().join(".home/.codex/config.toml"), plugin.as_bytes());
    let output = table.run(&["doctor"]);
    assert!(output.stdout.contains("Codex: it has the plugin\n"), "{}", output.stdout);
}

#[test]
fn a_plugin_beside_another_entry_is_found() {
    let project = Project::new();
    let plugin = json!({"enabledPlugins": {"team-table@team-table": true}}).to_string();
    project.write(".home/.claude/settings.json", &plugin);
    project.is_well();
    let shown = project.table.ok(&["doctor"]);
    assert!(shown.contains("; it has the plugin too\n  Codex: "), "{shown}");
    project.table.ok(&["init", "--yes", "--name", "ada", "--client", "claude"]);
    project.finds(
        "clients",
        "Claude Code has the plugin, and `.mcp.json` names the server with other arguments",
        "run `team-table init --remove --client claude`",
    );
    project.write(".home/.claude/settings.json", "{}");
    project.is_well();
}

#[test]
fn another_table_where_somebody_sits_is_found() {
    let project = Project::new();
    let worktree = project.worktree();
    fs::create_dir(worktree.join(".agent-comms")).unwrap();
    let real = dunce::canonicalize(&worktree).unwrap();
    let other = real.join(".agent-comms/comms.db").display().to_string();

    let mut lost = project.table.session(&["--name", "lost"], "test", &[("TEAM_TABLE_DB", &other)]);
    lost.call("broadcast", json!({"content": "is anybody here?"}));
    project.finds("table", "lost sits at another table, ", "end what sits there, move ");
    let output = project.table.run(&["doctor", "1"]);
    let found = one_line(&output.stdout);
    let said = "! there is no message #1 here, nor any other; another table has one, ";
    assert!(found.contains(&format!("{said}`{other}`")), "{found}");
    assert!(found.contains(&format!("run `team-table doctor 1 --db-path {other}`")), "{found}");
    let output = project.table.run(&["doctor", "1", "--db-path", &other]);
    assert_eq!(output.code, 0, "as it was told to do: {}", output.stdout);
    assert!(output.stdout.contains("message: ok\n  #1 lost to everyone, "), "{}", output.stdout);
    drop(lost);
    project.is_well();
    let shown = project.table.ok(&["doctor"]);
    assert!(shown.contains("another checkout of this repository (nobody sits there"), "{shown}");
}

#[cfg(unix)]
#[test]
fn a_path_stands_in_a_command_as_a_shell_takes_it() {
    let project = Project::new();
    let other = project.table.path().join("a b\u{1b}[2J/.agent-comms/comms.db");
    fs::create_dir_all(other.parent().unwrap()).unwrap();
    let named = other.display().to_string();
    let mut lost = project.table.session(&["--name", "lost"], "test", &[("TEAM_TABLE_DB", &named)]);
    lost.call("broadcast", json!({"content": "is anybody here?"}));
    for args in [&["doctor"][..], &["doctor", "1"]] {
        let shown = project.table.run(args).stdout;
        assert!(!shown.contains('\u{1b}'), "{shown:?}");
    }
    let shown = project.table.run(&["doctor", "1"]).stdout;
    assert!(one_line(&shown).contains("team-table doctor 1 --db-path '"), "{shown}");
}

#[test]
fn a_table_that_somebody_wrote_to_lately_is_found() {
    let mut project = Project::new();
    let below = project.table.path().join("sub/.agent-comms/comms.db");
    put(&below, b"");
    project.is_well();
    let written = fs::metadata(&below).unwrap().modified().unwrap();
    let age = written.duration_since(std::time::UNIX_EPOCH).unwrap();
    project.table.set("TEAM_TABLE_NOW", &(age.as_millis() + 600_000).to_string());
    project.finds(
        "table",
        "somebody wrote 10 min ago to another table",
        "end what sits there, move",
    );
}

#[test]
fn a_relative_variable_is_found() {
    let mut project = Project::new();
    project.table.set("TEAM_TABLE_DB", "named.db");
    let text = fs::read_to_string(project.table.path().join(".codex/config.toml")).unwrap();
    project.finds(
        "table",
        "`TEAM_TABLE_DB` is `named.db`, which is another file",
        "set it to the whole",
    );
    let whole = project.table.path().join("named.db").display().to_string();
    project.table.set("TEAM_TABLE_DB", &whole);
    project.is_well();
    let without: String =
        text.lines().filter(|line| !line.starts_with("env_vars")).flat_map(|l| [l, "\n"]).collect();
    assert_ne!(without, text);
    project.write(".codex/config.toml", &without);
    project.finds("clients", "Codex does not pass `TEAM_TABLE_DB` on", "add `env_vars = ");
}

#[test]
fn a_table_that_is_none_is_found() {
    let check = |make: &dyn Fn(&Project), what: &str, todo: &str| {
        let project = Project::new();
        make(&project);
        project.finds("table", what, todo);
        let output = project.table.run(&["doctor", "1"]);
        assert_eq!(output.code, 1, "{}", output.stdout);
    };
    let table = |project: &Project| project.table.file();
    check(
        &|it| put(&table(it), &[b'x'; 9_000]),
        "cannot use `",
        "it was not touched; move it away",
    );
    check(&|it| it.sql("PRAGMA user_version = 9000"), "cannot use `", "install a newer team-table");
    check(
        &|it| it.sql("PRAGMA application_id = 7"),
        "cannot use `",
        "name another file, or move this one away",
    );
    check(
        &|it| {
            fs::remove_file(table(it)).unwrap();
            fs::create_dir(table(it)).unwrap();
        },
        "`",
        "move it away: the next call makes the table",
    );
    check(
        &|it| {
            // The index of answers, without its rows.
            it.sql(
                "INSERT INTO message (id, sender_id, kind, audience, reply_to, thread_id, body, sent_at)
                 VALUES (1, 1, 'message', 'human', NULL, 1, 'x', 0),
                        (2, 1, 'message', 'human', 1, 1, 'y', 0);
                 PRAGMA writable_schema = ON;
                 UPDATE sqlite_schema SET rootpage = (
                     SELECT rootpage FROM sqlite_schema WHERE name = 'task_open')
                 WHERE name = 'message_thread';",
            );
        },
        "the table is damaged: ",
        "end all agents, move `comms.db` and what is beside it away",
    );
    check(
        &|it| {
            it.sql(
                "PRAGMA foreign_keys = OFF;
                 INSERT INTO delivery (message_id, member_id, sender_id) VALUES (7, 1, 1);",
            );
        },
        "the table is damaged: `a row of \\u{60}delivery",
        "end all agents",
    );
    check(
        &|it| it.sql("DROP TABLE delivery"),
        "the table said: no such table: delivery",
        "move the table away, and begin anew or bring back a copy",
    );
}

#[test]
fn a_table_of_an_older_version_is_left_as_it_is() {
    let project = Project::new();
    project.sql("PRAGMA user_version = 1001");
    project.is_well();
    let shown = project.table.ok(&["doctor"]);
    assert!(shown.contains("it is of version 1001; the next call brings it to "), "{shown}");
    project.says(
        &["doctor", "1"],
        "message",
        "#1 was not looked for, since the table is of an older version",
        "run `team-table show 1`",
    );
}

#[test]
fn a_table_that_is_held_is_found_at_once() {
    let project = Project::new();
    // Its log is still there: a table without one is read as a file that nobody writes to.
    project.agent("codex-mcp-client").kill9();
    let other = project.table.write();
    other.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE").unwrap();
    let begin = std::time::Instant::now();
    project.finds("table", "another program holds the table", "find it with `fuser ");
    assert!(begin.elapsed() < PATIENCE / 6);
}

/// Somebody stopped a program in the middle of a write.
#[test]
fn a_turn_to_write_that_is_kept_is_found() {
    let project = Project::new();
    project.table.ok(&["register", "--as", "ada"]);
    let lock = fs::File::open(project.table.path().join(".agent-comms/seats/write.lock")).unwrap();
    fs2::FileExt::lock_exclusive(&lock).unwrap();
    project.finds(
        "table",
        "somebody has the turn to write and does not write, so that nobody can",
        "find it with `fuser ",
    );
    fs2::FileExt::unlock(&lock).unwrap();
    project.is_well();
}

/// The `.gitignore` in it keeps it out; somebody has put it in all the same.
#[test]
fn a_table_in_git_is_found() {
    let project = Project::new();
    project.table.ok(&["register", "--as", "ada"]);
    project.write(".git/HEAD", "ref: refs/heads/main\n");
    project.write(".git/index", "DIRC src/agent-comms/x .mcp.json");
    project.is_well();
    project.write(".git/index", "DIRC .agent-comms/comms.db .mcp.json");
    project.finds("table", "the table is in git", "run `git rm -r --cached .agent-comms`");
}

#[test]
fn a_log_that_only_grows_is_found() {
    let project = Project::new();
    let reader = project.table.open();
    reader.execute_batch("BEGIN; SELECT * FROM about;").unwrap();
    project.sql(
        "INSERT INTO context (key, value, version, author, updated_at, change)
         VALUES ('x', hex(zeroblob(9000000)), 1, 'ada', 0, 1)",
    );
    project.finds("table", "its log has grown to 17 MiB", "find it with `fuser ");
    reader.execute_batch("COMMIT").unwrap();
}

#[test]
fn a_log_of_another_table_is_told_of() {
    let project = Project::new();
    project.agent("codex-mcp-client").kill9();
    let (table, other) = (project.table.file(), project.table.path().join("other"));
    fs::copy(&table, &other).unwrap();
    fs::remove_file(&table).unwrap();
    let shown = project.table.ok(&["doctor"]);
    assert!(shown.contains("- what lies beside it is left over"), "{shown}");
    fs::rename(&other, &table).unwrap();
    let shown = project.table.ok(&["doctor"]);
    assert!(shown.contains("- the log beside it is another table's"), "{shown}");
}

#[test]
fn a_bad_address_is_a_finding() {
    let mut project = Project::new();
    let folder = project.table.path().display().to_string();
    project.table.set("TEAM_TABLE_DB", &folder);
    project.finds("table", "TEAM_TABLE_DB must name a file", "name a file in it");
    project.table.set("TEAM_TABLE_DB", "");
    let output = project.table.run(&["doctor", "--json", "--db-path", &folder]);
    let value: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!((output.code, value["findings"][0]["area"].as_str()), (1, Some("table")));
}

#[test]
fn mail_for_one_who_came_back_under_another_name_is_found() {
    let mut project = Project::new();
    let mut first = project.table.session(&["--name", "coder-1"], "test", &[]);
    first.call("register", json!({}));
    project.send("coder-1");
    first.kill9();
    let shown = project.table.ok(&["doctor"]);
    assert!(shown.contains("- mail waits until coder-1 is back"), "{shown}");
    let mut second = project.table.session(&["--name", "coder-2"], "test", &[]);
    second.call("register", json!({}));
    project.later(20);
    project.finds(
        "unread",
        "1 message waits for coder-1, who is away, while coder-2 sits there",
        "tell coder-2: call register with the name coder-1",
    );
    project.says(
        &["doctor", "#1"],
        "message",
        "it waits for coder-1, who is away, while coder-2 sits there",
        "tell coder-2: call register with the name coder-1",
    );
    // What it says is right.
    second.call("register", json!({"name": "coder-1"}));
    let got = second.call("get_messages", json!({}));
    assert!(got.text.contains("| hello"), "{}", got.text);
    project.is_well();
}

#[test]
fn mail_that_nobody_asks_for_is_found() {
    let mut project = Project::new();
    let mut agent = project.agent("codex-mcp-client");
    project.send("codex-1");
    project.later(14);
    project.is_well();
    project.later(16);
    project.finds(
        "unread",
        "codex-1 sits there and has not asked for its mail for 16 min",
        "tell codex-1: call get_messages",
    );
    agent.call("deregister", json!({}));
    project.finds(
        "unread",
        "1 message waits for codex-1, who has left and will not read it",
        "run `team-table show 1` and send it to somebody who is here",
    );
    project.says(
        &["doctor", "1"],
        "message",
        "codex-1 has left and will not read it",
        "send it to",
    );
    project.later(8 * 24 * 60);
    project.is_well();
}

#[test]
fn servers_of_other_versions_are_found() {
    let project = Project::new();
    let _agent = project.agent("codex-mcp-client");
    project.sql("UPDATE session SET server_version = '0.0.1'");
    project.finds(
        "members",
        "codex-1 has a server of version `0.0.1`, and this is ",
        "end that Codex session and resume it",
    );
    project.sql("UPDATE session SET server_version = '99.0.0'");
    project.finds("members", "codex-1 has a server of version", "install team-table 99.0.0 here");
}

#[cfg(target_os = "linux")]
#[test]
fn processes_that_cannot_answer_are_found() {
    use rustix::process::Signal;

    let project = Project::new();
    let mut agent = project.agent("claude-code");
    agent.signal(Signal::STOP);
    crate::support::faults::eventually("it is stopped", || {
        project.table.run(&["doctor"]).stdout.contains("is stopped")
    });
    let todo = format!("run `kill -CONT {}`", agent.pid());
    project.finds("members", "the server of claude-1 is stopped", &todo);
    agent.signal(Signal::CONT);
    agent.close_stdin();
    agent.wait_exit(PATIENCE);

    let copy = project.table.path().join("bin/team-table");
    copy_program(program(), &copy);
    let now = NOW.to_string();
    let env = [("TEAM_TABLE_NOW", now.as_str())];
    let mut agent = Agent::spawn(&copy, &["serve"], project.table.path(), &env);
    agent.initialize("claude-code");
    agent.call("register", json!({}));
    let shown = project.table.ok(&["doctor"]);
    assert!(shown.contains("- claude-1 runs another file than this"), "{shown}");
    fs::remove_file(&copy).unwrap();
    project.finds(
        "members",
        "claude-1 runs a program that was replaced since",
        "in Claude Code run",
    );
}

#[test]
fn what_clients_do_not_trust_is_found() {
    let project = Project::new();
    project.trust_in_codex("untrusted");
    project.finds("clients", "Codex does not trust this folder", "run `codex` here and trust");
    let agent = project.agent("codex-mcp-client");
    project.is_well();
    drop(agent);
    project.trust_in_codex("trusted");
    project.is_well();
    project.write(".claude/settings.local.json", r#"{"disabledMcpjsonServers": ["team-table"]}"#);
    project.finds(
        "clients",
        "Claude Code has the server `team-table` turned off",
        "run `claude` here",
    );
    project.write(".claude/settings.local.json", "{}");
    let state = |entry: Value| {
        let text = json!({"projects": {project.top(): entry}}).to_string();
        project.write(".home/.claude.json", &text);
    };
    state(json!({"hasTrustDialogAccepted": false}));
    project.finds(
        "clients",
        "Claude Code does not trust this folder",
        "run `claude` here and trust",
    );
    state(json!({"hasTrustDialogAccepted": true}));
    project.finds(
        "clients",
        "the server `team-table` waits for your approval",
        "run `claude` here and choose",
    );
    project.write(".claude/settings.local.json", r#"{"enabledMcpjsonServers": ["team-table"]}"#);
    project.is_well();
    project.write(".home/.claude.json", "{}");
    project.is_well();
}

#[test]
fn where_a_client_keeps_its_own_files_elsewhere_they_are_read_there() {
    let mut project = Project::new();
    let elsewhere = project.table.path().join(".elsewhere");
    for name in ["CODEX_HOME", "CLAUDE_CONFIG_DIR"] {
        project.table.set(name, &elsewhere.display().to_string());
    }
    put(&elsewhere.join("config.toml"), b"");
    project.finds("clients", "Codex does not trust this folder", "run `codex` here and trust");
    put(&elsewhere.join("config.toml"), b"[mcp_servers.team-table]\ncommand = 'team-table'\n");
    project.is_well();
    put(&elsewhere.join("settings.json"), br#"{"disabledMcpjsonServers": ["team-table"]}"#);
    project.finds(
        "clients",
        "Claude Code has the server `team-table` turned off",
        "run `claude` here",
    );
}

#[test]
fn files_that_cannot_be_understood_are_found() {
    let project = Project::new();
    let (mcp, codex) = (".mcp.json", ".codex/config.toml");
    let read = |file: &str| fs::read_to_string(project.table.path().join(file)).unwrap();
    let (good_mcp, good_codex) = (read(mcp), read(codex));
    project.write(mcp, "{\n  \"mcpServers\": {,}\n}\n");
    project.finds(
        "clients",
        &format!("`{}/.mcp.json` line 2, column ", project.top()),
        "mend that place",
    );
    project.write(mcp, &good_mcp.replacen('{', "{ // our servers\n", 1));
    project.finds(
        "clients",
        "Claude Code will not take `.mcp.json` line 1, column ",
        "mend that place",
    );
    project.write(mcp, &good_mcp);
    project.write(codex, "[mcp_servers.team-table\n");
    project.finds("clients", &format!("`{}/.codex/config.toml` line 1, ", project.top()), "mend");
    project.write(codex, &good_codex);
    for odd in ["[]", "7", "\"x\"", "null", "{\"hooks\": [1, {\"Stop\": 2}], \"mcpServers\": 3}"] {
        project.write(".claude/settings.json", odd);
        project.is_well();
    }
    put(&project.table.path().join(".gemini/settings.json"), b"{\"\xff\": 1}");
    project.finds(
        "clients",
        &format!("`{}/.gemini/settings.json` is not UTF-8", project.top()),
        "mend",
    );
    fs::remove_file(project.table.path().join(".gemini/settings.json")).unwrap();
    fs::create_dir(project.table.path().join(".gemini/settings.json")).unwrap();
    project.is_well();
    project.write(".gemini/settings.json/x", &"[".repeat(100_000));
    project.write(".claude/settings.local.json", &"[".repeat(100_000));
    project.table.run(&["doctor"]);
}

#[test]
fn what_a_worktree_lacks_is_found() {
    let project = Project::new();
    let worktree = project.worktree();
    let look = || {
        let output = project.table.command(&[]).arg("doctor").current_dir(&worktree).output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    };
    let shown = look();
    for (file, client) in [(".mcp.json", "Claude Code"), (".codex/config.toml", "Codex")] {
        let what = format!(
            "! `{file}` is in the main checkout and not in this worktree, so {client} starts no \
             server here"
        );
        assert!(shown.contains(&what), "{shown}");
    }
    let todo = "  do: commit it, or run `team-table init` in this worktree\n";
    assert_eq!(shown.matches(todo).count(), 2, "{shown}");
    assert!(shown.ends_with("\n2 findings\n"), "{shown}");
    for file in [".mcp.json", ".codex/config.toml"] {
        put(&worktree.join(file), &fs::read(project.table.path().join(file)).unwrap());
    }
    // The main checkout is trusted, and so is what belongs to it.
    assert!(look().ends_with("\nnothing wrong\n"), "{}", look());
    let url = "http://127.0.0.1:1/mcp";
    let args = ["init", "--yes", "--client", "codex", "--url", url, "--token-env", "BOB_TOKEN"];
    project.table.ok(&args);
    fs::remove_file(worktree.join(".codex/config.toml")).unwrap();
    let todo = format!(
        "  do: commit it, or run `team-table init --client codex --url {url} --token-env BOB_TOKEN` \
         in this worktree\n"
    );
    assert!(look().contains(&todo), "{}", look());
}

#[test]
fn a_server_that_is_called_is_looked_for() {
    let mut project = Project::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}/mcp");
    let init = ["init", "--yes", "--client", "claude,codex", "--url", &url];
    project.table.ok(&[&init[..], &["--token-env", "ADA_TOKEN"]].concat());
    let shown = project.table.ok(&["doctor"]);
    assert!(shown.contains(&format!("Claude Code: `.mcp.json` calls `{url}`; ")), "{shown}");
    let note = "- `ADA_TOKEN`, in which Claude Code looks for its token, is not set in this shell";
    assert!(shown.contains(note), "{shown}");
    project.table.set("ADA_TOKEN", "x");
    assert!(!project.table.ok(&["doctor"]).contains("not set"));
    drop(listener);
    project.finds(
        "clients",
        &format!("nobody answers at `{url}`"),
        &format!("run `team-table serve --transport streamable-http --port {port}` where that"),
    );
    let shown = project.table.run(&["doctor"]).stdout;
    assert!(shown.ends_with("\n1 finding\n"), "one server is looked for once: {shown}");
    let listener = std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();
    project.write(".home/.claude.json", "{}");
    let shown = project.table.run(&["doctor"]).stdout;
    assert!(shown.contains("; it calls the server once you agree\n"), "{shown}");
    project.table.ok(&init);
    project.finds(
        "clients",
        "Claude Code comes without a session, and `.mcp.json` does not say as whom",
        "run `team-table init --client claude --url` with `?name=NAME` behind the address",
    );
    drop(listener);
}

#[test]
fn what_cannot_be_written_is_found() {
    use std::os::unix::fs::PermissionsExt as _;

    if rustix::process::geteuid().is_root() {
        return skipped("root may write everywhere");
    }
    let project = Project::new();
    let folder = project.table.path().join(".agent-comms");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o500)).unwrap();
    project.finds("table", "`", "make it writable for the user that runs your agents");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn entries_that_lead_elsewhere_are_found() {
    let project = Project::new();
    let entry = |entry: Value| {
        let text = json!({"mcpServers": {"team-table": entry}}).to_string();
        project.write(".mcp.json", &text);
    };
    entry(json!({"command": "npx", "args": ["team-table"]}));
    project.finds(
        "clients",
        "`.mcp.json` has a server `team-table` that starts `npx team-table`",
        "make its command `team-table` and its args `serve`",
    );
    entry(json!({"command": "./team-table", "args": ["serve"]}));
    project.finds(
        "clients",
        "`.mcp.json` starts `./team-table`, which is not found",
        "run `team-table init`",
    );
    entry(json!({"command": "/nowhere/team-table", "args": ["serve"]}));
    project.finds(
        "clients",
        "`.mcp.json` starts `/nowhere/team-table`, which is not there",
        "run ",
    );
    entry(json!({"command": "team-table", "args": ["serve"], "env": {"TEAM_TABLE_DB": "x.db"}}));
    project.finds("clients", "`.mcp.json` leads to another table, `x.db`", "name `");
    entry(json!({"command": "team-table", "args": ["serve", "--db-path=.agent-comms/comms.db"]}));
    project.is_well();
    entry(json!({"command": "team-table", "args": ["serve"], "disabled": true}));
    project.finds("clients", "`.mcp.json` has the server turned off", "take `enabled`");
    entry(json!({"command": "team-table", "args": ["serve"]}));
    project.write(
        ".claude/settings.json",
        r#"{"mcpServers": {"team-table": {"command": "team-table"}}}"#,
    );
    project.finds(
        "clients",
        "`.claude/settings.json` names the server, where Claude Code looks for none",
        "take it out there and run `team-table init --client claude`",
    );
}

#[test]
fn another_program_of_our_name_is_found() {
    use std::os::unix::fs::PermissionsExt as _;

    let mut project = Project::new();
    let path = project.table.variable("PATH").unwrap().to_owned();
    let other = project.table.path().join("bin/team-table");
    let own = program().parent().unwrap().display().to_string();
    let mut check = |script: &str, what: &str, todo: &str| {
        let draft = other.with_file_name("draft");
        put(&draft, script.as_bytes());
        fs::set_permissions(&draft, fs::Permissions::from_mode(0o755)).unwrap();
        copy_program(&draft, &other);
        let bin = other.parent().unwrap().display();
        project.table.set("PATH", &format!("{bin}:{path}"));
        project.finds("clients", what, todo);
    };
    check(
        "#!/bin/sh\necho team-table 0.0.1\n",
        "PATH leads to `",
        "install one version of team-table and delete the other",
    );
    check("#!/bin/sh\nexit 1\n", "PATH leads to `", "install team-table there anew");
    let without = path.replace(&own, "/nowhere");
    project.table.set("PATH", &without);
    project.finds("clients", "the clients start `team-table`, which is not on PATH", "put `");
}

#[test]
fn one_name_for_several_sessions_is_found() {
    let project = Project::new();
    project.table.ok(&["init", "--yes", "--client", "claude", "--name", "ada"]);
    project.is_well();
    let shown = project.table.ok(&["doctor"]);
    assert!(shown.contains("- `.mcp.json` gives all sessions one name, `ada`"), "{shown}");
    let mut sessions = Vec::new();
    for _ in 0..2 {
        let mut session = project.table.session(&["--name", "ada"], "claude-code", &[]);
        session.call("register", json!({}));
        sessions.push(session);
    }
    project.finds(
        "clients",
        "`.mcp.json` gives all sessions one name, `ada`, so that another became ada-2",
        "take the name out of `.mcp.json`",
    );
    drop(sessions);
    project.table.ok(&["init", "--yes", "--client", "codex", "--name", "ada"]);
    project.finds(
        "clients",
        "`.mcp.json` and `.codex/config.toml` give all sessions one name, `ada`",
        "take the name out of `.codex/config.toml`",
    );
}

/// As `init` may write them; both clients take the same.
const HOOKS: &str = r#"{"hooks": {"Stop": [{"hooks": [
    {"type": "mcp_tool", "server": "team-table", "tool": "announce"}]}]}}"#;

#[test]
fn hooks_that_do_not_run_are_found() {
    let project = Project::new();
    let shown = project.table.ok(&["doctor"]);
    assert!(shown.contains("hooks: ok\n  none are installed\n- without hooks"), "{shown}");
    project.write(".codex/hooks.json", HOOKS);
    project.finds(
        "hooks",
        "Codex has not been told to trust the hooks in `.codex/hooks.json`",
        "run `codex` here and choose `Trust all and continue`",
    );
    let file = Path::new(&project.top()).join(".codex/hooks.json").display().to_string();
    let own = format!(
        "[projects.'{}']\ntrust_level = 'trusted'\n[hooks.state.'{file}:stop:0:0']\ntrusted_hash = 'x'\n",
        project.top()
    );
    project.write(".home/.codex/config.toml", &own);
    project.is_well();
    assert!(
        project.table.ok(&["doctor"]).contains("Codex: `.codex/hooks.json` has hooks at `Stop`")
    );

    project.write(".claude/settings.json", HOOKS);
    project.is_well();
    let _agent = project.agent("claude-code");
    project.is_well();
    // It went on calling, and no hook ever ran.
    project.sql("UPDATE member SET heartbeat_at = heartbeat_at + 600000 WHERE name = 'claude-1'");
    project.finds(
        "hooks",
        "`.claude/settings.json` has hooks, but none ran in the session of claude-1",
        "end Claude Code and start it again",
    );
    project.sql(&format!("UPDATE session SET hook_at = {NOW}"));
    project.is_well();
    project.write(".claude/settings.local.json", r#"{"disableAllHooks": true}"#);
    project.finds("hooks", "Claude Code has all hooks turned off", "take `disableAllHooks` out");
}

#[test]
fn failures_of_hooks_are_shown() {
    let mut project = Project::new();
    let log =
        "2027-01-15T07:00:00Z codex Stop: first\n2027-01-15T07:59:00Z claude Stop: \u{1b}[2Jbad\n";
    project.write(".agent-comms/hook.log", log);
    let output = project.finds(
        "hooks",
        "a hook failed: `2027-01-15T07:59:00Z claude Stop: \\u{1b}[2Jbad`",
        "mend what it says, then delete `.agent-comms/hook.log`",
    );
    assert!(output.stdout.contains("codex Stop: first"), "{}", output.stdout);
    assert!(!output.stdout.contains('\u{1b}'));
    let busy = "2027-01-15T07:59:30Z claude PostToolUse: the table was busy; the next hook tells \
                what is new hint: try again\n";
    project.write(".agent-comms/hook.log", &format!("{log}{busy}"));
    project.finds("hooks", "a hook failed: `2027-01-15T07:59:00Z", "mend what it says");
    project.write(".agent-comms/hook.log", busy);
    project.is_well();
    assert!(
        project.table.ok(&["doctor"]).contains("- lately a hook said nothing, since the table")
    );
    project.write(".agent-comms/hook.log", log);
    project.later(25 * 60);
    project.is_well();
}

#[test]
fn a_message_is_followed() {
    let mut project = Project::new();
    let mut agent = project.agent("codex-mcp-client");
    project.send("codex-1");
    let follow = |project: &Project| project.table.run(&["doctor", "1"]);
    let sent = follow(&project);
    assert_eq!(sent.code, 0, "{}", sent.stdout);
    assert!(sent.stdout.contains("codex-1: queued\n- codex-1 sits there; it was sent just now"));
    project.later(2);
    let output = project.says(
        &["doctor", "1"],
        "message",
        "codex-1 sits there (active) and has not asked for it; no hook announced it (no hook yet)",
        "tell codex-1: call get_messages",
    );
    assert!(
        output.stdout.contains("#1 human to codex-1, 2 min ago\n  `hello`"),
        "{}",
        output.stdout
    );
    project.sql("UPDATE session SET announced_to = 1");
    project.says(&["doctor", "1"], "message", "codex-1 sits there (active) and has not", "tell");
    assert!(follow(&project).stdout.contains("; announced by a hook"));

    agent.call("get_messages", json!({}));
    let handed = follow(&project);
    assert_eq!(handed.code, 0, "{}", handed.stdout);
    assert!(handed.stdout.contains("codex-1: handed; handed to `codex-mcp-client`, pid "));
    agent.call("list_members", json!({}));
    project.sql("UPDATE delivery SET is_read = 1, read_at = handed_at");
    let read = follow(&project);
    assert_eq!(read.code, 0, "{}", read.stdout);
    assert!(read.stdout.contains("codex-1: read "), "{}", read.stdout);

    project.sql("UPDATE delivery SET is_read = 0, read_at = NULL");
    agent.kill9();
    let output = project.says(
        &["doctor", "1"],
        "message",
        "codex-1 is away, last seen 2 min ago; nobody sits there to read #1",
        "start codex-1 again in `",
    );
    assert!(output.stdout.contains("codex-1: unread again; handed to"), "{}", output.stdout);
    assert!(output.stdout.contains(", which has ended"), "{}", output.stdout);

    project.table.ok(&["broadcast", "--as", "human", "all of you"]);
    let output = project.table.run(&["doctor", "2"]);
    assert_eq!(output.code, 0, "{}", output.stdout);
    assert!(output.stdout.contains("- codex-1 is away, last seen 2 min ago"), "{}", output.stdout);

    project.says(
        &["doctor", "99"],
        "message",
        "there is no message #99 here, only #1 to #2",
        "run `team-table where` where it was sent",
    );
    assert_eq!(project.table.run(&["doctor", "x"]).code, 2);
}

#[test]
fn json_has_the_same_facts() {
    let mut project = Project::new();
    let _agent = project.agent("codex-mcp-client");
    project.send("codex-1");
    project.later(20);
    let output = project.table.run(&["doctor", "--json"]);
    let value: Value = serde_json::from_str(&output.stdout).unwrap();
    let keys: Vec<&String> = value.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["table", "members", "unread", "clients", "hooks", "findings", "notes"]);
    assert_eq!(output.code, 1);
    assert_eq!(
        value["findings"],
        json!([{
            "area": "unread",
            "what": "codex-1 sits there and has not asked for its mail for 20 min",
            "do": "tell codex-1: call get_messages",
        }])
    );
    assert_eq!(value["members"][1]["session"]["family"], "codex");
    assert_eq!(value["unread"][0]["direct"], json!([1]));
    assert_eq!(value["clients"][0]["is_set_up"], true);
    assert_eq!(value["table"]["faults"], json!([]));

    let value: Value =
        serde_json::from_str(&project.table.run(&["doctor", "1", "--json"]).stdout).unwrap();
    let keys: Vec<&String> = value.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["message", "table", "findings", "notes"]);
    assert_eq!(value["message"]["recipients"][0]["state"], "queued");
}

#[test]
fn without_a_home_it_is_said_that_nobody_can_tell() {
    let mut project = Project::new();
    for name in ["HOME", "USERPROFILE"] {
        project.table.set(name, "");
    }
    let shown = project.table.ok(&["doctor"]);
    assert_eq!(shown.matches("cannot tell whether it starts the server").count(), 2, "{shown}");
}

#[test]
fn a_file_that_has_no_end_is_not_waited_for() {
    let project = Project::new();
    let file = project.table.path().join(".claude/settings.json");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    crate::support::make_pipe(&file);
    let output = project.table.run(&["doctor"]);
    assert!(output.stdout.contains("it is no file"), "{}", output.stdout);
}

/// The name of a folder may be anybody's.
#[test]
fn nothing_steers_the_terminal() {
    let mut project = Project::new();
    let folder = project.table.path().join("a\u{1b}]0;x\u{7}b");
    fs::create_dir(&folder).unwrap();
    project.table.set("TEAM_TABLE_DB", &folder.join("x.db").display().to_string());
    project.table.ok(&["register", "--as", "ada"]);
    project.table.ok(&["send", "--as", "ada", "human", "hello"]);
    for args in [["doctor"].as_slice(), &["doctor", "7"]] {
        let output = project.table.run(args);
        assert!(output.stdout.contains("a\\u{1b}]0;x\\u{7}b"), "{}", output.stdout);
        assert!(!output.stdout.contains(['\u{1b}', '\u{7}']), "{}", output.stdout);
    }
}
