//! `get_messages`: hands out the unread mail, or looks at the history.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Access, Cx, Tool, log};
use crate::{
    domain::{
        fold::Search,
        id::{MemberId, MessageId},
        limits,
        message::Kind,
        time::Time,
    },
    error::{Error, Result},
    store::{Filter, Found, Handing, Shown},
    view::{
        sanitize,
        text::{self, Front, Header},
    },
};

pub(super) struct GetMessages;

/// Read your inbox: new messages from other agents
///
/// Marks the messages read. With include_read, query, from, thread or before: search the history,
/// mark nothing.
#[derive(Debug, Deserialize, schemars::JsonSchema, clap::Args)]
#[command(long_about = "Read your inbox: new messages from other agents\n\n\
    Marks the messages read. With --include-read, --query, --from, --thread or --before: search the \
    history, mark nothing.")]
pub(super) struct Params {
    #[arg(long, help = "Also what was read before", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    include_read: Option<bool>,
    /// Words to find
    #[arg(long, value_name = "WORDS")]
    query: Option<String>,
    /// Only from this agent
    #[arg(long, value_name = "NAME")]
    from: Option<String>,
    /// Any message id in it
    #[arg(long, value_name = "ID")]
    thread: Option<MessageId>,
    /// Only ids below this
    #[arg(long, value_name = "ID")]
    before: Option<MessageId>,
    /// 20; at most 100
    #[arg(long, allow_negative_numbers = true, value_parser = super::whole_number)]
    limit: Option<i64>,
    /// Show unread messages without marking them
    #[serde(skip)]
    #[schemars(skip)]
    #[arg(long, conflicts_with_all = ["include_read", "query", "from", "thread", "before"])]
    peek: bool,
}

#[derive(Debug, Serialize)]
pub(super) struct Output {
    messages: Vec<Line>,
    /// Unread messages beyond these; counts stop at 100.
    more_unread: usize,
    /// Where the history goes on: with `before` this id.
    #[serde(skip_serializing_if = "Option::is_none")]
    older_before: Option<MessageId>,
    #[serde(skip)]
    page: Page,
    #[serde(skip)]
    now: Time,
    #[serde(skip)]
    front: Front,
}

/// What kind of page it is: it decides the first line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Page {
    Inbox,
    History,
    /// A search that ended before the history did.
    PartOfHistory,
}

/// A message, as JSON has it.
#[derive(Debug, Serialize)]
pub(super) struct Line {
    pub id: MessageId,
    pub from: String,
    pub to: String,
    pub kind: Kind,
    pub body: String,
    pub sent_at: Time,
    pub reply_to: Option<MessageId>,
    /// It was handed out before, to a session that ended too soon.
    pub again: bool,
    /// It was sent before this member sat down.
    pub late: bool,
}

impl Tool for GetMessages {
    const NAME: &'static str = "get_messages";
    const COMMAND: &'static str = "inbox";
    const ACCESS: Access = Access::MayWrite;
    const ALWAYS_LOAD: bool = true;
    type Params = Params;
    type Output = Output;

    fn call(cx: &mut Cx<'_>, params: &Params) -> Result<Output> {
        let limit = params.limit.unwrap_or(limits::PAGE);
        if !(1..=limits::PAGE_MAX).contains(&limit) {
            return Err(Error::invalid(format!(
                "`limit` must be 1 to {}, got {limit}",
                limits::PAGE_MAX
            )));
        }
        if params.is_history() { history(cx, params, limit) } else { inbox(cx, limit, params.peek) }
    }

    fn only_looks(params: &Params) -> bool {
        params.peek || params.is_history()
    }
}

impl Params {
    fn is_history(&self) -> bool {
        self.include_read == Some(true)
            || self.query.is_some()
            || self.from.is_some()
            || self.thread.is_some()
            || self.before.is_some()
    }
}

/// Hands out the oldest unread messages, as many as fit; `peek` only shows them.
pub(super) fn inbox(cx: &mut Cx<'_>, limit: i64, peek: bool) -> Result<Output> {
    cx.effects.said_unread = true;
    let unread = cx.tx.unread(cx.me.id, cx.me.reads_as)?;
    if unread.count == 0 {
        return Ok(Output::new(cx, Vec::new(), 0, Page::Inbox));
    }
    if !peek && !cx.tx.is_writable() {
        return Err(Error::needs_write());
    }
    let waiting = cx.tx.unread_messages(cx.me.id, cx.me.reads_as, limit)?;
    let messages = page(cx, waiting);
    let ids: Vec<MessageId> = messages.iter().map(|line| line.id).collect();
    if !peek {
        let handing = Handing {
            epoch: cx.me.epoch,
            member: cx.me.id,
            session: cx.me.hands_as,
            messages: ids,
            may_have_arrived: false,
        };
        cx.tx.hand_out(&handing, cx.now)?;
        crate::fault::point("after_insert");
        let (actor, handed) = (cx.me.name.as_str(), &handing.messages);
        log::messages(cx.tx, actor, "message.handed", handed, cx.now)?;
        cx.effects.handing = Some(handing);
    }
    let more = match (peek, unread.count) {
        // Where the count stopped, what is left is counted anew.
        (false, limits::COUNT_STOPS_AT..) => cx.tx.count_unread(cx.me.id, cx.me.hands_as)?,
        (true, limits::COUNT_STOPS_AT..) => {
            cx.tx.count_unread_after(cx.me.id, cx.me.reads_as, messages.last().map(|it| it.id))?
        }
        (_, count) => count - messages.len(),
    };
    Ok(Output::new(cx, messages, more, Page::Inbox))
}

