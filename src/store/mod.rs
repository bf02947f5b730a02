//! What is remembered: the only module that knows SQL.
//!
//! [`Store`] opens a table and runs transactions; [`Tx`] is the only door to the rows. A write is
//! one closure in `BEGIN IMMEDIATE`, and the caller holds the turn to write (`seat::WriteTurn`).
//! Nothing but `SQLite` ever opens the database file: see `platform::file_id`.

mod checkup;
mod companions;
mod context;
mod events;
mod history;
mod hooks;
mod members;
mod messages;
mod polling;
mod reservations;
mod schema;
mod table;
mod tasks;
mod tokens;
mod web;

use std::{
    cell::Cell,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use rusqlite::{Connection, ErrorCode, OpenFlags, Row, RowIndex, TransactionBehavior};

pub use self::web::{Counts, Posted, TOKEN_LIFE};
pub use self::{
    checkup::{Checkup, Condition, LogState},
    companions::beside,
    context::{ContextChange, ContextEntry},
    events::{Event, LogLine, LogPlace},
    history::{Filter, Found},
    hooks::Waiting,
    members::{Joining, Member, Session},
    messages::{Handing, NewMessage, Sent, Shown, Standing, Unread},
    polling::Polled,
    reservations::{NewReservation, Reservation},
    table::Contents,
    tasks::{Board, Dependency, NewTask, Reply, Task, TaskChange},
    tokens::Token,
};
use crate::{
    domain::name,
    error::{Error, Kind, Result},
    platform::{self, FileId, Seen, Stamp},
};

/// For foreign programs that hold SQLite's own lock; our writers queue before they begin.
const BUSY_TIMEOUT: Duration = Duration::from_millis(50);

/// An open table.
pub struct Store {
    conn: Connection,
    path: PathBuf,
    id: FileId,
    /// The log that this connection writes to: it stays the same while one is open.
    log: Option<FileId>,
    /// That the paths of both are theirs.
    named: Seen,
    /// Which connection of this process it is.
    number: u64,
    /// The table's epoch, and the header with which it was found: see [`schema::header`].
    epoch: Cell<Option<(i64, i64)>>,
}

/// How many connections this process has opened.
static OPENED: AtomicU64 = AtomicU64::new(0);

/// See [`Store::pulse`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pulse {
    /// The counts of two connections have nothing to do with each other.
    connection: u64,
    by_others: i64,
    by_us: u64,
}

/// A transaction; every query is a method on it.
pub struct Tx<'a> {
    conn: &'a Connection,
    writable: bool,
    /// Once it is known.
    epoch: Cell<Option<i64>>,
}

