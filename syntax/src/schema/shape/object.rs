//! Sets of objects while they are collected: the demands of keywords on an object, and their conjunctions.

use std::rc::Rc;

use foldhash::{HashSet, HashSetExt};

use crate::schema::forms::Literal;
use crate::schema::node::{Dependency, KeyMap, Keyword};
use crate::schema::text::TextSet;

use super::demand::Demand;
use super::listed::{Listed, push_new};
use super::step::{ObjectStep, SomeKey, Step};

/// A conjunction of demands on an object, while it is collected.
#[derive(Clone, Debug, Default)]
pub(crate) struct ObjectShape {
    pub(crate) maps: Vec<Rc<KeyMap>>,
    /// Further demands on the values of single keys.
    pub(crate) values: Listed<(Rc<str>, Literal)>,
    pub(crate) required: Listed<Rc<str>>,
    pub(crate) absent: Listed<Rc<str>>,
    pub(crate) names: Vec<Literal>,
    pub(crate) min: u64,
    pub(crate) max: Option<u64>,
    pub(crate) some: Vec<SomeKey>,
}

impl ObjectShape {
    pub(crate) fn add(&mut self, step: ObjectStep) -> bool {
        match step {
            ObjectStep::Min(min) => self.min = self.min.max(min),
            ObjectStep::Max(max) => self.max = Some(self.max.map_or(max, |old| old.min(max))),
            ObjectStep::Keys(map) => self.maps.push(map),
            ObjectStep::Require(name) => {
                if self.absent.contains(&name) {
                    return false;
                }
                self.required.add(name);
            }
            ObjectStep::Absent(name) => {
                if self.required.contains(&name) {
                    return false;
                }
                self.absent.add(name);
            }
            ObjectStep::Value(name, literal) => self.values.add((name, literal)),
            ObjectStep::Names(literal) => self.names.push(literal),
            ObjectStep::Some(some) => push_new(&mut self.some, some),
        }
        self.max.is_none_or(|max| self.min <= max)
    }

    /// Returns `true` if the shape already meets a demand.
    pub(crate) fn meets(&self, step: &ObjectStep) -> bool {
        match step {
            ObjectStep::Min(min) => self.min >= *min,
            ObjectStep::Max(max) => self.max.is_some_and(|have| have <= *max),
            ObjectStep::Require(name) => self.required.contains(name),
            ObjectStep::Absent(name) => self.absent.contains(name),
            ObjectStep::Value(name, literal) => self.values.contains(&(name.clone(), *literal)),
            ObjectStep::Some(some) => self.some.contains(some),
            _ => false,
        }
    }

    /// Returns the constraints by name on the value of a key, if the key is required.
    pub(crate) fn required_value(&self, name: &str) -> Option<Vec<Literal>> {
        self.required.contains(name).then(|| self.said_of(name))
    }

    /// Returns the constraints by name on the value of a key.
    pub(crate) fn said_of(&self, name: &str) -> Vec<Literal> {
        let by_maps = self
            .maps
            .iter()
            .filter_map(|map| map.index.get(name))
            .map(|&node| Literal::yes(node));
        let by_values = self
            .values
            .iter()
            .filter(|(key, _)| &**key == name)
            .map(|(_, literal)| *literal);
        by_maps.chain(by_values).collect()
    }

    /// Returns all keys that some demand names, in the order of the source.
    pub(crate) fn names(&self) -> Vec<Rc<str>> {
        // The names of one map are distinct, and mostly there is one map that has all of them.
        let (first, others) = match self.maps.split_first() {
            Some((first, others)) => (Some(first), others),
            None => (None, &[][..]),
        };
        let mut names: Vec<Rc<str>> = Vec::new();
        names.extend(
            first
                .iter()
                .flat_map(|map| &map.named)
                .map(|(name, _)| name.clone()),
        );
        let named = others.iter().flat_map(|map| &map.named).map(|(name, _)| name);
        let mapped = self.some.iter().flat_map(|some| some.class.names());
        let further = named
            .chain(self.values.iter().map(|(name, _)| name))
            .chain(self.required.iter())
            .chain(self.absent.iter())
            .chain(mapped);
        let mut seen: HashSet<&Rc<str>> = HashSet::new();
        for name in further {
            let known = first.is_some_and(|map| map.index.contains_key(name));
            if !known && seen.insert(name) {
                names.push(name.clone());
            }
        }
        names
    }

    /// Returns all patterns of all maps, each once.
    pub(crate) fn patterns(&self) -> Vec<TextSet> {
        let mut patterns: Vec<TextSet> = Vec::new();
        for (pattern, _) in self.maps.iter().flat_map(|map| &map.patterns) {
            push_new(&mut patterns, pattern.clone());
        }
        for pattern in self.some.iter().flat_map(|some| some.class.patterns()) {
            push_new(&mut patterns, pattern.clone());
        }
        patterns
    }
}

/// Returns the demand of a keyword on an object.
pub(crate) fn affirm(keyword: &Keyword) -> Demand {
    let step = |step: ObjectStep| Demand::one(Step::Object(step));
    match keyword {
        Keyword::MinProperties(count) => step(ObjectStep::Min(*count)),
        Keyword::MaxProperties(count) => step(ObjectStep::Max(*count)),
        Keyword::Properties(keys) => step(ObjectStep::Keys(keys.clone())),
        Keyword::Required(names) => Demand::All(
            names
                .iter()
                .map(|name| Step::Object(ObjectStep::Require(name.clone())))
                .collect(),
        ),
        Keyword::PropertyNames(node) => step(ObjectStep::Names(Literal::yes(*node))),
        Keyword::Dependent { key, then } => {
            let absent = vec![Step::Object(ObjectStep::Absent(key.clone()))];
            let here = std::iter::once(Step::Object(ObjectStep::Require(key.clone())));
            let present = match then {
                Dependency::Schema(node) => here.chain([Step::Literal(Literal::yes(*node))]).collect(),
                Dependency::Keys(names) => here
                    .chain(
                        names
                            .iter()
                            .map(|name| Step::Object(ObjectStep::Require(name.clone()))),
                    )
                    .collect(),
            };
            Demand::any(vec![absent, present])
        }
        _ => Demand::nothing(),
    }
}
