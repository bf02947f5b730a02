//! Plain calls on stdin and stdout, past rmcp.

use std::{
    borrow::Cow, fmt, future::poll_fn, marker::PhantomData, pin::Pin, sync::PoisonError, task::Poll,
};

use rmcp::model::{Implementation, RequestId};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor, value::MapAccessDeserializer},
};
use tokio::io::AsyncWrite;
use tokio_util::task::TaskTracker;

use super::{
    lines::Outlet,
    mcp::Server,
    plain::{Params, Plain},
};

/// What is reserved for the protocol in `_meta`: such a request tells more than a call.
const OF_THE_PROTOCOL: &str = "io.modelcontextprotocol/";

/// A call until its reply was written.
pub(super) type Answering = Pin<Box<dyn Future<Output = ()> + Send>>;

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
    params: Object<Params<'a>>,
}

/// What is written as an object. serde takes a list for a struct, too: each field in turn.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Object<T>, D::Error> {
        struct Fields<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Object)
            }
        }

        deserializer.deserialize_map(Fields(PhantomData))
    }
}

impl<W: AsyncWrite + Send + Unpin + 'static> Direct<W> {
    /// What it runs is counted in `under_way`.
    pub(super) fn new(server: Server, outlet: Outlet<W>, under_way: TaskTracker) -> Direct<W> {
        Direct { server, outlet, under_way }
    }

    /// The call that this line is, if it is one of those; else nothing happened.
    pub(super) fn takes(&self, line: &[u8]) -> Option<Answering> {
        let (call, client) = self.call(line)?;
        // Before it is known to have arrived, nobody can cancel it.
        self.server.ledger.requested(&call.id);
        let agent = self.server.agent_of(Some(client), &call.meta);
        let (server, outlet, id) = (self.server.clone(), self.outlet.clone(), call.id.clone());
        Some(Box::pin(async move {
            let line = call.run(&server, &id, &agent, None).await;
            outlet.answer(&id, line).await;
        }))
    }

    /// Runs a call: as a task, behind those that came before. One that `is_alone` with us begins at
    /// once, and nearly all of those are over then.
    pub(super) async fn run(&self, mut answering: Answering, is_alone: bool) {
        let begins = is_alone && self.under_way.is_empty();
        let is_over =
            begins && poll_fn(|cx| Poll::Ready(answering.as_mut().poll(cx).is_ready())).await;
        if !is_over {
            self.under_way.spawn(answering);
        }
    }

    /// The call, and who the client is.
    fn call(&self, line: &[u8]) -> Option<(Plain, Implementation)> {
        // Before the handshake is over, rmcp answers.
        let client = self.server.client.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        let Object(Request { jsonrpc, id, method, params }) = serde_json::from_slice(line).ok()?;
        let Object(params) = params;
        if params.meta.keys().any(|key| key.starts_with(OF_THE_PROTOCOL)) {
            return None;
        }
        Some((Plain::of(&jsonrpc, &method, id, params)?, client))
    }
}
