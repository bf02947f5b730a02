//! The board as a web page, live; the person writes there as the human.
//!
//! On loopback anybody may look; writing, and looking from elsewhere, needs a session. Its secret is
//! given for a token that is good for once, and comes in a header of its own with each request, so
//! that no other page can make a browser send it. Which host and origin a request names is checked
//! by who mounts these routes.

mod board;
mod door;
mod live;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, Query, Request, State, rejection::QueryRejection},
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;

use self::{board::Cursor, door::Door};
use super::{http::is_from_here, queue::Queue};
use crate::{
    domain::{
        id::{MessageId, TaskId},
        time::Time,
        token,
    },
    error::{Error, Kind, Result},
    tools::{Cx, Desk, Entry, Job},
    view::web::{HEADERS, PAGE},
};

/// The header that carries the secret of a session.
const SESSION: &str = "team-table-session";
/// What the page can ask for as the human.
const TOOLS: &[&str] = &["send_message", "broadcast", "create_task", "update_task", "claim_task"];
/// Bytes of a request: a body of a message, of which each byte may be six in JSON, and some room.
const REQUEST_BYTES: usize = 160 * 1024;
/// Who watches at once.
const WATCHERS: usize = 64;

/// What all requests share.
struct Page {
    /// The human's desk.
    queue: Queue,
    door: Door,
    /// Counts what was written through this page.
    changed: watch::Sender<u64>,
    /// Who is not on this machine can reach it: then nobody sees anything without a session.
    is_public: bool,
    places: Arc<Semaphore>,
    stop: CancellationToken,
}

type Shared = State<Arc<Page>>;

/// The page and what it asks for, at `/` and below `/web/`. `desk` is the human's; `stop` ends the
/// streams.
pub(super) fn routes(desk: Desk, is_public: bool, stop: CancellationToken) -> Router {
    let page = Page {
        queue: Queue::new(desk),
        door: Door::default(),
        changed: watch::Sender::new(0),
        is_public,
        places: Arc::new(Semaphore::new(WATCHERS)),
        stop,
    };
    let mut routes = Router::new()
        .route("/web/state", get(state))
        .route("/web/messages", get(messages))
        .route("/web/task", get(task))
        .route("/web/context", get(context))
        .route("/web/events", get(events))
        .route("/web/enter", post(enter))
        .route("/web/act", post(act));
    for file in PAGE {
        routes = routes.route(file.path, get(|| async { typed(file.mime, file.text) }));
    }
    routes
        .layer(middleware::from_fn(with_headers))
        .layer(DefaultBodyLimit::max(REQUEST_BYTES))
        .with_state(Arc::new(page))
}

async fn with_headers(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    for (name, value) in HEADERS {
        let headers = response.headers_mut();
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    response
}

/// A failed request: its status and what to tell.
struct Refusal(StatusCode, Error);

type Answered<T = Response> = Result<T, Refusal>;

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.0, typed("application/json", as_json(&self.1).to_string())).into_response()
    }
}

impl From<Error> for Refusal {
    fn from(err: Error) -> Refusal {
        let status = match err.kind() {
            Kind::Invalid | Kind::Usage => StatusCode::BAD_REQUEST,
            Kind::NotFound => StatusCode::NOT_FOUND,
            Kind::Refused => StatusCode::CONFLICT,
            Kind::Busy => StatusCode::SERVICE_UNAVAILABLE,
            Kind::Storage | Kind::Internal | Kind::NeedsWrite => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Refusal(status, err)
    }
}

fn as_json(err: &Error) -> Value {
    json!({ "error": err.to_string(), "hint": err.hint_text() })
}

fn typed(mime: &'static str, body: impl IntoResponse) -> Response {
    ([(header::CONTENT_TYPE, mime)], body).into_response()
}

fn answer(value: &Value) -> Response {
    typed("application/json", value.to_string())
}

impl Page {
    async fn has_entered(&self, headers: &HeaderMap) -> bool {
        let Some(secret) = headers.get(SESSION).and_then(|value| value.to_str().ok()) else {
            return false;
        };
        let now = self.now().await;
        self.door.knows(secret, now)
    }

    async fn now(&self) -> Time {
        self.queue.desk().await.now()
    }

    async fn may_look(&self, headers: &HeaderMap) -> Answered<bool> {
        let has_entered = self.has_entered(headers).await;
        let is_open = !self.is_public && is_from_here(headers);
        if is_open || has_entered { Ok(has_entered) } else { Err(outside()) }
    }

