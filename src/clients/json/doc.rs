//! A JSON text with its tokens and its tree, and how items get between its brackets and out again.

use std::{collections::HashSet, ops::Range};

use jsonc_parser::{
    CollectOptions, CommentCollectionStrategy, ParseOptions,
    ast::{Array, Object, ObjectProp, Value},
    common::Ranged as _,
    errors::ParseError,
    parse_to_ast,
    tokens::{Token, TokenAndRange},
};

use super::snippet::Snippet;
use crate::clients::span::{Edit, Fault, indent, newline, slice};

/// Comments and trailing commas, which many clients take; nothing else beyond JSON.
pub(super) const LENIENT: ParseOptions = ParseOptions {
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
pub(in crate::clients) struct Doc<'a> {
    pub(super) text: &'a str,
    pub(super) newline: &'static str,
    pub(super) tokens: Vec<TokenAndRange<'a>>,
    pub(in crate::clients) root: Option<Value<'a>>,
}

/// A property whose value is an object, or a list.
pub(super) struct Member<'d, 'a, T = Object<'a>> {
    pub(super) prop: &'d ObjectProp<'a>,
    pub(super) value: &'d T,
}

/// What stands between two brackets: the members of an object, or the elements of a list.
pub(super) struct Row {
    /// With the brackets.
    range: Range<usize>,
    items: Vec<Range<usize>>,
    /// What follows a colon here.
    gap: &'static str,
}

impl<'a> Doc<'a> {
    pub(in crate::clients) fn parse(text: &'a str) -> Result<Doc<'a>, Fault> {
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

    /// The object at the top; none where there is nothing but space and comments.
    pub(super) fn root(&self) -> Result<Option<&Object<'a>>, Fault> {
        let Some(value) = &self.root else { return Ok(None) };
        value.as_object().map(Some).ok_or_else(|| {
            let what = format!("expected an object at the top, found {}", kind(value));
            Fault::at(self.text, value.start(), what)
        })
    }

    /// The member of that name, which must be an object.
    pub(super) fn object_in<'d>(
        &self,
        object: &'d Object<'a>,
        name: &str,
    ) -> Result<Option<Member<'d, 'a>>, Fault> {
        let Some(prop) = self.member(object, name)? else { return Ok(None) };
        let value = prop.value.as_object();
        let value = value.ok_or_else(|| self.wrong_kind("an object", name, prop))?;
        Ok(Some(Member { prop, value }))
    }

