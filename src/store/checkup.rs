//! A look at a table that leaves no trace: whoever asks what is wrong must not change it.
//!
//! Nothing waits here, and no writer waits for us. `SQLite` makes a log for a table that has none,
//! also for a reader; so such a table is opened as a file that does not change, and
//! [`Checkup::is_outdated`] tells whether one came up meanwhile.

use std::{fmt::Write as _, fs, path::Path};

use rusqlite::{Connection, OpenFlags};
use tempfile::TempDir;

use super::{Store, Tx, at, beside, companions, configure, file_id, schema};
use crate::error::{Error, Result};

/// Faults that are told of at most.
const FAULTS: usize = 5;

/// Up to this size the indexes are compared with the rows, too.
const THOROUGH_BYTES: u64 = 64 << 20;

/// A table that is open for a look.
pub struct Checkup {
    store: Store,
    is_fixed: bool,
    /// What the log beside the table is to it.
    pub log: LogState,
    /// Where copies lie, if copies are looked at.
    _copy: Option<TempDir>,
}

/// What the log beside a table is to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogState {
    /// There is none: nobody has the table open.
    Absent,
    /// Its own, and open or closed properly.
    Own,
    /// Its own, but without its index: who had it open has not closed it.
    Unindexed,
    /// Another table's; the next call removes it.
    Others,
}

/// What can be said of the file as a whole.
#[derive(Debug)]
pub struct Condition {
    pub version: i64,
    /// The version that this program makes.
    pub newest: i64,
    /// An older version, which the next call brings up to date.
    pub is_old: bool,
    /// Nothing is in it yet.
    pub is_empty: bool,
    /// What `SQLite` finds wrong with it.
    pub faults: Vec<String>,
    /// Pages in the log, and how many of them are in the file already.
    pub log_pages: Option<(i64, i64)>,
}

impl Checkup {
    /// Opens a table without making or changing anything. `note` is where it is noted which log is
    /// the table's.
    ///
    /// # Errors
    /// There is no table, or what is wrong with the file, by name.
    pub fn open(path: &Path, note: &Path) -> Result<Checkup> {
        Checkup::try_open(path, note).map_err(|err| at(path, err))
    }

    fn try_open(path: &Path, note: &Path) -> Result<Checkup> {
        let log_bytes = fs::metadata(beside(path, "-wal")).map(|meta| meta.len()).ok();
        let has_index = beside(path, "-shm").exists();
        let log = match log_bytes {
            None => LogState::Absent,
            Some(_) if companions::log_is_of_another(path, note) => LogState::Others,
            Some(0) if !has_index => LogState::Absent,
            Some(_) if !has_index => LogState::Unindexed,
            Some(_) => LogState::Own,
        };
        let (store, copy) = match log {
            LogState::Own => (open(path, "mode=ro")?, None),
            LogState::Absent | LogState::Others => (open(path, "immutable=1")?, None),
            // The index would be made anew: that is done with a copy.
            LogState::Unindexed => {
                let folder = tempfile::tempdir()
                    .map_err(|err| Error::storage("cannot make a temporary folder").source(err))?;
                let copy = folder.path().join("table");
                for suffix in ["", "-wal"] {
                    fs::copy(beside(path, suffix), beside(&copy, suffix))
                        .map_err(|err| Error::io("read", &beside(path, suffix), err))?;
                }
                (open(&copy, "mode=rw")?, Some(folder))
            }
        };
        let is_fixed = log == LogState::Absent;
        Ok(Checkup { store, is_fixed, log, _copy: copy })
    }

    /// Whether somebody began to write to a table that was opened as one that nobody writes to.
    pub fn is_outdated(&self) -> bool {
        let has_log = || fs::metadata(beside(&self.store.path, "-wal")).is_ok();
        self.is_fixed && (has_log() || self.store.id_now() != Some(self.store.id))
    }

    /// Looks at the file as a whole.
    ///
    /// # Errors
    /// A table of a newer version, a database of another program, no database at all.
    pub fn condition(&self) -> Result<Condition> {
        self.try_condition().map_err(|err| at(&self.store.path, err))
    }

