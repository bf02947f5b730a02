//! What the fault tests share: a workspace of their own, commands in it, looks at its table from
//! outside, and a client that holds the server's pipes itself.

use std::{
    collections::HashMap,
    fs::{self, File},
    io::{ErrorKind, Read as _, Write as _},
    os::{fd::OwnedFd, unix::net::UnixStream},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};

use super::agent::{Agent, PATIENCE, Reply};
pub(crate) use super::rounds;

/// The program under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_team-table");

/// A workspace for one test.
pub(crate) struct Place {
    folder: tempfile::TempDir,
}

/// What a command came to.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Place {
    pub(crate) fn new() -> Place {
        let folder = tempfile::tempdir().unwrap();
        // The top of a checkout, so that the search for a table ends here.
        fs::create_dir(folder.path().join(".git")).unwrap();
        write(&folder.path().join(".git/HEAD"), b"ref: refs/heads/main\n");
        Place { folder }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn comms(&self) -> PathBuf {
        self.path().join(".agent-comms")
    }

    pub(crate) fn table(&self) -> PathBuf {
        self.comms().join("comms.db")
    }

    /// A server that nobody has said anything to.
    pub(crate) fn serve(&self, args: &[&str], env: &[(&str, &str)]) -> Agent {
        let args = [&["serve"], args].concat();
        let env = [&[("TEAM_TABLE_MAX_PER_MINUTE", "0")], env].concat();
        Agent::spawn(Path::new(PROGRAM), &args, self.path(), &env)
    }

    /// A server behind the handshake. It sits down at its first call.
    pub(crate) fn started(&self, args: &[&str], env: &[(&str, &str)]) -> Agent {
        let mut agent = self.serve(args, env);
        agent.initialize("tester");
        agent
    }

    /// A session that sits at `name`.
    pub(crate) fn seated(&self, name: &str) -> Agent {
        let mut agent = self.started(&["--name", name], &[]);
        let reply = ok(agent.call("register", json!({})));
        assert!(reply.contains(&format!("you are `{name}`")), "{reply}");
        agent
    }

    /// A command in this workspace, not started yet.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        self.command_of(PROGRAM, args)
    }

    /// As [`Place::command`], for another program.
    pub(crate) fn command_of(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(args).current_dir(self.path()).env_clear();
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin");
        command.env("HOME", self.path().join("home")).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Done {
        finish(self.command(args))
    }

    /// Runs a command that must succeed; gives its output.
    #[track_caller]
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let done = self.run(args);
        assert_eq!(done.code, Some(0), "{args:?}: {done:?}");
        done.stdout
    }

    /// Sends a message from the command line, where no table is as its first writer; gives its id.
    #[track_caller]
    pub(crate) fn send(&self, from: &str, to: &str, body: &str) -> u64 {
        if !self.table().exists() {
            self.ok(&["register", "--as", from]);
        }
        id_in(&self.ok(&["send", "--as", from, to, body]))
    }

    /// The table, opened by this process.
    pub(crate) fn open(&self) -> Connection {
        open(&self.table())
    }

    /// One number from the table.
    #[track_caller]
    pub(crate) fn number(&self, sql: &str) -> i64 {
        self.open().query_row(sql, [], |row| row.get(0)).unwrap()
    }

    /// The first column of a query.
    #[track_caller]
    pub(crate) fn texts(&self, sql: &str) -> Vec<String> {
        let conn = self.open();
        let mut statement = conn.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.map(Result::unwrap).collect()
    }

    /// The table is sound, and no foreign key leads nowhere.
    #[track_caller]
    pub(crate) fn assert_sound(&self) {
        assert_eq!(self.texts("PRAGMA integrity_check"), ["ok"]);
        assert_eq!(self.number("SELECT count(*) FROM pragma_foreign_key_check"), 0);
    }
}

