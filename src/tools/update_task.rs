//! `update_task`: a step, a result, a comment, another holder; all of it or nothing.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{
    Access, Cx, Tool,
    board::{self, Next, Notices},
    claim_task,
    content::LongText,
};
use crate::{
    domain::{
        id::{MemberId, TaskId},
        limits,
        task::{self, Holder, Refusal, Status, Step, Who},
    },
    error::{Error, Result},
    store::{Task, TaskChange},
    view::{sanitize, text},
};

pub(super) struct UpdateTask;

/// Mark a task done, set its status, result or holder, or comment on it
#[derive(Debug, Deserialize, schemars::JsonSchema, clap::Args)]
pub(super) struct Params {
    #[arg(value_name = "ID", help = "Id of the task, such as T7 or 7")]
    task_id: TaskId,
    #[arg(long, help = "New status")]
    status: Option<Status>,
    /// What came of it
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    result: Option<LongText>,
    #[arg(
        long,
        value_name = "TEXT",
        allow_hyphen_values = true,
        help = "A word to those concerned"
    )]
    comment: Option<LongText>,
    /// New holder; empty: nobody
    #[arg(long, value_name = "NAME")]
    assignee: Option<String>,
    /// Fail if it changed since
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    if_version: Option<i64>,
}

#[derive(Debug, Serialize)]
pub(super) struct Output {
    id: TaskId,
    status: Status,
    assignee: Option<String>,
    version: i64,
    /// What waited for it and can be claimed now.
    ready: Vec<TaskId>,
    told: Vec<String>,
}

/// What is asked for, checked as far as it can be without a look at the task.
struct Wish<'a> {
    status: Option<Status>,
    result: Option<&'a str>,
    comment: Option<&'a str>,
    assignee: Option<Holder>,
}

impl Tool for UpdateTask {
    const NAME: &'static str = "update_task";
    const COMMAND: &'static str = "update-task";
    const ACCESS: Access = Access::Writes;
    const FOUNDS: bool = false;
    type Params = Params;
    type Output = Output;

    fn call(cx: &mut Cx<'_>, params: &Params) -> Result<Output> {
        let mut wish = Wish::check(cx, params)?;
        let before = cx.task(params.task_id)?;
        if let Some(version) = params.if_version.filter(|version| *version != before.version) {
            return Err(stale(cx, &before, version)?);
        }
        let who = cx.who(&before)?;
        let mut notices = Notices::default();
        let mut task = before;
        let mut moved = None;
        if let Some(to) = wish.status {
            match task::step(task.status, to, who) {
                Ok(Step::Claim) => {
                    wish.goes_to_me(cx)?;
                    claim_task::take(cx, task.id, &mut notices)?;
                    task = cx.task(task.id)?;
                }
                Ok(Step::Move) => moved = Some(to),
                Ok(Step::Stay) if wish.says_more() => {}
                Ok(Step::Stay) => return Err(refused(cx, &task, to, who, Refusal::Already)?),
                Err(refusal) => return Err(refused(cx, &task, to, who, refusal)?),
            }
        }
        if moved.is_some() || wish.says_more() {
            let who = cx.who(&task)?;
            wish.check_rights(&task, who, moved.is_some())?;
            if wish.comment.is_some() {
                cx.count_message()?;
            }
            task = change(cx, &wish, &task, moved, &mut notices)?;
        }
        let ready = if moved.is_some() { dependents(cx, &task, &mut notices)? } else { Vec::new() };
        let told = notices.send(cx)?;
        Ok(Output {
            id: task.id,
            status: task.status,
            assignee: task.assignee_name,
            version: task.version,
            ready,
            told,
        })
    }
}

