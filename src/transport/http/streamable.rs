//! Streamable HTTP at `/mcp`. rmcp has the protocol; here is who asks, at which desk, and what
//! becomes of the reply.

use std::{
    convert::Infallible,
    io,
    pin::pin,
    sync::{Arc, Weak},
};

use axum::{
    body::{Body, to_bytes},
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header, request::Parts},
    response::{IntoResponse as _, Response},
};
use futures_util::stream;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult, Implementation,
        ListToolsResult, PaginatedRequestParams, RequestId, ServerConfig, ServerJsonRpcMessage,
    },
    service::RequestContext,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::never::NeverSessionManager,
    },
};
use serde::{Deserialize, de::IgnoredAny};
use tokio::time::{Duration, sleep};

use super::{
    super::{
        ledger::Ticket,
        lines::{self, Parsed},
        mcp::{self, Server},
    },
    Net,
    auth::Caller,
    call::{Call, Reply, Whose},
    guard::{Arrived, refuse},
    presence::{Open, Registry, Session, new_id},
    quick::Quick,
    stream::{EVENT_STREAM, PING},
};
use crate::error::Error;

static SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// How often to look for sessions whose time is up.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// rmcp's services. Sessions are ours: to rmcp, each of their requests stands alone, as those of
/// 2026-07-28 do. Its own sessions have two tasks and some 100 KB each.
#[derive(Clone)]
pub(super) struct Mcp {
    pub net: Arc<Net>,
    in_session: Arc<Service>,
    /// Also refuses what needs a session and has none.
    alone: Arc<Service>,
}

type Service = StreamableHttpService<Door, NeverSessionManager>;

async fn end_idle(registry: Weak<Registry>) {
    while let Some(registry) = registry.upgrade() {
        for id in registry.idle() {
            registry.end(&id);
        }
        drop(registry);
        sleep(LOOK_EVERY).await;
    }
}

/// The outside of a message.
#[derive(Deserialize)]
pub(super) struct Envelope {
    #[serde(default)]
    pub jsonrpc: String,
    #[serde(default)]
    pub id: Option<RequestId>,
    #[serde(default)]
    pub method: String,
    #[serde(default)]
    pub params: serde_json::Value,
}

impl Envelope {
    /// `None` where the body is no message. serde takes a list for an object, too: each field in turn.
    pub(super) fn of(body: &[u8]) -> Option<Envelope> {
        let is_object = body.trim_ascii_start().starts_with(b"{");
        is_object.then(|| serde_json::from_slice(body).ok())?
    }

    /// The request that it takes back.
    fn takes_back(&self) -> Option<RequestId> {
        let id = self.params.get("requestId").filter(|_| self.method == "notifications/cancelled");
        id.and_then(|id| serde_json::from_value(id.clone()).ok())
    }
}

impl Session {
    /// What a message changes by itself; gives it back, with its id, if it is a request.
    pub(super) fn note(&self, message: Envelope) -> Option<(Envelope, RequestId)> {
        if let Some(id) = message.takes_back()
            && let Some(ticket) = self.calls().get(&id)
        {
            self.presence.server.ledger.cancelled(&ticket.id);
            ticket.cut.cancel();
        }
        let id = message.id.clone()?;
        Some((message, id))
    }

    /// Who the client is, as its handshake tells.
    pub(super) fn begun(&self, handshake: &Envelope) {
        let client = handshake.params.get("clientInfo").cloned();
        if let Some(client) = client.and_then(|client| serde_json::from_value(client).ok()) {
            self.client.get_or_init(|| client);
        }
    }
}

/// Who answers a request, by which ticket, and who the client is if its session knows; goes with it
/// to the handler.
#[derive(Clone)]
struct At {
    server: Server,
    ticket: Ticket,
    client: Option<Implementation>,
}

impl At {
    fn of(call: &Call, client: Option<Implementation>) -> At {
        At { server: call.server().clone(), ticket: call.ticket().clone(), client }
    }
}

impl Mcp {
    pub(super) fn new(net: &Arc<Net>) -> Mcp {
        let service = |has_sessions: bool| {
            // The guards are in front, of all routes.
            let config = StreamableHttpServerConfig::default()
                .with_json_response(true)
                .with_legacy_session_mode(has_sessions)
                .disable_allowed_hosts()
                .disable_allowed_origins()
                .with_cancellation_token(net.end.child_token());
            Arc::new(Service::new(|| Ok::<_, io::Error>(Door), Arc::default(), config))
        };
        Mcp { net: Arc::clone(net), in_session: service(false), alone: service(true) }
    }

