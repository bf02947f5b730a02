//! The desks that this process has. A member that is known by its token or address has one desk,
//! whatever requests and sessions it comes with; a session without a name has its own.
//!
//! A seat is held as long as a session lasts, and for 5 minutes after a request without one. What
//! is known of a member's replies is kept beyond that: its next request tells that they were read.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicI64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use rmcp::model::{Implementation, RequestId};
use tokio::{
    sync::Notify,
    task::JoinHandle,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;

use super::{
    super::{
        ledger::{Ledger, Ticket},
        mcp::Server,
        queue::Queue,
        stdio::{give_back, write_down},
    },
    auth::Caller,
};
use crate::{
    config::Config,
    domain::name::MemberName,
    error::{Error, Result},
    tools::{Agent, Desk, SharedStore, Who},
    view::text::Front,
    workspace::Workspace,
};

/// So many sessions there are at most.
const SESSIONS: usize = 1_000;
/// A session ends that had no request, and no stream open, for so long.
const SESSION_IDLE: Duration = Duration::from_secs(30 * 60);
/// The seat of a member that comes without sessions is kept for so long after its last request.
const SEAT_KEPT: Duration = Duration::from_secs(5 * 60);
/// When the server ends, between two looks at whether all have their answers.
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// All desks and sessions of this process.
pub(super) struct Registry {
    workspace: Workspace,
    config: Arc<Config>,
    /// All desks use one connection.
    store: SharedStore,
    ends: Ends,
    n_calls: Arc<AtomicUsize>,
    session_idle: Duration,
    seat_kept: Duration,
    state: Mutex<State>,
    n_sessions: Arc<AtomicUsize>,
    /// Some session is gone for good.
    pub ended: Arc<Notify>,
    last_ticket: AtomicI64,
}

/// What ends when the server does.
pub(super) struct Ends {
    /// Calls that wait are answered.
    pub calls: CancellationToken,
    /// Behind that: streams end.
    pub streams: CancellationToken,
}

#[derive(Default)]
struct State {
    sessions: HashMap<String, Arc<Session>>,
    /// By the name as it is compared.
    members: HashMap<String, Member>,
}

struct Member {
    ledger: Arc<Ledger>,
    presence: Option<Arc<Presence>>,
    /// When it last came without a session.
    came_at: Option<Instant>,
}

/// A desk at work.
pub(super) struct Presence {
    pub server: Server,
    /// Requests under way at all desks.
    pub n_calls: Arc<AtomicUsize>,
    tends: [JoinHandle<()>; 2],
}

/// A session, or one that begins: it counts from then on.
pub(super) struct Slot {
    n_sessions: Arc<AtomicUsize>,
}

/// A session of MCP.
pub(super) struct Session {
    pub presence: Arc<Presence>,
    pub caller: Caller,
    /// What it told of itself when it began.
    pub client: OnceLock<Implementation>,
    /// Cancelled when it ends.
    pub gone: CancellationToken,
    /// Requests that have no reply yet.
    pub calls: Mutex<HashMap<RequestId, Ticket>>,
    life: Mutex<Life>,
    /// Told when it is gone for good.
    ended: Arc<Notify>,
    _slot: Arc<Slot>,
}

struct Life {
    n_open: usize,
    used_at: Instant,
}

/// A request or a stream of a session: while there is one, the session is not idle.
pub(super) struct Open(Arc<Session>);

impl Registry {
    pub(super) fn new(
        workspace: Workspace,
        config: Arc<Config>,
        store: SharedStore,
        ends: Ends,
    ) -> Registry {
        Registry {
            workspace,
            store,
            ends,
            n_calls: Arc::default(),
            session_idle: config.hurried(SESSION_IDLE),
            seat_kept: config.hurried(SEAT_KEPT),
            config,
            state: Mutex::default(),
            n_sessions: Arc::default(),
            ended: Arc::default(),
            last_ticket: AtomicI64::new(0),
        }
    }

    /// A place for one more session, if there is one.
    pub(super) fn slot(&self) -> Option<Arc<Slot>> {
        if self.n_sessions.load(Ordering::Relaxed) >= SESSIONS {
            return None;
        }
        self.n_sessions.fetch_add(1, Ordering::Relaxed);
        Some(Arc::new(Slot { n_sessions: Arc::clone(&self.n_sessions) }))
    }

    /// The desk for a session that begins.
    pub(super) fn begin(&self, caller: &Caller) -> Arc<Presence> {
        let Some(name) = &caller.name else {
            let agent = Agent { family: "agent".to_owned(), ..Agent::default() };
            let who = Who::Session { agent, wish: None };
            return Arc::new(self.presence(who, Arc::new(Ledger::remote())));
        };
        let presence = self.member(name, false);
        presence.server.ledger.begin_anew();
        presence
    }

    /// The desk of a member; `is_alone`: it comes without a session.
    pub(super) fn member(&self, name: &MemberName, is_alone: bool) -> Arc<Presence> {
        let mut state = self.state();
        let member = state.members.entry(name.key()).or_insert_with(|| Member {
            ledger: Arc::new(Ledger::remote()),
            presence: None,
            came_at: None,
        });
        if is_alone {
            member.came_at = Some(Instant::now());
        }
        let presence = member.presence.get_or_insert_with(|| {
            let agent = Agent { family: "agent".to_owned(), ..Agent::default() };
            let who = Who::Given { agent, name: name.clone() };
            Arc::new(self.presence(who, Arc::clone(&member.ledger)))
        });
        Arc::clone(presence)
    }

    fn presence(&self, who: Who, ledger: Arc<Ledger>) -> Presence {
        let desk = Desk::new(self.workspace.clone(), Arc::clone(&self.config), who, Front::Tools)
            .sharing(Arc::clone(&self.store))
            .remote();
        let queue = Arc::new(Queue::new(desk));
        let tends = [
            tokio::spawn(give_back(Arc::clone(&queue), Arc::clone(&ledger))),
            tokio::spawn(write_down(Arc::clone(&queue), Arc::clone(&ledger))),
        ];
        let server = Server {
            queue,
            ledger,
            config: Arc::clone(&self.config),
            gone: self.ends.calls.child_token(),
            listed: Arc::default(),
            told_session: Arc::default(),
            client: Arc::default(),
        };
        Presence { server, n_calls: Arc::clone(&self.n_calls), tends }
    }

    /// A session has begun.
    pub(super) fn add(
        &self,
        id: &str,
        presence: Arc<Presence>,
        caller: Caller,
        slot: Arc<Slot>,
    ) -> Arc<Session> {
        let session = Arc::new(Session {
            gone: self.ends.streams.child_token(),
            presence,
            caller,
            client: OnceLock::new(),
            calls: Mutex::default(),
            life: Mutex::new(Life { n_open: 0, used_at: Instant::now() }),
            ended: Arc::clone(&self.ended),
            _slot: slot,
        });
        self.state().sessions.insert(id.to_owned(), Arc::clone(&session));
        session
    }

    /// The session of this id, if it is this caller's and what let it in is still good.
    pub(super) fn session(&self, id: &str, caller: &Caller) -> Option<Arc<Session>> {
        self.state().sessions.get(id).filter(|session| session.is_of(caller)).cloned()
    }

    /// A session ends; its seat is free as soon as nothing of it is under way.
    pub(super) fn end(&self, id: &str) {
        let ended = self.state().sessions.remove(id);
        if let Some(session) = ended {
            session.gone.cancel();
        }
    }

    /// The sessions whose time is up, or that may not be here any more.
    pub(super) fn idle(&self) -> Vec<String> {
        let is_idle = |session: &Session| {
            let life = session.life();
            let is_idle = life.n_open == 0 && life.used_at.elapsed() >= self.session_idle;
            is_idle || session.caller.pass.has_ended()
        };
        let state = self.state();
        let idle = state.sessions.iter().filter(|(_, session)| is_idle(session));
        idle.map(|(id, _)| id.clone()).collect()
    }

    /// Frees the seats that nobody needs any more.
    pub(super) async fn sweep(&self, patience: Duration) {
        // What is known to have been read is written down before the seat is free.
        let mut due: Vec<Arc<Presence>> = Vec::new();
        due.extend(
            self.state()
                .members
                .values()
                .filter(|it| self.is_due(it))
                .filter_map(|it| it.presence.clone()),
        );
        for presence in due {
            presence.settle(patience).await;
        }
        let mut freed = Vec::new();
        let mut state = self.state();
        state.members.retain(|_, member| {
            // Somebody may have come meanwhile.
            if self.is_due(member) {
                member.came_at = None;
                freed.extend(member.presence.take());
            }
            member.presence.is_some() || member.ledger.has_open_ends()
        });
        drop(state);
        drop(freed);
    }

    fn is_due(&self, member: &Member) -> bool {
        member.presence.as_ref().is_some_and(|it| Arc::strong_count(it) == 1)
            && member.came_at.is_none_or(|at| at.elapsed() >= self.seat_kept)
    }

    /// A member's request without a session ends: its time counts from here.
    pub(super) fn came(&self, name: &MemberName) {
        if let Some(member) = self.state().members.get_mut(&name.key()) {
            member.came_at = Some(Instant::now());
        }
    }

    /// Waits until no request is under way.
    pub(super) async fn answered(&self) {
        while self.n_calls.load(Ordering::Relaxed) > 0 {
            sleep(BETWEEN_LOOKS).await;
        }
    }

    /// What a ledger calls the next request.
    pub(super) fn ticket(&self) -> Ticket {
        let number = self.last_ticket.fetch_add(1, Ordering::Relaxed);
        Ticket { id: RequestId::Number(number), cut: CancellationToken::new() }
    }

    /// Writes down what is known to have been read or never to have arrived. What was written and
    /// not confirmed is left: it is unread for whoever sits there next.
    pub(super) async fn settle(&self, patience: Duration) {
        let mut presences: Vec<Arc<Presence>> = Vec::new();
        {
            let state = self.state();
            presences.extend(state.members.values().filter_map(|it| it.presence.clone()));
            presences.extend(state.sessions.values().map(|it| Arc::clone(&it.presence)));
        }
        for presence in presences {
            presence.settle(patience).await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Presence {
    /// The client takes its leave: what was written it has read.
    pub(super) async fn take_leave(&self, patience: Duration) {
        self.server.ledger.reads.fetch_add(1, Ordering::Relaxed);
        self.server.ledger.heard();
        self.settle(patience).await;
    }

    /// Writes down what is known to have been read or never to have arrived.
    async fn settle(&self, patience: Duration) {
        let Server { queue, ledger, .. } = &self.server;
        let (read, returned) = ledger.take();
        if let Err(err) = queue.settle(read, returned, patience).await {
            tracing::debug!("what was read could not be written down: {err}");
        }
    }
}

impl Session {
    fn is_of(&self, caller: &Caller) -> bool {
        let is_same = match (&self.caller.name, &caller.name) {
            (Some(ours), Some(theirs)) => ours == theirs,
            (None, None) => true,
            _ => false,
        };
        is_same && !self.caller.pass.has_ended()
    }

    /// Begins a request or a stream.
    pub(super) fn open(self: &Arc<Self>) -> Open {
        self.life().n_open += 1;
        Open(Arc::clone(self))
    }

    pub(super) fn calls(&self) -> MutexGuard<'_, HashMap<RequestId, Ticket>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn life(&self) -> MutexGuard<'_, Life> {
        self.life.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    pub(super) fn session(&self) -> &Arc<Session> {
        &self.0
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let mut life = self.0.life();
        life.n_open -= 1;
        life.used_at = Instant::now();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.ended.notify_one();
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.n_sessions.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.server.gone.cancel();
        for tends in &self.tends {
            tends.abort();
        }
    }
}

/// An id that nobody can guess.
pub(super) fn new_id() -> Result<String> {
    let mut random = [0; 16];
    getrandom::fill(&mut random)
        .map_err(|err| Error::internal("the system gives no random bytes").source(err))?;
    Ok(format!("{:032x}", u128::from_be_bytes(random)))
}
