//! `poll`: the daemon that acknowledges what comes for a member, and fetches a person.

use std::{
    io::{self, IsTerminal as _, Write},
    process::{Child, ExitStatus, Stdio},
    time::Duration,
};

use clap::{builder::NonEmptyStringValueParser, value_parser};
use tokio::time::{Instant, sleep};

use super::{flush, log::clock, no_table, print};
use crate::{
    domain::{
        name::MemberName,
        poll::{Action, Because, Reason},
    },
    error::{Error, Kind, Result},
    fault, platform,
    seat::Seat,
    store::Shown,
    tools::{Dealt, Desk, Look},
    transport::{event_loop, interrupted, queue::Queue, wake::Bell},
    view::{
        sanitize,
        text::{self, Header},
    },
};

/// Tries at a table that cannot be used, before that is said.
const TRIES: u32 = 4;
const BETWEEN_TRIES: Duration = Duration::from_millis(10);
/// A person has been asked.
const ESCALATED: u8 = 4;

/// Acknowledge what comes for a member, and fetch you for questions
///
/// Each new message to NAME or to its role is answered with an automatic reply (`[AUTO]`) that says
/// whether NAME has read it. A broadcast is not. A message that holds a question or asks for a
/// decision, also in a broadcast, is for a person: its sender is told so, it is shown here, and
/// `poll` ends with exit code 4. So it does instead of the reply that --max-messages has no room for.
///
/// The first time, what waits unread for NAME counts as new, and what it has read does not. After
/// that `poll` goes on behind the last message that it dealt with, also when it is started again:
/// nothing is answered twice. What programs wrote is never answered.
///
/// It only looks: NAME still finds all its mail unread, and may work meanwhile. Ctrl-C ends it.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The member whose inbox is watched
    name: String,
    /// Look at least this often; mail that comes meanwhile is noticed within a second
    #[arg(long, value_name = "SECONDS", default_value_t = 30,
          value_parser = value_parser!(u32).range(1..=86_400))]
    interval: u32,
    /// Send at most so many automatic replies; instead of the next one you are asked
    #[arg(long, value_name = "N", default_value_t = 13, value_parser = value_parser!(u32).range(1..))]
    max_messages: u32,
    /// Run this in a shell when a person has to look
    ///
    /// It finds the message in TEAM_TABLE_MESSAGE_ID, TEAM_TABLE_SENDER, TEAM_TABLE_MEMBER (NAME),
    /// TEAM_TABLE_BODY and TEAM_TABLE_REASON: question, decision or max-messages.
    #[arg(long, value_name = "CMD", value_parser = NonEmptyStringValueParser::new())]
    on_escalate: Option<String>,
}

/// Watches the inbox until a person has to look (exit code 4) or ends it.
///
/// # Errors
/// Nobody of that name; another daemon watches it; the table cannot be used.
pub fn run(args: &Args, mut desk: Desk, out: &mut dyn Write) -> Result<u8> {
    let watched = desk.look(|cx| cx.watched(&args.name))?.ok_or_else(|| {
        let table = no_table(&desk.workspace().table);
        Error::not_found(format!("no member named {}: {table}", sanitize::quote(&args.name)))
    })?;
    let place = claim(&desk, &watched.name)?;
    let mut daemon = Daemon {
        args,
        plain: !io::stdout().is_terminal(),
        out,
        queue: Queue::new(desk),
        name: watched.name,
        place,
        n_replies: 0,
        epoch: None,
        trouble: None,
    };
    let runtime = event_loop()?;
    let code = runtime.block_on(async {
        let waiting = match watched.n_unread {
            0 => "no unread messages".to_owned(),
            1 => "1 unread message".to_owned(),
            n => format!("{} unread messages", text::count(n)),
        };
        let (name, state) = (daemon.name.clone(), watched.state);
        daemon.note(&format!("watching {name} ({state}): {waiting}; Ctrl-C ends this")).await?;
        daemon.run().await
    });
    // The command that was run for the person may go on.
    runtime.shutdown_background();
    code
}

fn claim(desk: &Desk, name: &MemberName) -> Result<Seat> {
    desk.claim_poll(name)?.ok_or_else(|| {
        Error::refused(format!("a poll daemon for `{name}` runs already"))
            .hint("a member has one at most; end that one first, with Ctrl-C where it runs")
    })
}

