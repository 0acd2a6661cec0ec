//! The keys of an object: those with a name, the classes of the others, and the demands on each.

use std::rc::Rc;

use foldhash::{HashMap, HashMapExt, HashSet};

use crate::schema::forms::{Literal, StringShape};
use crate::schema::node::KeyMap;
use crate::schema::normal::{Algebra, Pairs};
use crate::schema::shape::{KeyClass, MapRef, ObjectShape, SomeKey, Step, StringStep};
use crate::schema::text::TextSet;
use lexiform_automata::grammar::Meets;

/// The keys of an object with the demands on each, without demands for some key.
pub(crate) struct Keys {
    pub(crate) named: Vec<NamedKey>,
    pub(crate) classes: Vec<Class>,
}

pub(crate) struct NamedKey {
    pub(crate) name: Rc<str>,
    pub(crate) literals: Vec<Literal>,
    pub(crate) allowed: bool,
    /// The demands for some key that this key could meet, one bit for each.
    pub(crate) wanted: Meets,
}

pub(crate) struct Class {
    pub(crate) key: StringShape,
    pub(crate) literals: Vec<Literal>,
    pub(crate) wanted: Meets,
    /// `true` if a pattern of a map matches the keys.
    pub(crate) matched: bool,
}

/// The keys that satisfy a schema and those that do not, each as a union of shapes.
struct Split {
    within: Vec<StringShape>,
    without: Vec<StringShape>,
}

impl Split {
    /// Splits each class in two; the keys that satisfy the schema are candidates for the demand with the
    /// number `bit`.
    fn apply(&self, classes: Vec<Class>, bit: usize) -> Vec<Class> {
        let mut cut = Vec::new();
        for class in &classes {
            for (side, wanted) in [(&self.within, 1 << bit), (&self.without, 0)] {
                for shape in side.iter().filter(|shape| shape.only.is_none()) {
                    let mut key = class.key.clone();
                    if key.narrow(shape) {
                        cut.push(Class {
                            key,
                            literals: class.literals.clone(),
                            wanted: class.wanted | wanted,
                            matched: class.matched,
                        });
                    }
                }
            }
        }
        cut
    }
}

/// The names that can be looked up in a map for one unit of fuel, and the names that can be compared with a
/// pattern.
const NAMES_OF_FUEL: usize = 256;
const MATCHES_OF_FUEL: usize = 8;

/// The approximate number of bytes of a named key while the demands on it are collected, without the demands.
const NAMED_BYTES: usize = 96;

/// The most patterns whose keys are split into classes without a proof that they are disjoint.
const MOST_PATTERNS: usize = 5;

