//! Which table, where its companions are, and why it is this one.
//!
//! First match wins: `--db-path`, `TEAM_TABLE_DB`, the nearest `.agent-comms` at or above the
//! working directory (in a linked worktree: the main checkout's, there yet or not), the top of the
//! checkout, the working directory. All paths are canonical, so that two spellings of a folder are
//! one table.

mod git;
mod hook_log;
mod nearby;
mod place;
mod reason;

use std::{
    ffi::OsString,
    fs,
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
};

pub use self::{
    hook_log::HOOK_LOG,
    nearby::{Nearby, Whereabouts},
    reason::Reason,
};

use self::git::{Git, Place};
use crate::{
    config::Config,
    error::{Error, Result},
    platform,
};

/// Name of the folder that makes a folder a workspace.
pub const FOLDER: &str = ".agent-comms";
const TABLE: &str = "comms.db";
const SEATS: &str = "seats";

/// An index of git for a million files is not larger.
const INDEX_BYTES: u64 = 128 << 20;

/// How often the folders are made again when somebody deletes them meanwhile.
const TRIES: u32 = 20;

/// Which table, where its companions are, and why it is this one.
#[derive(Debug, Clone)]
pub struct Workspace {
    /// Absolute path of the database file.
    pub table: PathBuf,
    /// Folder of the seat locks, the bells and `write.lock`.
    pub seats: PathBuf,
    /// The `.agent-comms` folder; none where a path to the table was given.
    pub folder: Option<PathBuf>,
    /// Why it is this table.
    pub reason: Reason,
    /// What a person may want to know about the choice, a line each.
    pub warnings: Vec<String>,
    /// Top of the checkout that the working directory is in, else the working directory.
    pub checkout: PathBuf,
    /// Branch of that checkout; the beginning of the commit's hash where none is checked out.
    pub branch: Option<String>,
    /// The folder that paths of reservations are relative to: the top of the checkout; outside git
    /// the folder that holds `.agent-comms`, else the working directory.
    pub top: PathBuf,
    pub cwd: PathBuf,
}

impl Workspace {
    /// Finds the table without making anything. It need not exist.
    ///
    /// # Errors
    /// A given path that cannot be a table; a folder that is a file, somebody else's, or a
    /// symbolic link out of the workspace.
    pub fn find(config: &Config, db_path: Option<&Path>) -> Result<Workspace> {
        let cwd = dunce::canonicalize(&config.cwd)
            .map_err(|err| Error::io("use the working directory", &config.cwd, err))?;
        let git = Git::around(&cwd);
        match (db_path, &config.db) {
            (Some(path), _) => Workspace::given(path, Reason::Option, &cwd, git),
            (None, Some(path)) => Workspace::given(path, Reason::Variable, &cwd, git),
            (None, None) => Workspace::search(&cwd, config.home.as_deref(), git),
        }
    }

    /// Makes the folders that the table and the seats lie in. Any number of processes may do so at
    /// once. Only an `.agent-comms` that holds no table yet gets a `.gitignore`.
    ///
    /// # Errors
    /// The file system does not let us, or somebody keeps deleting the folder.
    pub fn make(&self) -> Result<()> {
        for _ in 0..TRIES {
            match self.try_make() {
                Err((path, err)) if err.kind() == io::ErrorKind::NotFound => {
                    let parent = self.root().parent().unwrap_or(&path);
                    if !parent.is_dir() {
                        return Err(Error::io("make the folder", &path, err).hint(format!(
                            "`{}` is gone; if it was moved, start the session anew where it is now",
                            parent.display()
                        )));
                    }
                }
                Err((path, err)) => return Err(Error::io("make", &path, err).hint(ELSEWHERE)),
                Ok(()) => return self.check_owner(),
            }
        }
        Err(Error::busy(format!("`{}` is deleted as fast as it is made", self.root().display())))
    }

