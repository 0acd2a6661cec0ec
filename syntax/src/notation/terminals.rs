//! Rewrites the regular parts of rules as terminals.
//!
//! A grammar text says `(char | escape)*` where a schema says "a string". Left as rules, every letter is a
//! call and a return, and a mask walks the vocabulary through frames. As one regular language it is an
//! automaton, whose masks are computed once and shared with every grammar that has the same language. This
//! pass finds the regular parts and writes them as terminals:
//!
//! ```text
//!   string ::= '"' char* '"'                  string ::= '"' /([^"\\]|\\["\\n])*/ '"'
//!   char   ::= [^"\\] | "\\" ["\\n]     ─►
//!   list   ::= string ("," string)*           list   ::= string ("," string)*
//! ```
//!
//! A part is regular if it calls no recursive rule, except for a rule that calls itself only at its end, or
//! only at its beginning, which is a repetition. The language stays the same, and a part that is not known to
//! improve stays as it is written:
//!
//! * Fixed texts stay texts: they are shown to people as such, and cost little.
//! * A part that takes many characters is not joined with the part after it if that begins with few. The
//!   inside of a string before its quote is a language that all grammars share; the inside of a string with
//!   everything that may follow it is specific to one grammar, so its masks are of no use elsewhere, and at a
//!   quote few tokens are left to check. Where the part after it may begin with any letter, as in `[a-z]
//!   [a-z0-9]*`, half the vocabulary would be checked after every letter.
//! * A part that would become large stays as rules: each automaton and all of them together are kept within a
//!   share of the [`regular_bytes`](Limits::regular_bytes) that expressions may take.
//! * Special tokens, counted languages and intersections are never part of a joined language.

mod calls;
mod repetition;
mod shape;

use foldhash::{HashMap, HashMapExt};
use regex_syntax::hir::{Hir, Repetition};

use self::shape::{Shape, Shapes};
use lexiform_automata::grammar::{Cfg, CfgBuilder, Expr, ExprId, RuleId, TokenSet};
use lexiform_automata::language::{Alphabet, Automaton, Room};
use lexiform_automata::limits::Limits;

/// The divisors of `regular_bytes` for one automaton, and for all of them together.
const SHARE: usize = 64;
const SHARE_OF_ALL: usize = 8;
/// The size limits of an expression; larger ones are not tried.
const MOST_PLACES: u32 = 4_000;
const MOST_DEPTH: u32 = 100;

/// Returns a grammar of the same language with its regular parts as terminals.
pub(super) fn lay(mut cfg: Cfg, limits: &Limits) -> Cfg {
    let shapes = Shapes::find(&mut cfg);
    let called = called(&cfg);
    let mut laying = Laying {
        cfg: &cfg,
        shapes: &shapes,
        limits,
        room: limits.regular_bytes / SHARE_OF_ALL,
        builder: CfgBuilder::within(limits.cancel.account()),
        rules: vec![None; cfg.rules.len()],
        open: Vec::new(),
        laid: HashMap::new(),
    };
    let start = laying.rule(cfg.start);
    // A rule that became part of a terminal at all of its calls is no longer needed.
    for rule in (0..cfg.rules.len()).map(|rule| RuleId(rule as u32)) {
        if !called[rule.index()] || shapes.of_rule(rule).is_none() {
            laying.rule(rule);
        }
        laying.define_all();
    }
    laying.builder.finish(start)
}

/// Returns, for each rule, whether another one calls it.
fn called(cfg: &Cfg) -> Vec<bool> {
    let mut called = vec![false; cfg.rules.len()];
    for (caller, rule) in cfg.rules.iter().enumerate() {
        for callee in calls::callees(cfg, rule.body) {
            called[callee.index()] |= callee.index() != caller;
        }
    }
    called
}

