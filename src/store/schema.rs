//! The tables, and how a table of an older version becomes one of this version.
//!
//! `user_version` is 1000 x breaking + additive changes. A server refuses a table of a higher
//! thousand only; so an additive change must leave every statement of older versions working. Above
//! that it counts the resets, in millions: it lies in the header, which every transaction reads
//! anyway, and so each one knows whether the table is still the one of the last.

use rusqlite::Connection;

use crate::error::{Error, Result};

/// Marks the file as ours: "tttb".
pub(super) const APPLICATION_ID: i32 = 0x7474_7462;

/// Tables of this thousand can be read and written.
const BREAKING: i64 = NEWEST / 1000;

/// What a new file gets.
const TABLE: &str = include_str!("schema/table.sql");

/// Append only: what brings an older table to each version from the one before it.
const MIGRATIONS: &[(i64, &str)] = &[
    (1001, include_str!("schema/1001.sql")),
    (2000, include_str!("schema/2000.sql")),
    (3000, include_str!("schema/3000.sql")),
    (NEWEST, include_str!("schema/4000.sql")),
];

/// The version that this program makes.
pub(super) const NEWEST: i64 = 4000;

/// What `user_version` counts the resets in,
const RESET: i64 = 1_000_000;
/// and how many of them it has room for; then it begins anew.
const RESETS: i64 = 2_000;

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
    let version = version(header(conn)?);
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
    Ok(if version < NEWEST { State::Old } else { State::Current })
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

/// The version that a header is of.
pub(super) fn version(header: i64) -> i64 {
    header % RESET
}

/// Counts a reset.
pub(super) fn count_reset(conn: &Connection) -> Result<()> {
    let header = header(conn)?;
    let n_resets = (header / RESET + 1) % RESETS;
    Ok(conn.pragma_update(None, "user_version", n_resets * RESET + version(header))?)
}

/// `user_version`, as a whole.
pub(super) fn header(conn: &Connection) -> Result<i64> {
    let mut statement = conn.prepare_cached("PRAGMA user_version")?;
    Ok(statement.query_row([], |row| row.get(0))?)
}

