//! The intermediate representation in which all front ends meet.
//!
//! A [`Cfg`] is a context-free grammar over **bytes** whose leaves may be whole regular languages
//! ([`Regular`]: intersections and complements of regular expressions, with counted units) and whose
//! [`Series`] nodes describe lists of items with counts and order without unrolling them: the members of an
//! object, the items of an array, a counted repetition. What no automaton tells is left to a [`Judge`].
//!
//! ```text
//!   rule value  = choice( "null", string, array, … )
//!   rule array  = seq( "[", series{ rest: value, separator: ",", min, max }, "]" )
//!   string      = seq( "\"", regular{ Units(char, 0..=20) ∩ Match(pattern) }, "\"" )
//! ```
//!
//! Expressions live in one arena and refer to each other by index, so every pass is an iterative walk and no
//! input can overflow the stack.

mod bytes;
mod cfg;
mod expression;
mod hash;
mod import;
mod judge;

pub use cfg::{
    Cfg, CfgBuilder, Demand, Expr, ExprId, Judged, Keys, Meets, Member, Part, Regular, RegularId, Rest, Rule,
    RuleId, Series, SeriesId, SeriesOrder, Way,
};
pub use expression::Expression;
pub use judge::Judge;
