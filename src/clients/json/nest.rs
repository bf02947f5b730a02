//! An item of ours below keys that lead into each other: how it gets in there and out again. Beside
//! the rules of all our parts, for each object or list on the way alike:
//!
//! | before | after |
//! |---|---|
//! | empty | ours, the closing bracket on its last line |
//! | empty, spread over lines | ours on lines of its own |

use std::ops::Range;

use super::{
    doc::{Doc, Row},
    snippet::Snippet,
};
use crate::clients::span::{Edit, Fault};

/// What holds the item: the value of the last key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holder {
    List,
    Object,
}

/// An item with all that is around it, for an object that has none of the keys.
pub(super) fn around(item: &Snippet, keys: &[&str], holder: Holder) -> Snippet {
    let Some((last, above)) = keys.split_last() else { return item.clone() };
    let held = match holder {
        Holder::List => item.within(last, ['[', ']']),
        Holder::Object => item.within(last, ['{', '}']),
    };
    above.iter().rev().fold(held, |ours, key| ours.within(key, ['{', '}']))
}

/// Puts an item behind all others of its holder.
pub(super) fn put_in(
    doc: &Doc<'_>,
    keys: &[&str],
    holder: Holder,
    item: &Snippet,
) -> Result<Vec<Edit>, Fault> {
    let Some(root) = doc.root()? else {
        let end = doc.text.len();
        return Ok(vec![(end..end, doc.whole(&around(item, keys, holder).file()))]);
    };
    let mut rows = vec![doc.members(root)];
    let (mut object, mut left) = (root, keys);
    while let Some((key, below)) = left.split_first() {
        if below.is_empty() && holder == Holder::List {
            let Some(list) = doc.list_in(object, key)? else { break };
            rows.push(doc.elements(&list));
        } else {
            let Some(member) = doc.object_in(object, key)? else { break };
            rows.push(doc.members(member.value));
            object = member.value;
        }
        left = below;
    }
    Ok(insert(doc, &rows, &around(item, left, holder)))
}

/// Puts ours into the last one of these rows, of which each stands in the one before it.
fn insert(doc: &Doc<'_>, rows: &[Row], ours: &Snippet) -> Vec<Edit> {
    let Some((row, around)) = rows.split_last() else { return Vec::new() };
    let units = rows.iter().rev().map(|row| doc.unit(row));
    let unit = units.into_iter().find(|unit| !unit.is_empty()).unwrap_or(Snippet::UNIT);
    let only = match around.last() {
        Some(around) if !doc.is_on_lines(around) => ours.on_one_line(around.gap()).to_owned(),
        _ => doc.only_on_lines(row, ours, unit),
    };
    doc.insert(row, ours, unit, &only)
}

/// Takes an item out, and what is around it where that was put there with it: the rows from the
/// root on, each with what leads on in it.
pub(super) fn take_out(doc: &Doc<'_>, way: &[(Row, Range<usize>)]) -> Vec<Edit> {
    let is_kept = |(row, _): &&(Row, Range<usize>)| !doc.made_by_us(row);
    let cut = way.iter().skip(1).rev().find(is_kept).or_else(|| way.first());
    cut.map(|(row, item)| doc.cut(row, item)).unwrap_or_default()
}
