//! The append-only log: what was changed, each in a row of its own. That a message was sent, or a
//! task created, their own rows tell: they are lines in the log by themselves.

use std::collections::VecDeque;

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

/// A line of the log as it is shown.
#[derive(Debug, Clone)]
pub struct LogLine {
    pub source: LogSource,
    /// Its number among those of this source.
    pub id: i64,
    pub at: Time,
    pub actor: String,
    /// As in [`Event`]; `message.sent` and `task.created` for the others.
    pub kind: String,
    pub task: Option<TaskId>,
    pub detail: Option<String>,
    pub message: Option<Shown>,
}

/// What tells of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogSource {
    /// A row of the log.
    Event,
    /// The message that was sent.
    Message,
    /// The task that was created.
    Task,
}

/// Up to where the log was looked at: the last number of each source.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogPlace {
    pub event: i64,
    pub message: i64,
    pub task: i64,
}

impl LogPlace {
    /// The place behind this line.
    pub fn pass(&mut self, line: &LogLine) {
        match line.source {
            LogSource::Event => self.event = line.id,
            LogSource::Message => self.message = line.id,
            LogSource::Task => self.task = line.id,
        }
    }
}

impl LogLine {
    /// Its place among those of other sources. Within a millisecond, a task stands before what became
    /// of it; and a message behind the change that it tells of, and before what became of it.
    fn order(&self) -> (Time, u8) {
        let rank = match self.source {
            LogSource::Task => 0,
            LogSource::Event if !self.kind.starts_with("message.") => 1,
            LogSource::Message => 2,
            LogSource::Event => 3,
        };
        (self.at, rank)
    }
}

macro_rules! events {
    ($which:literal) => {
        concat!("SELECT id, at, actor, kind, detail, task_id FROM event ", $which)
    };
}

macro_rules! messages {
    ($which:literal) => {
        concat!("SELECT ", shown_columns!("0", "0"), ", task_id FROM message ", $which)
    };
}

