//! The answer to a client's hook, which comes soon or not at all.

use std::time::Duration;

use crate::{
    error::{Error, Result},
    tools::Answer,
};

/// A hook that is not answered by then has nothing to say: the client waits for it at every step.
const PATIENCE: Duration = Duration::from_millis(25);

/// What a client reads as nothing to say.
pub const NOTHING_TO_SAY: &str = "{}";

/// Why a hook was not answered in time. Nobody has to do anything about it.
pub const BUSY: &str = "the table was busy; the next hook tells what is new";

/// What the client is to read.
///
/// # Errors
/// What is to be noted: the client is told [`NOTHING_TO_SAY`].
pub async fn answered(call: impl Future<Output = Result<Answer>>) -> Result<String> {
    let answer = tokio::time::timeout(PATIENCE, call).await.map_err(|_| Error::busy(BUSY))??;
    match answer.error {
        Some(err) => Err(err),
        None if answer.body.is_empty() => Ok(NOTHING_TO_SAY.to_owned()),
        None => Ok(answer.body),
    }
}
