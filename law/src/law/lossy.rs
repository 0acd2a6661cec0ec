//! Lossy acceptance of drafts, for requests that prefer speed to an exact law.

use super::{LawError, Part, Weight};

/// Typical acceptance of Medusa ([Cai et al. 2024](https://arxiv.org/abs/2401.10774)): a drafted token is
/// accepted if its probability under the law of its position is above `min(ε, δ exp(−H))`, with `H` the
/// entropy of that law in nats.
///
/// Where the model is unsure, much is accepted; where it is sure, hardly anything but what it would have
/// written. The law of the text has no closed form: it depends on the drafts, and is tagged
/// [`LawTag::Lossy`](super::LawTag::Lossy). Forbidden tokens have no probability and are never accepted. With
/// a large `δ` this is a plain threshold of `ε`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TypicalAcceptance {
    epsilon: f64,
    delta: f64,
}

impl TypicalAcceptance {
    /// The bounds of the paper's experiments: `ε` 0.09 and `δ` 0.3.
    pub const MEDUSA: TypicalAcceptance = TypicalAcceptance {
        epsilon: 0.09,
        delta: 0.3,
    };

    /// Creates a rule with these bounds. `ε` is between 0 and 1, and `δ` is not below 0: if either is 0,
    /// every token that may be drawn is accepted.
    ///
    /// # Errors
    /// One of the bounds is out of its range.
    pub fn new(epsilon: f64, delta: f64) -> Result<Self, LawError> {
        let out = |name, value, expected| {
            Err(LawError::OutOfRange {
                name,
                value,
                expected,
            })
        };
        match () {
            () if !(0.0..=1.0).contains(&epsilon) => out("epsilon", epsilon, "between 0 and 1"),
            () if delta.is_nan() || delta < 0.0 => out("delta", delta, "at least 0"),
            () => Ok(TypicalAcceptance { epsilon, delta }),
        }
    }

    /// Returns `ε`: tokens more likely than this are always accepted.
    pub fn epsilon(&self) -> f64 {
        self.epsilon
    }

    /// Returns `δ`: the larger it is, the less likely tokens are accepted where the law is spread out.
    pub fn delta(&self) -> f64 {
        self.delta
    }

    /// Returns the probability above which tokens of a part are accepted. Cost: a pass over the part.
    pub(crate) fn threshold<W: Weight>(&self, part: &impl Part<W>) -> f64 {
        let surprise = |share: &W| match share.is_positive() {
            true => -share.ln() * share.ln().exp(),
            false => 0.0,
        };
        let entropy: f64 = part.shares().iter().map(surprise).sum();
        self.epsilon.min(self.delta * (-entropy).exp())
    }

    /// Returns the first of these tokens that is accepted under the law of a part.
    pub fn first<W: Weight>(
        &self,
        part: &impl Part<W>,
        mut drafted: impl Iterator<Item = u32>,
    ) -> Option<u32> {
        let threshold = self.threshold(part);
        drafted.find(|&token| {
            let share = part.share(token);
            share.is_positive() && share.ln().exp() > threshold
        })
    }
}
