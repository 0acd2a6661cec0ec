//! Samplers of the global law: the model conditioned on the whole constraint.
//!
//! | file | sampler | law of what it returns |
//! |---|---|---|
//! | `cars` | attempts over a trie, constrained adaptive rejection sampling | the global law |
//! | `independence` | a chain of independent texts over what attempts have learned, after these have run out | global as steps grow |
//! | `aprad` | approximately aligned decoding, for constraints that only detect errors | approximate |
//! | `particles` | sequential Monte Carlo, and importance resampling as its case without resampling | global as particles grow; the estimate of `Z` is unbiased |
//! | `chain` | Markov chain Monte Carlo: parts of a text are drawn again and accepted or not | global as steps grow |
//!
//! `control` is rejection control of attempts, between weights and failures. `trie` stores what attempts
//! learn, and `harvest` adds the rows of drafts to it; `logs` is the number type of weights that are products
//! of many factors.

mod aprad;
mod cars;
mod chain;
mod control;
mod harvest;
mod independence;
mod logs;
mod particles;
mod trie;

pub(super) use aprad::Aligned;
pub use aprad::Aprad;
pub use cars::Attempt;
pub use chain::{Chain, Cuts};
pub(super) use independence::Independence;
pub use logs::LogWeight;
pub use particles::{Particles, Resampling};
pub use trie::Trie;
