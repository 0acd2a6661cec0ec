//! Grammars: the language of a whole answer, compiled once for all requests with the same language.
//!
//! ```text
//!   language ─► lowering, tags ─► store ─┬─ cache            has anybody asked for it before?
//!                                        ├─ single_flight    is anybody asking for it now?
//!                                        ├─ compile_memory   is there room to compile it?
//!                                        └─ compilers        what did this key's grammars compute?
//! ```
//!
//! `frames` has the forms in which models write calls of tools, and `tool_format` the one that a model is
//! held to. `interest` tracks whether a request still waits, and who is charged for it; `enforcement` and
//! `report` describe how exactly a constraint is enforced; `inspect` answers questions about a compiled
//! grammar.

pub mod cache;
pub mod compile_memory;
pub mod compilers;
pub mod enforcement;
pub mod inspect;
pub mod interest;
pub mod language;
pub mod lowering;
pub mod report;
pub mod single_flight;
pub mod store;
pub mod thought;
pub mod tool_format;
