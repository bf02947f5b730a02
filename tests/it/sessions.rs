//! Which seat a session gets back: by the key that its client tells, and by no other.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{
    agent::Agent,
    faults::{Place, eventually, failed, name_in, ok},
    program,
};

const NOON: i64 = 1_800_000_000_000;

fn session(place: &Place, client: &str, env: &[(&str, &str)]) -> Agent {
    let mut agent = place.serve(&[], env);
    agent.initialize(client);
    agent
}

fn claude(place: &Place, key: &str, now: &str) -> Agent {
    session(place, "claude-code", &[("CLAUDE_CODE_SESSION_ID", key), ("TEAM_TABLE_NOW", now)])
}

fn register(agent: &mut Agent) -> String {
    name_in(&ok(agent.call("register", json!({}))))
}

/// A call as Codex makes it.
fn call_from(
    agent: &mut Agent,
    thread: &str,
    session: &str,
    tool: &str,
    arguments: &Value,
) -> String {
    let id = agent.post(
        "tools/call",
        json!({"name": tool, "arguments": arguments,
               "_meta": {"threadId": thread, "sessionId": session}}),
    );
    ok(agent.wait(id, super::PATIENCE))
}

fn quit(mut agent: Agent) {
    agent.close_stdin();
    agent.wait_exit(super::PATIENCE);
}

#[test]
fn a_claude_session_that_is_resumed_gets_its_seat_back() {
    let place = Place::new();
    let noon = NOON.to_string();
    let mut first = claude(&place, "s1", &noon);
    assert_eq!(register(&mut first), "claude-1");
    ok(first.call("register", json!({"role": "reviewer"})));
    quit(first);
    // The seat is kept for a quarter of an hour.
    let soon = (NOON + 14 * 60_000).to_string();
    let mut other = claude(&place, "s2", &soon);
    assert_eq!(register(&mut other), "claude-2");
    let mut resumed = claude(&place, "s1", &soon);
    assert_eq!(register(&mut resumed), "claude-1");
    let members = ok(resumed.call("list_members", json!({})));
    assert!(members.contains("claude-1 (you): active; role `reviewer`"), "{members}");
    resumed.kill9();
    // After that anybody may sit there, without what the other one said of itself.
    let later = (NOON + 30 * 60_000).to_string();
    let mut third = claude(&place, "s3", &later);
    let text = ok(third.call("register", json!({})));
    assert_eq!(name_in(&text), "claude-1");
    assert!(text.contains("another session sat here before"), "{text}");
    assert!(!ok(third.call("list_members", json!({}))).contains("reviewer"));
    // Its own seat is taken now: the next one.
    let mut late = claude(&place, "s1", &later);
    assert_eq!(register(&mut late), "claude-3");
}

/// A plugin and a project's file, in different words: the client starts both servers.
#[test]
fn a_session_with_two_servers_sits_once() {
    let place = Place::new();
    let env = [("CLAUDE_CODE_SESSION_ID", "s1")];
    let mut first = session(&place, "claude-code", &env);
    assert_eq!(register(&mut first), "claude-1");
    let mut named = place.serve(&["--name", "ada"], &env);
    named.initialize("claude-code");
    // Neither by itself nor by a call.
    named.request("tools/list", json!({}));
    eventually("it tries to sit down", || named.stderr().contains("started team-table twice"));
    for tool in ["register", "get_messages"] {
        let text = failed(named.call(tool, json!({})));
        assert!(text.contains("you sit at the table already as `claude-1`"), "{text}");
        assert!(text.contains("hint: use the other server's tools"), "{text}");
    }
    let agents = "SELECT name FROM member WHERE kind = 'agent'";
    assert_eq!(place.texts(agents), ["claude-1"]);
    // Another window with the same id is another process.
    let script = r#""$0" serve; true"#;
    let sh = ["-c", script, program().to_str().unwrap()];
    let mut window = Agent::spawn(Path::new("/bin/sh"), &sh, place.path(), &env);
    window.initialize("claude-code");
    assert_eq!(register(&mut window), "claude-2");
    // When the first server is gone, the other one is the session's.
    quit(first);
    assert_eq!(register(&mut named), "claude-1");
}

