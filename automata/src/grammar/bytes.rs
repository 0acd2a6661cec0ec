//! Estimates of the bytes of the parts of a grammar, for the byte count of a compile.

use super::cfg::{Cfg, Expr, Rule};
use super::object_list::ObjectList;
use super::regular::{Part, Regular};

/// About the bytes of an expression and its entries in the tables, without the lists that it owns.
const EXPR_BYTES: usize = 2 * size_of::<Expr>() + 16;

/// About the bytes of a regular language and its entries in the tables, without its expressions.
const REGULAR_BYTES: usize = 160;

impl Cfg {
    /// Returns about how many bytes the grammar takes. O(its size).
    pub(crate) fn bytes(&self) -> usize {
        let exprs = self.exprs.iter().map(Expr::bytes);
        let rules = self
            .rules
            .iter()
            .map(|rule| 2 * size_of::<Rule>() + rule.name.len());
        let regulars = self.regulars.iter().map(Regular::bytes);
        let object_lists = self.object_lists.iter().map(ObjectList::bytes);
        exprs.chain(rules).chain(regulars).chain(object_lists).sum()
    }
}

impl Expr {
    /// Returns about how many bytes the expression takes, including its entries in the tables.
    pub(super) fn bytes(&self) -> usize {
        let listed = match self {
            Expr::Bytes(bytes) => bytes.len(),
            Expr::Seq(parts) | Expr::Choice(parts) => size_of_val(&parts[..]),
            Expr::Special(name) | Expr::Marked(name) => name.len(),
            Expr::Tokens(set) => set.bytes(),
            _ => 0,
        };
        EXPR_BYTES + listed
    }
}

impl Regular {
    /// Returns about how many bytes the language takes, without expressions that are shared.
    pub(super) fn bytes(&self) -> usize {
        let parts = self.parts.iter().map(|part| match part {
            Part::Match(expression) | Part::Not(expression) => expression.own_bytes(),
            Part::Units { unit, .. } => unit.own_bytes(),
        });
        let longer = self
            .longest
            .as_ref()
            .map_or(0, |longest| longest.longer.own_bytes());
        REGULAR_BYTES + size_of_val(&self.parts[..]) + parts.sum::<usize>() + longer
    }
}

impl ObjectList {
    /// Returns about how many bytes the object list takes.
    pub(super) fn bytes(&self) -> usize {
        let ways = self
            .properties
            .iter()
            .map(|property| size_of_val(&property.ways[..]).next_multiple_of(16));
        let taken = self.taken.iter().map(|key| size_of_val(key) + key.len());
        2 * size_of::<ObjectList>()
            + size_of_val(&self.properties[..])
            + size_of_val(&self.additional[..])
            + size_of_val(&self.demands[..])
            + ways.chain(taken).sum::<usize>()
    }
}
