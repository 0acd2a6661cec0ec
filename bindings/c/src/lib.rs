//! A C ABI for Lexiform: vocabularies, compilers, grammars, states, masks, batches, sessions, projections.
//!
//! ```text
//!   tokens ─ vocabulary ─ compiler ─ compile ─► grammar ─ start, step, mask ─► words
//!                                                  └───── session: accept, validate, rollback, fill
//!   format, tools ─ answer_reader ─► events of an answer
//!   schema, profile ─ project ─► the schema of a provider ─ receive ─► a value of the schema
//! ```
//!
//! `include/lexiform.h` declares all of it and documents it for callers. It is written by hand, since the
//! usual generator has a licence that this project does not accept; `tests/header.rs` compares it with these
//! sources, and `tests/programs.rs` compiles programs that use it.
//!
//! Three rules hold everywhere. A handle comes from a `new`, is freed once by its `free`, and keeps alive
//! whatever it needs: a grammar may outlive its compiler. A null pointer instead of a handle or a buffer is
//! an error of that call, never a crash. A panic ends at the boundary and becomes an error as well.
//!
//! With the feature `llguidance` the library also exports the functions through which llama.cpp calls that
//! engine; see `llguidance.rs`.

// Every function here takes pointers from C, and the header states their requirements, where callers read
// them.
#![expect(
    clippy::missing_safety_doc,
    reason = "the header says what must hold of each pointer"
)]

mod answers;
mod boundary;
mod compiler;
mod grammar;
#[cfg(feature = "llguidance")]
mod llguidance;
mod options;
mod project;
mod session;
mod vocabulary;

pub use answers::*;
pub use boundary::{Status, lexiform_string_free, lexiform_version};
pub use compiler::*;
pub use grammar::*;
#[cfg(feature = "llguidance")]
pub use llguidance::*;
pub use project::*;
pub use session::*;
pub use vocabulary::*;
