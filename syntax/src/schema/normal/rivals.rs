//! Finds the alternatives of a `oneOf` that may hold at once.
//!
//! Each has to be denied where another one is chosen, unless the two exclude one another, and a thousand
//! alternatives have half a million pairs. But mostly all of them list values for the same key, and nearly
//! all list different ones. So they are grouped by those values first, and only the remaining pairs are
//! compared.
//!
//! ```text
//!   kind = "a"        ─► a: 1        1 and 4 share a value of `kind`, and 3 does not mention it:
//!   kind = "b"        ─► b: 2
//!   size > 3          ─► any: 3      pairs left   1–4, 1–3, 2–3, 3–4
//!   kind = "a", "c"   ─► a, c: 4
//! ```
//!
//! Otherwise, if each has a different key and allows no other, they are grouped by the keys that they allow.
//! An alternative that is a union itself lists the values of its own alternatives.
//!
//! Five hundred alternatives used to exceed the fuel; now 2,000 compile in 20 ms.

use std::rc::Rc;

use foldhash::{HashMap, HashMapExt, HashSet};

use crate::schema::decimal::Decimal;
use crate::schema::forms::Literal;
use crate::schema::node::{KeyMap, Keyword, Kind, NodeId, Values};

use super::algebra::Algebra;

/// The most alternatives that are compared pair by pair.
const FEW_RIVALS: usize = 4;

/// The number of pairs that are compared for one unit of fuel, and of already compared pairs that are looked
/// up.
const PAIRS_OF_FUEL: usize = 16;
const KNOWN_PAIRS_OF_FUEL: usize = 256;

/// The limits on examining alternatives of alternatives: their depth, their number, and the number of
/// references.
const RIVAL_DEPTH: u32 = 3;
const MOST_LEAVES: usize = 256;
const REFERENCES: usize = 8;

/// The most keys and values that the alternatives may list together, including through references, to be
/// grouped by them.
const MOST_TOLD: usize = 1 << 19;

/// The number of these keys and values that are examined for one unit of fuel.
const TOLD_OF_FUEL: usize = 64;

/// A scalar by which alternatives are grouped.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Tag {
    Null,
    No,
    Yes,
    Number(Decimal),
    String(Rc<str>),
}

/// Alternatives by the values that they list, for one key or for the value itself.
#[derive(Default)]
struct ByValue {
    /// The values that each alternative lists; `None` if it may have any value.
    listed: Vec<Option<Vec<Tag>>>,
    by_tag: HashMap<Tag, Vec<usize>>,
    /// The alternatives that may have any value.
    any: Vec<usize>,
    /// The alternatives that list values but do not require the key: all of them hold if it is missing.
    optional: Vec<usize>,
    asks: Vec<bool>,
}

/// Alternatives by the keys that they allow.
#[derive(Default)]
struct ByKey {
    /// The keys that each alternative requires.
    required: Vec<Vec<Rc<str>>>,
    /// The alternatives that allow keys they do not name.
    open: Vec<usize>,
    /// For each key, the alternatives that allow it and are closed.
    allows: HashMap<Rc<str>, Vec<usize>>,
}

