//! What each client's files say: whether it starts our server here, which one, and as whom.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use serde::Serialize;

use super::{
    Place, Report,
    files::{Own, at, read, spot, text_of},
    members::Row,
    network, plugin,
};
use crate::{
    clients::{
        self, Client, Format, KEY, Link, Server, State,
        survey::{Entry, SURVEYS, Survey, Verdict},
        value,
    },
    platform,
    view::sanitize::{self, field},
    workspace::Reason,
};

pub(super) const AREA: &str = "clients";

/// How long another program may take to say its version.
const VERSION_TRIES: u32 = 200;
const BETWEEN_TRIES: Duration = Duration::from_millis(10);

/// A client as its files tell of it.
#[derive(Debug, Serialize)]
pub(super) struct Facts {
    pub(super) client: &'static str,
    file: &'static str,
    /// The file names our server.
    is_set_up: bool,
    command: Option<String>,
    args: Vec<String>,
    /// The address of a server on the network that it calls instead.
    url: Option<String>,
    /// The file that the command leads to.
    program: Option<String>,
    name: Option<String>,
    /// Whether it starts the server here, in words.
    starts: String,
    /// The person's own config of the client names our server.
    #[serde(skip)]
    has_own_config: bool,
    /// The client has our plugin, and with it our hooks.
    pub(super) has_plugin: bool,
}

pub(super) fn look(place: &Place<'_>, rows: &[Row], report: &mut Report) -> Vec<Facts> {
    let mut all = Vec::new();
    let mut is_started = rows.iter().any(|row| row.seated);
    let mut seen: Vec<&str> = Vec::new();
    for survey in SURVEYS {
        let sits = rows.iter().any(|row| sits_here(row, survey, place));
        let client = survey.client();
        let file = spot(client, &place.workspace.checkout);
        let is_shared = seen.contains(&file);
        let checked = Check { place, survey, client, file, is_shared, sits };
        if !checked.is_of_interest() {
            continue;
        }
        seen.push(file);
        let own = Own::read(place, survey, report);
        let facts = checked.run(&own, report);
        is_started |= facts.is_set_up || facts.has_own_config || facts.has_plugin;
        all.push(facts);
    }
    judge_names(&all, rows, report);
    // What was found by now says more.
    if !is_started && !report.findings.iter().any(|finding| finding.area == AREA) {
        report.wrong(AREA, "no client starts team-table here", "run `team-table init`");
    }
    all
}

const OWN_CONFIG: &str = "its own config names the server";

fn sits_here(row: &Row, survey: &Survey, place: &Place<'_>) -> bool {
    let Some(session) = row.session.as_ref().filter(|_| row.seated) else { return false };
    session.family == survey.name && Path::new(&session.checkout) == place.workspace.checkout
}

/// One client, while its files are looked at.
struct Check<'a> {
    place: &'a Place<'a>,
    survey: &'static Survey,
    client: &'static Client,
    /// Where its servers are, from the top of the checkout.
    file: &'static str,
    /// What there is to say of that file was said of another client's.
    is_shared: bool,
    /// A session of it sits there from this checkout.
    sits: bool,
}