    /// With the sessions of streamable HTTP, which end when they are idle.
    pub(super) fn with_sessions(net: &Arc<Net>) -> Mcp {
        tokio::spawn(end_idle(Arc::downgrade(&net.registry)));
        Mcp::new(net)
    }

    /// Finds the desk that a request is for, and follows it until its reply was written.
    pub(super) async fn attend(&self, caller: Caller, request: &Arrived) -> Response {
        let Parts { headers, method, .. } = &request.parts;
        let registry = &self.net.registry;
        let session = match headers.get(&SESSION).map(|id| id.to_str().unwrap_or_default()) {
            None => None,
            Some(id) => {
                let Some(session) = registry.session(id, &caller) else {
                    let text = "there is no such session; initialize anew";
                    return refuse(StatusCode::NOT_FOUND, text);
                };
                let open = session.open();
                if *method == Method::GET {
                    return stream(headers, open, self.net.ping_every);
                }
                if *method == Method::DELETE {
                    session.presence.take_leave(super::SETTLE).await;
                    registry.end(id);
                    return StatusCode::NO_CONTENT.into_response();
                }
                Some((session, open))
            }
        };
        match session {
            _ if *method != Method::POST => by_rmcp(&self.alone, request, None).await,
            Some((session, open)) => self.in_session(&session, open, request).await,
            None => self.without_session(caller, request).await,
        }
    }

    async fn in_session(&self, session: &Session, open: Open, request: &Arrived) -> Response {
        // What cannot be read so, rmcp answers.
        let message = Envelope::of(&request.body);
        let Some((message, id)) = message.and_then(|it| session.note(it)) else {
            return self.reply(&self.in_session, request, None).await;
        };
        let whose = Whose::Session(open, id);
        let call = Call::begin(&self.net.registry, &session.presence, whose).over(&request.line);
        match self.answer(session, &call, message, request).await {
            Some(response) => Reply::watch(response, call),
            None if self.net.stop.is_cancelled() => stopping(),
            None => refuse(StatusCode::NOT_FOUND, "the session has ended; initialize anew"),
        }
    }

    /// The answer to a request of a session; `None` where that ended before.
    pub(super) async fn answer(
        &self,
        session: &Session,
        call: &Call,
        message: Envelope,
        request: &Arrived,
    ) -> Option<Response> {
        let client = session.client.get().cloned();
        let answer = pin!(async {
            match Quick::of(message, &request.parts.headers, false) {
                Some(quick) => quick.run(call, client).await,
                None => self.reply(&self.in_session, request, Some(At::of(call, client))).await,
            }
        });
        session.gone.run_until_cancelled(answer).await
    }

    async fn without_session(&self, caller: Caller, request: &Arrived) -> Response {
        let message = Envelope::of(&request.body);
        let Some(message) = message.filter(|message| message.id.is_some()) else {
            return self.reply(&self.alone, request, None).await;
        };
        if message.method == "initialize" {
            return Box::pin(self.begin(caller, message, request)).await;
        }
        let Some(name) = caller.name else { return self.reply(&self.alone, request, None).await };
        let registry = &self.net.registry;
        let quick = Quick::of(message, &request.parts.headers, true);
        let presence = registry.member(&name, true);
        let whose = Whose::Member(Arc::clone(registry), name);
        let call = Call::begin(registry, &presence, whose).over(&request.line);
        let response = match quick {
            Some(quick) => quick.run(&call, None).await,
            None => self.reply(&self.alone, request, Some(At::of(&call, None))).await,
        };
        Reply::watch(response, call)
    }

    /// A session begins, if rmcp takes the handshake.
    async fn begin(&self, caller: Caller, message: Envelope, request: &Arrived) -> Response {
        let registry = &self.net.registry;
        let Some(slot) = registry.slot() else { return full() };
        let response = self.reply(&self.in_session, request, None).await;
        if response.status() != StatusCode::OK {
            return response;
        }
        let (mut parts, body) = response.into_parts();
        let Ok(body) = to_bytes(Body::new(body), usize::MAX).await else {
            return refuse(StatusCode::INTERNAL_SERVER_ERROR, "the handshake was cut");
        };
        let is_taken = serde_json::from_slice::<serde_json::Value>(&body)
            .is_ok_and(|reply| reply.get("result").is_some());
        if is_taken {
            let id = match new_id() {
                Ok(id) => id,
                Err(err) => return refuse(StatusCode::INTERNAL_SERVER_ERROR, err.to_string()),
            };
            let Ok(shown) = HeaderValue::from_str(&id) else {
                return refuse(StatusCode::INTERNAL_SERVER_ERROR, "the id is none");
            };
            registry.add(&id, registry.begin(&caller), caller, slot).begun(&message);
            parts.headers.insert(SESSION.clone(), shown);
        }
        Response::from_parts(parts, Body::from(body))
    }

