//! Seats, bells and the queue of writers: everything that is a file beside the table.
//!
//! A seat is held by an exclusive lock on `seat-NAME.lock` for the life of a session, so that the
//! kernel frees it when the process dies. The lock files are never deleted. `fs2` is used here
//! alone, and called qualified: with its trait in scope some names resolve to std's methods of
//! another meaning.

use std::{
    cell::RefCell,
    fs::File,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::Duration,
};

use tokio::sync::oneshot;

use crate::{
    domain::name::MemberName,
    error::{Error, Result},
    platform::{self, FileId, Folder, Seen, Stamp},
};

/// A claim is tried for so long when only lookers are in its way, who hold a lock for microseconds.
const CLAIM_TRIES: u32 = 50;
const BETWEEN_TRIES: Duration = Duration::from_millis(1);

/// The folder of seats of one table.
#[derive(Debug)]
pub struct Seats {
    folder: PathBuf,
    /// `write.lock`, kept open: a writer comes along with every call.
    write_file: Option<Arc<LockFile>>,
    /// Where the turn is that is being used.
    in_turn: Option<Here>,
    /// The seat that was last looked at: mostly it is the next one, too.
    last_look: RefCell<Option<Look>>,
    waiter: Option<Waiter>,
}

/// A thread that stands in line for turns to write, kept for the next time: starting one costs as
/// much as a call.
#[derive(Debug)]
struct Waiter {
    requests: mpsc::Sender<oneshot::Sender<Result<WriteTurn>>>,
    is_waiting: Arc<AtomicBool>,
}

/// A file that was opened to look at its lock.
#[derive(Debug)]
struct Look {
    name: String,
    file: File,
    /// That the name is the file's.
    named: Seen,
}

/// An open lock file, and which one it was when it was opened.
#[derive(Debug)]
struct LockFile {
    path: PathBuf,
    file: File,
    id: FileId,
    /// That the path is the file's.
    named: Seen,
    /// The folder that it lies in, for `write.lock` alone.
    folder: Option<Folder>,
}

/// A seat, or the place of a member's poll daemon, that this process holds until it is dropped.
#[derive(Debug)]
pub struct Seat {
    name: MemberName,
    lock: LockFile,
}

/// The right to write to the table, given back when it is dropped.
#[derive(Debug)]
pub struct WriteTurn {
    here: Here,
}

/// The lock of a turn, and the stamp of its folder when the turn came.
#[derive(Debug, Clone)]
struct Here {
    lock: Arc<LockFile>,
    stamp: Option<Stamp>,
}

impl Seats {
    pub fn new(folder: PathBuf) -> Seats {
        Seats {
            folder,
            write_file: None,
            in_turn: None,
            last_look: RefCell::default(),
            waiter: None,
        }
    }

    /// Takes the seat of `name`; `None` where a session sits there.
    ///
    /// # Errors
    /// The lock file cannot be made or locked at all.
    pub fn claim(&self, name: &MemberName) -> Result<Option<Seat>> {
        Seats::claim_at(&self.lock_path(name), name)
    }

    fn claim_at(path: &Path, name: &MemberName) -> Result<Option<Seat>> {
        for _ in 0..CLAIM_TRIES {
            let lock = LockFile::open(path)?;
            if try_lock(&lock.file, path)? {
                let seat = Seat { name: name.clone(), lock };
                if seat.is_current() {
                    return Ok(Some(seat));
                }
                // The file was replaced between opening and locking it: try the new one.
                continue;
            }
            if !is_free(&lock.file, path)? {
                return Ok(None);
            }
            // Only a looker was in the way, and it is gone by now.
            std::thread::sleep(BETWEEN_TRIES);
        }
        Ok(None)
    }

    /// Takes the one place of this kind (`wake`, `poll`) beside the seat of `name`, as a seat is
    /// claimed; `None` where another process has it.
    ///
    /// # Errors
    /// The lock file cannot be made or locked at all.
    pub fn place_beside(&self, name: &MemberName, kind: &str) -> Result<Option<Seat>> {
        Seats::claim_at(&self.folder.join(format!("{kind}-{}.lock", name.key())), name)
    }

    /// Whether a session sits on the seat of `name`. A look takes a shared lock, so that lookers
    /// never see each other.
    pub fn is_held(&self, name: &MemberName) -> bool {
        let path = self.lock_path(name);
        let held = |file: &File| matches!(is_free(file, &path), Ok(false));
        let looked = match self.open_folder() {
            Some(folder) => self.look(folder, lock_name(name), held),
            None => platform::open_to_read(&path).map(|file| held(&file)),
        };
        // Whoever cannot look, such as a process with too many files open, takes nothing from
        // somebody who may sit there.
        looked.unwrap_or_else(|err| err.kind() != io::ErrorKind::NotFound)
    }

