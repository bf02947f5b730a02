//! What can be asked: one operation is one file and one row of [`TABLE`].
//!
//! A row is at once an MCP tool and a command. The doc comment of a tool's `Params` is its MCP
//! description, its JSON Schema and its help. [`desk::Desk`] runs a call in one transaction:
//! who asks, the tool, the badge.

mod announce;
mod board;
mod broadcast;
mod claim_task;
mod content;
mod create_task;
mod deregister;
mod desk;
mod get_messages;
mod get_shared_context;
mod heartbeat;
mod lapse;
mod list_members;
mod list_tasks;
mod log;
mod message_status;
mod notices;
mod poll;
mod recipients;
mod register;
mod release_files;
mod reserve_files;
mod schema;
mod send_message;
mod share_context;
mod sit;
mod update_task;
mod wait_for_messages;

use std::{fmt, time::Duration};

use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

pub use self::{
    desk::{Agent, Answer, Desk, SharedStore, Who},
    list_members::MemberLine,
    poll::{Dealt, Look, Watched},
};
use crate::{
    domain::{
        id::{MemberId, SessionId},
        name::MemberName,
        time::Time,
    },
    error::{Error, Result},
    seat::Seats,
    store::{Handing, Tx},
    view::text::Front,
    workspace::Workspace,
};

/// All tools, in the order in which help and `tools/list` show them.
pub const TABLE: &[Entry] = &[
    entry::<register::Register>(),
    entry::<deregister::Deregister>(),
    entry::<list_members::ListMembers>(),
    entry::<heartbeat::Heartbeat>(),
    entry::<send_message::SendMessage>(),
    entry::<broadcast::Broadcast>(),
    entry::<get_messages::GetMessages>(),
    entry::<wait_for_messages::WaitForMessages>(),
    entry::<message_status::MessageStatus>(),
    entry::<create_task::CreateTask>(),
    entry::<list_tasks::ListTasks>(),
    entry::<claim_task::ClaimTask>(),
    entry::<update_task::UpdateTask>(),
    entry::<share_context::ShareContext>(),
    entry::<get_shared_context::GetSharedContext>(),
    entry::<reserve_files::ReserveFiles>(),
    entry::<release_files::ReleaseFiles>(),
];

/// What clients' hooks call; it is in no list of tools.
const HOOK: &Entry = &entry::<announce::Announce>();

/// What a call does to the table beside the caller's heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Only looks: clients may run it without asking anybody.
    Reads,
    /// Looks first, and writes where there is something to write.
    MayWrite,
    Writes,
}

/// One operation.
pub(crate) trait Tool {
    /// Name in MCP: `send_message`.
    const NAME: &'static str;
    /// Name on the command line: `send`.
    const COMMAND: &'static str;
    const ACCESS: Access;
    /// Clients that show models only the names of tools show this one in full.
    const ALWAYS_LOAD: bool = false;
    /// `--as NAME` of a name that nobody has makes a member: the command is one that begins something.
    const JOINS: bool = matches!(Self::ACCESS, Access::Writes);
    /// On the command line it makes the table where there is none.
    const FOUNDS: bool = Self::JOINS;
    /// A client calls it by itself: its model knows nothing of the call, and reads no head lines.
    const IS_HOOK: bool = false;
    type Params: DeserializeOwned + JsonSchema + clap::Args + Send + Sync + 'static;
    type Output: Serialize + fmt::Display;

    /// Synchronous and quick; may run twice, as a reader first and then as a writer.
    fn call(cx: &mut Cx<'_>, params: &Self::Params) -> Result<Self::Output>;

    /// How long to wait for mail first; the transport does the waiting.
    fn waits(_params: &Self::Params) -> Result<Option<Duration>> {
        Ok(None)
    }

    /// Whether this call hands nothing out and changes nothing, so that anybody may make it.
    fn only_looks(_params: &Self::Params) -> bool {
        matches!(Self::ACCESS, Access::Reads)
    }
}

/// Everything a tool may use, for the length of one transaction.
pub struct Cx<'a> {
    pub tx: &'a Tx<'a>,
    pub now: Time,
    pub me: Me,
    pub seats: &'a Seats,
    /// Where the caller stands.
    pub workspace: &'a Workspace,
    pub front: Front,
    /// Messages per member and minute; 0 for no limit.
    pub max_per_minute: u32,
    pub(crate) effects: Effects,
}

/// Who asks. The sender is stamped from this; there is no sender parameter anywhere.
#[derive(Debug, Clone)]
pub struct Me {
    pub id: MemberId,
    pub name: MemberName,
    pub is_human: bool,
    /// What this session was handed is not unread for it.
    pub reads_as: SessionId,
    /// To whom messages are handed out.
    pub hands_as: SessionId,
    /// The session and its client can move to another seat.
    pub is_session: bool,
    /// Its name is given by a token or an address on the network, and is not its own to change.
    pub is_given: bool,
    pub epoch: i64,
}

/// What is to happen beside the table: after the commit, and only then.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    /// Whose bells to ring.
    pub ring: Vec<MemberName>,
    /// What was handed out, to be confirmed or given back.
    pub handing: Option<Handing>,
    /// Where the session sits from now on.
    pub seat: SeatChange,
    /// The result says already what the caller is called.
    pub said_name: bool,
    /// The result says already what is unread.
    pub said_unread: bool,
    /// Who was sent a notice of this change.
    pub told: Vec<MemberId>,
}

#[derive(Debug, Default)]
pub(crate) enum SeatChange {
    #[default]
    Stay,
    Move(crate::seat::Seat, MemberId),
    Leave,
}

/// The result of one tool, before the desk adds what belongs to every result.
#[derive(Default)]
pub(crate) struct Reply {
    pub text: String,
    /// For commands; models are shown the text.
    pub json: Value,
}

