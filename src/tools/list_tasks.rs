//! `list_tasks`: the board, or one task with its history.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Access, Cx, Tool, board::Line};
use crate::{
    domain::{
        id::{MessageId, TaskId},
        limits,
        task::{Holder, Status},
        time::Time,
    },
    error::{Error, Result},
    store::{Board, Task},
    view::{sanitize, text},
};

pub(super) struct ListTasks;

/// List the task board: open tasks first, what to work on next; or one in full
#[derive(Debug, Deserialize, schemars::JsonSchema, clap::Args)]
pub(super) struct Params {
    #[arg(long, help = "Only with this status")]
    status: Option<Status>,
    #[arg(long, value_name = "NAME", help = "Only what this member holds")]
    assignee: Option<String>,
    /// Only what you could claim now
    #[arg(long, num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    ready: Option<bool>,
    /// Only this one, in full
    #[arg(value_name = "ID")]
    task_id: Option<TaskId>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Output {
    Board { tasks: Vec<Line>, not_shown: Vec<NotShown> },
    One(Box<InFull>),
}

/// Tasks that the list has no room for.
#[derive(Debug, Serialize)]
pub(super) struct NotShown {
    status: Status,
    /// Counts stop at 100.
    count: usize,
}

#[derive(Debug, Serialize)]
pub(super) struct InFull {
    #[serde(flatten)]
    line: Line,
    description: String,
    result: String,
    /// What it depends on, and what depends on it.
    depends_on: Vec<TaskId>,
    needed_by: Vec<TaskId>,
    history: Vec<Entry>,
    /// Entries of the history between the first and the last ones.
    n_left_out: usize,
    #[serde(skip)]
    n_first: usize,
    #[serde(skip)]
    now: Time,
}

/// A line of a task's history: what was done to it, or a message in answer to one of its notices.
#[derive(Debug, Serialize)]
struct Entry {
    at: Time,
    by: String,
    /// `task.claimed`; `message` for a message.
    what: String,
    detail: Option<String>,
    message: Option<MessageId>,
}

impl Tool for ListTasks {
    const NAME: &'static str = "list_tasks";
    const COMMAND: &'static str = "tasks";
    const ACCESS: Access = Access::Reads;
    type Params = Params;
    type Output = Output;

