//! The static part of a machine: its rules as automata, and the properties of rules that are computed before
//! the first byte.
//!
//! ```text
//!   Cfg ─► nfa         rules as automata over bytes and calls; lists as plans
//!       ─► analysis    which rules are nullable, productive (others are removed), left-recursive
//!                      computed by one fixed_point for each question
//! ```

pub(crate) mod analysis;
mod fixed_point;
mod lists;
pub(crate) mod nfa;
