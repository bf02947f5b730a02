//! `deregister`: leaving for good.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Access, Cx, SeatChange, Tool, log};
use crate::{
    domain::id::SessionId,
    error::{Error, Result},
};

pub(super) struct Deregister;

/// Leave for good; not needed when a session just ends
#[derive(Debug, Deserialize, schemars::JsonSchema, clap::Args)]
pub(super) struct Params {}

#[derive(Debug, Serialize)]
pub(super) struct Output {
    name: String,
    unread: usize,
}

impl Tool for Deregister {
    const NAME: &'static str = "deregister";
    const COMMAND: &'static str = "leave";
    const ACCESS: Access = Access::Writes;
    const JOINS: bool = false;
    type Params = Params;
    type Output = Output;

    fn call(cx: &mut Cx<'_>, _params: &Params) -> Result<Output> {
        if cx.me.is_human {
            return Err(Error::refused("the human does not leave")
                .hint("to take a member out, name it with --as"));
        }
        if !cx.me.is_session && cx.me.reads_as != SessionId::NOBODY {
            return Err(Error::refused(format!(
                "a session sits on the seat of `{}`, and only it can leave",
                cx.me.name
            ))
            .hint("the agent itself leaves with its tool deregister"));
        }
        let unread = cx.tx.unread(cx.me.id, cx.me.reads_as)?.count;
        let mut held = cx.tx.reservations(cx.now)?;
        held.retain(|it| it.holder == cx.me.id);
        for reservation in &held {
            cx.tx.end_reservation(reservation.id, cx.now)?;
        }
        if !held.is_empty() {
            let names: Vec<&str> = held.iter().map(|it| it.pattern.as_str()).collect();
            let names = names.join("\n");
            log::member(cx.tx, &cx.me.name, "reservation.released", Some(&names), cx.now)?;
        }
        cx.tx.leave(cx.me.id, cx.now)?;
        log::member(cx.tx, &cx.me.name, "member.left", None, cx.now)?;
        // A wait of its own that is under way ends.
        cx.ring(&cx.me.name.clone());
        cx.effects.seat = SeatChange::Leave;
        cx.effects.said_name = true;
        Ok(Output { name: cx.me.name.to_string(), unread })
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` has left", self.name)?;
        if self.unread > 0 {
            let mail = crate::view::text::messages(self.unread);
            write!(
                f,
                " with {mail} unread; unread mail stays, and register with this name brings it back"
            )?;
        }
        Ok(())
    }
}
