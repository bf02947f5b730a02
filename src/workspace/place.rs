//! What a caller's path means: relative to the top of its checkout, and never outside it.

use std::path::{Path, PathBuf};

use super::Workspace;
use crate::error::{Error, Result};

/// Characters that mean something in a pattern.
const SPECIAL: &[char] = &['*', '?', '[', ']', '{', '}', '\\'];

impl Workspace {
    /// The pattern that a caller means, relative to the top of the checkout. What is there by that
    /// very name is meant by it, whatever characters it has; symbolic links are followed.
    ///
    /// # Errors
    /// Where it leads out of the checkout, with what would be right.
    pub fn pattern(&self, written: &str) -> Result<String> {
        let text = written.trim();
        let text = if cfg!(windows) { text.replace('\\', "/") } else { text.to_owned() };
        if text.is_empty() {
            return Err(Error::invalid("a path is empty").hint(self.paths_are()));
        }
        if text.contains(char::is_control) {
            return Err(Error::invalid(format!("{} is not a path of one line", shown(&text))));
        }
        if text.starts_with('!') {
            return Err(Error::invalid(format!(
                "{} begins with `!`, and nothing can be taken out of a reservation",
                shown(&text)
            ))
            .hint("name what you need instead; a file of that name is `./!name`"));
        }
        if text == "~" || text.starts_with("~/") {
            return Err(Error::invalid(format!("`~` is not expanded: {}", shown(&text)))
                .hint(self.paths_are()));
        }
        let is_absolute = text.starts_with('/') || Path::new(&text).is_absolute();
        let inside = if is_absolute { self.without_top(&text)? } else { text };
        let names: Vec<&str> =
            inside.split('/').filter(|name| !name.is_empty() && *name != ".").collect();
        if names.contains(&"..") {
            return Err(
                Error::invalid(format!("{} has `..` in it", shown(written))).hint(self.paths_are())
            );
        }
        if !is_absolute && !inside.starts_with("./") {
            self.check_meant(&inside, &names)?;
        }
        let (found, is_folder) = self.follow_names(written, &names)?;
        // As in a .gitignore: a pattern without a folder is for all folders.
        let is_anywhere = names.len() == 1 && !is_absolute && !inside.starts_with("./");
        let prefix = match found.as_slice() {
            [] => return Ok("**".to_owned()),
            [Name { text, plain: false }] if is_anywhere && text != "**" => "**/",
            _ => "",
        };
        let texts: Vec<&str> = found.iter().map(|name| name.text.as_str()).collect();
        let text = prefix.to_owned() + &texts.join("/");
        Ok(match (is_folder, texts.last()) {
            // What is there is known to be a file or a folder.
            (Some(false), _) | (None, Some(&"**")) => text,
            // All that is in a folder, and below.
            (None, Some(&"*")) if !inside.ends_with('/') => text + "*",
            // A name without an ending may be a folder's.
            (None, Some(last)) if !inside.ends_with('/') && has_ending(last) => text,
            _ => text + "/",
        })
    }

    fn paths_are(&self) -> String {
        format!(
            "paths are taken from the top of your checkout, `{}`: such as `src/db/pool.rs` or \
             `src/db/**`",
            self.top.display()
        )
    }

    /// An absolute path below the top, also where it is spelled by way of a symbolic link.
    fn without_top(&self, text: &str) -> Result<String> {
        let path = Path::new(text);
        let below = path.strip_prefix(&self.top).map(Path::to_path_buf).ok().or_else(|| {
            path.ancestors().find_map(|above| {
                let real = dunce::canonicalize(above).ok()?;
                let rest = path.strip_prefix(above).ok()?;
                real.join(rest).strip_prefix(&self.top).map(Path::to_path_buf).ok()
            })
        });
        match below {
            Some(below) => Ok(below.to_string_lossy().replace(std::path::MAIN_SEPARATOR, "/")),
            None => Err(Error::refused(format!("{} is outside your checkout", shown(text)))
                .hint(self.paths_are())),
        }
    }