    fn call(cx: &mut Cx<'_>, params: &Params) -> Result<Output> {
        if let Some(id) = params.task_id {
            return Ok(Output::One(Box::new(in_full(cx, &cx.task(id)?)?)));
        }
        let assignee = params.assignee.as_deref().map(|name| whose(cx, name)).transpose()?;
        let ready = params.ready.unwrap_or(false);
        let board = Board { status: params.status, assignee, ready_for: ready.then_some(cx.me.id) };
        list(cx, &board)
    }
}

/// Whose tasks are meant: mine, nobody's, a member's, also under a name that it had before.
fn whose(cx: &Cx<'_>, name: &str) -> Result<Holder> {
    match name.trim() {
        "" => Ok(Holder::Nobody),
        "me" => Ok(Holder::Member(cx.me.id)),
        name => {
            let member = cx.tx.member_named(name)?.ok_or_else(|| {
                Error::not_found(format!("no member named {}", sanitize::quote(name)))
                    .hint("list_members with include_left shows everybody; `me` is you")
            })?;
            Ok(Holder::Member(member.moved_to.unwrap_or(member.id)))
        }
    }
}

/// Open tasks as far as a result has room; then, to the end of a page, the last that ended.
fn list(cx: &Cx<'_>, board: &Board) -> Result<Output> {
    let mut room = limits::RESULT_BYTES - limits::ASIDE_BYTES - REST_BYTES;
    let mut tasks: Vec<Line> = Vec::new();
    let mut add = |found: &[Task], at_most: usize, tasks: &mut Vec<Line>| -> Result<()> {
        for task in found {
            let line = Line::new(cx, task)?;
            let size = line.to_string().len() + 1;
            if size > room || tasks.len() >= at_most {
                break;
            }
            room -= size;
            tasks.push(line);
        }
        Ok(())
    };
    let is_wanted = |status: Status| board.status.is_none_or(|wanted| wanted == status);
    if board.status.is_none_or(|status| !status.is_ended()) {
        add(&cx.tx.open_tasks(board, limits::OPEN_TASKS)?, usize::MAX, &mut tasks)?;
    }
    let page = usize::try_from(limits::PAGE).unwrap_or(0);
    if tasks.len() < page && board.ready_for.is_none() {
        let mut ended = Vec::new();
        let left = i64::try_from(page - tasks.len()).unwrap_or(0);
        for status in [Status::Done, Status::Cancelled].into_iter().filter(|it| is_wanted(*it)) {
            ended.extend(cx.tx.ended_tasks(board, status, left)?);
        }
        ended.sort_by_key(|task| std::cmp::Reverse(task.id));
        add(&ended, page, &mut tasks)?;
    }
    let mut not_shown = Vec::new();
    for status in Status::ALL.into_iter().filter(|it| is_wanted(*it)) {
        let n_shown = tasks.iter().filter(|line| line.status == status).count();
        let all = cx.tx.count_tasks(board, status, n_shown + limits::COUNT_STOPS_AT)?;
        if all > n_shown {
            not_shown.push(NotShown { status, count: all - n_shown });
        }
    }
    Ok(Output::Board { tasks, not_shown })
}

/// Room for the line that says what is not shown.
const REST_BYTES: usize = 200;

fn in_full(cx: &Cx<'_>, task: &Task) -> Result<InFull> {
    let half = limits::HISTORY_LINES;
    let (events, n_left_out) = cx.tx.task_events(task.id, half)?;
    // Where lines are left out, these are the first.
    let n_first = if n_left_out > 0 { half } else { 0 };
    let first_shown = events.get(n_first).map(|event| event.at);
    let mut history: Vec<Entry> = events
        .into_iter()
        .map(|event| Entry {
            at: event.at,
            by: event.actor,
            what: event.kind,
            detail: event.detail.filter(|detail| !detail.is_empty()),
            message: None,
        })
        .collect();
    // The present result stands above.
    let last_result = history.iter_mut().rfind(|entry| entry.what == "task.result");
    if let Some(entry) = last_result.filter(|it| it.detail.as_deref() == Some(&task.result)) {
        entry.detail = None;
    }
    for reply in cx.tx.task_replies(task.id, half)? {
        if n_left_out > 0 && first_shown.is_some_and(|at| reply.sent_at < at) {
            continue;
        }
        // Behind what was done at the same time; each kind stays in its own order.
        let at = history.iter().rposition(|entry| entry.at <= reply.sent_at);
        history.insert(
            at.map_or(0, |at| at + 1),
            Entry {
                at: reply.sent_at,
                by: reply.sender,
                what: "message".to_owned(),
                detail: None,
                message: Some(reply.id),
            },
        );
    }
    let ids = |all: Vec<crate::store::Dependency>| all.into_iter().map(|it| it.id).collect();
    Ok(InFull {
        line: Line::new(cx, task)?,
        description: task.description.clone(),
        result: task.result.clone(),
        depends_on: ids(cx.tx.dependencies(task.id)?),
        needed_by: ids(cx.tx.dependents(task.id)?),
        history,
        n_left_out,
        n_first,
        now: cx.now,
    })
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (tasks, not_shown) = match self {
            Output::One(task) => return task.fmt(f),
            Output::Board { tasks, not_shown } => (tasks, not_shown),
        };
        match tasks.len() {
            0 => f.write_str("no tasks")?,
            1 => f.write_str("1 task")?,
            n => write!(f, "{n} tasks")?,
        }
        for line in tasks {
            write!(f, "\n{line}")?;
        }
        let rest: Vec<String> = not_shown
            .iter()
            .map(|rest| format!("{} {}", text::count(rest.count), rest.status))
            .collect();
        if rest.is_empty() { Ok(()) } else { write!(f, "\nnot shown: {}", rest.join(", ")) }
    }
}

