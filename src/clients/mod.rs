//! The clients' configuration files: which there are, and how our entry gets in and out.
//!
//! One row of [`CLIENTS`] is one client with its files; a file holds our server entry, our hooks,
//! our permission to run unasked, or several of these. [`json`] and [`toml`] edit text to text;
//! nothing here touches the disk. An edit keeps every byte that it does not have to change: byte
//! order mark, line ends, indentation, comments, order, a missing line end at the end. Taking out
//! what was put in gives the first bytes back, without any record of them; where two texts would
//! become the same text, the entry is therefore written in another layout. [`survey`] reads what
//! else the clients' files say; [`package`] is for clients that install us as a whole.

use std::fmt;

use serde_json::{Map, Value};

mod entry;
mod hook;
mod json;
pub mod package;
mod span;
pub mod survey;
mod table;
mod toml;
pub mod value;

pub use entry::{Link, Network, Program, Server, State, is_endpoint, is_sse, is_variable};
pub use span::Fault;
pub use table::CLIENTS;

/// The name of our entry in every client's file.
pub const KEY: &str = "team-table";

/// The notation of a client's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// JSON as the client reads it. We read comments and trailing commas in any case.
    Json {
        comments: bool,
        trailing_commas: bool,
        /// A byte order mark at the beginning.
        mark: bool,
    },
    Toml,
}

impl Format {
    /// JSON with whatever a client may take.
    pub const ANY_JSON: Format = Format::Json { comments: true, trailing_commas: true, mark: true };
}

/// Where an entry stands in a file, and what it looks like. Each template is a whole file with our
/// entry and nothing else.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// The notation of the templates.
    pub format: Format,
    /// The key of the object or table that holds one entry per server.
    pub section: &'static str,
    /// The entry of a server that the client starts.
    pub program: &'static str,
    /// The entry of a server that it calls by streamable HTTP. Without a member for a token it has
    /// no way to name a variable there.
    pub http: Option<&'static str>,
    /// And by the transport of 2024.
    pub sse: Option<&'static str>,
    /// The server wakes an idle session of this client, where it is told to.
    pub wakes: bool,
    /// The entry itself can say that the tools run unasked.
    pub trusts: bool,
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
    /// The tools run without asking.
    pub allow: bool,
}

impl Extras {
    const ALL: Extras = Extras { hooks: true, wake: true, allow: true };
}

/// One file of a client.
#[derive(Debug)]
pub struct File {
    /// From the top of the checkout, with `/`.
    pub path: &'static str,
    /// Where else the client looks for the same. What is there is used rather than a new file.
    pub or: &'static [&'static str],
    pub format: Format,
    pub server: Option<Place>,
    pub hooks: Option<Hooks>,
    /// A whole file with nothing but the permission to run our tools unasked.
    pub allow: Option<&'static str>,
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
    /// Unless it is asked for by name, it is set up only where one of these files or folders is.
    /// Without any it always is.
    pub signs: &'static [&'static str],
    /// What a person has to do before the client starts our server.
    pub next: &'static str,
    /// What a person has to do before it runs our hooks.
    pub next_hooks: &'static str,
    /// What happens to a session that is to be woken.
    pub next_wake: &'static str,
    /// What makes it run our tools without asking.
    pub next_allow: &'static str,
    /// It comes over the network without a session, so that it has to say who it is each time.
    pub is_sessionless: bool,
    /// How it hears of a message; none where it was never tried.
    pub tried: Option<Tried>,
    pub readme: Readme,
}

/// How a client hears of a message, by what a real one did.
#[derive(Debug)]
pub struct Tried {
    pub version: &'static str,
    /// It shows its model the line behind each result.
    pub badge: &'static str,
    /// It lets a call wait for a message.
    pub wait: &'static str,
    pub hook_at_prompt: &'static str,
    pub hook_after_tool: &'static str,
    pub hook_at_end: &'static str,
    pub woken: &'static str,
}

/// What the README says of each thing that `--with` sets up.
#[derive(Debug)]
pub struct Readme {
    pub hooks: &'static str,
    pub wake: &'static str,
    pub allow: &'static str,
}

