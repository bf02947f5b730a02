//! What differs between Linux, macOS and Windows, and nothing else.

use std::{
    fs::{DirBuilder, File, Metadata, OpenOptions},
    io,
    path::{Path, PathBuf},
};

/// Whether the user that we run as owns it. Windows has no cheap answer; there it counts as ours.
#[cfg(unix)]
pub fn is_ours(meta: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    meta.uid() == rustix::process::geteuid().as_raw()
}

/// Whether the user that we run as owns it. Windows has no cheap answer; there it counts as ours.
#[cfg(not(unix))]
pub fn is_ours(_meta: &Metadata) -> bool {
    true
}

/// Makes a folder that only its owner may enter. One that is there already is left as it is.
pub fn make_private_dir(path: &Path) -> io::Result<()> {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "modes exist on unix only"))]
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(path) {
        Err(err) if err.kind() == io::ErrorKind::AlreadyExists => {
            if path.symlink_metadata()?.is_dir() {
                Ok(())
            } else {
                Err(io::Error::new(io::ErrorKind::NotADirectory, "it is there and no folder"))
            }
        }
        made => made,
    }
}

/// Makes a file that only its owner may read. One that is there already, also as a symbolic link,
/// is an error.
pub fn create_private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// The path that these bytes of a file stand for.
#[cfg(unix)]
pub fn path_of_bytes(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt as _;
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

/// The path that these bytes of a file stand for.
#[cfg(not(unix))]
pub fn path_of_bytes(bytes: &[u8]) -> PathBuf {
    PathBuf::from(String::from_utf8_lossy(bytes).into_owned())
}

/// Which file a path names, so that one can see whether it is still the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileId(u64, u64);

/// The file that `path` names now, or `None` where there is none. Opens nothing: closing any handle
/// to a database would drop SQLite's locks on it (POSIX record locks belong to the process).
pub fn file_id(path: &Path) -> io::Result<Option<FileId>> {
    match std::fs::metadata(path) {
        Ok(meta) => Ok(Some(id_of(&meta))),
        Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(None),
        // A folder on the way was replaced by a file: the path names nothing either.
        Err(err) if err.kind() == io::ErrorKind::NotADirectory => Ok(None),
        Err(err) => Err(err),
    }
}

/// The identity of an open file.
pub fn open_file_id(file: &File) -> io::Result<FileId> {
    Ok(id_of(&file.metadata()?))
}

#[cfg(unix)]
fn id_of(meta: &Metadata) -> FileId {
    use std::os::unix::fs::MetadataExt as _;
    FileId(meta.dev(), meta.ino())
}

/// On Windows files that a server has open cannot be deleted; the time of creation is enough.
#[cfg(not(unix))]
fn id_of(meta: &Metadata) -> FileId {
    let created = meta
        .created()
        .ok()
        .and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok())
        .map_or(0, |age| u64::try_from(age.as_nanos()).unwrap_or(u64::MAX));
    FileId(0, created)
}

/// Opens a file that only its owner may read and write, making it where it is missing.
pub fn open_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    options.open(path)
}

/// The process that started this one, where the system tells and it can change: an orphan is given
/// another parent. `None` on Windows, where the end of stdin has to do.
pub fn parent_pid() -> Option<u32> {
    #[cfg(unix)]
    {
        Some(std::os::unix::process::parent_id())
    }
    #[cfg(not(unix))]
    {
        None
    }
}

/// Bytes written to stdout that nobody has read yet, where the system tells (pipes on Linux and
/// macOS). Zero where it does not.
pub fn unread_output() -> u64 {
    #[cfg(unix)]
    {
        rustix::io::ioctl_fionread(io::stdout()).unwrap_or(0)
    }
    #[cfg(not(unix))]
    {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::{create_private_file, is_ours, make_private_dir};

    #[test]
    fn what_we_make_is_ours_and_private() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("dir");
        make_private_dir(&dir).unwrap();
        make_private_dir(&dir).unwrap();
        let file = dir.join("file");
        drop(create_private_file(&file).unwrap());
        assert!(create_private_file(&file).is_err());
        assert!(make_private_dir(&file).is_err());
        assert!(is_ours(&dir.metadata().unwrap()));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(dir.metadata().unwrap().permissions().mode() & 0o777, 0o700);
            assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
    }
}
