//! Our server entry in a JSON text. Beside the rules of all our parts:
//!
//! | before | after |
//! |---|---|
//! | an empty root | section and entry on lines of their own, the entry's inside on one |
//! | an empty section | `{entry}`, without spaces |

use jsonc_parser::{
    ast::{Object, Value},
    common::Ranged as _,
};

use super::{
    doc::{Doc, Member, Row, range},
    snippet::{Snippet, list, quoted},
};
use crate::clients::{
    KEY, Place, Seen, Server,
    span::{self, Edit, Fault, indent, slice},
};

/// What stands under our name.
pub(in crate::clients) fn look(text: &str, place: Place) -> Result<Option<Seen>, Fault> {
    let doc = Doc::parse(span::split_bom(text).1)?;
    let Found::Entry { entry, .. } = find(&doc, place)? else { return Ok(None) };
    let template = Doc::parse(place.template)?;
    let Found::Entry { entry: ours, .. } = find(&template, place)? else { return Ok(None) };
    let mut seen = Seen::default();
    for prop in &entry.value.properties {
        match prop.name.as_str() {
            "command" => seen.command = prop.value.as_string_lit().map(|lit| lit.value.to_string()),
            "args" => seen.args = prop.value.as_array().and_then(|_| strings(&prop.value)),
            name => {
                let usual = ours.value.get(name).and_then(|prop| strings(&prop.value));
                if usual.is_none() || strings(&prop.value) != usual {
                    seen.others.push(name.to_owned());
                }
            }
        }
    }
    Ok(Some(seen))
}

/// Puts our entry in, or sets the command and the arguments of the one that is there.
pub(in crate::clients) fn add(text: &str, place: Place, server: &Server) -> Result<String, Fault> {
    let (mark, body) = span::split_bom(text);
    let doc = Doc::parse(body)?;
    let file = filled(place, server)?;
    let edits = match find(&doc, place)? {
        Found::Entry { entry, .. } => set(&entry, server),
        Found::Nothing => vec![(body.len()..body.len(), doc.whole(&file))],
        Found::NoSection { root } => {
            let entry = snippet(&file, place)?;
            let row = doc.members(root);
            let only = empty_root(&doc, root, place, &entry);
            doc.insert(&row, &entry.within(place.section, ['{', '}']), doc.unit(&row), &only)
        }
        Found::NoEntry { root, section } => {
            let entry = snippet(&file, place)?;
            let row = doc.members(section.value);
            let units = [doc.unit(&row), doc.unit(&doc.members(root)), Snippet::UNIT];
            let unit = units.into_iter().find(|unit| !unit.is_empty()).unwrap_or_default();
            let only = empty_section(&doc, &section, &entry, unit);
            doc.insert(&row, &entry, unit, &only)
        }
    };
    Ok(format!("{mark}{}", span::apply(body, edits)))
}

/// Takes the entry under our name out, and the section too where [`add`] made it.
pub(in crate::clients) fn remove(text: &str, place: Place) -> Result<String, Fault> {
    let (mark, body) = span::split_bom(text);
    let doc = Doc::parse(body)?;
    let Found::Entry { root, section, entry } = find(&doc, place)? else {
        return Ok(text.to_owned());
    };
    if let Some(file) = file_of(&entry, place)?
        && let Some(before) = doc.before_whole(root, &file)
    {
        return Ok(format!("{mark}{before}"));
    }
    let row: Row = doc.members(section.value);
    let edits = if doc.made_by_us(&row) {
        doc.cut(&doc.members(root), &range(section.prop))
    } else {
        doc.cut(&row, &range(entry.prop))
    };
    Ok(format!("{mark}{}", span::apply(body, edits)))
}

/// How far the way to our entry is there.
enum Found<'d, 'a> {
    Nothing,
    NoSection { root: &'d Object<'a> },
    NoEntry { root: &'d Object<'a>, section: Member<'d, 'a> },
    Entry { root: &'d Object<'a>, section: Member<'d, 'a>, entry: Member<'d, 'a> },
}

fn find<'d, 'a>(doc: &'d Doc<'a>, place: Place) -> Result<Found<'d, 'a>, Fault> {
    let Some(root) = doc.root()? else { return Ok(Found::Nothing) };
    let Some(section) = doc.object_in(root, place.section)? else {
        return Ok(Found::NoSection { root });
    };
    let Some(entry) = doc.object_in(section.value, KEY)? else {
        return Ok(Found::NoEntry { root, section });
    };
    doc.no_twins(entry.value)?;
    Ok(Found::Entry { root, section, entry })
}

