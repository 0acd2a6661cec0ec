//! Complements: what the denial of a keyword requires of values of one kind.
//!
//! A keyword for one kind of value holds for every other kind, so its denial requires a value of that kind:
//! for other kinds there are no ways at all.

use std::rc::Rc;

use crate::schema::forms::Literal;
use crate::schema::node::{Dependency, KeyMap, Keyword, Kind, NodeId};
use crate::schema::shape::{
    Demand, KeyClass, MapRef, ObjectStep, SomeKey, Step, StringStep, array, constant, number, string,
};
use crate::schema::text::{Text, TextId, TextSet, unrolled};

use super::algebra::Algebra;

fn denied(node: NodeId) -> Step {
    Step::Literal(Literal::new(node, false))
}

impl Algebra<'_> {
    /// Returns the demand of the denial of a keyword on values of a kind.
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
            Keyword::Type { types, whole } => number::not_type_demand(*types, *whole, kind),
            Keyword::Values(values) => constant::not_among(values, kind),
            Keyword::Minimum { .. } | Keyword::Maximum { .. } | Keyword::MultipleOf(_) => {
                only(kind, Kind::Number, || number::deny(keyword))
            }
            Keyword::MinLength(_) | Keyword::MaxLength(_) => {
                only(kind, Kind::String, || string::deny(keyword))
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
            | Keyword::UniqueItems => only(kind, Kind::Array, || array::deny(node, name, keyword)),
            Keyword::UnevaluatedItems(child) => {
                only(kind, Kind::Array, || self.deny_unevaluated(node, *child, kind))
            }
            Keyword::UnevaluatedProperties(child) => {
                only(kind, Kind::Object, || self.deny_unevaluated(node, *child, kind))
            }
            _ => only(kind, Kind::Object, || self.deny_object(node, name, keyword)),
        }
    }

    /// Demands that none of the list holds, or at least two.
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

    /// Demands the denial of a set of texts: that one of them fails.
    pub(crate) fn deny_text(&mut self, set: &TextSet) -> Demand {
        let step = |text: TextId, sign: bool| Step::String(StringStep::Text(text, sign));
        let mut ways = Vec::new();
        for &(text, sign) in self.texts.denied(set).iter() {
            let Text::Units { unit, min, max } = self.texts.text(text) else {
                ways.push(vec![step(text, !sign)]);
                continue;
            };
            if !sign {
                ways.push(vec![step(text, true)]);
                continue;
            }
            // The denial of a run of a certain number of units: no run at all, a shorter one, or a longer
            // one.
            let (unit, min, max) = (unit.clone(), *min, *max);
            let run = unrolled(&unit, 0, None);
            let run = run.map(|run| self.texts.add(Text::Match(run.into())));
            ways.extend(run.map(|run| vec![step(run, false)]));
            let mut counted = |min: u64, max: Option<u64>| {
                let text = self.texts.add(Text::Units {
                    unit: unit.clone(),
                    min,
                    max,
                });
                ways.push(vec![step(text, true)]);
            };
            if let Some(less) = min.checked_sub(1) {
                counted(0, Some(less));
            }
            if let Some(more) = max.and_then(|max| max.checked_add(1)) {
                counted(more, None);
            }
        }
        Demand::any(ways)
    }
}
