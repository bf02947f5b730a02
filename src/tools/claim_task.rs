//! `claim_task`: takes a task; one member gets it, the others are told who.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{
    Access, Cx, Tool,
    board::{self, Next, Notices},
};
use crate::{
    domain::{
        id::{MemberId, TaskId},
        limits,
        task::{Priority, Status},
    },
    error::{Error, Result},
    store::{Board, Task},
    view::{sanitize, text},
};

pub(super) struct ClaimTask;

/// Claim a task before you work on it; only one agent gets it
#[derive(Debug, Deserialize, schemars::JsonSchema, clap::Args)]
pub(super) struct Params {
    /// Left out: the next ready one
    #[arg(value_name = "ID")]
    task_id: Option<TaskId>,
}

#[derive(Debug, Serialize)]
pub(super) struct Output {
    id: TaskId,
    title: String,
    description: String,
    result: String,
    status: Status,
    priority: Priority,
    creator: String,
    version: i64,
    /// Comments that others left on it so far.
    n_comments: i64,
    /// From whom it was taken over.
    taken_from: Option<String>,
    /// It was mine before.
    already: bool,
}

impl Tool for ClaimTask {
    const NAME: &'static str = "claim_task";
    const COMMAND: &'static str = "claim";
    const ACCESS: Access = Access::Writes;
    const FOUNDS: bool = false;
    type Params = Params;
    type Output = Output;

    fn call(cx: &mut Cx<'_>, params: &Params) -> Result<Output> {
        let (id, taken) = match params.task_id {
            Some(id) => {
                let mut notices = Notices::default();
                let taken = take(cx, id, &mut notices)?;
                notices.send(cx)?;
                (id, taken)
            }
            None => (take_next(cx)?, Taken::Free),
        };
        let task = cx.task(id)?;
        // A task that was only made and claimed has no history to look at.
        let n_comments = if task.version > 2 { cx.tx.count_comments(id)? } else { 0 };
        Ok(Output {
            id,
            title: task.title,
            description: task.description,
            result: task.result,
            status: task.status,
            priority: task.priority,
            creator: task.creator_name,
            version: task.version,
            n_comments,
            already: matches!(taken, Taken::Mine),
            taken_from: match taken {
                Taken::From(name) => Some(name),
                _ => None,
            },
        })
    }
}

/// How a task was had.
#[derive(Debug)]
pub(super) enum Taken {
    /// It was nobody's, or meant for me.
    Free,
    /// I had it already.
    Mine,
    /// From one who does not hold it any more.
    From(String),
}

fn take_next(cx: &Cx<'_>) -> Result<TaskId> {
    if let Some(id) = cx.tx.next_ready_task(cx.me.id)?
        && cx.tx.claim_task(id, cx.me.id, cx.me.name.as_str(), cx.now)?
    {
        return Ok(id);
    }
    let pending = cx.tx.count_tasks(&Board::default(), Status::Pending, 100)?;
    let why = match pending {
        0 => "none is pending".to_owned(),
        n => format!(
            "{} pending, each waits for another task or is meant for another member",
            text::count(n)
        ),
    };
    Err(Error::not_found(format!("no task is ready for you: {why}"))
        .hint("list_tasks shows the board; create_task puts a task on it"))
}

/// Takes a task that can be had.
///
/// # Errors
/// Who has it and since when, what it waits for, or why else it cannot be had.
pub(super) fn take(cx: &mut Cx<'_>, id: TaskId, notices: &mut Notices) -> Result<Taken> {
    let me = cx.me.id;
    if cx.tx.claim_task(id, me, cx.me.name.as_str(), cx.now)? {
        crate::fault::point("after_insert");
        return Ok(Taken::Free);
    }
    let task = cx.task(id)?;
    if task.status == Status::InProgress && task.assignee == Some(me) {
        return Ok(Taken::Mine);
    }
    let Some(holder) = may_be_taken_over(cx, &task)? else { return Err(taken(cx, &task)?) };
    if !cx.tx.claim_task_over(id, task.version, me, cx.me.name.as_str(), cx.now)? {
        return Err(Error::internal("a task changed within a transaction"));
    }
    let old = task.assignee_name.clone().unwrap_or_default();
    cx.log_task(id, "task.taken_over", &old)?;
    let by = &cx.me.name;
    let silent = "you were not heard of for a while";
    notices.add(holder, &task, format!("was taken over by {by}; {silent}"), Next::Stop);
    notices.add(task.creator, &task, format!("was taken over by {by} from {old}"), Next::Nothing);
    Ok(Taken::From(old))
}

/// One who is gone does not hold what it had; what is meant for a member stays so until it left.
fn may_be_taken_over(cx: &Cx<'_>, task: &Task) -> Result<Option<MemberId>> {
    let Some(holder) = task.assignee.filter(|holder| *holder != cx.me.id) else { return Ok(None) };
    let is_free = match task.status {
        Status::InProgress | Status::Blocked => cx.is_gone(holder)?,
        Status::Pending => task.n_waits == 0 && cx.has_left(holder)?,
        Status::Review | Status::Done | Status::Cancelled => false,
    };
    Ok(is_free.then_some(holder))
}

/// Why a task cannot be had.
pub(super) fn taken(cx: &Cx<'_>, task: &Task) -> Result<Error> {
    let (id, status) = (task.id, task.status);
    let holder = task.assignee_name.as_deref().unwrap_or("nobody");
    let since = format!("{} moved it there {}", task.moved_by, cx.now.since(task.moved_at).ago());
    let look = "list_tasks with ready shows what you could claim";
    if task.assignee == Some(cx.me.id) && !status.is_ended() && status != Status::Pending {
        let err = Error::refused(format!("{id} is yours already, and {}; {since}", status.said()));
        return Ok(err.hint("update_task moves it on"));
    }
    if status == Status::Pending && task.assignee.is_some_and(|holder| holder != cx.me.id) {
        return Ok(Error::refused(format!("{id} is meant for {holder}"))
            .hint(format!("{look}; its creator or the human may assign it to you")));
    }
    if status == Status::Pending {
        let waits_for = cx.waits_for(task)?;
        let err = Error::refused(format!("{id} waits for {}", board::waits(&waits_for)));
        let is_stuck = waits_for.iter().any(|it| it.status == Status::Cancelled);
        return Ok(err.hint(if is_stuck {
            "what was cancelled will not be done: reopen it (update_task with status pending), or \
             cancel this task"
        } else {
            look
        }));
    }
    if status.is_ended() {
        return Ok(Error::refused(format!("{id} is {status}; {since}")).hint(look));
    }
    Ok(Error::refused(format!("{id} is taken: {holder} has it, {}; {since}", status.said()))
        .hint(look))
}

/// The facts, and what to do: the description stands behind the fence.
impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let again = if self.already { " already" } else { "" };
        write!(
            f,
            "{} is yours{again}: {}, {}, from {}",
            self.id,
            sanitize::field(&self.title),
            self.priority,
            self.creator
        )?;
        if let Some(name) = &self.taken_from {
            write!(f, "; taken over from {name}")?;
        }
        match self.n_comments {
            0 => {}
            1 => f.write_str("; its history has 1 comment")?,
            n => write!(f, "; its history has {n} comments")?,
        }
        if !self.description.trim().is_empty() {
            write!(f, "\n{}", sanitize::fence(&self.description))?;
        }
        if !self.result.is_empty() {
            let room = limits::QUOTE_BYTES;
            write!(f, "\nresult so far:\n{}", sanitize::fence_cut(&self.result, room))?;
        }
        Ok(())
    }
}
