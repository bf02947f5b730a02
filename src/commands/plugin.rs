//! `team-table plugin`: writes a package that a client installs as a plugin.
//!
//! A folder that is not there yet appears whole or not at all. One that is there and is a package of
//! ours is brought up to date file by file; where one cannot be written, those before it get their
//! old bytes back. Nothing else is ever touched.

use std::{
    ffi::OsString,
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use super::{init, next};
use crate::{
    clients::{
        KEY,
        package::{PACKAGES, Package},
    },
    error::{Error, Result},
    platform,
};

/// Write a plugin package for a client
///
/// The package has the MCP server, the hooks that tell of new messages, and a skill that says when
/// to use what; its folder is a marketplace as well, so that the client installs it from there. A
/// plugin is for all projects of a client, where init is for one. Run it again after an upgrade: it
/// brings its own package up to date and refuses any other folder that is not empty.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The client that the package is for
    #[arg(
        value_parser = clap::builder::PossibleValuesParser::new(
            PACKAGES.iter().map(|package| package.client)
        )
    )]
    pub client: String,

    /// The folder of the package; it is made if need be
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}

/// Where `plugin` runs.
pub struct Setup<'a> {
    /// A relative `DIR` is taken from here.
    pub cwd: PathBuf,
    /// `PATH`.
    pub path: OsString,
    pub current_exe: PathBuf,
    /// Standard error: there are no data in what is said.
    pub talk: &'a mut dyn Write,
}

/// A file of the package, with the bytes that lie at its path now.
struct Part {
    path: PathBuf,
    text: String,
    before: Option<Vec<u8>>,
}

/// Runs the command.
///
/// # Errors
/// A folder that is somebody else's, or that cannot be written to.
pub fn run(args: &Args, cx: &mut Setup<'_>) -> Result<()> {
    let Some(package) = Package::named(&args.client) else {
        let known: Vec<&str> = PACKAGES.iter().map(|package| package.client).collect();
        return Err(Error::usage(format!("no package for a client named `{}`", args.client))
            .hint(format!("there are: {}", known.join(", "))));
    };
    if args.folder.as_os_str().is_empty() {
        return Err(Error::usage("the folder has no name").hint(NEW));
    }
    // Without the `.` in `./package`, which would be shown.
    let folder: PathBuf = cx.cwd.join(&args.folder).components().collect();
    let command = init::command(&cx.path, &cx.current_exe)?;
    let files = package.files(&command).map_err(|fault| {
        Error::internal(format!("a template of the package is wrong: {}", fault.text))
    })?;
    let done = match look(&folder, package)? {
        Found::Nothing => make(&folder, &files)?,
        Found::Empty | Found::Ours => bring_up_to_date(&folder, &files)?,
    };
    let next = next_steps(package, &folder, &command);
    let told = format!("{done}{next}");
    let failed = |err: io::Error| Error::io("write to", Path::new("the terminal"), err);
    cx.talk.write_all(told.as_bytes()).and_then(|()| cx.talk.flush()).map_err(failed)
}

const NEW: &str = "name a folder that is not there yet; each client's package has one of its own";

/// What is at the place of the package.
enum Found {
    Nothing,
    Empty,
    Ours,
}

fn look(folder: &Path, package: &Package) -> Result<Found> {
    let shown = folder.display();
    let mut entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(_) if folder.exists() && !folder.is_dir() => {
            return Err(Error::refused(format!("`{shown}` is no folder")).hint(NEW));
        }
        Err(err) if is_absence(&err) => {
            if fs::symlink_metadata(folder).is_ok() {
                return Err(
                    Error::refused(format!("`{shown}` is a link that leads nowhere")).hint(NEW)
                );
            }
            return match folder.parent().filter(|parent| !parent.is_dir()) {
                Some(parent) => Err(Error::refused(format!(
                    "there is no folder `{}` to make `{shown}` in",
                    parent.display()
                ))
                .hint("make that one first, or name another place")),
                None => Ok(Found::Nothing),
            };
        }
        Err(err) => return Err(Error::io("read", folder, err)),
    };
    if entries.next().is_none() {
        return Ok(Found::Empty);
    }
    let manifest = folder.join(package.manifest);
    let text = match platform::read_file(&manifest) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(err) if is_absence(&err) => String::new(),
        Err(err) => return Err(Error::io("read", &manifest, err)),
    };
    if Package::is_ours(&text) {
        return Ok(Found::Ours);
    }
    Err(Error::refused(format!(
        "`{shown}` is not empty, and is no package of team-table for {}",
        package.client
    ))
    .hint(NEW))
}

