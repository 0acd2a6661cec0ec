//! Checks whether the JSON value of a text is allowed although its spelling is not: in a schema keys may come
//! in any order and white space is free, while a grammar writes one order and little white space.

use lexiform_automata::matcher::Grammar;

use super::compacted::Compacted;
use super::judge;

/// The difference between a text of an allowed value and the texts that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unwritten {
    /// The order of its keys.
    KeyOrder,
    /// Its white space.
    WhiteSpace,
    /// Both.
    Both,
}

impl Unwritten {
    /// Returns why a text that does not belong is never written; `None` if its value is not allowed either.
    /// `any_order` creates the grammar of the same schema with the keys in any order.
    pub fn of(text: &[u8], grammar: &Grammar, any_order: impl FnOnce() -> Option<Grammar>) -> Option<Self> {
        let compact = Compacted::new(text).text;
        let belongs = |grammar: &Grammar, text: &[u8]| judge(grammar, text, true).belongs();
        if belongs(grammar, &compact) {
            return Some(Self::WhiteSpace);
        }
        let any_order = any_order()?;
        if belongs(&any_order, text) {
            return Some(Self::KeyOrder);
        }
        belongs(&any_order, &compact).then_some(Self::Both)
    }

    /// Returns the names for programs.
    pub fn names(self) -> &'static [&'static str] {
        match self {
            Self::KeyOrder => &["key_order"],
            Self::WhiteSpace => &["whitespace"],
            Self::Both => &["key_order", "whitespace"],
        }
    }
}
