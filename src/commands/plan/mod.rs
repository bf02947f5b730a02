//! What `init` is about to do to the clients' files: computed first ([`files`]), shown, then
//! written.

mod files;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use similar::TextDiff;

use self::files::refusal;
use super::receipt::{Drawer, Made, Receipt};
use crate::{
    clients::{Client, Fault, Network},
    error::{Error, Result},
    fault, platform,
};

/// All changes, and what there is to say about files that stay as they are.
#[derive(Default)]
pub(super) struct Plan {
    /// Paths below it are shown from here.
    cwd: PathBuf,
    changes: Vec<Change>,
    remarks: Vec<String>,
    /// The files with a server entry that were seen to.
    servers: Vec<&'static str>,
    /// The files into which something of ours goes, or went before.
    pub(super) names: Vec<&'static str>,
    /// The clients that call a server on the network when all is done, and which.
    pub(super) called: Vec<(&'static Client, Network)>,
    /// The files that a client will not take as they are.
    pub(super) untaken: Vec<Untaken>,
    /// Files without our parts when all is done, which the receipt need not name any more.
    free: Vec<PathBuf>,
    /// The command that a file names, where it is a path of this machine.
    pub(super) local: Option<String>,
}

/// A file that its client will not take as it is.
pub(super) struct Untaken {
    pub(super) client: &'static Client,
    pub(super) name: &'static str,
    /// It is the one with the server.
    pub(super) has_server: bool,
}

/// One file that will have other bytes, or be made, or be deleted.
struct Change {
    /// From the top of the checkout, with `/`.
    name: &'static str,
    path: PathBuf,
    before: Option<String>,
    after: Option<String>,
    /// Folders that come with a new file, and go with a deleted one if they are empty then; the
    /// innermost first. Once the file is made: those that were made for it.
    folders: Vec<PathBuf>,
    /// The permission to run our tools unasked comes in.
    allow: bool,
}

impl Plan {
    pub(super) fn new(cwd: &Path) -> Plan {
        Plan { cwd: cwd.to_owned(), ..Plan::default() }
    }

    /// Whether a file of that name is changed.
    pub(super) fn changes(&self, name: &str) -> bool {
        self.changes.iter().any(|change| change.name == name)
    }

    /// Something to say beside the changes.
    pub(super) fn remark(&mut self, remark: String) {
        self.remarks.push(remark);
    }

