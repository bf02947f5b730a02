//! What is true: types and pure rules. No I/O, no clock, no SQL; `now` is an argument.

pub mod flood;
pub mod fold;
pub mod id;
pub mod limits;
pub mod member;
pub mod message;
pub mod name;
pub mod pattern;
pub mod poll;
pub mod question;
pub mod task;
pub mod time;
pub mod token;