impl Algebra<'_> {
    /// Returns the keys of a shape, before any of its demands for some key is met.
    pub(crate) fn keys(&mut self, shape: &ObjectShape) -> Keys {
        let mut names = shape.names();
        let nothing = Keys {
            named: Vec::new(),
            classes: Vec::new(),
        };
        if !self.may_look_at(shape, names.len()) {
            return nothing;
        }
        let key_shapes = self.key_shapes(shape);
        let open = self.open_keys(&key_shapes, &mut names);
        let wanted: Vec<Option<Split>> = shape.some.iter().map(|some| self.split_of(some)).collect();
        for split in wanted.iter().flatten() {
            self.open_keys(&split.within, &mut names);
            self.open_keys(&split.without, &mut names);
        }
        let named = self.named_keys(shape, &names, &key_shapes);
        let classes = if open {
            self.additional_classes(shape, &key_shapes, &wanted)
        } else {
            Vec::new()
        };
        Keys { named, classes }
    }

    /// Pays for the demands on this number of names: each name is looked up in all maps, and compared with
    /// all patterns.
    fn may_look_at(&mut self, shape: &ObjectShape, names: usize) -> bool {
        let node = shape.maps.iter().find_map(|map| map.any_node());
        let patterns: usize = shape.maps.iter().map(|map| map.patterns.len()).sum();
        let literals = names.saturating_mul(shape.maps.len());
        let matches = names.saturating_mul(patterns + shape.some.len());
        let bytes = names.saturating_mul(NAMED_BYTES) + literals.saturating_mul(size_of::<Literal>());
        self.burn_at(literals / NAMES_OF_FUEL + matches / MATCHES_OF_FUEL, node)
            && self.reserve(bytes, node)
            && {
                // The memory is released when the goals are known; the part that is kept is reserved with
                // them.
                self.release(bytes);
                true
            }
    }

    /// Returns the two sides of a demand for some key whose name satisfies a schema.
    fn split_of(&mut self, some: &SomeKey) -> Option<Split> {
        let KeyClass::Names(literal) = some.class else {
            return None;
        };
        let mut side = |literal: Literal| {
            let goal = self.goals.intern(vec![literal]);
            self.nested_normal(goal).map(|normal| normal.strings.clone())
        };
        let sides = side(literal).zip(side(literal.denied()));
        if sides.is_none() {
            let message = "the schemas for property names nest too deeply";
            self.unsupported(some.source.0, some.source.1, message);
        }
        sides.map(|(within, without)| Split { within, without })
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
                "the pattern is too large to test property names against",
            );
            false
        })
    }

    /// Returns the keys that `propertyNames` allows, as a union of string shapes; without `propertyNames`,
    /// one shape that allows everything.
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
                    "the schemas for property names nest too deeply",
                );
                Vec::new()
            }
        }
    }

    /// Adds the keys of finite sets to the names, and returns `true` if there are further keys.
    fn open_keys(&mut self, key_shapes: &[StringShape], names: &mut Vec<Rc<str>>) -> bool {
        let mut finite = key_shapes.iter().filter_map(|key| key.only.as_ref()).peekable();
        if finite.peek().is_some() {
            let mut seen: HashSet<Rc<str>> = names.iter().cloned().collect();
            for only in finite {
                names.extend(only.iter().filter(|name| seen.insert((*name).clone())).cloned());
            }
        }
        key_shapes.iter().any(|key| key.only.is_none())
    }

    fn named_keys(&mut self, shape: &ObjectShape, names: &[Rc<str>], keys: &[StringShape]) -> Vec<NamedKey> {
        let mut values: HashMap<&Rc<str>, Vec<Literal>> = HashMap::new();
        for (name, literal) in shape.values.iter() {
            values.entry(name).or_default().push(*literal);
        }
        let mut named = Vec::with_capacity(names.len());
        for name in names {
            let mut literals = match values.is_empty() {
                true => Vec::with_capacity(shape.maps.len()),
                false => values.get(name).cloned().unwrap_or_default(),
            };
            let mut allowed =
                !shape.absent.contains(name) && keys.iter().any(|key| self.name_fits(shape, key, name));
            for map in &shape.maps {
                allowed &= self.key_literals(map, name, &mut literals);
            }
            let mut wanted = 0;
            for (bit, some) in shape.some.iter().enumerate() {
                wanted |= u32::from(allowed && self.key_is_in(&some.class, name, some)) << bit;
            }
            named.push(NamedKey {
                name: name.clone(),
                literals,
                allowed,
                wanted,
            });
        }
        named
    }

    fn name_fits(&mut self, shape: &ObjectShape, key: &StringShape, name: &str) -> bool {
        self.string_fits(key, name).unwrap_or_else(|| {
            let node = shape.names[0].node;
            self.unsupported(
                node,
                "",
                "a pattern for property names is too large to test names against",
            );
            false
        })
    }

    /// Collects the literals that a map has for one key; returns `false` if it forbids the key outright.
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
                    "the pattern is too large to test property names against",
                ),
            }
        }
        if let (false, Some(node)) = (known, map.additional) {
            literals.push(Literal::yes(node));
        }
        !literals.iter().any(|literal| self.is_never(*literal))
    }

    /// Returns the classes of keys that have no name.
    fn additional_classes(
        &mut self,
        shape: &ObjectShape,
        keys: &[StringShape],
        wanted: &[Option<Split>],
    ) -> Vec<Class> {
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
                        "this many overlapping patterns for property names are not supported together",
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
        for (bit, split) in wanted.iter().enumerate() {
            if let Some(split) = split {
                classes = split.apply(classes, bit);
            }
        }
        classes
    }

    /// Determines which patterns can match the same key. With few patterns all are assumed to; with many it
    /// is computed.
    fn patterns_together(
        &mut self,
        patterns: &[TextSet],
    ) -> Result<impl Fn(usize, usize) -> bool + use<>, ()> {
        let few = patterns.len() <= MOST_PATTERNS;
        let shared = if few {
            None
        } else {
            Some(self.pairs_together(patterns)?)
        };
        Ok(move |left, right| shared.as_ref().is_none_or(|pairs| pairs.contains(&(left, right))))
    }

    /// Returns the pairs of patterns that are not known to be disjoint, or an error if there are many. It is
    /// called for each of up to a thousand shapes of a goal, which mostly have the same patterns, so the
    /// result is cached.
    fn pairs_together(&mut self, patterns: &[TextSet]) -> Result<Rc<Pairs>, ()> {
        // Each of the patterns creates a class of keys, which is compared with all of them.
        if !self.texts.may_compare(patterns.len() * patterns.len() / 16) {
            return Err(());
        }
        if let Some(known) = self.together.get(patterns) {
            return known.clone().ok_or(());
        }
        let mut shared = Pairs::default();
        for right in 0..patterns.len() {
            let texts = &self.texts;
            let apart = |left: &usize| texts.are_disjoint(&patterns[*left], &patterns[right]);
            let together = (0..right).filter(|left| !apart(left)).map(|left| (left, right));
            shared.extend(together.take(MOST_PATTERNS + 1));
            if shared.len() > MOST_PATTERNS {
                break;
            }
        }
        let found = (shared.len() <= MOST_PATTERNS).then(|| Rc::new(shared));
        self.together.insert(patterns.to_vec(), found.clone());
        found.ok_or(())
    }

    /// Adds the class of the keys that match exactly the chosen patterns, unless it allows no value.
    fn add_classes(
        &mut self,
        shape: &ObjectShape,
        keys: &[StringShape],
        patterns: &[TextSet],
        chosen: &[bool],
        classes: &mut Vec<Class>,
    ) {
        let matches = |pattern: &TextSet| {
            let at = patterns.iter().position(|other| other == pattern);
            at.is_some_and(|at| chosen[at])
        };
        let mut literals = Vec::new();
        let mut matched = false;
        for map in &shape.maps {
            let mut known = false;
            for (pattern, node) in &map.patterns {
                if matches(pattern) {
                    literals.push(Literal::yes(*node));
                    known = true;
                }
            }
            matched |= known;
            if let (false, Some(node)) = (known, map.additional) {
                literals.push(Literal::yes(node));
            }
        }
        if literals.iter().any(|literal| self.is_never(*literal)) {
            return;
        }
        let mut wanted = 0;
        for (bit, some) in shape.some.iter().enumerate() {
            let within = match &some.class {
                KeyClass::Text(set) => matches(set),
                KeyClass::Other(MapRef(map)) => !map.patterns.iter().any(|(set, _)| matches(set)),
                // Decided later, by splitting the classes once more.
                KeyClass::Names(_) => false,
            };
            wanted |= u32::from(within) << bit;
        }
        for key in keys.iter().filter(|key| key.only.is_none()) {
            let mut ways = vec![key.clone()];
            for (pattern, &on) in patterns.iter().zip(chosen) {
                ways = self.split_keys(ways, pattern, on);
            }
            classes.extend(ways.into_iter().map(|key| Class {
                key,
                literals: literals.clone(),
                wanted,
                matched,
            }));
        }
    }

    /// Returns the keys of each shape that match a pattern (if `on`), or that do not match it.
    fn split_keys(&mut self, shapes: Vec<StringShape>, pattern: &TextSet, on: bool) -> Vec<StringShape> {
        let ways: Vec<Vec<Step>> = if on {
            vec![
                pattern
                    .iter()
                    .map(|&(text, sign)| Step::String(StringStep::Text(text, sign)))
                    .collect(),
            ]
        } else {
            self.deny_text(pattern).ways()
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
