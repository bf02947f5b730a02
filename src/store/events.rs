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
    /// What no other line has: `7`, `#7`, `T7`.
    pub fn key(&self) -> String {
        match self.source {
            LogSource::Event => self.id.to_string(),
            LogSource::Message => format!("#{}", self.id),
            LogSource::Task => format!("T{}", self.id),
        }
    }

    /// Its place among those of other sources: they know of each other by the clock alone. Within a
    /// millisecond, a call comes to the table, then reads, creates a task, changes it, and tells of
    /// that; what is handed out was sent before.
    fn order(&self) -> (Time, u8) {
        let rank = match (self.source, self.kind.as_str()) {
            (
                LogSource::Event,
                "table.reset" | "member.joined" | "member.moved" | "session.began",
            ) => 0,
            (LogSource::Task, _) => 1,
            (LogSource::Message, _) => 3,
            (LogSource::Event, "message.handed") => 4,
            (LogSource::Event, _) => 2,
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
        concat!("SELECT id, created_at, created_by, title FROM task ", $which)
    };
}

/// The numbers of what was done to the task `?1`, the last first. Each is lower than the one before,
/// so that the chain of a table that somebody tampered with has an end, too.
macro_rules! past {
    () => {
        "WITH RECURSIVE past (id) AS (
             SELECT last_event FROM task WHERE id = ?1 AND last_event IS NOT NULL
             UNION ALL
             SELECT previous FROM past JOIN event USING (id) WHERE previous < id
         ) "
    };
}

impl Tx<'_> {
    pub fn log(&self, now: Time, event: &Event<'_>) -> Result<()> {
        let conn = self.writing()?;
        let mut statement = conn.prepare_cached(
            "INSERT INTO event (at, actor, kind, detail, task_id, previous)
             VALUES (?1, ?2, ?3, ?4, ?5, (SELECT last_event FROM task WHERE id = ?5))",
        )?;
        let task = event.task.map(|id| id.0);
        let id = statement.insert(params![now.0, event.actor, event.kind, event.detail, task])?;
        if let Some(task) = task {
            conn.prepare_cached("UPDATE task SET last_event = ?2 WHERE id = ?1")?
                .execute([task, id])?;
        }
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

    /// What was done to a task: the first lines and the last, oldest first, at most `limit` of each,
    /// and how many there are in between.
    pub fn task_events(&self, task: TaskId, limit: usize) -> Result<(Vec<LogLine>, usize)> {
        let mut statement = self.conn.prepare_cached(concat!(past!(), "SELECT id FROM past"))?;
        let ids = statement.query_map([task.0], |row| row.get(0))?;
        let mut ids: Vec<i64> = ids.collect::<Result<_, _>>()?;
        ids.reverse();
        // The first line is that of the task itself.
        let n_first = ids.len().min(limit.saturating_sub(1));
        let n_between = (ids.len() - n_first).saturating_sub(limit);
        ids.drain(n_first..n_first + n_between);
        let mut lines = self.lines(tasks!("WHERE id = ?1"), [task.0], created)?;
        for id in ids {
            lines.extend(self.lines(events!("WHERE id = ?1"), [id], changed)?);
        }
        Ok((lines, n_between))
    }

    pub fn count_comments(&self, task: TaskId) -> Result<i64> {
        let mut statement = self.conn.prepare_cached(concat!(
            past!(),
            "SELECT count(*) FROM past JOIN event USING (id) WHERE kind = 'task.commented'"
        ))?;
        Ok(statement.query_row([task.0], |row| row.get(0))?)
    }

    /// Who last changed a task, and when, if anybody did.
    pub fn last_task_event(&self, task: TaskId) -> Result<Option<(String, Time)>> {
        let mut statement = self.conn.prepare_cached(
            "SELECT actor, at FROM event WHERE id = (SELECT last_event FROM task WHERE id = ?1)",
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
    use std::cell::Cell;

    use rusqlite::Connection;

    use super::{LogLine, LogSource, TaskId, Time, Tx, merged};

    /// A history is a chain of rows, which somebody may have tampered with.
    #[test]
    fn every_history_has_an_end() {
        let conn = Connection::open_in_memory().unwrap();
        super::super::schema::migrate(&conn, 0).unwrap();
        conn.execute_batch(
            "INSERT INTO task (title, creator_id, created_by, created_at, updated_at, moved_by, moved_at)
             VALUES ('one', 1, 'x', 0, 0, 'x', 0);
             INSERT INTO event (at, actor, kind, task_id, previous)
             VALUES (1, 'x', 'task.claimed', 1, NULL), (2, 'x', 'task.commented', 1, 1),
                    (3, 'x', 'task.commented', 1, 3), (4, 'x', 'task.commented', 1, 5),
                    (5, 'x', 'task.commented', 1, 4), (6, 'x', 'task.commented', 1, 99);",
        )
        .unwrap();
        let tx = Tx { conn: &conn, writable: false, epoch: Cell::default() };
        for (last, ids) in [
            ("NULL", &[][..]),
            ("2", &[1, 2]),
            ("3", &[3]),
            ("5", &[4, 5]),
            ("6", &[6]),
            ("99", &[]),
        ] {
            conn.execute(&format!("UPDATE task SET last_event = {last}"), []).unwrap();
            let (lines, n_between) = tx.task_events(TaskId(1), 10).unwrap();
            let (first, changes) = lines.split_first().unwrap();
            assert_eq!((first.source, first.kind.as_str()), (LogSource::Task, "task.created"));
            assert!(
                changes.iter().map(|line| line.id).eq(ids.iter().copied()),
                "{last}: {lines:?}"
            );
            assert_eq!(n_between, 0);
        }
        conn.execute("UPDATE task SET last_event = 2", []).unwrap();
        assert_eq!(tx.count_comments(TaskId(1)).unwrap(), 1);
        let (lines, n_between) = tx.task_events(TaskId(1), 1).unwrap();
        assert_eq!((lines.len(), n_between), (2, 1), "the first line and the last");
    }

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
