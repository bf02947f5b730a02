//! One process's place at the table: runs calls, each in one transaction.
//!
//! [`Desk`] is synchronous and never waits: a call that has to write wants the turn to write, which
//! the transport waits for. It reopens a table that was replaced and claims its seat anew.

mod chores;
mod door;
mod who;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

pub use self::who::{Agent, Who};

use self::chores::settle;
use super::{
    Access, Cx, Effects, Job, Me, Reply, SeatChange, Tool as _, lapse,
    register::Register,
    sit::{self, Seated},
};
use crate::{
    config::Config,
    domain::{
        id::SessionId,
        name::MemberName,
        time::{SECOND, Time},
    },
    error::{Error, Kind, Result},
    fault,
    seat::{Seats, WriteTurn},
    store::{Handing, Store, Tx},
    view::text::{self, Front},
    workspace::Workspace,
};

/// A call leaves the heartbeat as it is while it is this young: ages are shown from a minute on, and
/// each page that is not written makes every call quicker.
const HEARTBEAT_STALE_AFTER: i64 = 30 * SECOND;

/// The answer to a call.
#[derive(Debug, Default)]
pub struct Answer {
    /// What the session has to know first: its name, a reset.
    pub head: Vec<String>,
    pub body: String,
    /// The line about unread mail.
    pub badge: Option<String>,
    pub json: serde_json::Value,
    /// What was handed out with it.
    pub handing: Option<Handing>,
    /// The tool refused the request; `body` says why.
    pub error: Option<Error>,
}

impl Answer {
    fn refusal(err: Error) -> Answer {
        Answer { body: format!("error: {}", err.explain()), error: Some(err), ..Answer::default() }
    }

    /// All of it, line by line.
    pub fn text(&self) -> String {
        let mut lines: Vec<&str> = self.head.iter().map(String::as_str).collect();
        lines.push(&self.body);
        lines.extend(self.badge.as_deref());
        lines.join("\n")
    }
}

/// The connection to the table, of which a process needs one for all its sessions.
pub type SharedStore = Arc<Mutex<Option<Store>>>;

/// Whoever panicked has rolled back.
fn opened(store: &SharedStore) -> MutexGuard<'_, Option<Store>> {
    store.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a transaction is for.
enum Asked<'a> {
    /// To sit down.
    Nothing,
    Job(&'a Job),
    /// The job was run, refused, and undone: what belongs to every call is still to be done.
    Refused(&'a Job, Error),
}

impl<'a> Asked<'a> {
    fn job(&self) -> Option<&'a Job> {
        match self {
            Asked::Nothing => None,
            Asked::Job(job) | Asked::Refused(job, _) => Some(job),
        }
    }
}

/// See the module's text.
pub struct Desk {
    workspace: Workspace,
    config: Arc<Config>,
    who: Who,
    front: Front,
    /// The client is elsewhere, and not above this process.
    is_remote: bool,
    seats: Seats,
    store: SharedStore,
    seated: Option<Seated>,
    /// It deregistered: only `register` sits down again.
    has_left: bool,
    /// The name that it had when it left, or has.
    had: Option<MemberName>,
    /// Lines for the head of the next result.
    notices: Vec<String>,
    /// And what they say of the seat that it has now.
    seat_notices: Vec<String>,
    /// The next result says what the session is called.
    introduce: bool,
    /// Handed out and known to have been read.
    to_confirm: Vec<Handing>,
    /// Handed out, and known never to have arrived.
    to_give_back: Vec<Handing>,
    /// When this process looked for what lapses by itself.
    looked: lapse::Looked,
}

/// What a transaction came to, to be taken over after its commit.
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are facts that do not depend on each other"
)]
struct Outcome {
    reply: Result<Reply>,
    effects: Effects,
    seated: Seated,
    badge: Option<String>,
    looked: lapse::Looked,
    new_seat: bool,
    /// The heartbeat was written.
    beat: bool,
    /// What was to be settled has been.
    wrote: bool,
    /// Somebody called, and reads the answer.
    heard: bool,
}

