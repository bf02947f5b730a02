//! Plain calls at `/mcp` and `/messages`, past rmcp: what has to be right around them.

use axum::{
    http::{HeaderMap, HeaderName, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use rmcp::model::{Implementation, JsonObject};
use serde::Deserialize as _;
use serde_json::Value;

use super::{
    super::plain::{Params, Plain},
    call::Call,
    guard::refuse,
    streamable::Envelope,
};

/// The revision whose requests have no session,
const STATELESS: &str = "2026-07-28";
/// and those whose requests have one.
const WITH_SESSIONS: &[&str] = &["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
static VERSION_HEADER: HeaderName = HeaderName::from_static("mcp-protocol-version");
static METHOD_HEADER: HeaderName = HeaderName::from_static("mcp-method");
static NAME_HEADER: HeaderName = HeaderName::from_static("mcp-name");
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const CLIENT: &str = "io.modelcontextprotocol/clientInfo";

/// A call that can be run here.
pub(super) struct Quick {
    call: Plain,
    is_stateless: bool,
}

impl Quick {
    /// The call that a request is, if it is one of those; `is_stateless`: it has no session.
    pub(super) fn of(message: Envelope, headers: &HeaderMap, is_stateless: bool) -> Option<Quick> {
        let Envelope { jsonrpc, id, method, params } = message;
        let params = Params::deserialize(params).ok()?;
        let fits = if is_stateless {
            fits_alone(headers, &params.name, &params.meta)
        } else {
            fits(headers, &params.meta)
        };
        if !fits || !accepts(headers) {
            return None;
        }
        let call = Plain::of(&jsonrpc, &method, id?, params)?;
        Some(Quick { call, is_stateless })
    }

    /// Runs it at the desk of `call`. `client` is what its session told of itself.
    pub(super) async fn run(self, call: &Call, client: Option<Implementation>) -> Response {
        let server = call.server();
        let meta = &self.call.meta;
        let by_request = || serde_json::from_value(meta.get(CLIENT)?.clone()).ok();
        let agent = server.agent_of(client.or_else(by_request), meta);
        let result_type = self.is_stateless.then_some("complete");
        match self.call.run(server, &call.ticket().id, &agent, result_type).await {
            Ok(body) => ([(header::CONTENT_TYPE, "application/json")], body).into_response(),
            Err(err) => refuse(StatusCode::INTERNAL_SERVER_ERROR, err.to_string()),
        }
    }
}

/// Whether a request in a session is as the protocol has it.
fn fits(headers: &HeaderMap, meta: &JsonObject) -> bool {
    let version = one(headers, &VERSION_HEADER);
    let is_known = version.is_none_or(|version| WITH_SESSIONS.contains(&version));
    is_known && headers.get_all(&VERSION_HEADER).iter().count() < 2 && !meta.contains_key(VERSION)
}

/// Whether a request without a session is.
fn fits_alone(headers: &HeaderMap, name: &str, meta: &JsonObject) -> bool {
    one(headers, &VERSION_HEADER) == Some(STATELESS)
        && one(headers, &METHOD_HEADER) == Some("tools/call")
        && one(headers, &NAME_HEADER) == Some(name)
        && meta.get(VERSION).and_then(Value::as_str) == Some(STATELESS)
        && meta.get(CAPABILITIES).is_some_and(Value::is_object)
        && meta.get(CLIENT).is_none_or(|client| {
            let text = |key: &str| client.get(key).is_some_and(Value::is_string);
            text("name") && text("version")
        })
}

/// Whether the client takes both kinds of replies, as it has to.
fn accepts(headers: &HeaderMap) -> bool {
    let kinds = one(headers, &header::ACCEPT).unwrap_or_default();
    let has = |kind: &str| kinds.split(',').any(|it| it.trim().eq_ignore_ascii_case(kind));
    has("application/json") && has("text/event-stream")
}

/// A header that is there once.
fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut all = headers.get_all(name).iter();
    let first = all.next()?;
    all.next().is_none().then(|| first.to_str().ok())?
}
