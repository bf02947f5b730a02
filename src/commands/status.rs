//! `status`: the human's unread mail first, then who sits here, then the table.

use std::io::Write;

use serde::Serialize;

use super::{flush, print_json, print_no_table, print_text};
use crate::{
    domain::{id::SessionId, limits, task::Status, time::Time},
    error::Result,
    store::{self, Board},
    tools::{Cx, Desk, MemberLine},
    view::{
        sanitize,
        text::{self, Front},
    },
};

#[derive(Debug, Serialize)]
struct Overview {
    unread: usize,
    senders: Vec<String>,
    members: Vec<MemberLine>,
    /// Open tasks by status, and how many of the pending ones anybody could claim; counts stop at
    /// 100.
    tasks: Vec<(Status, usize)>,
    ready: usize,
    reservations: Vec<Reserved>,
    messages: i64,
    table: String,
    bytes: u64,
}

#[derive(Debug, Serialize)]
struct Reserved {
    pattern: String,
    holder: String,
    reason: String,
    ends_at: Time,
    #[serde(skip)]
    left: String,
}

/// Prints the status; looks only.
///
/// # Errors
/// The table cannot be read.
pub fn run(desk: &mut Desk, json: bool, out: &mut dyn Write) -> Result<u8> {
    let table = desk.workspace().table.clone();
    let found = desk.look(|cx| {
        let unread = cx.tx.unread(cx.me.id, SessionId::NOBODY)?;
        Ok(Overview {
            unread: unread.count,
            senders: unread.senders,
            members: MemberLine::all(cx)?,
            tasks: tasks(cx)?,
            ready: cx.tx.count_tasks(
                &Board { ready_for: Some(cx.me.id), ..Board::default() },
                Status::Pending,
                limits::COUNT_STOPS_AT,
            )?,
            reservations: reservations(cx)?,
            messages: cx.tx.n_messages()?,
            table: table.display().to_string(),
            bytes: size(&table),
        })
    })?;
    match found {
        None => print_no_table(&table, json, out)?,
        Some(status) if json => print_json(out, &status)?,
        Some(status) => print_text(out, &status.text())?,
    }
    flush(out)?;
    Ok(0)
}

impl Overview {
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
        let tasks: Vec<String> =
            self.tasks.iter().map(|(status, n)| format!("{} {status}", text::count(*n))).collect();
        if !tasks.is_empty() {
            let ready = text::count(self.ready);
            lines.push(format!("tasks: {} ({ready} ready): `team-table tasks`", tasks.join(", ")));
        }
        for reserved in &self.reservations {
            let reason = match reserved.reason.as_str() {
                "" => String::new(),
                reason => format!(" for {}", sanitize::field(reason)),
            };
            let pattern = sanitize::field(&reserved.pattern);
            lines.push(format!(
                "reserved: {pattern} by {}{reason}, {}",
                reserved.holder, reserved.left
            ));
        }
        let messages = text::counted(self.messages, "message");
        lines.push(format!("{} ({messages}, {} KiB)", self.table, self.bytes / 1024));
        lines.join("\n")
    }
}

fn tasks(cx: &Cx<'_>) -> Result<Vec<(Status, usize)>> {
    let all = Board::default();
    let open = [Status::Pending, Status::InProgress, Status::Blocked, Status::Review];
    let counts = open
        .into_iter()
        .map(|status| Ok((status, cx.tx.count_tasks(&all, status, limits::COUNT_STOPS_AT)?)));
    let counts: Result<Vec<(Status, usize)>> = counts.collect();
    Ok(counts?.into_iter().filter(|(_, n)| *n > 0).collect())
}

fn reservations(cx: &Cx<'_>) -> Result<Vec<Reserved>> {
    let live = cx.tx.reservations(cx.now)?.into_iter();
    live.map(|it| {
        Ok(Reserved {
            holder: cx.tx.member(it.holder)?.name.to_string(),
            left: format!("{} left", it.ends_at.since(cx.now)),
            pattern: it.pattern,
            reason: it.reason,
            ends_at: it.ends_at,
        })
    })
    .collect()
}

/// The table's size with its log, by looking at the names; nothing is opened.
fn size(table: &std::path::Path) -> u64 {
    ["", "-wal"]
        .iter()
        .filter_map(|suffix| std::fs::metadata(store::beside(table, suffix)).ok())
        .map(|meta| meta.len())
        .sum()
}