impl Desk {
    pub fn new(workspace: Workspace, config: Arc<Config>, who: Who, front: Front) -> Desk {
        let seats = Seats::new(workspace.seats.clone());
        Desk {
            workspace,
            config,
            who,
            front,
            is_remote: false,
            seats,
            store: SharedStore::default(),
            seated: None,
            has_left: false,
            had: None,
            notices: Vec::new(),
            seat_notices: Vec::new(),
            introduce: false,
            to_confirm: Vec::new(),
            to_give_back: Vec::new(),
            looked: lapse::Looked::default(),
        }
    }

    /// With the connection that other sessions of this process use, too.
    #[must_use]
    pub fn sharing(self, store: SharedStore) -> Desk {
        Desk { store, ..self }
    }

    /// Lines for the head of the first result.
    #[must_use]
    pub fn with_notices(self, notices: Vec<String>) -> Desk {
        Desk { notices, ..self }
    }

    /// For a client that comes over the network.
    #[must_use]
    pub fn remote(self) -> Desk {
        Desk { is_remote: true, ..self }
    }

    pub fn now(&self) -> Time {
        Time(self.config.now())
    }

    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    pub fn is_seated(&self) -> bool {
        self.seated.is_some()
    }

    /// What the client told with its latest call. A key that comes with a later call moves the
    /// session to the member that it finds.
    pub fn identify(&mut self, now_known: &Agent) {
        let agent = match &mut self.who {
            Who::Session { agent, .. } => agent,
            Who::Given { agent, .. } => {
                *agent = Agent { key: None, parent_key: None, ..now_known.clone() };
                return;
            }
            _ => return,
        };
        if agent == now_known {
            return;
        }
        let has_new_key = now_known.key.is_some() && now_known.key != agent.key;
        *agent =
            Agent { key: now_known.key.clone().or_else(|| agent.key.take()), ..now_known.clone() };
        if has_new_key && let Some(seated) = &mut self.seated {
            seated.key_is_new = true;
        }
    }

    /// The turn to write, if nobody else has it. Makes the folders where they are missing.
    pub fn try_turn(&mut self) -> Result<Option<WriteTurn>> {
        let mut failed = None;
        for _ in 0..10 {
            match self.seats.try_turn() {
                Ok(Some(turn)) if !turn.is_current() => self.seats.forget_turns(),
                // Mostly the folder is missing; somebody else may have made it meanwhile.
                Err(err) => {
                    failed = Some(err);
                    self.seats.forget_turns();
                    self.workspace.make()?;
                }
                other => return other,
            }
        }
        let replaced = || Error::busy("the table's folder is being replaced all the time");
        Err(failed.unwrap_or_else(replaced))
    }

    /// Waits in line for the turn to write; see [`Seats::wait_for_turn`].
    pub fn wait_for_turn(&mut self) -> oneshot::Receiver<Result<WriteTurn>> {
        self.seats.wait_for_turn()
    }

    /// These were read: the next transaction writes it down.
    pub fn confirm_later(&mut self, handings: impl IntoIterator<Item = Handing>) {
        self.to_confirm.extend(handings);
    }

    /// These never arrived: the next transaction makes them unread.
    pub fn give_back_later(&mut self, handings: impl IntoIterator<Item = Handing>) {
        self.to_give_back.extend(handings);
    }

    pub fn has_to_settle(&self) -> bool {
        !self.to_confirm.is_empty() || !self.to_give_back.is_empty()
    }

    /// Runs a call.
    ///
    /// # Errors
    /// [`Kind::NeedsWrite`] without a turn where one is needed: call again with it. [`Kind::Busy`]
    /// where another program is in the way, and [`Kind::Storage`] where somebody may be deleting the
    /// table at this moment: call again a little later. Everything that the caller cannot mend. What
    /// the caller can mend is in the answer.
    pub fn call(&mut self, job: &Job, turn: Option<&WriteTurn>) -> Result<Answer> {
        let now = self.now();
        if job.is_hook && (self.has_left || !self.table_exists()) {
            return Ok(Answer::default());
        }
        if self.has_left && job.entry.name != Register::NAME {
            let err = Error::refused("you have left the table").hint("call register to come back");
            return Ok(Answer::refusal(err));
        }
        self.seats.use_turn(turn);
        let done = self.try_call(job, turn, now);
        self.seats.use_turn(None);
        if done.as_ref().is_err_and(|err| err.kind() == Kind::Storage) {
            // Another try is to find what is there then.
            *opened(&self.store) = None;
        }
        done
    }

