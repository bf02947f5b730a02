//! Our server entry in a JSON text. Beside the rules of all our parts:
//!
//! | before | after |
//! |---|---|
//! | an empty root | section and entry on lines of their own, the entry's inside on one |
//! | an empty section | `{entry}`, without spaces |

use jsonc_parser::{
    ast::{Object, ObjectProp},
    common::Ranged as _,
};
use serde_json::{Map, Value};

use super::{
    doc::{Doc, Member, Row, range},
    snippet::{Snippet, quoted},
};
use crate::clients::{
    KEY,
    span::{self, Edit, Fault, indent, slice},
    value,
};

/// The members of what stands under our name.
pub(in crate::clients) fn look(
    text: &str,
    section: &str,
) -> Result<Option<Map<String, Value>>, Fault> {
    let doc = Doc::parse(span::split_bom(text).1)?;
    let Found::Entry { entry, .. } = find(&doc, section)? else { return Ok(None) };
    Ok(Some(members(entry.value)))
}

/// Puts an entry with these members in, or makes those of the one that is there the same.
pub(in crate::clients) fn add(
    text: &str,
    section_key: &str,
    members: &Map<String, Value>,
) -> Result<String, Fault> {
    let (mark, body) = span::split_bom(text);
    let doc = Doc::parse(body)?;
    let file = file(section_key, members);
    let edits = match find(&doc, section_key)? {
        Found::Entry { .. } => return Ok(format!("{mark}{}", set(body, section_key, members)?)),
        Found::Nothing => vec![(body.len()..body.len(), doc.whole(&file))],
        Found::NoSection { root } => {
            let entry = snippet(&file, section_key)?;
            let row = doc.members(root);
            let only = empty_root(&doc, root, section_key, &entry);
            doc.insert(&row, &entry.within(section_key, ['{', '}']), doc.unit(&row), &only)
        }
        Found::NoEntry { root, section } => {
            let entry = snippet(&file, section_key)?;
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
pub(in crate::clients) fn remove(text: &str, section_key: &str) -> Result<String, Fault> {
    let (mark, body) = span::split_bom(text);
    let doc = Doc::parse(body)?;
    let Found::Entry { root, section, entry } = find(&doc, section_key)? else {
        return Ok(text.to_owned());
    };
    if let Some(before) = doc.before_whole(root, &file(section_key, &members(entry.value))) {
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

fn find<'d, 'a>(doc: &'d Doc<'a>, section_key: &str) -> Result<Found<'d, 'a>, Fault> {
    let Some(root) = doc.root()? else { return Ok(Found::Nothing) };
    let Some(section) = doc.object_in(root, section_key)? else {
        return Ok(Found::NoSection { root });
    };
    let Some(entry) = doc.object_in(section.value, KEY)? else {
        return Ok(Found::NoEntry { root, section });
    };
    doc.no_twins(entry.value)?;
    Ok(Found::Entry { root, section, entry })
}

fn members(entry: &Object<'_>) -> Map<String, Value> {
    let member =
        |prop: &ObjectProp<'_>| (prop.name.as_str().to_owned(), value::from_json(&prop.value));
    entry.properties.iter().map(member).collect()
}

/// What is put between the braces of a root without members.
fn empty_root(doc: &Doc<'_>, root: &Object<'_>, section: &str, entry: &Snippet) -> String {
    let (newline, outer) = (doc.newline, indent(doc.text, root.start()));
    let (unit, key) = (Snippet::UNIT, quoted(section));
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

/// Makes the members of the entry these. Where they have the same keys, only values that differ are
/// written. Else each one takes the place of the one that stands there now, so that comments and
/// layout stay; what is left over goes, or comes behind the last one.
fn set(body: &str, section: &str, members: &Map<String, Value>) -> Result<String, Fault> {
    let mut text = body.to_owned();
    loop {
        let doc = Doc::parse(&text)?;
        let Found::Entry { entry, .. } = find(&doc, section)? else { return Ok(text) };
        let edits = next_edits(&doc, entry.value, members);
        if edits.is_empty() {
            return Ok(text);
        }
        text = span::apply(doc.text, edits);
    }
}

/// The first step that is left to be done.
fn next_edits(doc: &Doc<'_>, entry: &Object<'_>, members: &Map<String, Value>) -> Vec<Edit> {
    let props = &entry.properties;
    let row = doc.members(entry);
    let has_same_keys = props.len() == members.len()
        && props.iter().all(|prop| members.contains_key(prop.name.as_str()));
    if has_same_keys {
        let differing = props.iter().filter_map(|prop| {
            let new = members.get(prop.name.as_str())?;
            let edit = (prop.value.start()..prop.value.end(), written(new, row.gap()));
            (value::from_json(&prop.value) != *new).then_some(edit)
        });
        return differing.collect();
    }
    if let Some(last) = props.get(members.len()..).and_then(<[_]>::last) {
        return doc.cut(&row, &range(last));
    }
    let member = |(key, value): (&String, &Value), gap| {
        format!("{}:{gap}{}", quoted(key), written(value, gap))
    };
    let replaced = props.iter().zip(members).filter_map(|(prop, (key, value))| {
        let is_there = prop.name.as_str() == key && value::from_json(&prop.value) == *value;
        (!is_there).then(|| (range(prop), member((key, value), row.gap())))
    });
    let replaced: Vec<Edit> = replaced.collect();
    match members.iter().nth(props.len()) {
        Some(new) if replaced.is_empty() => {
            let ours = Snippet::word(&member(new, " "), &member(new, ""));
            doc.insert(&row, &ours, Snippet::UNIT, "")
        }
        _ => replaced,
    }
}

/// A file with this entry and nothing else.
fn file(section: &str, members: &Map<String, Value>) -> String {
    let members = members
        .iter()
        .map(|(key, value)| format!("      {}: {}", quoted(key), written(value, " ")));
    let members = members.collect::<Vec<_>>().join(",\n");
    let (section, key) = (quoted(section), quoted(KEY));
    format!("{{\n  {section}: {{\n    {key}: {{\n{members}\n    }}\n  }}\n}}\n")
}

/// A value on one line, with this behind each comma and colon.
fn written(value: &Value, gap: &str) -> String {
    let comma = format!(",{gap}");
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| written(item, gap)).collect();
            format!("[{}]", items.join(&comma))
        }
        Value::Object(members) => {
            let member = |(key, value): (&String, &Value)| {
                format!("{}:{gap}{}", quoted(key), written(value, gap))
            };
            format!("{{{}}}", members.iter().map(member).collect::<Vec<_>>().join(&comma))
        }
        value => value.to_string(),
    }
}

/// The entry of a whole file.
fn snippet(file: &str, section: &str) -> Result<Snippet, Fault> {
    let doc = Doc::parse(file)?;
    let Found::Entry { entry, .. } = find(&doc, section)? else {
        return Err(Fault::at(file, 0, format!("the template has no entry `{KEY}`")));
    };
    Ok(Snippet::of(&doc, range(entry.prop)))
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
        tests::{calls, plain as server, server_file},
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
        let template = claude().server.unwrap().program;
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

    #[test]
    fn comments_in_an_entry_stay_when_it_becomes_another() {
        let before = "{\"mcpServers\": {\"team-table\": { // mine\n\t\"type\": \"stdio\", /* a */\n\t\
                      \"command\":\"team-table\", // b\n\t\"args\": [\"serve\"], // c\n}}}";
        let after = claude().add(before, &calls("/mcp", Some("A"))).unwrap();
        assert_eq!(
            after,
            "{\"mcpServers\": {\"team-table\": { // mine\n\t\"type\": \"http\", /* a */\n\t\
             \"url\": \"http://127.0.0.1:8741/mcp\", // b\n\t\
             \"headers\": {\"Authorization\": \"Bearer ${A}\"}, // c\n}}}"
        );
        let bare = claude().add(&after, &calls("/mcp", None)).unwrap();
        assert!(
            bare.contains("// b") && bare.contains("// c") && !bare.contains("headers"),
            "{bare}"
        );
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
            prop_assert_eq!(claude().remove(&added).unwrap(), &*text);

            let called = claude().add(&added, &calls("/mcp", Some("A"))).unwrap();
            prop_assert_eq!(&claude().add(&text, &calls("/mcp", Some("A"))).unwrap(), &called);
            let nameless = claude().add(&called, &calls("/sse", None)).unwrap();
            prop_assert_eq!(&add(&nameless), &added);
            prop_assert_eq!(claude().remove(&nameless).unwrap(), text);
        }

        #[test]
        fn no_text_makes_it_panic(text in "[\\[\\]{}a1:,\"/*\r\n \u{feff}é-]{0,30}") {
            if let Ok(added) = claude().add(&text, &server()) {
                prop_assert_eq!(claude().remove(&added).unwrap(), text);
            }
        }
    }
}
