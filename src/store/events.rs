//! The append-only log: what was changed, each in a row of its own, and the messages, which are their
//! own lines in it.

use rusqlite::{OptionalExtension as _, Params, Row, params};

use super::{
    Shown, Tx, bare,
    messages::{shown, shown_columns},
};
use crate::{
    domain::{id::TaskId, time::Time},
    error::Result,
};

/// A change of state, as it is written down with the change itself.
#[derive(Debug)]
pub struct Event<'a> {
    /// Whose doing it was.
    pub actor: &'a str,
    /// What happened: `member.joined`, `message.handed`.
    pub kind: &'static str,
    pub task: Option<TaskId>,
    /// Words or ids that belong to the kind.
    pub detail: Option<String>,
}

/// A line of the log as it is shown: a change, or a message.
#[derive(Debug, Clone)]
pub struct LogLine {
    /// The number of the message, or of the change: they are counted apart.
    pub id: i64,
    pub at: Time,
    pub actor: String,
    /// As in [`Event`]; `message.sent` for a message.
    pub kind: String,
    pub task: Option<TaskId>,
    pub detail: Option<String>,
    pub message: Option<Shown>,
}

/// Up to where the log was looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogPlace {
    /// The number of the last change,
    pub event: i64,
    /// and of the last message.
    pub message: i64,
}

impl LogPlace {
    /// The place behind this line.
    pub fn pass(&mut self, line: &LogLine) {
        match line.message {
            Some(_) => self.message = line.id,
            None => self.event = line.id,
        }
    }
}

macro_rules! changes {
    ($which:literal) => {
        concat!("SELECT id, at, actor, kind, detail, task_id FROM event ", $which)
    };
}

macro_rules! messages {
    ($which:literal) => {
        concat!("SELECT ", shown_columns!("0", "0"), ", task_id FROM message ", $which)
    };
}

impl Tx<'_> {
    pub fn log(&self, now: Time, event: &Event<'_>) -> Result<()> {
        self.writing()?
            .prepare_cached(
                "INSERT INTO event (at, actor, kind, task_id, detail) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![
                now.0,
                event.actor,
                event.kind,
                event.task.map(|id| id.0),
                event.detail
            ])?;
        Ok(())
    }

    /// Lines of the log behind `after` that happened at or after `since`, oldest first.
    pub fn log_lines(&self, after: LogPlace, since: Time, limit: i64) -> Result<Vec<LogLine>> {
        let changes = changes!("WHERE id > ?1 AND at >= ?2 ORDER BY id LIMIT ?3 + 0");
        let messages = messages!("WHERE id > ?1 AND sent_at >= ?2 ORDER BY id LIMIT ?3 + 0");
        let changes = self.lines(changes, [after.event, since.0, limit], change)?;
        let messages = self.lines(messages, [after.message, since.0, limit], sent)?;
        let mut lines = merged(changes, messages);
        lines.truncate(usize::try_from(limit).unwrap_or(0));
        Ok(lines)
    }

    /// The last lines of the log, oldest first.
    pub fn last_log_lines(&self, limit: i64) -> Result<Vec<LogLine>> {
        let changes = changes!("ORDER BY id DESC LIMIT ?1 + 0");
        let messages = messages!("ORDER BY id DESC LIMIT ?1 + 0");
        let mut changes = self.lines(changes, [limit], change)?;
        let mut messages = self.lines(messages, [limit], sent)?;
        changes.reverse();
        messages.reverse();
        let mut lines = merged(changes, messages);
        let limit = usize::try_from(limit).unwrap_or(0);
        lines.drain(..lines.len().saturating_sub(limit));
        Ok(lines)
    }

    fn lines(
        &self,
        sql: &str,
        params: impl Params,
        line: fn(&Row<'_>) -> rusqlite::Result<LogLine>,
    ) -> Result<Vec<LogLine>> {
        let mut statement = self.conn.prepare_cached(sql)?;
        let rows = statement.query_map(params, line)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// What was done to a task: the first rows and the last, oldest first, and how many there are
    /// in between.
    pub fn task_events(&self, task: TaskId, limit: i64) -> Result<(Vec<LogLine>, usize)> {
        let mut statement = self.conn.prepare_cached(
            "SELECT id, at, actor, kind, detail FROM event
             WHERE task_id = +?1 AND kind LIKE 'task.%' AND id > ?3 ORDER BY id LIMIT ?2 + 0",
        )?;
        let line = |row: &Row<'_>| {
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

fn change(row: &Row<'_>) -> rusqlite::Result<LogLine> {
    Ok(LogLine {
        id: row.get(0)?,
        at: Time(row.get(1)?),
        actor: bare(row, 2)?,
        kind: row.get(3)?,
        detail: row.get(4)?,
        task: row.get::<_, Option<i64>>(5)?.map(TaskId),
        message: None,
    })
}

fn sent(row: &Row<'_>) -> rusqlite::Result<LogLine> {
    let message = shown(row)?;
    Ok(LogLine {
        id: message.id.0,
        at: message.sent_at,
        actor: message.sender.clone(),
        kind: "message.sent".to_owned(),
        detail: None,
        task: row.get::<_, Option<i64>>("task_id")?.map(TaskId),
        message: Some(message),
    })
}

/// Both in one order, each in its own as it is. Within a millisecond a message stands behind the
/// change that it tells of, and before what became of it.
fn merged(changes: Vec<LogLine>, messages: Vec<LogLine>) -> Vec<LogLine> {
    let mut lines = Vec::with_capacity(changes.len() + messages.len());
    let mut messages = messages.into_iter().peekable();
    for change in changes {
        let is_before = |message: &LogLine| {
            message.at < change.at
                || (message.at == change.at && change.kind.starts_with("message."))
        };
        while let Some(message) = messages.next_if(is_before) {
            lines.push(message);
        }
        lines.push(change);
    }
    lines.extend(messages);
    lines
}

#[cfg(test)]
mod tests {
    use super::{LogLine, Time, merged};

    #[test]
    fn changes_and_messages_stand_in_one_order() {
        let line = |kind: &str, id: i64, at: i64| LogLine {
            id,
            at: Time(at),
            actor: String::new(),
            kind: kind.to_owned(),
            task: None,
            detail: None,
            message: None,
        };
        let changes = [
            ("member.joined", 1, 1),
            ("task.created", 2, 5),
            ("message.handed", 3, 5),
            // The clock was set back.
            ("member.left", 4, 3),
        ];
        let changes = changes.map(|(kind, id, at)| line(kind, id, at)).into();
        let messages = [(1, 2), (2, 5), (3, 9)].map(|(id, at)| line("message.sent", id, at)).into();
        let lines = merged(changes, messages);
        let kinds: Vec<(&str, i64)> =
            lines.iter().map(|line| (line.kind.as_str(), line.id)).collect();
        assert_eq!(
            kinds,
            [
                ("member.joined", 1),
                ("message.sent", 1),
                ("task.created", 2),
                ("message.sent", 2),
                ("message.handed", 3),
                ("member.left", 4),
                ("message.sent", 3),
            ]
        );
    }
}
