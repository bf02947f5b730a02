//! What git's own files say about a folder.
//!
//! They are read directly: no git process is started, so that a server is up at once and works
//! where git is not installed. `GIT_DIR` and its kin are not heeded, nor are included config files.

use std::{
    fs::{self, File},
    io::Read as _,
    path::{Path, PathBuf},
};

use crate::platform;

/// Longest file of git's that is read; what lies behind is not seen.
const MAX_BYTES: u64 = 1 << 20;

/// How often a linked worktree may lead to a checkout that is a linked worktree again.
const MAX_JUMPS: u8 = 4;

/// The repository around a folder.
#[derive(Debug)]
pub(super) struct Git {
    /// Top of the checkout that the folder lies in: a linked worktree's own, or the project's for
    /// a folder in a submodule. The folder itself if it lies in no checkout, but in a repository.
    pub(super) checkout: PathBuf,
    /// Branch of that checkout, or the beginning of the commit's hash.
    pub(super) branch: Option<String>,
    /// Where the search for the workspace's folder begins,
    pub(super) start: PathBuf,
    /// and where it ends: an ancestor of `start`, or `start` itself.
    pub(super) top: PathBuf,
    pub(super) place: Place,
    pub(super) warnings: Vec<String>,
}

/// How `top` follows from the checkout.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It is the checkout's own top.
    Own,
    /// The checkout is a linked worktree of this one.
    Main(PathBuf),
    /// The repository at this path has no checkout of its own: `top` is the folder that holds it.
    Beside(PathBuf),
}

impl Git {
    /// The repository around `cwd`, which has to be canonical.
    pub(super) fn around(cwd: &Path) -> Option<Git> {
        look(cwd, MAX_JUMPS)
    }
}

fn look(cwd: &Path, jumps: u8) -> Option<Git> {
    let (dir, mark) = mark_above(cwd)?;
    let mut git = Git {
        checkout: dir.to_owned(),
        branch: branch(&mark.git_dir),
        start: cwd.to_owned(),
        top: dir.to_owned(),
        place: Place::Own,
        warnings: Vec::new(),
    };
    match mark.kind {
        Kind::Linked(repository) if jumps > 0 => git.go_to_main(&repository, jumps - 1),
        Kind::Inside => {
            cwd.clone_into(&mut git.checkout);
            git.branch = None;
            git.go_to_main(dir, jumps.saturating_sub(1));
            if matches!(git.place, Place::Main(_)) {
                git.place = Place::Own;
            }
        }
        Kind::Lost => git.warnings.push(format!(
            "`{}` points to `{}`, where there is no repository: `{}` counts as a checkout of its own",
            dir.join(".git").display(),
            mark.git_dir.display(),
            dir.display(),
        )),
        Kind::Plain | Kind::Submodule | Kind::Linked(_) => {}
    }
    Some(git)
}

impl Git {
    fn go_to_main(&mut self, repository: &Path, jumps: u8) {
        let core = Core::of(repository);
        if let Some(main) = core.main_checkout(repository) {
            // The main checkout may be a submodule, whose search does not end at its own top.
            let onward = main.join(".git").exists().then(|| look(&main, jumps)).flatten();
            (self.start, self.top) =
                onward.map_or_else(|| (main.clone(), main.clone()), |git| (git.start, git.top));
            self.place = Place::Main(main);
        } else {
            if core.bare == Some(false) {
                self.warnings.push(format!(
                    "git does not note where the main checkout of `{}` is: give it and its \
                     worktrees one `TEAM_TABLE_DB`",
                    repository.display(),
                ));
            }
            if let Some(other) = repository_beside(repository) {
                self.warnings.push(format!(
                    "`{}` lies beside `{}`, so their worktrees share this table: tell them apart \
                     with `TEAM_TABLE_DB`",
                    other.display(),
                    repository.display(),
                ));
            }
            let beside = repository.parent().unwrap_or(repository);
            beside.clone_into(&mut self.start);
            beside.clone_into(&mut self.top);
            self.place = Place::Beside(repository.to_owned());
        }
    }
}

