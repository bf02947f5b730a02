//! What the page shows, as JSON: all of it at first, then what has changed.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{
    domain::{
        id::{MessageId, TaskId},
        message,
        task::Status,
        time::Time,
    },
    error::{Error, Result},
    store::{Board, ContextEntry, Counts, LogLine, LogPlace, Posted, Task},
    tools::{Cx, MemberLine},
    view::{
        events::happened,
        web::{beginning, text},
    },
};

/// Messages at once, and bytes of their bodies: the latest of them are enough to begin with.
const MESSAGES: i64 = 200;
const MESSAGE_BYTES: usize = 512 * 1024;
/// Lines of the log at first, and in one change at most.
const LOG_LINES: i64 = 300;
/// Characters of a comment or result there.
const LOG_CHARS: usize = 1000;
/// Open tasks, and tasks that have ended.
const OPEN_TASKS: i64 = 500;
const ENDED_TASKS: i64 = 50;
/// Lines of a task's history.
const HISTORY: usize = 200;
/// Keys of the context, and characters of a value in their list.
const KEYS: usize = 300;
const VALUE_CHARS: usize = 400;

/// Up to where somebody has seen the table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Cursor {
    /// As text: it is more than a number of JavaScript holds.
    pub epoch: String,
    pub event: i64,
    pub message: i64,
    pub task: i64,
}

impl Cursor {
    fn at(place: LogPlace) -> Cursor {
        let LogPlace { event, message, task } = place;
        Cursor { event, message, task, ..Cursor::default() }
    }

    fn place(&self) -> LogPlace {
        LogPlace { event: self.event, message: self.message, task: self.task }
    }
}

/// What is compared with what was there before, since no row of the log tells of it.
#[derive(Debug, Default)]
pub(super) struct Before {
    members: Value,
    reservations: Value,
    context: Value,
    counts: Vec<(MessageId, Counts)>,
}

/// What has come since the last look.
pub(super) enum Change {
    Nothing,
    Some(Value),
    /// The table is another one, or too much has come: everything is to be asked for anew.
    All,
}

/// All that the page shows at first.
pub(super) fn state(cx: &Cx<'_>) -> Result<Value> {
    let posted = posted_before(cx, MessageId(i64::MAX))?;
    let log = cx.tx.last_log_lines(LOG_LINES)?;
    let mut tasks = cx.tx.open_tasks(&Board::default(), OPEN_TASKS)?;
    for status in [Status::Done, Status::Cancelled] {
        tasks.extend(cx.tx.ended_tasks(&Board::default(), status, ENDED_TASKS)?);
    }
    let mut ended: Vec<TaskId> =
        tasks.iter().filter(|task| task.status.is_ended()).map(|task| task.id).collect();
    ended.sort_by(|a, b| b.cmp(a));
    ended.truncate(usize::try_from(ENDED_TASKS).unwrap_or(0));
    tasks.retain(|task| !task.status.is_ended() || ended.contains(&task.id));
    Ok(json!({
        "exists": true,
        "cursor": Cursor {
            epoch: cx.tx.epoch()?.to_string(),
            ..Cursor::at(cx.tx.log_end()?)
        },
        "now": cx.now,
        "you": cx.me.name.to_string(),
        "members": members(cx)?,
        "messages": posted.iter().map(posting).collect::<Vec<Value>>(),
        "older": has_older(cx, &posted)?,
        "tasks": tasks.iter().map(|task| card(cx, task)).collect::<Result<Vec<Value>>>()?,
        "reservations": reservations(cx)?,
        "context": context(cx)?,
        "log": log.iter().map(|it| line(it, LOG_CHARS)).collect::<Vec<Value>>(),
    }))
}

/// Messages before this one, and whether there are more.
pub(super) fn older(cx: &Cx<'_>, before: MessageId) -> Result<Value> {
    let posted = posted_before(cx, before)?;
    let messages: Vec<Value> = posted.iter().map(posting).collect();
    Ok(json!({ "messages": messages, "older": has_older(cx, &posted)? }))
}

/// The messages before this one, as many as go into one answer.
fn posted_before(cx: &Cx<'_>, before: MessageId) -> Result<Vec<Posted>> {
    let mut posted = cx.tx.posted_before(before, MESSAGES)?;
    let mut room = MESSAGE_BYTES;
    let n_fit = posted.iter().rev().take_while(|it| {
        let fits = it.message.body.len() <= room;
        room = room.saturating_sub(it.message.body.len());
        fits
    });
    posted.drain(..posted.len() - n_fit.count().max(1).min(posted.len()));
    Ok(posted)
}

