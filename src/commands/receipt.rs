//! What `init` did to which file, so that `init --remove` deletes what it made and nothing else.
//!
//! It lies in `.agent-comms/backup/`, beside the files as they were. Everything works without it:
//! then what is in a client's file says whether it is ours.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{
    error::{Error, Result},
    platform,
};

/// All files of the workspace and of its worktrees that hold our entry because `init` put it there.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Receipt {
    files: Vec<Record>,
    /// It was found, and so tells of all that was done.
    #[serde(skip)]
    pub(super) is_found: bool,
}

/// One such file.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Record {
    /// From the workspace where it lies in there, so that the workspace can be moved.
    path: String,
    /// The file was not there before.
    created: bool,
    /// The folders that were made for it, the innermost first; as `path`.
    #[serde(default)]
    folders: Vec<String>,
    /// The permission to run our tools unasked came in too: a person may have put in the same.
    #[serde(default)]
    allow: bool,
}

/// What `init` made for one client.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Made {
    /// The file itself, not only our entry in it.
    pub(super) file: bool,
    /// Folders, the innermost first.
    pub(super) folders: Vec<PathBuf>,
    /// The permission to run our tools unasked.
    pub(super) allow: bool,
}

/// The folder of backups and of the receipt.
pub(super) struct Drawer {
    workspace: PathBuf,
    folder: PathBuf,
}

impl Drawer {
    const FILE: &str = "init.json";

    pub(super) fn new(comms: &Path) -> Drawer {
        Drawer {
            workspace: comms.parent().unwrap_or(comms).to_owned(),
            folder: comms.join("backup"),
        }
    }

    /// The receipt; an empty one where there is none or where it cannot be understood.
    pub(super) fn receipt(&self) -> Result<Receipt> {
        let path = self.folder.join(Drawer::FILE);
        match platform::read_file(&path) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes)
                .map(|receipt| Receipt { is_found: true, ..receipt })
                .unwrap_or_default()),
            Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(Receipt::default()),
            Err(err) => Err(Error::io("read", &path, err)),
        }
    }

    /// Stores the receipt; one without files is deleted.
    pub(super) fn store(&self, receipt: &Receipt) -> Result<()> {
        let path = self.folder.join(Drawer::FILE);
        if receipt.files.is_empty() {
            return match fs::remove_file(&path) {
                Err(err) if err.kind() != io::ErrorKind::NotFound => {
                    Err(Error::io("delete", &path, err))
                }
                _ => Ok(()),
            };
        }
        self.make()?;
        let mut text = serde_json::to_string_pretty(receipt)
            .map_err(|err| Error::internal("cannot write the receipt").source(err))?;
        text.push('\n');
        platform::write_private(&path, text.as_bytes())
    }

    /// Keeps a copy of a file as it was, under its name and the time; older copies stay.
    pub(super) fn keep(&self, file: &str, bytes: &[u8], now: i64) -> Result<PathBuf> {
        self.make()?;
        let time = jiff::Timestamp::from_millisecond(now).unwrap_or_default();
        let stem = format!("{}-{}", time.strftime("%Y%m%dT%H%M%SZ"), file.replace('/', "_"));
        let mut path = self.folder.join(&stem);
        for number in 2.. {
            if !path.exists() {
                break;
            }
            path = self.folder.join(format!("{stem}-{number}"));
        }
        platform::write_private(&path, bytes)?;
        Ok(path)
    }

    /// What was made for a file; none where `init` did not put our entry there.
    pub(super) fn made(&self, receipt: &Receipt, path: &Path) -> Option<Made> {
        let path = self.shorten(path);
        let record = receipt.files.iter().find(|record| record.path == path)?;
        let folders = record.folders.iter().map(|folder| self.workspace.join(folder));
        Some(Made { file: record.created, folders: folders.collect(), allow: record.allow })
    }

    /// Notes that our entry goes into a file. What an earlier run noted of it stays true, unless
    /// the file was made anew.
    pub(super) fn note(&self, receipt: &mut Receipt, path: &Path, made: &Made) {
        let folders: Vec<String> = made.folders.iter().map(|folder| self.shorten(folder)).collect();
        let path = self.shorten(path);
        if let Some(record) = receipt.files.iter_mut().find(|record| record.path == path) {
            record.created |= made.file;
            record.allow |= made.allow;
            if !folders.is_empty() {
                record.folders = folders;
            }
        } else {
            let (created, allow) = (made.file, made.allow);
            receipt.files.push(Record { path, created, folders, allow });
        }
    }

    pub(super) fn strike(&self, receipt: &mut Receipt, path: &Path) {
        let path = self.shorten(path);
        receipt.files.retain(|record| record.path != path);
    }

    fn shorten(&self, path: &Path) -> String {
        path.strip_prefix(&self.workspace).unwrap_or(path).to_string_lossy().into_owned()
    }

    fn make(&self) -> Result<()> {
        fs::create_dir_all(&self.folder).map_err(|err| Error::io("make", &self.folder, err))
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::{Drawer, Made, Receipt, platform};

    #[test]
    fn what_was_noted_is_found_after_a_move() {
        let folder = tempfile::tempdir().unwrap();
        let comms = |workspace: &str| folder.path().join(workspace).join(".agent-comms");
        let old = Drawer::new(&comms("old"));
        let mut receipt = Receipt::default();
        let path = |name: &str| folder.path().join("old").join(name);
        let nothing = || Made { file: false, folders: vec![], allow: false };
        let made = Made { file: true, folders: vec![path(".codex")], allow: false };
        old.note(&mut receipt, &path(".codex/config.toml"), &made);
        let allowed = Made { allow: true, ..nothing() };
        old.note(&mut receipt, &path(".codex/config.toml"), &allowed);
        old.note(&mut receipt, Path::new("/elsewhere/.mcp.json"), &nothing());
        old.store(&receipt).unwrap();
        fs::rename(folder.path().join("old"), folder.path().join("new")).unwrap();

        let new = Drawer::new(&comms("new"));
        let mut receipt = new.receipt().unwrap();
        let path = |name: &str| folder.path().join("new").join(name);
        let codex = Made { file: true, folders: vec![path(".codex")], allow: true };
        assert_eq!(new.made(&receipt, &path(".codex/config.toml")), Some(codex));
        assert_eq!(new.made(&receipt, Path::new("/elsewhere/.mcp.json")), Some(nothing()));
        assert_eq!(new.made(&receipt, &path("other")), None);
        new.strike(&mut receipt, &path(".codex/config.toml"));
        new.strike(&mut receipt, Path::new("/elsewhere/.mcp.json"));
        new.store(&receipt).unwrap();
        new.store(&receipt).unwrap();
        assert!(!comms("new").join("backup/init.json").exists());
    }

    #[test]
    fn every_copy_has_a_name_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let drawer = Drawer::new(&folder.path().join(".agent-comms"));
        let names: Vec<String> = (0..3)
            .map(|_| drawer.keep(".codex/config.toml", b"x", 0).unwrap())
            .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
            .collect();
        let first = "19700101T000000Z-.codex_config.toml";
        assert_eq!(names, [first, &format!("{first}-2"), &format!("{first}-3")]);
        let path = folder.path().join(".agent-comms/backup/init.json");
        platform::write_atomic(&path, b"{").unwrap();
        assert!(drawer.receipt().unwrap().files.is_empty());
    }
}
