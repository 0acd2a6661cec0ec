//! Sets of objects: named keys with goals, and disjoint classes of the other keys with goals.
//!
//! Several schemas may speak about one key: by its name, through patterns, or because it is "additional" to what they
//! name. A finished object has, for every key, exactly one goal that is the conjunction of all they say:
//!
//! ```text
//!   named keys        each by itself: what every map says of it
//!   all other keys    split by which patterns match: {p, not q}, {p, q}, {not p, q}, {neither}
//! ```

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use crate::schema::goal::{GoalId, Literal};
use crate::schema::node::{Dependency, KeyMap, Keyword};
use crate::schema::text::TextSet;

use super::Algebra;
use super::expand::Demand;
use super::step::{KeyClass, MapRef, ObjectStep, SomeKey, Step};
use super::string::StringShape;

/// A conjunction of demands on an object, as it is collected.
#[derive(Clone, Debug, Default)]
pub(super) struct ObjectShape {
    maps: Vec<Rc<KeyMap>>,
    /// What further demands say of single keys.
    values: Vec<(Rc<str>, Literal)>,
    required: Vec<Rc<str>>,
    absent: Vec<Rc<str>>,
    names: Vec<Literal>,
    min: u64,
    max: Option<u64>,
    some: Vec<SomeKey>,
}

/// A set of objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) members: Vec<Member>,
    /// Disjoint classes of the keys that no member has.
    pub(crate) rest: Vec<RestClass>,
    pub(crate) min: u64,
    pub(crate) max: Option<u64>,
}

/// A key with a goal of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) name: Rc<str>,
    pub(crate) goal: GoalId,
    pub(crate) required: bool,
}

/// A class of keys. The names of members are not in it, although the shape does not say so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RestClass {
    pub(crate) key: StringShape,
    pub(crate) goal: GoalId,
}

impl Object {
    pub(super) fn parts(&self) -> impl Iterator<Item = GoalId> {
        self.members
            .iter()
            .map(|member| member.goal)
            .chain(self.rest.iter().map(|class| class.goal))
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
                self.required.push(name);
            }
            ObjectStep::Absent(name) => {
                if self.required.contains(&name) {
                    return false;
                }
                self.absent.push(name);
            }
            ObjectStep::Value(name, literal) => self.values.push((name, literal)),
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
            ObjectStep::Value(name, literal) => self
                .values
                .iter()
                .any(|(key, value)| key == name && value == literal),
            _ => false,
        }
    }

    /// What is said by name of the value of a key, if the key is required.
    pub(super) fn required_value(&self, name: &str) -> Option<Vec<Literal>> {
        if !self.required.iter().any(|key| &**key == name) {
            return None;
        }
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
        Some(by_maps.chain(by_values).collect())
    }

    /// All keys that some demand names, in the order of the source.
    fn names(&self) -> Vec<Rc<str>> {
        let named = self
            .maps
            .iter()
            .flat_map(|map| map.named.iter().map(|(name, _)| name));
        let further = self
            .values
            .iter()
            .map(|(name, _)| name)
            .chain(&self.required)
            .chain(&self.absent);
        let mut seen = HashSet::new();
        named
            .chain(further)
            .filter(|name| seen.insert((*name).clone()))
            .cloned()
            .collect()
    }

    /// All patterns of all maps, each once.
    fn patterns(&self) -> Vec<TextSet> {
        let mut patterns: Vec<TextSet> = Vec::new();
        for (pattern, _) in self.maps.iter().flat_map(|map| &map.patterns) {
            super::push_new(&mut patterns, pattern.clone());
        }
        patterns
    }
}

/// The most patterns whose keys are split into classes without a proof that they share none.
const MOST_PATTERNS: usize = 5;

