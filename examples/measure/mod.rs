//! What the measuring examples share: their arguments, agents at a throw-away table, and the table
//! that they print.

use std::{
    env,
    error::Error,
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use self::agent::{Agent, PATIENCE, Reply};

#[path = "../../tests/it/support/agent.rs"]
#[expect(dead_code, reason = "tests use more of it")]
pub(crate) mod agent;

pub(crate) type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

pub(crate) type Figure = fn(&Bench) -> Result<Vec<Row>>;

/// Measures the figures that the command line names, all of them if it names none, and prints them.
///
/// # Errors
/// Wrong arguments, and rows that failed.
pub(crate) fn run(figures: &[(&str, Figure)], options: &[&str], columns: &[&str]) -> Result<()> {
    let (bench, chosen) = arguments(env::args().skip(1), figures, options)?;
    eprintln!("measuring {}", bench.program.display());
    if cfg!(debug_assertions) {
        eprintln!("this is a debug build: build with --release for figures to quote");
    }
    let mut rows = Vec::new();
    for (name, figure) in figures.iter().filter(|(name, _)| chosen.iter().any(|it| it == name)) {
        let begin = Instant::now();
        rows.extend(figure(&bench).map_err(|err| format!("{name}: {err}"))?);
        eprintln!("{name}: took {:.1} s", begin.elapsed().as_secs_f64());
    }
    print_table(columns, &rows);
    let failed: Vec<&str> =
        rows.iter().filter(|row| row.failed).map(|row| row.name.as_str()).collect();
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join("; ")).into()) }
}

/// From here on all is done on one processor, as far as the system lets us choose: it costs as much to
/// wake another one as a call takes, and which program has to is the scheduler's mood.
pub(crate) fn stay_on_one_processor() {
    #[cfg(target_os = "linux")]
    {
        use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
        let stayed = sched_getaffinity(None).and_then(|all| {
            let mut one = CpuSet::new();
            let first = (0..CpuSet::MAX_CPU).find(|cpu| all.is_set(*cpu));
            one.set(first.unwrap_or_default());
            sched_setaffinity(None, &one)
        });
        if let Err(err) = stayed {
            eprintln!("the processors change as the scheduler likes: {err}");
        }
    }
}

fn arguments(
    mut given: impl Iterator<Item = String>,
    figures: &[(&str, Figure)],
    options: &[&str],
) -> Result<(Bench, Vec<String>)> {
    let mut bench = Bench { program: built_program()?, quick: false, options: Vec::new() };
    let mut chosen = Vec::new();
    let names: Vec<&str> = figures.iter().map(|(name, _)| *name).collect();
    while let Some(argument) = given.next() {
        match argument.as_str() {
            "--quick" => bench.quick = true,
            "--bin" => {
                let path = given.next().ok_or("--bin needs a path")?;
                bench.program = std::path::absolute(path)?;
            }
            option if options.contains(&option) => {
                let value = given.next().ok_or_else(|| format!("{option} needs a value"))?;
                bench.options.push((argument, value));
            }
            name if names.contains(&name) => chosen.push(argument),
            _ => return Err(format!("no `{argument}`; there are {}", names.join(", ")).into()),
        }
    }
    if !bench.program.exists() {
        return Err(format!("no `{}`: run cargo build first", bench.program.display()).into());
    }
    if chosen.is_empty() {
        chosen = names.into_iter().map(str::to_owned).collect();
    }
    Ok((bench, chosen))
}

/// The `team-table` that was built beside this example, which is in `target/*/examples/`.
fn built_program() -> Result<PathBuf> {
    let example = env::current_exe()?;
    let folder = example.ancestors().nth(2).ok_or("this program is in no folder")?;
    Ok(folder.join(format!("team-table{}", env::consts::EXE_SUFFIX)))
}

// --- Agents at a table

pub(crate) struct Bench {
    pub(crate) program: PathBuf,
    pub(crate) quick: bool,
    /// What stood behind the example's own options.
    pub(crate) options: Vec<(String, String)>,
}

impl Bench {
    pub(crate) fn count(&self, usual: usize, quick: usize) -> usize {
        if self.quick { quick } else { usual }
    }
}

/// A throw-away workspace.
pub(crate) struct Table<'a> {
    program: &'a Path,
    folder: tempfile::TempDir,
}

impl Table<'_> {
    pub(crate) fn new(bench: &Bench) -> Result<Table<'_>> {
        let folder = tempfile::Builder::new().prefix("team-table-load-").tempdir()?;
        // Makes the folder the workspace, whatever other workspace it may lie in.
        fs::create_dir(folder.path().join(".agent-comms"))?;
        Ok(Table { program: &bench.program, folder })
    }

    pub(crate) fn spawn(&self, name: &str) -> Agent {
        self.serve(&["--name", name])
    }

    /// A server that is given these arguments.
    pub(crate) fn serve(&self, arguments: &[&str]) -> Agent {
        let unlimited = [("TEAM_TABLE_MAX_PER_MINUTE", "0")];
        let arguments = [&["serve"], arguments].concat();
        Agent::spawn(self.program, &arguments, self.folder.path(), &unlimited)
    }

    /// A process that has its seat already.
    pub(crate) fn join(&self, name: &str) -> Agent {
        let mut agent = self.spawn(name);
        agent.initialize("load");
        timed(&mut agent, "register", json!({}));
        agent
    }
}

