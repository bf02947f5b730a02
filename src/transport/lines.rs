//! JSON-RPC messages line by line over a pair of byte streams, as MCP has them on stdin and stdout.
//!
//! rmcp has such a transport, which tries each of its 22 kinds of request in turn, with an error
//! made for each that does not fit: a fifth of what a call costs. Here a tool call is tried first.
//! And who sends what cannot be parsed is answered, wherever it can be told which request that was;
//! a client would wait for ever otherwise.

use std::{
    io,
    sync::{Arc, atomic::Ordering},
};

use rmcp::{
    ErrorData, RoleServer,
    model::{
        CallToolRequest, ClientJsonRpcMessage, ClientRequest, JsonRpcMessage, JsonRpcRequest,
        RequestId, ServerJsonRpcMessage,
    },
    transport::Transport,
};
use serde::{Deserialize, de::IgnoredAny};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    sync::Mutex,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{direct::Direct, ledger::Ledger, mcp::Server, surrogates};
use crate::fault;

/// Longer lines are refused: no text that a tool takes comes near it.
const LINE_BYTES: usize = 16 * 1024 * 1024;
/// How much is read at once, and kept between two messages.
const READ_BYTES: usize = 8 * 1024;

/// The transport. `R` and `W` are the client's ends.
pub(super) struct Lines<R, W> {
    reader: R,
    outlet: Outlet<W>,
    /// Has the first look at each line.
    direct: Option<Direct<W>>,
    /// Answers that rmcp does not know of.
    under_way: TaskTracker,
    /// Counts the reads.
    ledger: Arc<Ledger>,
    /// Cancelled when the client has closed its end.
    gone: CancellationToken,
    /// Read, and from `begin` on not parsed yet.
    buffer: Vec<u8>,
    begin: usize,
    /// So much of what is not parsed is known to hold no line's end.
    n_searched: usize,
    /// The rest of a line that was too long is passed over.
    is_skipping: bool,
    /// rmcp was given a message, for which it may have a task that has not begun yet.
    is_behind: bool,
}

/// Where replies go.
pub(super) struct Outlet<W> {
    /// `None` once closed. Held while a line is written, so that no other one gets between.
    writer: Arc<Mutex<Option<W>>>,
    ledger: Arc<Ledger>,
}

impl<W> Clone for Outlet<W> {
    fn clone(&self) -> Outlet<W> {
        Outlet { writer: Arc::clone(&self.writer), ledger: Arc::clone(&self.ledger) }
    }
}

impl<W: AsyncWrite + Unpin> Outlet<W> {
    /// Writes a line, whole. May be dropped only with the program.
    async fn write(self, line: io::Result<Vec<u8>>) -> io::Result<()> {
        let line = line?;
        let mut writer = self.writer.lock().await;
        let Some(writer) = writer.as_mut() else { return Err(io::ErrorKind::NotConnected.into()) };
        writer.write_all(&line).await?;
        writer.flush().await
    }

    /// Writes the reply to a request that rmcp does not know of, and writes in the ledger what
    /// becomes of it. Who cancelled the request is not answered.
    pub(super) async fn answer(self, id: &RequestId, line: serde_json::Result<Vec<u8>>) {
        let ledger = Arc::clone(&self.ledger);
        if !ledger.sending(id) {
            ledger.sent(id, false);
            return;
        }
        let ended = |mut line: Vec<u8>| {
            line.push(b'\n');
            line
        };
        let sent = self.write(line.map(ended).map_err(io::Error::from)).await;
        if let Err(err) = &sent {
            tracing::debug!("a reply could not be written: {err}");
        }
        ledger.sent(id, sent.is_ok());
        fault::point("after_reply");
    }
}

