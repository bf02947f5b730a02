//! What differs between Linux, macOS and Windows.

use std::{
    fs::{self, Metadata},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use crate::error::{Error, Result};

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

#[cfg(unix)]
fn may_run(meta: &Metadata) -> bool {
    std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o111 != 0
}

#[cfg(not(unix))]
fn may_run(_: &Metadata) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{same_file, write_atomic};

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
}
