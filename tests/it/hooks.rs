//! What clients' hooks are told, over MCP and as a command, and waking who is idle.

use std::{
    fs,
    process::Stdio,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::support::{
    agent::Agent,
    faults::{Place, eventually, failed, finish, name_in, ok, until_someone_waits, write},
};

/// A place with two sessions of which one writes to the other.
struct Room {
    place: Place,
    ada: Agent,
    bob: Agent,
}

impl Room {
    fn new() -> Room {
        let place = Place::new();
        let (ada, bob) = (place.seated("ada"), place.seated("bob"));
        Room { place, ada, bob }
    }

    /// Writes to bob; gives the number of the message.
    fn write(&mut self) -> u64 {
        let arguments = json!({"recipient": "bob", "content": "the body"});
        crate::support::faults::id_in(&ok(self.ada.call("send_message", arguments)))
    }

    fn hook(&mut self, event: &str) -> Value {
        hook(&mut self.bob, json!({"event": event, "session_id": "s1"}))
    }
}

fn hook(agent: &mut Agent, said: Value) -> Value {
    let text = ok(agent.call("announce", said));
    serde_json::from_str(&text).unwrap_or_else(|err| panic!("{err}: {text}"))
}

/// What a model would be shown.
fn context(reply: &Value) -> &str {
    reply["hookSpecificOutput"]["additionalContext"].as_str().unwrap_or_default()
}

fn log(place: &Place) -> String {
    fs::read_to_string(place.comms().join("hook.log")).unwrap_or_default()
}

#[test]
fn a_message_is_announced_once_and_stays_unread() {
    let mut room = Room::new();
    assert_eq!(room.hook("PostToolUse"), json!({}));
    let (first, second) = (room.write(), room.write());
    let reply = room.hook("PostToolUse");
    assert_eq!(reply["hookSpecificOutput"]["hookEventName"], "PostToolUse");
    let told = context(&reply);
    assert_eq!(
        told,
        format!(
            "team-table: 2 unread messages for you: #{first} from ada, just now; #{second} from \
             ada, just now. Call get_messages to read."
        )
    );
    assert!(!told.contains("the body"));
    assert_eq!(room.hook("PostToolUse"), json!({}), "it was announced already");
    let third = room.write();
    let told = room.hook("UserPromptSubmit");
    assert!(context(&told).contains(&format!("1 unread message for you: #{third} from ada")));
    assert!(context(&told).contains("2 announced before"), "{told}");
    // Whatever became of these words, nothing is lost.
    let inbox = ok(room.bob.call("get_messages", json!({})));
    assert!(inbox.starts_with("3 messages"), "{inbox}");
    assert_eq!(room.hook("Stop"), json!({}), "all is read");
}

/// Each event that `init` sets a hook at is one at which we have something to say.
#[test]
fn all_events_of_the_templates_are_known() {
    let mut room = Room::new();
    let templates = fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/templates")).unwrap();
    let mut n_events = 0;
    for path in templates.map(|entry| entry.unwrap().path()) {
        if !path.to_string_lossy().ends_with(".hooks.json") {
            continue;
        }
        let template: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        for event in template["hooks"].as_object().unwrap().keys() {
            let id = room.write();
            let told = room.hook(event).to_string();
            assert!(
                told.contains(&format!("#{id} from ada")),
                "{} {event}: {told}",
                path.display()
            );
            ok(room.bob.call("get_messages", json!({})));
            n_events += 1;
        }
    }
    assert!(n_events > 8, "{n_events}");
}

#[test]
fn unread_mail_keeps_a_session_from_stopping_once() {
    let mut room = Room::new();
    assert_eq!(room.hook("Stop"), json!({}));
    let id = room.write();
    room.hook("PostToolUse");
    let held = room.hook("Stop");
    assert_eq!(held["decision"], "block");
    let why = held["reason"].as_str().unwrap();
    assert!(why.starts_with("team-table: before you stop: 1 unread message"), "{why}");
    assert!(why.contains(&format!("#{id} from ada")), "{why}");
    assert_eq!(room.hook("Stop"), json!({}), "never in a circle");
    assert_eq!(room.hook("UserPromptSubmit"), json!({}), "it was announced with that");
    room.write();
    for active in [json!(true), json!("true")] {
        let said = json!({"event": "Stop", "session_id": "s1", "stop_hook_active": active});
        assert_eq!(hook(&mut room.bob, said), json!({}), "it was held in this turn already");
    }
    for active in [json!(false), json!("false"), json!("")] {
        let id = room.write();
        let said = json!({"event": "Stop", "session_id": "s1", "stop_hook_active": active});
        let held = hook(&mut room.bob, said);
        assert!(held["reason"].as_str().unwrap().contains(&format!("#{id} ")), "{held}");
    }
}

/// Counts stop at 99; what comes behind so many is announced all the same.
#[test]
fn a_backlog_hides_nothing_new() {
    let mut room = Room::new();
    for _ in 0..120 {
        room.write();
    }
    let told = room.hook("PostToolUse");
    assert!(context(&told).contains("99+ unread messages for you: #1 from ada"), "{told}");
    assert_eq!(room.hook("PostToolUse"), json!({}));
    assert_eq!(room.hook("Stop")["decision"], "block");
    let id = room.write();
    let told = room.hook("PostToolUse");
    assert!(
        context(&told).contains(&format!("1 unread message for you: #{id} from ada")),
        "{told}"
    );
    assert!(context(&told).contains("99+ announced before"), "{told}");
    assert_eq!(room.hook("Stop")["decision"], "block");
    assert_eq!(room.hook("Stop"), json!({}));
}

#[test]
fn a_hook_is_in_no_list_and_says_nothing_of_the_session() {
    let place = Place::new();
    let mut bob = place.started(&[], &[]);
    let tools = bob.request("tools/list", json!({})).to_string();
    assert!(!tools.contains("announce"), "{tools}");
    // Hooks may be there for all folders of a person: where no agent came yet, they leave no trace.
    assert_eq!(hook(&mut bob, json!({"event": "SessionStart"})), json!({}));
    assert!(!place.comms().exists());
    // It sits down, and leaves what the session is to know to the first result of a tool.
    place.ok(&["register", "--as", "ada"]);
    assert_eq!(hook(&mut bob, json!({"event": "UserPromptSubmit"})), json!({}));
    assert_eq!(place.texts("SELECT name FROM member WHERE kind = 'agent'").len(), 2);
    let text = ok(bob.call("list_members", json!({})));
    assert!(text.starts_with("you are `"), "{text}");
    // Who has left does not come back by it.
    ok(bob.call("deregister", json!({})));
    assert_eq!(hook(&mut bob, json!({"event": "PostToolUse"})), json!({}));
    assert!(failed(bob.call("list_members", json!({}))).contains("you have left the table"));
    assert_eq!(log(&place), "");
}

#[test]
fn a_hook_that_fails_says_nothing_and_is_noted() {
    let mut room = Room::new();
    let id = room.write();
    assert_eq!(hook(&mut room.bob, json!({})), json!({}));
    assert_eq!(hook(&mut room.bob, json!({"event": 7})), json!({}));
    assert_eq!(hook(&mut room.bob, json!({"event": "PreCompact\n", "x": [1]})), json!({}));
    eventually("the failures are noted", || log(&room.place).lines().count() == 2);
    assert!(
        log(&room.place).contains("wrong parameters: missing field `event`"),
        "{}",
        log(&room.place)
    );
    // Somebody holds the table: the client does not wait for that.
    let held = room.place.open();
    held.execute_batch("BEGIN IMMEDIATE").unwrap();
    let begin = Instant::now();
    assert_eq!(room.hook("PostToolUse"), json!({}));
    assert!(begin.elapsed() < Duration::from_millis(400), "{:?}", begin.elapsed());
    held.execute_batch("ROLLBACK").unwrap();
    eventually("that is noted, too", || log(&room.place).lines().count() == 3);
    let noted = log(&room.place);
    assert!(noted.contains("the table was busy; the next hook tells what is new"), "{noted}");
    // And the next one tells of it.
    let told = room.hook("PostToolUse");
    assert!(context(&told).contains(&format!("#{id} from ada")), "{told}");
}

#[test]
fn the_log_of_failures_stays_short() {
    let mut room = Room::new();
    let long = "x".repeat(2_000);
    for _ in 0..400 {
        hook(&mut room.bob, json!({"event": [&long]}));
    }
    let size = || fs::metadata(room.place.comms().join("hook.log")).map_or(0, |meta| meta.len());
    eventually("there are failures", || size() > 10_000);
    assert!(size() <= 64 * 1024, "{}", size());
    assert!(log(&room.place).lines().all(|line| line.starts_with("20")), "a line was torn");
}

/// Behind `/clear` Claude Code's session has another id, which only hooks tell; its model was told
/// nothing yet.
#[test]
fn a_cleared_session_is_told_again_and_its_shell_is_known() {
    let place = Place::new();
    let mut ada = place.seated("ada");
    let env = [("CLAUDE_CODE_SESSION_ID", "s1")];
    let mut claude = place.serve(&[], &env);
    claude.initialize("claude-code");
    assert_eq!(name_in(&ok(claude.call("register", json!({})))), "claude-1");
    ok(ada.call("send_message", json!({"recipient": "claude-1", "content": "hello"})));
    let prompt = |session: &str| json!({"event": "UserPromptSubmit", "session_id": session});
    assert!(context(&hook(&mut claude, prompt("s1"))).contains("1 unread message"));
    assert_eq!(hook(&mut claude, prompt("s1")), json!({}));
    assert!(context(&hook(&mut claude, prompt("s2"))).contains("1 unread message"));
    assert_eq!(hook(&mut claude, prompt("s2")), json!({}));
    for session in ["s1", "s2"] {
        let mut shell = place.command(&["inbox", "--peek"]);
        shell.env("CLAUDE_CODE_SESSION_ID", session);
        let done = finish(shell);
        assert!(done.stdout.contains("| hello"), "{session}: {done:?}");
    }
    // Tools of the session do not lead back to the old id.
    ok(claude.call("heartbeat", json!({})));
    assert_eq!(hook(&mut claude, prompt("s2")), json!({}));
    assert_eq!(place.texts("SELECT key FROM session WHERE key IS NOT NULL"), ["s2"]);
}

/// A session of Claude Code whose environment tells this id.
fn claude_with(place: &Place, key: &str) -> Agent {
    let mut claude = place.serve(&[], &[("CLAUDE_CODE_SESSION_ID", key)]);
    claude.initialize("claude-code");
    claude
}

/// `--continue`: the environment tells an id that is not the session's.
#[test]
fn a_continued_session_is_found_by_what_its_hooks_tell() {
    let place = Place::new();
    let start = |key: &str| claude_with(&place, key);
    let mut first = start("real");
    assert_eq!(name_in(&ok(first.call("register", json!({})))), "claude-1");
    first.close_stdin();
    first.wait_exit(super::PATIENCE);
    let mut again = start("startup");
    hook(&mut again, json!({"event": "UserPromptSubmit", "session_id": "real"}));
    assert_eq!(name_in(&ok(again.call("register", json!({})))), "claude-1");
}

// --- As a command

/// The command of a hook, run by the process that started the servers, as a client would.
fn run_hook(place: &Place, command: &str, said: &Value) -> std::process::Child {
    let mut command = place.command(&[command]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), said.to_string().as_bytes())
        .unwrap();
    child
}

