//! Decides implications and conditions about the values of one key by branching on that key.
//!
//! "If there is an `analyzer`, the `type` is one of these" is a choice between an object without `analyzer`
//! and one with it, and twenty such choices are a million objects. But once the `type` is known, each choice
//! is decided: either the key may be present or absent, or it must be absent. So if several keys depend on
//! the value of the same key, that value is chosen first, as far as they distinguish its values.
//!
//! ```text
//!   a ⇒ type ∈ {x, y}      type absent, or x:     a and b are optional
//!   b ⇒ type ∈ {x}         type = y:              a is optional, no b
//!                          type anything else:    neither
//! ```
//!
//! The same applies to a list of "if the `kind` is this, then …", which is how unions are written without
//! `oneOf`: once the `kind` is known, all conditions but one are known to fail, and need not be denied. A
//! condition may require values of other keys, too; if it requires another `kind`, they do not matter.
//!
//! The cases exclude one another and cover everything, whatever else is required of the object.
//!
//! Seventeen dependencies that list values of one `type` used to be 2,615 alternatives, and are now the
//! twelve cases of that `type`. Seventy conditions of the form "if `kind` is this, then" used to exceed the
//! fuel.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::schema::forms::Literal;
use crate::schema::node::{KeyMap, Keyword, Kind, NodeId, Values};
use crate::schema::shape::{ObjectShape, ObjectStep, Step, push_new};

use super::algebra::{Algebra, Cases};

/// The most implications about one key that are left to be decided by their own choices.
const FEW_IMPLICATIONS: usize = 2;

/// The most keys whose values a condition may require; one that requires more is decided by its own choice. A
/// key decides the consequence of an implication only if the consequence mentions no other key.
const FEW_KEYS: usize = 4;

/// The most implications and values that are examined together.
const MOST_LISTS: usize = 1_000;
const MOST_VALUES: usize = 1_000;

/// A choice that the value of a key may decide.
#[derive(Clone, Copy)]
pub(super) enum Decision {
    /// This schema holds if a key is present.
    Implication(NodeId),
    /// If this schema holds, one thing follows, and otherwise another.
    Condition(NodeId),
}

impl Decision {
    /// Returns the decision between these ways, if there is one.
    pub(super) fn of(ways: &[Vec<Step>]) -> Option<Decision> {
        let implied = implication(ways).map(Decision::Implication);
        implied.or_else(|| condition(ways).map(Decision::Condition))
    }
}

/// The outcome of an implication's consequence, or of a condition, for an object.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Decided {
    /// The schema holds.
    Holds,
    /// It cannot hold.
    Impossible,
    /// Neither is known yet.
    Open,
}

/// Returns the schema that holds if a key is present, if these ways are such an implication.
fn implication(ways: &[Vec<Step>]) -> Option<NodeId> {
    let [absent, present] = ways else { return None };
    let (
        [Step::Object(ObjectStep::Absent(key))],
        [Step::Object(ObjectStep::Require(needed)), Step::Literal(then)],
    ) = (&absent[..], &present[..])
    else {
        return None;
    };
    (key == needed && then.sign).then_some(then.node)
}

/// Returns the schema of a condition, if one way affirms it and the other denies it.
fn condition(ways: &[Vec<Step>]) -> Option<NodeId> {
    let [holds, fails] = ways else { return None };
    let (Some(Step::Literal(asked)), Some(Step::Literal(denied))) = (holds.first(), fails.first()) else {
        return None;
    };
    (asked.node == denied.node && asked.sign && !denied.sign).then_some(asked.node)
}