    /// A path that is there below the working directory, and not below the top, was meant from there.
    fn check_meant(&self, inside: &str, names: &[&str]) -> Result<()> {
        let Some(first) = names.first() else { return Ok(()) };
        let is_there = |folder: &Path| folder.join(first).symlink_metadata().is_ok();
        let Ok(below) = self.cwd.strip_prefix(&self.top) else { return Ok(()) };
        if below.as_os_str().is_empty() || is_there(&self.top) || !is_there(&self.cwd) {
            return Ok(());
        }
        let below = below.to_string_lossy().replace(std::path::MAIN_SEPARATOR, "/");
        Err(Error::invalid(format!("there is no {} at the top of your checkout", shown(first)))
            .hint(format!(
                "paths are taken from there, not from your working directory: write \
                 `{below}/{inside}` (or `./{inside}` for a new one at the top)"
            )))
    }

    /// What is there by its very name, with links followed; behind it what is a pattern, or new.
    /// Where all of it is there, whether it is a folder.
    fn follow_names(&self, written: &str, names: &[&str]) -> Result<(Vec<Name>, Option<bool>)> {
        let mut found: Vec<Name> = Vec::new();
        let mut real = Some(self.top.clone());
        for name in names {
            let there = real.as_ref().and_then(|real| there(real, name));
            if let Some(path) = there {
                let path = self.follow(written, &path)?;
                let below = path.strip_prefix(&self.top).unwrap_or(&path).components();
                found = below
                    .map(|name| name.as_os_str().to_string_lossy())
                    .map(|name| Name { text: escaped(&name), plain: true })
                    .collect();
                real = Some(path);
            } else {
                real = None;
                let plain = !name.contains(SPECIAL);
                found.push(Name { text: (*name).to_owned(), plain });
            }
        }
        Ok((found, real.map(|real| real.is_dir())))
    }

    fn follow(&self, written: &str, path: &Path) -> Result<PathBuf> {
        if !path.symlink_metadata().is_ok_and(|meta| meta.is_symlink()) {
            return Ok(path.to_owned());
        }
        let refused = |what: String| {
            Err(Error::refused(format!("{} leads by a symbolic link to {what}", shown(written)))
                .hint(self.paths_are()))
        };
        match dunce::canonicalize(path) {
            Ok(target) if target.starts_with(&self.top) => Ok(target),
            Ok(target) => refused(format!("`{}`, outside your checkout", target.display())),
            Err(_) => refused("what is not there".to_owned()),
        }
    }
}

struct Name {
    text: String,
    /// It stands for itself alone.
    plain: bool,
}

/// `pool.rs` has an ending; `.hidden` has none.
fn has_ending(name: &str) -> bool {
    name.trim_start_matches('.').contains('.')
}

/// The path of a name in a folder, as it is written or without its escapes, if it is there.
fn there(folder: &Path, name: &str) -> Option<PathBuf> {
    let mut plain = String::with_capacity(name.len());
    let mut rest = name.chars();
    while let Some(c) = rest.next() {
        plain.push(if c == '\\' { rest.next().unwrap_or(c) } else { c });
    }
    let names = [Some(name), (plain != name).then_some(plain.as_str())];
    let mut paths = names.into_iter().flatten().map(|name| folder.join(name));
    paths.find(|path| path.symlink_metadata().is_ok())
}

fn escaped(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for c in name.chars() {
        if SPECIAL.contains(&c) {
            text.push('\\');
        }
        text.push(c);
    }
    text
}

/// A path as an error quotes it: on one line, and cut where it gets long.
fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(200).collect();
    if shown.len() < text.len() {
        shown.push_str("...");
    }
    format!("`{}`", shown.escape_debug().to_string().replace('`', "\\u{60}").replace("\\\\", "\\"))
}
