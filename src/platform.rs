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
