//! The tables, and how a table of an older version becomes one of this version.
//!
//! `user_version` is 1000 x breaking + additive changes. A server refuses a table of a higher
//! thousand only; so an additive change must leave every statement of older versions working.

use rusqlite::Connection;

use crate::error::{Error, Result};

/// Marks the file as ours: "tttb".
pub(super) const APPLICATION_ID: i32 = 0x7474_7462;

/// Tables of this thousand can be read and written.
const BREAKING: i64 = 1;

/// Append only. Entry N brings `user_version` from `1000 * BREAKING + N - 1` to the next.
const MIGRATIONS: &[&str] = &[include_str!("schema/1000.sql"), include_str!("schema/1001.sql")];

/// What a file turned out to be.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum State {
    /// An empty file: nobody made the table yet.
    Empty,
    /// One of ours, of an older version.
    Old,
    /// One of ours, of this version or one that only added to it.
    Current,
}

/// Looks at a file's header values and says what it is.
///
/// # Errors
/// A table of a newer version, or a database of another program; it is not touched.
pub(super) fn examine(conn: &Connection) -> Result<State> {
    let application_id: i32 = conn.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let version = version(conn)?;
    if application_id == 0 && version == 0 {
        let n_objects: i64 =
            conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        if n_objects == 0 {
            return Ok(State::Empty);
        }
    }
    if application_id != APPLICATION_ID {
        return Err(Error::storage("it is a database of another program, not a team-table")
            .hint("name another file, or move this one away; it was not touched"));
    }
    check_version(version)?;
    Ok(if version < newest() { State::Old } else { State::Current })
}

/// # Errors
/// A version with a higher thousand than this program knows.
pub(super) fn check_version(version: i64) -> Result<()> {
    if version / 1000 > BREAKING {
        return Err(Error::storage(format!(
            "the table is of version {version}; this team-table {} knows versions up to {}",
            env!("CARGO_PKG_VERSION"),
            BREAKING * 1000 + 999,
        ))
        .hint(
            "install a newer team-table and start your clients anew; the table was not touched",
        ));
    }
    Ok(())
}

pub(super) fn version(conn: &Connection) -> Result<i64> {
    let mut statement = conn.prepare_cached("PRAGMA user_version")?;
    Ok(statement.query_row([], |row| row.get(0))?)
}

/// Brings the table to this version. To be called inside an immediate transaction, in which it
/// reads the version again: another process may have been faster.
pub(super) fn migrate(tx: &Connection, now: i64) -> Result<()> {
    let state = examine(tx)?;
    if state == State::Current {
        return Ok(());
    }
    let done = if state == State::Empty { 0 } else { (version(tx)? - BREAKING * 1000 + 1).max(0) };
    let todo = MIGRATIONS.iter().skip(usize::try_from(done).unwrap_or(0));
    for sql in todo {
        tx.execute_batch(sql)?;
    }
    if state == State::Empty {
        tx.pragma_update(None, "application_id", APPLICATION_ID)?;
        super::table::found(tx, now)?;
    }
    tx.pragma_update(None, "user_version", newest())?;
    Ok(())
}

fn newest() -> i64 {
    BREAKING * 1000 + i64::try_from(MIGRATIONS.len()).unwrap_or(0) - 1
}

#[cfg(test)]
mod tests {
    use super::{State, examine, migrate, newest, version};
    use rusqlite::Connection;

    #[test]
    fn migrating_twice_changes_nothing() {
        let conn = Connection::open_in_memory().unwrap();
        assert_eq!(examine(&conn).unwrap(), State::Empty);
        migrate(&conn, 5).unwrap();
        assert_eq!(examine(&conn).unwrap(), State::Current);
        let schema = |conn: &Connection| -> Vec<String> {
            let mut s = conn.prepare("SELECT sql FROM sqlite_schema ORDER BY name").unwrap();
            s.query_map([], |row| row.get::<_, Option<String>>(0))
                .unwrap()
                .map(|sql| sql.unwrap().unwrap_or_default())
                .collect()
        };
        let first = schema(&conn);
        migrate(&conn, 6).unwrap();
        assert_eq!(schema(&conn), first);
        assert_eq!(version(&conn).unwrap(), newest());
    }

    #[test]
    fn additions_of_a_newer_version_are_accepted_and_a_break_is_not() {
        let conn = Connection::open_in_memory().unwrap();
        migrate(&conn, 5).unwrap();
        conn.pragma_update(None, "user_version", 1_900).unwrap();
        assert_eq!(examine(&conn).unwrap(), State::Current);
        conn.pragma_update(None, "user_version", 2_000).unwrap();
        let refused = examine(&conn).unwrap_err().to_string();
        assert!(refused.contains("version 2000"), "{refused}");
    }

    #[test]
    fn a_database_of_another_program_is_refused() {
        let conn = Connection::open_in_memory().unwrap();
        conn.execute_batch("CREATE TABLE t (x)").unwrap();
        let refused = examine(&conn).unwrap_err().to_string();
        assert!(refused.contains("another program"), "{refused}");
    }
}
