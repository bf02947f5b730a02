//! Which reply carries which messages, and what became of it.
//!
//! rmcp drops the reply of a cancelled request and tells nobody, and a request may be on its way
//! before the reply to the one before it was read. So the transport itself is watched:
//!
//! - A handing is *carried* by the reply to a request that is still open.
//! - Once that reply was written and flushed, it is *written*.
//! - A request that comes later means that the reply was read: *read*.
//! - A request cancelled before its reply was written takes the handing back: *returned*.
//! - A cancel may cross the reply on its way. Then the client looks at the reply, or it does not; so
//!   the handing is returned too, as one that may have arrived.
//! - A later cancel changes nothing; opencode 1.18 cancels every call that it has the answer to,
//!   0.1 s behind it and later.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use rmcp::{
    RoleServer,
    model::{ClientNotification, JsonRpcMessage, RequestId},
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::{fault, platform, store::Handing};

/// What is known of all replies.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    state: Mutex<State>,
    /// Replies do not go to stdout, so that what lies there tells nothing.
    is_remote: bool,
    /// How often bytes arrived from the client.
    pub reads: AtomicU64,
    /// When the last request arrived.
    asked_at: Mutex<Option<Instant>>,
    /// Something was returned that ought to be written down at once.
    pub returned: Notify,
    /// A request was answered or cancelled.
    pub closed: Notify,
    /// Something was read that ought to be written down soon.
    pub read: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Requests without a reply yet.
    open: HashMap<RequestId, Open>,
    /// How many those are.
    n_open: usize,
    /// What replies carry that are being written.
    sending: HashMap<RequestId, Handing>,
    /// How many replies are being written, whatever they carry.
    n_sending: usize,
    written: Vec<Written>,
    read: Vec<Handing>,
    returned: Vec<Handing>,
}

/// A request without a reply.
#[derive(Debug, Default)]
struct Open {
    /// More than one where a client gives an id to several requests, which it must not.
    n_requests: usize,
    /// What the reply is going to carry.
    handing: Option<Handing>,
}

/// A reply that was written and flushed.
#[derive(Debug)]
struct Written {
    id: RequestId,
    handing: Handing,
    /// How many reads there had been by then.
    n_reads: u64,
    at: Instant,
}

/// So many requests may be without their reply at one time. A client that writes more than it reads
/// would have us keep all its replies.
const OPEN_AT_MOST: usize = 1_000;

/// A cancel that comes so soon behind the reply may have been sent before the client had it.
const CROSSING: Duration = Duration::from_millis(50);

/// By which name the ledger knows a request, where ids of several clients may be the same.
#[derive(Debug, Clone)]
pub(super) struct Ticket {
    pub id: RequestId,
    /// The client is gone that would read the reply.
    pub cut: CancellationToken,
}

impl Ledger {
    /// The reply to this request will carry the handing.
    ///
    /// # Errors
    /// The handing, where the request was cancelled meanwhile.
    pub(super) fn carry(&self, id: &RequestId, handing: Handing) -> Result<(), Handing> {
        let mut state = self.state();
        let Some(open) = state.open.get_mut(id) else { return Err(handing) };
        if let Some(other) = open.handing.replace(handing) {
            state.returned.push(other);
        }
        Ok(())
    }

    /// Whether so many requests are open that the next one has to wait.
    pub(super) fn is_full(&self) -> bool {
        let state = self.state();
        state.n_open + state.n_sending >= OPEN_AT_MOST
    }

    /// How long the client has not asked for anything; for ever where it never did.
    pub(super) fn idle_for(&self) -> Duration {
        let asked_at = *self.asked_at.lock().unwrap_or_else(PoisonError::into_inner);
        asked_at.map_or(Duration::MAX, |at| at.elapsed())
    }

    /// What was read, and what never arrived, since the last time.
    pub(super) fn take(&self) -> (Vec<Handing>, Vec<Handing>) {
        let mut state = self.state();
        (std::mem::take(&mut state.read), std::mem::take(&mut state.returned))
    }

    /// The session ends cleanly: what was written counts as read, unless bytes were left that nobody
    /// will read any more.
    pub(super) fn end(&self) {
        if platform::has_unread_output() {
            return;
        }
        let mut state = self.state();
        let written = std::mem::take(&mut state.written);
        state.read.extend(written.into_iter().map(|reply| reply.handing));
    }

    /// A request arrived whose last byte came with the read of this number.
    pub(super) fn requested(&self, id: &RequestId) {
        self.heard();
        let mut state = self.state();
        state.open.entry(id.clone()).or_default().n_requests += 1;
        state.n_open += 1;
    }

