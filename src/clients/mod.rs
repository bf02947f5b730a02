//! The clients' configuration files: which there are, and how our entry gets in and out.
//!
//! One row of [`CLIENTS`] is one client with its files; a file holds our server entry, our hooks, or
//! both. [`json`] and [`toml`] edit text to text; nothing here touches the disk. An edit keeps every
//! byte that it does not have to change: byte order mark, line ends, indentation, comments, order, a
//! missing line end at the end. Taking out what was put in gives the first bytes back, without any
//! record of them; where two texts would become the same text, the entry is therefore written in
//! another layout. [`survey`] reads what else the clients' files say; [`package`] is for clients that
//! install us as a whole.

use std::fmt;

mod json;
pub mod package;
mod span;
pub mod survey;
mod toml;
pub mod value;

pub use span::Fault;

/// The name of our entry in every client's file.
pub const KEY: &str = "team-table";

/// The notation of a client's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// JSON as the client reads it. We read comments and trailing commas in any case.
    Json {
        /// The client takes comments. Trailing commas none of these takes.
        comments: bool,
    },
    Toml,
}

/// Where an entry stands in a file, and what it looks like.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// The key of the object or table that holds one entry per server.
    pub section: &'static str,
    /// A whole file with our entry and nothing else.
    pub template: &'static str,
    /// The server wakes an idle session of this client, where it is told to.
    pub wakes: bool,
}

/// Our hooks in a file, each template a whole file with nothing else.
#[derive(Debug, Clone, Copy)]
pub struct Hooks {
    /// Those that tell of new messages.
    pub announce: &'static str,
    /// That which wakes an idle session, where the client can be woken so.
    pub wake: Option<&'static str>,
}

/// What is wished for beside the server entry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extras {
    /// Hooks that tell of new messages.
    pub hooks: bool,
    /// Idle sessions are woken.
    pub wake: bool,
}

impl Extras {
    const ALL: Extras = Extras { hooks: true, wake: true };
}

/// One file of a client.
#[derive(Debug)]
pub struct File {
    /// From the top of the checkout, with `/`.
    pub path: &'static str,
    pub format: Format,
    pub server: Option<Place>,
    pub hooks: Option<Hooks>,
}

/// What `init` knows about one client.
#[derive(Debug)]
pub struct Client {
    /// As `--client` takes it.
    pub name: &'static str,
    /// As people know it.
    pub title: &'static str,
    /// That of the server entry first.
    pub files: &'static [File],
    /// Unless it is asked for by name, it is set up only where this folder is.
    pub folder: Option<&'static str>,
    /// What a person has to do before the client starts our server.
    pub next: &'static str,
    /// What a person has to do before it runs our hooks.
    pub next_hooks: &'static str,
    /// What happens to a session that is to be woken.
    pub next_wake: &'static str,
}

/// Every client that `init` knows, in the order of its output.
pub const CLIENTS: &[Client] = &[
    // Source: tried with Claude Code 2.1.332, which drops settings that are not strict JSON.
    Client {
        name: "claude",
        title: "Claude Code",
        files: &[
            File {
                path: ".mcp.json",
                format: Format::Json { comments: false },
                server: Some(Place {
                    section: "mcpServers",
                    template: include_str!("../../templates/claude.mcp.json"),
                    wakes: false,
                }),
                hooks: None,
            },
            File {
                path: ".claude/settings.json",
                format: Format::Json { comments: false },
                server: None,
                hooks: Some(Hooks {
                    announce: include_str!("../../templates/claude.hooks.json"),
                    wake: Some(include_str!("../../templates/claude.wake.json")),
                }),
            },
        ],
        folder: None,
        next: "start `claude` here, trust the folder (the default answer is no) and choose \
               `Use this MCP server`; `claude mcp list` then says `Connected`",
        next_hooks: "it runs the hooks of a project once the folder is trusted",
        next_wake: "when a message comes while a session is idle, a hook that waits in the \
                    background gives it a turn, which costs tokens though nobody typed anything",
    },
    // Source: tried with Codex 0.171.0, which drops hooks that are not strict JSON.
    Client {
        name: "codex",
        title: "Codex",
        files: &[
            File {
                path: ".codex/config.toml",
                format: Format::Toml,
                server: Some(Place {
                    section: "mcp_servers",
                    template: include_str!("../../templates/codex.config.toml"),
                    wakes: true,
                }),
                hooks: None,
            },
            File {
                path: ".codex/hooks.json",
                format: Format::Json { comments: false },
                server: None,
                hooks: Some(Hooks {
                    announce: include_str!("../../templates/codex.hooks.json"),
                    wake: None,
                }),
            },
        ],
        folder: None,
        next: "start `codex` here and trust the folder (it ignores `.codex/` until then); \
               `codex mcp list` then shows `team-table`",
        next_hooks: "at its next start it says `Hooks need review`: look at them and trust them; \
                     it asks again after any edit of `.codex/hooks.json`",
        next_wake: "when a message comes while a session is idle, the server gives it a turn by \
                    `codex queue`, which costs tokens though nobody typed anything",
    },
    // Source: tried with Gemini CLI 0.61.0.
    Client {
        name: "gemini",
        title: "Gemini CLI",
        files: &[File {
            path: ".gemini/settings.json",
            format: Format::Json { comments: true },
            server: Some(Place {
                section: "mcpServers",
                template: include_str!("../../templates/gemini.mcp.json"),
                wakes: false,
            }),
            hooks: Some(Hooks {
                announce: include_str!("../../templates/gemini.hooks.json"),
                wake: None,
            }),
        }],
        folder: Some(".gemini"),
        next: "start `gemini` here and trust the folder (it ignores `.gemini/` until then); \
               `gemini mcp list` then says `Connected`",
        next_hooks: "it runs the hooks of a project once the folder is trusted",
        next_wake: "nothing is known that wakes an idle session, so nothing was set up for that",
    },
];

