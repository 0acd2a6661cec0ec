//! The grammar arena and its builder.

use std::hash::BuildHasher;

use foldhash::HashMap;
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use regex_syntax::hir::Hir;
use rustc_hash::FxHashSet;

use super::expression::Expression;
use super::import::Shift;
use super::judge::Judge;
use crate::limits::Account;

macro_rules! index {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub struct $name(pub u32);

        impl $name {
            /// The position in the arena.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

index!(
    /// An expression of a [`Cfg`].
    ExprId
);
index!(
    /// A rule of a [`Cfg`].
    RuleId
);
index!(
    /// A regular language of a [`Cfg`].
    RegularId
);
index!(
    /// A series of a [`Cfg`].
    SeriesId
);

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

/// A regular language: the intersection of all its parts.
///
/// Every [`Hir`] here is over bytes of UTF-8 or any bytes, anchored at both ends (the whole word must match), and
/// without look-around. No part at all is the language of every byte string.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Regular {
    /// The languages that are intersected.
    pub parts: Vec<Part>,
}

/// One operand of the intersection that makes a [`Regular`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Part {
    /// Words that this expression matches as a whole.
    Match(Expression),
    /// Words that this expression does not match as a whole.
    Not(Expression),
    /// Words that are a run of units, at least `min` and at most `max` of them.
    ///
    /// The unit must be a prefix code (no unit is a proper prefix of another and none is empty), such as "one JSON
    /// string character in its encoded form"; it is then counted by a register, so a bound of 10⁹ costs no states.
    Units {
        /// One unit.
        unit: Expression,
        /// The least number of units.
        min: u64,
        /// The greatest number of units; `None` is no bound.
        max: Option<u64>,
    },
}

/// A language that is no regular one; see [`CfgBuilder::judged`].
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

/// A list of items separated by a separator, with counts and order kept in a register instead of in states.
///
/// The words are `item (separator item)*` — or nothing, where no item is required — such that every member is
/// used at most once (exactly once where required), the `rest` any number of times, the number of all items
/// lies in `min..=max`, and so does the number of the items that meet each demand.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Series {
    /// Items that may be used once each.
    pub members: Vec<Member>,
    /// Items that may be used any number of times.
    pub rest: Vec<Rest>,
    /// Keys that no item of the rest may have, such as those of members, in order. Few of them cost less here than as a
    /// complement in the language of every key.
    pub taken: Vec<Box<[u8]>>,
    /// Whether keys of the rest must differ, or one must come again.
    pub keys: Keys,
    /// What stands between two items (for instance `,` and white space).
    pub separator: ExprId,
    /// How members are ordered among each other and among the rest.
    pub order: SeriesOrder,
    /// The least number of items, members and rest together.
    pub min: u64,
    /// The greatest number of items; `None` is no bound.
    pub max: Option<u64>,
    /// How many items must meet something, such as "be a key that begins with x"; at most 31 of them.
    pub demands: Vec<Demand>,
}

/// A demand of a [`Series`]: how many of its items must meet it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Demand {
    /// The least number of items.
    pub min: u64,
    /// The greatest number of items; `None` is no bound.
    pub max: Option<u64>,
}

/// The demands that an item meets, a bit for each by its place in [`Series::demands`].
pub type Meets = u32;

/// An item of a [`Series`] that may be used once.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Member {
    /// The ways to write it. Ways may overlap; a text then meets what any of its ways does.
    pub ways: Vec<Way>,
    /// Whether it must be used.
    pub required: bool,
}

impl Member {
    /// A member with one way to write it, which meets no demand.
    pub fn new(item: ExprId, required: bool) -> Member {
        let ways = vec![Way { item, meets: 0 }];
        Member { ways, required }
    }
}

/// One way to write a [`Member`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Way {
    /// What is written (for an object: key, colon, value).
    pub item: ExprId,
    /// Which demands are met by that.
    pub meets: Meets,
}

