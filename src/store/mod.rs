//! What is remembered: the only module that knows SQL.
//!
//! [`Store`] opens a table and runs transactions; [`Tx`] is the only door to the rows. A write is
//! one closure in `BEGIN IMMEDIATE`, and the caller holds the turn to write (`seat::WriteTurn`).
//! Nothing but `SQLite` ever opens the database file: see `platform::file_id`.

mod events;
mod members;
mod messages;
mod schema;
mod table;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

pub use self::{
    events::{Event, LogLine},
    members::{Joining, Member, Sitting},
    messages::{Filter, Handing, NewMessage, Sent, Shown, Standing, Unread},
};
use crate::{
    error::{Error, Kind, Result},
    platform::{self, FileId},
};

/// For foreign programs that hold SQLite's own lock; our writers queue before they begin.
const BUSY_TIMEOUT: Duration = Duration::from_millis(50);

/// An open table.
pub struct Store {
    conn: Connection,
    path: PathBuf,
    id: FileId,
}

/// A transaction; every query is a method on it.
pub struct Tx<'a> {
    conn: &'a Connection,
    writable: bool,
}

impl Store {
    /// Opens a table that is there and of this version.
    ///
    /// # Errors
    /// [`Kind::NeedsWrite`] where it has to be made or migrated first ([`Store::found`]); otherwise
    /// what is wrong with the file, by name.
    pub fn open(path: &Path) -> Result<Store> {
        Store::open_as(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
            .and_then(|store| match schema::examine(&store.conn)? {
                schema::State::Current if store.is_wal()? => Ok(store),
                _ => Err(Error::needs_write()),
            })
            .map_err(|err| at(path, err))
    }

    /// Opens a table, making or migrating it. The caller holds the turn to write.
    pub fn found(path: &Path, now: i64) -> Result<Store> {
        let prepare = || {
            remove_stale(path)?;
            let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
            make_private(path)?;
            let mut store = Store::open_as(path, flags)?;
            // Refuse what is not ours before the switch to WAL writes to it.
            schema::examine(&store.conn)?;
            store.switch_to_wal()?;
            let tx = store.conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
            schema::migrate(&tx, now)?;
            tx.commit()?;
            Ok(store)
        };
        prepare().map_err(|err| at(path, err))
    }

    fn open_as(path: &Path, flags: OpenFlags) -> Result<Store> {
        // The same file before and after opening: it may be replaced at any moment.
        for _ in 0..100 {
            let Some(before) = file_id(path)? else { return Err(Error::needs_write()) };
            let conn = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
            if file_id(path)? == Some(before) {
                configure(&conn)?;
                return Ok(Store { conn, path: path.to_owned(), id: before });
            }
        }
        Err(Error::busy("the table is being replaced all the time"))
    }

    /// Whether the path still names the file that is open here.
    pub fn is_current(&self) -> bool {
        matches!(platform::file_id(&self.path), Ok(Some(id)) if id == self.id)
    }

    /// A number that changes when another process has committed something.
    pub fn data_version(&self) -> Result<i64> {
        let mut statement = self.conn.prepare_cached("PRAGMA data_version")?;
        Ok(statement.query_row([], |row| row.get(0))?)
    }

    /// Runs a transaction that only reads; a write in it fails with [`Kind::NeedsWrite`].
    pub fn read<T>(&mut self, f: impl FnOnce(&Tx<'_>) -> Result<T>) -> Result<T> {
        self.run("BEGIN", f)
    }

    /// Runs a transaction that may write. The caller holds the turn to write.
    pub fn write<T>(&mut self, f: impl FnOnce(&Tx<'_>) -> Result<T>) -> Result<T> {
        self.run("BEGIN IMMEDIATE", f)
    }

    fn run<T>(&mut self, begin: &str, f: impl FnOnce(&Tx<'_>) -> Result<T>) -> Result<T> {
        let writable = begin == "BEGIN IMMEDIATE";
        let work = |conn: &Connection| {
            let transaction = Transaction::begin(conn, begin)?;
            schema::check_version(schema::version(conn)?)?;
            crate::fault::point("after_lock");
            let value = f(&Tx { conn, writable })?;
            crate::fault::point("before_commit");
            transaction.commit()?;
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

    /// Runs `f`; what it wrote is undone where it fails, and the transaction goes on.
    pub fn attempt<T>(&self, f: impl FnOnce() -> Result<T>) -> Result<T> {
        if !self.writable {
            return f();
        }
        command(self.conn, "SAVEPOINT attempt")?;
        let result = f();
        if result.is_err() {
            command(self.conn, "ROLLBACK TO attempt")?;
        }
        command(self.conn, "RELEASE attempt")?;
        result
    }

    /// Every method that writes asks this first.
    fn writing(&self) -> Result<&Connection> {
        if self.writable { Ok(self.conn) } else { Err(Error::needs_write()) }
    }
}

fn configure(conn: &Connection) -> Result<()> {
    conn.busy_timeout(BUSY_TIMEOUT)?;
    conn.set_prepared_statement_cache_capacity(64);
    conn.execute_batch(
        "PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF; PRAGMA synchronous = NORMAL;
         PRAGMA cache_size = -1024;",
    )?;
    Ok(())
}

/// A log without its database belongs to a file that somebody deleted; with it in place, a new
/// database cannot be opened (disk I/O error, tried).
fn remove_stale(path: &Path) -> Result<()> {
    if file_id(path)?.is_some() {
        return Ok(());
    }
    for suffix in ["-wal", "-shm", "-journal"] {
        let beside = beside(path, suffix);
        match std::fs::remove_file(&beside) {
            Err(err) if err.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::io("remove the left-over", &beside, err));
            }
            _ => {}
        }
    }
    Ok(())
}

/// `SQLite` gives its companion files the mode of the database, so that is made first.
fn make_private(path: &Path) -> Result<()> {
    if file_id(path)?.is_some() {
        return Ok(());
    }
    platform::open_private(path).map(drop).map_err(|err| Error::io("make", path, err))
}

/// `comms.db` -> `comms.db-wal`.
pub fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn file_id(path: &Path) -> Result<Option<FileId>> {
    platform::file_id(path).map_err(|err| Error::io("look at", path, err))
}

/// Adds to a failure of the file as a whole which file it is.
fn at(path: &Path, err: Error) -> Error {
    match err.kind() {
        Kind::Storage if !err.to_string().contains(&*path.to_string_lossy()) => {
            let named = Error::storage(format!("cannot use `{}`: {err}", path.display()));
            match err.hint_text() {
                Some(hint) => named.hint(hint),
                None => named,
            }
            .source(err)
        }
        _ => err,
    }
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
            Some(ErrorCode::SystemIoFailure) => Error::storage(format!("disk I/O error ({err})"))
                .hint("nothing was stored; look at the disk, then try again"),
            _ => Error::internal(format!("the table said: {err}")),
        }
        .source(err)
    }
}
