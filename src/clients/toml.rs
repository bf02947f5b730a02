//! Puts our entry into a TOML text and takes it out again, by byte ranges.
//!
//! `toml_edit` finds the places, and is not asked to write: it turns CRLF into LF and drops a byte
//! order mark. Our table goes to the end of the file, behind a blank line, which TOML allows
//! whatever stands above; only where the section is an inline table does it go in there. A text
//! without a line end at its end has none afterwards.

use std::ops::Range;

use serde_json::Map;
use toml_edit::{Document, InlineTable, Item, Key, Table, TableLike, Value};

use super::{
    KEY,
    span::{self, Edit, Fault, indent, line_end, line_start, newline, slice},
    value,
};

type Members = Map<String, serde_json::Value>;

/// The members of what stands under our name.
pub(super) fn look(text: &str, section: &str) -> Result<Option<Members>, Fault> {
    let body = span::split_bom(text).1;
    let document = parse(body)?;
    let Found::Entry { entry, .. } = find(&document, body, section)? else { return Ok(None) };
    Ok(Some(entry.iter().map(|(name, item)| (name.to_owned(), value::from_item(item))).collect()))
}

/// Puts an entry with these members in, or makes those of the one that is there the same.
pub(super) fn add(text: &str, section: &str, members: &Members) -> Result<String, Fault> {
    let (mark, body) = span::split_bom(text);
    let document = parse(body)?;
    let edits = match find(&document, body, section)? {
        Found::Entry { .. } => return Ok(format!("{mark}{}", set(body, section, members)?)),
        Found::NoEntry => {
            let table = format!("[{section}.{KEY}]\n{}\n", pairs(members).join("\n"));
            vec![(body.len()..body.len(), appended(body, &table))]
        }
        Found::NoEntryInline(section) => {
            let entry = format!("{KEY} = {{ {} }}", pairs(members).join(", "));
            vec![inserted(body, section, &entry)]
        }
    };
    Ok(format!("{mark}{}", span::apply(body, edits)))
}

/// Takes the entry under our name out, with its sub-tables.
pub(super) fn remove(text: &str, section: &str) -> Result<String, Fault> {
    let (mark, body) = span::split_bom(text);
    let document = parse(body)?;
    let Found::Entry { section, key, item, .. } = find(&document, body, section)? else {
        return Ok(text.to_owned());
    };
    let ranges = match section {
        Item::Value(Value::InlineTable(section)) => vec![cut_inline(body, section, key, item)?],
        _ => entry_lines(body, key, item)
            .into_iter()
            .map(|range| with_blank_line(body, range))
            .collect(),
    };
    let edits = ranges.into_iter().map(|range| (range, String::new())).collect();
    Ok(format!("{mark}{}", span::apply(body, edits)))
}

/// Whether a text holds nothing but, at most, an empty section.
pub(super) fn is_bare(text: &str, section: &str) -> bool {
    let body = span::split_bom(text).1;
    let Ok(document) = parse(body) else { return false };
    !body.contains('#')
        && document.iter().all(|(name, item)| {
            name == section && item.as_table_like().is_some_and(TableLike::is_empty)
        })
}

/// How far the way to our entry is there.
enum Found<'d> {
    NoEntry,
    NoEntryInline(&'d InlineTable),
    Entry { section: &'d Item, key: &'d Key, item: &'d Item, entry: &'d dyn TableLike },
}

pub(super) fn parse(body: &str) -> Result<Document<&str>, Fault> {
    Document::parse(body).map_err(|err| {
        let position = err.span().map_or(0, |span| span.start);
        Fault::at(body, position, err.message().replace('\n', ", "))
    })
}

fn find<'d>(document: &'d Document<&str>, body: &str, section: &str) -> Result<Found<'d>, Fault> {
    let Some((section_key, section)) = document.get_key_value(section) else {
        return Ok(Found::NoEntry);
    };
    let Some(table) = section.as_table_like() else {
        return Err(wrong_kind(body, section_key, section));
    };
    match table.get_key_value(KEY) {
        Some((key, item)) => match item.as_table_like() {
            Some(entry) => Ok(Found::Entry { section, key, item, entry }),
            None => Err(wrong_kind(body, key, item)),
        },
        None => match section {
            Item::Value(Value::InlineTable(table)) => Ok(Found::NoEntryInline(table)),
            _ => Ok(Found::NoEntry),
        },
    }
}

