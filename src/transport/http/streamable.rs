//! Streamable HTTP at `/mcp`. rmcp has the protocol; here is who asks, at which desk, and what
//! becomes of the reply.

use std::{
    io,
    sync::{Arc, Weak},
};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    http::{HeaderValue, Method, StatusCode, header, request::Parts},
    middleware::{self, Next},
    response::{IntoResponse as _, Response},
};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, ClientJsonRpcMessage, CustomRequest, CustomResult,
        JsonRpcMessage, ListToolsResult, PaginatedRequestParams, RequestId, ServerConfig,
        ServerJsonRpcMessage,
    },
    service::RequestContext,
    transport::streamable_http_server::{
        SessionId, SessionManager, StreamableHttpServerConfig, StreamableHttpService,
        session::{
            ServerSseMessage,
            local::{LocalSessionManager, LocalSessionManagerError},
        },
    },
};
use serde::{Deserialize, de::IgnoredAny};
use tokio::time::{Duration, sleep};
use tokio_util::sync::CancellationToken;

use super::{
    super::{
        ledger::Ticket,
        lines::{self, Parsed},
        mcp::{self, Server},
    },
    Net,
    auth::{self, Caller},
    call::{Call, Reply, Whose},
    guard::refuse,
    presence::{Presence, Registry, Slot},
    wire::Line,
};
use crate::error::Error;

const SESSION: &str = "mcp-session-id";
/// How often to look for sessions whose time is up.
const LOOK_EVERY: Duration = Duration::from_secs(1);

pub(super) fn routes(net: &Arc<Net>) -> Router {
    let mut local = LocalSessionManager::default();
    // An open stream keeps a session alive, which rmcp does not see.
    local.session_config.keep_alive = None;
    let sessions = Arc::new(Sessions { local, registry: Arc::clone(&net.registry) });
    tokio::spawn(end_idle(Arc::downgrade(&sessions)));
    // The guards are in front, of all routes.
    let config = StreamableHttpServerConfig::default()
        .with_json_response(true)
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_cancellation_token(net.end.child_token());
    let service = StreamableHttpService::new(|| Ok::<_, io::Error>(Door), sessions, config);
    Router::new()
        .route_service("/mcp", service)
        .layer(middleware::from_fn_with_state(Arc::clone(net), attend))
        .layer(middleware::from_fn_with_state(Arc::clone(net), auth::identify))
}

async fn end_idle(sessions: Weak<Sessions>) {
    while let Some(sessions) = sessions.upgrade() {
        for id in sessions.registry.idle() {
            if let Err(err) = sessions.close_session(&id.into()).await {
                tracing::debug!("an idle session did not end: {err}");
            }
        }
        drop(sessions);
        sleep(LOOK_EVERY).await;
    }
}

/// The outside of a message.
#[derive(Deserialize)]
struct Envelope {
    #[serde(default)]
    id: Option<RequestId>,
    #[serde(default)]
    method: String,
    #[serde(default)]
    params: serde_json::Value,
}

impl Envelope {
    /// The request that it takes back.
    fn takes_back(&self) -> Option<RequestId> {
        let id = self.params.get("requestId").filter(|_| self.method == "notifications/cancelled");
        id.and_then(|id| serde_json::from_value(id.clone()).ok())
    }
}

/// The desk that a request is for; goes with it to the handler.
#[derive(Clone)]
struct At(Arc<Presence>);

/// A session that begins.
#[derive(Clone)]
struct Beginning {
    presence: Arc<Presence>,
    slot: Arc<Slot>,
}

