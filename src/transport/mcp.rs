//! `tools::TABLE` as MCP: `tools/list` and `tools/call`.
//!
//! Both eras of the protocol are served, as rmcp does by itself: the handshake of 2025-11-25 and
//! before, and the stateless requests of 2026-07-28, where each request tells who the client is.

use std::{
    borrow::Cow,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest,
        CustomResult, ErrorCode, Implementation, JsonObject, ListToolsResult, MetaObject,
        PaginatedRequestParams, RequestId, RequestMetaObject, ServerCapabilities, ServerConfig,
        ServerJsonRpcMessage, Tool, ToolAnnotations,
    },
    service::{NotificationContext, RequestContext},
};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::{
    hook,
    ledger::{Ledger, Ticket},
    queue::Queue,
    wake,
};
use crate::{
    config::{AgentEnv, Config},
    domain::{limits, name},
    error::{Error, Kind},
    tools::{Agent, Answer, Desk, Entry, Job, TABLE},
    view::sanitize,
};

/// What every model is shown before it calls anything; Codex shows the first paragraph alone.
pub const INSTRUCTIONS: &str = include_str!("../../templates/instructions.txt");

/// A session sits down so long after its client listed the tools, also without a call: it can be
/// found and written to. Clients that only probe are gone by then.
const SIT_DOWN_AFTER: Duration = Duration::from_secs(3);

/// The MCP server of one client.
#[derive(Clone)]
pub(super) struct Server {
    pub queue: Arc<Queue>,
    pub ledger: Arc<Ledger>,
    pub config: Arc<Config>,
    /// The client is gone, or a signal came.
    pub gone: CancellationToken,
    pub listed: Arc<AtomicBool>,
    /// The client's id of the session, as its last hook told it.
    pub told_session: Arc<Mutex<Option<String>>>,
    /// Who the client is, from the end of a handshake on; there may be more than one.
    pub client: Arc<Mutex<Option<Implementation>>>,
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        info()
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        if !self.listed.swap(true, Ordering::Relaxed) {
            let (queue, agent) = (Arc::clone(&self.queue), self.agent(&context));
            let gone = self.gone.clone();
            tokio::spawn(async move {
                if gone.run_until_cancelled(tokio::time::sleep(SIT_DOWN_AFTER)).await.is_none() {
                    return;
                }
                if let Err(err) = queue.sit_down(&agent).await {
                    tracing::warn!("cannot sit down: {err}");
                }
            });
        }
        Ok(all_tools())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if Entry::is_hook(&request.name) {
            let said = request.arguments.unwrap_or_default();
            // Boxed, as is a wait below: rmcp moves the future of each call about, which is as large
            // as its largest branch.
            let told = Box::pin(self.hook(said, &context)).await;
            return Ok(CallToolResult::success(vec![ContentBlock::text(told)]).into());
        }
        let Some(entry) = Entry::named(&request.name) else {
            return Err(ErrorData::invalid_params(unknown_tool(&request.name), None));
        };
        let job = entry.job_or_refusal(request.arguments.unwrap_or_default());
        let answer = self.answer(&job, &context).await;
        told(entry, answer).map(|told| result(told).into())
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        if let Some(info) = context.peer.peer_info() {
            let mut client = self.client.lock().unwrap_or_else(PoisonError::into_inner);
            *client = Some(info.client_info.clone());
        }
    }

    /// A known method whose parameters have the wrong shape lands here, too; rmcp's own answer
    /// would call the method unknown.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(unknown_method(&request.method, &context.meta))
    }
}

