//! Calls of tools that do not wait, past rmcp: a call of a tool is nearly all that agents send, and
//! rmcp makes a service and a task for each, and tries each of its kinds of request on the body. A
//! request that is not quite as the protocol has it is left to rmcp, which says what is wrong.

use axum::{
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use rmcp::model::{Implementation, JsonObject, RequestId};
use serde_json::Value;

use super::{super::mcp, call::Call, guard::refuse, streamable::Envelope};
use crate::tools::{Agent, Entry, Job};

/// The revision whose requests have no session,
const STATELESS: &str = "2026-07-28";
/// and those whose requests have one.
const WITH_SESSIONS: &[&str] = &["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
const VERSION_HEADER: &str = "mcp-protocol-version";
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const CLIENT: &str = "io.modelcontextprotocol/clientInfo";

/// A call that can be run here.
pub(super) struct Quick {
    id: RequestId,
    job: Job,
    meta: JsonObject,
    is_stateless: bool,
}

impl Quick {
    /// The call that a request is, if it is one of those; `is_stateless`: it has no session.
    pub(super) fn of(message: &Envelope, headers: &HeaderMap, is_stateless: bool) -> Option<Quick> {
        let Value::Object(params) = &message.params else { return None };
        let object = |key: &str| match params.get(key) {
            Some(Value::Object(object)) => Some(Some(object)),
            None => Some(None),
            Some(_) => None,
        };
        let name = params.get("name")?.as_str()?;
        let (arguments, meta) = (object("arguments")?, object("_meta")?);
        let has_more = params.keys().any(|key| !["name", "arguments", "_meta"].contains(&&**key));
        if message.jsonrpc != "2.0" || message.method != "tools/call" || has_more {
            return None;
        }
        let meta = meta.cloned().unwrap_or_default();
        let fits =
            if is_stateless { fits_alone(headers, name, &meta) } else { fits(headers, &meta) };
        if !fits || !accepts(headers) || Entry::is_hook(name) {
            return None;
        }
        let entry = Entry::named(name)?;
        let arguments = arguments.cloned().unwrap_or_default();
        let job = entry.job(arguments).unwrap_or_else(|err| Job::refusing(entry, &err));
        let id = message.id.clone()?;
        job.waits.is_none().then_some(Quick { id, job, meta, is_stateless })
    }

    /// Runs it at the desk of `call`. `client` is what its session told of itself.
    pub(super) async fn run(self, call: &Call, client: Option<Implementation>) -> Response {
        let Quick { id, job, meta, is_stateless } = self;
        let server = call.server();
        let by_request = || serde_json::from_value(meta.get(CLIENT)?.clone()).ok();
        let agent: Agent = server.agent_of(client.or_else(by_request), &meta);
        let answer = server.at_once(&job, call.ticket(), &agent).await;
        let told = mcp::told(job.entry, answer);
        let body = mcp::reply(id, told, is_stateless.then_some("complete"));
        match body {
            Ok(body) => ([(header::CONTENT_TYPE, "application/json")], body).into_response(),
            Err(err) => refuse(StatusCode::INTERNAL_SERVER_ERROR, err.to_string()),
        }
    }
}

/// Whether a request in a session is as the protocol has it.
fn fits(headers: &HeaderMap, meta: &JsonObject) -> bool {
    let version = one(headers, VERSION_HEADER);
    let is_known = version.is_none_or(|version| WITH_SESSIONS.contains(&version));
    is_known && headers.get_all(VERSION_HEADER).iter().count() < 2 && !meta.contains_key(VERSION)
}

/// Whether a request without a session is.
fn fits_alone(headers: &HeaderMap, name: &str, meta: &JsonObject) -> bool {
    one(headers, VERSION_HEADER) == Some(STATELESS)
        && one(headers, "mcp-method") == Some("tools/call")
        && one(headers, "mcp-name") == Some(name)
        && meta.get(VERSION).and_then(Value::as_str) == Some(STATELESS)
        && meta.get(CAPABILITIES).is_some_and(Value::is_object)
        && meta.get(CLIENT).is_none_or(|client| {
            let text = |key: &str| client.get(key).is_some_and(Value::is_string);
            text("name") && text("version")
        })
}

/// Whether the client takes both kinds of replies, as it has to.
fn accepts(headers: &HeaderMap) -> bool {
    let kinds = one(headers, "accept").unwrap_or_default();
    let has = |kind: &str| kinds.split(',').any(|it| it.trim().eq_ignore_ascii_case(kind));
    has("application/json") && has("text/event-stream")
}

/// A header that is there once.
fn one<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut all = headers.get_all(name).iter();
    let first = all.next()?;
    all.next().is_none().then(|| first.to_str().ok())?
}
