//! The builder of grammars, which deduplicates equal parts and simplifies as it builds.

use std::hash::BuildHasher;

use foldhash::HashMap;
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use regex_syntax::hir::Hir;
use rustc_hash::FxHashSet;

use super::cfg::{Cfg, Expr, Rule, Validated};
use super::ids::{ExprId, ObjectListId, RegularId, RuleId};
use super::object_list::ObjectList;
use super::regular::{Part, Regular};
use super::shift::Shift;
use super::token_set::TokenSet;
use super::validator::Validator;
use crate::limits::Account;

/// The initial capacity for expressions.
const ROOM: usize = 448;

/// Builds a [`Cfg`]. Equal expressions, languages and object lists are stored once, and obvious
/// simplifications are made as the parts are added.
#[derive(Debug, Default)]
pub struct CfgBuilder {
    exprs: Vec<Expr>,
    /// The ids of all expressions, hashed by expression.
    known: HashTable<ExprId>,
    hasher: RandomState,
    rules: Vec<Rule>,
    regulars: Vec<Regular>,
    known_regulars: HashMap<u64, Vec<RegularId>>,
    object_lists: Vec<ObjectList>,
    /// The ids of the object lists that were built here, hashed by object list.
    known_object_lists: HashTable<ObjectListId>,
    /// The bytes of all these parts.
    held: Account,
}

impl CfgBuilder {
    /// Creates an empty builder.
    pub fn new() -> Self {
        // Even a small schema has a few hundred expressions.
        CfgBuilder {
            exprs: Vec::with_capacity(ROOM),
            known: HashTable::with_capacity(ROOM),
            ..CfgBuilder::default()
        }
    }