impl Server {
    /// Answers a client's hook. A hook never stands in the client's way: where it fails or takes too
    /// long, it has nothing to say, and the failure is noted.
    async fn hook(&self, said: JsonObject, context: &RequestContext<RoleServer>) -> String {
        let text =
            |key: &str| said.get(key).and_then(serde_json::Value::as_str).unwrap_or_default();
        if is_session_key(text("session_id")) {
            let mut told = self.told_session.lock().unwrap_or_else(PoisonError::into_inner);
            *told = Some(text("session_id").to_owned());
        }
        let what = format!("{} {}", self.agent(context).family, text("event"));
        let done = async { self.answer(&Job::hook(said)?, context).await };
        let err = match hook::answered(done).await {
            Ok(told) => return told,
            Err(err) => err,
        };
        // Whoever holds the desk may hold it for long.
        let queue = Arc::clone(&self.queue);
        tokio::spawn(async move { queue.note_hook_failure(&what, &err).await });
        hook::NOTHING_TO_SAY.to_owned()
    }

    async fn answer(
        &self,
        job: &Job,
        context: &RequestContext<RoleServer>,
    ) -> crate::error::Result<Answer> {
        let agent = self.agent(context);
        let ticket = context.extensions.get::<Ticket>();
        let id = ticket.map_or(&context.id, |ticket| &ticket.id);
        let Some(limit) = job.waits else { return self.at_once(job, id, &agent).await };
        self.take_note().await;
        let carry = |answer: &Answer, desk: &mut Desk| self.carry(id, answer, desk);
        let stop = self.gone.child_token();
        let cancelled = context.ct.clone();
        let cut = ticket.map(|ticket| ticket.cut.clone()).unwrap_or_default();
        let guard = stop.clone();
        let watch = tokio::spawn(async move {
            tokio::select! {
                () = cancelled.cancelled() => {}
                () = cut.cancelled() => {}
            }
            guard.cancel();
        });
        let wait = wake::wait(&self.queue, job, Some(&agent), limit, &stop, carry);
        let answer = Box::pin(wait).await;
        watch.abort();
        answer.map_err(|err| if self.gone.is_cancelled() { stopping() } else { err })
    }

    /// Runs a call that does not wait; `id` is the ledger's name of the request.
    ///
    /// # Errors
    /// What the caller cannot mend, as [`Queue::call`] has it.
    pub(super) async fn at_once(
        &self,
        job: &Job,
        id: &RequestId,
        agent: &Agent,
    ) -> crate::error::Result<Answer> {
        self.take_note().await;
        self.queue.call(job, Some(agent), |answer, desk| self.carry(id, answer, desk)).await
    }

    /// What was read, and what never arrived, is for the next write.
    async fn take_note(&self) {
        let mut desk = self.queue.desk().await;
        // Not before: a hook whose patience ends while it waits for the desk would lose it.
        let (read, returned) = self.ledger.take();
        desk.confirm_later(read);
        desk.give_back_later(returned);
    }

    fn carry(&self, id: &RequestId, answer: &Answer, desk: &mut Desk) {
        if let Some(handing) = &answer.handing
            && let Err(handing) = self.ledger.carry(id, handing.clone())
        {
            desk.give_back_later([handing]);
            self.ledger.returned.notify_one();
        }
        if desk.has_to_settle() {
            self.ledger.read.notify_one();
        }
    }

    fn agent(&self, context: &RequestContext<RoleServer>) -> Agent {
        let by_session = context.extensions.get::<Implementation>().cloned();
        self.agent_of(by_session.or_else(|| context.client_info()), &context.meta.0)
    }

    /// What a client tells of itself: as its session began or with the request, and in what goes with
    /// each request.
    pub(super) fn agent_of(&self, client: Option<Implementation>, meta: &JsonObject) -> Agent {
        let (client, client_version) = client
            .map_or_else(|| ("unknown".to_owned(), String::new()), |it| (it.name, it.version));
        let (client, client_version) = (bounded(client), bounded(client_version));
        let family = name::family(&client);
        let told = |key: &str| {
            let told = meta.get(key).and_then(serde_json::Value::as_str);
            told.filter(|told| is_session_key(told)).map(str::to_owned)
        };
        let by_hook = self.told_session.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (key, parent_key) = match family.as_str() {
            // Behind `/clear` and with `--continue` the environment tells an id that is not, or not
            // any more, that of the session; hooks tell the right one.
            "claude" if by_hook.is_some() => (by_hook, None),
            _ => session_keys(
                &family,
                &self.config.agent,
                told("threadId"),
                told("sessionId").or(by_hook),
            ),
        };
        Agent { family, client, client_version, key, parent_key }
    }
}

