//! The server's life on stdin and stdout: it ends with its client, whatever way that ends.

#[cfg(unix)]
use std::io;
use std::{sync::Arc, time::Duration};

use rmcp::ServiceExt as _;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use super::{
    event_loop, interrupted,
    ledger::{Ledger, Watched},
    lines::Lines,
    mcp::Server,
    nudge::nudge,
    queue::Queue,
};
use crate::{config::Config, error::Result, platform, tools::Desk};

/// Calls under way have so long to end once the client is gone.
const GRACE: Duration = Duration::from_millis(60);
/// And so long what was read has to be written down.
const SETTLE: Duration = Duration::from_millis(25);
/// How often to see whether the parent still lives, behind the end of stdin: somebody else may hold
/// stdin open.
const PARENT_LOOK: Duration = Duration::from_secs(5);
/// So long what was read waits for the next call that writes anyway.
const WRITE_DOWN_AFTER: Duration = Duration::from_millis(20);
/// For a table in the way: what never arrived is to be unread at once, yet not at any price.
const GIVE_BACK: Duration = Duration::from_secs(5);

/// Serves one client until it is gone. With `wake` its session is woken where it is idle and can be.
///
/// # Errors
/// The event loop cannot be had.
pub fn serve(desk: Desk, config: &Arc<Config>, wake: bool) -> Result<()> {
    let runtime = event_loop()?;
    runtime.block_on(run(desk, Arc::clone(config), wake));
    // A thread may be parked in read(2) on stdin: never join it.
    runtime.shutdown_background();
    Ok(())
}

async fn run(desk: Desk, config: Arc<Config>, wake: bool) {
    let ledger = Arc::new(Ledger::default());
    let queue = Arc::new(Queue::new(desk));
    let gone = CancellationToken::new();
    let server = Server {
        queue: Arc::clone(&queue),
        ledger: Arc::clone(&ledger),
        config,
        gone: gone.clone(),
        listed: Arc::default(),
        told_session: Arc::default(),
        client: Arc::default(),
    };
    let (reader, writer) = streams();
    let inner =
        Lines::new(reader, writer, Arc::clone(&ledger), gone.clone()).with_direct(server.clone());
    let transport = Watched { inner, ledger: Arc::clone(&ledger) };

    let give_back = tokio::spawn(give_back(Arc::clone(&queue), Arc::clone(&ledger)));
    let write_down = tokio::spawn(write_down(Arc::clone(&queue), Arc::clone(&ledger)));
    let nudge = wake.then(|| tokio::spawn(nudge(Arc::clone(&queue), Arc::clone(&ledger))));
    let service = async {
        match server.serve(transport).await {
            Ok(service) => {
                if let Err(err) = service.waiting().await {
                    tracing::error!("the service ended: {err}");
                }
            }
            // A client that only probes closes stdin before it says anything.
            Err(err) => tracing::debug!("no session: {err}"),
        }
    };
    tokio::pin!(service);
    let mut is_clean = true;
    tokio::select! {
        () = &mut service => {}
        () = gone.cancelled() => {
            // Waiting calls end by the token; the others are quick.
            drop(tokio::time::timeout(GRACE, &mut service).await);
        }
        () = interrupted() => {
            gone.cancel();
            drop(tokio::time::timeout(GRACE, &mut service).await);
        }
        () = orphaned() => {
            // Nobody knows what the client has read.
            is_clean = false;
            gone.cancel();
        }
    }
    if let Some(nudge) = nudge {
        nudge.abort();
    }
    give_back.abort();
    write_down.abort();
    if is_clean {
        ledger.end();
    }
    let (read, returned) = ledger.take();
    let settled = tokio::time::timeout(SETTLE, queue.settle(read, returned, SETTLE)).await;
    if let Ok(Err(err)) = settled {
        tracing::debug!("what was read could not be written down: {err}");
    }
}

/// What was read is written down a moment later, where no call has done so by then.
pub(super) async fn write_down(queue: Arc<Queue>, ledger: Arc<Ledger>) {
    loop {
        ledger.read.notified().await;
        tokio::time::sleep(WRITE_DOWN_AFTER).await;
        if let Err(err) = queue.settle(Vec::new(), Vec::new(), GIVE_BACK).await {
            tracing::warn!("what was read could not be written down yet: {err}");
        }
    }
}

/// What a cancelled call was handed is unread again at once.
pub(super) async fn give_back(queue: Arc<Queue>, ledger: Arc<Ledger>) {
    loop {
        ledger.returned.notified().await;
        let (read, returned) = ledger.take();
        if let Err(err) = queue.settle(read, returned, GIVE_BACK).await {
            tracing::warn!("what never arrived could not be made unread yet: {err}");
        }
    }
}

/// The parent died: the system has given us another one.
async fn orphaned() {
    let parent = platform::parent_pid();
    loop {
        tokio::time::sleep(PARENT_LOOK).await;
        if platform::parent_pid() != parent {
            return;
        }
    }
}

type Reader = Box<dyn AsyncRead + Send + Unpin>;
type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// Stdin and stdout without threads where they can be had so: pipes (by rmcp) and the sockets that
/// clients on Node use. That is faster, and a read never runs ahead of us.
fn streams() -> (Reader, Writer) {
    #[cfg(unix)]
    if let (Some(reader), Some(writer)) = (socket(io::stdin()), socket(io::stdout())) {
        return (Box::new(reader), Box::new(writer));
    }
    let (reader, writer) = rmcp::transport::stdio_pipes();
    (Box::new(reader), Box::new(writer))
}

/// The stream as a socket, if it is one. Our end of it is ours alone, so that no other process
/// minds that it does not block.
#[cfg(unix)]
fn socket(stream: impl std::os::fd::AsFd) -> Option<tokio::net::UnixStream> {
    if !platform::is_socket(&stream) {
        return None;
    }
    let owned = stream.as_fd().try_clone_to_owned().ok()?;
    let socket = std::os::unix::net::UnixStream::from(owned);
    socket.set_nonblocking(true).ok()?;
    tokio::net::UnixStream::from_std(socket).ok()
}
