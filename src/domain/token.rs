//! Secrets that open a door: what a member shows on the network, or a person's page, and what is kept
//! of it.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// What a token begins with, so that it is known for one wherever it turns up.
pub const PREFIX: &str = "tt_";
/// The token of these random bytes.
pub fn text(random: &[u8; 32]) -> String {
    PREFIX.to_owned() + &hex(random)
}

/// What is kept of a token. It needs no salt: nobody can try all tokens.
pub fn hash(token: &str) -> String {
    hex(&Sha256::digest(token.as_bytes()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string never fails.
        let _written = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_token_and_its_hash() {
        let token = super::text(&[0xab; 32]);
        assert_eq!(token, format!("tt_{}", "ab".repeat(32)));
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(super::hash(""), empty);
    }
}
