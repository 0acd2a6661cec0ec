//! The grammar arena: expressions, rules, regular languages and object lists that refer to each other by id.

use super::ids::{ExprId, ObjectListId, RegularId, RuleId};
use super::object_list::ObjectList;
use super::regular::Regular;
use super::token_set::TokenSet;
use super::validator::Validator;

/// One node of a grammar. Children are always created before their parents, except through [`Expr::Rule`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Expr {
    /// The empty language.
    Never,
    /// The language of the empty string alone.
    Empty,
    /// Exactly these bytes.
    Bytes(Box<[u8]>),
    /// All parts, in sequence.
    Seq(Box<[ExprId]>),
    /// Any one of the alternatives.
    Choice(Box<[ExprId]>),
    /// The body at least `min` and at most `max` times.
    Repeat {
        /// The repeated expression.
        body: ExprId,
        /// The smallest number of times.
        min: u32,
        /// The largest number of times; `None` if unbounded.
        max: Option<u32>,
    },
    /// The texts that the rule derives.
    Rule(RuleId),
    /// A word of a regular language.
    Regular(RegularId),
    /// A word of a language that is not regular.
    Validated(Validated),
    /// A list of items; see [`ObjectList`].
    ObjectList(ObjectListId),
    /// The special token of this name (`<|eot|>`), which text never matches.
    Special(Box<str>),
    /// Any one token out of a set, whatever its text is. What it writes is not part of the text that other
    /// expressions match.
    Tokens(Box<TokenSet>),
    /// A text in which the names of special tokens denote those tokens, if the vocabulary has them. A machine
    /// reads it as text; [`Cfg::with_marks`] replaces it for a vocabulary.
    Marked(Box<str>),
}

/// A language that is not regular; see [`CfgBuilder::validated`](super::CfgBuilder::validated).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Validated {
    /// Decides which words belong to the language.
    pub(super) validator: Validator,
    /// The prefixes of the words. This is always the validator's own expression, so that every such prefix
    /// can be completed.
    pub(super) beginnings: RegularId,
}

impl Validated {
    /// Returns the validator that decides which words belong to the language.
    pub fn validator(self) -> Validator {
        self.validator
    }

    /// Returns the regular language of the prefixes of the words.
    pub fn beginnings(self) -> RegularId {
        self.beginnings
    }
}

/// A named rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rule {
    /// The name of the rule in messages; for JSON Schema it is a JSON pointer.
    pub name: String,
    /// The body of the rule; [`Expr::Never`] until it is defined.
    pub body: ExprId,
}

/// A context-free grammar over bytes.
#[derive(Clone, Debug)]
pub struct Cfg {
    /// All expressions.
    pub exprs: Vec<Expr>,
    /// All rules.
    pub rules: Vec<Rule>,
    /// All regular languages.
    pub regulars: Vec<Regular>,
    /// All object lists.
    pub object_lists: Vec<ObjectList>,
    /// The rule that the whole text must match.
    pub start: RuleId,
}

impl Cfg {
    /// Returns the expression with this id.
    pub fn expr(&self, id: ExprId) -> &Expr {
        &self.exprs[id.index()]
    }
}
