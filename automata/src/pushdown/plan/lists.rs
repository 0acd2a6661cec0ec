//! Decides whether a list can be completed, and whether it can be empty, given which rules can.

use std::sync::Arc;

use super::nfa::{MemberPlan, ObjectListPlan};
use crate::grammar::ItemOrder;
use crate::language::Terminal;
use crate::pushdown::object::contains::{Stock, Supply};
use crate::pushdown::object::progress::Outlook;

impl ObjectListPlan {
    pub(super) fn is_productive(&self, rules: &[bool], terminals: &[Option<Arc<Terminal>>]) -> bool {
        let usable = |rule: u32| rules[rule as usize];
        let has_way = |member: &MemberPlan| member.ways.iter().any(|&(rule, _)| usable(rule));
        let met = self
            .members
            .iter()
            .all(|member| !member.required || has_way(member));
        let cut = self.cut_at(has_way);
        let rest = match cut {
            Some(_) => Some(0),
            None => self.rest_capacity(terminals, usable),
        };
        let cut = cut.unwrap_or(self.members.len());
        let mut outlook = self.outlook(|index| index >= cut || !has_way(&self.members[index]), rest);
        if self.separator.is_some_and(|rule| !rules[rule as usize]) {
            // Without its separator an object list has at most one item.
            let Some(left) = 1u64.checked_sub(outlook.required) else {
                return false;
            };
            let others = rest.map_or(u64::MAX, |rest| rest.saturating_add(outlook.optional));
            outlook = Outlook {
                optional: 0,
                rest: Some(others.min(left)),
                ..outlook
            };
        }
        met && self.can_end(0, &outlook) && (!self.has_demands() || self.meets_demands(usable, terminals))
    }

    /// Returns the index of the member at which a tuple ends because that member cannot be written: nothing
    /// comes after it.
    pub(super) fn cut_at(&self, has_way: impl Fn(&MemberPlan) -> bool) -> Option<usize> {
        let mut members = self.members.iter();
        (self.order == ItemOrder::Leading).then(|| members.position(|member| !has_way(member)))?
    }

    fn meets_demands(&self, usable: impl Fn(u32) -> bool, terminals: &[Option<Arc<Terminal>>]) -> bool {
        let stock = Stock::new(self, terminals, &usable);
        let ways = |member: &MemberPlan| {
            let ways = member.ways.iter().filter(|(rule, _)| usable(*rule));
            (ways.map(|&(_, meets)| meets).collect(), member.required)
        };
        let supply = Supply {
            plan: self,
            stock: &stock,
            members: self.members.iter().map(ways).collect(),
            used: &[],
            count: 0,
            met: &[],
        };
        supply.suffices()
    }

    pub(super) fn is_nullable(&self, rules: &[bool]) -> bool {
        if self.demands.iter().any(|demand| demand.min > 0) {
            return false;
        }
        if self.max == Some(0) || (self.min == 0 && self.members.iter().all(|member| !member.required)) {
            return true;
        }
        let is_empty = |member: &MemberPlan| member.ways.iter().any(|&(rule, _)| rules[rule as usize]);
        let empty_items = self
            .members
            .iter()
            .all(|member| !member.required || is_empty(member))
            && (self.min == 0
                || self
                    .rest
                    .iter()
                    .any(|rest| rest.key.is_none() && rules[rest.item as usize]));
        self.separator.is_none() && empty_items
    }
}
