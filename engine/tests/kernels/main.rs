//! Plans of passes, run by the kernels on this processor, against the decoder of torch. No card is needed.
//!
//! The kernels by themselves are tested by `kernels/tests/kernels`, whose processor runs them here.

mod checkpoint;
mod interpreter;
mod launcher;
#[path = "../../../kernels/tests/kernels/memory.rs"]
#[allow(dead_code, reason = "the tests of the kernels by themselves use the rest")]
mod memory;
mod plans;
#[path = "../../../kernels/tests/kernels/processor.rs"]
#[allow(dead_code, reason = "the tests of the kernels by themselves use the rest")]
mod processor;
