//! Other tables that somebody who is looked for may sit at.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{
    FOLDER, Reason, TABLE, Workspace,
    git::{self, Git},
    given_table,
};
use crate::config::Config;

/// How far down from the top of the checkout is looked, and at how many folders.
const DEPTH: u8 = 2;
const FOLDERS: usize = 2_000;

/// A table that is there and not used here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nearby {
    pub table: PathBuf,
    pub place: Whereabouts,
}

/// Where another table lies, seen from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whereabouts {
    /// `TEAM_TABLE_DB` names it, and `--db-path` another one.
    Variable,
    /// It would be used here if none was named.
    Usual,
    /// In the main checkout or another worktree of the repository.
    Checkout,
    Above,
    /// It comes first for whoever starts below it.
    Below,
}

impl Workspace {
    /// The other tables around here. Nothing is opened.
    pub fn nearby(&self, config: &Config) -> Vec<Nearby> {
        let mut found: Vec<Nearby> = Vec::new();
        let mut add = |place: Whereabouts, table: PathBuf| {
            let Ok(table) = dunce::canonicalize(table) else { return };
            if table.is_file() && table != self.table && !found.iter().any(|it| it.table == table) {
                found.push(Nearby { table, place });
            }
        };
        if self.reason == Reason::Option
            && let Some(path) = &config.db
            && let Ok(table) = given_table("TEAM_TABLE_DB", path, &self.cwd)
        {
            add(Whereabouts::Variable, table);
        }
        if self.folder.is_none()
            && let Ok(usual) =
                Workspace::search(&self.cwd, config.home.as_deref(), Git::around(&self.cwd))
        {
            add(Whereabouts::Usual, usual.table);
        }
        let mut add_in = |place: Whereabouts, dir: &Path| {
            add(place, dir.join(FOLDER).join(TABLE));
        };
        for dir in git::checkouts(&self.cwd) {
            add_in(Whereabouts::Checkout, &dir);
        }
        for dir in self.cwd.ancestors() {
            let place = if dir.starts_with(&self.checkout) && dir != self.checkout {
                Whereabouts::Below
            } else {
                Whereabouts::Above
            };
            add_in(place, dir);
        }
        for dir in folders_below(&self.checkout) {
            add_in(Whereabouts::Below, &dir);
        }
        found
    }
}

/// Folders in which somebody may start an agent; hidden ones and those of packages are left out.
fn folders_below(top: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut level = vec![top.to_owned()];
    for _ in 0..DEPTH {
        let mut next = Vec::new();
        for folder in &level {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            let folders = entries.filter(|entry| entry.file_type().is_ok_and(|it| it.is_dir()));
            next.extend(folders.map(|entry| entry.path()).filter(|path| is_plain(path)));
            if found.len() + next.len() > FOLDERS {
                break;
            }
        }
        next.sort();
        found.extend(next.iter().cloned());
        level = next;
    }
    found.truncate(FOLDERS);
    found
}

fn is_plain(folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    !name.starts_with('.') && !["node_modules", "target"].contains(&name.as_ref())
}
