//! What can be told about a client from its files: whether it starts our server here, and whether
//! it runs our hooks.
//!
//! One row of [`SURVEYS`] is one client. As all of this module, it reads values and no disk.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Client, Format, KEY, hook::Hook};
use crate::config::{ClientHomes, Config};

/// What can be asked of one client.
pub struct Survey {
    /// As the row of [`super::CLIENTS`] has it, and the family of its sessions.
    pub name: &'static str,
    /// How a person has it start its server anew.
    pub restart: &'static str,
    /// Files of the project in which it looks for no servers, though people write them there.
    pub ignored: &'static [&'static str],
    /// Files of the project in which a server is approved or turned off.
    pub settings: &'static [&'static str],
    /// The person's own files.
    pub own: &'static [OwnFile],
    /// It passes on only the variables that its config lists.
    pub scrubs: bool,
    home: fn(&ClientHomes) -> Option<&Path>,
    judge: fn(&Evidence<'_>) -> Verdict,
    may_run_hooks: fn(&Evidence<'_>, &str) -> HookTrust,
}

/// A file that is a person's own.
pub struct OwnFile {
    /// From the home directory.
    usual: &'static str,
    /// From the folder that a variable names.
    moved: &'static str,
    pub format: Format,
}

/// What the files say; what is `Null` is not there, or cannot be read.
pub struct Evidence<'a> {
    /// The working directory and what is above, up to the top of the checkout; then the main
    /// checkout's top.
    pub folders: &'a [String],
    /// What is above these.
    pub above: &'a [String],
    /// As the row lists them.
    pub own: &'a [Value],
    pub settings: &'a [Value],
}

/// Whether a client starts the server that the project's file names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It does; why.
    Starts(&'static str),
    /// It does, whatever the project's file says: the person's own config names the server.
    StartsAnyway,
    /// It does not, until somebody does this.
    Refuses {
        what: String,
        todo: String,
    },
    /// It will not where nobody has done so yet.
    Waits {
        what: String,
        todo: String,
    },
    CannotTell(&'static str),
}

/// Whether a client runs the hooks that the project's file has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookTrust {
    Runs,
    Refuses { what: String, todo: String },
    CannotTell(&'static str),
}

const JSON: Format = Format::ANY_JSON;

/// Every client whose files are understood.
pub const SURVEYS: &[Survey] = &[
    // Source: tried with Claude Code 2.1.332.
    Survey {
        name: "claude",
        restart: "in Claude Code run `/mcp` and reconnect `team-table`",
        ignored: &[".claude/settings.json", ".claude/settings.local.json"],
        settings: &[".claude/settings.json", ".claude/settings.local.json"],
        own: &[
            OwnFile { usual: ".claude.json", moved: ".claude.json", format: JSON },
            OwnFile { usual: ".claude/settings.json", moved: "settings.json", format: JSON },
        ],
        scrubs: false,
        home: |homes| homes.claude.as_deref(),
        judge: claude,
        may_run_hooks: claude_hooks,
    },
    // Source: tried with Codex 0.171.0.
    Survey {
        name: "codex",
        restart: "end that Codex session and resume it: Codex never starts a server again",
        ignored: &[],
        settings: &[],
        own: &[OwnFile { usual: ".codex/config.toml", moved: "config.toml", format: Format::Toml }],
        scrubs: true,
        home: |homes| homes.codex.as_deref(),
        judge: codex,
        may_run_hooks: codex_hooks,
    },
    // Source: tried with Gemini CLI 0.61.0.
    Survey {
        name: "gemini",
        restart: "end Gemini CLI and start it again",
        ignored: &[],
        settings: &[],
        own: &[
            OwnFile { usual: ".gemini/trustedFolders.json", moved: "", format: JSON },
            OwnFile { usual: ".gemini/settings.json", moved: "", format: JSON },
        ],
        scrubs: false,
        home: |_| None,
        judge: gemini,
        may_run_hooks: |_, _| HookTrust::Runs,
    },
    // Source: tried with opencode 1.18.33.
    Survey {
        name: "opencode",
        restart: "end opencode and start it again",
        judge: |_| Verdict::Starts("it asks for no trust"),
        ..UNKNOWN
    },
    // Source: tried with Copilot CLI 1.0.102, which takes both names of the list.
    Survey {
        name: "copilot",
        restart: "end Copilot CLI and start it again",
        own: &[OwnFile { usual: ".copilot/config.json", moved: "config.json", format: JSON }],
        home: |homes| homes.copilot.as_deref(),
        judge: copilot,
        ..UNKNOWN
    },
    Survey { name: "cursor", restart: "start it again in Cursor's settings, under MCP", ..UNKNOWN },
    Survey {
        name: "vscode",
        restart: "in VS Code run `MCP: List Servers` and restart `team-table`",
        ..UNKNOWN
    },
    Survey { name: "zed", restart: "restart `team-table` in Zed's agent settings", ..UNKNOWN },
];

/// A client of which nothing is known but its name.
const UNKNOWN: Survey = Survey {
    name: "",
    restart: "",
    ignored: &[],
    settings: &[],
    own: &[],
    scrubs: false,
    home: |_| None,
    judge: |_| Verdict::CannotTell("it keeps that to itself"),
    may_run_hooks: |_, _| HookTrust::Runs,
};

impl Survey {
    /// The row of a family.
    pub fn of(family: &str) -> Option<&'static Survey> {
        SURVEYS.iter().find(|survey| survey.name == family)
    }

    /// Where its entry stands.
    #[expect(clippy::expect_used, reason = "a test looks at each row")]
    pub fn client(&self) -> &'static Client {
        Client::named(self.name).expect("each row is one of a client's")
    }

    /// Where a person's own file lies; none without a home.
    pub fn own_path(&self, file: &OwnFile, config: &Config) -> Option<PathBuf> {
        match (self.home)(&config.client_homes) {
            Some(folder) => Some(folder.join(file.moved)),
            None => Some(config.home.as_ref()?.join(file.usual)),
        }
    }

    /// Whether it starts the server that the project's file names.
    pub fn judge(&self, evidence: &Evidence<'_>) -> Verdict {
        (self.judge)(evidence)
    }

    /// Whether it runs the hooks in the file at this path.
    pub fn may_run_hooks(&self, evidence: &Evidence<'_>, path: &str) -> HookTrust {
        (self.may_run_hooks)(evidence, path)
    }
}

