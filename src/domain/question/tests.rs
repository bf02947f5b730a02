use super::{Asks, asked};

const QUESTION: Option<Asks> = Some(Asks::Question);
const DECISION: Option<Asks> = Some(Asks::Decision);

/// It is read while others wait for their turn to write.
#[test]
fn the_longest_message_is_read_quickly() {
    let texts = [
        "please a b c d e ".repeat(1000),
        "waiting for a b. ".repeat(1000),
        "```".repeat(5461),
        "' \" ` „ « ".repeat(1400),
        "a? ".repeat(5461) + "b",
        "(?|".repeat(5461),
        "let tell you if ".repeat(1000),
        "do you ".repeat(2000),
        "?".repeat(16_000),
    ];
    for text in texts {
        let start = std::time::Instant::now();
        asked(&text);
        let took = start.elapsed();
        assert!(took < std::time::Duration::from_secs(2), "{took:?}: {text:.40}");
    }
}

#[test]
fn questions_and_decisions() {
    let rows: &[(&str, Option<Asks>)] = &[
        // Questions with their mark.
        ("Can you review src/parse.rs?", QUESTION),
        ("The parser is done. Shall I merge it now?", QUESTION),
        ("Which of the two schemas did you mean, **v1** or **v2?**", QUESTION),
        ("Did you see https://ci.test/run?id=7 fail?", QUESTION),
        ("Is it `Option<T>`?", QUESTION),
        ("Hast du die Migration schon eingespielt?", QUESTION),
        ("Peux-tu relancer les tests ? Merci d'avance.", QUESTION),
        ("¿Puedo borrar la rama?", QUESTION),
        ("可以合并了吗？", QUESTION),
        ("هل انتهيت من الاختبارات؟", QUESTION),
        ("Status:\n- parser: done\n- lexer: done\n- should I start T9?\n", QUESTION),
        ("```\nlet x = y?;\n```\nDoes that compile for you?", QUESTION),
        // Questions without.
        ("can you take T7 when you are done", QUESTION),
        ("Hi ada, could you look at the failing test in CI", QUESTION),
        ("Question: keep the old flag or drop it.", QUESTION),
        ("tests are green, should we release", QUESTION),
        ("which branch should I rebase on", QUESTION),
        ("I was wondering if the lock is still needed", QUESTION),
        ("Soll ich den Branch löschen", QUESTION),
        ("ok to delete the old snapshots", QUESTION),
        // Decisions.
        ("Two ways: patch it here or upstream. Please decide.", DECISION),
        ("Let me know whether I should squash the commits.", DECISION),
        ("Both designs work. Your call.", DECISION),
        ("I need your approval before I drop the table.", DECISION),
        ("T12 is blocked, waiting for your go-ahead.", DECISION),
        ("Rust or Go for the importer: it is up to you.", DECISION),
        ("tell me if I should keep the fallback", DECISION),
        ("We need a decision on the index format today.", DECISION),
        ("A or B. A is faster, B is simpler.", DECISION),
        ("I will not touch main until you confirm.", DECISION),
        ("Decision needed: which license for the examples.", DECISION),
        ("Please review the plan and approve.", DECISION),
        ("Bitte entscheide bis morgen, welche Bibliothek wir nehmen.", DECISION),
        ("Sag Bescheid, ob ich das mergen soll.", DECISION),
        ("J'attends ton feu vert pour publier.", DECISION),
        ("Necesito tu aprobación para seguir.", DECISION),
        ("请决定用哪个方案。", DECISION),
        ("Sign-off pending: see docs/plan.md.", DECISION),
        ("I cannot deploy without your approval.", DECISION),
        // Neither.
        ("The parser is fixed; please re-run the tests.", None),
        ("FYI: main is green again.", None),
        ("There is no question about it, the cache is at fault.", None),
        ("The decision was made yesterday: we keep SQLite.", None),
        ("I decided to use a B-tree.", None),
        ("I answered all questions in the doc. Open questions: none.", None),
        ("Let me know when done.", None),
        ("Let me know if the build breaks again.", None),
        ("No approval needed, it is only a typo.", None),
        ("I no longer need your approval, the owner gave it.", None),
        ("What I did: moved the lexer, fixed 3 tests.", None),
        ("Your call to get_messages returned nothing.", None),
        ("The endpoint is /api/items?page=2&sort=name now.", None),
        ("See https://x.test/search?q=parser for the log.", None),
        ("Use `a?.b ?? c` there, and `cond ? x : y` here.", None),
        ("I replaced unwrap() with foo()?; and a?.b in the client.", None),
        ("const n = ok ? 1 : 2; is what broke it.", None),
        ("The regex (https?|ftp)://.* matched too much; colou?r is fine.", None),
        ("\"Is it done?\" was the log line.", None),
        ("The prompt says \"Overwrite the file?\" and hangs there.", None),
        ("> Shall I merge?\nDone, merged as 3f2a.", None),
        ("```\n$ cargo publish\nReally upload?\n```\nThat is where it stops.", None),
        ("error[E0425]: cannot find `foo`, did you mean `fob`?\nFixed in 12ab.", None),
        ("Why did it fail? Because the lock file was stale.", None),
        ("SELECT * FROM t WHERE id = ? is prepared once now.", None),
        ("The user asked whether it works; it does.", None),
        ("If CI is green I will merge at noon.", None),
        ("Wenn CI grün ist, kann ich weitermachen.", None),
        ("Taking T4. Files: src/store/*.rs, tests/it/?.rs", None),
        ("Thanks for your decision, going on with B.", None),
        ("Please pick up T7 next, it is ready.", None),
        // The same, as others would put it.
        ("Any objections to renaming the crate", QUESTION),
        ("@codex-1 can you confirm the deadline", QUESTION),
        ("Does anybody know why the socket test is flaky on mac", QUESTION),
        ("PR 88 changes the wire format -- is that intended?", QUESTION),
        ("テストは全部通りました。マージしますか", QUESTION),
        ("I won't start on the migration before you say go.", DECISION),
        ("We have two options: keep the lock or drop it. Say which one.", DECISION),
        ("There is no rush, let me know whether the flag stays.", DECISION),
        ("Need a go/no-go for the 18:00 release.", DECISION),
        ("Shipping is on hold until you make a decision.", DECISION),
        ("Human decision required: the licence is unclear.", DECISION),
        ("Die Entscheidung liegt bei dir: Postgres oder SQLite.", DECISION),
        ("Por favor, confirma si puedo seguir.", DECISION),
        ("Approval received; deploying now.", None),
        ("The user must confirm the dialog before the file is saved.", None),
        ("You should choose a longer timeout in the config.", None),
        ("Any answer over 16 KiB is cut.", None),
        ("git status shows ?? src/new.rs only.", None),
        ("interface P { name?: string; age?: number }", None),
        ("Done? Yes. Tests? Green.", None),
        ("It prints: did you forget an underscore? Ignored for now.", None),
        ("Reviewers can see whether it works in the preview.", None),
        ("Ist erledigt, alle Fragen sind geklärt.", None),
        ("I propose that we drop Windows 7. Thoughts welcome.", DECISION),
        ("I merge tonight unless somebody objects.", DECISION),
        ("If you know why, tell me, otherwise I leave it.", DECISION),
        ("Falls das so sein soll, gib mir Bescheid, sonst ändere ich es.", DECISION),
        ("One thing is odd: why does close() keep the handle.", QUESTION),
        ("The release waits until someone signs off on it.", DECISION),
        ("Both ways work; that one is yours to decide.", DECISION),
        ("Cannot go on without a word from you on the licence.", DECISION),
        ("The big run costs 90 dollars. Waiting for a go.", DECISION),
        ("この方針でご承認をお願いします。", DECISION),
        ("Who would have thought that a comma breaks it?", None),
        ("Isn't it always DNS?", None),
        ("I was wondering whether to split it, and in the end I did.", None),
    ];
    assert!(rows.len() >= 60, "{}", rows.len());
    let wrong: Vec<String> = rows
        .iter()
        .filter(|(text, expected)| asked(text) != *expected)
        .map(|(text, expected)| format!("{text:?} asks {:?}, not {expected:?}", asked(text)))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