fn has_older(cx: &Cx<'_>, posted: &[Posted]) -> Result<bool> {
    let Some(first) = posted.first() else { return Ok(false) };
    Ok(!cx.tx.posted_before(first.message.id, 1)?.is_empty())
}

/// What has come since, and where that leads to.
pub(super) fn changes(cx: &Cx<'_>, since: &mut Cursor, before: &mut Before) -> Result<Change> {
    let (epoch, end) = (cx.tx.epoch()?.to_string(), cx.tx.log_end()?);
    let log = cx.tx.log_lines(since.place(), Time(i64::MIN), LOG_LINES + 1)?;
    let is_long = i64::try_from(log.len()).is_ok_and(|n_lines| n_lines > LOG_LINES);
    let is_older = end.event < since.event || end.message < since.message || end.task < since.task;
    if epoch != since.epoch || is_older || is_long {
        return Ok(Change::All);
    }
    let posted = cx.tx.posted_after(MessageId(since.message), LOG_LINES)?;
    let mut change = Map::new();
    let mut put = |key: &str, value: Value| {
        change.insert(key.to_owned(), value);
    };
    let mut put_if_new = |key: &str, now: Value, before: &mut Value| {
        if *before != now {
            before.clone_from(&now);
            put(key, now);
        }
    };
    put_if_new("members", members(cx)?, &mut before.members);
    put_if_new("reservations", reservations(cx)?, &mut before.reservations);
    if before.context.is_null() || log.iter().any(|line| line.kind.starts_with("context.")) {
        put_if_new("context", context(cx)?, &mut before.context);
    }
    let changed = changed_tasks(cx, &log)?;
    if !changed.is_empty() {
        put("tasks", changed.into());
    }
    if !posted.is_empty() {
        put("messages", posted.iter().map(posting).collect());
    }
    if before.counts.is_empty() || log.iter().any(|line| line.kind.starts_with("message.")) {
        let first = (since.message - MESSAGES).max(0);
        let last = first + MESSAGES + LOG_LINES;
        let counts = cx.tx.standings_between(MessageId(first), MessageId(last))?;
        let moved: Vec<Value> = counts
            .iter()
            .filter(|it| !before.counts.contains(it))
            .map(|(id, counts)| json!([id, counts.n, counts.handed, counts.read]))
            .collect();
        if !moved.is_empty() && (!before.counts.is_empty() || !log.is_empty()) {
            put("standings", moved.into());
        }
        before.counts = counts;
    }
    if !log.is_empty() {
        put("log", log.iter().map(|it| line(it, LOG_CHARS)).collect());
    }
    if change.is_empty() {
        return Ok(Change::Nothing);
    }
    *since = Cursor { epoch, ..Cursor::at(end) };
    change.insert("cursor".to_owned(), json!(since));
    change.insert("now".to_owned(), json!(cx.now));
    Ok(Change::Some(Value::Object(change)))
}

/// The tasks that the log tells of, and those that wait for them.
fn changed_tasks(cx: &Cx<'_>, log: &[LogLine]) -> Result<Vec<Value>> {
    let mut ids: Vec<TaskId> = Vec::new();
    for id in log.iter().filter_map(|line| line.task) {
        if !ids.contains(&id) {
            ids.push(id);
            ids.extend(cx.tx.dependents(id)?.into_iter().map(|dependent| dependent.id));
        }
    }
    ids.sort();
    ids.dedup();
    let mut changed = Vec::new();
    for id in ids {
        if let Some(task) = cx.tx.task(id)? {
            changed.push(card(cx, &task)?);
        }
    }
    Ok(changed)
}

fn members(cx: &Cx<'_>) -> Result<Value> {
    let lines = MemberLine::all(cx)?;
    let here = lines.iter().filter(|line| !line.shown.has_left());
    Ok(here
        .map(|line| {
            let tasks = line.tasks.iter().map(
                |task| json!({ "id": task.id, "status": task.status, "title": text(&task.title) }),
            );
            json!({
                "name": line.name,
                "you": line.you,
                "state": line.state,
                "shown": line.shown.to_string(),
                "seen_at": line.last_seen_at,
                "role": text(&line.role),
                "note": text(&line.note),
                "good_at": line.capabilities.iter().map(|it| text(it)).collect::<Vec<String>>(),
                "tasks": tasks.collect::<Vec<Value>>(),
                "client": line.session.as_ref().map(|session| {
                    text(&format!("{} {}", session.client, session.client_version))
                }),
                "checkout": line.session.as_ref().map(|session| text(&session.checkout)),
                "branch": line.session.as_ref().and_then(|it| it.branch.as_deref()).map(text),
            })
        })
        .collect())
}

