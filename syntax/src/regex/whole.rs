//! Converts a search with look-around to the language of whole texts.
//!
//! ```text
//!   foo|bar$            .*foo.* | .*bar
//!   ^(?!tmp)[a-z]+$     [a-z]+ ∩ not tmp.*
//!   ^[a-z]{1,5000}$     1 to 5000 units of [a-z]
//! ```
//!
//! A lookahead after a beginning of fixed length applies at one place only, so it is an intersection with, or
//! an exclusion of, another language: `^A(?!B)C` is `AC` without `AB.*`. The same holds for a lookbehind
//! before an end of fixed length. Anchors, word boundaries and look-around over one character may be anywhere
//! ([`context`](super::context)); any other look-around goes through an automaton
//! ([`determinise`](super::determinise)), which must stay small.

use regex_syntax::hir::{Hir, Look, Repetition};

use super::context;
use super::determinise;
use super::error::RegexError;
use super::language::Language;
use super::node::{Around, Node};
use super::rust;
use lexiform_automata::error::ProblemKind;
use lexiform_automata::grammar::{Part, Regular};

/// The maximum number of conditions in one expression: each is an automaton.
const CONDITIONS: usize = 1_000;
const MANY_CONDITIONS: &str = "lookaheads and lookbehinds that apply to the whole text are not supported";

/// Counts up to this are unrolled into states, which can be shared with the rest of the expression.
const SMALL_COUNT: u32 = 64;

/// Returns the texts in which the node is found somewhere. `size` bounds the expression after its counts are
/// unrolled.
pub(crate) fn search(node: Node, size: u64) -> Result<Regular, RegexError> {
    match node {
        Node::Alt(alternatives) if !alternatives.is_empty() => {
            // Alternatives without conditions share the text around them: if they were separate, an automaton
            // would have to remember which of them were found, which is exponential.
            let (free, bound): (Vec<_>, Vec<_>) = alternatives.into_iter().partition(Node::is_plain);
            if bound.is_empty() {
                return SequenceSearch::new(Node::Concat(vec![Node::Alt(free)])).parts(size);
            }
            let free = (!free.is_empty()).then(|| Node::Concat(vec![Node::Alt(free)]));
            let hirs: Result<Vec<_>, _> = bound
                .into_iter()
                .chain(free)
                .map(|one| single(one, size))
                .collect();
            Ok(matching(Hir::alternation(hirs?)))
        }
        node => SequenceSearch::new(node).parts(size),
    }
}

/// Returns the texts that the node matches as a whole.
pub(crate) fn whole(node: Node, size: u64) -> Result<Regular, RegexError> {
    search(
        Node::concat([Node::Look(Look::Start), node, Node::Look(Look::End)]),
        size,
    )
}

/// Returns a language as one expression without look-around.
///
/// # Errors
/// Returns an error if the expression is too large.
pub(crate) fn one_expression(regular: &Regular, size: u64) -> Result<Node, RegexError> {
    match &regular.parts[..] {
        [Part::Match(hir)] => return rust::node(hir),
        [Part::Units { unit, min, max }] => return rust::node(&units_hir(unit, *min, *max)?),
        _ => {}
    }
    let mut conditions = vec![Node::Look(Look::Start)];
    for part in &regular.parts {
        let (negative, body) = match part {
            Part::Match(hir) => (false, rust::node(hir)?),
            Part::Not(hir) => (true, rust::node(hir)?),
            Part::Units { unit, min, max } => (false, rust::node(&units_hir(unit, *min, *max)?)?),
        };
        conditions.push(Node::Around(Around {
            ahead: true,
            negative,
            body: Box::new(Node::concat([body, Node::Look(Look::End)])),
            column: 1,
        }));
    }
    let whole = conditions
        .into_iter()
        .chain([Node::anything(), Node::Look(Look::End)]);
    rust::node(&determinise::language(&Node::concat(whole))?.to_hir(size)?)
}

fn matching(hir: Hir) -> Regular {
    Regular::of(vec![Part::Match(hir.into())])
}

/// Returns the texts in which the node is found, as one expression.
pub(crate) fn single(node: Node, size: u64) -> Result<Hir, RegexError> {
    let mut regular = search(node.clone(), size)?;
    match (regular.parts.pop(), regular.parts.is_empty()) {
        (Some(Part::Match(hir)), true) => Ok(Hir::clone(&hir)),
        (Some(Part::Units { unit, min, max }), true) => units_hir(&unit, min, max),
        _ => determinised(node, size),
    }
}

/// Returns the texts in which the node is found, using an automaton, for cases that an intersection does not
/// cover.
fn determinised(node: Node, size: u64) -> Result<Hir, RegexError> {
    determinise::language(&Node::concat([Node::anything(), node, Node::anything()]))?.to_hir(size)
}

