//! The native part of the package `lexiform` for Node; `lib/` is its interface in JavaScript.
//!
//! ```text
//!   Vocabulary ─► Compiler ─► Grammar ─► State, a value      fill, fillBatch ─► Uint32Array of the caller
//!                    │           ├─────► Session, one sequence
//!                    │           └─────► Repair, the nearest valid text
//!                    └ Watch: deadlines, AbortSignal         judge, repairText: a schema and a text, no vocabulary
//! ```
//!
//! Options arrive as JSON, so that a misspelled one is an error with its name (`options.rs`). Errors leave as
//! JSON in the message of an error of Node, from which `lib/errors.js` makes a `LexiformError` (`error.rs`).
//! A panic ends at the boundary and becomes an error: each function here has `catch_unwind`, which
//! `tests/boundary.test.js` checks, and work on other threads is guarded by `watch.rs`.
//!
//! Work that may take long has a twin that runs on a thread of libuv and returns a promise. Memory belongs to
//! the garbage collector, which `external.rs` tells how much there is.

// Nothing is exported, and so nothing used, where the crate is checked as one of tests.
#![cfg_attr(test, allow(dead_code))]

mod batch;
mod compiler;
mod error;
mod explain;
mod external;
mod grammar;
mod judged;
mod mask;
mod options;
mod repair;
mod session;
mod state;
mod vocabulary;
mod watch;

use napi_derive::napi;

/// Returns the version of the library.
#[napi(catch_unwind)]
pub(crate) fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// Panics, so that a test can check what becomes of a panic. Releases do not have it.
#[cfg(debug_assertions)]
#[napi(catch_unwind)]
pub(crate) fn panic_for_test() {
    panic!("as the test asked");
}
