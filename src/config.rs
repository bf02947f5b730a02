//! Every environment variable, default and limit that can be set, read once.
//!
//! Nothing else in the program reads the environment or the clock.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::error::{Error, Result};

/// Messages that a member may send in a minute, unless `TEAM_TABLE_MAX_PER_MINUTE` says otherwise.
pub const MAX_PER_MINUTE: u32 = 120;

/// Where `serve` listens for the network, unless `TEAM_TABLE_PORT` says otherwise.
pub const PORT: u16 = 8741;

/// What the environment says. Empty variables count as unset.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// `TEAM_TABLE_DB`: the table to use instead of the workspace's.
    pub db: Option<PathBuf>,
    /// `TEAM_TABLE_NAME`: the name that a session wishes for.
    pub name: Option<String>,
    /// `TEAM_TABLE_LOG`: what goes to stderr, such as `debug`.
    pub log: Option<String>,
    /// `TEAM_TABLE_MAX_PER_MINUTE`: messages per member and minute, 0 for no limit.
    pub max_per_minute: u32,
    /// `TEAM_TABLE_TRANSPORT`: how clients are connected to `serve`.
    pub transport: Option<String>,
    /// `TEAM_TABLE_HOST`: where `serve` listens for the network.
    pub host: Option<String>,
    /// `TEAM_TABLE_PORT`: and at which port.
    pub port: Option<u16>,
    /// The working directory, absolute.
    pub cwd: PathBuf,
    /// The user's home directory.
    pub home: Option<PathBuf>,
    /// Where clients keep what is a person's own, if not in the home directory.
    pub client_homes: ClientHomes,
    /// `PATH`, to find out whether `team-table` there is this very program.
    pub path: Option<OsString>,
    /// The session of the agent in whose shell or as whose server we run.
    pub agent: AgentEnv,
    /// A fixed clock in UTC milliseconds (`TEAM_TABLE_NOW`), for tests; not in a release.
    pub fixed_now: Option<i64>,
    /// How much sooner than in earnest whatever lasts over the network ends (`TEAM_TABLE_HURRY`);
    /// heeded by debug builds only.
    pub hurry: Option<u32>,
    /// Where to fail on purpose (`TEAM_TABLE_FAULT`); heeded by debug builds only.
    pub fault: Option<String>,
}

/// The variables that move clients' own folders.
#[derive(Debug, Clone, Default)]
pub struct ClientHomes {
    /// `CLAUDE_CONFIG_DIR`.
    pub claude: Option<PathBuf>,
    /// `CODEX_HOME`.
    pub codex: Option<PathBuf>,
    /// `COPILOT_HOME`.
    pub copilot: Option<PathBuf>,
}

/// What agents' clients leave in the environment of the processes they start.
/// Source: tried with Claude Code 2.1.332, Codex 0.171.0, Gemini CLI 0.61.0, opencode 1.18.33 and
/// Copilot CLI 1.0.102.
#[derive(Debug, Clone, Default)]
pub struct AgentEnv {
    /// `CLAUDE_CODE_SESSION_ID`.
    pub claude_session: Option<String>,
    /// `CODEX_THREAD_ID`.
    pub codex_thread: Option<String>,
    /// `COPILOT_AGENT_SESSION_ID`.
    pub copilot_session: Option<String>,
    /// The name of the first variable found that only an agent's process has.
    pub marker: Option<String>,
}

/// Variables that only processes below an agent have; those with a `*` by their beginning.
const MARKERS: &[&str] =
    &["CLAUDECODE", "AI_AGENT", "GEMINI_CLI", "OPENCODE", "CODEX_*", "COPILOT_*"];

/// Variables that begin like a marker, yet that a person sets in their own shell.
const SET_BY_PEOPLE: &[&str] = &["CODEX_HOME", "COPILOT_HOME"];

