//! The task board.
//!
//! `n_waits` counts the dependencies that are not done, for every task; it is written with the step
//! of the dependency, so that ready tasks are found in an index.

use rusqlite::{OptionalExtension as _, Row, named_params, params};

use super::{Tx, bare};
use crate::{
    domain::{
        id::{MemberId, MessageId, TaskId},
        name,
        task::{Holder, Priority, Status},
        time::Time,
    },
    error::Result,
};

/// A task's row. In lists the long texts are left out.
#[derive(Debug, Clone)]
pub struct Task {
    pub id: TaskId,
    pub title: String,
    pub description: String,
    pub result: String,
    pub status: Status,
    pub priority: Priority,
    pub creator: MemberId,
    pub creator_name: String,
    /// Who holds it, or for whom it is meant.
    pub assignee: Option<MemberId>,
    pub assignee_name: Option<String>,
    pub version: i64,
    /// How many of its dependencies are not done.
    pub n_waits: i64,
    pub created_at: Time,
    pub updated_at: Time,
    /// Who set the present status, and when.
    pub moved_by: String,
    pub moved_at: Time,
}

/// A task to be.
#[derive(Debug)]
pub struct NewTask<'a> {
    pub title: &'a str,
    pub description: &'a str,
    pub priority: Priority,
    pub creator: MemberId,
    pub assignee: Option<MemberId>,
    pub depends_on: &'a [TaskId],
    /// How many of these are not done.
    pub n_waits: usize,
    pub by: &'a str,
}

/// What a task becomes, as a whole.
#[derive(Debug)]
pub struct TaskChange<'a> {
    pub id: TaskId,
    /// Only if it is still this one.
    pub version: i64,
    pub status: Status,
    pub assignee: Option<MemberId>,
    pub result: &'a str,
    /// Who set the status, and when.
    pub moved: (&'a str, Time),
}

/// Which part of the board to look at.
#[derive(Debug, Clone, Copy, Default)]
pub struct Board {
    pub status: Option<Status>,
    /// Whose; everybody's where it is left out.
    pub assignee: Option<Holder>,
    /// Only what this member could claim now.
    pub ready_for: Option<MemberId>,
}

/// One end of a dependency.
#[derive(Debug, Clone)]
pub struct Dependency {
    pub id: TaskId,
    pub status: Status,
}

/// A message in a thread that a notice of the task began.
#[derive(Debug, Clone)]
pub struct Reply {
    pub id: MessageId,
    pub sender: String,
    pub sent_at: Time,
}

/// What [`task`] reads, in its order: to find each column by its name costs more than the query.
macro_rules! columns {
    ($texts:literal) => {
        concat!(
            "SELECT id, title, status, priority, creator_id, assignee_id, version, n_waits, created_at,
                    updated_at, moved_by, moved_at, ",
            $texts,
            ", (SELECT name FROM member WHERE id = creator_id),
                    (SELECT name FROM member WHERE id = assignee_id)
             FROM task "
        )
    };
}

/// The filters of a look at the board. `+`: see `store::messages`.
macro_rules! filters {
    () => {
        " AND (:any OR assignee_id IS +:assignee)
          AND (:ready IS NULL OR (status = 'pending' AND n_waits = 0
                                  AND (assignee_id IS NULL OR assignee_id = +:ready)))"
    };
}

const OPEN: &str = concat!(
    columns!("'' AS description, '' AS result"),
    "WHERE status NOT IN ('done', 'cancelled') AND (:status IS NULL OR status = +:status)",
    filters!(),
    " ORDER BY priority DESC, id LIMIT :limit + 0"
);

const HELD: &str = concat!(
    columns!("'' AS description, '' AS result"),
    "WHERE assignee_id IS NOT NULL AND status NOT IN ('done', 'cancelled') AND status <> 'pending'
     ORDER BY id LIMIT ?1 + 0"
);

