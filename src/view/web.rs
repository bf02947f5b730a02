//! The board as a web page: its files, its headers, and how text of others reaches it.
//!
//! Text of others goes to the page as JSON, and the page makes text nodes of it, so that no markup
//! is ever read from it. What hides text or turns its direction is escaped here.

use std::fmt::Write as _;

use super::sanitize;

/// A file of the page.
#[derive(Debug)]
pub struct PageFile {
    pub path: &'static str,
    pub mime: &'static str,
    pub text: &'static str,
}

macro_rules! files {
    ($($path:literal: $mime:literal, $name:literal;)*) => {
        &[$(PageFile {
            path: $path,
            mime: $mime,
            text: include_str!($name),
        }),*]
    };
}

/// All files of the page.
pub const PAGE: &[PageFile] = files! {
    "/": "text/html; charset=utf-8", "../../templates/web/index.html";
    "/web/app.css": "text/css; charset=utf-8", "../../templates/web/app.css";
    "/web/icon.svg": "image/svg+xml", "../../templates/web/icon.svg";
    "/web/app.js": "text/javascript; charset=utf-8", "../../templates/web/app.js";
    "/web/dom.js": "text/javascript; charset=utf-8", "../../templates/web/dom.js";
    "/web/live.js": "text/javascript; charset=utf-8", "../../templates/web/live.js";
    "/web/messages.js": "text/javascript; charset=utf-8", "../../templates/web/messages.js";
    "/web/tasks.js": "text/javascript; charset=utf-8", "../../templates/web/tasks.js";
    "/web/rest.js": "text/javascript; charset=utf-8", "../../templates/web/rest.js";
};

/// Headers of every answer: the page loads only what this server has, runs no script but those
/// files, and stands in no frame.
pub const HEADERS: &[(&str, &str)] = &[
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
         img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cache-control", "no-store"),
    // nginx would collect the stream of changes.
    ("x-accel-buffering", "no"),
];

/// Text of others for the page: characters that hide text or turn its direction become `\u{..}`,
/// line ends stay.
pub fn text(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c != '\n' && sanitize::is_unsafe(c) {
            // Writing to a String cannot fail.
            let _written = write!(shown, "\\u{{{:x}}}", u32::from(c));
        } else {
            shown.push(c);
        }
    }
    shown
}

/// The first characters of a long text, and whether that is all of it.
pub fn beginning(whole: &str, chars: usize) -> (String, bool) {
    match whole.char_indices().nth(chars) {
        Some((end, _)) => (text(whole.get(..end).unwrap_or_default()), false),
        None => (text(whole), true),
    }
}

#[cfg(test)]
mod tests {
    use super::{beginning, text};

    #[test]
    fn what_hides_text_is_seen() {
        assert_eq!(text("a\r\nb\u{202e}c\u{0}\té <b>"), "a\\u{d}\nb\\u{202e}c\\u{0}\té <b>");
        assert_eq!(beginning("éèà", 2), ("éè".to_owned(), false));
        assert_eq!(beginning("éè", 2), ("éè".to_owned(), true));
    }
}
