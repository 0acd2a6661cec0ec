//! `enum` and `const` as demands.

use std::rc::Rc;

use crate::schema::goal::Literal;
use crate::schema::node::{Keyword, Kind, NodeId, Values};

use super::Algebra;
use super::expand::Demand;
use super::step::{NumberStep, Step, StringStep};

/// How many references are followed to a list of values.
const REFERENCES: usize = 8;

impl Algebra<'_> {
    /// The list of values that a schema has or leads to.
    pub(super) fn list_of(&self, literal: Literal) -> Option<Rc<Values>> {
        let mut node = literal.node;
        for _ in 0..REFERENCES {
            let keywords = &self.tree.node(node).keywords;
            let listed = keywords.iter().find_map(|(_, keyword)| match keyword {
                Keyword::Values(values) => Some(values.clone()),
                _ => None,
            });
            if listed.is_some() || !literal.sign {
                return listed.filter(|_| literal.sign);
            }
            let [(_, Keyword::Ref(reference))] = keywords[..] else {
                return None;
            };
            node = self.tree.target(reference);
        }
        None
    }

    /// Whether a schema is a list of values, with nothing beside it but their types.
    pub(super) fn lists_values(&self, literal: Literal) -> bool {
        let plain = |keyword: &Keyword| {
            matches!(
                keyword,
                Keyword::Values(_) | Keyword::Type { .. } | Keyword::Ref(_)
            )
        };
        let keywords = &self.tree.node(literal.node).keywords;
        keywords.iter().all(|(_, keyword)| plain(keyword)) && self.list_of(literal).is_some()
    }
}

/// The value is one of these.
pub(super) fn among(values: &Values, kind: Kind) -> Demand {
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

/// The value is none of these.
pub(super) fn not_among(values: &Values, kind: Kind) -> Demand {
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
