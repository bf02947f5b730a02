//! Rows of the log that more than one tool writes.

use crate::{
    domain::{id::MessageId, name::MemberName, time::Time},
    error::Result,
    store::{Event, Tx},
};

/// What became of a member.
pub(super) fn member(
    tx: &Tx<'_>,
    actor: &MemberName,
    kind: &'static str,
    detail: Option<&str>,
    now: Time,
) -> Result<()> {
    let detail = detail.map(str::to_owned);
    tx.log(now, &Event { actor: actor.as_str(), kind, task: None, detail })
}

/// One row of the log for messages that changed together.
pub(super) fn messages(
    tx: &Tx<'_>,
    actor: &str,
    kind: &'static str,
    messages: &[MessageId],
    now: Time,
) -> Result<()> {
    if messages.is_empty() {
        return Ok(());
    }
    let ids: Vec<String> = messages.iter().map(ToString::to_string).collect();
    tx.log(now, &Event { actor, kind, task: None, detail: Some(ids.join(" ")) })
}
