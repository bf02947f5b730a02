//! Waiting for mail: a watch on the member's bell, and a slow look behind it.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
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
    ear: Option<Ear>,
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
            return self.ear.is_some();
        }
        (self.path, self.id) = (path, id);
        self.ear = self.path.as_deref().and_then(|path| {
            Ear::new(path, Arc::clone(&self.rung))
                .map_err(|err| tracing::debug!("no watch on {}: {err}", path.display()))
                .ok()
        });
        self.cannot = self.ear.is_none();
        self.ear.is_some()
    }

    fn can_watch(&self) -> bool {
        !self.cannot
    }

    async fn rung(&self) {
        self.rung.notified().await;
    }
}

/// A listener to one bell; ends when it is dropped.
struct Ear {
    path: PathBuf,
    rung: Arc<Notify>,
}

/// All bells that this process listens to have one watcher: each has a thread, and a user has few of
/// them (128 on most systems with inotify). There while anybody listens.
static WATCHER: Mutex<Option<Watcher>> = Mutex::new(None);

struct Watcher {
    inner: RecommendedWatcher,
    listening: Listening,
}

/// Whom to wake, by the bell's path. The watcher's thread takes the lock, too: never held while that
/// thread is waited for, as it is to watch a file or not to watch it any more.
type Listening = Arc<Mutex<HashMap<PathBuf, Vec<Arc<Notify>>>>>;

impl Ear {
    fn new(path: &Path, rung: Arc<Notify>) -> notify::Result<Ear> {
        let mut watcher = locked(&WATCHER);
        let Watcher { inner, listening } = match &mut *watcher {
            Some(watcher) => watcher,
            none => none.insert(Watcher::new()?),
        };
        locked(listening).entry(path.to_owned()).or_default().push(Arc::clone(&rung));
        // Also where somebody listens already: that may be to a file that has been deleted since.
        let begun = inner.watch(path, RecursiveMode::NonRecursive);
        drop(watcher);
        let ear = Ear { path: path.to_owned(), rung };
        begun.map(|()| ear)
    }
}

impl Drop for Ear {
    fn drop(&mut self) {
        let mut watcher = locked(&WATCHER);
        let Some(Watcher { inner, listening }) = &mut *watcher else { return };
        let (is_last_here, is_last) = {
            let mut listening = locked(listening);
            let Some(here) = listening.get_mut(&self.path) else { return };
            here.retain(|other| !Arc::ptr_eq(other, &self.rung));
            let is_last_here = here.is_empty();
            if is_last_here {
                listening.remove(&self.path);
            }
            (is_last_here, listening.is_empty())
        };
        if is_last {
            *watcher = None;
        } else if is_last_here && let Err(err) = inner.unwatch(&self.path) {
            tracing::debug!("{} was not watched any more: {err}", self.path.display());
        }
    }
}

impl Watcher {
    fn new() -> notify::Result<Watcher> {
        let listening = Listening::default();
        let told = Arc::clone(&listening);
        let inner = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            let Ok(event) = event else { return };
            if event.kind.is_modify() || event.kind.is_remove() || event.need_rescan() {
                ring(&locked(&told), &event.paths);
            }
        })?;
        Ok(Watcher { inner, listening })
    }
}

/// Wakes who listens there; everybody, where the system does not tell which bell it is.
fn ring(listening: &HashMap<PathBuf, Vec<Arc<Notify>>>, paths: &[PathBuf]) {
    let known: Vec<&Vec<Arc<Notify>>> =
        paths.iter().filter_map(|path| listening.get(path)).collect();
    let all = known.is_empty().then(|| listening.values()).into_iter().flatten();
    for rung in known.iter().copied().chain(all).flatten() {
        rung.notify_one();
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
