//! Files in a folder that is open.

use std::{fs::File, io, path::Path};

use super::FileId;

/// A folder that is open: what is in it is found without a walk along its path, which costs as much
/// as the rest of opening a file.
#[derive(Debug)]
pub struct Folder {
    #[cfg(unix)]
    folder: std::os::fd::OwnedFd,
    #[cfg(not(unix))]
    folder: std::path::PathBuf,
}

#[cfg(unix)]
impl Folder {
    pub fn open(path: &Path) -> io::Result<Folder> {
        use rustix::fs::{Mode, OFlags, open};
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Folder { folder: open(path, flags, Mode::empty())? })
    }

    /// Which file the name is that of, as [`super::file_id`] has it; `None` where there is none.
    pub fn file_id(&self, name: &str) -> io::Result<Option<FileId>> {
        match self.file(name, rustix::fs::OFlags::RDONLY) {
            Ok(file) => super::open_file_id(&file).map(Some),
            Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(err) => Err(err),
        }
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

    /// Which file the name is that of, as [`super::file_id`] has it; `None` where there is none.
    pub fn file_id(&self, name: &str) -> io::Result<Option<FileId>> {
        super::file_id(&self.folder.join(name))
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
