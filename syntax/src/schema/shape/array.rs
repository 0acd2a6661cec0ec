//! Sets of arrays while they are collected: the demands of keywords on an array, and their conjunctions.

use crate::schema::forms::Literal;
use crate::schema::node::{Keyword, NodeId};

use super::demand::Demand;
use super::listed::push_new;
use super::step::{ArrayStep, SomeItems, Step};

/// A conjunction of demands on an array, while it is collected.
#[derive(Clone, Debug, Default)]
pub(crate) struct ArrayShape {
    pub(crate) prefix: Vec<Vec<Literal>>,
    pub(crate) additional: Vec<Literal>,
    pub(crate) min: u64,
    pub(crate) max: Option<u64>,
    pub(crate) some: Vec<SomeItems>,
    pub(crate) unique: Option<NodeId>,
    pub(crate) not_unique: Option<NodeId>,
}

impl ArrayShape {
    pub(crate) fn add(&mut self, step: ArrayStep) -> bool {
        match step {
            ArrayStep::Min(min) => self.min = self.min.max(min),
            ArrayStep::Max(max) => self.max = Some(self.max.map_or(max, |old| old.min(max))),
            ArrayStep::Items { prefix, additional } => self.add_items(&prefix, additional),
            ArrayStep::At(place, literal) => {
                self.reach(place + 1);
                self.prefix[place].push(literal);
                self.min = self.min.max(place as u64 + 1);
            }
            ArrayStep::Some(some) => push_new(&mut self.some, some),
            ArrayStep::Unique(node) => self.unique = Some(node),
            ArrayStep::NotUnique(node) => {
                self.not_unique = Some(node);
                self.min = self.min.max(2);
            }
        }
        self.max.is_none_or(|max| self.min <= max)
    }

    /// Returns the number of schemas that its places and items must satisfy.
    pub(crate) fn said(&self) -> usize {
        let places = self.prefix.iter().map(Vec::len).sum::<usize>();
        self.prefix.len() + places + self.additional.len() + self.some.len()
    }

    /// Returns the number of schemas that its places and items would have to satisfy if a step were added.
    pub(crate) fn said_with(&self, step: &ArrayStep) -> usize {
        let places = match step {
            ArrayStep::Items { prefix, .. } => prefix.len(),
            ArrayStep::At(place, _) => place + 1,
            _ => return self.said(),
        };
        let more = places.saturating_sub(self.prefix.len());
        self.said() + self.prefix.len() + more * (2 + self.additional.len())
    }

    /// Returns `true` if the shape already meets a demand.
    pub(crate) fn meets(&self, step: &ArrayStep) -> bool {
        match step {
            ArrayStep::Min(min) => self.min >= *min,
            ArrayStep::Max(max) => self.max.is_some_and(|have| have <= *max),
            ArrayStep::At(place, literal) => {
                self.min > *place as u64
                    && self
                        .prefix
                        .get(*place)
                        .unwrap_or(&self.additional)
                        .contains(literal)
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

    /// Merges the demands on the same items and drops those without effect; returns `None` if one cannot be
    /// met.
    pub(crate) fn unite_demands(&mut self) -> Option<()> {
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

    /// Gives each of the first places its own goals.
    pub(crate) fn reach(&mut self, places: usize) {
        while self.prefix.len() < places {
            self.prefix.push(self.additional.clone());
        }
    }

    fn add_items(&mut self, prefix: &[NodeId], additional: Option<NodeId>) {
        self.reach(prefix.len());
        for (at, place) in self.prefix.iter_mut().enumerate() {
            let node = prefix.get(at).copied().or(additional);
            place.extend(node.map(Literal::yes));
        }
        self.additional.extend(additional.map(Literal::yes));
    }
}

/// Returns the demand of a keyword on an array.
pub(crate) fn affirm(node: NodeId, name: &'static str, keyword: &Keyword) -> Demand {
    Demand::one(Step::Array(match keyword {
        Keyword::MinItems(count) => ArrayStep::Min(*count),
        Keyword::MaxItems(count) => ArrayStep::Max(*count),
        Keyword::Items { prefix, additional } => ArrayStep::Items {
            prefix: prefix.as_slice().into(),
            additional: *additional,
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

/// Returns the demand of the denial of a keyword on an array.
pub(crate) fn deny(node: NodeId, name: &'static str, keyword: &Keyword) -> Demand {
    let step = |step: ArrayStep| vec![Step::Array(step)];
    let some = |literal: Literal, from: usize, min: u64, max: Option<u64>| {
        step(ArrayStep::Some(SomeItems {
            literal,
            from,
            min,
            max,
            source: (node, name),
        }))
    };
    Demand::any(match keyword {
        Keyword::MinItems(0) => Vec::new(),
        Keyword::MinItems(count) => vec![step(ArrayStep::Max(count - 1))],
        Keyword::MaxItems(count) => count
            .checked_add(1)
            .map(|count| step(ArrayStep::Min(count)))
            .into_iter()
            .collect(),
        Keyword::Items { prefix, additional } => {
            let places = prefix.iter().enumerate();
            let mut ways: Vec<Vec<Step>> = places
                .map(|(at, &node)| step(ArrayStep::At(at, Literal::new(node, false))))
                .collect();
            ways.extend(
                additional.map(|additional| some(Literal::new(additional, false), prefix.len(), 1, None)),
            );
            ways
        }
        Keyword::Contains { item, min, max, .. } => {
            let item = Literal::yes(*item);
            let fewer = min.checked_sub(1).map(|most| some(item, 0, 0, Some(most)));
            let more = max
                .and_then(|max| max.checked_add(1))
                .map(|least| some(item, 0, least, None));
            fewer.into_iter().chain(more).collect()
        }
        _ => vec![step(ArrayStep::NotUnique(node))],
    })
}
