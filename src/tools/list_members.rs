//! `list_members`: who is here, where, and what they do.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Access, Cx, Tool};
use crate::{
    domain::{id::TaskId, limits, member::State, task::Status, time::Time},
    error::Result,
    store::Member,
    view::{sanitize, text},
};

pub(super) struct ListMembers;

/// List who else is here: agents, their state, role, place and what they do
#[derive(Debug, Deserialize, schemars::JsonSchema, clap::Args)]
pub(super) struct Params {
    #[arg(long, help = "Also those who left", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    include_left: Option<bool>,
}

#[derive(Debug, Serialize)]
pub(super) struct Output {
    members: Vec<MemberLine>,
}

/// A member as it is listed.
#[derive(Debug, Serialize)]
pub struct MemberLine {
    pub name: String,
    pub you: bool,
    pub state: &'static str,
    pub last_seen_at: Option<Time>,
    pub role: String,
    pub capabilities: Vec<String>,
    pub note: String,
    /// The name that it goes by now, where it moved.
    pub moved_to: Option<String>,
    /// Tasks that it holds.
    pub tasks: Vec<TaskLine>,
    /// Patterns of files that it has reserved.
    pub reserved: Vec<String>,
    /// The session that sits there now.
    pub session: Option<SessionLine>,
    #[serde(skip)]
    pub shown: State,
}

/// A task as it is named beside its holder.
#[derive(Debug, Clone, Serialize)]
pub struct TaskLine {
    pub id: TaskId,
    pub status: Status,
    pub title: String,
}

#[derive(Debug, Serialize)]
pub struct SessionLine {
    pub client: String,
    pub client_version: String,
    pub checkout: String,
    pub branch: Option<String>,
    pub pid: u32,
    pub server_version: String,
}

impl Tool for ListMembers {
    const NAME: &'static str = "list_members";
    const COMMAND: &'static str = "members";
    const ACCESS: Access = Access::Reads;
    type Params = Params;
    type Output = Output;

    fn call(cx: &mut Cx<'_>, params: &Params) -> Result<Output> {
        let include_left = params.include_left.unwrap_or(false);
        let mut members = MemberLine::all(cx)?;
        members.retain(|line| include_left || !line.shown.has_left());
        Ok(Output { members })
    }
}

impl MemberLine {
    /// Everybody, also who left.
    ///
    /// # Errors
    /// The table cannot be read.
    pub fn all(cx: &Cx<'_>) -> Result<Vec<MemberLine>> {
        let mut lines = Vec::new();
        let tasks = cx.tx.held_tasks(limits::OPEN_TASKS)?;
        let reservations = cx.tx.reservations(cx.now)?;
        for member in cx.tx.members()? {
            let mut line = MemberLine::new(cx, &member)?;
            let held = tasks.iter().filter(|task| task.assignee == Some(member.id));
            line.tasks.extend(held.map(|task| TaskLine {
                id: task.id,
                status: task.status,
                title: task.title.clone(),
            }));
            let reserved = reservations.iter().filter(|it| it.holder == member.id);
            line.reserved.extend(reserved.map(|it| it.pattern.clone()));
            lines.push(line);
        }
        Ok(lines)
    }

    fn new(cx: &Cx<'_>, member: &Member) -> Result<MemberLine> {
        let held = cx.is_held(member);
        let session = match member.session.filter(|_| held) {
            Some(id) => cx.tx.session(id)?,
            None => None,
        };
        let shown = member.presence(held).state(cx.now);
        Ok(MemberLine {
            name: member.name.to_string(),
            you: member.id == cx.me.id,
            state: shown.word(),
            last_seen_at: member.heartbeat_at,
            role: member.role.clone(),
            capabilities: member.capabilities.clone(),
            note: member.note.clone(),
            moved_to: match member.moved_to {
                Some(id) => Some(cx.tx.member(id)?.name.to_string()),
                None => None,
            },
            tasks: Vec::new(),
            reserved: Vec::new(),
            session: session.map(|session| SessionLine {
                client: session.client,
                client_version: session.client_version,
                checkout: session.checkout,
                branch: session.branch,
                pid: session.pid,
                server_version: session.server_version,
            }),
            shown,
        })
    }

    /// `codex-1 (idle 12 min, role `reviewer`)`.
    pub fn brief(&self) -> String {
        match self.role.as_str() {
            "" => format!("{} ({})", self.name, self.shown),
            role => format!("{} ({}, role {})", self.name, self.shown, sanitize::field(role)),
        }
    }
}

/// Lists members as far as a result has room, and says how many are left out.
impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.members.len();
        f.write_str(&text::counted(n, "member"))?;
        let mut room = limits::RESULT_BYTES - limits::ASIDE_BYTES;
        for (n_shown, member) in self.members.iter().enumerate() {
            let line = member.to_string();
            if line.len() + 1 > room {
                return write!(f, "\n{} more are not shown here", n - n_shown);
            }
            room -= line.len() + 1;
            write!(f, "\n{line}")?;
        }
        Ok(())
    }
}

/// `T3 review `title``; what is in progress goes without saying.
impl fmt::Display for TaskLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.id)?;
        if self.status != Status::InProgress {
            write!(f, "{} ", self.status)?;
        }
        f.write_str(&sanitize::field(&self.title))
    }
}

impl fmt::Display for MemberLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let you = if self.you { " (you)" } else { "" };
        write!(f, "{}{you}: {}", self.name, self.shown)?;
        if let Some(name) = &self.moved_to {
            write!(f, ", now `{name}`")?;
        }
        if !self.role.is_empty() {
            write!(f, "; role {}", sanitize::field(&self.role))?;
        }
        if !self.note.is_empty() {
            write!(f, "; working on {}", sanitize::field(&self.note))?;
        }
        if !self.tasks.is_empty() {
            let tasks: Vec<String> = self.tasks.iter().map(ToString::to_string).collect();
            write!(f, "; has {}", text::list(&tasks, 3))?;
        }
        if !self.reserved.is_empty() {
            let reserved: Vec<String> =
                self.reserved.iter().map(|pattern| sanitize::field(pattern)).collect();
            write!(f, "; reserved {}", text::list(&reserved, 3))?;
        }
        if !self.capabilities.is_empty() {
            let shown: Vec<String> =
                self.capabilities.iter().map(|text| sanitize::field(text)).collect();
            write!(f, "; good at {}", text::list(&shown, limits::CAPABILITIES))?;
        }
        if let Some(session) = &self.session {
            write!(
                f,
                "; {}",
                sanitize::field(&format!("{} {}", session.client, session.client_version))
            )?;
            write!(f, " in {}", sanitize::field(&session.checkout))?;
            if let Some(branch) = &session.branch {
                write!(f, " on {}", sanitize::field(branch))?;
            }
            match session.pid {
                0 => f.write_str(", over the network")?,
                pid => write!(f, ", pid {pid}")?,
            }
        }
        Ok(())
    }
}
