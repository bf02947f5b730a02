//! `message_status`: one message in full, and who has it.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Access, Cx, Tool, get_messages::Line};
use crate::{
    domain::{
        id::{MessageId, SessionId},
        limits,
        time::Time,
    },
    error::{Error, Result},
    store::Standing,
};

pub(super) struct MessageStatus;

/// Show one message in full and who has it: queued, handed or read
#[derive(Debug, Deserialize, schemars::JsonSchema, clap::Args)]
pub(super) struct Params {
    #[arg(help = "Id of the message, such as 41 or #41")]
    message_id: MessageId,
}

#[derive(Debug, Serialize)]
pub(super) struct Output {
    #[serde(flatten)]
    message: Line,
    recipients: Vec<Part>,
    #[serde(skip)]
    now: Time,
}

/// One recipient's part in the message.
#[derive(Debug, Serialize)]
struct Part {
    name: String,
    /// `queued`, `handed` or `read`.
    state: &'static str,
    handed_at: Option<Time>,
    handed_session: Option<SessionId>,
    read_at: Option<Time>,
}

impl Tool for MessageStatus {
    const NAME: &'static str = "message_status";
    const COMMAND: &'static str = "show";
    const ACCESS: Access = Access::Reads;
    type Params = Params;
    type Output = Output;

    fn call(cx: &mut Cx<'_>, params: &Params) -> Result<Output> {
        let id = params.message_id;
        let is_mine = |message: &crate::store::Shown| -> Result<bool> {
            Ok(cx.me.is_human || message.is_broadcast || cx.tx.is_party(id, cx.me.id)?)
        };
        let message = match cx.tx.message(id)? {
            Some(message) if is_mine(&message)? => message,
            _ => {
                return Err(Error::not_found(format!(
                    "there is no message {id} that you sent or were sent"
                ))
                .hint("get_messages with include_read shows the ids"));
            }
        };
        let recipients = cx.tx.standings(id)?.into_iter().map(part).collect();
        Ok(Output { message: Line::new(cx, message), recipients, now: cx.now })
    }
}

fn part(standing: Standing) -> Part {
    let state = match (standing.read_at, standing.handed_at) {
        (Some(_), _) => "read",
        (None, Some(_)) => "handed",
        (None, None) => "queued",
    };
    Part {
        name: standing.member,
        state,
        handed_at: standing.handed_at,
        handed_session: standing.handed_session,
        read_at: standing.read_at,
    }
}

/// Lists recipients as far as a result has room, and counts the others.
impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = self.message.text(self.now);
        f.write_str(&message)?;
        let mut room = limits::RESULT_BYTES.saturating_sub(limits::ASIDE_BYTES + message.len());
        for (n_shown, part) in self.recipients.iter().enumerate() {
            let line = part.line(self.now);
            if line.len() + 1 > room {
                let rest = self.recipients.get(n_shown..).unwrap_or_default();
                return write!(f, "\n{} more: {}", rest.len(), tally(rest));
            }
            room -= line.len() + 1;
            write!(f, "\n{line}")?;
        }
        if self.recipients.is_empty() {
            f.write_str("\nnobody has it any more")?;
        }
        Ok(())
    }
}

impl Part {
    fn line(&self, now: Time) -> String {
        let since = match (self.read_at, self.handed_at) {
            (Some(at), _) => format!(" {}", now.since(at).ago()),
            (None, Some(at)) => format!(" {}, not known to be read yet", now.since(at).ago()),
            (None, None) => String::new(),
        };
        let handed = match (self.handed_at, self.handed_session) {
            (Some(at), Some(SessionId::COMMAND_LINE)) => {
                format!(" (handed to the command line {})", now.since(at).ago())
            }
            (Some(at), Some(session)) => {
                format!(" (handed to session {} {})", session.0, now.since(at).ago())
            }
            _ => String::new(),
        };
        format!("{}: {}{since}{handed}", self.name, self.state)
    }
}

/// `3 queued, 1 read`.
fn tally(parts: &[Part]) -> String {
    let counts = ["queued", "handed", "read"].into_iter().filter_map(|state| {
        let n = parts.iter().filter(|part| part.state == state).count();
        (n > 0).then(|| format!("{n} {state}"))
    });
    counts.collect::<Vec<_>>().join(", ")
}