/// Runs a command to its end.
pub(crate) fn finish(mut command: Command) -> Done {
    let output = command.output().unwrap();
    Done {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

pub(crate) fn open(path: &Path) -> Connection {
    let conn = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE).unwrap();
    conn.busy_timeout(Duration::from_secs(10)).unwrap();
    conn
}

/// The text of a reply that must not be an error.
#[track_caller]
pub(crate) fn ok(reply: Reply) -> String {
    assert!(!reply.is_error, "{}", reply.raw);
    reply.text
}

/// The text of a reply that must be an error.
#[track_caller]
pub(crate) fn failed(reply: Reply) -> String {
    assert!(reply.is_error, "{}", reply.raw);
    reply.text
}

/// The id in `sent #41 to ...`.
#[track_caller]
pub(crate) fn id_in(text: &str) -> u64 {
    let rest = text.split_once('#').map(|(_, rest)| rest).unwrap_or_default();
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or_else(|err| unreachable!("no id in `{text}`: {err}"))
}

/// The messages in a result, and whether each is marked as handed out before.
pub(crate) fn messages_in(text: &str) -> Vec<(u64, bool)> {
    let headers = text.lines().filter(|line| line.starts_with('#'));
    headers.map(|line| (id_in(line), line.ends_with("(again)"))).collect()
}

/// The name in ``you are `NAME` ``.
#[track_caller]
pub(crate) fn name_in(text: &str) -> String {
    let name = text.split_once("you are `").and_then(|(_, rest)| rest.split_once('`'));
    name.unwrap_or_else(|| unreachable!("nobody is told a name in `{text}`")).0.to_owned()
}

/// How often each message was seen as new, and how often at all.
#[derive(Debug, Default)]
pub(crate) struct Seen(HashMap<u64, (u32, u32)>);

impl Seen {
    pub(crate) fn add(&mut self, text: &str) {
        for (id, again) in messages_in(text) {
            let counts = self.0.entry(id).or_default();
            counts.0 += u32::from(!again);
            counts.1 += 1;
        }
    }

    pub(crate) fn has(&self, id: u64) -> bool {
        self.0.contains_key(&id)
    }

    /// Each of these was seen, and none was seen as new twice.
    #[track_caller]
    pub(crate) fn assert_complete(&self, sent: impl IntoIterator<Item = u64>) {
        let lost: Vec<u64> = sent.into_iter().filter(|id| !self.has(*id)).collect();
        assert!(lost.is_empty(), "lost: {lost:?}");
        let twice: Vec<_> = self.0.iter().filter(|(_, (new, _))| *new > 1).collect();
        assert!(twice.is_empty(), "as new more than once: {twice:?}");
    }
}

/// Waits until `is_so`, or fails saying what was awaited.
#[track_caller]
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "never came to be: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// Waits until a process waits beside the session of `member` to wake it, and has looked once.
#[track_caller]
pub(crate) fn until_someone_waits(place: &Place, member: &str) {
    let path = place.comms().join(format!("seats/wake-{member}.lock"));
    eventually("a process waits beside the session", || {
        File::open(&path).is_ok_and(|lock| fs2::FileExt::try_lock_shared(&lock).is_err())
    });
}

/// What a process has in memory, in KiB.
#[cfg(target_os = "linux")]
pub(crate) fn memory(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Writes a file of the test's own.
#[expect(clippy::disallowed_methods, reason = "no one else reads it meanwhile")]
pub(crate) fn write(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).unwrap();
}

/// Says that a test, or a part of it, did not run.
#[expect(clippy::print_stderr, reason = "the one way to say so")]
pub(crate) fn skipped(why: &str) {
    eprintln!("skipped: {why}");
}

/// Numbers without pattern, the same in each run.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// From 0 to below `n`.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

/// How a client is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    Pipes,
    /// As clients on Node do it.
    Sockets,
}

/// A client that decides by itself when it reads. Killed when dropped.
pub(crate) struct Raw {
    child: Child,
    pub(crate) stdin: Option<File>,
    pub(crate) stdout: Option<File>,
    partial: Vec<u8>,
}

impl Raw {
    /// Starts a server behind the handshake.
    pub(crate) fn started(place: &Place, wire: Wire, args: &[&str]) -> Raw {
        let mut raw = Raw::start(place.command(&[&["serve"], args].concat()), wire);
        raw.write(&handshake());
        let answer = raw.line();
        assert!(answer.contains("protocolVersion"), "{answer}");
        raw
    }

