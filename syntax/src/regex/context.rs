//! Removes anchors, word boundaries and one-character look-around, exactly.
//!
//! Such a condition depends on the characters before and after a position, and only on their *kind*: the
//! characters fall into a few kinds that no condition distinguishes further, and the edge of the text is one
//! more kind. A *junction* is a position with the kinds on both sides. A part of the expression leads from
//! junctions to junctions:
//!
//! ```text
//!        (p, f) ── a word whose first kind is f and whose last kind is l ──► (l, q)     for every q
//!        (p, q) ── a condition that holds between p and q ──────────────► (p, q)
//! ```
//!
//! For each junction, we carry the language of the texts that lead there from the beginning. Parts without
//! conditions are kept whole and only narrowed at their ends, so `^\w{1,200}\b` stays one counted repetition.

use regex_syntax::hir::ClassUnicode;

use super::edge::{Budget, Side, words_with};
use super::error::RegexError;
use super::language::Language;
use super::look;
use super::node::Node;

/// The most kinds of characters that conditions may distinguish.
const KINDS: usize = 12;
/// The most parts that are walked; bounds the depth of the result.
const STEPS: u64 = 1_000;
/// The greatest count of a repetition around a condition.
const COPIES: u32 = 64;

/// Returns the language of the texts that `node` matches as a whole. `node` must not contain longer
/// look-around.
pub(crate) fn language(node: &Node, size: u64) -> Result<Language, RegexError> {
    let mut contexts = Contexts::new(node, size)?;
    // After the last condition, the last character of a text no longer matters, so the rest is not split by
    // it.
    let parts = match node {
        Node::Concat(parts) => parts.as_slice(),
        node => std::slice::from_ref(node),
    };
    let plain = parts.iter().rev().take_while(|part| part.is_plain()).count();
    let (conditional, tail) = parts.split_at(parts.len() - plain);
    let start = contexts.at_start();
    let end = contexts.through(&Node::Concat(conditional.to_vec()), &start)?;
    contexts.finished(&end, &Node::concat(tail.iter().cloned()))
}

/// The texts that lead to each junction; `None` if there are none.
type Arrivals = Vec<Option<Language>>;

struct Contexts {
    kinds: Vec<ClassUnicode>,
    size: u64,
    budget: Budget,
    steps: u64,
}

impl Contexts {
    fn new(node: &Node, size: u64) -> Result<Self, RegexError> {
        let mut told_apart = Vec::new();
        look::distinctions(node, &mut told_apart);
        let kinds = look::kinds(&told_apart, KINDS)?;
        Ok(Contexts {
            kinds,
            size,
            budget: Budget::new(size),
            steps: 0,
        })
    }

    fn index(&self, before: usize, after: usize) -> usize {
        before * (self.kinds.len() + 1) + after
    }

    fn junctions(&self) -> usize {
        (self.kinds.len() + 1).pow(2)
    }

    fn nothing(&self) -> Arrivals {
        vec![None; self.junctions()]
    }

    fn at_start(&self) -> Arrivals {
        let mut arrivals = self.nothing();
        let edge = self.kinds.len();
        let empty = Language::empty();
        for after in 0..=edge {
            arrivals[self.index(edge, after)] = Some(empty.clone());
        }
        arrivals
    }

    /// Returns some character of a kind, or `None` for the edge.
    fn sample(&self, kind: usize) -> Option<char> {
        self.kinds
            .get(kind)
            .and_then(|set| set.ranges().first())
            .map(|range| range.start())
    }

    fn step(&mut self, arrivals: &Arrivals) -> Result<(), RegexError> {
        self.steps += 1;
        if self.steps > STEPS {
            return Err(RegexError::limit(format!(
                "resolving the anchors and look-around takes more than {STEPS} steps"
            )));
        }
        arrivals
            .iter()
            .flatten()
            .try_for_each(|language| language.check(self.size))
    }

    /// Returns the arrivals after the node matches at the junctions of `from`.
    fn through(&mut self, node: &Node, from: &Arrivals) -> Result<Arrivals, RegexError> {
        self.step(from)?;
        if node.is_plain() {
            return self.through_plain(node, from);
        }
        match node {
            Node::Look(look) => Ok(self.filter(from, |before, after| look::holds(*look, before, after))),
            Node::Test(test) => Ok(self.filter(from, |before, after| look::passes(test, before, after))),
            Node::Concat(parts) => {
                let mut at = from.clone();
                for part in plain_runs(parts, Node::concat) {
                    at = self.through(&part, &at)?;
                }
                Ok(at)
            }
            Node::Alt(parts) => {
                let mut all = self.nothing();
                for part in alternatives(parts) {
                    let one = self.through(&part, from)?;
                    merge(&mut all, one);
                }
                Ok(all)
            }
            Node::Repeat { body, min, max } => self.through_repeat(body, *min, *max, from),
            Node::Around(around) => Err(RegexError::unsupported(
                around.column,
                "this look-around is not supported",
            )),
            Node::Empty | Node::Set(_) => Ok(from.clone()),
        }
    }

    fn filter(&self, from: &Arrivals, holds: impl Fn(Option<char>, Option<char>) -> bool) -> Arrivals {
        let mut kept = self.nothing();
        let edge = self.kinds.len();
        for before in 0..=edge {
            for after in 0..=edge {
                if holds(self.sample(before), self.sample(after)) {
                    let index = self.index(before, after);
                    kept[index] = from[index].clone();
                }
            }
        }
        kept
    }