impl<R, W> Lines<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    pub(super) fn new(reader: R, writer: W, ledger: Arc<Ledger>, gone: CancellationToken) -> Self {
        Lines {
            reader,
            outlet: Outlet {
                writer: Arc::new(Mutex::new(Some(writer))),
                ledger: Arc::clone(&ledger),
            },
            direct: None,
            under_way: TaskTracker::new(),
            ledger,
            gone,
            buffer: Vec::with_capacity(READ_BYTES),
            begin: 0,
            n_searched: 0,
            is_skipping: false,
            is_behind: false,
        }
    }

    /// With calls of the server's tools that go past rmcp.
    pub(super) fn with_direct(mut self, server: Server) -> Self {
        self.direct = Some(Direct::new(server, self.outlet.clone(), self.under_way.clone()));
        self
    }

    /// What was read and not parsed yet.
    fn unparsed(&self) -> &[u8] {
        self.buffer.get(self.begin..).unwrap_or_default()
    }

    /// Reads on until what is not parsed begins with a whole line; its length, or `None` at the end.
    /// The last line may lack its line end. May be dropped while it waits.
    async fn line(&mut self) -> Option<usize> {
        loop {
            let fresh = self.unparsed().get(self.n_searched..).unwrap_or_default();
            if let Some(end) = memchr::memchr(b'\n', fresh) {
                return Some(self.n_searched + end + 1);
            }
            self.n_searched = self.unparsed().len();
            if self.n_searched > LINE_BYTES {
                if !self.is_skipping {
                    self.refuse(None, ErrorData::invalid_request(too_long(), None));
                }
                self.is_skipping = true;
                self.take(self.n_searched);
            }
            self.buffer.reserve(READ_BYTES);
            match self.reader.read_buf(&mut self.buffer).await {
                Ok(0) if self.n_searched > 0 => return Some(self.n_searched),
                Ok(0) => break,
                Ok(_) => _ = self.ledger.reads.fetch_add(1, Ordering::Relaxed),
                Err(err) => {
                    tracing::debug!("stdin cannot be read: {err}");
                    break;
                }
            }
        }
        self.gone.cancel();
        None
    }

    /// Waits while too many requests are open, and sees the client go meanwhile. It takes in what the
    /// client writes, as one that writes all before it reads would else wait for us for ever; these
    /// reads are not counted, since a request that waits here was sent before them.
    async fn room(&mut self) {
        let mut is_open = true;
        while self.ledger.is_full() {
            let reads = is_open && self.unparsed().len() < LINE_BYTES;
            tokio::select! {
                biased;
                () = self.ledger.closed.notified() => {}
                read = self.reader.read_buf(&mut self.buffer), if reads => {
                    is_open = read.is_ok_and(|n_bytes| n_bytes > 0);
                    if !is_open {
                        self.gone.cancel();
                    }
                }
            }
        }
    }

    /// Forgets the first bytes of what is not parsed, and what a long line has made the buffer grow
    /// to. The rest is moved only where it is the smaller part, so that many lines that came at once
    /// cost no more each.
    fn take(&mut self, n_bytes: usize) {
        self.begin += n_bytes;
        self.n_searched = 0;
        if self.begin >= self.buffer.len() / 2 {
            self.buffer.drain(..self.begin);
            self.buffer.shrink_to(READ_BYTES);
            self.begin = 0;
        }
    }

    /// Answers what is no request that a handler could see.
    fn refuse(&self, id: Option<RequestId>, error: ErrorData) {
        tracing::debug!("refused a message: {}", error.message);
        let line = line(&JsonRpcMessage::error(error, id));
        let (outlet, ledger) = (self.outlet.clone(), Arc::clone(&self.ledger));
        ledger.refusing();
        // `receive` may be dropped at any time, and half of a line must not be written.
        self.under_way.spawn(async move {
            if let Err(err) = outlet.write(line).await {
                tracing::debug!("a refusal could not be written: {err}");
            }
            ledger.refused();
        });
    }
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        item: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        self.outlet.clone().write(line(&item))
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            self.room().await;
            let Some(n_bytes) = self.line().await else {
                // rmcp ends with its own calls, and does not know of these.
                self.under_way.close();
                self.under_way.wait().await;
                return None;
            };
            let mut taken = None;
            let parsed = if self.is_skipping {
                Parsed::Nothing
            } else {
                let line = self.unparsed().get(..n_bytes).unwrap_or_default();
                parse_unless(line, |line| {
                    taken = self.direct.as_ref().and_then(|direct| direct.takes(line));
                    taken.is_some()
                })
            };
            self.is_skipping = false;
            self.take(n_bytes);
            if let (Some(direct), Some(answering)) = (&self.direct, taken) {
                // Calls keep their order, and what came with one may take it back.
                let is_alone = !self.is_behind && self.unparsed().is_empty();
                self.is_behind = false;
                direct.run(answering, is_alone).await;
            }
            match parsed {
                Parsed::Message(message) => {
                    self.is_behind = true;
                    return Some(*message);
                }
                Parsed::Nothing => {}
                Parsed::Refused(id, error) => self.refuse(id, error),
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        drop(self.outlet.writer.lock().await.take());
        Ok(())
    }
}

