//! `broadcast`: text to everyone.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{
    Access, Cx, Tool,
    content::Content,
    send_message::{self, Audience},
};
use crate::{
    domain::{id::MessageId, member::State},
    error::Result,
    view::text,
};

pub(super) struct Broadcast;

/// Send a message to all agents; only what everyone must know
#[derive(Debug, Deserialize, schemars::JsonSchema, clap::Args)]
pub(super) struct Params {
    #[command(flatten)]
    content: Content,
}

#[derive(Debug, Serialize)]
pub(super) struct Output {
    id: MessageId,
    recipients: Vec<send_message::Reached>,
}

impl Tool for Broadcast {
    const NAME: &'static str = "broadcast";
    const COMMAND: &'static str = "broadcast";
    const ACCESS: Access = Access::Writes;
    type Params = Params;
    type Output = Output;

    fn call(cx: &mut Cx<'_>, params: &Params) -> Result<Output> {
        let body = &params.content.0;
        Cx::check_body(body)?;
        let members = cx.everyone()?;
        cx.count_message()?;
        let sent = send_message::send(cx, &Audience::Everyone, &members, None, body)?;
        Ok(Output { id: sent.id, recipients: sent.recipients })
    }
}

/// `sent #42 to 3 members, 1 away: codex-1 (active), ...`.
impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.recipients.len();
        if n == 0 {
            // Only the human can be alone: to everyone else the human is there.
            let id = self.id;
            return write!(f, "queued {id}: no agent is here yet; who comes within 24 h gets it");
        }
        let n_away =
            self.recipients.iter().filter(|one| matches!(one.shown, State::Away(_))).count();
        let names: Vec<String> =
            self.recipients.iter().map(|one| format!("{} ({})", one.name, one.shown)).collect();
        let members = text::counted(n, "member");
        let verb = if n_away == n { "queued" } else { "sent" };
        let away = if n_away == 0 { String::new() } else { format!(", {n_away} away") };
        write!(f, "{verb} {} to {members}{away}: {}", self.id, text::list(&names, 20))
    }
}
