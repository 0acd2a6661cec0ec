//! Sets of objects: named keys with goals, and disjoint classes of the other keys with goals.
//!
//! Several schemas may speak about one key: by its name, through patterns, or because it is "additional" to what they
//! name. A finished object has, for every key, exactly one goal that is the conjunction of all they say:
//!
//! ```text
//!   named keys        each by itself: what every map says of it
//!   all other keys    split by which patterns match: {p, not q}, {p, q}, {not p, q}, {neither}
//! ```

use std::hash::{Hash as _, Hasher as _};
use std::rc::Rc;

use foldhash::{HashSet, HashSetExt};
use rustc_hash::FxHasher;

use crate::grammar::Meets;
use crate::schema::goal::{GoalId, Literal};
use crate::schema::node::{Dependency, KeyMap, Keyword};
use crate::schema::text::TextSet;

use super::Algebra;
use super::expand::Demand;
use super::keys::Keys;
use super::listed::Listed;
use super::step::{ObjectStep, SomeKey, Step};
use super::string::StringShape;
use super::way::{MOST_WISHES, Way, Wish, bytes_of_ways};

/// A conjunction of demands on an object, as it is collected.
#[derive(Clone, Debug, Default)]
pub(super) struct ObjectShape {
    pub(super) maps: Vec<Rc<KeyMap>>,
    /// What further demands say of single keys.
    pub(super) values: Listed<(Rc<str>, Literal)>,
    pub(super) required: Listed<Rc<str>>,
    pub(super) absent: Listed<Rc<str>>,
    pub(super) names: Vec<Literal>,
    pub(super) min: u64,
    pub(super) max: Option<u64>,
    pub(super) some: Vec<SomeKey>,
}

/// A set of objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) members: Vec<Member>,
    /// Disjoint classes of the keys that no member has.
    pub(crate) rest: Vec<RestClass>,
    pub(crate) min: u64,
    pub(crate) max: Option<u64>,
    /// How many demands there are that some key be there; ways say which of them they meet.
    pub(crate) demands: usize,
}

/// A key with goals of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) name: Rc<str>,
    /// What its value may be; none where the key cannot be there.
    pub(crate) ways: Vec<Way>,
    pub(crate) required: bool,
}

/// A class of keys. The names of members are not in it, although the shape does not say so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RestClass {
    pub(crate) key: StringShape,
    pub(crate) ways: Vec<Way>,
}

impl Object {
    pub(super) fn ways(&self) -> impl Iterator<Item = &Way> {
        let members = self.members.iter().flat_map(|member| &member.ways);
        members.chain(self.rest.iter().flat_map(|class| &class.ways))
    }

    pub(super) fn parts(&self) -> impl Iterator<Item = GoalId> {
        self.ways().map(|way| way.goal)
    }

    /// About the bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        let members = self.members.iter().map(|member| bytes_of_ways(&member.ways));
        let rest = self.rest.iter().map(|class| {
            let StringShape { texts, except, .. } = &class.key;
            bytes_of_ways(&class.ways) + size_of_val(&texts[..]) + size_of_val(&except[..])
        });
        size_of::<Object>()
            + size_of_val(&self.members[..])
            + size_of_val(&self.rest[..])
            + members.chain(rest).sum::<usize>()
    }

    /// A number that equal objects share, and others mostly not. No name is read for it.
    pub(super) fn sketch(&self) -> u64 {
        let mut hasher = FxHasher::default();
        (self.members.len(), self.min, self.max).hash(&mut hasher);
        for member in &self.members {
            member.required.hash(&mut hasher);
        }
        for way in self.ways() {
            (way.goal, way.meets).hash(&mut hasher);
        }
        hasher.finish()
    }
}

