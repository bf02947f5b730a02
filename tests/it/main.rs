//! The integration tests, as one binary.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that panics has failed"
)]

#[cfg(unix)]
use support::{agent::PATIENCE, faults::PROGRAM};

// What must be refused, and what must be shown harmlessly.
mod bad_input;
// Calls that are taken back, answers that nobody reads.
#[cfg(unix)]
mod cancel;
// The command line: help, exit codes, who speaks, stdout and stderr.
mod cli;
// The shared context.
mod context;
// What models are shown, and what the tables and the README promise.
mod contract;
// The program dies at any place, or panics.
#[cfg(unix)]
mod crash;
// Broken tables, full disks, held locks.
#[cfg(unix)]
mod disk;
// Why one agent does not see another's message.
#[cfg(unix)]
mod doctor;
// Arbitrary arguments into every tool.
mod fuzz;
// What clients' hooks are told, and waking who is idle.
#[cfg(unix)]
mod hooks;
// Over the network.
#[cfg(all(unix, feature = "http"))]
mod http;
// Clients over the network that mean harm, and servers that end under their clients.
#[cfg(all(unix, feature = "http"))]
mod http_hostile;
// Paths and methods over the network, and who refuses first.
#[cfg(all(unix, feature = "http"))]
mod http_paths;
// Mutated requests over the network.
#[cfg(all(unix, feature = "http"))]
mod http_fuzz;
// What `init` does to the clients' files, with golden folders.
mod init;
// Which clients it sets up, and files that are none.
mod init_clients;
// What `doctor` says of them.
#[cfg(unix)]
mod init_doctor;
// What `init --with` does to them.
mod init_hooks;
// Several `init` at once, and a person's edits meanwhile.
#[cfg(unix)]
mod init_race;
// What the README says of the clients.
mod init_readme;
// Clients that are led to a server on the network.
mod init_url;
// A server's life, and probes.
#[cfg(unix)]
mod lifecycle;
// How much of anything comes at once.
mod limits;
// The packages that `plugin` writes, with golden folders.
mod plugin;
// The poll daemon.
#[cfg(unix)]
mod poll;
// Many processes at one instant.
#[cfg(unix)]
mod race;
// The table is deleted or replaced under sessions.
#[cfg(unix)]
mod replaced;
// Reservations of files.
mod reservations;
// Transcripts, each played in process, as commands and over MCP.
mod scripts;
// Which messages a search finds, and how long that takes.
mod search;
// Which seat a session gets back.
#[cfg(unix)]
mod sessions;
// A workspace for one test, and the tests' MCP client.
mod support;
// Rules about the sources themselves.
mod tidy;
// What users of such programs ran into, where no other module has it.
#[cfg(unix)]
mod users;
// The board in a browser, as the browser's requests see it.
#[cfg(all(unix, feature = "http"))]
mod web;

/// Whether the same tests are to do more of it: `TEAM_TABLE_SLOW_TESTS=1`.
#[expect(clippy::disallowed_methods, reason = "a switch for whoever runs the tests")]
fn runs_long() -> bool {
    std::env::var_os("TEAM_TABLE_SLOW_TESTS").is_some_and(|value| value == "1")
}
