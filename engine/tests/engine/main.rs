//! Tests of the decode loop through its public surface.

mod bad_models;
mod branches;
mod budgets;
mod counted;
mod decoding;
mod devices;
mod drafting;
mod fairness;
mod families;
mod filters;
mod flights;
mod grammars;
mod laws;
mod meters;
mod populations;
mod priorities;
mod residual;
mod rig;
mod threads;
mod torch;
mod torch_flights;
mod torch_laws;
mod trees;
