//! Lowers arrays.

use std::rc::Rc;

use crate::schema::forms::{self, Array, GoalId};
use crate::schema::node::NodeId;
use crate::schema::text::hir;
use lexiform_automata::grammar::{Additional, ExprId, ItemOrder, ObjectList, Part, Property, Regular, Way};

use super::number;
use super::writer::Writer;

impl Writer<'_> {
    /// Returns the expression for the texts of a set of arrays.
    pub(super) fn array(&mut self, array: &Array) -> ExprId {
        let open = self.builder.bytes("[");
        let tail = self.array_tail(array);
        self.builder.seq([open, tail])
    }

    /// Returns the text of an array after its opening bracket.
    fn array_tail(&mut self, array: &Array) -> ExprId {
        match array.unique {
            Some(node) if array.additional.iter().any(|way| self.has_structure(way)) => {
                self.unique_array(array, node)
            }
            _ => self.array_body(array),
        }
    }

    /// Returns the texts of all arrays of a goal, after the opening bracket.
    pub(super) fn array_tails(&mut self, goal: GoalId) -> ExprId {
        let normal = Rc::clone(&self.forms.normals[goal.index()]);
        let tails: Vec<ExprId> = normal.arrays.iter().map(|array| self.array_tail(array)).collect();
        self.builder.choice(tails)
    }

    /// Returns `true` if a way has arrays or objects.
    pub(super) fn has_structure(&self, way: &forms::Way) -> bool {
        let normal = &self.forms.normals[way.goal.index()];
        self.forms.is_live(way.goal) && !(normal.arrays.is_empty() && normal.objects.is_empty())
    }

    /// Returns the text after the bracket, for arrays in which no two items that are arrays or objects have
    /// to differ.
    pub(super) fn array_body(&mut self, array: &Array) -> ExprId {
        let close = self.builder.bytes("]");
        let mut ways = Vec::new();
        if array.min == 0 && array.demands.iter().all(|demand| demand.min == 0) {
            ways.push(close);
        }
        if let Some(items) = self.items(array) {
            ways.push(self.builder.seq([self.space.edge, items, self.space.edge, close]));
        }
        self.builder.choice(ways)
    }

    /// Returns one or more items, or `None` if there can be none.
    fn items(&mut self, array: &Array) -> Option<ExprId> {
        let mut properties = Vec::new();
        for place in &array.prefix {
            let ways = self.item_ways(place);
            if ways.is_empty() {
                break;
            }
            let required = false;
            properties.push(Property { ways, required });
        }
        let cut = properties.len() < array.prefix.len();
        let mut additional = Vec::new();
        if !cut {
            additional = match array.unique {
                Some(node) => self.unique_items(array, node),
                None => self
                    .item_ways(&array.additional)
                    .into_iter()
                    .map(additional_item)
                    .collect(),
            };
        }
        for &goal in array.distinct.iter().filter(|&&goal| self.forms.is_live(goal)) {
            properties.push(Property::new(self.goal(goal), false));
        }
        let (min, max) = (array.min.max(1), array.max);
        let enough = !additional.is_empty() || properties.len() as u64 >= min;
        if !enough || max.is_some_and(|max| max < min) {
            return None;
        }
        let order = if array.distinct.is_empty() {
            ItemOrder::Leading
        } else {
            ItemOrder::Any
        };
        Some(self.builder.object_list(ObjectList {
            properties,
            additional,
            taken: array.taken.clone(),
            separator: self.space.comma,
            order,
            min,
            max,
            demands: array.demands.clone(),
        }))
    }

    /// Returns the items of an array in which no two are equal: the whole text of a scalar is its key.
    fn unique_items(&mut self, array: &Array, node: NodeId) -> Vec<Additional> {
        let live = array.additional.iter().filter(|way| self.forms.is_live(way.goal));
        let live: Vec<forms::Way> = live.copied().collect();
        live.iter()
            .flat_map(|way| self.different_scalars(way, node))
            .collect()
    }

    /// Returns the scalars of a way that their text identifies; multiples are not among them.
    pub(super) fn scalar_keys(&mut self, way: &forms::Way) -> Vec<Additional> {
        let normal = Rc::clone(&self.forms.normals[way.goal.index()]);
        let mut keys = Vec::new();
        for (there, text) in [(normal.null, "null"), (normal.yes, "true"), (normal.no, "false")] {
            if there {
                keys.push(vec![Part::Match(hir::text(text).into())]);
            }
        }
        keys.extend(normal.numbers.iter().filter_map(number::unique_spellings));
        for shape in &normal.strings {
            keys.push(self.unique_string(shape, way.goal));
        }
        let additional = keys.into_iter().map(|parts| Additional {
            key: Some(self.builder.add_regular(Regular::of(parts))),
            item: self.builder.empty(),
            meets: way.meets,
        });
        additional.collect()
    }

    pub(super) fn item_ways(&mut self, ways: &[forms::Way]) -> Vec<Way> {
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

fn additional_item(way: Way) -> Additional {
    Additional {
        key: None,
        item: way.item,
        meets: way.meets,
    }
}
