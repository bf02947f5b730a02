//! What the tools of the task board share: who stands how to a task, how one is shown, and who is
//! told of a change.

use std::fmt;

use serde::Serialize;

use super::Cx;
use crate::{
    domain::{
        id::{MemberId, TaskId},
        limits,
        member::State,
        task::{self, Priority, Status, Step, Who},
        time::Time,
    },
    error::{Error, Result},
    store::{Dependency, Event, Member, Task},
    view::{sanitize, text},
};

impl Cx<'_> {
    /// # Errors
    /// There is no such task.
    pub(super) fn task(&self, id: TaskId) -> Result<Task> {
        self.tx.task(id)?.ok_or_else(|| {
            Error::not_found(format!("there is no task {id}")).hint("list_tasks shows the ids")
        })
    }

    /// The member that a task is meant for: `me`, or one that can be written to.
    pub(super) fn assignee(&self, wanted: &str) -> Result<Member> {
        let wanted = wanted.trim();
        if wanted == "me" || self.me.name.as_str().eq_ignore_ascii_case(wanted) {
            return self.tx.member(self.me.id);
        }
        Ok(self.recipient(wanted)?.member)
    }

    /// What I am to a task, and what became of the others.
    pub(super) fn who(&self, task: &Task) -> Result<Who> {
        let me = Some(self.me.id);
        let holder_gone = match task.assignee.filter(|_| task.assignee != me) {
            Some(holder) => self.is_gone(holder)?,
            None => false,
        };
        Ok(Who {
            is_holder: task.assignee == me,
            is_creator: task.creator == self.me.id,
            is_human: self.me.is_human,
            creator_left: task.creator != self.me.id && self.has_left(task.creator)?,
            holder_gone,
        })
    }

    /// The steps that the caller may take with a task.
    ///
    /// # Errors
    /// The table cannot be read.
    pub fn steps(&self, task: &Task) -> Result<Vec<Status>> {
        let who = self.who(task)?;
        let waits = task.status == Status::Pending && task.n_waits > 0;
        let is_anothers = task.assignee.is_some_and(|member| member != self.me.id);
        let allowed = |to: &Status| match task::step(task.status, *to, who) {
            Ok(Step::Claim) => !waits && (!is_anothers || who.holder_gone),
            Ok(Step::Move) => true,
            _ => false,
        };
        Ok(Status::ALL.into_iter().filter(allowed).collect())
    }

    /// Whether a member does not hold any more what it held.
    pub(super) fn is_gone(&self, member: MemberId) -> Result<bool> {
        let member = self.tx.member(member)?;
        let presence = member.presence(self.is_held(&member));
        Ok(presence.is_gone(self.now) || matches!(presence.state(self.now), State::Left(_)))
    }

    pub(super) fn has_left(&self, member: MemberId) -> Result<bool> {
        let found = self.found(self.tx.member(member)?);
        Ok(matches!(found.state, State::Left(_)))
    }

    /// What a pending task still waits for.
    pub(super) fn waits_for(&self, task: &Task) -> Result<Vec<Dependency>> {
        if task.status != Status::Pending || task.n_waits == 0 {
            return Ok(Vec::new());
        }
        let mut all = self.tx.dependencies(task.id)?;
        all.retain(|dependency| dependency.status != Status::Done);
        Ok(all)
    }

    /// Writes down what was done to a task.
    pub(super) fn log_task(&self, id: TaskId, kind: &'static str, detail: &str) -> Result<()> {
        let event = Event {
            actor: self.me.name.as_str(),
            kind,
            task: Some(id),
            detail: Some(detail.to_owned()),
        };
        self.tx.log(self.now, &event)
    }
}

/// `T3, T5 (cancelled)`: what can never be done says so.
pub(super) fn waits(dependencies: &[Dependency]) -> String {
    let shown: Vec<String> = dependencies
        .iter()
        .map(|dependency| match dependency.status {
            Status::Cancelled => format!("{} (cancelled)", dependency.id),
            _ => dependency.id.to_string(),
        })
        .collect();
    text::list(&shown, 10)
}

/// A task as it is listed.
#[derive(Debug, Serialize)]
pub(super) struct Line {
    pub id: TaskId,
    pub title: String,
    pub status: Status,
    pub priority: Priority,
    pub assignee: Option<String>,
    pub creator: String,
    pub waits_for: Vec<Waiting>,
    pub version: i64,
    pub created_at: Time,
    pub updated_at: Time,
    pub moved_by: String,
    pub moved_at: Time,
    #[serde(skip)]
    now: Time,
}

/// A dependency that is not done.
#[derive(Debug, Serialize)]
pub(super) struct Waiting {
    id: TaskId,
    status: Status,
}

