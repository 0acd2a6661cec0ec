//! Tests of the decode loop through its public surface.

mod bad_models;
mod budgets;
mod decoding;
mod drafting;
mod grammars;
mod laws;
mod meters;
mod rig;
mod torch;
