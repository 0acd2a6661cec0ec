//! Complements: what a keyword asks of values of a kind where it does *not* hold.
//!
//! A keyword about one kind of value holds for every other kind, so its denial asks that the value be of that kind:
//! for other kinds there is no way at all.

use std::rc::Rc;

use crate::schema::goal::Literal;
use crate::schema::node::{Dependency, KeyMap, Keyword, Kind, NodeId};

use super::Algebra;
use super::expand::Demand;
use super::step::{ArrayStep, KeyClass, MapRef, ObjectStep, SomeItems, SomeKey, Step};

fn denied(node: NodeId) -> Step {
    Step::Literal(Literal::new(node, false))
}

impl Algebra<'_> {
    /// What the denial of a keyword asks of values of a kind.
    pub(super) fn deny(&mut self, node: NodeId, name: &'static str, keyword: &Keyword, kind: Kind) -> Demand {
        let affirmed = |node: NodeId| Step::Literal(Literal::yes(node));
        match keyword {
            Keyword::Never => Demand::nothing(),
            Keyword::Ref(reference) => Demand::one(denied(self.tree.target(*reference))),
            Keyword::AllOf(list) => Demand::any(list.iter().map(|&node| vec![denied(node)]).collect()),
            Keyword::AnyOf(list) => Demand::All(list.iter().copied().map(denied).collect()),
            Keyword::OneOf(list) => self.not_exactly_one(list, kind),
            Keyword::Not(child) => Demand::one(affirmed(*child)),
            Keyword::If {
                condition,
                then,
                otherwise,
            } => {
                let way = |sign: bool, next: NodeId| {
                    vec![Step::Literal(Literal::new(*condition, sign)), denied(next)]
                };
                let then = then.map(|next| way(true, next));
                Demand::any(
                    then.into_iter()
                        .chain(otherwise.map(|next| way(false, next)))
                        .collect(),
                )
            }
            Keyword::Type { types, whole } => super::number::not_type_demand(*types, *whole, kind),
            Keyword::Values(values) => super::values::not_among(values, kind),
            Keyword::Minimum { .. } | Keyword::Maximum { .. } | Keyword::MultipleOf(_) => {
                only(kind, Kind::Number, || super::number::deny(keyword))
            }
            Keyword::MinLength(_) | Keyword::MaxLength(_) => {
                only(kind, Kind::String, || super::string::deny(keyword))
            }
            Keyword::Text(set) => only(kind, Kind::String, || self.deny_text(set)),
            Keyword::AnyText(sets) => only(kind, Kind::String, || {
                let none = sets.iter().map(|set| self.deny_text(set));
                none.reduce(Demand::and).unwrap_or_else(Demand::nothing)
            }),
            Keyword::Items { .. }
            | Keyword::MinItems(_)
            | Keyword::MaxItems(_)
            | Keyword::Contains { .. }
            | Keyword::UniqueItems => only(kind, Kind::Array, || deny_array(node, name, keyword)),
            Keyword::UnevaluatedItems(child) => {
                only(kind, Kind::Array, || self.deny_unevaluated(node, *child, kind))
            }
            Keyword::UnevaluatedProperties(child) => {
                only(kind, Kind::Object, || self.deny_unevaluated(node, *child, kind))
            }
            _ => only(kind, Kind::Object, || self.deny_object(node, name, keyword)),
        }
    }

    /// None of the list holds, or at least two do.
    fn not_exactly_one(&mut self, list: &[NodeId], kind: Kind) -> Demand {
        let mut ways = vec![list.iter().copied().map(denied).collect()];
        for (first, rivals) in self.rivals(list, kind).into_iter().enumerate() {
            for second in rivals.into_iter().filter(|&second| second > first) {
                ways.push(vec![
                    Step::Literal(Literal::yes(list[first])),
                    Step::Literal(Literal::yes(list[second])),
                ]);
            }
        }
        Demand::any(ways)
    }
}

fn only(kind: Kind, wanted: Kind, demand: impl FnOnce() -> Demand) -> Demand {
    if kind == wanted { demand() } else { Demand::Never }
}

fn deny_array(node: NodeId, name: &'static str, keyword: &Keyword) -> Demand {
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
        Keyword::Items { prefix, rest } => {
            let places = prefix.iter().enumerate();
            let mut ways: Vec<Vec<Step>> = places
                .map(|(at, &node)| step(ArrayStep::At(at, Literal::new(node, false))))
                .collect();
            ways.extend(rest.map(|rest| some(Literal::new(rest, false), prefix.len(), 1, None)));
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

impl Algebra<'_> {
    fn deny_object(&self, node: NodeId, name: &'static str, keyword: &Keyword) -> Demand {
        let step = |step: ObjectStep| vec![Step::Object(step)];
        Demand::any(match keyword {
            Keyword::MinProperties(0) => Vec::new(),
            Keyword::MinProperties(count) => vec![step(ObjectStep::Max(count - 1))],
            Keyword::MaxProperties(count) => count
                .checked_add(1)
                .map(|count| step(ObjectStep::Min(count)))
                .into_iter()
                .collect(),
            Keyword::Properties(keys) => self.deny_keys(node, keys),
            Keyword::Required(names) => names
                .iter()
                .map(|name| step(ObjectStep::Absent(name.clone())))
                .collect(),
            Keyword::PropertyNames(child) => {
                let class = KeyClass::Names(Literal::new(*child, false));
                vec![step(ObjectStep::Some(SomeKey {
                    class,
                    value: None,
                    source: (node, name),
                }))]
            }
            Keyword::Dependent { key, then } => {
                let here = Step::Object(ObjectStep::Require(key.clone()));
                match then {
                    Dependency::Schema(child) => vec![vec![here, denied(*child)]],
                    Dependency::Keys(names) => {
                        let ways = names
                            .iter()
                            .map(|name| vec![here.clone(), Step::Object(ObjectStep::Absent(name.clone()))]);
                        ways.collect()
                    }
                }
            }
            _ => Vec::new(),
        })
    }

    fn deny_keys(&self, node: NodeId, keys: &Rc<KeyMap>) -> Vec<Vec<Step>> {
        let mut ways: Vec<Vec<Step>> = Vec::new();
        for (name, child) in &keys.named {
            let value = Literal::new(*child, false);
            if !self.is_never(value) {
                let here = Step::Object(ObjectStep::Require(name.clone()));
                ways.push(vec![here, Step::Object(ObjectStep::Value(name.clone(), value))]);
            }
        }
        let mut some = |class: KeyClass, child: NodeId, name: &'static str| {
            let value = Literal::new(child, false);
            if !self.is_never(value) {
                ways.push(vec![Step::Object(ObjectStep::Some(SomeKey {
                    class,
                    value: Some(value),
                    source: (node, name),
                }))]);
            }
        };
        for (text, child) in &keys.patterns {
            some(KeyClass::Text(text.clone()), *child, "patternProperties");
        }
        if let Some(child) = keys.additional {
            some(
                KeyClass::Other(MapRef(keys.clone())),
                child,
                "additionalProperties",
            );
        }
        ways
    }
}
