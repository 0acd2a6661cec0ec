//! Readers of grammar texts.

pub mod ebnf;
mod terminals;
