//! team-table.
pub mod config;
pub mod error;