fn told_by_hook(place: &Place, said: &Value) -> Value {
    let done = run_hook(place, "hook", said).wait_with_output().unwrap();
    assert!(done.status.success() && done.stderr.is_empty(), "{done:?}");
    serde_json::from_slice(&done.stdout).unwrap()
}

#[test]
fn a_command_finds_the_session_of_its_client() {
    let place = Place::new();
    let said = |event: &str| json!({"session_id": "g1", "hook_event_name": event, "cwd": "/"});
    assert_eq!(told_by_hook(&place, &said("BeforeAgent")), json!({}), "there is no table yet");
    assert!(!place.table().exists());
    let mut gemini = place.serve(&[], &[]);
    gemini.initialize("gemini-cli-mcp-client");
    assert_eq!(name_in(&ok(gemini.call("register", json!({})))), "gemini-1");
    place.send("ada", "gemini-1", "hello");
    // The test started both the server and the hook.
    let told = told_by_hook(&place, &said("AfterTool"));
    assert_eq!(told["hookSpecificOutput"]["hookEventName"], "AfterTool");
    assert!(context(&told).contains("#1 from ada"), "{told}");
    assert_eq!(told_by_hook(&place, &said("AfterTool")), json!({}));
    assert_eq!(told_by_hook(&place, &said("AfterAgent"))["decision"], "block");
    assert_eq!(told_by_hook(&place, &said("AfterAgent")), json!({}));
    assert!(ok(gemini.call("get_messages", json!({}))).contains("| hello"));
    // Two sessions, and no telling whose hook it is: silence is better than the wrong one.
    let mut other = place.serve(&[], &[]);
    other.initialize("gemini-cli-mcp-client");
    ok(other.call("register", json!({})));
    place.send("ada", "gemini-1", "again");
    assert_eq!(told_by_hook(&place, &said("AfterTool")), json!({}));
    assert_eq!(log(&place), "");
    // What is no event of a hook is noted.
    let done = run_hook(&place, "hook", &json!("x")).wait_with_output().unwrap();
    assert_eq!(String::from_utf8(done.stdout).unwrap(), "{}\n");
    assert!(log(&place).contains("hook: stdin is no JSON object of a hook"), "{}", log(&place));
}