    /// What `held` says of the file of this name in the folder. The file stays open for the next look.
    ///
    /// # Errors
    /// It cannot be opened; [`io::ErrorKind::NotFound`] where there is none.
    fn look(
        &self,
        folder: &Folder,
        name: String,
        held: impl FnOnce(&File) -> bool,
    ) -> io::Result<bool> {
        let stamp = self.stamp();
        let mut last = self.last_look.borrow_mut();
        let look = match last.take().filter(|look| look.name == name) {
            Some(mut look) => {
                let mut opened = Ok(());
                look.named.still(stamp, || {
                    opened = folder.open_to_look(&look.name).map(|file| look.file = file);
                    opened.is_ok()
                });
                opened?;
                look
            }
            None => Look { file: folder.open_to_look(&name)?, name, named: Seen::default() },
        };
        let is_held = held(&look.file);
        *last = stamp.map(|_| look);
        Ok(is_held)
    }

    /// The names on whose seats sessions sit, in small letters; nobody where there is no folder.
    pub fn held(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| {
            let file = entry.file_name().into_string().ok()?;
            MemberName::any(file.strip_prefix("seat-")?.strip_suffix(".lock")?).ok()
        });
        let mut held: Vec<String> =
            names.filter(|name| self.is_held(name)).map(|name| name.to_string()).collect();
        held.sort();
        held
    }

    /// The file that a waiting process watches, made where it is missing.
    pub fn bell(&self, name: &MemberName) -> Result<PathBuf> {
        let path = self.bell_path(name);
        let made = platform::open_private(&path).map(drop);
        made.map_err(|err| Error::io("make", &path, err))?;
        Ok(path)
    }

    /// Wakes who waits for mail of `name`. To be called after the commit. Windows reports a write
    /// when the handle is closed, so the bell is opened anew each time.
    pub fn ring(&self, name: &MemberName) {
        let bell = match self.open_folder() {
            Some(folder) => folder.open_to_write(&bell_name(name)),
            None => platform::open_to_write(&self.bell_path(name)),
        };
        if let Err(err) = bell.and_then(|mut bell| bell.write_all(b"!"))
            && err.kind() != io::ErrorKind::NotFound
        {
            // A waiter has its slow look beside the bell; nothing is lost.
            tracing::debug!("cannot ring the bell of {name}: {err}");
        }
    }

    /// The turn to write, if nobody else has it.
    pub fn try_turn(&mut self) -> Result<Option<WriteTurn>> {
        let lock = if let Some(lock) = &self.write_file {
            Arc::clone(lock)
        } else {
            let lock = LockFile::open_in(&self.folder)?;
            Arc::clone(self.write_file.insert(Arc::new(lock)))
        };
        Ok(try_lock(&lock.file, &lock.path)?.then(|| WriteTurn::of(lock)))
    }

    /// What follows is done in this turn, which [`WriteTurn::is_current`]; or in none any more.
    pub fn use_turn(&mut self, turn: Option<&WriteTurn>) {
        self.in_turn = turn.map(|turn| turn.here.clone());
    }

    /// Whether the path still names the file whose lock the seat is. Somebody may have deleted the
    /// folder, and then another session can sit on a seat of the same name.
    pub fn has(&self, seat: &Seat) -> bool {
        seat.lock.is_current(self.stamp())
    }

    /// The folder that is there, if it is the one that was opened with the lock.
    fn open_folder(&self) -> Option<&Folder> {
        let stamp = self.stamp()?;
        self.in_turn.as_ref()?.lock.folder.as_ref().filter(|folder| folder.is_of(stamp))
    }

    /// Of the folder that is there, in a turn.
    fn stamp(&self) -> Option<Stamp> {
        self.in_turn.as_ref()?.stamp
    }

    /// Whether somebody has the turn to write. The look makes no file.
    pub fn turn_is_taken(&self) -> bool {
        let path = self.write_path();
        platform::open_to_read(&path).is_ok_and(|file| matches!(is_free(&file, &path), Ok(false)))
    }

    /// Waits in line for the turn to write, on a thread of its own. A turn that comes when the
    /// receiver is gone is given back.
    pub fn wait_for_turn(&mut self) -> oneshot::Receiver<Result<WriteTurn>> {
        let (sender, receiver) = oneshot::channel();
        // A thread that still stands in line for somebody who gave up is left to itself.
        let waiter = self.waiter.take().filter(|waiter| !waiter.is_waiting.load(Ordering::Acquire));
        let waiter =
            self.waiter.insert(waiter.unwrap_or_else(|| Waiter::start(self.folder.clone())));
        if let Err(mpsc::SendError(sender)) = waiter.requests.send(sender) {
            let gone = Error::internal("the thread that waits for turns is gone");
            // Who asked holds the receiver, so that this arrives.
            let _told = sender.send(Err(gone));
        }
        receiver
    }

    /// Forgets the open `write.lock`: the folder was replaced.
    pub fn forget_turns(&mut self) {
        self.write_file = None;
        self.in_turn = None;
        self.waiter = None;
    }

    fn lock_path(&self, name: &MemberName) -> PathBuf {
        self.folder.join(lock_name(name))
    }

    fn bell_path(&self, name: &MemberName) -> PathBuf {
        self.folder.join(bell_name(name))
    }

    fn write_path(&self) -> PathBuf {
        self.folder.join(WRITE)
    }
}

