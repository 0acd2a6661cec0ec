//! Shifts the ids of a grammar that becomes part of a larger one.

use super::cfg::{Expr, Validated};
use super::ids::{ExprId, ObjectListId, RegularId, RuleId};
use super::object_list::{Additional, ObjectList, Property, Way};

/// The offsets by which the ids of a grammar are shifted.
#[derive(Clone, Copy)]
pub(super) struct Shift {
    pub(super) exprs: u32,
    pub(super) rules: u32,
    pub(super) regulars: u32,
    pub(super) object_lists: u32,
}

impl Shift {
    pub(super) fn id(self, id: ExprId) -> ExprId {
        ExprId(id.0 + self.exprs)
    }

    pub(super) fn rule(self, id: RuleId) -> RuleId {
        RuleId(id.0 + self.rules)
    }

    fn regular(self, id: RegularId) -> RegularId {
        RegularId(id.0 + self.regulars)
    }

    fn ids(self, ids: &[ExprId]) -> Box<[ExprId]> {
        ids.iter().map(|id| self.id(*id)).collect()
    }

    pub(super) fn expr(self, expr: Expr) -> Expr {
        match expr {
            Expr::Seq(parts) => Expr::Seq(self.ids(&parts)),
            Expr::Choice(parts) => Expr::Choice(self.ids(&parts)),
            Expr::Repeat { body, min, max } => Expr::Repeat {
                body: self.id(body),
                min,
                max,
            },
            Expr::Rule(rule) => Expr::Rule(self.rule(rule)),
            Expr::Regular(regular) => Expr::Regular(self.regular(regular)),
            Expr::Validated(validated) => Expr::Validated(Validated {
                beginnings: self.regular(validated.beginnings),
                ..validated
            }),
            Expr::ObjectList(object_list) => {
                Expr::ObjectList(ObjectListId(object_list.0 + self.object_lists))
            }
            leaf @ (Expr::Never
            | Expr::Empty
            | Expr::Bytes(_)
            | Expr::Special(_)
            | Expr::Tokens(_)
            | Expr::Marked(_)) => leaf,
        }
    }

    pub(super) fn object_list(self, object_list: ObjectList) -> ObjectList {
        let way = |way: Way| Way {
            item: self.id(way.item),
            ..way
        };
        let property = |property: Property| Property {
            ways: property.ways.into_iter().map(way).collect(),
            ..property
        };
        let additional = |additional: Additional| Additional {
            key: additional.key.map(|key| self.regular(key)),
            item: self.id(additional.item),
            ..additional
        };
        ObjectList {
            properties: object_list.properties.into_iter().map(property).collect(),
            additional: object_list.additional.into_iter().map(additional).collect(),
            separator: self.id(object_list.separator),
            ..object_list
        }
    }
}