    fn try_condition(&self) -> Result<Condition> {
        let conn = &self.store.conn;
        let state = schema::examine(conn)?;
        let bytes = fs::metadata(&self.store.path).map_or(0, |meta| meta.len());
        let check = if bytes <= THOROUGH_BYTES { "integrity_check" } else { "quick_check" };
        let mut faults: Vec<String> = conn
            .prepare(&format!("PRAGMA {check}({FAULTS})"))?
            .query_map([], |row| row.get::<_, String>(0))?
            .collect::<rusqlite::Result<_>>()?;
        faults.retain(|fault| fault != "ok");
        if faults.is_empty() {
            let mut lost = conn.prepare("PRAGMA foreign_key_check")?;
            let lost = lost.query_map([], |row| {
                Ok(format!(
                    "a row of `{}` belongs to one of `{}` that is not there",
                    row.get::<_, String>(0)?,
                    row.get::<_, String>(2)?
                ))
            })?;
            faults = lost.take(FAULTS).collect::<rusqlite::Result<_>>()?;
            faults.dedup();
        }
        Ok(Condition {
            version: schema::version(schema::header(conn)?),
            newest: schema::NEWEST,
            is_old: state == schema::State::Old,
            is_empty: state == schema::State::Empty,
            faults,
            log_pages: self.log_pages().unwrap_or(None),
        })
    }

    fn log_pages(&self) -> Result<Option<(i64, i64)>> {
        if self.log != LogState::Own {
            return Ok(None);
        }
        let pages = self
            .store
            .conn
            .query_row("PRAGMA wal_checkpoint(NOOP)", [], |row| Ok((row.get(1)?, row.get(2)?)))?;
        Ok(Some(pages).filter(|(all, _)| *all >= 0))
    }

    /// Runs a transaction that only reads.
    pub fn read<T>(&mut self, f: impl FnOnce(&Tx<'_>) -> Result<T>) -> Result<T> {
        self.store.read(f)
    }
}

/// `mode=ro` or the like; the path goes into an address, so all of it that could mean something
/// there is escaped.
fn open(path: &Path, mode: &str) -> Result<Store> {
    let Some(id) = file_id(path)? else { return Err(Error::needs_write()) };
    let mut address = String::from("file:");
    if cfg!(windows) {
        address.push('/');
    }
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'\\' if cfg!(windows) => address.push('/'),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => {
                address.push(char::from(*byte));
            }
            b':' if cfg!(windows) => address.push(':'),
            byte => {
                // Writing to a String cannot fail.
                let _written = write!(address, "%{byte:02X}");
            }
        }
    }
    address.extend(["?", mode]);
    let flags = OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let access = if mode == "mode=rw" {
        OpenFlags::SQLITE_OPEN_READ_WRITE
    } else {
        OpenFlags::SQLITE_OPEN_READ_ONLY
    };
    let conn = Connection::open_with_flags(address, flags | access)?;
    configure(&conn)?;
    Ok(Store::of(conn, path, id))
}

impl Store {
    fn id_now(&self) -> Option<crate::platform::FileId> {
        file_id(&self.path).ok().flatten()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Checkup, LogState};
    use crate::store::{Store, beside};

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_look_makes_no_file_and_sees_all() {
        let folder = tempfile::tempdir().unwrap();
        // Characters that mean something in an address.
        let path = folder.path().join("a?b#c %41.db");
        let note = folder.path().join("log");
        let store = Store::found(&path, &note, 1).unwrap();
        let check = |log: LogState| {
            let before = names(folder.path());
            let mut look = Checkup::open(&path, &note).unwrap();
            assert_eq!(look.log, log);
            let condition = look.condition().unwrap();
            assert!(condition.faults.is_empty(), "{condition:?}");
            assert!(!condition.is_old && !condition.is_empty);
            assert_eq!(look.read(|tx| Ok(tx.members()?.len())).unwrap(), 1);
            assert!(!look.is_outdated());
            drop(look);
            assert_eq!(names(folder.path()), before);
        };
        check(LogState::Own);
        // As after a crash and a clean-up of half of what it left.
        let (copy, other) = (folder.path().join("copy.db"), folder.path().join("log-2"));
        for suffix in ["", "-wal"] {
            std::fs::copy(beside(&path, suffix), beside(&copy, suffix)).unwrap();
        }
        let mut look = Checkup::open(&copy, &other).unwrap();
        assert_eq!(look.log, LogState::Unindexed);
        assert_eq!(look.read(|tx| Ok(tx.members()?.len())).unwrap(), 1);
        drop(look);
        assert!(!beside(&copy, "-shm").exists());
        drop(store);
        check(LogState::Absent);
        let look = Checkup::open(&path, &note).unwrap();
        let _store = Store::open(&path, &note).unwrap();
        assert!(look.is_outdated(), "somebody has come");
    }

    #[test]
    fn what_is_no_table_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let open = || Checkup::open(&path, &folder.path().join("log"));
        assert!(open().is_err());
        crate::platform::write_atomic(&path, b"").unwrap();
        assert!(open().unwrap().condition().unwrap().is_empty);
        crate::platform::write_atomic(&path, &[b'x'; 5_000]).unwrap();
        let err = open().and_then(|look| look.condition()).unwrap_err().to_string();
        assert!(err.contains("not a database"), "{err}");
    }
}
