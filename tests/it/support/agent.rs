//! `Agent`: the smallest honest MCP client. It starts the real program and talks to it line by line.
//!
//! Every wait has a deadline, and a failure panics with all that is known: the command, what was
//! said last in both directions, the exit status and stderr. It knows JSON-RPC, and nothing of what
//! the texts of tools mean. The load generator measures with it, so on Unix the caller's own thread
//! reads the pipe: with `poll` this client costs 2 us per round trip, a reader thread would add 7.
#![expect(clippy::panic, reason = "a test's client fails loudly, with all that it knows")]
#![expect(clippy::needless_pass_by_value, reason = "`json!` reads better without a `&`")]

use std::{
    collections::VecDeque,
    io::{self, ErrorKind, Read as _, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

/// How long a call waits for its answer unless the test says otherwise.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// What an agent's process gets of our environment. All else, above all what says that we run below
/// an agent ourselves, stays out.
const PASSED_ON: &[&str] = &["PATH", "TMPDIR", "TEMP", "TMP", "SystemRoot"];

/// One `team-table serve` and the pipes to it. Dropped while it runs, it is killed with its group.
pub(crate) struct Agent {
    child: Child,
    status: Option<ExitStatus>,
    stdin: Option<ChildStdin>,
    stdout: Source,
    /// Bytes that came and are not a whole line yet.
    partial: Vec<u8>,
    /// Whole lines that nobody has read yet.
    lines: VecDeque<String>,
    /// Messages that came while another one was awaited: notifications and later answers.
    pub(crate) early: Vec<Value>,
    last_id: u64,
    stderr: Arc<Mutex<Vec<u8>>>,
    /// The last lines in both directions, for failure messages.
    said: VecDeque<String>,
    command: String,
    home: PathBuf,
}

/// The answer to `tools/call`.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    /// All text content, or the message of a protocol error.
    pub(crate) text: String,
    /// The tool failed (`isError`), or the protocol did (then `raw` has an `error`).
    pub(crate) is_error: bool,
    /// The whole JSON-RPC message.
    pub(crate) raw: Value,
}

/// Why something did not come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// Not within the given time.
    Timeout,
    /// Never: the server has closed its stdout.
    Closed,
}

impl Agent {
    /// Starts `program args` in `cwd` with an almost empty environment, a home of its own and `env`.
    #[track_caller]
    pub(crate) fn spawn(program: &Path, args: &[&str], cwd: &Path, env: &[(&str, &str)]) -> Agent {
        let description =
            format!("{} {} (in {}, {env:?})", program.display(), args.join(" "), cwd.display());
        Agent::try_spawn(program, args, cwd, env, &description)
            .unwrap_or_else(|err| panic!("cannot start {description}: {err}"))
    }

    fn try_spawn(
        program: &Path,
        args: &[&str],
        cwd: &Path,
        env: &[(&str, &str)],
        description: &str,
    ) -> io::Result<Agent> {
        let home = new_home()?;
        let mut command = Command::new(program);
        command.args(args).current_dir(cwd).env_clear();
        command.envs(PASSED_ON.iter().filter_map(|name| Some((name, environment(name)?))));
        command.env("HOME", &home).env("USERPROFILE", &home).envs(env.iter().copied());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn()?;
        let gone = || io::Error::other("no pipe");
        let stdin = child.stdin.take().ok_or_else(gone)?;
        let stdout = child.stdout.take().ok_or_else(gone)?;
        let from = child.stderr.take().ok_or_else(gone)?;
        // So that a server that no longer reads cannot hang us; see `write_line`.
        #[cfg(unix)]
        rustix::fs::fcntl_setfl(&stdin, rustix::fs::OFlags::NONBLOCK)?;
        let stderr = Arc::new(Mutex::new(Vec::new()));
        thread::spawn({
            let stderr = Arc::clone(&stderr);
            move || collect(from, &stderr)
        });
        Ok(Agent {
            child,
            status: None,
            stdin: Some(stdin),
            stdout: Source::new(stdout),
            partial: Vec::new(),
            lines: VecDeque::new(),
            early: Vec::new(),
            last_id: 0,
            stderr,
            said: VecDeque::new(),
            command: description.to_owned(),
            home,
        })
    }

