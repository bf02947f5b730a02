//! Files in a folder that is open, and whether their names are still theirs.

use std::{
    fs::File,
    io,
    path::Path,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use super::FileId;

/// Two changes of a folder within this time may bear the same time: a kernel's clock for files ticks
/// every 1 to 10 ms.
const TICK: Duration = Duration::from_millis(50);

/// Which folder a path names, and when a name in it was last given, taken or changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    folder: FileId,
    /// In seconds and nanoseconds. It cannot be set, as the time of modification can.
    changed: (i64, i64),
}

impl Stamp {
    /// `None` where the path names nothing, or where a time would not tell two changes apart.
    #[cfg(unix)]
    pub fn of(path: &Path) -> Option<Stamp> {
        use std::os::unix::fs::MetadataExt as _;
        /// In nanoseconds. A time that is a multiple of this is of a file system that knows no finer
        /// ones: `FAT` counts in 2 s, `exFAT` in 10 ms.
        const COARSE: i64 = 10_000_000;
        let meta = path.metadata().ok()?;
        let changed = (meta.ctime(), meta.ctime_nsec());
        (changed.1 % COARSE != 0).then_some(Stamp { folder: super::id_of(&meta), changed })
    }

    /// `None`: when a folder was changed, std tells nobody here.
    #[cfg(not(unix))]
    pub fn of(_path: &Path) -> Option<Stamp> {
        None
    }
}

/// What was seen of a name. It holds as long as the path of its folder names the same one, and no name
/// in it changes: one look at the folder serves for all names in it.
///
/// The folder's stamp, since when it is known, and whether a look came a tick later. Behind a lock,
/// since the thread that stands in line has a lock file in common with who uses its turn.
#[derive(Debug, Default)]
pub struct Seen(Mutex<Option<(Stamp, Instant, bool)>>);

impl Seen {
    /// Whether what `look` looks for is still so. `stamp` is the folder's, taken just before; without
    /// one, `look` looks each time.
    pub fn still(&self, stamp: Option<Stamp>, look: impl FnOnce() -> bool) -> bool {
        let Some(stamp) = stamp else { return look() };
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = seen.take().filter(|(at, ..)| *at == stamp);
        if let Some((_, _, true)) = before {
            *seen = before;
            return true;
        }
        // A change right behind the one of the stamp may bear the same time: what counts is a look
        // that is later than that.
        let now = Instant::now();
        let since = before.map_or(now, |(_, since, _)| since);
        let is_so = look();
        *seen = is_so.then_some((stamp, since, now - since >= TICK));
        is_so
    }
}

/// A folder that is open: what is in it is found without a walk along its path, which costs as much
/// as the rest of opening a file.
#[derive(Debug)]
pub struct Folder {
    #[cfg(unix)]
    folder: std::os::fd::OwnedFd,
    #[cfg(unix)]
    id: FileId,
    #[cfg(not(unix))]
    folder: std::path::PathBuf,
}

#[cfg(unix)]
impl Folder {
    pub fn open(path: &Path) -> io::Result<Folder> {
        use rustix::fs::{Mode, OFlags, open};
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = File::from(open(path, flags, Mode::empty())?);
        Ok(Folder { id: super::open_file_id(&folder)?, folder: folder.into() })
    }

    /// Whether it is the folder of the stamp.
    pub fn is_of(&self, stamp: Stamp) -> bool {
        self.id == stamp.folder
    }

    /// Opens a file that is there, for a look at its lock.
    pub fn open_to_look(&self, name: &str) -> io::Result<File> {
        self.file(name, rustix::fs::OFlags::RDONLY)
    }

    /// Opens a file of ours that is there, to write into it.
    pub fn open_to_write(&self, name: &str) -> io::Result<File> {
        let file = self.file(name, rustix::fs::OFlags::WRONLY)?;
        if file.metadata()?.is_file() { Ok(file) } else { Err(super::not_ours()) }
    }

    fn file(&self, name: &str, how: rustix::fs::OFlags) -> io::Result<File> {
        use rustix::fs::{Mode, OFlags, openat};
        let flags = how | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(openat(&self.folder, name, flags, Mode::empty())?.into())
    }
}

#[cfg(not(unix))]
impl Folder {
    pub fn open(path: &Path) -> io::Result<Folder> {
        Ok(Folder { folder: path.to_owned() })
    }

    /// Whether it is the folder of the stamp.
    pub fn is_of(&self, _stamp: Stamp) -> bool {
        true
    }

    /// Opens a file that is there, for a look at its lock.
    pub fn open_to_look(&self, name: &str) -> io::Result<File> {
        super::open_to_read(&self.folder.join(name))
    }

    /// Opens a file of ours that is there, to write into it.
    pub fn open_to_write(&self, name: &str) -> io::Result<File> {
        super::open_to_write(&self.folder.join(name))
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::{cell::Cell, fs, thread};

    use super::{Folder, Seen, Stamp, TICK};

    #[test]
    fn what_was_seen_holds_until_a_name_changes() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let write = |name: &str| drop(fs::File::create(path(name)).unwrap());
        write("a");
        let (seen, n_looks) = (Seen::default(), Cell::new(0));
        // How often it was looked for in so many calls, and whether it was there.
        let look = || {
            n_looks.set(0);
            let there = [(); 4].map(|()| {
                let stamp = Stamp::of(dir.path());
                let is_there = seen.still(stamp, || {
                    n_looks.set(n_looks.get() + 1);
                    path("a").exists()
                });
                thread::sleep(2 * TICK);
                is_there
            });
            (n_looks.get(), there)
        };
        assert_eq!(look(), (2, [true; 4]), "once at first, and once when the tick is over");
        assert_eq!(look(), (0, [true; 4]));
        write("b");
        assert_eq!(look(), (2, [true; 4]));
        fs::rename(path("b"), path("a")).unwrap();
        assert_eq!(look(), (2, [true; 4]));
        fs::remove_file(path("a")).unwrap();
        assert_eq!(look(), (4, [false; 4]), "what is not there is looked for each time");
        write("a");
        assert_eq!(look(), (2, [true; 4]));
        // No call came in the meantime.
        fs::rename(path("a"), path("c")).unwrap();
        fs::rename(path("c"), path("a")).unwrap();
        assert_eq!(look(), (2, [true; 4]));
    }

    #[test]
    fn a_folder_in_the_place_of_another_is_another() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("it");
        fs::create_dir(&path).unwrap();
        let (first, stamp) = (Folder::open(&path).unwrap(), Stamp::of(&path).unwrap());
        assert!(first.is_of(stamp));
        fs::rename(&path, dir.path().join("moved")).unwrap();
        assert_eq!(Stamp::of(&path), None);
        fs::create_dir(&path).unwrap();
        let stamp = Stamp::of(&path).unwrap();
        assert!(!first.is_of(stamp) && Folder::open(&path).unwrap().is_of(stamp));
    }
}