/// A call that must succeed: how long it took, from the request's first byte to the answer's last,
/// and its text. What this client does to write the one and to understand the other is left out.
#[expect(clippy::needless_pass_by_value, reason = "`json!` reads better without a `&`")]
pub(crate) fn timed(agent: &mut Agent, tool: &str, arguments: Value) -> (Duration, String) {
    // No agent counts its own requests so far.
    static LAST_ID: AtomicU64 = AtomicU64::new(1 << 32);
    let id = LAST_ID.fetch_add(1, Ordering::Relaxed);
    let params = json!({"name": tool, "arguments": arguments});
    let request = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
    let request = request.to_string();
    let begin = Instant::now();
    agent.write_line(&request);
    let (time, answer) = loop {
        let Ok(line) = agent.read_line(PATIENCE) else {
            agent.fail(&format!("{tool} was not answered"));
        };
        let time = begin.elapsed();
        match serde_json::from_str::<Value>(&line) {
            Ok(answer) if answer.get("id") == Some(&json!(id)) => break (time, answer),
            // Something that the server says unasked.
            _ => {}
        }
    };
    let reply = Reply::new(answer);
    if reply.is_error {
        agent.fail(&format!("{tool} failed: {}", reply.text));
    }
    (time, reply.text)
}

/// Makes `n` calls, 50 at a time without waiting; all must succeed.
pub(crate) fn flood(agent: &mut Agent, tool: &str, n: usize, arguments: impl Fn(usize) -> Value) {
    for begin in (0..n).step_by(50) {
        let batch: Vec<u64> =
            (begin..n.min(begin + 50)).map(|i| agent.post_call(tool, arguments(i))).collect();
        for id in batch {
            let reply = agent.wait(id, PATIENCE);
            if reply.is_error {
                agent.fail(&format!("{tool} failed: {}", reply.text));
            }
        }
    }
}

// --- The printed table

/// A line of the table. A figure without a distribution stands in the first column.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) columns: Vec<String>,
    pub(crate) failed: bool,
}

impl Row {
    pub(crate) fn new(name: impl Into<String>, columns: Vec<String>) -> Row {
        Row { name: name.into(), columns, failed: false }
    }

    /// The times at 50, 99 and 100 percent.
    pub(crate) fn times(name: &str, mut times: Vec<Duration>) -> Row {
        times.sort_unstable();
        let last = times.len().saturating_sub(1);
        let columns = [50, 99, 100].map(|percent| {
            times.get(last.min(times.len() * percent / 100)).copied().map(human).unwrap_or_default()
        });
        Row::new(name, columns.to_vec())
    }
}

pub(crate) fn median(times: &[Duration]) -> Duration {
    let mut times = times.to_vec();
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// A row with what its time is a multiple of, and the bound of that.
pub(crate) fn bounded(mut row: Row, ratio: f64, bound: &str, holds: bool) -> Row {
    row.columns.extend([format!("{ratio:.2}"), bound.to_owned()]);
    row.failed = !holds;
    row
}

pub(crate) fn human(time: Duration) -> String {
    let us = time.as_secs_f64() * 1e6;
    if us < 1000.0 { format!("{us:.0} us") } else { format!("{:.1} ms", us / 1e3) }
}

/// `100000` as `100,000`.
pub(crate) fn grouped(n: usize) -> String {
    if n < 1000 { n.to_string() } else { format!("{},{:03}", grouped(n / 1000), n % 1000) }
}

fn print_table(columns: &[&str], rows: &[Row]) {
    let head = Row::new("figure", columns.iter().map(|&column| column.to_owned()).collect());
    let lines = || std::iter::once(&head).chain(rows);
    let name_width = lines().map(|row| row.name.len()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..columns.len())
        .map(|column| {
            let cells = lines().filter_map(|row| row.columns.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
        })
        .collect();
    for (number, row) in lines().enumerate() {
        let cells = widths.iter().enumerate().map(|(column, width)| {
            let cell = row.columns.get(column).map(String::as_str).unwrap_or_default();
            format!(" {cell:>width$} |")
        });
        println!("| {:name_width$} |{}", row.name, cells.collect::<String>());
        if number == 0 {
            let rules = widths.iter().map(|width| format!("-{}:|", "-".repeat(*width)));
            println!("|-{}-|{}", "-".repeat(name_width), rules.collect::<String>());
        }
    }
}
