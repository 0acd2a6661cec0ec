//! Sets of arrays: goals by place, a goal for the rest, counts, and demands that *some* items satisfy something.
//!
//! A demand on some items may be met at any place from which it holds, so every such place has ways that meet it and ways
//! that do not.

use crate::grammar::Demand as Count;
use crate::schema::goal::{GoalId, Literal};
use crate::schema::node::{Keyword, NodeId};

use super::Algebra;
use super::expand::Demand;
use super::step::{ArrayStep, SomeItems, Step};
use super::way::{MOST_WISHES, Way, Wish, bytes_of_ways};

/// A conjunction of demands on an array, as it is collected.
#[derive(Clone, Debug, Default)]
pub(super) struct ArrayShape {
    pub(super) prefix: Vec<Vec<Literal>>,
    pub(super) rest: Vec<Literal>,
    pub(super) min: u64,
    pub(super) max: Option<u64>,
    pub(super) some: Vec<SomeItems>,
    unique: Option<NodeId>,
    not_unique: Option<NodeId>,
}

/// A set of arrays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Array {
    /// The ways of the leading items.
    pub(crate) prefix: Vec<Vec<Way>>,
    /// The ways of the items behind them.
    pub(crate) rest: Vec<Way>,
    /// Items of which each may be used once, in any place behind the prefix.
    pub(crate) distinct: Vec<GoalId>,
    /// The schema that demands that no two items behind the prefix be equal, if one does.
    pub(crate) unique: Option<NodeId>,
    /// The schema that denies that all items differ, if two items behind the prefix must be equal for it.
    pub(crate) repeated: Option<NodeId>,
    /// The texts of the values in the prefix, in order, where the items behind must differ from them.
    pub(crate) taken: Vec<Box<[u8]>>,
    /// How many items must meet something.
    pub(crate) demands: Vec<Count>,
    pub(crate) min: u64,
    pub(crate) max: Option<u64>,
}

impl Array {
    /// About the bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        let places = self.prefix.iter().chain([&self.rest]);
        let taken = self.taken.iter().map(|text| size_of::<Box<[u8]>>() + text.len());
        size_of::<Array>()
            + size_of_val(&self.prefix[..])
            + size_of_val(&self.distinct[..])
            + places.map(|ways| bytes_of_ways(ways)).chain(taken).sum::<usize>()
    }

    pub(super) fn parts(&self) -> impl Iterator<Item = GoalId> {
        // Places that are never reached have no parts.
        let places = self.prefix.iter().chain([&self.rest]);
        let reached = self
            .max
            .map_or(usize::MAX, |max| usize::try_from(max).unwrap_or(usize::MAX));
        let ways = places.take(reached).flatten().map(|way| way.goal);
        ways.chain(self.distinct.iter().copied())
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

    /// How many schemas it speaks of at its places.
    pub(super) fn said(&self) -> usize {
        let places = self.prefix.iter().map(Vec::len).sum::<usize>();
        self.prefix.len() + places + self.rest.len() + self.some.len()
    }

    /// How many schemas it would speak of if a step were added.
    pub(super) fn said_with(&self, step: &ArrayStep) -> usize {
        let places = match step {
            ArrayStep::Items { prefix, .. } => prefix.len(),
            ArrayStep::At(place, _) => place + 1,
            _ => return self.said(),
        };
        let more = places.saturating_sub(self.prefix.len());
        self.said() + self.prefix.len() + more * (2 + self.rest.len())
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

    /// Joins the demands on the same items and drops those that say nothing; `None` where one cannot be met.
    fn unite_demands(&mut self) -> Option<()> {
        let mut united: Vec<SomeItems> = Vec::new();
        for some in self.some.drain(..) {
            let same = |known: &&mut SomeItems| known.literal == some.literal && known.from == some.from;
            match united.iter_mut().find(same) {
                Some(known) => {
                    known.min = known.min.max(some.min);
                    known.max = known.max.into_iter().chain(some.max).min();
                }
                None => united.push(some),
            }
        }
        united.retain(|some| some.min > 0 || some.max.is_some());
        self.some = united;
        let possible = |some: &SomeItems| some.max.is_none_or(|max| some.min <= max);
        self.some.iter().all(possible).then_some(())
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

impl Algebra<'_> {
    /// The arrays of a shape, which is one of the ways of a goal.
    pub(super) fn finish_array(&mut self, shape: &ArrayShape, goal: GoalId) -> Vec<Array> {
        if let Some(node) = shape.not_unique {
            return match shape.unique {
                Some(_) => Vec::new(),
                None => self.finish_repeated(shape, node, goal),
            };
        }
        if let Some(node) = shape.unique
            && shape.max.is_none_or(|max| max > 1)
        {
            return self.finish_unique(shape, node);
        }
        self.finish_counted(shape).into_iter().collect()
    }

    pub(super) fn finish_counted(&mut self, shape: &ArrayShape) -> Option<Array> {
        let mut shape = shape.clone();
        shape.unite_demands()?;
        if shape.some.len() > MOST_WISHES {
            let (node, name) = shape.some[0].source;
            let message =
                format!("more than {MOST_WISHES} `contains` keywords for one array are not supported");
            self.unsupported(node, name, &message);
            return None;
        }
        shape.reach(shape.some.iter().map(|some| some.from).max().unwrap_or(0));
        let wishes = |place: usize| {
            let some = shape
                .some
                .iter()
                .enumerate()
                .filter(|(_, some)| some.from <= place);
            let wish = some.map(|(bit, some)| Wish {
                bit,
                literal: Some(some.literal),
                exact: some.max.is_some(),
            });
            wish.collect::<Vec<Wish>>()
        };
        let places = shape.prefix.iter().enumerate();
        let prefix: Vec<Vec<Way>> = places
            .map(|(place, literals)| self.ways(literals, &wishes(place)))
            .collect();
        let rest = self.ways(&shape.rest, &wishes(shape.prefix.len()));
        Some(Array {
            prefix,
            rest,
            demands: shape.some.iter().map(SomeItems::count).collect(),
            min: shape.min,
            max: shape.max,
            ..Array::default()
        })
    }
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
        Keyword::Contains { item, min, max, .. } => {
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