    /// Looks at the table; `None` where there is none.
    async fn look<T>(&self, mut f: impl FnMut(&Cx<'_>) -> Result<T>) -> Result<Option<T>> {
        self.queue.look(|cx| f(cx)).await
    }
}

fn outside() -> Refusal {
    let err = Error::refused("you have not entered, or the server was started anew")
        .hint("run `team-table web` in the project and open the address that it prints");
    Refusal(StatusCode::UNAUTHORIZED, err)
}

fn parameters<T>(query: Result<Query<T>, QueryRejection>) -> Answered<T> {
    match query {
        Ok(Query(value)) => Ok(value),
        Err(err) => Err(Error::invalid(err.body_text()).into()),
    }
}

async fn state(State(page): Shared, headers: HeaderMap) -> Answered {
    let has_entered = page.may_look(&headers).await?;
    let found = page.look(board::state).await?;
    let mut state =
        found.unwrap_or_else(|| json!({ "exists": false, "cursor": Cursor::default() }));
    let workspace = page.queue.desk().await.workspace().clone();
    if let Value::Object(fields) = &mut state {
        let name = workspace.top.file_name().map(|name| name.to_string_lossy().into_owned());
        fields.insert("name".to_owned(), name.into());
        fields.insert("may_write".to_owned(), has_entered.into());
    }
    Ok(answer(&state))
}

#[derive(Deserialize)]
struct Before {
    before: i64,
}

async fn messages(
    State(page): Shared,
    headers: HeaderMap,
    query: Result<Query<Before>, QueryRejection>,
) -> Answered {
    page.may_look(&headers).await?;
    let before = MessageId(parameters(query)?.before);
    let found = page.look(|cx| board::older(cx, before)).await?;
    Ok(answer(&found.unwrap_or_else(|| json!({ "messages": [], "older": false }))))
}

#[derive(Deserialize)]
struct Which {
    id: i64,
}

async fn task(
    State(page): Shared,
    headers: HeaderMap,
    query: Result<Query<Which>, QueryRejection>,
) -> Answered {
    page.may_look(&headers).await?;
    let id = TaskId(parameters(query)?.id);
    let found = page.look(|cx| board::task(cx, id)).await?;
    Ok(answer(&found.ok_or_else(no_table)?))
}

#[derive(Deserialize)]
struct Key {
    key: String,
}

async fn context(
    State(page): Shared,
    headers: HeaderMap,
    query: Result<Query<Key>, QueryRejection>,
) -> Answered {
    page.may_look(&headers).await?;
    let wanted = parameters(query)?.key;
    let found = page.look(|cx| board::key(cx, &wanted)).await?;
    Ok(answer(&found.ok_or_else(no_table)?))
}

fn no_table() -> Error {
    Error::not_found("there is no table yet")
}

async fn events(
    State(page): Shared,
    headers: HeaderMap,
    query: Result<Query<Cursor>, QueryRejection>,
) -> Answered {
    page.may_look(&headers).await?;
    let since = parameters(query)?;
    let Ok(place) = Arc::clone(&page.places).try_acquire_owned() else {
        return Err(Error::busy("too many pages watch this table at once").into());
    };
    Ok(typed("text/event-stream", live::stream(page, since, place)))
}

/// The object that a request carries. Only JSON is taken: no form of another page can send that.
fn object<T: for<'de> Deserialize<'de>>(headers: &HeaderMap, body: &Bytes) -> Answered<T> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let is_json = kind
        .and_then(|kind| kind.split(';').next())
        .is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"));
    if !is_json {
        let err = Error::invalid("the request has to be application/json");
        return Err(Refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, err));
    }
    serde_json::from_slice(body)
        .map_err(|err| Error::invalid(format!("the request is not what is expected: {err}")).into())
}

#[derive(Deserialize)]
struct Entering {
    token: String,
}

async fn enter(State(page): Shared, headers: HeaderMap, body: Bytes) -> Answered {
    let hash = token::hash(object::<Entering>(&headers, &body)?.token.trim());
    // Who guesses keeps nobody from writing.
    let is_known = page.look(|cx| cx.tx.has_web_token(&hash, cx.now)).await?.unwrap_or(false);
    if !is_known || !page.queue.write(|desk, turn| desk.take_entry(turn, &hash)).await? {
        let err = Error::refused("the address is no good: it was used already, or is too old")
            .hint("run `team-table web` again; each address is good for once, within 15 minutes");
        return Err(Refusal(StatusCode::UNAUTHORIZED, err));
    }
    let now = page.now().await;
    Ok(answer(&json!({ "session": page.door.open(now)? })))
}

#[derive(Deserialize)]
struct Act {
    tool: String,
    #[serde(default)]
    arguments: Map<String, Value>,
}

async fn act(State(page): Shared, headers: HeaderMap, body: Bytes) -> Answered {
    if !page.has_entered(&headers).await {
        return Err(outside());
    }
    let asked: Act = object(&headers, &body)?;
    let entry = TOOLS
        .iter()
        .find(|name| **name == asked.tool)
        .and_then(|name| Entry::named(name))
        .ok_or_else(|| {
            Error::invalid("the page cannot ask for that")
                .hint(format!("it can: {}", TOOLS.join(", ")))
        })?;
    let job: Job = entry.job(asked.arguments)?;
    let answered = page.queue.call(&job, None, |_, _| {}).await?;
    // Also where it was refused: what had lapsed is written then.
    page.changed.send_modify(|n| *n += 1);
    match answered.error {
        Some(err) => Err(err.into()),
        None => Ok(answer(&json!({ "text": answered.body }))),
    }
}