/// What is put between the braces of a root without members.
fn empty_root(doc: &Doc<'_>, root: &Object<'_>, place: Place, entry: &Snippet) -> String {
    let (newline, outer) = (doc.newline, indent(doc.text, root.start()));
    let (unit, key) = (Snippet::UNIT, quoted(place.section));
    format!(
        "{newline}{outer}{unit}{key}: {{{newline}{outer}{unit}{unit}{}{newline}{outer}{unit}}}\
         {newline}{outer}",
        entry.on_one_line(" ")
    )
}

/// What is put between the braces of a section without entries.
fn empty_section(doc: &Doc<'_>, section: &Member<'_, '_>, entry: &Snippet, unit: &str) -> String {
    let between = section.value.start() + 1..section.value.end() - 1;
    let entry = entry.on_one_line(" ");
    if !slice(doc.text, between).contains('\n') {
        return entry.to_owned();
    }
    let (newline, outer) = (doc.newline, indent(doc.text, section.value.start()));
    format!("{newline}{outer}{unit}{entry}{newline}{outer}")
}

/// Sets the command and the arguments of an entry, each only where it differs.
fn set(entry: &Member<'_, '_>, server: &Server) -> Vec<Edit> {
    let args = server.args();
    let mut edits = Vec::new();
    if let Some(prop) = entry.value.get("command")
        && prop.value.as_string_lit().is_none_or(|lit| lit.value != server.command)
    {
        edits.push((prop.value.start()..prop.value.end(), quoted(&server.command)));
    }
    if let Some(prop) = entry.value.get("args")
        && strings(&prop.value).is_none_or(|there| there != args)
    {
        edits.push((prop.value.start()..prop.value.end(), list(&args)));
    }
    edits
}

/// The template with the command and the arguments of this server.
fn filled(place: Place, server: &Server) -> Result<String, Fault> {
    fill(place, &server.command, &server.args())
}

fn fill(place: Place, command: &str, args: &[String]) -> Result<String, Fault> {
    let doc = Doc::parse(place.template)?;
    let Found::Entry { entry, .. } = find(&doc, place)? else { return Err(lost(place.template)) };
    let mut edits = Vec::new();
    for (name, new) in [("command", quoted(command)), ("args", list(args))] {
        let value = entry.value.get(name).map(|prop| prop.value.start()..prop.value.end());
        edits.extend(value.map(|range| (range, new)));
    }
    Ok(span::apply(place.template, edits))
}

/// The file that [`fill`] would make with the command and the arguments of an entry.
fn file_of(entry: &Member<'_, '_>, place: Place) -> Result<Option<String>, Fault> {
    let args = entry.value.get("args").and_then(|prop| strings(&prop.value));
    let (Some(args), Some(command)) = (args, entry.value.get_string("command")) else {
        return Ok(None);
    };
    fill(place, &command.value, &args).map(Some)
}

/// The entry of a filled template.
fn snippet(file: &str, place: Place) -> Result<Snippet, Fault> {
    let doc = Doc::parse(file)?;
    let Found::Entry { entry, .. } = find(&doc, place)? else { return Err(lost(file)) };
    Ok(Snippet::of(&doc, range(entry.prop)))
}

fn lost(text: &str) -> Fault {
    Fault::at(text, 0, format!("the template has no entry `{KEY}`"))
}

