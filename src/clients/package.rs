//! Plugin packages: a folder that a client installs as a whole, with our server, our hooks and a
//! skill.
//!
//! One row of [`PACKAGES`] is one client's. Each folder is a marketplace of one plugin too, so that
//! the client installs it from where it lies.

use serde_json::Value;

use super::{
    Fault, File, Format, KEY, Link, Place, Program, Server, json,
    table::{MCP_JSON, SERVERS},
    value,
};

/// The package of one client.
#[derive(Debug)]
pub struct Package {
    /// As on the command line, and in [`super::CLIENTS`].
    pub client: &'static str,
    /// The file by which a folder is known for a package, and whose it is.
    pub manifest: &'static str,
    parts: &'static [(&'static str, Content)],
    /// The key under which the client lists the plugins that it has turned on, in a file of its own or
    /// of the project.
    listed_under: &'static str,
    /// What to do with the folder.
    pub next: &'static [Step],
    /// What comes of it in a project where `init` has been, too.
    pub beside_init: &'static str,
}

/// A command that a person may run now.
#[derive(Debug)]
pub struct Step {
    pub command: &'static str,
    /// The folder of the package is its last argument.
    pub takes_folder: bool,
    pub why: &'static str,
}

/// What is in a file of a package; each text is a whole file.
#[derive(Debug)]
enum Content {
    /// With `{version}` for ours.
    Text(&'static str),
    Server(File),
    Hooks(&'static str),
}

const SKILL: (&str, Content) =
    ("skills/team-table/SKILL.md", Content::Text(include_str!("../../templates/plugin/SKILL.md")));

/// In a plugin Codex takes the form of others, with what its own needs.
const CODEX_MCP_JSON: Place = Place {
    program: include_str!("../../templates/plugin/codex/mcp.json"),
    http: None,
    sse: None,
    ..MCP_JSON
};

/// Every client that has packages we know of.
pub const PACKAGES: &[Package] = &[
    // Source: tried with Claude Code 2.1.332. It starts one server where a project's `.mcp.json` has
    // the same command, and calls that `team-table`, else `plugin:team-table:team-table`. A hook that
    // names a server which is not there fails in front of the person, at every step. So the hooks
    // that tell of messages are commands, which find the session's server whatever it is called. The
    // one that calls the server itself runs before tools of that very server: it tells the id of the
    // session, which the environment of the server may not know (`--continue`, `/clear`).
    Package {
        client: "claude",
        manifest: ".claude-plugin/plugin.json",
        parts: &[
            (
                ".claude-plugin/plugin.json",
                Content::Text(include_str!("../../templates/plugin/claude/plugin.json")),
            ),
            (
                ".claude-plugin/marketplace.json",
                Content::Text(include_str!("../../templates/plugin/claude/marketplace.json")),
            ),
            (".mcp.json", Content::Server(File { server: Some(MCP_JSON), ..SERVERS })),
            (
                "hooks/hooks.json",
                Content::Hooks(include_str!("../../templates/plugin/claude/hooks.json")),
            ),
            SKILL,
            ("README.md", Content::Text(include_str!("../../templates/plugin/claude/README.md"))),
        ],
        listed_under: "enabledPlugins",
        next: &[
            Step { command: "claude --plugin-dir", takes_folder: true, why: "to try it" },
            Step {
                command: "claude plugin marketplace add",
                takes_folder: true,
                why: "to keep it, in all projects",
            },
            Step {
                command: "claude plugin install team-table@team-table",
                takes_folder: false,
                why: "and install it from there",
            },
        ],
        beside_init: "where the `.mcp.json` of a project has the same command and arguments, Claude \
                      Code starts that server and not this one; where they differ (`--name`), both, \
                      and the second says so: use one of the two",
    },
    // Source: tried with Codex 0.171.0. A project's server of the same name comes before the
    // plugin's, and is called the same.
    Package {
        client: "codex",
        manifest: ".codex-plugin/plugin.json",
        parts: &[
            (
                ".codex-plugin/plugin.json",
                Content::Text(include_str!("../../templates/plugin/codex/plugin.json")),
            ),
            (
                ".agents/plugins/marketplace.json",
                Content::Text(include_str!("../../templates/plugin/codex/marketplace.json")),
            ),
            (".mcp.json", Content::Server(File { server: Some(CODEX_MCP_JSON), ..SERVERS })),
            ("hooks/hooks.json", Content::Hooks(include_str!("../../templates/codex.hooks.json"))),
            SKILL,
            ("README.md", Content::Text(include_str!("../../templates/plugin/codex/README.md"))),
        ],
        listed_under: "plugins",
        next: &[
            Step {
                command: "codex plugin marketplace add",
                takes_folder: true,
                why: "for all projects",
            },
            Step {
                command: "codex plugin add team-table@team-table",
                takes_folder: false,
                why: "and install it from there; at its next start it says `Hooks need review`",
            },
        ],
        beside_init: "where the `.codex/config.toml` of a project names team-table, Codex starts that \
                      server and not this one",
    },
];

impl Package {
    /// The row of a name.
    pub fn named(client: &str) -> Option<&'static Package> {
        PACKAGES.iter().find(|package| package.client == client)
    }

    /// All files, by their paths from the top of the package, with `/`; the manifest first. They
    /// start `command`.
    ///
    /// # Errors
    /// A template of ours that cannot be read.
    pub fn files(&self, command: &str) -> Result<Vec<(&'static str, String)>, Fault> {
        let program = Program { command: command.to_owned(), name: None, wake: false };
        let server = Server { link: Link::Program(program), trust: false };
        let filled = |content: &Content| match content {
            Content::Text(text) => Ok(text.replace("{version}", env!("CARGO_PKG_VERSION"))),
            Content::Server(file) => file.add("", &server),
            Content::Hooks(template) => json::hooks::add("", template, command),
        };
        self.parts.iter().map(|(path, content)| Ok((*path, filled(content)?))).collect()
    }

    /// Whether one of these files of the client says that our plugin is installed and turned on, from
    /// whatever marketplace: `"team-table@MARKETPLACE": true`, or a table with `enabled = true`.
    pub fn is_installed<'a>(&self, mut files: impl Iterator<Item = &'a Value>) -> bool {
        files.any(|file| {
            let plugins = file.get(self.listed_under).and_then(Value::as_object);
            plugins.into_iter().flatten().any(|(id, is)| {
                let is_ours = id.strip_prefix(KEY).is_some_and(|rest| rest.starts_with('@'));
                is_ours && (*is == true || is["enabled"] == true)
            })
        })
    }

