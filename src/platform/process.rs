//! Processes, streams and shells.

#[cfg(target_os = "linux")]
use std::fs;
#[cfg(unix)]
use std::io;
use std::{borrow::Cow, path::PathBuf};

/// The process that started this one, where the system tells and it can change: an orphan is given
/// another parent. `None` on Windows, where the end of stdin has to do.
pub fn parent_pid() -> Option<u32> {
    #[cfg(unix)]
    {
        Some(std::os::unix::process::parent_id())
    }
    #[cfg(not(unix))]
    {
        None
    }
}

/// Lets this process have so many files open, as far as the system lets it: some begin with 256.
#[cfg_attr(not(unix), expect(unused_variables, reason = "there is no such limit"))]
pub fn allow_files(n_files: u64) {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let limit = getrlimit(Resource::Nofile);
        let wanted = limit.maximum.map_or(n_files, |most| most.min(n_files));
        if limit.current.is_some_and(|current| current < wanted)
            && let Err(err) = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), ..limit })
        {
            tracing::debug!("no more than {:?} files: {err}", limit.current);
        }
    }
}

/// The process that started another one, or took it over; `None` where the system does not tell.
#[cfg_attr(not(unix), expect(unused_variables, reason = "the system does not tell"))]
pub fn parent_of(pid: u32) -> Option<u32> {
    #[cfg(target_os = "linux")]
    {
        state_and_parent(pid).map(|(_, parent)| parent)
    }
    #[cfg(all(unix, not(target_os = "linux")))]
    {
        let done = std::process::Command::new("ps")
            .args(["-o", "ppid=", "-p", &pid.to_string()])
            .output()
            .ok()?;
        String::from_utf8(done.stdout).ok()?.trim().parse().ok()
    }
    #[cfg(not(unix))]
    {
        None
    }
}

/// The letter of a process's state, and who started it or took it over.
#[cfg(target_os = "linux")]
fn state_and_parent(pid: u32) -> Option<(char, u32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything, parentheses too.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

/// The processes above this one, the nearest first.
pub fn processes_above() -> Vec<u32> {
    /// A longer line would be a circle: numbers are given anew.
    const MOST: usize = 64;
    let above = std::iter::successors(parent_pid(), |pid| parent_of(*pid));
    // The first process of all started everybody.
    above.take_while(|pid| *pid > 1).take(MOST).collect()
}

/// Whether something that was written to stdout is known not to have been read. On Linux a pipe
/// tells so at any time, and a socket when its reader has closed it with bytes left in it. Elsewhere
/// the writing end of a pipe may know of its own direction only. False where the system does not
/// tell.
pub fn has_unread_output() -> bool {
    #[cfg(unix)]
    {
        use std::sync::{
            LazyLock,
            atomic::{AtomicBool, Ordering},
        };

        static IS_SOCKET: LazyLock<bool> = LazyLock::new(|| is_socket(io::stdout()));
        static WAS_CUT: AtomicBool = AtomicBool::new(false);
        let stdout = io::stdout();
        if !*IS_SOCKET {
            return rustix::io::ioctl_fionread(stdout).is_ok_and(|n_bytes| n_bytes > 0);
        }
        // For a socket that number would be about what there is to read from it. The error is told
        // once only.
        let Ok(owned) = std::os::fd::AsFd::as_fd(&stdout).try_clone_to_owned() else {
            return false;
        };
        let error = std::os::unix::net::UnixStream::from(owned).take_error();
        if matches!(error, Ok(Some(err)) if err.kind() == io::ErrorKind::ConnectionReset) {
            WAS_CUT.store(true, Ordering::Relaxed);
        }
        WAS_CUT.load(Ordering::Relaxed)
    }
    #[cfg(not(unix))]
    {
        false
    }
}

/// Whether nobody reads stdout any more. False where the system does not tell before a write.
pub fn is_stdout_closed() -> bool {
    #[cfg(unix)]
    {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};

        let stdout = io::stdout();
        let mut streams = [PollFd::new(&stdout, PollFlags::empty())];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let told = poll(&mut streams, Some(&now)).is_ok_and(|n_streams| n_streams > 0);
        told && streams.iter().any(|it| it.revents().intersects(PollFlags::ERR | PollFlags::HUP))
    }
    #[cfg(not(unix))]
    {
        false
    }
}

/// A command in the words of the user's shell.
pub fn in_shell(command: &str) -> std::process::Command {
    #[cfg(unix)]
    {
        let mut shell = std::process::Command::new("/bin/sh");
        shell.arg("-c").arg(command);
        shell
    }
    #[cfg(windows)]
    {
        let mut shell = std::process::Command::new("cmd");
        shell.arg("/C");
        std::os::windows::process::CommandExt::raw_arg(&mut shell, command);
        shell
    }
}

/// Whether a stream is a socket, as clients on Node make them.
#[cfg(unix)]
pub fn is_socket(stream: impl std::os::fd::AsFd) -> bool {
    rustix::fs::fstat(stream).is_ok_and(|stat| {
        rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::Socket
    })
}

/// A word of a command line, in quotes where the shell needs them.
pub fn shell_word(word: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_alphanumeric() || "/.-_+:@%,=".contains(c);
    if !word.is_empty() && word.chars().all(|c| is_plain(c) || (cfg!(windows) && c == '\\')) {
        return Cow::Borrowed(word);
    }
    Cow::Owned(in_quotes(word))
}

#[cfg(not(windows))]
fn in_quotes(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// No path has a quote in it here.
#[cfg(windows)]
fn in_quotes(word: &str) -> String {
    format!("\"{word}\"")
}

/// What the system tells of a running process (Linux).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// The file that it was started from.
    pub program: PathBuf,
    /// That file is not there any more: another one was installed in its place.
    pub is_deleted: bool,
    /// It was stopped (Ctrl-Z, SIGSTOP), so that it answers nobody.
    pub is_stopped: bool,
    /// Who started it has ended.
    pub is_orphan: bool,
}

/// A running process, if it can be seen from here: in a container numbers mean other processes.
pub fn process(pid: u32) -> Option<Process> {
    #[cfg(target_os = "linux")]
    {
        /// Who takes over processes whose parent has ended.
        const REAPERS: &[&str] = &["systemd", "init", "tini", "dumb-init", "docker-init"];
        let of = |pid: u32, name: &str| PathBuf::from(format!("/proc/{pid}/{name}"));
        let program = fs::read_link(of(pid, "exe")).ok()?;
        let (state, parent) = state_and_parent(pid)?;
        let parent_name = fs::read_to_string(of(parent, "comm")).unwrap_or_default();
        let shown = program.to_string_lossy();
        let there = shown.strip_suffix(" (deleted)").map(PathBuf::from);
        Some(Process {
            is_deleted: there.is_some(),
            is_stopped: matches!(state, 'T' | 't'),
            is_orphan: REAPERS.contains(&parent_name.trim_end()),
            program: there.unwrap_or(program),
        })
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = pid;
        None
    }
}