    fn change(&mut self, change: Change) -> Result<()> {
        if change.before == change.after {
            return Ok(());
        }
        // A new file would take its place, but somebody meant it to stay.
        if fs::metadata(&change.path).is_ok_and(|meta| meta.permissions().readonly()) {
            return Err(Error::refused(format!("`{}` is read-only", change.path.display())).hint(
                "no file was changed; make it writable, or leave its client out (--client)",
            ));
        }
        self.changes.push(change);
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// All changes as a unified diff.
    pub(super) fn diff(&self) -> String {
        self.changes.iter().map(|change| printable(&change.diff())).collect()
    }

    /// What the diff does not show, a line each.
    pub(super) fn remarks(&self) -> String {
        let nothing = self.is_empty().then_some("nothing to change");
        let remarks = self.remarks.iter().map(String::as_str).chain(nothing);
        remarks.flat_map(|remark| [remark, "\n"]).collect()
    }

    /// Whether all of it was shown by the plan that was made before. Says what is different by now
    /// and does no harm, a line each: somebody else may have done what was to be done.
    pub(super) fn news_since(&self, shown: &Plan) -> Result<String> {
        if let Some(new) = self.changes.iter().find(|change| !shown.changes.contains(change)) {
            return Err(changed(&new.path)
                .hint("no file was written; run `team-table init` again to see what it does now"));
        }
        let is_left = |path: &Path| self.changes.iter().any(|change| change.path == path);
        let gone = shown.changes.iter().filter(|change| !is_left(&change.path)).map(|change| {
            format!("{} was changed meanwhile: nothing is left to do there", self.named(change))
        });
        let remarks = self.remarks.iter().filter(|remark| !shown.remarks.contains(remark)).cloned();
        Ok(gone.chain(remarks).flat_map(|line| [line, "\n".to_owned()]).collect())
    }

    /// Writes everything, or where that fails nothing; says what was done, a line each.
    pub(super) fn write(&mut self) -> Result<String> {
        self.write_all().map_err(|(err, _)| err)
    }

    /// Where it fails, the paths beside the error are those that could not be restored.
    fn write_all(&mut self) -> Result<String, (Error, Vec<PathBuf>)> {
        for number in 0..self.changes.len() {
            fault::point("before_file");
            if let Some(Err(err)) = self.changes.get_mut(number).map(Change::write) {
                return Err(self.undo(number, err));
            }
        }
        // Now that all files of a folder are gone, it may go, whichever of them it was made for.
        self.changes.iter().filter(|change| change.after.is_none()).for_each(Change::clear_folders);
        let done = self.changes.iter().map(|change| {
            let verb = if change.after.is_some() { "wrote" } else { "deleted" };
            format!("{verb} {}\n", self.named(change))
        });
        Ok(done.collect())
    }

    /// Takes the first `n` changes back, the last one first, since `err` stopped the next one.
    fn undo(&self, n: usize, err: Error) -> (Error, Vec<PathBuf>) {
        let (mut left, mut told) = (Vec::new(), Vec::new());
        for change in self.changes.iter().take(n).rev() {
            if let Err(why) = change.undo() {
                let verb = if change.after.is_some() { "written" } else { "deleted" };
                let name = self.named(change);
                told.push(format!("{name} was {verb} before that and is not restored: {why}"));
                left.push(change.path.clone());
            }
        }
        if left.is_empty() {
            return (err.hint("no file was changed"), left);
        }
        (err.hint(format!("{}; no other file was changed", told.join("; "))), left)
    }

    /// Writes everything, with copies of the files as they were and a receipt. The receipt comes
    /// first: one of what was not done does no harm, the reverse would.
    pub(super) fn write_recorded(
        &mut self,
        drawer: &Drawer,
        mut receipt: Receipt,
        now: i64,
    ) -> Result<String> {
        let mut receipt_before = receipt.clone();
        self.record(drawer, &mut receipt, now).map_err(|err| err.hint("no file was changed"))?;
        match self.write_all() {
            Ok(done) if self.free.is_empty() => Ok(done),
            Ok(done) => {
                for path in &self.free {
                    drawer.strike(&mut receipt, path);
                }
                let stored = drawer.store(&receipt);
                stored.map_err(|err| err.hint("the clients' files were changed as shown"))?;
                Ok(done)
            }
            Err((err, left)) => {
                for change in self.changes.iter().filter(|change| left.contains(&change.path)) {
                    if self.free.contains(&change.path) {
                        drawer.strike(&mut receipt_before, &change.path);
                    } else {
                        change.note(drawer, &mut receipt_before);
                    }
                }
                if let Err(err) = drawer.store(&receipt_before) {
                    tracing::warn!("the receipt tells of what was not done: {err}");
                }
                Err(err)
            }
        }
    }

    fn record(&self, drawer: &Drawer, receipt: &mut Receipt, now: i64) -> Result<()> {
        for change in &self.changes {
            if let Some(before) = &change.before {
                drawer.keep(change.name, before.as_bytes(), now)?;
            }
            if !self.free.contains(&change.path) {
                change.note(drawer, receipt);
            }
        }
        drawer.store(receipt)
    }

    /// The file of a change, as it is shown.
    fn named(&self, change: &Change) -> String {
        format!("`{}`", change.path.strip_prefix(&self.cwd).unwrap_or(&change.path).display())
    }
}

/// They do the same to the same file; folders may be there by now.
impl PartialEq for Change {
    fn eq(&self, other: &Change) -> bool {
        (&self.path, &self.before, &self.after) == (&other.path, &other.before, &other.after)
    }
}

impl Change {
    fn diff(&self) -> String {
        let side = |letter: char, text: Option<&String>| match text {
            Some(_) => format!("{letter}/{}", self.name),
            None => "/dev/null".to_owned(),
        };
        TextDiff::from_lines(
            self.before.as_deref().unwrap_or_default(),
            self.after.as_deref().unwrap_or_default(),
        )
        .unified_diff()
        .header(&side('a', self.before.as_ref()), &side('b', self.after.as_ref()))
        .to_string()
    }

