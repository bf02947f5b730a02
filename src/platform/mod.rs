//! What differs between Linux, macOS and Windows, and nothing else: files here, those of an open
//! folder and whether their names are still theirs in [`folder`], processes in [`process`].

mod folder;
mod process;

use std::{
    fs::{self, DirBuilder, File, Metadata, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

pub use self::folder::{Folder, Seen, Stamp};
#[cfg(unix)]
pub use self::process::is_socket;
pub use self::process::{
    Process, allow_files, has_unread_output, in_shell, is_stdout_closed, parent_of, parent_pid,
    process, processes_above, shell_word,
};
use crate::error::{Error, Result};

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

/// `SRC` and `src` are one folder on the disks that most people have there.
pub const FILES_IGNORE_CASE: bool = cfg!(any(windows, target_os = "macos"));

/// Random bytes of the system's generator, which nobody can guess.
///
/// # Errors
/// The system gives none.
pub fn random() -> Result<[u8; 32]> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)
        .map_err(|err| Error::internal(format!("the system gives no random bytes: {err}")))?;
    Ok(bytes)
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
    match fs::metadata(path) {
        Ok(meta) => Ok(Some(id_of(&meta))),
        Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(None),
        // A folder on the way was replaced by a file: the path names nothing either.
        Err(err) if err.kind() == io::ErrorKind::NotADirectory => Ok(None),
        Err(err) => Err(err),
    }
}

/// Which file a path names now, in words that mean the same to other processes and later; with the
/// time when it was made, since numbers of deleted files are given anew.
pub fn file_stamp(path: &Path) -> Option<String> {
    let meta = fs::metadata(path).ok()?;
    let FileId(device, number) = id_of(&meta);
    let made = meta.created().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    Some(format!("{device}:{number}:{}", made.map_or(0, |age| age.as_nanos())))
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

/// The time of creation, since std tells the file's number to nobody on Windows. `SQLite`'s files
/// cannot be deleted there while a server has them open; a lock file can, and one made anew within
/// 15 s may be given the time of the deleted one.
#[cfg(not(unix))]
fn id_of(meta: &Metadata) -> FileId {
    let created = meta
        .created()
        .ok()
        .and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok())
        .map_or(0, |age| u64::try_from(age.as_nanos()).unwrap_or(u64::MAX));
    FileId(0, created)
}

/// Opens a file of ours that only its owner may read and write, making it where it is missing.
pub fn open_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    open_ours(&mut options, path)
}

/// Opens a file of ours that is there, to read it.
pub fn open_to_read(path: &Path) -> io::Result<File> {
    open_ours(OpenOptions::new().read(true), path)
}

/// Opens a file of ours that is there, to write into it.
pub fn open_to_write(path: &Path) -> io::Result<File> {
    open_ours(OpenOptions::new().write(true), path)
}

/// What a file of ours is not.
fn not_ours() -> io::Error {
    io::Error::other("it is no file, but a link or something else")
}

/// The folder may have come with a repository of somebody who means ill: a symbolic link in it leads
/// to any file of the user, and a pipe has no end. We make neither.
fn open_ours(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let flags = i32::try_from(flags.bits()).unwrap_or_default();
        std::os::unix::fs::OpenOptionsExt::custom_flags(options, flags);
    }
    match options.open(path) {
        Ok(file) if file.metadata()?.is_file() => Ok(file),
        Ok(_) => Err(not_ours()),
        Err(err) if err.kind() == io::ErrorKind::NotFound => Err(err),
        // What the system says of a link (a circle of links) would lead astray.
        Err(_) if fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink()) => Err(not_ours()),
        Err(err) => Err(err),
    }
}

/// Symbolic links that lead on to another one; more than this is a circle.
const MAX_LINKS: usize = 40;

