//! `reserve_files`: keeping files for oneself, so that two do not edit them at once.
//!
//! A reservation is advice: it stops whoever asks, not whoever writes. It holds for the path in all
//! checkouts of the repository.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Access, Cx, Tool, lapse, log};
use crate::{
    domain::{
        limits, message,
        pattern::Pattern,
        time::{MINUTE, Time},
    },
    error::{Error, Result},
    platform,
    store::{NewReservation, Reservation},
    view::{sanitize, text},
};

pub(super) struct ReserveFiles;

/// Reserve (lock) files before editing them; again to renew
///
/// All or nothing; a conflict names the holder.
#[derive(Debug, Deserialize, schemars::JsonSchema, clap::Args)]
pub(super) struct Params {
    /// Paths or .gitignore patterns, such as src/db/**
    #[arg(
        required = true,
        value_name = "PATH",
        help = "Paths or .gitignore patterns, such as src/db/**; several with blanks between"
    )]
    paths: Vec<String>,
    #[arg(long, help = "What for: the others see it")]
    reason: Option<String>,
    /// 60; at most 1440
    #[arg(long, allow_negative_numbers = true)]
    minutes: Option<i64>,
}

#[derive(Debug, Serialize)]
pub(super) struct Output {
    reserved: Vec<Reserved>,
    #[serde(skip)]
    now: Time,
}

#[derive(Debug, Serialize)]
struct Reserved {
    /// Relative to the top of the checkout.
    pattern: String,
    renewed: bool,
    ends_at: Time,
    /// What the caller wrote, where it stands for something else than itself.
    #[serde(skip)]
    written: Option<String>,
}

/// A pattern that the caller asks for.
struct Asked {
    pattern: Pattern,
    written: String,
}

impl Tool for ReserveFiles {
    const NAME: &'static str = "reserve_files";
    const COMMAND: &'static str = "reserve";
    const ACCESS: Access = Access::Writes;
    type Params = Params;
    type Output = Output;

    fn call(cx: &mut Cx<'_>, params: &Params) -> Result<Output> {
        let minutes = params.minutes.unwrap_or(limits::RESERVED_MINUTES);
        if !(1..=limits::RESERVED_MINUTES_MAX).contains(&minutes) {
            return Err(Error::invalid(format!(
                "`minutes` must be 1 to {}, got {minutes}",
                limits::RESERVED_MINUTES_MAX
            ))
            .hint("call reserve_files again to renew"));
        }
        let reason =
            params.reason.as_deref().map(|text| message::one_line("reason", text)).transpose()?;
        let asked = asked(cx, &params.paths)?;
        // What holds no more is in nobody's way.
        lapse::all(cx)?;
        let live = cx.tx.reservations(cx.now)?;
        let (mine, others): (Vec<Reservation>, Vec<Reservation>) =
            live.into_iter().partition(|it| it.holder == cx.me.id);
        check_free(cx, &asked, &others)?;
        check_count(&asked, &mine)?;
        let ends_at = cx.now.before(-minutes * MINUTE);
        let reserved = store(cx, asked, &mine, reason.as_deref(), ends_at)?;
        let names: Vec<&str> = reserved.iter().map(|it| it.pattern.as_str()).collect();
        log::member(cx.tx, &cx.me.name, "reservation.made", Some(&names.join("\n")), cx.now)?;
        Ok(Output { reserved, now: cx.now })
    }
}

fn asked(cx: &Cx<'_>, paths: &[String]) -> Result<Vec<Asked>> {
    if paths.is_empty() {
        return Err(Error::invalid("`paths` is empty").hint("name at least one path or pattern"));
    }
    if paths.len() > limits::RESERVED_AT_ONCE {
        return Err(Error::invalid(format!(
            "{} paths; at most {} are allowed in one call",
            paths.len(),
            limits::RESERVED_AT_ONCE
        ))
        .hint("reserve a folder, or a pattern such as `src/db/**`"));
    }
    let mut asked: Vec<Asked> = Vec::new();
    for written in paths {
        let pattern = Pattern::parse(&cx.workspace.pattern(written)?)?;
        if asked.iter().all(|other| !same_place(other.pattern.as_str(), pattern.as_str())) {
            asked.push(Asked { pattern, written: written.clone() });
        }
    }
    Ok(asked)
}

/// How many conflicts an error names.
const NAMED: usize = 10;

