//! Our groups of hooks in a JSON text; [`nest`] says how they are laid out.
//!
//! One group is one edit: each is put in behind all others and taken out before all others, so that
//! the way back leads over the same texts.

use std::ops::Range;

use jsonc_parser::{
    ast::{Array, Object, ObjectProp, Value},
    common::Ranged as _,
};

use super::{
    doc::{Doc, Member, range},
    nest,
    snippet::{Snippet, quoted},
};
use crate::{
    clients::{
        KEY,
        hook::{Duty, Hook, is_our_program},
        span::{self, Edit, Fault},
    },
    platform,
};

/// The key of the object that holds a list of groups per event, and in each group the key of the
/// list of hooks.
pub(in crate::clients) const HOOKS: &str = "hooks";

/// The events at which a group with a hook of ours is not as a template has it.
pub(in crate::clients) fn changed(text: &str, templates: &[&str]) -> Result<Vec<String>, Fault> {
    let templates = templates.iter().map(|template| Doc::parse(template));
    let templates = templates.collect::<Result<Vec<_>, _>>()?;
    let ours = templates.iter().map(groups).collect::<Result<Vec<_>, _>>()?;
    let ours: Vec<Group<'_, '_>> = ours.into_iter().flatten().collect();
    let doc = Doc::parse(span::split_bom(text).1)?;
    let mut events: Vec<String> = Vec::new();
    for found in groups(&doc)? {
        let has_our_hook = ours.iter().any(|ours| has_hook_of(found.object, ours.object));
        let event = found.event();
        if has_our_hook
            && !ours.iter().any(|ours| found.is(ours))
            && events.last().is_none_or(|last| last != event)
        {
            events.push(event.to_owned());
        }
    }
    Ok(events)
}

/// Puts in those groups of a template that are not there, and sets the command of those that are.
/// Where a group has a hook of ours, changed or beside one of somebody else's, none is put in.
pub(in crate::clients) fn add(text: &str, template: &str, program: &str) -> Result<String, Fault> {
    let ours = Doc::parse(template)?;
    let file = filled(&ours, program)?;
    let file = Doc::parse(&file)?;
    let mut text = text.to_owned();
    for (ours, filled) in groups(&ours)?.iter().zip(groups(&file)?) {
        let (mark, body) = span::split_bom(&text);
        let doc = Doc::parse(body)?;
        let there: Vec<Group<'_, '_>> = groups(&doc)?
            .into_iter()
            .filter(|found| found.event() == ours.event() && has_hook_of(found.object, ours.object))
            .collect();
        let edits = if there.is_empty() {
            put_in(&doc, ours.event(), &Snippet::of(&file, filled.range()))?
        } else {
            let unchanged = there.iter().filter(|found| found.is(ours));
            unchanged.flat_map(|found| set(found, ours, program)).collect()
        };
        text = format!("{mark}{}", span::apply(body, edits));
    }
    Ok(text)
}

/// Takes out all groups that are as the templates have them, and what [`add`] put around them.
pub(in crate::clients) fn remove(text: &str, templates: &[&str]) -> Result<String, Fault> {
    let templates = templates.iter().map(|template| Doc::parse(template));
    let templates = templates.collect::<Result<Vec<_>, _>>()?;
    let mut ours = Vec::new();
    for template in &templates {
        ours.extend(groups(template)?.into_iter().map(|group| (template, group)));
    }
    let mut text = text.to_owned();
    loop {
        let (mark, body) = span::split_bom(&text);
        let doc = Doc::parse(body)?;
        let mut last = None;
        for found in groups(&doc)? {
            if let Some((template, group)) = ours.iter().find(|(_, group)| found.is(group)) {
                last = Some((file_of(template, &found, group)?, found));
            }
        }
        let Some((file, group)) = last else { return Ok(text) };
        let edited = match doc.before_whole(group.root, &file) {
            Some(before) => before.to_owned(),
            None => span::apply(body, take_out(&doc, &group)),
        };
        text = format!("{mark}{edited}");
    }
}