fn units_hir(unit: &Hir, min: u64, max: Option<u64>) -> Result<Hir, RegexError> {
    let narrow =
        |count: u64| u32::try_from(count).map_err(|_| RegexError::limit("the repetition count is too large"));
    let (min, max) = (narrow(min)?, max.map(narrow).transpose()?);
    Ok(Hir::repetition(Repetition {
        min,
        max,
        greedy: true,
        sub: Box::new(unit.clone()),
    }))
}

/// A search for a sequence, with the anchors at its ends removed.
struct SequenceSearch {
    start: bool,
    items: Vec<Node>,
    end: bool,
}

impl SequenceSearch {
    fn new(node: Node) -> Self {
        let mut items = match node {
            Node::Concat(parts) => parts,
            Node::Empty => Vec::new(),
            node => vec![node],
        };
        let is = |item: Option<&Node>, look: Look| item == Some(&Node::Look(look));
        let (mut start, mut end) = (false, false);
        let leading = items
            .iter()
            .take_while(|item| is(Some(item), Look::Start))
            .count();
        if leading > 0 {
            start = true;
            items.drain(..leading);
        }
        while is(items.last(), Look::End) {
            end = true;
            items.pop();
        }
        SequenceSearch { start, items, end }
    }

    fn parts(mut self, size: u64) -> Result<Regular, RegexError> {
        let mut parts = Vec::new();
        if let Some(part) = self.tempered(size)? {
            parts.push(part);
        }
        self.unfold_open_ends();
        self.take_lookaheads(size, &mut parts)?;
        self.take_lookbehinds(size, &mut parts)?;
        if parts.len() > CONDITIONS {
            return Err(RegexError::limit(format!(
                "more than {CONDITIONS} {MANY_CONDITIONS}"
            )));
        }
        let body = match self.units() {
            Some(units) => units,
            None => Part::Match(self.hir(size)?.into()),
        };
        parts.insert(0, body);
        Ok(Regular::of(parts))
    }

    /// If any text may follow the match, a lookahead at its end is part of the match; likewise at the
    /// beginning.
    fn unfold_open_ends(&mut self) {
        if !self.end
            && let Some(Node::Around(Around {
                ahead: true,
                negative: false,
                body,
                ..
            })) = self.items.last()
        {
            let body = (**body).clone();
            self.items.pop();
            self.items.push(body);
        }
        if !self.start
            && let Some(Node::Around(Around {
                ahead: false,
                negative: false,
                body,
                ..
            })) = self.items.first()
        {
            let body = (**body).clone();
            self.items[0] = body;
        }
    }

    fn take_lookaheads(&mut self, size: u64, parts: &mut Vec<Part>) -> Result<(), RegexError> {
        if !self.start {
            return Ok(());
        }
        let (mut before, mut rest) = (vec![Node::Look(Look::Start)], Vec::new());
        let mut items = std::mem::take(&mut self.items).into_iter();
        for item in items.by_ref() {
            match item {
                Node::Around(around) if around.ahead => {
                    let body = (*around.body).clone();
                    let condition = Node::concat(before.iter().cloned().chain([body]));
                    add_condition(condition, &around, size, parts)?;
                }
                item if has_fixed_length(&item) && item.around().is_none() => before.push(item),
                item => {
                    rest.push(item);
                    break;
                }
            }
        }
        before.remove(0);
        self.items = before.into_iter().chain(rest).chain(items).collect();
        Ok(())
    }

    fn take_lookbehinds(&mut self, size: u64, parts: &mut Vec<Part>) -> Result<(), RegexError> {
        if !self.end {
            return Ok(());
        }
        let mut after = vec![Node::Look(Look::End)];
        while let Some(item) = self.items.pop() {
            match item {
                Node::Around(around) if !around.ahead => {
                    let body = (*around.body).clone();
                    let condition = Node::concat([body].into_iter().chain(after.iter().rev().cloned()));
                    add_condition(condition, &around, size, parts)?;
                }
                item if has_fixed_length(&item) && item.around().is_none() => after.push(item),
                item => {
                    self.items.push(item);
                    break;
                }
            }
        }
        self.items.extend(after.drain(1..).rev());
        Ok(())
    }