/// A client that leaves its end of the pipe open would wait for its hook, and its agent for it.
#[test]
fn a_hook_does_not_wait_for_the_end_of_stdin() {
    let place = Place::new();
    let mut gemini = place.serve(&[], &[]);
    gemini.initialize("gemini-cli-mcp-client");
    ok(gemini.call("register", json!({})));
    place.send("ada", "gemini-1", "hello");
    for (said, patience) in [(r#"{"session_id":"g1","hook_event_name":"AfterTool"}"#, 3), ("", 8)] {
        let mut command = place.command(&["hook"]);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        std::io::Write::write_all(&mut stdin, said.as_bytes()).unwrap();
        let begin = Instant::now();
        let done = child.wait_with_output().unwrap();
        assert!(done.status.success(), "{done:?}");
        assert!(begin.elapsed() < Duration::from_secs(patience), "{:?}", begin.elapsed());
        let told = String::from_utf8(done.stdout).unwrap();
        assert_eq!(told.contains("#1 from ada"), !said.is_empty(), "{told}");
        drop(stdin);
    }
    assert!(log(&place).contains("none came within 5 s"), "{}", log(&place));
}

// --- Waking who is idle

/// A session of Claude Code that sits there.
fn claude(place: &Place) -> Agent {
    let mut claude = place.serve(&[], &[("CLAUDE_CODE_SESSION_ID", "s1")]);
    claude.initialize("claude-code");
    ok(claude.call("register", json!({})));
    claude
}

/// What it says to its hooks at the end of a turn.
fn said_at_stop() -> Value {
    json!({"session_id": "s1", "hook_event_name": "Stop"})
}

#[test]
fn a_waiting_process_ends_with_new_mail() {
    let place = Place::new();
    let mut claude = claude(&place);
    let said = said_at_stop();
    let waiting = run_hook(&place, "wake", &said);
    until_someone_waits(&place, "claude-1");
    // One process per session is enough, and neither is in a writer's way.
    let held = place.open();
    held.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut second = run_hook(&place, "wake", &said);
    eventually("the second one ends", || second.try_wait().unwrap().is_some());
    held.execute_batch("ROLLBACK").unwrap();
    let second = second.wait_with_output().unwrap();
    assert!(second.status.success() && second.stderr.is_empty(), "{second:?}");
    let id = place.send("ada", "claude-1", "hello");
    let done = waiting.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(2), "{done:?}");
    let told = String::from_utf8(done.stderr).unwrap();
    assert!(
        told.starts_with(&format!("team-table: 1 unread message for you: #{id} from ada")),
        "{told}"
    );
    assert!(done.stdout.is_empty());
    // It waits for what comes next, and not for what it told of; and it ends with its session.
    let waiting = run_hook(&place, "wake", &said);
    until_someone_waits(&place, "claude-1");
    claude.close_stdin();
    claude.wait_exit(super::PATIENCE);
    let done = waiting.wait_with_output().unwrap();
    assert!(done.status.success() && done.stderr.is_empty(), "{done:?}");
    assert_eq!(log(&place), "");
}

