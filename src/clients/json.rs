//! Puts our entry into a JSON text and takes it out again, by byte ranges.
//!
//! The layout of what is put in tells where it came from, so that taking it out restores the text:
//!
//! | before | after |
//! |---|---|
//! | nothing | the template |
//! | an empty root | section and entry on lines of their own, the entry's inside on one |
//! | no section, root spread over lines | all on lines of their own |
//! | no section, root on one line | `"section": { entry }`, with the inner spaces |
//! | an empty section | `{entry}`, without them |
//! | other entries | as the last of them |
//!
//! Whatever stood between two braces stays behind what is put between them.

use std::{collections::HashSet, ops::Range};

use jsonc_parser::{
    CollectOptions, CommentCollectionStrategy, ParseOptions,
    ast::{Object, ObjectProp, Value},
    common::Ranged as _,
    errors::ParseError,
    parse_to_ast,
    tokens::{Token, TokenAndRange},
};

use super::{
    KEY, Place, Seen, Server,
    snippet::{Snippet, fill, filled, list, quoted},
    span::{self, Edit, Fault, indent, newline, slice},
};

/// What stands under our name.
pub(super) fn look(text: &str, place: Place) -> Result<Option<Seen>, Fault> {
    let doc = Doc::parse(span::split_bom(text).1)?;
    let Found::Entry { entry, .. } = doc.find(place)? else { return Ok(None) };
    let template = Doc::parse(place.template)?;
    let Found::Entry { entry: ours, .. } = template.find(place)? else { return Ok(None) };
    let mut seen = Seen::default();
    for prop in &entry.object.properties {
        match prop.name.as_str() {
            "command" => seen.command = prop.value.as_string_lit().map(|lit| lit.value.to_string()),
            "args" => seen.args = prop.value.as_array().and_then(|_| strings(&prop.value)),
            name => {
                let usual = ours.object.get(name).and_then(|prop| strings(&prop.value));
                if usual.is_none() || strings(&prop.value) != usual {
                    seen.others.push(name.to_owned());
                }
            }
        }
    }
    Ok(Some(seen))
}

/// Puts our entry in, or sets the command and the arguments of the one that is there.
pub(super) fn add(text: &str, place: Place, server: &Server) -> Result<String, Fault> {
    let (mark, body) = span::split_bom(text);
    let doc = Doc::parse(body)?;
    let edits = match doc.find(place)? {
        Found::Entry { entry, .. } => set(&entry, server),
        Found::Nothing => vec![(body.len()..body.len(), doc.whole(place, server)?)],
        Found::NoSection { root } => {
            let ours = Snippet::section(place, server)?;
            doc.insert(root, &ours, doc.unit(root), &doc.empty_root(root, &ours))
        }
        Found::NoEntry { section, unit } => {
            let ours = Snippet::entry(place, server)?;
            let unit = if unit.is_empty() { Snippet::UNIT } else { unit };
            doc.insert(section.object, &ours, unit, &doc.empty_section(&section, &ours, unit))
        }
    };
    Ok(format!("{mark}{}", span::apply(body, edits)))
}

/// Takes the entry under our name out, and the section too where [`add`] made it.
pub(super) fn remove(text: &str, place: Place) -> Result<String, Fault> {
    let (mark, body) = span::split_bom(text);
    let doc = Doc::parse(body)?;
    let Found::Entry { root, section, entry } = doc.find(place)? else {
        return Ok(text.to_owned());
    };
    if let Some(before) = doc.before_whole(root, &entry, place)? {
        return Ok(format!("{mark}{before}"));
    }
    let edits = if doc.made_by_us(&section, &entry) {
        doc.cut(root, section.prop)
    } else {
        doc.cut(section.object, entry.prop)
    };
    Ok(format!("{mark}{}", span::apply(body, edits)))
}

/// Whether a text holds nothing but, at most, an empty section.
pub(super) fn is_bare(text: &str, place: Place) -> bool {
    let Ok(doc) = Doc::parse(span::split_bom(text).1) else { return false };
    let has_comment = doc.tokens.iter().any(|token| is_comment(&token.token));
    !has_comment
        && match doc.find(place) {
            Ok(Found::Nothing) => true,
            Ok(Found::NoSection { root }) => root.properties.is_empty(),
            Ok(Found::NoEntry { section, .. }) => {
                section.alone && section.object.properties.is_empty()
            }
            Ok(Found::Entry { .. }) | Err(_) => false,
        }
}

/// Whether a text is JSON to the letter.
pub(super) fn strict(text: &str) -> Result<(), Fault> {
    let body = span::split_bom(text).1;
    let options = ParseOptions { allow_comments: false, allow_trailing_commas: false, ..LENIENT };
    parse_to_ast(body, &CollectOptions::default(), &options)
        .map(drop)
        .map_err(|err| fault(body, &err))
}