fn wrong_kind(body: &str, key: &Key, item: &Item) -> Fault {
    let position = key.span().map_or(0, |span| span.start);
    let what = format!("expected a table as `{}`, found {}", key.get(), item.type_name());
    Fault::at(body, position, what)
}

/// What is put behind the text.
fn appended(body: &str, table: &str) -> String {
    let newline = newline(body);
    let table = table.trim_end().replace('\n', newline);
    if body.is_empty() {
        format!("{table}{newline}")
    } else if body.ends_with('\n') {
        format!("{newline}{table}{newline}")
    } else {
        format!("{newline}{newline}{table}")
    }
}

/// What is put into an inline section: behind its last value, else between its braces.
fn inserted(body: &str, section: &InlineTable, entry: &str) -> Edit {
    if let Some(end) = section.iter().filter_map(|(_, value)| end_of(value)).max() {
        return (end..end, format!(", {entry}"));
    }
    let span = section.span().unwrap_or_default();
    let start = span.start + 1;
    let space = slice(body, start..span.end.saturating_sub(1));
    let space = if space.trim_matches([' ', '\t']).is_empty() { space } else { "" };
    (start..start, format!("{space}{entry}"))
}

/// Where a value ends; a dotted table ends with its last value.
fn end_of(value: &Value) -> Option<usize> {
    match value {
        Value::InlineTable(table) if table.is_dotted() => {
            table.iter().filter_map(|(_, value)| end_of(value)).max()
        }
        value => value.span().map(|span| span.end),
    }
}

/// The range of an entry in an inline section, with one comma.
fn cut_inline(
    body: &str,
    section: &InlineTable,
    key: &Key,
    item: &Item,
) -> Result<Range<usize>, Fault> {
    let start = key.span().map_or(0, |span| span.start);
    let end = match item {
        Item::Value(Value::InlineTable(table)) if table.is_dotted() => {
            let what = format!("`{KEY}` is spread over dotted keys: take it out by hand");
            return Err(Fault::at(body, start, what));
        }
        item => item.span().map_or(start, |span| span.end),
    };
    let others = || section.iter().filter(|(name, _)| *name != KEY).map(|(_, value)| value);
    if let Some(previous) = others().filter_map(end_of).filter(|&end| end <= start).max() {
        return Ok(previous..end);
    }
    let rest = slice(body, end..body.len());
    if others().next().is_some()
        && let Some(behind) = rest.trim_start().strip_prefix(',')
    {
        return Ok(start..body.len() - behind.trim_start_matches([' ', '\t']).len());
    }
    let gap = slice(body, 0..start).trim_end_matches([' ', '\t']).len();
    Ok(gap..end)
}

/// The whole lines that an entry is made of: one value, or a table with its sub-tables.
fn entry_lines(body: &str, key: &Key, item: &Item) -> Vec<Range<usize>> {
    let mut lines = Vec::new();
    match item {
        Item::Table(table) => table_lines(body, table, &mut lines),
        item => lines.push(value_line(body, key, item)),
    }
    lines
}

/// A header with its values, or the values alone where dotted keys make the table; then the
/// sub-tables, wherever they stand.
fn table_lines(body: &str, table: &Table, lines: &mut Vec<Range<usize>>) {
    let mut values = Vec::new();
    let mut tables = Vec::new();
    members(body, table, &mut values, &mut tables);
    let has_header = !table.is_implicit() && !table.is_dotted();
    match table.span().filter(|_| has_header) {
        Some(header) => {
            let end = values.iter().map(|range| range.end).max();
            let end = end.unwrap_or_else(|| line_end(body, header.end));
            lines.push(line_start(body, header.start)..end);
        }
        None => lines.append(&mut values),
    }
    for table in tables {
        table_lines(body, table, lines);
    }
}

fn members<'d>(
    body: &str,
    table: &'d Table,
    values: &mut Vec<Range<usize>>,
    tables: &mut Vec<&'d Table>,
) {
    for (name, item) in table {
        match item {
            Item::Table(inner) if inner.is_dotted() => members(body, inner, values, tables),
            Item::Table(inner) => tables.push(inner),
            Item::ArrayOfTables(inner) => tables.extend(inner.iter()),
            item => values.extend(table.key(name).map(|key| value_line(body, key, item))),
        }
    }
}

