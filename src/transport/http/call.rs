//! One request, from its arrival until its reply was written.
//!
//! What a reply carries counts as read when the next request of the same session or member
//! arrives: a client asks on when it has the answer. Where the connection is cut before the reply
//! was written to it, it is unread again at once, and a call that waits ends.
//!
//! Two things cannot be known. A reply is written when the system has taken it, which is not when
//! the client has it. Where the connection is then found broken, the mail is unread again, as one
//! that may have been seen; but a client that loses the network in between and asks something else
//! over another connection before that does not see it again. And where a client has several
//! requests under way, one that was sent before the reply was read may arrive behind it.

use std::{
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll, ready},
};

use axum::{
    body::{Body, Bytes, HttpBody},
    response::Response,
};
use hyper::body::{Frame, SizeHint};
use rmcp::model::RequestId;

use super::{
    super::{ledger::Ticket, mcp::Server},
    presence::{Open, Presence, Registry},
    wire::Line,
};
use crate::{domain::name::MemberName, fault};

/// A request under way. Dropped before its reply was written, it is one that was cut.
pub(super) struct Call {
    presence: Arc<Presence>,
    ticket: Ticket,
    whose: Whose,
    /// Where the reply goes, unless it goes into a stream that lasts.
    line: Option<Line>,
    is_written: bool,
}

/// How a request came.
pub(super) enum Whose {
    /// In a session, under this id there.
    Session(Open, RequestId),
    /// Without one, from this member.
    Member(Arc<Registry>, MemberName),
}

impl Call {
    /// A request has arrived.
    pub(super) fn begin(registry: &Registry, presence: &Arc<Presence>, whose: Whose) -> Call {
        let ticket = registry.ticket();
        presence.n_calls.fetch_add(1, Ordering::Relaxed);
        let ledger = &presence.server.ledger;
        ledger.reads.fetch_add(1, Ordering::Relaxed);
        ledger.requested(&ticket.id);
        if let Whose::Session(open, id) = &whose {
            open.session().calls().insert(id.clone(), ticket.clone());
        }
        Call { presence: Arc::clone(presence), ticket, whose, line: None, is_written: false }
    }

    /// The reply goes to this connection.
    pub(super) fn over(mut self, line: &Line) -> Call {
        self.line = Some(line.clone());
        self
    }

    /// The reply was written.
    pub(super) fn written(mut self) {
        let ledger = &self.presence.server.ledger;
        ledger.sending(&self.ticket.id);
        ledger.sent(&self.ticket.id, true);
        if let Some(line) = &self.line {
            line.wrote(&self.presence, &self.ticket.id);
        }
        self.is_written = true;
        fault::point("after_reply");
    }

    /// Who answers it.
    pub(super) fn server(&self) -> &Server {
        &self.presence.server
    }

    pub(super) fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    /// Whether it was taken back, or its client is gone.
    pub(super) fn is_cut(&self) -> bool {
        self.ticket.cut.is_cancelled()
    }

    /// The client wants no reply any more.
    pub(super) fn cancelled(&self) {
        self.presence.server.ledger.cancelled(&self.ticket.id);
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.presence.n_calls.fetch_sub(1, Ordering::Relaxed);
        if !self.is_written {
            self.cancelled();
            self.ticket.cut.cancel();
        }
        match &self.whose {
            Whose::Session(open, id) => {
                let mut calls = open.session().calls();
                // A client may have used the id for another request since.
                if calls.get(id).is_some_and(|ticket| ticket.id == self.ticket.id) {
                    calls.remove(id);
                }
            }
            Whose::Member(registry, name) => registry.came(name),
        }
    }
}

/// A reply on its way: with it the request ends.
pub(super) struct Reply {
    body: Body,
    /// `None` once it ended.
    call: Option<Call>,
    /// The last of it was taken.
    is_whole: bool,
}

impl Reply {
    pub(super) fn watch(response: Response, call: Call) -> Response {
        response.map(|body| {
            let is_whole = body.is_end_stream();
            Body::new(Reply { body, call: Some(call), is_whole })
        })
    }
}

impl HttpBody for Reply {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        self.is_whole = match &frame {
            None => true,
            Some(Ok(_)) => self.body.is_end_stream(),
            Some(Err(_)) => false,
        };
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if let Some(call) = self.call.take().filter(|_| self.is_whole) {
            call.written();
        }
    }
}
