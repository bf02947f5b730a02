//! `send_message`: text to one member, to a role, or in answer to a message.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{
    Access, Cx, Tool,
    content::{Addressee, Content},
    recipients::Found,
};
use crate::{
    domain::{
        id::{MemberId, MessageId},
        member::State,
        message::{Kind, Recipient},
    },
    error::{Error, Result},
    fault,
    store::{Member, NewMessage},
    view::text,
};

pub(super) struct SendMessage;

/// Send a message to another agent or the human; says whether they are here
#[derive(Debug, Deserialize, schemars::JsonSchema, clap::Args)]
pub(super) struct Params {
    /// Name, `human` or @role; not needed with reply_to
    #[serde(default)]
    #[command(flatten)]
    recipient: Addressee,
    #[command(flatten)]
    content: Content,
    /// Id of the message you answer
    #[arg(long, value_name = "ID")]
    reply_to: Option<MessageId>,
}

#[derive(Debug, Serialize)]
pub(super) struct Output {
    pub id: MessageId,
    /// What it was written to, where that is not one member.
    pub audience: Option<String>,
    pub recipients: Vec<Reached>,
}

/// The truth about one recipient at the moment of sending.
#[derive(Debug, Serialize)]
pub(super) struct Reached {
    pub name: String,
    pub state: &'static str,
    #[serde(skip)]
    pub shown: State,
    /// Unread messages that wait before this one; counts stop at 100.
    pub unread_before: usize,
}

impl Tool for SendMessage {
    const NAME: &'static str = "send_message";
    const COMMAND: &'static str = "send";
    const ACCESS: Access = Access::Writes;
    const FOUNDS: bool = false;
    const ALWAYS_LOAD: bool = true;
    type Params = Params;
    type Output = Output;

    fn call(cx: &mut Cx<'_>, params: &Params) -> Result<Output> {
        let body = &params.content.0;
        Cx::check_body(body)?;
        let recipient = params.recipient.0.as_deref().filter(|name| !name.trim().is_empty());
        let recipient = recipient.map(Recipient::parse).transpose()?;
        // Checked in any case: a reply to a message that is not there is refused.
        let other = params.reply_to.map(|parent| other_party(cx, parent)).transpose()?;
        let (audience, members) = match recipient.or(other) {
            Some(Recipient::Role(role)) => {
                let members = cx.with_role(&role)?;
                (Audience::Role(role), members)
            }
            Some(Recipient::Member(name)) => (Audience::Member, vec![cx.addressee(&name)?]),
            None => {
                return Err(Error::invalid("missing parameter `recipient`").hint(
                    "name a member, `human` or @role; or answer a message with `reply_to` alone",
                ));
            }
        };
        cx.count_message()?;
        send(cx, &audience, &members, params.reply_to, body)
    }
}

/// To whom an answer goes: the other party, also when I answer my own message. One who moved is
/// found under the new name.
fn other_party(cx: &Cx<'_>, parent: MessageId) -> Result<Recipient> {
    let me = cx.me.id;
    let sent = match cx.tx.sent(parent)? {
        Some(sent) if sent.is_broadcast || cx.me.is_human || cx.tx.is_party(parent, me)? => sent,
        _ => {
            return Err(Error::not_found(format!(
                "there is no message {parent} that you sent or were sent"
            ))
            .hint("get_messages with include_read shows the ids"));
        }
    };
    let sender = now_called(cx, sent.sender)?;
    // An answer to a notice goes to whose doing it tells of.
    let other = if sender.id == me { sent.recipient } else { sent.about.or(Some(sender.id)) };
    let Some(other) = other else {
        return match sent.audience.strip_prefix('@') {
            Some(role) => Ok(Recipient::Role(role.to_owned())),
            None => Err(Error::invalid(format!("{parent} is your own broadcast"))
                .hint("call broadcast again, or name the recipient too")),
        };
    };
    Ok(Recipient::Member(now_called(cx, other)?.name.to_string()))
}

/// The member itself, or what it became with its last change of name.
pub(super) fn now_called(cx: &Cx<'_>, member: MemberId) -> Result<Member> {
    let member = cx.tx.member(member)?;
    match member.moved_to {
        Some(moved_to) => cx.tx.member(moved_to),
        None => Ok(member),
    }
}

/// What a message is written to.
#[derive(Debug, Clone)]
pub(super) enum Audience {
    Member,
    Role(String),
    Everyone,
}

/// Stores the message and a delivery for each recipient.
pub(super) fn send(
    cx: &mut Cx<'_>,
    audience: &Audience,
    members: &[Found],
    reply_to: Option<MessageId>,
    body: &str,
) -> Result<Output> {
    let is_broadcast = matches!(audience, Audience::Everyone);
    let (written_to, only) = match (audience, members) {
        (Audience::Member, [one, ..]) => (one.member.name.to_string(), Some(one.member.id)),
        (Audience::Member, []) => return Err(Error::internal("a message without a recipient")),
        (Audience::Role(role), _) => (format!("@{role}"), None),
        (Audience::Everyone, _) => ("everyone".to_owned(), None),
    };
    let new = NewMessage {
        sender: cx.me.id,
        kind: Kind::Message,
        audience: &written_to,
        is_broadcast,
        recipient: only,
        reply_to,
        task: None,
        about: None,
        body,
    };
    let mut recipients = Vec::with_capacity(members.len());
    for found in members {
        recipients.push(Reached {
            name: found.member.name.to_string(),
            state: found.state.word(),
            shown: found.state,
            unread_before: if is_broadcast { 0 } else { cx.n_unread(found)? },
        });
    }
    let id = cx.tx.insert_message(&new, cx.now)?;
    fault::point("after_insert");
    for Found { member, .. } in members {
        cx.tx.deliver(id, cx.me.id, member.id)?;
        cx.ring(&member.name);
    }
    let audience = (!matches!(audience, Audience::Member)).then_some(written_to);
    Ok(Output { id, audience, recipients })
}

/// `sent #41 to codex-1: active, 2 unread before it`, `queued #41 for codex-1: away, ...`.
impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.audience, self.recipients.as_slice()) {
            (None, [one]) => {
                let verb = if one.is_here() { "sent" } else { "queued" };
                let link = if one.is_here() { "to" } else { "for" };
                write!(f, "{verb} {} {link} {}: {}, {}", self.id, one.name, one.shown, one.before())
            }
            (audience, all) => {
                let names: Vec<String> =
                    all.iter().map(|one| format!("{} ({})", one.name, one.shown)).collect();
                let n_here = all.iter().filter(|one| one.is_here()).count();
                let verb = if n_here > 0 { "sent" } else { "queued" };
                write!(
                    f,
                    "{verb} {} to {}: {} of {} here now: {}",
                    self.id,
                    audience.as_deref().unwrap_or_default(),
                    n_here,
                    all.len(),
                    text::list(&names, 20)
                )
            }
        }
    }
}

impl Reached {
    fn is_here(&self) -> bool {
        matches!(self.shown, State::Active | State::Idle(_))
    }

    fn before(&self) -> String {
        match self.unread_before {
            0 => "nothing unread before it".to_owned(),
            n => format!("{} unread before it", text::count(n)),
        }
    }
}