impl Config {
    /// Reads the environment and the working directory.
    ///
    /// # Errors
    /// A variable that holds what it cannot hold (exit code 2), or no working directory.
    pub fn from_env() -> Result<Config> {
        let cwd = std::env::current_dir()
            .map_err(|err| Error::io("use the working directory", Path::new("."), err))?;
        Ok(Config {
            db: var("TEAM_TABLE_DB").map(PathBuf::from),
            name: text("TEAM_TABLE_NAME")?,
            log: text("TEAM_TABLE_LOG")?,
            max_per_minute: number("TEAM_TABLE_MAX_PER_MINUTE")?.unwrap_or(MAX_PER_MINUTE),
            transport: text("TEAM_TABLE_TRANSPORT")?,
            host: text("TEAM_TABLE_HOST")?,
            port: number("TEAM_TABLE_PORT")?,
            cwd: dunce::simplified(&cwd).to_owned(),
            home: var(if cfg!(windows) { "USERPROFILE" } else { "HOME" }).map(PathBuf::from),
            client_homes: ClientHomes {
                claude: var("CLAUDE_CONFIG_DIR").map(PathBuf::from),
                codex: var("CODEX_HOME").map(PathBuf::from),
                copilot: var("COPILOT_HOME").map(PathBuf::from),
            },
            path: var("PATH"),
            agent: AgentEnv {
                claude_session: text("CLAUDE_CODE_SESSION_ID")?,
                codex_thread: text("CODEX_THREAD_ID")?,
                copilot_session: text("COPILOT_AGENT_SESSION_ID")?,
                marker: marker(),
            },
            fixed_now: number("TEAM_TABLE_NOW")?,
            hurry: number("TEAM_TABLE_HURRY")?,
            fault: text("TEAM_TABLE_FAULT")?,
        })
    }

    /// A time that tests can shorten.
    pub fn hurried(&self, time: Duration) -> Duration {
        let hurry = self.hurry.filter(|_| cfg!(debug_assertions));
        time / hurry.unwrap_or(1).max(1)
    }

    /// The time in UTC milliseconds since 1970.
    pub fn now(&self) -> i64 {
        self.fixed_now.filter(|_| cfg!(debug_assertions)).unwrap_or_else(clock)
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place that reads the clock")]
fn clock() -> i64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |age| i64::try_from(age.as_millis()).unwrap_or(i64::MAX))
}

/// Whether a variable that a client's file names is set.
pub fn is_set(name: &str) -> bool {
    var(name).is_some()
}

#[expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]
fn var(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

fn text(name: &str) -> Result<Option<String>> {
    var(name)
        .map(|value| {
            value.into_string().map_err(|value| {
                Error::usage(format!("{name} is not Unicode: `{}`", value.to_string_lossy()))
            })
        })
        .transpose()
}

fn number<T: std::str::FromStr>(name: &str) -> Result<Option<T>> {
    text(name)?
        .map(|value| {
            value
                .parse()
                .map_err(|_| Error::usage(format!("{name} must be a whole number, got `{value}`")))
        })
        .transpose()
}

fn marker() -> Option<String> {
    let mut found: Vec<String> = std::env::vars_os()
        .filter(|(_, value)| !value.is_empty())
        .filter_map(|(name, _)| name.into_string().ok())
        .filter(|name| is_marker(name))
        .collect();
    found.sort();
    found.into_iter().next()
}

fn is_marker(name: &str) -> bool {
    !SET_BY_PEOPLE.contains(&name)
        && MARKERS.iter().any(|marker| match marker.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => name == *marker,
        })
}

#[cfg(test)]
mod tests {
    use super::is_marker;

    #[test]
    fn agents_are_told_from_people() {
        for name in ["CLAUDECODE", "AI_AGENT", "GEMINI_CLI", "OPENCODE", "CODEX_THREAD_ID"] {
            assert!(is_marker(name), "{name}");
        }
        for name in ["CODEX_HOME", "COPILOT_HOME", "CLAUDE", "PATH", "OPENCODE_CONFIG"] {
            assert!(!is_marker(name), "{name}");
        }
    }
}