/// The client's own id of the session, and that of the session that started it as a helper. The
/// environment counts for its own client only: what an agent starts inherits it.
fn session_keys(
    family: &str,
    env: &AgentEnv,
    thread: Option<String>,
    session: Option<String>,
) -> (Option<String>, Option<String>) {
    match family {
        "claude" => (env.claude_session.clone(), None),
        "copilot" => (env.copilot_session.clone(), None),
        "codex" => {
            let parent = session.filter(|session| thread.as_ref().is_some_and(|it| it != session));
            (thread, parent)
        }
        _ => (None, None),
    }
}

/// Whether a text can be a client's id of a session. A client that does not know the placeholder in
/// a hook hands over the placeholder itself, as the id of each of its sessions.
fn is_session_key(text: &str) -> bool {
    (1..=limits::SESSION_KEY_BYTES).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.:".contains(&b))
}

/// What a client says of itself is shown to all others: a long text would hide who else is there.
fn bounded(text: String) -> String {
    match text.char_indices().nth(limits::CLIENT_CHARS) {
        Some((end, _)) => text.get(..end).unwrap_or_default().to_owned() + "...",
        None => text,
    }
}

/// What every client is told of the server.
pub(super) fn info() -> ServerConfig {
    ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
        .with_server_info(Implementation::new("team-table", env!("CARGO_PKG_VERSION")))
        .with_instructions(INSTRUCTIONS.trim_end())
}

/// The answer to `tools/list`.
pub(super) fn all_tools() -> ListToolsResult {
    ListToolsResult::with_all_items(TABLE.iter().map(describe).collect())
}

/// Why a request that rmcp cannot make anything of is refused.
pub(super) fn unknown_method(method: &str, meta: &RequestMetaObject) -> ErrorData {
    const KNOWN: &[&str] = &["initialize", "server/discover", "tools/list", "tools/call", "ping"];
    // Requests that name their revision are of those that have no handshake.
    let is_gone = method == "initialize" && meta.protocol_version().is_some();
    if KNOWN.contains(&method) && !is_gone {
        let hint = match method {
            "tools/call" => ": `name` must be a string and `arguments` an object",
            _ => "",
        };
        let message = format!("the parameters of {method} have the wrong shape{hint}");
        return ErrorData::invalid_params(message, None);
    }
    let message = format!("there is no method {method}; this server has tools only");
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None)
}

fn describe(entry: &'static Entry) -> Tool {
    let shape = entry.shape();
    let annotations =
        ToolAnnotations::new().read_only(entry.read_only()).destructive(false).open_world(false);
    let tool = Tool::new(
        Cow::Borrowed(entry.name),
        Cow::Borrowed(shape.description.as_str()),
        Arc::new(shape.input.clone()),
    )
    .annotate(annotations);
    if !entry.always_load {
        return tool;
    }
    let mut meta = MetaObject::new();
    meta.insert("anthropic/alwaysLoad".to_owned(), true.into());
    tool.with_meta(meta)
}

/// What a call is answered with.
pub(super) struct Told {
    pub text: String,
    pub is_error: bool,
}

/// What to tell of a call; what its caller cannot mend is an error of the protocol.
pub(super) fn told(entry: &Entry, answer: crate::error::Result<Answer>) -> Result<Told, ErrorData> {
    match answer {
        Ok(answer) => Ok(Told { text: answer.text(), is_error: answer.error.is_some() }),
        // In the way for now, or a wait that was cancelled, whose answer nobody reads.
        Err(err) if matches!(err.kind(), Kind::Busy | Kind::Refused) => Ok(Told::failure(&err)),
        Err(err) if err.kind() == Kind::Internal => {
            log(entry, &err);
            Ok(Told::failure(&err))
        }
        Err(err) => {
            log(entry, &err);
            Err(ErrorData::internal_error(err.explain(), None))
        }
    }
}

