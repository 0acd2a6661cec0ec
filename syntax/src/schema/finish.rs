//! Converts shapes, which are conjunctions of demands on one kind of value, to normal forms.
//!
//! Demands on the parts of arrays and objects become separate goals, and demands that *some* part satisfies
//! something become a choice of ways for each part.

mod array;
mod keys;
mod object;
mod repeated;
mod string;
mod unique;
mod ways;

use rustc_hash::FxHashMap;

use super::forms::{GoalId, Normal};
use super::node::Kind;
use super::normal::Algebra;
use super::shape::{Shape, push_new};

/// The number of recent arrays of a goal that a new one is compared with, to drop duplicates.
const COMPARED: usize = 1_000;

/// The number of recent objects of a goal that a new one is compared with, to drop duplicates. Only objects
/// that have the same number of properties with the same goals are compared: they can differ only in names.
const COMPARED_OBJECTS: usize = 64;

impl Algebra<'_> {
    /// Adds the normal form of a shape; `objects` contains the indices of the objects by their sketches.
    pub(crate) fn add_shape(
        &mut self,
        normal: &mut Normal,
        objects: &mut FxHashMap<u64, Vec<usize>>,
        kind: Kind,
        shape: Shape,
        goal: GoalId,
    ) {
        match shape {
            Shape::Constant => match kind {
                Kind::Null => normal.null = true,
                Kind::False => normal.no = true,
                _ => normal.yes = true,
            },
            Shape::Number(shape) => push_new(&mut normal.numbers, shape),
            Shape::String(shape) => push_new(&mut normal.strings, shape),
            Shape::Array(shape) => {
                for array in self.finish_array(&shape, goal) {
                    if !self.reserve(array.bytes(), self.first_node(goal)) {
                        return;
                    }
                    // Only some of several thousand arrays are compared: a duplicate does no harm.
                    let near = normal.arrays.len().saturating_sub(COMPARED);
                    if !normal.arrays[near..].contains(&array) {
                        normal.arrays.push(array);
                    }
                }
            }
            Shape::Object(shape) => {
                if let Some(object) = self.finish_object(&shape) {
                    // Thousands of alternatives may differ only in their last property.
                    let alike = objects.entry(object.sketch()).or_default();
                    let mut near = alike.iter().rev().take(COMPARED_OBJECTS);
                    if !near.any(|&at| normal.objects[at] == object) {
                        alike.push(normal.objects.len());
                        self.reserve(object.bytes(), self.first_node(goal));
                        normal.objects.push(object);
                    }
                }
            }
        }
    }
}