impl Check<'_> {
    /// Most people have few of the clients that there are.
    fn is_of_interest(&self) -> bool {
        let top = &self.place.workspace.checkout;
        let is_there = |name: &str| top.join(name).exists();
        let has_sign = self.client.signs.iter().any(|sign| is_there(sign));
        self.client.is_usual() || self.sits || has_sign || (!self.is_shared && is_there(self.file))
    }

    fn run(&self, own: &Own, report: &mut Report) -> Facts {
        let (client, survey) = (self.client, self.survey);
        let path = self.path();
        let file = read(&path, client.server_file().format, report);
        let entry = Entry::read(&file, client.section());
        if !self.is_shared {
            self.judge_layout(&path, report);
            self.judge_ignored(report);
        }
        let mut facts = Facts {
            client: survey.name,
            file: self.file,
            is_set_up: entry.is_some(),
            command: None,
            args: Vec::new(),
            url: None,
            program: None,
            name: None,
            starts: String::new(),
            has_own_config: false,
            has_plugin: plugin::is_installed(survey, &own.evidence()),
        };
        let verdict = survey.judge(&own.evidence());
        facts.has_own_config = verdict == Verdict::StartsAnyway;
        let Some(entry) = entry else {
            facts.starts = if facts.has_own_config {
                OWN_CONFIG.to_owned()
            } else if facts.has_plugin {
                plugin::STARTS.to_owned()
            } else {
                if !self.is_shared {
                    self.judge_absent(report);
                }
                "not set up here".to_owned()
            };
            return facts;
        };
        if !self.is_shared {
            self.judge_entry(&entry, report);
            if facts.has_plugin {
                plugin::judge(survey, &entry, report);
            }
            facts.program = self
                .program(entry.command.as_deref().unwrap_or_default(), report)
                .map(|program| program.display().to_string());
            let name = entry.option("--name").or_else(|| entry.variable("TEAM_TABLE_NAME"));
            facts.name = name.map(Into::into);
        }
        let verb = if entry.url.is_some() { "call" } else { "start" };
        facts.starts = self.judge_trust(verdict, verb, report);
        facts.url = entry.url;
        facts.command = entry.command;
        facts.args = entry.args;
        facts
    }

    fn file(&self) -> String {
        format!("`{}`", self.file)
    }

    fn path(&self) -> PathBuf {
        self.place.workspace.checkout.join(self.file)
    }

    /// What the client itself will not take, and what two readers understand in two ways.
    fn judge_layout(&self, path: &Path, report: &mut Report) {
        let Some(text) = text_of(path) else { return };
        let Ok(_) = value::parse(&text, self.client.server_file().format) else { return };
        let fault = self
            .client
            .server_file()
            .complaint(&text)
            .or_else(|| self.client.server_file().look(&text).err());
        if let Some(fault) = fault {
            report.wrong(
                AREA,
                format!("{} will not take {} {}", self.client, self.file(), at(&fault)),
                "mend that place",
            );
        }
    }

    fn judge_ignored(&self, report: &mut Report) {
        for file in self.survey.ignored {
            let path = self.place.workspace.checkout.join(file);
            let value = read(&path, Format::ANY_JSON, report);
            if Entry::read(&value, self.client.section()).is_some() {
                report.wrong(
                    AREA,
                    format!("`{file}` names the server, where {} looks for none", self.client),
                    format!(
                        "take it out there and run `team-table init --client {}`",
                        self.survey.name
                    ),
                );
            }
        }
    }

    /// A worktree may lack what its main checkout has.
    fn judge_absent(&self, report: &mut Report) {
        let Reason::MainCheckout { main, .. } = &self.place.workspace.reason else { return };
        let there = main.join(spot(self.client, main));
        let file = read(&there, self.client.server_file().format, report);
        if Entry::read(&file, self.client.section()).is_some() && !self.sits {
            report.wrong(
                AREA,
                format!(
                    "`{}` is in the main checkout and not in this worktree, so {} starts no server \
                     here",
                    spot(self.client, main),
                    self.client
                ),
                format!(
                    "commit it, or run {} in this worktree",
                    network::init_as_in(self.client, &there)
                ),
            );
        }
    }

    fn judge_entry(&self, entry: &Entry, report: &mut Report) {
        let (client, file) = (self.client, self.file());
        if entry.is_off {
            report.wrong(
                AREA,
                format!("{file} has the server turned off"),
                format!("take `enabled` (or `disabled`) out of the entry `{KEY}`"),
            );
        }
        let starts = entry.command.iter().chain(&entry.args).chain(&entry.url);
        let starts = starts.map(String::as_str).collect::<Vec<_>>().join(" ");
        let state = text_of(&self.path()).and_then(|text| client.server_file().look(&text).ok());
        let is_ours = match &entry.url {
            Some(url) => clients::is_endpoint(url),
            None => {
                entry.command.as_deref().is_some_and(clients::starts_us)
                    && entry.args.first().is_some_and(|arg| arg == "serve")
            }
        };
        let verb = if entry.url.is_some() { "calls" } else { "starts" };
        if !is_ours {
            report.wrong(
                AREA,
                format!("{file} has a server `{KEY}` that {verb} {}", sanitize::quote(&starts)),
                format!("make its command `{KEY}` and its args `serve`"),
            );
        }
        self.judge_table(entry, report);
        if let Some(url) = entry.url.as_ref().filter(|_| is_ours && !entry.is_off) {
            network::judge_answer(url, &file, report);
        }
        if let Some(State::Ours(Server { link: Link::Network(network), .. })) = &state {
            network::judge_caller(client, &file, network, report);
        }
        if let Some(State::Extended(others)) = state {
            let others: Vec<String> = others.iter().map(|name| field(name)).collect();
            report.note(
                AREA,
                format!("{file} has settings that init did not write: {}", others.join(", ")),
            );
        }
    }

    /// Whether it leads its sessions to this table.
    fn judge_table(&self, entry: &Entry, report: &mut Report) {
        if let Some(url) = &entry.url {
            let url = sanitize::quote(url);
            let what = format!("{} leads to the table of the server at {url}", self.file());
            report.note(AREA, format!("{what}, which may be another one"));
            return;
        }
        let (table, place) = (&self.place.workspace.table, self.place);
        let wanted = field(&table.display().to_string());
        let named = entry.option("--db-path").or_else(|| entry.variable("TEAM_TABLE_DB"));
        if let Some(named) = named {
            let path = place.workspace.checkout.join(named);
            let is_this = platform::same_file(&path, table) || path == *table;
            if !is_this && !named.contains('$') {
                report.wrong(
                    AREA,
                    format!("{} leads to another table, {}", self.file(), sanitize::quote(named)),
                    format!("name {wanted} there, or none"),
                );
            }
        } else if self.survey.scrubs
            && place.config.db.is_some()
            && !entry.env_vars.iter().any(|name| name == "TEAM_TABLE_DB")
        {
            report.wrong(
                AREA,
                format!(
                    "{} does not pass `TEAM_TABLE_DB` on to the server, so it sits at another table",
                    self.client
                ),
                format!("add `env_vars = [\"TEAM_TABLE_DB\"]` to the entry in {}", self.file()),
            );
        }
    }

    /// `verb` is what it does with the server.
    fn judge_trust(&self, verdict: Verdict, verb: &str, report: &mut Report) -> String {
        if self.sits {
            return "a session of it sits there".to_owned();
        }
        match verdict {
            Verdict::Starts(why) => why.to_owned(),
            Verdict::StartsAnyway => OWN_CONFIG.to_owned(),
            Verdict::Refuses { what, todo } => {
                report.wrong(AREA, what, todo);
                format!("it does not {verb} the server")
            }
            Verdict::Waits { what, todo } => {
                report.note(AREA, format!("{what}: {todo}"));
                format!("it {verb}s the server once you agree")
            }
            Verdict::CannotTell(why) => {
                format!("cannot tell whether it {verb}s the server: {why}")
            }
        }
    }

    /// The file that a command leads to, compared with this program.
    fn program(&self, command: &str, report: &mut Report) -> Option<PathBuf> {
        if command.contains('$') || !clients::starts_us(command) {
            return None;
        }
        let quoted = sanitize::quote(command);
        let is_path = command.contains(['/', '\\']);
        if !is_path {
            let path = self.place.config.path.clone().unwrap_or_default();
            let file = format!("{command}{}", std::env::consts::EXE_SUFFIX);
            let found = platform::find_on_path(&path, &file);
            if found.is_none() {
                let folder = self.place.program.as_deref().and_then(Path::parent);
                let folder = folder.unwrap_or(Path::new(".")).display().to_string();
                report.wrong(
                    AREA,
                    format!("the clients start {quoted}, which is not on PATH"),
                    format!("put {} on PATH where you start your agents", field(&folder)),
                );
            }
            return found.inspect(|found| self.judge_version(found, report));
        }
        let path = Path::new(command);
        if path.is_relative() {
            report.wrong(
                AREA,
                format!("{} starts {quoted}, which is not found from every folder", self.file()),
                "run `team-table init`, or write the whole path",
            );
            return None;
        }
        if !platform::is_executable(path) {
            report.wrong(
                AREA,
                format!("{} starts {quoted}, which is not there or cannot be run", self.file()),
                "run `team-table init`",
            );
            return None;
        }
        if self.place.program.as_ref().is_some_and(|ours| !platform::same_file(ours, path)) {
            report.note(AREA, format!("{} starts another file than this, {quoted}", self.file()));
        }
        Some(path.to_owned())
    }

    /// Only what PATH leads to is run: what a project's file names may be anybody's.
    fn judge_version(&self, found: &Path, report: &mut Report) {
        if self.place.program.as_ref().is_none_or(|ours| platform::same_file(ours, found)) {
            return;
        }
        let shown = field(&found.display().to_string());
        let ours = env!("CARGO_PKG_VERSION");
        match version(found) {
            Some(theirs) if theirs == ours => {
                report.note(AREA, format!("PATH leads to another file than this, {shown}"));
            }
            Some(theirs) => report.wrong(
                AREA,
                format!("PATH leads to {shown} of version {}, and this is {ours}", field(&theirs)),
                "install one version of team-table and delete the other",
            ),
            None => report.wrong(
                AREA,
                format!("PATH leads to {shown}, which does not say its version"),
                "install team-table there anew",
            ),
        }
    }
}