/// Why a client cannot be led to a server on the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lack {
    /// It knows no servers on the network.
    Network,
    /// It does not know the transport of 2024.
    Sse,
    /// It takes no variable for a token, and a token in the file could be read by everybody.
    Variable,
}

/// Whether a file lets our tools run unasked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allowed {
    No,
    Yes,
    /// It has a rule for just them that says something else.
    Otherwise,
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

    /// The file of its hooks.
    pub fn hooks_file(&self) -> Option<&'static File> {
        self.files.iter().find(|file| file.hooks.is_some())
    }

    /// Whether it is set up without being asked for.
    pub fn is_usual(&self) -> bool {
        self.signs.is_empty()
    }

    /// Whether it comes to this server as nobody, and is refused.
    pub fn comes_as_nobody(&self, network: &Network) -> bool {
        self.is_sessionless
            && network.token_env.is_none()
            && network.member().is_none()
            && !is_sse(&network.url)
    }

    /// Whether an idle session of it can be woken.
    pub fn can_be_woken(&self) -> bool {
        let wake = Extras { wake: true, ..Extras::default() };
        self.files
            .iter()
            .any(|file| file.has_hooks(wake) || file.server.is_some_and(|place| place.wakes))
    }

    /// What stands in the way of this server.
    pub fn lacks(&self, link: &Link) -> Option<Lack> {
        let (Link::Network(network), Some(place)) = (link, self.server_file().server) else {
            return None;
        };
        let template = if is_sse(&network.url) { place.sse } else { place.http };
        let Some(template) = template else {
            return Some(if place.http.is_some() { Lack::Sse } else { Lack::Network });
        };
        let takes_token = place.members(template).values().any(entry::is_token);
        (network.token_env.is_some() && !takes_token).then_some(Lack::Variable)
    }
}

impl Place {
    /// The members of the entry in a template.
    fn members(&self, template: &str) -> Map<String, Value> {
        let file = value::parse(template, self.format).unwrap_or_default();
        let entry = file.get(self.section).and_then(|section| section.get(KEY));
        entry.and_then(Value::as_object).cloned().unwrap_or_default()
    }

    fn template(&self, link: &Link) -> Option<&'static str> {
        match link {
            Link::Program(_) => Some(self.program),
            Link::Network(network) if is_sse(&network.url) => self.sse,
            Link::Network(_) => self.http,
        }
    }
}

