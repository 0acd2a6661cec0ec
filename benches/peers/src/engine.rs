//! What the benchmark asks of an engine.
//!
//! ```text
//!   Engine ──compile(schema)──► Compiled ──start()──► Sequence:  step, mask, step, mask, …
//! ```
//!
//! Calls go through a table of methods: a nanosecond or two, the same for every engine.

use crate::cases::Case;

/// An engine with everything that it needs once for a vocabulary.
pub trait Engine {
    /// Compiles a schema, knowing nothing of the schemas before, and says how many microseconds of this
    /// thread it took.
    fn compile(&mut self, case: &Case) -> (Result<Box<dyn Compiled>, String>, f64);
}

/// A compiled schema, which several sequences and threads share.
pub trait Compiled: Send + Sync {
    /// A new sequence at its beginning.
    fn start(&self) -> Box<dyn Sequence + '_>;
}

/// One sequence of tokens against a schema.
pub trait Sequence {
    /// Makes the mask of where the sequence stands; `false` where the engine gives up.
    fn mask(&mut self) -> bool;

    /// Takes a token; `false` where it may not come next.
    fn step(&mut self, token: u32) -> bool;

    /// The mask that was made last, 32 tokens a word.
    fn words(&self) -> &[u32];

    /// Whether the engine takes this token here, whatever its mask says.
    fn takes(&mut self, token: u32) -> bool;

    /// Whether the last mask allows this token.
    fn allows(&self, token: u32) -> bool {
        let word = self.words().get(token as usize / 32);
        word.is_some_and(|word| word >> (token % 32) & 1 == 1)
    }
}
