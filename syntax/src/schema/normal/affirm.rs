//! Demands: what an affirmed keyword requires of values of one kind.

use crate::schema::forms::Literal;
use crate::schema::node::{Keyword, Kind, NodeId};
use crate::schema::shape::{Demand, Step, array, constant, number, object, string};

use super::algebra::Algebra;

/// The approximate number of bytes of a one-step way of a choice, while the choice is assembled.
const WAY_BYTES: usize = 512;

impl Algebra<'_> {
    /// Returns the demand of an affirmed keyword on values of a kind.
    pub(super) fn affirm(
        &mut self,
        node: NodeId,
        name: &'static str,
        keyword: &Keyword,
        kind: Kind,
    ) -> Demand {
        let literal = |node: NodeId| Step::Literal(Literal::yes(node));
        match keyword {
            Keyword::Never => Demand::Never,
            Keyword::Ref(reference) => Demand::one(literal(self.tree.target(*reference))),
            Keyword::AllOf(list) => Demand::All(list.iter().copied().map(literal).collect()),
            Keyword::AnyOf(list) | Keyword::OneOf(list) if !self.fits(list.len() * WAY_BYTES, node) => {
                Demand::Never
            }
            Keyword::AnyOf(list) => {
                let able = list.iter().filter(|&&node| self.may_be(node, kind));
                Demand::any(able.map(|&node| vec![literal(node)]).collect())
            }
            Keyword::OneOf(list) => self.exactly_one(list, kind),
            Keyword::Not(child) => Demand::one(Step::Literal(Literal::new(*child, false))),
            Keyword::If {
                then: None,
                otherwise: None,
                ..
            } => Demand::nothing(),
            Keyword::If {
                condition,
                then,
                otherwise,
            } => {
                let way = |sign: bool, next: &Option<NodeId>| {
                    let first = Step::Literal(Literal::new(*condition, sign));
                    std::iter::once(first).chain(next.map(literal)).collect()
                };
                Demand::any(vec![way(true, then), way(false, otherwise)])
            }
            Keyword::Type { types, whole } => number::type_demand(*types, *whole, kind),
            Keyword::Values(values) => constant::among(values, kind),
            Keyword::Minimum { .. } | Keyword::Maximum { .. } | Keyword::MultipleOf(_) => {
                only(kind, Kind::Number, || number::affirm(keyword))
            }
            Keyword::MinLength(_) | Keyword::MaxLength(_) | Keyword::Text(_) | Keyword::AnyText(_) => {
                only(kind, Kind::String, || string::affirm(keyword))
            }
            Keyword::Items { .. }
            | Keyword::MinItems(_)
            | Keyword::MaxItems(_)
            | Keyword::Contains { .. }
            | Keyword::UniqueItems => only(kind, Kind::Array, || array::affirm(node, name, keyword)),
            // These are handled for the node as a whole, because they apply to what the other keywords do not
            // evaluate.
            Keyword::UnevaluatedItems(_) | Keyword::UnevaluatedProperties(_) => Demand::nothing(),
            _ => only(kind, Kind::Object, || object::affirm(keyword)),
        }
    }

    /// Demands that exactly one schema of a list holds. Those that exclude one another anyway need not be
    /// denied.
    fn exactly_one(&mut self, list: &[NodeId], kind: Kind) -> Demand {
        let able = list.iter().copied().filter(|&node| self.may_be(node, kind));
        let list: Vec<NodeId> = able.collect();
        let rivals = self.rivals(&list, kind);
        let ways = list.iter().zip(rivals).map(|(&node, rivals)| {
            let denied = rivals.into_iter().map(|other| Literal::new(list[other], false));
            std::iter::once(Literal::yes(node))
                .chain(denied)
                .map(Step::Literal)
                .collect()
        });
        Demand::any(ways.collect())
    }
}

/// Returns the demand of a keyword for one kind, which is nothing for other kinds.
fn only(kind: Kind, wanted: Kind, demand: impl FnOnce() -> Demand) -> Demand {
    if kind == wanted {
        demand()
    } else {
        Demand::nothing()
    }
}
