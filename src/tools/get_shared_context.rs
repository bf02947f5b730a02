//! `get_shared_context`: one key's value, or what there is.
//!
//! It only looks, and yet it notes for a session up to where it has seen the context, so that
//! `register` can tell what is new. Only where that changes something does the call ask to write.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Access, Cx, Tool, share_context};
use crate::{
    domain::{limits, time::Time},
    error::{Error, Result},
    store::ContextEntry,
    view::{
        sanitize,
        text::{self, Front},
    },
};

pub(super) struct GetSharedContext;

/// Read shared context: a decision or fact, or list all
#[derive(Debug, Deserialize, schemars::JsonSchema, clap::Args)]
pub(super) struct Params {
    #[arg(help = "Left out: a list of all keys")]
    key: Option<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct Output {
    entries: Vec<Entry>,
    #[serde(skip)]
    one: bool,
    #[serde(skip)]
    now: Time,
    #[serde(skip)]
    front: Front,
}

#[derive(Debug, Serialize)]
struct Entry {
    key: String,
    version: i64,
    author: String,
    updated_at: Time,
    value: String,
}

impl Tool for GetSharedContext {
    const NAME: &'static str = "get_shared_context";
    const COMMAND: &'static str = "context";
    const ACCESS: Access = Access::Reads;
    type Params = Params;
    type Output = Output;

    fn call(cx: &mut Cx<'_>, params: &Params) -> Result<Output> {
        let key = params.key.as_deref().filter(|key| !key.trim().is_empty());
        let key = key.map(share_context::key).transpose()?;
        let entries = match &key {
            Some(key) => vec![one(cx, key)?],
            None => cx.tx.context()?.into_iter().filter_map(Entry::new).collect(),
        };
        mark_seen(cx, key.as_deref())?;
        Ok(Output { entries, one: key.is_some(), now: cx.now, front: cx.front })
    }
}

fn one(cx: &Cx<'_>, key: &str) -> Result<Entry> {
    let found = cx.tx.context_entry(key)?;
    let removed = found.as_ref().filter(|found| found.value.is_none()).map(|found| {
        format!("{} removed it {}", found.author, cx.now.since(found.updated_at).ago())
    });
    if let Some(entry) = found.and_then(Entry::new) {
        return Ok(entry);
    }
    let part = key.to_lowercase();
    let keys = cx.tx.context()?.into_iter().map(|entry| entry.key);
    let near: Vec<String> = keys
        .filter(|other| other.to_lowercase().contains(&part))
        .map(|key| sanitize::field(&key))
        .collect();
    let hint = if near.is_empty() {
        "get_shared_context without a key lists all".to_owned()
    } else {
        format!("there is {}", text::list(&near, 20))
    };
    let removed = removed.map_or_else(String::new, |removed| format!(": {removed}"));
    Err(Error::not_found(format!("there is no key {}{removed}", sanitize::field(key))).hint(hint))
}

/// A session was shown all, or all that is new to it. Commands look on somebody's behalf, and note
/// that only where they are the person's own and write anyway.
fn mark_seen(cx: &Cx<'_>, key: Option<&str>) -> Result<()> {
    let counts = cx.me.is_session || (cx.me.is_human && cx.tx.is_writable());
    if !counts {
        return Ok(());
    }
    let new = cx.tx.context_changed_since(cx.me.id)?;
    if new.is_empty() || key.is_some_and(|key| new.iter().any(|other| other.key != key)) {
        return Ok(());
    }
    cx.tx.mark_context_seen(cx.me.id)
}

impl Entry {
    fn new(entry: ContextEntry) -> Option<Entry> {
        let ContextEntry { key, value, version, author, updated_at } = entry;
        Some(Entry { key, version, author, updated_at, value: value? })
    }

    /// `` `api/login` version 3 by codex-1, 5 min ago, 120 bytes``.
    fn header(&self, now: Time) -> String {
        format!(
            "{} version {} by {}, {}, {}",
            sanitize::field(&self.key),
            self.version,
            self.author,
            now.since(self.updated_at).ago(),
            text::bytes(self.value.len())
        )
    }

    fn whole(&self, now: Time, front: Front) -> String {
        let (value, left) = match front {
            Front::Tools => sanitize::fence_within(&self.value, limits::VALUE_SHOWN_BYTES),
            Front::Commands => (sanitize::fence(&self.value), 0),
        };
        let shown = format!("{}\n{value}", self.header(now));
        if left == 0 {
            return shown;
        }
        let in_shell = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-');
        let is_plain = !self.key.starts_with('-') && self.key.chars().all(in_shell);
        let key = if is_plain { self.key.as_str() } else { "KEY" };
        format!(
            "{shown}\n{} more are not shown: `team-table context {key}` in a shell prints all",
            text::bytes(left)
        )
    }
}

/// For the first line, and the lines that say what is left out.
const COUNTS_BYTES: usize = 200;

/// Of all keys: their headers first, then short values, in the order of the keys, as far as a
/// result has room.
impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.entries.as_slice() {
            [] => return f.write_str("nothing is shared yet"),
            [entry] if self.one => return f.write_str(&entry.whole(self.now, self.front)),
            [_] => f.write_str("1 key")?,
            entries => write!(f, "{} keys", entries.len())?,
        }
        let mut room = limits::RESULT_BYTES - limits::ASIDE_BYTES - COUNTS_BYTES;
        let mut headers = Vec::new();
        for entry in &self.entries {
            let header = entry.header(self.now);
            if self.front == Front::Tools && header.len() + 1 > room {
                break;
            }
            room = room.saturating_sub(header.len() + 1);
            headers.push(header);
        }
        let mut n_without = 0;
        for (entry, header) in self.entries.iter().zip(&headers) {
            write!(f, "\n{header}")?;
            let is_short = entry.value.len() <= limits::VALUE_LISTED_BYTES;
            let value = if is_short { sanitize::fence(&entry.value) } else { String::new() };
            if is_short && value.len() < room {
                room -= value.len() + 1;
                write!(f, "\n{value}")?;
            } else {
                n_without += 1;
            }
        }
        let n_left = self.entries.len() - headers.len();
        if n_left > 0 {
            write!(
                f,
                "\n{n_left} more keys are not shown: `team-table context` in a shell lists all"
            )?;
        }
        if n_without > 0 {
            let one = match self.front {
                Front::Tools => "call get_shared_context with its key",
                Front::Commands => "run `team-table context KEY`",
            };
            let word = if n_without == 1 { "value is" } else { "values are" };
            write!(f, "\n{n_without} {word} not shown: for one, {one}")?;
        }
        Ok(())
    }
}
