//! A connection, and whether it breaks. hyper tells of a reset only where a request is under way, and
//! what matters here is the reply that came before.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError, Weak},
    task::{Context, Poll},
};

use rmcp::model::RequestId;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

use super::presence::Presence;

/// A connection, and the last reply that was written to it: the client has read those before it, as
/// it asks one thing at a time there.
#[derive(Clone, Default)]
pub(super) struct Line(Arc<Mutex<Option<Last>>>);

type Last = (Weak<Presence>, RequestId);

impl Line {
    fn broke(&self) {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((presence, id)) = last
            && let Some(presence) = presence.upgrade()
        {
            presence.server.ledger.doubt(&id);
        }
    }

    pub(super) fn wrote(&self, presence: &Arc<Presence>, id: &RequestId) {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *last = Some((Arc::downgrade(presence), id.clone()));
    }
}

/// The bytes of a connection.
pub(super) struct Wire {
    pub stream: TcpStream,
    pub line: Line,
}

impl Wire {
    fn watched<T>(&self, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if let Poll::Ready(Err(err)) = &polled {
            tracing::debug!("a connection broke: {err}");
            self.line.broke();
        }
        polled
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.watched(polled)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watched(polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.watched(polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(context);
        self.watched(polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