const ENDED: &str = concat!(
    columns!("'' AS description, '' AS result"),
    "WHERE status IN ('done', 'cancelled') AND status = +:status",
    filters!(),
    " ORDER BY id DESC LIMIT :limit + 0"
);

macro_rules! count {
    ($part:literal) => {
        concat!(
            "SELECT count(*) FROM (SELECT 1 FROM task WHERE ",
            $part,
            " AND status = +:status",
            filters!(),
            " LIMIT :limit + 0)"
        )
    };
}

const COUNT_OPEN: &str = count!("status NOT IN ('done', 'cancelled')");

const COUNT_ENDED: &str = count!("status IN ('done', 'cancelled')");

/// A claim: the row count decides who has it. It is the log's row that is written first, as that
/// has to name the one before it.
const CLAIM: &str = "INSERT INTO event (at, actor, kind, detail, task_id, previous)
     SELECT ?3, ?4, 'task.claimed', '', id, last_event FROM task
     WHERE id = ?1 AND status = 'pending' AND n_waits = 0
       AND (assignee_id IS NULL OR assignee_id = +?2)";

/// The task of a claim. Without RETURNING, for which `SQLite` opens a table of its own in memory
/// each time: that costs as much as the claim.
macro_rules! take {
    ($more:literal) => {
        concat!(
            "UPDATE task SET status = 'in_progress', assignee_id = ?2, version = version + 1,
                    updated_at = ?3, moved_by = ?4, moved_at = ?3",
            $more
        )
    };
}

const TAKE: &str = take!(", last_event = ?5 WHERE id = ?1");

const TAKE_OVER: &str = take!(" WHERE id = ?1 AND version = ?5");

const NEXT_READY: &str = "SELECT id FROM task
     WHERE status NOT IN ('done', 'cancelled') AND status = 'pending' AND n_waits = 0
       AND (assignee_id IS NULL OR assignee_id = +?1)
     ORDER BY priority DESC, id LIMIT 1";

const DEPENDENCIES: &str =
    "SELECT id, status FROM task_dependency JOIN task ON task.id = depends_on
     WHERE task_id = +?1 ORDER BY depends_on";

const DEPENDENTS: &str = "SELECT id, status FROM task_dependency JOIN task ON task.id = task_id
     WHERE depends_on = +?1 ORDER BY task_id";

/// What was answered to the notices of a task, the newest first.
const ANSWERS: &str = "SELECT id, (SELECT name FROM member WHERE id = message.sender_id), sent_at
     FROM message WHERE answers_task = +?1 ORDER BY id DESC LIMIT ?2 + 0";

