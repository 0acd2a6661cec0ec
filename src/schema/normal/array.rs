//! Sets of arrays: goals by place, a goal for the rest, counts, and demands that *some* items satisfy something.
//!
//! A demand on some items is met either at one of the leading places, which have goals of their own, or by a *member* of
//! the rest: an item that must occur somewhere among the others. Which of them is a choice, so one shape may become
//! several arrays.

use std::rc::Rc;

use crate::schema::goal::{GoalId, Literal};
use crate::schema::node::{Keyword, NodeId, Values};

use super::Algebra;
use super::expand::Demand;
use super::step::{ArrayStep, SomeItems, Step};

/// A conjunction of demands on an array, as it is collected.
#[derive(Clone, Debug, Default)]
pub(super) struct ArrayShape {
    prefix: Vec<Vec<Literal>>,
    rest: Vec<Literal>,
    min: u64,
    max: Option<u64>,
    some: Vec<SomeItems>,
    /// Items that must be somewhere behind the prefix: what one and the same item satisfies.
    groups: Vec<Vec<Literal>>,
    unique: Option<NodeId>,
    not_unique: Option<NodeId>,
}

/// A set of arrays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Array {
    /// What the leading items satisfy.
    pub(crate) prefix: Vec<GoalId>,
    /// What the items behind them satisfy.
    pub(crate) rest: GoalId,
    /// Items that occur among those behind the prefix, in any place: what they satisfy, and whether they must occur.
    pub(crate) members: Vec<(GoalId, bool)>,
    pub(crate) min: u64,
    pub(crate) max: Option<u64>,
}

impl Array {
    pub(super) fn parts(&self) -> impl Iterator<Item = GoalId> {
        let members = self.members.iter().map(|(goal, _)| *goal);
        // Places that are never reached have no parts.
        let places = self.prefix.iter().copied().chain([self.rest]);
        let reached = self
            .max
            .map_or(usize::MAX, |max| usize::try_from(max).unwrap_or(usize::MAX));
        places.take(reached).chain(members)
    }
}

impl ArrayShape {
    pub(super) fn add(&mut self, step: ArrayStep) -> bool {
        match step {
            ArrayStep::Min(min) => self.min = self.min.max(min),
            ArrayStep::Max(max) => self.max = Some(self.max.map_or(max, |old| old.min(max))),
            ArrayStep::Items { prefix, rest } => self.add_items(&prefix, rest),
            ArrayStep::At(place, literal) => {
                self.reach(place + 1);
                self.prefix[place].push(literal);
                self.min = self.min.max(place as u64 + 1);
            }
            ArrayStep::Some(some) => super::push_new(&mut self.some, some),
            ArrayStep::Unique(node) => self.unique = Some(node),
            ArrayStep::NotUnique(node) => {
                self.not_unique = Some(node);
                self.min = self.min.max(2);
            }
        }
        self.max.is_none_or(|max| self.min <= max)
    }

    /// Whether a demand is met by what the shape says already.
    pub(super) fn meets(&self, step: &ArrayStep) -> bool {
        match step {
            ArrayStep::Min(min) => self.min >= *min,
            ArrayStep::Max(max) => self.max.is_some_and(|have| have <= *max),
            ArrayStep::At(place, literal) => {
                self.min > *place as u64 && self.prefix.get(*place).unwrap_or(&self.rest).contains(literal)
            }
            ArrayStep::Some(some) => {
                let same = |have: &SomeItems| {
                    have.literal == some.literal
                        && have.from >= some.from
                        && have.max.is_none()
                        && have.min >= some.min
                };
                some.max.is_none() && self.some.iter().any(same)
            }
            _ => false,
        }
    }

    /// Gives the first places goals of their own.
    fn reach(&mut self, places: usize) {
        while self.prefix.len() < places {
            self.prefix.push(self.rest.clone());
        }
    }

    fn add_items(&mut self, prefix: &[NodeId], rest: Option<NodeId>) {
        self.reach(prefix.len());
        for (at, place) in self.prefix.iter_mut().enumerate() {
            let node = prefix.get(at).copied().or(rest);
            place.extend(node.map(Literal::yes));
        }
        self.rest.extend(rest.map(Literal::yes));
    }
}

/// The most items that a demand on some of them may name one by one.
const MOST_MEMBERS: u64 = 256;

/// The most demands for which it is tried which of them one item meets.
const MOST_DEMANDS: usize = 5;

/// The most leading places among which the choice of a demand is made.
const MOST_PLACES: usize = 8;

