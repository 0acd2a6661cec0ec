//! The threads that share the work of a pass on the CPU (`engine/src/torch/crew/`), under all interleavings.
//!
//! As in `interning.rs`, the file is compiled here with the atomics, locks and threads of loom, and a model
//! is a small program that runs once for each order of its threads. What a part of the work writes lies in a
//! cell of loom's, which reports whoever reads it without having to see what was written.
//!
//! These changes of `team.rs`, each tried alone, fail at least one: a part that is counted as done, or looked
//! at, `Relaxed`; work that is published `Relaxed`; parts that are taken by a load and a store; a count of
//! parts that is not set back; a crew that ends without waking who sleeps; a panic that is told after its
//! part.

#[cfg(loom)]
#[path = "crew/atomics.rs"]
mod atomics;
#[cfg(loom)]
#[path = "crew/models.rs"]
mod models;
#[cfg(loom)]
#[path = "../../engine/src/torch/crew/team.rs"]
#[allow(dead_code, unused_imports, reason = "its unit tests run in the engine")]
mod team;

#[cfg(loom)]
fn main() {
    models::run();
}

#[cfg(not(loom))]
fn main() {
    println!("the models of a crew run with `cargo xtask loom`");
}
