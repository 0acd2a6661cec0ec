//! The characters with which parts may begin and that may follow rules, and which rules are not recursive.

use foldhash::{HashMap, HashMapExt};
use regex_syntax::hir::ClassUnicode;

use super::expr::{Expanded, Expr, Kind, cases};
use super::facts::Work;
use super::spaces::SKIP;
use crate::regex::node as pattern;

/// The most nodes of a part after the rules that it calls are written out, and how deep these may nest.
const MOST_NODES: u64 = 5_000;
const MOST_DEPTH: usize = 200;

/// The characters with which a part may begin.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct First {
    pub(super) set: ClassUnicode,
    /// The same without those of white space between parts.
    pub(super) apart: ClassUnicode,
    /// The part may read nothing.
    pub(super) is_nullable: bool,
}

impl First {
    pub(super) fn empty() -> First {
        First {
            is_nullable: true,
            ..First::never()
        }
    }

    /// Returns the first characters of any text.
    pub(super) fn any() -> First {
        First {
            is_nullable: true,
            ..First::of(pattern::any_set())
        }
    }

    fn never() -> First {
        First {
            set: ClassUnicode::empty(),
            apart: ClassUnicode::empty(),
            is_nullable: false,
        }
    }

    fn of(set: ClassUnicode) -> First {
        First {
            apart: set.clone(),
            set,
            is_nullable: false,
        }
    }

    /// Returns the characters with which either part may begin.
    pub(super) fn or(mut self, other: &First) -> First {
        self.set.union(&other.set);
        self.apart.union(&other.apart);
        self.is_nullable |= other.is_nullable;
        self
    }

    /// Returns the characters with which this part and the other one after it may begin.
    pub(super) fn then(self, other: &First) -> First {
        match self.is_nullable {
            true => First {
                is_nullable: false,
                ..self
            }
            .or(other),
            false => self,
        }
    }

    /// Returns about how much memory this takes, in ranges of characters.
    pub(super) fn weight(&self) -> usize {
        self.set.ranges().len() + self.apart.ranges().len() + 1
    }
}

/// What a rule that is not recursive reads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    nodes: u64,
    depth: usize,
    /// The least and the greatest number of characters.
    pub(super) least: u64,
    pub(super) most: Option<u64>,
}

/// What is known about all rules.
pub(super) struct Firsts<'a> {
    pub(super) rules: &'a [Expanded],
    pub(super) index: HashMap<&'a str, usize>,
    pub(super) work: &'a Work,
    firsts: Vec<First>,
    follows: Vec<First>,
    /// `None` for recursive and for very large rules.
    shapes: Vec<Option<Shape>>,
}

