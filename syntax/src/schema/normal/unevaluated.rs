//! `unevaluatedProperties` and `unevaluatedItems`: constraints on the keys and items that no adjacent schema
//! evaluates.
//!
//! The evaluated keys and items depend on which branches hold, so the branches beside the keyword are
//! distinguished: a *case* determines for each of them whether it holds, and in each case the evaluated keys
//! and items are known. The keyword is then an ordinary one: `additionalProperties` beside the evaluated
//! names and patterns, or `items` after the evaluated places.
//!
//! ```text
//!   anyOf: [{properties: a}, {properties: b}]       case 1   A and B        evaluated a, b
//!   unevaluatedProperties: false                    case 2   A and not B    evaluated a
//!                                                   case 3   not A and B    evaluated b
//! ```

use std::rc::Rc;

use crate::schema::forms::Literal;
use crate::schema::node::{Dependency, KeyMap, Keyword, Kind, Node, NodeId};
use crate::schema::shape::{ArrayStep, Demand, ObjectStep, Step, push_new};
use crate::schema::text::TextSet;
use lexiform_automata::error::ProblemKind;

use super::algebra::{Algebra, NODE_BYTES};

/// The keys or items that one keyword evaluates.
#[derive(Debug, Default)]
struct Spoken {
    all: bool,
    names: Vec<Rc<str>>,
    patterns: Vec<TextSet>,
    places: usize,
    /// The items that satisfy this schema.
    matching: Option<NodeId>,
}

impl Spoken {
    fn is_nothing(&self) -> bool {
        let names = self.names.is_empty() && self.patterns.is_empty();
        !self.all && names && self.places == 0 && self.matching.is_none()
    }
}

/// One way in which the schemas beside the keyword hold.
#[derive(Clone, Debug, Default)]
struct Case {
    steps: Vec<Step>,
    /// The evaluated keys or items, shared by all cases that include the keyword.
    evaluated: Vec<Rc<Spoken>>,
}

impl Case {
    fn of(steps: Vec<Step>) -> Case {
        Case {
            steps,
            evaluated: Vec::new(),
        }
    }

    fn and(&self, other: &Case) -> Case {
        let steps = self.steps.iter().chain(&other.steps);
        let evaluated = self.evaluated.iter().chain(&other.evaluated);
        Case {
            steps: steps.cloned().collect(),
            evaluated: evaluated.cloned().collect(),
        }
    }

    /// Returns the approximate number of bytes it takes.
    fn bytes(&self) -> usize {
        size_of::<Case>()
            + self.steps.len() * size_of::<Step>()
            + self.evaluated.len() * size_of::<Rc<Spoken>>()
    }
}

/// The most cases of one keyword.
const MOST_CASES: usize = 1_000;

/// The deepest nesting of schemas beside a keyword, whatever `nesting` allows: distinguishing their cases
/// recurses. Schemas that only refer to another one do not count.
const MOST_SCHEMAS_IN_PLACE: usize = 64;

/// The number of steps of cases that are written for one unit of fuel.
const STEPS_OF_FUEL: usize = 16;

/// The approximate number of bytes of a name in a map of keys: in its list, and in the table that finds it.
const NAME_BYTES: usize = 96;