fn posting(posted: &Posted) -> Value {
    let Posted { message, thread, standing } = posted;
    json!({
        "id": message.id,
        "thread": thread,
        "from": message.sender,
        "to": text(&message.audience),
        "is_auto": message.kind == message::Kind::Auto,
        "is_broadcast": message.is_broadcast,
        "reply_to": message.reply_to,
        "body": text(&message.body),
        "at": message.sent_at,
        "n": standing.n,
        "handed": standing.handed,
        "read": standing.read,
    })
}

fn card(cx: &Cx<'_>, task: &Task) -> Result<Value> {
    Ok(json!({
        "id": task.id,
        "title": text(&task.title),
        "status": task.status,
        "priority": task.priority,
        "creator": task.creator_name,
        "assignee": task.assignee_name,
        "waits": task.n_waits,
        "version": task.version,
        "created_at": task.created_at,
        "updated_at": task.updated_at,
        "moved_by": task.moved_by,
        "moved_at": task.moved_at,
        "steps": cx.steps(task)?,
    }))
}

/// One task in full, with its history.
pub(super) fn task(cx: &Cx<'_>, id: TaskId) -> Result<Value> {
    let Some(task) = cx.tx.task(id)? else {
        return Err(Error::not_found(format!("there is no task {id}")));
    };
    let mut shown = card(cx, &task)?;
    let (history, n_between) = cx.tx.task_events(id, HISTORY)?;
    let ids = |all: Vec<crate::store::Dependency>| -> Vec<Value> {
        all.into_iter().map(|it| json!({ "id": it.id, "status": it.status })).collect()
    };
    if let Value::Object(fields) = &mut shown {
        fields.insert("description".to_owned(), text(&task.description).into());
        fields.insert("result".to_owned(), text(&task.result).into());
        fields.insert("waits_for".to_owned(), ids(cx.tx.dependencies(id)?).into());
        fields.insert("blocks".to_owned(), ids(cx.tx.dependents(id)?).into());
        fields
            .insert("history".to_owned(), history.iter().map(|it| line(it, usize::MAX)).collect());
        fields.insert("history_left_out".to_owned(), n_between.into());
    }
    Ok(shown)
}

fn reservations(cx: &Cx<'_>) -> Result<Value> {
    let live = cx.tx.reservations(cx.now)?.into_iter();
    live.map(|it| {
        Ok(json!({
            "id": it.id,
            "pattern": text(&it.pattern),
            "holder": cx.tx.member(it.holder)?.name.to_string(),
            "checkout": text(&it.checkout),
            "reason": text(&it.reason),
            "made_at": it.made_at,
            "ends_at": it.ends_at,
        }))
    })
    .collect()
}

fn context(cx: &Cx<'_>) -> Result<Value> {
    let mut entries = cx.tx.context()?;
    // Where not all have room, the latest do.
    entries.sort_by(|a, b| b.updated_at.cmp(&a.updated_at).then_with(|| a.key.cmp(&b.key)));
    entries.truncate(KEYS);
    entries.sort_by(|a, b| a.key.cmp(&b.key));
    Ok(entries.iter().map(|entry| shared(entry, VALUE_CHARS)).collect())
}

/// One key with all of its value.
pub(super) fn key(cx: &Cx<'_>, key: &str) -> Result<Value> {
    match cx.tx.context_entry(key)? {
        Some(entry) if entry.value.is_some() => Ok(shared(&entry, usize::MAX)),
        _ => Err(Error::not_found("the shared context has no such key any more")),
    }
}

fn shared(entry: &ContextEntry, chars: usize) -> Value {
    let value = entry.value.as_deref().unwrap_or_default();
    let (shown, is_whole) = beginning(value, chars);
    json!({
        // As it is, to ask for it; and as it is shown.
        "key": entry.key,
        "name": text(&entry.key),
        "value": shown,
        "is_whole": is_whole,
        "bytes": value.len(),
        "version": entry.version,
        "author": entry.author,
        "at": entry.updated_at,
    })
}

/// A line of the log; of a long text the beginning, for its task shows all of it.
fn line(line: &LogLine, chars: usize) -> Value {
    let id = line.key();
    if let Some(message) = &line.message {
        let words = format!("{} wrote {} to {}", line.actor, message.id, text(&message.audience));
        return json!({ "id": id, "at": line.at, "words": words, "message": message.id });
    }
    let detail = line.detail.as_deref().unwrap_or_default();
    let (words, more) = happened(&line.actor, &line.kind, line.task, detail);
    let more = more.map(|more| match beginning(more, chars) {
        (shown, true) => shown,
        (shown, false) => shown + "…",
    });
    json!({
        "id": id,
        "at": line.at,
        "words": text(&words),
        "text": more,
        "task": line.task,
    })
}
