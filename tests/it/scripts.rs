//! Transcripts: `scripts/*.txt`, each played three ways and compared with the file.
//!
//! ```text
//! # what this is about
//! # only process, mcp: why the other way cannot play it
//! # with TEAM_TABLE_MAX_PER_MINUTE=3
//! ada> send {"recipient":"bob","content":"hi"}
//! what the program answers, line by line
//! -- a remark
//! (ada ends)
//! (20 min pass)
//! ```
//!
//! The ways: **process**, through `team_table::tools` with a desk for each speaker; **commands**, as
//! `team-table send bob hi --as ada`; **mcp**, with a `serve --name ada` for each speaker. `human` is
//! a command in each of them. A speaker called `codex-mcp-client/1` is a session of that client that
//! wishes for no name. Clocks stand still: time that passes shows only for sessions that begin
//! later, and for commands. `UPDATE=1` writes what the first way answers into the files.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::{Map, Value};
use team_table::{
    commands,
    domain::name::{self, MemberName},
    tools::Entry,
    view::text::Front,
};

use crate::support::{NOW, Table, agent::Agent, desk::InProcess};

#[test]
fn transcripts_are_the_same_in_process_as_commands_and_over_mcp() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/scripts");
    let mut paths: Vec<PathBuf> =
        fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "no transcripts in {}", folder.display());
    let failures: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            paths.iter().map(|path| scope.spawn(move || check_file(path))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// One transcript in the code, for a look with a debugger.
#[test]
fn smoke() {
    let failures = check(
        "smoke",
        r#"
ada> register {}
you are `ada`; no other agent is here yet
no unread messages
bob> register {}
you are `bob`; also here: human (away, not seen yet), ada (active)
no unread messages
ada> send {"recipient":"bob","content":"hi"}
sent #1 to bob: active, nothing unread before it
bob> inbox {}
1 message
#1 ada to you, just now
| hi
"#,
    );
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

fn check_file(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap();
    if asks_for_update() {
        let script = Script::parse(&text);
        let played = script.play(script.ways[0]);
        #[expect(clippy::disallowed_methods, reason = "a file of this checkout, not of a user")]
        fs::write(path, script.text_with(&played)).unwrap();
        return Vec::new();
    }
    check(&path.file_name().unwrap().to_string_lossy(), &text)
}

/// Plays a transcript every way that it allows; gives what differs.
fn check(name: &str, text: &str) -> Vec<String> {
    let script = Script::parse(text);
    let mut failures = Vec::new();
    for way in &script.ways {
        let played = script.play(*way);
        let steps = script.steps.iter().filter(|step| matches!(step.act, Act::Say { .. }));
        for (step, answer) in steps.zip(&played) {
            let expected = way.adapt(&step.expected);
            if way.adapt(answer) != expected {
                let line = &step.line;
                failures.push(format!(
                    "{name}, {way:?}: {line}\n--- expected\n{expected}\n--- answered\n{answer}"
                ));
            }
        }
    }
    failures
}

#[expect(clippy::disallowed_methods, reason = "a switch for whoever runs the tests")]
fn asks_for_update() -> bool {
    std::env::var_os("UPDATE").is_some_and(|value| value == "1")
}

// ---- the file ----

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Process,
    Commands,
    Mcp,
}

struct Script {
    head: Vec<String>,
    ways: Vec<Way>,
    env: Vec<(String, String)>,
    steps: Vec<Step>,
}

struct Step {
    /// As it stands in the file.
    line: String,
    act: Act,
    expected: String,
}

enum Act {
    Say { speaker: String, command: String, arguments: Map<String, Value> },
    End { speaker: String },
    Pass { minutes: i64 },
    Remark,
}

impl Script {
    fn parse(text: &str) -> Script {
        let mut script = Script {
            head: Vec::new(),
            ways: vec![Way::Process, Way::Commands, Way::Mcp],
            env: Vec::new(),
            steps: Vec::new(),
        };
        for line in text.lines() {
            if let Some(act) = Act::parse(line) {
                let step = Step { line: line.to_owned(), act, expected: String::new() };
                script.steps.push(step);
            } else if let Some(step) = script.steps.last_mut() {
                assert!(!matches!(step.act, Act::Remark), "an answer behind a remark: {line}");
                step.expected.push_str(line);
                step.expected.push('\n');
            } else {
                script.read_head(line);
                script.head.push(line.to_owned());
            }
        }
        script
    }

    fn read_head(&mut self, line: &str) {
        if let Some(only) = line.strip_prefix("# only ") {
            let (ways, reason) = only.split_once(": ").expect("`# only WAYS: why`");
            assert!(!reason.is_empty(), "{line}");
            self.ways = ways
                .split(", ")
                .map(|way| match way {
                    "process" => Way::Process,
                    "commands" => Way::Commands,
                    "mcp" => Way::Mcp,
                    other => panic!("there is no way called {other}"),
                })
                .collect();
        }
        if let Some((name, value)) =
            line.strip_prefix("# with ").and_then(|line| line.split_once('='))
        {
            self.env.push((name.to_owned(), value.to_owned()));
        }
    }

    /// The answers to all that is said, in order.
    fn play(&self, way: Way) -> Vec<String> {
        let mut stage = Stage::new(way, &self.env);
        let mut answers = Vec::new();
        for step in &self.steps {
            match &step.act {
                Act::Say { speaker, command, arguments } => {
                    answers.push(plain(&stage.say(speaker, command, arguments.clone())));
                }
                Act::End { speaker } => stage.end(speaker),
                Act::Pass { minutes } => stage.pass(*minutes),
                Act::Remark => {}
            }
        }
        answers
    }

    fn text_with(&self, answers: &[String]) -> String {
        let mut answers = answers.iter();
        let mut text = self.head.iter().fold(String::new(), |text, line| text + line + "\n");
        for step in &self.steps {
            text += &step.line;
            text.push('\n');
            if matches!(step.act, Act::Say { .. }) {
                text += answers.next().unwrap();
            }
        }
        text
    }
}

impl Act {
    fn parse(line: &str) -> Option<Act> {
        if line.starts_with("-- ") {
            return Some(Act::Remark);
        }
        if let Some(act) = line.strip_prefix('(').and_then(|line| line.strip_suffix(')')) {
            if let Some(speaker) = act.strip_suffix(" ends") {
                return Some(Act::End { speaker: speaker.to_owned() });
            }
            let minutes = act.strip_suffix(" min pass").and_then(|minutes| minutes.parse().ok());
            return Some(Act::Pass { minutes: minutes? });
        }
        let (speaker, said) = line.split_once("> ")?;
        if speaker.is_empty() || speaker.contains(|c: char| c.is_whitespace() || c == '|') {
            return None;
        }
        let (command, arguments) = said.split_once(' ').unwrap_or((said, "{}"));
        Entry::with_command(command).unwrap_or_else(|| panic!("no command {command}: {line}"));
        let arguments =
            serde_json::from_str(arguments).unwrap_or_else(|err| panic!("{line}: {err}"));
        Some(Act::Say { speaker: speaker.to_owned(), command: command.to_owned(), arguments })
    }
}

// ---- what may differ ----

/// What no way can promise: where the temporary folder is, and which process it was.
fn plain(answer: &str) -> String {
    let mut plain = String::new();
    for line in answer.lines() {
        // `; `test 1` in `/tmp/x`, pid 41` behind a session in the list of members.
        let place = line.find("` in `").and_then(|place| line[..place].rfind("; `"));
        plain.push_str(&line[..place.unwrap_or(line.len())]);
        plain.push('\n');
    }
    plain
}

impl Way {
    /// What differs by design: a command is told to run commands, also by hints, and its speaker knows
    /// its name.
    fn adapt(self, answer: &str) -> String {
        let said = commands::in_commands(answer)
            .replace(Front::Commands.read_mail(), Front::Tools.read_mail())
            .replace(Front::Commands.before(), Front::Tools.before());
        let introduces = |line: &str| {
            let name = line.strip_prefix("you are `").and_then(|line| line.strip_suffix('`'));
            name.is_some_and(|name| MemberName::parse(name).is_ok())
        };
        let lines = said.lines().filter(|line| self != Way::Commands || !introduces(line));
        lines.fold(String::new(), |text, line| text + line + "\n")
    }
}

// ---- the three ways ----

struct Stage {
    way: Way,
    table: Table,
    now: i64,
    desks: BTreeMap<String, InProcess>,
    agents: BTreeMap<String, Agent>,
    /// Who has run a command.
    registered: BTreeSet<String>,
}

impl Stage {
    fn new(way: Way, env: &[(String, String)]) -> Stage {
        let mut table = Table::new();
        for (name, value) in env {
            table.set(name, value);
        }
        Stage {
            way,
            table,
            now: NOW,
            desks: BTreeMap::new(),
            agents: BTreeMap::new(),
            registered: BTreeSet::new(),
        }
    }

    fn say(&mut self, speaker: &str, command: &str, arguments: Map<String, Value>) -> String {
        let entry = Entry::with_command(command).unwrap();
        match self.way {
            Way::Process => {
                let table = &self.table;
                // A command is a process of its own, and knows how late it is.
                if speaker == name::HUMAN {
                    return InProcess::human(table).run(entry, arguments).unwrap().text();
                }
                let desk = self.desks.entry(speaker.to_owned()).or_insert_with(|| {
                    match speaker.split_once('/') {
                        Some((client, _)) => InProcess::session_of(table, client),
                        None => InProcess::session(table, speaker),
                    }
                });
                desk.run(entry, arguments).unwrap().text()
            }
            Way::Mcp if speaker != name::HUMAN => {
                let table = &self.table;
                let agent = self.agents.entry(speaker.to_owned()).or_insert_with(|| match speaker
                    .split_once('/')
                {
                    Some((client, _)) => table.session(&[], client, &[]),
                    None => table.agent(speaker),
                });
                agent.call(entry.name, Value::Object(arguments)).text
            }
            Way::Mcp | Way::Commands => {
                // A session sits down with any call; who speaks by commands begins with this one.
                if self.registered.insert(speaker.to_owned())
                    && speaker != name::HUMAN
                    && !entry.joins
                {
                    self.table.ok(&["register", "--as", speaker]);
                }
                let args = as_command_line(entry, &arguments);
                let mut args: Vec<&str> = args.iter().map(String::as_str).collect();
                args.extend(["--as", speaker]);
                let output = self.table.run(&args);
                output.stdout + &output.stderr
            }
        }
    }

    fn end(&mut self, speaker: &str) {
        if let Some(desk) = self.desks.remove(speaker) {
            desk.end();
        }
        if let Some(mut agent) = self.agents.remove(speaker) {
            agent.close_stdin();
            agent.wait_exit(Duration::from_secs(10));
        }
    }

    fn pass(&mut self, minutes: i64) {
        self.now += minutes * 60_000;
        self.table.set("TEAM_TABLE_NOW", &self.now.to_string());
    }
}

/// `{"recipient":"bob","content":"hi"}` -> `send bob hi`.
fn as_command_line(entry: &Entry, arguments: &Map<String, Value>) -> Vec<String> {
    let command = (entry.clap)();
    let (mut options, mut positional) = (vec![entry.command.to_owned()], Vec::new());
    let (mut n_lists, mut n_items) = (0, 0);
    for arg in command.get_arguments() {
        let Some(value) = arguments.get(arg.get_id().as_str()) else { continue };
        let many = arg.get_num_args().is_some_and(|range| range.max_values() > 1);
        if let (Value::Array(list), true, None) = (value, many, arg.get_long()) {
            n_lists += 1;
            positional.extend(list.iter().map(|item| item.as_str().unwrap().to_owned()));
            n_items += list.len();
            continue;
        }
        let value = match value {
            Value::String(text) => text.clone(),
            Value::Array(list) => {
                let items = list
                    .iter()
                    .map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned));
                items.collect::<Vec<_>>().join(",")
            }
            other => other.to_string(),
        };
        match arg.get_long() {
            Some(long) => options.push(format!("--{long}={value}")),
            None => positional.push(value),
        }
    }
    let n_given = options.len() + positional.len() + n_lists - n_items;
    assert_eq!(n_given, arguments.len() + 1, "{arguments:?}");
    options.extend(positional);
    options
}