const WRITE: &str = "write.lock";

/// The prefix keeps Windows' devices (`con`, `nul`) files like any other.
fn lock_name(name: &MemberName) -> String {
    format!("seat-{}.lock", name.key())
}

fn bell_name(name: &MemberName) -> String {
    format!("{}.bell", name.key())
}

impl Seat {
    pub fn name(&self) -> &MemberName {
        &self.name
    }

    /// Whether the path still names the file whose lock we hold; in a turn, [`Seats::has`] is faster.
    pub fn is_current(&self) -> bool {
        self.lock.is_current(None)
    }
}

impl WriteTurn {
    fn of(lock: Arc<LockFile>) -> WriteTurn {
        WriteTurn { here: Here { stamp: lock.stamp(), lock } }
    }

    /// Whether it is the turn at the table that was there when it came.
    pub fn is_current(&self) -> bool {
        self.here.lock.is_current(self.here.stamp)
    }
}

impl Waiter {
    fn start(folder: PathBuf) -> Waiter {
        let (requests, incoming) = mpsc::channel::<oneshot::Sender<Result<WriteTurn>>>();
        let is_waiting = Arc::new(AtomicBool::new(false));
        let waiting = Arc::clone(&is_waiting);
        std::thread::spawn(move || {
            let mut lock = None;
            // Ends when the sender is gone.
            while let Ok(request) = incoming.recv() {
                waiting.store(true, Ordering::Release);
                let turn = stand_in_line(&folder, &mut lock);
                waiting.store(false, Ordering::Release);
                // Who stopped waiting has dropped the receiver; the turn is dropped with it.
                drop(request.send(turn));
            }
        });
        Waiter { requests, is_waiting }
    }
}

fn stand_in_line(folder: &Path, kept: &mut Option<Arc<LockFile>>) -> Result<WriteTurn> {
    let lock = match kept.take().filter(|lock| lock.is_current(lock.stamp())) {
        Some(lock) => lock,
        None => Arc::new(LockFile::open_in(folder)?),
    };
    let locked = fs2::FileExt::lock_exclusive(&lock.file);
    locked.map_err(|err| Error::io("lock", &lock.path, err))?;
    *kept = Some(Arc::clone(&lock));
    Ok(WriteTurn::of(lock))
}

impl LockFile {
    fn open(path: &Path) -> Result<LockFile> {
        let file = platform::open_private(path).map_err(|err| unwritable(path, err))?;
        let id = platform::open_file_id(&file).map_err(|err| Error::io("look at", path, err))?;
        Ok(LockFile { path: path.to_owned(), file, id, named: Seen::default(), folder: None })
    }

    /// `write.lock`, with the folder that it lies in.
    fn open_in(folder: &Path) -> Result<LockFile> {
        let lock = LockFile::open(&folder.join(WRITE))?;
        Ok(LockFile { folder: Folder::open(folder).ok(), ..lock })
    }

    fn stamp(&self) -> Option<Stamp> {
        self.path.parent().and_then(Stamp::of)
    }

    /// Whether the path still names the file. `stamp` is that of its folder, taken just before.
    fn is_current(&self, stamp: Option<Stamp>) -> bool {
        let look = || matches!(platform::file_id(&self.path), Ok(Some(id)) if id == self.id);
        self.named.still(stamp, look)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Err(err) = fs2::FileExt::unlock(&self.lock.file) {
            tracing::debug!("cannot free the seat of {}: {err}", self.name);
        }
    }
}

impl Drop for WriteTurn {
    fn drop(&mut self) {
        if let Err(err) = fs2::FileExt::unlock(&self.here.lock.file) {
            tracing::warn!("cannot free the write lock: {err}");
        }
    }
}

fn unwritable(path: &Path, err: io::Error) -> Error {
    let forbidden =
        matches!(err.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem);
    let named = Error::io("make", path, err);
    if !forbidden {
        return named;
    }
    named.hint(
        "the table's folder has to be writable for this process; a sandboxed shell may not write \
         there, and an agent then uses its team-table tools instead",
    )
}

fn try_lock(file: &File, path: &Path) -> Result<bool> {
    locked(fs2::FileExt::try_lock_exclusive(file), path)
}

