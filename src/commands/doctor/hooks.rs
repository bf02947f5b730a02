//! Hooks: where they are installed, whether they run, and what went wrong with them.

use std::{
    fs::{self, File},
    io::{Read as _, Seek as _, SeekFrom},
    path::Path,
};

use jiff::Timestamp;
use serde::Serialize;

use super::{
    Place, Report, changed_at,
    files::{self, Own},
    members::Row,
};
use crate::{
    clients::{
        Format,
        survey::{HookTrust, SURVEYS, Survey, hook_events},
    },
    domain::time::{Age, DAY, MINUTE, Time},
    transport::hook::BUSY,
    view::{
        sanitize::{self, field},
        text,
    },
    workspace::HOOK_LOG,
};

pub(super) const AREA: &str = "hooks";

/// So many of its last lines are shown, and of its end so many bytes are read.
const LINES: usize = 3;
const TAIL: u64 = 64 << 10;

#[derive(Debug, Serialize)]
pub(super) struct Facts {
    installed: Vec<Installed>,
    /// The clients whose plugin has hooks.
    of_plugins: Vec<&'static str>,
    /// The last failures.
    log: Vec<String>,
}

/// A client's file with hooks of ours.
#[derive(Debug, Serialize)]
struct Installed {
    client: &'static str,
    file: &'static str,
    events: Vec<String>,
    /// When the file was written.
    changed_at: Option<Time>,
}

pub(super) fn look(place: &Place<'_>, facts: &super::Facts, report: &mut Report) -> Facts {
    let mut installed = Vec::new();
    for survey in SURVEYS {
        let Some(file) = survey.client().hooks_file() else { continue };
        let path = place.workspace.checkout.join(file.path);
        let events = hook_events(&files::read(&path, Format::ANY_JSON, report));
        if events.is_empty() {
            continue;
        }
        let own = Own::read(place, survey, report);
        let found = Installed {
            client: survey.name,
            file: file.path,
            events,
            changed_at: changed_at(&path),
        };
        match survey.may_run_hooks(&own.evidence(), &path.display().to_string()) {
            HookTrust::Runs => found.judge_sessions(survey, facts.rows(), report),
            HookTrust::Refuses { what, todo } => report.wrong(AREA, what, todo),
            HookTrust::CannotTell(why) => report.note(
                AREA,
                format!("cannot tell whether {} runs its hooks: {why}", survey.client()),
            ),
        }
        installed.push(found);
    }
    let has_plugin = facts.clients.iter().filter(|client| client.has_plugin);
    let of_plugins: Vec<&str> = has_plugin.map(|client| client.client).collect();
    if installed.is_empty() && of_plugins.is_empty() {
        report.note(
            AREA,
            "without hooks an agent hears of mail only when it calls a tool; `team-table init \
             --with hooks` installs them",
        );
    }
    let log = last_lines(&place.workspace.hook_log());
    judge_log(&log, place, report);
    Facts { installed, of_plugins, log }
}

impl Installed {
    /// A session that called tools since the hooks are there should have run one.
    fn judge_sessions(&self, survey: &Survey, rows: &[Row], report: &mut Report) {
        for row in rows.iter().filter(|row| row.seated) {
            let Some(session) = &row.session else { continue };
            if session.family != survey.name || session.hook_at.is_some() {
                continue;
            }
            let from = self.changed_at.map_or(session.began_at, |at| at.max(session.began_at));
            let has_called = row.last_seen_at.is_some_and(|at| at.since(from) >= Age(MINUTE));
            let was_before = self.changed_at.is_some_and(|at| at > session.began_at);
            if has_called || was_before {
                report.wrong(
                    AREA,
                    format!(
                        "`{}` has hooks, but none ran in the session of {}",
                        self.file, row.name
                    ),
                    format!(
                        "end {} and start it again: it reads hooks when it starts",
                        survey.client()
                    ),
                );
            }
        }
    }

    fn line(&self) -> String {
        let title = Survey::of(self.client).map_or(self.client, |survey| survey.client().title);
        let events: Vec<String> = self.events.iter().map(|event| field(event)).collect();
        format!("{title}: `{}` has hooks at {}", self.file, text::list(&events, 8))
    }
}

fn judge_log(log: &[String], place: &Place<'_>, report: &mut Report) {
    let Some(last) = log.iter().rev().find(|line| !line.contains(BUSY)) else {
        if !log.is_empty() {
            report.note(AREA, format!("lately a hook said nothing, since {BUSY}"));
        }
        return;
    };
    if time_of(last).is_some_and(|at| place.now.since(at) > Age(DAY)) {
        report.note(AREA, format!("the last failure of a hook in `{HOOK_LOG}` is over a day old"));
        return;
    }
    let path = place.workspace.hook_log();
    let shown = path.strip_prefix(&place.workspace.cwd).unwrap_or(&path);
    report.wrong(
        AREA,
        format!("a hook failed: {}", sanitize::quote(last)),
        format!("mend what it says, then delete `{}`", shown.display()),
    );
}

impl Facts {
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.installed.iter().map(Installed::line).collect();
        lines.extend(self.of_plugins.iter().map(|name| {
            let title = Survey::of(name).map_or(*name, |survey| survey.client().title);
            format!("{title}: its plugin has hooks")
        }));
        if lines.is_empty() {
            lines.push("none are installed".to_owned());
        }
        lines
            .extend(self.log.iter().map(|line| format!("`{HOOK_LOG}`: {}", sanitize::quote(line))));
        lines
    }
}

/// The last lines of a file that may be of any size and hold anything.
fn last_lines(path: &Path) -> Vec<String> {
    let tail = || -> Option<Vec<u8>> {
        let meta = fs::metadata(path).ok()?;
        if !meta.is_file() {
            return None;
        }
        let mut file = File::open(path).ok()?;
        file.seek(SeekFrom::Start(meta.len().saturating_sub(TAIL))).ok()?;
        let mut bytes = Vec::new();
        file.take(TAIL).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    };
    let bytes = tail().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines.iter().skip(lines.len().saturating_sub(LINES)).map(|line| (*line).to_owned()).collect()
}

/// When a line says that it was written.
fn time_of(line: &str) -> Option<Time> {
    let at: Timestamp = line.split_whitespace().next()?.parse().ok()?;
    Some(Time(at.as_millisecond()))
}
