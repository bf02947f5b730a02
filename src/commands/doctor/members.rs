//! Who sits there, with what, and who is away.

use std::path::Path;

use serde::Serialize;

use super::{Place, Report};
use crate::{
    clients::survey::Survey,
    domain::{
        id::{MemberId, MessageId, SessionId},
        member::State,
        name::MemberName,
        time::{Age, HOUR, Time},
    },
    error::Result,
    platform::{self, Process},
    seat::Seats,
    store::Tx,
    view::{sanitize::field, text},
};

pub(super) const AREA: &str = "members";

/// The version of this program, which sessions are compared with.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A session that was silent for so long may be kept by its client's daemon alone.
const MAYBE_CLOSED_AFTER: i64 = 4 * HOUR;

/// A member, and the session that sits there or sat there last.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) name: MemberName,
    pub(super) state: &'static str,
    /// A session sits on the seat.
    pub(super) seated: bool,
    pub(super) last_seen_at: Option<Time>,
    /// The name that it goes by now.
    pub(super) moved_to: Option<String>,
    pub(super) session: Option<Session>,
    #[serde(skip)]
    pub(super) id: MemberId,
    #[serde(skip)]
    pub(super) is_human: bool,
    #[serde(skip)]
    pub(super) shown: State,
}

#[derive(Debug, Serialize)]
pub(super) struct Session {
    pub(super) id: SessionId,
    pub(super) family: String,
    pub(super) client: String,
    client_version: String,
    server_version: String,
    pid: u32,
    pub(super) checkout: String,
    branch: Option<String>,
    pub(super) began_at: Time,
    pub(super) hook_at: Option<Time>,
    pub(super) announced_to: MessageId,
    /// What the system tells of its process; none where it cannot be seen from here.
    process: Option<Running>,
}

#[derive(Debug, Serialize)]
struct Running {
    program: String,
    is_deleted: bool,
    is_stopped: bool,
    is_orphan: bool,
}

pub(super) fn look(place: &Place<'_>, tx: &Tx<'_>) -> Result<Vec<Row>> {
    let seats = Seats::new(place.workspace.seats.clone());
    let mut rows = Vec::new();
    for member in tx.members()? {
        let seated = seats.is_held(&member.name);
        let shown = member.presence(seated).state(place.now);
        rows.push(Row {
            state: shown.word(),
            seated,
            last_seen_at: member.heartbeat_at,
            moved_to: match member.moved_to {
                Some(id) => Some(tx.member(id)?.name.to_string()),
                None => None,
            },
            session: member.session.map(|id| session(tx, id, seated)).transpose()?.flatten(),
            id: member.id,
            is_human: member.is_human(),
            shown,
            name: member.name,
        });
    }
    Ok(rows)
}

pub(super) fn session(tx: &Tx<'_>, id: SessionId, seated: bool) -> Result<Option<Session>> {
    let (Some(session), Some(hooks)) = (tx.session(id)?, tx.hook_marks(id)?) else {
        return Ok(None);
    };
    let process = Some(session.pid).filter(|pid| seated && *pid > 0).and_then(platform::process);
    Ok(Some(Session {
        id,
        family: session.family,
        client: session.client,
        client_version: session.client_version,
        server_version: session.server_version,
        pid: session.pid,
        checkout: session.checkout,
        branch: session.branch,
        began_at: session.began_at,
        hook_at: hooks.hook_at,
        announced_to: hooks.announced_to,
        process: process.filter(is_ours).map(|process| Running {
            program: process.program.display().to_string(),
            is_deleted: process.is_deleted,
            is_stopped: process.is_stopped,
            is_orphan: process.is_orphan,
        }),
    }))
}

/// In a container the number may be another process's.
fn is_ours(process: &Process) -> bool {
    crate::clients::starts_us(&process.program.to_string_lossy())
}

pub(super) fn judge(place: &Place<'_>, rows: &[Row], report: &mut Report) {
    for row in rows.iter().filter(|row| row.seated) {
        if let Some(session) = &row.session {
            row.judge_program(session, place, report);
            row.judge_process(session, report);
        }
        if let Some(age) = row.silent(place.now).filter(|age| age.0 >= MAYBE_CLOSED_AFTER) {
            report
                .note(AREA, format!("{} was silent for {age}: its window may be closed", row.name));
        }
    }
    let seated: Vec<&Row> = rows.iter().filter(|row| row.seated).collect();
    for (n, row) in seated.iter().enumerate() {
        let others: Vec<&str> = seated
            .iter()
            .filter(|other| other.name.is_variant_of(&row.name))
            .map(|other| other.name.as_str())
            .collect();
        let is_first = !seated.iter().take(n).any(|other| other.name.is_variant_of(&row.name));
        if is_first && !others.is_empty() {
            let others = text::list(&others, 5);
            report.note(
                AREA,
                format!("{} and {others} are different agents: each has its own mail", row.name),
            );
        }
    }
}

