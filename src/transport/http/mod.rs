//! Serving over the network: the board as a web page.

use std::net::SocketAddr;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::{event_loop, web};
use crate::{
    error::{Error, Result},
    tools::Desk,
};

/// Serves the page until Ctrl-C; `board` is the human's desk.
///
/// # Errors
/// The address cannot be had.
pub fn serve(board: Desk, host: &str, port: u16) -> Result<()> {
    let runtime = event_loop()?;
    let result = runtime.block_on(run(board, host, port));
    runtime.shutdown_background();
    result
}

async fn run(board: Desk, host: &str, port: u16) -> Result<()> {
    let unusable = |err| Error::usage(format!("cannot listen at {host}:{port}: {err}"));
    let listener = TcpListener::bind((host, port)).await.map_err(unusable)?;
    let address: SocketAddr = listener.local_addr().map_err(unusable)?;
    tracing::warn!("serving at http://{address}");
    let stop = CancellationToken::new();
    let is_public = !address.ip().is_loopback();
    let routes = web::routes(board, is_public, stop.clone());
    let ends = async move {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        stop.cancel();
    };
    axum::serve(listener, routes)
        .with_graceful_shutdown(ends)
        .await
        .map_err(|err| Error::internal("the server ended").source(err))
}
