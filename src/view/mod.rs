//! How things are shown to models and to people.

pub mod events;
pub mod sanitize;
pub mod text;
#[cfg(feature = "http")]
pub mod web;
pub mod wrap;