fn line(message: &ServerJsonRpcMessage) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

/// What a line turned out to be.
pub(super) enum Parsed {
    Message(Box<ClientJsonRpcMessage>),
    /// Nothing that wants an answer: an empty line, a notification that nobody knows, and what is
    /// not JSON at all, as the SDKs for other languages have it, too.
    Nothing,
    Refused(Option<RequestId>, ErrorData),
}

#[cfg(any(feature = "http", test))]
pub(super) fn parse(line: &[u8]) -> Parsed {
    parse_unless(line, |_| false)
}

/// Nothing, where `takes` takes the line.
fn parse_unless(line: &[u8], takes: impl FnOnce(&[u8]) -> bool) -> Parsed {
    let line = line.trim_ascii();
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
    if line.is_empty() {
        return Parsed::Nothing;
    }
    let line = surrogates::mend(line);
    if takes(&line) {
        return Parsed::Nothing;
    }
    if let Ok(JsonRpcRequest { id, request, .. }) =
        serde_json::from_slice::<JsonRpcRequest<CallToolRequest>>(&line)
    {
        let request = ClientRequest::CallToolRequest(request);
        return Parsed::Message(Box::new(JsonRpcMessage::request(request, id)));
    }
    match serde_json::from_slice(&line) {
        Ok(message) => Parsed::Message(Box::new(message)),
        Err(err) => refusal(&line, &err),
    }
}

/// The outside of a message, whose inside is not looked at: it may be nested too deeply, or hold
/// numbers that are too large.
#[derive(Deserialize)]
struct Envelope {
    #[serde(default)]
    id: Option<RequestId>,
    #[serde(default)]
    method: Option<IgnoredAny>,
    #[serde(default, rename = "params")]
    _params: Option<IgnoredAny>,
}

fn refusal(line: &[u8], err: &serde_json::Error) -> Parsed {
    let id = match serde_json::from_slice(line) {
        Ok(Envelope { id: None, method: Some(_), .. }) => return Parsed::Nothing,
        Ok(Envelope { id, .. }) => id,
        Err(_) => None,
    };
    if err.is_data() {
        return Parsed::Refused(id, ErrorData::invalid_request("Invalid request", None));
    }
    let Some(id) = id else {
        tracing::debug!("passed over a line that is not JSON: {err}");
        return Parsed::Nothing;
    };
    let message = format!("the parameters cannot be read: {err}");
    Parsed::Refused(Some(id), ErrorData::invalid_params(message, None))
}