    fn given(path: &Path, reason: Reason, cwd: &Path, git: Option<Git>) -> Result<Workspace> {
        let source = if reason == Reason::Option { "--db-path" } else { "TEAM_TABLE_DB" };
        let table = given_table(source, path, cwd)?;
        let seats = seats_of(&table);
        Ok(Workspace::new(table, seats, None, reason, cwd, git))
    }

    fn search(cwd: &Path, home: Option<&Path>, mut git: Option<Git>) -> Result<Workspace> {
        let (start, end) = match &git {
            Some(git) => (git.start.clone(), git.top.clone()),
            None => (cwd.to_owned(), highest_below_home(cwd, home)),
        };
        let root = if git.is_some() { &end } else { cwd };
        let mut passed = Vec::new();
        let mut found = None;
        for dir in start.ancestors() {
            match folder_in(dir, if git.is_some() { &end } else { dir })? {
                Found::Ours(folder) => found = Some(folder),
                Found::Theirs(folder) => passed.push(folder),
                Found::Nothing => {}
            }
            if found.is_some() || dir == end {
                break;
            }
        }
        let fallback = root.join(FOLDER);
        if found.is_none() && passed.contains(&fallback) {
            return Err(somebody_elses(&fallback));
        }
        let reason = reason_for(found.as_ref(), cwd, git.as_ref());
        let folder = found.unwrap_or(fallback);
        let (table, seats) = (inside(&folder, TABLE)?, inside(&folder, SEATS)?);
        let unused = git.as_mut().map(|git| unused_folders(git, cwd, &folder)).unwrap_or_default();
        let mut workspace = Workspace::new(table, seats, Some(folder), reason, cwd, git);
        workspace.warnings.extend(unused);
        workspace.warnings.extend(passed.iter().map(|folder| {
            format!("`{}` belongs to another user and was passed over", folder.display())
        }));
        Ok(workspace)
    }

    fn new(
        table: PathBuf,
        seats: PathBuf,
        folder: Option<PathBuf>,
        reason: Reason,
        cwd: &Path,
        git: Option<Git>,
    ) -> Workspace {
        let root = folder.as_deref().and_then(Path::parent).unwrap_or(cwd);
        let top = git.as_ref().map_or(root, |git| &git.checkout).to_owned();
        let (checkout, branch, warnings) = match git {
            // How git's worktrees hang together does not matter for a table that was named.
            Some(git) if folder.is_none() => (git.checkout, git.branch, Vec::new()),
            Some(git) => (git.checkout, git.branch, git.warnings),
            None => (cwd.to_owned(), None, Vec::new()),
        };
        let cwd = cwd.to_owned();
        Workspace { table, seats, folder, reason, warnings, checkout, branch, top, cwd }
    }

    /// Whether something in `.agent-comms` is in git, going by the names in git's index.
    pub fn is_in_git(&self) -> bool {
        let Some(folder) = &self.folder else { return false };
        let Some(top) = folder.ancestors().skip(1).find(|dir| dir.join(".git").is_dir()) else {
            return false;
        };
        let below = folder.strip_prefix(top).unwrap_or(folder).to_string_lossy();
        let name = below.replace(std::path::MAIN_SEPARATOR, "/") + "/";
        // Names are sorted and whole, but in indexes of version 4, which one has to ask git for.
        let index = platform::open_to_read(&top.join(".git/index")).and_then(|index| {
            let mut bytes = Vec::new();
            index.take(INDEX_BYTES).read_to_end(&mut bytes).map(|_| bytes)
        });
        index.is_ok_and(|bytes| memchr::memmem::find(&bytes, name.as_bytes()).is_some())
    }

    /// The uppermost folder that [`Workspace::make`] makes.
    fn root(&self) -> &Path {
        self.folder.as_deref().unwrap_or(&self.seats)
    }