fn own<'a>(evidence: &Evidence<'a>, n: usize) -> &'a Value {
    evidence.own.get(n).unwrap_or(&Value::Null)
}

/// The value under keys that lead into each other.
fn under<'a>(value: &'a Value, keys: &[&str]) -> &'a Value {
    keys.iter().try_fold(value, |value, key| value.get(*key)).unwrap_or(&Value::Null)
}

fn names_us(list: &Value) -> bool {
    list.as_array().is_some_and(|names| names.iter().any(|name| name == KEY))
}

fn claude(evidence: &Evidence<'_>) -> Verdict {
    const OFF: &[&str] = &["disabledMcpjsonServers", "disabledMcpServers"];
    let state = own(evidence, 0);
    let here: Vec<&Value> =
        evidence.folders.iter().filter_map(|folder| state.get("projects")?.get(folder)).collect();
    let above = evidence.above.iter().filter_map(|folder| state.get("projects")?.get(folder));
    let settings = || evidence.settings.iter().chain([own(evidence, 1)]);
    let places = || here.iter().copied().chain(settings());
    if let Some(key) = OFF.iter().find(|key| places().any(|place| names_us(&place[**key]))) {
        return Verdict::Refuses {
            what: format!("Claude Code has the server `{KEY}` turned off (`{key}`)"),
            todo: format!("run `claude` here, then `/mcp`, and enable `{KEY}`"),
        };
    }
    if state.is_null() {
        return Verdict::CannotTell("its `.claude.json` is not there or cannot be read");
    }
    if here.iter().chain([&state]).any(|place| !under(place, &["mcpServers", KEY]).is_null()) {
        return Verdict::StartsAnyway;
    }
    let trusts = |place: &Value| place["hasTrustDialogAccepted"] == true;
    if !here.iter().copied().chain(above).any(trusts) {
        let what = "Claude Code does not trust this folder".to_owned();
        let todo = "run `claude` here and trust the folder (the default answer is no)".to_owned();
        return match here.as_slice() {
            [] => Verdict::Waits { what: "Claude Code was not started here yet".into(), todo },
            _ => Verdict::Refuses { what, todo },
        };
    }
    let is_approved = places().any(|place| {
        names_us(&place["enabledMcpjsonServers"]) || place["enableAllProjectMcpServers"] == true
    });
    if is_approved {
        return Verdict::Starts("the folder is trusted and the server approved");
    }
    Verdict::Refuses {
        what: format!("the server `{KEY}` waits for your approval in Claude Code"),
        todo: "run `claude` here and choose `Use this MCP server`".to_owned(),
    }
}