    /// What rmcp answers.
    async fn reply(&self, service: &Service, request: &Arrived, at: Option<At>) -> Response {
        let response = by_rmcp(service, request, at).await;
        match response.status() {
            // That it claims to be JSON is known: it is no message.
            StatusCode::UNSUPPORTED_MEDIA_TYPE => unreadable(&request.body).unwrap_or(response),
            // What ends under a request is a fault of the server's to rmcp.
            status if status.is_server_error() && self.net.stop.is_cancelled() => stopping(),
            _ => response,
        }
    }
}

/// rmcp's reply. What it needs for that is as large as all its kinds of request, and has a place of
/// its own: every request that goes past it would carry it along.
async fn by_rmcp(service: &Service, request: &Arrived, at: Option<At>) -> Response {
    let mut request = request.clone().whole();
    if let Some(at) = at {
        request.extensions_mut().insert(at);
    }
    Box::pin(service.handle(request)).await.map(Body::new)
}

/// The stream of a session, for what a server says unasked. Ours says nothing; it shows that both
/// sides are there, and keeps the session from being idle.
fn stream(headers: &HeaderMap, open: Open, ping_every: Duration) -> Response {
    let accepts = headers.get_all(header::ACCEPT).iter();
    let mut accepts = accepts.filter_map(|kinds| kinds.to_str().ok());
    if !accepts.any(|kinds| kinds.contains("text/event-stream") || kinds.contains("*/*")) {
        return refuse(StatusCode::NOT_ACCEPTABLE, "a stream is `Accept: text/event-stream`");
    }
    let pings = stream::unfold((open, Duration::ZERO), move |(open, pause)| async move {
        open.session().gone.run_until_cancelled(sleep(pause)).await?;
        Some((Ok::<_, Infallible>(PING), (open, ping_every)))
    });
    (EVENT_STREAM, Body::from_stream(pings)).into_response()
}

/// The answer to a body that is no message, as JSON-RPC has it.
pub(super) fn unreadable(body: &[u8]) -> Option<Response> {
    let (id, error) = match lines::parse(body) {
        Parsed::Message(_) => return None,
        Parsed::Refused(id, error) => (id, error),
        Parsed::Nothing if serde_json::from_slice::<IgnoredAny>(body).is_ok() => {
            (None, ErrorData::invalid_request("Invalid request", None))
        }
        Parsed::Nothing => (None, ErrorData::parse_error("the body is not JSON", None)),
    };
    let message = serde_json::to_string(&ServerJsonRpcMessage::error(error, id)).ok()?;
    let kind = [(header::CONTENT_TYPE, "application/json")];
    Some((StatusCode::BAD_REQUEST, kind, message).into_response())
}

fn stopping() -> Response {
    refuse(StatusCode::SERVICE_UNAVAILABLE, "the server is being stopped")
}

/// There are too many sessions.
pub(super) fn full() -> Response {
    tracing::warn!("there are too many sessions: a client was turned away");
    let mut response = refuse(
        StatusCode::SERVICE_UNAVAILABLE,
        "there are too many sessions; those that end or are idle for 30 minutes make room",
    );
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("60"));
    response
}

/// What rmcp makes anew for each request: the desk comes with it.
#[derive(Clone)]
struct Door;

impl Door {
    /// Who answers the request; what is known of it beside that goes on with it.
    fn server(context: &mut RequestContext<RoleServer>) -> Option<Server> {
        let parts = context.extensions.get::<Parts>()?;
        let At { server, ticket, client } = parts.extensions.get::<At>()?.clone();
        if let Some(client) = client {
            context.extensions.insert(client);
        }
        context.extensions.insert(ticket);
        Some(server)
    }
}

impl ServerHandler for Door {
    fn get_info(&self) -> ServerConfig {
        mcp::info()
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        mut context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        match Door::server(&mut context) {
            Some(server) => server.list_tools(request, context).await,
            None => Ok(mcp::all_tools()),
        }
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        mut context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if let Some(server) = Door::server(&mut context) {
            return server.call_tool(request, context).await;
        }
        let err = Error::refused("this request does not say who asks, and has no session").hint(
            "a person has to add `?name=NAME` to the address that this client has, or give it a \
             token: `team-table token add NAME`",
        );
        Ok(mcp::failure(&err))
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(mcp::unknown_method(&request.method, &context.meta))
    }
}