    /// Starts any command with its stdin and stdout in our hands.
    pub(crate) fn start(mut command: Command, wire: Wire) -> Raw {
        command.stderr(Stdio::null());
        let (child, stdin, stdout): (Child, OwnedFd, OwnedFd) = match wire {
            Wire::Pipes => {
                command.stdin(Stdio::piped()).stdout(Stdio::piped());
                let mut child = command.spawn().unwrap();
                let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
                (child, stdin.into(), stdout.into())
            }
            Wire::Sockets => {
                let (our_in, their_in) = UnixStream::pair().unwrap();
                let (our_out, their_out) = UnixStream::pair().unwrap();
                command.stdin(OwnedFd::from(their_in)).stdout(OwnedFd::from(their_out));
                let child = command.spawn().unwrap();
                (child, our_in.into(), our_out.into())
            }
        };
        // Its copies of the ends that are the child's go with it.
        drop(command);
        let (stdin, stdout) = (Some(File::from(stdin)), Some(File::from(stdout)));
        Raw { child, stdin, stdout, partial: Vec::new() }
    }

    /// Writes all of it at once.
    pub(crate) fn write(&mut self, text: &str) {
        self.stdin.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// The next line of stdout.
    #[track_caller]
    pub(crate) fn line(&mut self) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(end) = self.partial.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.partial.drain(..=end).collect();
                return String::from_utf8(line).unwrap();
            }
            assert!(Instant::now() < deadline, "no line within {PATIENCE:?}");
            if self.unread() == 0 {
                thread::sleep(Duration::from_micros(100));
                continue;
            }
            let mut buffer = [0; 4096];
            let n = self.stdout.as_mut().unwrap().read(&mut buffer).unwrap();
            self.partial.extend(buffer.iter().take(n));
        }
    }

    /// The text of the next result.
    #[track_caller]
    pub(crate) fn result(&mut self) -> String {
        let line: Value = serde_json::from_str(&self.line()).unwrap();
        let text = line.pointer("/result/content/0/text").and_then(Value::as_str);
        text.unwrap_or_else(|| unreachable!("no result: {line}")).to_owned()
    }

    /// Bytes that the server wrote and we have not read.
    pub(crate) fn unread(&self) -> u64 {
        rustix::io::ioctl_fionread(self.stdout.as_ref().unwrap()).unwrap()
    }

    /// Waits until there is more than `more_than` to read, and no more comes.
    #[track_caller]
    pub(crate) fn wait_unread(&self, more_than: u64) -> u64 {
        eventually("an answer in the pipe", || self.unread() > more_than);
        let mut n_bytes = self.unread();
        loop {
            thread::sleep(Duration::from_millis(60));
            if std::mem::replace(&mut n_bytes, self.unread()) == n_bytes {
                return n_bytes;
            }
        }
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), signal)
            .unwrap();
    }

    pub(crate) fn kill9(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for the process to end; says how it ended and how long that took from now.
    #[track_caller]
    pub(crate) fn wait_exit(&mut self) -> (ExitStatus, Duration) {
        let start = Instant::now();
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return (status, start.elapsed()),
                Ok(None) => {}
                Err(err) => assert_eq!(err.kind(), ErrorKind::Interrupted, "{err}"),
            }
            assert!(start.elapsed() < PATIENCE, "it did not exit");
            thread::sleep(Duration::from_micros(200));
        }
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// The two lines that open a session.
pub(crate) fn handshake() -> String {
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "tester", "version": "1"}}});
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    format!("{hello}\n{ready}\n")
}

/// The line that calls a tool.
pub(crate) fn call(id: u64, tool: &str, arguments: &Value) -> String {
    let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
                      "params": {"name": tool, "arguments": arguments}});
    format!("{call}\n")
}

/// The best of several tries counts, and what the machine takes for others is taken off: what it does
/// beside delays some, and not all.
#[track_caller]
pub(crate) fn best_of(
    n_tries: usize,
    what: &str,
    limit: Duration,
    mut once: impl FnMut() -> Duration,
) {
    let mut all = Vec::new();
    for _ in 0..n_tries {
        let took = once();
        if took < limit {
            return;
        }
        let delay = delay_of_machine();
        all.push((took, delay));
        if took < limit + delay {
            return;
        }
        assert!(took < Duration::from_secs(1) + delay, "{what} took {took:?}, of it {delay:?}");
    }
    panic!("{what}: {all:?} (and what the machine takes for others) against {limit:?}");
}

/// How long ten programs take, one after another, that have nothing to do: next to nothing where the
/// machine has time.
fn delay_of_machine() -> Duration {
    let start = Instant::now();
    for _ in 0..10 {
        assert!(Command::new("true").status().unwrap().success());
    }
    start.elapsed()
}
