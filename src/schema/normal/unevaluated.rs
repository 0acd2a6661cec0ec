//! `unevaluatedProperties` and `unevaluatedItems`: what applies to the keys and items of which no schema beside them
//! spoke.
//!
//! Which schemas spoke depends on which branches hold, so the branches beside the keyword are told apart: a *case* says
//! of each of them whether it holds, and in each case it is known what was evaluated. The keyword is then an ordinary
//! one: `additionalProperties` beside the evaluated names and patterns, or `items` behind the evaluated places.
//!
//! ```text
//!   anyOf: [{properties: a}, {properties: b}]       case 1   A and B        evaluated a, b
//!   unevaluatedProperties: false                    case 2   A and not B    evaluated a
//!                                                   case 3   not A and B    evaluated b
//! ```

use std::rc::Rc;

use crate::error::ProblemKind;
use crate::schema::goal::Literal;
use crate::schema::node::{Dependency, KeyMap, Keyword, Kind, Node, NodeId};
use crate::schema::text::TextSet;

use super::Algebra;
use super::expand::Demand;
use super::step::{ArrayStep, ObjectStep, Step};

/// What was spoken of.
#[derive(Clone, Debug, Default)]
struct Evaluated {
    all: bool,
    names: Vec<Rc<str>>,
    patterns: Vec<TextSet>,
    places: usize,
    /// Items that satisfy one of these.
    matching: Vec<NodeId>,
}

impl Evaluated {
    fn add(&mut self, other: &Evaluated) {
        self.all |= other.all;
        self.places = self.places.max(other.places);
        for name in &other.names {
            super::push_new(&mut self.names, name.clone());
        }
        for pattern in &other.patterns {
            super::push_new(&mut self.patterns, pattern.clone());
        }
        for node in &other.matching {
            super::push_new(&mut self.matching, *node);
        }
    }
}

/// One way in which the schemas beside the keyword hold.
#[derive(Clone, Debug, Default)]
struct Case {
    steps: Vec<Step>,
    evaluated: Evaluated,
}

impl Case {
    fn of(steps: Vec<Step>) -> Case {
        let evaluated = Evaluated::default();
        Case { steps, evaluated }
    }

    fn and(&self, other: &Case) -> Case {
        let mut both = self.clone();
        both.steps.extend(other.steps.iter().cloned());
        both.evaluated.add(&other.evaluated);
        both
    }
}

fn product(left: &[Case], right: &[Case]) -> Vec<Case> {
    let pairs = left
        .iter()
        .flat_map(|one| right.iter().map(|other| one.and(other)));
    pairs.collect()
}

/// The most cases that one keyword may have.
const MOST_CASES: usize = 1_000;

/// How deep the schemas beside a keyword may nest, whatever `nesting` allows: telling their cases apart recurses. Schemas
/// that only refer to another one do not count.
const DEEPEST: usize = 64;

