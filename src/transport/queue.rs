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
    error::{Error, Kind, Result},
    seat::WriteTurn,
    store::Handing,
    tools::{Agent, Answer, Desk, Job},
};

/// How long a call waits for other writers.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two tries at a table that a foreign program holds.
const BETWEEN_TRIES: Duration = Duration::from_millis(10);

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
        let mut turn: Option<WriteTurn> = None;
        if desk.must_write(job) {
            turn = match take_turn(&mut desk, deadline).await {
                Ok(turn) => Some(turn),
                // Where nothing can be written, one can still look.
                Err(err) if err.kind() == Kind::Storage && job.only_looks => None,
                Err(err) => return Err(err),
            };
        }
        loop {
            let ran = catch_unwind(AssertUnwindSafe(|| desk.call(job, turn.as_ref())));
            let Ok(result) = ran else {
                return Err(Error::internal(format!(
                    "{} failed; nothing was stored, and the server goes on",
                    job.entry.name
                )));
            };
            match result {
                Err(err) if err.kind() == Kind::NeedsWrite && turn.is_none() => {
                    turn = Some(take_turn(&mut desk, deadline).await?);
                }
                // A foreign program holds SQLite's own lock. Our turn is given back meanwhile.
                Err(err) if err.kind() == Kind::Busy && Instant::now() < deadline => {
                    let had_turn = turn.take().is_some();
                    sleep(BETWEEN_TRIES).await;
                    if had_turn {
                        turn = Some(take_turn(&mut desk, deadline).await?);
                    }
                }
                result => {
                    let answer = result?;
                    carry(&answer, &mut desk);
                    return Ok(answer);
                }
            }
        }
    }

    /// Sits down without a call, where a table is there.
    pub async fn sit_down(&self, agent: &Agent) -> Result<()> {
        let mut desk = self.desk.lock().await;
        if desk.is_seated() || !desk.table_exists() {
            return Ok(());
        }
        desk.identify(agent);
        let turn = take_turn(&mut desk, Instant::now() + PATIENCE).await?;
        desk.sit_down(&turn)
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
        let turn = take_turn(&mut desk, Instant::now() + patience).await?;
        desk.settle(&turn)
    }
}

impl Queue {
    /// Runs `f` with the turn to write.
    ///
    /// # Errors
    /// The turn cannot be had, or `f` fails.
    pub async fn write<T>(&self, f: impl FnOnce(&mut Desk, &WriteTurn) -> Result<T>) -> Result<T> {
        let mut desk = self.desk.lock().await;
        let turn = take_turn(&mut desk, Instant::now() + PATIENCE).await?;
        f(&mut desk, &turn)
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