impl Facts {
    pub(super) fn line(&self) -> String {
        let title = Survey::of(self.client).map_or(self.client, |survey| survey.client().title);
        if !self.is_set_up {
            return format!("{title}: {}", self.starts);
        }
        let plugin = if self.has_plugin { "; it has the plugin too" } else { "" };
        if let Some(url) = &self.url {
            let url = sanitize::quote(url);
            return format!("{title}: `{}` calls {url}; {}{plugin}", self.file, self.starts);
        }
        let command = self.command.iter().chain(&self.args).map(String::as_str);
        let command = sanitize::quote(&command.collect::<Vec<_>>().join(" "));
        format!("{title}: `{}` starts {command}; {}{plugin}", self.file, self.starts)
    }
}

/// One config serves all sessions of a client: a name in it is wished for by each of them.
fn judge_names(all: &[Facts], rows: &[Row], report: &mut Report) {
    for (n, facts) in all.iter().enumerate() {
        let Some(name) = &facts.name else { continue };
        let same = all.iter().take(n).find(|other| other.name.as_ref() == Some(name));
        let (shown, file) = (sanitize::quote(name), format!("`{}`", facts.file));
        let mut seated = rows.iter().filter(|row| row.seated);
        let has = |row: &Row| row.name.as_str().eq_ignore_ascii_case(name);
        let second = rows
            .iter()
            .find(|row| has(row))
            .and_then(|first| seated.find(|row| row.name.is_variant_of(&first.name)));
        let todo = format!("take the name out of {file}: each session then finds its own");
        if let Some(other) = same {
            let what = format!("`{}` and {file} give all sessions one name, {shown}", other.file);
            report.wrong(AREA, what, todo);
        } else if let Some(second) = second {
            let what = format!(
                "{file} gives all sessions one name, {shown}, so that another became {}",
                second.name
            );
            report.wrong(AREA, what, todo);
        } else {
            report.note(AREA, format!("{file} gives all sessions one name, {shown}"));
        }
    }
}

/// What a program says to `--version`, if it says it soon.
fn version(program: &Path) -> Option<String> {
    let mut child = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    for _ in 0..VERSION_TRIES {
        match child.try_wait() {
            Ok(None) => std::thread::sleep(BETWEEN_TRIES),
            Ok(Some(_)) => break,
            Err(_) => return None,
        }
    }
    if !matches!(child.try_wait(), Ok(Some(_))) {
        // It is given up in any case.
        child.kill().ok();
        child.wait().ok();
        return None;
    }
    let output = child.wait_with_output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let version = text.trim().strip_prefix(KEY)?.trim();
    (!version.is_empty() && version.len() < 40).then(|| version.to_owned())
}
