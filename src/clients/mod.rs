//! The clients' configuration files: which there are, and how our entry gets in and out.
//!
//! One row of [`CLIENTS`] is one client. [`json`] and [`toml`] edit text to text; nothing here
//! touches the disk. An edit keeps every byte that it does not have to change: byte order mark,
//! line ends, indentation, comments, order, a missing line end at the end. Taking out what was put
//! in gives the first bytes back, without any record of them; where two texts would become the
//! same text, the entry is therefore written in another layout.

use std::fmt;

mod json;
mod snippet;
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
        /// The client refuses comments and trailing commas.
        strict: bool,
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
}

/// What `init` knows about one client.
#[derive(Debug)]
pub struct Client {
    /// As `--client` takes it.
    pub name: &'static str,
    /// As people know it.
    pub title: &'static str,
    /// The file, from the top of the checkout, with `/`.
    pub file: &'static str,
    pub format: Format,
    pub place: Place,
    /// What a person has to do before the client starts our server.
    pub next: &'static str,
}

/// Every client that `init` knows, in the order of its output.
pub const CLIENTS: &[Client] = &[
    // Source: tried with Claude Code 2.1.332.
    Client {
        name: "claude",
        title: "Claude Code",
        file: ".mcp.json",
        format: Format::Json { strict: true },
        place: Place {
            section: "mcpServers",
            template: include_str!("../../templates/claude.mcp.json"),
        },
        next: "start `claude` here, trust the folder (the default answer is no) and choose \
               `Use this MCP server`; `claude mcp list` then says `Connected`",
    },
    // Source: tried with Codex 0.171.0.
    Client {
        name: "codex",
        title: "Codex",
        file: ".codex/config.toml",
        format: Format::Toml,
        place: Place {
            section: "mcp_servers",
            template: include_str!("../../templates/codex.config.toml"),
        },
        next: "start `codex` here and trust the folder (it ignores `.codex/` until then); \
               `codex mcp list` then shows `team-table`",
    },
];

/// How a client is to start our server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    pub command: String,
    /// The name to wish for; none lets each session find its own.
    pub name: Option<String>,
}

impl Server {
    fn args(&self) -> Vec<String> {
        let mut args = vec!["serve".to_owned()];
        if let Some(name) = &self.name {
            args.extend(["--name".to_owned(), name.clone()]);
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
        let name = match args.get(1..).unwrap_or_default() {
            [] => None,
            [flag, name] if flag == "--name" => Some(name.clone()),
            _ => {
                others.insert(0, "args".to_owned());
                None
            }
        };
        if others.is_empty() {
            State::Ours(Server { command, name })
        } else {
            State::Extended(others)
        }
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

    /// Whose the entry under our name is.
    pub fn look(&self, text: &str) -> Result<State, Fault> {
        let seen = match self.format {
            Format::Json { .. } => json::look(text, self.place),
            Format::Toml => toml::look(text, self.place),
        };
        seen.map(State::of)
    }

    /// Puts our entry in, or brings the one that `init` wrote up to date. An entry that somebody
    /// wrote or extended is left alone. A name that is there stays where none is wished for.
    pub fn add(&self, text: &str, server: &Server) -> Result<String, Fault> {
        let mut server = server.clone();
        match self.look(text)? {
            State::Absent => {}
            State::Ours(there) => server.name = server.name.or(there.name),
            State::Extended(_) | State::Foreign => return Ok(text.to_owned()),
        }
        let edited = match self.format {
            Format::Json { .. } => json::add(text, self.place, &server),
            Format::Toml => toml::add(text, self.place, &server),
        }?;
        self.check(text, edited, &State::Ours(server))
    }

    /// Takes the entry under our name out, whoever wrote it; see [`Client::look`].
    pub fn remove(&self, text: &str) -> Result<String, Fault> {
        let edited = match self.format {
            Format::Json { .. } => json::remove(text, self.place),
            Format::Toml => toml::remove(text, self.place),
        }?;
        self.check(text, edited, &State::Absent)
    }

    /// Whether nothing is left that somebody could miss: no key but an empty section of ours.
    pub fn is_bare(&self, text: &str) -> bool {
        match self.format {
            Format::Json { .. } => json::is_bare(text, self.place),
            Format::Toml => toml::is_bare(text, self.place),
        }
    }

    /// Why the client itself will not read a text that we can read.
    pub fn complaint(&self, text: &str) -> Option<Fault> {
        match self.format {
            Format::Json { strict: true } => json::strict(text).err(),
            Format::Json { strict: false } | Format::Toml => None,
        }
    }

    /// No edit leaves this module unless it reads back as meant.
    fn check(&self, before: &str, edited: String, meant: &State) -> Result<String, Fault> {
        match self.look(&edited) {
            Ok(state) if state == *meant => Ok(edited),
            _ => Err(Fault::at(before, 0, "this layout cannot be edited without harm")),
        }
    }
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.title)
    }
}

#[cfg(test)]
mod tests {
    use super::{CLIENTS, Client, Seen, Server, State, starts_us};

    fn plain() -> Server {
        Server { command: "team-table".to_owned(), name: None }
    }

    #[test]
    fn every_template_is_what_init_writes() {
        for client in CLIENTS {
            let template = client.place.template;
            assert_eq!(client.add("", &plain()).unwrap(), template, "{client}");
            assert_eq!(client.remove(template).unwrap(), "", "{client}");
            assert_eq!(client.look(template).unwrap(), State::Ours(plain()), "{client}");
            assert_eq!(client.complaint(template), None, "{client}");
            assert_eq!(Client::named(client.name).unwrap().file, client.file);
        }
    }

    #[test]
    fn an_entry_is_brought_up_to_date_and_keeps_its_name() {
        for client in CLIENTS {
            let named =
                Server { command: r"C:\x\team-table.exe".into(), name: Some("a\"b".into()) };
            let text = client.add(client.place.template, &named).unwrap();
            assert_eq!(client.look(&text).unwrap(), State::Ours(named.clone()));
            let text = client.add(&text, &plain()).unwrap();
            assert_eq!(
                client.look(&text).unwrap(),
                State::Ours(Server { name: named.name, ..plain() })
            );
            assert_eq!(client.remove(&text).unwrap(), "");
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