    /// Handles `^(?:(?!B)X)*$`, a run of X in which B begins nowhere: X* without `.*B.*`.
    fn tempered(&mut self, size: u64) -> Result<Option<Part>, RegexError> {
        let [
            Node::Repeat {
                body,
                min: 0 | 1,
                max: None,
            },
        ] = self.items.as_slice()
        else {
            return Ok(None);
        };
        let Node::Concat(inner) = &**body else {
            return Ok(None);
        };
        let (Some(Node::Set(set)), true, true) = (inner.last(), self.start, self.end) else {
            return Ok(None);
        };
        let mut forbidden = Vec::new();
        for item in &inner[..inner.len() - 1] {
            match item {
                // A body that can be empty could also be found after the last X, where the lookahead is not
                // evaluated.
                Node::Around(around) if around.ahead && around.negative && !around.body.is_nullable() => {
                    forbidden.push((*around.body).clone());
                }
                _ => return Ok(None),
            }
        }
        let (set, min) = (
            set.clone(),
            if let Node::Repeat { min, .. } = &self.items[0] {
                *min
            } else {
                0
            },
        );
        if forbidden.iter().any(|node| node.around().is_some()) {
            return Ok(None);
        }
        let found = single(Node::Concat(vec![Node::alt(forbidden)]), size)?;
        self.items = vec![Node::repeat(Node::Set(set), min, None)];
        Ok(Some(Part::Not(found.into())))
    }

    /// Returns a counted repetition of one class, which is left to a register.
    fn units(&self) -> Option<Part> {
        let ([Node::Repeat { body, min, max }], true, true) = (self.items.as_slice(), self.start, self.end)
        else {
            return None;
        };
        let (Node::Set(_), true) = (&**body, max.unwrap_or(*min) > SMALL_COUNT) else {
            return None;
        };
        Some(Part::Units {
            unit: body.to_hir().into(),
            min: u64::from(*min),
            max: max.map(u64::from),
        })
    }

    fn hir(self, size: u64) -> Result<Hir, RegexError> {
        let mut items = self.items;
        if !self.start {
            items.insert(0, Node::anything());
        }
        if !self.end {
            items.push(Node::anything());
        }
        let node = Node::concat(items);
        if node.unrolled_size() > size {
            let message =
                format!("the repetition counts are too large; the limit `regular_states` is {size}");
            return Err(RegexError::limit(message));
        }
        if node.is_plain() {
            return Ok(node.to_hir());
        }
        if node.around().is_none() {
            return without_conditions(&node, size)?.to_hir(size);
        }
        // The parts before the first lookahead need not be determinised with it.
        let items = match node {
            Node::Concat(parts) => parts,
            node => vec![node],
        };
        let plain = items.iter().take_while(|item| item.is_plain()).count();
        let looks_back = items.iter().any(looks_back);
        let (before, rest) = items.split_at(if looks_back { 0 } else { plain });
        let before = Node::concat(before.iter().cloned()).to_hir();
        let rest = determinise::language(&Node::concat(rest.iter().cloned()))?.to_hir(size)?;
        Ok(Hir::concat(vec![before, rest]))
    }
}

/// Removes conditions on neighbouring characters. Keeping the shape of the expression is best if that adds
/// little. If it multiplies the parts, a small automaton is better, because the parts multiply again when
/// they are determinised.
fn without_conditions(node: &Node, size: u64) -> Result<Language, RegexError> {
    let split = context::language(node, size);
    let twice = node.unrolled_size().saturating_mul(2);
    if split.as_ref().is_ok_and(|language| language.size() <= twice) {
        return split;
    }
    match (split, determinise::language(node)) {
        (Ok(split), Ok(small)) if split.size() <= small.size() => Ok(split),
        (_, Ok(small)) => Ok(small),
        (split, Err(_)) => split,
    }
}

fn has_fixed_length(node: &Node) -> bool {
    let (least, most) = node.lengths();
    Some(least) == most
}

/// Adds the condition that the texts of `condition` are required or excluded.
fn add_condition(
    condition: Node,
    around: &Around,
    size: u64,
    parts: &mut Vec<Part>,
) -> Result<(), RegexError> {
    if parts.len() >= CONDITIONS {
        let message = format!("more than {CONDITIONS} {MANY_CONDITIONS}");
        return Err(RegexError::at(ProblemKind::Limit, around.column, message));
    }
    let mut found = search(condition.clone(), size)?.parts;
    if !around.negative {
        parts.append(&mut found);
        return Ok(());
    }
    parts.push(match (found.pop(), found.is_empty()) {
        (Some(Part::Match(hir)), true) => Part::Not(hir),
        (Some(Part::Not(hir)), true) => Part::Match(hir),
        (Some(Part::Units { unit, min, max }), true) => Part::Not(units_hir(&unit, min, max)?.into()),
        _ => Part::Not(determinised(condition, size)?.into()),
    });
    Ok(())
}

/// Checks whether a condition in the node depends on the text before it.
fn looks_back(node: &Node) -> bool {
    match node {
        Node::Empty | Node::Set(_) | Node::Look(Look::End | Look::EndLF) => false,
        Node::Look(_) => true,
        Node::Test(test) => !test.ahead,
        Node::Around(around) => !around.ahead || looks_back(&around.body),
        Node::Concat(parts) | Node::Alt(parts) => parts.iter().any(looks_back),
        Node::Repeat { body, .. } => looks_back(body),
    }
}
