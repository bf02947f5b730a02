//! Numbers of things. Order is by id, never by time.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// A message, shown as `#41`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MessageId(pub i64);

/// A member's row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct MemberId(pub i64);

/// A session's row; [`SessionId::COMMAND_LINE`] stands for all commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct SessionId(pub i64);

impl SessionId {
    /// What a command hands out is confirmed when it was printed; no session lives on.
    pub const COMMAND_LINE: SessionId = SessionId(0);
    /// For looks from outside at a seat that nobody holds: equal to no session.
    pub const NOBODY: SessionId = SessionId(-1);
}

/// A reservation's row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ReservationId(pub i64);

/// A task, shown as `T7`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TaskId(pub i64);

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "T{}", self.0)
    }
}

/// As a person types it: `7` or `T7`.
impl FromStr for TaskId {
    type Err = Error;
    fn from_str(text: &str) -> Result<TaskId> {
        text.strip_prefix(['T', 't'])
            .unwrap_or(text)
            .parse()
            .map(TaskId)
            .map_err(|_| Error::invalid(format!("`{text}` is not a task, such as 7 or T7")))
    }
}

impl TaskId {
    /// Marks the parameters that take tasks; models are not shown it.
    pub const FORMAT: &'static str = "task";
}

/// For models a task is a plain number.
impl schemars::JsonSchema for TaskId {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "TaskId".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "integer", "format": TaskId::FORMAT})
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// As a person types it: `41` or `#41`.
impl FromStr for MessageId {
    type Err = Error;
    fn from_str(text: &str) -> Result<MessageId> {
        text.strip_prefix('#')
            .unwrap_or(text)
            .parse()
            .map(MessageId)
            .map_err(|_| Error::invalid(format!("`{text}` is not a message id, such as 41 or #41")))
    }
}

/// For models a message id is a plain number.
impl schemars::JsonSchema for MessageId {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "MessageId".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        i64::json_schema(generator)
    }
}