fn value_line(body: &str, key: &Key, item: &Item) -> Range<usize> {
    let start = key.span().map_or(0, |span| span.start);
    let end = item.span().map_or(start, |span| span.end);
    line_start(body, start)..line_end(body, end)
}

/// A range of lines with the blank line before it, or at the beginning the one behind it. Where
/// the file ends without a line end, so does what is left of it.
fn with_blank_line(body: &str, lines: Range<usize>) -> Range<usize> {
    let before = slice(body, 0..lines.start);
    if before.is_empty() {
        let rest = slice(body, lines.end..body.len());
        let blank =
            if rest.starts_with('\n') { 1 } else { 2 * usize::from(rest.starts_with("\r\n")) };
        return 0..lines.end + blank;
    }
    let is_unended = lines.end == body.len() && !body.ends_with('\n');
    let above = without_line_end(before);
    let is_below_blank = above.is_empty() || above.ends_with('\n');
    let kept = match (is_unended, is_below_blank) {
        (false, false) => before,
        (false, true) | (true, false) => above,
        (true, true) => without_line_end(above),
    };
    kept.len()..lines.end
}

fn without_line_end(text: &str) -> &str {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.strip_suffix('\r').unwrap_or(text)
}

/// Makes the members of the entry these. Where they have the same keys, only values that differ are
/// written. Else each one takes the place of the one that stands there now, so that comments and
/// layout stay; what is left over goes, or comes behind the last one.
fn set(body: &str, section: &str, members: &Members) -> Result<String, Fault> {
    let mut text = body.to_owned();
    loop {
        let document = parse(&text)?;
        let Found::Entry { entry, item, .. } = find(&document, &text, section)? else {
            return Ok(text);
        };
        let edits = next_edits(&text, item, entry, members)?;
        if edits.is_empty() {
            return Ok(text);
        }
        text = span::apply(&text, edits);
    }
}

/// One member where it stands.
struct Pair<'d> {
    name: &'d str,
    item: &'d Item,
    key: Range<usize>,
    value: Range<usize>,
}

impl Pair<'_> {
    fn range(&self) -> Range<usize> {
        self.key.start..self.value.end
    }
}

/// The first step that is left to be done.
fn next_edits(
    body: &str,
    item: &Item,
    entry: &dyn TableLike,
    members: &Members,
) -> Result<Vec<Edit>, Fault> {
    let there = placed(body, entry)?;
    let has_same_keys =
        there.len() == members.len() && there.iter().all(|pair| members.contains_key(pair.name));
    if has_same_keys {
        let differing = there.iter().filter_map(|pair| {
            let new = members.get(pair.name)?;
            (value::from_item(pair.item) != *new).then(|| (pair.value.clone(), written(new)))
        });
        return Ok(differing.collect());
    }
    let is_inline = matches!(item, Item::Value(_));
    if let Some(last) = there.get(members.len()..).and_then(<[_]>::last) {
        let before = there.iter().rev().nth(1).map(|pair| pair.value.end);
        let cut = if is_inline {
            before.unwrap_or(last.key.start)..last.value.end
        } else {
            line_of(body, last)
        };
        return Ok(vec![(cut, String::new())]);
    }
    let all = pairs(members);
    let replaced = there.iter().zip(members).zip(&all).filter_map(|((pair, (name, new)), text)| {
        let is_there = pair.name == name && value::from_item(pair.item) == *new;
        (!is_there).then(|| (pair.range(), text.clone()))
    });
    let replaced: Vec<Edit> = replaced.collect();
    match (all.get(there.len()), there.last()) {
        (Some(new), Some(last)) if replaced.is_empty() => {
            let edit = if is_inline {
                (last.value.end..last.value.end, format!(", {new}"))
            } else {
                line_behind(body, last, new)
            };
            Ok(vec![edit])
        }
        _ => Ok(replaced),
    }
}