impl Algebra<'_> {
    /// Returns the cases of a key whose value decides many of these decisions, excluding the keys in
    /// `decided`, or `None` if there is no such key.
    pub(super) fn discriminate(
        &mut self,
        decisions: &[Decision],
        decided: &[Rc<str>],
    ) -> Option<(Rc<str>, Cases)> {
        if decisions.len() <= FEW_IMPLICATIONS {
            return None;
        }
        let mut lists: FxHashMap<Rc<str>, Vec<NodeId>> = FxHashMap::default();
        let mut most: Option<(Rc<str>, usize)> = None;
        for &decision in decisions {
            for (name, child) in self.few_values(decision) {
                if decided.contains(name) || self.scalars(*child).is_none() {
                    continue;
                }
                let list = lists.entry(name.clone()).or_default();
                list.push(*child);
                if most.as_ref().is_none_or(|(_, length)| list.len() > *length) {
                    most = Some((name.clone(), list.len()));
                }
            }
        }
        let (name, _) = most.filter(|(_, length)| (FEW_IMPLICATIONS + 1..=MOST_LISTS).contains(length))?;
        let lists = lists.remove(&name)?;
        let key = (name, lists);
        let cases = match self.cases.get(&key) {
            Some(known) => known.clone(),
            None => {
                let cases = self.find_cases(&key.0, &key.1)?;
                self.cases.insert(key.clone(), cases.clone());
                cases
            }
        };
        Some((key.0, cases))
    }

    /// Returns the cases of a key whose values these schemas list, or `None` if there are too many.
    fn find_cases(&mut self, name: &Rc<str>, lists: &[NodeId]) -> Option<Cases> {
        let lists: Vec<Rc<Values>> = lists.iter().filter_map(|&node| self.scalars(node)).collect();
        let counts = lists
            .iter()
            .map(|values| values.numbers.len() + values.strings.len());
        if counts.sum::<usize>() > MOST_VALUES {
            return None;
        }
        let mut ways = vec![vec![Step::Object(ObjectStep::Absent(name.clone()))]];
        let all = self.constant(together(&lists));
        for class in classes(&lists) {
            ways.push(with_value(name, self.constant(class)));
        }
        ways.push(with_value(name, all.denied()));
        Some(ways.into())
    }

    /// Returns the outcome of a schema for an object.
    pub(super) fn decide(&mut self, shape: &ObjectShape, consequence: NodeId) -> Decided {
        let keywords = self.tree.node(consequence).keywords.clone();
        let holds = keywords.iter().all(|(_, keyword)| match keyword {
            Keyword::Properties(map) => self.keys_are_fine(shape, map),
            Keyword::Type { types, .. } => types.has(Kind::Object),
            Keyword::Required(names) => names.iter().all(|name| shape.required.contains(name)),
            _ => false,
        });
        if holds {
            Decided::Holds
        } else if self.rules_out(shape, consequence) {
            Decided::Impossible
        } else {
            Decided::Open
        }
    }

    /// Returns `true` if each key of a map is absent from an object, or has a value that the map allows.
    fn keys_are_fine(&mut self, shape: &ObjectShape, map: &KeyMap) -> bool {
        let is_fine = |(name, child): &(Rc<str>, NodeId)| {
            let mut said = shape.values.iter().filter(|(key, _)| key == name);
            shape.absent.contains(name)
                || said.any(|&(_, value)| {
                    let beyond = [value, Literal::new(*child, false)];
                    self.is_empty_at_a_glance(&beyond) == Some(true)
                })
        };
        map.patterns.is_empty() && map.additional.is_none() && map.named.iter().all(is_fine)
    }

    /// Returns the keys whose values the schema of a decision constrains, with their schemas, if they are
    /// few.
    fn few_values(&self, decision: Decision) -> &[(Rc<str>, NodeId)] {
        let (node, most) = match decision {
            Decision::Implication(then) => (then, 1),
            Decision::Condition(asked) => (asked, FEW_KEYS),
        };
        let mut keywords = self.tree.node(node).keywords.iter();
        let named = keywords.find_map(|(_, keyword)| match keyword {
            Keyword::Properties(map) => Some(&map.named[..]),
            _ => None,
        });
        named.filter(|named| named.len() <= most).unwrap_or(&[])
    }

    /// Returns the values that a schema lists, if none of them is an array or an object.
    pub(super) fn scalars(&self, node: NodeId) -> Option<Rc<Values>> {
        let literal = Literal::yes(node);
        let values = self.list_of(literal).filter(|_| self.lists_values(literal))?;
        (values.arrays.is_empty() && values.objects.is_empty()).then_some(values)
    }
}

fn with_value(name: &Rc<str>, value: Literal) -> Vec<Step> {
    vec![
        Step::Object(ObjectStep::Require(name.clone())),
        Step::Object(ObjectStep::Value(name.clone(), value)),
    ]
}

/// Returns all values of the lists.
fn together(lists: &[Rc<Values>]) -> Values {
    let mut all = Values::default();
    for values in lists {
        add(&mut all, values);
    }
    all
}

/// Groups the values of the lists by the lists that contain them.
fn classes(lists: &[Rc<Values>]) -> Vec<Values> {
    let mut places: FxHashMap<Vec<usize>, usize> = FxHashMap::default();
    let mut classes: Vec<Values> = Vec::new();
    for value in singles(&together(lists)) {
        let stands_in = (0..lists.len())
            .filter(|&at| covers(&lists[at], &value))
            .collect();
        let place = *places.entry(stands_in).or_insert_with(|| {
            classes.push(Values::default());
            classes.len() - 1
        });
        add(&mut classes[place], &value);
    }
    classes
}

fn add(values: &mut Values, more: &Values) {
    values.null |= more.null;
    values.no |= more.no;
    values.yes |= more.yes;
    for number in &more.numbers {
        push_new(&mut values.numbers, number.clone());
    }
    for text in &more.strings {
        push_new(&mut values.strings, text.clone());
    }
}

/// Splits values into single values.
fn singles(values: &Values) -> Vec<Values> {
    let none = Values::default;
    let constants = [
        Values {
            null: values.null,
            ..none()
        },
        Values {
            no: values.no,
            ..none()
        },
        Values {
            yes: values.yes,
            ..none()
        },
    ];
    let constants = constants.into_iter().filter(|one| one.null || one.no || one.yes);
    let numbers = values.numbers.iter().map(|number| Values {
        numbers: vec![number.clone()],
        ..none()
    });
    let strings = values.strings.iter().map(|text| Values {
        strings: vec![text.clone()],
        ..none()
    });
    constants.chain(numbers).chain(strings).collect()
}

/// Returns `true` if all of the others are among the values.
fn covers(values: &Values, others: &Values) -> bool {
    (values.null || !others.null)
        && (values.no || !others.no)
        && (values.yes || !others.yes)
        && others
            .numbers
            .iter()
            .all(|number| values.numbers.contains(number))
        && others.strings.iter().all(|text| values.strings.contains(text))
}