/// The tops of all checkouts of the repository around a folder: the main one, and each linked
/// worktree that is still there.
pub(super) fn checkouts(dir: &Path) -> Vec<PathBuf> {
    let Some((_, mark)) = mark_above(dir) else { return Vec::new() };
    let repository = match mark.kind {
        Kind::Linked(repository) => repository,
        Kind::Plain | Kind::Inside => mark.git_dir,
        Kind::Submodule | Kind::Lost => return Vec::new(),
    };
    let parts = fs::read_dir(repository.join("worktrees")).into_iter().flatten().flatten();
    let linked = parts.filter_map(|part| {
        let noted = read(&part.path().join("gitdir"))?;
        let dot_git = part.path().join(path_in(&noted));
        dunce::canonicalize(dot_git.parent()?).ok()
    });
    Core::of(&repository).main_checkout(&repository).into_iter().chain(linked).collect()
}

/// Another repository without a checkout in the same folder.
fn repository_beside(repository: &Path) -> Option<PathBuf> {
    fs::read_dir(repository.parent()?)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path != repository && path.extension().is_some_and(|end| end == "git"))
        .find(|path| is_repository(path))
}

/// What shows that a folder is the top of a checkout, or a repository itself.
struct Mark {
    git_dir: PathBuf,
    kind: Kind,
}

enum Kind {
    Plain,
    /// Part of the checkout that it lies in.
    Submodule,
    /// Belongs to the repository at this path, which other checkouts share.
    Linked(PathBuf),
    /// `.git` is a file that points to where there is nothing, as in a container that was given
    /// the worktree only.
    Lost,
    /// The folder is a repository, not a checkout.
    Inside,
}

/// The nearest mark at or above `cwd` that is no submodule's, else the nearest.
fn mark_above(cwd: &Path) -> Option<(&Path, Mark)> {
    let mut submodule = None;
    for dir in cwd.ancestors() {
        match mark(dir) {
            None => {}
            Some(mark) if matches!(mark.kind, Kind::Submodule) => {
                submodule.get_or_insert((dir, mark));
            }
            Some(mark) => return Some((dir, mark)),
        }
    }
    submodule
}

fn mark(dir: &Path) -> Option<Mark> {
    let dot_git = dir.join(".git");
    match fs::metadata(&dot_git) {
        // Sandboxes leave empty `.git` folders behind.
        Ok(meta) if meta.is_dir() && has_head(&dot_git) => {
            Some(Mark { git_dir: dot_git, kind: Kind::Plain })
        }
        Ok(meta) if meta.is_file() => pointer(dir, &dot_git),
        _ => is_repository(dir).then(|| Mark { git_dir: dir.to_owned(), kind: Kind::Inside }),
    }
}

/// The mark that a `.git` file makes: one line, `gitdir: PATH`.
fn pointer(dir: &Path, dot_git: &Path) -> Option<Mark> {
    let bytes = read(dot_git)?;
    let target = dir.join(path_in(bytes.strip_prefix(b"gitdir: ")?));
    let Some(git_dir) = dunce::canonicalize(&target).ok().filter(|path| has_head(path)) else {
        return Some(Mark { git_dir: target, kind: Kind::Lost });
    };
    let kind = if let Some(bytes) = read(&git_dir.join("commondir")) {
        match dunce::canonicalize(git_dir.join(path_in(&bytes))) {
            Ok(repository) if has_head(&repository) => Kind::Linked(repository),
            _ => Kind::Lost,
        }
    } else if is_submodule(&git_dir) {
        Kind::Submodule
    } else if Core::of(&git_dir).bare == Some(true) {
        Kind::Linked(git_dir.clone())
    } else {
        Kind::Plain
    };
    Some(Mark { git_dir, kind })
}

/// Submodules have their repository in `modules/` of the outer one (or of its worktree's part).
fn is_submodule(git_dir: &Path) -> bool {
    git_dir
        .ancestors()
        .filter(|path| path.file_name().is_some_and(|name| name == "modules"))
        .any(|modules| modules.parent().is_some_and(has_head))
}

fn is_repository(dir: &Path) -> bool {
    has_head(dir) && dir.join("objects").is_dir() && dir.join("refs").exists()
}

fn has_head(git_dir: &Path) -> bool {
    // Not followed: the `HEAD` of an old repository may be a link to a branch without a commit.
    fs::symlink_metadata(git_dir.join("HEAD")).is_ok_and(|meta| !meta.is_dir())
}