/// Comments and trailing commas, which many clients take; nothing else beyond JSON.
const LENIENT: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// A text with its tokens, comments among them, and its tree.
pub(super) struct Doc<'a> {
    pub(super) text: &'a str,
    newline: &'static str,
    pub(super) tokens: Vec<TokenAndRange<'a>>,
    pub(super) root: Option<Value<'a>>,
}

/// A property whose value is an object.
pub(super) struct Member<'d, 'a> {
    pub(super) prop: &'d ObjectProp<'a>,
    pub(super) object: &'d Object<'a>,
    /// It is the only one in its object.
    alone: bool,
}

/// How far the way to our entry is there.
pub(super) enum Found<'d, 'a> {
    Nothing,
    NoSection { root: &'d Object<'a> },
    NoEntry { section: Member<'d, 'a>, unit: &'d str },
    Entry { root: &'d Object<'a>, section: Member<'d, 'a>, entry: Member<'d, 'a> },
}

impl<'a> Doc<'a> {
    pub(super) fn parse(text: &'a str) -> Result<Doc<'a>, Fault> {
        let collect =
            CollectOptions { comments: CommentCollectionStrategy::AsTokens, tokens: true };
        let parsed = parse_to_ast(text, &collect, &LENIENT).map_err(|err| fault(text, &err))?;
        Ok(Doc {
            text,
            newline: newline(text),
            tokens: parsed.tokens.unwrap_or_default(),
            root: parsed.value,
        })
    }

    pub(super) fn find(&self, place: Place) -> Result<Found<'_, 'a>, Fault> {
        let Some(value) = &self.root else { return Ok(Found::Nothing) };
        let Some(root) = value.as_object() else {
            let what = format!("expected an object at the top, found {}", kind(value));
            return Err(Fault::at(self.text, value.start(), what));
        };
        let Some(section) = self.member(root, place.section)? else {
            return Ok(Found::NoSection { root });
        };
        if let Some(entry) = self.member(section.object, KEY)? {
            self.no_twins(entry.object)?;
            return Ok(Found::Entry { root, section, entry });
        }
        let unit = self.unit(section.object);
        let unit = if unit.is_empty() { self.unit(root) } else { unit };
        Ok(Found::NoEntry { section, unit })
    }

    /// The member of that name, which must be an object.
    fn member<'d>(
        &self,
        object: &'d Object<'a>,
        name: &str,
    ) -> Result<Option<Member<'d, 'a>>, Fault> {
        self.no_twins(object)?;
        let Some(prop) = object.get(name) else { return Ok(None) };
        let Some(inner) = prop.value.as_object() else {
            let what = format!("expected an object as `{name}`, found {}", kind(&prop.value));
            return Err(Fault::at(self.text, prop.value.start(), what));
        };
        Ok(Some(Member { prop, object: inner, alone: object.properties.len() == 1 }))
    }

    /// On the way to our entry no key may be there twice: readers differ about which one counts.
    fn no_twins(&self, object: &Object<'a>) -> Result<(), Fault> {
        let mut names = HashSet::new();
        let twin = object.properties.iter().find(|prop| !names.insert(prop.name.as_str()));
        twin.map_or(Ok(()), |prop| {
            let what = format!("the key `{}` is there twice", prop.name.as_str());
            Err(Fault::at(self.text, prop.start(), what))
        })
    }

    /// The indentation that an object adds for its members; empty where it is on one line.
    fn unit(&self, object: &Object<'a>) -> &'a str {
        let outer = indent(self.text, object.start());
        object
            .properties
            .first()
            .filter(|prop| self.is_spread(object, prop))
            .and_then(|prop| indent(self.text, prop.start()).strip_prefix(outer))
            .unwrap_or_default()
    }

    fn is_spread(&self, object: &Object<'a>, prop: &ObjectProp<'a>) -> bool {
        slice(self.text, object.start()..prop.start()).contains('\n')
    }

    /// What follows a text without a value: the template, on a line of its own. A text that had no
    /// line end at its end has none afterwards.
    fn whole(&self, place: Place, server: &Server) -> Result<String, Fault> {
        let file = filled(place, server)?.replace('\n', self.newline);
        if self.text.is_empty() || self.text.ends_with('\n') {
            return Ok(file);
        }
        Ok(format!("{}{}", self.newline, file.trim_end()))
    }

    /// The text that [`Doc::whole`] was put behind, if it was.
    fn before_whole(
        &self,
        root: &Object<'a>,
        entry: &Member<'_, 'a>,
        place: Place,
    ) -> Result<Option<&'a str>, Fault> {
        let Some(args) = entry.object.get("args").and_then(|prop| strings(&prop.value)) else {
            return Ok(None);
        };
        let Some(command) = entry.object.get_string("command") else { return Ok(None) };
        let file = fill(place, &command.value, &args)?.replace('\n', self.newline);
        let (before, rest) = self.text.split_at(root.start());
        if rest == file {
            return Ok(Some(before));
        }
        Ok((rest == file.trim_end()).then(|| before.strip_suffix(self.newline).unwrap_or(before)))
    }