impl<'a> Wish<'a> {
    fn check(cx: &Cx<'_>, params: &'a Params) -> Result<Wish<'a>> {
        let text = |text: &'a Option<LongText>, what| -> Result<Option<&'a str>> {
            let text = text.as_ref().map(|text| text.0.as_str());
            let text = text.filter(|text| !text.trim().is_empty());
            text.map(|text| Cx::check_text(what, text)).transpose()?;
            Ok(text)
        };
        let assignee = match params.assignee.as_deref().map(str::trim) {
            None => None,
            Some("") => Some(Holder::Nobody),
            Some(name) => Some(Holder::Member(cx.assignee(name)?.id)),
        };
        let wish = Wish {
            status: params.status,
            result: text(&params.result, "the result")?,
            comment: text(&params.comment, "the comment")?,
            assignee,
        };
        if wish.status.is_none() && !wish.says_more() {
            return Err(Error::invalid("nothing is given to change")
                .hint("give a status, a result, a comment or an assignee"));
        }
        Ok(wish)
    }

    /// Something beside the status.
    fn says_more(&self) -> bool {
        self.result.is_some() || self.comment.is_some() || self.assignee.is_some()
    }

    /// A claim is for oneself.
    fn goes_to_me(&mut self, cx: &Cx<'_>) -> Result<()> {
        match self.assignee.take() {
            None => Ok(()),
            Some(Holder::Member(member)) if member == cx.me.id => Ok(()),
            Some(_) => {
                Err(Error::invalid("status in_progress takes the task for you, not for another")
                    .hint(
                        "give the assignee without a status: the task waits for them to claim it",
                    ))
            }
        }
    }

    fn check_rights(&self, task: &Task, who: Who, moves: bool) -> Result<()> {
        if who.is_holder || who.is_creator || who.is_human {
            return Ok(());
        }
        let what = match (self.assignee.is_some(), self.result.is_some() && !moves) {
            (true, _) => "give it to another",
            (_, true) => "set its result",
            _ => return Ok(()),
        };
        let holder = task
            .assignee_name
            .as_deref()
            .map_or_else(String::new, |name| format!("its holder ({name}), "));
        Err(Error::refused(format!(
            "{} is not yours: only {holder}its creator ({}) or the human may {what}",
            task.id, task.creator_name
        ))
        .hint("anyone may comment: say in `comment` what you want to tell them"))
    }

    /// Comment and result, as a notice quotes them.
    fn quoted(&self) -> String {
        let quoted = |text: &str, room| sanitize::fence_cut(text, room);
        match (self.comment, self.result) {
            (Some(comment), Some(result)) => {
                let room = limits::QUOTE_BYTES / 2;
                format!("{}\nresult:\n{}", quoted(comment, room), quoted(result, room))
            }
            (Some(text), None) | (None, Some(text)) => quoted(text, limits::QUOTE_BYTES),
            (None, None) => String::new(),
        }
    }
}

fn stale(cx: &Cx<'_>, task: &Task, version: i64) -> Result<Error> {
    let (id, now_at, status) = (task.id, task.version, task.status);
    let by = cx.tx.last_task_event(id)?.map_or_else(String::new, |(actor, at)| {
        format!(": {actor} changed it {}", cx.now.since(at).ago())
    });
    let holder = task.assignee_name.as_deref().unwrap_or("nobody");
    Ok(Error::refused(format!(
        "{id} is at version {now_at}, not {version}{by}; it is {}, with {holder}",
        status.said()
    ))
    .hint(format!("look at it with list_tasks, then try again with if_version {now_at}")))
}

/// Why a step may not be taken, and who took the last one when.
fn refused(cx: &Cx<'_>, task: &Task, to: Status, who: Who, refusal: Refusal) -> Result<Error> {
    let (id, from) = (task.id, task.status);
    let is_open_to_claims = matches!(from, Status::InProgress | Status::Blocked);
    if to == Status::InProgress && is_open_to_claims && !who.is_holder {
        return claim_task::taken(cx, task);
    }
    let since = format!("{} moved it there {}", task.moved_by, cx.now.since(task.moved_at).ago());
    let name = |whose| match whose {
        "its holder" => format!(" ({})", task.assignee_name.as_deref().unwrap_or("nobody")),
        "its creator" => format!(" ({})", task.creator_name),
        _ => String::new(),
    };
    Ok(match refusal {
        Refusal::Already => Error::refused(format!("{id} is {} already; {since}", from.said()))
            .hint("leave the status out to comment or to set the result"),
        Refusal::NoStep => {
            let next: Vec<&str> = from.next().into_iter().map(Status::as_str).collect();
            Error::refused(format!(
                "{id} is {} and cannot go from there to {to}; {since}",
                from.said()
            ))
            .hint(format!("from {from} it can go to {}", next.join(", ")))
        }
        Refusal::NotYours(whose) => Error::refused(format!(
            "{id} is {}: only {whose}{} may move it to {to}; {since}",
            from.said(),
            name(whose)
        ))
        .hint("anyone may comment: say in `comment` what you want to tell them"),
    })
}