#[test]
fn a_key_counts_for_its_own_client_only() {
    let place = Place::new();
    let env = [("CLAUDE_CODE_SESSION_ID", "s1")];
    let mut first = session(&place, "claude-code", &env);
    assert_eq!(register(&mut first), "claude-1");
    quit(first);
    // Started by that very session, so it has inherited the variable.
    let mut helper = session(&place, "gemini-cli-mcp-client", &env);
    assert_eq!(register(&mut helper), "gemini-1");
    let mut resumed = session(&place, "claude-code", &env);
    assert_eq!(register(&mut resumed), "claude-1");
}

#[test]
fn codex_moves_to_its_seat_when_its_key_comes_with_a_call() {
    let place = Place::new();
    let mut first = session(&place, "codex-mcp-client", &[]);
    let text = call_from(&mut first, "t1", "t1", "register", &json!({}));
    assert_eq!(name_in(&text), "codex-1");
    quit(first);
    place.send("bob", "codex-1", "before");
    // It lists the tools and sits somewhere before it says who it is.
    let mut resumed = session(&place, "codex-mcp-client", &[]);
    resumed.request("tools/list", json!({}));
    eventually("seated without a call", || {
        place.number("SELECT count(*) FROM member WHERE name = 'codex-2'") == 1
    });
    place.send("bob", "codex-2", "meanwhile");
    let text = call_from(&mut resumed, "t1", "t1", "get_messages", &json!({}));
    assert!(text.contains("you are `codex-1` again"), "{text}");
    assert!(text.contains("| before") && text.contains("| meanwhile"), "{text}");
    let members = call_from(&mut resumed, "t1", "t1", "list_members", &json!({}));
    assert!(members.contains("codex-1 (you)"), "{members}");
    assert!(!members.contains("codex-2"), "{members}");
    // The name in between stays for those who write to it.
    let done = place.run(&["send", "--as", "bob", "codex-2", "hello"]);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.stderr.contains("now `codex-1`"), "{done:?}");
    place.assert_sound();
}

#[test]
fn a_helper_of_codex_sits_beside_its_parent_and_has_left_when_it_ends() {
    let place = Place::new();
    let mut parent = session(&place, "codex-mcp-client", &[]);
    call_from(&mut parent, "t1", "t1", "register", &json!({}));
    let mut helper = session(&place, "codex-mcp-client", &[]);
    let text = call_from(&mut helper, "t2", "t1", "register", &json!({}));
    assert_eq!(name_in(&text), "codex-1-sub-1");
    let members = call_from(&mut parent, "t1", "t1", "list_members", &json!({}));
    assert!(members.contains("codex-1-sub-1: active"), "{members}");
    helper.kill9();
    let members = call_from(&mut parent, "t1", "t1", "list_members", &json!({}));
    assert!(!members.contains("codex-1-sub-1"), "{members}");
    let done = place.run(&["send", "--as", "bob", "codex-1-sub-1", "hello"]);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.stderr.contains("left"), "{done:?}");
    // A parent that nobody knows gives no name.
    let mut orphan = session(&place, "codex-mcp-client", &[]);
    let text = call_from(&mut orphan, "t9", "t8", "register", &json!({}));
    assert_eq!(name_in(&text), "codex-2");
}

/// A Codex session that lists the tools and sits down before it says who it is.
fn codex_that_thinks(place: &Place, now: i64) -> Agent {
    let mut agent = session(place, "codex-mcp-client", &[("TEAM_TABLE_NOW", &now.to_string())]);
    let before = place.number("SELECT count(*) FROM session");
    agent.request("tools/list", json!({}));
    eventually("seated without a call", || place.number("SELECT count(*) FROM session") > before);
    agent
}

fn codex_at(place: &Place, now: i64) -> Agent {
    session(place, "codex-mcp-client", &[("TEAM_TABLE_NOW", &now.to_string())])
}