    /// What is put between the braces of a root without members.
    fn empty_root(&self, root: &Object<'a>, ours: &Snippet) -> String {
        let (newline, outer) = (self.newline, indent(self.text, root.start()));
        let unit = Snippet::UNIT;
        format!(
            "{newline}{outer}{unit}{}: {{{newline}{outer}{unit}{unit}{}{newline}{outer}{unit}}}\
             {newline}{outer}",
            ours.key, ours.inside
        )
    }

    /// What is put between the braces of a section without entries.
    fn empty_section(&self, section: &Member<'_, 'a>, ours: &Snippet, unit: &str) -> String {
        let between = section.object.start() + 1..section.object.end() - 1;
        if !slice(self.text, between).contains('\n') {
            return ours.on_one_line(" ");
        }
        let (newline, outer) = (self.newline, indent(self.text, section.object.start()));
        format!("{newline}{outer}{unit}{}{newline}{outer}", ours.on_one_line(" "))
    }

    /// Puts a member behind the last one of an object; `only` where it has none.
    fn insert(&self, object: &Object<'a>, ours: &Snippet, unit: &str, only: &str) -> Vec<Edit> {
        let Some(last) = object.properties.last() else {
            let inside = object.start() + 1;
            return vec![(inside..inside, only.to_owned())];
        };
        let comma = self.comma_behind(last.end());
        let from = comma.as_ref().map_or(last.end(), |comma| comma.end);
        let (position, behind_line_comment) = self.behind_comments(from);
        let mut new = if self.is_spread(object, last) {
            let base = indent(self.text, last.start());
            let unit = if unit.is_empty() { Snippet::UNIT } else { unit };
            format!("{}{base}{}", self.newline, ours.on_lines(base, unit, self.newline))
        } else {
            let tight = slice(self.text, last.name.end()..last.value.start()) == ":";
            let gap = if tight { "" } else { " " };
            let start = if behind_line_comment { self.newline } else { gap };
            format!("{start}{}", ours.on_one_line(gap))
        };
        if comma.is_some() {
            new.push(',');
            return vec![(position..position, new)];
        }
        if position == from {
            return vec![(from..from, format!(",{new}"))];
        }
        vec![(from..from, ",".to_owned()), (position..position, new)]
    }

    /// The comma that comes next, comments aside.
    fn comma_behind(&self, position: usize) -> Option<Range<usize>> {
        self.tokens
            .iter()
            .filter(|token| token.range.start >= position)
            .find(|token| !is_comment(&token.token))
            .filter(|token| matches!(token.token, Token::Comma))
            .map(|token| token.range.start..token.range.end)
    }

    /// The comma that came before, comments aside.
    fn comma_before(&self, position: usize) -> Option<Range<usize>> {
        self.tokens
            .iter()
            .rev()
            .filter(|token| token.range.end <= position)
            .find(|token| !is_comment(&token.token))
            .filter(|token| matches!(token.token, Token::Comma))
            .map(|token| token.range.start..token.range.end)
    }

    /// Steps over the comments that begin on the same line, which belong to what stands before
    /// them; says whether the last of them runs to the end of the line.
    fn behind_comments(&self, from: usize) -> (usize, bool) {
        let (mut position, mut is_line) = (from, false);
        for token in self.tokens.iter().filter(|token| token.range.start >= from) {
            let gap = slice(self.text, position..token.range.start);
            if !is_comment(&token.token) || gap.contains('\n') {
                break;
            }
            position = token.range.end;
            is_line = matches!(token.token, Token::CommentLine(_));
        }
        (position, is_line)
    }

    /// Whether [`add`] made the section around the entry.
    fn made_by_us(&self, section: &Member<'_, 'a>, entry: &Member<'_, 'a>) -> bool {
        let before = slice(self.text, section.object.start() + 1..entry.prop.start());
        let after = slice(self.text, entry.prop.end()..section.object.end() - 1);
        let end = format!("{}{}", self.newline, indent(self.text, section.object.start()));
        entry.alone
            && before.trim().is_empty()
            && ((before.contains('\n') && after == end) || (before == " " && after == " "))
    }

