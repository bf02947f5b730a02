//! The text of a message as a parameter: a string for models; on the command line an argument,
//! `-` for stdin, or `--body-file`, so that no shell eats backticks. And whom it is for, since a text
//! from a file leaves the recipient as the only argument.

use std::{
    io::Read as _,
    path::{Path, PathBuf},
};

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, error::ErrorKind, value_parser};
use serde::Deserialize;

use crate::error::Error;

#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
pub(super) struct Content(pub String);

impl schemars::JsonSchema for Content {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Content".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        String::json_schema(generator)
    }
}

impl Args for Content {
    fn augment_args(command: Command) -> Command {
        command
            .arg(
                Arg::new("content")
                    .value_name("TEXT")
                    .help("Text of the message; `-` reads it from stdin")
                    .required_unless_present("body_file"),
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
        let text = match matches.get_one::<PathBuf>("body_file") {
            Some(_) if is_given_twice(matches) => {
                return Err(clap::Error::raw(
                    ErrorKind::ArgumentConflict,
                    "the text is given twice, as an argument and with --body-file",
                ));
            }
            Some(path) => std::fs::read_to_string(path)
                .map_err(|err| unreadable(&Error::io("read", path, err)))?,
            None => match matches.get_one::<String>("content").map(String::as_str) {
                Some("-") => {
                    let mut text = String::new();
                    std::io::stdin()
                        .read_to_string(&mut text)
                        .map_err(|err| unreadable(&Error::io("read", Path::new("stdin"), err)))?;
                    text
                }
                text => text.unwrap_or_default().to_owned(),
            },
        };
        Ok(Content(text))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Content::from_arg_matches(matches)?;
        Ok(())
    }
}

/// A lone argument beside `--body-file` is the recipient, where the command has one.
fn is_given_twice(matches: &ArgMatches) -> bool {
    let has_text = matches.contains_id("content");
    match matches.try_get_one::<String>("recipient") {
        Ok(recipient) => has_text && recipient.is_some(),
        Err(_) => has_text,
    }
}

/// Whom a message is for.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(transparent)]
pub(super) struct Addressee(pub Option<String>);

impl schemars::JsonSchema for Addressee {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Addressee".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        String::json_schema(generator)
    }
}

impl Args for Addressee {
    fn augment_args(command: Command) -> Command {
        command.arg(
            Arg::new("recipient")
                .value_name("RECIPIENT")
                .help("Name, `human` or @role; not needed with reply_to")
                .required_unless_present_any(["reply_to", "body_file"]),
        )
    }

    fn augment_args_for_update(command: Command) -> Command {
        Addressee::augment_args(command)
    }
}

impl FromArgMatches for Addressee {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Addressee, clap::Error> {
        let lone = matches.contains_id("body_file").then_some("content");
        let mut ids = ["recipient"].into_iter().chain(lone);
        Ok(Addressee(ids.find_map(|id| matches.get_one::<String>(id)).cloned()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Addressee::from_arg_matches(matches)?;
        Ok(())
    }
}

fn unreadable(err: &Error) -> clap::Error {
    clap::Error::raw(ErrorKind::Io, err)
}