impl File {
    /// All paths at which the client looks for it, the usual one first.
    pub fn paths(&self) -> impl Iterator<Item = &'static str> {
        [self.path].into_iter().chain(self.or.iter().copied())
    }

    /// Whose the entry under our name is.
    pub fn look(&self, text: &str) -> Result<State, Fault> {
        let Some(place) = &self.server else { return Ok(State::Absent) };
        Ok(State::of(self.entry(text)?.as_ref(), place))
    }

    /// The members of the entry under our name.
    fn entry(&self, text: &str) -> Result<Option<Map<String, Value>>, Fault> {
        let Some(place) = &self.server else { return Ok(None) };
        match self.format {
            Format::Json { .. } => json::server::look(text, place.section),
            Format::Toml => toml::look(text, place.section),
        }
    }

    /// Puts our entry in, or brings the one that `init` wrote up to date, in its place. An entry
    /// that somebody wrote or extended is left alone, and so is a file that has no form for this
    /// server. A name that is there stays where none is wished for, and so does `--wake`.
    pub fn add(&self, text: &str, server: &Server) -> Result<String, Fault> {
        let Some(place) = &self.server else { return Ok(text.to_owned()) };
        let Some(template) = place.template(&server.link) else { return Ok(text.to_owned()) };
        let mut server = server.clone();
        server.trust &= place.trusts;
        if let Link::Program(program) = &mut server.link {
            program.wake &= place.wakes;
        }
        let mut there = None;
        match self.look(text)? {
            State::Absent => {}
            State::Ours(ours) => {
                server.keep(&ours);
                // Of another form, nothing but what is the same by chance could be kept.
                if place.template(&ours.link) == Some(template) {
                    there = self.entry(text)?;
                }
            }
            State::Extended(_) | State::Foreign => return Ok(text.to_owned()),
        }
        let members = server.members(&place.members(template), there.as_ref());
        let edited = match self.format {
            Format::Json { .. } => json::server::add(text, place.section, &members),
            Format::Toml => toml::add(text, place.section, &members),
        }?;
        self.check(text, edited, &State::Ours(server))
    }

    /// Takes the entry under our name out, whoever wrote it; see [`File::look`].
    pub fn remove(&self, text: &str) -> Result<String, Fault> {
        let Some(place) = &self.server else { return Ok(text.to_owned()) };
        let edited = match self.format {
            Format::Json { .. } => json::server::remove(text, place.section),
            Format::Toml => toml::remove(text, place.section),
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

    /// Whether any of these go into this file.
    pub fn has(&self, extras: Extras) -> bool {
        self.has_hooks(extras) || (extras.allow && self.allow.is_some())
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

    /// Whether the permission to run our tools unasked is there, whoever put it in.
    pub fn allows(&self, text: &str) -> Result<Allowed, Fault> {
        self.allow.map_or(Ok(Allowed::No), |template| json::allow::look(text, template))
    }

    /// Puts the permission to run our tools unasked in, where nothing of that name is.
    pub fn add_allow(&self, text: &str, extras: Extras) -> Result<String, Fault> {
        let Some(template) = self.allow.filter(|_| extras.allow) else {
            return Ok(text.to_owned());
        };
        if self.allows(text)? != Allowed::No {
            return Ok(text.to_owned());
        }
        let edited = json::allow::add(text, template)?;
        if self.allows(&edited) != Ok(Allowed::Yes) {
            return Err(harm(text));
        }
        self.check_hooks(text, edited)
    }

    /// Takes that permission out, whoever put it in. One that says something else stays.
    pub fn remove_allow(&self, text: &str) -> Result<String, Fault> {
        let Some(template) = self.allow else { return Ok(text.to_owned()) };
        if self.allows(text)? != Allowed::Yes {
            return Ok(text.to_owned());
        }
        self.check_hooks(text, json::allow::remove(text, template)?)
    }

    /// Whether nothing is left that somebody could miss: no key but an empty section of ours.
    pub fn is_bare(&self, text: &str) -> bool {
        let section = self.server.map(|place| place.section);
        match self.format {
            Format::Json { .. } => {
                let hooks = self.hooks.map(|_| json::hooks::HOOKS);
                let allow = self.allow.and_then(json::allow::section);
                let keys: Vec<&str> =
                    [section, hooks, allow.as_deref()].into_iter().flatten().collect();
                json::is_bare(text, &keys)
            }
            Format::Toml => toml::is_bare(text, section.unwrap_or_default()),
        }
    }

    /// Why the client itself will not read a text that we can read.
    pub fn complaint(&self, text: &str) -> Option<Fault> {
        match self.format {
            Format::Json { mark: false, .. } if text.starts_with('\u{feff}') => {
                Some(Fault::at(text, 0, "a byte order mark"))
            }
            Format::Json { comments, trailing_commas, .. } => {
                json::strict(text, comments, trailing_commas).err()
            }
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
    use super::{
        Allowed, CLIENTS, Client, Extras, File, Lack, Link, Network, Program, Server, State,
        starts_us,
    };

    pub(super) fn plain() -> Server {
        let program = Program { command: "team-table".to_owned(), name: None, wake: false };
        Server { link: Link::Program(program), trust: false }
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
            let template = file.server.unwrap().program;
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
                let extras = Extras { hooks, wake: !hooks, allow: false };
                let add = |text: &str| file.add_hooks(text, "team-table", extras);
                assert_eq!(add("").unwrap(), template, "{path}");
                assert_eq!(add(template).unwrap(), template, "{path}");
                assert_eq!(file.remove_hooks(template).unwrap(), "", "{path}");
                assert_eq!(file.complaint(template), None, "{path}");
            }
        }
    }

    #[test]
    fn every_template_of_permissions_is_what_init_writes() {
        let allow = Extras { allow: true, ..Extras::default() };
        for file in CLIENTS.iter().flat_map(|client| client.files) {
            let Some(template) = file.allow else { continue };
            assert_eq!(file.add_allow("", allow).unwrap(), template);
            assert_eq!(file.add_allow(template, allow).unwrap(), template);
            assert_eq!(file.remove_allow(template).unwrap(), "");
            assert_eq!(file.complaint(template), None);
            assert_eq!(file.allows(template), Ok(Allowed::Yes));
            assert_eq!(file.allows(""), Ok(Allowed::No));
            assert_eq!(file.add_allow("{}", Extras::default()).unwrap(), "{}");
        }
    }

    #[test]
    fn an_entry_is_brought_up_to_date_and_keeps_its_name_and_its_wake() {
        for file in CLIENTS.iter().map(server_file) {
            let place = file.server.unwrap();
            let named = |command: &str| {
                let program = Program {
                    command: command.to_owned(),
                    name: Some("a\"b".into()),
                    wake: place.wakes,
                };
                Server { link: Link::Program(program), trust: place.trusts }
            };
            let text = file.add(place.program, &named(r"C:\x\team-table.exe")).unwrap();
            let there = named(r"C:\x\team-table.exe");
            assert_eq!(file.look(&text).unwrap(), State::Ours(there));
            let text = file.add(&text, &plain()).unwrap();
            assert_eq!(file.look(&text).unwrap(), State::Ours(named("team-table")));
            assert_eq!(file.remove(&text).unwrap(), "");
        }
    }

    #[test]
    fn an_entry_becomes_one_of_another_form_in_its_place_and_back() {
        for file in CLIENTS.iter().map(server_file) {
            let place = file.server.unwrap();
            for before in
                ["", "{}", "{\"a\":1}", "{\n\t\"a\": 1\n}\n", "\u{feff}a = 1\r\n", "x = 1"]
            {
                let Ok(started) = file.add(before, &plain()) else { continue };
                for (url, template) in [("/mcp", place.http), ("/sse", place.sse)] {
                    let Some(template) = template else { continue };
                    let token = place.members(template).values().any(super::entry::is_token);
                    for token_env in [Some("ADA_TOKEN"), None] {
                        let called = calls(url, token_env.filter(|_| token));
                        let there = file.add(&started, &called).unwrap();
                        assert_eq!(there, file.add(before, &called).unwrap(), "{before:?}");
                        assert_eq!(file.look(&there).unwrap(), State::Ours(called.clone()));
                        assert_eq!(file.add(&there, &called).unwrap(), there);
                        assert_eq!(file.add(&there, &plain()).unwrap(), started, "{there:?}");
                        assert_eq!(file.remove(&there).unwrap(), before, "{there:?}");
                    }
                }
            }
        }
    }

    pub(super) fn calls(path: &str, token_env: Option<&str>) -> Server {
        let url = format!("http://127.0.0.1:8741{path}");
        let token_env = token_env.map(str::to_owned);
        Server { link: Link::Network(Network { url, token_env }), trust: false }
    }

    #[test]
    fn every_template_of_the_network_is_what_init_writes() {
        for client in CLIENTS {
            let file = server_file(client);
            let place = file.server.unwrap();
            for template in [place.http, place.sse].into_iter().flatten() {
                let name = template.contains("TOKEN").then_some("TEAM_TABLE_TOKEN");
                let path = if template.contains("/sse") { "/sse" } else { "/mcp" };
                assert_eq!(file.add("", &calls(path, name)).unwrap(), template, "{client}");
                assert_eq!(file.remove(template).unwrap(), "", "{client}");
                assert_eq!(file.complaint(template), None, "{client}");
            }
        }
    }

    #[test]
    fn what_a_client_lacks() {
        let lacks = |client: &str, path, token_env| {
            Client::named(client).unwrap().lacks(&calls(path, token_env).link)
        };
        assert_eq!(lacks("claude", "/sse", Some("A")), None);
        assert_eq!(lacks("codex", "/mcp", Some("A")), None);
        assert_eq!(lacks("codex", "/sse", None), Some(Lack::Sse));
        assert_eq!(lacks("zed", "/mcp", None), None);
        assert_eq!(lacks("zed", "/mcp", Some("A")), Some(Lack::Variable));
        assert_eq!(Client::named("codex").unwrap().lacks(&plain().link), None);
    }

    #[test]
    fn programs_that_are_ours() {
        assert!(starts_us("/opt/team-table") && starts_us(r"C:\team-table.exe"));
        assert!(!starts_us("team-table.sh") && !starts_us("my-team-table"));
    }
}
