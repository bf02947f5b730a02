//! `wait_for_messages`: `get_messages` that waits first. The transport does the waiting.

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};

use super::{Access, Cx, Tool, get_messages};
use crate::{
    domain::limits,
    error::{Error, Result},
};

pub(super) struct WaitForMessages;

/// Wait for an answer; returns unread messages as get_messages does
#[derive(Debug, Deserialize, schemars::JsonSchema, clap::Args)]
pub(super) struct Params {
    /// 45; at most 50
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true,
          value_parser = super::whole_number)]
    timeout_seconds: Option<i64>,
}

#[derive(Debug, Serialize)]
pub(super) struct Output {
    #[serde(flatten)]
    inbox: get_messages::Output,
    waited_seconds: u64,
}

impl Tool for WaitForMessages {
    const NAME: &'static str = "wait_for_messages";
    const COMMAND: &'static str = "wait";
    const ACCESS: Access = Access::MayWrite;
    const ALWAYS_LOAD: bool = true;
    type Params = Params;
    type Output = Output;

    fn call(cx: &mut Cx<'_>, params: &Params) -> Result<Output> {
        let waited_seconds = seconds(params)?.as_secs();
        let inbox = get_messages::inbox(cx, limits::PAGE, false)?;
        Ok(Output { inbox, waited_seconds })
    }

    fn waits(params: &Params) -> Result<Option<Duration>> {
        seconds(params).map(Some)
    }
}

fn seconds(params: &Params) -> Result<Duration> {
    let wanted = params.timeout_seconds.unwrap_or(limits::WAIT_SECONDS);
    match u64::try_from(wanted) {
        Ok(seconds) if wanted <= limits::WAIT_SECONDS_MAX => Ok(Duration::from_secs(seconds)),
        _ => Err(Error::invalid(format!(
            "`timeout_seconds` must be 0 to {}, got {wanted}",
            limits::WAIT_SECONDS_MAX
        ))
        .hint("call wait_for_messages again to wait longer")),
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.inbox.is_empty() {
            return write!(
                f,
                "nothing new after {} s; call again only if you still need an answer",
                self.waited_seconds
            );
        }
        self.inbox.fmt(f)
    }
}
