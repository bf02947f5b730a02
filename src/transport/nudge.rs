//! Waking an idle Codex: `codex queue` gives its session a message, as if the person had typed it.
//! So the message says from whom it comes.

use std::{io, path::Path, process::Stdio, sync::Arc, time::Duration};

use tokio::{
    io::AsyncReadExt as _,
    process::{Child, ChildStderr, Command},
    time::sleep,
};

use super::{ledger::Ledger, queue::Queue};
use crate::{
    error::{Error, Result},
    tools::Job,
};

/// How often to look whether anybody has written to the table.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A session that calls or runs hooks is at work, and is told then.
const IDLE_AFTER: Duration = Duration::from_secs(5);
/// `codex queue` takes so long at most; a second where all is well.
const PATIENCE: Duration = Duration::from_secs(20);
/// So much of what it says last is kept.
const KEPT_BYTES: usize = 2_048;
/// What it said last is still in the pipe when it ends.
const LEFT_READS: u32 = 64;
const LEFT_PATIENCE: Duration = Duration::from_millis(20);
/// What failed is tried so often,
const TRIES: u32 = 3;
/// and so much later.
const AGAIN_AFTER: Duration = Duration::from_secs(30);

/// Whoever sits here is told of new mail also where it is idle, as long as the session lasts.
pub(super) async fn nudge(queue: Arc<Queue>, ledger: Arc<Ledger>) {
    let mut seen = None;
    loop {
        sleep(LOOK_EVERY).await;
        if ledger.idle_for() < IDLE_AFTER {
            continue;
        }
        let (pulse, thread) = {
            let desk = queue.desk().await;
            let thread = desk.session_of("codex").filter(|_| desk.is_seated()).map(str::to_owned);
            (desk.pulse(), thread)
        };
        let Some(thread) = thread else { continue };
        if pulse.is_some() && pulse == seen {
            continue;
        }
        seen = pulse;
        let job = match Job::idle() {
            Ok(job) => job,
            Err(err) => return tracing::error!("{err}"),
        };
        match queue.call(&job, None, |_, _| {}).await {
            Ok(answer) if answer.body.is_empty() => {}
            Ok(answer) => wake(&queue, &ledger, &thread, &answer.body).await,
            // The table is in the way for now.
            Err(_) => seen = None,
        }
    }
}

async fn wake(queue: &Queue, ledger: &Ledger, thread: &str, told: &str) {
    let message = format!("[not from your user, but from the program team-table] {told}");
    for number in 1..=TRIES {
        let Err(err) = run(thread, &message).await else { return };
        queue.note_hook_failure("codex queue", &err).await;
        if number < TRIES {
            sleep(AGAIN_AFTER).await;
        }
        // It has been at work meanwhile, and knows.
        if ledger.idle_for() < AGAIN_AFTER {
            return;
        }
    }
}

/// Starts `codex queue`.
fn start(thread: &str, message: &str) -> io::Result<Child> {
    let spawn = |program: &str| {
        Command::new(program)
            .args(["queue", "--thread", thread, "--message", message])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
    };
    match spawn("codex") {
        // npm puts a script there, which Windows finds by its whole name only.
        Err(err) if cfg!(windows) && err.kind() == io::ErrorKind::NotFound => spawn("codex.cmd"),
        started => started,
    }
}

async fn run(thread: &str, message: &str) -> Result<()> {
    let failed = |err| Error::io("run", Path::new("codex"), err);
    let mut child = start(thread, message).map_err(failed)?;
    let mut stderr = child.stderr.take();
    let mut said = Vec::new();
    // What it started may hold its stderr open for as long as it likes, so that the end of `codex`
    // itself counts.
    let ended = async {
        let status = loop {
            tokio::select! {
                biased;
                status = child.wait() => break status,
                more = read(&mut stderr, &mut said) => if !more { stderr = None },
            }
        };
        for _ in 0..LEFT_READS {
            let left = tokio::time::timeout(LEFT_PATIENCE, read(&mut stderr, &mut said)).await;
            if !left.unwrap_or(false) {
                break;
            }
        }
        status
    };
    let status = tokio::time::timeout(PATIENCE, ended)
        .await
        .map_err(|_| Error::busy("`codex queue` took too long"))?
        .map_err(failed)?;
    if status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&said);
    let said = said.trim().lines().next_back().unwrap_or_default();
    Err(Error::refused(format!("`codex queue` ended with {status}: {said}")))
}

/// Reads on, and keeps the last of it; false at the end. Where there is nothing to read from, it
/// never comes back.
async fn read(from: &mut Option<ChildStderr>, kept: &mut Vec<u8>) -> bool {
    let Some(stderr) = from else { return std::future::pending().await };
    let mut bytes = [0; KEPT_BYTES];
    let Ok(n_bytes @ 1..) = stderr.read(&mut bytes).await else { return false };
    kept.extend_from_slice(bytes.get(..n_bytes).unwrap_or_default());
    kept.drain(..kept.len().saturating_sub(KEPT_BYTES));
    true
}