impl<'a> Firsts<'a> {
    /// Finds what is known about rules of which the first one begins a text.
    pub(super) fn find(rules: &'a [Expanded], work: &'a Work) -> Firsts<'a> {
        let mut index = HashMap::with_capacity(rules.len());
        for (at, rule) in rules.iter().enumerate() {
            index.entry(rule.name.as_str()).or_insert(at);
        }
        let mut firsts = Firsts {
            rules,
            index,
            work,
            firsts: vec![First::never(); rules.len()],
            follows: vec![First::never(); rules.len()],
            shapes: vec![None; rules.len()],
        };
        let callees = firsts.callees();
        let order = firsts.find_shapes(&callees);
        firsts.find_firsts(&callees, order);
        firsts.find_follows();
        firsts
    }

    fn callees(&self) -> Vec<Vec<usize>> {
        let callees = self.rules.iter().map(|rule| {
            let mut found = Vec::new();
            rule.body
                .each_name(&mut |name, _| found.extend(self.index.get(name).copied()));
            found.sort_unstable();
            found.dedup();
            found
        });
        callees.collect()
    }

    /// Finds the shapes of all rules that are not recursive, and returns all rules, those that others call
    /// first.
    fn find_shapes(&mut self, callees: &[Vec<usize>]) -> Vec<usize> {
        let mut callers = vec![Vec::new(); callees.len()];
        for (caller, callees) in callees.iter().enumerate() {
            for &callee in callees {
                callers[callee].push(caller);
            }
        }
        let mut missing: Vec<usize> = callees.iter().map(Vec::len).collect();
        let mut order: Vec<usize> = (0..callees.len()).filter(|&at| missing[at] == 0).collect();
        let mut next = 0;
        while let Some(&at) = order.get(next) {
            next += 1;
            let shape = self.shape(&self.rules[at].body);
            self.shapes[at] = shape.filter(|shape| shape.nodes <= MOST_NODES && shape.depth <= MOST_DEPTH);
            for &caller in &callers[at] {
                missing[caller] -= 1;
                if missing[caller] == 0 {
                    order.push(caller);
                }
            }
        }
        // Recursive rules, of which the last ones are called by those before.
        order.extend((0..callees.len()).rev().filter(|&at| missing[at] > 0));
        order
    }

    fn find_firsts(&mut self, callees: &[Vec<usize>], order: Vec<usize>) {
        let mut callers = vec![Vec::new(); callees.len()];
        for (caller, callees) in callees.iter().enumerate() {
            callees.iter().for_each(|&callee| callers[callee].push(caller));
        }
        let mut is_open = vec![true; order.len()];
        let mut open = std::collections::VecDeque::from(order);
        while let Some(at) = open.pop_front() {
            is_open[at] = false;
            let first = self.first(&self.rules[at].body);
            if !self.work.go_on(first.weight()) {
                return;
            }
            if first != self.firsts[at] {
                self.firsts[at] = first;
                for &caller in &callers[at] {
                    if !std::mem::replace(&mut is_open[caller], true) {
                        open.push_back(caller);
                    }
                }
            }
        }
    }

    /// Finds what follows recursive rules.
    fn find_follows(&mut self) {
        let mut is_open = vec![true; self.rules.len()];
        let mut open: std::collections::VecDeque<usize> = (0..self.rules.len()).collect();
        while let Some(at) = open.pop_front() {
            is_open[at] = false;
            if self.shapes[at].is_some() {
                continue;
            }
            let mut found = Vec::new();
            self.follow(&self.rules[at].body, &self.follows[at], &mut found);
            for (callee, follow) in found {
                if !self.work.go_on(follow.weight()) {
                    return;
                }
                let both = self.follows[callee].clone().or(&follow);
                if both != self.follows[callee] {
                    self.follows[callee] = both;
                    if !std::mem::replace(&mut is_open[callee], true) {
                        open.push_back(callee);
                    }
                }
            }
        }
    }

    /// Collects the recursive rules that a part calls with what follows them.
    fn follow(&self, expr: &Expr, after: &First, found: &mut Vec<(usize, First)>) {
        if !self.work.go_on(after.weight()) {
            return;
        }
        match &expr.kind {
            Kind::Name(name) => {
                let callee = self.index.get(name.as_str()).copied();
                let callee = callee.filter(|&callee| self.shapes[callee].is_none());
                found.extend(callee.map(|callee| (callee, after.clone())));
            }
            Kind::Seq(parts) => {
                let mut after = after.clone();
                for part in parts.iter().rev() {
                    self.follow(part, &after, found);
                    after = self.first(part).then(&after);
                }
            }
            Kind::Choice(parts) | Kind::Either(parts) => {
                parts.iter().for_each(|part| self.follow(part, after, found))
            }
            Kind::Repeat(body, ..) => {
                let after = self.first(body).or(after);
                self.follow(body, &after, found);
            }
            _ => {}
        }
    }

    /// Returns what may follow a recursive rule.
    pub(super) fn follow_of(&self, rule: usize) -> &First {
        &self.follows[rule]
    }

    /// Returns the characters with which a part may begin.
    pub(super) fn first(&self, expr: &Expr) -> First {
        if !self.work.go_on(1) {
            return First::never();
        }
        let begins_with = |text: &str, set: fn(char) -> ClassUnicode| match text.chars().next() {
            Some(c) => First::of(set(c)),
            None => First::empty(),
        };
        match &expr.kind {
            Kind::Text(text) => begins_with(text, pattern::char_set),
            Kind::AnyCase(text) => begins_with(text, cases),
            Kind::Set(set) => {
                self.work.go_on(set.ranges().len());
                First::of(set.clone())
            }
            Kind::Name(name) => {
                let first = self.index.get(name.as_str()).map(|&at| &self.firsts[at]);
                let mut first = first.cloned().unwrap_or_else(First::never);
                self.work.go_on(first.weight());
                if name == SKIP {
                    first.apart = ClassUnicode::empty();
                }
                first
            }
            Kind::Seq(parts) => {
                let mut first = First::empty();
                for part in parts {
                    if !first.is_nullable {
                        break;
                    }
                    first = first.then(&self.first(part));
                }
                first
            }
            Kind::Choice(parts) | Kind::Either(parts) => parts
                .iter()
                .fold(First::never(), |all, part| all.or(&self.first(part))),
            Kind::Repeat(body, min, _) => {
                let mut first = self.first(body);
                first.is_nullable |= *min == 0;
                first
            }
            Kind::Start | Kind::End | Kind::Ahead(..) => First::empty(),
        }
    }

    /// Returns the shape of a part that calls no recursive rule.
    pub(super) fn shape(&self, expr: &Expr) -> Option<Shape> {
        if !self.work.go_on(1) {
            return None;
        }
        let leaf = |length: u64| Shape {
            nodes: length.max(1),
            depth: 0,
            least: length,
            most: Some(length),
        };
        let shapes =
            |parts: &[Expr]| -> Option<Vec<Shape>> { parts.iter().map(|part| self.shape(part)).collect() };
        Some(match &expr.kind {
            Kind::Text(text) | Kind::AnyCase(text) => leaf(text.chars().count() as u64),
            Kind::Set(_) => leaf(1),
            Kind::Start | Kind::End => leaf(0),
            Kind::Name(name) => {
                let shape = self.shapes[*self.index.get(name.as_str())?]?;
                Shape {
                    depth: shape.depth + 1,
                    ..shape
                }
            }
            Kind::Seq(parts) => all(&shapes(parts)?, |one, other| Shape {
                least: one.least.saturating_add(other.least),
                most: one
                    .most
                    .zip(other.most)
                    .map(|(one, other)| one.saturating_add(other)),
                ..one
            }),
            Kind::Choice(parts) | Kind::Either(parts) => all(&shapes(parts)?, |one, other| Shape {
                least: if one.nodes == 0 {
                    other.least
                } else {
                    one.least.min(other.least)
                },
                most: one.most.zip(other.most).map(|(one, other)| one.max(other)),
                ..one
            }),
            Kind::Repeat(body, min, max) => {
                let shape = self.shape(body)?;
                let times = |length: u64, count: u32| length.saturating_mul(u64::from(count));
                Shape {
                    nodes: times(shape.nodes, max.unwrap_or(*min).max(1)),
                    depth: shape.depth + 1,
                    least: times(shape.least, *min),
                    most: shape.most.zip(*max).map(|(most, max)| times(most, max)),
                }
            }
            Kind::Ahead(body, _) => {
                let shape = self.shape(body)?;
                Shape {
                    depth: shape.depth + 1,
                    least: 0,
                    most: Some(0),
                    ..shape
                }
            }
        })
    }
}

/// Returns the shape of several parts, of which each changes the lengths of those before it.
fn all(parts: &[Shape], lengths: impl Fn(Shape, Shape) -> Shape) -> Shape {
    let none = Shape {
        nodes: 0,
        depth: 0,
        least: 0,
        most: Some(0),
    };
    let mut whole = parts.iter().fold(none, |whole, part| {
        let (nodes, depth) = (
            whole.nodes.saturating_add(part.nodes),
            whole.depth.max(part.depth),
        );
        Shape {
            nodes,
            depth,
            ..lengths(whole, *part)
        }
    });
    whole.depth += 1;
    whole.nodes = whole.nodes.saturating_add(1);
    whole
}
