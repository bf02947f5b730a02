//! What `init` is about to do to the clients' files: computed first, shown, then written.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use similar::TextDiff;

use super::receipt::{Drawer, Made, Receipt};
use crate::{
    clients::{Client, Fault, KEY, Server, State},
    error::{Error, Result},
    platform,
};

/// All changes, and what there is to say about files that stay as they are.
#[derive(Default)]
pub(super) struct Plan {
    /// Paths below it are shown from here.
    cwd: PathBuf,
    changes: Vec<Change>,
    remarks: Vec<String>,
    /// Files without our entry when all is done, which the receipt need not name any more.
    free: Vec<PathBuf>,
    /// The command that a file names, where it is a path of this machine.
    pub(super) local: Option<String>,
}

/// One file that will have other bytes, or be made, or be deleted.
struct Change {
    client: &'static Client,
    path: PathBuf,
    before: Option<String>,
    after: Option<String>,
    /// Folders that come with a new file, and go with a deleted one if they are empty then; the
    /// innermost first.
    folders: Vec<PathBuf>,
}

impl Plan {
    pub(super) fn new(cwd: &Path) -> Plan {
        Plan { cwd: cwd.to_owned(), ..Plan::default() }
    }

    /// Our entry goes into a client's file, or is brought up to date there.
    pub(super) fn put_in(
        &mut self,
        client: &'static Client,
        path: PathBuf,
        server: &Server,
    ) -> Result<()> {
        let folders = missing_folders(&path)?;
        let before = read(&path)?;
        let text = before.as_deref().unwrap_or_default();
        let state = client.look(text).map_err(|fault| refusal(&path, &fault))?;
        let after = client.add(text, server).map_err(|fault| refusal(&path, &fault))?;
        self.remark_on(client, &state);
        if let Some(fault) = client.complaint(&after) {
            self.remarks.push(format!(
                "{client} reads strict JSON and will not take `{}` as it is: line {}, column {}: {}",
                client.file, fault.line, fault.column, fault.text
            ));
        }
        if server.command != KEY && matches!(state, State::Absent | State::Ours(_)) {
            self.local = Some(server.command.clone());
        }
        self.change(Change { client, path, before, after: Some(after), folders });
        Ok(())
    }

    /// Our entry comes out of a client's file. The file goes too where init made it (so says the
    /// receipt, or without one: nothing else was in it) and nobody else uses it.
    pub(super) fn take_out(
        &mut self,
        client: &'static Client,
        path: PathBuf,
        made: Option<Made>,
    ) -> Result<()> {
        let Some(text) = read(&path)? else {
            self.free.push(path);
            return Ok(());
        };
        let state = client.look(&text).map_err(|fault| refusal(&path, &fault))?;
        let is_ours = match state {
            State::Absent | State::Ours(_) => true,
            // What is left of an entry without our part of it would break the client.
            State::Extended(_) => made.is_some(),
            State::Foreign => false,
        };
        if !is_ours {
            self.remark_on(client, &state);
            return Ok(());
        }
        let after = client.remove(&text).map_err(|fault| refusal(&path, &fault))?;
        let (goes, folders) = if let Some(made) = made {
            (made.file && client.is_bare(&after), made.folders)
        } else {
            let is_nested = Path::new(client.file).components().count() > 1;
            let folder = path.parent().filter(|_| is_nested).map(Path::to_owned);
            (after.is_empty() && after != text, folder.into_iter().collect())
        };
        self.free.push(path.clone());
        let after = Some(after).filter(|_| !goes);
        self.change(Change { client, path, before: Some(text), after, folders });
        Ok(())
    }

    fn change(&mut self, change: Change) {
        if change.before != change.after {
            self.changes.push(change);
        }
    }

