//! A connection, and whether it breaks. hyper tells of a reset only where a request is under way, and
//! what matters here is the reply that came before.

use std::{
    io,
    net::IpAddr,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError, Weak},
    task::{Context, Poll, ready},
    time::Duration,
};

use rmcp::model::RequestId;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Sleep, sleep},
};

use super::presence::Presence;

/// A connection, and the last reply that was written to it: the client has read those before it, as
/// it asks one thing at a time there.
#[derive(Clone)]
pub(super) struct Line {
    /// The address at the other end.
    pub peer: IpAddr,
    last: Arc<Mutex<Option<Last>>>,
}

type Last = (Weak<Presence>, RequestId);

impl Line {
    fn broke(&self) {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((presence, id)) = last
            && let Some(presence) = presence.upgrade()
        {
            presence.server.ledger.doubt(&id);
        }
    }

    pub(super) fn wrote(&self, presence: &Arc<Presence>, id: &RequestId) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        *last = Some((Arc::downgrade(presence), id.clone()));
    }
}

/// The bytes of a connection.
pub(super) struct Wire {
    stream: TcpStream,
    pub line: Line,
    /// A client that takes nothing for so long is as good as gone.
    patience: Duration,
    /// Until then, while it takes nothing.
    stuck: Option<Pin<Box<Sleep>>>,
}

impl Wire {
    pub(super) fn new(stream: TcpStream, peer: IpAddr, patience: Duration) -> Wire {
        let line = Line { peer, last: Arc::default() };
        Wire { stream, line, patience, stuck: None }
    }

    /// What became of a write, in time.
    fn in_time(
        &mut self,
        polled: Poll<io::Result<usize>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let polled = if polled.is_ready() {
            self.stuck = None;
            polled
        } else {
            let patience = self.patience;
            let stuck = self.stuck.get_or_insert_with(|| Box::pin(sleep(patience)));
            ready!(stuck.as_mut().poll(context));
            Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
        };
        self.watched(polled)
    }

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
        let n_before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        let has_ended = matches!(polled, Poll::Ready(Ok(())))
            && buffer.filled().len() == n_before
            && buffer.remaining() > 0;
        // Of a client that ended its side before it had the reply, a read tells the end alone, and
        // this what came of the reply.
        if has_ended && !matches!(self.stream.take_error(), Ok(None)) {
            self.line.broke();
        }
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
        self.in_time(polled, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.in_time(polled, context)
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
