//! Messages: who they go to, and what a body may be.

use serde::Serialize;

use super::{limits, name};
use crate::error::{Error, Result};

/// Who wrote it: somebody, or a program whose messages no program may answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Message,
    Auto,
}

impl Kind {
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Message => "message",
            Kind::Auto => "auto",
        }
    }

    pub fn from_column(text: &str) -> Kind {
        if text == "auto" { Kind::Auto } else { Kind::Message }
    }
}

/// Whom a caller named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recipient {
    /// A member, by a name not yet looked up.
    Member(String),
    /// Everyone with this role.
    Role(String),
}

impl Recipient {
    /// # Errors
    /// For `all` and the like, which are meant for `broadcast`.
    pub fn parse(text: &str) -> Result<Recipient> {
        let text = text.trim();
        if name::EVERYONE.contains(&text.to_ascii_lowercase().as_str()) {
            return Err(Error::invalid(format!("`{text}` is not one member"))
                .hint("to write to everyone, call broadcast"));
        }
        if text.is_empty() || text == "@" {
            return Err(Error::invalid("the recipient is empty")
                .hint("name a member, `human`, or a role as `@role`; list_members shows them"));
        }
        Ok(match text.strip_prefix('@') {
            Some(role) => Recipient::Role(role.to_owned()),
            None => Recipient::Member(text.to_owned()),
        })
    }
}

/// Checks the text of a message as it was sent; how it is shown is checked by who shows it.
///
/// # Errors
/// An empty body, or one over 16 KiB: both numbers and what to do instead.
pub fn check_body(text: &str) -> Result<()> {
    if text.trim().is_empty() {
        return Err(Error::invalid("the message is empty").hint("say it in `content`"));
    }
    check_size("the message", text)
}

/// Checks the size of a long text: of a message, a description, a comment.
///
/// # Errors
/// Over 16 KiB: both numbers and what to do instead.
pub fn check_size(what: &str, text: &str) -> Result<()> {
    if text.len() > limits::BODY_BYTES {
        return Err(Error::invalid(format!(
            "{what} has {} bytes; at most {} are allowed",
            text.len(),
            limits::BODY_BYTES
        ))
        .hint("write it to a file in the project and send the path, or send it in parts"));
    }
    Ok(())
}

/// A field of one line: trimmed, and not over the limit.
///
/// # Errors
/// Both numbers and what to do instead.
pub fn one_line(field: &str, text: &str) -> Result<String> {
    let text = text.trim();
    let n_chars = text.chars().count();
    if n_chars > limits::LINE_CHARS {
        return Err(Error::invalid(format!(
            "`{field}` has {n_chars} characters; at most {} are allowed",
            limits::LINE_CHARS
        ))
        .hint("say it shorter, and put the rest into a message"));
    }
    Ok(text.to_owned())
}
