//! Tests of the decode loop through its public surface.

mod bad_models;
mod decoding;
mod rig;
mod torch;