/// The members of an entry where they stand. Nobody could say where those are that dotted keys make.
fn placed<'d>(body: &str, entry: &'d dyn TableLike) -> Result<Vec<Pair<'d>>, Fault> {
    let pairs = entry.iter().map(|(name, item)| {
        let key = entry.key(name).and_then(Key::span);
        let (Some(key), Some(value)) = (key, item.span()) else {
            return Err(Fault::at(body, 0, format!("the entry `{KEY}` is spread over the file")));
        };
        Ok(Pair { name, item, key, value })
    });
    pairs.collect()
}

/// The line of a member, but for a comment behind it.
fn line_of(body: &str, pair: &Pair<'_>) -> Range<usize> {
    let end = line_end(body, pair.value.end);
    let behind = slice(body, pair.value.end..end);
    if behind.trim_start().starts_with('#') {
        return pair.key.start..end - behind.trim_start().len();
    }
    let start = line_start(body, pair.key.start);
    if body.ends_with('\n') || end < body.len() {
        return start..end;
    }
    without_line_end(slice(body, 0..start)).len()..end
}

/// A new member on the line behind another one, which begins like it.
fn line_behind(body: &str, pair: &Pair<'_>, new: &str) -> Edit {
    let newline = newline(body);
    let end = line_end(body, pair.value.end);
    let start = slice(body, line_start(body, pair.key.start)..pair.key.start);
    let start = if start.trim().is_empty() { indent(body, pair.key.start) } else { start };
    if slice(body, 0..end).ends_with('\n') {
        return (end..end, format!("{start}{new}{newline}"));
    }
    (end..end, format!("{newline}{start}{new}"))
}

fn pairs(members: &Members) -> Vec<String> {
    members.iter().map(|(name, value)| format!("{name} = {}", written(value))).collect()
}

