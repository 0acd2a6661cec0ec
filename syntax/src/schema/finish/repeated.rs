//! Arrays that have some two equal items: the denial of `uniqueItems`.
//!
//! Which value comes twice is found in two ways.
//!
//! * *Value by value*, where the items have few: one way for each value of which two items are wanted at least, like
//!   `contains` with `minContains: 2`. It may stand anywhere, in any spelling, and be of any kind.
//! * *By its text*, where the items after those with places of their own have many values: the machine remembers the items
//!   that were written and sees one come again. This is exact for scalars. Beside demands that some items satisfy
//!   something, it is not done.
//!
//! What neither finds is left out and noted: a value that comes again only in places that have endlessly many values of
//! their own, beside such a demand, or as an array or object that is no small regular language. Instead of all of these, a
//! few plain values are tried one by one.

use std::rc::Rc;

use crate::schema::decimal::Decimal;
use crate::schema::forms::{Array, GoalId, Literal, NumberShape};
use crate::schema::node::{Keyword, Kind, Node, NodeId, Types, Values, Whole};
use crate::schema::normal::{Algebra, NODE_BYTES};
use crate::schema::shape::{ArrayShape, SomeItems};

/// The most scalars that are wanted one by one; more are left to their texts.
const FEW: usize = 8;

/// The most values that are wanted one by one.
const MOST_VALUES: usize = 48;

/// Why some arrays with equal items are left out.
const TOO_MANY: &str = "only the first 48 values that may be repeated are tried";
const PLACES: &str = "of items of `prefixItems` with many values, only a few plain ones (`null`, `0`, `\"a\"`, `{}`) are repeated";
const DEMANDS: &str =
    "together with `contains`, only a few plain values (`null`, `0`, `\"a\"`, `{}`) are repeated";
const STRUCTURES: &str = "arrays and objects are repeated only if they are empty, or if all that are allowed form a small regular \
    language, with their keys in the order of the schema";
const MULTIPLES: &str = "of multiples, only those next to 0 and to a lower bound are repeated";

/// What is collected of an array with equal items.
#[derive(Default)]
struct Plan {
    /// The values that are wanted twice, one by one.
    values: Vec<Literal>,
    /// Whether items after the leading places are compared by their texts.
    by_text: bool,
    /// Why there may be other arrays with equal items, if there may.
    left_out: Option<&'static str>,
}

impl Algebra<'_> {
    /// The arrays of a shape of which two items are equal; see the module.
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
        if plan.by_text {
            arrays.extend(self.repeated_by_text(shape, node));
        }
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

    fn plan_repeated(&mut self, shape: &ArrayShape) -> Plan {
        let mut plan = Plan::default();
        let most = usize::try_from(shape.max.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
        let mut endless = 0;
        for place in shape.prefix.iter().take(most) {
            match self.listed_values(place) {
                Some(values) => plan.values.extend(values),
                None => endless += 1,
            }
        }
        if most > shape.prefix.len() && !shape.rest.iter().any(|literal| self.is_never(*literal)) {
            self.plan_rest(shape, endless > 0, &mut plan);
        }
        if endless > 1 {
            plan.left_out = Some(PLACES);
        }
        if plan.left_out.is_some() {
            plan.values.extend(self.plain_values(shape));
        }
        plan
    }

    /// Looks at the items after the leading places, of which some may be endless.
    fn plan_rest(&mut self, shape: &ArrayShape, endless: bool, plan: &mut Plan) {
        let rest = self.goals.intern(shape.rest.clone());
        let structured = self.has_structure(rest);
        let alone = shape.some.is_empty();
        match self.listed_values(&shape.rest) {
            Some(values) if structured || values.len() <= FEW || !alone => plan.values.extend(values),
            Some(values) => {
                plan.by_text = true;
                // One of them may be in an endless place as well.
                plan.values.extend(values.into_iter().filter(|_| endless));
            }
            None => {
                plan.by_text = alone;
                let reasons = [
                    (!alone, DEMANDS),
                    (endless, PLACES),
                    (structured, STRUCTURES),
                    (self.has_multiples(rest), MULTIPLES),
                ];
                plan.left_out = reasons.into_iter().find(|(there, _)| *there).map(|(_, why)| why);
            }
        }
    }

    /// The arrays of which an item after the leading places comes again there.
    fn repeated_by_text(&mut self, shape: &ArrayShape, node: NodeId) -> Option<Array> {
        let least = shape.min.max(shape.prefix.len() as u64 + 2);
        shape.max.is_none_or(|max| least <= max).then_some(())?;
        let array = self.finish_counted(shape)?;
        Some(Array {
            repeated: Some(node),
            min: least,
            ..array
        })
    }

    /// Whether a goal may have arrays or objects.
    fn has_structure(&mut self, goal: GoalId) -> bool {
        let mut kinds = self.kinds_of_goal(goal);
        kinds.any(|kind| matches!(kind, Kind::Array | Kind::Object))
            && self
                .nested_normal(goal)
                .is_none_or(|normal| !normal.arrays.is_empty() || !normal.objects.is_empty())
    }

    /// Whether a goal may have numbers that are told by counting.
    fn has_multiples(&mut self, goal: GoalId) -> bool {
        let normal = self.nested_normal(goal);
        normal.is_none_or(|normal| normal.numbers.iter().any(NumberShape::is_counted))
    }

    /// Values among which are all that satisfy the literals, each as a schema; `None` where they are not listed.
    fn listed_values(&mut self, literals: &[Literal]) -> Option<Vec<Literal>> {
        let goal = self.goals.intern(literals.to_vec());
        let values = match self.finite_scalars(goal) {
            Some(values) => values,
            None => literals.iter().find_map(|literal| self.values_of(*literal))?,
        };
        Some(values.into_iter().map(|value| self.constant(value)).collect())
    }

    /// What a schema lists, if it is a list of values or leads to one.
    fn values_of(&self, literal: Literal) -> Option<Vec<Values>> {
        self.list_of(literal).map(|values| one_by_one(&values))
    }

    /// Some value of each kind, and of the multiples that the items may be.
    fn plain_values(&mut self, shape: &ArrayShape) -> Vec<Literal> {
        let rest = self.goals.intern(shape.rest.clone());
        let normal = self.nested_normal(rest).unwrap_or_default();
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

    /// A schema of the value of a kind that has no parts.
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

/// Each value of a list alone.
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
