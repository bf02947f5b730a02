//! Plain calls on stdin and stdout, past rmcp.

use std::borrow::Cow;

use rmcp::model::{Implementation, RequestId};
use serde::Deserialize;
use tokio::io::AsyncWrite;
use tokio_util::task::TaskTracker;

use super::{
    lines::Outlet,
    mcp::Server,
    plain::{Params, Plain},
};

/// What is reserved for the protocol in `_meta`: such a request tells more than a call.
const OF_THE_PROTOCOL: &str = "io.modelcontextprotocol/";

/// Takes what it can run off the client's lines. `W` is where replies go.
pub(super) struct Direct<W> {
    server: Server,
    outlet: Outlet<W>,
    under_way: TaskTracker,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request<'a> {
    #[serde(borrow)]
    jsonrpc: Cow<'a, str>,
    id: RequestId,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    params: Params<'a>,
}

impl<W: AsyncWrite + Send + Unpin + 'static> Direct<W> {
    pub(super) fn new(server: Server, outlet: Outlet<W>) -> Direct<W> {
        Direct { server, outlet, under_way: TaskTracker::new() }
    }

    /// Runs the call that this line is, if it is one of those; else `false`, and nothing happened.
    pub(super) fn takes(&self, line: &[u8]) -> bool {
        let Some((call, client)) = self.call(line) else { return false };
        // Before it is known to have arrived, nobody can cancel it.
        self.server.ledger.requested(&call.id);
        let agent = self.server.agent_of(Some(client), &call.meta);
        let (server, outlet, id) = (self.server.clone(), self.outlet.clone(), call.id.clone());
        self.under_way.spawn(async move {
            let line = call.run(&server, &id, &agent, None).await;
            outlet.answer(&id, line).await;
        });
        true
    }

    /// The call, and who the client is.
    fn call(&self, line: &[u8]) -> Option<(Plain, Implementation)> {
        // Before the handshake is over, rmcp answers.
        let client = self.server.client.get()?.clone();
        let Request { jsonrpc, id, method, params } = serde_json::from_slice(line).ok()?;
        if params.meta.keys().any(|key| key.starts_with(OF_THE_PROTOCOL)) {
            return None;
        }
        Some((Plain::of(&jsonrpc, &method, id, params)?, client))
    }

    /// Waits until all calls are answered, when no more will come.
    pub(super) async fn finish(&self) {
        self.under_way.close();
        self.under_way.wait().await;
    }
}