    /// The member of that name, which must be a list.
    pub(super) fn list_in<'d>(
        &self,
        object: &'d Object<'a>,
        name: &str,
    ) -> Result<Option<Member<'d, 'a, Array<'a>>>, Fault> {
        let Some(prop) = self.member(object, name)? else { return Ok(None) };
        let value = prop.value.as_array();
        let value = value.ok_or_else(|| self.wrong_kind("a list", name, prop))?;
        Ok(Some(Member { prop, value }))
    }

    fn member<'d>(
        &self,
        object: &'d Object<'a>,
        name: &str,
    ) -> Result<Option<&'d ObjectProp<'a>>, Fault> {
        self.no_twins(object)?;
        Ok(object.get(name))
    }

    fn wrong_kind(&self, wanted: &str, name: &str, prop: &ObjectProp<'a>) -> Fault {
        let what = format!("expected {wanted} as `{name}`, found {}", kind(&prop.value));
        Fault::at(self.text, prop.value.start(), what)
    }

    /// On the way to our part no key may be there twice: readers differ about which one counts.
    pub(super) fn no_twins(&self, object: &Object<'a>) -> Result<(), Fault> {
        let mut names = HashSet::new();
        let twin = object.properties.iter().find(|prop| !names.insert(prop.name.as_str()));
        twin.map_or(Ok(()), |prop| {
            let what = format!("the key `{}` is there twice", prop.name.as_str());
            Err(Fault::at(self.text, prop.start(), what))
        })
    }

    pub(super) fn members(&self, object: &Object<'a>) -> Row {
        let last = object.properties.last();
        Row {
            range: object.start()..object.end(),
            items: object.properties.iter().map(|prop| prop.start()..prop.end()).collect(),
            gap: last.map_or(" ", |prop| self.gap(prop)),
        }
    }

    pub(super) fn elements(&self, list: &Member<'_, 'a, Array<'a>>) -> Row {
        Row {
            range: list.value.start()..list.value.end(),
            items: list.value.elements.iter().map(|value| value.start()..value.end()).collect(),
            gap: self.gap(list.prop),
        }
    }

    fn gap(&self, prop: &ObjectProp<'a>) -> &'static str {
        if slice(self.text, prop.name.end()..prop.value.start()) == ":" { "" } else { " " }
    }

    /// The indentation that a row adds for its items; empty where it is on one line.
    pub(super) fn unit(&self, row: &Row) -> &'a str {
        let outer = indent(self.text, row.range.start);
        row.items
            .first()
            .filter(|first| self.is_spread(row, first))
            .and_then(|first| indent(self.text, first.start).strip_prefix(outer))
            .unwrap_or_default()
    }

    /// Whether that item of a row is on another line than its bracket.
    fn is_spread(&self, row: &Row, item: &Range<usize>) -> bool {
        slice(self.text, row.range.start..item.start).contains('\n')
    }

    /// Whether what comes last in a row is on a line of its own.
    pub(super) fn is_on_lines(&self, row: &Row) -> bool {
        row.items.last().is_some_and(|last| self.is_spread(row, last))
    }

    /// What follows a text without a value, on a line of its own. A text that had no line end at
    /// its end has none afterwards.
    pub(super) fn whole(&self, file: &str) -> String {
        let file = file.replace('\n', self.newline);
        if self.text.is_empty() || self.text.ends_with('\n') {
            return file;
        }
        format!("{}{}", self.newline, file.trim_end())
    }

    /// The text that [`Doc::whole`] was put behind, if it was.
    pub(super) fn before_whole(&self, root: &Object<'a>, file: &str) -> Option<&'a str> {
        let file = file.replace('\n', self.newline);
        let (before, rest) = self.text.split_at(root.start());
        if rest == file {
            return Some(before);
        }
        (rest == file.trim_end()).then(|| before.strip_suffix(self.newline).unwrap_or(before))
    }

    /// What is put between the brackets of a row without items, on lines of its own: before what
    /// stood there. Where that was on one line, the closing bracket stays on the line of ours,
    /// where no part of ours that was made with its brackets has it.
    pub(super) fn only_on_lines(&self, row: &Row, ours: &Snippet, unit: &str) -> String {
        let (newline, outer) = (self.newline, indent(self.text, row.range.start));
        let base = format!("{outer}{unit}");
        let between = slice(self.text, row.range.start + 1..row.range.end - 1);
        let end = if between.contains('\n') { format!("{newline}{outer}") } else { String::new() };
        format!("{newline}{base}{}{end}", ours.on_lines(&base, unit, newline))
    }

    /// Puts an item behind the last one of a row; `only` where it has none.
    pub(super) fn insert(&self, row: &Row, ours: &Snippet, unit: &str, only: &str) -> Vec<Edit> {
        let Some(last) = row.items.last() else {
            let inside = row.range.start + 1;
            return vec![(inside..inside, only.to_owned())];
        };
        let comma = self.comma_behind(last.end);
        let from = comma.as_ref().map_or(last.end, |comma| comma.end);
        let (position, behind_line_comment) = self.behind_comments(from);
        let mut new = if self.is_spread(row, last) {
            let base = indent(self.text, last.start);
            let unit = if unit.is_empty() { Snippet::UNIT } else { unit };
            format!("{}{base}{}", self.newline, ours.on_lines(base, unit, self.newline))
        } else {
            let start = if behind_line_comment { self.newline } else { row.gap };
            format!("{start}{}", ours.on_one_line(row.gap))
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

    /// Whether the brackets around an item were put there with it.
    pub(super) fn made_by_us(&self, row: &Row) -> bool {
        let [item] = row.items.as_slice() else { return false };
        let before = slice(self.text, row.range.start + 1..item.start);
        let after = slice(self.text, item.end..row.range.end - 1);
        let end = format!("{}{}", self.newline, indent(self.text, row.range.start));
        before.trim().is_empty()
            && ((before.contains('\n') && after == end) || (before == " " && after == " "))
    }

    /// Takes an item out, with the space before it and one comma.
    pub(super) fn cut(&self, row: &Row, item: &Range<usize>) -> Vec<Edit> {
        let text_before = slice(self.text, 0..item.start);
        let start = text_before.trim_end_matches([' ', '\t', '\r', '\n']).len();
        let mut end = item.end;
        let mut edits = Vec::new();
        if let Some(comma) = self.comma_behind(end) {
            if comma.start == end {
                end = comma.end;
            } else {
                edits.push((comma, String::new()));
            }
        } else if row.items.len() > 1 {
            edits.extend(self.comma_before(item.start).map(|comma| (comma, String::new())));
        }
        let is_first_of_lines =
            start == row.range.start + 1 && slice(self.text, start..item.start).contains('\n');
        if row.items.len() == 1 && is_first_of_lines {
            let ending = format!("{}{}", self.newline, indent(self.text, row.range.start));
            if slice(self.text, end..row.range.end - 1).starts_with(&ending) {
                end += ending.len();
            }
        }
        edits.push((start..end, String::new()));
        edits
    }
}

impl Row {
    pub(super) fn gap(&self) -> &'static str {
        self.gap
    }
}

pub(super) fn range(prop: &ObjectProp<'_>) -> Range<usize> {
    prop.start()..prop.end()
}

pub(super) fn is_comment(token: &Token<'_>) -> bool {
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

pub(super) fn fault(text: &str, err: &ParseError) -> Fault {
    let what = err.kind().to_string();
    let mut chars = what.chars();
    let first = chars.next().map(|first| first.to_ascii_lowercase());
    Fault::at(text, err.range().start, first.into_iter().chain(chars).collect::<String>())
}
