//! `reset`: wipes the workspace state; connected sessions go on.

use std::{
    io::{self, IsTerminal as _},
    path::PathBuf,
};

use super::{asked, say};
use crate::{
    error::{Error, Result},
    tools::{Desk, MemberLine},
    transport::{event_loop, queue::Queue},
    view::text,
};

/// Delete all members and messages; connected sessions go on
///
/// Rows are deleted in one transaction, the file stays, and ids go on counting. Files that `init`
/// wrote stay. Members that sit there keep their names and are told by their next result.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    /// Reset although sessions are connected
    #[arg(long)]
    force: bool,
    /// Copy the table to this file first
    #[arg(long, value_name = "FILE")]
    backup: Option<PathBuf>,
}

/// Asks where it must, then resets.
///
/// # Errors
/// Sessions are connected and `--force` is not given; the person says no; the table or the backup
/// cannot be written.
pub fn run(args: &Args, mut desk: Desk) -> Result<u8> {
    let table = desk.workspace().table.clone();
    let Some((seated, n_messages)) = desk.look(|cx| {
        let mut seated = MemberLine::all(cx)?;
        seated.retain(|line| line.session.is_some() && !line.shown.has_left());
        Ok((seated, cx.tx.n_messages()?))
    })?
    else {
        say(&format!("nothing to reset: there is no table at {}", table.display()));
        return Ok(0);
    };
    if let Some(backup) = &args.backup
        && backup.exists()
    {
        return Err(Error::refused(format!("`{}` is there already", backup.display()))
            .hint("name a file that is not there yet for --backup; nothing was reset"));
    }
    if !seated.is_empty() && !args.force {
        let names: Vec<String> =
            seated.iter().map(|line| format!("{} ({})", line.name, line.shown)).collect();
        return Err(Error::refused(format!("sessions are connected: {}", text::list(&names, 20)))
            .hint("end them first, or add --force: they then go on with an empty table"));
    }
    if !args.yes && io::stdin().is_terminal() {
        let messages = text::counted(n_messages, "message");
        let question = format!("Delete all members and {messages} in {}? [y/N]", table.display());
        if !asked(&question)? {
            return Err(Error::refused("nothing was reset"));
        }
    }
    let queue = Queue::new(desk);
    let runtime = event_loop()?;
    let n_deleted =
        runtime.block_on(queue.write(|desk, turn| desk.reset(turn, args.backup.as_deref())))?;
    runtime.shutdown_background();
    if let Some(backup) = &args.backup {
        say(&format!("copied the table to {}", backup.display()));
    }
    let messages = text::counted(n_deleted, "message");
    say(&format!("reset {}: {messages} deleted", table.display()));
    match seated.len() {
        0 => {}
        1 => say("1 connected session goes on; its next result tells it"),
        n => say(&format!("{n} connected sessions go on; their next result tells each")),
    }
    Ok(0)
}