impl Told {
    fn failure(err: &Error) -> Told {
        Told { text: format!("error: {}", err.explain()), is_error: true }
    }
}

/// The reply to a call as JSON, without a line end. `result_type`: since MCP 2026-07-28 a result says
/// that it is `complete`.
///
/// # Errors
/// None that is known: all of it is text.
pub(super) fn reply(
    id: RequestId,
    told: Result<Told, ErrorData>,
    result_type: Option<&'static str>,
) -> serde_json::Result<Vec<u8>> {
    let Told { text, is_error } = match told {
        Ok(told) => told,
        Err(err) => return serde_json::to_vec(&ServerJsonRpcMessage::error(err, Some(id))),
    };
    let content = [Text { kind: "text", text: &text }];
    let result = Outcome { result_type, content, is_error };
    serde_json::to_vec(&Reply { jsonrpc: "2.0", id, result })
}

#[derive(Serialize)]
struct Reply<'a> {
    jsonrpc: &'static str,
    id: RequestId,
    result: Outcome<'a>,
}

/// A result of `tools/call`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Outcome<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    result_type: Option<&'static str>,
    content: [Text<'a>; 1],
    is_error: bool,
}

#[derive(Serialize)]
struct Text<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    text: &'a str,
}

fn result(Told { text, is_error }: Told) -> CallToolResult {
    let content = vec![ContentBlock::text(text)];
    if is_error { CallToolResult::error(content) } else { CallToolResult::success(content) }
}

#[cfg(feature = "http")]
pub(super) fn failure(err: &Error) -> CallToolResponse {
    result(Told::failure(err)).into()
}

/// The last words to who waits.
fn stopping() -> Error {
    Error::refused("the server is being stopped")
        .hint("what comes meanwhile waits in the inbox: call again when the server is back")
}

fn log(entry: &Entry, err: &Error) {
    let cause = std::error::Error::source(err).map(|cause| format!(" ({cause})"));
    tracing::error!("{}: {err}{}", entry.name, cause.unwrap_or_default());
}

fn unknown_tool(name: &str) -> String {
    let names: Vec<&str> = TABLE.iter().map(|entry| entry.name).collect();
    format!("unknown tool {}; there are {}", sanitize::quote(name), names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::{AgentEnv, INSTRUCTIONS, session_keys};

    #[test]
    fn the_instructions_fit_what_clients_show() {
        let n_chars = INSTRUCTIONS.trim_end().chars().count();
        assert!(n_chars < 2_000, "{n_chars}");
        let first = INSTRUCTIONS.split("\n\n").next().unwrap().chars().count();
        assert!(first < 247, "{first}");
    }

    #[test]
    fn a_key_counts_for_its_own_client_only() {
        let env = AgentEnv {
            claude_session: Some("c".to_owned()),
            copilot_session: Some("p".to_owned()),
            ..AgentEnv::default()
        };
        let keys = |family: &str, thread: Option<&str>, session: Option<&str>| {
            session_keys(family, &env, thread.map(str::to_owned), session.map(str::to_owned))
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(keys("claude", Some("t"), None), (some("c"), None));
        assert_eq!(keys("copilot", None, None), (some("p"), None));
        assert_eq!(keys("gemini", Some("t"), None), (None, None));
        assert_eq!(keys("codex", Some("t"), Some("t")), (some("t"), None));
        assert_eq!(keys("codex", Some("t"), Some("s")), (some("t"), some("s")));
        assert_eq!(keys("codex", None, Some("s")), (None, None));
    }
}