impl Store {
    /// Opens a table that is there and of this version. `note` is where it is noted which log is
    /// the table's.
    ///
    /// # Errors
    /// [`Kind::NeedsWrite`] where it has to be made or migrated first ([`Store::found`]); otherwise
    /// what is wrong with the file, by name.
    pub fn open(path: &Path, note: &Path) -> Result<Store> {
        let open = || {
            if companions::log_is_of_another(path, note) {
                return Err(Error::needs_write());
            }
            let store = Store::open_as(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
            if schema::examine(&store.conn)? != schema::State::Current || !store.is_wal()? {
                return Err(Error::needs_write());
            }
            store.settled(note)
        };
        open()
            .map_err(|err| if lacks_log(path, &err) { Error::needs_write() } else { at(path, err) })
    }

    /// Opens a table, making or migrating it. The caller holds the turn to write.
    pub fn found(path: &Path, note: &Path, now: i64) -> Result<Store> {
        let prepare = || {
            companions::remove_stale(path, note)?;
            let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
            make_private(path)?;
            let mut store = Store::open_as(path, flags)?;
            // Refuse what is not ours before the switch to WAL writes to it.
            schema::examine(&store.conn)?;
            store.switch_to_wal()?;
            store.conn.pragma_update(None, "foreign_keys", false)?;
            let tx = store.conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
            schema::migrate(&tx, now)?;
            tx.commit()?;
            store.conn.pragma_update(None, "foreign_keys", true)?;
            store.settled(note)
        };
        let mut prepared = prepare();
        if prepared.as_ref().is_err_and(|err| lacks_log(path, err)) {
            companions::remove(path)?;
            prepared = prepare();
        }
        prepared.map_err(|err| at(path, err))
    }

    fn open_as(path: &Path, flags: OpenFlags) -> Result<Store> {
        // The same file before and after opening: it may be replaced at any moment.
        for _ in 0..100 {
            let Some(before) = file_id(path)? else { return Err(Error::needs_write()) };
            let conn = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
            if file_id(path)? == Some(before) {
                configure(&conn)?;
                return Ok(Store::of(conn, path, before));
            }
        }
        Err(Error::busy("the table is being replaced all the time"))
    }

    fn of(conn: Connection, path: &Path, id: FileId) -> Store {
        let number = OPENED.fetch_add(1, Ordering::Relaxed);
        Store {
            conn,
            path: path.to_owned(),
            id,
            log: None,
            named: Seen::default(),
            number,
            epoch: Cell::default(),
        }
    }

    /// By its first read `SQLite` has opened the log, by its path: that was the right one if the
    /// path still named this file afterwards.
    fn settled(mut self, note: &Path) -> Result<Store> {
        self.log = file_id(&beside(&self.path, "-wal"))?;
        if !self.is_current() {
            return Err(Error::busy("the table is being replaced"));
        }
        companions::note_log(&self.path, note);
        Ok(self)
    }

    /// Whether the path still names the file that is open here, and its log the log. What is
    /// written to a log that somebody deleted is seen by nobody who comes later.
    pub fn is_current(&self) -> bool {
        let is_there =
            |path: &Path, id| matches!(platform::file_id(path), Ok(Some(it)) if it == id);
        self.named.still(self.path.parent().and_then(Stamp::of), || {
            is_there(&self.path, self.id)
                && self.log.is_some_and(|log| is_there(&beside(&self.path, "-wal"), log))
        })
    }

    /// What changes when somebody has committed something, through this connection or another.
    pub fn pulse(&self) -> Result<Pulse> {
        let mut statement = self.conn.prepare_cached("PRAGMA data_version")?;
        let by_others = statement.query_row([], |row| row.get(0))?;
        Ok(Pulse { connection: self.number, by_others, by_us: self.conn.total_changes() })
    }

    /// Runs a transaction that only reads; a write in it fails with [`Kind::NeedsWrite`].
    pub fn read<T>(&mut self, f: impl FnOnce(&Tx<'_>) -> Result<T>) -> Result<T> {
        self.run(TransactionBehavior::Deferred, f)
    }

    /// Runs a transaction that may write. The caller holds the turn to write.
    pub fn write<T>(&mut self, f: impl FnOnce(&Tx<'_>) -> Result<T>) -> Result<T> {
        self.run(TransactionBehavior::Immediate, f)
    }

    fn run<T>(
        &mut self,
        behavior: TransactionBehavior,
        f: impl FnOnce(&Tx<'_>) -> Result<T>,
    ) -> Result<T> {
        let writable = matches!(behavior, TransactionBehavior::Immediate);
        let begin = if writable { "BEGIN IMMEDIATE" } else { "BEGIN" };
        let work = |conn: &Connection| {
            let transaction = Transaction::begin(conn, begin)?;
            let header = schema::header(conn)?;
            schema::check_version(schema::version(header))?;
            crate::fault::point("after_lock");
            let known = self.epoch.get().filter(|(at, _)| *at == header);
            let tx = Tx { conn, writable, epoch: Cell::new(known.map(|(_, epoch)| epoch)) };
            let value = f(&tx)?;
            crate::fault::point("before_commit");
            transaction.commit()?;
            self.epoch.set(tx.epoch.get().map(|epoch| (header, epoch)));
            if writable {
                crate::fault::point("after_commit");
            }
            Ok(value)
        };
        work(&self.conn).map_err(|err| at(&self.path, err))
    }

    fn is_wal(&self) -> Result<bool> {
        let mode: String = self.conn.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
        Ok(mode == "wal")
    }

    /// The switch ignores `busy_timeout`; under the turn to write only foreign programs are in the
    /// way, and the mode is read first.
    fn switch_to_wal(&self) -> Result<()> {
        if self.is_wal()? {
            return Ok(());
        }
        let mode: String =
            self.conn.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?;
        if mode == "wal" {
            return Ok(());
        }
        Err(Error::storage(format!("the write-ahead log cannot be used here (mode {mode})")).hint(
            "network disks cannot hold the table; put it on a local disk and name it with \
             --db-path or TEAM_TABLE_DB",
        ))
    }
}

/// Rolls back when it is dropped without a commit. rusqlite's own would parse its statements anew
/// each time.
struct Transaction<'a> {
    conn: &'a Connection,
}

impl<'a> Transaction<'a> {
    fn begin(conn: &'a Connection, sql: &str) -> Result<Transaction<'a>> {
        command(conn, sql)?;
        Ok(Transaction { conn })
    }

    fn commit(self) -> Result<()> {
        // Where the commit fails, dropping rolls back.
        command(self.conn, "COMMIT")
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if !self.conn.is_autocommit()
            && let Err(err) = command(self.conn, "ROLLBACK")
        {
            tracing::error!("cannot roll back: {err}");
        }
    }
}

fn command(conn: &Connection, sql: &str) -> Result<()> {
    conn.prepare_cached(sql)?.execute([])?;
    Ok(())
}

impl Tx<'_> {
    /// Whether this transaction may write.
    pub fn is_writable(&self) -> bool {
        self.writable
    }

    /// Every method that writes asks this first.
    fn writing(&self) -> Result<&Connection> {
        if self.writable { Ok(self.conn) } else { Err(Error::needs_write()) }
    }
}

fn configure(conn: &Connection) -> Result<()> {
    conn.busy_timeout(BUSY_TIMEOUT)?;
    // More than there are statements, so that none is ever prepared twice.
    conn.set_prepared_statement_cache_capacity(256);
    // A page is looked up in the log by going over all that the log has of it: with half of the 1,000
    // pages that are usual, a call is 4 % faster, and so are many at once.
    conn.execute_batch(
        "PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF; PRAGMA synchronous = NORMAL;
         PRAGMA cache_size = -1024; PRAGMA wal_autocheckpoint = 500;",
    )?;
    Ok(())
}

/// `SQLite` gives its companion files the mode of the database, so that is made first.
fn make_private(path: &Path) -> Result<()> {
    if file_id(path)?.is_some() {
        return Ok(());
    }
    platform::open_private(path).map(drop).map_err(|err| Error::io("make", path, err))
}

/// A column that holds a name or is built of names.
fn bare(row: &Row<'_>, column: impl RowIndex) -> rusqlite::Result<String> {
    row.get(column).map(name::bare)
}

fn file_id(path: &Path) -> Result<Option<FileId>> {
    platform::file_id(path).map_err(|err| Error::io("look at", path, err))
}

/// Adds to a failure of the file as a whole which file it is.
fn at(path: &Path, err: Error) -> Error {
    match err.kind() {
        Kind::Storage if !err.to_string().contains(&*path.to_string_lossy()) => {
            err.about(format_args!("cannot use `{}`", path.display()))
        }
        _ => err,
    }
}

/// The table cannot be read because its log's index is that of a log that is gone.
fn lacks_log(path: &Path, err: &Error) -> bool {
    let source = std::error::Error::source(err).and_then(|it| it.downcast_ref::<rusqlite::Error>());
    let is_io = source.is_some_and(|it| it.sqlite_error_code() == Some(ErrorCode::SystemIoFailure));
    is_io && companions::log_is_empty(path)
}

/// The number that says which operation failed.
fn code(err: &rusqlite::Error) -> String {
    err.sqlite_error().map_or_else(String::new, |err| format!(" {}", err.extended_code))
}

impl From<rusqlite::Error> for Error {
    fn from(err: rusqlite::Error) -> Error {
        match err.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                Error::busy("another program holds the table")
            }
            Some(ErrorCode::DiskFull) => Error::storage("the disk is full")
                .hint("nothing was stored; free some space and try again"),
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
                Error::storage("the table or its folder is read-only")
                    .hint("nothing was stored; make the folder writable for this user")
            }
            Some(ErrorCode::CannotOpen) => Error::storage("the file cannot be opened")
                .hint("nothing was stored; the folder has to be there, and writable for this user"),
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
                Error::storage("it is damaged, or not a database")
                    .hint("it was not touched; move it away and begin anew, or bring back a backup")
            }
            Some(ErrorCode::SystemIoFailure) => {
                Error::storage(format!("disk I/O error{}", code(&err)))
                    .hint("nothing was stored; look at the disk, then try again")
            }
            _ => Error::internal(format!("the table said: {err}")),
        }
        .source(err)
    }
}