impl Line {
    pub(super) fn new(cx: &Cx<'_>, task: &Task) -> Result<Line> {
        let waits_for = cx.waits_for(task)?.into_iter();
        Ok(Line {
            id: task.id,
            title: task.title.clone(),
            status: task.status,
            priority: task.priority,
            assignee: task.assignee_name.clone(),
            creator: task.creator_name.clone(),
            waits_for: waits_for.map(|it| Waiting { id: it.id, status: it.status }).collect(),
            version: task.version,
            created_at: task.created_at,
            updated_at: task.updated_at,
            moved_by: task.moved_by.clone(),
            moved_at: task.moved_at,
            now: cx.now,
        })
    }
}

/// ``T7 in_progress high codex-1 (2 h): `title`; waits for T3, T5``.
impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let assignee = self.assignee.as_deref().unwrap_or("unassigned");
        let age = self.now.since(self.moved_at);
        write!(
            f,
            "{} {} {} {assignee} ({age}): {}",
            self.id,
            self.status,
            self.priority,
            sanitize::field(&self.title)
        )?;
        let waits_for: Vec<Dependency> =
            self.waits_for.iter().map(|it| Dependency { id: it.id, status: it.status }).collect();
        if waits_for.is_empty() { Ok(()) } else { write!(f, "; waits for {}", waits(&waits_for)) }
    }
}

/// What a member is to do about a notice.
#[derive(Debug, Clone, Copy)]
pub(super) enum Next {
    Nothing,
    Claim,
    Judge,
    Help,
    Stop,
    Reopen,
}

impl Next {
    fn words(self, id: TaskId, is_human: bool) -> String {
        match (self, is_human) {
            (Next::Nothing, _) => String::new(),
            (Next::Claim, false) => ": claim_task before you start".to_owned(),
            (Next::Claim, true) => format!(": run `team-table claim {id}` before you start"),
            (Next::Judge, false) => {
                ": update_task with status done, or in_progress to send it back".to_owned()
            }
            (Next::Judge, true) => format!(
                ": run `team-table update-task {id} --status done`, or in_progress to send it back"
            ),
            (Next::Help, _) => ": answer this message if you can help".to_owned(),
            (Next::Stop, _) => ": do not work on it any more".to_owned(),
            (Next::Reopen, false) => {
                ": it is stuck until that one is reopened (update_task with status pending)"
                    .to_owned()
            }
            (Next::Reopen, true) => ": it is stuck until that one is reopened \
                                     (`team-table update-task`, status pending)"
                .to_owned(),
        }
    }
}

/// What is to be told of one change. A member gets one notice, whatever concerns it.
#[derive(Debug, Default)]
pub(super) struct Notices {
    of: Vec<(MemberId, Vec<Notice>)>,
}

#[derive(Debug)]
struct Notice {
    task: TaskId,
    /// Behind the task's number and title.
    says: String,
    title: String,
    next: Next,
    /// Text of others, to be quoted.
    quoted: String,
}

/// In one notice, more tasks than this are only counted.
const TASKS_TOLD: usize = 5;

impl Notices {
    /// Tells a member of a task, unless it is told something of that task already.
    pub(super) fn add(&mut self, member: MemberId, task: &Task, says: String, next: Next) {
        self.add_quoting(member, task, says, next, String::new());
    }

    pub(super) fn add_quoting(
        &mut self,
        member: MemberId,
        task: &Task,
        says: String,
        next: Next,
        quoted: String,
    ) {
        let notice = Notice { task: task.id, says, title: task.title.clone(), next, quoted };
        match self.of.iter_mut().find(|(other, _)| *other == member) {
            Some((_, notices)) if notices.iter().any(|it| it.task == task.id) => {}
            Some((_, notices)) => notices.push(notice),
            None => self.of.push((member, vec![notice])),
        }
    }

    /// Sends them; nobody is told of its own doing. Returns who was told.
    pub(super) fn send(self, cx: &mut Cx<'_>) -> Result<Vec<String>> {
        let mut told = Vec::new();
        for (member, notices) in self.of {
            let Some(first) = notices.first() else { continue };
            if member == cx.me.id || cx.has_left(member)? {
                continue;
            }
            let member = cx.tx.member(member)?;
            let mut lines: Vec<String> = notices
                .iter()
                .take(TASKS_TOLD)
                .map(|notice| notice.text(member.is_human()))
                .collect();
            let rest: Vec<String> =
                notices.iter().skip(TASKS_TOLD).map(|notice| notice.task.to_string()).collect();
            if !rest.is_empty() {
                lines.push(format!("also: {}", text::list(&rest, 20)));
            }
            cx.notify(&member, Some(first.task), &lines.join("\n"))?;
            told.push(member.name.to_string());
        }
        Ok(told)
    }
}

impl Notice {
    fn text(&self, is_human: bool) -> String {
        let Notice { task, says, next, quoted, .. } = self;
        let mut text = format!(
            "{task} {} {says}{}",
            sanitize::field(&self.title),
            next.words(*task, is_human)
        );
        if !quoted.is_empty() {
            text.extend(["\n", quoted]);
        }
        text
    }
}

/// Text of others for a notice, as far as it quotes.
pub(super) fn quoted(text: &str) -> String {
    if text.trim().is_empty() {
        return String::new();
    }
    sanitize::fence_cut(text, limits::QUOTE_BYTES)
}
