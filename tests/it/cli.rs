//! The command line: help, exit codes, who speaks, what goes to stdout and what to stderr.
//!
//! Most tests keep a record of commands and what came of them, and compare it with a snapshot:
//! stdout stands as it is, stderr behind `! `, an exit code other than 0 in brackets.

use std::{fmt::Write as _, fs, time::Duration};

use clap::Command;
use serde_json::json;
use team_table::{cli, tools::TABLE};

use crate::support::{Output, Table, agent::Agent};

/// What was run and what came of it.
#[derive(Default)]
struct Record(String);

impl Record {
    fn run(&mut self, table: &Table, args: &[&str]) -> Output {
        self.run_with(table, args, &[], "")
    }

    fn run_with(
        &mut self,
        table: &Table,
        args: &[&str],
        env: &[(&str, &str)],
        stdin: &str,
    ) -> Output {
        let output = table.run_with(args, env, stdin);
        let set = env.iter().map(|(name, value)| format!("{name}={value}"));
        let args = args.iter().map(|arg| {
            if arg.contains([' ', '\n']) { format!("{arg:?}") } else { (*arg).to_owned() }
        });
        let words: Vec<String> = set.chain(["team-table".to_owned()]).chain(args).collect();
        self.note(table, &words.join(" "), &output);
        output
    }

    fn note(&mut self, table: &Table, command: &str, output: &Output) {
        let _written = writeln!(self.0, "$ {command}");
        let home = table.path().display().to_string();
        for line in output.stdout.lines() {
            let _written = writeln!(self.0, "{}", line.replace(&home, "TABLE"));
        }
        for line in output.stderr.lines() {
            let _written = writeln!(self.0, "! {}", line.replace(&home, "TABLE"));
        }
        if output.code != 0 {
            let _written = writeln!(self.0, "[{}]", output.code);
        }
        self.0.push('\n');
    }

    fn say(&mut self, text: &str) {
        let _written = writeln!(self.0, "{text}\n");
    }
}

fn session(table: &Table, name: &str) -> Agent {
    let mut agent = table.agent(name);
    agent.call("heartbeat", json!({}));
    agent
}