    fn note(&self, drawer: &Drawer, receipt: &mut Receipt) {
        let (file, folders, allow) = (self.before.is_none(), self.folders.clone(), self.allow);
        drawer.note(receipt, &self.path, &Made { file, folders, allow });
    }

    fn write(&mut self) -> Result<()> {
        if read(&self.path)? != self.before {
            return Err(changed(&self.path));
        }
        if self.after.is_none() {
            return self.delete();
        }
        let is_new = self.before.is_none();
        let made = if is_new { self.make_folders() } else { Ok(()) };
        let after = self.after.as_deref().unwrap_or_default();
        let written = made.and_then(|()| platform::write_atomic(&self.path, after.as_bytes()));
        if written.is_err() && is_new {
            self.clear_folders();
        }
        written
    }

    /// Somebody else may make them too: those are theirs.
    fn make_folders(&mut self) -> Result<()> {
        for folder in std::mem::take(&mut self.folders).into_iter().rev() {
            match fs::create_dir(&folder) {
                Ok(()) => self.folders.insert(0, folder),
                Err(err) if err.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => {}
                Err(err) => return Err(Error::io("make", &folder, err)),
            }
        }
        Ok(())
    }

    fn delete(&self) -> Result<()> {
        let target = platform::follow_links(&self.path)?;
        fs::remove_file(&target).map_err(|err| Error::io("delete", &target, err))?;
        self.clear_folders();
        Ok(())
    }

    /// Folders that hold something by now stay.
    fn clear_folders(&self) {
        self.folders.iter().take_while(|folder| fs::remove_dir(folder).is_ok()).for_each(drop);
    }

    /// Restores what was there, unless somebody has written to the file since.
    fn undo(&self) -> Result<()> {
        if !matches!(read(&self.path), Ok(now) if now == self.after) {
            return Err(Error::refused("somebody has changed it since"));
        }
        let Some(before) = &self.before else { return self.delete() };
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder).map_err(|err| Error::io("make", folder, err))?;
        }
        platform::write_atomic(&self.path, before.as_bytes())
    }
}

fn changed(path: &Path) -> Error {
    Error::refused(format!("`{}` was changed meanwhile", path.display()))
}

/// The folders on the way to a file that are not there yet, the innermost first.
fn missing_folders(path: &Path) -> Result<Vec<PathBuf>> {
    let above = || path.ancestors().skip(1);
    if let Some(there) = above().find(|folder| folder.exists())
        && !there.is_dir()
    {
        let (there, path) = (there.display(), path.display());
        return Err(Error::refused(format!("`{there}` is no folder, so `{path}` cannot be made")));
    }
    Ok(above().take_while(|folder| !folder.exists()).map(Path::to_owned).collect())
}

/// The text of a file, none where there is no file.
fn read(path: &Path) -> Result<Option<String>> {
    let bytes = match platform::read_file(path) {
        Ok(bytes) => bytes,
        Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(err) => return Err(Error::io("read", path, err)),
    };
    String::from_utf8(bytes).map(Some).map_err(|err| {
        let valid = err.as_bytes().get(..err.utf8_error().valid_up_to()).unwrap_or_default();
        let fault = Fault::behind(&String::from_utf8_lossy(valid), "expected UTF-8");
        refusal(path, &fault)
    })
}

