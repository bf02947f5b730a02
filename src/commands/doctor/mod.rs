//! `doctor`: why B does not see A's message.
//!
//! Every area first gathers its facts as data, then says what is wrong with them, then shows them.
//! Nothing is made, changed or waited for. What is certainly wrong is a finding, with one thing to
//! do; what may be meant so is a note.

mod clients;
mod files;
mod hooks;
mod mail;
mod members;
mod message;
mod network;
mod plugin;
mod table;

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use serde::Serialize;

use super::{flush, print_json, print_text};
use crate::{
    config::Config,
    domain::{id::MessageId, time::Time},
    error::{Error, Result},
    store::Checkup,
    view::{sanitize, text},
    workspace::{Nearby, Workspace},
};

/// How often it is looked anew because somebody began to write meanwhile.
const TRIES: u32 = 3;

/// Explain why one agent does not see another's message
///
/// Looks at the table, who sits there, unread mail, the clients' files and their hooks; says what
/// is wrong and the one thing to do. Changes nothing. Exit code 1 if something is wrong.
#[derive(Debug, Default, clap::Args)]
pub struct Args {
    /// Follow this message instead: who was handed it, who read it, and why not
    #[arg(value_name = "MESSAGE_ID")]
    pub message: Option<MessageId>,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Finding {
    area: &'static str,
    what: String,
    #[serde(rename = "do")]
    todo: String,
}

/// What may be wrong, or is worth knowing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Note {
    area: &'static str,
    what: String,
}

/// What was found, area by area.
#[derive(Debug, Default)]
struct Report {
    findings: Vec<Finding>,
    notes: Vec<Note>,
}

impl Report {
    fn wrong(&mut self, area: &'static str, what: impl Into<String>, todo: impl Into<String>) {
        // Two areas may look at one file, and two clients at one program.
        let finding = Finding { area, what: what.into(), todo: todo.into() };
        if !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }

    fn note(&mut self, area: &'static str, what: impl Into<String>) {
        let note = Note { area, what: what.into() };
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// An error as a finding: its hint is what to do.
    fn error(&mut self, area: &'static str, err: &Error, otherwise: &str) {
        self.wrong(area, err.to_string(), err.hint_text().unwrap_or(otherwise));
    }
}

/// Where it is looked.
struct Place<'a> {
    workspace: &'a Workspace,
    config: &'a Config,
    now: Time,
    /// This program.
    program: Option<PathBuf>,
    nearby: Vec<Nearby>,
}

/// All facts.
#[derive(Debug, Default, Serialize)]
struct Facts {
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<message::Facts>,
    table: Option<table::Facts>,
    /// As with the unread mail: none where the table was not looked into.
    members: Option<Vec<members::Row>>,
    unread: Option<Vec<mail::Inbox>>,
    clients: Vec<clients::Facts>,
    hooks: Option<hooks::Facts>,
}

impl Facts {
    fn rows(&self) -> &[members::Row] {
        self.members.as_deref().unwrap_or_default()
    }
}

/// Prints what was found. Returns the exit code.
///
/// # Errors
/// It cannot be printed. What is wrong with the table is no error here, but a finding.
pub fn run(
    args: &Args,
    workspace: Result<Workspace>,
    config: &Config,
    json: bool,
    out: &mut dyn Write,
) -> Result<u8> {
    let (facts, report) = match workspace {
        Ok(workspace) => examined(args, &workspace, config),
        Err(err) => {
            let mut report = Report::default();
            report.error(table::AREA, &err, "name another table with `--db-path`");
            (Facts::default(), report)
        }
    };
    if json {
        print_json(out, &as_json(&facts, &report)?)?;
    } else {
        print_text(out, &as_text(&facts, &report, Time(config.now())))?;
    }
    flush(out)?;
    Ok(u8::from(!report.findings.is_empty()))
}

fn examined(args: &Args, workspace: &Workspace, config: &Config) -> (Facts, Report) {
    let place = Place {
        workspace,
        config,
        now: Time(config.now()),
        program: std::env::current_exe().ok(),
        nearby: workspace.nearby(config),
    };
    for _ in 1..TRIES {
        let (facts, report, is_outdated) = examine(args, &place);
        if !is_outdated {
            return (facts, report);
        }
    }
    let (facts, report, _) = examine(args, &place);
    (facts, report)
}