/// The layer: finds the desk, and follows the request until its reply was written.
async fn attend(State(net): State<Arc<Net>>, request: Request, inner: Next) -> Response {
    let Some(caller) = request.extensions().get::<Caller>().cloned() else {
        return refuse(StatusCode::INTERNAL_SERVER_ERROR, "nobody asked who asks");
    };
    let id = request.headers().get(SESSION).map(|id| id.to_str().unwrap_or_default().to_owned());
    let session = id.as_deref().map(|id| net.registry.session(id, &caller));
    if let Some(None) = session {
        return refuse(StatusCode::NOT_FOUND, "there is no such session; initialize anew");
    }
    let session = session.flatten();
    let open = session.as_ref().map(super::presence::Session::open);
    if request.method() != Method::POST {
        let ends = request.method() == Method::DELETE;
        let mut response = inner.run(request).await;
        if ends && response.status() == StatusCode::ACCEPTED {
            // It is done, and some clients complain of a 202.
            *response.status_mut() = StatusCode::NO_CONTENT;
        }
        return Reply::watch(response, None, open);
    }
    let (mut parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, usize::MAX).await else {
        return refuse(StatusCode::BAD_REQUEST, "the body was cut");
    };
    let gone = session.as_ref().map(|session| session.gone.clone());
    // What cannot be read so, rmcp answers.
    let message = serde_json::from_slice::<Envelope>(&body).ok();
    let call = match (message, session, open) {
        (Some(Envelope { id: Some(id), .. }), Some(session), Some(open)) => {
            let whose = Whose::Session(open, id);
            Some(call(&net.registry, &session.presence, whose, &mut parts))
        }
        (Some(message), Some(session), _) => {
            if let Some(id) = message.takes_back()
                && let Some(ticket) = session.calls().get(&id)
            {
                session.presence.server.ledger.cancelled(&ticket.id);
            }
            None
        }
        (Some(message), ..) if message.method == "initialize" => {
            let Some(slot) = net.registry.slot() else { return full() };
            let presence = net.registry.begin(&caller);
            parts.extensions.insert(Beginning { presence, slot });
            None
        }
        (Some(message), ..) if message.id.is_some() => caller.name.map(|name| {
            let presence = net.registry.member(&name, true);
            let whose = Whose::Member(Arc::clone(&net.registry), name);
            call(&net.registry, &presence, whose, &mut parts)
        }),
        _ => None,
    };
    let response = inner.run(Request::from_parts(parts, Body::from(body.clone()))).await;
    let response = match response.status() {
        // That it claims to be JSON is known: it is no message.
        StatusCode::UNSUPPORTED_MEDIA_TYPE => unreadable(&body).unwrap_or(response),
        status if status.is_server_error() => ended(&net, gone, response),
        _ => response,
    };
    Reply::watch(response, call, None)
}

/// The answer to a body that is no message, as JSON-RPC has it.
fn unreadable(body: &[u8]) -> Option<Response> {
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

/// What ends under a request is a fault of the server's to rmcp.
fn ended(net: &Net, gone: Option<CancellationToken>, response: Response) -> Response {
    if net.stop.is_cancelled() {
        return refuse(StatusCode::SERVICE_UNAVAILABLE, "the server is being stopped");
    }
    if gone.is_some_and(|gone| gone.is_cancelled()) {
        return refuse(StatusCode::NOT_FOUND, "the session has ended; initialize anew");
    }
    response
}

/// A request begins; at which desk, and by which ticket, goes with it to the handler.
fn call(registry: &Registry, presence: &Arc<Presence>, whose: Whose, parts: &mut Parts) -> Call {
    let ticket = registry.ticket();
    parts.extensions.insert(ticket.clone());
    parts.extensions.insert(At(Arc::clone(presence)));
    Call::begin(presence, ticket, whose).over(parts.extensions.get::<Line>())
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

/// rmcp's sessions, and ours beside them.
struct Sessions {
    local: LocalSessionManager,
    registry: Arc<Registry>,
}

type Stream<T> = Result<T, LocalSessionManagerError>;

impl SessionManager for Sessions {
    type Error = LocalSessionManagerError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        self.local.create_session().await
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        let begins = match &message {
            JsonRpcMessage::Request(request) => {
                let extensions = rmcp::model::GetExtensions::extensions(&request.request);
                extensions.get::<Parts>().and_then(|parts| {
                    let beginning = parts.extensions.get::<Beginning>()?.clone();
                    Some((beginning, parts.extensions.get::<Caller>()?.clone()))
                })
            }
            _ => None,
        };
        let Some((Beginning { presence, slot }, caller)) = begins else {
            // Nothing that the layer has not seen becomes a session: it would count nowhere.
            self.local.close_session(id).await?;
            return Err(LocalSessionManagerError::SessionNotFound(id.clone()));
        };
        let initialized = self.local.initialize_session(id, message).await?;
        if matches!(initialized, JsonRpcMessage::Response(_)) {
            self.registry.add(id, presence, caller, slot);
        }
        Ok(initialized)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        self.local.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        self.registry.end(id);
        self.local.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Stream<impl futures_core::Stream<Item = ServerSseMessage> + Send + Sync + 'static> {
        self.local.create_stream(id, message).await
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), Self::Error> {
        self.local.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Stream<impl futures_core::Stream<Item = ServerSseMessage> + Send + Sync + 'static> {
        self.local.create_standalone_stream(id).await
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Stream<impl futures_core::Stream<Item = ServerSseMessage> + Send + Sync + 'static> {
        self.local.resume(id, last_event_id).await
    }
}

/// What rmcp makes anew for each session and each request without one: the desk comes with the
/// request.
#[derive(Clone)]
struct Door;

impl Door {
    /// The desk that the request is for, and the ticket for its reply.
    fn server(context: &mut RequestContext<RoleServer>) -> Option<Server> {
        let parts = context.extensions.get::<Parts>()?;
        let At(presence) = parts.extensions.get::<At>()?.clone();
        let ticket = parts.extensions.get::<Ticket>()?.clone();
        context.extensions.insert(ticket);
        Some(presence.server.clone())
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
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(mcp::unknown_method(&request.method))
    }
}
