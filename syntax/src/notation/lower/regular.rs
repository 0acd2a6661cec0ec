//! Parts that must be regular, as expressions: the rules that they call are written out.

use std::cell::Cell;

use foldhash::HashMap;
use lexiform_automata::error::ProblemKind;
use lexiform_automata::grammar::{Longest, Part, Regular, RuleId};
use lexiform_automata::limits::Limits;

use super::names::Names;
use crate::notation::tree::{Definition, Ending, LongestWord, Node, NodeKind};
use crate::regex::{RegexError, node as pattern, whole};
use regex_syntax::hir::Look;

/// The most nodes of an expression after the rules that it calls are written out.
const MOST_NODES: usize = 100_000;
/// The most nodes of all expressions of a grammar together.
const MOST_TOGETHER: usize = 1_000_000;
/// The deepest expression after the rules that it calls are written out: later passes recurse.
const DEEPEST: usize = 250;

/// Returns the pattern of a text with each letter in either case.
pub(super) fn any_case(text: &str) -> pattern::Node {
    let sets = text
        .chars()
        .map(|c| pattern::Node::Set(pattern::either_case(pattern::char_set(c))));
    pattern::Node::concat(sets)
}

/// Why a part is not a regular language.
pub(super) struct NotRegular {
    pub(super) kind: ProblemKind,
    pub(super) at: usize,
    pub(super) message: String,
}

/// Writes parts out as expressions.
pub(super) struct Regulars<'a> {
    all: &'a [Definition],
    rules: &'a HashMap<String, (RuleId, usize)>,
    names: Names,
    limits: &'a Limits,
    /// The nodes that were written out so far, for all parts of the grammar together.
    spent: &'a Cell<usize>,
}

/// How much of an expression was written out, and the rules that are being written out.
#[derive(Default)]
struct Progress {
    nodes: usize,
    open: Vec<usize>,
    /// `true` if a lazy expression is part of it.
    is_lazy: bool,
}