/// An item of a [`Series`] that may be used any number of times. Several may have the same key or item and meet
/// different demands.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Rest {
    /// What names this use of the item: the whole encoded key of an object, quotes included. Where it is given, no
    /// two uses in one series may have the same bytes here, or some two must; see [`Series::keys`].
    pub key: Option<RegularId>,
    /// What is written (behind the key, if there is one).
    pub item: ExprId,
    /// Which demands are met by that.
    pub meets: Meets,
}

/// What is asked of all keys of a [`Series`] together.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Keys {
    /// No two are the same: the keys of an object, or the items of a list of which each is another.
    #[default]
    Differ,
    /// Some two are the same: the items of a list that are not all different. Such a series is in
    /// [`Leading`](SeriesOrder::Leading) order, its keys are whole items, none is taken, and it has no demands.
    Repeat,
}

/// The order of the items of a [`Series`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SeriesOrder {
    /// Members as listed, then the rest. An optional member may be left out.
    Listed,
    /// Any order.
    Any,
    /// Members as listed and none left out as long as the series goes on, then the rest: the items of a tuple.
    Leading,
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

/// The expressions for which there is room at first.
const ROOM: usize = 448;

/// Builds a [`Cfg`]; equal expressions, languages and series are stored once, and the obvious simplifications are made
/// on the way.
#[derive(Debug, Default)]
pub struct CfgBuilder {
    exprs: Vec<Expr>,
    /// The numbers of all expressions, by what they are.
    known: HashTable<ExprId>,
    hasher: RandomState,
    rules: Vec<Rule>,
    regulars: Vec<Regular>,
    known_regulars: HashMap<u64, Vec<RegularId>>,
    series: Vec<Series>,
    /// The numbers of all series that were built here, by what they are.
    known_series: HashTable<SeriesId>,
    /// The bytes of all this.
    held: Account,
}

impl CfgBuilder {
    /// An empty builder.
    pub fn new() -> Self {
        // Even a small schema has some hundred expressions.
        CfgBuilder {
            exprs: Vec::with_capacity(ROOM),
            known: HashTable::with_capacity(ROOM),
            ..CfgBuilder::default()
        }
    }

    /// An empty builder that reports what it holds.
    pub(crate) fn within(held: Account) -> Self {
        CfgBuilder {
            held,
            ..CfgBuilder::new()
        }
    }

    fn intern(&mut self, expr: Expr) -> ExprId {
        let hash = self.hasher.hash_one(&expr);
        let same = |id: &ExprId| self.exprs[id.index()] == expr;
        if let Some(&id) = self.known.find(hash, same) {
            return id;
        }
        let id = ExprId(self.exprs.len() as u32);
        self.held.grow(expr.bytes());
        self.exprs.push(expr);
        let hash_of = |id: &ExprId| self.hasher.hash_one(&self.exprs[id.index()]);
        self.known.insert_unique(hash, id, hash_of);
        id
    }

    /// The expression with this number.
    pub fn expr(&self, id: ExprId) -> &Expr {
        &self.exprs[id.index()]
    }

    /// The number of expressions so far; front ends bound it.
    pub fn len(&self) -> usize {
        self.exprs.len()
    }

    /// Whether nothing was built yet.
    pub fn is_empty(&self) -> bool {
        self.exprs.is_empty()
    }

    /// The empty language.
    pub fn never(&mut self) -> ExprId {
        self.intern(Expr::Never)
    }

    /// The empty string.
    pub fn empty(&mut self) -> ExprId {
        self.intern(Expr::Empty)
    }

    /// Exactly these bytes.
    pub fn bytes(&mut self, bytes: impl AsRef<[u8]>) -> ExprId {
        let bytes = bytes.as_ref();
        if bytes.is_empty() {
            self.empty()
        } else {
            self.intern(Expr::Bytes(bytes.into()))
        }
    }

