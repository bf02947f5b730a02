//! Secrets that open a door: made by the system's generator, remembered only by their hashes.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use crate::error::{Error, Result};

/// A secret of 256 bits that nobody can guess.
///
/// # Errors
/// The system gives no random bytes.
pub fn new() -> Result<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)
        .map_err(|err| Error::internal(format!("the system gives no random bytes: {err}")))?;
    Ok(hex(&bytes))
}

/// What a secret hashes to. Of 256 random bits no slow hash is needed.
pub fn hash(secret: &str) -> String {
    hex(&Sha256::digest(secret.as_bytes()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a String cannot fail.
        let _written = write!(text, "{byte:02x}");
        text
    })
}