fn claude_hooks(evidence: &Evidence<'_>, _: &str) -> HookTrust {
    let mut settings = evidence.settings.iter().chain([own(evidence, 1)]);
    if settings.any(|place| place["disableAllHooks"] == true) {
        return HookTrust::Refuses {
            what: "Claude Code has all hooks turned off (`disableAllHooks`)".to_owned(),
            todo: "take `disableAllHooks` out of `.claude/settings.json`, or where else it stands"
                .to_owned(),
        };
    }
    HookTrust::Runs
}

fn codex(evidence: &Evidence<'_>) -> Verdict {
    let config = own(evidence, 0);
    if config.is_null() {
        return Verdict::CannotTell("its own `config.toml` is not there or cannot be read");
    }
    let server = under(config, &["mcp_servers", KEY]);
    if !server.is_null() && server["enabled"] != false {
        return Verdict::StartsAnyway;
    }
    let level = evidence
        .folders
        .iter()
        .find_map(|folder| config.get("projects")?.get(folder)?.get("trust_level")?.as_str());
    match level {
        Some("trusted") => Verdict::Starts("the folder is trusted"),
        _ => Verdict::Refuses {
            what: "Codex does not trust this folder, so it ignores `.codex/` here".to_owned(),
            todo: "run `codex` here and trust the folder".to_owned(),
        },
    }
}

fn codex_hooks(evidence: &Evidence<'_>, path: &str) -> HookTrust {
    let config = own(evidence, 0);
    if config.is_null() {
        return HookTrust::CannotTell("its own `config.toml` is not there or cannot be read");
    }
    let reviewed = under(config, &["hooks", "state"]).as_object().is_some_and(|state| {
        state.iter().any(|(key, of)| {
            key.strip_prefix(path).is_some_and(|rest| rest.starts_with(':'))
                && of.get("trusted_hash").is_some()
        })
    });
    if reviewed {
        // What it was when it was reviewed, only Codex knows.
        return HookTrust::Runs;
    }
    HookTrust::Refuses {
        what: "Codex has not been told to trust the hooks in `.codex/hooks.json`".to_owned(),
        todo: "run `codex` here and choose `Trust all and continue`".to_owned(),
    }
}

fn gemini(evidence: &Evidence<'_>) -> Verdict {
    if *under(own(evidence, 1), &["security", "folderTrust", "enabled"]) == false {
        return Verdict::Starts("it asks for no trust");
    }
    let Some(rules) = own(evidence, 0).as_object() else {
        return Verdict::CannotTell("its `trustedFolders.json` is not there or cannot be read");
    };
    let all = || evidence.folders.iter().chain(evidence.above);
    let rule = |folder: &String| {
        let of_child = rules.iter().any(|(path, level)| {
            level == "TRUST_PARENT" && Path::new(path).parent() == Some(Path::new(folder))
        });
        match rules.get(folder).and_then(Value::as_str) {
            Some("DO_NOT_TRUST") => Some(false),
            Some("TRUST_FOLDER") => Some(true),
            _ => of_child.then_some(true),
        }
    };
    match all().find_map(rule) {
        Some(true) => Verdict::Starts("the folder is trusted"),
        found => {
            let todo = "run `gemini` here and trust the folder".to_owned();
            let what = "Gemini CLI does not trust this folder".to_owned();
            match found {
                Some(_) => Verdict::Refuses { what, todo },
                None => Verdict::Waits { what: format!("{what} yet"), todo },
            }
        }
    }
}

fn copilot(evidence: &Evidence<'_>) -> Verdict {
    let config = own(evidence, 0);
    let lists = ["trustedFolders", "trusted_folders"].map(|key| config[key].as_array());
    let mut trusted = lists.into_iter().flatten().flatten().filter_map(Value::as_str);
    if trusted.any(|path| evidence.folders.iter().chain(evidence.above).any(|dir| dir == path)) {
        return Verdict::Starts("the folder is trusted");
    }
    if config.is_null() {
        return Verdict::CannotTell("its own `config.json` is not there or cannot be read");
    }
    Verdict::Waits {
        what: "Copilot CLI does not trust this folder yet".to_owned(),
        todo: "run `copilot` here and trust the folder".to_owned(),
    }
}