/// The daemon of one member.
struct Daemon<'a> {
    args: &'a Args,
    out: &'a mut dyn Write,
    /// Date and time in front of each line, where nobody sees when it comes.
    plain: bool,
    queue: Queue,
    name: MemberName,
    /// Held, so that there is no second one.
    place: Seat,
    n_replies: u32,
    /// Of the table that it looked at last.
    epoch: Option<i64>,
    /// What is in its way, as it was said last.
    trouble: Option<String>,
}

impl Daemon<'_> {
    async fn run(&mut self) -> Result<u8> {
        let interrupted = interrupted();
        tokio::pin!(interrupted);
        let dealt = tokio::select! {
            biased;
            () = &mut interrupted => None,
            dealt = self.watch() => dealt?,
        };
        let Some(dealt) = dealt else {
            // A terminal that was closed takes no last word.
            self.note("ended, as you asked").await.ok();
            return Ok(0);
        };
        // Nobody may be reading, and the person's command is to be run all the more.
        let shown = self.tell(&dealt).await;
        if let Some(command) = &self.args.on_escalate {
            fault::point("before_command");
            let told = tokio::select! {
                biased;
                () = &mut interrupted => "goes on by itself".to_owned(),
                told = self.fetch(command, &dealt) => told,
            };
            self.note(&format!("{} {told}", sanitize::field(command))).await.ok();
        }
        shown?;
        self.note(&format!("ended: {} is yours now", dealt.message.id)).await?;
        Ok(ESCALATED)
    }

    /// Looks whenever there is reason to; ends with the message that a person has to look at, or
    /// with nothing where nobody reads what it prints.
    async fn watch(&mut self) -> Result<Option<Dealt>> {
        let interval = Duration::from_secs(self.args.interval.into());
        let mut bell = Bell::default();
        loop {
            if platform::is_stdout_closed() {
                return Ok(None);
            }
            // Before the look that counts, so that what comes between is not missed.
            let pulse = {
                let desk = self.queue.desk().await;
                bell.watch(desk.bell_of(&self.name).ok());
                desk.pulse()
            };
            match self.look().await {
                Ok(Look::Dealt(dealt)) => {
                    if matches!(dealt.action, Action::Escalate(_)) {
                        return Ok(Some(*dealt));
                    }
                    self.tell(&dealt).await?;
                    self.trouble = None;
                    // So that a signal is seen in between.
                    tokio::task::yield_now().await;
                    continue;
                }
                Ok(Look::Renamed(name)) => {
                    let place = claim(&*self.queue.desk().await, &name)?;
                    self.note(&format!("{} is now {name}, and watched as that", self.name)).await?;
                    (self.name, self.place) = (name, place);
                    continue;
                }
                Ok(Look::NothingNew) => self.trouble = None,
                Ok(Look::Nobody) => {
                    let trouble =
                        format!("there is no member {} now: waiting for it to come", self.name);
                    self.complain(trouble).await?;
                }
                Err(err) if matches!(err.kind(), Kind::Busy | Kind::Storage) => {
                    self.complain(format!("cannot look now: {err}")).await?;
                }
                Err(err) => return Err(err),
            }
            bell.rung_or_changed(&self.queue, pulse, Instant::now() + interval).await;
        }
    }

    /// Deals with the next message, if there is one. Whoever deletes the table does so file by file:
    /// only what is so at the last try is in the way.
    async fn look(&mut self) -> Result<Look> {
        for _ in 1..TRIES {
            match self.try_look().await {
                Err(err) if err.kind() == Kind::Storage => sleep(BETWEEN_TRIES).await,
                done => return done,
            }
        }
        self.try_look().await
    }

    async fn try_look(&mut self) -> Result<Look> {
        let (n_replies, max) = (self.n_replies, self.args.max_messages);
        let looked = {
            let mut desk = self.queue.desk().await;
            if desk.table_exists() && !self.place.is_current() {
                // Somebody deleted the folder, and with it what kept others from this place.
                self.place = claim(&desk, &self.name)?;
            }
            desk.look(|cx| Ok((cx.me.epoch, cx.poll(&self.name, n_replies, max)?)))
        };
        let looked = match looked {
            Err(err) if err.kind() == Kind::NeedsWrite => {
                let name = &self.name;
                let act = |desk: &mut Desk, turn: &_| {
                    desk.act(turn, |cx| Ok((cx.me.epoch, cx.poll(name, n_replies, max)?)))
                };
                self.queue.write(act).await?
            }
            looked => looked?,
        };
        let Some((epoch, look)) = looked else { return Ok(Look::Nobody) };
        if self.epoch.replace(epoch).is_some_and(|before| before != epoch) {
            self.note("the table was reset or is a new one").await?;
        }
        Ok(look)
    }

    /// One line for one message that was dealt with; the message itself where a person has to look.
    async fn tell(&mut self, dealt: &Dealt) -> Result<()> {
        let Dealt { message, action, reply } = dealt;
        let Shown { id, sender, .. } = message;
        let reply_id = reply.as_ref().map_or_else(String::new, |(id, _)| format!(" with {id}"));
        match action {
            Action::Acknowledge => {
                self.n_replies += 1;
                let (n, max) = (self.n_replies, self.args.max_messages);
                self.note(&format!("acknowledged {id} of {sender}{reply_id} ({n} of {max})")).await
            }
            Action::PassOver(because) => {
                let why = match because {
                    Because::Automatic => "a program wrote it",
                    Because::Broadcast => "it went to everyone",
                    Because::SenderLeft => "its sender has left",
                };
                self.note(&format!("passed over {id} of {sender}: {why}")).await
            }
            Action::Escalate(reason) => {
                let why = match reason {
                    Reason::Question => "it holds a question".to_owned(),
                    Reason::Decision => "it asks for a decision".to_owned(),
                    Reason::Limit => match self.n_replies {
                        1 => "the one automatic reply was sent".to_owned(),
                        n => format!("{n} automatic replies were sent"),
                    },
                };
                let told = match reply {
                    Some((id, name)) => format!("{name} is told so with {id}"),
                    None => format!("{sender} has left and is told nothing"),
                };
                let header = Header {
                    id: *id,
                    sender,
                    to: &message.audience,
                    kind: message.kind,
                    reply_to: message.reply_to,
                    sent_at: message.sent_at,
                    late: message.late,
                    again: false,
                };
                let now = self.queue.desk().await.now();
                let shown = header.with_body(&message.body, now);
                self.note(&format!("{id} of {sender} is for a person: {why}; {told}")).await?;
                super::print_text(self.out, &shown)?;
                flush(self.out)
            }
        }
    }

    /// Runs the person's command to its end; says what came of it.
    async fn fetch(&self, command: &str, dealt: &Dealt) -> String {
        let Action::Escalate(reason) = dealt.action else { return "has nothing to do".to_owned() };
        // A variable can hold anything but that.
        let body = dealt.message.body.replace('\0', "\u{fffd}");
        let started = platform::in_shell(command)
            .env("TEAM_TABLE_MESSAGE_ID", dealt.message.id.0.to_string())
            .env("TEAM_TABLE_SENDER", &dealt.message.sender)
            .env("TEAM_TABLE_MEMBER", self.name.as_str())
            .env("TEAM_TABLE_REASON", reason.word())
            .env("TEAM_TABLE_BODY", body)
            .stdin(Stdio::null())
            .spawn();
        let wait = |mut child: Child| tokio::task::spawn_blocking(move || child.wait());
        let ended: io::Result<ExitStatus> = match started.map(wait) {
            Ok(waiting) => waiting.await.unwrap_or_else(|err| Err(io::Error::other(err))),
            Err(err) => Err(err),
        };
        match ended {
            Ok(status) if status.success() => "is done".to_owned(),
            Ok(status) => format!("failed: {status}"),
            Err(err) => format!("cannot be run: {err}"),
        }
    }

    /// Says what is in the way, once.
    async fn complain(&mut self, trouble: String) -> Result<()> {
        if self.trouble.as_ref() != Some(&trouble) {
            self.note(&trouble).await?;
            self.trouble = Some(trouble);
        }
        Ok(())
    }

    /// A line of the daemon's own log.
    async fn note(&mut self, text: &str) -> Result<()> {
        let now = self.queue.desk().await.now();
        print(self.out, &format!("{} {text}", clock(now, self.plain)))?;
        flush(self.out)
    }
}