/// A call whose parameters are parsed and checked; it may be run more than once.
pub struct Job {
    pub entry: &'static Entry,
    pub waits: Option<Duration>,
    pub only_looks: bool,
    /// A client's hook, which nobody waits for.
    pub is_hook: bool,
    /// Somebody is at work there, who called; not so where a process asks that waits.
    pub is_sign_of_life: bool,
    run: Box<Run>,
}

type Run = dyn Fn(&mut Cx<'_>) -> Result<Reply> + Send + Sync;

impl Job {
    /// A call whose parameters were wrong: it seats the caller like any other, and fails.
    fn refusing(entry: &'static Entry, err: &Error) -> Job {
        let (kind, message) = (err.kind(), err.to_string());
        let hint = err.hint_text().map(str::to_owned);
        let run = move |_: &mut Cx<'_>| {
            let err = Error::new(kind, message.clone());
            Err(match &hint {
                Some(hint) => err.hint(hint.clone()),
                None => err,
            })
        };
        Job {
            entry,
            waits: None,
            only_looks: false,
            is_hook: false,
            is_sign_of_life: true,
            run: Box::new(run),
        }
    }

    /// What a client's hook asks for, in the client's words.
    ///
    /// # Errors
    /// It does not say which event it is.
    pub fn hook(said: Map<String, Value>) -> Result<Job> {
        (HOOK.parse_json)(HOOK, Value::Object(said))
    }

    /// What a process asks for that waits while its session is idle.
    ///
    /// # Errors
    /// None.
    pub fn idle() -> Result<Job> {
        let job = Job::hook(Map::from_iter([("event".to_owned(), announce::IDLE.into())]))?;
        Ok(Job { is_sign_of_life: false, ..job })
    }

    fn run(&self, cx: &mut Cx<'_>) -> Result<Reply> {
        (self.run)(cx)
    }
}

/// A row: a [`Tool`] with its types erased.
pub struct Entry {
    pub name: &'static str,
    pub command: &'static str,
    pub access: Access,
    pub always_load: bool,
    /// Whether it makes a member of who speaks.
    pub joins: bool,
    /// Whether a command makes the table where there is none.
    pub founds: bool,
    raw_schema: fn() -> Map<String, Value>,
    /// The command with its arguments and help.
    pub clap: fn() -> clap::Command,
    parse_json: fn(&'static Entry, Value) -> Result<Job>,
    parse_args: fn(&'static Entry, &clap::ArgMatches) -> Result<Job>,
}

impl Entry {
    /// Whether this is what clients' hooks call.
    pub fn is_hook(name: &str) -> bool {
        name == HOOK.name
    }

    /// The row of this MCP name.
    pub fn named(name: &str) -> Option<&'static Entry> {
        TABLE.iter().find(|entry| entry.name == name)
    }

    /// The row of this command.
    pub fn with_command(command: &str) -> Option<&'static Entry> {
        TABLE.iter().find(|entry| entry.command == command)
    }

    pub fn read_only(&self) -> bool {
        self.access == Access::Reads
    }

    /// What models are shown: the description, and the JSON Schema of the parameters.
    pub fn shape(&'static self) -> &'static schema::Shape {
        schema::shape(self)
    }

    /// A call with the arguments of a `tools/call`.
    ///
    /// # Errors
    /// Unknown, missing and wrong parameters, naming the right ones.
    pub fn job(&'static self, arguments: Map<String, Value>) -> Result<Job> {
        (self.parse_json)(self, Value::Object(schema::check(self, arguments)?))
    }

    /// As [`Entry::job`], for an agent's call: one whose parameters are wrong is refused when it runs.
    pub fn job_or_refusal(&'static self, arguments: Map<String, Value>) -> Job {
        self.job(arguments).unwrap_or_else(|err| Job::refusing(self, &err))
    }

    /// A call from the command line.
    pub fn job_from_args(&'static self, matches: &clap::ArgMatches) -> Result<Job> {
        (self.parse_args)(self, matches)
    }
}

const fn entry<T: Tool>() -> Entry {
    Entry {
        name: T::NAME,
        command: T::COMMAND,
        access: T::ACCESS,
        always_load: T::ALWAYS_LOAD,
        joins: T::JOINS,
        founds: T::FOUNDS,
        raw_schema: schema::of::<T::Params>,
        clap: || <T::Params as clap::Args>::augment_args(clap::Command::new(T::COMMAND)),
        parse_json: |entry, arguments| {
            let params = serde_json::from_value(arguments)
                .map_err(|err| Error::invalid(format!("wrong parameters: {err}")))?;
            job::<T>(entry, params)
        },
        parse_args: |entry, matches| {
            let params =
                <T::Params as clap::FromArgMatches>::from_arg_matches(matches).map_err(|err| {
                    Error::usage(err.to_string().trim_start_matches("error: ").trim())
                })?;
            job::<T>(entry, params)
        },
    }
}

fn job<T: Tool>(entry: &'static Entry, params: T::Params) -> Result<Job> {
    Ok(Job {
        entry,
        waits: T::waits(&params)?,
        only_looks: T::only_looks(&params),
        is_hook: T::IS_HOOK,
        is_sign_of_life: true,
        run: Box::new(move |cx| {
            let output = T::call(cx, &params)?;
            let json = match cx.front {
                Front::Tools => Value::Null,
                Front::Commands => serde_json::to_value(&output)
                    .map_err(|err| Error::internal("cannot write the result").source(err))?,
            };
            Ok(Reply { text: output.to_string(), json })
        }),
    })
}

/// A whole number on the command line; for what is none clap shows the words of Rust's parser.
fn whole_number(text: &str) -> Result<i64, &'static str> {
    text.parse().map_err(|_| "it must be a whole number")
}
