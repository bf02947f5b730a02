//! Waiting for mail: a watch on the member's bell, and a slow look behind it.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use super::queue::Queue;
use crate::{
    error::{Error, Result},
    platform::{self, FileId},
    store::Pulse,
    tools::{Agent, Answer, Desk, Job},
};

/// Between two slow looks: at the table's count of commits and at whether it is the same file.
const SLOW_LOOK: Duration = Duration::from_secs(1);

/// Runs a job that waits for mail until it finds some, the time is up, or `stop` is cancelled.
pub async fn wait(
    queue: &Queue,
    job: &Job,
    agent: Option<&Agent>,
    limit: Duration,
    stop: &CancellationToken,
    mut carry: impl FnMut(&Answer, &mut Desk),
) -> Result<Answer> {
    let deadline = Instant::now() + limit;
    let mut bell = Bell::default();
    let mut head = Vec::new();
    loop {
        if stop.is_cancelled() {
            return Err(Error::refused("the wait was cancelled"));
        }
        // The first look sits down, and so tells whose bell it is. The watch begins before the look
        // that counts, and so does the count of commits: what comes between is not missed.
        let (watching, pulse) = {
            let desk = queue.desk().await;
            (bell.watch(desk.bell().unwrap_or(None)), desk.pulse())
        };
        let mut answer = queue.call(job, agent, &mut carry).await?;
        let found = answer.handing.is_some() || answer.error.is_some();
        head.append(&mut answer.head);
        if found || Instant::now() >= deadline {
            answer.head = head;
            return Ok(answer);
        }
        if !watching && bell.can_watch() && queue.desk().await.is_seated() {
            continue;
        }
        tokio::select! {
            () = bell.rung_or_changed(queue, pulse, deadline) => {}
            () = stop.cancelled() => {}
        }
    }
}

/// A watch on one file, while somebody waits; a standing one would slow every writer down.
#[derive(Default)]
pub struct Bell {
    path: Option<PathBuf>,
    /// Which file that is: a watch on a deleted one is worth nothing.
    id: Option<FileId>,
    watcher: Option<RecommendedWatcher>,
    /// The system has no watch for us: the slow look has to do.
    cannot: bool,
    rung: Arc<Notify>,
}

impl Bell {
    /// Waits until it rings, somebody has written to the table since `pulse`, or the time is up.
    pub async fn rung_or_changed(
        &mut self,
        queue: &Queue,
        pulse: Option<Pulse>,
        deadline: Instant,
    ) {
        loop {
            let slow_look = Instant::now() + SLOW_LOOK;
            tokio::select! {
                () = self.rung() => return,
                () = sleep_until(deadline) => return,
                () = sleep_until(slow_look) => {}
            }
            let now = queue.desk().await.pulse();
            if now.is_none() {
                // Another table: its bell is another file, too.
                *self = Bell::default();
            }
            if now.is_none() || now != pulse {
                return;
            }
        }
    }

    /// Watches this file from now on. Returns whether it did so before.
    pub fn watch(&mut self, path: Option<PathBuf>) -> bool {
        let id = path.as_deref().and_then(|path| platform::file_id(path).ok().flatten());
        if (&self.path, self.id) == (&path, id) {
            return self.watcher.is_some();
        }
        (self.path, self.id) = (path, id);
        self.watcher = self.path.as_deref().and_then(|path| {
            watcher(path, Arc::clone(&self.rung))
                .map_err(|err| tracing::debug!("no watch on {}: {err}", path.display()))
                .ok()
        });
        self.cannot = self.watcher.is_none();
        self.watcher.is_some()
    }

    fn can_watch(&self) -> bool {
        !self.cannot
    }

    async fn rung(&self) {
        self.rung.notified().await;
    }
}

fn watcher(path: &Path, rung: Arc<Notify>) -> notify::Result<RecommendedWatcher> {
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        if event.is_ok_and(|event| event.kind.is_modify() || event.kind.is_remove()) {
            rung.notify_one();
        }
    })?;
    watcher.watch(path, RecursiveMode::NonRecursive)?;
    Ok(watcher)
}
