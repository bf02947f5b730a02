//! team-table.
pub mod clients;
pub mod commands;
pub mod config;
pub mod error;
pub mod platform;
