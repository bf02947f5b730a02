//! What models are shown, and what the tables promise: of the tools, of the README, of `templates/`.

use std::{collections::BTreeSet, fs, path::Path};

use serde_json::{Map, Value, json};
use team_table::{
    cli,
    tools::{Access, Entry, TABLE},
    transport::mcp::INSTRUCTIONS,
};

use crate::support::Table;

/// One snapshot per tool, as it is served: the difference shows what models will see.
#[test]
fn tools_as_they_are_served() {
    let table = Table::new();
    let mut agent = table.agent("ada");
    let listed = agent.request("tools/list", json!({}));
    let tools = listed["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    let rows: Vec<&str> = TABLE.iter().map(|entry| entry.name).collect();
    assert_eq!(names, rows);
    for tool in tools {
        insta::assert_json_snapshot!(tool["name"].as_str().unwrap(), tool);
    }
    assert!(!table.file().exists(), "a client that lists the tools leaves no trace");
}

#[test]
fn the_handshake() {
    let table = Table::new();
    let mut agent = crate::support::agent::Agent::spawn(
        crate::support::program(),
        &["serve"],
        table.path(),
        &[],
    );
    let mut told = agent.initialize("test");
    assert_eq!(told["serverInfo"]["version"].take(), env!("CARGO_PKG_VERSION"));
    insta::assert_json_snapshot!(told);
}

#[test]
fn instructions_fit_what_clients_show() {
    let told = INSTRUCTIONS.trim_end();
    assert!(told.chars().count() < 2_000);
    assert!(told.split("\n\n").next().unwrap().chars().count() < 247);
    // They speak of no tool that is not there.
    let words = told.split(|c: char| !(c.is_ascii_lowercase() || c == '_'));
    let tools = words.filter(|word| word.contains('_') && *word != "reply_to");
    for tool in tools {
        assert!(Entry::named(tool).is_some(), "the instructions name {tool}");
    }
}

#[test]
fn schemas_stay_small() {
    let shown: Vec<Value> = TABLE
        .iter()
        .map(|entry| {
            let shape = entry.shape();
            json!({"name": entry.name, "description": shape.description, "input_schema": shape.input})
        })
        .collect();
    let n_chars = serde_json::to_string(&shown).unwrap().chars().count();
    assert!(n_chars < 6_200, "{n_chars}");
}

#[test]
fn rows_keep_the_rules() {
    for entry in TABLE {
        let Entry { name, command, .. } = entry;
        let description = &entry.shape().description;
        let first = description.lines().next().unwrap();
        assert!(first.chars().count() <= 79, "{name}: {first}");
        assert!(!first.ends_with('.'), "{name}: {first}");
        assert!(first.starts_with(|c: char| c.is_ascii_uppercase()), "{name}: {first}");
        let one_word = ["register", "deregister", "heartbeat", "broadcast"];
        assert!(one_word.contains(name) || name.contains('_'), "{name} is not verb_noun");
        assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{name}");
        assert!(command.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'), "{command}");
        let properties = properties(entry);
        assert!(properties.len() <= 7, "{name} has {} parameters", properties.len());
        let schema = serde_json::to_string(&entry.shape().input).unwrap();
        for word in ["$ref", "$schema", "$defs", "format", "nullable", "anyOf", "oneOf", "null"] {
            assert!(!schema.contains(&format!("\"{word}\"")), "{name} has {word}: {schema}");
        }
    }
    let names: BTreeSet<&str> = TABLE.iter().map(|entry| entry.name).collect();
    assert_eq!(names.len(), TABLE.len(), "names are unique");
    let commands: Vec<String> =
        cli::tree().get_subcommands().map(|command| command.get_name().to_owned()).collect();
    let unique: BTreeSet<&String> = commands.iter().collect();
    assert_eq!(unique.len(), commands.len(), "commands are unique: {commands:?}");
    let in_full: Vec<&str> =
        TABLE.iter().filter(|entry| entry.always_load).map(|entry| entry.name).collect();
    let expected = ["register", "send_message", "get_messages", "wait_for_messages"];
    assert_eq!(in_full, expected);
}

/// The parameters of a tool are the arguments of its command, and as many of them are required.
#[test]
fn schemas_and_commands_agree() {
    /// What only the command line has.
    const BESIDE: &[&str] = &["body_file", "peek"];
    for entry in TABLE {
        let command = (entry.clap)();
        let args: BTreeSet<&str> = command
            .get_arguments()
            .map(|arg| arg.get_id().as_str())
            .filter(|id| !BESIDE.contains(id))
            .collect();
        let properties = properties(entry);
        let names: BTreeSet<&str> = properties.keys().map(String::as_str).collect();
        assert_eq!(args, names, "{}", entry.name);
        let help = command.get_about().unwrap().to_string();
        assert_eq!(Some(help.as_str()), entry.shape().description.lines().next(), "{}", entry.name);
        for arg in command.get_arguments() {
            let Some(property) = properties.get(arg.get_id().as_str()) else { continue };
            // A text can come from elsewhere on the command line, and says so there.
            if arg.get_id() != "content" && arg.get_id() != "value" {
                let told = property.get("description").and_then(Value::as_str).unwrap_or_default();
                let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
                // On the command line there may be more to say, such as how to give several.
                assert!(help.starts_with(told), "{}: {}", entry.name, arg.get_id());
            }
        }
    }
}

#[test]
fn the_readme_lists_all_tools() {
    let readme = file("README.md");
    let listed = table_of(&readme, "| Tool | Command | What it does | Parameters |");
    let rows: Vec<Vec<String>> = TABLE
        .iter()
        .map(|entry| {
            let required = entry.shape().input.get("required").and_then(Value::as_array);
            let is_required =
                |name: &str| required.is_some_and(|list| list.iter().any(|it| it == name));
            let parameters: Vec<String> = properties(entry)
                .keys()
                .map(|name| format!("`{name}{}`", if is_required(name) { "" } else { "?" }))
                .collect();
            vec![
                format!("`{}`", entry.name),
                format!("`{}`", entry.command),
                entry.shape().description.lines().next().unwrap().to_owned(),
                parameters.join(", "),
            ]
        })
        .collect();
    assert_eq!(listed, rows);
}

#[test]
fn the_readme_lists_all_commands() {
    let readme = file("README.md");
    let listed: BTreeSet<String> = table_of(&readme, "| Command | What it does |")
        .into_iter()
        .map(|row| row[0].clone())
        .collect();
    // What clients alone run is no command for people.
    let commands: BTreeSet<String> = cli::tree()
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .map(clap::Command::get_name)
        .filter(|name| Entry::with_command(name).is_none())
        .map(|name| format!("`{name}`"))
        .collect();
    assert_eq!(listed, commands);
}

/// Variables for tests alone are not for users.
#[test]
fn the_readme_lists_all_variables() {
    const HIDDEN: &[&str] = &["TEAM_TABLE_NOW", "TEAM_TABLE_FAULT", "TEAM_TABLE_HURRY"];
    let source = file("src/config.rs");
    let ours = source.split('"').filter(|text| text.starts_with("TEAM_TABLE_"));
    let mut read: BTreeSet<&str> = ours.filter(|name| !HIDDEN.contains(name)).collect();
    read.insert("NO_COLOR");
    let readme = file("README.md");
    let rows = table_of(&readme, "| Variable | Meaning |");
    let listed: BTreeSet<&str> = rows.iter().map(|row| row[0].trim_matches('`')).collect();
    assert_eq!(listed, read);
}

/// What the README tells people to type is understood.
#[test]
fn the_readme_shows_commands_that_there_are() {
    let readme = file("README.md");
    let mut n_lines = 0;
    for line in readme.lines().filter(|line| line.starts_with("team-table ")) {
        let (line, _comment) = line.split_once(" #").unwrap_or((line, ""));
        let quoted: Vec<&str> = line.split('"').collect();
        let words = quoted.iter().enumerate().flat_map(|(n, part)| match n % 2 {
            0 => part.split_whitespace().collect(),
            _ => vec![*part],
        });
        if let Err(err) = cli::tree().try_get_matches_from(words) {
            panic!("README.md: {line}: {err}");
        }
        n_lines += 1;
    }
    assert!(n_lines > 2, "{n_lines}");
}

#[test]
fn every_template_is_used() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sources: String = crate::tidy::sources().into_iter().map(|(_, text)| text).collect();
    let mut folders = vec!["templates".to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let path = format!("{folder}/{name}");
            if root.join(&path).is_dir() {
                folders.push(path);
            } else {
                assert!(sources.contains(&format!("{path}\"")), "{path} is not used");
            }
        }
    }
}