    fn try_make(&self) -> Result<(), (PathBuf, io::Error)> {
        let at = |path: &Path| {
            let path = path.to_owned();
            |err| (path, err)
        };
        if let Some(folder) = &self.folder {
            platform::make_private_dir(folder).map_err(at(folder))?;
            if !self.table.exists() {
                let ignore = folder.join(".gitignore");
                ignore_everything(&ignore).map_err(at(&ignore))?;
            }
        }
        platform::make_private_dir(&self.seats).map_err(at(&self.seats))
    }

    fn check_owner(&self) -> Result<()> {
        let root = self.root();
        match fs::symlink_metadata(root) {
            Ok(meta) if !platform::is_ours(&meta) => Err(somebody_elses(root)),
            // Deleted again: whoever opens the table finds out, and makes it anew.
            _ => Ok(()),
        }
    }
}

/// Writes the one line `*`, also where a process died before it had. All who do this at once write
/// the same bytes to the same place.
fn ignore_everything(path: &Path) -> io::Result<()> {
    let mut file = match platform::create_private_file(path) {
        Err(err) if err.kind() == io::ErrorKind::AlreadyExists => {
            let meta = fs::symlink_metadata(path)?;
            if !meta.is_file() || meta.len() > 0 {
                return Ok(());
            }
            fs::OpenOptions::new().write(true).open(path)?
        }
        created => created?,
    };
    file.write_all(b"*\n")
}

/// Where the seats of a table are, however somebody was led to it.
pub fn seats_of(table: &Path) -> PathBuf {
    if let Some(folder) = workspace_of(table) {
        return folder.join(SEATS);
    }
    let mut seats = OsString::from(table);
    seats.push(".seats");
    seats.into()
}

/// The `.agent-comms` whose own table this is.
fn workspace_of(table: &Path) -> Option<&Path> {
    let folder = table.parent()?;
    let is_own = table.file_name()? == TABLE && folder.file_name()? == FOLDER;
    is_own.then_some(folder)
}

fn given_table(source: &str, path: &Path, cwd: &Path) -> Result<PathBuf> {
    let full = cwd.join(path);
    let wrong = |what: &str| {
        Error::usage(format!("{source} must name a file, got `{}`, {what}", full.display()))
    };
    if full.is_dir() {
        return Err(wrong("which is a folder")
            .hint(format!("name a file in it, such as `{}`", full.join(TABLE).display())));
    }
    let (Some(parent), Some(name)) = (full.parent(), full.file_name()) else {
        return Err(wrong("which has no file name"));
    };
    let parent = match dunce::canonicalize(parent) {
        Ok(parent) if parent.is_dir() => parent,
        Err(err) if err.kind() != io::ErrorKind::NotFound => {
            return Err(Error::io("use the folder", parent, err));
        }
        _ => {
            let right = if path.starts_with("~") {
                "`~` is not expanded here: write the home folder out"
            } else {
                "make the folder first, or name a file in one that is there"
            };
            return Err(wrong("whose folder is not there").hint(right));
        }
    };
    let table = parent.join(name);
    match fs::symlink_metadata(&table) {
        Ok(meta) if meta.is_symlink() => {
            dunce::canonicalize(&table).map_err(|_| wrong("which is a symbolic link to nothing"))
        }
        Ok(meta) if !meta.is_file() => Err(wrong("which is no regular file")),
        _ => Ok(table),
    }
}

/// How far up the search goes outside git: not as far as the home folder, which holds everything
/// of a person, nor out of it, where everybody has folders.
fn highest_below_home(cwd: &Path, home: Option<&Path>) -> PathBuf {
    let home = home
        .filter(|home| home.is_absolute())
        .and_then(|home| dunce::canonicalize(home).ok())
        .filter(|home| home.parent().is_some());
    let below = home.and_then(|home| Some(home.join(cwd.strip_prefix(&home).ok()?.iter().next()?)));
    below.unwrap_or_else(|| cwd.to_owned())
}

