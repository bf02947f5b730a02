//! What stands under our name in a client's file, as values in no notation: whose it is, and what
//! it is to be.
//!
//! A template is a whole file with the entry that `init` writes. What differs from one entry to
//! the next is found in it by what it holds: the command and its arguments, an address, and
//! [`VARIABLE`].

use serde_json::{Map, Value};

use super::{Place, starts_us};

/// Stands in the templates for the variable that holds a token.
pub(super) const VARIABLE: &str = "TEAM_TABLE_TOKEN";

/// The key of an entry by which Gemini CLI runs a server's tools without asking.
pub(super) const TRUST: &str = "trust";

/// How a client comes to our server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    pub link: Link,
    /// Its tools run without asking, where the entry itself says so.
    pub trust: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Link {
    /// The client starts it.
    Program(Program),
    /// It runs by itself, and the client calls it.
    Network(Network),
}

/// A server that a client starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    pub command: String,
    /// The name to wish for; none lets each session find its own.
    pub name: Option<String>,
    /// Idle sessions are to be woken.
    pub wake: bool,
}

/// A server that a client calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    pub url: String,
    /// The variable that holds the token; none where a name or nobody in particular comes.
    pub token_env: Option<String>,
}

/// Whose the entry under our name is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    Absent,
    /// As `init` writes it, perhaps with another path, name or address.
    Ours(Server),
    /// It leads to our server, with settings (these) that `init` did not write.
    Extended(Vec<String>),
    /// It leads to something else.
    Foreign,
}

impl Network {
    /// The member whose name the address has.
    pub fn member(&self) -> Option<&str> {
        self.url.split_once('?')?.1.strip_prefix("name=")
    }
}

impl Program {
    fn args(&self) -> Vec<Value> {
        let mut args = vec!["serve"];
        if let Some(name) = &self.name {
            args.extend(["--name", name]);
        }
        if self.wake {
            args.push("--wake");
        }
        args.into_iter().map(Value::from).collect()
    }

    /// From a command and its arguments; none where that starts something else. What it does not
    /// understand makes it say no in the second place.
    fn read(command: &str, args: &[String]) -> Option<(Program, bool)> {
        let (first, mut rest) = args.split_first()?;
        if !starts_us(command) || first != "serve" {
            return None;
        }
        let mut program = Program { command: command.to_owned(), name: None, wake: false };
        while let Some((flag, behind)) = rest.split_first() {
            rest = match (flag.as_str(), behind) {
                ("--wake", behind) if !program.wake => {
                    program.wake = true;
                    behind
                }
                ("--name", [name, behind @ ..]) if program.name.is_none() => {
                    program.name = Some(name.clone());
                    behind
                }
                _ => return Some((program, false)),
            };
        }
        Some((program, true))
    }
}

impl Server {
    /// What was asked for before and is not named now stays.
    pub(super) fn keep(&mut self, there: &Server) {
        self.trust |= there.trust;
        if let (Link::Program(program), Link::Program(there)) = (&mut self.link, &there.link) {
            program.name = program.name.take().or_else(|| there.name.clone());
            program.wake |= there.wake;
        }
    }

    /// The members of the entry, from those of a template. Of those that are the same in every
    /// entry only such as `there` has, if that is given: nothing is added that works without.
    pub(super) fn members(
        &self,
        template: &Map<String, Value>,
        there: Option<&Map<String, Value>>,
    ) -> Map<String, Value> {
        let mut members = Map::new();
        for (key, value) in template {
            let filled = match (&self.link, value) {
                (Link::Program(program), Value::String(_)) if key == "command" => {
                    Some(Value::from(program.command.clone()))
                }
                (Link::Program(program), Value::Array(_)) if key == "command" => {
                    let command = Value::from(program.command.clone());
                    Some([command].into_iter().chain(program.args()).collect())
                }
                (Link::Program(program), Value::Array(_)) if key == "args" => {
                    Some(program.args().into())
                }
                (Link::Network(network), value) if is_address(value) => {
                    Some(Value::from(network.url.clone()))
                }
                (Link::Network(network), value) if is_token(value) => {
                    network.token_env.as_ref().map(|name| with_variable(value, name))
                }
                (_, value) => {
                    there.is_none_or(|there| there.contains_key(key)).then(|| value.clone())
                }
            };
            members.extend(filled.map(|value| (key.clone(), value)));
        }
        if self.trust {
            members.insert(TRUST.to_owned(), Value::Bool(true));
        }
        members
    }
}

impl State {
    pub(super) fn of(entry: Option<&Map<String, Value>>, place: &Place) -> State {
        let Some(entry) = entry else { return State::Absent };
        let read = if entry.contains_key("command") {
            program(entry, place)
        } else {
            network(entry, place)
        };
        let Some((link, mut others)) = read else { return State::Foreign };
        let trust = place.trusts && entry.get(TRUST) == Some(&Value::Bool(true));
        if trust {
            others.retain(|name| name != TRUST);
        }
        if others.is_empty() {
            State::Ours(Server { link, trust })
        } else {
            State::Extended(others)
        }
    }
}

