//! `hook.log`: what went wrong in hooks, which say nothing themselves, so as not to disturb the client.

use std::{
    fs,
    io::{self, Write as _},
    path::PathBuf,
};

use super::{Workspace, workspace_of};
use crate::{
    error::{Error, Result},
    platform,
};

/// The name of the file, beside the table.
pub const HOOK_LOG: &str = "hook.log";

/// The log is cut to its newer half where it grows beyond this.
const MOST_BYTES: u64 = 64 * 1024;
/// A line is cut there.
const LINE_CHARS: usize = 500;

impl Workspace {
    /// Where failures of hooks are noted: beside the table.
    pub fn hook_log(&self) -> PathBuf {
        workspace_of(&self.table).unwrap_or(&self.seats).join(HOOK_LOG)
    }

    /// Notes a failure, in one line. What fails here is not told to anybody: the hook itself failed
    /// already, and there may be no folder.
    ///
    /// `what`: the client and the event, or the command. `at`: UTC, as the line shows it.
    pub fn note_hook_failure(&self, at: &str, what: &str, err: &str) {
        if let Err(err) = self.try_note(&line(at, what, err)) {
            tracing::debug!("{err}");
        }
    }

    fn try_note(&self, line: &str) -> Result<()> {
        let path = self.hook_log();
        let failed = |err: io::Error| Error::io("write to", &path, err);
        // To open a pipe would wait for its reader, and a link may lead to any file of the user.
        if fs::symlink_metadata(&path).is_ok_and(|meta| !meta.is_file()) {
            return Err(Error::storage(format!("{} is no file", path.display())));
        }
        let mut options = fs::OpenOptions::new();
        options.append(true);
        let mut log = match options.open(&path) {
            Err(err) if err.kind() == io::ErrorKind::NotFound => {
                platform::create_private_file(&path).map_err(failed)?
            }
            opened => opened.map_err(failed)?,
        };
        // One write, so that lines of several processes do not mix.
        log.write_all(line.as_bytes()).map_err(failed)?;
        if log.metadata().map_err(failed)?.len() > MOST_BYTES {
            let text = fs::read(&path).map_err(failed)?;
            platform::write_private(&path, newer_half(&text))?;
        }
        Ok(())
    }
}

fn line(at: &str, what: &str, err: &str) -> String {
    let text = format!("{at} {what}: {err}");
    let shown: String =
        text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(LINE_CHARS).collect();
    shown + "\n"
}

/// Whole lines only.
fn newer_half(text: &[u8]) -> &[u8] {
    let half = text.get(text.len() / 2..).unwrap_or_default();
    let begin = half.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    half.get(begin..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{LINE_CHARS, line, newer_half};

    #[test]
    fn a_failure_is_one_line() {
        assert_eq!(
            line("12:00", "claude Stop", "busy\nhint: wait"),
            "12:00 claude Stop: busy hint: wait\n"
        );
        assert_eq!(line("", "", &"x".repeat(1_000)).len(), LINE_CHARS + 1);
    }

    #[test]
    fn half_of_the_log_is_whole_lines() {
        assert_eq!(newer_half(b"aaaa\nbbbb\ncccc\n"), b"cccc\n");
        assert_eq!(newer_half(b""), b"");
    }
}
