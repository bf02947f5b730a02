//! Who asks: MCP over stdio, the queue of calls, and waking who waits.
//!
//! The event loop has one thread, and the table's connection lives on it. Only this folder imports
//! rmcp.

mod ledger;
pub mod mcp;
pub mod queue;
pub mod stdio;
mod surrogates;
pub mod wake;
