//! HTTP+SSE, the transport of MCP 2024-11-05: replies come in the stream of `GET /sse`, requests go
//! to `POST /messages`. The stream is the session: it ends with it.

use std::{
    collections::HashMap,
    convert::Infallible,
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes, HttpBody, to_bytes},
    extract::{Request, State},
    http::{StatusCode, header},
    middleware,
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use hyper::body::Frame;
use rmcp::{
    RoleServer, ServiceExt as _,
    model::{
        ClientJsonRpcMessage, ClientNotification, GetExtensions as _, JsonRpcMessage, RequestId,
        ServerJsonRpcMessage,
    },
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use tokio::{
    sync::mpsc,
    time::{Instant, Interval, MissedTickBehavior, interval_at, sleep, timeout},
};

use super::{
    super::lines::{self, Parsed},
    Net,
    auth::{self, Caller},
    call::{Call, Whose},
    guard::refuse,
    presence::{Open, Registry, Session},
    streamable::full,
};
use crate::error::{Error, Result};

/// A comment in the stream, so that no proxy takes it for dead, and so that we see if it is.
pub(super) const PING_EVERY: Duration = Duration::from_secs(15);
/// Messages on their way, in either direction, and requests without a reply: a client that takes no
/// replies cannot fill the memory with them.
const WAITING: usize = 64;
/// Between two looks at whether the client takes its replies.
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// The headers of a stream: nobody on the way may keep it, or wait for more of it.
pub(super) const EVENT_STREAM: [(&str, &str); 3] = [
    ("content-type", "text/event-stream"),
    ("cache-control", "no-store"),
    ("x-accel-buffering", "no"),
];

/// The streams that are open.
#[derive(Clone)]
struct Streams {
    net: Arc<Net>,
    by_id: Arc<Mutex<HashMap<String, Arc<Stream>>>>,
}

/// One of them.
struct Stream {
    session: Arc<Session>,
    incoming: mpsc::Sender<ClientJsonRpcMessage>,
    outgoing: mpsc::Sender<Outgoing>,
    calls: Calls,
}

/// Requests without a reply yet.
type Calls = Arc<Mutex<HashMap<RequestId, Call>>>;

/// A message for the client, and the request that it replies to.
struct Outgoing {
    message: ServerJsonRpcMessage,
    call: Option<Call>,
}

pub(super) fn routes(net: &Arc<Net>) -> Router {
    let streams = Streams { net: Arc::clone(net), by_id: Arc::default() };
    Router::new()
        .route("/sse", get(begin))
        .route("/messages", post(take))
        .with_state(streams)
        .layer(middleware::from_fn_with_state(Arc::clone(net), auth::identify))
}

async fn begin(State(streams): State<Streams>, request: Request) -> Response {
    let registry = &streams.net.registry;
    let Some(caller) = request.extensions().get::<Caller>().cloned() else {
        return refuse(StatusCode::INTERNAL_SERVER_ERROR, "nobody asked who asks");
    };
    let Some(slot) = registry.slot() else { return full() };
    let id = match new_id() {
        Ok(id) => id,
        Err(err) => return refuse(StatusCode::INTERNAL_SERVER_ERROR, err.to_string()),
    };
    // Who is known by the address alone is so at the other address, too.
    let name =
        caller.name.as_ref().filter(|_| !request.headers().contains_key(header::AUTHORIZATION));
    let name = name.map_or_else(String::new, |name| format!("&name={name}"));
    let hello = format!("event: endpoint\ndata: /messages?sessionId={id}{name}\n\n");
    let presence = registry.begin(&caller);
    let session = registry.add(&id, Arc::clone(&presence), caller, None, slot);
    let (incoming, from_client) = mpsc::channel(WAITING);
    let (outgoing, to_client) = mpsc::channel(WAITING);
    let calls = Calls::default();
    let gone = session.gone.clone();
    let stream = Arc::new(Stream {
        session: Arc::clone(&session),
        incoming,
        outgoing: outgoing.clone(),
        calls: Arc::clone(&calls),
    });
    streams.by_id().insert(id.clone(), stream);
    let end = End { streams: streams.clone(), id };
    let transport = Ends { from_client, to_client: Some(outgoing), calls };
    let server = presence.server.clone();
    let over = gone.clone();
    tokio::spawn(async move {
        match server.serve_with_ct(transport, over.clone()).await {
            Ok(service) => {
                if let Err(err) = service.waiting().await {
                    tracing::error!("the service ended: {err}");
                }
            }
            Err(err) => tracing::debug!("no session: {err}"),
        }
        // The stream ends with the service, as the service with the stream.
        over.cancel();
    });
    let mut ping = interval_at(Instant::now() + PING_EVERY, PING_EVERY);
    ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let open = session.open();
    let over = Box::pin(gone.cancelled_owned());
    let events = Events { hello: Some(hello), to_client, ping, over, _open: open, _end: end };
    (EVENT_STREAM, Body::new(events)).into_response()
}

async fn take(State(streams): State<Streams>, request: Request) -> Response {
    let Some(caller) = request.extensions().get::<Caller>().cloned() else {
        return refuse(StatusCode::INTERNAL_SERVER_ERROR, "nobody asked who asks");
    };
    let mut pairs = request.uri().query().unwrap_or_default().split('&');
    let id = pairs.find_map(|pair| pair.strip_prefix("sessionId=")).unwrap_or_default();
    let registry = &streams.net.registry;
    let found = registry.session(id, &caller).and_then(|_| streams.by_id().get(id).cloned());
    let Some(stream) = found else {
        return refuse(StatusCode::NOT_FOUND, "there is no such session; open /sse anew");
    };
    let Ok(body) = to_bytes(request.into_body(), usize::MAX).await else {
        return refuse(StatusCode::BAD_REQUEST, "the body was cut");
    };
    let mut message = match lines::parse(&body) {
        Parsed::Message(message) => *message,
        Parsed::Nothing => return refuse(StatusCode::BAD_REQUEST, "the body is no message"),
        Parsed::Refused(id, error) => {
            let message = JsonRpcMessage::error(error, id);
            let told = stream.outgoing.send(Outgoing { message, call: None }).await;
            return accepted(told.is_ok());
        }
    };
    if timeout(streams.net.body_time, stream.has_room()).await.is_err() {
        let text = "this session has too many replies in its stream that it does not take";
        return refuse(StatusCode::TOO_MANY_REQUESTS, text);
    }
    stream.note(&mut message, registry);
    accepted(stream.incoming.send(message).await.is_ok())
}

fn accepted(is_there: bool) -> Response {
    if is_there {
        return (StatusCode::ACCEPTED, "Accepted").into_response();
    }
    refuse(StatusCode::NOT_FOUND, "the session has ended; open /sse anew")
}

impl Streams {
    fn by_id(&self) -> MutexGuard<'_, HashMap<String, Arc<Stream>>> {
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stream {
    /// Waits until the client has taken enough of its replies to ask for more.
    async fn has_room(&self) {
        while self.outgoing.capacity() == 0 || self.session.calls().len() >= WAITING {
            sleep(BETWEEN_LOOKS).await;
        }
    }

    fn note(&self, message: &mut ClientJsonRpcMessage, registry: &Registry) {
        match message {
            JsonRpcMessage::Request(request) => {
                let ticket = registry.ticket();
                request.request.extensions_mut().insert(ticket.clone());
                let whose = Whose::Session(self.session.open(), request.id.clone());
                let call = Call::begin(&self.session.presence, ticket, whose);
                calls(&self.calls).insert(request.id.clone(), call);
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    drop(calls(&self.calls).remove(id));
                }
            }
            _ => {}
        }
    }
}

fn calls(calls: &Calls) -> MutexGuard<'_, HashMap<RequestId, Call>> {
    calls.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The server's ends of a stream.
struct Ends {
    from_client: mpsc::Receiver<ClientJsonRpcMessage>,
    /// `None` once closed.
    to_client: Option<mpsc::Sender<Outgoing>>,
    calls: Calls,
}

impl Transport<RoleServer> for Ends {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let id = match &message {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            _ => None,
        };
        let call = id.and_then(|id| calls(&self.calls).remove(&id));
        let to_client = self.to_client.clone();
        async move {
            let to_client = to_client.ok_or(io::ErrorKind::NotConnected)?;
            let sent = to_client.send(Outgoing { message, call }).await;
            sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        self.from_client.recv().await
    }

    async fn close(&mut self) -> io::Result<()> {
        self.to_client = None;
        self.from_client.close();
        Ok(())
    }
}

/// The body of `GET /sse`. What is in it and was not taken when it is dropped never arrived.
struct Events {
    hello: Option<String>,
    to_client: mpsc::Receiver<Outgoing>,
    ping: Interval,
    over: Pin<Box<dyn Future<Output = ()> + Send>>,
    _open: Open,
    _end: End,
}

impl HttpBody for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let data = |text: String| Poll::Ready(Some(Ok(Frame::data(Bytes::from(text)))));
        if let Some(hello) = self.hello.take() {
            return data(hello);
        }
        if self.over.as_mut().poll(context).is_ready() {
            return Poll::Ready(None);
        }
        match self.to_client.poll_recv(context) {
            Poll::Ready(None) => return Poll::Ready(None),
            Poll::Ready(Some(Outgoing { message, call })) => {
                let text = match serde_json::to_string(&message) {
                    Ok(text) => text,
                    Err(err) => {
                        tracing::error!("a reply cannot be written: {err}");
                        return Poll::Ready(None);
                    }
                };
                if let Some(call) = call {
                    call.written();
                }
                return data(format!("event: message\ndata: {text}\n\n"));
            }
            Poll::Pending => {}
        }
        ready!(self.ping.poll_tick(context));
        data(": here\n\n".to_owned())
    }
}

/// Ends a session with its stream.
struct End {
    streams: Streams,
    id: String,
}

impl Drop for End {
    fn drop(&mut self) {
        let ended = self.streams.by_id().remove(&self.id);
        self.streams.net.registry.end(&self.id);
        if let Some(stream) = ended {
            // Nobody reads the replies to these.
            let left = std::mem::take(&mut *calls(&stream.calls));
            drop(left);
        }
    }
}

/// An id that nobody can guess.
pub(super) fn new_id() -> Result<String> {
    let mut random = [0; 16];
    getrandom::fill(&mut random)
        .map_err(|err| Error::internal("the system gives no random bytes").source(err))?;
    Ok(format!("{:032x}", u128::from_be_bytes(random)))
}