/// Whether nobody holds the lock of `file`, but for others who look. Closing the file would not
/// end the look: a program that is being started has a copy of it for a moment.
fn is_free(file: &File, path: &Path) -> Result<bool> {
    let free = locked(fs2::FileExt::try_lock_shared(file), path)?;
    if free {
        fs2::FileExt::unlock(file).map_err(|err| Error::io("unlock", path, err))?;
    }
    Ok(free)
}

fn locked(tried: io::Result<()>, path: &Path) -> Result<bool> {
    match tried {
        Ok(()) => Ok(true),
        // Not by the kind: on Windows it is the one of all errors that std has no word for.
        Err(err) if err.raw_os_error() == fs2::lock_contended_error().raw_os_error() => Ok(false),
        Err(err) => Err(Error::io("lock", path, err)
            .hint("the table needs a file system with file locks; some network disks have none")),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Seats, is_free};
    use crate::{domain::name::MemberName, platform};

    fn name(text: &str) -> MemberName {
        MemberName::parse(text).unwrap()
    }

    #[test]
    fn a_seat_is_held_once_and_freed_when_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let seats = Seats::new(folder.path().to_owned());
        assert!(!seats.is_held(&name("ada")));
        let seat = seats.claim(&name("ada")).unwrap().unwrap();
        assert!(seats.is_held(&name("ADA")), "names are one ignoring case");
        assert_eq!(seats.held(), ["ada"]);
        assert!(seats.claim(&name("Ada")).unwrap().is_none());
        drop(seat);
        assert!(!seats.is_held(&name("ada")) && seats.held().is_empty());
        assert!(seats.claim(&name("con")).unwrap().is_some(), "a device name on Windows");
    }

    #[test]
    fn a_look_ends_though_a_copy_of_the_file_lives_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seat-ada.lock");
        let file = platform::open_private(&path).unwrap();
        // What a child has between fork and exec.
        let _copy = file.try_clone().unwrap();
        assert!(is_free(&file, &path).unwrap());
        drop(file);
        let seats = Seats::new(folder.path().to_owned());
        assert!(seats.claim(&name("ada")).unwrap().is_some(), "nobody looks any more");
    }

    #[cfg(unix)]
    #[test]
    fn a_seat_that_cannot_be_looked_at_counts_as_held() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seat-ada.lock");
        std::os::unix::fs::symlink(&path, &path).unwrap();
        let seats = Seats::new(folder.path().to_owned());
        assert!(seats.is_held(&name("ada")) && !seats.is_held(&name("bob")));
    }

    #[test]
    fn a_lock_on_a_deleted_file_does_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let seats = Seats::new(folder.path().to_owned());
        let seat = seats.claim(&name("ada")).unwrap().unwrap();
        assert!(seat.is_current());
        std::fs::remove_file(folder.path().join("seat-ada.lock")).unwrap();
        assert!(!seat.is_current());
        assert!(seats.claim(&name("ada")).unwrap().is_some(), "a newcomer sits down at once");
        assert!(!seat.is_current());
    }

    /// In a turn a seat's file stays open for the next look, and a name that has been seen for a while
    /// is not looked for: not where somebody has touched it.
    #[test]
    fn looks_in_a_turn_see_what_was_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let mut seats = Seats::new(folder.path().to_owned());
        let mine = seats.claim(&name("ada")).unwrap().unwrap();
        let others = Seats::new(folder.path().to_owned());
        let bob = others.claim(&name("bob")).unwrap();
        let mut look = |held: bool, current: bool| {
            for _ in 0..3 {
                let turn = seats.try_turn().unwrap().unwrap();
                assert!(turn.is_current());
                seats.use_turn(Some(&turn));
                assert_eq!((seats.is_held(&name("bob")), seats.has(&mine)), (held, current));
                std::thread::sleep(Duration::from_millis(100));
            }
        };
        look(true, true);
        drop(bob);
        look(false, true);
        let path = folder.path().join("seat-bob.lock");
        std::fs::rename(&path, folder.path().join("old")).unwrap();
        let _bob = others.claim(&name("bob")).unwrap().unwrap();
        look(true, true);
        std::fs::remove_file(path).unwrap();
        look(false, true);
        std::fs::rename(folder.path().join("seat-ada.lock"), folder.path().join("old")).unwrap();
        look(false, false);
    }

    #[test]
    fn turns_to_write_come_one_after_another() {
        let folder = tempfile::tempdir().unwrap();
        let mut seats = Seats::new(folder.path().to_owned());
        let mut other = Seats::new(folder.path().to_owned());
        let turn = seats.try_turn().unwrap().unwrap();
        assert!(other.try_turn().unwrap().is_none());
        let waiting = other.wait_for_turn();
        drop(turn);
        let turn = waiting.blocking_recv().unwrap().unwrap();
        assert!(seats.try_turn().unwrap().is_none());
        drop(turn);
        assert!(seats.try_turn().unwrap().is_some());
    }
}
