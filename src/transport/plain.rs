//! Plain calls: of a tool that does not wait, in a request that is just as the protocol has it. They
//! are nearly all that agents send, and they go past rmcp, which tries each of its kinds of request
//! on what came, makes a task that is as large as all of them, and takes the answer through two
//! queues. What is not plain is left to rmcp, which says what is wrong with it.
//!
//! What such a call is stands here, for stdio and for the network; what else each of them asks of it
//! stands there.

use std::borrow::Cow;

use rmcp::model::{JsonObject, RequestId};
use serde::Deserialize;

use super::mcp::{self, Server};
use crate::tools::{Agent, Entry, Job};

/// The parameters of a `tools/call`, and nothing beside them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Params<'a> {
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    #[serde(default)]
    arguments: JsonObject,
    #[serde(default, rename = "_meta")]
    pub meta: JsonObject,
}

/// A call that can be run past rmcp.
pub(super) struct Plain {
    pub id: RequestId,
    job: Job,
    /// What its client says beside it.
    pub meta: JsonObject,
}

impl Plain {
    /// The call that a request is, if it is a plain one; then nothing has happened yet. `jsonrpc` and
    /// `method` are what the request says.
    pub(super) fn of(
        jsonrpc: &str,
        method: &str,
        id: RequestId,
        params: Params<'_>,
    ) -> Option<Plain> {
        let Params { name, arguments, meta } = params;
        if jsonrpc != "2.0" || method != "tools/call" || Entry::is_hook(&name) {
            return None;
        }
        let job = Entry::named(&name)?.job_or_refusal(arguments);
        job.waits.is_none().then_some(Plain { id, job, meta })
    }

    /// Runs it, and makes the reply, without a line end. `ticket` is the ledger's name of it;
    /// `result_type` is as [`mcp::reply`] has it.
    ///
    /// # Errors
    /// As [`mcp::reply`].
    pub(super) async fn run(
        &self,
        server: &Server,
        ticket: &RequestId,
        agent: &Agent,
        result_type: Option<&'static str>,
    ) -> serde_json::Result<Vec<u8>> {
        let answer = server.at_once(&self.job, ticket, agent).await;
        mcp::reply(self.id.clone(), mcp::told(self.job.entry, answer), result_type)
    }
}