    /// The parts one after the other; neighbouring literals are joined.
    pub fn seq(&mut self, parts: impl IntoIterator<Item = ExprId>) -> ExprId {
        let mut flat: Vec<ExprId> = Vec::new();
        for part in parts {
            match self.expr(part) {
                Expr::Never => return part,
                Expr::Empty => {}
                Expr::Seq(inner) => flat.extend(inner),
                _ => flat.push(part),
            }
        }
        self.join_literals(&mut flat);
        match flat.len() {
            0 => self.empty(),
            1 => flat[0],
            _ => self.intern(Expr::Seq(flat.into())),
        }
    }

    /// Makes one literal of each run of them.
    fn join_literals(&mut self, parts: &mut Vec<ExprId>) {
        let is_literal = |builder: &Self, part: ExprId| matches!(builder.expr(part), Expr::Bytes(_));
        let (mut kept, mut at) = (0, 0);
        while at < parts.len() {
            let literals = parts[at..].iter().take_while(|&&part| is_literal(self, part));
            let run = literals.count().max(1);
            let joined = match run {
                1 => parts[at],
                _ => {
                    let bytes = parts[at..at + run].iter().map(|&part| match self.expr(part) {
                        Expr::Bytes(bytes) => &bytes[..],
                        _ => &[],
                    });
                    let bytes: Vec<u8> = bytes.flatten().copied().collect();
                    self.intern(Expr::Bytes(bytes.into()))
                }
            };
            parts[kept] = joined;
            kept += 1;
            at += run;
        }
        parts.truncate(kept);
    }

    /// Any one of the alternatives; duplicates and empty languages are dropped.
    pub fn choice(&mut self, alternatives: impl IntoIterator<Item = ExprId>) -> ExprId {
        let mut flat: Vec<ExprId> = Vec::new();
        let mut seen = FxHashSet::default();
        for alternative in alternatives {
            match self.expr(alternative) {
                Expr::Never => {}
                Expr::Choice(inner) => flat.extend(inner.iter().copied().filter(|&id| seen.insert(id))),
                _ if seen.insert(alternative) => flat.push(alternative),
                _ => {}
            }
        }
        match flat.len() {
            0 => self.never(),
            1 => flat[0],
            _ => self.intern(Expr::Choice(flat.into())),
        }
    }

    /// The body or nothing.
    pub fn optional(&mut self, body: ExprId) -> ExprId {
        let empty = self.empty();
        self.choice([body, empty])
    }

    /// The body between `min` and `max` times.
    pub fn repeat(&mut self, body: ExprId, min: u32, max: Option<u32>) -> ExprId {
        // A repetition of a repetition is one: written out, each level would double what is inside.
        if let &Expr::Repeat {
            body: inside,
            min: 0 | 1,
            max: None,
        } = self.expr(body)
        {
            match (min, max) {
                (0, Some(1) | None) => return self.repeat(inside, 0, None),
                (1, None) => return body,
                _ => {}
            }
        }
        match (self.expr(body), min, max) {
            (_, _, Some(0)) | (Expr::Empty, _, _) => self.empty(),
            (_, min, Some(max)) if min > max => self.never(),
            (Expr::Never, 0, _) => self.empty(),
            (Expr::Never, _, _) | (_, 1, Some(1)) => body,
            (_, 0, Some(1)) => self.optional(body),
            _ => self.intern(Expr::Repeat { body, min, max }),
        }
    }

    /// A reference to a rule.
    pub fn rule(&mut self, rule: RuleId) -> ExprId {
        self.intern(Expr::Rule(rule))
    }

    /// A word of a regular language.
    pub fn regular(&mut self, regular: RegularId) -> ExprId {
        self.intern(Expr::Regular(regular))
    }

    /// A regular language made of one expression, anchored at both ends.
    pub fn hir(&mut self, hir: Hir) -> ExprId {
        let id = self.add_regular(Regular {
            parts: vec![Part::Match(hir.into())],
        });
        self.regular(id)
    }

