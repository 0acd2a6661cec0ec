//! Arrays.

use std::rc::Rc;

use crate::error::{Problem, ProblemKind};
use crate::grammar::{Demand, ExprId, Member, Part, Regular, Rest, Series, SeriesOrder, Way};
use crate::schema::node::NodeId;
use crate::schema::normal::{self, Array};

use super::{Writer, hir, number};

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
            rest = match array.unique {
                Some(node) => self.unique_items(array, node),
                None => self.item_ways(&array.rest).into_iter().map(rest_item).collect(),
            };
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
        let mut demands = array.demands.clone();
        if array.unique.is_some() {
            // Arrays and objects cannot be told apart, so there is at most one.
            demands.push(Demand { min: 0, max: Some(1) });
        }
        Some(self.builder.series(Series {
            members,
            rest,
            taken: vec![],
            separator: self.space.comma,
            order,
            min,
            max,
            demands,
        }))
    }

    /// Items of which no two are equal: the whole text of a scalar is its key, in a spelling that no other value has
    /// and that has no other.
    fn unique_items(&mut self, array: &Array, node: NodeId) -> Vec<Rest> {
        let mut rest = Vec::new();
        for way in array.rest.iter().filter(|way| self.forms.is_live(way.goal)) {
            let normal = Rc::clone(&self.forms.normals[way.goal.index()]);
            let mut keys = Vec::new();
            for (there, text) in [(normal.null, "null"), (normal.yes, "true"), (normal.no, "false")] {
                if there {
                    keys.push(vec![Part::Match(hir::text(text))]);
                }
            }
            for shape in &normal.numbers {
                match number::unique_spellings(shape) {
                    Some(parts) => keys.push(parts),
                    None => self.unsupported(node, "`uniqueItems` beside `multipleOf` is not supported"),
                }
            }
            for shape in &normal.strings {
                keys.push(self.unique_string(shape, way.goal));
            }
            for parts in keys {
                rest.push(Rest {
                    key: Some(self.builder.add_regular(Regular { parts })),
                    item: self.builder.empty(),
                    meets: way.meets,
                });
            }
            if !normal.arrays.is_empty() || !normal.objects.is_empty() {
                rest.push(Rest {
                    key: None,
                    item: self.structured(way.goal),
                    meets: way.meets | 1 << array.demands.len(),
                });
            }
        }
        rest
    }

    fn unsupported(&mut self, node: NodeId, message: &str) {
        let pointer = self.forms.tree.keyword_pointer(node, "uniqueItems");
        let problem = Problem::at_pointer(ProblemKind::Unsupported, pointer, message);
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
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