/// Also says whether somebody began to write to a table that nobody had open.
fn examine(args: &Args, place: &Place<'_>) -> (Facts, Report, bool) {
    let mut report = Report::default();
    let (table, mut checkup) = table::look(place, &mut report);
    // In a table that is not there or empty, no message is.
    let mut is_known = table.is_empty();
    let mut facts = Facts { table: Some(table), ..Facts::default() };
    if let Some(checkup) = &mut checkup {
        let looked = look_inside(args, place, checkup, &mut facts, &mut report);
        is_known = looked.is_ok();
        if let Err(err) = looked {
            report.error(
                table::AREA,
                &err,
                "move the table away, and begin anew or bring back a copy",
            );
        }
    }
    if let Some(id) = args.message {
        if is_known && facts.message.is_none() {
            message::missing(place, id, &mut report);
        } else if checkup.is_none() && report.findings.is_empty() {
            message::not_looked_for(id, &mut report);
        }
    } else {
        facts.clients = clients::look(place, facts.rows(), &mut report);
        facts.hooks = Some(hooks::look(place, &facts, &mut report));
    }
    (facts, report, checkup.is_some_and(|checkup| checkup.is_outdated()))
}

fn look_inside(
    args: &Args,
    place: &Place<'_>,
    checkup: &mut Checkup,
    facts: &mut Facts,
    report: &mut Report,
) -> Result<()> {
    checkup.read(|tx| {
        let rows = members::look(place, tx)?;
        if let Some(id) = args.message {
            facts.message = message::look(place, tx, &rows, id)?;
            if let Some(message) = &facts.message {
                message.judge(place, &rows, report);
            }
        } else {
            members::judge(place, &rows, report);
            let inboxes = mail::look(tx, &rows)?;
            mail::judge(place, &rows, &inboxes, report);
            facts.unread = Some(inboxes);
            facts.members = Some(rows);
        }
        Ok(())
    })
}

fn as_json(facts: &Facts, report: &Report) -> Result<serde_json::Value> {
    let cannot = |err| Error::internal("cannot write JSON").source(err);
    let mut value = serde_json::to_value(facts).map_err(cannot)?;
    if let Some(object) = value.as_object_mut() {
        if facts.hooks.is_none() {
            // Not looked at: that is not the same as empty.
            object.retain(|area, _| [message::AREA, table::AREA].contains(&area.as_str()));
        }
        object.insert("findings".into(), serde_json::to_value(&report.findings).map_err(cannot)?);
        object.insert("notes".into(), serde_json::to_value(&report.notes).map_err(cannot)?);
    }
    Ok(value)
}

fn as_text(facts: &Facts, report: &Report, now: Time) -> String {
    let mut lines = Vec::new();
    let mut section = |area: &'static str, facts: Vec<String>| {
        let findings: Vec<&Finding> = report.findings.iter().filter(|it| it.area == area).collect();
        let notes: Vec<&Note> = report.notes.iter().filter(|it| it.area == area).collect();
        let verdict = match findings.len() {
            0 => "ok".to_owned(),
            n => text::counted(n, "finding"),
        };
        lines.push(format!("{area}: {verdict}"));
        lines.extend(facts.into_iter().map(|fact| format!("  {fact}")));
        for finding in findings {
            lines.extend([format!("! {}", finding.what), format!("  do: {}", finding.todo)]);
        }
        lines.extend(notes.into_iter().map(|note| format!("- {}", note.what)));
    };
    let of_table = facts.table.as_ref();
    if let Some(message) = &facts.message {
        section(message::AREA, message.lines(now));
    } else if facts.hooks.is_none() && of_table.is_some() {
        section(message::AREA, Vec::new());
    }
    section(table::AREA, of_table.map(|table| table.lines(now)).unwrap_or_default());
    if let Some(hooks) = &facts.hooks {
        if let (Some(rows), Some(inboxes)) = (&facts.members, &facts.unread) {
            section(members::AREA, rows.iter().map(|row| row.line(now)).collect());
            section(mail::AREA, mail::lines(inboxes, now));
        }
        section(clients::AREA, facts.clients.iter().map(clients::Facts::line).collect());
        section(hooks::AREA, hooks.lines());
    }
    lines.push(match report.findings.len() {
        0 => "nothing wrong".to_owned(),
        n => text::counted(n, "finding"),
    });
    let lines: Vec<_> = lines.iter().map(|line| sanitize::line(line)).collect();
    lines.join("\n")
}

/// When a file was written.
fn changed_at(path: &Path) -> Option<Time> {
    let age = fs::metadata(path).ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(Time(i64::try_from(age.as_millis()).ok()?))
}