    /// The handshake as the client called `name`; gives the server's `result`.
    #[track_caller]
    pub(crate) fn initialize(&mut self, name: &str) -> Value {
        let result = self.request(
            "initialize",
            json!({"protocolVersion": "2025-06-18", "capabilities": {},
                   "clientInfo": {"name": name, "version": "1"}}),
        );
        self.notify("notifications/initialized", json!({}));
        result
    }

    /// Calls a tool and waits for the answer.
    #[track_caller]
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Reply {
        let id = self.post_call(tool, arguments);
        self.wait(id, PATIENCE)
    }

    /// A request that must succeed; gives its `result`.
    #[track_caller]
    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.post(method, params);
        let mut raw = self.wait(id, PATIENCE).raw;
        match raw.get_mut("result") {
            Some(result) => result.take(),
            None => self.fail(&format!("{method} was answered by {raw}")),
        }
    }

    /// Sends a request and does not wait; gives its id for [`Agent::wait`].
    #[track_caller]
    pub(crate) fn post(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Sends `tools/call` and does not wait.
    #[track_caller]
    pub(crate) fn post_call(&mut self, tool: &str, arguments: Value) -> u64 {
        self.post("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// Waits for the answer to `id`, in whatever order answers come.
    #[track_caller]
    pub(crate) fn wait(&mut self, id: u64, timeout: Duration) -> Reply {
        match self.try_wait(id, timeout) {
            Ok(reply) => reply,
            Err(why) => self.fail(&format!("no answer to request {id} ({why:?}, {timeout:?})")),
        }
    }

    /// As [`Agent::wait`], for answers that may rightly stay away.
    #[track_caller]
    pub(crate) fn try_wait(&mut self, id: u64, timeout: Duration) -> Result<Reply, Missing> {
        let deadline = Instant::now() + timeout;
        if let Some(at) = self.early.iter().position(|message| answers(message, id)) {
            return Ok(Reply::new(self.early.remove(at)));
        }
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = self.read_line(left)?;
            let message: Value = match serde_json::from_str(&line) {
                Ok(message) => message,
                Err(err) => self.fail(&format!("stdout carries what is not JSON: {err}: {line}")),
            };
            if answers(&message, id) {
                return Ok(Reply::new(message));
            }
            self.early.push(message);
        }
    }

    /// Sends a notification.
    #[track_caller]
    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Takes back a request that was posted.
    #[track_caller]
    pub(crate) fn cancel(&mut self, id: u64) {
        self.notify("notifications/cancelled", json!({"requestId": id}));
    }

    #[track_caller]
    fn send(&mut self, message: &Value) {
        self.write_line(&message.to_string());
    }

    /// Writes any line as it is. A server that is gone shows at the next wait, not here.
    #[track_caller]
    pub(crate) fn write_line(&mut self, line: &str) {
        self.remember('>', line);
        let bytes = [line.as_bytes(), b"\n"].concat();
        let deadline = Instant::now() + PATIENCE;
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let Some(stdin) = &mut self.stdin else { self.fail("stdin is closed already") };
            match stdin.write(rest).map_err(|err| err.kind()) {
                Ok(n) => rest = rest.get(n..).unwrap_or_default(),
                Err(ErrorKind::BrokenPipe) => return,
                Err(ErrorKind::Interrupted) => {}
                Err(ErrorKind::WouldBlock) if Instant::now() < deadline => {
                    // The server may be waiting for us to read. If it has closed, the write says so.
                    if self.fill(Duration::from_millis(1)) == Err(Missing::Closed) {
                        thread::sleep(Duration::from_millis(1));
                    }
                }
                Err(kind) => self.fail(&format!("the server does not read its stdin: {kind}")),
            }
        }
    }

    /// The next line of stdout, whatever it is, without its line end.
    pub(crate) fn read_line(&mut self, timeout: Duration) -> Result<String, Missing> {
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(line) = self.lines.pop_front() {
                self.remember('<', &line);
                return Ok(line);
            }
            self.fill(deadline.saturating_duration_since(Instant::now()))?;
        }
    }

    /// Takes in what stdout has to give, waiting for it at most `timeout`.
    fn fill(&mut self, timeout: Duration) -> Result<(), Missing> {
        let from = self.partial.len();
        self.stdout.read(&mut self.partial, timeout)?;
        let new = self.partial.get(from..).unwrap_or_default();
        let Some(end) = new.iter().rposition(|byte| *byte == b'\n') else { return Ok(()) };
        let whole: Vec<u8> = self.partial.drain(..=from + end).collect();
        let whole = String::from_utf8_lossy(&whole);
        self.lines.extend(whole.split_terminator('\n').map(str::to_owned));
        Ok(())
    }

    /// Ends the server's input, as a client does that quits.
    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Kills the process at once, as a crash would, and waits until it is gone.
    pub(crate) fn kill9(&mut self) {
        if self.status.is_none() {
            // An error means that it has just ended by itself.
            self.child.kill().ok();
            self.wait_exit(PATIENCE);
        }
    }

    /// Sends a signal to the process (not to its group).
    #[cfg(unix)]
    pub(crate) fn signal(&mut self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        if self.status.is_some() || rustix::process::kill_process(pid, signal).is_err() {
            self.fail(&format!("cannot send {signal:?}: the process is gone"));
        }
    }

    /// Waits for the process to end; says how it ended and how long that took from now.
    #[track_caller]
    pub(crate) fn wait_exit(&mut self, timeout: Duration) -> (ExitStatus, Duration) {
        let start = Instant::now();
        loop {
            if let Some(status) = self.exited() {
                return (status, start.elapsed());
            }
            if start.elapsed() > timeout {
                self.fail(&format!("it did not exit within {timeout:?}"));
            }
            thread::sleep(Duration::from_micros(200));
        }
    }

    /// How the process ended, if it has.
    pub(crate) fn exited(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What the process has written to stderr so far.
    pub(crate) fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.stderr.lock().unwrap_or_else(PoisonError::into_inner))
            .into_owned()
    }

    /// Panics with `what` and everything that helps to find out why.
    #[track_caller]
    pub(crate) fn fail(&mut self, what: &str) -> ! {
        // Else the last words of a process that just died would be missed.
        thread::sleep(Duration::from_millis(20));
        let status =
            self.exited().map_or_else(|| "running".to_owned(), |status| status.to_string());
        let said: Vec<&str> = self.said.iter().map(String::as_str).collect();
        panic!(
            "{what}\n--- command (process {})\n{}\n--- said last\n{}\n--- status\n{status}\n--- stderr\n{}",
            self.pid(),
            self.command,
            said.join("\n"),
            self.stderr(),
        )
    }

    fn remember(&mut self, direction: char, line: &str) {
        const LINES: usize = 12;
        const CHARS: usize = 600;
        if self.said.len() == LINES {
            self.said.pop_front();
        }
        let end = line.char_indices().nth(CHARS).map_or(line.len(), |(at, _)| at);
        let cut = if end < line.len() { " ..." } else { "" };
        self.said.push_back(format!("{direction} {}{cut}", line.get(..end).unwrap_or_default()));
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        if self.exited().is_none() {
            #[cfg(unix)]
            rustix::process::kill_process_group(
                rustix::process::Pid::from_child(&self.child),
                rustix::process::Signal::KILL,
            )
            .ok();
            self.child.kill().ok();
            self.child.wait().ok();
        }
        std::fs::remove_dir_all(&self.home).ok();
    }
}