    fn through_plain(&mut self, node: &Node, from: &Arrivals) -> Result<Arrivals, RegexError> {
        let mut to = if node.is_nullable() {
            from.clone()
        } else {
            self.nothing()
        };
        for (texts, first) in self.departures(from) {
            let words = words_with(node, Side::First, &first, &mut self.budget)?;
            if words.is_never() {
                continue;
            }
            for last in 0..self.kinds.len() {
                let words = words_with(&words, Side::Last, &self.kinds[last].clone(), &mut self.budget)?;
                if words.is_never() {
                    continue;
                }
                let arrived = Language::concat(&texts, &Language::of(&words));
                for after in 0..=self.kinds.len() {
                    let slot = &mut to[last * (self.kinds.len() + 1) + after];
                    *slot = Some(Language::union(slot.take().into_iter().chain([arrived.clone()])));
                }
            }
        }
        Ok(to)
    }

    /// Returns the arriving texts, each followed by a word of the tail, at the edge of the text.
    fn finished(&mut self, arrived: &Arrivals, tail: &Node) -> Result<Language, RegexError> {
        let edge = self.kinds.len();
        let mut texts = Vec::new();
        if tail.is_nullable() {
            texts.extend((0..=edge).filter_map(|before| arrived[self.index(before, edge)].clone()));
        }
        for (text, first) in self.departures(arrived) {
            let words = words_with(tail, Side::First, &first, &mut self.budget)?;
            if !words.is_never() {
                texts.push(Language::concat(&text, &Language::of(&words)));
            }
        }
        let language = Language::union(texts);
        language.check(self.size).map(|()| language)
    }

    /// Returns the texts after which a word may begin, with the characters it may begin with. Kinds that the
    /// same texts allow are kept together, so that nothing is split unnecessarily.
    fn departures(&self, from: &Arrivals) -> Vec<(Language, ClassUnicode)> {
        let mut groups: Vec<(Vec<Language>, ClassUnicode)> = Vec::new();
        for (kind, set) in self.kinds.iter().enumerate() {
            let texts: Vec<_> = (0..=self.kinds.len())
                .filter_map(|before| from[self.index(before, kind)].clone())
                .collect();
            if texts.is_empty() {
                continue;
            }
            let same = |known: &[Language]| {
                known.len() == texts.len() && known.iter().zip(&texts).all(|(a, b)| a.is_same(b))
            };
            match groups.iter_mut().find(|(known, _)| same(known)) {
                Some((_, characters)) => characters.union(set),
                None => groups.push((texts, set.clone())),
            }
        }
        groups
            .into_iter()
            .map(|(texts, set)| (Language::union(texts), set))
            .collect()
    }

    fn through_repeat(
        &mut self,
        body: &Node,
        min: u32,
        max: Option<u32>,
        from: &Arrivals,
    ) -> Result<Arrivals, RegexError> {
        if min.max(max.unwrap_or(0)) > COPIES {
            let message =
                format!("a repetition that contains anchors or look-around may be counted up to {COPIES}");
            return Err(RegexError::limit(message));
        }
        let mut at = from.clone();
        for _ in 0..min {
            at = self.through(body, &at)?;
        }
        let Some(max) = max else {
            return self.through_star(body, &at);
        };
        let mut all = at.clone();
        for _ in min..max {
            at = self.through(body, &at)?;
            merge(&mut all, at.clone());
        }
        Ok(all)
    }

    /// Matches any number of bodies: the closure of the body's relation between junctions, one junction at a
    /// time.
    fn through_star(&mut self, body: &Node, from: &Arrivals) -> Result<Arrivals, RegexError> {
        let count = self.junctions();
        let mut paths = Vec::with_capacity(count);
        for junction in 0..count {
            let mut unit = self.nothing();
            unit[junction] = Some(Language::empty());
            paths.push(self.through(body, &unit)?);
        }
        for via in 0..count {
            let around = paths[via][via].as_ref().map(Language::star);
            let onward: Vec<_> = (0..count).map(|to| paths[via][to].clone()).collect();
            for path in &mut paths {
                let Some(mut there) = path[via].clone() else {
                    continue;
                };
                if let Some(around) = &around {
                    there = Language::concat(&there, around);
                }
                let onward = onward
                    .iter()
                    .map(|on| on.as_ref().map(|on| Language::concat(&there, on)));
                let onward: Arrivals = onward.collect();
                self.step(&onward)?;
                merge(path, onward);
            }
        }
        let mut all = from.clone();
        for (texts, path) in from.iter().zip(&paths) {
            if let Some(texts) = texts {
                let on = path
                    .iter()
                    .map(|on| on.as_ref().map(|on| Language::concat(texts, on)));
                merge(&mut all, on.collect());
            }
        }
        Ok(all)
    }
}

fn merge(all: &mut Arrivals, more: Arrivals) {
    for (slot, language) in all.iter_mut().zip(more) {
        if let Some(language) = language {
            *slot = Some(Language::union(slot.take().into_iter().chain([language])));
        }
    }
}

/// Joins neighbouring plain parts of a sequence, so that they are split only at the ends of the run.
fn plain_runs(parts: &[Node], join: impl Fn(Vec<Node>) -> Node) -> Vec<Node> {
    let mut runs = Vec::new();
    let mut run = Vec::new();
    for part in parts {
        if part.is_plain() {
            run.push(part.clone());
            continue;
        }
        if !run.is_empty() {
            runs.push(join(std::mem::take(&mut run)));
        }
        runs.push(part.clone());
    }
    if !run.is_empty() {
        runs.push(join(run));
    }
    runs
}

/// Returns the alternatives, with the plain ones joined into one.
fn alternatives(parts: &[Node]) -> Vec<Node> {
    let (plain, mut others): (Vec<_>, Vec<_>) = parts.iter().cloned().partition(Node::is_plain);
    if !plain.is_empty() {
        others.push(Node::alt(plain));
    }
    others
}
