//! About how many bytes the parts of a grammar take, for the count of what a compile holds.

use super::cfg::{Cfg, Expr, Rule};
use super::regular::{Part, Regular};
use super::series::Series;

/// About the bytes of an expression and its places in the tables, without what it lists.
const EXPR_BYTES: usize = 2 * size_of::<Expr>() + 16;

/// About the bytes of a regular language and its places in the tables, without its expressions.
const REGULAR_BYTES: usize = 160;

impl Cfg {
    /// About the bytes that it takes. O(its size).
    pub(crate) fn bytes(&self) -> usize {
        let exprs = self.exprs.iter().map(Expr::bytes);
        let rules = self
            .rules
            .iter()
            .map(|rule| 2 * size_of::<Rule>() + rule.name.len());
        let regulars = self.regulars.iter().map(Regular::bytes);
        let series = self.series.iter().map(Series::bytes);
        exprs.chain(rules).chain(regulars).chain(series).sum()
    }
}

impl Expr {
    /// About the bytes that it takes, with its places in the tables.
    pub(super) fn bytes(&self) -> usize {
        let listed = match self {
            Expr::Bytes(bytes) => bytes.len(),
            Expr::Seq(parts) | Expr::Choice(parts) => size_of_val(&parts[..]),
            Expr::Special(name) => name.len(),
            _ => 0,
        };
        EXPR_BYTES + listed
    }
}

impl Regular {
    /// About the bytes that it takes, without the expressions that others share.
    pub(super) fn bytes(&self) -> usize {
        let parts = self.parts.iter().map(|part| match part {
            Part::Match(expression) | Part::Not(expression) => expression.own_bytes(),
            Part::Units { unit, .. } => unit.own_bytes(),
        });
        REGULAR_BYTES + size_of_val(&self.parts[..]) + parts.sum::<usize>()
    }
}

impl Series {
    /// About the bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        let ways = self
            .members
            .iter()
            .map(|member| size_of_val(&member.ways[..]).next_multiple_of(16));
        let taken = self.taken.iter().map(|key| size_of_val(key) + key.len());
        2 * size_of::<Series>()
            + size_of_val(&self.members[..])
            + size_of_val(&self.rest[..])
            + size_of_val(&self.demands[..])
            + ways.chain(taken).sum::<usize>()
    }
}
