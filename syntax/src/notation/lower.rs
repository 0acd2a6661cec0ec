//! Lowers the syntax tree of any notation to a grammar.
//!
//! ```text
//!   definitions ─► names and their rules ─► bodies ─► Cfg
//!                          └─ regular: parts that must be regular (`a - b`, `a & b`), as expressions
//! ```
//!
//! What the tree cannot say by itself is reported here: names without a rule, rules with the same name,
//! counts and nesting beyond a limit, and intersections of parts that are not regular.

mod names;
mod problems;
mod regular;

pub(super) use names::Names;
pub(super) use problems::Problems;

use std::cell::Cell;

use foldhash::{HashMap, HashMapExt};
use regex_syntax::hir::{Class, ClassUnicode, Hir, Repetition};

use super::terminals;
use super::tree::{Definition, Ending, LongestWord, Node, NodeKind};
use crate::suggest;
use lexiform_automata::error::{CompileError, ProblemKind};
use lexiform_automata::grammar::{Cfg, CfgBuilder, Expr, ExprId, Part, Regular, RuleId};
use lexiform_automata::limits::Limits;

/// Counts of a class up to this are unrolled into states; larger ones are left to a register.
const SMALL_COUNT: u32 = 64;

/// The deepest nesting of brackets and operators, whatever `nesting` allows: later passes recurse.
const MOST_NESTING: usize = 1_000;

/// A grammar as a reader returns it.
#[derive(Debug)]
pub(crate) struct Tree<'t> {
    /// The source, for the places of problems.
    pub(crate) text: &'t str,
    pub(crate) definitions: Vec<Definition>,
    /// The names of the rules that may be the start, the first choice first. Where there is no such rule, the
    /// first one is the start.
    pub(crate) starts: &'static [&'static str],
    /// How names of rules are written in messages and compared.
    pub(crate) names: Names,
    /// What the reader found.
    pub(crate) problems: Problems,
    /// `true` if rules are missing because of these problems, so that calls of them are none.
    pub(crate) has_gaps: bool,
}

/// Lowers a tree, with its regular parts as terminals, or reports all problems in it. Other grammars within
/// it are added as they are: their readers know better what should be a terminal.
///
/// # Errors
/// Returns the problems of the reader and those that are found here.
pub(crate) fn lower(tree: Tree<'_>, limits: &Limits) -> Result<Cfg, CompileError> {
    let (cfg, others) = limits.cancel.unless(as_written(tree, limits))?;
    let cfg = limits
        .cancel
        .unless(Ok::<_, CompileError>(terminals::lay(cfg, limits)))?;
    if others.is_empty() {
        return Ok(cfg);
    }
    let mut builder = CfgBuilder::within(limits.cancel.account());
    let start = builder.import(cfg);
    for (index, other) in others.into_iter().enumerate() {
        let other = builder.import(other);
        if let Expr::Rule(rule) = *builder.expr(other) {
            builder.fill(&hole(index), rule);
        }
    }
    match *builder.expr(start) {
        Expr::Rule(start) => Ok(builder.finish(start)),
        _ => unreachable!("an import is a call of a rule"),
    }
}

/// Returns the name of the special token that stands for another grammar. No vocabulary has such a token.
fn hole(index: usize) -> String {
    format!("{{grammar {index}}}")
}

/// Lowers a tree without turning its regular parts into terminals, and returns the grammars within it, for
/// which [`hole`]s stand.
pub(crate) fn as_written(tree: Tree<'_>, limits: &Limits) -> Result<(Cfg, Vec<Cfg>), CompileError> {
    let Tree {
        text,
        definitions,
        starts,
        names,
        problems,
        has_gaps,
    } = tree;
    let mut lowering = Lowering {
        has_gaps,
        limits,
        names,
        builder: CfgBuilder::within(limits.cancel.account()),
        rules: HashMap::new(),
        others: Vec::new(),
        spent: Cell::new(0),
        problems,
    };
    let bodies = lowering.declare(&definitions);
    for &(rule, at) in &bodies {
        if limits.cancel.is_asked() {
            break;
        }
        let body = lowering.node(&definitions, &definitions[at].body);
        lowering.builder.define(rule, body);
        if lowering.builder.len() > limits.exprs {
            let limit = limits.exprs;
            let message = format!("the grammar has too many expressions; the limit `exprs` is {limit}");
            let at = definitions[at].at;
            lowering.problems.add(ProblemKind::Limit, at, message);
            break;
        }
    }
    lowering.problems.placed(text)?;
    let named = |name: &&str| lowering.rules.get(&names.key(name)).map(|&(rule, _)| rule);
    let start = starts.iter().find_map(named).unwrap_or(RuleId(0));
    Ok((lowering.builder.finish(start), lowering.others))
}

