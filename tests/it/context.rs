//! The shared context: no change is lost, nothing is cut silently, and what is new to whom.

use std::{sync::Barrier, thread};

use serde_json::{Value, json};
use team_table::{domain::limits, view::sanitize};

use crate::support::{Table, desk::InProcess};

fn call(desk: &mut InProcess, command: &str, arguments: Value) -> String {
    desk.call(command, arguments).unwrap().text()
}

/// Eight processes count up one number, each with what it read last; a stale write is told so and
/// tries again.
#[test]
fn eight_processes_that_add_to_one_key_lose_nothing() {
    let each = if crate::runs_long() { 200 } else { 25 };
    let table = Table::new();
    let agents: Vec<_> = (0..8).map(|number| table.agent(&format!("n{number}"))).collect();
    table.ok(&["share", "count", "0", "--as", "human"]);
    let start = Barrier::new(agents.len());
    let n_stale: usize = thread::scope(|scope| {
        let adders: Vec<_> = agents
            .into_iter()
            .map(|mut agent| {
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    let (mut n_added, mut n_stale) = (0, 0);
                    while n_added < each {
                        let read = agent.call("get_shared_context", json!({"key": "count"})).text;
                        let version = read.split(' ').skip_while(|word| *word != "version").nth(1);
                        let value = read.lines().find_map(|line| line.strip_prefix("| ")).unwrap();
                        let sum = value.parse::<i64>().unwrap() + 1;
                        let next = json!({
                            "key": "count", "value": sum.to_string(), "if_version": version.unwrap()
                        });
                        let reply = agent.call("share_context", next);
                        if reply.is_error {
                            assert!(reply.text.contains("it holds now"), "{}", reply.text);
                            n_stale += 1;
                        } else {
                            n_added += 1;
                        }
                    }
                    n_stale
                })
            })
            .collect();
        adders.into_iter().map(|adder| adder.join().unwrap()).sum()
    });
    let shared = table.json(&["context", "count", "--as", "human"]);
    assert_eq!(shared["entries"][0]["value"], (8 * each).to_string());
    assert_eq!(shared["entries"][0]["version"], 8 * each + 1);
    assert!(n_stale > 0, "they never met");
}

/// What a result has no room for is left out, and counted; the command line gives all.
#[test]
fn long_values_are_cut_where_it_is_said() {
    let table = Table::new();
    let mut ada = InProcess::session(&table, "ada");
    for (value, cut_at_line) in [
        ("x".repeat(65_536), false),
        ("é".repeat(32_000), false),
        ("a line of some length\n".repeat(2_900), true),
        ("\u{1}".repeat(60_000), false),
    ] {
        call(&mut ada, "share", json!({"key": "long/one", "value": value}));
        let shown = call(&mut ada, "context", json!({"key": "long/one"}));
        assert!(shown.len() <= limits::RESULT_BYTES - limits::ASIDE_BYTES, "{}", shown.len());
        let mut lines: Vec<&str> = shown.lines().collect();
        let last = lines.pop().unwrap();
        let end = " bytes more are not shown: `team-table context long/one` in a shell prints all";
        let left = last.strip_suffix(end).unwrap_or_else(|| panic!("{last}"));
        let left: usize = left.replace(',', "").parse().unwrap();
        let kept = sanitize::unfence(&lines[1..].join("\n"));
        assert_eq!(kept.len() + left, value.len());
        assert!(value.starts_with(&kept) && kept.len() > 3_000);
        assert_eq!(cut_at_line, kept.ends_with("length"));
        let whole = table.ok(&["context", "long/one", "--as", "human"]);
        let fenced = whole.trim_end_matches('\n').split_once('\n').unwrap().1;
        assert!(sanitize::unfence(fenced) == value, "the command line leaves something out");
        assert_eq!(table.json(&["context", "--as", "human"])["entries"][0]["value"], value);
        // The whole of it, also for one who writes over it without having seen it.
        let stale = json!({"key": "long/one", "value": "x", "if_version": 0});
        let refused = call(&mut ada, "share", stale);
        assert!(refused.len() <= limits::RESULT_BYTES, "{}", refused.len());
        assert!(refused.contains("more of it are not shown"), "{refused}");
    }
}

#[test]
fn a_list_has_all_keys_first_and_short_values_as_far_as_there_is_room() {
    let table = Table::new();
    let mut ada = InProcess::session(&table, "ada");
    call(&mut ada, "share", json!({"key": "a/long", "value": "x".repeat(1_001)}));
    for number in 0..100 {
        let (key, value) = (format!("k/{number:03}"), "v".repeat(500));
        call(&mut ada, "share", json!({"key": key, "value": value}));
    }
    let list = call(&mut ada, "context", json!({}));
    assert!(list.len() <= limits::RESULT_BYTES - limits::ASIDE_BYTES, "{}", list.len());
    assert!(
        list.starts_with("101 keys\n`a/long` version 1 by ada, just now, 1,001 bytes\n`k/000`")
    );
    assert!(list.contains("`k/099`"));
    let n_values = list.lines().filter(|line| line.starts_with("| ")).count();
    let end = list.lines().last().unwrap();
    let n_without = 101 - n_values;
    let expected =
        format!("{n_without} values are not shown: for one, call get_shared_context with its key");
    assert_eq!(end, expected);
    assert!(n_values > 20);
    for number in 0..600 {
        let key = format!("z/{}-{number}", "n".repeat(100));
        call(&mut ada, "share", json!({"key": key, "value": "v"}));
    }
    let list = call(&mut ada, "context", json!({}));
    assert!(list.len() <= limits::RESULT_BYTES, "{}", list.len());
    assert!(list.contains(" more keys are not shown: `team-table context` in a shell lists all"));
}

/// What a member was shown, noted by its own looks alone.
#[test]
fn looks_are_noted() {
    let table = Table::new();
    let seen = |name: &str| -> i64 {
        let sql = "SELECT context_seen FROM member WHERE name = ?1";
        table.open().query_row(sql, [name], |row| row.get(0)).unwrap()
    };
    let mut ada = InProcess::session(&table, "ada");
    let mut bob = InProcess::session(&table, "bob");
    call(&mut ada, "share", json!({"key": "a", "value": "1"}));
    call(&mut ada, "share", json!({"key": "b", "value": "1"}));
    assert_eq!(
        (seen("ada"), {
            call(&mut bob, "heartbeat", json!({}));
            seen("bob")
        }),
        (0, 0)
    );
    call(&mut bob, "context", json!({"key": "a"}));
    assert_eq!(seen("bob"), 0, "`b` is new to it yet");
    table.ok(&["context", "--as", "bob"]);
    assert_eq!(seen("bob"), 0, "somebody else looked");
    call(&mut bob, "context", json!({}));
    assert_eq!(seen("bob"), 2);
    call(&mut ada, "share", json!({"key": "a", "value": "2"}));
    call(&mut bob, "context", json!({"key": "a"}));
    assert_eq!(seen("bob"), 3, "nothing else is new");
    call(&mut ada, "context", json!({}));
    assert_eq!(seen("ada"), 0, "its own changes are not news");
}