/// Our entry as a project's file has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Entry {
    pub command: Option<String>,
    pub args: Vec<String>,
    /// The address of a server that is called rather than started.
    pub url: Option<String>,
    pub env: Vec<(String, String)>,
    /// The variables that are passed on, where it says so.
    pub env_vars: Vec<String>,
    pub is_off: bool,
}

impl Entry {
    /// The entry under our name in a section.
    pub fn read(file: &Value, section: &str) -> Option<Entry> {
        let entry = file.get(section)?.get(KEY)?;
        let texts = |list: &Value| -> Vec<String> {
            let list = list.as_array().into_iter().flatten();
            list.filter_map(|text| text.as_str().map(str::to_owned)).collect()
        };
        // opencode has the command and its arguments in one list, and its own word for variables.
        let mut words = texts(&entry["command"]).into_iter();
        let command = entry["command"].as_str().map(str::to_owned).or_else(|| words.next());
        let env = [&entry["env"], &entry["environment"]].map(Value::as_object);
        let urls = ["url", "httpUrl"].map(|key| entry[key].as_str().map(str::to_owned));
        Some(Entry {
            command,
            args: words.chain(texts(&entry["args"])).collect(),
            url: urls.into_iter().flatten().next(),
            env: env
                .into_iter()
                .flatten()
                .flatten()
                .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
                .collect(),
            env_vars: texts(&entry["env_vars"]),
            is_off: entry["enabled"] == false || entry["disabled"] == true,
        })
    }

    /// What stands behind an option, as `--name NAME` or `--name=NAME`.
    pub fn option(&self, flag: &str) -> Option<&str> {
        let joined = self
            .args
            .iter()
            .find_map(|arg| arg.strip_prefix(flag).and_then(|rest| rest.strip_prefix('=')));
        let behind = || {
            let at = self.args.iter().position(|arg| arg == flag)?;
            self.args.get(at + 1).map(String::as_str)
        };
        joined.or_else(behind)
    }

    /// What the entry sets a variable of the environment to.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.env.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }
}

