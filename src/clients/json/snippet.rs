//! Our part of a JSON file, from the template, in the layout that the file asks for.

use std::ops::Range;

use jsonc_parser::tokens::{Token, TokenAndRange};

use super::doc::Doc;
use crate::clients::span::{indent, slice};

/// A member or an element of ours, to be laid out.
#[derive(Clone)]
pub(super) struct Snippet {
    /// As in the template, without the indentation that it has there.
    lines: String,
    loose: String,
    /// Without spaces behind commas and colons.
    tight: String,
}

impl Snippet {
    /// The indentation of the template, and of files that show none of their own.
    pub(super) const UNIT: &str = "  ";

    /// A part of a template.
    pub(super) fn of(doc: &Doc<'_>, range: Range<usize>) -> Snippet {
        let outer = format!("\n{}", indent(doc.text, range.start));
        Snippet {
            lines: slice(doc.text, range.clone()).replace(&outer, "\n"),
            loose: doc.joined(range.clone(), " "),
            tight: doc.joined(range, ""),
        }
    }

    /// A part that is on one line in every layout: with spaces behind commas and colons, and
    /// without.
    pub(super) fn word(loose: &str, tight: &str) -> Snippet {
        Snippet { lines: loose.to_owned(), loose: loose.to_owned(), tight: tight.to_owned() }
    }

    /// The same as the only item of an object or list under this key.
    pub(super) fn within(&self, key: &str, [open, close]: [char; 2]) -> Snippet {
        let key = quoted(key);
        Snippet {
            lines: format!("{key}: {open}\n{}\n{close}", self.indented()),
            loose: format!("{key}: {open} {} {close}", self.loose),
            tight: format!("{key}:{open} {} {close}", self.tight),
        }
    }

    /// A file with nothing else.
    pub(super) fn file(&self) -> String {
        format!("{{\n{}\n}}\n", self.indented())
    }

    fn indented(&self) -> String {
        let inner = format!("\n{}", Snippet::UNIT);
        format!("{}{}", Snippet::UNIT, self.lines.replace('\n', &inner))
    }

    pub(super) fn on_one_line(&self, gap: &str) -> &str {
        if gap.is_empty() { &self.tight } else { &self.loose }
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

pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