#[test]
fn annotations_tell_what_a_tool_may_do() {
    let reads: Vec<&str> = TABLE
        .iter()
        .filter(|entry| entry.access == Access::Reads)
        .map(|entry| entry.name)
        .collect();
    assert_eq!(reads, ["list_members", "message_status", "list_tasks", "get_shared_context"]);
    let table = Table::new();
    let listed = table.agent("ada").request("tools/list", json!({}));
    for tool in listed["tools"].as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        let expected = json!({
            "readOnlyHint": reads.contains(&name), "destructiveHint": false, "openWorldHint": false
        });
        assert_eq!(tool["annotations"], expected, "{name}");
    }
}

fn properties(entry: &'static Entry) -> &'static Map<String, Value> {
    entry.shape().input["properties"].as_object().unwrap()
}

fn file(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

/// The cells of the table below this line of a Markdown file.
fn table_of(text: &str, head: &str) -> Vec<Vec<String>> {
    let rows = text.lines().skip_while(|line| *line != head).skip(2);
    let rows: Vec<Vec<String>> = rows
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells = line.trim_matches('|').split(" | ");
            cells.map(|cell| cell.trim().to_owned()).collect()
        })
        .collect();
    assert!(!rows.is_empty(), "there is no table below `{head}`");
    rows
}
