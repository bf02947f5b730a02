//! The table as a whole: its one row about itself, and the reset.

use std::path::Path;

use rusqlite::{Connection, params};

use super::{Tx, schema};
use crate::{
    domain::{id::MemberId, name, time::Time},
    error::{Error, Result},
    platform,
};

/// Fills a new table: the row about itself, and the two members of the first day.
pub(super) fn found(conn: &Connection, now: i64) -> Result<()> {
    conn.execute(
        "INSERT INTO about (id, epoch, began_at) VALUES (1, abs(random() >> 1), ?1)",
        [now],
    )?;
    insert_first_members(conn, now)
}

fn insert_first_members(conn: &Connection, now: i64) -> Result<()> {
    conn.execute(
        "INSERT INTO member (name, kind, seatless, joined_at) VALUES (?1, 'human', 1, ?3), (?2, 'program', 1, ?3)",
        params![name::HUMAN, name::TEAM_TABLE, now],
    )?;
    Ok(())
}

/// How much is in the table of what a reset deletes; the log and what belongs to these is not
/// counted.
#[derive(Debug, Clone, Copy)]
pub struct Contents {
    /// Agents, also those that left.
    pub members: i64,
    pub messages: i64,
    pub tasks: i64,
    pub keys: i64,
    /// That hold at this time.
    pub reservations: i64,
}

impl Tx<'_> {
    pub fn contents(&self, now: Time) -> Result<Contents> {
        Ok(self.conn.query_row(
            "SELECT (SELECT count(*) FROM member WHERE kind = 'agent'),
                    (SELECT count(*) FROM message),
                    (SELECT count(*) FROM task),
                    (SELECT count(*) FROM context WHERE value IS NOT NULL),
                    (SELECT count(*) FROM reservation WHERE ended_at IS NULL AND ends_at > ?1)",
            [now.0],
            |row| {
                Ok(Contents {
                    members: row.get(0)?,
                    messages: row.get(1)?,
                    tasks: row.get(2)?,
                    keys: row.get(3)?,
                    reservations: row.get(4)?,
                })
            },
        )?)
    }

    /// The number that changes with a reset and with a new file.
    pub fn epoch(&self) -> Result<i64> {
        if let Some(epoch) = self.epoch.get() {
            return Ok(epoch);
        }
        let mut statement = self.conn.prepare_cached("SELECT epoch FROM about")?;
        let epoch = statement.query_row([], |row| row.get(0))?;
        self.epoch.set(Some(epoch));
        Ok(epoch)
    }

    /// When the table was last reset, if ever.
    pub fn reset_at(&self) -> Result<Option<Time>> {
        let mut statement = self.conn.prepare_cached("SELECT reset_at FROM about")?;
        Ok(statement.query_row([], |row| row.get::<_, Option<i64>>(0))?.map(Time))
    }

    /// Deletes what was said and done, and all members but those where a session sits: they can be
    /// found and written to before their next call. The counters of ids stay: an agent's `#41` must
    /// never be another message.
    pub fn wipe(&self, seated: &[MemberId], now: Time) -> Result<()> {
        let conn = self.writing()?;
        let kept = serde_json::to_string(&seated)
            .map_err(|err| Error::internal("cannot name the members").source(err))?;
        conn.execute_batch(
            "UPDATE about SET
                 last_message = coalesce((SELECT max(id) FROM message), last_message),
                 last_task = coalesce((SELECT max(id) FROM task), last_task);
             DELETE FROM reservation; DELETE FROM context; DELETE FROM task_dependency;
             DELETE FROM task; DELETE FROM delivery; DELETE FROM message; DELETE FROM event;",
        )?;
        for sql in [
            "DELETE FROM member_key WHERE member_id NOT IN (SELECT value FROM json_each(?1))",
            "DELETE FROM session WHERE member_id NOT IN (SELECT value FROM json_each(?1))",
            "DELETE FROM member WHERE kind = 'agent' AND id NOT IN (SELECT value FROM json_each(?1))",
        ] {
            conn.execute(sql, [&kept])?;
        }
        // The changes of the shared context are counted anew.
        conn.execute("UPDATE member SET context_seen = 0", [])?;
        conn.execute(
            "UPDATE member SET role = '', note = '', capabilities = '[]' WHERE kind = 'human'",
            [],
        )?;
        conn.execute("UPDATE about SET epoch = abs(random() >> 1), reset_at = ?1", [now.0])?;
        schema::count_reset(conn)?;
        self.epoch.set(None);
        Ok(())
    }

    /// How many messages the table holds.
    pub fn n_messages(&self) -> Result<i64> {
        Ok(self.conn.query_row("SELECT count(*) FROM message", [], |row| row.get(0))?)
    }
}

impl super::Store {
    /// Gives the space of deleted rows back, as far as nobody is reading. To be called outside any
    /// transaction, with the turn to write.
    pub fn shrink(&self) -> Result<()> {
        self.conn.execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE);")?;
        Ok(())
    }

    /// Copies the table, as of now, to a file that is not there yet, and that only its owner can read.
    ///
    /// # Errors
    /// The copy cannot be written, and then there is none; a path that is not Unicode cannot be named to `SQLite`.
    pub fn copy_to(&self, path: &Path) -> Result<()> {
        let Some(name) = path.to_str() else {
            let shown = path.display();
            return Err(Error::refused(format!(
                "`{shown}` is not Unicode, so no copy is made there"
            ))
            .hint("name a file in ASCII for the copy; nothing was reset"));
        };
        // SQLite takes a file that is empty; one that it makes itself, others could read.
        let made = platform::create_private_file(path).map(drop);
        made.map_err(|err| Error::io("make", path, err))?;
        self.conn.execute("VACUUM INTO ?1", [name]).map(drop).map_err(|err| {
            if let Err(err) = std::fs::remove_file(path) {
                tracing::warn!("cannot remove {}: {err}", path.display());
            }
            Error::from(err)
        })
    }
}