/// A server that is started, and the settings that the template does not have, or has otherwise.
fn program(entry: &Map<String, Value>, place: &Place) -> Option<(Link, Vec<String>)> {
    let template = place.members(place.program);
    let (command, args) = match (template.get("command")?, entry.get("command")?) {
        (Value::String(_), Value::String(command)) => (command.clone(), texts(entry.get("args")?)?),
        (Value::Array(_), command) => {
            let mut words = texts(command)?.into_iter();
            (words.next()?, words.collect())
        }
        _ => return None,
    };
    let (program, is_plain) = Program::read(&command, &args)?;
    let differs = |(key, value): (&String, &Value)| {
        let is_read = template.contains_key(key) && (key == "command" || key == "args");
        (!is_read && template.get(key) != Some(value)).then(|| key.clone())
    };
    let mut others: Vec<String> = entry.iter().filter_map(differs).collect();
    if !is_plain {
        let words = if template.contains_key("args") { "args" } else { "command" };
        others.insert(0, words.to_owned());
    }
    Some((Link::Program(program), others))
}

/// A server that is called, and what is not as the template has it.
fn network(entry: &Map<String, Value>, place: &Place) -> Option<(Link, Vec<String>)> {
    let address_key = |template: &Map<String, Value>| {
        template.iter().find(|(_, value)| is_address(value)).map(|(key, _)| key.clone())
    };
    let templates = [place.http, place.sse].map(|template| template.map(|it| place.members(it)));
    let url = templates.iter().flatten().find_map(|template| {
        let url = entry.get(&address_key(template)?)?.as_str()?;
        is_endpoint(url).then(|| url.to_owned())
    })?;
    let [http, sse] = templates;
    let Some(template) = (if is_sse(&url) { sse } else { http }) else {
        let others = entry.keys().cloned().collect();
        return Some((Link::Network(Network { url, token_env: None }), others));
    };
    let mut token_env = None;
    let mut others = Vec::new();
    for (key, value) in entry {
        let usual = match template.get(key) {
            Some(usual) if is_address(usual) => value == url.as_str(),
            Some(usual) if is_token(usual) => {
                token_env = variable(usual, value);
                token_env.is_some()
            }
            usual => usual == Some(value),
        };
        if !usual {
            others.push(key.clone());
        }
    }
    others.extend(address_key(&template).filter(|key| !entry.contains_key(key)));
    Some((Link::Network(Network { url, token_env }), others))
}

/// A list of nothing but texts.
fn texts(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|text| text.as_str().map(ToOwned::to_owned)).collect()
}

fn is_address(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.starts_with("http://"))
}

pub(super) fn is_token(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains(VARIABLE),
        Value::Object(members) => members.values().any(is_token),
        _ => false,
    }
}

/// A value of a template with the name of this variable.
fn with_variable(template: &Value, name: &str) -> Value {
    match template {
        Value::String(text) => Value::from(text.replace(VARIABLE, name)),
        Value::Object(members) => {
            members.iter().map(|(key, value)| (key.clone(), with_variable(value, name))).collect()
        }
        value => value.clone(),
    }
}

/// The variable that a value names where the template has [`VARIABLE`], if all else is the same.
fn variable(template: &Value, value: &Value) -> Option<String> {
    let found = match (template, value) {
        (Value::String(template), Value::String(text)) => {
            let (before, behind) = template.split_once(VARIABLE)?;
            text.strip_prefix(before)?.strip_suffix(behind)?.to_owned()
        }
        (Value::Object(template), Value::Object(members)) => {
            template.iter().find_map(|(key, usual)| variable(usual, members.get(key)?))?
        }
        _ => return None,
    };
    (is_variable(&found) && with_variable(template, &found) == *value).then_some(found)
}

/// Where `serve` answers on the network: streamable HTTP, and the transport of 2024.
const ENDPOINTS: [&str; 2] = ["/mcp", "/sse"];

/// Whether an address ends where our server answers.
pub fn is_endpoint(url: &str) -> bool {
    ENDPOINTS.iter().any(|end| path(url).ends_with(end))
}

/// Whether it is that of the transport of 2024.
pub fn is_sse(url: &str) -> bool {
    path(url).ends_with("/sse")
}

fn path(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or(url)
}