/// The least that the history gets of a result.
const HISTORY_BYTES: usize = 3_000;

impl fmt::Display for InFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = &self.line;
        let made = self.now.since(line.created_at).ago();
        let mut head = format!("{line}; from {}, {made}; version {}", line.creator, line.version);
        for (what, ids) in [("depends on", &self.depends_on), ("needed by", &self.needed_by)] {
            if !ids.is_empty() {
                let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
                head.extend(["\n", what, " ", &text::list(&ids, limits::DEPENDENCIES)]);
            }
        }
        f.write_str(&head)?;
        let mut room = (limits::RESULT_BYTES - limits::ASIDE_BYTES).saturating_sub(head.len());
        // The shorter text leaves its part of the room to the longer one.
        let texts = [("description", &self.description), ("result", &self.result)];
        let sizes = texts.map(|(_, text)| sanitize::fence(text).len());
        let for_texts = room.saturating_sub(HISTORY_BYTES);
        for (n, (what, text)) in texts.into_iter().enumerate() {
            if text.is_empty() {
                continue;
            }
            let other = sizes.get(1 - n).copied().unwrap_or(0).min(for_texts / 2);
            let shown = sanitize::fence_cut(text, for_texts - other);
            write!(f, "\n{what}:\n{shown}")?;
            room = room.saturating_sub(shown.len() + what.len() + 3);
        }
        f.write_str("\nhistory:")?;
        for line in self.history(room.saturating_sub(80)) {
            write!(f, "\n{line}")?;
        }
        Ok(())
    }
}

impl InFull {
    /// As much of the history as there is room for: its end, its beginning, and in between how much
    /// is left out.
    fn history(&self, mut room: usize) -> Vec<String> {
        let texts: Vec<String> = self.history.iter().map(|entry| entry.text(self.now)).collect();
        let for_beginning = room / 4;
        let mut end = Vec::new();
        let mut left = texts.as_slice();
        while let [rest @ .., last] = left {
            // What was left out before is a gap, too.
            let has_gap = self.n_left_out > 0 && left.len() == self.n_first;
            let is_whole = left.iter().map(|text| text.len() + 1).sum::<usize>() <= room;
            let kept_free = if is_whole { 0 } else { for_beginning };
            if has_gap || last.len() + 1 + kept_free > room {
                break;
            }
            room -= last.len() + 1;
            end.push(last.clone());
            left = rest;
        }
        if end.is_empty()
            && let [rest @ .., _] = left
            && let Some(entry) = self.history.last()
        {
            let cut = entry.cut(self.now, room * 3 / 4);
            room = room.saturating_sub(cut.len());
            end.push(cut);
            left = rest;
        }
        let mut lines = Vec::new();
        while let [first, rest @ ..] = left {
            if first.len() + 1 > room {
                break;
            }
            room -= first.len() + 1;
            lines.push(first.clone());
            left = rest;
        }
        let n_left_out = self.n_left_out + left.len();
        if n_left_out > 0 {
            lines.push(format!("({n_left_out} more are not shown here)"));
        }
        lines.extend(end.into_iter().rev());
        lines
    }
}

impl Entry {
    fn text(&self, now: Time) -> String {
        self.cut(now, usize::MAX)
    }

    /// `3 min ago codex-1 commented on it`, and the comment as far as there is room.
    fn cut(&self, now: Time, room: usize) -> String {
        let (ago, by) = (now.since(self.at).ago(), &self.by);
        if let Some(id) = self.message {
            return format!("{ago}: {by} sent {id}");
        }
        let detail = self.detail.as_deref().unwrap_or_default();
        match text::task_event(&self.what, "it", detail) {
            Some((words, None | Some(""))) => format!("{ago}: {by} {words}"),
            Some((words, Some(text))) => {
                let head = format!("{ago}: {by} {words}");
                let room = room.saturating_sub(head.len() + 1);
                format!("{head}\n{}", sanitize::fence_cut(text, room))
            }
            None => format!("{ago}: {by} {}", sanitize::field(&self.what)),
        }
    }
}
