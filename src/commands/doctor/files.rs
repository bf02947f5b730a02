//! The files that clients and people keep: where they are, and what they say.

use std::{io, path::Path};

use serde_json::Value;

use super::{Place, Report, clients::AREA};
use crate::{
    clients::{
        self, Client, Format,
        survey::{Entry, Evidence, Survey},
        value,
    },
    error::Error,
    platform,
    view::sanitize::{self, field},
    workspace::Reason,
};

/// What a person's files and the project's settings say of one client.
pub(super) struct Own {
    folders: Vec<String>,
    above: Vec<String>,
    files: Vec<Value>,
    settings: Vec<Value>,
}

impl Own {
    pub(super) fn read(place: &Place<'_>, survey: &Survey, report: &mut Report) -> Own {
        let workspace = place.workspace;
        let shown = |path: &Path| path.display().to_string();
        let mut tops = vec![workspace.checkout.as_path()];
        if let Reason::MainCheckout { main, .. } = &workspace.reason {
            tops.push(main);
        }
        let inside = workspace.cwd.ancestors();
        let mut folders: Vec<String> =
            inside.take_while(|dir| *dir != workspace.checkout).map(shown).collect();
        folders.extend(tops.iter().map(|top| shown(top)));
        let above = tops.iter().flat_map(|top| top.ancestors().skip(1)).map(shown).collect();
        let files = survey.own.iter().map(|file| {
            let path = survey.own_path(file, place.config);
            path.map_or(Value::Null, |path| read(&path, file.format, report))
        });
        let files = files.collect();
        let settings = survey
            .settings
            .iter()
            .map(|file| read(&workspace.checkout.join(file), Format::ANY_JSON, report));
        Own { folders, above, files, settings: settings.collect() }
    }

    pub(super) fn evidence(&self) -> Evidence<'_> {
        Evidence {
            folders: &self.folders,
            above: &self.above,
            own: &self.files,
            settings: &self.settings,
        }
    }
}

/// What a file says; `Null` where there is none. One that cannot be understood is a finding.
pub(super) fn read(path: &Path, format: Format, report: &mut Report) -> Value {
    let broken = |report: &mut Report, what: String| {
        let path = field(&path.display().to_string());
        report.wrong(AREA, format!("{path} {what}"), "mend that place: its client may not read it");
        Value::Null
    };
    match platform::read_file(path) {
        Ok(bytes) => match String::from_utf8(bytes) {
            Ok(text) => {
                value::parse(&text, format).unwrap_or_else(|fault| broken(report, at(&fault)))
            }
            Err(_) => broken(report, "is not UTF-8".to_owned()),
        },
        Err(err) => {
            let is_absent = [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory];
            if !is_absent.contains(&err.kind()) {
                report.note(AREA, Error::io("read", path, err).to_string());
            }
            Value::Null
        }
    }
}

pub(super) fn text_of(path: &Path) -> Option<String> {
    String::from_utf8(platform::read_file(path).ok()?).ok()
}

pub(super) fn at(fault: &clients::Fault) -> String {
    format!("line {}, column {}: {}", fault.line, fault.column, sanitize::quote(&fault.text))
}

/// Where a client's servers are: the file that has our entry, else one that is there.
pub(super) fn spot(client: &Client, top: &Path) -> &'static str {
    let file = client.server_file();
    let has_ours = |name: &&str| {
        let text = text_of(&top.join(name)).unwrap_or_default();
        value::parse(&text, file.format)
            .is_ok_and(|value| Entry::read(&value, client.section()).is_some())
    };
    let is_there = |name: &&str| top.join(name).exists();
    file.paths().find(has_ours).or_else(|| file.paths().find(is_there)).unwrap_or(file.path)
}
