//! team-table: lets the AI coding agents in one project folder find each other and write to each
//! other, over one `SQLite` file, the table.
//!
//! What is where, from the outside in. Arrows point down only; a test reads the `use crate::` lines.
//!
//! ```text
//! main        argv -> config -> run -> exit code
//! cli         the clap tree from tools::TABLE plus commands; prints text or --json
//! commands    what only a person or a script runs: init, reset, serve, status, log, poll, where,
//!             doctor, token, web, plugin; and what clients run as their hooks: hook, wake
//! clients     the client files that init edits and doctor reads, and the packages that plugin
//!             writes: one row per client, text to text
//! transport   who asks: MCP over stdio and the network, past rmcp where a call is a plain one, the
//!             board as a web page, clients' hooks, the queue of calls, waking who waits
//! tools       what can be asked: one file and one row of TABLE each; the desk runs a call
//! view        how things are shown: results as text, text of others made harmless, the page's files
//! store       what is remembered: the only SQL
//! seat        who sits where: locks, bells, the queue of writers
//! workspace   which table, and why it is this one
//! domain      what is true: types and pure rules
//! platform    what differs between Linux, macOS and Windows
//! config      every environment variable and the clock, read once
//! error       the one error type
//! fault       where a test can stop the program (debug builds)
//! ```
//!
//! The arrows: `cli -> commands, tools`; `commands -> transport, view, clients, tools`;
//! `transport -> tools`; `tools -> store, domain, seat, view`; `view -> domain`; `store -> domain`;
//! `seat -> domain`. What an arrow leads to, and all below it, may be used. Everything may use
//! `error`, `config`, `platform`, `workspace` and `fault`, which use none of the others but `error`,
//! `config` and `platform`.
//!
//! Invariants:
//!
//! - Nothing outside `store` knows SQL; nothing outside `seat` locks files; nothing outside
//!   `transport` imports rmcp or axum; nothing outside `config` reads the environment or the clock.
//! - A call is one transaction. What it does beside the table (bells, seats) is done after the
//!   commit, and only then.
//! - Nothing that runs on the event loop waits for a lock; waiting is awaited.
//! - A message is read when a request arrives after the reply that carried it had been written; until
//!   then a session that dies leaves it unread.
//! - There is no sender parameter: who asks is known from the seat.
//! - Only `SQLite` ever opens the database file in a process that has it open.

pub mod cli;
pub mod clients;
pub mod commands;
pub mod config;
pub mod domain;
pub mod error;
pub mod fault;
pub mod platform;
pub mod seat;
pub mod store;
pub mod tools;
pub mod transport;
pub mod view;
pub mod workspace;