/// The regular parts of a tree, as languages.
pub(crate) struct RegularParts<'a> {
    all: &'a [Definition],
    names: Names,
    rules: HashMap<String, (RuleId, usize)>,
    limits: &'a Limits,
    /// The nodes of the expressions that were written out.
    spent: Cell<usize>,
}

impl<'a> RegularParts<'a> {
    pub(crate) fn new(all: &'a [Definition], names: Names, limits: &'a Limits) -> RegularParts<'a> {
        let rules = all.iter().enumerate();
        let rules = rules.map(|(at, definition)| (names.key(&definition.name), (RuleId(at as u32), at)));
        RegularParts {
            all,
            names,
            rules: rules.collect(),
            limits,
            spent: Cell::new(0),
        }
    }

    /// Returns the texts that a part derives.
    ///
    /// # Errors
    /// Returns the kind, the offset and the message of the problem if they are not known to be regular.
    pub(crate) fn of(&self, part: &Node) -> Result<Regular, (ProblemKind, usize, String)> {
        let regulars = regular::Regulars::new(self.all, &self.rules, self.names, self.limits, &self.spent);
        let found = regulars.intersection(std::slice::from_ref(part));
        found.map_err(|regular::NotRegular { kind, at, message }| (kind, at, message))
    }
}

struct Lowering<'a> {
    has_gaps: bool,
    limits: &'a Limits,
    names: Names,
    builder: CfgBuilder,
    /// The rule of each name, with the index of its definition.
    rules: HashMap<String, (RuleId, usize)>,
    /// The grammars within this one.
    others: Vec<Cfg>,
    /// The nodes of the expressions that were written out.
    spent: Cell<usize>,
    problems: Problems,
}