    /// A word of a language that a judge tells.
    pub fn judged(&mut self, judge: Judge) -> ExprId {
        let beginnings = self.add_regular(judge.beginnings());
        self.intern(Expr::Judged(Judged { judge, beginnings }))
    }

    /// Adds a regular language; an equal one is found again.
    pub fn add_regular(&mut self, regular: Regular) -> RegularId {
        let same_hash = self.known_regulars.entry(regular.structure_hash()).or_default();
        if let Some(&known) = same_hash.iter().find(|id| self.regulars[id.index()] == regular) {
            return known;
        }
        let id = RegularId(self.regulars.len() as u32);
        same_hash.push(id);
        self.held.grow(regular.bytes());
        self.regulars.push(regular);
        id
    }

    /// The parts of a regular language that was added.
    pub fn regular_parts(&self, id: RegularId) -> &Regular {
        &self.regulars[id.index()]
    }

    /// A list of items; an equal one is found again.
    pub fn series(&mut self, series: Series) -> ExprId {
        let hash = self.hasher.hash_one(&series);
        let same = |id: &SeriesId| self.series[id.index()] == series;
        if let Some(&id) = self.known_series.find(hash, same) {
            return self.intern(Expr::Series(id));
        }
        let id = SeriesId(self.series.len() as u32);
        self.held.grow(series.bytes());
        self.series.push(series);
        let hash_of = |id: &SeriesId| self.hasher.hash_one(&self.series[id.index()]);
        self.known_series.insert_unique(hash, id, hash_of);
        self.intern(Expr::Series(id))
    }

    /// Puts all of another grammar behind what is here, and tells how far its indices moved.
    pub(super) fn append(&mut self, cfg: Cfg) -> Shift {
        let shift = Shift {
            exprs: self.exprs.len() as u32,
            rules: self.rules.len() as u32,
            regulars: self.regulars.len() as u32,
            series: self.series.len() as u32,
        };
        self.exprs
            .extend(cfg.exprs.into_iter().map(|expr| shift.expr(expr)));
        self.rules.extend(cfg.rules.into_iter().map(|rule| Rule {
            name: rule.name,
            body: shift.id(rule.body),
        }));
        self.regulars.extend(cfg.regulars);
        self.series
            .extend(cfg.series.into_iter().map(|series| shift.series(series)));
        shift
    }

    /// A special token by its name.
    pub fn special(&mut self, name: &str) -> ExprId {
        self.intern(Expr::Special(name.into()))
    }

    /// Declares a rule, to be defined by [`define`](Self::define).
    pub fn declare(&mut self, name: impl Into<String>) -> RuleId {
        let body = self.never();
        let name = name.into();
        self.held.grow(2 * size_of::<Rule>() + name.len());
        self.rules.push(Rule { name, body });
        RuleId(self.rules.len() as u32 - 1)
    }

    /// Gives a declared rule its body.
    pub fn define(&mut self, rule: RuleId, body: ExprId) {
        self.rules[rule.index()].body = body;
    }

    /// The finished grammar.
    pub fn finish(self, start: RuleId) -> Cfg {
        Cfg {
            exprs: self.exprs,
            rules: self.rules,
            regulars: self.regulars,
            series: self.series,
            start,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_series_are_stored_once() {
        let mut builder = CfgBuilder::new();
        let mut series = |min| {
            let (item, separator) = (builder.bytes("a"), builder.bytes(","));
            builder.series(Series {
                members: vec![Member::new(item, true)],
                rest: Vec::new(),
                taken: Vec::new(),
                keys: Keys::Differ,
                separator,
                order: SeriesOrder::Any,
                min,
                max: None,
                demands: Vec::new(),
            })
        };
        let (one, other, same) = (series(0), series(1), series(0));
        assert_eq!(one, same);
        assert_ne!(one, other);
        assert_eq!(builder.series.len(), 2);
    }
}
