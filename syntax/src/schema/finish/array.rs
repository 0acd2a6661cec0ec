//! Converts shapes of arrays to sets of arrays: the ways of each place, and whether items must differ.
//!
//! A demand on some items may be met at any place from which it applies, so every such place has ways that
//! meet it and ways that do not.

use crate::schema::forms::{Array, GoalId, MOST_WISHES, Way};
use crate::schema::normal::Algebra;
use crate::schema::shape::{ArrayShape, SomeItems};

use super::ways::Wish;

impl Algebra<'_> {
    /// Returns the arrays of a shape, which is one of the ways of a goal.
    pub(crate) fn finish_array(&mut self, shape: &ArrayShape, goal: GoalId) -> Vec<Array> {
        if let Some(node) = shape.not_unique {
            return match shape.unique {
                Some(_) => Vec::new(),
                None => self.finish_repeated(shape, node, goal),
            };
        }
        if let Some(node) = shape.unique
            && shape.max.is_none_or(|max| max > 1)
        {
            return self.finish_unique(shape, node);
        }
        self.finish_counted(shape).into_iter().collect()
    }

    pub(crate) fn finish_counted(&mut self, shape: &ArrayShape) -> Option<Array> {
        let mut shape = shape.clone();
        shape.unite_demands()?;
        if shape.some.len() > MOST_WISHES {
            let (node, name) = shape.some[0].source;
            let message =
                format!("more than {MOST_WISHES} `contains` keywords for one array are not supported");
            self.unsupported(node, name, &message);
            return None;
        }
        shape.reach(shape.some.iter().map(|some| some.from).max().unwrap_or(0));
        let wishes = |place: usize| {
            let some = shape
                .some
                .iter()
                .enumerate()
                .filter(|(_, some)| some.from <= place);
            let wish = some.map(|(bit, some)| Wish {
                bit,
                literal: Some(some.literal),
                exact: some.max.is_some(),
            });
            wish.collect::<Vec<Wish>>()
        };
        let places = shape.prefix.iter().enumerate();
        let prefix: Vec<Vec<Way>> = places
            .map(|(place, literals)| self.ways(literals, &wishes(place)))
            .collect();
        let additional = self.ways(&shape.additional, &wishes(shape.prefix.len()));
        Some(Array {
            prefix,
            additional,
            demands: shape.some.iter().map(SomeItems::count).collect(),
            min: shape.min,
            max: shape.max,
            ..Array::default()
        })
    }
}