/// A diff for a terminal: control characters that a file may hold are shown, not obeyed.
fn printable(diff: &str) -> String {
    let mut shown = String::with_capacity(diff.len());
    let mut chars = diff.chars().peekable();
    while let Some(char) = chars.next() {
        let is_line_end = char == '\r' && chars.peek() == Some(&'\n');
        if char.is_control() && !matches!(char, '\n' | '\t') && !is_line_end {
            shown.extend(char.escape_unicode());
        } else {
            shown.push(char);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::{Change, Plan, printable};
    use crate::{error::Kind, platform::write_atomic};

    fn plan(top: &Path, files: &[(&str, Option<&str>, Option<&str>)]) -> Plan {
        let changes = files.iter().map(|(file, before, after)| Change {
            name: "file",
            path: top.join(file),
            before: before.map(str::to_owned),
            after: after.map(str::to_owned),
            folders: super::missing_folders(&top.join(file)).unwrap(),
            allow: false,
        });
        Plan { changes: changes.collect(), ..Plan::new(top) }
    }

    #[test]
    fn a_folder_that_somebody_else_made_meanwhile_is_used_and_stays() {
        let top = tempfile::tempdir().unwrap();
        let at = |name: &str| top.path().join(name);
        let mut plan = plan(top.path(), &[("a/b/file", None, Some("1")), ("bad", Some(""), None)]);
        fs::create_dir(at("a")).unwrap();
        plan.changes[0].write().unwrap();
        assert_eq!(fs::read(at("a/b/file")).unwrap(), b"1");
        plan.changes[0].undo().unwrap();
        assert!(at("a").is_dir() && !at("a/b").exists());

        let mut plan = self::plan(top.path(), &[("c/d/file", None, Some("1"))]);
        fs::create_dir(at("c")).unwrap();
        write_atomic(&at("c/d"), b"a file").unwrap();
        assert_eq!(plan.write().unwrap_err().hint_text(), Some("no file was changed"));
        assert!(at("c/d").is_file());
    }

    #[test]
    fn what_somebody_wrote_since_is_not_undone() {
        let top = tempfile::tempdir().unwrap();
        let at = |name: &str| top.path().join(name);
        let files = [
            ("edited", Some("old"), Some("new")),
            ("made", None, Some("new")),
            ("deleted", Some("old"), None),
            ("untouched", Some("old"), Some("new")),
        ];
        let mut plan = plan(top.path(), &files);
        for (file, before, _) in files {
            if let Some(before) = before {
                write_atomic(&at(file), before.as_bytes()).unwrap();
            }
        }
        for change in &mut plan.changes {
            change.write().unwrap();
        }
        for file in ["edited", "made", "deleted"] {
            write_atomic(&at(file), b"theirs").unwrap();
        }
        let (err, left) = plan.undo(4, super::changed(&at("last")));
        let hint = err.hint_text().unwrap();
        for (file, verb) in [("edited", "written"), ("made", "written"), ("deleted", "deleted")] {
            assert_eq!(fs::read(at(file)).unwrap(), b"theirs");
            assert!(left.contains(&at(file)));
            let part = format!(
                "`{file}` was {verb} before that and is not restored: somebody has changed it since"
            );
            assert!(hint.contains(&part), "{hint}");
        }
        assert_eq!((left.len(), fs::read(at("untouched")).unwrap()), (3, b"old".to_vec()));
        assert!(hint.ends_with("; no other file was changed"), "{hint}");
    }

    #[test]
    fn a_file_that_was_changed_just_now_is_not_written() {
        let top = tempfile::tempdir().unwrap();
        let at = |name: &str| top.path().join(name);
        let mut plan =
            plan(top.path(), &[("a", None, Some("new")), ("b", Some("old"), Some("new"))]);
        write_atomic(&at("b"), b"theirs").unwrap();
        let err = plan.write().unwrap_err();
        assert_eq!((err.kind(), err.hint_text()), (Kind::Refused, Some("no file was changed")));
        assert_eq!(fs::read(at("b")).unwrap(), b"theirs");
        assert!(!at("a").exists());
    }

    #[test]
    fn a_diff_cannot_steer_a_terminal() {
        assert_eq!(printable("+a\t\u{1b}[2J\rb\r\n é\n"), "+a\t\\u{1b}[2J\\u{d}b\r\n é\n");
    }
}
