//! Who asks: MCP over stdio or the network, and clients' hooks; the queue of calls, and waking who
//! waits.
//!
//! The event loop has one thread, and the table's connection lives on it. Only this folder imports
//! rmcp and axum.

mod direct;
pub mod hook;
#[cfg(feature = "http")]
pub mod http;
mod ledger;
mod lines;
pub mod mcp;
mod nudge;
mod plain;
pub mod queue;
pub mod stdio;
mod surrogates;
pub mod wake;
#[cfg(feature = "http")]
pub mod web;

use crate::error::{Error, Result};

/// The event loop of a server, or of one command.
///
/// # Errors
/// The system does not give what it is made of.
pub fn event_loop() -> Result<tokio::runtime::Runtime> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|err| Error::internal("cannot start the event loop").source(err))?;
    outlive_full_files(&runtime);
    Ok(runtime)
}

/// Where a limit is set on the size of files (`ulimit -f`), a write beyond it is an error that can be
/// told, and not the end of the process.
#[cfg_attr(not(unix), expect(unused_variables, reason = "there is no such signal"))]
fn outlive_full_files(runtime: &tokio::runtime::Runtime) {
    #[cfg(unix)]
    {
        let _in_it = runtime.enter();
        let kind = rustix::process::Signal::XFSZ.as_raw();
        // Once it was asked for, the signal does nothing any more, whether or not somebody waits.
        if let Err(err) =
            tokio::signal::unix::signal(tokio::signal::unix::SignalKind::from_raw(kind))
        {
            tracing::debug!("files of a limited size end the process: {err}");
        }
    }
}

/// SIGINT, SIGTERM or SIGHUP; on Windows Ctrl-C.
pub async fn interrupted() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let [Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)] = kinds.map(signal) else {
            return std::future::pending().await;
        };
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
    #[cfg(not(unix))]
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
