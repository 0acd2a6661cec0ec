//! Threads that share the work of a pass on the CPU.
//!
//! ```text
//!   Crew::each ─► team: which thread takes which part ─► atomics: the standard library's, or loom's in tests
//! ```
//!
//! `tests/interning/crew.rs` runs a crew under all orders of its threads.

mod atomics;
mod team;

pub(crate) use team::Crew;