/// A value on one line.
fn written(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => Value::from(text).to_string(),
        serde_json::Value::Array(items) => {
            format!("[{}]", items.iter().map(written).collect::<Vec<_>>().join(", "))
        }
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{is_bare, parse};
    use crate::clients::{
        Client, File, State,
        tests::{calls, plain as server, server_file},
    };

    fn codex() -> &'static File {
        server_file(Client::named("codex").unwrap())
    }

    fn add(text: &str) -> String {
        codex().add(text, &server()).unwrap()
    }

    const TABLE: &str = "[mcp_servers.team-table]\ncommand = \"team-table\"\nargs = [\"serve\"]\n\
                         env_vars = [\"TEAM_TABLE_NAME\", \"TEAM_TABLE_DB\", \"CODEX_HOME\"]\n";
    const INLINE: &str = "team-table = { command = \"team-table\", args = [\"serve\"], \
                          env_vars = [\"TEAM_TABLE_NAME\", \"TEAM_TABLE_DB\", \"CODEX_HOME\"] }";

    /// T stands for our table, I for our inline entry.
    fn check(before: &str, after: &str) {
        let crlf = before.contains("\r\n");
        let table = if crlf { TABLE.replace('\n', "\r\n") } else { TABLE.to_owned() };
        let after = after.replace("{T}", table.trim_end()).replace("{I}", INLINE);
        assert_eq!(add(before), after, "add to {before:?}");
        assert_eq!(add(&after), after, "add again to {before:?}");
        assert_eq!(codex().remove(&after).unwrap(), before, "remove from {after:?}");
    }

    #[test]
    fn in_and_out_again() {
        check("", "{T}\n");
        check("\u{feff}", "\u{feff}{T}\n");
        check("\n", "\n\n{T}\n");
        check(" ", " \n\n{T}");
        check("# only a comment", "# only a comment\n\n{T}");
        check("a = 1\n", "a = 1\n\n{T}\n");
        check("a = 1\n\n", "a = 1\n\n\n{T}\n");
        check("a = 1", "a = 1\n\n{T}");
        check("\u{feff}a = 1 # c\r\n", "\u{feff}a = 1 # c\r\n\r\n{T}\r\n");
        check("a = 1\r\nb = 2", "a = 1\r\nb = 2\r\n\r\n{T}");
        check("[mcp_servers]\n", "[mcp_servers]\n\n{T}\n");
        check("mcp_servers.x.command = 'x'\n", "mcp_servers.x.command = 'x'\n\n{T}\n");
        check(
            "[mcp_servers]\nx = { command = 'x' }\n",
            "[mcp_servers]\nx = { command = 'x' }\n\n{T}\n",
        );
        check("[mcp_servers.x]\n[z]\n", "[mcp_servers.x]\n[z]\n\n{T}\n");
        check("mcp_servers = {}\n", "mcp_servers = {{I}}\n");
        check("mcp_servers = { }\n", "mcp_servers = { {I} }\n");
        check(
            "mcp_servers = { x = { a = 1 } }\nz = 1",
            "mcp_servers = { x = { a = 1 }, {I} }\nz = 1",
        );
        check("mcp_servers = { x.a = 1 } # c\n", "mcp_servers = { x.a = 1, {I} } # c\n");
        check("mcp_servers = {\n  x = {}, # c\n}\n", "mcp_servers = {\n  x = {}, {I}, # c\n}\n");
    }

    #[test]
    fn every_form_is_taken_out_whole() {
        fn check(before: &str, after: &str) {
            assert_eq!(codex().remove(before).unwrap(), after, "{before:?}");
        }
        check("a = 1\n\n[mcp_servers.team-table]\nx = 1 # c\n\n[b]\n", "a = 1\n\n[b]\n");
        check("[mcp_servers.team-table]\nx = [\n1,\n]\n\n[b]\n", "[b]\n");
        check(
            "[mcp_servers.team-table]\nx = 1\n[b]\ny = 1\n[mcp_servers.team-table.env]\nz = 1\n[c]",
            "[b]\ny = 1\n[c]",
        );
        check(
            "[mcp_servers.team-table]\na.b = 1\n[b]\ny = 1\n[mcp_servers.team-table.a.c]\nz = 1\n",
            "[b]\ny = 1\n",
        );
        check("[mcp_servers.team-table.env]\nz = 1\n[b]\n", "[b]\n");
        check("[[mcp_servers.team-table.x]]\n[[mcp_servers.team-table.x]]\ny = 1\n[b]\n", "[b]\n");
        check(
            "[mcp_servers]\nx = {}\n'team-table' = { a = 1 }\ny = {}\n",
            "[mcp_servers]\nx = {}\ny = {}\n",
        );
        check(
            "[mcp_servers]\nteam-table.a = 1\nx.a = 1\nteam-table.b = 1\n",
            "[mcp_servers]\nx.a = 1\n",
        );
        check("mcp_servers.team-table.a = 1\nz = 1\n", "z = 1\n");
        check("mcp_servers = { team-table = {}, x = {} }\n", "mcp_servers = { x = {} }\n");
        check(
            "mcp_servers = { x = {}, team-table = {}, y = {} }\n",
            "mcp_servers = { x = {}, y = {} }\n",
        );
        check("a = 1\n", "a = 1\n");
    }

    #[test]
    fn what_cannot_be_edited_is_refused_with_its_place() {
        fn check(text: &str, line: usize, column: usize, part: &str) {
            let fault = codex().add(text, &server()).unwrap_err();
            assert_eq!((fault.line, fault.column), (line, column), "{text:?}: {fault:?}");
            assert!(fault.text.contains(part), "{text:?}: {fault:?}");
        }
        check("a = 1\nb = \n", 2, 5, "");
        check("a = 1\na = 2\n", 2, 1, "duplicate key");
        check("\u{feff}a = 'x", 1, 7, "invalid literal string");
        check("x = 1\nmcp_servers = []\n", 2, 1, "expected a table as `mcp_servers`, found array");
        check("[[mcp_servers]]\n", 1, 3, "found array of tables");
        check("[mcp_servers]\nteam-table = 'x'\n", 2, 1, "expected a table as `team-table`");
        let dotted = codex().remove("mcp_servers = { team-table.a = 1 }\n").unwrap_err();
        assert!(dotted.text.contains("by hand"), "{dotted:?}");
    }

    #[test]
    fn settings_of_others_are_seen() {
        let text = format!("{TABLE}[mcp_servers.team-table.env]\nA = 'b'\n");
        assert_eq!(codex().look(&text).unwrap(), State::Extended(vec!["env".to_owned()]));
        assert_eq!(add(&text), text);
        let text = "[mcp_servers.team-table]\ncommand = 'npx'\nargs = ['serve']\n";
        assert_eq!(codex().look(text).unwrap(), State::Foreign);
        assert_eq!(add(text), text);
        let text = "[mcp_servers.team-table]\ncommand = 'team-table'\nargs = 'serve'\n";
        assert_eq!(codex().look(text).unwrap(), State::Foreign);
    }

    #[test]
    fn an_entry_of_somebodys_layout_becomes_another() {
        fn check(before: &str, after: &str) {
            let called = codex().add(before, &calls("/mcp", Some("A"))).unwrap();
            assert_eq!(called, after.replace("{U}", "\"http://127.0.0.1:8741/mcp\""), "{before:?}");
            let back = codex().add(&called, &server()).unwrap();
            assert!(matches!(codex().look(&back), Ok(State::Ours(_))), "{back}");
        }
        check(
            "[mcp_servers.team-table]\n  command = 'team-table' # a\n  # b\n  args = [\n'serve',\n] # c\n\
             env_vars = [\"TEAM_TABLE_NAME\", \"TEAM_TABLE_DB\", \"CODEX_HOME\"] # d\n[z]",
            "[mcp_servers.team-table]\n  url = {U} # a\n  # b\n  bearer_token_env_var = \"A\" # c\n\
             # d\n[z]",
        );
        check(
            "[mcp_servers]\nteam-table.command = 'team-table'\nteam-table.args = ['serve']\n",
            "[mcp_servers]\nteam-table.url = {U}\nteam-table.bearer_token_env_var = \"A\"\n",
        );
        check(
            "mcp_servers.team-table = { command = 'team-table', args = ['serve'] }",
            "mcp_servers.team-table = { url = {U}, bearer_token_env_var = \"A\" }",
        );
    }

    #[test]
    fn bare() {
        let section = codex().server.unwrap().section;
        for text in ["", "\n", "mcp_servers = {}", "[mcp_servers]\n"] {
            assert!(is_bare(text, section), "{text:?}");
        }
        for text in ["# c", "a = 1", "[mcp_servers.x]", "["] {
            assert!(!is_bare(text, section), "{text:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        #[test]
        fn removing_gives_the_first_bytes_back(
            lines in prop::collection::vec(prop::sample::select(vec![
                "a = 1", "b = 'x' # c", "", "  ", "# c", "\t", "c = [", "1,", "]", "d = , ",
                "mcp_servers.x.y = 1", "mcp_servers = { x = {} }", "mcp_servers = { }",
                "[mcp_servers]", "[mcp_servers.x]", "[ mcp_servers . \"z\" ]", "[t]", "[[u]]",
                "x = { y = 1, }", "\"mcp_servers\" = {", "}", "x = 1", "[mcp_servers.z.env]",
            ]), 0..9),
            ends in prop::collection::vec(prop::sample::select(vec!["\n", "\n", "\r\n"]), 9),
            mark in prop::bool::ANY,
            is_ended in prop::bool::ANY,
        ) {
            let mut text = if mark { "\u{feff}".to_owned() } else { String::new() };
            for (number, (line, end)) in lines.iter().zip(&ends).enumerate() {
                text.push_str(line);
                if is_ended || number + 1 < lines.len() {
                    text.push_str(end);
                }
            }
            if parse(text.trim_start_matches('\u{feff}')).is_ok() && let Ok(added) = codex().add(&text, &server()) {
                prop_assert_ne!(&added, &text);
                prop_assert_eq!(&add(&added), &added);
                prop_assert_eq!(codex().remove(&added).unwrap(), &*text);

                let called = codex().add(&added, &calls("/mcp", None)).unwrap();
                prop_assert_eq!(&codex().add(&text, &calls("/mcp", None)).unwrap(), &called);
                let named = codex().add(&called, &calls("/mcp", Some("A"))).unwrap();
                prop_assert_eq!(&add(&named), &added);
                prop_assert_eq!(codex().remove(&named).unwrap(), text);
            }
        }

        #[test]
        fn no_text_makes_it_panic(text in "[\\[\\]{}a.=,'\"#\r\n \u{feff}é-]{0,30}") {
            if let Ok(added) = codex().add(&text, &server()) {
                prop_assert_eq!(codex().remove(&added).unwrap(), text);
            }
        }
    }
}