fn check_free(cx: &Cx<'_>, asked: &[Asked], others: &[Reservation]) -> Result<()> {
    let as_on_disk = |pattern: &Pattern| {
        if platform::FILES_IGNORE_CASE { pattern.ignoring_case() } else { pattern.clone() }
    };
    let asked: Vec<(&str, Pattern)> =
        asked.iter().map(|it| (it.pattern.as_str(), as_on_disk(&it.pattern))).collect();
    let mut conflicts = Vec::new();
    for reservation in others {
        let Ok(theirs) = Pattern::parse(&reservation.pattern) else { continue };
        let theirs = as_on_disk(&theirs);
        for (pattern, _) in asked.iter().filter(|(_, pattern)| pattern.overlaps(&theirs)) {
            conflicts.push((*pattern, reservation));
        }
    }
    if conflicts.is_empty() {
        return Ok(());
    }
    let mut lines = vec!["nothing was reserved".to_owned()];
    let mut holders: Vec<String> = Vec::new();
    for (pattern, theirs) in conflicts.iter().take(NAMED) {
        let holder = cx.found(cx.tx.member(theirs.holder)?);
        let name = holder.member.name.to_string();
        let mut line =
            format!("{} is reserved by {name} ({})", sanitize::field(pattern), holder.state);
        if *pattern != theirs.pattern {
            line.extend([" as ", &sanitize::field(&theirs.pattern)]);
        }
        line.extend([" for ", &left(theirs.ends_at, cx.now), " more"]);
        if theirs.checkout != cx.checkout() {
            line.extend([", from ", &sanitize::field(&theirs.checkout)]);
        }
        if !theirs.reason.is_empty() {
            line.extend([": ", &sanitize::field(&theirs.reason)]);
        }
        lines.push(line);
        if !holders.contains(&name) {
            holders.push(name);
        }
    }
    if conflicts.len() > NAMED {
        lines.push(format!("and {} more", conflicts.len() - NAMED));
    }
    Err(Error::refused(lines.join("\n")).hint(format!(
        "reserve the others alone, or ask {} with send_message to release it",
        text::list(&holders, 5)
    )))
}

fn check_count(asked: &[Asked], mine: &[Reservation]) -> Result<()> {
    let is_new =
        |asked: &&Asked| mine.iter().all(|it| !same_place(&it.pattern, asked.pattern.as_str()));
    let n_reserved = mine.len() + asked.iter().filter(is_new).count();
    if n_reserved > limits::RESERVATIONS {
        return Err(Error::refused(format!(
            "you would have {n_reserved} reservations; at most {} are allowed",
            limits::RESERVATIONS
        ))
        .hint("call release_files for what you have finished, or reserve a folder"));
    }
    Ok(())
}

/// The same pattern is renewed, and never shortened.
fn store(
    cx: &Cx<'_>,
    asked: Vec<Asked>,
    mine: &[Reservation],
    reason: Option<&str>,
    ends_at: Time,
) -> Result<Vec<Reserved>> {
    let checkout = cx.checkout();
    let mut reserved = Vec::with_capacity(asked.len());
    for Asked { pattern, written } in asked {
        let pattern = pattern.as_str().to_owned();
        let old = mine.iter().find(|it| same_place(&it.pattern, &pattern));
        let ends_at = old.map_or(ends_at, |old| old.ends_at.max(ends_at));
        if let Some(old) = old {
            let reason = reason.unwrap_or(&old.reason);
            let new = NewReservation {
                holder: cx.me.id,
                pattern: &pattern,
                checkout: &checkout,
                reason,
                ends_at,
            };
            cx.tx.renew_reservation(old.id, &new)?;
        } else {
            let new = NewReservation {
                holder: cx.me.id,
                pattern: &pattern,
                checkout: &checkout,
                reason: reason.unwrap_or_default(),
                ends_at,
            };
            cx.tx.insert_reservation(&new, cx.now)?;
        }
        // A path that only gets shorter needs no word.
        let is_other = !written.trim_end_matches('/').ends_with(pattern.trim_end_matches('/'));
        let written = Some(written).filter(|_| is_other);
        reserved.push(Reserved { pattern, renewed: old.is_some(), ends_at, written });
    }
    Ok(reserved)
}

/// How long a reservation holds yet, rounded up to whole minutes: `60 min`, `23 h 30 min`.
fn left(ends_at: Time, now: Time) -> String {
    let minutes = (ends_at.since(now).0 + MINUTE - 1) / MINUTE;
    match (minutes / 60, minutes % 60) {
        (0..=1, _) => format!("{minutes} min"),
        (hours, 0) => format!("{hours} h"),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}

/// Whether two patterns are of one place: what had yet to be made may have become a file.
pub(super) fn same_place(one: &str, other: &str) -> bool {
    one.trim_end_matches('/') == other.trim_end_matches('/')
}

impl Cx<'_> {
    /// The checkout that the caller works in, as others are told of it.
    fn checkout(&self) -> String {
        self.workspace.top.display().to_string()
    }
}

/// A line for each time at which some of them end.
impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut groups: Vec<(String, Vec<String>)> = Vec::new();
        for Reserved { pattern, renewed, ends_at, written } in &self.reserved {
            let word = if *renewed { "renewed" } else { "reserved" };
            let head = format!("{word} for {}", left(*ends_at, self.now));
            let from = written.as_deref().map(sanitize::quote);
            let from = from.map_or_else(String::new, |from| format!(" (from {from})"));
            let shown = sanitize::field(pattern) + &from;
            match groups.iter_mut().find(|(other, _)| *other == head) {
                Some((_, shown_there)) => shown_there.push(shown),
                None => groups.push((head, vec![shown])),
            }
        }
        let lines: Vec<String> = groups
            .iter()
            .map(|(head, shown)| format!("{head}: {}", text::list(shown, limits::RESERVED_AT_ONCE)))
            .collect();
        f.write_str(&lines.join("\n"))
    }
}