/// Brings the table to this version. To be called inside an immediate transaction, in which it
/// reads the version again: another process may have been faster. Foreign keys have to be off: a
/// table that is made anew is dropped first.
///
/// # Errors
/// What [`examine`] refuses; and a table whose rows do not fit together afterwards.
pub(super) fn migrate(tx: &Connection, now: i64) -> Result<()> {
    let state = examine(tx)?;
    if state == State::Current {
        return Ok(());
    }
    if state == State::Empty {
        tx.execute_batch(TABLE)?;
        tx.pragma_update(None, "application_id", APPLICATION_ID)?;
        super::table::found(tx, now)?;
    } else {
        let from = version(header(tx)?);
        for (_, sql) in MIGRATIONS.iter().filter(|(to, _)| *to > from) {
            tx.execute_batch(sql)?;
        }
        if tx.prepare("PRAGMA foreign_key_check")?.exists([])? {
            let err = format!("its rows of version {from} do not fit together");
            return Err(Error::storage(err).hint(
                "it was left as it is; move it away and begin anew, or bring back a backup",
            ));
        }
    }
    tx.pragma_update(None, "user_version", NEWEST)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{
        APPLICATION_ID, MIGRATIONS, NEWEST, State, count_reset, examine, header, migrate, version,
    };
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
        assert_eq!(header(&conn).unwrap(), NEWEST);
    }

    #[test]
    fn resets_are_counted_beside_the_version() {
        let conn = Connection::open_in_memory().unwrap();
        migrate(&conn, 5).unwrap();
        let mut before = header(&conn).unwrap();
        for _ in 0..2_001 {
            count_reset(&conn).unwrap();
            let now = header(&conn).unwrap();
            assert!(now != before && version(now) == NEWEST && i32::try_from(now).is_ok());
            before = now;
        }
        assert_eq!(examine(&conn).unwrap(), State::Current);
        conn.pragma_update(None, "user_version", 7_000_000 + NEWEST + 1_000).unwrap();
        assert!(examine(&conn).unwrap_err().to_string().contains("version 5000"));
    }

    #[test]
    fn additions_of_a_newer_version_are_accepted_and_a_break_is_not() {
        let conn = Connection::open_in_memory().unwrap();
        migrate(&conn, 5).unwrap();
        conn.pragma_update(None, "user_version", NEWEST + 900).unwrap();
        assert_eq!(examine(&conn).unwrap(), State::Current);
        conn.pragma_update(None, "user_version", NEWEST + 1_000).unwrap();
        let refused = examine(&conn).unwrap_err().to_string();
        assert!(refused.contains("version 5000"), "{refused}");
    }

    /// A table as the first version made it, brought to the version before the given one.
    fn old(before: i64) -> Connection {
        let conn = Connection::open_in_memory().unwrap();
        conn.execute_batch(include_str!("schema/1000.sql")).unwrap();
        for (_, sql) in MIGRATIONS.iter().filter(|(version, _)| *version < before) {
            conn.execute_batch(sql).unwrap();
        }
        conn.pragma_update(None, "application_id", APPLICATION_ID).unwrap();
        conn.pragma_update(None, "user_version", 1000).unwrap();
        conn.pragma_update(None, "foreign_keys", false).unwrap();
        conn
    }

    /// Names, columns, keys and indexes of all tables.
    fn shape(conn: &Connection) -> Vec<String> {
        let sql = "SELECT m.name || ' ' || c.cid || ' ' || c.name || ' ' || c.type || c.pk || c.\"notnull\" || coalesce(c.dflt_value, '')
             FROM sqlite_schema m, pragma_table_xinfo(m.name) c WHERE m.type = 'table'
         UNION ALL SELECT m.name || '>' || f.\"table\" || f.\"from\" || coalesce(f.\"to\", '') || f.on_delete
             FROM sqlite_schema m, pragma_foreign_key_list(m.name) f WHERE m.type = 'table'
         UNION ALL SELECT replace(sql, char(10), '') FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL
         ORDER BY 1";
        let mut statement = conn.prepare(sql).unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }

    #[test]
    fn a_table_that_was_migrated_is_as_a_new_one() {
        let (new, old) = (Connection::open_in_memory().unwrap(), old(1001));
        migrate(&new, 5).unwrap();
        old.execute_batch("INSERT INTO about (id, epoch, began_at) VALUES (1, 7, 0)").unwrap();
        migrate(&old, 5).unwrap();
        assert_eq!(shape(&old), shape(&new));
        assert!(shape(&new).len() > 90, "{:#?}", shape(&new));
    }

    /// All rows stay, with what hangs on them, and ids go on where they were.
    #[test]
    fn a_table_of_an_older_version_keeps_its_rows_and_its_ids() {
        let conn = old(2000);
        conn.pragma_update(None, "user_version", 1001).unwrap();
        conn.execute_batch(
            "INSERT INTO about (id, epoch, began_at) VALUES (1, 7, 0);
             INSERT INTO member (name, kind, joined_at) VALUES ('ada', 'agent', 0);
             INSERT INTO message (id, sender_id, kind, audience, thread_id, body, sent_at)
             VALUES (5, 1, 'message', 'ada', 5, 'hello', 1), (6, 1, 'message', 'ada', 6, 'gone', 1);
             DELETE FROM message WHERE id = 6;
             INSERT INTO message (id, sender_id, kind, audience, reply_to, thread_id, body, sent_at)
             VALUES (4, 1, 'message', 'ada', 5, 5, 'yes', 2);
             INSERT INTO message (id, sender_id, kind, audience, reply_to, thread_id, body, sent_at, task_id)
             VALUES (2, 1, 'auto', 'ada', NULL, 2, 'task', 1, 9), (3, 1, 'message', 'ada', 2, 2, 'ok', 2, NULL);
             INSERT INTO delivery (message_id, member_id, sender_id, n_handed, handed_at, read_at)
             VALUES (4, 1, 1, 1, 3, 4), (5, 1, 1, 0, NULL, NULL);
             INSERT INTO task (id, title, creator_id, created_at, updated_at, moved_by, moved_at)
             VALUES (3, 'one', 1, 0, 0, 'ada', 0), (9, 'two', 1, 0, 0, 'ada', 0);
             INSERT INTO task_dependency (task_id, depends_on) VALUES (9, 3);
             INSERT INTO event (at, actor, kind, message_id, detail)
             VALUES (1, 'ada', 'message.sent', 5, NULL), (2, 'ada', 'message.read', 5, '#5'),
                    (3, 'ada', 'task.created', NULL, 'one');
             INSERT INTO event (at, actor, kind, task_id, detail)
             VALUES (3, 'bob', 'task.created', 9, 'two'), (3, 'team-table', 'message.sent', 9, '');
             INSERT INTO event (at, actor, kind, task_id, detail)
             VALUES (4, 'ada', 'task.claimed', 3, ''), (5, 'ada', 'task.claimed', 9, ''),
                    (6, 'ada', 'task.commented', 3, 'x');",
        )
        .unwrap();
        migrate(&conn, 5).unwrap();
        conn.pragma_update(None, "foreign_keys", true).unwrap();
        let text = |sql: &str| -> String {
            let mut statement = conn.prepare(sql).unwrap();
            let rows = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
            rows.map(Result::unwrap).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            text("SELECT id || body || thread_id FROM message"),
            "2task2 3ok2 4yes5 5hello5"
        );
        assert_eq!(text("SELECT id || '>' || answers_task FROM message WHERE answers_task"), "3>9");
        assert_eq!(text("SELECT message_id || '' FROM delivery WHERE is_read = 0"), "5");
        assert_eq!(
            text(
                "SELECT message_id || n_handed || handed_at || read_at FROM delivery WHERE is_read"
            ),
            "4134"
        );
        assert_eq!(text("SELECT id || title FROM task"), "3one 9two");
        assert_eq!(text("SELECT task_id || '>' || depends_on FROM task_dependency"), "9>3");
        assert_eq!(text("SELECT last_message || ' ' || last_task FROM about"), "6 9");
        assert_eq!(
            text("SELECT id || kind || detail || coalesce('>' || previous, '') FROM event"),
            "2message.read#5 6task.claimed 7task.claimed 8task.commentedx>6"
        );
        assert_eq!(text("SELECT id || '>' || last_event FROM task"), "3>8 9>7");
        // Under the name that the creator had, where that is known.
        assert_eq!(text("SELECT created_by FROM task"), "ada bob");
        conn.execute("DELETE FROM message WHERE id = 5", []).unwrap_err();
        conn.execute("DELETE FROM task WHERE id = 3", []).unwrap();
        assert_eq!(text("SELECT task_id || '' FROM task_dependency"), "");
    }

    #[test]
    fn a_database_of_another_program_is_refused() {
        let conn = Connection::open_in_memory().unwrap();
        conn.execute_batch("CREATE TABLE t (x)").unwrap();
        let refused = examine(&conn).unwrap_err().to_string();
        assert!(refused.contains("another program"), "{refused}");
    }
}
