//! `token`: who may come over the network, and as which member.

use std::io::Write;

use serde::Serialize;

use super::{no_table, print, print_json, say};
use crate::{
    domain::{name::MemberName, time::Time, token},
    error::{Error, Result},
    platform,
    tools::Desk,
    transport::{event_loop, queue::Queue},
};

/// Make, list and revoke the tokens of members that come over the network
///
/// Who shows a token to `team-table serve --transport streamable-http` is the member that the token
/// was made for. Once there is a token, nobody comes over the network without one.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Make a token for a member and print it, this once
    Add { name: String },
    /// Show who has tokens; the tokens themselves are kept nowhere
    List {
        /// Print the same facts as JSON
        #[arg(long)]
        json: bool,
    },
    /// Revoke all tokens of a member; its next request is refused
    Revoke { name: String },
}

#[derive(Debug, Serialize)]
struct Line {
    name: String,
    made_at: Time,
    used_at: Option<Time>,
}

/// Does what was asked for.
///
/// # Errors
/// A name that is none (exit code 2); nothing to revoke; the table cannot be used.
pub fn run(args: &Args, desk: Desk, out: &mut dyn Write) -> Result<u8> {
    let named = |name: &str| MemberName::parse(name).map_err(|err| err.in_usage("NAME"));
    match &args.action {
        Action::Add { name } => add(&named(name)?, desk, out),
        Action::List { json } => list(desk, *json, out),
        Action::Revoke { name } => revoke(&named(name)?, desk),
    }
}

fn add(name: &MemberName, desk: Desk, out: &mut dyn Write) -> Result<u8> {
    let token = token::text(&platform::random()?);
    let hash = token::hash(&token);
    write(desk, |desk, turn| desk.write(turn, |tx, now| tx.insert_token(name, &hash, now)))?;
    print(out, &token)?;
    super::flush(out)?;
    say(&format!(
        "this is the token of `{name}`; it is not kept and not shown again. Its client sends it as\n\
         `Authorization: Bearer TOKEN`; `team-table token revoke {name}` ends it"
    ));
    Ok(0)
}

fn list(mut desk: Desk, json: bool, out: &mut dyn Write) -> Result<u8> {
    let table = desk.workspace().table.clone();
    let now = desk.now();
    let tokens = desk.look(|cx| cx.tx.tokens())?;
    if json {
        let lines: Vec<Line> = tokens
            .unwrap_or_default()
            .into_iter()
            .map(|it| Line { name: it.name.to_string(), made_at: it.made_at, used_at: it.used_at })
            .collect();
        print_json(out, &lines)?;
        return Ok(0);
    }
    match tokens {
        None => say(&no_table(&table)),
        Some(tokens) if tokens.is_empty() => print(out, "nobody has a token")?,
        Some(tokens) => {
            for it in tokens {
                let used = it.used_at.map_or_else(
                    || "never used".to_owned(),
                    |at| format!("last used {}", now.since(at).ago()),
                );
                print(out, &format!("{}: made {}, {used}", it.name, now.since(it.made_at).ago()))?;
            }
        }
    }
    Ok(0)
}

fn revoke(name: &MemberName, mut desk: Desk) -> Result<u8> {
    let none = || {
        Error::not_found(format!("`{name}` has no token"))
            .hint("`team-table token list` shows who has one")
    };
    if desk.look(|_| Ok(()))?.is_none() {
        return Err(none());
    }
    let (n_tokens, others) = write(desk, |desk, turn| {
        desk.write(turn, |tx, now| Ok((tx.revoke_tokens(name, now)?, tx.has_tokens()?)))
    })?;
    if n_tokens == 0 {
        return Err(none());
    }
    say(&format!(
        "revoked {}",
        crate::view::text::counted(i64::try_from(n_tokens).unwrap_or(i64::MAX), "token")
    ));
    if !others {
        say("nobody has a token now: a server on this machine alone asks for none");
    }
    Ok(0)
}

fn write<T>(
    desk: Desk,
    f: impl FnMut(&mut Desk, &crate::seat::WriteTurn) -> Result<T>,
) -> Result<T> {
    let queue = Queue::new(desk);
    let runtime = event_loop()?;
    let done = runtime.block_on(queue.write(f));
    runtime.shutdown_background();
    done
}