    fn remark_on(&mut self, client: &Client, state: &State) {
        let file = client.file;
        match state {
            State::Absent | State::Ours(_) => {}
            State::Extended(others) => {
                let others: Vec<String> = others.iter().map(|name| format!("`{name}`")).collect();
                self.remarks.push(format!(
                    "`{file}` starts team-table with settings that init did not write ({}): left \
                     as it is",
                    others.join(", ")
                ));
            }
            State::Foreign => self.remarks.push(format!(
                "`{file}` has a server `{KEY}` that starts something else: left as it is"
            )),
        }
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

    /// Whether the files are still what the plan was made for.
    pub(super) fn check_unchanged(&self) -> Result<()> {
        for change in &self.changes {
            if read(&change.path)? != change.before {
                let shown = change.path.display();
                return Err(Error::refused(format!("`{shown}` was changed meanwhile"))
                    .hint("no file was written; run `team-table init` again"));
            }
        }
        Ok(())
    }

    /// Writes everything, or where that fails nothing; says what was done, a line each.
    pub(super) fn write(&self) -> Result<String> {
        let mut done = String::new();
        for (number, change) in self.changes.iter().enumerate() {
            if let Err(err) = change.write() {
                self.changes.iter().take(number).for_each(Change::undo);
                return Err(err.hint("no file was changed"));
            }
            let verb = if change.after.is_some() { "wrote" } else { "deleted" };
            let path = change.path.strip_prefix(&self.cwd).unwrap_or(&change.path);
            done.extend([verb, " `", &path.to_string_lossy(), "`\n"]);
        }
        Ok(done)
    }

    /// Writes everything, with copies of the files as they were and a receipt. The receipt comes
    /// first: one of what was not done does no harm, the reverse would.
    pub(super) fn write_recorded(
        &self,
        drawer: &Drawer,
        mut receipt: Receipt,
        now: i64,
    ) -> Result<String> {
        let receipt_before = receipt.clone();
        for change in &self.changes {
            if let Some(before) = &change.before {
                drawer.keep(change.client.file, before.as_bytes(), now)?;
            }
            if !self.free.contains(&change.path) {
                drawer.note(&mut receipt, &change.path, change.before.is_none(), &change.folders);
            }
        }
        drawer.store(&receipt)?;
        match self.write() {
            Ok(done) => {
                for path in &self.free {
                    drawer.strike(&mut receipt, path);
                }
                drawer.store(&receipt)?;
                Ok(done)
            }
            Err(err) => {
                drawer.store(&receipt_before)?;
                Err(err)
            }
        }
    }
}

impl Change {
    fn diff(&self) -> String {
        let side = |letter: char, text: Option<&String>| match text {
            Some(_) => format!("{letter}/{}", self.client.file),
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

    fn write(&self) -> Result<()> {
        let Some(after) = &self.after else { return self.delete() };
        if self.before.is_none() {
            for folder in self.folders.iter().rev() {
                fs::create_dir(folder).map_err(|err| Error::io("make", folder, err))?;
            }
        }
        let written = platform::write_atomic(&self.path, after.as_bytes());
        if written.is_err() && self.before.is_none() {
            self.clear_folders();
        }
        written
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

    /// Restores what was there, as far as that can be done; the failure before it is what counts.
    fn undo(&self) {
        match &self.before {
            None => self.delete().ok(),
            Some(before) => {
                self.path.parent().map(fs::create_dir_all);
                platform::write_atomic(&self.path, before.as_bytes()).ok()
            }
        };
    }
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
    let bytes = match fs::read(path) {
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

fn refusal(path: &Path, fault: &Fault) -> Error {
    let Fault { line, column, text } = fault;
    Error::refused(format!("`{}` line {line}, column {column}: {text}", path.display()))
        .hint("no file was changed; mend that place, then run `team-table init` again")
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
    use super::printable;

    #[test]
    fn a_diff_cannot_steer_a_terminal() {
        assert_eq!(printable("+a\t\u{1b}[2J\rb\r\n é\n"), "+a\t\\u{1b}[2J\\u{d}b\r\n é\n");
    }
}
