//! team-table.
pub mod commands;
pub mod config;
pub mod error;
pub mod platform;
pub mod workspace;
