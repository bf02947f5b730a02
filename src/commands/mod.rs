//! What only a person or a script runs.

pub mod which;
