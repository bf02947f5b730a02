//! The integration tests, as one binary.

// What `init` does to the clients' files, with golden folders.
mod init;
