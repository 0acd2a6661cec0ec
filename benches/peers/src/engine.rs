//! The interface of an engine in the benchmark.
//!
//! ```text
//!   Engine ──compile(schema)──► Compiled ──start()──► Sequence:  step, mask, step, mask, …
//! ```
//!
//! Calls go through dynamic dispatch: a nanosecond or two, the same for every engine.

use crate::cases::Case;

/// An engine with everything that it computes once for a vocabulary.
pub trait Engine {
    /// Compiles a schema without anything cached from previous schemas, and returns the time in microseconds
    /// of this thread.
    fn compile(&mut self, case: &Case) -> (Result<Box<dyn Compiled>, String>, f64);
}

/// A compiled schema, shared by several sequences and threads.
pub trait Compiled: Send + Sync {
    /// Starts a new sequence.
    fn start(&self) -> Box<dyn Sequence + '_>;
}

/// One sequence of tokens against a schema.
pub trait Sequence {
    /// Computes the mask at the current position; returns `false` if the engine gives up.
    fn mask(&mut self) -> bool;

    /// Reads a token; returns `false` if it is not allowed.
    fn step(&mut self, token: u32) -> bool;

    /// Returns the last computed mask, with 32 tokens in each word.
    fn words(&self) -> &[u32];

    /// Returns `true` if the engine accepts this token here, whatever its mask says.
    fn takes(&mut self, token: u32) -> bool;

    /// Returns `true` if the last mask allows this token.
    fn allows(&self, token: u32) -> bool {
        let word = self.words().get(token as usize / 32);
        word.is_some_and(|word| word >> (token % 32) & 1 == 1)
    }
}