impl Algebra<'_> {
    /// The arrays of a shape.
    pub(super) fn finish_array(&mut self, shape: &ArrayShape) -> Vec<Array> {
        if let Some(node) = shape.not_unique {
            self.unsupported(
                node,
                "uniqueItems",
                "the denial of `uniqueItems` is not supported",
            );
            return Vec::new();
        }
        if let Some(node) = shape.unique
            && shape.max.is_none_or(|max| max > 1)
        {
            return self.finish_unique(shape, node);
        }
        let mut shape = shape.clone();
        shape.some.retain(|some| some.min > 0 || some.max.is_some());
        if shape.some.is_empty() {
            return vec![self.plain_array(&shape, Vec::new())];
        }
        let places = shape.some.iter().map(|some| some.from).max().unwrap_or(0);
        shape.reach(places);
        let bounded = shape.some.iter().any(|some| some.max.is_some());
        if let Some(message) = refusal(&shape, bounded) {
            let (node, name) = shape.some[0].source;
            self.unsupported(node, name, message);
            return Vec::new();
        }
        self.place_some(shape)
    }

    fn plain_array(&mut self, shape: &ArrayShape, members: Vec<(GoalId, bool)>) -> Array {
        Array {
            prefix: shape
                .prefix
                .iter()
                .map(|literals| self.goals.intern(literals.clone()))
                .collect(),
            rest: self.goals.intern(shape.rest.clone()),
            members,
            min: shape.min,
            max: shape.max,
        }
    }

    /// Decides for each demand on some items which leading places meet it; the rest of it becomes members.
    fn place_some(&mut self, shape: ArrayShape) -> Vec<Array> {
        let mut open = vec![(shape, 0usize)];
        let mut arrays = Vec::new();
        while let Some((shape, at)) = open.pop() {
            let Some(some) = shape.some.get(at).cloned() else {
                arrays.extend(self.member_array(shape));
                continue;
            };
            let places = shape.prefix.len().saturating_sub(some.from);
            for chosen in 0u32..1 << places {
                let placed = place_one(&shape, at, &some, chosen);
                open.extend(
                    placed
                        .into_iter()
                        .flat_map(|shape| grouped(shape, at))
                        .map(|shape| (shape, at + 1)),
                );
            }
        }
        arrays
    }

    fn member_array(&mut self, mut shape: ArrayShape) -> Option<Array> {
        let mut members = Vec::new();
        let (rest, some) = (shape.rest.clone(), std::mem::take(&mut shape.some));
        let goal = |algebra: &mut Self, literal: Literal| {
            algebra
                .goals
                .intern(rest.iter().copied().chain([literal]).collect())
        };
        for demand in some {
            let here = goal(self, demand.literal);
            members.extend(std::iter::repeat_n((here, true), demand.min as usize));
            if let Some(max) = demand.max {
                members.extend(std::iter::repeat_n((here, false), (max - demand.min) as usize));
                shape
                    .rest
                    .push(Literal::new(demand.literal.node, !demand.literal.sign));
            }
        }
        if !members.is_empty() {
            let required = members.iter().filter(|(_, required)| *required).count() as u64;
            let before = if required > 0 {
                shape.prefix.len() as u64
            } else {
                0
            };
            shape.min = shape.min.max(before + required);
        }
        shape
            .max
            .is_none_or(|max| shape.min <= max)
            .then(|| self.plain_array(&shape, members))
    }

    /// Distinct items out of a finite set of scalars: each is a member that may occur once.
    fn finish_unique(&mut self, shape: &ArrayShape, node: NodeId) -> Vec<Array> {
        let message = "`uniqueItems` is supported only for arrays of at most one item and for items out of a finite set \
            of scalars";
        if !shape.prefix.is_empty() || !shape.some.is_empty() {
            self.unsupported(node, "uniqueItems", message);
            return Vec::new();
        }
        let rest = self.goals.intern(shape.rest.clone());
        let Some(values) = self.finite_scalars(rest) else {
            self.unsupported(node, "uniqueItems", message);
            return Vec::new();
        };
        let members: Vec<(GoalId, bool)> = values
            .into_iter()
            .map(|values| {
                let literal = self.constant(values);
                (self.goals.intern(vec![literal]), false)
            })
            .collect();
        let never = self.never_literal();
        let max = shape.max.unwrap_or(u64::MAX).min(members.len() as u64);
        let rest = self.goals.intern(vec![never]);
        if shape.min > max {
            return Vec::new();
        }
        vec![Array {
            prefix: Vec::new(),
            rest,
            members,
            min: shape.min,
            max: Some(max),
        }]
    }

    /// Each value of a goal, where there are finitely many and all are scalars.
    fn finite_scalars(&mut self, goal: GoalId) -> Option<Vec<Values>> {
        let normal = self.nested_normal(goal)?;
        if !normal.arrays.is_empty() || !normal.objects.is_empty() {
            return None;
        }
        let mut values = Vec::new();
        if normal.null {
            values.push(Values {
                null: true,
                ..Values::default()
            });
        }
        if normal.no {
            values.push(Values {
                no: true,
                ..Values::default()
            });
        }
        if normal.yes {
            values.push(Values {
                yes: true,
                ..Values::default()
            });
        }
        let mut numbers = Vec::new();
        for shape in &normal.numbers {
            for number in shape.only.as_ref().filter(|_| shape.plain.is_none())? {
                super::push_new(&mut numbers, number.clone());
            }
        }
        let mut strings: Vec<Rc<str>> = Vec::new();
        for shape in &normal.strings {
            for string in shape.only.as_ref()?.iter() {
                super::push_new(&mut strings, string.clone());
            }
        }
        values.extend(numbers.into_iter().map(|number| Values {
            numbers: vec![number],
            ..Values::default()
        }));
        values.extend(strings.into_iter().map(|string| Values {
            strings: vec![string],
            ..Values::default()
        }));
        Some(values)
    }
}

