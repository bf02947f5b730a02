//! `Table`: a workspace of its own for one test, the program run in it, and what to do with both.
//!
//! A failure says all that is known: the command, how it ended, what it printed, what lies in the
//! folder and what is in the table.

#[cfg_attr(not(unix), expect(dead_code, reason = "the fault tests use the rest of it"))]
pub(crate) mod agent;
pub(crate) mod desk;
#[cfg(unix)]
pub(crate) mod faults;
#[cfg(all(unix, feature = "http"))]
pub(crate) mod http;

use std::{
    fmt::Write as _,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
};

use serde_json::Value;
use tempfile::TempDir;

use self::agent::Agent;

/// What a fixed clock shows: 2027-01-15 08:00:00 UTC.
pub(crate) const NOW: i64 = 1_800_000_000_000;

/// The program under test.
pub(crate) fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_team-table"))
}

/// A workspace in a temporary folder; gone with its value.
pub(crate) struct Table {
    folder: TempDir,
    env: Vec<(String, String)>,
}

/// How a command ended and what it printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Output {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Table {
    /// A workspace with an empty `.agent-comms/`, so that no outer one is found, and a clock that
    /// stands still at [`NOW`].
    pub(crate) fn new() -> Table {
        let table = Table::on_the_clock();
        table.env("TEAM_TABLE_NOW", &NOW.to_string())
    }

    /// As [`Table::new`], with the real clock.
    pub(crate) fn on_the_clock() -> Table {
        let folder = tempfile::Builder::new().prefix("table-").tempdir().unwrap();
        fs::create_dir(folder.path().join(".agent-comms")).unwrap();
        fs::create_dir(folder.path().join(".home")).unwrap();
        Table { folder, env: Vec::new() }
    }

    /// Sets a variable for every process that is started from now on.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Table {
        self.set(name, value);
        self
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.env.retain(|(other, _)| other != name);
        self.env.push((name.to_owned(), value.to_owned()));
    }

    /// What [`Table::set`] gave to a variable.
    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        self.env.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// `PATH` as a process gets it.
    #[cfg(unix)]
    pub(crate) fn path_variable(&self) -> String {
        let inherited = || environment("PATH").and_then(|value| value.into_string().ok());
        self.variable("PATH").map(str::to_owned).or_else(inherited).unwrap_or_default()
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The database.
    pub(crate) fn file(&self) -> PathBuf {
        self.path().join(".agent-comms").join("comms.db")
    }

    /// Runs a command without a terminal and with an empty stdin.
    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.run_with(args, &[], "")
    }

    /// Runs a command with more variables and with something on stdin.
    pub(crate) fn run_with(&self, args: &[&str], env: &[(&str, &str)], stdin: &str) -> Output {
        let mut child = self
            .command(env)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut pipe = child.stdin.take().unwrap();
        let stdin = stdin.to_owned();
        let writer = thread::spawn(move || {
            // A program that does not read its stdin closes it.
            pipe.write_all(stdin.as_bytes()).ok();
        });
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        Output {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Runs a command that must succeed; gives what it printed.
    #[track_caller]
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let output = self.run(args);
        if output.code != 0 {
            self.fail(args, &output, "it failed");
        }
        output.stdout
    }

    /// Runs a command with `--json` that must succeed; gives the one document that it printed.
    #[track_caller]
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let args = [args, &["--json"]].concat();
        let output = self.run(&args);
        match serde_json::from_str(&output.stdout) {
            Ok(value) if output.code == 0 => value,
            Ok(_) => self.fail(&args, &output, "it failed"),
            Err(err) => self.fail(&args, &output, &format!("stdout is not one document: {err}")),
        }
    }

    /// The program with a cleared environment, a home of its own and the table's variables.
    pub(crate) fn command(&self, env: &[(&str, &str)]) -> Command {
        let mut command = Command::new(program());
        command.current_dir(self.path()).env_clear();
        for name in ["PATH", "TMPDIR", "TEMP", "TMP", "SystemRoot"] {
            if let Some(value) = environment(name) {
                command.env(name, value);
            }
        }
        let home = self.path().join(".home");
        command.env("HOME", &home).env("USERPROFILE", &home).env("TZ", "UTC");
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command.envs(env.iter().copied());
        command
    }

    /// A session that wishes for this name, after the handshake.
    #[track_caller]
    pub(crate) fn agent(&self, name: &str) -> Agent {
        self.session(&["--name", name], "test", &[])
    }

    /// A session of the client called `client`, after the handshake.
    #[track_caller]
    pub(crate) fn session(&self, args: &[&str], client: &str, env: &[(&str, &str)]) -> Agent {
        let args = [&["serve"], args].concat();
        let own = self.env.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let env: Vec<(&str, &str)> = own.chain(env.iter().copied()).collect();
        let mut agent = Agent::spawn(program(), &args, self.path(), &env);
        agent.initialize(client);
        agent
    }

    /// How many rows each table of the database has; empty where there is none.
    pub(crate) fn rows(&self) -> Vec<(String, i64)> {
        if !self.file().exists() {
            return Vec::new();
        }
        let look = self.open();
        let mut names = look
            .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
            .unwrap();
        let names: Vec<String> =
            names.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        let count = |name: String| {
            let sql = format!("SELECT count(*) FROM \"{name}\"");
            let n = look.query_row(&sql, [], |row| row.get(0)).unwrap();
            (name, n)
        };
        names.into_iter().map(count).collect()
    }

    /// The rows of messages and deliveries: what a refused request must not change.
    pub(crate) fn stored(&self) -> Vec<(String, i64)> {
        let mut rows = self.rows();
        rows.retain(|(name, _)| ["message", "delivery"].contains(&name.as_str()));
        rows
    }

    /// The database, for a look.
    pub(crate) fn open(&self) -> rusqlite::Connection {
        let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
        rusqlite::Connection::open_with_flags(self.file(), flags).unwrap()
    }

    /// The database, to be changed behind the program's back.
    pub(crate) fn write(&self) -> rusqlite::Connection {
        let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE;
        rusqlite::Connection::open_with_flags(self.file(), flags).unwrap()
    }

    /// Panics with everything that helps to find out why.
    #[track_caller]
    pub(crate) fn fail(&self, args: &[&str], output: &Output, what: &str) -> ! {
        let mut text = format!("{what}\n--- command\nteam-table {}\n", args.join(" "));
        let Output { code, stdout, stderr } = output;
        let _written = write!(
            text,
            "--- exit code\n{code}\n--- stdout\n{stdout}\n--- stderr\n{stderr}\n--- variables\n{:?}\n\
             --- files in {}\n",
            self.env,
            self.path().display(),
        );
        let mut files = Vec::new();
        list(self.path(), &mut files);
        text.push_str(&files.join("\n"));
        let _written = write!(text, "\n--- rows\n{:?}", self.rows());
        panic!("{text}")
    }
}

fn list(folder: &Path, files: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        files.push(path.display().to_string());
        if path.is_dir() {
            list(&path, files);
        }
    }
    files.sort();
}

#[expect(clippy::disallowed_methods, reason = "passes a few variables on to the process it starts")]
fn environment(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name)
}

/// A named pipe, which nobody opens at the other end.
#[cfg(unix)]
pub(crate) fn make_pipe(path: &Path) {
    // By the command: not every system has a call for it that rustix knows.
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// How often a test does what chance has a part in, or takes long: ten times more where that is
/// wanted (`TEAM_TABLE_SLOW_TESTS=1`).
#[expect(clippy::disallowed_methods, reason = "the tests' own switch")]
pub(crate) fn rounds(usually: u32) -> u32 {
    let slow = std::env::var_os("TEAM_TABLE_SLOW_TESTS").is_some_and(|value| value == "1");
    if slow { usually * 10 } else { usually }
}