fn branch(git_dir: &Path) -> Option<String> {
    let head = String::from_utf8(read(&git_dir.join("HEAD"))?).ok()?;
    let head = head.trim_end();
    let Some(target) = head.strip_prefix("ref:") else {
        return head.get(..7).filter(|hash| is_hex(hash)).map(str::to_owned);
    };
    let target = target.trim_start();
    let name = target.strip_prefix("refs/heads/").unwrap_or(target);
    // `.invalid` is what a repository with reftables has there.
    let known = !name.is_empty() && name != ".invalid" && !name.contains(char::is_control);
    known.then(|| name.to_owned())
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The two settings that tell where a repository's main checkout is.
#[derive(Debug, Default, PartialEq, Eq)]
struct Core {
    bare: Option<bool>,
    worktree: Option<String>,
}

impl Core {
    fn of(repository: &Path) -> Core {
        let mut core = Core::default();
        // Where worktrees have settings of their own, these two move to the second file.
        for name in ["config", "config.worktree"] {
            if let Some(bytes) = read(&repository.join(name)) {
                core.add(&String::from_utf8_lossy(&bytes));
            }
        }
        core
    }

    fn add(&mut self, text: &str) {
        let mut in_core = false;
        for line in text.lines() {
            let mut line = line.trim();
            if let Some((section, rest)) = line.strip_prefix('[').and_then(|l| l.split_once(']')) {
                in_core = section.trim().eq_ignore_ascii_case("core");
                line = rest.trim();
            }
            if in_core {
                self.set(line);
            }
        }
    }

    fn set(&mut self, line: &str) {
        let (key, value) = line.split_once('=').unwrap_or((line, "true"));
        let value = plain_value(value);
        match key.trim().to_ascii_lowercase().as_str() {
            "bare" => {
                let value = value.to_ascii_lowercase();
                self.bare = Some(matches!(value.as_str(), "true" | "yes" | "on" | "1"));
            }
            // Escapes are not undone: such a path would be another one.
            "worktree" if !value.contains('\\') => self.worktree = Some(value.to_owned()),
            _ => {}
        }
    }

    fn main_checkout(&self, repository: &Path) -> Option<PathBuf> {
        if self.bare == Some(true) {
            return None;
        }
        let noted = self.worktree.as_ref().and_then(|path| {
            dunce::canonicalize(repository.join(path)).ok().filter(|path| path.is_dir())
        });
        noted.or_else(|| {
            let named = repository.file_name().is_some_and(|name| name == ".git");
            repository.parent().filter(|_| named).map(Path::to_owned)
        })
    }
}

/// A value without its comment or the quotes around it.
fn plain_value(value: &str) -> &str {
    let value = value.trim();
    match value.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next().unwrap_or(quoted),
        None => value.split(['#', ';']).next().unwrap_or(value).trim_end(),
    }
}

fn path_in(bytes: &[u8]) -> PathBuf {
    let end = bytes.iter().rposition(|byte| !b"\r\n".contains(byte)).map_or(0, |last| last + 1);
    platform::path_of_bytes(bytes.get(..end).unwrap_or_default())
}

/// What is in a regular file. Anything else (a pipe would never end) counts as not there.
fn read(path: &Path) -> Option<Vec<u8>> {
    if !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::Core;

    #[test]
    fn settings_are_found_in_all_their_spellings() {
        let core = |bare: Option<bool>, worktree: Option<&str>| Core {
            bare,
            worktree: worktree.map(str::to_owned),
        };
        for (text, expected) in [
            ("", core(None, None)),
            ("[core]\n\tbare = true\n", core(Some(true), None)),
            ("[CORE]\r\n\tBare = Yes ; why\r\n", core(Some(true), None)),
            ("[core] bare\n", core(Some(true), None)),
            ("[core]\nbare = false\n[x]\nbare = true\n", core(Some(false), None)),
            ("[core \"x\"]\nbare = true\n", core(None, None)),
            ("[core]\n# bare = true\nworktree = ../../../a b\n", core(None, Some("../../../a b"))),
            ("[core]\nworktree = \"../a#b\" # c\n", core(None, Some("../a#b"))),
            ("[core]\nworktree = \"a\\\"b\"\n", core(None, None)),
        ] {
            let mut found = Core::default();
            found.add(text);
            assert_eq!(found, expected, "{text}");
        }
    }
}