/// Also where a file stands in the place of a folder above it.
fn is_absence(err: &io::Error) -> bool {
    matches!(err.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Makes the folder under another name beside its place and moves it there.
fn make(folder: &Path, files: &[(&str, String)]) -> Result<String> {
    let failed = |err| Error::io("make", folder, err);
    let parent = folder.parent().unwrap_or(folder);
    let mut builder = tempfile::Builder::new();
    builder.prefix(".team-table-");
    #[cfg(unix)]
    // Else it would be for its owner alone; the umask takes its share of this.
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o777));
    let draft = builder.tempdir_in(parent).map_err(failed)?;
    for (name, text) in files {
        let path = draft.path().join(name);
        make_folders(&path)?;
        platform::write_atomic(&path, text.as_bytes())?;
    }
    fs::rename(draft.path(), folder).map_err(failed)?;
    // It is not there any more under the name by which it would be removed.
    let _moved = draft.keep();
    Ok(format!("wrote {} files to `{}`\n", files.len(), folder.display()))
}

fn bring_up_to_date(folder: &Path, files: &[(&str, String)]) -> Result<String> {
    let mut parts = Vec::new();
    for (name, text) in files {
        let path = folder.join(name);
        let before = match platform::read_file(&path) {
            Ok(bytes) => Some(bytes),
            Err(err) if is_absence(&err) => None,
            Err(err) => return Err(Error::io("read", &path, err)),
        };
        if before.as_deref() != Some(text.as_bytes()) {
            parts.push(Part { path, text: text.clone(), before });
        }
    }
    for (number, part) in parts.iter().enumerate() {
        let written = make_folders(&part.path)
            .and_then(|()| platform::write_atomic(&part.path, part.text.as_bytes()));
        if let Err(err) = written {
            return Err(undo(parts.get(..number).unwrap_or_default(), err));
        }
    }
    if parts.is_empty() {
        return Ok(format!("`{}` is up to date\n", folder.display()));
    }
    let wrote = parts.iter().map(|part| format!("wrote `{}`\n", part.path.display()));
    Ok(wrote.collect())
}

fn make_folders(path: &Path) -> Result<()> {
    let Some(folder) = path.parent() else { return Ok(()) };
    fs::create_dir_all(folder).map_err(|err| Error::io("make", folder, err))
}

/// Gives the files back what they had, since `err` stopped the next one.
fn undo(parts: &[Part], err: Error) -> Error {
    let mut left = Vec::new();
    for part in parts.iter().rev() {
        let undone = match &part.before {
            Some(bytes) => platform::write_atomic(&part.path, bytes),
            None => fs::remove_file(&part.path).map_err(|err| Error::io("delete", &part.path, err)),
        };
        if undone.is_err() {
            left.push(format!("`{}`", part.path.display()));
        }
    }
    if left.is_empty() {
        return err.hint("no file was changed");
    }
    err.hint(format!("these were written before and stay so: {}", left.join(", ")))
}

/// How the person gets the client to use the package.
fn next_steps(package: &Package, folder: &Path, command: &str) -> String {
    let shown = folder.display().to_string();
    let shown = platform::shell_word(&shown);
    let mut steps: Vec<String> = Vec::new();
    for step in package.next {
        let behind = if step.takes_folder { format!(" {shown}") } else { String::new() };
        steps.push(format!("`{}{behind}` {}", step.command, step.why));
    }
    steps.push(package.beside_init.to_owned());
    if command != KEY {
        steps.push(format!(
            "the command is `{command}`, as PATH does not lead to this program: put it there and \
             run `team-table plugin {} {shown}` again before you share the folder",
            package.client
        ));
    }
    let steps: String = steps.iter().map(|step| next::item(step)).collect();
    format!("next:\n{steps}")
}
