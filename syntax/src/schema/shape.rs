//! Shapes: conjunctions of demands on values of one kind, while they are collected.
//!
//! ```text
//!   keyword ──affirm, deny──► demand: steps, or a choice of them ──add──► shape ──finish──► normal form
//! ```
//!
//! Nothing here examines other schemas: a step that concerns one contains its literal.

pub(crate) mod array;
pub(crate) mod constant;
mod demand;
mod listed;
pub(crate) mod number;
pub(crate) mod object;
mod step;
pub(crate) mod string;

pub(crate) use array::ArrayShape;
pub(crate) use demand::Demand;
pub(crate) use listed::{Listed, push_new};
pub(crate) use object::ObjectShape;
pub(crate) use step::{ArrayStep, KeyClass, MapRef, ObjectStep, SomeItems, SomeKey, Step, StringStep};

use super::forms::{NumberShape, StringShape};
use super::node::Kind;

/// A conjunction of demands on values of one kind.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    /// `null`, `true` or `false`, which take no demands.
    Constant,
    Number(NumberShape),
    String(StringShape),
    Array(ArrayShape),
    Object(ObjectShape),
}

impl Shape {
    /// Returns the shape of all values of a kind.
    pub(crate) fn new(kind: Kind) -> Shape {
        match kind {
            Kind::Null | Kind::False | Kind::True => Shape::Constant,
            Kind::Number => Shape::Number(NumberShape::default()),
            Kind::String => Shape::String(StringShape::default()),
            Kind::Array => Shape::Array(ArrayShape::default()),
            Kind::Object => Shape::Object(ObjectShape::default()),
        }
    }

    /// Adds a demand; returns `false` if the shape has no values left.
    pub(crate) fn add(&mut self, step: Step) -> bool {
        match (self, step) {
            (Shape::Number(shape), Step::Number(step)) => shape.add(step),
            (Shape::String(shape), Step::String(step)) => shape.add(step),
            (Shape::Array(shape), Step::Array(step)) => shape.add(step),
            (Shape::Object(shape), Step::Object(step)) => shape.add(step),
            // A demand on another kind of value does not affect this one.
            _ => true,
        }
    }
}
