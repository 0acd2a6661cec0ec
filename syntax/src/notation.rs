//! Readers of grammar texts, and of lists of texts.
//!
//! ```text
//!   ebnf, gbnf, lark, abnf, w3c, iso, xgrammar ── a reader ─► tree ─ lower ─► Cfg ─ terminals ─► Cfg
//!         └─ named, or recognised
//! ```

pub mod abnf;
pub mod choice;
pub mod ebnf;
pub mod extract;
pub mod gbnf;
pub mod iso;
pub mod lark;
mod lower;
mod reader;
mod reading;
mod recognise;
mod terminals;
mod tree;
pub mod w3c;
pub mod xgrammar;

pub use reader::{GrammarOptions, Notation};
pub use recognise::lower;