macro_rules! tasks {
    ($which:literal) => {
        concat!(
            "SELECT id, created_at, (SELECT name FROM member WHERE id = creator_id), title
             FROM task ",
            $which
        )
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
        let events = events!("WHERE id > ?1 AND at >= ?2 ORDER BY id LIMIT ?3 + 0");
        let messages = messages!("WHERE id > ?1 AND sent_at >= ?2 ORDER BY id LIMIT ?3 + 0");
        let tasks = tasks!("WHERE id > ?1 AND created_at >= ?2 ORDER BY id LIMIT ?3 + 0");
        let mut lines = merged([
            self.lines(tasks, [after.task, since.0, limit], created)?,
            self.lines(events, [after.event, since.0, limit], changed)?,
            self.lines(messages, [after.message, since.0, limit], sent)?,
        ]);
        lines.truncate(usize::try_from(limit).unwrap_or(0));
        Ok(lines)
    }

    /// The last lines of the log, oldest first.
    pub fn last_log_lines(&self, limit: i64) -> Result<Vec<LogLine>> {
        let mut sources = [
            self.lines(tasks!("ORDER BY id DESC LIMIT ?1 + 0"), [limit], created)?,
            self.lines(events!("ORDER BY id DESC LIMIT ?1 + 0"), [limit], changed)?,
            self.lines(messages!("ORDER BY id DESC LIMIT ?1 + 0"), [limit], sent)?,
        ];
        for lines in &mut sources {
            lines.reverse();
        }
        let mut lines = merged(sources);
        let limit = usize::try_from(limit).unwrap_or(0);
        lines.drain(..lines.len().saturating_sub(limit));
        Ok(lines)
    }

    /// The place behind the last line.
    pub fn log_end(&self) -> Result<LogPlace> {
        let mut statement = self.conn.prepare_cached(
            "SELECT coalesce((SELECT max(id) FROM event), 0),
                    coalesce((SELECT max(id) FROM message), 0),
                    coalesce((SELECT max(id) FROM task), 0)",
        )?;
        Ok(statement.query_row([], |row| {
            Ok(LogPlace { event: row.get(0)?, message: row.get(1)?, task: row.get(2)? })
        })?)
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

    /// What was done to a task: the first lines and the last, oldest first, `limit` of each, and how
    /// many there are in between.
    pub fn task_events(&self, task: TaskId, limit: i64) -> Result<(Vec<LogLine>, usize)> {
        let mut lines = self.lines(tasks!("WHERE id = ?1"), [task.0], created)?;
        let first = events!("WHERE task_id = +?1 AND kind LIKE 'task.%' ORDER BY id LIMIT ?2 + 0");
        lines.extend(self.lines(first, [task.0, limit - 1], changed)?);
        let last_id = lines.last().filter(|it| it.source == LogSource::Event).map_or(0, |it| it.id);
        let last = events!(
            "WHERE task_id = +?1 AND kind LIKE 'task.%' AND id > ?3
             ORDER BY id DESC LIMIT ?2 + 0"
        );
        let newest = self.lines(last, [task.0, limit, last_id], changed)?;
        let mut statement = self.conn.prepare_cached(
            "SELECT count(*) FROM event WHERE task_id = +?1 AND kind LIKE 'task.%'",
        )?;
        let n_events: i64 = statement.query_row([task.0], |row| row.get(0))?;
        lines.extend(newest.into_iter().rev());
        let n_between = (usize::try_from(n_events).unwrap_or(0) + 1).saturating_sub(lines.len());
        Ok((lines, n_between))
    }

    pub fn count_comments(&self, task: TaskId) -> Result<i64> {
        let mut statement = self.conn.prepare_cached(
            "SELECT count(*) FROM event WHERE task_id = +?1 AND kind = 'task.commented'",
        )?;
        Ok(statement.query_row([task.0], |row| row.get(0))?)
    }

    /// Who last changed a task, and when, if anybody did.
    pub fn last_task_event(&self, task: TaskId) -> Result<Option<(String, Time)>> {
        let mut statement = self.conn.prepare_cached(
            "SELECT actor, at FROM event WHERE task_id = +?1 AND kind LIKE 'task.%'
             ORDER BY id DESC LIMIT 1",
        )?;
        Ok(statement.query_row([task.0], |row| Ok((row.get(0)?, Time(row.get(1)?)))).optional()?)
    }
}

fn changed(row: &Row<'_>) -> rusqlite::Result<LogLine> {
    Ok(LogLine {
        source: LogSource::Event,
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
        source: LogSource::Message,
        id: message.id.0,
        at: message.sent_at,
        actor: message.sender.clone(),
        kind: "message.sent".to_owned(),
        detail: None,
        task: row.get::<_, Option<i64>>("task_id")?.map(TaskId),
        message: Some(message),
    })
}

fn created(row: &Row<'_>) -> rusqlite::Result<LogLine> {
    let id = row.get(0)?;
    Ok(LogLine {
        source: LogSource::Task,
        id,
        at: Time(row.get(1)?),
        actor: bare(row, 2)?,
        kind: "task.created".to_owned(),
        detail: row.get(3)?,
        task: Some(TaskId(id)),
        message: None,
    })
}

/// All in one order, those of each source in their own as they are.
fn merged(sources: [Vec<LogLine>; 3]) -> Vec<LogLine> {
    let mut sources = sources.map(VecDeque::from);
    let mut lines = Vec::new();
    while let Some(source) = sources
        .iter_mut()
        .filter(|source| !source.is_empty())
        .min_by_key(|source| source.front().map(LogLine::order))
    {
        lines.extend(source.pop_front());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::{LogLine, LogSource, Time, merged};

    #[test]
    fn lines_of_all_sources_stand_in_one_order() {
        let line = |source: LogSource, kind: &str, id: i64, at: i64| LogLine {
            source,
            id,
            at: Time(at),
            actor: String::new(),
            kind: kind.to_owned(),
            task: None,
            detail: None,
            message: None,
        };
        let events = [
            ("member.joined", 1, 1),
            ("task.assigned", 2, 5),
            ("message.handed", 3, 5),
            // The clock was set back.
            ("member.left", 4, 3),
        ];
        let events = events.map(|(kind, id, at)| line(LogSource::Event, kind, id, at));
        let messages =
            [(1, 2), (2, 5), (3, 9)].map(|(id, at)| line(LogSource::Message, "", id, at));
        let tasks = [(1, 5), (2, 9)].map(|(id, at)| line(LogSource::Task, "", id, at));
        let lines = merged([tasks.into(), events.into(), messages.into()]);
        let places: Vec<(LogSource, i64)> =
            lines.iter().map(|line| (line.source, line.id)).collect();
        assert_eq!(
            places,
            [
                (LogSource::Event, 1),
                (LogSource::Message, 1),
                (LogSource::Task, 1),
                (LogSource::Event, 2),
                (LogSource::Message, 2),
                (LogSource::Event, 3),
                (LogSource::Event, 4),
                (LogSource::Task, 2),
                (LogSource::Message, 3),
            ]
        );
    }
}
