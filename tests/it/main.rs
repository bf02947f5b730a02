//! The integration tests, as one binary.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

// What `init` does to the clients' files, with golden folders.
mod init;
