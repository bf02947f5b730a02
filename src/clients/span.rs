//! What the two editors share: where a fault is, and cutting and pasting by byte range.
//!
//! Everything outside the pasted and cut ranges keeps its bytes; that is the whole point.

use std::ops::Range;

/// Why a file cannot be edited, and where. The caller adds the path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Counted from 1.
    pub line: usize,
    /// Counted from 1, in characters.
    pub column: usize,
    /// What was found and what would be right.
    pub text: String,
}

impl Fault {
    /// A fault right behind this beginning of a text.
    pub fn behind(before: &str, what: impl Into<String>) -> Fault {
        Fault {
            line: before.matches('\n').count() + 1,
            column: before.chars().rev().take_while(|&c| c != '\n').count() + 1,
            text: what.into(),
        }
    }

    pub(super) fn at(text: &str, position: usize, what: impl Into<String>) -> Fault {
        Fault::behind(text.get(..position).unwrap_or(text), what)
    }
}

/// One replacement. An empty range inserts, an empty text cuts.
pub(super) type Edit = (Range<usize>, String);

/// Applies edits that do not overlap, in any order.
pub(super) fn apply(text: &str, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|(range, _)| (range.start, range.end));
    let mut edited = String::with_capacity(text.len());
    let mut position = 0;
    for (range, new) in edits {
        edited.push_str(slice(text, position..range.start));
        edited.push_str(&new);
        position = position.max(range.end);
    }
    edited.push_str(slice(text, position..text.len()));
    edited
}

/// Splits a byte order mark off. Parsers do not want it, and their positions start behind it.
pub(super) fn split_bom(text: &str) -> (&str, &str) {
    text.split_at(if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 })
}

/// The line end of a text: that of its first line. A text of one line that ends in a lone CR gets
/// CRLF, since LF behind it would read as such.
pub(super) fn newline(text: &str) -> &'static str {
    let first_line = text.split('\n').next().unwrap_or(text);
    if first_line.ends_with('\r') { "\r\n" } else { "\n" }
}

/// A part of the text, empty where there is none.
pub(super) fn slice(text: &str, range: Range<usize>) -> &str {
    text.get(range).unwrap_or_default()
}

/// Where the line of a position begins.
pub(super) fn line_start(text: &str, position: usize) -> usize {
    slice(text, 0..position).rfind('\n').map_or(0, |end| end + 1)
}

/// Where the line of a position ends, behind its line end.
pub(super) fn line_end(text: &str, position: usize) -> usize {
    slice(text, position..text.len()).find('\n').map_or(text.len(), |end| position + end + 1)
}

/// The spaces and tabs that the line of a position begins with.
pub(super) fn indent(text: &str, position: usize) -> &str {
    let line = slice(text, line_start(text, position)..position);
    slice(line, 0..line.len() - line.trim_start_matches([' ', '\t']).len())
}
