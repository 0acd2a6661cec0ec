//! Shapes to normal forms: what a conjunction of demands on one kind of value amounts to.
//!
//! Demands on the parts of arrays and objects become goals of their own, and what is demanded of *some* part
//! becomes a choice of ways that each part has.

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

/// The most arrays of a goal with which another one is compared to find out whether it is among them.
const COMPARED: usize = 1_000;

/// The same for an object, among those that have as many members with the same goals: they differ in names
/// alone.
const COMPARED_OBJECTS: usize = 64;

impl Algebra<'_> {
    /// Adds what a shape amounts to; `objects` has the places of the objects by their sketches.
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
                    // Of thousands that are listed, few are compared: one that is there twice does no harm.
                    let near = normal.arrays.len().saturating_sub(COMPARED);
                    if !normal.arrays[near..].contains(&array) {
                        normal.arrays.push(array);
                    }
                }
            }
            Shape::Object(shape) => {
                if let Some(object) = self.finish_object(&shape) {
                    // Thousands of alternatives may differ in their last member alone.
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
