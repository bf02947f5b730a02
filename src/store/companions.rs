//! `SQLite`'s files beside the table, and whether they belong to it.
//!
//! A write-ahead log does not say which database it is of. Where somebody puts another table in the
//! place of one whose log is still there, `SQLite` would read the old log over the new table, and in
//! time write it into it. So a note beside the seats says which log is of which file.

use std::{
    fs,
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
};

use crate::{
    error::{Error, Result},
    platform,
};

/// A note is shorter.
const NOTE_BYTES: u64 = 1_024;

/// `comms.db` -> `comms.db-wal`.
pub fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Whether the log beside the table is known to be another table's. A table that has a log of its
/// own has its first page in the file, too.
pub(super) fn log_is_of_another(path: &Path, note: &Path) -> bool {
    let Some((table, log)) = stamps(path) else { return false };
    if fs::metadata(path).is_ok_and(|meta| meta.len() == 0) {
        return true;
    }
    let Ok(noted) = noted(note) else { return false };
    noted.split_once(' ').is_some_and(|(of, noted_log)| noted_log == log && of != table)
}

fn noted(note: &Path) -> io::Result<String> {
    let mut text = String::new();
    platform::open_to_read(note)?.take(NOTE_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

/// Notes that the log is this table's. To be called when `SQLite` has it open.
pub(super) fn note_log(path: &Path, note: &Path) {
    let Some((table, log)) = stamps(path) else { return };
    let text = format!("{table} {log}");
    if noted(note).is_ok_and(|noted| noted == text) {
        return;
    }
    let written = platform::open_private(note).and_then(|mut file| {
        file.set_len(0)?;
        file.write_all(text.as_bytes())
    });
    if let Err(err) = written {
        // Without it a replaced table may be read with the old log; nothing else is lost.
        tracing::debug!("cannot write {}: {err}", note.display());
    }
}

/// A log without its database belongs to a file that somebody deleted; with it in place, a new
/// database cannot be opened (disk I/O error, tried).
pub(super) fn remove_stale(path: &Path, note: &Path) -> Result<()> {
    if path.exists() && !log_is_of_another(path, note) {
        return Ok(());
    }
    remove(path)
}

/// The log is there and holds nothing. Where its index says otherwise, it is the index of a log that
/// somebody deleted, and the table cannot be read (disk I/O error, tried).
pub(super) fn log_is_empty(path: &Path) -> bool {
    fs::metadata(beside(path, "-wal")).is_ok_and(|meta| meta.len() == 0)
}

/// Removes what lies beside the table. The caller holds the turn to write, and knows that nothing of
/// it belongs to the table.
pub(super) fn remove(path: &Path) -> Result<()> {
    for suffix in ["-wal", "-shm", "-journal"] {
        let beside = beside(path, suffix);
        match fs::remove_file(&beside) {
            Err(err) if err.kind() != io::ErrorKind::NotFound => {
                return Err(Error::io("remove the left-over", &beside, err));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Which file the table is, and which its log; `None` where one is missing.
fn stamps(path: &Path) -> Option<(String, String)> {
    Some((platform::file_stamp(path)?, platform::file_stamp(&beside(path, "-wal"))?))
}