#[test]
fn a_seat_that_is_only_passed_through_stays_its_owners() {
    let place = Place::new();
    let mut first = codex_at(&place, NOON);
    let role = json!({"role": "reviewer"});
    assert_eq!(name_in(&call_from(&mut first, "t1", "t1", "register", &role)), "codex-1");
    let mut second = codex_at(&place, NOON);
    let role = json!({"role": "tester"});
    assert_eq!(name_in(&call_from(&mut second, "t2", "t2", "register", &role)), "codex-2");
    quit(first);
    quit(second);
    let mut writer = session(&place, "w", &[("TEAM_TABLE_NOW", &NOON.to_string())]);
    ok(writer.call("send_message", json!({"recipient": "codex-1", "content": "private"})));
    // Both seats are free for anybody by now; the second session is resumed on the lowest one.
    let later = NOON + 20 * 60_000;
    let mut second = codex_that_thinks(&place, later);
    let text = call_from(&mut second, "t2", "t2", "get_messages", &json!({}));
    assert!(text.contains("you are `codex-2` again"), "{text}");
    assert!(text.contains("no unread messages"), "{text}");
    let mut first = codex_at(&place, later);
    let text = call_from(&mut first, "t1", "t1", "get_messages", &json!({}));
    assert!(text.contains("you are `codex-1`") && text.contains("| private"), "{text}");
    let members = call_from(&mut first, "t1", "t1", "list_members", &json!({}));
    assert!(members.contains("codex-1 (you): active; role `reviewer`"), "{members}");
    assert!(members.contains("codex-2: active; role `tester`"), "{members}");
    place.assert_sound();
}

#[test]
fn a_session_keeps_what_it_said_of_itself_while_it_thinks() {
    let place = Place::new();
    let mut first = codex_at(&place, NOON);
    call_from(&mut first, "t1", "t1", "register", &json!({"role": "reviewer"}));
    quit(first);
    let later = NOON + 20 * 60_000;
    let mut resumed = codex_that_thinks(&place, later);
    let text = call_from(&mut resumed, "t1", "t1", "register", &json!({}));
    assert!(text.contains("you are `codex-1`, role `reviewer`"), "{text}");
    assert!(!text.contains("another session"), "{text}");
    quit(resumed);
    // Another session finds the seat empty of that.
    let mut other = codex_that_thinks(&place, later + 20 * 60_000);
    let text = call_from(&mut other, "t9", "t9", "register", &json!({}));
    assert!(text.contains("you are `codex-1`: another session sat here before"), "{text}");
    assert!(!text.contains("reviewer"), "{text}");
}

#[test]
fn each_conversation_of_one_server_keeps_its_member() {
    let place = Place::new();
    let mut other = codex_at(&place, NOON);
    call_from(&mut other, "t2", "t2", "register", &json!({"role": "tester"}));
    let mut server = codex_at(&place, NOON);
    call_from(&mut server, "t1", "t1", "register", &json!({"role": "reviewer"}));
    quit(other);
    let mut writer = session(&place, "w", &[]);
    ok(writer.call("send_message", json!({"recipient": "codex-2", "content": "for t1"})));
    let text = call_from(&mut server, "t2", "t2", "get_messages", &json!({}));
    assert!(text.contains("you are `codex-1` again"), "{text}");
    assert!(text.contains("no unread messages"), "{text}");
    let text = call_from(&mut server, "t1", "t1", "get_messages", &json!({}));
    assert!(text.contains("you are `codex-2` again") && text.contains("| for t1"), "{text}");
    let members = call_from(&mut server, "t1", "t1", "list_members", &json!({}));
    assert!(members.contains("codex-2 (you): active; role `reviewer`"), "{members}");
}

