//! Measures `team-table` from outside, over stdio, and prints one table that a README can quote.
//!
//! ```text
//! cargo build --release && cargo run --release --example load -- [FIGURE...] [--quick] [--bin PATH]
//! ```
//!
//! Figures: start, rtt, storm, growth, backlog, latency, tokens; all of them if none is named. Times
//! are taken by the client, around a call, and hold the client's own work of some microseconds. The
//! exit code is 1 if a message was lost, came twice or was not taken.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this program is here to print")]

use std::{
    fs,
    sync::Barrier,
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use measure::{
    Bench, Figure, Result, Row, Table,
    agent::{Agent, PATIENCE},
    flood, grouped, timed,
};

#[expect(dead_code, reason = "the other examples use more of it")]
mod measure;

/// What can be measured, by name, in the order of the printed table.
const FIGURES: &[(&str, Figure)] = &[
    ("start", start),
    ("rtt", rtt),
    ("storm", storm),
    ("growth", growth),
    ("backlog", backlog),
    ("latency", latency),
    ("tokens", tokens),
];

fn main() -> Result<()> {
    if !cfg!(target_os = "linux") {
        eprintln!("memory and CPU time are read from /proc, on Linux only: left out");
    }
    measure::run(FIGURES, &[], &["value or p50", "p99", "max"])
}

// --- The figures

/// From just before the process is made to the answer to `initialize`; the table exists already.
fn start(bench: &Bench) -> Result<Vec<Row>> {
    let table = Table::new(bench)?;
    drop(table.join("first"));
    let mut times = Vec::new();
    for _ in 0..bench.count(50, 10) {
        let begin = Instant::now();
        let mut agent = table.spawn("second");
        agent.initialize("load");
        times.push(begin.elapsed());
        leave(agent);
    }
    Ok(vec![Row::times("start: spawn to the reply to `initialize`", times)])
}

/// One sender, one reader, one message at a time.
fn rtt(bench: &Bench) -> Result<Vec<Row>> {
    let table = Table::new(bench)?;
    let (mut ada, mut bob) = (table.join("ada"), table.join("bob"));
    let (mut send, mut one, mut none) = (Vec::new(), Vec::new(), Vec::new());
    let n = bench.count(2000, 200);
    for i in 0..n {
        let body = format!("message {i}: {}", "x".repeat(200));
        send.push(send_to(&mut ada, "bob", &body).0);
        let (time, text) = timed(&mut bob, "get_messages", json!({"limit": 100}));
        if bodies(&text) != [body] {
            bob.fail(&format!("not the one message that was sent: {text}"));
        }
        one.push(time);
        none.push(timed(&mut bob, "get_messages", json!({"limit": 100})).0);
    }
    let mut rows = vec![
        Row::times("rtt: send a message", send),
        Row::times("rtt: inbox with one message", one),
        Row::times("rtt: empty inbox", none),
    ];
    if let Some((now, peak)) = memory(&ada) {
        let name = format!("memory (RSS) after {} sends; max: its peak", grouped(n));
        rows.push(Row::new(name, vec![mib(now), String::new(), mib(peak)]));
    }
    Ok(rows)
}

const CROWD: [&str; 8] = ["ada", "bob", "cyd", "dan", "eve", "fay", "gil", "hal"];

/// Eight processes send to one another at once; then every inbox is emptied and counted.
fn storm(bench: &Bench) -> Result<Vec<Row>> {
    let each = bench.count(500, 50);
    let table = Table::new(bench)?;
    let mut agents: Vec<Agent> = CROWD.iter().map(|name| table.join(name)).collect();
    let begin = Instant::now();
    let sends = send_all_at_once(&mut agents, each);
    let seconds = begin.elapsed().as_secs_f64();
    let n_sent = sends.iter().filter(|(_, sent)| *sent).count();

    let mut got: Vec<String> = agents.iter_mut().flat_map(drain).collect();
    let n_got = got.len();
    got.sort_unstable();
    got.dedup();
    let lost = n_sent.saturating_sub(got.len());
    let (twice, errors) = (n_got - got.len(), each * CROWD.len() - n_sent);
    let kept = format!("{lost} lost, {twice} twice, {errors} errors");
    let mut kept = value(&format!("storm: of {} messages", grouped(n_sent)), kept);
    kept.failed = lost + twice + errors > 0;

    let times = sends.into_iter().map(|(time, _)| time).collect();
    let rate = format!("{:.0}/s", f64::from(u32::try_from(n_sent)?) / seconds);
    Ok(vec![
        Row::times("storm: send, 8 processes at once", times),
        value("storm: messages sent, all together", rate),
        kept,
    ])
}

/// Every agent sends `each` messages, in turn to all the others; all begin together.
fn send_all_at_once(agents: &mut [Agent], each: usize) -> Vec<(Duration, bool)> {
    let barrier = &Barrier::new(agents.len());
    let run = |agent: &mut Agent, me: &str| -> Vec<(Duration, bool)> {
        barrier.wait();
        let others = CROWD.iter().filter(|name| **name != me).cycle();
        others.zip(0..each).map(|(to, i)| try_send(agent, to, &format!("{me}/{i}"))).collect()
    };
    thread::scope(|scope| {
        let senders: Vec<_> = agents
            .iter_mut()
            .zip(CROWD)
            .map(|(agent, me)| scope.spawn(move || run(agent, me)))
            .collect();
        // What a sender that panicked has sent counts as errors.
        senders.into_iter().flat_map(|sender| sender.join().unwrap_or_default()).collect()
    })
}

/// The same two calls after a history that grows.
fn growth(bench: &Bench) -> Result<Vec<Row>> {
    let sizes: &[usize] = if bench.quick { &[1000] } else { &[1000, 10_000, 100_000] };
    let table = Table::new(bench)?;
    let (mut ada, mut bob) = (table.join("ada"), table.join("bob"));
    let mut rows = Vec::new();
    let mut n_sent = 0;
    for size in sizes {
        while n_sent < *size {
            let batch = 500.min(size - n_sent);
            flood(&mut ada, "send_message", batch, history);
            n_sent += batch;
            drain(&mut bob);
        }
        let (send, inbox) = (0..bench.count(500, 100))
            .map(|_| {
                let inbox = timed(&mut bob, "get_messages", json!({"limit": 100})).0;
                let send = send_to(&mut ada, "bob", "probe").0;
                drain(&mut bob);
                (send, inbox)
            })
            .unzip();
        rows.push(Row::times(&format!("growth: send after {} messages", grouped(*size)), send));
        rows.push(Row::times(&format!("growth: empty inbox after {}", grouped(*size)), inbox));
    }
    Ok(rows)
}

/// A send to, and a call by, a member whose unread mail piles up.
fn backlog(bench: &Bench) -> Result<Vec<Row>> {
    let n = bench.count(5000, 500);
    let table = Table::new(bench)?;
    let (mut ada, mut bob) = (table.join("ada"), table.join("bob"));
    let mut rows = Vec::new();
    for waiting in [0, n] {
        flood(&mut ada, "send_message", waiting, history);
        let (send, badge) = (0..bench.count(500, 100))
            .map(|_| {
                let badge = timed(&mut bob, "list_members", json!({})).0;
                let send = send_to(&mut ada, "bob", "probe").0;
                if waiting == 0 {
                    drain(&mut bob);
                }
                (send, badge)
            })
            .unzip();
        let unread = grouped(waiting);
        rows.push(Row::times(&format!("backlog: send, {unread} unread there"), send));
        rows.push(Row::times(&format!("backlog: `list_members`, {unread} unread"), badge));
    }
    Ok(rows)
}

/// From just before a send to the moment that the waiting agent has the message; then what waiting
/// costs while others write.
fn latency(bench: &Bench) -> Result<Vec<Row>> {
    let table = Table::new(bench)?;
    let (mut ada, mut bob) = (table.join("ada"), table.join("bob"));
    drop(table.join("cyd"));
    let mut times = Vec::new();
    for i in 0..bench.count(100, 15) {
        let wait = bob.post_call("wait_for_messages", json!({"timeout_seconds": 20}));
        // Long enough to be waiting, and never in step with a look that comes once a second.
        thread::sleep(Duration::from_millis(50 + 13 * (i as u64 % 7)));
        let begin = Instant::now();
        send_to(&mut ada, "bob", "wake up");
        let reply = bob.wait(wait, PATIENCE);
        times.push(begin.elapsed());
        if reply.is_error || bodies(&reply.text) != ["wake up"] {
            bob.fail("the waiting agent got something else");
        }
    }
    let mut rows = vec![Row::times("latency: send to wake-up of a waiting agent", times)];
    let seconds = bench.count(10, 2);
    if let Some(share) = cpu_share_of_waiter(&mut ada, &mut bob, seconds) {
        let share = format!("{:.1} %", 100.0 * share);
        rows.push(value("latency: CPU of a waiter, others write 50/s", share));
    }
    Ok(rows)
}

fn cpu_share_of_waiter(writer: &mut Agent, waiter: &mut Agent, seconds: usize) -> Option<f64> {
    let before = cpu_seconds(waiter)?;
    let begin = Instant::now();
    let wait = waiter.post_call("wait_for_messages", json!({"timeout_seconds": seconds}));
    // A little less than the wait, so that its end is part of what is measured.
    for i in 0..seconds * 45 {
        let due = Duration::from_millis(20) * u32::try_from(i).ok()?;
        thread::sleep(due.saturating_sub(begin.elapsed()));
        send_to(writer, "cyd", "not for the one who waits");
    }
    waiter.wait(wait, PATIENCE);
    Some((cpu_seconds(waiter)? - before) / begin.elapsed().as_secs_f64())
}

/// What a model is given to read before it has done anything.
fn tokens(bench: &Bench) -> Result<Vec<Row>> {
    let table = Table::new(bench)?;
    let mut agent = table.spawn("ada");
    let hello = agent.initialize("load");
    let instructions = hello.get("instructions").and_then(Value::as_str).unwrap_or_default();
    let listed = agent.request("tools/list", json!({}));
    let tools = listed.get("tools").and_then(Value::as_array).ok_or("no list of tools")?;
    let part = |tool: &Value, name: &str| tool.get(name).cloned().unwrap_or_default();
    let shown = tools.iter().map(|tool| {
        json!({"name": part(tool, "name"), "description": part(tool, "description"),
               "input_schema": part(tool, "inputSchema")})
    });
    let schemas = shown.collect::<Value>().to_string();
    let first = instructions.split("\n\n").next().unwrap_or_default();
    // Python, with which the figure is compared, writes what is not ASCII as `\u....`.
    let escaped = |c: char| if c.is_ascii() { 1 } else { 6 * c.len_utf16() };
    let characters = |n: usize| format!("{} characters", grouped(n));
    Ok(vec![
        value(
            &format!("tokens: schemas of {} tools", tools.len()),
            characters(schemas.chars().map(escaped).sum()),
        ),
        value("tokens: instructions", characters(instructions.chars().count())),
        value("tokens: their first paragraph", characters(first.chars().count())),
    ])
}

// --- What a figure needs

fn history(i: usize) -> Value {
    message("bob", &format!("history {i}"))
}

fn message(to: &str, body: &str) -> Value {
    json!({"recipient": to, "content": body})
}

fn send_to(agent: &mut Agent, to: &str, body: &str) -> (Duration, String) {
    timed(agent, "send_message", message(to, body))
}

/// As [`send_to`], for a send that may fail: how long it took, and whether it was sent.
fn try_send(agent: &mut Agent, to: &str, body: &str) -> (Duration, bool) {
    let begin = Instant::now();
    let reply = agent.call("send_message", message(to, body));
    let time = begin.elapsed();
    if reply.is_error {
        eprintln!("a send to {to} failed: {}", reply.text);
    }
    (time, !reply.is_error)
}

/// Ends a process as a client does, so that its exit falls into no measurement.
fn leave(mut agent: Agent) {
    agent.close_stdin();
    agent.wait_exit(PATIENCE);
}

fn value(name: &str, value: String) -> Row {
    Row::new(name, vec![value])
}

fn mib(kib: u32) -> String {
    format!("{:.1} MiB", f64::from(kib) / 1024.0)
}

/// Reads an inbox until nothing is left.
fn drain(agent: &mut Agent) -> Vec<String> {
    let mut all = Vec::new();
    loop {
        let text = timed(agent, "get_messages", json!({"limit": 100})).1;
        all.extend(bodies(&text));
        // Other members' words stand behind `| `, so this line is the server's.
        if !text.lines().any(|line| !line.starts_with('|') && line.contains(" more unread")) {
            return all;
        }
    }
}

/// The bodies in a result: behind each header line `#ID ...`, the lines that begin with `| `.
fn bodies(text: &str) -> Vec<String> {
    let mut bodies: Vec<Vec<&str>> = Vec::new();
    for line in text.lines() {
        if line.starts_with('#') {
            bodies.push(Vec::new());
        } else if let (Some(line), Some(body)) = (line.strip_prefix('|'), bodies.last_mut()) {
            body.push(line.strip_prefix(' ').unwrap_or(line));
        }
    }
    bodies.into_iter().map(|lines| lines.join("\n")).collect()
}

/// Resident memory of the process in KiB: now, and at its peak.
fn memory(agent: &Agent) -> Option<(u32, u32)> {
    let status = fs::read_to_string(format!("/proc/{}/status", agent.pid())).ok()?;
    let field = |name: &str| {
        status
            .lines()
            .find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse().ok())
    };
    Some((field("VmRSS:")?, field("VmHWM:")?))
}

/// User and system time of the process. Linux counts it in hundredths of a second here.
fn cpu_seconds(agent: &Agent) -> Option<f64> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", agent.pid())).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / 100.0)
}
