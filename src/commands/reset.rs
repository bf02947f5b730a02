//! `reset`: wipes the workspace state; connected sessions go on.

use std::{
    io::{self, IsTerminal as _},
    path::PathBuf,
};

use super::{asked, say};
use crate::{
    error::{Error, Result},
    store::Contents,
    tools::{Desk, MemberLine},
    transport::{event_loop, queue::Queue},
    view::text,
};

/// Delete members, messages, tasks, shared context, reservations and the log
///
/// All of it goes in one step. Network tokens and the files that `init` wrote stay, and numbers go on
/// where they were. Where sessions are connected it wants --force: they keep their names and are told
/// by their next result. On a terminal it asks; without one it goes ahead when nobody sits there.
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
    let Some((seated, mut contents)) = desk.look(|cx| {
        let mut seated = MemberLine::all(cx)?;
        seated.retain(|line| line.session.is_some() && !line.shown.has_left());
        Ok((seated, cx.tx.contents(cx.now)?))
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
        return Err(Desk::in_use(&names));
    }
    if !args.yes && io::stdin().is_terminal() {
        contents.members -= i64::try_from(seated.len()).unwrap_or(0);
        let question = format!(
            "Delete {}, for good, in {}? Tokens and clients' files stay. [y/N]",
            listed(&contents),
            table.display()
        );
        if !asked(&question)? {
            return Err(Error::refused("nothing was reset"));
        }
    }
    let queue = Queue::new(desk);
    let runtime = event_loop()?;
    // Somebody may have sat down while the person was asked.
    let reset = queue.write(|desk, turn| desk.reset(turn, args.force, args.backup.as_deref()));
    let (gone, n_seated) = runtime.block_on(reset)?;
    runtime.shutdown_background();
    if let Some(backup) = &args.backup {
        say(&format!("copied the table to {}", backup.display()));
    }
    say(&format!("reset {}: deleted {}", table.display(), listed(&gone)));
    match n_seated {
        0 => {}
        1 => say("1 connected session goes on; its next result tells it"),
        n => say(&format!("{n} connected sessions go on; their next result tells each")),
    }
    Ok(0)
}

/// `2 members, 31 messages, 1 task and the log`.
fn listed(contents: &Contents) -> String {
    let counts = [
        (contents.members, "member"),
        (contents.messages, "message"),
        (contents.tasks, "task"),
        (contents.keys, "shared key"),
        (contents.reservations, "reservation"),
    ];
    let some = counts.into_iter().filter(|(n, _)| *n > 0);
    let some: Vec<String> = some.map(|(n, noun)| text::counted(n, noun)).collect();
    if some.is_empty() { "the log".to_owned() } else { format!("{} and the log", some.join(", ")) }
}
