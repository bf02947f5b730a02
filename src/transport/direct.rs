//! Calls of tools that do not wait, on stdin and stdout, past rmcp: nearly all that agents send is
//! such a call, and rmcp tries each of its kinds of request on it, makes a task that is as large as
//! all of them, and takes the answer through two queues. A request that is not quite as the protocol
//! has it is left to rmcp, which says what is wrong.

use std::{borrow::Cow, fmt, marker::PhantomData, sync::PoisonError};

use rmcp::model::{Implementation, JsonObject, RequestId};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor, value::MapAccessDeserializer},
};
use tokio::io::AsyncWrite;
use tokio_util::task::TaskTracker;

use super::{
    lines::Outlet,
    mcp::{self, Server},
};
use crate::tools::{Entry, Job};

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
    params: Object<Params<'a>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Params<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(default)]
    arguments: JsonObject,
    #[serde(default, rename = "_meta")]
    meta: JsonObject,
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

/// A call that can be run here.
struct Call {
    id: RequestId,
    entry: &'static Entry,
    arguments: JsonObject,
    meta: JsonObject,
    client: Implementation,
}

impl<W: AsyncWrite + Send + Unpin + 'static> Direct<W> {
    /// What it runs is counted in `under_way`.
    pub(super) fn new(server: Server, outlet: Outlet<W>, under_way: TaskTracker) -> Direct<W> {
        Direct { server, outlet, under_way }
    }

    /// Runs the call that this line is, if it is one of those; else `false`, and nothing happened.
    pub(super) fn takes(&self, line: &[u8]) -> bool {
        let Some(call) = self.call(line) else { return false };
        let entry = call.entry;
        let job = entry.job(call.arguments).unwrap_or_else(|err| Job::refusing(entry, &err));
        if job.waits.is_some() {
            return false;
        }
        // Before it is known to have arrived, nobody can cancel it.
        self.server.ledger.requested(&call.id);
        let agent = self.server.agent_of(Some(call.client), &call.meta);
        let (server, outlet, id) = (self.server.clone(), self.outlet.clone(), call.id);
        self.under_way.spawn(async move {
            let answer = server.at_once(&job, &id, &agent).await;
            let line = mcp::reply(id.clone(), mcp::told(entry, answer), None);
            outlet.answer(&id, line).await;
        });
        true
    }

    fn call(&self, line: &[u8]) -> Option<Call> {
        // Before the handshake is over, rmcp answers.
        let client = self.server.client.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        let Object(Request { jsonrpc, id, method, params }) = serde_json::from_slice(line).ok()?;
        let Object(Params { name, arguments, meta }) = params;
        let is_plain = !meta.keys().any(|key| key.starts_with(OF_THE_PROTOCOL));
        let fits = jsonrpc == "2.0" && method == "tools/call" && is_plain;
        let entry = Entry::named(&name).filter(|entry| fits && !Entry::is_hook(entry.name))?;
        Some(Call { id, entry, arguments, meta, client })
    }
}
