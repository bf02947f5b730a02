//! `heartbeat`: what I work on now.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Access, Cx, Tool, log};
use crate::{domain::message, error::Result, view::sanitize};

pub(super) struct Heartbeat;

/// Tell the others what you work on; any other call is a sign of life too
#[derive(Debug, Deserialize, schemars::JsonSchema, clap::Args)]
pub(super) struct Params {
    /// One line; empty clears it
    note: Option<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct Output {
    name: String,
    note: String,
}

impl Tool for Heartbeat {
    const NAME: &'static str = "heartbeat";
    const COMMAND: &'static str = "heartbeat";
    const ACCESS: Access = Access::Writes;
    const JOINS: bool = false;
    type Params = Params;
    type Output = Output;

    fn call(cx: &mut Cx<'_>, params: &Params) -> Result<Output> {
        // Other calls leave a heartbeat that is young as it is; here it is what was asked for.
        cx.tx.beat(cx.me.id, cx.now)?;
        let member = cx.tx.member(cx.me.id)?;
        let note = match &params.note {
            Some(note) => message::one_line("note", note)?,
            None => member.note.clone(),
        };
        if note != member.note {
            cx.tx.set_note(cx.me.id, &note)?;
            log::member(cx.tx, &cx.me.name, "member.noted", Some(&note), cx.now)?;
        }
        Ok(Output { name: cx.me.name.to_string(), note })
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.note.is_empty() {
            return f.write_str("noted: you are here");
        }
        write!(f, "noted: {}", sanitize::field(&self.note))
    }
}
