//! What only a person or a script runs.

pub mod init;
pub mod log;
mod plan;
mod receipt;
pub mod reset;
pub mod serve;
pub mod status;
pub mod tool;
pub mod which;

use std::io::{self, BufRead as _, Write};

use crate::error::{Error, Result};

/// Prints a line of data. A reader that is gone ends the program, quietly.
fn print(out: &mut dyn Write, text: &str) -> Result<()> {
    writeln!(out, "{text}").map_err(unprintable)
}

fn flush(out: &mut dyn Write) -> Result<()> {
    out.flush().map_err(unprintable)
}

fn unprintable(err: io::Error) -> Error {
    Error::internal("cannot print").source(err)
}

fn print_json(out: &mut dyn Write, value: &impl serde::Serialize) -> Result<()> {
    let text = serde_json::to_string(value)
        .map_err(|err| Error::internal("cannot write JSON").source(err))?;
    print(out, &text)
}

/// Says something to the person, beside the data.
#[expect(clippy::print_stderr, reason = "stderr is talk")]
fn say(text: &str) {
    eprintln!("{text}");
}

/// An event loop for one command.
pub(crate) fn event_loop() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|err| Error::internal("cannot start the event loop").source(err))
}

/// A question that only `y` and `yes` answer with yes.
pub(crate) fn asked(question: &str) -> Result<bool> {
    say(question);
    let mut answer = String::new();
    io::stdin()
        .lock()
        .read_line(&mut answer)
        .map_err(|err| Error::internal("cannot read the answer").source(err))?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}
