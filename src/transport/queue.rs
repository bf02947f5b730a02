//! Runs calls one after another, and waits where a [`Desk`] must not.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use tokio::{
    sync::{Mutex, MutexGuard},
    time::{Instant, sleep, timeout_at},
};

use crate::{
    domain::time::Time,
    error::{Error, Kind, Result},
    seat::WriteTurn,
    store::{Handing, Tx},
    tools::{Agent, Answer, Cx, Desk, Job},
};

/// How long a call waits for other writers.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two tries at a table that a foreign program holds.
const BETWEEN_TRIES: Duration = Duration::from_millis(10);
/// Whoever deletes the table does so file by file, and a call in between fails in many ways; the
/// next one finds a table or makes it. What is broken for good is so at the last try, too.
const STORAGE_TRIES: u32 = 4;

/// The desk of this process, for one call at a time.
pub struct Queue {
    /// Fair, so that pipelined calls keep their order; for that it is held while a call waits for
    /// its turn to write, and never while a call waits for mail.
    desk: Mutex<Desk>,
}

impl Queue {
    pub fn new(desk: Desk) -> Queue {
        Queue { desk: Mutex::new(desk) }
    }

    pub async fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().await
    }

    /// Runs a call. `agent` is what the client tells of itself with it; `carry` takes note of what
    /// the reply will carry before any other call runs.
    ///
    /// # Errors
    /// What the caller cannot mend; what it can is in the answer. A panic is an internal error.
    pub async fn call(
        &self,
        job: &Job,
        agent: Option<&Agent>,
        carry: impl FnOnce(&Answer, &mut Desk),
    ) -> Result<Answer> {
        let mut desk = self.desk.lock().await;
        if let Some(agent) = agent {
            desk.identify(agent);
        }
        let deadline = Instant::now() + PATIENCE;
        let mut wants_turn = desk.must_write(job);
        let mut n_broken = 0;
        loop {
            let result = try_call(&mut desk, job, wants_turn, deadline).await;
            let again = match result.as_ref().map_err(Error::kind) {
                Err(Kind::NeedsWrite) if !wants_turn => {
                    wants_turn = true;
                    continue;
                }
                // A foreign program holds SQLite's own lock, or the table that was just made is gone.
                Err(Kind::Busy | Kind::NeedsWrite) => true,
                Err(Kind::Storage) => {
                    n_broken += 1;
                    n_broken < STORAGE_TRIES
                }
                _ => false,
            };
            if !again || Instant::now() >= deadline {
                let answer = result.map_err(|err| match err.kind() {
                    Kind::NeedsWrite => Error::busy("the table is being replaced all the time"),
                    _ => err,
                })?;
                carry(&answer, &mut desk);
                return Ok(answer);
            }
            // Our turn was given back meanwhile.
            sleep(BETWEEN_TRIES).await;
        }
    }

    /// Looks at the table as [`Desk::look`] does; again, where it is just being replaced or a foreign
    /// program is in the way.
    ///
    /// # Errors
    /// What is wrong with the table at the last try, or with the look.
    pub async fn look<T>(&self, mut f: impl FnMut(&mut Cx<'_>) -> Result<T>) -> Result<Option<T>> {
        self.again(|desk| desk.look(&mut f)).await
    }

    /// As [`Queue::look`], for what belongs to no member: see [`Desk::read`].
    ///
    /// # Errors
    /// As there.
    pub async fn read<T>(
        &self,
        mut f: impl FnMut(&Tx<'_>, Time) -> Result<T>,
    ) -> Result<Option<T>> {
        self.again(|desk| desk.read(&mut f)).await
    }

    async fn again<T>(&self, mut f: impl FnMut(&mut Desk) -> Result<T>) -> Result<T> {
        let mut n_tries = 1;
        loop {
            let found = f(&mut *self.desk.lock().await);
            match found.as_ref().map_err(Error::kind) {
                Err(Kind::Busy | Kind::NeedsWrite | Kind::Storage) if n_tries < STORAGE_TRIES => {}
                _ => return found,
            }
            n_tries += 1;
            sleep(BETWEEN_TRIES).await;
        }
    }

    /// Sits down without a call, where a table is there.
    pub async fn sit_down(&self, agent: &Agent) -> Result<()> {
        let mut desk = self.desk.lock().await;
        if !desk.can_sit_down() {
            return Ok(());
        }
        desk.identify(agent);
        persist(&mut desk, Instant::now() + PATIENCE, Desk::sit_down).await
    }

    /// Writes down what was read and what never arrived, within `patience`.
    pub async fn settle(
        &self,
        read: Vec<Handing>,
        returned: Vec<Handing>,
        patience: Duration,
    ) -> Result<()> {
        let mut desk = self.desk.lock().await;
        desk.confirm_later(read);
        desk.give_back_later(returned);
        if !desk.has_to_settle() {
            return Ok(());
        }
        persist(&mut desk, Instant::now() + patience, Desk::settle).await
    }

    /// Notes that a hook failed, and why.
    pub async fn note_hook_failure(&self, what: &str, err: &Error) {
        self.desk.lock().await.note_hook_failure(what, err);
    }

    /// Runs `f` with the turn to write; again where a foreign program was in its way.
    ///
    /// # Errors
    /// The turn cannot be had, or `f` fails.
    pub async fn write<T>(&self, f: impl FnMut(&mut Desk, &WriteTurn) -> Result<T>) -> Result<T> {
        let mut desk = self.desk.lock().await;
        persist(&mut desk, Instant::now() + PATIENCE, f).await
    }
}

/// One try at a call, with the turn to write if it wants one.
async fn try_call(
    desk: &mut Desk,
    job: &Job,
    wants_turn: bool,
    deadline: Instant,
) -> Result<Answer> {
    let taken = if wants_turn { take_turn(desk, deadline).await.map(Some) } else { Ok(None) };
    let (turn, unwritable) = match taken {
        Ok(turn) => (turn, None),
        // Where nothing can be written, one can still look.
        Err(err) if err.kind() == Kind::Storage && job.only_looks => (None, Some(err)),
        Err(err) => return Err(err),
    };
    match run(desk, job, turn.as_ref()) {
        Err(err) if err.kind() == Kind::NeedsWrite => Err(unwritable.unwrap_or(err)),
        // A full disk: what was read cannot be written down now, and one can still look.
        Err(err) if err.kind() == Kind::Storage && job.only_looks && turn.is_some() => {
            run(desk, job, None).map_err(|_| err)
        }
        result => result,
    }
}

/// A call in which a panic is an internal error.
fn run(desk: &mut Desk, job: &Job, turn: Option<&WriteTurn>) -> Result<Answer> {
    let panicked = |_| {
        Err(Error::internal(format!(
            "{} failed; nothing was stored, and the server goes on",
            job.entry.name
        )))
    };
    catch_unwind(AssertUnwindSafe(|| desk.call(job, turn))).unwrap_or_else(panicked)
}

/// Runs `f` with the turn to write, until no foreign program is in the way.
async fn persist<T>(
    desk: &mut Desk,
    deadline: Instant,
    mut f: impl FnMut(&mut Desk, &WriteTurn) -> Result<T>,
) -> Result<T> {
    loop {
        let turn = take_turn(desk, deadline).await?;
        match f(desk, &turn) {
            Err(err) if err.kind() == Kind::Busy && Instant::now() < deadline => {}
            done => return done,
        }
        drop(turn);
        sleep(BETWEEN_TRIES).await;
    }
}

/// The turn to write: at once if nobody has it, else in line behind the others.
async fn take_turn(desk: &mut Desk, deadline: Instant) -> Result<WriteTurn> {
    loop {
        if let Some(turn) = desk.try_turn()? {
            return Ok(turn);
        }
        match timeout_at(deadline, desk.wait_for_turn()).await {
            Ok(Ok(Ok(turn))) if turn.is_current() => return Ok(turn),
            // The folder was replaced meanwhile: line up at the new one.
            Ok(Ok(Ok(_stale))) => {}
            Ok(Ok(Err(err))) => return Err(err),
            Ok(Err(_)) => return Err(Error::internal("the thread that waits for a turn is gone")),
            Err(_) => {
                return Err(Error::busy(format!(
                    "another process has been writing to the table for over {} s",
                    PATIENCE.as_secs()
                )));
            }
        }
    }
}
