//! `enum` and `const` as demands.

use std::rc::Rc;

use crate::schema::forms::Literal;
use crate::schema::node::{Kind, NodeId, Values};

use super::demand::Demand;
use super::step::{NumberStep, Step, StringStep};

/// Demands that the value is one of these.
pub(crate) fn among(values: &Values, kind: Kind) -> Demand {
    let constant = |there: bool| if there { Demand::nothing() } else { Demand::Never };
    let one_of = |list: &[NodeId]| Demand::any(list.iter().map(|&node| vec![literal(node, true)]).collect());
    match kind {
        Kind::Null => constant(values.null),
        Kind::False => constant(values.no),
        Kind::True => constant(values.yes),
        Kind::Number if values.numbers.is_empty() => Demand::Never,
        Kind::Number => Demand::one(Step::Number(NumberStep::Among(Rc::from(&values.numbers[..])))),
        Kind::String if values.strings.is_empty() => Demand::Never,
        Kind::String => Demand::one(Step::String(StringStep::Among(Rc::from(&values.strings[..])))),
        Kind::Array => one_of(&values.arrays),
        Kind::Object => one_of(&values.objects),
    }
}

/// Demands that the value is none of these.
pub(crate) fn not_among(values: &Values, kind: Kind) -> Demand {
    let constant = |there: bool| if there { Demand::Never } else { Demand::nothing() };
    let none_of = |list: &[NodeId]| Demand::All(list.iter().map(|&node| literal(node, false)).collect());
    match kind {
        Kind::Null => constant(values.null),
        Kind::False => constant(values.no),
        Kind::True => constant(values.yes),
        Kind::Number if values.numbers.is_empty() => Demand::nothing(),
        Kind::Number => Demand::one(Step::Number(NumberStep::NotAmong(Rc::from(&values.numbers[..])))),
        Kind::String if values.strings.is_empty() => Demand::nothing(),
        Kind::String => Demand::one(Step::String(StringStep::NotAmong(Rc::from(&values.strings[..])))),
        Kind::Array => none_of(&values.arrays),
        Kind::Object => none_of(&values.objects),
    }
}

fn literal(node: NodeId, sign: bool) -> Step {
    Step::Literal(Literal::new(node, sign))
}
