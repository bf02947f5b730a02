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
    for (args, expected) in [
        (&["inbox", "--peek", "--as", "bob"][..], "20 messages, over 99 more unread: "),
        (&["inbox", "--peek", "--limit", "100", "--as", "bob"], "100 messages, 30 more unread: "),
    ] {
        let page = table.ok(args);
        assert!(page.starts_with(expected), "{page}");
    }
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

/// However many tasks there are and however long their texts, a look at them stays short.
#[test]
fn the_board_fits_into_a_result() {
    let table = Table::new();
    let mut ada = InProcess::session(&table, "ada");
    let title = "ä".repeat(limits::LINE_CHARS);
    let long = "x\n".repeat(4_000);
    call(&mut ada, "create-task", json!({"title": title, "description": long}));
    call(&mut ada, "claim", json!({}));
    call(&mut ada, "update-task", json!({"task_id": 1, "status": "review", "result": long}));
    let size = |text: &str| assert!(text.len() <= limits::RESULT_BYTES, "{}", text.len());
    // Both texts do not fit: each has its half, and says what is left out.
    let in_full = call(&mut ada, "tasks", json!({"task_id": 1}));
    size(&in_full);
    assert_eq!(in_full.matches("more bytes are not shown here").count(), 2, "{in_full}");
    assert!(in_full.ends_with("ada set the result of it"), "{in_full}");
    let json = table.json(&["tasks", "1", "--as", "human"]);
    assert!(json["description"] == long, "the description is not whole");
    // The history is cut in the middle, whatever its lines are.
    for n in 0..40 {
        let comment = format!("{n} {}", "c".repeat(n * 100));
        call(&mut ada, "update-task", json!({"task_id": 1, "comment": comment}));
    }
    call(&mut ada, "create-task", json!({"title": "two"}));
    for n in 0..30 {
        let comment = format!("{n} {}", "c".repeat(1_500));
        call(&mut ada, "update-task", json!({"task_id": 2, "comment": comment}));
    }
    for id in [1, 2] {
        let in_full = call(&mut ada, "tasks", json!({"task_id": id}));
        size(&in_full);
        let (before, after) = in_full.split_once(" more are not shown here)\n").unwrap();
        assert!(before.contains("ada created it"), "{before}");
        assert!(after.starts_with("just now: ada commented on it\n| "), "{after}");
        assert!(after.contains(if id == 1 { "| 39 c" } else { "| 29 c" }), "{after}");
    }
    table
        .write()
        .execute_batch(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
             INSERT INTO event (at, actor, kind, task_id, detail, previous)
             SELECT at, actor, kind, task_id, 'note', id + i - 1 FROM event, n
             WHERE id = (SELECT max(id) FROM event);
             UPDATE task SET last_event = (SELECT max(id) FROM event) WHERE id = 2;
             WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 290)
             INSERT INTO task (title, status, creator_id, created_by, created_at, updated_at, moved_by,
                               moved_at)
             SELECT title, iif(i % 2, 'pending', 'done'), creator_id, created_by, 0, 0, 'ada', 0
             FROM task, n WHERE id = 1",
        )
        .unwrap();
    let in_full = call(&mut ada, "tasks", json!({"task_id": 2}));
    size(&in_full);
    let n_shown = in_full.matches("\njust now: ").count();
    assert!(in_full.contains(&format!("\n({} more are not shown here)\n", 1_031 - n_shown)));
    let board = call(&mut ada, "tasks", json!({}));
    size(&board);
    let n_shown = board.matches(" pending medium ").count();
    let rest = format!("not shown: {} pending, 99+ done", 146 - n_shown);
    assert!(n_shown > 40 && board.ends_with(&rest), "{board}");
    let done = call(&mut ada, "tasks", json!({"status": "done"}));
    assert!(done.starts_with("20 tasks\nT292 done ") && done.ends_with("not shown: 99+ done"));
}

/// One step that makes many tasks ready: one notice, that fits.
#[test]
fn a_notice_of_many_tasks_is_one() {
    let table = Table::new();
    let mut bob = InProcess::session(&table, "bob");
    let mut ada = InProcess::session(&table, "ada");
    call(&mut bob, "heartbeat", json!({}));
    call(&mut ada, "create-task", json!({"title": "first"}));
    for _ in 0..60 {
        let title = "\u{e0041}".repeat(limits::LINE_CHARS);
        call(
            &mut ada,
            "create-task",
            json!({"title": title, "depends_on": [1], "assignee": "bob"}),
        );
    }
    while !call(&mut bob, "inbox", json!({})).starts_with("no unread") {}
    call(&mut ada, "claim", json!({}));
    let long = "\u{1}".repeat(3_000);
    call(&mut ada, "update-task", json!({"task_id": 1, "status": "done", "result": long}));
    let inbox = call(&mut bob, "inbox", json!({}));
    assert!(inbox.starts_with("1 message\n"), "{inbox}");
    assert!(inbox.len() <= limits::RESULT_BYTES, "{}", inbox.len());
    assert!(inbox.contains("also: T7, T8, ") && inbox.ends_with(" more"), "{inbox}");
}

/// A call costs no more with many tasks behind it.
#[test]
fn done_tasks_cost_nothing() {
    let fastest = |n_done: i64| {
        let table = Table::new();
        let mut ada = InProcess::session(&table, "ada");
        call(&mut ada, "create-task", json!({"title": "one"}));
        table
            .write()
            .execute(
                "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
                 INSERT INTO task (title, status, creator_id, created_by, created_at, updated_at,
                                   moved_by, moved_at, description)
                 SELECT 'done ' || i, 'done', creator_id, 'ada', ?2, ?2, 'ada', ?2, 'text' FROM task, n",
                (n_done, NOW),
            )
            .unwrap();
        let mut fastest = |command: &str, arguments: Value| {
            let once = |_| {
                if command == "claim" {
                    call(&mut ada, "create-task", json!({"title": "next"}));
                }
                let start = std::time::Instant::now();
                call(&mut ada, command, arguments.clone());
                start.elapsed()
            };
            (0..60).map(once).min().unwrap()
        };
        (fastest("tasks", json!({"status": "done"})), fastest("claim", json!({})))
    };
    let (few, many) = (fastest(20), fastest(10_000));
    // A third more, and what a clock on a busy machine is off by.
    for (few, many) in [(few.0, many.0), (few.1, many.1)] {
        assert!(many < few * 13 / 10 + std::time::Duration::from_micros(100), "{few:?} {many:?}");
    }
}

#[test]
fn the_summary_of_a_full_board_is_short() {
    let table = Table::new().env("TEAM_TABLE_MAX_PER_MINUTE", "0");
    let mut ada = table.agent("ada");
    let mut bob = table.agent("bob");
    let note = "n".repeat(200);
    for n in 1..=500 {
        let title = format!("{n} {}", "t".repeat(190));
        bob.call("create_task", json!({"title": title, "assignee": "bob"}));
        if n <= 40 {
            bob.call("claim_task", json!({"task_id": n}));
            bob.call(
                "reserve_files",
                json!({"paths": [format!("src/{n}/{}.rs", "p".repeat(190))]}),
            );
        }
    }
    for n in 0..200 {
        let key = format!("{n}/{}", "k".repeat(120));
        ada.call("share_context", json!({"key": key, "value": "v"}));
    }
    ada.call("register", json!({"note": note}));
    let text = bob.call("register", json!({})).text;
    assert!(text.chars().count() <= 2_000, "{} characters:\n{text}", text.chars().count());
    for part in [
        "your tasks: T1 ",
        "your reservations: ",
        "shared context changed: ",
        "99+ tasks are ready",
    ] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
}