    /// Whether this text of a manifest is one of ours, of whatever version.
    pub fn is_ours(manifest: &str) -> bool {
        let found = value::parse(manifest, Format::ANY_JSON);
        found.is_ok_and(|value| value.get("name").and_then(|name| name.as_str()) == Some(KEY))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Content, PACKAGES, Package};
    use crate::clients::{Client, KEY};

    #[test]
    fn every_package_is_whole() {
        for package in PACKAGES {
            assert!(Client::named(package.client).is_some(), "{}", package.client);
            assert_eq!(Package::named(package.client).unwrap().manifest, package.manifest);
            let files = package.files(KEY).unwrap();
            assert_eq!(files[0].0, package.manifest);
            assert!(Package::is_ours(&files[0].1));
            assert!(files[0].1.contains(env!("CARGO_PKG_VERSION")));
            for (path, text) in &files {
                assert!(text.ends_with('\n') && !text.contains("{version}"), "{path}");
                if text.starts_with('{') {
                    let value = serde_json::from_str::<serde_json::Value>(text);
                    assert!(value.is_ok_and(|value| value.is_object()), "{path}");
                }
            }
        }
    }

    #[test]
    fn the_program_is_named_wherever_it_is_started() {
        for package in PACKAGES {
            for (path, text) in package.files("/opt/t t/team-table").unwrap() {
                let starts = |text: &str| text.matches("\"command\":").count();
                assert_eq!(starts(&text), text.matches("/opt/t t/team-table").count(), "{path}");
            }
            assert!(package.parts.iter().any(|(_, part)| matches!(part, Content::Server(_))));
        }
    }

    #[test]
    fn an_installed_plugin_is_seen() {
        let check = |client: &str, file: serde_json::Value, expected: bool| {
            let package = Package::named(client).unwrap();
            assert_eq!(package.is_installed([&json!(null), &file].into_iter()), expected, "{file}");
        };
        check("claude", json!({"enabledPlugins": {"x@y": true, "team-table@z": true}}), true);
        check("claude", json!({"enabledPlugins": {"x@y": true, "team-table@z": false}}), false);
        check(
            "claude",
            json!({"enabledPlugins": {"team-tables@z": true, "x@team-table": true}}),
            false,
        );
        check("claude", json!({"plugins": {"team-table@z": true}, "enabledPlugins": []}), false);
        check("codex", json!({"plugins": {"team-table@z": {"enabled": true}}}), true);
        check("codex", json!({"plugins": {"team-table@z": {"enabled": false}}}), false);
        check("codex", json!({"plugins": {"team-table": {"enabled": true}}}), false);
    }

    #[test]
    fn manifests_of_others_are_not_ours() {
        assert!(Package::is_ours("{\"version\": \"9\", \"name\": \"team-table\"}"));
        for text in ["", "{}", "{\"name\": \"other\"}", "{\"name\": 1}", "[\"team-table\"]", "{"] {
            assert!(!Package::is_ours(text), "{text:?}");
        }
    }

    /// What Anthropic's and OpenAI's clients ask of a skill: a header with a name, which is that of
    /// its folder, and a description of at most 1,024 characters.
    #[test]
    fn the_skill_is_short_and_in_form() {
        let text = include_str!("../../templates/plugin/SKILL.md");
        assert!(text.len() < 2_048, "{} bytes", text.len());
        let header = text.strip_prefix("---\n").unwrap().split("\n---\n").next().unwrap();
        let [name, description] = header.lines().collect::<Vec<_>>()[..] else {
            panic!("{header}")
        };
        assert_eq!(name, "name: team-table");
        let description = description.strip_prefix("description: ").unwrap();
        assert!(description.len() <= 1_024 && !description.contains(": "), "{description}");
        let tools = in_backticks(text);
        for tool in ["register", "get_messages", "wait_for_messages", "claim_task", "reserve_files"]
        {
            assert!(tools.contains(&tool), "{tool}");
        }
    }

    /// What stands in backticks.
    fn in_backticks(text: &str) -> Vec<&str> {
        text.split('`').skip(1).step_by(2).collect()
    }
}