/// How a client is to start our server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    pub command: String,
    /// The name to wish for; none lets each session find its own.
    pub name: Option<String>,
    /// Idle sessions are to be woken.
    pub wake: bool,
}

impl Server {
    fn args(&self) -> Vec<String> {
        let mut args = vec!["serve".to_owned()];
        if let Some(name) = &self.name {
            args.extend(["--name".to_owned(), name.clone()]);
        }
        if self.wake {
            args.push("--wake".to_owned());
        }
        args
    }
}

/// What an editor read in the entry under our name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    pub command: Option<String>,
    pub args: Option<Vec<String>>,
    /// Further settings that the template does not have, or has with another value.
    pub others: Vec<String>,
}

/// Whose the entry under our name is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    Absent,
    /// As `init` writes it, perhaps with another path or name.
    Ours(Server),
    /// It starts our server, with settings (these) that `init` did not write.
    Extended(Vec<String>),
    /// It starts something else.
    Foreign,
}

impl State {
    fn of(seen: Option<Seen>) -> State {
        let Some(seen) = seen else { return State::Absent };
        let (Some(command), Some(args)) = (seen.command, seen.args) else { return State::Foreign };
        if !starts_us(&command) || args.first().is_none_or(|arg| arg != "serve") {
            return State::Foreign;
        }
        let mut others = seen.others;
        let mut server = Server { command, name: None, wake: false };
        let mut rest = args.get(1..).unwrap_or_default();
        while let Some((flag, behind)) = rest.split_first() {
            rest = match (flag.as_str(), behind) {
                ("--wake", behind) if !server.wake => {
                    server.wake = true;
                    behind
                }
                ("--name", [name, behind @ ..]) if server.name.is_none() => {
                    server.name = Some(name.clone());
                    behind
                }
                _ => {
                    others.insert(0, "args".to_owned());
                    break;
                }
            };
        }
        if others.is_empty() { State::Ours(server) } else { State::Extended(others) }
    }
}

/// Whether a command's file name is ours, by which an entry of ours is known again; the path may
/// come from another system.
pub fn starts_us(command: &str) -> bool {
    let file = command.rsplit(['/', '\\']).next().unwrap_or(command);
    file == KEY || file.strip_suffix(".exe").is_some_and(|stem| stem == KEY)
}

impl Client {
    /// The row of a name.
    pub fn named(name: &str) -> Option<&'static Client> {
        CLIENTS.iter().find(|client| client.name == name)
    }

    /// The file of its server entry.
    #[expect(clippy::expect_used, reason = "each row of CLIENTS has one, and it stands first")]
    pub fn server_file(&self) -> &'static File {
        self.files.first().expect("every client has a file")
    }

    /// The key of the object or table that holds its servers.
    pub fn section(&self) -> &'static str {
        self.server_file().server.map_or("", |place| place.section)
    }
}

impl File {
    /// Whose the entry under our name is.
    pub fn look(&self, text: &str) -> Result<State, Fault> {
        let Some(place) = self.server else { return Ok(State::Absent) };
        let seen = match self.format {
            Format::Json { .. } => json::server::look(text, place),
            Format::Toml => toml::look(text, place),
        };
        seen.map(State::of)
    }