/// Whether a shell could set a variable of that name.
pub fn is_variable(name: &str) -> bool {
    !name.starts_with(|first: char| first.is_ascii_digit())
        && !name.is_empty()
        && name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_')
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Link, Network, Program, Server, State, is_endpoint, is_sse, is_variable};
    use crate::clients::{Client, Place, tests::plain};

    fn place(client: &str) -> Place {
        Client::named(client).unwrap().server_file().server.unwrap()
    }

    fn state(client: &str, entry: &Value) -> State {
        State::of(entry.as_object(), &place(client))
    }

    fn extended(names: &[&str]) -> State {
        State::Extended(names.iter().map(|&name| name.to_owned()).collect())
    }

    fn started(name: Option<&str>, wake: bool) -> State {
        let command = "team-table".to_owned();
        let program = Program { command, name: name.map(str::to_owned), wake };
        State::Ours(Server { link: Link::Program(program), trust: false })
    }

    fn called(url: &str, token_env: Option<&str>) -> State {
        let network = Network { url: url.into(), token_env: token_env.map(str::to_owned) };
        State::Ours(Server { link: Link::Network(network), trust: false })
    }

    #[test]
    fn servers_that_are_started() {
        let check = |command: &str, args: &[&str], expected: &State| {
            assert_eq!(state("claude", &json!({"command": command, "args": args})), *expected);
            let words: Vec<&str> = [command].iter().chain(args).copied().collect();
            let of_opencode = match expected {
                State::Extended(_) => &extended(&["command"]),
                other => other,
            };
            assert_eq!(state("opencode", &json!({"command": words})), *of_opencode);
        };
        check("team-table", &["serve"], &State::Ours(plain()));
        check("team-table", &["serve", "--wake"], &started(None, true));
        check("team-table", &["serve", "--name", "a", "--wake"], &started(Some("a"), true));
        check("team-table", &["serve", "--wake", "--name", "a"], &started(Some("a"), true));
        check("team-table", &["serve", "--wake", "--wake"], &extended(&["args"]));
        check("team-table", &["serve", "--name"], &extended(&["args"]));
        check("team-table", &["serve", "-v"], &extended(&["args"]));
        check("npx", &["serve"], &State::Foreign);
        check("team-table", &["poll"], &State::Foreign);
        check("team-table", &[], &State::Foreign);
        let entry = json!({"command": "team-table", "args": ["serve"], "type": "stdio"});
        assert_eq!(state("claude", &entry), started(None, false));
        assert_eq!(state("gemini", &entry), extended(&["type"]));
        assert_eq!(state("opencode", &entry), State::Foreign);
        assert_eq!(state("claude", &json!({"command": ["team-table", "serve"]})), State::Foreign);
        assert_eq!(state("claude", &json!({})), State::Foreign);
        assert_eq!(State::of(None, &place("claude")), State::Absent);
    }

    #[test]
    fn servers_that_are_called() {
        const URL: &str = "http://127.0.0.1:8741/mcp";
        const SSE: &str = "https://h/x/sse";
        let check = |client: &str, entry: Value, expected: State| {
            assert_eq!(state(client, &entry), expected, "{client}: {entry}");
        };
        check("claude", json!({"type": "http", "url": URL}), called(URL, None));
        check("claude", json!({"type": "sse", "url": SSE}), called(SSE, None));
        check("claude", json!({"type": "http", "url": SSE}), extended(&["type"]));
        check("claude", json!({"type": "http", "url": "https://h/other"}), State::Foreign);
        check("codex", json!({"url": URL, "bearer_token_env_var": "A"}), called(URL, Some("A")));
        check("codex", json!({"url": SSE}), extended(&["url"]));
        check("gemini", json!({"httpUrl": URL}), called(URL, None));
        check("gemini", json!({"url": URL}), extended(&["url", "httpUrl"]));
        let with = |authorization: &str| json!({"type": "http", "url": URL, "headers": {"Authorization": authorization}});
        check("claude", with("Bearer ${A_1}"), called(URL, Some("A_1")));
        check("claude", with("Bearer tt_secret"), extended(&["headers"]));
        check("claude", with("Bearer ${A:-x}"), extended(&["headers"]));
        let mut two = with("Bearer ${A}");
        two["headers"]["X"] = "y".into();
        check("claude", two, extended(&["headers"]));
        check(
            "zed",
            json!({"url": URL, "headers": {"Authorization": "x"}}),
            extended(&["headers"]),
        );
    }

    #[test]
    fn addresses_and_variables() {
        assert!(is_sse("http://h/sse?name=a") && !is_sse("http://h/mcp?x=/sse"));
        assert!(is_endpoint("https://h/a/mcp?name=a") && !is_endpoint("https://h/mcp/"));
        assert!(
            is_variable("A_1") && !is_variable("1A") && !is_variable("") && !is_variable("A-B")
        );
    }

    #[test]
    fn an_entry_that_trusts() {
        let entry = json!({"command": "team-table", "args": ["serve"], "trust": true});
        assert_eq!(state("gemini", &entry), State::Ours(Server { trust: true, ..plain() }));
        assert_eq!(state("claude", &entry), extended(&["trust"]));
        let entry = json!({"command": "team-table", "args": ["serve"], "trust": 1});
        assert_eq!(state("gemini", &entry), extended(&["trust"]));
    }
}