/// A string, or a list of nothing but strings.
fn strings(value: &Value<'_>) -> Option<Vec<String>> {
    match value {
        Value::StringLit(lit) => Some(vec![lit.value.to_string()]),
        Value::Array(array) => array
            .elements
            .iter()
            .map(|value| value.as_string_lit().map(|lit| lit.value.to_string()))
            .collect(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::clients::{
        Client, File, State,
        json::{
            is_bare,
            tests::{row, space},
        },
        tests::{plain as server, server_file},
    };

    fn claude() -> &'static File {
        server_file(Client::named("claude").unwrap())
    }

    fn add(text: &str) -> String {
        claude().add(text, &server()).unwrap()
    }

    const ENTRY: &str =
        r#""team-table": {"type": "stdio", "command": "team-table", "args": ["serve"]}"#;

    /// `{E}` stands for our entry on one line.
    fn check(before: &str, after: &str) {
        let after = after.replace("{E}", ENTRY);
        assert_eq!(add(before), after, "add to {before:?}");
        assert_eq!(add(&after), after, "add again to {before:?}");
        assert_eq!(claude().remove(&after).unwrap(), before, "remove from {after:?}");
    }

    #[test]
    fn into_little() {
        let template = claude().server.unwrap().template;
        check("", template);
        check("\u{feff}\n", &format!("\u{feff}\n{template}"));
        check("\r\n", &format!("\r\n{}", template.replace('\n', "\r\n")));
        check("  ", &format!("  \n{}", template.trim_end()));
        check("// c", &format!("// c\n{}", template.trim_end()));
        check("{}", "{\n  \"mcpServers\": {\n    {E}\n  }\n}");
        check("{}\n", "{\n  \"mcpServers\": {\n    {E}\n  }\n}\n");
        check("{ }", "{\n  \"mcpServers\": {\n    {E}\n  }\n }");
        check("{\r\n}", "{\r\n  \"mcpServers\": {\r\n    {E}\r\n  }\r\n\r\n}");
        check("{\"mcpServers\":{}}", "{\"mcpServers\":{{E}}}");
        check("{\n  \"mcpServers\": {}\n}\n", "{\n  \"mcpServers\": {{E}}\n}\n");
        check("{\n\t\"mcpServers\": {\n\t}\n}\n", "{\n\t\"mcpServers\": {\n\t\t{E}\n\t\n\t}\n}\n");
        check("{\"mcpServers\": { /* none */ }}", "{\"mcpServers\": {{E} /* none */ }}");
    }

    #[test]
    fn beside_other_keys() {
        check("{\"a\": 1}", "{\"a\": 1, \"mcpServers\": { {E} }}");
        check(
            "{\"a\":1}",
            r#"{"a":1,"mcpServers":{ "team-table":{"type":"stdio","command":"team-table","args":["serve"]} }}"#,
        );
        check(
            "{\n\t\"a\": [1], // c\n}",
            "{\n\t\"a\": [1], // c\n\t\"mcpServers\": {\n\t\t\"team-table\": {\n\t\t\t\"type\": \
             \"stdio\",\n\t\t\t\"command\": \"team-table\",\n\t\t\t\"args\": [\"serve\"]\n\t\t}\n\t},\n}",
        );
        check("{\"a\": 1 // c\n}", "{\"a\": 1, // c\n\"mcpServers\": { {E} }\n}");
    }

    #[test]
    fn beside_other_servers() {
        check(
            "{\"mcpServers\": {\"x\": {\"command\": \"x\"}}}",
            "{\"mcpServers\": {\"x\": {\"command\": \"x\"}, {E}}}",
        );
        check(
            "{\r\n    \"mcpServers\": {\r\n        \"x\": {} /* c */ // d\r\n        // e\r\n    }\r\n}",
            "{\r\n    \"mcpServers\": {\r\n        \"x\": {}, /* c */ // d\r\n        \"team-table\": {\r\n\
             \x20           \"type\": \"stdio\",\r\n            \"command\": \"team-table\",\r\n\
             \x20           \"args\": [\"serve\"]\r\n        }\r\n        // e\r\n    }\r\n}",
        );
    }

    #[test]
    fn what_others_wrote_around_it_stays() {
        fn check(before: &str, after: &str) {
            let before = before.replace("{E}", ENTRY);
            assert_eq!(claude().remove(&before).unwrap(), after, "{before:?}");
        }
        check("{\"mcpServers\": {{E}, \"x\": 1}}", "{\"mcpServers\": { \"x\": 1}}");
        check(
            "{\n \"mcpServers\": {\n  // c\n  {E},\n  \"x\": 1\n }\n}",
            "{\n \"mcpServers\": {\n  // c\n  \"x\": 1\n }\n}",
        );
        check("{\"mcpServers\": {/* c */ {E}}}", "{\"mcpServers\": {/* c */}}");
        check("{\"mcpServers\": {{E},}}", "{\"mcpServers\": {}}");
        check(
            "{\"mcpServers\": {\"x\": 1, {E} /* c */,}}",
            "{\"mcpServers\": {\"x\": 1, /* c */}}",
        );
        check("{\"a\": 1}", "{\"a\": 1}");
    }

    #[test]
    fn what_cannot_be_edited_is_refused_with_its_place() {
        fn check(text: &str, line: usize, column: usize, part: &str) {
            let fault = claude().add(text, &server()).unwrap_err();
            assert_eq!((fault.line, fault.column), (line, column), "{text:?}: {fault:?}");
            assert!(fault.text.contains(part), "{text:?}: {fault:?}");
        }
        check("{\n  \"a\" 1}", 2, 7, "expected colon");
        check("{} {}", 1, 4, "more than one JSON value");
        check("{\"é\": 'x'}", 1, 7, "single-quoted");
        check("{\"a\": 1 \"b\": 2}", 1, 8, "expected comma");
        check(" []", 1, 2, "expected an object at the top, found a list");
        check("\u{feff}null", 1, 1, "found null");
        check("{\n\"mcpServers\": []}", 2, 15, "expected an object as `mcpServers`, found a list");
        check("{\"mcpServers\": {\"team-table\": \"x\"}}", 1, 31, "found a string");
        check("{\"a\": 1,\n\"a\": 2}", 2, 1, "the key `a` is there twice");
        check("{\"mcpServers\": {\"x\": 1, \"x\": 2}}", 1, 25, "twice");
    }

    #[test]
    fn settings_of_others_are_seen() {
        let text =
            r#"{"mcpServers":{"team-table":{"command":"team-table","args":["serve"],"env":{}}}}"#;
        assert_eq!(claude().look(text).unwrap(), State::Extended(vec!["env".to_owned()]));
        assert_eq!(add(text), text);
        let text = r#"{"mcpServers":{"team-table":{"command":"team-table","args":"serve"}}}"#;
        assert_eq!(claude().look(text).unwrap(), State::Foreign);
        let text = r#"{"mcpServers":{"team-table":{"command":"team-table","args":[ "serve" ]}}}"#;
        assert_eq!(claude().look(text).unwrap(), State::Ours(server()));
        assert_eq!(add(text), text);
    }

    #[test]
    fn bare_and_strict() {
        let keys = ["mcpServers"];
        for text in ["", "\n", "{}", "{ \"mcpServers\": {} }"] {
            assert!(is_bare(text, &keys), "{text:?}");
        }
        for text in
            ["// c", "{\"a\": 1}", "{\"mcpServers\": {\"x\": 1}}", "{\"mcpServers\": {}, \"a\": 1}"]
        {
            assert!(!is_bare(text, &keys), "{text:?}");
        }
        let fault = claude().complaint("{\n  // c\n}").unwrap();
        assert_eq!((fault.line, fault.column), (2, 3));
        assert!(claude().complaint("{\"a\": 1,}").is_some());
        assert!(claude().complaint("\u{feff}{}").is_none());
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        #[test]
        fn removing_gives_the_first_bytes_back(
            spaces in prop::collection::vec(space(), 12),
            (n_before, n_after, n_servers) in (0..3_usize, 0..2_usize, 0..4_usize),
            has_section in prop::bool::ANY,
            trailing in prop::bool::ANY,
            mark in prop::bool::ANY,
        ) {
            let servers = (0..n_servers).map(|n| format!("\"s{n}\":{}{{}}", spaces[n])).collect();
            let section = row("{}", servers, &spaces[..5], trailing);
            let mut members: Vec<String> = (0..n_before).map(|n| format!("\"a{n}\": [1]")).collect();
            if has_section {
                members.push(format!("\"mcpServers\":{}{section}", spaces[5]));
            }
            members.extend((0..n_after).map(|n| format!("\"b{n}\":null")));
            let mark = if mark { "\u{feff}" } else { "" };
            let root = row("{}", members, &spaces[6..11], trailing);
            let text = format!("{mark}{}{root}{}", spaces[0], spaces[11]);
            let added = add(&text);
            prop_assert_ne!(&added, &text);
            prop_assert_eq!(&add(&added), &added);
            prop_assert_eq!(claude().remove(&added).unwrap(), text);
        }

        #[test]
        fn no_text_makes_it_panic(text in "[\\[\\]{}a1:,\"/*\r\n \u{feff}é-]{0,30}") {
            if let Ok(added) = claude().add(&text, &server()) {
                prop_assert_eq!(claude().remove(&added).unwrap(), text);
            }
        }
    }
}
