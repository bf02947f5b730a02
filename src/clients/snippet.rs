//! Our part of a JSON file, from the template, in the layout that the file asks for.

use std::ops::Range;

use jsonc_parser::{
    ast::{Object, ObjectProp},
    common::Ranged as _,
    tokens::{Token, TokenAndRange},
};

use super::{
    KEY, Place, Server,
    json::{Doc, Found},
    span::{self, Fault, indent, slice},
};

/// Our section or our entry, to be laid out.
pub(super) struct Snippet {
    pub(super) key: String,
    /// What stands between the braces, on one line.
    pub(super) inside: String,
    /// As in the template, without the indentation that it has there.
    lines: String,
    tight: String,
    is_section: bool,
}

impl Snippet {
    /// The indentation of the template, and of files that show none of their own.
    pub(super) const UNIT: &str = "  ";

    pub(super) fn section(place: Place, server: &Server) -> Result<Snippet, Fault> {
        let file = filled(place, server)?;
        let doc = Doc::parse(&file)?;
        let Found::Entry { section, .. } = doc.find(place)? else { return Err(lost(&file)) };
        Ok(Snippet::of(&doc, section.prop, section.object, true))
    }

    pub(super) fn entry(place: Place, server: &Server) -> Result<Snippet, Fault> {
        let file = filled(place, server)?;
        let doc = Doc::parse(&file)?;
        let Found::Entry { entry, .. } = doc.find(place)? else { return Err(lost(&file)) };
        Ok(Snippet::of(&doc, entry.prop, entry.object, false))
    }

    fn of(doc: &Doc<'_>, prop: &ObjectProp<'_>, object: &Object<'_>, is_section: bool) -> Snippet {
        let outer = format!("\n{}", indent(doc.text, prop.start()));
        let inside = object.start() + 1..object.end() - 1;
        Snippet {
            key: slice(doc.text, prop.start()..prop.name.end()).to_owned(),
            inside: doc.joined(inside.clone(), " "),
            lines: slice(doc.text, prop.start()..prop.end()).replace(&outer, "\n"),
            tight: doc.joined(inside, ""),
            is_section,
        }
    }

    pub(super) fn on_one_line(&self, gap: &str) -> String {
        let inside = if gap.is_empty() { &self.tight } else { &self.inside };
        let pad = if self.is_section { " " } else { "" };
        format!("{}:{gap}{{{pad}{inside}{pad}}}", self.key)
    }

    pub(super) fn on_lines(&self, base: &str, unit: &str, newline: &str) -> String {
        let mut laid_out = String::new();
        for (number, line) in self.lines.lines().enumerate() {
            let rest = line.trim_start_matches(' ');
            if number > 0 {
                let depth = (line.len() - rest.len()) / Snippet::UNIT.len();
                laid_out.push_str(newline);
                laid_out.push_str(base);
                laid_out.push_str(&unit.repeat(depth));
            }
            laid_out.push_str(rest);
        }
        laid_out
    }
}

impl Doc<'_> {
    /// The tokens of a range on one line, with a gap behind each comma and colon.
    fn joined(&self, range: Range<usize>, gap: &str) -> String {
        let mut joined = String::new();
        let inside = |token: &&TokenAndRange<'_>| {
            range.start <= token.range.start && token.range.end <= range.end
        };
        for token in self.tokens.iter().filter(inside) {
            joined.push_str(slice(self.text, token.range.start..token.range.end));
            if matches!(token.token, Token::Comma | Token::Colon) {
                joined.push_str(gap);
            }
        }
        joined
    }
}

/// The template with the command and the arguments of this server.
pub(super) fn filled(place: Place, server: &Server) -> Result<String, Fault> {
    fill(place, &server.command, &server.args())
}

pub(super) fn fill(place: Place, command: &str, args: &[String]) -> Result<String, Fault> {
    let doc = Doc::parse(place.template)?;
    let Found::Entry { entry, .. } = doc.find(place)? else { return Err(lost(place.template)) };
    let mut edits = Vec::new();
    for (name, new) in [("command", quoted(command)), ("args", list(args))] {
        let value = entry.object.get(name).map(|prop| prop.value.start()..prop.value.end());
        edits.extend(value.map(|range| (range, new)));
    }
    Ok(span::apply(place.template, edits))
}

fn lost(text: &str) -> Fault {
    Fault::at(text, 0, format!("the template has no entry `{KEY}`"))
}

pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

pub(super) fn list(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
    format!("[{}]", texts.join(", "))
}