/// Where the task comes to stand and who has it then.
fn place(
    cx: &Cx<'_>,
    wish: &Wish<'_>,
    task: &Task,
    moved: Option<Status>,
) -> Result<(Status, Option<MemberId>)> {
    let status = moved.unwrap_or(task.status);
    let Some(assignee) = wish.assignee else {
        let assignee = match (task.status, status) {
            // Given back: anyone may claim it.
            (Status::InProgress, Status::Pending) => None,
            (Status::Done | Status::Cancelled, Status::Pending) => match task.assignee {
                Some(holder) if holder != cx.me.id && cx.has_left(holder)? => None,
                holder => holder,
            },
            _ => task.assignee,
        };
        return Ok((status, assignee));
    };
    let new = assignee.id();
    let stays = new == task.assignee || new == Some(cx.me.id);
    match status {
        Status::Done | Status::Cancelled if new == task.assignee => Ok((status, new)),
        Status::Done | Status::Cancelled if moved.is_some() => {
            Err(Error::invalid(format!("a task that is {status} goes to nobody any more"))
                .hint("leave out assignee"))
        }
        Status::Done | Status::Cancelled => {
            Err(Error::refused(format!("{} is {status}: it goes to nobody any more", task.id))
                .hint("reopen it first, with status pending"))
        }
        Status::Review if new.is_none() && moved.is_some() => {
            Err(Error::invalid("a task in review has somebody who answers for it")
                .hint("leave out assignee, or name another one"))
        }
        Status::Review if new.is_none() => {
            Err(Error::refused(format!("{} is in review: somebody has to answer for it", task.id))
                .hint("send it back with status in_progress, or name another assignee"))
        }
        Status::Pending | Status::Review => Ok((status, new)),
        Status::InProgress | Status::Blocked if stays => Ok((status, new)),
        Status::InProgress | Status::Blocked if wish.status.is_some() => {
            Err(Error::invalid(format!("{status} is for who works on it, not for another"))
                .hint("give the assignee without a status: the task waits for them to claim it"))
        }
        // Another one has not begun yet: it claims the task when it does.
        Status::InProgress | Status::Blocked => Ok((Status::Pending, new)),
    }
}

/// Writes the change and its events, and collects who is to be told.
fn change(
    cx: &Cx<'_>,
    wish: &Wish<'_>,
    before: &Task,
    moved: Option<Status>,
    notices: &mut Notices,
) -> Result<Task> {
    let (status, assignee) = place(cx, wish, before, moved)?;
    let by = cx.me.name.as_str();
    let is_moved = status != before.status || assignee != before.assignee;
    let written = cx.tx.change_task(
        &TaskChange {
            id: before.id,
            version: before.version,
            status,
            assignee,
            result: wish.result.unwrap_or(&before.result),
            moved: if is_moved { (by, cx.now) } else { (&before.moved_by, before.moved_at) },
        },
        cx.now,
    )?;
    if !written {
        return Err(Error::internal("a task changed within a transaction"));
    }
    crate::fault::point("after_insert");
    let task = cx.task(before.id)?;
    if status != before.status {
        cx.log_task(task.id, "task.moved", status.as_str())?;
    }
    if assignee != before.assignee {
        let name = task.assignee_name.as_deref().unwrap_or_default();
        cx.log_task(task.id, "task.assigned", name)?;
    }
    for (kind, text) in [("task.result", wish.result), ("task.commented", wish.comment)] {
        if let Some(text) = text {
            cx.log_task(task.id, kind, text)?;
        }
    }
    tell(cx, wish, before, &task, notices)?;
    Ok(task)
}

/// The holder, the one before and the creator hear of what concerns them.
fn tell(
    cx: &Cx<'_>,
    wish: &Wish<'_>,
    before: &Task,
    task: &Task,
    notices: &mut Notices,
) -> Result<()> {
    let by = cx.me.name.as_str();
    let mut add = |member: Option<MemberId>, says: String, next: Next| {
        if let Some(member) = member {
            notices.add_quoting(member, task, says, next, wish.quoted());
        }
    };
    let creator = Some(task.creator);
    if task.assignee != before.assignee {
        let waits_for = cx.waits_for(task)?;
        let says = format!("({}) is assigned to you by {by}", task.priority);
        let (says, next) = match (task.status, waits_for.as_slice()) {
            (Status::Pending, []) => (says, Next::Claim),
            (Status::Pending, on) => {
                (format!("{says}; it waits for {}", board::waits(on)), Next::Nothing)
            }
            (status, _) => (format!("{says}; it is {}", status.said()), Next::Nothing),
        };
        add(task.assignee, says, next);
        let says = match &task.assignee_name {
            Some(name) if task.assignee == Some(cx.me.id) => {
                format!("was taken over by {name}")
            }
            Some(name) => format!("was given to {name} by {by}"),
            None if before.assignee == Some(cx.me.id) => {
                format!("is pending again: {by} gave it back")
            }
            None => format!("was taken back by {by}: it is pending, for anyone"),
        };
        add(before.assignee, says.clone(), Next::Stop);
        add(creator, says, Next::Nothing);
    }
    let (holder_hears, creator_hears) = step_told(before.status, task.status, by);
    if let Some((says, next)) = holder_hears {
        let waits_for = cx.waits_for(task)?;
        let (says, next) = if waits_for.is_empty() {
            (says, next)
        } else {
            (format!("{says}; it waits for {}", board::waits(&waits_for)), Next::Nothing)
        };
        add(task.assignee, says, next);
    }
    if let Some((says, next)) = creator_hears {
        add(creator, says, next);
    }
    let says = match (wish.comment, wish.result) {
        (Some(_), _) => format!("has a comment by {by}"),
        (None, Some(_)) => format!("has a result, set by {by}"),
        (None, None) => return Ok(()),
    };
    add(task.assignee, says.clone(), Next::Nothing);
    add(creator, says, Next::Nothing);
    Ok(())
}