impl Reply {
    pub(crate) fn new(raw: Value) -> Reply {
        let content = raw.pointer("/result/content").and_then(Value::as_array);
        let texts = content.into_iter().flatten().filter_map(|part| part.get("text")?.as_str());
        let text = match raw.pointer("/error/message").and_then(Value::as_str) {
            Some(message) => message.to_owned(),
            None => texts.collect::<Vec<_>>().join("\n"),
        };
        let failed = raw.pointer("/result/isError").and_then(Value::as_bool).unwrap_or(false);
        Reply { text, is_error: failed || raw.get("error").is_some(), raw }
    }
}

/// Where bytes come from, with a deadline. On Unix that is `poll`, without a thread.
#[cfg(unix)]
struct Source {
    pipe: std::process::ChildStdout,
    buffer: Vec<u8>,
}

#[cfg(unix)]
impl Source {
    fn new(pipe: std::process::ChildStdout) -> Source {
        Source { pipe, buffer: vec![0; 1 << 16] }
    }

    /// Appends what there is to `into`, waiting for it at most `timeout`.
    fn read(&mut self, into: &mut Vec<u8>, timeout: Duration) -> Result<(), Missing> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};

        let timeout = Timespec::try_from(timeout).map_err(|_| Missing::Timeout)?;
        let mut ready = [PollFd::new(&self.pipe, PollFlags::IN)];
        match poll(&mut ready, Some(&timeout)) {
            Ok(0) => return Err(Missing::Timeout),
            Err(rustix::io::Errno::INTR) => return Ok(()),
            _ => {}
        }
        match self.pipe.read(&mut self.buffer) {
            Ok(0) | Err(_) => Err(Missing::Closed),
            Ok(n) => {
                into.extend_from_slice(self.buffer.get(..n).unwrap_or_default());
                Ok(())
            }
        }
    }
}

