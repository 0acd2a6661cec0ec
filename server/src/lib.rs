//! The service and the command line of Lexiform.
//!
//! ```text
//!   lexiform serve ──► app ──► routes ──► worker ──► engine (decode thread)
//!                               │            │
//!                               wire         stream ──► bytes to the client
//! ```
//!
//! The binary is a single call of [`cli::main`]; everything else is a library, so that the tests can
//! start the same service in their own process.

#![forbid(unsafe_code)]

pub mod cli;
