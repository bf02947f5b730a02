//! The text of a message as a parameter: a string for models; on the command line an argument,
//! `-` for stdin, or `--body-file`, so that no shell eats backticks.

use std::{io::Read as _, path::PathBuf};

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, error::ErrorKind, value_parser};
use serde::Deserialize;

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
                    .conflicts_with("content")
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
            Some(path) => std::fs::read_to_string(path)
                .map_err(|err| unreadable(&format!("cannot read `{}`: {err}", path.display())))?,
            None => match matches.get_one::<String>("content").map(String::as_str) {
                Some("-") => {
                    let mut text = String::new();
                    std::io::stdin()
                        .read_to_string(&mut text)
                        .map_err(|err| unreadable(&format!("cannot read stdin: {err}")))?;
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

fn unreadable(message: &str) -> clap::Error {
    clap::Error::raw(ErrorKind::Io, message)
}