    fn try_call(&mut self, job: &Job, turn: Option<&WriteTurn>, now: Time) -> Result<Answer> {
        self.open(turn, now)?;
        let outcome = match self.transact(Asked::Job(job), turn.is_some(), now) {
            // What it had written by then is undone; what lapsed or was read is not, and a caller
            // that was refused sits there all the same.
            Err(err) if is_for_caller(&err) => {
                self.transact(Asked::Refused(job, err), turn.is_some(), now)?
            }
            outcome => outcome?,
        };
        Ok(self.take_over(outcome, now))
    }

    /// Whether a call is known to write, so that it takes its turn first.
    pub fn must_write(&self, job: &Job) -> bool {
        let now = self.now();
        if matches!(self.who, Who::Named(_)) && job.only_looks {
            return false;
        }
        // Hooks may be there for all projects of a person: in a folder where no agent has called
        // anything, they leave no trace.
        if job.is_hook && !self.table_exists() {
            return false;
        }
        // A process that waits looks often and mostly in vain: writers do not wait for it.
        if !job.is_sign_of_life {
            return false;
        }
        // What was read may be written down a moment later, so that who looks into an empty inbox
        // does not wait for it; a session that is killed in between is given it again.
        let must_settle = match job.entry.access {
            Access::MayWrite => !self.to_give_back.is_empty(),
            Access::Reads | Access::Writes => self.has_to_settle(),
        };
        job.entry.access == Access::Writes
            || must_settle
            || self.seated.as_ref().is_none_or(|seated| {
                let is_stale = now.since(seated.beat_at).0 >= HEARTBEAT_STALE_AFTER;
                seated.key_is_new
                    || seated.has_to_settle(&self.who)
                    || (is_stale && job.is_sign_of_life)
            })
    }

    /// Opens the table, or opens it anew where the file was replaced.
    fn open(&mut self, turn: Option<&WriteTurn>, now: Time) -> Result<()> {
        let mut shared = opened(&self.store);
        if shared.as_ref().is_some_and(Store::is_current) {
            return Ok(());
        }
        *shared = None;
        self.looked = lapse::Looked::default();
        let (table, note) = (&self.workspace.table, self.workspace.seats.join("log"));
        let store = match Store::open(table, &note) {
            Err(err) if err.kind() == Kind::NeedsWrite && turn.is_some() => {
                Store::found(table, &note, now.0)?
            }
            other => other?,
        };
        *shared = Some(store);
        Ok(())
    }