    /// Creates an empty builder that reports its bytes to `held`.
    #[doc(hidden)]
    pub fn within(held: Account) -> Self {
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

    /// Returns the expression with this id.
    pub fn expr(&self, id: ExprId) -> &Expr {
        &self.exprs[id.index()]
    }

    /// Returns the number of expressions so far, which front ends bound.
    pub fn len(&self) -> usize {
        self.exprs.len()
    }

    /// Returns `true` if nothing was built yet.
    pub fn is_empty(&self) -> bool {
        self.exprs.is_empty()
    }

    /// Returns the expression for the empty language.
    pub fn never(&mut self) -> ExprId {
        self.intern(Expr::Never)
    }

    /// Returns the expression for the empty string.
    pub fn empty(&mut self) -> ExprId {
        self.intern(Expr::Empty)
    }

    /// Returns the expression for exactly these bytes.
    pub fn bytes(&mut self, bytes: impl AsRef<[u8]>) -> ExprId {
        let bytes = bytes.as_ref();
        if bytes.is_empty() {
            self.empty()
        } else {
            self.intern(Expr::Bytes(bytes.into()))
        }
    }

    /// Returns the concatenation of `parts`; adjacent literals are joined.
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

    /// Joins each run of adjacent literals into one.
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

    /// Returns the choice among `alternatives`; duplicates and empty languages are dropped.
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

    /// Returns the expression for `body` or nothing.
    pub fn optional(&mut self, body: ExprId) -> ExprId {
        let empty = self.empty();
        self.choice([body, empty])
    }

    /// Returns the repetition of `body`, between `min` and `max` times.
    pub fn repeat(&mut self, body: ExprId, min: u32, max: Option<u32>) -> ExprId {
        // A repetition of a repetition is collapsed: written out, each level would double its body.
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

    /// Returns a reference to a rule.
    pub fn rule(&mut self, rule: RuleId) -> ExprId {
        self.intern(Expr::Rule(rule))
    }

    /// Returns the expression for the words of a regular language.
    pub fn regular(&mut self, regular: RegularId) -> ExprId {
        self.intern(Expr::Regular(regular))
    }

    /// Returns the expression for the regular language of `hir`, anchored at both ends.
    pub fn hir(&mut self, hir: Hir) -> ExprId {
        let id = self.add_regular(Regular::of(vec![Part::Match(hir.into())]));
        self.regular(id)
    }

    /// Returns the expression for the words of a language that a validator decides.
    pub fn validated(&mut self, validator: Validator) -> ExprId {
        let beginnings = self.add_regular(validator.beginnings());
        self.intern(Expr::Validated(Validated {
            validator,
            beginnings,
        }))
    }

    /// Adds a regular language, or returns the id of an equal one.
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

    /// Returns the parts of a regular language.
    pub fn regular_parts(&self, id: RegularId) -> &Regular {
        &self.regulars[id.index()]
    }

    /// Adds a list of items, or returns the expression of an equal one.
    pub fn object_list(&mut self, object_list: ObjectList) -> ExprId {
        let hash = self.hasher.hash_one(&object_list);
        let same = |id: &ObjectListId| self.object_lists[id.index()] == object_list;
        if let Some(&id) = self.known_object_lists.find(hash, same) {
            return self.intern(Expr::ObjectList(id));
        }
        let id = ObjectListId(self.object_lists.len() as u32);
        self.held.grow(object_list.bytes());
        self.object_lists.push(object_list);
        let hash_of = |id: &ObjectListId| self.hasher.hash_one(&self.object_lists[id.index()]);
        self.known_object_lists.insert_unique(hash, id, hash_of);
        self.intern(Expr::ObjectList(id))
    }

    /// Adds all parts of another grammar and returns a reference to its start rule.
    ///
    /// ```
    /// use lexiform_automata::grammar::CfgBuilder;
    /// use lexiform::limits::Limits;
    /// use lexiform_syntax::notation::ebnf;
    /// let mut builder = CfgBuilder::new();
    /// let digit = builder.import(ebnf::lower("d ::= [0-9]", &Limits::default()).unwrap());
    /// let hash = builder.bytes("#");
    /// let start = builder.declare("start");
    /// let body = builder.seq([hash, digit]);
    /// builder.define(start, body);
    /// assert_eq!(builder.finish(start).rules.len(), 2);
    /// ```
    pub fn import(&mut self, cfg: Cfg) -> ExprId {
        let start = cfg.start;
        let shift = self.append(cfg);
        self.rule(shift.rule(start))
    }

    /// Replaces a special token by the texts of a rule, in everything that was added so far. A front end that
    /// rewrites its own parts of a grammar, and not those of another, leaves such a hole for the other.
    pub fn fill(&mut self, hole: &str, rule: RuleId) {
        for expr in &mut self.exprs {
            if matches!(expr, Expr::Special(name) if **name == *hole) {
                *expr = Expr::Rule(rule);
            }
        }
    }

    /// Appends all parts of another grammar; returns how far its ids were shifted.
    fn append(&mut self, cfg: Cfg) -> Shift {
        let shift = Shift {
            exprs: self.exprs.len() as u32,
            rules: self.rules.len() as u32,
            regulars: self.regulars.len() as u32,
            object_lists: self.object_lists.len() as u32,
        };
        self.exprs
            .extend(cfg.exprs.into_iter().map(|expr| shift.expr(expr)));
        self.rules.extend(cfg.rules.into_iter().map(|rule| Rule {
            name: rule.name,
            body: shift.id(rule.body),
        }));
        self.regulars.extend(cfg.regulars);
        self.object_lists.extend(
            cfg.object_lists
                .into_iter()
                .map(|object_list| shift.object_list(object_list)),
        );
        shift
    }

    /// Returns the expression for a special token, given by name.
    pub fn special(&mut self, name: &str) -> ExprId {
        self.intern(Expr::Special(name.into()))
    }

    /// Returns the expression for any one token out of a set, whatever its text is.
    pub fn tokens(&mut self, set: TokenSet) -> ExprId {
        self.intern(Expr::Tokens(Box::new(set)))
    }

    /// Returns the expression for a text in which the names of special tokens denote those tokens, if the
    /// vocabulary has them.
    pub fn marked(&mut self, text: &str) -> ExprId {
        self.intern(Expr::Marked(text.into()))
    }

    /// Declares a rule, whose body is set by [`define`](Self::define).
    pub fn declare(&mut self, name: impl Into<String>) -> RuleId {
        let body = self.never();
        let name = name.into();
        self.held.grow(2 * size_of::<Rule>() + name.len());
        self.rules.push(Rule { name, body });
        RuleId(self.rules.len() as u32 - 1)
    }

    /// Sets the body of a declared rule.
    pub fn define(&mut self, rule: RuleId, body: ExprId) {
        self.rules[rule.index()].body = body;
    }

    /// Returns the finished grammar.
    pub fn finish(self, start: RuleId) -> Cfg {
        Cfg {
            exprs: self.exprs,
            rules: self.rules,
            regulars: self.regulars,
            object_lists: self.object_lists,
            start,
        }
    }
}

impl Cfg {
    /// Returns the grammar of the same texts, each with `prefix` before it.
    ///
    /// ```
    /// use lexiform::limits::Limits;
    /// use lexiform_syntax::notation::ebnf;
    /// let digit = ebnf::lower("d ::= [0-9]", &Limits::default()).unwrap();
    /// assert_eq!(digit.clone().with_prefix(b"").rules.len(), 1);
    /// assert_eq!(digit.with_prefix(b"#").rules.len(), 2);
    /// ```
    pub fn with_prefix(self, prefix: &[u8]) -> Cfg {
        if prefix.is_empty() {
            return self;
        }
        let mut builder = CfgBuilder::new();
        let texts = builder.import(self);
        let prefix = builder.bytes(prefix);
        // The rule has no name, because no user wrote it: no message and no place may name it.
        let start = builder.declare("");
        let body = builder.seq([prefix, texts]);
        builder.define(start, body);
        builder.finish(start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::{ItemOrder, Property};

    #[test]
    fn equal_object_lists_are_stored_once() {
        let mut builder = CfgBuilder::new();
        let mut object_list = |min| {
            let (item, separator) = (builder.bytes("a"), builder.bytes(","));
            builder.object_list(ObjectList {
                properties: vec![Property::new(item, true)],
                additional: Vec::new(),
                taken: Vec::new(),
                separator,
                order: ItemOrder::Any,
                min,
                max: None,
                demands: Vec::new(),
            })
        };
        let (one, other, same) = (object_list(0), object_list(1), object_list(0));
        assert_eq!(one, same);
        assert_ne!(one, other);
        assert_eq!(builder.object_lists.len(), 2);
    }
}