/// Writes a file so that a reader sees the old bytes or the new ones, never a part: into a
/// temporary file beside it, which then takes its place. The mode stays, a new file gets the usual
/// one; a symbolic link stays too, and what it leads to is written.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<()> {
    let target = follow_links(path)?;
    let mode = match fs::metadata(&target) {
        Ok(there) => Mode::Kept(there.permissions()),
        Err(err) if err.kind() == io::ErrorKind::NotFound => Mode::Usual,
        Err(err) => return Err(Error::io("write", path, err)),
    };
    replace(&target, bytes, mode).map_err(|err| Error::io("write", path, err))
}

/// Writes a file as [`write_atomic`] does, for its owner's eyes only.
pub fn write_private(path: &Path, bytes: &[u8]) -> Result<()> {
    replace(path, bytes, Mode::Private).map_err(|err| Error::io("write", path, err))
}

enum Mode {
    Kept(fs::Permissions),
    Usual,
    Private,
}

fn replace(target: &Path, bytes: &[u8], mode: Mode) -> io::Result<()> {
    let folder = target.parent().unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".team-table-");
    #[cfg(unix)]
    if matches!(mode, Mode::Usual) {
        // The umask takes its share of it.
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    }
    let mut file = builder.tempfile_in(folder)?;
    file.write_all(bytes)?;
    if let Mode::Kept(permissions) = mode {
        file.as_file().set_permissions(permissions)?;
    }
    file.as_file().sync_all()?;
    file.persist(target).map(drop).map_err(|err| err.error)
}

/// What a file holds. What is no file, or has no end, is not read: a pipe would keep us waiting.
pub fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    const MOST_BYTES: u64 = 64 << 20;
    let meta = fs::metadata(path)?;
    if meta.is_file() && meta.len() > MOST_BYTES {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    if !meta.is_file() && !meta.is_dir() {
        return Err(io::Error::other("it is no file"));
    }
    fs::read(path)
}

/// The path behind all symbolic links of a path's last part, also where nothing is there yet.
pub fn follow_links(path: &Path) -> Result<PathBuf> {
    let mut target = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&target) {
            Ok(next) => target = target.parent().unwrap_or(Path::new("")).join(next),
            Err(_) => return Ok(target),
        }
    }
    Err(Error::storage(format!("`{}` is a circle of symbolic links", path.display())))
}

/// Whether two paths lead to one file, by whatever links.
pub fn same_file(a: &Path, b: &Path) -> bool {
    let (Ok(a_meta), Ok(b_meta)) = (fs::metadata(a), fs::metadata(b)) else { return false };
    is_same(&a_meta, &b_meta).unwrap_or_else(
        || matches!((dunce::canonicalize(a), dunce::canonicalize(b)), (Ok(a), Ok(b)) if a == b),
    )
}

#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "elsewhere there is nothing to compare")]
fn is_same(a: &Metadata, b: &Metadata) -> Option<bool> {
    use std::os::unix::fs::MetadataExt as _;
    Some((a.dev(), a.ino()) == (b.dev(), b.ino()))
}

#[cfg(not(unix))]
fn is_same(_: &Metadata, _: &Metadata) -> Option<bool> {
    None
}

/// Whether a path leads to a file that can be run.
pub fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| meta.is_file() && may_run(&meta))
}

/// The file that a shell would run for a name. A folder relative to somewhere is another one for a
/// client that starts elsewhere, and does not count.
pub fn find_on_path(path: &std::ffi::OsStr, name: &str) -> Option<PathBuf> {
    std::env::split_paths(path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|path| is_executable(path))
}

#[cfg(unix)]
fn may_run(meta: &Metadata) -> bool {
    std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o111 != 0
}

#[cfg(not(unix))]
fn may_run(_: &Metadata) -> bool {
    true
}

/// Whether we could write there. Where the system does not tell, only the mode is asked.
pub fn may_write(path: &Path) -> bool {
    #[cfg(unix)]
    {
        rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok()
    }
    #[cfg(not(unix))]
    {
        fs::metadata(path).is_ok_and(|meta| !meta.permissions().readonly())
    }
}

