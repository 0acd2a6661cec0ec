//! Readers of grammar texts, and of lists of texts.
//!
//! ```text
//!   ebnf, gbnf, lark, abnf, w3c, iso, xgrammar, peg ── a reader ─► tree ─ lower ─► Cfg ─ terminals ─► Cfg
//!         └─ named, or recognised                       └─ convert ─► a text in another notation
//! ```

pub mod abnf;
mod convert;
pub mod ebnf;
pub mod gbnf;
pub mod iso;
pub mod lark;
mod lower;
pub mod peg;
mod reading;
mod recognise;
mod terminals;
pub mod texts;
mod tree;
pub mod w3c;
pub mod xgrammar;

pub use convert::convert;
pub use recognise::{GrammarOptions, Notation, lower};
#[doc(inline)]
pub use texts::{choice, extract};
