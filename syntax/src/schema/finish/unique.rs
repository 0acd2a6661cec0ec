//! Arrays whose items differ.
//!
//! Each scalar of a finite set is used at most once. If leading items have their own places, the values of
//! the places are tried one by one, and the items after them must differ from them. Everything else is
//! decided by the spelling of the items.

use std::rc::Rc;

use foldhash::{HashSet, HashSetExt};

use crate::schema::forms::{Array, GoalId, Literal, Way};
use crate::schema::node::{NodeId, Values};
use crate::schema::normal::Algebra;
use crate::schema::shape::ArrayShape;

/// The most ways to assign distinct values to the leading places.
const MOST_CHOICES: usize = 256;

/// A scalar as a goal, and its text among unique items.
type Scalar = (GoalId, Box<[u8]>);

impl Algebra<'_> {
    /// Returns the arrays of a shape whose items differ; see the module docs.
    pub(crate) fn finish_unique(&mut self, shape: &ArrayShape, node: NodeId) -> Vec<Array> {
        if !shape.prefix.is_empty() {
            return self.finish_unique_places(shape, node);
        }
        let additional = self.goals.intern(shape.additional.clone());
        if shape.some.is_empty()
            && let Some(values) = self.finite_scalars(additional)
        {
            return self.distinct_values(shape, values).into_iter().collect();
        }
        self.note_spellings(additional, node);
        let arrays = self.finish_counted(shape).into_iter();
        arrays
            .map(|array| Array {
                unique: Some(node),
                ..array
            })
            .collect()
    }

    /// Adds a note on how arrays and objects are distinguished, if some items are arrays or objects.
    /// Restricting numbers and strings to one spelling leaves out no value.
    fn note_spellings(&mut self, items: GoalId, node: NodeId) {
        // If the items are such arrays themselves, their form is not known yet, but it is known that they are
        // arrays.
        let normal = self.nested_normal(items);
        if normal.is_none_or(|normal| !normal.arrays.is_empty() || !normal.objects.is_empty()) {
            let message = "some arrays of unique items are left out: of two or more items, arrays and objects have one spelling each, \
                with keys in the order of the schema, and differ in what comes first in them";
            self.note(node, "uniqueItems", message);
        }
    }

    fn distinct_values(&mut self, shape: &ArrayShape, values: Vec<Values>) -> Option<Array> {
        let distinct: Vec<GoalId> = values.into_iter().map(|values| self.scalar(values).0).collect();
        let max = shape.max.unwrap_or(u64::MAX).min(distinct.len() as u64);
        (shape.min <= max).then_some(Array {
            distinct,
            min: shape.min,
            max: Some(max),
            ..Array::default()
        })
    }

    /// Handles shapes whose first items have their own places.
    fn finish_unique_places(&mut self, shape: &ArrayShape, node: NodeId) -> Vec<Array> {
        let most = usize::try_from(shape.max.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
        let ends =
            most <= shape.prefix.len() || shape.additional.iter().any(|literal| self.is_never(*literal));
        if ends && self.places_differ(shape) {
            return self.finish_counted(shape).into_iter().collect();
        }
        let mut arrays = Vec::new();
        if shape.min <= 1 {
            let mut short = shape.clone();
            short.max = Some(1);
            arrays.extend(self.finish_counted(&short));
        }
        match self.places_by_value(shape, node, most) {
            Some(by_value) => {
                if !ends {
                    let additional = self.goals.intern(shape.additional.clone());
                    self.note_spellings(additional, node);
                }
                arrays.extend(by_value);
            }
            None if shape.min > 1 => {
                let message = "`uniqueItems` is not supported here: the items of `prefixItems` have too many values to compare";
                self.unsupported(node, "uniqueItems", message);
            }
            None => {
                let message =
                    "at most one item is allowed: the items of `prefixItems` have too many values to compare";
                self.note(node, "uniqueItems", message);
            }
        }
        arrays
    }

    /// Returns `true` if no value fits in two places, because their kinds differ.
    fn places_differ(&mut self, shape: &ArrayShape) -> bool {
        let mut seen = 0u8;
        for literals in &shape.prefix {
            let goal = self.goals.intern(literals.clone());
            let Some(normal) = self.nested_normal(goal) else {
                return false;
            };
            let kinds = normal.kinds();
            if seen & kinds != 0 {
                return false;
            }
            seen |= kinds;
        }
        true
    }

    /// Returns the arrays of two or more items, one for each choice of values for the leading places.
    fn places_by_value(&mut self, shape: &ArrayShape, node: NodeId, most: usize) -> Option<Vec<Array>> {
        if !shape.some.is_empty() {
            return None;
        }
        let mut chosen: Vec<Vec<Scalar>> = vec![Vec::new()];
        let mut arrays = Vec::new();
        for (at, literals) in shape.prefix.iter().take(most).enumerate() {
            let goal = self.goals.intern(literals.clone());
            let values = self.finite_scalars(goal)?;
            let values: Vec<Scalar> = values.into_iter().map(|values| self.scalar(values)).collect();
            let mut longer = Vec::new();
            for list in &chosen {
                let new = values
                    .iter()
                    .filter(|(_, text)| !list.iter().any(|(_, known)| known == text));
                longer.extend(new.map(|value| [&list[..], std::slice::from_ref(value)].concat()));
            }
            if longer.len() > MOST_CHOICES {
                return None;
            }
            chosen = longer;
            let (count, full) = (at as u64 + 1, at + 1 == shape.prefix.len());
            if full {
                arrays.extend(
                    chosen
                        .iter()
                        .filter_map(|list| self.after_values(shape, list, node)),
                );
            } else if count > 1 && count >= shape.min {
                arrays.extend(chosen.iter().map(|list| just_values(list)));
            }
        }
        Some(arrays)
    }

    /// Returns the arrays that begin with these values, which fill all leading places.
    fn after_values(&mut self, shape: &ArrayShape, list: &[Scalar], node: NodeId) -> Option<Array> {
        let mut after = shape.clone();
        after.prefix.clear();
        let array = self.finish_counted(&after)?;
        let mut taken: Vec<Box<[u8]>> = list.iter().map(|(_, text)| text.clone()).collect();
        taken.sort_unstable();
        let least = list.len().max(2) as u64;
        shape.max.is_none_or(|max| least <= max).then(|| Array {
            prefix: just_values(list).prefix,
            unique: Some(node),
            taken,
            min: shape.min.max(least),
            ..array
        })
    }

    fn scalar(&mut self, values: Values) -> Scalar {
        let text = text_of(&values).into_bytes().into();
        let literal: Literal = self.constant(values);
        (self.goals.intern(vec![literal]), text)
    }

    /// Returns each value of a goal, if there are finitely many and all are scalars.
    pub(crate) fn finite_scalars(&mut self, goal: GoalId) -> Option<Vec<Values>> {
        let normal = self.nested_normal(goal)?;
        if !normal.arrays.is_empty() || !normal.objects.is_empty() {
            return None;
        }
        let mut values = Vec::new();
        let mut add = |there: bool, value: Values| values.extend(there.then_some(value));
        let (null, no, yes) = (true, true, true);
        add(
            normal.null,
            Values {
                null,
                ..Values::default()
            },
        );
        add(
            normal.no,
            Values {
                no,
                ..Values::default()
            },
        );
        add(
            normal.yes,
            Values {
                yes,
                ..Values::default()
            },
        );
        let mut numbers = Vec::new();
        let mut seen = HashSet::new();
        for shape in &normal.numbers {
            let only = shape.only.as_ref().filter(|_| shape.plain.is_none())?;
            numbers.extend(only.iter().filter(|number| seen.insert(*number)).cloned());
        }
        let mut strings: Vec<Rc<str>> = Vec::new();
        let mut seen = HashSet::new();
        for shape in &normal.strings {
            let only = shape.only.as_ref()?.iter();
            strings.extend(only.filter(|string| seen.insert(*string)).cloned());
        }
        values.extend(numbers.into_iter().map(|number| Values {
            numbers: vec![number],
            ..Values::default()
        }));
        values.extend(strings.into_iter().map(|string| Values {
            strings: vec![string],
            ..Values::default()
        }));
        Some(values)
    }
}

/// Returns an array of exactly these values.
fn just_values(list: &[Scalar]) -> Array {
    let way = |&(goal, _): &Scalar| vec![Way { goal, meets: 0 }];
    Array {
        prefix: list.iter().map(way).collect(),
        min: list.len() as u64,
        max: Some(list.len() as u64),
        ..Array::default()
    }
}

/// Returns the spelling of a single scalar among items that must differ.
fn text_of(values: &Values) -> String {
    let constant = [(values.null, "null"), (values.no, "false"), (values.yes, "true")];
    if let Some((_, text)) = constant.iter().find(|(there, _)| *there) {
        return (*text).to_owned();
    }
    match (values.numbers.first(), values.strings.first()) {
        (Some(number), _) => number.to_string(),
        (None, string) => serde_json::Value::from(string.map_or("", |string| &**string)).to_string(),
    }
}