/// Each turn of a session without our server starts such a process.
#[test]
fn nobody_waits_beside_a_session_that_sits_nowhere() {
    let place = Place::new();
    place.send("ada", "human", "the table is there");
    let begin = Instant::now();
    let done = run_hook(&place, "wake", &said_at_stop()).wait_with_output().unwrap();
    assert!(done.status.success() && done.stderr.is_empty(), "{done:?}");
    assert!(begin.elapsed() > Duration::from_secs(5), "it may sit down a moment later");
    assert_eq!(log(&place), "");
}

/// A session that is at work hears of new mail by its hooks; nobody wakes it for that.
#[test]
fn a_waiting_process_leaves_to_hooks_what_they_tell() {
    let place = Place::new();
    let (mut ada, mut claude) = (place.seated("ada"), claude(&place));
    let mut waiting = run_hook(&place, "wake", &said_at_stop());
    until_someone_waits(&place, "claude-1");
    ok(ada.call("send_message", json!({"recipient": "claude-1", "content": "hello"})));
    let told = hook(&mut claude, json!({"event": "PostToolUse", "session_id": "s1"}));
    assert!(context(&told).contains("1 unread message"), "{told}");
    std::thread::sleep(Duration::from_millis(2_500));
    assert!(waiting.try_wait().unwrap().is_none(), "it woke the session");
    waiting.kill().unwrap();
    waiting.wait().unwrap();
}

