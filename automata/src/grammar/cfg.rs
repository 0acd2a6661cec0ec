//! The grammar arena: expressions, rules, regular languages and series that refer to each other by number.

use super::ids::{ExprId, RegularId, RuleId, SeriesId};
use super::judge::Judge;
use super::regular::Regular;
use super::series::Series;

/// One node of a grammar. Children are always created before their parents, except through [`Expr::Rule`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Expr {
    /// The empty language.
    Never,
    /// The language of the empty string alone.
    Empty,
    /// Exactly these bytes.
    Bytes(Box<[u8]>),
    /// All parts, one after the other.
    Seq(Box<[ExprId]>),
    /// Any one of the alternatives.
    Choice(Box<[ExprId]>),
    /// The body at least `min` and at most `max` times.
    Repeat {
        /// What is repeated.
        body: ExprId,
        /// The least number of times.
        min: u32,
        /// The greatest number of times; `None` is no bound.
        max: Option<u32>,
    },
    /// Whatever the rule derives.
    Rule(RuleId),
    /// A word of a regular language.
    Regular(RegularId),
    /// A word of a language that is no regular one.
    Judged(Judged),
    /// A list of items; see [`Series`].
    Series(SeriesId),
    /// The special token of this name (`<|eot|>`), which is never matched by text.
    Special(Box<str>),
}

/// A language that is no regular one; see [`CfgBuilder::judged`](super::CfgBuilder::judged).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Judged {
    /// Who tells the words.
    pub(super) judge: Judge,
    /// How they begin: always the judge's own expression, so that whatever begins a word can be completed.
    pub(super) beginnings: RegularId,
}

impl Judged {
    /// Who tells the words.
    pub fn judge(self) -> Judge {
        self.judge
    }

    /// How words begin.
    pub fn beginnings(self) -> RegularId {
        self.beginnings
    }
}

/// A named rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rule {
    /// The name, as it is shown in messages; for JSON Schema a JSON pointer.
    pub name: String,
    /// What the rule derives; [`Expr::Never`] until it is defined.
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
    /// All series.
    pub series: Vec<Series>,
    /// The rule that the whole text must match.
    pub start: RuleId,
}

impl Cfg {
    /// The expression with this number.
    pub fn expr(&self, id: ExprId) -> &Expr {
        &self.exprs[id.index()]
    }
}