/// A group of hooks, and the way to it.
struct Group<'d, 'a> {
    root: &'d Object<'a>,
    hooks: &'d ObjectProp<'a>,
    events: &'d Object<'a>,
    list: Member<'d, 'a, Array<'a>>,
    object: &'d Object<'a>,
}

/// All groups, in the order of the text. What no client could understand is not among them: only
/// where something is to be put in does it stand in the way.
fn groups<'d, 'a>(doc: &'d Doc<'a>) -> Result<Vec<Group<'d, 'a>>, Fault> {
    let Some(root) = doc.root()? else { return Ok(Vec::new()) };
    doc.no_twins(root)?;
    let Some(hooks) = root.get(HOOKS) else { return Ok(Vec::new()) };
    let Some(events) = hooks.value.as_object() else { return Ok(Vec::new()) };
    doc.no_twins(events)?;
    let mut groups = Vec::new();
    for prop in &events.properties {
        let Some(value) = prop.value.as_array() else { continue };
        for object in value.elements.iter().filter_map(Value::as_object) {
            let list = Member { prop, value };
            groups.push(Group { root, hooks, events, list, object });
        }
    }
    Ok(groups)
}

impl<'d> Group<'d, '_> {
    fn event(&self) -> &'d str {
        self.list.prop.name.as_str()
    }

    fn range(&self) -> Range<usize> {
        self.object.start()..self.object.end()
    }

    /// Whether it is that group of a template, perhaps with another path to our program.
    fn is(&self, ours: &Group<'_, '_>) -> bool {
        self.event() == ours.event() && is_same_object(self.object, ours.object)
    }
}

fn hooks_of<'d, 'a>(group: &'d Object<'a>) -> impl Iterator<Item = &'d Object<'a>> {
    let hooks = group.get_array(HOOKS).map(|hooks| hooks.elements.iter());
    hooks.into_iter().flatten().filter_map(Value::as_object)
}

/// Whether one of a group's hooks does what those of a template's group do, in whatever way.
fn has_hook_of(group: &Object<'_>, ours: &Object<'_>) -> bool {
    hooks_of(group).any(|hook| hooks_of(ours).any(|ours| is_about(hook, ours)))
}

fn is_about(hook: &Object<'_>, ours: &Object<'_>) -> bool {
    duty(hook).is_some_and(|does| duty(ours) == Some(does))
}

/// What a hook does for us.
fn duty(hook: &Object<'_>) -> Option<Duty> {
    let args = hook.get_array("args").and_then(|args| args.elements.first());
    let first_arg = args.and_then(Value::as_string_lit).map(|lit| &*lit.value);
    let (command, server) = (text_of(hook, "command"), text_of(hook, "server"));
    Hook { command, first_arg, server }.duty()
}

fn text_of<'d>(object: &'d Object<'_>, name: &str) -> Option<&'d str> {
    object.get_string(name).map(|lit| &*lit.value)
}

/// Whether a command line is a template's but for the path to the program.
fn is_same_command(command: &str, ours: &str) -> bool {
    let rest = ours.strip_prefix(KEY);
    rest.and_then(|rest| command.strip_suffix(rest)).is_some_and(is_our_program)
}

fn is_same_object(found: &Object<'_>, ours: &Object<'_>) -> bool {
    found.properties.len() == ours.properties.len()
        && ours.properties.iter().all(|prop| {
            let name = prop.name.as_str();
            found.get(name).is_some_and(|found| match (&found.value, &prop.value) {
                (Value::StringLit(found), Value::StringLit(ours)) if name == "command" => {
                    is_same_command(&found.value, &ours.value)
                }
                (found, ours) => is_same(found, ours),
            })
        })
}

fn is_same(found: &Value<'_>, ours: &Value<'_>) -> bool {
    match (found, ours) {
        (Value::Object(found), Value::Object(ours)) => is_same_object(found, ours),
        (Value::Array(found), Value::Array(ours)) => {
            found.elements.len() == ours.elements.len()
                && found.elements.iter().zip(&ours.elements).all(|(a, b)| is_same(a, b))
        }
        (Value::StringLit(found), Value::StringLit(ours)) => found.value == ours.value,
        (Value::NumberLit(found), Value::NumberLit(ours)) => found.value == ours.value,
        (Value::BooleanLit(found), Value::BooleanLit(ours)) => found.value == ours.value,
        (Value::NullKeyword(_), Value::NullKeyword(_)) => true,
        _ => false,
    }
}