impl Row {
    fn silent(&self, now: Time) -> Option<Age> {
        self.last_seen_at.map(|at| now.since(at))
    }

    fn judge_program(&self, session: &Session, place: &Place<'_>, report: &mut Report) {
        let (name, theirs) = (&self.name, &session.server_version);
        if theirs != VERSION {
            let todo = if is_newer(theirs, VERSION) {
                format!("install team-table {theirs} here, too: this is {VERSION}")
            } else {
                session.restart()
            };
            let theirs = field(theirs);
            report.wrong(
                AREA,
                format!("{name} has a server of version {theirs}, and this is {VERSION}"),
                todo,
            );
        } else if let Some(process) = &session.process {
            if process.is_deleted {
                report.wrong(
                    AREA,
                    format!(
                        "{name} runs a program that was replaced since, {}",
                        field(&process.program)
                    ),
                    session.restart(),
                );
            } else if let Some(ours) = &place.program
                && !platform::same_file(ours, Path::new(&process.program))
            {
                report.note(
                    AREA,
                    format!("{name} runs another file than this, {}", field(&process.program)),
                );
            }
        }
    }

    fn judge_process(&self, session: &Session, report: &mut Report) {
        let Some(process) = &session.process else { return };
        let (name, pid) = (&self.name, session.pid);
        if process.is_stopped {
            report.wrong(
                AREA,
                format!("the server of {name} is stopped (pid {pid}), so it answers nobody"),
                format!("run `kill -CONT {pid}`, or `fg` where its client was stopped"),
            );
        } else if process.is_orphan {
            report.wrong(
                AREA,
                format!("the client of {name} has ended and left its server behind (pid {pid})"),
                format!("run `kill {pid}`: then the seat is free"),
            );
        }
    }

    /// Whether it could sit there, but does not.
    pub(super) fn is_away(&self) -> bool {
        !self.seated && !self.is_human && !self.shown.has_left()
    }

    /// Whoever sits there under a name that was tried instead of this one.
    pub(super) fn sibling<'a>(&self, rows: &'a [Row]) -> Option<&'a Row> {
        rows.iter().find(|other| other.seated && other.name.is_variant_of(&self.name))
    }

    pub(super) fn line(&self, now: Time) -> String {
        let mut line = format!("{}: {}", self.name, self.shown);
        if let Some(name) = &self.moved_to {
            line.extend([", now ", name]);
        }
        let Some(session) = self.session.as_ref().filter(|_| self.seated) else { return line };
        let client = field(&format!("{} {}", session.client, session.client_version));
        line.extend(["; ", &client, " in ", &field(&session.checkout)]);
        if let Some(branch) = &session.branch {
            line.extend([" on ", &field(branch)]);
        }
        let (way, server) = (session.way(), session.server_version.escape_debug());
        format!("{line}, {way}, server {server}, {}", session.hooks(now))
    }
}

impl Session {
    pub(super) fn restart(&self) -> String {
        match Survey::of(&self.family) {
            Some(survey) => survey.restart.to_owned(),
            None => format!("end {} and start it again", field(&self.client)),
        }
    }

    pub(super) fn hooks(&self, now: Time) -> String {
        match self.hook_at {
            Some(at) => format!("last hook {}", now.since(at).ago()),
            None => "no hook yet".to_owned(),
        }
    }

    /// `claude-code, pid 41`.
    pub(super) fn brief(&self) -> String {
        format!("{}, {}", field(&self.client), self.way())
    }

    fn way(&self) -> String {
        match self.pid {
            0 => "over the network".to_owned(),
            pid => format!("pid {pid}"),
        }
    }
}

/// Versions by their numbers: `0.10.0` is newer than `0.9.9`.
fn is_newer(version: &str, than: &str) -> bool {
    let numbers = |text: &str| -> Vec<u64> {
        text.split(['.', '-', '+']).map_while(|part| part.parse().ok()).collect()
    };
    numbers(version) > numbers(than)
}

#[cfg(test)]
mod tests {
    use super::is_newer;

    #[test]
    fn versions() {
        assert!(is_newer("0.10.0", "0.9.9") && is_newer("1.0", "0.99.1"));
        assert!(!is_newer("0.3.0", "0.3.0") && !is_newer("x", "0.1"));
    }
}
