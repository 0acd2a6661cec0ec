//! Arrays.

use crate::grammar::{ExprId, Member, Rest, Series, SeriesOrder};
use crate::schema::goal::GoalId;
use crate::schema::normal::Array;

use super::Writer;

impl Writer<'_> {
    /// The texts of a set of arrays.
    pub(super) fn array(&mut self, array: &Array) -> ExprId {
        let mut ways = Vec::new();
        let close = self.builder.bytes("]");
        if array.min == 0 {
            ways.push(close);
        }
        let items = self.items(array);
        ways.push(self.builder.seq([self.space.edge, items, self.space.edge, close]));
        let open = self.builder.bytes("[");
        let ways = self.builder.choice(ways);
        self.builder.seq([open, ways])
    }

    /// One item or more. Built from the end, where each step is "the next place and what may follow it".
    fn items(&mut self, array: &Array) -> ExprId {
        let places: Vec<GoalId> = array
            .prefix
            .iter()
            .copied()
            .take_while(|&goal| self.forms.is_live(goal))
            .collect();
        let count = places.len() as u64;
        let cut = places.len() < array.prefix.len();
        let most = array.max.unwrap_or(u64::MAX);
        let mut more = if cut || most <= count {
            self.builder.never()
        } else {
            self.tail(array)
        };
        for (at, &goal) in places.iter().enumerate().rev() {
            let at = at as u64;
            if at >= most {
                continue;
            }
            more = self.after(more, at + 1 >= array.min);
            let item = self.goal(goal);
            more = self.builder.seq([item, more]);
        }
        more
    }

    /// A separator and what follows it; optional where the array may end here.
    fn after(&mut self, next: ExprId, may_end: bool) -> ExprId {
        let comma = self.space.comma;
        let more = self.builder.seq([comma, next]);
        if may_end {
            self.builder.optional(more)
        } else {
            more
        }
    }

    /// One item or more behind the leading places.
    fn tail(&mut self, array: &Array) -> ExprId {
        let before = array.prefix.len() as u64;
        let forms = self.forms;
        if array
            .members
            .iter()
            .any(|(goal, required)| *required && !forms.is_live(*goal))
        {
            return self.builder.never();
        }
        let mut members = Vec::new();
        for &(goal, required) in array.members.iter().filter(|(goal, _)| forms.is_live(*goal)) {
            let item = self.goal(goal);
            members.push(Member { item, required });
        }
        let mut rest = Vec::new();
        if self.forms.is_live(array.rest) {
            rest.push(Rest {
                key: None,
                item: self.goal(array.rest),
            });
        }
        let max = array.max.map(|max| max.saturating_sub(before));
        let min = array.min.saturating_sub(before).max(1);
        let enough = !rest.is_empty() || members.len() as u64 >= min;
        if !enough || max.is_some_and(|max| max < min) {
            return self.builder.never();
        }
        let order = if members.is_empty() {
            SeriesOrder::Listed
        } else {
            SeriesOrder::Any
        };
        let separator = self.space.comma;
        self.builder.series(Series {
            members,
            rest,
            separator,
            order,
            min,
            max,
        })
    }
}