    /// Puts our entry in, or brings the one that `init` wrote up to date. An entry that somebody
    /// wrote or extended is left alone. A name that is there stays where none is wished for, and
    /// so does `--wake`.
    pub fn add(&self, text: &str, server: &Server) -> Result<String, Fault> {
        let Some(place) = self.server else { return Ok(text.to_owned()) };
        let mut server = Server { wake: server.wake && place.wakes, ..server.clone() };
        match self.look(text)? {
            State::Absent => {}
            State::Ours(there) => {
                server.name = server.name.or(there.name);
                server.wake |= there.wake;
            }
            State::Extended(_) | State::Foreign => return Ok(text.to_owned()),
        }
        let edited = match self.format {
            Format::Json { .. } => json::server::add(text, place, &server),
            Format::Toml => toml::add(text, place, &server),
        }?;
        self.check(text, edited, &State::Ours(server))
    }

    /// Takes the entry under our name out, whoever wrote it; see [`File::look`].
    pub fn remove(&self, text: &str) -> Result<String, Fault> {
        let Some(place) = self.server else { return Ok(text.to_owned()) };
        let edited = match self.format {
            Format::Json { .. } => json::server::remove(text, place),
            Format::Toml => toml::remove(text, place),
        }?;
        self.check(text, edited, &State::Absent)
    }

    /// The events at which somebody has changed a hook of ours, or put one of his own beside it.
    pub fn changed_hooks(&self, text: &str) -> Result<Vec<String>, Fault> {
        if self.hooks.is_none() {
            return Ok(Vec::new());
        }
        json::hooks::changed(text, &self.templates(Extras::ALL))
    }

    /// Puts our hooks in, or brings those that `init` wrote up to date. What is in
    /// [`File::changed_hooks`] is left alone.
    pub fn add_hooks(&self, text: &str, program: &str, extras: Extras) -> Result<String, Fault> {
        if !self.has_hooks(extras) {
            return Ok(text.to_owned());
        }
        let mut edited = text.to_owned();
        for template in self.templates(extras) {
            edited = json::hooks::add(&edited, template, program)?;
        }
        self.check_hooks(text, edited)
    }

    /// Takes our hooks out, but for what is in [`File::changed_hooks`].
    pub fn remove_hooks(&self, text: &str) -> Result<String, Fault> {
        if self.hooks.is_none() {
            return Ok(text.to_owned());
        }
        let edited = json::hooks::remove(text, &self.templates(Extras::ALL))?;
        self.check_hooks(text, edited)
    }

    /// Whether any of these hooks go into this file.
    pub fn has_hooks(&self, extras: Extras) -> bool {
        !self.templates(extras).is_empty()
    }

    /// Whether any of these hooks start our program by themselves.
    pub fn has_commands(&self, extras: Extras) -> bool {
        self.templates(extras).iter().any(|template| template.contains("\"command\":"))
    }

    fn templates(&self, extras: Extras) -> Vec<&'static str> {
        let Some(hooks) = self.hooks else { return Vec::new() };
        let announce = extras.hooks.then_some(hooks.announce);
        announce.into_iter().chain(hooks.wake.filter(|_| extras.wake)).collect()
    }

    /// Whether nothing is left that somebody could miss: no key but an empty section of ours.
    pub fn is_bare(&self, text: &str) -> bool {
        let section = self.server.map(|place| place.section);
        match self.format {
            Format::Json { .. } => {
                let hooks = self.hooks.map(|_| json::hooks::HOOKS);
                json::is_bare(text, &section.into_iter().chain(hooks).collect::<Vec<_>>())
            }
            Format::Toml => toml::is_bare(text, section.unwrap_or_default()),
        }
    }

    /// Why the client itself will not read a text that we can read.
    pub fn complaint(&self, text: &str) -> Option<Fault> {
        match self.format {
            Format::Json { comments } => json::strict(text, comments).err(),
            Format::Toml => None,
        }
    }

    /// No edit leaves this module unless it reads back as meant.
    fn check(&self, before: &str, edited: String, meant: &State) -> Result<String, Fault> {
        match self.look(&edited) {
            Ok(state) if state == *meant => Ok(edited),
            _ => Err(harm(before)),
        }
    }

    fn check_hooks(&self, before: &str, edited: String) -> Result<String, Fault> {
        match (self.changed_hooks(before), self.changed_hooks(&edited)) {
            (Ok(there), Ok(left)) if there == left && self.look(before) == self.look(&edited) => {
                Ok(edited)
            }
            (Err(fault), _) => Err(fault),
            _ => Err(harm(before)),
        }
    }
}

