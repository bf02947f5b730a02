//! The human's way to the board's page: a token that is good for once.

use super::{Desk, opened};
use crate::{
    error::{Error, Result},
    seat::WriteTurn,
};

impl Desk {
    /// Lets in, once and soon, whoever has the token that hashes to this. Makes the table, if it is
    /// not there yet.
    ///
    /// # Errors
    /// The table cannot be written.
    pub fn promise_entry(&mut self, turn: &WriteTurn, hash: &str) -> Result<()> {
        let now = self.now();
        self.open(Some(turn), now)?;
        let mut shared = opened(&self.store);
        let Some(store) = shared.as_mut() else { return Err(Error::needs_write()) };
        store.write(|tx| tx.insert_web_token(hash, now))
    }

    /// Uses up the token that hashes to this. `false`: it is none, was used before, or is too old.
    ///
    /// # Errors
    /// The table cannot be written.
    pub fn take_entry(&mut self, turn: &WriteTurn, hash: &str) -> Result<bool> {
        let now = self.now();
        if !self.table_exists() {
            return Ok(false);
        }
        self.open(Some(turn), now)?;
        let mut shared = opened(&self.store);
        let Some(store) = shared.as_mut() else { return Err(Error::needs_write()) };
        store.write(|tx| tx.use_web_token(hash, now))
    }
}