impl Algebra<'_> {
    /// Returns the schema for what is not evaluated, if the node has such a keyword for a kind of value.
    pub(super) fn unevaluated(&self, node: NodeId, kind: Kind) -> Option<NodeId> {
        let keywords = &self.tree.node(node).keywords;
        keywords.iter().find_map(|(_, keyword)| match (keyword, kind) {
            (Keyword::UnevaluatedProperties(child), Kind::Object) => Some(*child),
            (Keyword::UnevaluatedItems(child), Kind::Array) => Some(*child),
            _ => None,
        })
    }

    /// Returns the demand of a node with such a keyword.
    pub(super) fn affirm_unevaluated(&mut self, node: NodeId, child: NodeId, kind: Kind) -> Demand {
        let mut ways = Vec::new();
        for case in self.top_cases(node, kind) {
            let Some(step) = self.step_of(&case.evaluated, child, kind) else {
                return Demand::Never;
            };
            ways.push(case.steps.into_iter().chain(step).collect());
        }
        Demand::any(ways)
    }

    /// Returns the demand of the denial of such a keyword: all other keywords hold, and something that is not
    /// evaluated violates it.
    pub(super) fn deny_unevaluated(&mut self, node: NodeId, child: NodeId, kind: Kind) -> Demand {
        let mut ways = Vec::new();
        for case in self.top_cases(node, kind) {
            let Some(step) = self.step_of(&case.evaluated, child, kind) else {
                return Demand::Never;
            };
            let denials = match step {
                Some(Step::Object(ObjectStep::Keys(map))) => {
                    self.deny(node, "unevaluatedProperties", &Keyword::Properties(map), kind)
                }
                Some(Step::Array(ArrayStep::Items { prefix, additional })) => {
                    let prefix = prefix.to_vec();
                    self.deny(
                        node,
                        "unevaluatedItems",
                        &Keyword::Items { prefix, additional },
                        kind,
                    )
                }
                _ => Demand::Never,
            };
            let more = denials.ways().into_iter();
            ways.extend(more.map(|way| case.steps.iter().cloned().chain(way).collect()));
        }
        Demand::any(ways)
    }

    /// Returns the keyword as an ordinary one, or nothing if everything is evaluated. The outer `None` means
    /// that there is no room for it, which is reported.
    fn step_of(&mut self, evaluated: &[Rc<Spoken>], child: NodeId, kind: Kind) -> Option<Option<Step>> {
        if evaluated.iter().any(|spoken| spoken.all) {
            return Some(None);
        }
        let anything = self.anything();
        if kind == Kind::Object {
            return self.other_keys(evaluated, child, anything).map(Some);
        }
        let mut matching: Vec<NodeId> = evaluated.iter().filter_map(|spoken| spoken.matching).collect();
        matching.sort_unstable();
        matching.dedup();
        let additional = if matching.is_empty() {
            child
        } else {
            let any = [child].into_iter().chain(matching);
            self.add_node(vec![("unevaluatedItems", Keyword::AnyOf(any.collect()))], child)
        };
        let places = evaluated.iter().map(|spoken| spoken.places).max().unwrap_or(0);
        if !self.reserve(places * size_of::<NodeId>(), Some(child)) {
            return None;
        }
        let prefix = vec![anything; places].into();
        let additional = Some(additional);
        Some(Some(Step::Array(ArrayStep::Items { prefix, additional })))
    }

    /// Returns a map that applies a schema to all keys except the evaluated ones.
    fn other_keys(&mut self, evaluated: &[Rc<Spoken>], child: NodeId, anything: NodeId) -> Option<Step> {
        let names: usize = evaluated.iter().map(|spoken| spoken.names.len()).sum();
        if !self.reserve(names * NAME_BYTES, Some(child)) || !self.burn_at(names / STEPS_OF_FUEL, Some(child))
        {
            return None;
        }
        let mut index = foldhash::HashMap::default();
        let mut named = Vec::with_capacity(names);
        let mut patterns: Vec<(TextSet, NodeId)> = Vec::new();
        for spoken in evaluated {
            for name in &spoken.names {
                if index.insert(name.clone(), anything).is_none() {
                    named.push((name.clone(), anything));
                }
            }
            for set in &spoken.patterns {
                push_new(&mut patterns, (set.clone(), anything));
            }
        }
        let map = KeyMap {
            index,
            named,
            patterns,
            additional: Some(child),
            listed_by: None,
        };
        Some(Step::Object(ObjectStep::Keys(Rc::new(map))))
    }

    /// Returns a schema that allows everything.
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
        let listed = match &keywords[..] {
            [(_, Keyword::AnyOf(list))] => 2 * size_of_val(&list[..]),
            _ => 0,
        };
        self.reserve(NODE_BYTES + listed, Some(parent));
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

    /// Returns the cases in which a node with such a keyword holds; none if there are too many. Of the memory
    /// that was reserved to find them, only the part that they take stays reserved.
    fn top_cases(&mut self, node: NodeId, kind: Kind) -> Vec<Case> {
        let before = self.reserved();
        let cases = self.cases(node, kind, 0).unwrap_or_default();
        self.release(self.reserved() - before);
        let bytes = cases.iter().map(Case::bytes).sum();
        match self.reserve(bytes, Some(node)) {
            true => cases,
            false => Vec::new(),
        }
    }

    /// Returns the cases in which a node holds, ignoring its own keyword for what is not evaluated, or `None`
    /// if there are too many, which is reported.
    fn cases(&mut self, node: NodeId, kind: Kind, depth: usize) -> Option<Vec<Case>> {
        let deepest = self.limits.nesting.min(MOST_SCHEMAS_IN_PLACE);
        if depth > deepest {
            let message = format!(
                "the schemas next to `unevaluatedItems` or `unevaluatedProperties` nest too deeply; the limit `nesting` is {deepest}"
            );
            self.report(ProblemKind::Limit, node, "", message);
            return None;
        }
        let mut cases = vec![Case::default()];
        let keywords = self.tree.node(node).keywords.clone();
        for (name, keyword) in keywords.iter() {
            let more = self.cases_of(node, name, keyword, kind, depth + 1)?;
            cases = self.product(&cases, &more, node)?;
        }
        Some(cases)
    }

    fn too_many_cases<T>(&mut self, node: NodeId) -> Option<T> {
        let message = format!(
            "more than {MOST_CASES} combinations of branches next to `unevaluatedItems` or `unevaluatedProperties` are not supported"
        );
        self.report(ProblemKind::Limit, node, "", message);
        None
    }

    /// Returns all pairs of cases, after checking that they are not too many.
    fn product(&mut self, left: &[Case], right: &[Case], node: NodeId) -> Option<Vec<Case>> {
        // Joining with the case that has no constraints changes nothing.
        match (left, right) {
            ([one], _) if one.steps.is_empty() && one.evaluated.is_empty() => return Some(right.to_vec()),
            (_, [one]) if one.steps.is_empty() && one.evaluated.is_empty() => return Some(left.to_vec()),
            _ => {}
        }
        if left.len().saturating_mul(right.len()) > MOST_CASES {
            return self.too_many_cases(node);
        }
        let bytes = |cases: &[Case]| cases.iter().map(Case::bytes).sum::<usize>();
        let bytes = bytes(left) * right.len() + bytes(right) * left.len();
        let work = 1 + bytes / size_of::<Step>() / STEPS_OF_FUEL;
        if !self.burn_at(work, Some(node)) || !self.reserve(bytes, Some(node)) {
            return None;
        }
        let pairs = left
            .iter()
            .flat_map(|one| right.iter().map(|other| one.and(other)));
        Some(pairs.collect())
    }

    fn cases_of(
        &mut self,
        node: NodeId,
        name: &'static str,
        keyword: &Keyword,
        kind: Kind,
        depth: usize,
    ) -> Option<Vec<Case>> {
        Some(match keyword {
            Keyword::Ref(reference) => self.held(self.tree.target(*reference), kind, depth)?,
            Keyword::AllOf(list) => {
                let mut cases = vec![Case::default()];
                for &child in list {
                    let held = self.held(child, kind, depth)?;
                    cases = self.product(&cases, &held, node)?;
                }
                cases
            }
            Keyword::AnyOf(list) => self.some_of(list, kind, node, depth)?,
            Keyword::OneOf(list) => self.one_of(list, kind, node, depth)?,
            Keyword::If {
                condition,
                then,
                otherwise,
            } => {
                let mut with = self.held(*condition, kind, depth)?;
                if let Some(then) = then {
                    let then = self.held(*then, kind, depth)?;
                    with = self.product(&with, &then, node)?;
                }
                let mut without = vec![denied(*condition)];
                if let Some(otherwise) = otherwise {
                    let otherwise = self.held(*otherwise, kind, depth)?;
                    without = self.product(&without, &otherwise, node)?;
                }
                with.extend(without);
                with
            }
            Keyword::Dependent {
                key,
                then: Dependency::Schema(child),
            } if kind == Kind::Object => {
                let here = Case::of(vec![Step::Object(ObjectStep::Require(key.clone()))]);
                let held = self.held(*child, kind, depth)?;
                let mut cases = self.product(&[here], &held, node)?;
                cases.push(Case::of(vec![Step::Object(ObjectStep::Absent(key.clone()))]));
                cases
            }
            // At the top, the cases are computed for this keyword; further down, it has evaluated everything
            // that was left.
            Keyword::UnevaluatedProperties(_) | Keyword::UnevaluatedItems(_) => vec![Case::default()],
            _ => {
                let demand = self.affirm(node, name, keyword, kind);
                let spoken = spoken_by(keyword, kind);
                let evaluated = if spoken.is_nothing() {
                    Vec::new()
                } else {
                    vec![Rc::new(spoken)]
                };
                let case = |steps| Case {
                    steps,
                    evaluated: evaluated.clone(),
                };
                demand.ways().into_iter().map(case).collect()
            }
        })
    }

    /// Returns the cases in which another schema holds; a single case if it does not matter how.
    fn held(&mut self, node: NodeId, kind: Kind, depth: usize) -> Option<Vec<Case>> {
        let literal = Step::Literal(Literal::yes(node));
        if !self.evaluates(node, kind) {
            return Some(vec![Case::of(vec![literal])]);
        }
        let node = self.meant(node);
        let literal = Step::Literal(Literal::yes(node));
        if self.unevaluated(node, kind).is_some() {
            let mut case = Case::of(vec![literal]);
            case.evaluated.push(Rc::new(Spoken {
                all: true,
                ..Spoken::default()
            }));
            return Some(vec![case]);
        }
        self.cases(node, kind, depth)
    }

    /// Returns the schema that a node only refers to, or the node itself.
    fn meant(&self, mut node: NodeId) -> NodeId {
        // References do not form a cycle without progress.
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

    /// Returns the cases in which at least one schema holds; for those that evaluate something, each case
    /// determines whether they hold.
    fn some_of(&mut self, list: &[NodeId], kind: Kind, node: NodeId, depth: usize) -> Option<Vec<Case>> {
        let (speaking, silent): (Vec<NodeId>, Vec<NodeId>) =
            list.iter().partition(|&&child| self.evaluates(child, kind));
        let mut none = vec![Case::default()];
        let mut some: Vec<Case> = Vec::new();
        for child in speaking {
            let held = self.held(child, kind, depth)?;
            let denied = [denied(child)];
            if some.len() * (held.len() + 1) + held.len() > MOST_CASES {
                return self.too_many_cases(node);
            }
            let mut next = self.product(&some, &held, node)?;
            next.extend(self.product(&some, &denied, node)?);
            next.extend(self.product(&none, &held, node)?);
            (some, none) = (next, self.product(&none, &denied, node)?);
        }
        let others: Vec<Case> = silent
            .into_iter()
            .map(|child| Case::of(vec![Step::Literal(Literal::yes(child))]))
            .collect();
        some.extend(self.product(&none, &others, node)?);
        Some(some)
    }

    fn one_of(&mut self, list: &[NodeId], kind: Kind, node: NodeId, depth: usize) -> Option<Vec<Case>> {
        let mut cases = Vec::new();
        let rivals = self.rivals(list, kind);
        for (&child, rivals) in list.iter().zip(rivals) {
            let held = self.held(child, kind, depth)?;
            let denied = rivals.into_iter().map(|other| denied(list[other]));
            let denied = denied.fold(Case::default(), |all, one| all.and(&one));
            cases.extend(self.product(&held, &[denied], node)?);
            if cases.len() > MOST_CASES {
                return self.too_many_cases(node);
            }
        }
        Some(cases)
    }

    /// Returns `true` if a schema, if it holds, may evaluate keys or items. Fuel pays for what was not
    /// examined before.
    fn evaluates(&mut self, node: NodeId, kind: Kind) -> bool {
        let mut seen = foldhash::HashSet::from_iter([node]);
        let mut open = vec![node];
        let mut found = false;
        while let Some(node) = open.pop() {
            let keywords = &self.tree.node(node).keywords;
            let known = self.speaking.get(&(node, kind)).copied();
            found = known.unwrap_or_else(|| {
                let mut keywords = keywords.iter();
                keywords.any(|(_, keyword)| speaks(keyword, kind) || is_unevaluated(keyword, kind))
            });
            if found {
                break;
            }
            if known.is_none() {
                let beside = self.tree.beside(node);
                open.extend(beside.into_iter().filter(|&next| seen.insert(next)));
            }
        }
        self.burn_at(seen.len() / STEPS_OF_FUEL, Some(node));
        if found {
            self.speaking.insert((node, kind), true);
        } else {
            self.speaking
                .extend(seen.into_iter().map(|node| ((node, kind), false)));
        }
        found
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

/// Returns `true` if a keyword evaluates keys or items by itself.
fn speaks(keyword: &Keyword, kind: Kind) -> bool {
    match (keyword, kind) {
        (Keyword::Properties(map), Kind::Object) => {
            map.additional.is_some() || !map.named.is_empty() || !map.patterns.is_empty()
        }
        (Keyword::Items { prefix, additional }, Kind::Array) => additional.is_some() || !prefix.is_empty(),
        (Keyword::Contains { evaluates, .. }, Kind::Array) => *evaluates,
        _ => false,
    }
}

/// Returns the keys or items that a keyword evaluates by itself.
fn spoken_by(keyword: &Keyword, kind: Kind) -> Spoken {
    match (keyword, kind) {
        (Keyword::Properties(map), Kind::Object) => Spoken {
            all: map.additional.is_some(),
            names: map.named.iter().map(|(name, _)| name.clone()).collect(),
            patterns: map.patterns.iter().map(|(set, _)| set.clone()).collect(),
            ..Spoken::default()
        },
        (Keyword::Items { prefix, additional }, Kind::Array) => Spoken {
            all: additional.is_some(),
            places: prefix.len(),
            ..Spoken::default()
        },
        (
            Keyword::Contains {
                item,
                evaluates: true,
                ..
            },
            Kind::Array,
        ) => Spoken {
            matching: Some(*item),
            ..Spoken::default()
        },
        _ => Spoken::default(),
    }
}