    /// The client has said something since: it has read what was written before.
    pub(super) fn heard(&self) {
        let n_reads = self.reads.load(Ordering::Relaxed);
        *self.asked_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        let mut state = self.state();
        // What still lies in the pipe was not read; where the system does not tell, the order of
        // reading and writing has to do.
        if !state.written.is_empty() && (self.is_remote || !platform::has_unread_output()) {
            let written = std::mem::take(&mut state.written);
            let (read, not_yet): (Vec<_>, Vec<_>) =
                written.into_iter().partition(|reply| reply.n_reads < n_reads);
            state.written = not_yet;
            state.read.extend(read.into_iter().map(|reply| reply.handing));
        }
    }

    pub(super) fn cancelled(&self, id: &RequestId) {
        let mut state = self.state();
        let open = state.open.remove(id).unwrap_or_default();
        state.n_open -= open.n_requests;
        let carried = open.handing;
        if let Some(handing) = carried.or_else(|| state.crossing(id)) {
            state.returned.push(handing);
            self.returned.notify_one();
        }
        self.closed.notify_one();
    }

    /// The reply to this request is about to be written. `false`: it was cancelled.
    pub(super) fn sending(&self, id: &RequestId) -> bool {
        let mut state = self.state();
        state.n_sending += 1;
        let Some(open) = state.open.get_mut(id) else { return false };
        let carried = open.handing.take();
        open.n_requests -= 1;
        if open.n_requests == 0 {
            state.open.remove(id);
        }
        state.n_open -= 1;
        if let Some(handing) = carried {
            state.sending.insert(id.clone(), handing);
        }
        true
    }

    pub(super) fn sent(&self, id: &RequestId, arrived: bool) {
        let n_reads = self.reads.load(Ordering::Relaxed);
        let mut state = self.state();
        state.n_sending = state.n_sending.saturating_sub(1);
        self.closed.notify_one();
        if let Some(handing) = state.sending.remove(id) {
            if arrived {
                let at = Instant::now();
                state.written.push(Written { id: id.clone(), handing, n_reads, at });
            } else {
                state.returned.push(handing);
            }
        }
    }

    /// An answer to what is no request is about to be written.
    pub(super) fn refusing(&self) {
        self.state().n_sending += 1;
    }

    pub(super) fn refused(&self) {
        let mut state = self.state();
        state.n_sending = state.n_sending.saturating_sub(1);
        self.closed.notify_one();
    }

    /// For clients whose replies do not go to stdout.
    #[cfg(feature = "http")]
    pub(super) fn remote() -> Ledger {
        Ledger { is_remote: true, ..Ledger::default() }
    }

    /// A client begins anew: what it was sent last it may have seen, or not.
    #[cfg(feature = "http")]
    pub(super) fn begin_anew(&self) {
        let mut state = self.state();
        let written = std::mem::take(&mut state.written);
        let doubtful = |reply: Written| Handing { may_have_arrived: true, ..reply.handing };
        state.returned.extend(written.into_iter().map(doubtful));
        self.returned.notify_one();
    }

    /// The connection broke behind this reply: the client has it, or not.
    #[cfg(feature = "http")]
    pub(super) fn doubt(&self, id: &RequestId) {
        let mut state = self.state();
        if let Some(at) = state.written.iter().position(|reply| reply.id == *id) {
            let handing = state.written.swap_remove(at).handing;
            state.returned.push(Handing { may_have_arrived: true, ..handing });
            self.returned.notify_one();
        }
    }

    /// Whether something is still to be confirmed, given back, or decided.
    #[cfg(feature = "http")]
    pub(super) fn has_open_ends(&self) -> bool {
        let State { open, n_open: _, sending, n_sending: _, written, read, returned } =
            &*self.state();
        !(open.is_empty()
            && sending.is_empty()
            && written.is_empty()
            && read.is_empty()
            && returned.is_empty())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// What the reply to this request carries, if it is on its way to the client.
    fn crossing(&mut self, id: &RequestId) -> Option<Handing> {
        let is_crossing = |reply: &Written| reply.id == *id && reply.at.elapsed() < CROSSING;
        let handing = match self.written.iter().position(is_crossing) {
            Some(at) => self.written.swap_remove(at).handing,
            None => self.sending.remove(id)?,
        };
        Some(Handing { may_have_arrived: true, ..handing })
    }
}

/// A transport that writes in the ledger what passes through it.
pub(super) struct Watched<T> {
    pub inner: T,
    pub ledger: Arc<Ledger>,
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Watched<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let id = match &item {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            _ => None,
        };
        if let Some(id) = &id {
            self.ledger.sending(id);
        }
        let ledger = Arc::clone(&self.ledger);
        let sending = self.inner.send(item);
        async move {
            let sent = sending.await;
            if let Some(id) = &id {
                ledger.sent(id, sent.is_ok());
                fault::point("after_reply");
            }
            sent
        }
    }

    /// May be dropped while it waits; what it does after the inner `receive` cannot be.
    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let message = self.inner.receive().await?;
        match &message {
            JsonRpcMessage::Request(request) => self.ledger.requested(&request.id),
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.ledger.cancelled(id);
                }
            }
            _ => {}
        }
        Some(message)
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}
