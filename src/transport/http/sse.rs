//! HTTP+SSE, the transport of MCP 2024-11-05: replies come in the stream of `GET /sse`, requests go
//! to `POST /messages`. The stream is the session: it ends with it.

use std::{
    collections::HashMap,
    convert::Infallible,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::{
    body::{Body, Bytes, HttpBody, to_bytes},
    http::{HeaderValue, Method, StatusCode, header, request::Parts},
    response::{IntoResponse as _, Response},
};
use hyper::body::Frame;
use tokio::{
    sync::mpsc,
    time::{Instant, Interval, MissedTickBehavior, interval_at, sleep, timeout},
};

use super::{
    Net,
    auth::Caller,
    call::{Call, Whose},
    guard::{Arrived, refuse},
    presence::{Open, Session, new_id},
    stream::{EVENT_STREAM, PING},
    streamable::{Envelope, Mcp, full, unreadable},
};

const JSON: &str = "application/json";
/// What a client has to take where replies come with their requests.
const BOTH: &str = "application/json, text/event-stream";
/// Messages on their way, in either direction, and requests without a reply: a client that takes no
/// replies cannot fill the memory with them.
const WAITING: usize = 64;
/// Between two looks at whether the client takes its replies.
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// The streams that are open.
#[derive(Clone)]
pub(super) struct Streams {
    mcp: Mcp,
    by_id: Arc<Mutex<HashMap<String, Arc<Stream>>>>,
}

/// One of them.
struct Stream {
    session: Arc<Session>,
    outgoing: mpsc::Sender<Outgoing>,
}

/// A message for the client, as JSON, and the request that it replies to.
struct Outgoing {
    message: Bytes,
    call: Call,
}

impl Streams {
    pub(super) fn new(net: &Arc<Net>) -> Streams {
        Streams { mcp: Mcp::new(net), by_id: Arc::default() }
    }

    /// Answers at one of the two paths.
    pub(super) async fn attend(&self, caller: Caller, request: Arrived) -> Response {
        let method = &request.parts.method;
        match request.parts.uri.path() {
            "/sse" if method == Method::GET || method == Method::HEAD => {
                self.begin(caller, &request.parts)
            }
            "/sse" => not_allowed("GET,HEAD"),
            _ if method == Method::POST => self.take(caller, request).await,
            _ => not_allowed("POST"),
        }
    }

    fn begin(&self, caller: Caller, request: &Parts) -> Response {
        let registry = &self.mcp.net.registry;
        let Some(slot) = registry.slot() else { return full() };
        let id = match new_id() {
            Ok(id) => id,
            Err(err) => return refuse(StatusCode::INTERNAL_SERVER_ERROR, err.to_string()),
        };
        // Who is known by the address alone is so at the other address, too.
        let name = caller.name.as_ref();
        let name = name.filter(|_| !request.headers.contains_key(header::AUTHORIZATION));
        let name = name.map_or_else(String::new, |name| format!("&name={name}"));
        let hello = format!("event: endpoint\ndata: /messages?sessionId={id}{name}\n\n");
        let session = registry.add(&id, registry.begin(&caller), caller, slot);
        let (outgoing, to_client) = mpsc::channel(WAITING);
        let stream = Arc::new(Stream { session: Arc::clone(&session), outgoing });
        self.by_id().insert(id.clone(), stream);
        let end = End { streams: self.clone(), id };
        let ping_every = self.mcp.net.ping_every;
        let mut ping = interval_at(Instant::now() + ping_every, ping_every);
        ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let open = session.open();
        let over = Box::pin(session.gone.clone().cancelled_owned());
        let events = Events { hello: Some(hello), to_client, ping, over, _open: open, _end: end };
        // To HEAD goes an answer without a body: the session ends as soon as it has begun.
        let is_head = request.method == Method::HEAD;
        let body = if is_head { Body::empty() } else { Body::new(events) };
        (EVENT_STREAM, body).into_response()
    }

    async fn take(&self, caller: Caller, mut request: Arrived) -> Response {
        let mut pairs = request.parts.uri.query().unwrap_or_default().split('&');
        let id = pairs.find_map(|pair| pair.strip_prefix("sessionId=")).unwrap_or_default();
        let net = &self.mcp.net;
        let found = net.registry.session(id, &caller).and_then(|_| self.by_id().get(id).cloned());
        let Some(stream) = found else {
            return refuse(StatusCode::NOT_FOUND, "there is no such session; open /sse anew");
        };
        if timeout(net.body_time, stream.has_room()).await.is_err() {
            let text = "this session has too many replies in its stream that it does not take";
            return refuse(StatusCode::TOO_MANY_REQUESTS, text);
        }
        let Some(message) = Envelope::of(&request.body) else {
            let no_message = || refuse(StatusCode::BAD_REQUEST, "the body is no message");
            return unreadable(&request.body).unwrap_or_else(no_message);
        };
        if message.method == "initialize" {
            stream.session.begun(&message);
        }
        if let Some((message, id)) = stream.session.note(message) {
            // The replies of this transport do not go where these say.
            request.parts.headers.insert(header::ACCEPT, HeaderValue::from_static(BOTH));
            let whose = Whose::Session(stream.session.open(), id);
            let call = Call::begin(&net.registry, &stream.session.presence, whose);
            let mcp = self.mcp.clone();
            tokio::spawn(async move { stream.answer(&mcp, call, message, &request).await });
        }
        (StatusCode::ACCEPTED, "Accepted").into_response()
    }

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

    /// Puts the reply to a request into the stream. A request that was taken back has none.
    async fn answer(&self, mcp: &Mcp, call: Call, message: Envelope, request: &Arrived) {
        let answer = mcp.answer(&self.session, &call, message, request).await;
        let Some(answer) = answer.filter(|_| !call.is_cut()) else { return };
        let is_message = answer.headers().get(header::CONTENT_TYPE).is_some_and(|it| it == JSON);
        match to_bytes(answer.into_body(), usize::MAX).await {
            Ok(message) if is_message => {
                let sent = self.outgoing.send(Outgoing { message, call }).await;
                if sent.is_err() {
                    tracing::debug!("a stream ended before a reply");
                }
            }
            _ => tracing::debug!("a request in a stream has no reply"),
        }
    }
}

/// The length is said here, as hyper says none in an answer to HEAD.
fn not_allowed(methods: &'static str) -> Response {
    let headers = [(header::ALLOW, methods), (header::CONTENT_LENGTH, "0")];
    (StatusCode::METHOD_NOT_ALLOWED, headers).into_response()
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
        let data = |text: Vec<u8>| Poll::Ready(Some(Ok(Frame::data(Bytes::from(text)))));
        if let Some(hello) = self.hello.take() {
            return data(hello.into());
        }
        if self.over.as_mut().poll(context).is_ready() {
            return Poll::Ready(None);
        }
        match self.to_client.poll_recv(context) {
            Poll::Ready(None) => return Poll::Ready(None),
            Poll::Ready(Some(Outgoing { message, call })) => {
                call.written();
                return data([b"event: message\ndata: ", &*message, b"\n\n"].concat());
            }
            Poll::Pending => {}
        }
        ready!(self.ping.poll_tick(context));
        data(PING.into())
    }
}

/// Ends a session with its stream.
struct End {
    streams: Streams,
    id: String,
}

impl Drop for End {
    fn drop(&mut self) {
        self.streams.by_id().remove(&self.id);
        // Whose replies nobody reads any more, ends, too.
        self.streams.mcp.net.registry.end(&self.id);
    }
}
