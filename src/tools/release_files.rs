//! `release_files`: the end of one's own reservations.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Access, Cx, Tool, log, reserve_files::same_place};
use crate::{
    domain::limits,
    error::{Error, Result},
    store::Reservation,
    view::{sanitize, text},
};

pub(super) struct ReleaseFiles;

/// Release your file reservations
#[derive(Debug, Deserialize, schemars::JsonSchema, clap::Args)]
pub(super) struct Params {
    /// Left out: all
    #[arg(value_name = "PATH", help = "Left out: all; several with blanks between")]
    paths: Option<Vec<String>>,
}

#[derive(Debug, Serialize)]
pub(super) struct Output {
    released: Vec<String>,
    /// What was asked for, and had ended before.
    ended_before: Vec<String>,
    /// How many the caller still has.
    left: usize,
}

impl Tool for ReleaseFiles {
    const NAME: &'static str = "release_files";
    const COMMAND: &'static str = "release";
    const ACCESS: Access = Access::Writes;
    const JOINS: bool = false;
    type Params = Params;
    type Output = Output;

    fn call(cx: &mut Cx<'_>, params: &Params) -> Result<Output> {
        let mut mine = cx.tx.reservations(cx.now)?;
        mine.retain(|it| it.holder == cx.me.id);
        let (released, ended_before) = match params.paths.as_deref() {
            None => (mine.iter().collect(), Vec::new()),
            Some([]) => {
                return Err(Error::invalid("`paths` is empty").hint("leave it out to release all"));
            }
            Some(paths) => named(cx, paths, &mine)?,
        };
        let released: Vec<&Reservation> = released;
        for it in &released {
            cx.tx.end_reservation(it.id, cx.now)?;
        }
        let left = mine.len() - released.len();
        let released: Vec<String> = released.into_iter().map(|it| it.pattern.clone()).collect();
        if !released.is_empty() {
            let names = released.join("\n");
            log::member(cx.tx, &cx.me.name, "reservation.released", Some(&names), cx.now)?;
        }
        Ok(Output { released, ended_before, left })
    }
}

/// The reservations that are named, and the names of those that have ended already.
fn named<'a>(
    cx: &Cx<'_>,
    paths: &[String],
    mine: &'a [Reservation],
) -> Result<(Vec<&'a Reservation>, Vec<String>)> {
    let (mut released, mut ended): (Vec<&Reservation>, Vec<String>) = (Vec::new(), Vec::new());
    for written in paths {
        // A link, or a folder, may have come or gone since: then it is as it was written.
        let meant = cx.workspace.pattern(written);
        let is_meant = |pattern: &str| {
            same_place(pattern, written)
                || meant.as_ref().is_ok_and(|meant| same_place(meant, pattern))
        };
        if let Some(it) = mine.iter().find(|it| is_meant(&it.pattern)) {
            if released.iter().all(|other| other.id != it.id) {
                released.push(it);
            }
            continue;
        }
        let pattern = meant?;
        let at = cx.tx.reservation_ended(cx.me.id, &pattern)?;
        if at.is_none() && !cx.tx.has_run_out_for(cx.me.id, &pattern, cx.now)? {
            return Err(not_mine(&pattern, mine));
        }
        ended.push(pattern);
    }
    Ok((released, ended))
}

fn not_mine(pattern: &str, mine: &[Reservation]) -> Error {
    let names: Vec<String> = mine.iter().map(|it| sanitize::field(&it.pattern)).collect();
    let hint = if names.is_empty() {
        "you have no reservations".to_owned()
    } else {
        format!("yours are {}", text::list(&names, 20))
    };
    Error::not_found(format!(
        "you did not reserve {}; nothing was released",
        sanitize::field(pattern)
    ))
    .hint(hint)
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |names: &[String]| {
            let names: Vec<String> = names.iter().map(|name| sanitize::field(name)).collect();
            text::list(&names, limits::RESERVED_AT_ONCE)
        };
        match self.released.as_slice() {
            [] if self.ended_before.is_empty() => f.write_str("you have no reservations")?,
            [] => write!(f, "ended before: {}", list(&self.ended_before))?,
            released => {
                write!(f, "released {}", list(released))?;
                if !self.ended_before.is_empty() {
                    write!(f, "; ended before: {}", list(&self.ended_before))?;
                }
            }
        }
        if self.left > 0 { write!(f, "; you still have {}", self.left) } else { Ok(()) }
    }
}