/// Why demands on some items cannot be met by members, if they cannot.
fn refusal(shape: &ArrayShape, bounded: bool) -> Option<&'static str> {
    let count = |some: &SomeItems| some.max.unwrap_or(0).max(some.min);
    if shape.some.iter().map(count).fold(0u64, u64::saturating_add) > MOST_MEMBERS {
        return Some("a count of more than 256 items that satisfy something is not supported");
    }
    if shape.some.len() > 1 && bounded {
        return Some(
            "two counts of items that satisfy something, one of them with a maximum, are not supported together",
        );
    }
    if shape.some.len() > 1 && shape.some.iter().any(|some| some.min > 1) {
        return Some(
            "two counts of items that satisfy something, one of them above 1, are not supported together",
        );
    }
    if shape.some.len() > MOST_DEMANDS {
        return Some("so many demands that some item satisfy something are not supported together");
    }
    let places = shape
        .some
        .iter()
        .map(|some| shape.prefix.len().saturating_sub(some.from))
        .sum::<usize>();
    (places > MOST_PLACES).then_some("a demand on some item behind so many leading places is not supported")
}

/// The shape in which exactly the chosen leading places meet a demand; `None` where that is too many or of no use.
fn place_one(shape: &ArrayShape, at: usize, some: &SomeItems, chosen: u32) -> Option<ArrayShape> {
    let met = u64::from(chosen.count_ones());
    match some.max {
        Some(max) if met > max => return None,
        None if met > some.min => return None,
        _ => {}
    }
    let mut shape = shape.clone();
    for (offset, place) in shape.prefix[some.from..].iter_mut().enumerate() {
        if chosen & (1 << offset) != 0 {
            place.push(some.literal);
            shape.min = shape.min.max((some.from + offset) as u64 + 1);
        } else if some.max.is_some() {
            // Where the number of such items is bounded, the others must not be such.
            place.push(Literal::new(some.literal.node, !some.literal.sign));
        }
    }
    shape.some[at].min = some.min.saturating_sub(met);
    shape.some[at].max = some.max.map(|max| max - met);
    shape.max.is_none_or(|max| shape.min <= max).then_some(shape)
}

/// The shapes in which a demand for one item is met by an item of its own, or by one that meets others as well.
fn grouped(mut shape: ArrayShape, at: usize) -> Vec<ArrayShape> {
    if shape.some.len() == 1 || shape.some[at].min == 0 {
        return vec![shape];
    }
    let literal = shape.some[at].literal;
    shape.some[at].min = 0;
    let mut shapes = Vec::new();
    for group in 0..=shape.groups.len() {
        let mut shape = shape.clone();
        match shape.groups.get_mut(group) {
            Some(group) => group.push(literal),
            None => shape.groups.push(vec![literal]),
        }
        shapes.push(shape);
    }
    shapes
}

/// What a keyword asks of an array.
pub(super) fn affirm(node: NodeId, name: &'static str, keyword: &Keyword) -> Demand {
    Demand::one(Step::Array(match keyword {
        Keyword::MinItems(count) => ArrayStep::Min(*count),
        Keyword::MaxItems(count) => ArrayStep::Max(*count),
        Keyword::Items { prefix, rest } => ArrayStep::Items {
            prefix: prefix.as_slice().into(),
            rest: *rest,
        },
        Keyword::Contains { item, min, max } => {
            if max.is_some_and(|max| max < *min) {
                return Demand::Never;
            }
            let literal = Literal::yes(*item);
            ArrayStep::Some(SomeItems {
                literal,
                from: 0,
                min: *min,
                max: *max,
                source: (node, name),
            })
        }
        _ => ArrayStep::Unique(node),
    }))
}