/// A template's command for this program: a path where the hook has arguments, else a line for a
/// shell.
fn command_line(ours: &Object<'_>, program: &str) -> Option<String> {
    let rest = text_of(ours, "command")?.strip_prefix(KEY)?;
    if ours.get("args").is_some() {
        return Some(program.to_owned());
    }
    Some(format!("{}{rest}", platform::shell_word(program)))
}

/// The template with the commands of this program.
fn filled(template: &Doc<'_>, program: &str) -> Result<String, Fault> {
    let groups = groups(template)?;
    let edits = groups.iter().flat_map(|ours| set(ours, ours, program)).collect();
    Ok(span::apply(template.text, edits))
}

/// Sets the commands of a group, each only where it differs.
fn set(found: &Group<'_, '_>, ours: &Group<'_, '_>, program: &str) -> Vec<Edit> {
    let commands = hooks_of(found.object).zip(hooks_of(ours.object)).filter_map(|(hook, ours)| {
        let new = command_line(ours, program)?;
        let there = &hook.get("command")?.value;
        let is_there = there.as_string_lit().is_some_and(|lit| lit.value == new);
        (!is_there).then(|| (there.start()..there.end(), quoted(&new)))
    });
    commands.collect()
}

/// The file that [`add`] would make of nothing, if it put in no other group than this one.
fn file_of(
    template: &Doc<'_>,
    found: &Group<'_, '_>,
    ours: &Group<'_, '_>,
) -> Result<String, Fault> {
    let commands = hooks_of(found.object).zip(hooks_of(ours.object)).filter_map(|(hook, ours)| {
        let value = &ours.get("command")?.value;
        Some((value.start()..value.end(), quoted(text_of(hook, "command")?)))
    });
    let file = span::apply(template.text, commands.collect());
    let doc = Doc::parse(&file)?;
    let group = groups(&doc)?.into_iter().find(|group| group.event() == ours.event());
    let file = group.map(|group| {
        let ours = Snippet::of(&doc, group.range());
        nest::around(&ours, &way(group.event()), nest::Holder::List).file()
    });
    Ok(file.unwrap_or_default())
}

/// The keys of objects that lead to the list of an event.
fn way(event: &str) -> [&str; 2] {
    [HOOKS, event]
}

/// Puts a group behind all others of its event.
fn put_in(doc: &Doc<'_>, event: &str, group: &Snippet) -> Result<Vec<Edit>, Fault> {
    nest::put_in(doc, &way(event), nest::Holder::List, group)
}

