//! Normal forms: the values that the goals of a schema allow, by kind of value.
//!
//! A form is a union of plain conjunctions: an interval of numbers with a step, a regular set of strings with
//! a length, an array or object whose parts are goals again. The algebra (`normal`) creates them, and `lower`
//! writes the grammar from them.

mod array;
pub(crate) mod closing;
mod goal;
mod number;
mod object;
pub(crate) mod productive;
mod string;
mod way;

pub(crate) use array::Array;
pub(crate) use goal::{GoalId, Goals, Literal};
pub(crate) use number::{Bound, NumberShape};
pub(crate) use object::{AdditionalClass, Closing, Object, Property};
pub(crate) use string::StringShape;
pub(crate) use way::{MOST_WISHES, Way};

use std::rc::Rc;

use lexiform_automata::error::Problem;
use lexiform_automata::limits::Account;

use super::decimal::Decimal;
use super::node::Tree;
use super::text::Texts;

/// The values that a goal allows, by kind of value.
#[derive(Clone, Debug, Default)]
pub(crate) struct Normal {
    pub(crate) null: bool,
    pub(crate) no: bool,
    pub(crate) yes: bool,
    pub(crate) numbers: Vec<NumberShape>,
    pub(crate) strings: Vec<StringShape>,
    pub(crate) arrays: Vec<Array>,
    pub(crate) objects: Vec<Object>,
}

/// The normal forms of every goal that the root reaches.
pub(crate) struct NormalForms {
    pub(crate) tree: Tree,
    pub(crate) texts: Texts,
    pub(crate) goals: Goals,
    pub(crate) normals: Vec<Rc<Normal>>,
    /// For each goal, `true` if it has a value, as far as the algebra can tell.
    pub(crate) productive: Vec<bool>,
    pub(crate) root: GoalId,
    /// Findings that do not stop the compilation.
    pub(crate) notes: Vec<Problem>,
    /// `true` if parts were left out because there were too many, so that emptiness proves nothing.
    pub(crate) truncated: bool,
    /// The account of the memory of all these.
    pub(crate) _held: Account,
}

impl NormalForms {
    /// Returns the JSON pointers of a goal's schemas.
    pub(crate) fn goal_name(&self, goal: GoalId) -> String {
        let literals = self.goals.literals(goal);
        let mut name = String::new();
        for literal in literals.iter() {
            if name.len() > NAME_LENGTH {
                name.push_str(" and more");
                break;
            }
            name.push_str(if name.is_empty() { "" } else { " and " });
            name.push_str(if literal.sign { "#" } else { "not #" });
            name.push_str(&self.tree.short_pointer(literal.node, NAME_LENGTH));
        }
        if literals.is_empty() {
            name.push_str("any value");
        }
        name
    }
}

/// The length at which a name is cut off.
const NAME_LENGTH: usize = 1 << 10;

impl Normal {
    /// Returns `true` if a value that is not an object is allowed.
    pub(crate) fn has_other_than_objects(&self) -> bool {
        let is_constant = self.null || self.no || self.yes;
        let is_scalar = is_constant || !self.numbers.is_empty() || !self.strings.is_empty();
        is_scalar || !self.arrays.is_empty()
    }

    /// Returns the goals of all parts of arrays and objects.
    pub(crate) fn parts(&self) -> impl Iterator<Item = GoalId> {
        let arrays = self.arrays.iter().flat_map(Array::parts);
        let objects = self.objects.iter().flat_map(Object::parts);
        arrays.chain(objects)
    }

    /// Returns the approximate number of bytes it takes, without its arrays and objects.
    pub(crate) fn bytes_of_scalars(&self) -> usize {
        let listed = |only: Option<usize>, except: usize| only.unwrap_or(0) + except;
        let numbers = self.numbers.iter().map(|shape| {
            let listed = listed(shape.only.as_ref().map(Vec::len), shape.except.len());
            size_of::<NumberShape>() + (listed + shape.not_steps.len()) * size_of::<Decimal>()
        });
        let strings = self.strings.iter().map(|shape| {
            let listed = listed(shape.only.as_ref().map(|only| only.len()), shape.except.len());
            size_of::<StringShape>() + listed * size_of::<Rc<str>>() + size_of_val(&shape.texts[..])
        });
        size_of::<Normal>() + numbers.chain(strings).sum::<usize>()
    }

    /// The bit for strings in [`kinds`](Self::kinds).
    pub(crate) const STRINGS: u8 = 1 << 4;

    /// Returns the kinds that have values, one bit for each.
    pub(crate) fn kinds(&self) -> u8 {
        let there = [
            self.null,
            self.no,
            self.yes,
            !self.numbers.is_empty(),
            !self.strings.is_empty(),
            !self.arrays.is_empty(),
            !self.objects.is_empty(),
        ];
        let bits = there.iter().enumerate();
        bits.fold(0, |kinds, (bit, &there)| kinds | u8::from(there) << bit)
    }

    /// Returns `true` if there are values other than arrays and objects.
    pub(crate) fn has_scalars(&self) -> bool {
        self.null || self.no || self.yes || !self.numbers.is_empty() || !self.strings.is_empty()
    }
}
