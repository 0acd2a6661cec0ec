//! Decides whether a list can be completed, and whether it can be empty, given which rules can.

use std::sync::Arc;

use super::nfa::{ObjectListPlan, PropertyPlan};
use crate::grammar::ItemOrder;
use crate::language::Terminal;
use crate::pushdown::object::contains::{Stock, Supply};
use crate::pushdown::object::progress::Outlook;

impl ObjectListPlan {
    pub(super) fn is_productive(&self, rules: &[bool], terminals: &[Option<Arc<Terminal>>]) -> bool {
        let usable = |rule: u32| rules[rule as usize];
        let has_way = |property: &PropertyPlan| property.ways.iter().any(|&(rule, _)| usable(rule));
        let met = self
            .properties
            .iter()
            .all(|property| !property.required || has_way(property));
        let cut = self.cut_at(has_way);
        let additional = match cut {
            Some(_) => Some(0),
            None => self.additional_capacity(terminals, usable),
        };
        let cut = cut.unwrap_or(self.properties.len());
        let mut outlook = self.outlook(
            |index| index >= cut || !has_way(&self.properties[index]),
            additional,
        );
        if self.separator.is_some_and(|rule| !rules[rule as usize]) {
            // Without its separator an object list has at most one item.
            let Some(left) = 1u64.checked_sub(outlook.required) else {
                return false;
            };
            let others =
                additional.map_or(u64::MAX, |additional| additional.saturating_add(outlook.optional));
            outlook = Outlook {
                optional: 0,
                additional: Some(others.min(left)),
                ..outlook
            };
        }
        met && self.can_end(0, &outlook) && (!self.has_demands() || self.meets_demands(usable, terminals))
    }

    /// Returns the index of the property at which a tuple ends because that property cannot be written:
    /// nothing comes after it.
    pub(super) fn cut_at(&self, has_way: impl Fn(&PropertyPlan) -> bool) -> Option<usize> {
        let mut properties = self.properties.iter();
        (self.order == ItemOrder::Leading).then(|| properties.position(|property| !has_way(property)))?
    }

    fn meets_demands(&self, usable: impl Fn(u32) -> bool, terminals: &[Option<Arc<Terminal>>]) -> bool {
        let stock = Stock::new(self, terminals, &usable);
        let ways = |property: &PropertyPlan| {
            let ways = property.ways.iter().filter(|(rule, _)| usable(*rule));
            (ways.map(|&(_, meets)| meets).collect(), property.required)
        };
        let supply = Supply {
            plan: self,
            stock: &stock,
            properties: self.properties.iter().map(ways).collect(),
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
        if self.max == Some(0) || (self.min == 0 && self.properties.iter().all(|property| !property.required))
        {
            return true;
        }
        let is_empty = |property: &PropertyPlan| property.ways.iter().any(|&(rule, _)| rules[rule as usize]);
        let empty_items = self
            .properties
            .iter()
            .all(|property| !property.required || is_empty(property))
            && (self.min == 0
                || self
                    .additional
                    .iter()
                    .any(|additional| additional.key.is_none() && rules[additional.item as usize]));
        self.separator.is_none() && empty_items
    }
}