type Told = Option<(String, Next)>;

/// What the holder and the creator hear of a step.
fn step_told(from: Status, to: Status, by: &str) -> (Told, Told) {
    let told = |says: String, next| Some((says, next));
    match (from, to) {
        (from, to) if from == to => (None, None),
        (_, Status::Blocked) => (None, told(format!("is blocked, says {by}"), Next::Help)),
        (_, Status::Review) => {
            (None, told(format!("is ready for your review, says {by}"), Next::Judge))
        }
        (Status::Review, Status::Done) => {
            let says = format!("is done: {by} accepted it");
            (told(says.clone(), Next::Nothing), told(says, Next::Nothing))
        }
        (_, Status::Done) => (None, told(format!("is done, says {by}"), Next::Nothing)),
        (Status::Review, Status::InProgress) => {
            let says = format!("was sent back by {by}: it is in progress again");
            (told(says.clone(), Next::Nothing), told(says, Next::Nothing))
        }
        (_, Status::InProgress) => {
            (None, told(format!("is in progress again, says {by}"), Next::Nothing))
        }
        (_, Status::Cancelled) => {
            let says = format!("was cancelled by {by}");
            (told(says.clone(), Next::Stop), told(says, Next::Nothing))
        }
        (Status::Done | Status::Cancelled, Status::Pending) => {
            let says = format!("was reopened by {by}");
            (told(says.clone(), Next::Claim), told(says, Next::Nothing))
        }
        (_, Status::Pending) => (None, told(format!("is pending again, says {by}"), Next::Nothing)),
    }
}

/// What waits for the task becomes ready, gets stuck or waits again; gives what became ready.
fn dependents(cx: &Cx<'_>, task: &Task, notices: &mut Notices) -> Result<Vec<TaskId>> {
    let dependents = cx.tx.dependents(task.id)?;
    if dependents.is_empty() {
        return Ok(Vec::new());
    }
    cx.tx.recount_dependents(task.id)?;
    let (id, by) = (task.id, &cx.me.name);
    let mut ready = Vec::new();
    for dependent in dependents.iter().filter(|it| it.status == Status::Pending) {
        let other = cx.task(dependent.id)?;
        match task.status {
            Status::Done if other.n_waits == 0 => {
                ready.push(other.id);
                if let Some(assignee) = other.assignee {
                    let says = format!("is ready, since {id} is done");
                    notices.add(assignee, &other, says, Next::Claim);
                }
            }
            Status::Cancelled | Status::Pending => {
                let (says, next) = match task.status {
                    Status::Cancelled => {
                        (format!("waits for {id}, which {by} cancelled"), Next::Reopen)
                    }
                    _ => (format!("waits for {id}, which {by} opened again"), Next::Nothing),
                };
                for member in [other.assignee, Some(other.creator)].into_iter().flatten() {
                    notices.add(member, &other, says.clone(), next);
                }
            }
            _ => {}
        }
    }
    Ok(ready)
}

/// `T7 is done, with codex-1 (version 5); ready now: T8; told ada`.
impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let assignee = match &self.assignee {
            Some(name) => format!("with {name}"),
            None => "unassigned".to_owned(),
        };
        let status = self.status.said();
        write!(f, "{} is {status}, {assignee} (version {})", self.id, self.version)?;
        if !self.ready.is_empty() {
            let ids: Vec<String> = self.ready.iter().map(ToString::to_string).collect();
            write!(f, "; ready now: {}", text::list(&ids, 20))?;
        }
        if !self.told.is_empty() {
            write!(f, "; told {}", text::list(&self.told, 20))?;
        }
        Ok(())
    }
}