impl Algebra<'_> {
    /// Whether a node has a keyword for what is not evaluated, for a kind of value.
    pub(super) fn unevaluated(&self, node: NodeId, kind: Kind) -> Option<NodeId> {
        let keywords = &self.tree.node(node).keywords;
        keywords.iter().find_map(|(_, keyword)| match (keyword, kind) {
            (Keyword::UnevaluatedProperties(child), Kind::Object) => Some(*child),
            (Keyword::UnevaluatedItems(child), Kind::Array) => Some(*child),
            _ => None,
        })
    }

    /// What a node with such a keyword asks.
    pub(super) fn affirm_unevaluated(&mut self, node: NodeId, child: NodeId, kind: Kind) -> Demand {
        let cases = self.cases(node, kind, 0);
        let ways = cases.into_iter().map(|case| {
            let step = self.step_of(&case.evaluated, child, kind);
            case.steps.into_iter().chain(step).collect()
        });
        Demand::any(ways.collect())
    }

    /// The denial of such a keyword of a node: all others hold, and something that is not evaluated breaks it.
    pub(super) fn deny_unevaluated(&mut self, node: NodeId, child: NodeId, kind: Kind) -> Demand {
        let mut ways = Vec::new();
        for case in self.cases(node, kind, 0) {
            let denials = match self.step_of(&case.evaluated, child, kind) {
                Some(Step::Object(ObjectStep::Keys(map))) => {
                    self.deny(node, "unevaluatedProperties", &Keyword::Properties(map), kind)
                }
                Some(Step::Array(ArrayStep::Items { prefix, rest })) => {
                    let prefix = prefix.to_vec();
                    self.deny(node, "unevaluatedItems", &Keyword::Items { prefix, rest }, kind)
                }
                _ => Demand::Never,
            };
            let more = denials.ways().into_iter();
            ways.extend(more.map(|way| case.steps.iter().cloned().chain(way).collect()));
        }
        Demand::any(ways)
    }

    /// The keyword as an ordinary one; `None` where everything is evaluated.
    fn step_of(&mut self, evaluated: &Evaluated, child: NodeId, kind: Kind) -> Option<Step> {
        if evaluated.all {
            return None;
        }
        let anything = self.anything();
        if kind == Kind::Object {
            let named: Vec<(Rc<str>, NodeId)> = evaluated
                .names
                .iter()
                .map(|name| (name.clone(), anything))
                .collect();
            let map = KeyMap {
                index: named.iter().cloned().collect(),
                named,
                patterns: evaluated
                    .patterns
                    .iter()
                    .map(|set| (set.clone(), anything))
                    .collect(),
                additional: Some(child),
            };
            return Some(Step::Object(ObjectStep::Keys(Rc::new(map))));
        }
        let rest = if evaluated.matching.is_empty() {
            child
        } else {
            let any = [child].into_iter().chain(evaluated.matching.iter().copied());
            self.add_node(vec![("unevaluatedItems", Keyword::AnyOf(any.collect()))], child)
        };
        let prefix = vec![anything; evaluated.places].into();
        let rest = Some(rest);
        Some(Step::Array(ArrayStep::Items { prefix, rest }))
    }

    /// A schema that allows everything.
    fn anything(&mut self) -> NodeId {
        match self.anything {
            Some(node) => node,
            None => {
                let node = self.add_node(Vec::new(), NodeId(0));
                *self.anything.insert(node)
            }
        }
    }

    fn add_node(&mut self, keywords: Vec<(&'static str, Keyword)>, parent: NodeId) -> NodeId {
        if let [(_, Keyword::AnyOf(list))] = &keywords[..]
            && let Some(known) = self.unions.get(list)
        {
            return *known;
        }
        let id = NodeId(self.tree.nodes.len() as u32);
        if let [(_, Keyword::AnyOf(list))] = &keywords[..] {
            self.unions.insert(list.clone(), id);
        }
        self.tree.nodes.push(Node {
            parent: Some(parent),
            segment: "".into(),
            keywords: Rc::new(keywords),
        });
        id
    }

    /// The cases in which a node holds, apart from a keyword of its own for what is not evaluated.
    fn cases(&mut self, node: NodeId, kind: Kind, depth: usize) -> Vec<Case> {
        let mut cases = vec![Case::default()];
        let deepest = self.limits.nesting.min(DEEPEST);
        if depth > deepest {
            let message = format!(
                "the schemas beside a keyword for what is not evaluated nest deeper than the limit `nesting` of {deepest}"
            );
            self.report(ProblemKind::Limit, node, "", message);
            return Vec::new();
        }
        for index in 0..self.tree.node(node).keywords.len() {
            let (name, keyword) = self.tree.node(node).keywords[index].clone();
            let more = self.cases_of(node, name, &keyword, kind, depth + 1);
            cases = product(&cases, &more);
            let goal = self.goals.intern(vec![Literal::yes(node)]);
            if cases.len() > MOST_CASES || !self.burn(cases.len(), goal) {
                let message = "so many branches beside a keyword for what is not evaluated are not supported";
                self.report(ProblemKind::Limit, node, "", message);
                return Vec::new();
            }
        }
        cases
    }

    fn cases_of(
        &mut self,
        node: NodeId,
        name: &'static str,
        keyword: &Keyword,
        kind: Kind,
        depth: usize,
    ) -> Vec<Case> {
        match keyword {
            Keyword::Ref(reference) => self.held(self.tree.target(*reference), kind, depth),
            Keyword::AllOf(list) => list.iter().fold(vec![Case::default()], |cases, &child| {
                product(&cases, &self.held(child, kind, depth))
            }),
            Keyword::AnyOf(list) => self.some_of(list, kind, depth),
            Keyword::OneOf(list) => self.one_of(list, kind, depth),
            Keyword::If {
                condition,
                then,
                otherwise,
            } => {
                let mut with = self.held(*condition, kind, depth);
                if let Some(then) = then {
                    with = product(&with, &self.held(*then, kind, depth));
                }
                let mut without = vec![denied(*condition)];
                if let Some(otherwise) = otherwise {
                    without = product(&without, &self.held(*otherwise, kind, depth));
                }
                with.extend(without);
                with
            }
            Keyword::Dependent {
                key,
                then: Dependency::Schema(child),
            } if kind == Kind::Object => {
                let here = Case::of(vec![Step::Object(ObjectStep::Require(key.clone()))]);
                let mut cases = product(&[here], &self.held(*child, kind, depth));
                cases.push(Case::of(vec![Step::Object(ObjectStep::Absent(key.clone()))]));
                cases
            }
            // At the top it is what the cases are for; further down it has evaluated all that was left.
            Keyword::UnevaluatedProperties(_) | Keyword::UnevaluatedItems(_) => vec![Case::default()],
            _ => {
                let demand = self.affirm(node, name, keyword, kind);
                let evaluated = evaluated_by(keyword, kind);
                let case = |steps| Case {
                    steps,
                    evaluated: evaluated.clone(),
                };
                demand.ways().into_iter().map(case).collect()
            }
        }
    }

    /// The cases in which another schema holds; one, where it does not matter how.
    fn held(&mut self, node: NodeId, kind: Kind, depth: usize) -> Vec<Case> {
        let literal = Step::Literal(Literal::yes(node));
        if !self.evaluates(node, kind) {
            return vec![Case::of(vec![literal])];
        }
        let node = self.meant(node);
        let literal = Step::Literal(Literal::yes(node));
        if self.unevaluated(node, kind).is_some() {
            let mut case = Case::of(vec![literal]);
            case.evaluated.all = true;
            return vec![case];
        }
        self.cases(node, kind, depth)
    }

    /// The schema that a node stands for, if all it does is refer to it.
    fn meant(&self, mut node: NodeId) -> NodeId {
        // References go in no circle without progress.
        loop {
            node = match &self.tree.node(node).keywords[..] {
                [(_, Keyword::Ref(reference))] => self.tree.target(*reference),
                [(_, Keyword::AllOf(list) | Keyword::AnyOf(list) | Keyword::OneOf(list))]
                    if list.len() == 1 =>
                {
                    list[0]
                }
                _ => return node,
            };
        }
    }

    /// At least one holds; of those that evaluate something it must be known of each.
    fn some_of(&mut self, list: &[NodeId], kind: Kind, depth: usize) -> Vec<Case> {
        let (speaking, silent): (Vec<NodeId>, Vec<NodeId>) =
            list.iter().partition(|&&child| self.evaluates(child, kind));
        let mut none = vec![Case::default()];
        let mut some: Vec<Case> = Vec::new();
        for child in speaking {
            let held = self.held(child, kind, depth);
            let mut next = product(&some, &held);
            next.extend(product(&some, &[denied(child)]));
            next.extend(product(&none, &held));
            (some, none) = (next, product(&none, &[denied(child)]));
            if some.len() > MOST_CASES {
                return some;
            }
        }
        let others: Vec<Case> = silent
            .into_iter()
            .map(|child| Case::of(vec![Step::Literal(Literal::yes(child))]))
            .collect();
        some.extend(product(&none, &others));
        some
    }

    fn one_of(&mut self, list: &[NodeId], kind: Kind, depth: usize) -> Vec<Case> {
        let mut cases = Vec::new();
        let rivals = self.rivals(list, kind);
        for (&node, rivals) in list.iter().zip(rivals) {
            let mut held = self.held(node, kind, depth);
            for other in rivals {
                held = product(&held, &[denied(list[other])]);
            }
            cases.extend(held);
        }
        cases
    }

    /// Whether a schema, where it holds, may have spoken of keys or items.
    fn evaluates(&self, node: NodeId, kind: Kind) -> bool {
        let mut seen = std::collections::HashSet::from([node]);
        let mut open = vec![node];
        while let Some(node) = open.pop() {
            for (_, keyword) in self.tree.node(node).keywords.iter() {
                let own = evaluated_by(keyword, kind);
                if own.all || own.places > 0 || !own.names.is_empty() || !own.patterns.is_empty() {
                    return true;
                }
                if !own.matching.is_empty() || is_unevaluated(keyword, kind) {
                    return true;
                }
            }
            let beside = crate::schema::resolve::beside(&self.tree, node);
            open.extend(beside.into_iter().filter(|&next| seen.insert(next)));
        }
        false
    }
}

fn denied(node: NodeId) -> Case {
    Case::of(vec![Step::Literal(Literal::new(node, false))])
}

fn is_unevaluated(keyword: &Keyword, kind: Kind) -> bool {
    matches!(
        (keyword, kind),
        (Keyword::UnevaluatedProperties(_), Kind::Object) | (Keyword::UnevaluatedItems(_), Kind::Array)
    )
}

/// What a keyword speaks of by itself.
fn evaluated_by(keyword: &Keyword, kind: Kind) -> Evaluated {
    match (keyword, kind) {
        (Keyword::Properties(map), Kind::Object) => Evaluated {
            all: map.additional.is_some(),
            names: map.named.iter().map(|(name, _)| name.clone()).collect(),
            patterns: map.patterns.iter().map(|(set, _)| set.clone()).collect(),
            ..Evaluated::default()
        },
        (Keyword::Items { prefix, rest }, Kind::Array) => Evaluated {
            all: rest.is_some(),
            places: prefix.len(),
            ..Evaluated::default()
        },
        (
            Keyword::Contains {
                item,
                evaluates: true,
                ..
            },
            Kind::Array,
        ) => Evaluated {
            matching: vec![*item],
            ..Evaluated::default()
        },
        _ => Evaluated::default(),
    }
}
