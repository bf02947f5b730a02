//! `status`: the human's unread mail first, then who sits here, then the table.

use std::io::Write;

use serde::Serialize;

use super::{flush, no_table, print_json, print_text};
use crate::{
    domain::id::SessionId,
    error::Result,
    store,
    tools::{Desk, MemberLine},
    view::text::{self, Front},
};

#[derive(Debug, Serialize)]
struct Status {
    unread: usize,
    senders: Vec<String>,
    members: Vec<MemberLine>,
    messages: i64,
    table: String,
    bytes: u64,
}

/// Prints the status; looks only.
///
/// # Errors
/// The table cannot be read.
pub fn run(desk: &mut Desk, json: bool, out: &mut dyn Write) -> Result<u8> {
    let table = desk.workspace().table.clone();
    let found = desk.look(|cx| {
        let unread = cx.tx.unread(cx.me.id, SessionId::NOBODY)?;
        Ok(Status {
            unread: unread.count,
            senders: unread.senders,
            members: MemberLine::all(cx)?,
            messages: cx.tx.n_messages()?,
            table: table.display().to_string(),
            bytes: size(&table),
        })
    })?;
    match found {
        None if json => print_json(out, &serde_json::json!({ "table": table, "exists": false }))?,
        None => print_text(out, &no_table(&table))?,
        Some(status) if json => print_json(out, &status)?,
        Some(status) => print_text(out, &status.text())?,
    }
    flush(out)?;
    Ok(0)
}

impl Status {
    fn text(&self) -> String {
        let mut lines = Vec::new();
        lines.push(match self.unread {
            0 => "no unread messages for you".to_owned(),
            n => format!(
                "{} for you: {}",
                text::unread(n, &self.senders),
                Front::Commands.read_mail()
            ),
        });
        let here = self.members.iter().filter(|member| !member.you && !member.shown.has_left());
        let before = lines.len();
        lines.extend(here.map(ToString::to_string));
        if lines.len() == before {
            lines.push("no agent is here yet: it is listed after its first call".to_owned());
        }
        let messages = text::counted(self.messages, "message");
        lines.push(format!("{} ({messages}, {} KiB)", self.table, self.bytes / 1024));
        lines.join("\n")
    }
}

/// The table's size with its log, by looking at the names; nothing is opened.
fn size(table: &std::path::Path) -> u64 {
    ["", "-wal"]
        .iter()
        .filter_map(|suffix| std::fs::metadata(store::beside(table, suffix)).ok())
        .map(|meta| meta.len())
        .sum()
}