impl Algebra<'_> {
    /// Returns, for each alternative, the indices of those that may hold together with it for the same value
    /// of a kind, in ascending order. The time is linear in the keys and values that the alternatives list
    /// and in the remaining pairs; fuel pays for the pairs.
    pub(super) fn rivals(&mut self, list: &[NodeId], kind: Kind) -> Vec<Vec<usize>> {
        let told = if list.len() > FEW_RIVALS {
            self.told(list)
        } else {
            MOST_TOLD
        };
        let long = Some(list).filter(|_| told < MOST_TOLD);
        if long.is_some() && !self.burn_at(told / TOLD_OF_FUEL, list.first().copied()) {
            return vec![Vec::new(); list.len()];
        }
        let by_value = long.and_then(|list| self.by_value(list, kind));
        let objects = long.filter(|_| kind == Kind::Object);
        let by_key = objects.and_then(|list| self.by_key(list));
        let mut rivals = vec![Vec::new(); list.len()];
        for one in 0..list.len() {
            let by_value = by_value.as_ref().and_then(|sorted| sorted.near(one));
            let by_key = by_key.as_ref().and_then(|sorted| sorted.near(one));
            let near = [by_value, by_key].into_iter().flatten().min_by_key(Vec::len);
            let mut others = near.unwrap_or_else(|| (0..list.len()).collect());
            others.retain(|&other| other > one);
            others.sort_unstable();
            others.dedup();
            let (known, looked_at) = (self.disjoint.len(), others.len());
            for other in others {
                if !self.are_disjoint(list[one], list[other]) {
                    rivals[one].push(other);
                    rivals[other].push(one);
                }
            }
            let pairs = self.disjoint.len() - known;
            let cost = pairs / PAIRS_OF_FUEL + looked_at / KNOWN_PAIRS_OF_FUEL;
            if !self.burn_at(cost, list.first().copied()) {
                break;
            }
        }
        rivals
    }

    /// Returns the number of keys and values that the alternatives list, up to [`MOST_TOLD`]: the work of
    /// grouping them.
    fn told(&self, list: &[NodeId]) -> usize {
        let listed = |node: NodeId| {
            let values = self.scalars(node);
            values.map_or(0, |values| values.numbers.len() + values.strings.len())
        };
        let mut told = 0;
        for &node in list {
            for node in std::iter::once(node).chain(self.leaves(node)) {
                let said = self.said_of_objects(&[Literal::yes(node)]);
                let required: usize = said.required.iter().map(|names| names.len()).sum();
                told += 1 + required + listed(node);
                for (_, child) in said
                    .maps
                    .iter()
                    .flat_map(|map| &map.named)
                    .take(MOST_TOLD - told.min(MOST_TOLD))
                {
                    told += 1 + listed(*child);
                }
                if told >= MOST_TOLD {
                    return MOST_TOLD;
                }
            }
        }
        told
    }

    /// Groups the alternatives by the values that they list; for objects, by the value of a key.
    fn by_value(&self, list: &[NodeId], kind: Kind) -> Option<ByValue> {
        let mut sorted = ByValue::default();
        let key = match kind {
            Kind::Object => Some(self.telling_key(list)?),
            _ => None,
        };
        for &node in list {
            let told = |leaf: NodeId| match &key {
                Some(key) => self.listed_for(leaf, key),
                None => (self.scalars(leaf), true),
            };
            match told(node) {
                (None, _) => sorted.add(self.leaves(node).into_iter().map(told)),
                told => sorted.add([told].into_iter()),
            }
        }
        (sorted.any.len() < list.len()).then_some(sorted)
    }

    /// Returns the required key for which the alternatives list the most different values.
    fn telling_key(&self, list: &[NodeId]) -> Option<Rc<str>> {
        let mut lists: HashMap<Rc<str>, HashSet<Tag>> = HashMap::new();
        let mut most: Option<(Rc<str>, usize)> = None;
        let leaves = list.iter().flat_map(|&node| self.leaves(node));
        for node in leaves.chain(list.iter().copied()) {
            let said = self.said_of_objects(&[Literal::yes(node)]);
            for name in said.required.iter().flat_map(|names| names.iter()) {
                let mut nodes = said.maps.iter().filter_map(|map| map.index.get(name));
                let Some(values) = nodes.find_map(|&node| self.scalars(node)) else {
                    continue;
                };
                let known = lists.entry(name.clone()).or_default();
                known.extend(tags(&values));
                if most.as_ref().is_none_or(|&(_, most)| known.len() > most) {
                    most = Some((name.clone(), known.len()));
                }
            }
        }
        most.map(|(name, _)| name)
    }

    /// Returns the alternatives of an alternative, recursively; none if it has none, or too many.
    fn leaves(&self, node: NodeId) -> Vec<NodeId> {
        if self.alternatives(node).is_none() {
            return Vec::new();
        }
        let (mut leaves, mut open) = (Vec::new(), vec![(node, 0)]);
        while let Some((at, depth)) = open.pop() {
            match self.alternatives(at) {
                Some(list) if depth < RIVAL_DEPTH => open.extend(list.iter().map(|&node| (node, depth + 1))),
                _ => leaves.push(at),
            }
            if leaves.len() + open.len() > MOST_LEAVES {
                return Vec::new();
            }
        }
        leaves.retain(|&leaf| leaf != node);
        leaves
    }

    /// Returns the alternatives of a schema, or of the one that it refers to.
    fn alternatives(&self, mut node: NodeId) -> Option<&[NodeId]> {
        for _ in 0..REFERENCES {
            let keywords = self.tree.node(node).keywords.iter();
            let mut next = None;
            for (_, keyword) in keywords {
                match keyword {
                    Keyword::AnyOf(list) | Keyword::OneOf(list) => return Some(list),
                    Keyword::Ref(reference) => next = Some(self.tree.target(*reference)),
                    _ => {}
                }
            }
            node = next?;
        }
        None
    }

    /// Returns the values that an alternative lists for a key, and whether it requires the key.
    fn listed_for(&self, node: NodeId, key: &Rc<str>) -> (Option<Rc<Values>>, bool) {
        let said = self.said_of_objects(&[Literal::yes(node)]);
        let mut nodes = said.maps.iter().filter_map(|map| map.index.get(key));
        let values = nodes.find_map(|&node| self.scalars(node));
        let asks = said.required.iter().any(|names| names.contains(key));
        (values, asks)
    }

    /// Groups the alternatives by the keys that they allow, if some allow only keys that they name.
    fn by_key(&self, list: &[NodeId]) -> Option<ByKey> {
        let mut sorted = ByKey::default();
        for (place, &node) in list.iter().enumerate() {
            let said = self.said_of_objects(&[Literal::yes(node)]);
            let required = said.required.iter().flat_map(|names| names.iter());
            sorted.required.push(required.cloned().collect());
            match said.maps.iter().find(|map| self.is_closed(map)) {
                None => sorted.open.push(place),
                Some(map) => {
                    for (name, _) in &map.named {
                        sorted.allows.entry(name.clone()).or_default().push(place);
                    }
                }
            }
        }
        (sorted.open.len() < list.len()).then_some(sorted)
    }

    /// Returns `true` if a map allows no key that it does not name.
    fn is_closed(&self, map: &KeyMap) -> bool {
        let others = map.additional.filter(|_| map.patterns.is_empty());
        others.is_some_and(|node| self.is_never(Literal::yes(node)))
    }
}