impl Algebra<'_> {
    /// The objects of a shape.
    pub(super) fn finish_object(&mut self, shape: &ObjectShape) -> Vec<Object> {
        let mut open = vec![shape.clone()];
        let mut objects = Vec::new();
        while let Some(mut shape) = open.pop() {
            match shape.some.pop() {
                Some(some) => open.extend(self.place_key(&shape, &some)),
                None => objects.extend(self.plain_object(&shape)),
            }
        }
        objects
    }

    fn plain_object(&mut self, shape: &ObjectShape) -> Option<Object> {
        let mut names = shape.names();
        let key_shapes = self.key_shapes(shape);
        let open = self.open_keys(&key_shapes, &mut names);
        let members = self.members(shape, &names, &key_shapes)?;
        let rest = if open {
            self.rest_classes(shape, &key_shapes)
        } else {
            Vec::new()
        };
        Some(Object {
            members,
            rest,
            min: shape.min,
            max: shape.max,
        })
    }

    /// A demand that some key of a class be there becomes a choice among the keys that have a name. Where keys without a
    /// name are possible as well, it is refused.
    fn place_key(&mut self, shape: &ObjectShape, some: &SomeKey) -> Vec<ObjectShape> {
        let Some(plain) = self.plain_object(shape) else {
            return Vec::new();
        };
        if !plain.rest.is_empty() {
            let message = "that some key of a class be there cannot be demanded yet";
            self.unsupported(some.source.0, some.source.1, message);
            return Vec::new();
        }
        let mut shapes = Vec::new();
        for member in &plain.members {
            if !self.key_is_in(&some.class, &member.name, some) {
                continue;
            }
            let mut shape = shape.clone();
            let mut fits = shape.add(ObjectStep::Require(member.name.clone()));
            if let Some(value) = some.value {
                fits &= shape.add(ObjectStep::Value(member.name.clone(), value));
            }
            if fits {
                shapes.push(shape);
            }
        }
        shapes
    }

    fn key_is_in(&mut self, class: &KeyClass, name: &str, some: &SomeKey) -> bool {
        let found = match class {
            KeyClass::Text(set) => self.texts.set_contains(set, name),
            KeyClass::Other(MapRef(map)) => {
                let matched = map
                    .patterns
                    .iter()
                    .map(|(set, _)| self.texts.set_contains(set, name));
                let matched = matched.collect::<Option<Vec<bool>>>();
                matched.map(|matched| !map.index.contains_key(name) && !matched.contains(&true))
            }
            KeyClass::Names(literal) => {
                let goal = self.goals.intern(vec![*literal]);
                let shapes = self.nested_normal(goal).map(|normal| normal.strings.clone());
                let fits =
                    shapes.map(|shapes| shapes.iter().map(|shape| self.string_fits(shape, name)).collect());
                fits.and_then(|fits: Vec<Option<bool>>| fits.into_iter().collect::<Option<Vec<bool>>>())
                    .map(|fits| fits.contains(&true))
            }
        };
        found.unwrap_or_else(|| {
            self.unsupported(
                some.source.0,
                some.source.1,
                "the pattern is too large to test names of properties with",
            );
            false
        })
    }

    /// What `propertyNames` allows, as a union of string shapes; one shape that allows everything where it is silent.
    fn key_shapes(&mut self, shape: &ObjectShape) -> Vec<StringShape> {
        if shape.names.is_empty() {
            return vec![StringShape::default()];
        }
        let goal = self.goals.intern(shape.names.clone());
        match self.nested_normal(goal) {
            Some(normal) => normal.strings.clone(),
            None => {
                self.unsupported(
                    shape.names[0].node,
                    "",
                    "names of properties are constrained too deeply",
                );
                Vec::new()
            }
        }
    }

    /// Turns finite sets of allowed keys into names; whether further keys are left.
    fn open_keys(&mut self, key_shapes: &[StringShape], names: &mut Vec<Rc<str>>) -> bool {
        let mut seen: HashSet<Rc<str>> = names.iter().cloned().collect();
        for only in key_shapes.iter().filter_map(|key| key.only.as_ref()) {
            names.extend(only.iter().filter(|name| seen.insert((*name).clone())).cloned());
        }
        key_shapes.iter().any(|key| key.only.is_none())
    }

    /// The members; `None` where a required key cannot be there.
    fn members(
        &mut self,
        shape: &ObjectShape,
        names: &[Rc<str>],
        keys: &[StringShape],
    ) -> Option<Vec<Member>> {
        let required: HashSet<&Rc<str>> = shape.required.iter().collect();
        let absent: HashSet<&Rc<str>> = shape.absent.iter().collect();
        let mut values: HashMap<&Rc<str>, Vec<Literal>> = HashMap::new();
        for (name, literal) in &shape.values {
            values.entry(name).or_default().push(*literal);
        }
        let mut members = Vec::with_capacity(names.len());
        for name in names {
            let mut literals = values.get(name).cloned().unwrap_or_default();
            let mut allowed =
                !absent.contains(name) && keys.iter().any(|key| self.name_fits(shape, key, name));
            for map in &shape.maps {
                allowed &= self.key_literals(map, name, &mut literals);
            }
            if !allowed {
                literals = vec![self.never_literal()];
            }
            let required = required.contains(name);
            let goal = self.goals.intern(literals);
            if required && !allowed {
                return None;
            }
            members.push(Member {
                name: name.clone(),
                goal,
                required,
            });
        }
        Some(members)
    }

    fn name_fits(&mut self, shape: &ObjectShape, key: &StringShape, name: &str) -> bool {
        self.string_fits(key, name).unwrap_or_else(|| {
            let node = shape.names[0].node;
            self.unsupported(
                node,
                "",
                "a pattern for names of properties is too large to test names with",
            );
            false
        })
    }

    /// Collects what a map says of one key; false where it forbids the key outright.
    fn key_literals(&mut self, map: &KeyMap, name: &str, literals: &mut Vec<Literal>) -> bool {
        let mut known = false;
        if let Some(&node) = map.index.get(name) {
            literals.push(Literal::yes(node));
            known = true;
        }
        for (pattern, node) in &map.patterns {
            match self.texts.set_contains(pattern, name) {
                Some(false) => {}
                Some(true) => {
                    literals.push(Literal::yes(*node));
                    known = true;
                }
                None => self.unsupported(
                    *node,
                    "",
                    "the pattern is too large to test names of properties with",
                ),
            }
        }
        if let (false, Some(node)) = (known, map.additional) {
            literals.push(Literal::yes(node));
        }
        !literals.iter().any(|literal| self.is_never(*literal))
    }

    /// Whether a literal is the schema `false`, or the denial of the schema `true`.
    fn is_never(&self, literal: Literal) -> bool {
        let keywords = &self.tree.node(literal.node).keywords;
        if literal.sign {
            matches!(keywords[..], [(_, Keyword::Never)])
        } else {
            keywords.is_empty()
        }
    }

    /// The classes of keys that have no name.
    fn rest_classes(&mut self, shape: &ObjectShape, keys: &[StringShape]) -> Vec<RestClass> {
        let patterns = shape.patterns();
        let together = match self.patterns_together(&patterns) {
            Ok(together) => together,
            Err(()) => {
                let node = shape
                    .maps
                    .iter()
                    .flat_map(|map| &map.patterns)
                    .next()
                    .map(|(_, node)| *node);
                if let Some(node) = node {
                    self.unsupported(
                        node,
                        "",
                        "so many patterns for keys that may share keys are not supported",
                    );
                }
                return Vec::new();
            }
        };
        let mut classes = Vec::new();
        let mut open = vec![Vec::new()];
        while let Some(chosen) = open.pop() {
            if chosen.len() < patterns.len() {
                let mut with = chosen.clone();
                let mut without = chosen;
                let fits = !with
                    .iter()
                    .enumerate()
                    .any(|(other, &on)| on && !together(other, with.len()));
                without.push(false);
                open.push(without);
                if fits {
                    with.push(true);
                    open.push(with);
                }
                continue;
            }
            self.add_classes(shape, keys, &patterns, &chosen, &mut classes);
        }
        classes
    }

    /// Which patterns can match one key. With few patterns all are taken to; with many it is computed.
    fn patterns_together(&self, patterns: &[TextSet]) -> Result<impl Fn(usize, usize) -> bool + use<>, ()> {
        let mut apart = HashSet::new();
        if patterns.len() > MOST_PATTERNS {
            for right in 0..patterns.len() {
                for left in 0..right {
                    if self.texts.are_disjoint(&patterns[left], &patterns[right]) {
                        apart.insert((left, right));
                    }
                }
            }
            let shared = patterns.len() * (patterns.len() - 1) / 2 - apart.len();
            if shared > MOST_PATTERNS {
                return Err(());
            }
        }
        Ok(move |left, right| !apart.contains(&(left, right)))
    }

    /// Adds the class of the keys that exactly the chosen patterns match, unless it allows no value.
    fn add_classes(
        &mut self,
        shape: &ObjectShape,
        keys: &[StringShape],
        patterns: &[TextSet],
        chosen: &[bool],
        classes: &mut Vec<RestClass>,
    ) {
        let mut literals = Vec::new();
        for map in &shape.maps {
            let mut known = false;
            for (pattern, node) in &map.patterns {
                let at = patterns.iter().position(|other| other == pattern);
                if at.is_some_and(|at| chosen[at]) {
                    literals.push(Literal::yes(*node));
                    known = true;
                }
            }
            if let (false, Some(node)) = (known, map.additional) {
                literals.push(Literal::yes(node));
            }
        }
        if literals.iter().any(|literal| self.is_never(*literal)) {
            return;
        }
        let goal = self.goals.intern(literals);
        for key in keys.iter().filter(|key| key.only.is_none()) {
            let mut ways = vec![key.clone()];
            for (pattern, &on) in patterns.iter().zip(chosen) {
                ways = self.split_keys(ways, pattern, on);
            }
            classes.extend(ways.into_iter().map(|key| RestClass { key, goal }));
        }
    }

    /// The keys of each shape that match a pattern, or that do not.
    fn split_keys(&mut self, shapes: Vec<StringShape>, pattern: &TextSet, on: bool) -> Vec<StringShape> {
        let ways: Vec<Vec<Step>> = if on {
            vec![
                pattern
                    .iter()
                    .map(|&(text, sign)| Step::String(super::step::StringStep::Text(text, sign)))
                    .collect(),
            ]
        } else {
            match self.deny_text(pattern) {
                Demand::Never => Vec::new(),
                Demand::All(steps) => vec![steps],
                Demand::Any(ways) => ways,
            }
        };
        let mut split = Vec::new();
        for shape in &shapes {
            for way in &ways {
                let mut shape = shape.clone();
                let fits = way.iter().all(|step| match step {
                    Step::String(step) => shape.add(step.clone()),
                    _ => true,
                });
                if fits {
                    split.push(shape);
                }
            }
        }
        split
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
