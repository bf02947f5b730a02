//! What only a person or a script runs.

pub mod init;
mod plan;
mod receipt;