impl Tx<'_> {
    pub fn insert_task(&self, new: &NewTask<'_>, now: Time) -> Result<TaskId> {
        let conn = self.writing()?;
        let mut statement = conn.prepare_cached(
            "INSERT INTO task (id, title, description, priority, creator_id, assignee_id, n_waits,
                               created_by, moved_by, created_at, updated_at, moved_at)
             VALUES (coalesce((SELECT max(id) FROM task), (SELECT last_task FROM about)) + 1,
                     ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7, ?8, ?8, ?8)",
        )?;
        let id = statement.insert(params![
            new.title,
            new.description,
            new.priority.rank(),
            new.creator.0,
            new.assignee.map(|member| member.0),
            i64::try_from(new.n_waits).unwrap_or(i64::MAX),
            new.by,
            now.0,
        ])?;
        if !new.depends_on.is_empty() {
            let mut statement = conn.prepare_cached(
                "INSERT INTO task_dependency (task_id, depends_on) VALUES (?1, ?2)",
            )?;
            for dependency in new.depends_on {
                statement.execute([id, dependency.0])?;
            }
        }
        Ok(TaskId(id))
    }

    pub fn task(&self, id: TaskId) -> Result<Option<Task>> {
        let sql = concat!(columns!("description, result"), "WHERE id = ?1");
        let mut statement = self.conn.prepare_cached(sql)?;
        Ok(statement.query_row([id.0], task).optional()?)
    }

    /// Takes a pending task, and writes that in the log. `false`: it could not be had.
    pub fn claim_task(&self, id: TaskId, me: MemberId, by: &str, now: Time) -> Result<bool> {
        let conn = self.writing()?;
        let n_rows = conn.prepare_cached(CLAIM)?.execute(params![id.0, me.0, now.0, by])?;
        if n_rows == 0 {
            return Ok(false);
        }
        let event = conn.last_insert_rowid();
        conn.prepare_cached(TAKE)?.execute(params![id.0, me.0, now.0, by, event])?;
        Ok(true)
    }

    /// The first task by priority, then age, that the member could claim.
    pub fn next_ready_task(&self, me: MemberId) -> Result<Option<TaskId>> {
        let mut statement = self.conn.prepare_cached(NEXT_READY)?;
        Ok(statement.query_row([me.0], |row| row.get(0)).optional()?.map(TaskId))
    }

    /// Takes a task from one who does not hold it any more, if it is still of this version.
    pub fn claim_task_over(
        &self,
        id: TaskId,
        version: i64,
        me: MemberId,
        by: &str,
        now: Time,
    ) -> Result<bool> {
        let mut statement = self.writing()?.prepare_cached(TAKE_OVER)?;
        let n_rows = statement.execute(params![id.0, me.0, now.0, by, version])?;
        Ok(n_rows > 0)
    }

    /// Changes a task that is still of this version.
    pub fn change_task(&self, change: &TaskChange<'_>, now: Time) -> Result<bool> {
        let mut statement = self.writing()?.prepare_cached(
            "UPDATE task SET status = :status, assignee_id = :assignee, result = :result,
                    version = version + 1, updated_at = :now, moved_by = :by, moved_at = :at
             WHERE id = :id AND version = :version",
        )?;
        let n_rows = statement.execute(named_params! {
            ":id": change.id.0,
            ":version": change.version,
            ":status": change.status.as_str(),
            ":assignee": change.assignee.map(|member| member.0),
            ":result": change.result,
            ":by": change.moved.0,
            ":at": change.moved.1.0,
            ":now": now.0,
        })?;
        Ok(n_rows > 0)
    }

    /// Who has tasks in progress.
    pub fn task_holders(&self) -> Result<Vec<MemberId>> {
        let mut statement = self.conn.prepare_cached(
            "SELECT DISTINCT assignee_id FROM task
             WHERE assignee_id IS NOT NULL AND status = 'in_progress'
               AND status NOT IN ('done', 'cancelled')",
        )?;
        let rows = statement.query_map([], |row| row.get(0).map(MemberId))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// What a member that is gone had in progress is pending again, and nobody's. Returns which.
    pub fn lapse_tasks_of(&self, member: MemberId, now: Time) -> Result<Vec<TaskId>> {
        let mut statement = self.writing()?.prepare_cached(
            "UPDATE task SET status = 'pending', assignee_id = NULL, version = version + 1,
                    updated_at = :now, moved_by = :by, moved_at = :now
             WHERE assignee_id = +:member AND status = 'in_progress'
               AND status NOT IN ('done', 'cancelled')
             RETURNING id",
        )?;
        let rows = statement.query_map(
            named_params! {":member": member.0, ":by": name::TEAM_TABLE, ":now": now.0},
            |row| row.get(0).map(TaskId),
        )?;
        let mut ids: Vec<TaskId> = rows.collect::<Result<_, _>>()?;
        ids.sort();
        Ok(ids)
    }

    /// What a task waits for, done or not.
    pub fn dependencies(&self, id: TaskId) -> Result<Vec<Dependency>> {
        self.ends(DEPENDENCIES, id)
    }

    /// The tasks that wait for this one, or waited.
    pub fn dependents(&self, id: TaskId) -> Result<Vec<Dependency>> {
        self.ends(DEPENDENTS, id)
    }

    fn ends(&self, sql: &'static str, id: TaskId) -> Result<Vec<Dependency>> {
        let mut statement = self.conn.prepare_cached(sql)?;
        let rows = statement.query_map([id.0], |row| {
            Ok(Dependency { id: TaskId(row.get(0)?), status: status(row, 1)? })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Counts anew what the tasks that depend on this one wait for.
    pub fn recount_dependents(&self, id: TaskId) -> Result<()> {
        self.writing()?
            .prepare_cached(
                "UPDATE task SET n_waits = (
                     SELECT count(*) FROM task_dependency
                     JOIN task AS other ON other.id = depends_on
                     WHERE task_id = task.id AND other.status <> 'done')
                 WHERE id IN (SELECT task_id FROM task_dependency WHERE depends_on = ?1)",
            )?
            .execute([id.0])?;
        Ok(())
    }

    /// Tasks that somebody holds, in the order in which they were made.
    pub fn held_tasks(&self, limit: i64) -> Result<Vec<Task>> {
        let mut statement = self.conn.prepare_cached(HELD)?;
        let rows = statement.query_map([limit], task)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Open tasks by priority, then age.
    pub fn open_tasks(&self, board: &Board, limit: i64) -> Result<Vec<Task>> {
        self.board(OPEN, board, board.status, limit)
    }

    /// Tasks of a status in which they have ended, the newest first.
    pub fn ended_tasks(&self, board: &Board, status: Status, limit: i64) -> Result<Vec<Task>> {
        self.board(ENDED, board, Some(status), limit)
    }

    fn board(
        &self,
        sql: &str,
        board: &Board,
        status: Option<Status>,
        limit: i64,
    ) -> Result<Vec<Task>> {
        let mut statement = self.conn.prepare_cached(sql)?;
        let rows = statement.query_map(
            named_params! {
                ":status": status.map(Status::as_str),
                ":any": board.assignee.is_none(),
                ":assignee": board.assignee.and_then(Holder::id).map(|member| member.0),
                ":ready": board.ready_for.map(|member| member.0),
                ":limit": limit,
            },
            task,
        )?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// How many tasks there are of a status, up to where the count is to stop.
    pub fn count_tasks(&self, board: &Board, status: Status, stop: usize) -> Result<usize> {
        let sql = if status.is_ended() { COUNT_ENDED } else { COUNT_OPEN };
        let mut statement = self.conn.prepare_cached(sql)?;
        let count: i64 = statement.query_row(
            named_params! {
                ":status": status.as_str(),
                ":any": board.assignee.is_none(),
                ":assignee": board.assignee.and_then(Holder::id).map(|member| member.0),
                ":ready": board.ready_for.map(|member| member.0),
                ":limit": i64::try_from(stop).unwrap_or(i64::MAX),
            },
            |row| row.get(0),
        )?;
        Ok(usize::try_from(count).unwrap_or(0))
    }

    /// Answers to the notices of a task, the newest, oldest first.
    pub fn task_replies(&self, id: TaskId, limit: usize) -> Result<Vec<Reply>> {
        let mut statement = self.conn.prepare_cached(ANSWERS)?;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = statement.query_map([id.0, limit], |row| {
            Ok(Reply {
                id: MessageId(row.get(0)?),
                sender: bare(row, 1)?,
                sent_at: Time(row.get(2)?),
            })
        })?;
        let mut replies: Vec<Reply> = rows.collect::<Result<_, _>>()?;
        replies.reverse();
        Ok(replies)
    }
}

/// Reads [`columns`].
fn task(row: &Row<'_>) -> rusqlite::Result<Task> {
    Ok(Task {
        id: TaskId(row.get(0)?),
        title: row.get(1)?,
        status: status(row, 2)?,
        priority: Priority::from_rank(row.get(3)?),
        creator: MemberId(row.get(4)?),
        assignee: row.get::<_, Option<i64>>(5)?.map(MemberId),
        version: row.get(6)?,
        n_waits: row.get(7)?,
        created_at: Time(row.get(8)?),
        updated_at: Time(row.get(9)?),
        moved_by: bare(row, 10)?,
        moved_at: Time(row.get(11)?),
        description: row.get(12)?,
        result: row.get(13)?,
        creator_name: bare(row, 14)?,
        assignee_name: row.get::<_, Option<String>>(15)?.map(name::bare),
    })
}

/// The column is checked: it holds no other words.
fn status(row: &Row<'_>, column: usize) -> rusqlite::Result<Status> {
    Status::from_column(&row.get::<_, String>(column)?).ok_or(rusqlite::Error::InvalidQuery)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use rusqlite::Connection;

    use super::{
        ANSWERS, CLAIM, COUNT_ENDED, COUNT_OPEN, DEPENDENCIES, DEPENDENTS, ENDED, MemberId,
        NEXT_READY, OPEN, Status, TAKE, TAKE_OVER, TaskId, Time, Tx,
    };
    use crate::store::plan_of;

    /// None of them may look at every task, or be planned anew at each call.
    #[test]
    fn looks_at_the_board_are_served_from_indexes() {
        for (sql, index) in [
            (OPEN, "task_open"),
            (ENDED, "task_ended"),
            (COUNT_OPEN, "COVERING INDEX task_open"),
            (COUNT_ENDED, "INDEX task_ended"),
            (ANSWERS, "INDEX message_task"),
            (DEPENDENCIES, "PRIMARY KEY (task_id=?)"),
            (DEPENDENTS, "INDEX task_dependency_back"),
            (NEXT_READY, "COVERING INDEX task_open"),
            (CLAIM, "INTEGER PRIMARY KEY"),
            (TAKE, "INTEGER PRIMARY KEY"),
            (TAKE_OVER, "INTEGER PRIMARY KEY"),
        ] {
            let plan = plan_of(sql);
            assert!(plan.iter().any(|step| step.contains(index)), "{sql}: {plan:?}");
            assert!(!plan.iter().any(|step| step.contains("TEMP B-TREE")), "{sql}: {plan:?}");
        }
    }

    /// Only what is in progress lapses, and only of this member.
    #[test]
    fn tasks_of_one_who_is_gone_are_pending_again() {
        let conn = Connection::open_in_memory().unwrap();
        super::super::schema::migrate(&conn, 0).unwrap();
        conn.execute_batch(
            "INSERT INTO task (title, status, creator_id, assignee_id, created_by, created_at,
                               updated_at, moved_by, moved_at)
             VALUES ('a', 'in_progress', 1, 1, 'x', 0, 0, 'x', 0),
                    ('b', 'blocked', 1, 1, 'x', 0, 0, 'x', 0),
                    ('c', 'in_progress', 1, 2, 'x', 0, 0, 'x', 0),
                    ('d', 'done', 1, 1, 'x', 0, 0, 'x', 0),
                    ('e', 'in_progress', 1, 1, 'x', 0, 0, 'x', 0)",
        )
        .unwrap();
        let tx = Tx { conn: &conn, writable: true, epoch: Cell::default() };
        let lapsed = tx.lapse_tasks_of(MemberId(1), Time(5)).unwrap();
        assert_eq!(lapsed, [TaskId(1), TaskId(5)]);
        let task = tx.task(TaskId(5)).unwrap().unwrap();
        assert_eq!((task.status, task.assignee, task.version), (Status::Pending, None, 2));
        assert_eq!((task.moved_by.as_str(), task.moved_at), ("team-table", Time(5)));
        assert_eq!(tx.lapse_tasks_of(MemberId(1), Time(6)).unwrap(), []);
    }
}
