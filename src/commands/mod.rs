//! What only a person or a script runs.

mod address;
pub mod doctor;
pub mod hook;
pub mod init;
pub mod log;
mod next;
mod plan;
pub mod plugin;
pub mod poll;
mod receipt;
pub mod reset;
pub mod serve;
pub mod status;
pub mod token;
pub mod tool;
pub mod web;
pub mod which;

use std::{
    io::{self, BufRead as _, Write},
    path::Path,
    sync::LazyLock,
};

use clap::{Command, builder::StyledStr};

use crate::{
    error::{Error, Result},
    tools::{Desk, TABLE},
    view::{sanitize, wrap::wrap},
};

/// Prints a line of data. A reader that is gone ends the program, quietly.
fn print(out: &mut dyn Write, text: &str) -> Result<()> {
    writeln!(out, "{text}").map_err(Error::unprintable)
}

/// Prints a text of ours with words of others: at the width of the terminal, where it goes to one.
fn print_text(out: &mut dyn Write, text: &str) -> Result<()> {
    match terminal_size::terminal_size_of(io::stdout()) {
        Some((terminal_size::Width(columns), _)) => print(out, &wrap(text, usize::from(columns))),
        None => print(out, text),
    }
}

fn flush(out: &mut dyn Write) -> Result<()> {
    out.flush().map_err(Error::unprintable)
}

fn print_json(out: &mut dyn Write, value: &impl serde::Serialize) -> Result<()> {
    let text = serde_json::to_string(value)
        .map_err(|err| Error::internal("cannot write JSON").source(err))?;
    print(out, &sanitize::json(&text))
}

/// Says something to the person, beside the data.
#[expect(clippy::print_stderr, reason = "stderr is talk")]
fn say(text: &str) {
    eprintln!("{text}");
}

fn no_table(table: &Path) -> String {
    let table = table.display();
    format!(
        "no table here yet: {table} is made by `team-table init`, or by the first call of an agent"
    )
}

/// For commands that only look: there is nothing to look at.
fn print_no_table(table: &Path, json: bool, out: &mut dyn Write) -> Result<()> {
    if json {
        return print_json(out, &serde_json::json!({ "table": table, "exists": false }));
    }
    print_text(out, &no_table(table))
}

/// For commands that change what is there, and make no table for it.
fn needs_table(desk: &Desk) -> Result<()> {
    if desk.table_exists() {
        return Ok(());
    }
    Err(Error::refused(no_table(&desk.workspace().table)))
}

/// An error's text for who runs commands: hints name tools and parameters, as models know them.
pub fn in_commands(text: &str) -> String {
    let lines: Vec<String> = text
        .split('\n')
        .map(|line| if line.starts_with("hint: ") { words_in_commands(line) } else { line.into() })
        .collect();
    lines.join("\n")
}

/// A tool's command with its help in the words of who runs commands.
pub(crate) fn help_in_commands(command: Command) -> Command {
    let told = |text: Option<&StyledStr>| text.map(|text| words_in_commands(&text.to_string()));
    let (about, long_about) = (told(command.get_about()), told(command.get_long_about()));
    let command = command.mut_args(|argument| match told(argument.get_help()) {
        Some(help) => argument.help(help),
        None => argument,
    });
    let command = command.about(about.unwrap_or_default());
    match long_about {
        Some(text) => command.long_about(text),
        None => command,
    }
}

/// What tools and their parameters are called on the command line, in the order in which the words
/// are looked for.
static WORDS: LazyLock<Vec<(String, String)>> = LazyLock::new(|| {
    let mut words = Vec::new();
    for entry in TABLE {
        let command = format!("`team-table {}`", entry.command);
        words.push((format!("call {}", entry.name), format!("run {command}")));
        for argument in (entry.clap)().get_arguments() {
            if let Some(long) = argument.get_long() {
                let name = argument.get_id().as_str();
                words.push((
                    format!("{} with {name} ", entry.name),
                    format!("{command} with --{long} "),
                ));
            }
        }
        // A name of one word may be meant as that word.
        if entry.name.contains('_') {
            words.push((entry.name.to_owned(), command));
        }
        for argument in (entry.clap)().get_arguments() {
            let name = argument.get_id().as_str();
            if let Some(long) = argument.get_long().filter(|_| name.contains('_')) {
                words.push((name.to_owned(), format!("--{long}")));
            }
        }
    }
    words
});

fn words_in_commands(text: &str) -> String {
    WORDS.iter().fold(text.to_owned(), |text, (word, ours)| text.replace(word, ours))
}

/// A question that only `y` and `yes` answer with yes.
pub(crate) fn asked(question: &str) -> Result<bool> {
    let mut talk = io::stderr();
    write!(talk, "{question} ").and_then(|()| talk.flush()).map_err(Error::unprintable)?;
    let mut answer = String::new();
    io::stdin()
        .lock()
        .read_line(&mut answer)
        .map_err(|err| Error::internal("cannot read the answer").source(err))?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

#[cfg(test)]
mod tests {
    use super::in_commands;

    #[test]
    fn hints_name_commands() {
        let check = |hint: &str, shown: &str| {
            assert_eq!(in_commands(&format!("x\nhint: {hint}")), format!("x\nhint: {shown}"));
        };
        check(
            "to write to everyone, call broadcast",
            "to write to everyone, run `team-table broadcast`",
        );
        check(
            "get_messages with include_read shows the ids",
            "`team-table inbox` with --include-read shows the ids",
        );
        check(
            "list_tasks with ready shows what you could claim",
            "`team-table tasks` with --ready shows what you could claim",
        );
        check(
            "reopen it first: update_task with status pending",
            "reopen it first: `team-table update-task` with --status pending",
        );
        check("answer with `reply_to` alone", "answer with `--reply-to` alone");
        check("the register of members", "the register of members");
        assert_eq!(in_commands("call get_messages"), "call get_messages", "only hints");
    }
}
