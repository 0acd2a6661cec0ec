//! Arrays.

use crate::grammar::{ExprId, Member, Rest, Series, SeriesOrder, Way};
use crate::schema::normal::{self, Array};

use super::Writer;

impl Writer<'_> {
    /// The texts of a set of arrays.
    pub(super) fn array(&mut self, array: &Array) -> ExprId {
        let close = self.builder.bytes("]");
        let mut ways = Vec::new();
        if array.min == 0 && array.demands.iter().all(|demand| demand.min == 0) {
            ways.push(close);
        }
        if let Some(items) = self.items(array) {
            ways.push(self.builder.seq([self.space.edge, items, self.space.edge, close]));
        }
        let open = self.builder.bytes("[");
        let ways = self.builder.choice(ways);
        self.builder.seq([open, ways])
    }

    /// One item or more; `None` where there can be none.
    fn items(&mut self, array: &Array) -> Option<ExprId> {
        let mut members = Vec::new();
        for place in &array.prefix {
            let ways = self.item_ways(place);
            if ways.is_empty() {
                break;
            }
            let required = false;
            members.push(Member { ways, required });
        }
        let cut = members.len() < array.prefix.len();
        let mut rest = Vec::new();
        if !cut {
            rest = self.item_ways(&array.rest).into_iter().map(rest_item).collect();
        }
        for &goal in array.distinct.iter().filter(|&&goal| self.forms.is_live(goal)) {
            members.push(Member::new(self.goal(goal), false));
        }
        let (min, max) = (array.min.max(1), array.max);
        let enough = !rest.is_empty() || members.len() as u64 >= min;
        if !enough || max.is_some_and(|max| max < min) {
            return None;
        }
        let order = if array.distinct.is_empty() {
            SeriesOrder::Leading
        } else {
            SeriesOrder::Any
        };
        Some(self.builder.series(Series {
            members,
            rest,
            separator: self.space.comma,
            order,
            min,
            max,
            demands: array.demands.clone(),
        }))
    }

    fn item_ways(&mut self, ways: &[normal::Way]) -> Vec<Way> {
        let mut written = Vec::new();
        for way in ways.iter().filter(|way| self.forms.is_live(way.goal)) {
            written.push(Way {
                item: self.goal(way.goal),
                meets: way.meets,
            });
        }
        written
    }
}

fn rest_item(way: Way) -> Rest {
    Rest {
        key: None,
        item: way.item,
        meets: way.meets,
    }
}
