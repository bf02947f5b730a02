//! Measures the board from outside, over stdio, and fails where it is slower than it may be.
//!
//! ```text
//! cargo build --release && cargo run --release --example board -- \
//!     [FIGURE...] [--quick] [--bin PATH] [--against "PYTHON -m team_table"]
//! ```
//!
//! Figures: against, calls, list, search; all of them if none is named. `against` starts the given
//! command, a server of team-table 0.1.0 from PyPI (`pip install team-table==0.1.0`), beside ours
//! and calls both in turn, 250 times each. Each ratio is of two medians of one run, so that a busy
//! machine slows down both; and all of it runs on one processor. The exit code is 1 if a bound does
//! not hold.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this program is here to print")]

use std::time::Duration;

use serde_json::{Value, json};

use measure::{
    Bench, Figure, Result, Row, Table, agent::Agent, bounded, flood, grouped, human, median,
    stay_on_one_processor, timed,
};

mod measure;

/// How many times faster than team-table 0.1.0 a call has to be.
const FASTER: f64 = 15.0;
/// So many tasks by one program, then as many by the other: none finds its processor cold.
const BLOCK: usize = 250;
/// How many times longer than a send a call may take.
const SLOWER: f64 = 1.5;
/// How much a long list of ended tasks may cost.
const FLAT: f64 = 1.5;
/// How long a search that finds nothing may take, over 100,000 messages.
const MISS: Duration = Duration::from_millis(50);

const FIGURES: &[(&str, Figure)] =
    &[("against", against), ("calls", calls), ("list", list), ("search", search)];

fn main() -> Result<()> {
    stay_on_one_processor();
    measure::run(FIGURES, &["--against"], &["p50", "p99", "max", "ratio", "bound"])
}

// --- The figures

/// `create_task` by one agent and `claim_task` by another, here and there.
fn against(bench: &Bench) -> Result<Vec<Row>> {
    let ours = Table::new(bench)?;
    let (mut ada, mut bob) = (ours.join("ada"), ours.join("bob"));
    let theirs = bench.options.first().map(|(_, command)| Theirs::new(command)).transpose()?;
    let mut them = match &theirs {
        Some(theirs) => Some((theirs.join("ada")?, theirs.join("bob")?)),
        None => None,
    };
    let (mut here, mut there) = (Pair::default(), Pair::default());
    let n_tasks = bench.count(1_000, 100);
    for first in (0..n_tasks).step_by(BLOCK) {
        let block = first..n_tasks.min(first + BLOCK);
        for i in block.clone() {
            let (time, text) =
                timed(&mut ada, "create_task", json!({"title": format!("task {i}")}));
            here.create.push(time);
            let id = json!({"task_id": id_in(&text).ok_or("no id of a task in the answer")?});
            here.claim.push(timed(&mut bob, "claim_task", id).0);
        }
        let Some((ada, bob)) = &mut them else { continue };
        for i in block {
            let task = json!({"title": format!("task {i}"), "creator": "ada"});
            let (time, text) = timed_there(ada, "create_task", task)?;
            there.create.push(time);
            let id = serde_json::from_str::<Value>(&text)?.get("id").cloned();
            let claim = json!({"task_id": id, "agent_name": "bob"});
            there.claim.push(timed_there(bob, "claim_task", claim)?.0);
        }
    }
    let mut rows = Vec::new();
    for (tool, here, there) in
        [("create_task", here.create, there.create), ("claim_task", here.claim, there.claim)]
    {
        let (ours, theirs) = (median(&here), median(&there));
        let row = Row::times(&format!("against: `{tool}`"), here);
        if there.is_empty() {
            rows.push(row);
            continue;
        }
        let faster = theirs.as_secs_f64() / ours.as_secs_f64();
        rows.push(bounded(row, faster, &format!("{FASTER} x faster"), faster >= FASTER));
        rows.push(Row::times(&format!("against: `{tool}` of the other"), there));
    }
    Ok(rows)
}

/// What changes the board against a send; all by one agent, in turn.
fn calls(bench: &Bench) -> Result<Vec<Row>> {
    let table = Table::new(bench)?;
    let (mut ada, mut bob) = (table.join("ada"), table.join("bob"));
    let text = "x".repeat(200);
    let mut times: [(&str, Vec<Duration>); 8] = [
        ("send_message", Vec::new()),
        ("create_task", Vec::new()),
        ("claim_task", Vec::new()),
        ("update_task, a comment", Vec::new()),
        ("update_task to done, the creator is told", Vec::new()),
        ("share_context", Vec::new()),
        ("reserve_files", Vec::new()),
        ("release_files", Vec::new()),
    ];
    for i in 0..bench.count(500, 50) {
        let (_, created) = timed(&mut ada, "create_task", json!({"title": format!("task {i}")}));
        let id = id_in(&created).ok_or("no id of a task in the answer")?;
        let file = format!("src/file_{i}.rs");
        let round = [
            ("send_message", json!({"recipient": "ada", "content": text})),
            ("create_task", json!({"title": "another", "assignee": "ada"})),
            ("claim_task", json!({"task_id": id})),
            ("update_task", json!({"task_id": id, "comment": text})),
            ("update_task", json!({"task_id": id, "status": "done", "result": text})),
            ("share_context", json!({"key": format!("key/{}", i % 20), "value": text})),
            ("reserve_files", json!({"paths": [file, "docs/**"], "reason": "tests"})),
            ("release_files", json!({})),
        ];
        for ((_, times), (tool, arguments)) in times.iter_mut().zip(round) {
            times.push(timed(&mut bob, tool, arguments).0);
        }
    }
    let send = times.first().map(|(_, times)| median(times)).unwrap_or_default();
    let row = |(n, (name, times)): (usize, (&str, Vec<Duration>))| {
        let ratio = median(&times).as_secs_f64() / send.as_secs_f64();
        let row = Row::times(&format!("calls: {name}"), times);
        if n == 0 { row } else { bounded(row, ratio, &format!("{SLOWER} x"), ratio <= SLOWER) }
    };
    Ok(times.into_iter().enumerate().map(row).collect())
}

