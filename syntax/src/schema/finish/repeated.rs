//! Arrays with two equal items: the denial of `uniqueItems`.
//!
//! There is one alternative for each value that may be repeated. It demands two items of that value, like
//! `contains` with `minContains: 2`. The items may be anywhere, in any spelling, and of any kind. If items
//! have too many values to list, a few plain ones are tried, and a note at the keyword says that others are
//! left out.
//!
//! # Why values are listed
//!
//! A machine that remembers the items written so far could recognise the repetition of any scalar. It took a
//! separate kind of frame and branches in 24 files, but no schema of the examined collections denies
//! `uniqueItems`.

use std::rc::Rc;

use crate::schema::decimal::Decimal;
use crate::schema::forms::{Array, GoalId, Literal};
use crate::schema::node::{Keyword, Kind, Node, NodeId, Types, Values, Whole};
use crate::schema::normal::{Algebra, NODE_BYTES};
use crate::schema::shape::{ArrayShape, SomeItems};

/// The most values that are repeated one by one.
const MOST_VALUES: usize = 48;

/// The reasons why some arrays with equal items are left out.
const TOO_MANY: &str = "only the first 48 values that may be repeated are tried";
const MANY_VALUES: &str =
    "of items with many values, only a few plain ones (`null`, `0`, `\"a\"`, `{}`) are repeated";

/// The plan for arrays with equal items.
#[derive(Default)]
struct RepeatedValues {
    /// The values that are repeated one by one.
    values: Vec<Literal>,
    /// The reason why other arrays with equal items may be left out, if there is one.
    left_out: Option<&'static str>,
}

impl Algebra<'_> {
    /// Returns the arrays of a shape that have two equal items; see the module docs.
    pub(crate) fn finish_repeated(&mut self, shape: &ArrayShape, node: NodeId, goal: GoalId) -> Vec<Array> {
        let mut plan = self.plan_repeated(shape);
        if plan.values.len() > MOST_VALUES {
            plan.values.truncate(MOST_VALUES);
            plan.left_out = Some(TOO_MANY);
        }
        if let Some(why) = plan.left_out {
            self.truncated.insert(goal);
            let message = format!("some arrays with equal items are left out: {why}");
            self.note(node, "uniqueItems", &message);
        }
        let mut arrays = Vec::new();
        for literal in plan.values {
            let mut twice = shape.clone();
            twice.some.push(SomeItems {
                literal,
                from: 0,
                min: 2,
                max: None,
                source: (node, "uniqueItems"),
            });
            arrays.extend(self.finish_counted(&twice));
        }
        arrays
    }

    fn plan_repeated(&mut self, shape: &ArrayShape) -> RepeatedValues {
        let mut plan = RepeatedValues::default();
        let most = usize::try_from(shape.max.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
        let mut endless = 0;
        for place in shape.prefix.iter().take(most) {
            match self.listed_values(place) {
                Some(values) => plan.values.extend(values),
                None => endless += 1,
            }
        }
        if most > shape.prefix.len() && !shape.additional.iter().any(|literal| self.is_never(*literal)) {
            match self.listed_values(&shape.additional) {
                Some(values) => plan.values.extend(values),
                // Two of these items may be equal to each other, without an item of `prefixItems`.
                None => endless += 2,
            }
        }
        if endless > 1 {
            plan.left_out = Some(MANY_VALUES);
            plan.values.extend(self.plain_values(shape));
        }
        plan
    }

    /// Returns a list of values, each as a schema, that includes all values that satisfy the literals, or
    /// `None` if they cannot be listed.
    fn listed_values(&mut self, literals: &[Literal]) -> Option<Vec<Literal>> {
        let goal = self.goals.intern(literals.to_vec());
        let values = match self.finite_scalars(goal) {
            Some(values) => values,
            None => literals.iter().find_map(|literal| self.values_of(*literal))?,
        };
        Some(values.into_iter().map(|value| self.constant(value)).collect())
    }

    /// Returns the values that a schema lists, if it is a list of values or leads to one.
    fn values_of(&self, literal: Literal) -> Option<Vec<Values>> {
        self.list_of(literal).map(|values| one_by_one(&values))
    }

    /// Returns one value of each kind, and one of the multiples that the items may be.
    fn plain_values(&mut self, shape: &ArrayShape) -> Vec<Literal> {
        let additional = self.goals.intern(shape.additional.clone());
        let normal = self.nested_normal(additional).unwrap_or_default();
        let multiples = normal.numbers.iter().filter_map(|shape| {
            let (step, zero) = (shape.step.as_ref()?, Decimal::zero());
            let from = shape.lower.as_ref().map_or(&zero, |bound| &bound.value);
            let near = step.multiples_from(from, false, 3)?;
            near.into_iter().find(|number| shape.contains(number))
        });
        let numbers = multiples.chain([Decimal::zero(), Decimal::one()]).collect();
        let mut values = one_by_one(&Values {
            null: true,
            no: true,
            yes: true,
            numbers,
            strings: vec!["".into(), "a".into()],
            ..Values::default()
        });
        values.push(Values {
            arrays: vec![self.empty(Kind::Array, Keyword::MaxItems(0))],
            ..Values::default()
        });
        values.push(Values {
            objects: vec![self.empty(Kind::Object, Keyword::MaxProperties(0))],
            ..Values::default()
        });
        values.into_iter().map(|value| self.constant(value)).collect()
    }

    /// Returns a schema for the value of a kind that has no parts.
    fn empty(&mut self, kind: Kind, no_parts: Keyword) -> NodeId {
        let only = Keyword::Type {
            types: Types::only(kind),
            whole: Whole::Value,
        };
        self.reserve(NODE_BYTES, None);
        let id = NodeId(self.tree.nodes.len() as u32);
        self.tree.nodes.push(Node {
            parent: None,
            segment: "".into(),
            keywords: Rc::new(vec![("", only), ("", no_parts)]),
        });
        id
    }
}

/// Splits a list of values into single values.
fn one_by_one(values: &Values) -> Vec<Values> {
    let none = Values::default;
    let constants = [
        (values.null, Values { null: true, ..none() }),
        (values.no, Values { no: true, ..none() }),
        (values.yes, Values { yes: true, ..none() }),
    ];
    let constants = constants.into_iter().filter(|(there, _)| *there);
    let mut single: Vec<Values> = constants.map(|(_, value)| value).collect();
    single.extend(values.numbers.iter().map(|number| Values {
        numbers: vec![number.clone()],
        ..none()
    }));
    single.extend(values.strings.iter().map(|string| Values {
        strings: vec![string.clone()],
        ..none()
    }));
    single.extend(values.arrays.iter().map(|&array| Values {
        arrays: vec![array],
        ..none()
    }));
    single.extend(values.objects.iter().map(|&object| Values {
        objects: vec![object],
        ..none()
    }));
    single
}