    /// Takes a member out, with the space before it and one comma.
    fn cut(&self, object: &Object<'a>, prop: &ObjectProp<'a>) -> Vec<Edit> {
        let text_before = slice(self.text, 0..prop.start());
        let start = text_before.trim_end_matches([' ', '\t', '\r', '\n']).len();
        let mut end = prop.end();
        let mut edits = Vec::new();
        if let Some(comma) = self.comma_behind(end) {
            if comma.start == end {
                end = comma.end;
            } else {
                edits.push((comma, String::new()));
            }
        } else if object.properties.len() > 1 {
            edits.extend(self.comma_before(prop.start()).map(|comma| (comma, String::new())));
        }
        let is_first_of_lines =
            start == object.start() + 1 && slice(self.text, start..prop.start()).contains('\n');
        if object.properties.len() == 1 && is_first_of_lines {
            let ending = format!("{}{}", self.newline, indent(self.text, object.start()));
            if slice(self.text, end..object.end() - 1).starts_with(&ending) {
                end += ending.len();
            }
        }
        edits.push((start..end, String::new()));
        edits
    }
}

/// Sets the command and the arguments of an entry, each only where it differs.
fn set(entry: &Member<'_, '_>, server: &Server) -> Vec<Edit> {
    let args = server.args();
    let mut edits = Vec::new();
    if let Some(prop) = entry.object.get("command")
        && prop.value.as_string_lit().is_none_or(|lit| lit.value != server.command)
    {
        edits.push((prop.value.start()..prop.value.end(), quoted(&server.command)));
    }
    if let Some(prop) = entry.object.get("args")
        && strings(&prop.value).is_none_or(|there| there != args)
    {
        edits.push((prop.value.start()..prop.value.end(), list(&args)));
    }
    edits
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

fn is_comment(token: &Token<'_>) -> bool {
    matches!(token, Token::CommentLine(_) | Token::CommentBlock(_))
}

fn kind(value: &Value<'_>) -> &'static str {
    match value {
        Value::StringLit(_) => "a string",
        Value::NumberLit(_) => "a number",
        Value::BooleanLit(_) => "true or false",
        Value::Object(_) => "an object",
        Value::Array(_) => "a list",
        Value::NullKeyword(_) => "null",
    }
}

fn fault(text: &str, err: &ParseError) -> Fault {
    let what = err.kind().to_string();
    let mut chars = what.chars();
    let first = chars.next().map(|first| first.to_ascii_lowercase());
    Fault::at(text, err.range().start, first.into_iter().chain(chars).collect::<String>())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::is_bare;
    use crate::clients::{Client, Server, State};

    fn claude() -> &'static Client {
        Client::named("claude").unwrap()
    }

    fn server() -> Server {
        Server { command: "team-table".to_owned(), name: None }
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
        let template = claude().place.template;
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
        let place = claude().place;
        for text in ["", "\n", "{}", "{ \"mcpServers\": {} }"] {
            assert!(is_bare(text, place), "{text:?}");
        }
        for text in
            ["// c", "{\"a\": 1}", "{\"mcpServers\": {\"x\": 1}}", "{\"mcpServers\": {}, \"a\": 1}"]
        {
            assert!(!is_bare(text, place), "{text:?}");
        }
        let fault = claude().complaint("{\n  // c\n}").unwrap();
        assert_eq!((fault.line, fault.column), (2, 3));
        assert!(claude().complaint("{\"a\": 1,}").is_some());
        assert!(claude().complaint("\u{feff}{}").is_none());
    }

    /// JSON texts in every layout: each part with its own choice of space and comments.
    fn space() -> impl Strategy<Value = &'static str> {
        prop::sample::select(vec![
            "",
            "",
            "",
            " ",
            "\n",
            "\n  ",
            "\n    ",
            "\r\n\t",
            " /* c */ ",
            " // c\n  ",
            "//d\r\n",
        ])
    }

    fn object(members: Vec<String>, spaces: &[&str], trailing: bool) -> String {
        let mut text = "{".to_owned();
        let n_members = members.len();
        for (number, member) in members.into_iter().enumerate() {
            text.push_str(spaces[number * 2 % spaces.len()]);
            text.push_str(&member);
            text.push_str(spaces[(number * 2 + 1) % spaces.len()]);
            if trailing || number + 1 < n_members {
                text.push(',');
            }
        }
        text.push_str(spaces[spaces.len() - 1]);
        text.push('}');
        text
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
            let section = object(servers, &spaces[..5], trailing);
            let mut members: Vec<String> = (0..n_before).map(|n| format!("\"a{n}\": [1]")).collect();
            if has_section {
                members.push(format!("\"mcpServers\":{}{section}", spaces[5]));
            }
            members.extend((0..n_after).map(|n| format!("\"b{n}\":null")));
            let mark = if mark { "\u{feff}" } else { "" };
            let root = object(members, &spaces[6..11], trailing);
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