/// `list_tasks` with few and with many ended tasks.
fn list(bench: &Bench) -> Result<Vec<Row>> {
    let table = Table::new(bench)?;
    let mut ada = table.join("ada");
    flood(&mut ada, "create_task", 10, |i| json!({"title": format!("open {i}")}));
    let mut rows = Vec::new();
    let mut n_done = 0;
    let mut few = Duration::ZERO;
    for size in [10, bench.count(10_000, 500)] {
        flood(&mut ada, "create_task", size - n_done, |i| json!({"title": format!("ended {i}")}));
        // Their numbers stand behind those of the open ones.
        for (tool, status) in [("claim_task", None), ("update_task", Some("done"))] {
            flood(&mut ada, tool, size - n_done, |i| {
                let mut arguments = json!({"task_id": 11 + n_done + i});
                if let (Some(status), Some(arguments)) = (status, arguments.as_object_mut()) {
                    arguments.insert("status".to_owned(), status.into());
                }
                arguments
            });
        }
        n_done = size;
        let times: Vec<Duration> =
            (0..bench.count(300, 50)).map(|_| timed(&mut ada, "list_tasks", json!({})).0).collect();
        let this = median(&times);
        let row = Row::times(&format!("list: `list_tasks`, {} done", grouped(size)), times);
        if few.is_zero() {
            few = this;
            rows.push(row);
        } else {
            let ratio = this.as_secs_f64() / few.as_secs_f64();
            rows.push(bounded(row, ratio, &format!("{FLAT} x"), ratio <= FLAT));
        }
    }
    Ok(rows)
}

/// A search that finds nothing, so that it looks at all messages.
fn search(bench: &Bench) -> Result<Vec<Row>> {
    let table = Table::new(bench)?;
    let (mut ada, _bob) = (table.join("ada"), table.join("bob"));
    let n = bench.count(100_000, 2000);
    let words = "the parser is fixed; please run the tests again and tell me what you see. ";
    let body = words.repeat(3);
    flood(
        &mut ada,
        "send_message",
        n,
        |i| json!({"recipient": "bob", "content": format!("message {i}: {body}")}),
    );
    let mut rows = Vec::new();
    for query in ["absent", "tests absent", "Prüfung"] {
        let mut times = Vec::new();
        for _ in 0..bench.count(30, 10) {
            let (time, text) = timed(&mut ada, "get_messages", json!({"query": query}));
            if !text.starts_with("no messages found") {
                return Err(format!("found what is not there: {text}").into());
            }
            times.push(time);
        }
        let miss = median(&times);
        let name = format!("search: `{query}`, not in {} messages", grouped(n));
        let mut row = Row::times(&name, times);
        row.columns.extend([String::new(), human(MISS)]);
        row.failed = miss > MISS;
        rows.push(row);
    }
    Ok(rows)
}

// --- The other server

/// team-table 0.1.0: its tools are told who calls, and answer in JSON.
struct Theirs<'a> {
    command: Vec<&'a str>,
    folder: tempfile::TempDir,
}

impl Theirs<'_> {
    fn new(command: &str) -> Result<Theirs<'_>> {
        let folder = tempfile::Builder::new().prefix("team-table-other-").tempdir()?;
        Ok(Theirs { command: command.split_whitespace().collect(), folder })
    }

    fn join(&self, name: &str) -> Result<Agent> {
        let (program, arguments) = self.command.split_first().ok_or("--against needs a command")?;
        let database = self.folder.path().join("team_table.db");
        let database = database.to_str().ok_or("the temporary folder has an odd name")?;
        let variables = [("TEAM_TABLE_DB", database), ("TEAM_TABLE_REQUIRE_TOKENS", "false")];
        let mut agent = Agent::spawn(program.as_ref(), arguments, self.folder.path(), &variables);
        agent.initialize("load");
        timed_there(&mut agent, "register", json!({"name": name}))?;
        Ok(agent)
    }
}

/// Its errors are results like others.
fn timed_there(agent: &mut Agent, tool: &str, arguments: Value) -> Result<(Duration, String)> {
    let (time, text) = timed(agent, tool, arguments);
    if text.contains("\"error\"") {
        return Err(format!("{tool} of the other failed: {text}").into());
    }
    Ok((time, text))
}

// --- Numbers

#[derive(Default)]
struct Pair {
    create: Vec<Duration>,
    claim: Vec<Duration>,
}

/// The number of the first task that a text names: 7 of `T7`.
fn id_in(text: &str) -> Option<u64> {
    text.split(|c: char| !c.is_ascii_alphanumeric())
        .find_map(|word| word.strip_prefix('T')?.parse().ok())
}