/// Bytes that are free for us on the disk of a path; `None` where the system does not tell.
pub fn free_bytes(path: &Path) -> Option<u64> {
    #[cfg(unix)]
    {
        let disk = rustix::fs::statvfs(path).ok()?;
        disk.f_bavail.checked_mul(disk.f_frsize)
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        None
    }
}

/// What kind of network disk a path lies on, as far as that can be told (Linux).
/// Source: linux/magic.h.
pub fn network_disk(path: &Path) -> Option<&'static str> {
    #[cfg(target_os = "linux")]
    {
        const KINDS: &[(u32, &str)] = &[
            (0x6969, "NFS"),
            (0x517b, "SMB"),
            (0xff53_4d42, "CIFS"),
            (0xfe53_4d42, "SMB2"),
            (0x0102_1997, "9P"),
            (0x5346_414f, "AFS"),
            (0x00c3_6400, "Ceph"),
        ];
        let disk = rustix::fs::statfs(path).ok()?;
        // The field is of another size elsewhere; the number is in its low half.
        let bytes = disk.f_type.to_le_bytes();
        let kind = bytes.iter().take(4).rev().fold(0, |kind, byte| (kind << 8) | u32::from(*byte));
        KINDS.iter().find(|(magic, _)| *magic == kind).map(|(_, name)| *name)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = path;
        None
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{create_private_file, is_ours, make_private_dir, shell_word, write_atomic};
    #[cfg(unix)]
    use super::{parent_of, parent_pid, process, processes_above, same_file};

    #[cfg(unix)]
    #[test]
    fn who_started_a_process_is_known() {
        assert_eq!(parent_of(std::process::id()), parent_pid());
        let above = processes_above();
        assert!(above.first().is_none_or(|pid| Some(*pid) == parent_pid()), "{above:?}");
        assert_eq!(parent_of(u32::MAX), None);
        if cfg!(target_os = "linux") {
            let ours = process(std::process::id()).unwrap();
            assert_eq!(ours.program, std::env::current_exe().unwrap());
            assert!(!ours.is_stopped && !ours.is_deleted);
        }
    }

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

    #[test]
    fn nothing_but_the_file_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        write_atomic(&path, b"1").unwrap();
        write_atomic(&path, b"2").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"2");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(write_atomic(&folder.path().join("none/a"), b"").is_err());
    }

    #[cfg(unix)]
    #[test]
    fn links_and_modes_stay() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};

        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("d")).unwrap();
        symlink("d/real", at("link")).unwrap();
        symlink("link", at("link-2")).unwrap();
        write_atomic(&at("link-2"), b"1").unwrap();
        assert_ne!(fs::metadata(at("d/real")).unwrap().permissions().mode() & 0o044, 0);
        fs::set_permissions(at("d/real"), fs::Permissions::from_mode(0o640)).unwrap();
        write_atomic(&at("link-2"), b"2").unwrap();
        assert!(at("link-2").is_symlink() && at("link").is_symlink());
        assert_eq!(fs::read(at("d/real")).unwrap(), b"2");
        assert_eq!(fs::metadata(at("d/real")).unwrap().permissions().mode() & 0o777, 0o640);
        assert!(same_file(&at("link-2"), &at("d/real")));
        assert!(!same_file(&at("link-2"), &at("d")) && !same_file(&at("none"), &at("none")));
        symlink("circle", at("circle")).unwrap();
        assert!(write_atomic(&at("circle"), b"").is_err());
    }

    #[test]
    fn a_word_for_a_shell_is_quoted_where_it_must_be() {
        assert_eq!(shell_word("/usr/bin/team-table"), "/usr/bin/team-table");
        if cfg!(windows) {
            assert_eq!(shell_word(r"C:\a b\x.exe"), r#""C:\a b\x.exe""#);
        } else {
            assert_eq!(shell_word("/it's here/x"), r"'/it'\''s here/x'");
            assert_eq!(shell_word("$x"), "'$x'");
            assert_eq!(shell_word(""), "''");
        }
    }
}
