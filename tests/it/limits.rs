//! How much of anything comes at once: results, pages, counts, digests.

use serde_json::{Value, json};
use team_table::domain::limits;

use crate::support::{NOW, Table, desk::InProcess};

fn call(desk: &mut InProcess, command: &str, arguments: Value) -> String {
    desk.call(command, arguments).unwrap().text()
}

/// A page ends on a whole message and within the limit; page by page, each message comes once.
#[test]
fn long_messages_come_in_pages() {
    let table = Table::new();
    let mut bob = InProcess::session(&table, "bob");
    let mut ada = InProcess::session(&table, "ada");
    call(&mut bob, "heartbeat", json!({}));
    let sizes = [10_000, 9_000, 16_384, 1, 12_000, 5_000, 5_000, 5_000, 5_000];
    for (n, size) in sizes.iter().enumerate() {
        let body = char::from(b'a' + u8::try_from(n).unwrap()).to_string().repeat(*size);
        ada.call("send", json!({"recipient": "bob", "content": body})).unwrap();
    }
    let mut left = sizes.len();
    let mut bodies = Vec::new();
    while left > 0 {
        let page = call(&mut bob, "inbox", json!({}));
        assert!(page.len() <= limits::RESULT_BYTES, "{}", page.len());
        let new: Vec<usize> =
            page.lines().filter_map(|line| line.strip_prefix("| ")).map(str::len).collect();
        left -= new.len();
        let n =
            if new.len() == 1 { "1 message".to_owned() } else { format!("{} messages", new.len()) };
        let more = match left {
            0 => String::new(),
            left => format!(", {left} more unread: call get_messages again"),
        };
        assert_eq!(page.lines().next().unwrap(), n + &more);
        bodies.extend(new);
    }
    assert_eq!(bodies, sizes);
    // The history has the same limit, and goes on before the last one shown.
    let mut before = i64::MAX;
    let mut n_found = 0;
    while before > 1 {
        let page = call(&mut bob, "inbox", json!({"before": before}));
        assert!(page.len() <= limits::RESULT_BYTES, "{}", page.len());
        let ids: Vec<i64> = page
            .lines()
            .filter_map(|line| line.strip_prefix('#')?.split(' ').next()?.parse().ok())
            .collect();
        n_found += ids.len();
        before = *ids.last().unwrap();
        assert_eq!(page.contains("older ones with before"), before > 1, "{before}");
    }
    assert_eq!(n_found, sizes.len());
}

#[test]
fn counts_stop_at_99() {
    let table = Table::new();
    let mut bob = InProcess::session(&table, "bob");
    let mut human = InProcess::human(&table);
    call(&mut bob, "heartbeat", json!({}));
    for n in 0..130 {
        let sent = call(&mut human, "send", json!({"recipient": "bob", "content": "x"}));
        match n {
            99 => assert!(sent.ends_with("99 unread before it"), "{sent}"),
            100.. => assert!(sent.ends_with("99+ unread before it"), "{sent}"),
            _ => {}
        }
    }
    let beat = call(&mut bob, "heartbeat", json!({}));
    assert_eq!(
        beat,
        "noted: you are here\nteam-table: 99+ unread messages (human): call get_messages"
    );
    for expected in [
        "20 messages, over 99 more unread: call get_messages again",
        "20 messages, 90 more unread: call get_messages again",
    ] {
        let page = call(&mut bob, "inbox", json!({}));
        assert_eq!(page.lines().next(), Some(expected));
    }
    let page = call(&mut bob, "inbox", json!({"limit": 100}));
    assert_eq!(page.lines().next(), Some("90 messages"));
    assert_eq!(call(&mut bob, "inbox", json!({})), "no unread messages");
}

/// However many sit here and whatever they say of themselves, what models are shown stays short.
#[test]
fn many_members() {
    let table = Table::new();
    table.ok(&["register", "--as", "first"]);
    let note = "n".repeat(limits::LINE_CHARS);
    let capabilities = vec!["c".repeat(limits::CAPABILITY_CHARS); limits::CAPABILITIES];
    // By hand: 400 calls would take a while.
    table
        .write()
        .execute(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
             INSERT INTO member (name, kind, role, note, capabilities, joined_at, heartbeat_at)
             SELECT 'member-with-quite-a-long-name-because-everybody-likes-that-' || i, 'agent',
                    'crowd', ?1, ?2, ?3, ?3 FROM n",
            (&note, json!(capabilities).to_string(), NOW),
        )
        .unwrap();
    let mut ada = InProcess::session(&table, "ada");
    let digest = call(&mut ada, "register", json!({"note": note}));
    assert!(digest.chars().count() <= limits::DIGEST_CHARS, "{}", digest.chars().count());
    let sent = [
        call(&mut ada, "send", json!({"recipient": "@crowd", "content": "hello"})),
        call(&mut ada, "broadcast", json!({"content": "hello"})),
        call(&mut ada, "send", json!({"recipient": "nobody", "content": "hello"})),
    ];
    for result in &sent {
        assert!(result.chars().count() <= limits::DIGEST_CHARS, "{result}");
    }
    for (command, arguments) in [("members", json!({})), ("show", json!({"message_id": 1}))] {
        let result = call(&mut ada, command, arguments);
        assert!(result.len() <= limits::RESULT_BYTES, "{command}: {}", result.len());
        assert!(result.contains(" more"), "{command} leaves something out, and says so");
    }
}