/// The events at which a file's hooks call us.
pub fn hook_events(file: &Value) -> Vec<String> {
    let events = file["hooks"].as_object().into_iter().flatten();
    let calls_us = |hook: &Value| {
        let hook = Hook {
            command: hook["command"].as_str(),
            first_arg: hook["args"].get(0).and_then(Value::as_str),
            server: hook["server"].as_str(),
        };
        hook.duty().is_some()
    };
    events
        .filter(|(_, groups)| {
            let groups = groups.as_array().into_iter().flatten();
            groups
                .flat_map(|group| group["hooks"].as_array().into_iter().flatten().chain([group]))
                .any(calls_us)
        })
        .map(|(event, _)| event.clone())
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Entry, Evidence, HookTrust, SURVEYS, Survey, Verdict, hook_events};
    use crate::clients::CLIENTS;

    /// `starts`, `refuses`, `waits` or `?`, for the folder `/p` in `/`.
    #[track_caller]
    fn check(name: &str, own: &[Value], settings: &[Value], expected: &str) {
        let evidence = Evidence { folders: &["/p".into()], above: &["/".into()], own, settings };
        let verdict = Survey::of(name).unwrap().judge(&evidence);
        let word = match verdict {
            Verdict::Starts(_) | Verdict::StartsAnyway => "starts",
            Verdict::Refuses { .. } => "refuses",
            Verdict::Waits { .. } => "waits",
            Verdict::CannotTell(_) => "?",
        };
        assert_eq!(word, expected, "{verdict:?}");
    }

    #[test]
    fn every_client_of_init_is_understood() {
        for client in CLIENTS {
            assert!(Survey::of(client.name).is_some(), "{client}");
        }
        for survey in SURVEYS {
            assert_eq!(survey.client().name, survey.name);
        }
    }

    #[test]
    fn claude() {
        let trusted = json!({"projects": {"/p": {"hasTrustDialogAccepted": true}}});
        let approved = [json!({"enabledMcpjsonServers": ["team-table"]})];
        check("claude", &[], &[], "?");
        check("claude", &[json!({})], &[], "waits");
        check("claude", &[json!({"projects": {"/p": {}}})], &approved, "refuses");
        check("claude", std::slice::from_ref(&trusted), &[], "refuses");
        check("claude", std::slice::from_ref(&trusted), &approved, "starts");
        check(
            "claude",
            &[trusted.clone(), json!({"enableAllProjectMcpServers": true})],
            &[],
            "starts",
        );
        let off = [json!({"disabledMcpjsonServers": ["team-table"]})];
        check("claude", &[trusted], &off, "refuses");
        let above = json!({"projects": {"/": {"hasTrustDialogAccepted": true}}});
        check("claude", &[above], &approved, "starts");
        check("claude", &[json!({"mcpServers": {"team-table": {}}})], &[], "starts");
        check("claude", &[json!([1])], &[json!("x")], "waits");
    }

    #[test]
    fn codex() {
        let level = |level: &str| json!({"projects": {"/p": {"trust_level": level}}});
        check("codex", &[], &[], "?");
        check("codex", &[json!({})], &[], "refuses");
        check("codex", &[level("trusted")], &[], "starts");
        check("codex", &[level("untrusted")], &[], "refuses");
        check("codex", &[json!({"mcp_servers": {"team-table": {"command": "x"}}})], &[], "starts");
        let hooks = |key: &str| {
            let own = [json!({"hooks": {"state": {key: {"trusted_hash": "x"}}}})];
            let evidence = Evidence { folders: &[], above: &[], own: &own, settings: &[] };
            Survey::of("codex").unwrap().may_run_hooks(&evidence, "/p/.codex/hooks.json")
        };
        assert_eq!(hooks("/p/.codex/hooks.json:stop:0:0"), HookTrust::Runs);
        assert_ne!(hooks("/q/.codex/hooks.json:stop:0:0"), HookTrust::Runs);
    }

    #[test]
    fn gemini() {
        check("gemini", &[], &[], "?");
        check("gemini", &[json!({})], &[], "waits");
        check("gemini", &[json!({"/p": "TRUST_FOLDER"})], &[], "starts");
        check("gemini", &[json!({"/": "TRUST_FOLDER"})], &[], "starts");
        check("gemini", &[json!({"/p": "DO_NOT_TRUST", "/": "TRUST_FOLDER"})], &[], "refuses");
        check("gemini", &[json!({"/p/x": "TRUST_PARENT"})], &[], "starts");
        let off = json!({"security": {"folderTrust": {"enabled": false}}});
        check("gemini", &[Value::Null, off], &[], "starts");
    }

    #[test]
    fn others() {
        check("opencode", &[], &[], "starts");
        check("copilot", &[], &[], "?");
        check("copilot", &[json!({})], &[], "waits");
        check("copilot", &[json!({"trustedFolders": ["/p"]})], &[], "starts");
        check("copilot", &[json!({"trusted_folders": ["/"]})], &[], "starts");
        for client in ["cursor", "vscode", "zed"] {
            check(client, &[], &[], "?");
        }
        let file = json!({"mcp": {"team-table": {
            "command": ["x", "serve"], "environment": {"A": "1"}
        }}});
        let entry = Entry::read(&file, "mcp").unwrap();
        assert_eq!(
            (entry.command.as_deref(), entry.args.as_slice()),
            (Some("x"), &["serve".into()][..])
        );
        assert_eq!(entry.variable("A"), Some("1"));
        let file = json!({"s": {"team-table": {"httpUrl": "http://h/mcp"}}});
        assert_eq!(Entry::read(&file, "s").unwrap().url.as_deref(), Some("http://h/mcp"));
    }

    #[test]
    fn entries_and_hooks() {
        let file = json!({"s": {"team-table": {
            "command": "x", "args": ["serve", "--name", "a"], "env": {"A": "1"}, "disabled": true
        }}});
        let entry = Entry::read(&file, "s").unwrap();
        assert_eq!((entry.option("--name"), entry.variable("A")), (Some("a"), Some("1")));
        assert!(entry.is_off && entry.option("--db-path").is_none());
        assert_eq!(Entry::read(&json!([]), "s"), None);
        let file = json!({"hooks": {
            "Stop": [{"hooks": [{"type": "mcp_tool", "server": "team-table", "tool": "x"}]}],
            "Start": [{"hooks": [{"type": "command", "command": "\"/opt/team-table\" hook"}]}],
            "End": [{"hooks": [{"command": "team-table", "args": ["wake"]}]}],
            "Plugin": [{"hooks": [{"server": "plugin:team-table:team-table"}]}],
            "Theirs": [{"hooks": [{"command": "team-table status"}]}],
            "Other": [{"hooks": [{"command": "echo team-table"}, {"server": "x"}]}],
            "Odd": 7,
        }});
        assert_eq!(hook_events(&file), ["Stop", "Start", "End", "Plugin"]);
        assert!(hook_events(&json!("x")).is_empty());
    }
}
