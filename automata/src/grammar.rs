//! The intermediate representation (IR) that all front ends lower to.
//!
//! A [`Cfg`] is a context-free grammar over **bytes** whose leaves may be whole regular languages
//! ([`Regular`]: intersections and complements of regular expressions, with counted units) and whose
//! [`ObjectList`] nodes describe lists of items with counts and order without unrolling them: the properties
//! of an object, the items of an array, a counted repetition. Languages that no automaton decides are left to
//! a [`Validator`].
//!
//! ```text
//!   rule value  = choice( "null", string, array, … )
//!   rule array  = seq( "[", object_list{ additional: value, separator: ",", min, max }, "]" )
//!   string      = seq( "\"", regular{ Units(char, 0..=20) ∩ Match(pattern) }, "\"" )
//! ```
//!
//! Expressions live in one arena and refer to each other by index, so every pass is an iterative walk and no
//! input can overflow the stack.

mod builder;
mod bytes;
mod cfg;
mod expression;
mod hash;
mod ids;
mod marks;
mod object_list;
mod regular;
mod shift;
mod token_set;
mod validator;

pub use builder::CfgBuilder;
pub use cfg::{Cfg, Expr, Rule, Validated};
pub use expression::Expression;
pub use ids::{ExprId, ObjectListId, RegularId, RuleId};
pub use object_list::{Additional, Demand, ItemOrder, Meets, ObjectList, Property, Way};
pub use regular::{Longest, Part, Regular};
pub use token_set::{TokenSet, TokenSymbol};
pub use validator::Validator;
