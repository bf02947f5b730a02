//! `InProcess`: a desk in this process, with what a transport does around it.

use std::{sync::Arc, time::Duration};

use serde_json::{Map, Value};
use team_table::{
    config::{Config, MAX_PER_MINUTE},
    domain::name::{self, MemberName},
    error::Result,
    store::Handing,
    tools::{Agent, Answer, Desk, Entry, Who},
    transport::{queue::Queue, wake},
    view::text::Front,
    workspace::Workspace,
};
use tokio_util::sync::CancellationToken;

use super::Table;

/// What it handed out counts as read at its next call, as over MCP; for commands, at once.
pub(crate) struct InProcess {
    queue: Queue,
    runtime: tokio::runtime::Runtime,
    handed: Vec<Handing>,
    is_command: bool,
}

impl InProcess {
    /// A session of the client `test` that wishes for this name.
    pub(crate) fn session(table: &Table, name: &str) -> InProcess {
        InProcess::new(table, session("test", Some(name)))
    }

    /// A session of this client that wishes for no name.
    pub(crate) fn session_of(table: &Table, client: &str) -> InProcess {
        InProcess::new(table, session(client, None))
    }

    pub(crate) fn human(table: &Table) -> InProcess {
        InProcess::new(table, Who::Human)
    }

    fn new(table: &Table, who: Who) -> InProcess {
        let number = |name: &str| table.variable(name).map(|value| value.parse().unwrap());
        let config = Config {
            cwd: table.path().to_owned(),
            fixed_now: number("TEAM_TABLE_NOW"),
            max_per_minute: number("TEAM_TABLE_MAX_PER_MINUTE")
                .map_or(MAX_PER_MINUTE, |max| max.try_into().unwrap()),
            ..Config::default()
        };
        let workspace = Workspace::find(&config, None).unwrap();
        let is_command = !matches!(who, Who::Session { .. });
        let front = if is_command { Front::Commands } else { Front::Tools };
        let queue = Queue::new(Desk::new(workspace, Arc::new(config), who, front));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        InProcess { queue, runtime, handed: Vec::new(), is_command }
    }

    /// Calls a tool by the name of its command. What the caller can mend is in the answer.
    pub(crate) fn call(&mut self, command: &str, arguments: Value) -> Result<Answer> {
        let entry = Entry::with_command(command).unwrap();
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        self.run(entry, arguments)
    }

    pub(crate) fn run(
        &mut self,
        entry: &'static Entry,
        arguments: Map<String, Value>,
    ) -> Result<Answer> {
        let job = entry.job_or_refusal(arguments);
        let handed = std::mem::take(&mut self.handed);
        let answer = self.runtime.block_on(async {
            self.queue.desk().await.confirm_later(handed);
            match job.waits {
                None => self.queue.call(&job, None, |_, _| {}).await,
                Some(limit) => {
                    let never = CancellationToken::new();
                    wake::wait(&self.queue, &job, None, limit, &never, |_, _| {}).await
                }
            }
        })?;
        self.handed.extend(answer.handing.clone());
        if self.is_command {
            self.settle();
        }
        Ok(answer)
    }

    /// The session ends cleanly.
    pub(crate) fn end(mut self) {
        self.settle();
    }

    fn settle(&mut self) {
        let handed = std::mem::take(&mut self.handed);
        let settled = self.queue.settle(handed, Vec::new(), Duration::from_secs(5));
        self.runtime.block_on(settled).unwrap();
    }
}

fn session(client: &str, wish: Option<&str>) -> Who {
    let agent = Agent {
        family: name::family(client),
        client: client.to_owned(),
        client_version: "1".to_owned(),
        ..Agent::default()
    };
    Who::Session { agent, wish: wish.map(|name| MemberName::parse(name).unwrap()) }
}
