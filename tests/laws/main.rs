//! The laws, exactly.
//!
//! Small models with rational probabilities, every path of random choices enumerated: a law is a map from
//! sequences to rationals, and two laws are equal or they are not. The mutants are samplers with a plausible
//! mistake; each must fail, which shows that the equalities can.

mod adaptive;
mod aprad;
mod awrs;
mod chain;
mod contrast;

mod control;
mod cuts;
mod drafts;
mod float;
mod global;
mod harvest;
mod healing;
mod independence;
mod judged;
mod k_seq;
mod lossy;
mod mirostat;
mod model;
mod monitors;
mod number;
mod particles;
mod predictors;
mod propose;
mod siblings;
mod speculation;
mod stand;
mod trees;