/// How a new table would serve the statement, step by step.
///
/// # Panics
/// It is prepared anew for other values of its parameters.
#[cfg(test)]
fn plan_of(sql: &str) -> Vec<String> {
    let conn = Connection::open_in_memory().unwrap();
    schema::migrate(&conn, 0).unwrap();
    let given = |statement: &mut rusqlite::Statement<'_>, value: i64| {
        for at in 1..=statement.parameter_count() {
            statement.raw_bind_parameter(at, value).unwrap();
        }
    };
    for value in 1..4 {
        let mut statement = conn.prepare_cached(sql).unwrap();
        given(&mut statement, value);
        statement.raw_query().next().unwrap();
        assert_eq!(statement.get_status(rusqlite::StatementStatus::RePrepare), 0, "{sql}");
    }
    let mut explain = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    given(&mut explain, 1);
    let mut rows = explain.raw_query();
    let mut plan = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        plan.push(row.get("detail").unwrap());
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::Store;

    /// Who follows a table goes by its pulse. Two tables with the same past have the same counts.
    #[test]
    fn a_table_made_anew_has_another_pulse() {
        let folder = tempfile::tempdir().unwrap();
        let (path, note) = (folder.path().join("t.db"), folder.path().join("log"));
        let before = Store::found(&path, &note, 1).unwrap();
        assert_eq!(before.pulse().unwrap(), before.pulse().unwrap());
        for name in ["t.db", "t.db-wal", "t.db-shm"] {
            std::fs::remove_file(folder.path().join(name)).unwrap();
        }
        let after = Store::found(&path, &note, 1).unwrap();
        assert_ne!(after.pulse().unwrap(), before.pulse().unwrap());
    }
}
