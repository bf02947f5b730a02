//! Waking an idle Codex: `codex queue` gives its session a message, as if the person had typed it.
//! So the message says from whom it comes.

use std::{process::Stdio, sync::Arc, time::Duration};

use tokio::{process::Command, time::sleep};

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
            Ok(answer) => wake(&queue, &thread, &answer.body).await,
            // The table is in the way for now.
            Err(_) => seen = None,
        }
    }
}

async fn wake(queue: &Queue, thread: &str, told: &str) {
    let message = format!("[not from your user, but from the program team-table] {told}");
    for number in 1..=TRIES {
        let Err(err) = run(thread, &message).await else { return };
        queue.note_hook_failure("codex queue", &err).await;
        if number < TRIES {
            sleep(AGAIN_AFTER).await;
        }
    }
}

async fn run(thread: &str, message: &str) -> Result<()> {
    let child = Command::new("codex")
        .args(["queue", "--thread", thread, "--message", message])
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let failed =
        |err| Error::internal("cannot run `codex`, which is to wake the session").source(err);
    let done = tokio::time::timeout(PATIENCE, child)
        .await
        .map_err(|_| Error::busy("`codex queue` took too long"))?
        .map_err(failed)?;
    if done.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    let said = said.trim().lines().next_back().unwrap_or_default();
    Err(Error::refused(format!("`codex queue` ended with {}: {said}", done.status)))
}
