//! The text of a message as a parameter: a string for models; on the command line an argument,
//! `-` for stdin, or `--body-file`, so that no shell eats backticks. And whom it is for, since a text
//! from a file leaves the recipient as the only argument.

use std::{
    io::Read as _,
    path::{Path, PathBuf},
    str::FromStr,
};

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, error::ErrorKind, value_parser};
use serde::Deserialize;

use crate::error::Error;

#[derive(Debug, Clone, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub(super) struct Content(pub String);

// Not a doc comment: models would read it.
// A long text beside others, such as a description; on the command line `-` reads it from stdin.
#[derive(Debug, Clone, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub(super) struct LongText(pub String);

impl FromStr for LongText {
    type Err = Error;
    fn from_str(text: &str) -> Result<LongText, Error> {
        if text == "-" { stdin().map(LongText) } else { Ok(LongText(text.to_owned())) }
    }
}

fn stdin() -> Result<String, Error> {
    read(std::io::stdin()).map_err(|err| Error::io("read", Path::new("stdin"), err))
}

impl Args for Content {
    fn augment_args(command: Command) -> Command {
        command
            .arg(
                Arg::new("content")
                    .value_name("TEXT")
                    // A list begins with a dash.
                    .allow_hyphen_values(true)
                    .help("Text of the message; `-` reads it from stdin"),
            )
            .arg(
                Arg::new("body_file")
                    .long("body-file")
                    .value_name("FILE")
                    .value_parser(value_parser!(PathBuf))
                    .help("Take the text from a file"),
            )
    }

    fn augment_args_for_update(command: Command) -> Command {
        Content::augment_args(command)
    }
}

impl FromArgMatches for Content {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Content, clap::Error> {
        let (recipient, text) = words(matches);
        if text.is_none() && matches.try_contains_id("reply_to").is_ok() {
            check_parts(matches, recipient)?;
        }
        text_of(matches, text).map(Content)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Content::from_arg_matches(matches)?;
        Ok(())
    }
}

/// For a message to somebody, of which the text seems to be missing: what looks like no name is the
/// text, and the recipient is missing.
fn check_parts(matches: &ArgMatches, recipient: Option<&String>) -> Result<(), clap::Error> {
    if matches.contains_id("body_file") {
        return Ok(());
    }
    let is_name = |word: &str| {
        word.chars().all(|c| c.is_ascii_alphanumeric() || "._-@*".contains(c)) && word != "-"
    };
    let what = match recipient {
        Some(word) if !is_name(word) => "a recipient or --reply-to is missing",
        Some(_) => "the text is missing",
        None if matches.contains_id("reply_to") => "the text is missing",
        None => "the recipient and the text are missing",
    };
    Err(clap::Error::raw(
        ErrorKind::MissingRequiredArgument,
        format!(
            "{what}\nhint: `team-table send NAME TEXT`, or `team-table send --reply-to ID TEXT`; the \
             text as an argument, as `-` on stdin, or with --body-file"
        ),
    ))
}

/// The text that is given as an argument, on stdin or in a file.
fn text_of(matches: &ArgMatches, given: Option<&String>) -> Result<String, clap::Error> {
    match (matches.get_one::<PathBuf>("body_file"), given.map(String::as_str)) {
        (Some(_), Some(_)) => Err(clap::Error::raw(
            ErrorKind::ArgumentConflict,
            "the text is given twice, as an argument and with --body-file",
        )),
        (Some(path), None) => std::fs::File::open(path)
            .and_then(read)
            .map_err(|err| unreadable(&Error::io("read", path, err))),
        (None, Some("-")) => stdin().map_err(|err| unreadable(&err)),
        (None, Some(text)) => Ok(text.to_owned()),
        (None, None) => Err(clap::Error::raw(
            ErrorKind::MissingRequiredArgument,
            "the text is missing: give it as an argument, as `-` on stdin, or with --body-file",
        )),
    }
}

/// What a key of the shared context is to hold.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
pub(super) struct SharedValue(pub String);

impl schemars::JsonSchema for SharedValue {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "SharedValue".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        String::json_schema(generator)
    }
}

impl Args for SharedValue {
    fn augment_args(command: Command) -> Command {
        command
            .arg(
                Arg::new("value")
                    .value_name("VALUE")
                    .allow_hyphen_values(true)
                    .help("At most 64 KiB; empty removes it; `-` reads it from stdin"),
            )
            .arg(
                Arg::new("body_file")
                    .long("body-file")
                    .value_name("FILE")
                    .value_parser(value_parser!(PathBuf))
                    .help("Take the value from a file"),
            )
    }

    fn augment_args_for_update(command: Command) -> Command {
        SharedValue::augment_args(command)
    }
}

impl FromArgMatches for SharedValue {
    fn from_arg_matches(matches: &ArgMatches) -> Result<SharedValue, clap::Error> {
        text_of(matches, matches.get_one::<String>("value")).map(SharedValue)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = SharedValue::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The recipient and the text, as they stand: a lone argument is the text of an answer, else the
/// recipient of a text from a file. (clap's own way with a missing first argument fails for texts
/// that begin with a dash.)
fn words(matches: &ArgMatches) -> (Option<&String>, Option<&String>) {
    let get = |id: &str| matches.try_get_one::<String>(id).ok().flatten();
    let is_answer = matches.try_contains_id("reply_to").unwrap_or(false);
    match (get("recipient"), get("content")) {
        (Some(text), None) if is_answer && !matches.contains_id("body_file") => (None, Some(text)),
        words => words,
    }
}

/// Whom a message is for.
#[derive(Debug, Clone, Default, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub(super) struct Addressee(pub Option<String>);

impl Args for Addressee {
    fn augment_args(command: Command) -> Command {
        command.arg(
            Arg::new("recipient")
                .value_name("RECIPIENT")
                .help("Name, `human` or @role; not needed with reply_to")
                .allow_hyphen_values(true),
        )
    }

    fn augment_args_for_update(command: Command) -> Command {
        Addressee::augment_args(command)
    }
}

impl FromArgMatches for Addressee {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Addressee, clap::Error> {
        Ok(Addressee(words(matches).0.cloned()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Addressee::from_arg_matches(matches)?;
        Ok(())
    }
}

/// A text, and of one that is too long only so much as to see that.
fn read(source: impl std::io::Read) -> std::io::Result<String> {
    /// Far over any limit, so that the error names the size of what people send by mistake.
    const ENOUGH: u64 = 16 << 20;
    let mut text = String::new();
    source.take(ENOUGH).read_to_string(&mut text)?;
    Ok(text)
}

fn unreadable(err: &Error) -> clap::Error {
    clap::Error::raw(ErrorKind::Io, err)
}