#[test]
fn help() {
    let table = Table::new();
    let all = table.run(&["--help"]);
    assert_eq!((all.code, all.stderr.as_str()), (0, ""));
    insta::assert_snapshot!("help", all.stdout);
    for command in cli::tree().get_subcommands().map(Command::get_name) {
        let one = table.run(&[command, "--help"]);
        assert_eq!((one.code, one.stderr.as_str()), (0, ""), "{command}");
        insta::assert_snapshot!(format!("help_{command}"), one.stdout);
    }
    assert_eq!(table.ok(&["--version"]), format!("team-table {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn every_argument_has_its_help() {
    for command in cli::tree().get_subcommands() {
        for argument in command.get_arguments().filter(|it| !it.is_hide_set()) {
            let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
            assert_ne!(help, "", "{} {}", command.get_name(), argument.get_id());
        }
    }
}

/// Who slips is not led to the command that deletes everything.
#[test]
fn reset_is_never_suggested() {
    let table = Table::new();
    for slip in ["resett", "rest", "rese", "reservations", "reservation", "Reset"] {
        let output = table.run(&[slip]);
        assert_eq!(output.code, 2, "{slip}");
        assert!(!output.stderr.contains("'reset'"), "{slip}: {}", output.stderr);
    }
    let told = table.run(&["reservations"]).stderr;
    assert!(told.contains("similar subcommands exist: 'reserve', 'status'"), "{told}");
    let told = table.run(&["member"]).stderr;
    assert!(told.contains("a similar subcommand exists: 'members'"), "{told}");
}

/// Help is for who runs commands: it names those, not tools and their parameters.
#[test]
fn help_names_commands() {
    for entry in TABLE {
        let mut command = cli::tree().find_subcommand(entry.command).unwrap().clone();
        let names = TABLE.iter().map(|entry| entry.name.to_owned());
        let arguments = command.get_arguments().map(|argument| argument.get_id().to_string());
        let names: Vec<String> = names.chain(arguments).filter(|name| name.contains('_')).collect();
        let (short, long) = (command.render_help(), command.render_long_help());
        for help in [short.to_string(), long.to_string()] {
            let found = names.iter().find(|name| help.contains(name.as_str()));
            assert_eq!(found, None, "{help}");
        }
    }
}

/// Results, too, say what to run and which option to give.
#[test]
fn results_name_commands() {
    let table = Table::new();
    table.ok(&["register", "--as", "ada"]);
    table.ok(&["send", "human", "one", "--as", "ada"]);
    table.ok(&["send", "human", "two", "--as", "ada"]);
    let page = table.ok(&["inbox", "--include-read", "--limit", "1", "--as", "ada"]);
    assert!(page.contains(", older ones with --before 2\n"), "{page}");
    let many = "WITH RECURSIVE n (i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE i < 250)
                INSERT INTO member (name, kind, seatless, joined_at, heartbeat_at)
                SELECT 'somebody-with-a-long-name-' || i, 'agent', 1, joined_at, heartbeat_at
                FROM n, member WHERE name = 'ada'";
    table.write().execute_batch(many).unwrap();
    let digest = table.ok(&["register", "--as", "ada"]);
    assert!(digest.contains(" more (`team-table members`)\n"), "{digest}");
}

#[test]
fn wrong_usage() {
    let table = Table::new();
    let mut record = Record::default();
    for args in [
        &[][..],
        &["no-such"],
        &["send", "--as", "ada"],
        &["send", "bob", "--as", "ada"],
        &["send", "hello there", "--as", "ada"],
        &["send", "-", "--as", "ada"],
        &["send", "--reply-to", "1", "--as", "ada"],
        &["broadcast", "--as", "ada"],
        &["send", "bob", "hi", "more", "--as", "ada"],
        &["send", "bob", "hi", "--reply-to", "x", "--as", "ada"],
        &["show", "x", "--as", "ada"],
        &["inbox", "--limit", "many", "--as", "ada"],
        &["inbox", "--peek", "--from", "bob", "--as", "ada"],
        &["send", "bob", "hi", "--body-file", "x", "--as", "ada"],
        &["send", "bob", "--body-file", "missing", "--as", "ada"],
        &["broadcast", "hi", "--body-file", "x", "--as", "ada"],
        &["log", "--since", "yesterday"],
        &["completions", "cmd"],
        &["serve", "--transport", "telnet"],
        &["--db-path", "other.db", "init"],
    ] {
        let output = record.run(&table, args);
        assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{args:?}");
    }
    record.run_with(&table, &["status"], &[("TEAM_TABLE_LOG", "loud")], "");
    record.run_with(&table, &["status"], &[("TEAM_TABLE_MAX_PER_MINUTE", "many")], "");
    record.run_with(&table, &["status"], &[("TEAM_TABLE_NOW", "")], "");
    assert!(!table.file().exists(), "wrong usage made the table");
    insta::assert_snapshot!(record.0);
}

#[test]
fn refusals() {
    let table = Table::new();
    let mut record = Record::default();
    record.run(&table, &["register", "--as", "bob"]);
    for args in [
        &["send", "nobody", "hi", "--as", "ada"][..],
        &["send", "bob", "", "--as", "ada"],
        &["show", "99", "--as", "ada"],
        &["inbox", "--limit", "-1", "--as", "ada"],
        &["wait", "--timeout-seconds", "51", "--as", "ada"],
        &["register", "--name", "bob", "--as", "ada"],
        &["leave", "--as", "human"],
    ] {
        let output = record.run(&table, args);
        assert_eq!((output.code, output.stdout.as_str()), (1, ""), "{args:?}");
    }
    insta::assert_snapshot!(record.0);
}

#[test]
fn a_conversation() {
    let table = Table::new();
    let mut record = Record::default();
    record.run(&table, &["status"]);
    record.run(&table, &["log"]);
    record.run(&table, &["reset"]);
    record.run(&table, &["members", "--as", "ada"]);
    record.run(&table, &["inbox", "--as", "human"]);
    record.run(
        &table,
        &["register", "--as", "ada", "--role", "writer", "--capabilities", "rust,sql"],
    );
    record.run(&table, &["send", "ada", "May I?", "--as", "bob"]);
    record.run(&table, &["send", "human", "-", "--as", "bob"]);
    record.run_with(&table, &["send", "human", "-", "--as", "bob"], &[], "`x`\n$HOME\n");
    record.run(&table, &["inbox", "--peek", "--as", "ada"]);
    record.run(&table, &["inbox", "--as", "ada"]);
    record.run(&table, &["inbox", "--as", "ada"]);
    record.run(&table, &["send", "--reply-to", "#1", "Yes.", "--as", "ada"]);
    record.run(&table, &["show", "#1", "--as", "bob"]);
    record.run(&table, &["wait", "--timeout-seconds", "0", "--as", "bob"]);
    let nothing = record.run(&table, &["wait", "--timeout-seconds", "0", "--as", "bob"]);
    assert_eq!(nothing.code, 1);
    record.run(&table, &["heartbeat", "the lexer", "--as", "bob"]);
    record.run(&table, &["broadcast", "Done.", "--as", "bob"]);
    record.run(&table, &["members", "--include-left", "--as", "bob"]);
    record.run(&table, &["log"]);
    record.run(&table, &["log", "--since", "1h"]);
    record.run(&table, &["log", "--since", "2030-01-01"]);
    record.run(&table, &["where"]);
    let status = table.ok(&["status"]);
    record.say(
        status
            .rsplit_once(" (")
            .unwrap()
            .0
            .replace(&*table.path().to_string_lossy(), "TABLE")
            .as_str(),
    );
    insta::assert_snapshot!(record.0);
}

#[test]
fn bodies_from_files_and_stdin() {
    let table = Table::new();
    let body = "first `line`\r\n\n$(rm -rf /)\t\u{1b}[31m\n";
    let path = table.path().join("body.txt");
    #[expect(clippy::disallowed_methods, reason = "a file of a temporary folder")]
    fs::write(&path, body).unwrap();
    table.ok(&["register", "--as", "ada"]);
    table.ok(&["send", "human", "--body-file", "body.txt", "--as", "ada"]);
    assert_eq!(table.run_with(&["send", "human", "-", "--as", "ada"], &[], body).code, 0);
    table.ok(&["send", "human", body, "--as", "ada"]);
    table.ok(&["broadcast", "--body-file", "body.txt", "--as", "ada"]);
    let inbox = table.json(&["inbox", "--as", "human"]);
    let bodies: Vec<&str> = inbox["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["body"].as_str().unwrap())
        .collect();
    assert_eq!(bodies, [body; 4]);
    #[expect(clippy::disallowed_methods, reason = "a file of a temporary folder")]
    fs::write(&path, [0xff, 0xfe]).unwrap();
    let output = table.run(&["send", "human", "--body-file", "body.txt", "--as", "ada"]);
    assert_eq!(output.code, 2, "{output:?}");
    // A text from a file as an answer, and with nobody to go to.
    #[expect(clippy::disallowed_methods, reason = "a file of a temporary folder")]
    fs::write(&path, body).unwrap();
    table.ok(&["send", "--reply-to", "1", "--body-file", "body.txt", "--as", "ada"]);
    let output = table.run(&["send", "--body-file", "body.txt", "--as", "ada"]);
    assert_eq!(output.code, 1, "{output:?}");
}

#[test]
fn json_of_every_tool_is_one_document() {
    let table = Table::new();
    table.ok(&["register", "--as", "bob"]);
    table.ok(&["send", "bob", "hi", "--as", "ada"]);
    table.ok(&["send", "ada", "hi", "--as", "bob"]);
    let mut record = String::new();
    for entry in TABLE {
        let args: &[&str] = match entry.command {
            "send" => &["send", "bob", "one\ntwo"],
            "broadcast" => &["broadcast", "hello"],
            "heartbeat" => &["heartbeat", "busy"],
            "show" => &["show", "1"],
            "create-task" => &["create-task", "one", "--priority", "high"],
            "update-task" => &["update-task", "T1", "--status", "done", "--comment", "as said"],
            "wait" => &["wait", "--timeout-seconds", "0"],
            "share" => &["share", "api/login", "POST /login"],
            "reserve" => &["reserve", "src/**", "Cargo.toml"],
            command => &[command],
        };
        let args = [args, &["--as", "ada", "--json"]].concat();
        if entry.command == "leave" {
            continue;
        }
        if entry.command == "wait" {
            table.ok(&["send", "ada", "again", "--as", "bob"]);
        }
        let output = table.run(&args);
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{args:?}");
        let json: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
        let _written = writeln!(record, "$ {}\n{json:#}", args.join(" "));
    }
    let left = table.json(&["leave", "--as", "ada"]);
    let _written = writeln!(record, "$ leave --as ada --json\n{left:#}");
    for args in [&["status"][..], &["where"]] {
        assert!(table.json(args).is_object(), "{args:?}");
    }
    for line in table.ok(&["log", "--json"]).lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
    // A refusal is no document: it goes to stderr, with its exit code.
    let refused = table.run(&["send", "nobody", "hi", "--as", "ada", "--json"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (1, ""));
    insta::assert_snapshot!(record);
}

#[test]
fn nothing_new_is_exit_code_1_with_its_json() {
    let table = Table::new();
    table.ok(&["register", "--as", "ada"]);
    let output = table.run(&["wait", "--timeout-seconds", "0", "--as", "ada", "--json"]);
    assert_eq!(output.code, 1);
    let json: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(json["messages"], json!([]));
}

#[test]
fn who_speaks() {
    let table = Table::new();
    let mut record = Record::default();
    let _ada = session(&table, "ada");
    let mut claude = table.session(&[], "claude-code", &[("CLAUDE_CODE_SESSION_ID", "key-1")]);
    claude.call("heartbeat", json!({}));

    record.say("-- neither a terminal nor a name");
    record.run(&table, &["members"]);
    record.run(&table, &["send", "ada", "hi"]);
    record.say("-- an agent's shell that cannot be told");
    for name in ["CLAUDECODE", "AI_AGENT", "GEMINI_CLI", "OPENCODE", "CODEX_SANDBOX", "COPILOT_CLI"]
    {
        let output = record.run_with(&table, &["send", "ada", "hi"], &[(name, "1")], "");
        assert_eq!(output.code, 2, "{name}");
    }
    record.say("-- the shell of a session that sits here");
    let shell = [("CLAUDECODE", "1"), ("CLAUDE_CODE_SESSION_ID", "key-1")];
    record.run_with(&table, &["send", "ada", "from my shell"], &shell, "");
    record.run_with(&table, &["members"], &shell, "");
    record.run(&table, &["send", "claude-1", "for you", "--as", "human"]);
    record.run_with(&table, &["inbox"], &shell, "");
    record.say(&format!("-- and over MCP: {}", claude.call("get_messages", json!({})).text));
    record.run_with(&table, &["leave"], &shell, "");
    record.run_with(&table, &["register", "--name", "other"], &shell, "");
    record.say("-- the shell of a session that is not here");
    let unknown = [("CLAUDE_CODE_SESSION_ID", "key-2")];
    record.run_with(&table, &["send", "ada", "hi"], &unknown, "");
    record.run_with(&table, &["send", "ada", "hi"], &[("CODEX_THREAD_ID", "key-1")], "");
    record.say("-- a name whose seat is taken: looking is allowed");
    for args in [
        &["send", "human", "as if", "--as", "ada"][..],
        &["broadcast", "as if", "--as", "ADA"],
        &["inbox", "--as", "ada"],
        &["wait", "--timeout-seconds", "0", "--as", "ada"],
        &["register", "--as", "ada"],
        &["heartbeat", "--as", "ada"],
        &["leave", "--as", "ada"],
    ] {
        let output = record.run(&table, args);
        assert_eq!((output.code, output.stdout.as_str()), (1, ""), "{args:?}");
    }
    for args in [
        &["inbox", "--peek", "--as", "ada"][..],
        &["inbox", "--include-read", "--as", "ada"],
        &["members", "--as", "ada"],
        &["show", "1", "--as", "ada"],
    ] {
        let output = record.run(&table, args);
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{args:?}");
    }
    record.say("-- a look at a name that nobody has makes no member");
    record.run(&table, &["members", "--as", "nobody"]);
    let record = without_places(&record.0);
    insta::assert_snapshot!(record);
}

/// Who only looks, or changes what has to be there, makes no table.
#[test]
fn looking_makes_no_table() {
    let table = Table::new();
    fs::remove_dir(table.path().join(".agent-comms")).unwrap();
    let mut record = Record::default();
    for args in [
        &["members", "--as", "human"][..],
        &["inbox", "--as", "human"],
        &["inbox", "--as", "human", "--json"],
        &["tasks", "--as", "human"],
        &["context", "--as", "ada"],
        &["show", "1", "--as", "human"],
        &["status"],
    ] {
        let output = record.run(&table, args);
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{args:?}");
    }
    for args in [
        &["wait", "--as", "human"][..],
        &["send", "ada", "hi", "--as", "human"],
        &["send", "human", "hi", "--as", "ada"],
        &["claim", "T1", "--as", "ada"],
        &["heartbeat", "--as", "human"],
        &["leave", "--as", "ada"],
    ] {
        assert_eq!(record.run(&table, args).code, 1, "{args:?}");
    }
    assert!(!table.path().join(".agent-comms").exists());
    insta::assert_snapshot!(record.0);
    table.ok(&["share", "key", "value", "--as", "ada"]);
    assert!(table.file().is_file());
}

/// A slip in `--as` makes no member, except where something begins with the command.
#[test]
fn names_that_nobody_has() {
    let table = Table::new();
    table.ok(&["register", "--as", "ada"]);
    let before = table.stored();
    let mut record = Record::default();
    for args in [
        &["inbox", "--as", "adda"][..],
        &["inbox", "--peek", "--as", "adda"],
        &["wait", "--timeout-seconds", "0", "--as", "adda"],
        &["heartbeat", "busy", "--as", "somebody"],
        &["leave", "--as", "nobody"],
        &["release", "--as", "adda"],
        &["tasks", "--as", "humn"],
    ] {
        let output = record.run(&table, args);
        assert_eq!((output.code, output.stdout.as_str()), (1, ""), "{args:?}");
    }
    assert_eq!(table.stored(), before);
    let seats = fs::read_dir(table.path().join(".agent-comms/seats")).unwrap();
    let seats: Vec<String> =
        seats.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    assert!(!seats.iter().any(|seat| seat.contains("adda")), "{seats:?}");
    record.run(&table, &["send", "human", "the build is red", "--as", "ci-bot"]);
    record.run(&table, &["inbox", "--as", "ci-bot"]);
    insta::assert_snapshot!(record.0);
}

#[test]
fn texts_that_begin_with_a_dash() {
    let table = Table::new();
    let bodies = ["- one\n- two", "-\tx", "-5 degrees", "-1", "-x", "--flag", "--"];
    table.ok(&["register", "--as", "ada"]);
    for body in &bodies[..4] {
        table.ok(&["send", "human", body, "--as", "ada"]);
    }
    for body in &bodies[4..] {
        table.ok(&["send", "human", "--as", "ada", "--", body]);
    }
    table.ok(&["send", "--reply-to", "1", "- an answer", "--as", "ada"]);
    table.ok(&["broadcast", "- to all", "--as", "ada"]);
    let inbox = table.json(&["inbox", "--as", "human"]);
    let messages = inbox["messages"].as_array().unwrap();
    let found: Vec<&str> = messages.iter().map(|it| it["body"].as_str().unwrap()).collect();
    assert_eq!(found, [&bodies[..], &["- an answer", "- to all"]].concat());
}

/// A mistyped option is no text.
#[test]
fn mistyped_options() {
    let table = Table::new();
    table.ok(&["register", "--as", "ada"]);
    let before = table.stored();
    let mut record = Record::default();
    for args in [
        &["send", "human", "--jsn"][..],
        &["send", "--jsn", "hi"],
        &["send", "human", "- an item", "--jsn"],
        &["send", "human", "-x"],
        &["broadcast", "--jsn"],
        &["share", "k", "--versoin"],
        &["create-task", "--prio"],
        &["create-task", "one", "--description", "--prio", "high"],
        &["update-task", "T1", "--coment", "- a list"],
        &["heartbeat", "--clear"],
    ] {
        let args = [args, &["--as", "ada"]].concat();
        let output = record.run(&table, &args);
        assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{args:?}");
    }
    assert_eq!(table.stored(), before);
    insta::assert_snapshot!(record.0);
}

/// Commands that speak as the same member at once wait for each other, also where they have to make
/// the table first.
#[test]
fn commands_of_one_member_at_once() {
    for _ in 0..4 {
        let table = Table::new();
        let outputs: Vec<Output> = std::thread::scope(|scope| {
            let run = || table.run(&["broadcast", "hi", "--as", "ci"]);
            let threads: Vec<_> = (0..12).map(|_| scope.spawn(run)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        for output in &outputs {
            assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
        }
        let inbox = table.json(&["inbox", "--as", "human"]);
        assert_eq!(inbox["messages"].as_array().unwrap().len(), 12);
    }
}

/// The same where a session sat on the member's seat before.
#[test]
fn commands_of_a_member_that_was_a_session_at_once() {
    let table = Table::new();
    session(&table, "ada").call("heartbeat", json!({}));
    table.ok(&["members", "--as", "ada"]);
    let codes: Vec<Output> = std::thread::scope(|scope| {
        let run = || table.run(&["send", "human", "hi", "--as", "ada"]);
        let threads: Vec<_> = (0..12).map(|_| scope.spawn(run)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for output in &codes {
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
    }
}

/// A client that only probes leaves no trace.
#[test]
fn serve_without_a_client() {
    let table = Table::new();
    let output = table.run(&["serve"]);
    assert_eq!(output, Output { code: 0, stdout: String::new(), stderr: String::new() });
    let comms = fs::read_dir(table.path().join(".agent-comms")).unwrap();
    assert_eq!(comms.count(), 0);
}

#[test]
fn wait_ends_with_a_message() {
    let table = Table::new();
    table.ok(&["register", "--as", "ada"]);
    std::thread::scope(|scope| {
        let waiting =
            scope.spawn(|| table.run(&["wait", "--timeout-seconds", "30", "--as", "ada"]));
        // Whether it waits already or not: it must come.
        table.ok(&["send", "ada", "hi", "--as", "bob"]);
        let output = waiting.join().unwrap();
        assert_eq!(output.code, 0, "{output:?}");
        assert_eq!(output.stdout, "1 message\n#1 bob to you, just now\n| hi\n");
    });
}

/// Where a session runs differs from run to run.
fn without_places(record: &str) -> String {
    let lines: Vec<&str> = record
        .lines()
        .map(|line| {
            let place = line.find("` in `").and_then(|place| line[..place].rfind("; `"));
            &line[..place.unwrap_or(line.len())]
        })
        .collect();
    lines.join("\n")
}

/// A reader that is gone ends a command quietly, and what it did not get is not read.
#[test]
fn broken_pipes() {
    let table = Table::new();
    table.ok(&["register", "--as", "ada"]);
    table.ok(&["send", "ada", "hi", "--as", "bob"]);
    for args in [
        &["inbox", "--as", "ada"][..],
        &["inbox", "--as", "ada", "--json"],
        &["members", "--as", "ada"],
        &["log"],
        &["status"],
        &["where"],
        &["completions", "bash"],
        &["--help"],
        &["send", "--help"],
        &["--version"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = table
            .command(&[])
            .args(args)
            .stdin(std::process::Stdio::null())
            .stdout(writer)
            .output();
        let output = output.unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), stderr.as_str()), (Some(0), ""), "{args:?}");
    }
    let inbox = table.json(&["inbox", "--as", "ada"]);
    assert_eq!(inbox["messages"][0]["body"], "hi", "{inbox}");
}

#[test]
fn busy_is_exit_code_3() {
    let table = Table::new();
    table.ok(&["register", "--as", "ada"]);
    let holder = table.write();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let before = table.stored();
    let mut record = Record::default();
    let output = record.run(&table, &["send", "human", "hi", "--as", "ada"]);
    assert_eq!((output.code, output.stdout.as_str()), (3, ""));
    // Who only looks is not in anybody's way.
    assert_eq!(table.run(&["members", "--as", "ada"]).code, 0);
    holder.execute_batch("ROLLBACK").unwrap();
    assert_eq!(table.stored(), before);
    table.ok(&["send", "human", "hi", "--as", "ada"]);
    insta::assert_snapshot!(record.0);
}

#[test]
fn a_fault_of_ours_is_exit_code_70() {
    // Release builds heed no faults.
    if !cfg!(debug_assertions) {
        return;
    }
    let table = Table::new();
    table.ok(&["register", "--as", "ada"]);
    let before = table.stored();
    let fault = [("TEAM_TABLE_FAULT", "after_insert:panic")];
    let output = table.run_with(&["send", "human", "hi", "--as", "ada"], &fault, "");
    assert_eq!((output.code, output.stdout.as_str()), (70, ""));
    let ours: Vec<&str> = output.stderr.lines().filter(|line| line.starts_with("error")).collect();
    assert_eq!(ours, ["error: send_message failed; nothing was stored, and the server goes on"]);
    assert_eq!(table.stored(), before);
}

#[test]
fn tables_that_cannot_be_used() {
    let mut record = Record::default();
    let table = Table::new();
    #[expect(clippy::disallowed_methods, reason = "a file of a temporary folder")]
    fs::write(table.file(), "this is not a database, and long enough to be looked at").unwrap();
    record.run(&table, &["status"]);
    record.run(&table, &["register", "--as", "ada"]);
    record.run(&table, &["reset"]);

    let table = Table::new();
    let other = rusqlite::Connection::open_with_flags(
        table.file(),
        rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE | rusqlite::OpenFlags::SQLITE_OPEN_CREATE,
    )
    .unwrap();
    other.execute_batch("CREATE TABLE recipes (name TEXT)").unwrap();
    record.run(&table, &["register", "--as", "ada"]);

    let table = Table::new();
    table.ok(&["register", "--as", "ada"]);
    let newer = table.write();
    newer.pragma_update(None, "user_version", 7_000).unwrap();
    record.run(&table, &["inbox", "--as", "ada"]);
    let mut agent = table.agent("bob");
    let reply = agent.call("register", json!({}));
    assert!(reply.is_error);
    let home = table.path().display().to_string();
    record.say(&format!("-- over MCP: {}", reply.text.replace(&home, "TABLE")));

    let table = Table::new();
    record.run(&table, &["--db-path", "no/such/folder/x.db", "register", "--as", "ada"]);
    record.run(&table, &["register", "--as", "ada", "--db-path", "."]);
    insta::assert_snapshot!(record.0);
}

#[test]
fn another_file_by_flag_and_by_variable() {
    let table = Table::new();
    table.ok(&["register", "--as", "ada", "--db-path", "other.db"]);
    let made = table.path().join("other.db");
    assert!(made.is_file() && !table.file().exists());
    let other = [("TEAM_TABLE_DB", made.to_str().unwrap())];
    let output = table.run_with(&["members", "--as", "ada"], &other, "");
    assert!(output.stdout.contains("ada"), "{output:?}");
    assert!(table.path().join("other.db.seats").is_dir());
    assert!(table.ok(&["members", "--as", "ada"]).starts_with("no table here yet: "));
}

#[test]
fn completions_name_all_commands() {
    let table = Table::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = table.ok(&["completions", shell]);
        for command in cli::tree().get_subcommands().map(Command::get_name) {
            assert!(script.contains(command), "{shell} does not complete {command}");
        }
    }
}

#[test]
fn reset_without_sessions() {
    let table = Table::new();
    let mut record = Record::default();
    table.ok(&["register", "--as", "ada"]);
    table.ok(&["send", "human", "one", "--as", "ada"]);
    table.ok(&["send", "human", "two", "--as", "ada"]);
    table.ok(&["create-task", "one", "--as", "ada"]);
    table.ok(&["share", "key", "value", "--as", "ada"]);
    table.ok(&["reserve", "src/**", "--as", "ada"]);
    record.run(&table, &["reset", "--backup", "copy.db"]);
    record.run(&table, &["members", "--as", "human"]);
    record.run(&table, &["inbox", "--as", "human"]);
    record.say("-- numbers go on");
    record.run(&table, &["send", "human", "three", "--as", "ada"]);
    record.run(&table, &["log"]);
    record.say("-- a backup never overwrites");
    record.run(&table, &["reset", "--backup", "copy.db"]);
    record.say("-- the backup is a table, and as private as the other");
    #[cfg(unix)]
    {
        let copy = fs::metadata(table.path().join("copy.db")).unwrap();
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&copy.permissions()) & 0o777, 0o600);
    }
    record.run(&table, &["inbox", "--as", "human", "--db-path", "copy.db"]);
    insta::assert_snapshot!(record.0);
}

#[test]
fn reset_waits_for_a_foreign_program() {
    let table = Table::new();
    table.ok(&["register", "--as", "ada"]);
    let holder = table.write();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let output = table.run(&["reset", "--backup", "copy.db"]);
    assert_eq!(output.code, 3, "{output:?}");
    assert!(!table.path().join("copy.db").exists(), "a copy of what was not reset is left");
    std::thread::scope(|scope| {
        let reset = scope.spawn(|| table.run(&["reset", "--backup", "copy.db"]));
        std::thread::sleep(Duration::from_millis(400));
        holder.execute_batch("ROLLBACK").unwrap();
        let output = reset.join().unwrap();
        assert_eq!(output.code, 0, "{output:?}");
    });
    assert!(table.path().join("copy.db").exists());
}

#[test]
fn reset_with_sessions() {
    let table = Table::new();
    let mut record = Record::default();
    let mut ada = session(&table, "ada");
    let mut bob = session(&table, "bob");
    ada.call("send_message", json!({"recipient": "bob", "content": "one"}));
    let before = table.rows();
    assert_eq!(record.run(&table, &["reset"]).code, 1);
    assert_eq!(record.run(&table, &["reset", "--yes"]).code, 1);
    assert_eq!(table.rows(), before, "a refused reset changed something");
    assert_eq!(record.run(&table, &["reset", "--force"]).code, 0);
    for (agent, tool, arguments) in [
        (&mut ada, "send_message", json!({"recipient": "human", "content": "two"})),
        (&mut bob, "get_messages", json!({})),
    ] {
        record.say(&format!("-- {tool}\n{}", agent.call(tool, arguments).text));
    }
    record.say(&format!("-- and then\n{}", ada.call("heartbeat", json!({})).text));
    insta::assert_snapshot!(record.0);
}

/// The changes of the shared context are counted anew, also for who goes on.
#[test]
fn a_reset_hides_no_change_of_the_context() {
    let table = Table::new();
    let mut ada = session(&table, "ada");
    for n in 1..=3 {
        table.ok(&["share", &format!("old-{n}"), "value", "--as", "bob"]);
    }
    ada.call("register", json!({}));
    table.ok(&["reset", "--force"]);
    ada.call("register", json!({}));
    table.ok(&["share", "new", "value", "--as", "bob"]);
    let reply = ada.call("register", json!({}));
    assert!(reply.text.contains("shared context changed: `new`"), "{}", reply.text);
}

/// The folder is deleted by hand under a session: it makes a new table and keeps its name.
#[test]
fn the_folder_is_deleted_by_hand() {
    let table = Table::new();
    let mut ada = session(&table, "ada");
    ada.call("send_message", json!({"recipient": "human", "content": "one"}));
    fs::remove_dir_all(table.path().join(".agent-comms")).unwrap();
    let reply = ada.call("list_members", json!({}));
    assert!(!reply.is_error, "{}", reply.text);
    assert!(
        reply.text.starts_with("the table is a new one; you are still `ada`"),
        "{}",
        reply.text
    );
    let output = table.run(&["send", "human", "as if", "--as", "ada"]);
    assert_eq!(output.code, 1, "the seat is held in the new folder too: {output:?}");
}

// ---- with a terminal ----

/// Runs a command on a terminal made by `script` of util-linux; `None` where that is missing.
fn on_a_terminal(
    table: &Table,
    args: &[&str],
    env: &[(&str, &str)],
    typed: &str,
) -> Option<(i32, String)> {
    on_a_terminal_while(table, args, env, typed, || ())
}

/// As [`on_a_terminal`]; what is typed answers a question, and `when_asked` runs before.
fn on_a_terminal_while(
    table: &Table,
    args: &[&str],
    env: &[(&str, &str)],
    typed: &str,
    when_asked: impl FnOnce(),
) -> Option<(i32, String)> {
    let program = crate::support::program().display();
    let line = format!("{program} {}", args.join(" "));
    let mut command = std::process::Command::new("script");
    let ours = table.command(env);
    command.env_clear().current_dir(table.path());
    command.envs(ours.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env("SHELL", "/bin/sh").env("TERM", "dumb");
    command.args(["-qec", &line, "/dev/null"]);
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    command.stderr(std::process::Stdio::piped());
    let spawned = if cfg!(target_os = "linux") { command.spawn().ok() } else { None };
    let Some(mut child) = spawned else {
        // Not `println!`: that is shown for tests that fail only.
        let skipped = "skipped: there is no `script` of util-linux to make a terminal\n";
        std::io::Write::write_all(&mut std::io::stderr(), skipped.as_bytes()).unwrap();
        return None;
    };
    // The end of stdin would be typed as Ctrl-D.
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut shown = Vec::new();
    if !typed.is_empty() {
        while !shown.ends_with(b"[y/N] ") {
            let mut byte = [0];
            std::io::Read::read_exact(&mut stdout, &mut byte).unwrap();
            shown.push(byte[0]);
        }
        when_asked();
        std::io::Write::write_all(&mut stdin, typed.as_bytes()).unwrap();
    }
    std::io::Read::read_to_end(&mut stdout, &mut shown).unwrap();
    let status = child.wait().unwrap();
    drop(stdin);
    let text = String::from_utf8_lossy(&shown).replace("\r\n", "\n");
    Some((status.code().unwrap_or(-1), text))
}

#[test]
fn on_a_terminal_i_am_human() {
    let table = Table::new();
    table.ok(&["register", "--as", "ada"]);
    let Some((code, text)) = on_a_terminal(&table, &["send", "ada", "hello"], &[], "") else {
        return;
    };
    assert_eq!((code, text.as_str()), (0, "sent #1 to ada: active, nothing unread before it\n"));
    let inbox = table.json(&["inbox", "--as", "ada"]);
    assert_eq!(inbox["messages"][0]["from"], "human");
    // In an agent's shell a terminal proves nothing.
    let (code, text) =
        on_a_terminal(&table, &["send", "ada", "hello"], &[("CLAUDECODE", "1")], "").unwrap();
    assert_eq!(code, 2);
    assert!(text.starts_with("error: CLAUDECODE is set"), "{text}");
}

#[test]
fn on_a_terminal_reset_asks() {
    let table = Table::new();
    table.ok(&["register", "--as", "ada"]);
    table.ok(&["send", "human", "one", "--as", "ada"]);
    let Some((code, text)) = on_a_terminal(&table, &["reset"], &[], "n\n") else { return };
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("Delete 1 member, 1 message and the log, for good"), "{text}");
    assert!(text.ends_with("error: nothing was reset\n"), "{text}");
    let (code, text) = on_a_terminal(&table, &["reset"], &[], "y\n").unwrap();
    assert_eq!(code, 0, "{text}");
    let (code, text) = on_a_terminal(&table, &["reset", "--yes"], &[], "").unwrap();
    assert_eq!(code, 0, "{text}");
    assert!(!text.contains("Delete "), "{text}");
}

/// A session that sits down while the person thinks is not swept away.
#[test]
fn a_reset_looks_again_behind_its_question() {
    let table = Table::new();
    table.ok(&["register", "--as", "bob"]);
    let mut ada = None;
    let sit = || {
        let mut session = session(&table, "ada");
        session.call("send_message", json!({"recipient": "bob", "content": "two"}));
        ada = Some(session);
    };
    let Some((code, text)) = on_a_terminal_while(&table, &["reset"], &[], "y\n", sit) else {
        return;
    };
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("error: sessions are connected: ada"), "{text}");
    assert!(table.ok(&["inbox", "--as", "bob"]).contains("| two"));
}

/// `log -f` shows what happens while it runs, and ends with its reader.
#[test]
fn log_follows() {
    let table = Table::new();
    table.ok(&["register", "--as", "ada"]);
    let mut child = table
        .command(&[])
        .args(["log", "-f", "--json"])
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let stdout = child.stdout.take().unwrap();
    let mut child = Killed(child);
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(stdout));
    let first: serde_json::Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(first["kind"], "member.joined");
    table.ok(&["send", "human", "live", "--as", "ada"]);
    let body = lines.find_map(|line| {
        let line: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
        line["message"]["body"].as_str().map(str::to_owned)
    });
    assert_eq!(body.as_deref(), Some("live"));
    drop(lines);
    // It finds out with the next thing that it has to say.
    table.ok(&["send", "human", "to nobody", "--as", "ada"]);
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    let status = loop {
        if let Some(status) = child.0.try_wait().unwrap() {
            break status;
        }
        assert!(std::time::Instant::now() < deadline, "`log -f` outlives its reader");
        std::thread::sleep(Duration::from_millis(5));
    };
    assert_eq!(status.code(), Some(0));
}

/// A process that does not outlive its test.
struct Killed(std::process::Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // It has ended by itself, as a rule.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Messages, tasks and changes are read page by page, and shown in one order, each once.
#[test]
fn a_long_log_is_shown_whole_and_in_order() {
    let table = Table::new();
    table.ok(&["register", "--as", "ada"]);
    table.ok(&["send", "human", "hello", "--as", "ada"]);
    table.ok(&["create-task", "one", "--as", "ada"]);
    table
        .write()
        .execute_batch(
            "DELETE FROM event;
             UPDATE message SET sent_at = 1001;
             UPDATE task SET created_at = 1001;
             WITH RECURSIVE n (i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 600)
             INSERT INTO task (title, creator_id, created_by, created_at, updated_at, moved_by, moved_at)
             SELECT title, creator_id, 'ada', 1000 + i, 0, 'ada', 0 FROM task, n WHERE id = 1;
             WITH RECURSIVE n (i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 1100)
             INSERT INTO message (id, sender_id, kind, audience, recipient_id, thread_id, body, sent_at)
             SELECT i, sender_id, kind, audience, recipient_id, i, body, 1000 + i FROM message, n
             WHERE id = 1;
             WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 700)
             INSERT INTO event (at, actor, kind, detail)
             SELECT 1000 + 3 * i, 'ada', 'message.handed', '#1' FROM n;",
        )
        .unwrap();
    let shown = |args: &[&str]| -> Vec<serde_json::Value> {
        let lines = table.ok(&[&["log", "--json"], args].concat());
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let lines = shown(&[]);
    assert_eq!(lines.len(), 2_400);
    let of = |kind: &str| {
        let ids = lines.iter().filter(|line| line["kind"] == kind);
        ids.map(|line| line["id"].as_str().unwrap().to_owned()).collect::<Vec<String>>()
    };
    assert!(of("message.sent").into_iter().eq((1..=1100).map(|id| format!("#{id}"))));
    assert!(of("task.created").into_iter().eq((1..=600).map(|id| format!("T{id}"))));
    assert!(of("message.handed").into_iter().eq((1..=700).map(|id| id.to_string())));
    assert!(lines.is_sorted_by_key(|line| line["at"].to_string()));
    assert_eq!(shown(&["--since", "1970-01-01T00:00:02Z"]).len(), 101 + 367);
}