    fn transact(&mut self, asked: Asked<'_>, writable: bool, now: Time) -> Result<Outcome> {
        let job = asked.job();
        let mut shared = opened(&self.store);
        let Some(store) = shared.as_mut() else { return Err(Error::needs_write()) };
        let is_sign_of_life = job.is_none_or(|job| job.is_sign_of_life);
        let sitting = sit::Sitting {
            who: &self.who,
            seats: &self.seats,
            workspace: &self.workspace,
            only_looks: job.is_some_and(|job| job.only_looks),
            joins: job.is_none_or(|job| job.entry.joins),
            is_call: job.is_some(),
            is_sign_of_life,
            had: self.had.as_ref(),
            is_remote: self.is_remote,
        };
        let (seated, confirm, give_back) = (&self.seated, &self.to_confirm, &self.to_give_back);
        let (front, max_per_minute, looked) = (self.front, self.config.max_per_minute, self.looked);
        let is_given = matches!(self.who, Who::Given { .. });
        let work = |tx: &Tx<'_>| {
            let epoch = tx.epoch()?;
            let is_settled = |seated: &Seated| job.is_none() || !seated.has_to_settle(sitting.who);
            let is_good = |seated: &Seated| seated.is_good(epoch, sitting.seats);
            let before = seated.as_ref().filter(|seated| is_good(seated) && is_settled(seated));
            let (seated, new_seat) = match before {
                Some(seated) => (seated.clone(), false),
                None => (sitting.sit(tx, seated.as_ref(), epoch, now)?, true),
            };
            let beats = is_sign_of_life && now.since(seated.beat_at).0 >= HEARTBEAT_STALE_AFTER;
            if writable {
                settle(tx, seated.name.as_str(), confirm, give_back, now)?;
                if beats && !new_seat {
                    tx.beat(seated.member, now)?;
                }
            }
            let mut cx = Cx {
                tx,
                now,
                me: Me { is_given, ..me(&seated, epoch) },
                seats: sitting.seats,
                workspace: sitting.workspace,
                front,
                max_per_minute,
                effects: Effects::default(),
            };
            let looked = if writable { lapse::some(&mut cx, looked)? } else { looked };
            let reply = match asked {
                Asked::Nothing => Ok(Reply::default()),
                Asked::Job(job) => {
                    let reply = job.run(&mut cx)?;
                    fault::point("in_tool");
                    Ok(reply)
                }
                Asked::Refused(_, err) => Err(err),
            };
            let badge = badge(&cx, job)?;
            let heard = job.is_some_and(|job| !job.is_hook);
            let beat = writable && (beats || new_seat);
            let effects = cx.effects;
            Ok(Outcome {
                reply,
                effects,
                seated,
                badge,
                looked,
                new_seat,
                beat,
                heard,
                wrote: writable,
            })
        };
        if writable { store.write(work) } else { store.read(work) }
    }

    /// After the commit: what was decided becomes so.
    fn take_over(&mut self, outcome: Outcome, now: Time) -> Answer {
        let Outcome { reply, effects, mut seated, badge, looked, new_seat, beat, heard, wrote } =
            outcome;
        self.looked = looked;
        if new_seat {
            // What was to be said of a seat that it left unheard is said no more.
            self.introduce = seated.notices.is_empty();
            self.seat_notices = std::mem::take(&mut seated.notices);
            self.has_left = false;
        }
        if beat {
            seated.beat_at = now;
        }
        if wrote {
            self.to_confirm.clear();
            self.to_give_back.clear();
        }
        for name in &effects.ring {
            self.seats.ring(name);
        }
        self.had = Some(seated.name.clone());
        match effects.seat {
            SeatChange::Stay => self.seated = Some(seated),
            SeatChange::Move(seat, member) => {
                self.seated = Some(seated.moved_to(seat, member));
            }
            SeatChange::Leave => {
                self.seated = None;
                self.has_left = true;
            }
        }
        // What a session has to know comes with the first result that somebody reads.
        let mut head = Vec::new();
        if heard {
            head.append(&mut self.notices);
            head.append(&mut self.seat_notices);
        }
        if heard
            && std::mem::take(&mut self.introduce)
            && !effects.said_name
            && matches!(self.who, Who::Session { .. } | Who::Given { .. })
            && let Some(seated) = &self.seated
        {
            head.insert(0, format!("you are `{}`", seated.name));
        }
        let answer = match reply {
            Ok(Reply { text, json }) => Answer { body: text, json, ..Answer::default() },
            Err(err) => Answer::refusal(err),
        };
        Answer { head, badge, handing: effects.handing, ..answer }
    }
}

fn me(seated: &Seated, epoch: i64) -> Me {
    Me {
        id: seated.member,
        name: seated.name.clone(),
        is_human: seated.is_human,
        reads_as: seated.reads_as,
        hands_as: seated.hands_as,
        is_session: seated.hands_as != SessionId::COMMAND_LINE,
        is_given: false,
        epoch,
    }
}

/// What the caller can mend is a result; everything else fails the call.
fn is_for_caller(err: &Error) -> bool {
    matches!(err.kind(), Kind::Invalid | Kind::NotFound | Kind::Refused | Kind::Usage)
}

fn badge(cx: &Cx<'_>, job: Option<&Job>) -> Result<Option<String>> {
    let leaves = matches!(cx.effects.seat, SeatChange::Leave);
    if job.is_none() || cx.effects.said_unread || leaves {
        return Ok(None);
    }
    let unread = cx.tx.unread(cx.me.id, cx.me.reads_as)?;
    Ok((unread.count > 0).then(|| text::badge(unread.count, &unread.senders, cx.front)))
}
