//! How things are shown to models and to people.

pub mod sanitize;
pub mod text;
pub mod wrap;
