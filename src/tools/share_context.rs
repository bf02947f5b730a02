//! `share_context`: what all can read, under a key; with versions, so that no change is lost.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Access, Cx, Tool, content::SharedValue, log};
use crate::{
    domain::{limits, time::Time},
    error::{Error, Result},
    store::ContextEntry,
    view::{sanitize, text},
};

pub(super) struct ShareContext;

/// Store a decision or fact as shared context that all agents can read
#[derive(Debug, Deserialize, schemars::JsonSchema, clap::Args)]
pub(super) struct Params {
    /// Such as api/login
    key: String,
    /// At most 64 KiB; empty removes it
    #[command(flatten)]
    value: SharedValue,
    /// Fail if it changed since
    #[arg(long, value_name = "VERSION", allow_negative_numbers = true)]
    if_version: Option<i64>,
}

#[derive(Debug, Serialize)]
pub(super) struct Output {
    key: String,
    version: i64,
    removed: bool,
    bytes: usize,
    /// What was there before.
    replaced: Option<Replaced>,
    #[serde(skip)]
    now: Time,
}

#[derive(Debug, Serialize)]
struct Replaced {
    version: i64,
    author: String,
    updated_at: Time,
}

impl Tool for ShareContext {
    const NAME: &'static str = "share_context";
    const COMMAND: &'static str = "share";
    const ACCESS: Access = Access::Writes;
    type Params = Params;
    type Output = Output;

    fn call(cx: &mut Cx<'_>, params: &Params) -> Result<Output> {
        let key = key(&params.key)?;
        let value = params.value.0.as_str();
        if value.len() > limits::VALUE_BYTES {
            return Err(Error::invalid(format!(
                "the value has {} bytes; at most {} are allowed",
                value.len(),
                limits::VALUE_BYTES
            ))
            .hint("write it to a file in the project and share the path, or use several keys"));
        }
        let before = cx.tx.context_entry(&key)?;
        if let Some(wanted) = params.if_version {
            check_version(cx, &key, before.as_ref(), wanted)?;
        }
        let before = before.filter(|before| before.value.is_some());
        let value = Some(value).filter(|value| !value.is_empty());
        if value.is_none() && before.is_none() {
            return Err(Error::not_found(format!(
                "there is no key {} to remove",
                sanitize::field(&key)
            ))
            .hint("get_shared_context lists the keys"));
        }
        let version = cx.tx.set_context(&key, value, cx.me.name.as_str(), cx.now)?;
        let kind = if value.is_some() { "context.shared" } else { "context.removed" };
        log::member(cx.tx, &cx.me.name, kind, Some(&format!("{version} {key}")), cx.now)?;
        Ok(Output {
            key,
            version,
            removed: value.is_none(),
            bytes: value.map_or(0, str::len),
            replaced: before.map(|before| Replaced {
                version: before.version,
                author: before.author,
                updated_at: before.updated_at,
            }),
            now: cx.now,
        })
    }
}

/// A key of one line: trimmed, not empty, and not over the limit.
pub(super) fn key(text: &str) -> Result<String> {
    let key = text.trim();
    if key.is_empty() {
        return Err(Error::invalid("the key is empty").hint("such as `api/login`"));
    }
    let n_chars = key.chars().count();
    if n_chars > limits::KEY_CHARS {
        return Err(Error::invalid(format!(
            "the key has {n_chars} characters; at most {} are allowed",
            limits::KEY_CHARS
        ))
        .hint("such as `api/login`; the rest goes into the value"));
    }
    if key.contains(char::is_control) {
        return Err(Error::invalid(format!(
            "the key {} is not one line of plain characters",
            sanitize::quote(key)
        ))
        .hint("such as `api/login`"));
    }
    Ok(key.to_owned())
}

/// Nothing is written over what the caller has not seen: it is shown instead.
fn check_version(cx: &Cx<'_>, key: &str, before: Option<&ContextEntry>, wanted: i64) -> Result<()> {
    let shown = sanitize::field(key);
    let stale = match before {
        // A key that was removed is not there, and has its last version all the same.
        Some(ContextEntry { value: None, version, .. }) if [0, *version].contains(&wanted) => {
            return Ok(());
        }
        None if wanted == 0 => return Ok(()),
        None => format!("{shown} is not there, so it has no version {wanted}"),
        Some(before) => {
            let ContextEntry { version, author, updated_at, .. } = before;
            if *version == wanted {
                return Ok(());
            }
            let when = cx.now.since(*updated_at).ago();
            match &before.value {
                None => format!("{shown} was removed by {author} {when}, as version {version}"),
                Some(value) => {
                    let (fenced, left) = sanitize::fence_within(value, limits::VALUE_SHOWN_BYTES);
                    let left = match left {
                        0 => String::new(),
                        left => format!("\n({} more of it are not shown)", text::bytes(left)),
                    };
                    format!(
                        "{shown} is at version {version} by {author}, {when}, not at {wanted}; it \
                         holds now\n{fenced}{left}"
                    )
                }
            }
        }
    };
    let next = before.map_or(0, |before| before.version);
    Err(Error::refused(stale).hint(format!(
        "nothing was stored; make your change to what is there now, with if_version {next}"
    )))
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = sanitize::field(&self.key);
        if self.removed {
            write!(f, "removed {key}")?;
        } else {
            write!(f, "shared {key} as version {}, {}", self.version, text::bytes(self.bytes))?;
        }
        match &self.replaced {
            Some(Replaced { version, author, updated_at }) => {
                let link = if self.removed { ": it was" } else { "; before it" };
                let when = self.now.since(*updated_at).ago();
                write!(f, "{link} version {version} by {author}, {when}")
            }
            None => Ok(()),
        }
    }
}
