//! Tests of the decode loop through its public surface.

mod decoding;
mod rig;
