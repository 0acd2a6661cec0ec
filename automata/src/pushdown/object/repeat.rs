//! Which lists of which some key must be written twice can be read.

use std::sync::Arc;

use crate::error::{Place, Problem, ProblemKind};
use crate::grammar::{Keys, SeriesOrder};
use crate::language::Terminal;
use crate::pushdown::plan::nfa::{Label, Nfa, SeriesPlan};

/// Refuses series whose keys repeat in a way that is not known here.
pub(crate) fn check(nfa: &Nfa) -> Result<(), Problem> {
    let is_known = |plan: &SeriesPlan| {
        let keyed = plan.rest.iter().filter(|rest| rest.key.is_some());
        plan.order == SeriesOrder::Leading
            && plan.demands.is_empty()
            && plan.taken.is_empty()
            && keyed.into_iter().all(|rest| nfa.is_empty_rule(rest.item))
    };
    let mut repeating = nfa.series.iter().filter(|plan| plan.keys == Keys::Repeat);
    if repeating.all(is_known) {
        return Ok(());
    }
    let message =
        "a series whose keys repeat has another order, demands, taken keys, or items behind its keys";
    Err(Problem::new(ProblemKind::Unsupported, Place::Whole, message))
}

impl Nfa {
    /// Whether a rule has the empty word alone, as it was written.
    fn is_empty_rule(&self, rule: u32) -> bool {
        let rule = &self.rules[rule as usize];
        let edges = &self.nodes[rule.start as usize];
        edges
            .iter()
            .all(|edge| edge.label == Label::Empty && edge.to == rule.accept)
            && !edges.is_empty()
    }
}

impl SeriesPlan {
    /// Whether there are a key that can be written, and room to write it twice.
    pub(crate) fn some_key_may_repeat(
        &self,
        usable: impl Fn(u32) -> bool,
        terminals: &[Option<Arc<Terminal>>],
    ) -> bool {
        let places = self.members.len() as u64 + 2;
        let mut keys = self.rest.iter().filter(|rest| usable(rest.item));
        keys.any(|rest| rest.key.is_some_and(|key| terminals[key as usize].is_some()))
            && self.max.is_none_or(|max| places <= max)
    }
}