enum Found {
    Nothing,
    Ours(PathBuf),
    Theirs(PathBuf),
}

/// Looks for the folder in `dir`; a symbolic link may lead to anywhere in `workspace`.
fn folder_in(dir: &Path, workspace: &Path) -> Result<Found> {
    let path = dir.join(FOLDER);
    let Ok(meta) = fs::symlink_metadata(&path) else { return Ok(Found::Nothing) };
    if !platform::is_ours(&meta) {
        return Ok(Found::Theirs(path));
    }
    let folder = if meta.is_symlink() { follow(&path, workspace)? } else { path.clone() };
    match fs::metadata(&folder) {
        Ok(meta) if !meta.is_dir() => {
            Err(Error::refused(format!("`{}` is a file; it has to be a folder", folder.display()))
                .hint("move it away, or name another table with `--db-path` or `TEAM_TABLE_DB`"))
        }
        Ok(meta) if !platform::is_ours(&meta) => Ok(Found::Theirs(path)),
        Ok(_) => Ok(Found::Ours(folder)),
        Err(_) => Ok(Found::Nothing),
    }
}

/// What `name` in the folder is, which must not lie elsewhere.
fn inside(folder: &Path, name: &str) -> Result<PathBuf> {
    let path = folder.join(name);
    match fs::symlink_metadata(&path) {
        Ok(meta) if meta.is_symlink() => follow(&path, folder),
        _ => Ok(path),
    }
}

fn follow(link: &Path, within: &Path) -> Result<PathBuf> {
    let refuse = |what: String| {
        Error::refused(format!("`{}` is a symbolic link to {what}", link.display()))
            .hint("remove the link, or name another table with `--db-path` or `TEAM_TABLE_DB`")
    };
    match dunce::canonicalize(link) {
        Ok(target) if target.starts_with(within) => Ok(target),
        Ok(target) => Err(refuse(format!(
            "`{}`; it must not lead out of `{}`",
            target.display(),
            within.display()
        ))),
        Err(_) => Err(refuse("what is not there".to_owned())),
    }
}

/// The folders of a linked worktree's own, which would split the team.
fn unused_folders(git: &mut Git, cwd: &Path, used: &Path) -> Vec<String> {
    if git.place == Place::Own {
        return Vec::new();
    }
    cwd.ancestors()
        .take_while(|dir| dir.starts_with(&git.checkout))
        .map(|dir| dir.join(FOLDER))
        .filter(|folder| folder.is_dir())
        .filter(|folder| dunce::canonicalize(folder).is_ok_and(|folder| folder != used))
        .map(|folder| {
            format!(
                "`{}` is not used: all worktrees of a repository share `{}`",
                folder.display(),
                used.display()
            )
        })
        .collect()
}

fn reason_for(found: Option<&PathBuf>, cwd: &Path, git: Option<&Git>) -> Reason {
    match (git, found) {
        (Some(Git { place: Place::Main(main), checkout, .. }), _) => {
            Reason::MainCheckout { checkout: checkout.clone(), main: main.clone() }
        }
        (Some(Git { place: Place::Beside(repository), .. }), _) => {
            Reason::BesideRepository { repository: repository.clone() }
        }
        (_, Some(folder)) => Reason::Nearest { folder: folder.clone(), cwd: cwd.to_owned() },
        (Some(git), None) => Reason::CheckoutTop { top: git.top.clone() },
        (None, None) => Reason::WorkingDirectory { cwd: cwd.to_owned() },
    }
}

const ELSEWHERE: &str = "a table elsewhere can be named with `--db-path` or `TEAM_TABLE_DB`";

fn somebody_elses(folder: &Path) -> Error {
    Error::refused(format!("`{}` belongs to another user", folder.display())).hint(format!(
        "where `sudo` made it, delete it or make it yours with `sudo chown -R`; {ELSEWHERE}"
    ))
}

#[cfg(test)]
mod tests;