fn too_long() -> String {
    format!("a line of over {} MiB was passed over", LINE_BYTES / (1024 * 1024))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rmcp::{
        model::{ClientJsonRpcMessage, ClientRequest, RequestId},
        transport::Transport as _,
    };
    use tokio_util::sync::CancellationToken;

    use super::{JsonRpcMessage, LINE_BYTES, Ledger, Lines, Parsed, parse};

    fn message(line: &str) -> ClientJsonRpcMessage {
        match parse(line.as_bytes()) {
            Parsed::Message(message) => *message,
            Parsed::Nothing => panic!("passed over: {line}"),
            Parsed::Refused(_, err) => panic!("refused: {line}: {}", err.message),
        }
    }

    /// What a client says, until it closes its end, as the numbers of its requests.
    fn received(said: &[u8]) -> Vec<RequestId> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let gone = CancellationToken::new();
            let mut lines =
                Lines::new(said, tokio::io::sink(), Arc::new(Ledger::default()), gone.clone());
            let mut ids = Vec::new();
            while let Some(message) = lines.receive().await {
                let JsonRpcMessage::Request(request) = message else { panic!("{message:?}") };
                ids.push(request.id);
                assert!(!gone.is_cancelled(), "before the last message");
            }
            assert!(gone.is_cancelled());
            ids
        })
    }

    #[test]
    fn lines_end_where_they_end() {
        let ping = |id: usize| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        let id = |id| RequestId::Number(id);
        let both = format!("{}\n\n{}\r\n", ping(1), ping(2));
        assert_eq!(received(both.as_bytes()), [id(1), id(2)]);
        assert_eq!(
            received(both.trim_end().as_bytes()),
            [id(1), id(2)],
            "the last without its end"
        );
        let torn = &both[..both.len() - 4];
        assert_eq!(received(torn.as_bytes()), [id(1)], "a client that died in the middle");
        assert_eq!(received(b""), []);
        let mut long = vec![b'x'; LINE_BYTES + 1];
        assert_eq!(received(&long), []);
        long.extend(format!("x\n{}\n", ping(3)).into_bytes());
        assert_eq!(received(&long), [id(3)], "what is too long is passed over");
    }

    /// The way for tool calls leads to what rmcp would have made of the line.
    #[test]
    fn a_tool_call_is_what_rmcp_makes_of_it() {
        for line in [
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}"#,
            r#"{"method":"tools/call","params":{"_meta":{"threadId":"t"},"name":"x","arguments":
               {"a":[1,"\u00e4"]}},"jsonrpc":"2.0","id":"b"}"#,
        ] {
            let rmcp = serde_json::from_str::<ClientJsonRpcMessage>(line).unwrap();
            let ours = message(line);
            // Extensions compare as equal whatever they hold.
            assert_eq!(format!("{ours:?}"), format!("{rmcp:?}"));
            assert_eq!(serde_json::to_value(&ours).unwrap(), serde_json::to_value(&rmcp).unwrap());
            let JsonRpcMessage::Request(request) = ours else { panic!("{line}") };
            assert!(matches!(request.request, ClientRequest::CallToolRequest(_)), "{line}");
        }
    }

    #[test]
    fn other_messages_are_parsed_by_rmcp() {
        let ping = message("\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r\n");
        assert!(matches!(ping, JsonRpcMessage::Request(_)));
        let note = message(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        assert!(matches!(note, JsonRpcMessage::Notification(_)));
    }

    #[test]
    fn who_can_be_answered_is() {
        let refused = |line: &str| match parse(line.as_bytes()) {
            Parsed::Message(_) => panic!("parsed: {line}"),
            Parsed::Nothing => None,
            Parsed::Refused(id, err) => Some((id, err.code.0)),
        };
        let call = |arguments: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call",
                     "params":{{"name":"x","arguments":{{"a":{arguments}}}}}}}"#
            )
        };
        let deep = "[".repeat(200) + &"]".repeat(200);
        assert_eq!(refused(&call(&deep)), Some((Some(RequestId::Number(7)), -32602)));
        assert_eq!(refused(&call("1e400")), Some((Some(RequestId::Number(7)), -32602)));
        assert_eq!(refused("[]"), Some((None, -32600)));
        assert_eq!(refused(r#"{"id":7,"method":3}"#), Some((Some(RequestId::Number(7)), -32600)));
        for nothing in ["", "  \r\n", "{", "hello", r#"{"method":"x","params":1e999}"#] {
            assert_eq!(refused(nothing), None, "{nothing}");
        }
    }
}
