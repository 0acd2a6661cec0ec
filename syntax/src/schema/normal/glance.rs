//! Decides whether a conjunction has no value, where this does not take a normal form.
//!
//! The schemas that distinguish the alternatives of a union are mostly a `const`, an `enum` or a `type`, and
//! there are as many pairs of them as pairs of alternatives. Their intersection is found by comparing the
//! values that they list.
//!
//! ```text
//!   {"const": "a"}  {"enum": ["b", "c"]}      certainly no value
//!   {"const": "a"}  {"type": "string"}        certainly "a"
//!   {"const": "a"}  {"pattern": "^b"}         unknown at a glance
//! ```

use std::rc::Rc;

use smallvec::SmallVec;

use crate::schema::decimal::Decimal;
use crate::schema::forms::Literal;
use crate::schema::node::{KeyMap, Keyword, Kind, Kinds, NodeId, Values};

use super::algebra::Algebra;

/// The values that the schemas of a conjunction list.
#[derive(Default)]
struct Lists<'t> {
    wanted: SmallVec<[&'t Values; 4]>,
    unwanted: SmallVec<[&'t Values; 4]>,
}

/// The constraints of the schemas of a conjunction on the keys of objects.
#[derive(Default)]
pub(super) struct Said {
    pub(super) required: SmallVec<[Rc<[Rc<str>]>; 4]>,
    pub(super) maps: SmallVec<[Rc<KeyMap>; 4]>,
}

/// The most references that are followed from one schema.
const REFERENCES: usize = 8;
/// The most schemas examined that apply to the same object.
const MOST_PARTS: usize = 16;

impl Algebra<'_> {
    /// Returns `true` if the literals have no value in common, or `None` if more than `type`, `enum` and
    /// `const` has to be examined.
    pub(super) fn is_empty_at_a_glance(&mut self, literals: &[Literal]) -> Option<bool> {
        let kinds = self.common_kinds(literals);
        if kinds.is_empty() {
            return Some(true);
        }
        let mut lists = Lists::default();
        for &literal in literals {
            self.list(literal, &mut lists)?;
        }
        lists.is_empty(kinds)
    }

    /// Returns `true` if all values are objects that require a key, and either the schemas of that key's
    /// value have no value in common, or one of them forbids the key. This distinguishes the alternatives of
    /// nearly every `oneOf`.
    pub(super) fn lack_a_required_value(&mut self, literals: &[Literal]) -> bool {
        if self.common_kinds(literals) != Kinds::from_iter([Kind::Object]) {
            return false;
        }
        let said = self.said_of_objects(literals);
        let names = said.required.iter().flat_map(|names| names.iter());
        for name in names {
            if said.maps.iter().any(|map| self.forbids(map, name)) {
                return true;
            }
            let nodes = said.maps.iter().filter_map(|map| map.index.get(name));
            let values: SmallVec<[Literal; 4]> = nodes.map(|&node| Literal::yes(node)).collect();
            if values.len() > 1 && self.is_empty_at_a_glance(&values) == Some(true) {
                return true;
            }
        }
        false
    }

    /// Returns the constraints on objects of the affirmed schemas, and of those that apply in place.
    pub(super) fn said_of_objects(&self, literals: &[Literal]) -> Said {
        let affirmed = literals.iter().filter(|literal| literal.sign);
        let mut open: SmallVec<[NodeId; MOST_PARTS]> = affirmed.map(|literal| literal.node).collect();
        let mut said = Said::default();
        let mut at = 0;
        while at < open.len().min(MOST_PARTS) {
            for (_, keyword) in self.tree.node(open[at]).keywords.iter() {
                match keyword {
                    Keyword::Ref(reference) => open.push(self.tree.target(*reference)),
                    Keyword::AllOf(list) => open.extend(list.iter().take(MOST_PARTS).copied()),
                    Keyword::Required(names) => said.required.push(names.clone()),
                    Keyword::Properties(map) => said.maps.push(map.clone()),
                    _ => {}
                }
            }
            at += 1;
        }
        said
    }

    /// Returns `true` if a map allows no value of a key, for an obvious reason.
    fn forbids(&self, map: &KeyMap, name: &Rc<str>) -> bool {
        let node = match map.index.get(name) {
            Some(&node) => Some(node),
            None if map.patterns.is_empty() => map.additional,
            None => None,
        };
        node.is_some_and(|node| self.is_never(Literal::yes(node)))
    }

    /// Adds the values that a literal lists; returns `None` if it has other constraints that kinds do not
    /// express.
    fn list<'t>(&'t self, literal: Literal, lists: &mut Lists<'t>) -> Option<()> {
        let mut node = literal.node;
        for _ in 0..REFERENCES {
            let keywords = &self.tree.node(node).keywords[..];
            if let [(_, Keyword::Ref(reference))] = keywords {
                node = self.tree.target(*reference);
                continue;
            }
            if !literal.sign {
                let [(_, Keyword::Values(values))] = keywords else {
                    return None;
                };
                lists.unwanted.push(values);
                return Some(());
            }
            for (_, keyword) in keywords {
                match keyword {
                    Keyword::Values(values) => lists.wanted.push(values),
                    // The kinds already express it, unless it splits the numbers.
                    Keyword::Type { types, .. } if types.has(Kind::Number) || !types.has_integers() => {}
                    _ => return None,
                }
            }
            return Some(());
        }
        None
    }
}

impl Lists<'_> {
    /// Returns `true` if no value of these kinds is wanted by all lists and unwanted by none.
    fn is_empty(&self, kinds: Kinds) -> Option<bool> {
        let Some((first, others)) = self.wanted.split_first() else {
            // Lists are finite, and these kinds of value are not.
            let endless = [Kind::Number, Kind::String, Kind::Array, Kind::Object];
            return endless.into_iter().any(|kind| kinds.has(kind)).then_some(false);
        };
        let structured = |kind, list: &[_]| kinds.has(kind) && !list.is_empty();
        if structured(Kind::Array, &first.arrays) || structured(Kind::Object, &first.objects) {
            return None;
        }
        let stays = |of: &dyn Fn(&Values) -> bool| {
            others.iter().all(|values| of(values)) && !self.unwanted.iter().any(|values| of(values))
        };
        let has = |values: &Values, kind| match kind {
            Kind::Null => values.null,
            Kind::False => values.no,
            _ => values.yes,
        };
        let constant = [Kind::Null, Kind::False, Kind::True]
            .into_iter()
            .any(|kind| kinds.has(kind) && has(first, kind) && stays(&|values| has(values, kind)));
        let string = |text: &Rc<str>| stays(&|values| values.strings.contains(text));
        let number = |number: &Decimal| stays(&|values| values.numbers.contains(number));
        let some = constant
            || kinds.has(Kind::String) && first.strings.iter().any(string)
            || kinds.has(Kind::Number) && first.numbers.iter().any(number);
        Some(!some)
    }
}