impl ByValue {
    /// Adds an alternative, given the values that each of its own alternatives lists, and whether that one
    /// requires the key.
    fn add(&mut self, told: impl Iterator<Item = (Option<Rc<Values>>, bool)>) {
        let (place, mut all_ask) = (self.listed.len(), true);
        let listed = told.map(|(values, asks)| {
            all_ask &= asks;
            values.map(|values| tags(&values).collect::<Vec<Tag>>())
        });
        let listed: Option<Vec<Vec<Tag>>> = listed.collect();
        let listed = listed
            .filter(|lists| !lists.is_empty())
            .map(|lists| lists.concat());
        match &listed {
            None => self.any.push(place),
            Some(tags) => {
                for tag in tags {
                    self.by_tag.entry(tag.clone()).or_default().push(place);
                }
                self.optional.extend((!all_ask).then_some(place));
            }
        }
        self.listed.push(listed);
        self.asks.push(all_ask);
    }

    /// Returns the alternatives that may hold together with one, in any order, or `None` if that may be all.
    fn near(&self, one: usize) -> Option<Vec<usize>> {
        let tags = self.listed[one].as_ref()?.iter();
        let shared: Vec<&Vec<usize>> = tags.filter_map(|tag| self.by_tag.get(tag)).collect();
        // Each of many values may be shared with all others.
        if shared.iter().map(|places| places.len()).sum::<usize>() > self.listed.len() {
            return None;
        }
        let shared = shared.into_iter().flatten();
        let optional = if self.asks[one] { &[][..] } else { &self.optional };
        Some(shared.chain(&self.any).chain(optional).copied().collect())
    }
}

impl ByKey {
    /// Returns the alternatives that may hold together with one, in any order, or `None` if that may be all.
    fn near(&self, one: usize) -> Option<Vec<usize>> {
        let allows = |name: &Rc<str>| self.allows.get(name).map_or(&[][..], Vec::as_slice);
        let required = self.required[one].iter().map(allows);
        let rare = required.min_by_key(|places| places.len())?;
        Some(rare.iter().chain(&self.open).copied().collect())
    }
}

fn tags(values: &Values) -> impl Iterator<Item = Tag> + '_ {
    let constants = [
        (values.null, Tag::Null),
        (values.no, Tag::No),
        (values.yes, Tag::Yes),
    ];
    let constants = constants.into_iter().filter(|(there, _)| *there);
    let numbers = values.numbers.iter().cloned().map(Tag::Number);
    let strings = values.strings.iter().cloned().map(Tag::String);
    constants.map(|(_, tag)| tag).chain(numbers).chain(strings)
}
