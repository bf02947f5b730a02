//! `create_task`: puts a task on the board.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{
    Access, Cx, Tool,
    board::{self, Next, Notices},
    content::LongText,
};
use crate::{
    domain::{
        id::TaskId,
        limits, message,
        task::{Priority, Status},
    },
    error::{Error, Result},
    store::{Dependency, NewTask},
};

pub(super) struct CreateTask;

/// Put a task on the team's task board
#[derive(Debug, Deserialize, schemars::JsonSchema, clap::Args)]
pub(super) struct Params {
    #[arg(allow_hyphen_values = true, help = "One line: what is to be done")]
    title: String,
    /// What to do, and when it is done
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    description: Option<LongText>,
    /// Left out: anyone may claim it
    #[arg(long, value_name = "NAME")]
    assignee: Option<String>,
    #[serde(default)]
    #[arg(
        long,
        help = "How urgent it is",
        value_enum,
        default_value_t,
        hide_possible_values = false
    )]
    priority: Priority,
    /// Tasks to finish first
    #[arg(
        long,
        value_name = "ID",
        value_delimiter = ',',
        help = "Tasks to finish first, with commas: T1,T3"
    )]
    depends_on: Option<Vec<TaskId>>,
}

#[derive(Debug, Serialize)]
pub(super) struct Output {
    id: TaskId,
    status: Status,
    priority: Priority,
    assignee: Option<String>,
    waits_for: Vec<TaskId>,
    told: Vec<String>,
}

impl Tool for CreateTask {
    const NAME: &'static str = "create_task";
    const COMMAND: &'static str = "create-task";
    const ACCESS: Access = Access::Writes;
    type Params = Params;
    type Output = Output;

    fn call(cx: &mut Cx<'_>, params: &Params) -> Result<Output> {
        let title = title(&params.title)?;
        let description = params.description.as_ref().map_or("", |text| text.0.as_str());
        Cx::check_text("the description", description)?;
        let assignee = match params.assignee.as_deref().map(str::trim) {
            None | Some("") => None,
            Some(name) => Some(cx.assignee(name)?),
        };
        let depends_on = params.depends_on.as_deref().unwrap_or_default();
        let waits_for = dependencies(cx, depends_on)?;
        let new = NewTask {
            title: &title,
            description,
            priority: params.priority,
            creator: cx.me.id,
            assignee: assignee.as_ref().map(|member| member.id),
            depends_on,
            n_waits: waits_for.len(),
            by: cx.me.name.as_str(),
        };
        let id = cx.tx.insert_task(&new, cx.now)?;
        crate::fault::point("after_insert");
        let mut told = Vec::new();
        if let Some(assignee) = &assignee {
            cx.log_task(id, "task.assigned", assignee.name.as_str())?;
            let task = cx.task(id)?;
            let (by, priority) = (&cx.me.name, task.priority);
            let mut notices = Notices::default();
            let says = format!("({priority}) is assigned to you by {by}");
            let (says, next) = match waits_for.as_slice() {
                [] => (says, Next::Claim),
                on => (format!("{says}; it waits for {}", board::waits(on)), Next::Nothing),
            };
            notices.add_quoting(assignee.id, &task, says, next, board::quoted(description));
            told = notices.send(cx)?;
        }
        Ok(Output {
            id,
            status: Status::Pending,
            priority: params.priority,
            assignee: assignee.map(|member| member.name.to_string()),
            waits_for: waits_for.into_iter().map(|dependency| dependency.id).collect(),
            told,
        })
    }
}

fn title(text: &str) -> Result<String> {
    if text.trim().is_empty() {
        return Err(Error::invalid("the title is empty").hint("say in one line what is to be done"));
    }
    message::one_line("title", text)
        .map_err(|err| err.hint("say it shorter, and put the rest into `description`"))
}

/// Checks what a new task depends on; gives what is not done yet.
///
/// Circles cannot arise: dependencies are given when a task is created and never again, and then
/// its own number is that of no task yet.
fn dependencies(cx: &Cx<'_>, wanted: &[TaskId]) -> Result<Vec<Dependency>> {
    if wanted.len() > limits::DEPENDENCIES {
        return Err(Error::invalid(format!(
            "`depends_on` names {} tasks; at most {} are allowed",
            wanted.len(),
            limits::DEPENDENCIES
        ))
        .hint("depend on one task that depends on the others"));
    }
    let mut open = Vec::new();
    for (n, id) in wanted.iter().enumerate() {
        if wanted.iter().take(n).any(|other| other == id) {
            return Err(Error::invalid(format!("`depends_on` names {id} twice")));
        }
        match cx.task(*id)?.status {
            Status::Done => {}
            Status::Cancelled => {
                return Err(Error::refused(format!("{id} was cancelled: it will never be done"))
                    .hint("leave it out, or reopen it first: update_task with status pending"));
            }
            status => open.push(Dependency { id: *id, status }),
        }
    }
    Ok(open)
}

/// `created T7 (high) for codex-1; waits for T3; told codex-1`.
impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "created {} ({})", self.id, self.priority)?;
        if let Some(assignee) = &self.assignee {
            write!(f, " for {assignee}")?;
        }
        if !self.waits_for.is_empty() {
            let ids: Vec<String> = self.waits_for.iter().map(ToString::to_string).collect();
            write!(f, "; waits for {}", ids.join(", "))?;
        }
        if !self.told.is_empty() {
            write!(f, "; told {}", self.told.join(", "))?;
        }
        Ok(())
    }
}