/// Where bytes come from, with a deadline. Elsewhere that takes a thread and a channel.
#[cfg(not(unix))]
struct Source(std::sync::mpsc::Receiver<Vec<u8>>);

#[cfg(not(unix))]
impl Source {
    fn new(mut pipe: std::process::ChildStdout) -> Source {
        let (sender, receiver) = std::sync::mpsc::channel();
        thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            while let Ok(n @ 1..) = pipe.read(&mut buffer) {
                if sender.send(buffer.get(..n).unwrap_or_default().to_vec()).is_err() {
                    break;
                }
            }
        });
        Source(receiver)
    }

    /// Appends what there is to `into`, waiting for it at most `timeout`.
    fn read(&mut self, into: &mut Vec<u8>, timeout: Duration) -> Result<(), Missing> {
        use std::sync::mpsc::RecvTimeoutError;

        let bytes = self.0.recv_timeout(timeout).map_err(|err| match err {
            RecvTimeoutError::Timeout => Missing::Timeout,
            RecvTimeoutError::Disconnected => Missing::Closed,
        })?;
        into.extend(bytes);
        Ok(())
    }
}

fn collect(mut from: impl io::Read, into: &Mutex<Vec<u8>>) {
    let mut buffer = [0; 4096];
    while let Ok(n @ 1..) = from.read(&mut buffer) {
        let mut into = into.lock().unwrap_or_else(PoisonError::into_inner);
        into.extend_from_slice(buffer.get(..n).unwrap_or_default());
    }
}

fn answers(message: &Value, id: u64) -> bool {
    message.get("id").and_then(Value::as_u64) == Some(id) && message.get("method").is_none()
}

/// An empty folder to be the process's `HOME`, so that it finds nothing of the user's.
fn new_home() -> io::Result<PathBuf> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let home = std::env::temp_dir().join(format!("agent-home-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&home)?;
    Ok(home)
}

#[expect(clippy::disallowed_methods, reason = "passes a few variables on to the process it starts")]
fn environment(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name)
}