impl ObjectShape {
    pub(super) fn add(&mut self, step: ObjectStep) -> bool {
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
            ObjectStep::Some(some) => super::push_new(&mut self.some, some),
        }
        self.max.is_none_or(|max| self.min <= max)
    }

    /// Whether a demand is met by what the shape says already.
    pub(super) fn meets(&self, step: &ObjectStep) -> bool {
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

    /// What is said by name of the value of a key, if the key is required.
    pub(super) fn required_value(&self, name: &str) -> Option<Vec<Literal>> {
        self.required.contains(name).then(|| self.said_of(name))
    }

    /// What is said by name of the value of a key.
    pub(super) fn said_of(&self, name: &str) -> Vec<Literal> {
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

    /// All keys that some demand names, in the order of the source.
    pub(super) fn names(&self) -> Vec<Rc<str>> {
        // The names of one map differ, and mostly there is one map that has them all.
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

    /// All patterns of all maps, each once.
    pub(super) fn patterns(&self) -> Vec<TextSet> {
        let mut patterns: Vec<TextSet> = Vec::new();
        for (pattern, _) in self.maps.iter().flat_map(|map| &map.patterns) {
            super::push_new(&mut patterns, pattern.clone());
        }
        for pattern in self.some.iter().flat_map(|some| some.class.patterns()) {
            super::push_new(&mut patterns, pattern.clone());
        }
        patterns
    }
}

enum Placed {
    Nothing,
    One,
}

impl Algebra<'_> {
    /// The objects of a shape; `None` where there are none.
    pub(super) fn finish_object(&mut self, shape: &ObjectShape) -> Option<Object> {
        if shape.some.is_empty() {
            let keys = self.keys(shape);
            return self.with_ways(shape, keys);
        }
        let mut shape = shape.clone();
        let keys = loop {
            let keys = self.keys(&shape);
            match self.place_key(&mut shape, &keys)? {
                Placed::Nothing => break keys,
                Placed::One => {}
            }
        };
        if shape.some.len() > MOST_WISHES {
            self.dropped = true;
            return None;
        }
        self.with_ways(&shape, keys)
    }

    /// Meets a demand for some key of which only one key is a candidate, and it has a name. `None` where a demand has
    /// no candidate.
    fn place_key(&mut self, shape: &mut ObjectShape, keys: &Keys) -> Option<Placed> {
        for at in 0..shape.some.len() {
            let wanted = |meets: Meets| meets >> at & 1 == 1;
            let mut named = keys.named.iter().filter(|key| key.allowed && wanted(key.wanted));
            let (first, second) = (named.next(), named.next());
            let open = keys.classes.iter().any(|class| wanted(class.wanted));
            match (first, second, open) {
                (None, None, false) => return None,
                (Some(key), None, false) => {
                    let some = shape.some.remove(at);
                    let mut fits = shape.add(ObjectStep::Require(key.name.clone()));
                    if let Some(value) = some.value {
                        fits &= shape.add(ObjectStep::Value(key.name.clone(), value));
                    }
                    return fits.then_some(Placed::One);
                }
                _ => {}
            }
        }
        Some(Placed::Nothing)
    }

    fn with_ways(&mut self, shape: &ObjectShape, keys: Keys) -> Option<Object> {
        let wishes = |wanted: Meets| -> Vec<Wish> {
            let wished = shape.some.iter().enumerate();
            let wished = wished.filter(|(bit, _)| wanted >> bit & 1 == 1);
            let wish = wished.map(|(bit, some)| Wish {
                bit,
                literal: some.value,
                exact: false,
            });
            wish.collect()
        };
        let mut members = Vec::with_capacity(keys.named.len());
        for key in keys.named {
            let required = shape.required.contains(&key.name);
            let ways = if key.allowed {
                self.ways(&key.literals, &wishes(key.wanted))
            } else {
                Vec::new()
            };
            if required && ways.is_empty() {
                return None;
            }
            members.push(Member {
                name: key.name,
                ways,
                required,
            });
        }
        let classes = keys.classes.into_iter().map(|class| RestClass {
            ways: self.ways(&class.literals, &wishes(class.wanted)),
            key: class.key,
        });
        Some(Object {
            members,
            rest: classes.filter(|class| !class.ways.is_empty()).collect(),
            min: shape.min,
            max: shape.max,
            demands: shape.some.len(),
        })
    }
}

/// What a keyword asks of an object.
pub(super) fn affirm(keyword: &Keyword) -> Demand {
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