fn harm(before: &str) -> Fault {
    Fault::at(before, 0, "this layout cannot be edited without harm")
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.title)
    }
}

#[cfg(test)]
mod tests {
    use super::{CLIENTS, Client, Extras, File, Seen, Server, State, starts_us};

    pub(super) fn plain() -> Server {
        Server { command: "team-table".to_owned(), name: None, wake: false }
    }

    pub(super) fn server_file(client: &'static Client) -> &'static File {
        let file = &client.files[0];
        assert!(file.server.is_some(), "{client}");
        file
    }

    #[test]
    fn every_template_is_what_init_writes() {
        for client in CLIENTS {
            let file = server_file(client);
            let template = file.server.unwrap().template;
            assert_eq!(file.add("", &plain()).unwrap(), template, "{client}");
            assert_eq!(file.remove(template).unwrap(), "", "{client}");
            assert_eq!(file.look(template).unwrap(), State::Ours(plain()), "{client}");
            assert_eq!(file.complaint(template), None, "{client}");
            assert_eq!(Client::named(client.name).unwrap().title, client.title);
        }
    }

    #[test]
    fn every_template_of_hooks_is_what_init_writes() {
        for file in CLIENTS.iter().flat_map(|client| client.files) {
            let Some(hooks) = file.hooks else { continue };
            let path = file.path;
            for template in [Some(hooks.announce), hooks.wake].into_iter().flatten() {
                let hooks = template == hooks.announce;
                let extras = Extras { hooks, wake: !hooks };
                let add = |text: &str| file.add_hooks(text, "team-table", extras);
                assert_eq!(add("").unwrap(), template, "{path}");
                assert_eq!(add(template).unwrap(), template, "{path}");
                assert_eq!(file.remove_hooks(template).unwrap(), "", "{path}");
                assert_eq!(file.complaint(template), None, "{path}");
            }
        }
    }

    #[test]
    fn an_entry_is_brought_up_to_date_and_keeps_its_name_and_its_wake() {
        for file in CLIENTS.iter().map(server_file) {
            let named = Server {
                command: r"C:\x\team-table.exe".into(),
                name: Some("a\"b".into()),
                wake: file.server.unwrap().wakes,
            };
            let text = file.add(file.server.unwrap().template, &named).unwrap();
            assert_eq!(file.look(&text).unwrap(), State::Ours(named.clone()));
            let text = file.add(&text, &plain()).unwrap();
            let kept = Server { command: plain().command, ..named };
            assert_eq!(file.look(&text).unwrap(), State::Ours(kept));
            assert_eq!(file.remove(&text).unwrap(), "");
        }
    }

    #[test]
    fn states() {
        fn check(command: &str, args: &[&str], others: &[&str], expected: &State) {
            let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
            let seen = Seen {
                command: Some(command.to_owned()),
                args: Some(owned(args)),
                others: owned(others),
            };
            assert_eq!(State::of(Some(seen)), *expected);
        }
        check("team-table", &["serve"], &[], &State::Ours(plain()));
        let wake = Server { wake: true, ..plain() };
        check("team-table", &["serve", "--wake"], &[], &State::Ours(wake.clone()));
        let wake = State::Ours(Server { name: Some("a".into()), ..wake });
        check("team-table", &["serve", "--name", "a", "--wake"], &[], &wake);
        check("team-table", &["serve", "--wake", "--name", "a"], &[], &wake);
        let extended = State::Extended(vec!["args".into()]);
        check("team-table", &["serve", "--wake", "--wake"], &[], &extended);
        check("team-table", &["serve", "--name"], &[], &extended);
        check("team-table", &["serve"], &["env"], &State::Extended(vec!["env".into()]));
        check("team-table", &["serve", "-v"], &[], &State::Extended(vec!["args".into()]));
        check("npx", &["serve"], &[], &State::Foreign);
        check("team-table", &["poll"], &[], &State::Foreign);
        check("team-table", &[], &[], &State::Foreign);
        assert_eq!(State::of(Some(Seen::default())), State::Foreign);
        assert_eq!(State::of(None), State::Absent);
        assert!(starts_us("/opt/team-table") && starts_us(r"C:\team-table.exe"));
        assert!(!starts_us("team-table.sh") && !starts_us("my-team-table"));
    }
}