impl<'a> Regulars<'a> {
    pub(super) fn new(
        all: &'a [Definition],
        rules: &'a HashMap<String, (RuleId, usize)>,
        names: Names,
        limits: &'a Limits,
        spent: &'a Cell<usize>,
    ) -> Regulars<'a> {
        Regulars {
            all,
            rules,
            names,
            limits,
            spent,
        }
    }

    /// Returns the texts that all of these parts derive.
    pub(super) fn intersection(&self, parts: &[Node]) -> Result<Regular, NotRegular> {
        let mut found = Vec::new();
        self.intersect(parts, &mut Vec::new(), &mut found)?;
        Ok(Regular::of(found))
    }

    /// Returns a word without its head, with the place where it ends.
    pub(super) fn longest(&self, longest: &LongestWord) -> Result<Regular, NotRegular> {
        let mut regular = self.intersection(std::slice::from_ref(&longest.word))?;
        let refused = |message: String| NotRegular {
            kind: ProblemKind::Unsupported,
            at: longest.word.at,
            message,
        };
        if regular
            .parts
            .iter()
            .any(|part| matches!(part, Part::Units { .. }))
        {
            return Err(refused("a counted word ends anywhere".to_owned()));
        }
        let longer = self.pattern(&longest.longer, 0, &mut Progress::default())?;
        let [start, end] = [Look::Start, Look::End].map(pattern::Node::Look);
        let longer = pattern::Node::concat([start, longer, end]);
        let size = self.limits.regular_states as u64;
        let longer = whole::single(longer, size).map_err(|error| refused(error.message))?;
        regular.longest = Some(Longest {
            longer: longer.into(),
            gaps: longest.gaps.clone(),
        });
        Ok(regular)
    }

    /// Adds the operands of an intersection, which may be those of rules that are intersections themselves;
    /// `open` holds the rules that are being looked into.
    fn intersect(
        &self,
        parts: &[Node],
        open: &mut Vec<usize>,
        found: &mut Vec<Part>,
    ) -> Result<(), NotRegular> {
        for part in parts {
            match &part.kind {
                NodeKind::All(inner) => self.intersect(inner, open, found)?,
                NodeKind::Word(body, ending) => found.extend(self.word(body, *ending)?.parts),
                NodeKind::Not(body) => found.push(self.complement(body)?),
                NodeKind::Name(name) => match self.definition(name) {
                    Some(at) if self.is_combined(at) && !open.contains(&at) && open.len() < DEEPEST => {
                        open.push(at);
                        self.intersect(std::slice::from_ref(&self.all[at].body), open, found)?;
                        open.pop();
                    }
                    _ => found.extend(self.word(part, Ending::AsWritten)?.parts),
                },
                _ => found.extend(self.word(part, Ending::AsWritten)?.parts),
            }
        }
        Ok(())
    }

    /// Returns `true` if a rule is itself an intersection or a complement.
    fn is_combined(&self, at: usize) -> bool {
        let is_combined = |node: &Node| matches!(node.kind, NodeKind::All(_) | NodeKind::Not(_));
        let body = &self.all[at].body;
        is_combined(body) || matches!(&body.kind, NodeKind::Word(inner, _) if is_combined(inner))
    }

    fn complement(&self, body: &Node) -> Result<Part, NotRegular> {
        let mut regular = self.word(body, Ending::AsWritten)?;
        match (regular.parts.pop(), regular.parts.is_empty()) {
            (Some(Part::Match(expression)), true) => Ok(Part::Not(expression)),
            (Some(Part::Not(expression)), true) => Ok(Part::Match(expression)),
            _ => Err(NotRegular {
                kind: ProblemKind::Unsupported,
                at: body.at,
                message: "the complement of a part with look-around or large counts is not supported".into(),
            }),
        }
    }

    /// Returns a part as one language; the part may be an intersection that has all its words.
    fn word(&self, part: &Node, ending: Ending) -> Result<Regular, NotRegular> {
        if let (NodeKind::All(_) | NodeKind::Not(_), Ending::AsWritten) = (&part.kind, ending) {
            return self.intersection(std::slice::from_ref(part));
        }
        let mut progress = Progress::default();
        let pattern = self.pattern(part, 0, &mut progress)?;
        let ends_soon = ending == Ending::Soonest || progress.is_lazy;
        let size = self.limits.regular_states as u64;
        let refused = |error: RegexError| NotRegular {
            kind: error.kind,
            at: part.at,
            message: error.message,
        };
        if !ends_soon {
            return whole::whole(pattern, size).map_err(refused);
        }
        // A word that goes on after another one.
        let more = pattern::Node::repeat(pattern::Node::Set(pattern::any_set()), 1, None);
        let [start, end] = [Look::Start, Look::End].map(pattern::Node::Look);
        let longer = pattern::Node::concat([start, pattern.clone(), more, end]);
        let longer = whole::single(longer, size).map_err(refused)?;
        let mut regular = whole::whole(pattern, size).map_err(refused)?;
        regular.parts.push(Part::Not(longer.into()));
        Ok(regular)
    }

    fn definition(&self, name: &str) -> Option<usize> {
        self.rules.get(&self.names.key(name)).map(|&(_, at)| at)
    }

    /// Returns a part as an expression. Recurses as deep as the part and the rules that it calls nest.
    fn pattern(
        &self,
        node: &Node,
        depth: usize,
        progress: &mut Progress,
    ) -> Result<pattern::Node, NotRegular> {
        let refused = |kind, message: String| {
            let at = node.at;
            Err(NotRegular { kind, at, message })
        };
        progress.nodes += 1;
        self.spent.set(self.spent.get() + 1);
        if progress.nodes > MOST_NODES || self.spent.get() > MOST_TOGETHER || depth > DEEPEST {
            let message = "this part is too large for an intersection or an exception".to_owned();
            return refused(ProblemKind::Limit, message);
        }
        Ok(match &node.kind {
            NodeKind::Text(text) => pattern::Node::concat(text.chars().map(pattern::Node::char)),
            NodeKind::AnyCase(text) => any_case(text),
            NodeKind::Set(set) => pattern::Node::Set(set.clone()),
            NodeKind::Pattern(pattern) => {
                progress.is_lazy |= pattern.is_lazy;
                pattern.node.clone()
            }
            NodeKind::Word(body, Ending::AsWritten) => return self.pattern(body, depth, progress),
            NodeKind::Seq(parts) => pattern::Node::concat(self.patterns(parts, depth, progress)?),
            NodeKind::Choice(parts) => pattern::Node::alt(self.patterns(parts, depth, progress)?),
            NodeKind::Repeat(body, min, max) => {
                let body = self.pattern(body, depth + 1, progress)?;
                pattern::Node::repeat(body, *min, *max)
            }
            NodeKind::Name(name) => return self.called(name, node.at, depth, progress),
            NodeKind::Longest(longest) => {
                let parts = longest.head.iter().chain([&longest.word]);
                let parts: Result<Vec<_>, _> = parts
                    .map(|part| self.pattern(part, depth + 1, progress))
                    .collect();
                pattern::Node::concat(parts?)
            }
            NodeKind::All(_) | NodeKind::Not(_) | NodeKind::Word(_, Ending::Soonest) => {
                let message = "an intersection or exception within another part is not supported; give it a rule of its own";
                return refused(ProblemKind::Unsupported, message.to_owned());
            }
            NodeKind::Special(_) | NodeKind::Tokens(_) | NodeKind::Grammar(_) | NodeKind::TooDeep => {
                let message = "tokens and other grammars cannot be part of an intersection or exception";
                return refused(ProblemKind::Unsupported, message.to_owned());
            }
        })
    }

    fn patterns(
        &self,
        parts: &[Node],
        depth: usize,
        progress: &mut Progress,
    ) -> Result<Vec<pattern::Node>, NotRegular> {
        let parts = parts.iter().map(|part| self.pattern(part, depth + 1, progress));
        parts.collect()
    }

    fn called(
        &self,
        name: &str,
        at: usize,
        depth: usize,
        progress: &mut Progress,
    ) -> Result<pattern::Node, NotRegular> {
        let refused = |kind, message: String| Err(NotRegular { kind, at, message });
        let Some(callee) = self.definition(name) else {
            let message = format!("rule `{name}` is not defined");
            return refused(ProblemKind::Reference, message);
        };
        if progress.open.contains(&callee) {
            let message =
                format!("`{name}` calls itself, so it is not a regular language, which it must be here");
            return refused(ProblemKind::Syntax, message);
        }
        progress.open.push(callee);
        let body = self.pattern(&self.all[callee].body, depth + 1, progress);
        progress.open.pop();
        body
    }
}
