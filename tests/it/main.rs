//! The integration tests, as one binary.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that panics has failed"
)]

// What must be refused, and what must be shown harmlessly.
mod bad_input;
// The command line: help, exit codes, who speaks, stdout and stderr.
mod cli;
// What models are shown, and what the tables and the README promise.
mod contract;
// Arbitrary arguments into every tool.
mod fuzz;
// What `init` does to the clients' files, with golden folders.
mod init;
// How much of anything comes at once.
mod limits;
// Transcripts, each played in process, as commands and over MCP.
mod scripts;
// A workspace for one test, and the tests' MCP client.
mod support;
// Rules about the sources themselves.
mod tidy;