#[test]
fn an_idle_codex_is_woken_by_its_own_server() {
    use std::os::unix::fs::PermissionsExt as _;

    let place = Place::new();
    let bin = place.path().join("bin");
    fs::create_dir(&bin).unwrap();
    let (codex, told) = (bin.join("codex"), place.path().join("told"));
    let script = format!("#!/bin/sh\nprintf '%s\\n' \"$@\" >>'{}'\n", told.display());
    write(&codex, script.as_bytes());
    fs::set_permissions(&codex, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let start = |args: &[&str], thread: &str| {
        let mut agent = place.serve(args, &[("PATH", &path)]);
        agent.initialize("codex-mcp-client");
        let meta = json!({"threadId": thread});
        let id =
            agent.post("tools/call", json!({"name": "register", "arguments": {}, "_meta": meta}));
        ok(agent.wait(id, super::PATIENCE));
        agent
    };
    let _woken = start(&["--wake"], "t1");
    let _not_asked_for = start(&[], "t2");
    let id = place.send("ada", "codex-1", "hello");
    place.send("ada", "codex-2", "hello");
    let said = || fs::read_to_string(&told).unwrap_or_default();
    eventually("codex is called", || said().lines().count() >= 5);
    let words: Vec<String> = said().lines().map(str::to_owned).collect();
    let [queue, flag, thread, message, text] = words.as_slice() else { panic!("{words:?}") };
    assert_eq!([queue, flag, thread, message], ["queue", "--thread", "t1", "--message"]);
    assert!(text.starts_with("[not from your user, but from the program team-table] "), "{text}");
    assert!(text.contains(&format!("1 unread message for you: #{id} from ada")), "{text}");
    // Once is enough.
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(said().lines().count(), 5, "{}", said());
    // And being woken is no sign of life.
    let seen = place.number("SELECT max(heartbeat_at) FROM member WHERE name = 'codex-1'");
    let joined = place.number("SELECT joined_at FROM member WHERE name = 'codex-1'");
    assert!(seen - joined < 5_000, "{seen} {joined}");
}

// --- What must not go wrong

/// The exit code 2 would keep a session from stopping, or wake it, again and again.
#[test]
fn a_hook_that_cannot_begin_neither_holds_nor_wakes() {
    let place = Place::new();
    let folder = place.path().display().to_string();
    let said = json!({"session_id": "g1", "hook_event_name": "AfterAgent"}).to_string();
    for command in ["hook", "wake"] {
        for (name, value) in
            [("TEAM_TABLE_DB", folder.as_str()), ("TEAM_TABLE_MAX_PER_MINUTE", "x")]
        {
            let mut run = place.command(&[command]);
            run.env(name, value);
            let done = finish(run);
            assert_eq!((done.code, done.stdout.as_str()), (Some(0), "{}\n"), "{command} {name}");
            assert!(done.stderr.contains(name), "{done:?}");
        }
        let mut run = place.command(&[command, "more"]);
        write(&place.path().join("said"), said.as_bytes());
        run.stdin(fs::File::open(place.path().join("said")).unwrap());
        assert_eq!(finish(run).code, Some(0), "{command}");
    }
    // Others are told.
    assert_eq!(place.run(&["inbox", "more"]).code, Some(2));
}

/// What cannot be an id is nobody's: else it would be that of all sessions of a client.
#[test]
fn a_placeholder_is_no_session() {
    let place = Place::new();
    let start = |key: &str| {
        let mut claude = place.serve(&[], &[("CLAUDE_CODE_SESSION_ID", key)]);
        claude.initialize("claude-code");
        ok(claude.call("register", json!({})));
        claude
    };
    let prompt = |id: &str| json!({"event": "UserPromptSubmit", "session_id": id});
    let mut first = start("k1");
    hook(&mut first, prompt("${session_id}"));
    first.close_stdin();
    first.wait_exit(super::PATIENCE);
    place.send("ada", "claude-1", "hello");
    let mut second = start("k2");
    for id in ["${session_id}", "", "a b", "a\0", "\u{202e}", &"x".repeat(200_000)] {
        assert_eq!(hook(&mut second, prompt(id)), json!({}));
    }
    assert_eq!(name_in(&ok(second.call("register", json!({})))), "claude-2");
    assert_eq!(place.texts("SELECT key FROM member_key ORDER BY key"), ["k1", "k2"]);
}

/// The session sat at another name until its first hook told whose it is.
#[test]
fn a_continued_session_takes_its_mail_along() {
    let place = Place::new();
    let start = |key: &str| claude_with(&place, key);
    let mut first = start("real");
    ok(first.call("register", json!({})));
    first.close_stdin();
    first.wait_exit(super::PATIENCE);
    let agents = || place.texts("SELECT name FROM member WHERE name LIKE 'claude%' ORDER BY name");
    let mut again = start("startup");
    again.request("tools/list", json!({}));
    eventually("it sits down", || agents() == ["claude-1", "claude-2"]);
    place.send("ada", "claude-2", "hello");
    let prompt = json!({"event": "UserPromptSubmit", "session_id": "real"});
    assert!(context(&hook(&mut again, prompt)).contains("1 unread message"));
    let inbox = ok(again.call("get_messages", json!({})));
    assert!(inbox.starts_with("you are `claude-1` again") && inbox.contains("| hello"), "{inbox}");
    let moved = "SELECT now.name FROM member JOIN member now ON now.id = member.moved_to";
    assert_eq!(place.texts(moved), ["claude-1"], "who writes to the other name is told");
    // One whose hooks tell the same id, or that has none, stays.
    let mut other = start("other");
    other.request("tools/list", json!({}));
    let sits = "SELECT count(*) FROM session WHERE key = 'other'";
    eventually("it sits down", || place.number(sits) == 1);
    let text = ok(other.call("list_members", json!({})));
    assert!(text.starts_with("you are `claude-3`"), "{text}");
}

#[test]
fn what_is_new_behind_a_backlog_is_announced() {
    let mut room = Room::new();
    for _ in 0..105 {
        room.write();
    }
    assert!(context(&room.hook("PostToolUse")).contains("99+ unread messages"));
    assert_eq!(room.hook("Stop")["decision"], "block");
    assert_eq!(room.hook("PostToolUse"), json!({}));
    let id = room.write();
    let told = room.hook("PostToolUse");
    let words = format!("1 unread message for you: #{id} from ada, just now; 99+ announced before");
    assert!(context(&told).contains(&words), "{told}");
    assert_eq!(room.hook("Stop")["decision"], "block");
    assert_eq!(room.hook("Stop"), json!({}));
}

/// Calls in parallel, a table that is in the way for a moment, and a hook in between.
#[test]
fn a_hook_that_gives_up_forgets_nothing_that_was_read() {
    let mut room = Room::new();
    let id = room.write();
    let held = room.place.open();
    held.busy_timeout(Duration::ZERO).unwrap();
    let stop = || while held.execute_batch("BEGIN IMMEDIATE").is_err() {};
    let mut was_between = false;
    for _ in 0..20 {
        stop();
        let inbox = room.bob.post_call("get_messages", json!({}));
        let calls: Vec<u64> = (0..300)
            .map(|n| room.bob.post_call("create_task", json!({"title": format!("task {n}")})))
            .collect();
        std::thread::sleep(Duration::from_millis(100));
        held.execute_batch("ROLLBACK").unwrap();
        // Its reply is there, and those of the others are not.
        ok(room.bob.wait(inbox, super::PATIENCE));
        stop();
        let last = *calls.last().unwrap();
        was_between = room.bob.try_wait(last, Duration::from_millis(100)).is_err();
        if was_between {
            assert_eq!(room.hook("PostToolUse"), json!({}));
        }
        held.execute_batch("ROLLBACK").unwrap();
        if was_between {
            room.bob.wait(last, super::PATIENCE);
            break;
        }
        for call in calls {
            room.bob.try_wait(call, super::PATIENCE).ok();
        }
        room.write();
    }
    assert!(was_between, "the hook never came in between");
    ok(room.bob.call("heartbeat", json!({})));
    eventually("what was read counts as read", || {
        let sql =
            format!("SELECT count(*) FROM delivery WHERE message_id >= {id} AND read_at IS NULL");
        room.place.number(&sql) == 0
    });
}

#[test]
fn a_log_that_is_no_file_stops_nobody() {
    let mut room = Room::new();
    let (log, other) = (room.place.comms().join("hook.log"), room.place.path().join("other"));
    crate::support::make_pipe(&log);
    assert_eq!(hook(&mut room.bob, json!({})), json!({}));
    ok(room.bob.call("heartbeat", json!({})));
    fs::remove_file(&log).unwrap();
    write(&other, b"mine");
    std::os::unix::fs::symlink(&other, &log).unwrap();
    assert_eq!(hook(&mut room.bob, json!({})), json!({}));
    ok(room.bob.call("heartbeat", json!({})));
    assert_eq!(fs::read(&other).unwrap(), b"mine");
}

/// An agent that another one started in its shell has a client of its own, which is nearer.
#[test]
fn a_command_is_the_hook_of_the_nearest_client() {
    let place = Place::new();
    let mut outer = place.serve(&[], &[]);
    outer.initialize("gemini-cli-mcp-client");
    assert_eq!(name_in(&ok(outer.call("register", json!({})))), "gemini-1");
    let hello = crate::support::faults::handshake().replace("tester", "gemini-cli-mcp-client");
    let call = crate::support::faults::call(1, "register", &json!({}));
    write(&place.path().join("session"), format!("{hello}{call}").as_bytes());
    write(&place.path().join("said"), br#"{"session_id":"g2","hook_event_name":"AfterTool"}"#);
    let script = r#"mkfifo pipe
        "$0" serve <pipe >answers &
        exec 3>pipe
        cat session >&3
        until grep -q gemini-2 answers; do sleep 0.05; done
        "$0" send --as ada gemini-2 hello >/dev/null
        "$0" hook <said"#;
    let done = finish(place.command_of("sh", &["-c", script, crate::support::faults::PROGRAM]));
    assert!(done.stdout.contains("#1 from ada"), "{done:?}");
}

#[test]
fn a_waiting_process_makes_no_table() {
    let place = Place::new();
    let _claude = claude(&place);
    let waiting = run_hook(&place, "wake", &said_at_stop());
    until_someone_waits(&place, "claude-1");
    fs::remove_dir_all(place.comms()).unwrap();
    let done = waiting.wait_with_output().unwrap();
    assert!(done.status.success() && done.stderr.is_empty(), "{done:?}");
    assert!(!place.comms().exists());
}

/// Each turn starts one: those of a client without our server would grow in number.
#[test]
fn a_waiting_process_without_a_session_ends() {
    let place = Place::new();
    place.send("ada", "human", "hello");
    let waiting = run_hook(&place, "wake", &said_at_stop());
    let begin = Instant::now();
    let done = waiting.wait_with_output().unwrap();
    assert!(done.status.success() && done.stderr.is_empty(), "{done:?}");
    assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
}

/// What `codex` leaves running may hold its stderr, and it may say a lot.
#[test]
fn what_codex_says_last_is_noted_when_it_ends() {
    use std::os::unix::fs::PermissionsExt as _;

    let place = Place::new();
    let bin = place.path().join("bin");
    fs::create_dir(&bin).unwrap();
    let script = "#!/bin/sh\nsleep 25 &\nhead -c 3000000 /dev/zero | tee /dev/stderr\n\
                  printf '\\nno such thread\\n' >&2\nexit 3\n";
    write(&bin.join("codex"), script.as_bytes());
    fs::set_permissions(bin.join("codex"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let mut agent = place.serve(&["--wake"], &[("PATH", &path)]);
    agent.initialize("codex-mcp-client");
    let meta = json!({"threadId": "t1"});
    let id = agent.post("tools/call", json!({"name": "register", "arguments": {}, "_meta": meta}));
    ok(agent.wait(id, super::PATIENCE));
    place.send("ada", "codex-1", "hello");
    // Before what it left running ends.
    let begin = Instant::now();
    eventually("a line in the log", || !log(&place).is_empty());
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    let said = log(&place);
    assert!(
        said.contains("codex queue: `codex queue` ended with exit status: 3: no such thread"),
        "{said}"
    );
}
