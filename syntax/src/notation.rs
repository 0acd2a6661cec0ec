//! Readers of grammar texts, and of lists of texts.
//!
//! ```text
//!   ebnf, gbnf, abnf, w3c, iso, xgrammar ── reading ─► tree ─ lower ─► Cfg ─ terminals ─► Cfg
//! ```

pub mod abnf;
pub mod choice;
pub mod ebnf;
pub mod extract;
pub mod gbnf;
pub mod iso;
pub mod lark;
mod lower;
mod problems;
mod reading;
mod terminals;
mod tree;
pub mod w3c;
pub mod xgrammar;
