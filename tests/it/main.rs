//! The integration tests, as one binary.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

mod support {
    pub(crate) mod agent;
    #[cfg(unix)]
    pub(crate) mod faults;
}

#[cfg(unix)]
use support::{agent::PATIENCE, faults::PROGRAM};

// Calls that are taken back, answers that nobody reads.
#[cfg(unix)]
mod cancel;
// The program dies at any place, or panics.
#[cfg(unix)]
mod crash;
// Broken tables, full disks, held locks.
#[cfg(unix)]
mod disk;
// What `init` does to the clients' files, with golden folders.
mod init;
// A server's life, and probes.
#[cfg(unix)]
mod lifecycle;
// Many processes at one instant.
#[cfg(unix)]
mod race;
// The table is deleted or replaced under sessions.
#[cfg(unix)]
mod replaced;
// Which seat a session gets back.
#[cfg(unix)]
mod sessions;