struct Laying<'a> {
    cfg: &'a Cfg,
    shapes: &'a Shapes,
    limits: &'a Limits,
    /// The bytes that further automata may take.
    room: usize,
    builder: CfgBuilder,
    /// The new rule for each old one, if it is needed.
    rules: Vec<Option<RuleId>>,
    /// The rules that have no body yet.
    open: Vec<RuleId>,
    /// The terminal for each row of parts that was tried, or `None` if it stays as rules.
    laid: HashMap<Vec<ExprId>, Option<ExprId>>,
}

impl Laying<'_> {
    fn rule(&mut self, old: RuleId) -> RuleId {
        if let Some(new) = self.rules[old.index()] {
            return new;
        }
        let new = self.builder.declare(&*self.cfg.rules[old.index()].name);
        self.rules[old.index()] = Some(new);
        self.open.push(old);
        new
    }

    fn define_all(&mut self) {
        while let Some(old) = self.open.pop() {
            let body = self.expr(self.cfg.rules[old.index()].body);
            let new = self.rule(old);
            self.builder.define(new, body);
        }
    }

    /// Lowers an expression. Recurses twice as deep as brackets and operators nest, which the limit `nesting`
    /// bounds.
    fn expr(&mut self, id: ExprId) -> ExprId {
        match self.cfg.expr(id) {
            Expr::Never => self.builder.never(),
            Expr::Empty => self.builder.empty(),
            Expr::Bytes(bytes) => self.builder.bytes(bytes),
            Expr::Special(name) => self.builder.special(name),
            Expr::Tokens(set) => self.builder.tokens(TokenSet::clone(set)),
            Expr::Marked(text) => self.builder.marked(text),
            Expr::Seq(parts) => self.sequence(parts),
            Expr::Choice(parts) => self.choice(id, parts),
            &Expr::Repeat { body, min, max } => self.repeat(id, (body, min, max)),
            &Expr::Rule(rule) => {
                let rule = self.rule(rule);
                self.builder.rule(rule)
            }
            Expr::Regular(regular) => {
                let regular = self.cfg.regulars[regular.index()].clone();
                let regular = self.builder.add_regular(regular);
                self.builder.regular(regular)
            }
            Expr::Validated(validated) => self.builder.validated(validated.validator()),
            Expr::ObjectList(_) => unreachable!("no text of a grammar makes an object list"),
        }
    }

    /// Lowers alternatives: to one language if each takes few characters. Those that take many are shared
    /// better if they stay separate.
    fn choice(&mut self, id: ExprId, alternatives: &[ExprId]) -> ExprId {
        let joined = self
            .shapes
            .of(id)
            .is_some_and(|shape| !shape.words && !shape.wide);
        if let Some(terminal) = joined.then(|| self.terminal(&[id])).flatten() {
            return terminal;
        }
        let alternatives: Vec<_> = alternatives.iter().map(|&it| self.expr(it)).collect();
        self.builder.choice(alternatives)
    }

    /// Lowers a repetition: to one language if a round may begin with any character, or if all rounds take
    /// few.
    fn repeat(&mut self, id: ExprId, (body, min, max): (ExprId, u32, Option<u32>)) -> ExprId {
        let joined = self
            .shapes
            .of(id)
            .zip(self.shapes.of(body))
            .is_some_and(|(whole, round)| !whole.words && (round.opens_wide() || !round.wide));
        if let Some(terminal) = joined.then(|| self.terminal(&[id])).flatten() {
            return terminal;
        }
        let body = self.expr(body);
        self.builder.repeat(body, min, max)
    }

    fn sequence(&mut self, parts: &[ExprId]) -> ExprId {
        let mut laid = Vec::new();
        let mut at = 0;
        for end in self.ends_of_rows(parts) {
            self.row(&parts[at..end], &mut laid);
            at = end;
        }
        self.builder.seq(laid)
    }

    /// Returns the ends of the rows of parts that are joined; a part that is not regular is a separate row.
    fn ends_of_rows(&self, parts: &[ExprId]) -> Vec<usize> {
        let shapes: Vec<Option<Shape>> = parts.iter().map(|&part| self.shapes.of(part)).collect();
        let opens_wide = shape::open_wide(&shapes);
        let mut ends = Vec::new();
        let mut wide = false;
        for (at, shape) in shapes.iter().enumerate() {
            let joined = at > 0 && shape.is_some() && shapes[at - 1].is_some() && (!wide || opens_wide[at]);
            if !joined {
                ends.extend((at > 0).then_some(at));
                wide = false;
            }
            wide |= shape.is_some_and(|shape| shape.wide);
        }
        ends.push(parts.len());
        ends
    }

    /// Lowers a row of regular parts to a terminal, without the texts at both ends.
    fn row(&mut self, parts: &[ExprId], laid: &mut Vec<ExprId>) {
        let is_text = |&&part: &&ExprId| {
            let shape = self.shapes.of(part);
            shape.is_some_and(|shape| shape.words && !shape.nullable)
        };
        let before = parts.iter().take_while(is_text).count();
        let after = parts[before..].iter().rev().take_while(is_text).count();
        let (first, last) = (before, parts.len() - after);
        let terminal = (last - first > 1)
            .then(|| self.terminal(&parts[first..last]))
            .flatten();
        match terminal {
            Some(terminal) => {
                laid.extend(parts[..first].iter().map(|&part| self.expr(part)));
                laid.push(terminal);
                laid.extend(parts[last..].iter().map(|&part| self.expr(part)));
            }
            None => laid.extend(parts.iter().map(|&part| self.expr(part))),
        }
    }

    /// Returns a row of parts as one regular language, if it is small enough.
    fn terminal(&mut self, parts: &[ExprId]) -> Option<ExprId> {
        if let Some(&known) = self.laid.get(parts) {
            return known;
        }
        let terminal = self.try_terminal(parts);
        self.laid.insert(parts.to_vec(), terminal);
        terminal
    }

    fn try_terminal(&mut self, parts: &[ExprId]) -> Option<ExprId> {
        let shapes: Option<Vec<Shape>> = parts.iter().map(|&part| self.shapes.of(part)).collect();
        let whole = shape::row(&shapes?);
        let most = self.limits.regular_bytes / SHARE;
        let small = whole.places <= MOST_PLACES && whole.depth <= MOST_DEPTH;
        if whole.words || !small || self.room < most {
            return None;
        }
        let hir = Hir::concat(parts.iter().map(|&part| self.hir(part)).collect());
        let room = Room {
            bytes: most,
            cancel: &self.limits.cancel,
        };
        let Ok(automaton) = Automaton::new(&hir, Alphabet::Chars, room) else {
            // The failed attempt is work too.
            self.room -= most;
            return None;
        };
        self.room = self.room.saturating_sub(automaton.bytes());
        Some(self.builder.hir(hir))
    }

    /// Converts a regular expression of the grammar to a `Hir`; its depth has been checked.
    fn hir(&self, id: ExprId) -> Hir {
        let all = |parts: &[ExprId]| parts.iter().map(|&part| self.hir(part)).collect();
        match self.cfg.expr(id) {
            Expr::Bytes(bytes) => Hir::literal(&**bytes),
            Expr::Seq(parts) => Hir::concat(all(parts)),
            Expr::Choice(parts) => Hir::alternation(all(parts)),
            &Expr::Repeat { body, min, max } => Hir::repetition(Repetition {
                min,
                max,
                greedy: true,
                sub: Box::new(self.hir(body)),
            }),
            Expr::Rule(rule) => self.hir(self.cfg.rules[rule.index()].body),
            Expr::Regular(regular) => {
                let single = self.cfg.regulars[regular.index()].single();
                Hir::clone(single.expect("only single expressions have a shape"))
            }
            Expr::Empty => Hir::empty(),
            Expr::Never
            | Expr::Special(_)
            | Expr::Tokens(_)
            | Expr::Marked(_)
            | Expr::Validated(_)
            | Expr::ObjectList(_) => {
                unreachable!("these have no shape")
            }
        }
    }
}

#[cfg(test)]
mod tests;
