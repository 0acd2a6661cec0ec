//! The tables in which the library numbers values (`automata/src/pushdown/intern/`), under all interleavings
//! of their threads.
//!
//! Run by `cargo xtask loom`, which sets `--cfg loom`. The files of the library are compiled here with the
//! atomics, locks and threads of [loom](https://docs.rs/loom), and so is `boxcar`, which holds the values. A
//! model is a small program: loom runs it once for each order in which its threads may be scheduled, and for
//! each value that a load may see by the memory model of C11, and reports accesses that no such order makes
//! safe.
//!
//! ```text
//!   model ─► Interner, Chains ─► Index ─► atomics.rs: loom's, in place of the standard library's
//!                       └──────► boxcar::Vec ─► loom's, by its feature
//! ```
//!
//! A model that cannot fail says nothing. These changes of `index.rs`, each tried alone, fail at least one: a
//! place that is stored or loaded `Relaxed`, a number that is published before its value is written, no
//! second look under the lock, an addition without the lock, a larger table without the numbers of the
//! smaller one; and so does a cell of tables that is filled or read `Relaxed`. The number of the table at
//! hand may be read too old: what is missed there is looked for again under the lock.

#[cfg(loom)]
mod atomics;
#[cfg(loom)]
#[path = "../../automata/src/pushdown/intern/index.rs"]
#[allow(dead_code, reason = "its unit tests run in the library")]
mod index;
#[cfg(loom)]
#[path = "../../automata/src/pushdown/intern/interner.rs"]
#[allow(dead_code, reason = "the library uses all of it")]
mod interner;
#[cfg(loom)]
mod models;

#[cfg(loom)]
fn main() {
    models::run();
}

#[cfg(not(loom))]
fn main() {
    println!("the models of the interning tables run with `cargo xtask loom`");
}
