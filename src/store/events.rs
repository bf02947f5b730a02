//! The append-only log.

use rusqlite::{OptionalExtension as _, params};

use super::{Tx, bare};
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
    pub task: Option<TaskId>,
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
            "SELECT id, at, actor, kind, message_id, detail, task_id FROM event
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
                actor: bare(row, 2)?,
                kind,
                task: row.get::<_, Option<i64>>(6)?.map(TaskId),
                detail: row.get(5)?,
                message,
            });
        }
        Ok(lines)
    }

    /// What was done to a task: the first rows and the last, oldest first, and how many there are
    /// in between.
    pub fn task_events(&self, task: TaskId, limit: i64) -> Result<(Vec<LogLine>, usize)> {
        let mut statement = self.conn.prepare_cached(
            "SELECT id, at, actor, kind, detail FROM event
             WHERE task_id = +?1 AND kind LIKE 'task.%' AND id > ?3 ORDER BY id LIMIT ?2 + 0",
        )?;
        let line = |row: &rusqlite::Row<'_>| {
            Ok(LogLine {
                id: row.get(0)?,
                at: Time(row.get(1)?),
                actor: bare(row, 2)?,
                kind: row.get(3)?,
                task: Some(task),
                detail: row.get(4)?,
                message: None,
            })
        };
        let rows = statement.query_map([task.0, limit, 0], line)?;
        let mut lines: Vec<LogLine> = rows.collect::<Result<_, _>>()?;
        let last_id = lines.last().map_or(0, |line| line.id);
        let mut statement = self.conn.prepare_cached(
            "SELECT id, at, actor, kind, detail FROM event
             WHERE task_id = +?1 AND kind LIKE 'task.%' AND id > ?3
             ORDER BY id DESC LIMIT ?2 + 0",
        )?;
        let rows = statement.query_map([task.0, limit, last_id], line)?;
        let newest: Vec<LogLine> = rows.collect::<Result<_, _>>()?;
        let mut statement = self.conn.prepare_cached(
            "SELECT count(*) FROM event WHERE task_id = +?1 AND kind LIKE 'task.%'",
        )?;
        let n_lines: i64 = statement.query_row([task.0], |row| row.get(0))?;
        lines.extend(newest.into_iter().rev());
        let n_between = usize::try_from(n_lines).unwrap_or(0).saturating_sub(lines.len());
        Ok((lines, n_between))
    }

    pub fn count_comments(&self, task: TaskId) -> Result<i64> {
        let mut statement = self.conn.prepare_cached(
            "SELECT count(*) FROM event WHERE task_id = +?1 AND kind = 'task.commented'",
        )?;
        Ok(statement.query_row([task.0], |row| row.get(0))?)
    }

    /// Who last did something to a task, and when.
    pub fn last_task_event(&self, task: TaskId) -> Result<Option<(String, Time)>> {
        let mut statement = self.conn.prepare_cached(
            "SELECT actor, at FROM event WHERE task_id = +?1 AND kind LIKE 'task.%'
             ORDER BY id DESC LIMIT 1",
        )?;
        Ok(statement.query_row([task.0], |row| Ok((row.get(0)?, Time(row.get(1)?)))).optional()?)
    }

    /// The id of the last row of the log.
    pub fn last_event(&self) -> Result<i64> {
        let mut statement = self.conn.prepare_cached("SELECT coalesce(max(id), 0) FROM event")?;
        Ok(statement.query_row([], |row| row.get(0))?)
    }
}