/// Takes a group out, and the list and the object around it where they were put there with it.
fn take_out(doc: &Doc<'_>, found: &Group<'_, '_>) -> Vec<Edit> {
    let around = [
        (doc.members(found.root), range(found.hooks)),
        (doc.members(found.events), range(found.list.prop)),
        (doc.elements(&found.list), found.range()),
    ];
    nest::take_out(doc, &around)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::clients::{
        Client, Extras, File,
        json::tests::{row, space},
        tests::plain,
    };

    const HOOKS: Extras = Extras { hooks: true, wake: false, allow: false };
    const WAKE: Extras = Extras { hooks: false, wake: true, allow: false };

    fn file(client: &str) -> &'static File {
        let mut files = Client::named(client).unwrap().files.iter();
        files.find(|file| file.hooks.is_some()).unwrap()
    }

    fn claude() -> &'static File {
        file("claude")
    }

    fn add(text: &str, extras: Extras) -> String {
        claude().add_hooks(text, "team-table", extras).unwrap()
    }

    const GROUP: &str = r#"{"hooks": [{"type": "command", "command": "team-table", "args": ["wake"], "asyncRewake": true, "timeout": 86400}]}"#;

    /// The group on lines, each but the first one behind this.
    fn lines(base: &str) -> String {
        let lines = [
            "{",
            "  \"hooks\": [",
            "    {",
            "      \"type\": \"command\",",
            "      \"command\": \"team-table\",",
            "      \"args\": [\"wake\"],",
            "      \"asyncRewake\": true,",
            "      \"timeout\": 86400",
            "    }",
            "  ]",
            "}",
        ];
        lines.join(&format!("\n{base}"))
    }

    /// `{G}` stands for the group that wakes on one line, `{4}` and `{6}` for it on lines that
    /// begin with so many spaces.
    fn check(before: &str, after: &str) {
        let after = after.replace("{4}", &lines("    ")).replace("{6}", &lines("      "));
        let after = after.replace("{G}", GROUP);
        assert_eq!(add(before, WAKE), after, "add to {before:?}");
        assert_eq!(add(&after, WAKE), after, "add again to {before:?}");
        assert_eq!(claude().remove_hooks(&after).unwrap(), before, "remove from {after:?}");
    }

    #[test]
    fn into_little() {
        let template = claude().hooks.unwrap().wake.unwrap();
        check("", template);
        check("\u{feff}\n", &format!("\u{feff}\n{template}"));
        check("// c", &format!("// c\n{}", template.trim_end()));
        let ours = "{\n  \"hooks\": {\n    \"Stop\": [\n      {6}\n    ]\n  }";
        check("{}\n", &format!("{ours}}}\n"));
        check("{ }", &format!("{ours} }}"));
        check("{\n}\n", &format!("{ours}\n\n}}\n"));
        check("{ // c\n}\n", &format!("{ours}\n // c\n}}\n"));
    }

    #[test]
    fn into_empty_hooks_and_events() {
        check("{\"hooks\": {}}", "{\"hooks\": {\"Stop\": [ {G} ]}}");
        check("{\"hooks\": {\"Stop\": []}}", "{\"hooks\": {\"Stop\": [{G}]}}");
        check("{\"hooks\": {\"Stop\": [ ]}}", "{\"hooks\": {\"Stop\": [{G} ]}}");
        check("{\n  \"hooks\": {}\n}", "{\n  \"hooks\": {\n    \"Stop\": [\n      {6}\n    ]}\n}");
        check(
            "{\n  \"hooks\": {\n    \"Stop\": []\n  }\n}",
            "{\n  \"hooks\": {\n    \"Stop\": [\n      {6}]\n  }\n}",
        );
        check(
            "{\n  \"hooks\": {\n    \"Stop\": [\n      // none yet\n    ]\n  }\n}",
            "{\n  \"hooks\": {\n    \"Stop\": [\n      {6}\n    \n      // none yet\n    ]\n  }\n}",
        );
    }

    #[test]
    fn beside_others() {
        check("{\"a\": 1}", "{\"a\": 1, \"hooks\": { \"Stop\": [ {G} ] }}");
        check(
            "{\n  \"a\": 1, // c\n}\n",
            "{\n  \"a\": 1, // c\n  \"hooks\": {\n    \"Stop\": [\n      {6}\n    ]\n  },\n}\n",
        );
        check(
            "{\"hooks\": {\"Stop\": [{\"hooks\": []}]}}",
            "{\"hooks\": {\"Stop\": [{\"hooks\": []}, {G}]}}",
        );
        check(
            "{\"hooks\":{\"Stop\":[ 1 ]}}",
            &format!(
                "{{\"hooks\":{{\"Stop\":[ 1,{} ]}}}}",
                GROUP.replace(": ", ":").replace(", ", ",")
            ),
        );
        check(
            "{\n \"hooks\": {\n  \"Stop\": [\n    {}, // c\n    // d\n  ], \"x\": 1\n }\n}",
            "{\n \"hooks\": {\n  \"Stop\": [\n    {}, // c\n    {4},\n    // d\n  ], \"x\": 1\n }\n}",
        );
    }

    #[test]
    fn a_group_is_brought_up_to_date_in_its_place() {
        let gemini = file("gemini");
        let add = |text: &str, program: &str| gemini.add_hooks(text, program, HOOKS).unwrap();
        let text = add("{\"hooks\": {\"AfterTool\": [1]}}", "/a b/team-table");
        assert!(text.contains("\"command\": \"'/a b/team-table' hook\""), "{text}");
        let plain = add("{\"hooks\": {\"AfterTool\": [1]}}", "team-table");
        assert_eq!(add(&text, "team-table"), plain);
        assert_eq!(gemini.remove_hooks(&text).unwrap(), "{\"hooks\": {\"AfterTool\": [1]}}");
        assert_eq!(gemini.changed_hooks(&text).unwrap(), [""; 0]);
        assert_eq!(gemini.remove_hooks(&add("", "/a b/team-table")).unwrap(), "");
    }

    /// Puts a text in place of another one in the group at `Stop`.
    fn changed(from: &str, to: &str) -> String {
        let text = add("", HOOKS);
        let (before, stop) = text.split_at(text.find("\"Stop\"").unwrap());
        assert!(stop.contains(from), "{stop}");
        format!("{before}{}", stop.replacen(from, to, 1))
    }

    #[test]
    fn what_somebody_changed_is_left_alone() {
        let others = "{ \"type\": \"command\", \"command\": \"make\" }";
        for text in [
            changed("\"hooks\":", "\"matcher\": \"x\", \"hooks\":"),
            changed("${session_id}", "x"),
            changed("\"announce\"", "\"register\""),
            changed("\"hooks\": [", &format!("\"hooks\": [{others},")),
            changed("\"Stop\"", "\"SubagentStop\""),
        ] {
            let event = if text.contains("Subagent") { "SubagentStop" } else { "Stop" };
            assert_eq!(claude().changed_hooks(&text).unwrap(), [event], "{text}");
            let again = add(&text, HOOKS);
            assert_eq!(again == text, event == "Stop", "{again}");
            let left = claude().remove_hooks(&again).unwrap();
            assert_eq!(left.matches("announce").count() + left.matches("register").count(), 1);
            assert_eq!(claude().changed_hooks(&left).unwrap(), [event], "{text}");
            assert!(!left.contains("PostToolUse"), "{left}");
        }
    }

    #[test]
    fn what_others_do_with_our_program_is_theirs() {
        for hook in [
            r#"{"type": "command", "command": "team-table status"}"#,
            r#"{"type": "command", "command": "team-table", "args": ["members"]}"#,
            r#"{"type": "mcp_tool", "server": "other", "tool": "announce"}"#,
            r#"{"type": "command", "command": "my-team-table hook"}"#,
        ] {
            let text = format!("{{\"hooks\": {{\"Stop\": [{{\"hooks\": [{hook}]}}]}}}}");
            for file in [claude(), file("gemini")] {
                assert_eq!(file.changed_hooks(&text).unwrap(), [""; 0], "{text}");
                assert_eq!(file.remove_hooks(&text).unwrap(), text);
                let both = file.add_hooks(&text, "team-table", Extras::ALL).unwrap();
                assert!(both.contains(hook) && both != text, "{both}");
                assert_eq!(file.remove_hooks(&both).unwrap(), text);
            }
        }
    }

    #[test]
    fn twins_of_ours_both_go() {
        let text = "{\"hooks\": {\"Stop\": [{G}, {G}, 1]}}".replace("{G}", GROUP);
        assert_eq!(add(&text, WAKE), text);
        let left = claude().remove_hooks(&text).unwrap();
        assert_eq!(left, "{\"hooks\": {\"Stop\": [ 1]}}");
    }

    #[test]
    fn what_cannot_be_edited_is_refused_with_its_place() {
        fn check(text: &str, line: usize, column: usize, part: &str) {
            let fault = claude().add_hooks(text, "team-table", HOOKS).unwrap_err();
            assert_eq!((fault.line, fault.column), (line, column), "{text:?}: {fault:?}");
            assert!(fault.text.contains(part), "{text:?}: {fault:?}");
        }
        check("{\"hooks\" {}}", 1, 10, "expected colon");
        check("{\n\"hooks\": []}", 2, 10, "expected an object as `hooks`, found a list");
        check(
            "{\"hooks\": {\n  \"Stop\": {}}}",
            2,
            11,
            "expected a list as `Stop`, found an object",
        );
        check("{\"hooks\": {}, \"hooks\": {}}", 1, 15, "twice");
        check("{\"hooks\": {\"a\": 1,\n\"a\": 1}}", 2, 1, "twice");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        #[test]
        fn removing_gives_the_first_bytes_back(
            spaces in prop::collection::vec(space(), 24),
            (n_before, n_after, n_events) in (0..2_usize, 0..2_usize, 0..3_usize),
            // How many groups of others are there, if the event is.
            groups in prop::collection::vec(prop::option::of(0..3_usize), 4),
            has_hooks in prop::bool::ANY,
            trailing in prop::bool::ANY,
            mark in prop::bool::ANY,
            wakes_first in prop::bool::ANY,
            allows_first in prop::bool::ANY,
        ) {
            for file in [claude(), file("codex"), file("gemini")] {
                let events = if file.server.is_some() {
                    ["BeforeAgent", "AfterTool", "AfterAgent", "SessionStart"]
                } else {
                    ["UserPromptSubmit", "PostToolUse", "Stop", "SessionStart"]
                };
                let group = |n: usize| format!("{{\"matcher\":{}\"x{n}\"}}", spaces[n]);
                let mut members: Vec<String> =
                    (0..n_events).map(|n| format!("\"e{n}\":{}[]", spaces[n])).collect();
                for (number, (event, n_groups)) in events.iter().zip(&groups).enumerate() {
                    let Some(n_groups) = n_groups else { continue };
                    let list = row("[]", (0..*n_groups).map(group).collect(), &spaces[number..], trailing);
                    members.push(format!("\"{event}\":{}{list}", spaces[number]));
                }
                let hooks = row("{}", members, &spaces[8..15], trailing);
                let mut members: Vec<String> =
                    (0..n_before).map(|n| format!("\"a{n}\": [1]")).collect();
                if has_hooks {
                    members.push(format!("\"hooks\":{}{hooks}", spaces[15]));
                }
                members.extend((0..n_after).map(|n| format!("\"b{n}\":null")));
                let mark = if mark { "\u{feff}" } else { "" };
                let root = row("{}", members, &spaces[16..22], trailing);
                let text = format!("{mark}{}{root}{}", spaces[22], spaces[23]);

                let add = |text: &str, extras| file.add_hooks(text, "team-table", extras).unwrap();
                let first = if wakes_first { WAKE } else { HOOKS };
                let added = add(&add(&text, first), Extras::ALL);
                prop_assert_ne!(&added, &text);
                prop_assert_eq!(&add(&added, Extras::ALL), &added);
                prop_assert!(file.complaint(&text).is_some() || file.complaint(&added).is_none());
                prop_assert_eq!(&add(&added, first), &added);
                prop_assert_eq!(file.remove_hooks(&added).unwrap(), &*text);

                let served = file.add(&text, &plain()).unwrap();
                let added = add(&served, Extras::ALL);
                let served = file.remove_hooks(&added).unwrap();
                prop_assert_eq!(file.remove(&served).unwrap(), &*text);

                let allow = |text: &str| file.add_allow(text, Extras::ALL).unwrap();
                let added = if allows_first {
                    add(&allow(&text), Extras::ALL)
                } else {
                    allow(&add(&text, Extras::ALL))
                };
                prop_assert_eq!(&allow(&added), &added);
                let left = file.remove_hooks(&file.remove_allow(&added).unwrap()).unwrap();
                prop_assert_eq!(left, text);
            }
        }

        #[test]
        fn no_text_makes_it_panic(text in "[\\[\\]{}a1:,\"/*\r\n \u{feff}é-]{0,30}") {
            if let Ok(added) = claude().add_hooks(&text, "team-table", Extras::ALL) {
                prop_assert_eq!(claude().remove_hooks(&added).unwrap(), text);
            }
        }
    }
}