#[test]
fn a_helper_sits_beside_its_parent_whatever_name_was_wished_for() {
    let place = Place::new();
    let start = || {
        let mut agent = place.serve(&["--name", "rev"], &[]);
        agent.initialize("codex-mcp-client");
        agent
    };
    let mut parent = start();
    assert_eq!(name_in(&call_from(&mut parent, "t1", "t1", "register", &json!({}))), "rev");
    let mut helper = start();
    assert_eq!(name_in(&call_from(&mut helper, "t2", "t1", "register", &json!({}))), "rev-sub-1");
}

#[test]
fn a_client_without_keys_is_never_taken_for_the_session_before_it() {
    let place = Place::new();
    let mut first = session(&place, "opencode", &[("TEAM_TABLE_NOW", &NOON.to_string())]);
    ok(first.call("register", json!({"role": "reviewer", "note": "the parser"})));
    quit(first);
    let later = (NOON + 3_600_000).to_string();
    let mut next = session(&place, "opencode", &[("TEAM_TABLE_NOW", &later)]);
    let text = ok(next.call("register", json!({})));
    assert!(text.contains("you are `opencode-1`: another session sat here before"), "{text}");
    assert!(!text.contains("reviewer"), "{text}");
    // Who leaves and comes back is still itself, whoever comes back first.
    let mut second = session(&place, "opencode", &[("TEAM_TABLE_NOW", &later)]);
    assert_eq!(register(&mut second), "opencode-2");
    ok(next.call("deregister", json!({})));
    ok(second.call("deregister", json!({})));
    assert_eq!(register(&mut second), "opencode-2");
    assert_eq!(register(&mut next), "opencode-1");
}

#[test]
fn a_move_to_another_name_loses_no_mail_and_brings_none_back() {
    let place = Place::new();
    let mut old = place.seated("y");
    let mut agent = place.seated("x");
    ok(agent.call("broadcast", json!({"content": "mine"})));
    place.ok(&["broadcast", "--as", "human", "stop"]);
    ok(old.call("get_messages", json!({})));
    ok(old.call("heartbeat", json!({})));
    quit(old);
    // `y` has read what `x` has not.
    let text = ok(agent.call("register", json!({"name": "y"})));
    assert!(text.contains("1 unread message (human)"), "{text}");
    let text = ok(agent.call("get_messages", json!({})));
    assert!(text.contains("| stop") && !text.contains("| mine"), "{text}");
    ok(agent.call("register", json!({"name": "z"})));
    let text = ok(agent.call("get_messages", json!({})));
    assert!(text.contains("no unread messages"), "{text}");
}

#[test]
fn who_sits_there_during_a_reset_can_be_written_to_before_its_next_call() {
    let place = Place::new();
    let mut agent = place.seated("ada");
    ok(agent.call("register", json!({"role": "reviewer"})));
    place.ok(&["reset", "--force", "--yes"]);
    place.send("bob", "@reviewer", "after the reset");
    let text = ok(agent.call("get_messages", json!({})));
    assert!(text.contains("was reset") && text.contains("| after the reset"), "{text}");
}

/// However a session was led to the table, it sits there with the others.
#[test]
fn a_table_that_is_named_by_its_path_has_the_same_seats() {
    let place = Place::new();
    let mut ada = place.seated("ada");
    let path = place.table().display().to_string();
    let mut bob = place.started(&["--name", "bob"], &[("TEAM_TABLE_DB", &path)]);
    let members = ok(bob.call("list_members", json!({})));
    assert!(members.contains("ada: active"), "{members}");
    assert!(ok(ada.call("list_members", json!({}))).contains("bob: active"));
    let mut other = place.started(&["--name", "ada", "--db-path", &path], &[]);
    assert_eq!(register(&mut other), "ada-2");
}

/// One server behind a program that passes several clients on: who began last counts, for all calls.
#[test]
fn a_second_handshake_counts_for_all_calls() {
    let place = Place::new();
    let mut agent = place.started(&[], &[]);
    agent.initialize("gemini-cli-mcp-client");
    // Once this is answered, the handshake is over.
    agent.request("ping", json!({}));
    assert_eq!(register(&mut agent), "gemini-1");
}