impl Lowering<'_> {
    /// Declares every rule, so that bodies can refer to later rules, and returns each with the index of its
    /// definition.
    fn declare(&mut self, definitions: &[Definition]) -> Vec<(RuleId, usize)> {
        let mut bodies = Vec::with_capacity(definitions.len());
        for (at, definition) in definitions.iter().enumerate() {
            let rule = self.builder.declare(definition.name.as_str());
            let key = self.names.key(&definition.name);
            if self.rules.insert(key, (rule, at)).is_some() {
                let message = format!("rule `{}` is defined twice", definition.name);
                self.problems.add(ProblemKind::Reference, definition.at, message);
            }
            self.check_depth(definition);
            bodies.push((rule, at));
        }
        bodies
    }

    /// A level of brackets is at most a choice of sequences, and a body has one such level without brackets.
    fn check_depth(&mut self, definition: &Definition) {
        let limit = self.limits.nesting.min(MOST_NESTING);
        if definition.body.depth() > limit.saturating_add(1).saturating_mul(2) {
            self.too_deep(definition.body.at);
        }
    }

    fn too_deep(&mut self, at: usize) {
        let limit = self.limits.nesting.min(MOST_NESTING);
        let message = format!("brackets and repetitions nest too deeply; the limit `nesting` is {limit}");
        self.problems.add(ProblemKind::Limit, at, message);
    }

    fn node(&mut self, all: &[Definition], node: &Node) -> ExprId {
        match &node.kind {
            NodeKind::Text(text) => self.builder.bytes(text),
            NodeKind::AnyCase(_) | NodeKind::Pattern(_) => self.intersection(all, std::slice::from_ref(node)),
            NodeKind::Set(set) => self.set(set.clone()),
            NodeKind::Name(name) => self.reference(name, node.at),
            NodeKind::Special(name) => self.builder.special(name),
            NodeKind::Tokens(set) => self.builder.tokens(set.clone()),
            NodeKind::Seq(parts) => {
                let parts: Vec<ExprId> = parts.iter().map(|part| self.node(all, part)).collect();
                self.builder.seq(parts)
            }
            NodeKind::Choice(parts) => {
                let parts: Vec<ExprId> = parts.iter().map(|part| self.node(all, part)).collect();
                self.builder.choice(parts)
            }
            NodeKind::Repeat(body, min, max) => self.repeated(all, node, body, (*min, *max)),
            NodeKind::All(parts) => self.intersection(all, parts),
            NodeKind::Word(body, Ending::AsWritten) => match self.as_word(all, node) {
                Ok(word) => word,
                // Each part can be written down, and the whole cannot.
                Err(error) if matches!(error.kind, ProblemKind::Unsupported | ProblemKind::Limit) => {
                    self.node(all, body)
                }
                Err(error) => self.not_regular(error),
            },
            NodeKind::Longest(longest) => self.longest(all, longest),
            NodeKind::Not(_) | NodeKind::Word(..) => self.intersection(all, std::slice::from_ref(node)),
            NodeKind::Grammar(cfg) => {
                self.others.push(Cfg::clone(cfg));
                self.builder.special(&hole(self.others.len() - 1))
            }
            NodeKind::TooDeep => {
                self.too_deep(node.at);
                self.builder.empty()
            }
        }
    }

    fn reference(&mut self, name: &str, at: usize) -> ExprId {
        if let Some(&(rule, _)) = self.rules.get(&self.names.key(name)) {
            return self.builder.rule(rule);
        }
        if self.has_gaps {
            return self.builder.empty();
        }
        let meant = suggest::nearest(name, self.rules.keys().map(String::as_str));
        let meant = meant.map_or(String::new(), |meant| format!("; did you mean `{meant}`?"));
        let message = format!("rule `{name}` is not defined{meant}");
        self.problems.add(ProblemKind::Reference, at, message);
        self.builder.empty()
    }

    fn set(&mut self, set: ClassUnicode) -> ExprId {
        match set.ranges() {
            [] => self.builder.never(),
            [one] if one.start() == one.end() => self.builder.bytes(one.start().to_string()),
            _ => self.builder.hir(Hir::class(Class::Unicode(set))),
        }
    }

    fn repeated(
        &mut self,
        all: &[Definition],
        node: &Node,
        body: &Node,
        (min, max): (u32, Option<u32>),
    ) -> ExprId {
        if let NodeKind::Set(set) = &body.kind {
            return self.repeated_set(set.clone(), min, max);
        }
        if max.unwrap_or(min) > self.limits.repeat {
            let limit = self.limits.repeat;
            let message = format!("the repetition count is too large; the limit `repeat` is {limit}");
            self.problems.add(ProblemKind::Limit, node.at, message);
        }
        let body = self.node(all, body);
        self.builder.repeat(body, min, max)
    }

    /// A repeated class is one regular language: it stays within the automaton of a terminal.
    fn repeated_set(&mut self, set: ClassUnicode, min: u32, max: Option<u32>) -> ExprId {
        if set.ranges().is_empty() || max == Some(0) || max.is_some_and(|max| max < min) {
            let body = self.set(set);
            return self.builder.repeat(body, min, max);
        }
        let unit = Hir::class(Class::Unicode(set));
        if max.unwrap_or(min) <= SMALL_COUNT {
            return self.builder.hir(Hir::repetition(Repetition {
                min,
                max,
                greedy: true,
                sub: Box::new(unit),
            }));
        }
        let part = Part::Units {
            unit: unit.into(),
            min: u64::from(min),
            max: max.map(u64::from),
        };
        self.regular(Regular::of(vec![part]))
    }

    fn regular(&mut self, regular: Regular) -> ExprId {
        let regular = self.builder.add_regular(regular);
        self.builder.regular(regular)
    }

    /// Lowers the intersection of regular parts, any of which may be a complement, as one language.
    fn intersection(&mut self, all: &[Definition], parts: &[Node]) -> ExprId {
        let regulars = regular::Regulars::new(all, &self.rules, self.names, self.limits, &self.spent);
        match regulars.intersection(parts) {
            Ok(regular) if is_never(&regular) => self.builder.never(),
            Ok(regular) => self.regular(regular),
            Err(error) => self.not_regular(error),
        }
    }

    fn not_regular(&mut self, regular::NotRegular { kind, at, message }: regular::NotRegular) -> ExprId {
        if kind != ProblemKind::Reference || !self.has_gaps {
            self.problems.add(kind, at, message);
        }
        self.builder.empty()
    }

    /// Lowers a word that ends where no longer word begins with it. If that cannot be written down, as for
    /// a word with a large count, the word ends anywhere.
    fn longest(&mut self, all: &[Definition], longest: &LongestWord) -> ExprId {
        let regulars = regular::Regulars::new(all, &self.rules, self.names, self.limits, &self.spent);
        let word = match regulars.longest(longest) {
            Ok(regular) if is_never(&regular) => self.builder.never(),
            Ok(regular) => self.regular(regular),
            Err(_) => self.node(all, &longest.word),
        };
        match &longest.head {
            None => word,
            Some(head) => {
                let head = self.node(all, head);
                self.builder.seq([head, word])
            }
        }
    }

    /// Lowers a regular part as one language.
    fn as_word(&mut self, all: &[Definition], node: &Node) -> Result<ExprId, regular::NotRegular> {
        let regulars = regular::Regulars::new(all, &self.rules, self.names, self.limits, &self.spent);
        let regular = regulars.intersection(std::slice::from_ref(node))?;
        Ok(match is_never(&regular) {
            true => self.builder.never(),
            false => self.regular(regular),
        })
    }
}

/// Returns `true` if an operand of a language has no words, which no automaton is made for.
fn is_never(regular: &Regular) -> bool {
    regular.parts.iter().any(
        |part| matches!(part, Part::Match(expression) if expression.properties().minimum_len().is_none()),
    )
}
