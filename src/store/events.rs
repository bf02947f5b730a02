//! The append-only log.

use rusqlite::params;

use super::Tx;
use crate::{
    domain::{
        id::{MessageId, TaskId},
        time::Time,
    },
    error::Result,
};

/// A change of state, as it is written down with the change itself.
#[derive(Debug)]
pub struct Event<'a> {
    /// Whose doing it was.
    pub actor: &'a str,
    /// What happened: `message.sent`, `member.joined`.
    pub kind: &'static str,
    pub message: Option<MessageId>,
    pub task: Option<TaskId>,
    /// Words or ids that belong to the kind.
    pub detail: Option<String>,
}

/// A row of the log as it is shown, with the message that it is about.
#[derive(Debug, Clone)]
pub struct LogLine {
    pub id: i64,
    pub at: Time,
    pub actor: String,
    pub kind: String,
    pub detail: Option<String>,
    pub message: Option<super::Shown>,
}

impl Tx<'_> {
    pub fn log(&self, now: Time, event: &Event<'_>) -> Result<()> {
        self.writing()?
            .prepare_cached(
                "INSERT INTO event (at, actor, kind, message_id, task_id, detail)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?
            .execute(params![
                now.0,
                event.actor,
                event.kind,
                event.message.map(|id| id.0),
                event.task.map(|id| id.0),
                event.detail
            ])?;
        Ok(())
    }

    /// Rows of the log after `after` that happened at or after `since`, oldest first.
    pub fn log_lines(&self, after: i64, since: Time, limit: i64) -> Result<Vec<LogLine>> {
        let mut statement = self.conn.prepare_cached(
            "SELECT id, at, actor, kind, message_id, detail FROM event
             WHERE id > ?1 AND at >= ?2 ORDER BY id LIMIT ?3",
        )?;
        let mut rows = statement.query([after, since.0, limit])?;
        let mut lines = Vec::new();
        while let Some(row) = rows.next()? {
            let kind: String = row.get(3)?;
            let message: Option<i64> = row.get(4)?;
            let message = match message {
                Some(id) if kind == "message.sent" => self.message(MessageId(id))?,
                _ => None,
            };
            lines.push(LogLine {
                id: row.get(0)?,
                at: Time(row.get(1)?),
                actor: row.get(2)?,
                kind,
                detail: row.get(5)?,
                message,
            });
        }
        Ok(lines)
    }

    /// The id of the last row of the log.
    pub fn last_event(&self) -> Result<i64> {
        let mut statement = self.conn.prepare_cached("SELECT coalesce(max(id), 0) FROM event")?;
        Ok(statement.query_row([], |row| row.get(0))?)
    }
}
