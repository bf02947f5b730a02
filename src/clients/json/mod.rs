//! Puts our parts into a JSON text and takes them out again, by byte ranges.
//!
//! The layout of what is put in tells where it came from, so that taking it out restores the text;
//! each part says how. What they share:
//!
//! | before | after |
//! |---|---|
//! | nothing | the template |
//! | no such key, its object spread over lines | all on lines of their own |
//! | no such key, its object on one line | `"key": { ours }`, with the inner spaces |
//! | others of its kind | as the last of them |
//!
//! Whatever stood between two brackets stays behind what is put between them.

use jsonc_parser::{CollectOptions, ParseOptions, ast::Object, parse_to_ast};

pub(super) use self::doc::Doc;
use self::doc::{LENIENT, fault, is_comment};
use super::span::{self, Fault};

pub(crate) mod allow;
mod doc;
pub(crate) mod hooks;
mod nest;
pub(crate) mod server;
mod snippet;

/// Whether a text holds nothing but, at most, empty objects under these keys, and the address of a
/// schema: opencode 1.18.33 puts that into every file of its own that it reads.
pub(super) fn is_bare(text: &str, keys: &[&str]) -> bool {
    let Ok(doc) = Doc::parse(span::split_bom(text).1) else { return false };
    let has_comment = doc.tokens.iter().any(|token| is_comment(&token.token));
    let Ok(root) = doc.root() else { return false };
    !has_comment
        && root.is_none_or(|root| {
            root.properties.iter().all(|prop| {
                let is_empty = |inner: &Object<'_>| inner.properties.is_empty();
                prop.name.as_str() == "$schema"
                    || (keys.contains(&prop.name.as_str())
                        && prop.value.as_object().is_some_and(is_empty))
            })
        })
}

/// Whether a text is JSON to the letter, but for comments and trailing commas where they are
/// allowed.
pub(super) fn strict(text: &str, comments: bool, trailing_commas: bool) -> Result<(), Fault> {
    let body = span::split_bom(text).1;
    let options = ParseOptions {
        allow_comments: comments,
        allow_trailing_commas: trailing_commas,
        ..LENIENT
    };
    parse_to_ast(body, &CollectOptions::default(), &options)
        .map(drop)
        .map_err(|err| fault(body, &err))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    /// For JSON texts in every layout: each part with its own choice of space and comments.
    pub(super) fn space() -> impl Strategy<Value = &'static str> {
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

    /// An object or a list with these items; a trailing comma only where there is one to trail.
    pub(super) fn row(
        brackets: &str,
        items: Vec<String>,
        spaces: &[&str],
        trailing: bool,
    ) -> String {
        let (open, close) = brackets.split_at(1);
        let mut text = open.to_owned();
        let n_items = items.len();
        for (number, item) in items.into_iter().enumerate() {
            text.push_str(spaces[number * 2 % spaces.len()]);
            text.push_str(&item);
            text.push_str(spaces[(number * 2 + 1) % spaces.len()]);
            if trailing || number + 1 < n_items {
                text.push(',');
            }
        }
        text.push_str(spaces[spaces.len() - 1]);
        text.push_str(close);
        text
    }
}