fn history(cx: &mut Cx<'_>, params: &Params, limit: i64) -> Result<Output> {
    let from: Option<MemberId> = match &params.from {
        Some(name) => {
            let member = cx.tx.member_named(name)?.ok_or_else(|| {
                Error::not_found(format!("no member named {}", sanitize::quote(name)))
                    .hint("list_members with include_left shows everybody")
            })?;
            Some(member.id)
        }
        None => None,
    };
    if let Some(thread) = params.thread
        && cx.tx.sent(thread)?.is_none()
    {
        return Err(Error::not_found(format!("there is no message {thread}"))
            .hint("get_messages with include_read shows the ids"));
    }
    let filter = Filter { from, thread: params.thread, before: params.before };
    let mut found = match &params.query {
        Some(query) => {
            let mut search = Search::parse(query)?;
            let limit = usize::try_from(limit + 1).unwrap_or(usize::MAX);
            cx.tx.search(cx.me.id, cx.me.is_human, &filter, &mut search, limit)?
        }
        None => Found {
            messages: cx.tx.history(cx.me.id, cx.me.is_human, &filter, limit + 1)?,
            stopped_at: None,
        },
    };
    let n_found = found.messages.len();
    found.messages.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    let messages = page(cx, found.messages);
    let is_cut = messages.len() < n_found;
    let older_before = if is_cut { messages.last().map(|line| line.id) } else { found.stopped_at };
    let page =
        if is_cut || found.stopped_at.is_none() { Page::History } else { Page::PartOfHistory };
    Ok(Output { older_before, ..Output::new(cx, messages, 0, page) })
}

/// As many messages as a result has room for, and one at least.
fn page(cx: &Cx<'_>, messages: Vec<Shown>) -> Vec<Line> {
    let mut room = limits::RESULT_BYTES - limits::ASIDE_BYTES;
    let mut lines = Vec::new();
    for message in messages {
        let line = Line::new(cx, message);
        let size = line.text(cx.now).len() + 1;
        if size > room && !lines.is_empty() {
            break;
        }
        room = room.saturating_sub(size);
        lines.push(line);
    }
    lines
}

impl Line {
    pub(super) fn new(cx: &Cx<'_>, message: Shown) -> Line {
        let to =
            if message.recipient == Some(cx.me.id) { "you".to_owned() } else { message.audience };
        let from = if message.sender_id == cx.me.id { "you".to_owned() } else { message.sender };
        Line {
            id: message.id,
            from,
            to,
            kind: message.kind,
            body: message.body,
            sent_at: message.sent_at,
            reply_to: message.reply_to,
            again: message.again,
            late: message.late,
        }
    }

    pub(super) fn text(&self, now: Time) -> String {
        Header {
            id: self.id,
            sender: &self.from,
            to: &self.to,
            kind: self.kind,
            reply_to: self.reply_to,
            sent_at: self.sent_at,
            late: self.late,
            again: self.again,
        }
        .with_body(&self.body, now)
    }
}

impl Output {
    fn new(cx: &Cx<'_>, messages: Vec<Line>, more_unread: usize, page: Page) -> Output {
        Output { messages, more_unread, older_before: None, page, now: cx.now, front: cx.front }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.messages.as_slice(), self.page) {
            ([], Page::Inbox) => f.write_str("no unread messages")?,
            ([], _) => f.write_str("no messages found")?,
            // All that are shown were counted.
            (messages, _) => f.write_str(&text::counted(messages.len(), "message"))?,
        }
        if self.more_unread > 0 && !self.is_empty() {
            let more = match self.more_unread {
                limits::COUNT_STOPS_AT.. => "over 99".to_owned(),
                more => more.to_string(),
            };
            write!(f, ", {more} more unread: {} again", self.front.read_mail())?;
        }
        match (self.older_before, self.page) {
            (Some(MessageId(id)), Page::PartOfHistory) => {
                write!(
                    f,
                    ", searched down to #{id} only: go on with {} {id}",
                    self.front.before()
                )?;
            }
            (Some(MessageId(id)), _) => {
                write!(f, ", older ones with {} {id}", self.front.before())?;
            }
            (None, _) => {}
        }
        for line in &self.messages {
            write!(f, "\n{}", line.text(self.now))?;
        }
        Ok(())
    }
}
