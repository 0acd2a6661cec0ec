//! Lossy acceptance of drafts, for requests that prefer speed to their law.

use super::{LawError, Part, Weight};

/// Typical acceptance of Medusa ([Cai et al. 2024](https://arxiv.org/abs/2401.10774)): a drafted token is
/// accepted where its probability under the law of its place is above `min(ε, δ exp(−H))`, with `H` the
/// entropy of that law in nats.
///
/// Where the model is unsure, much is accepted; where it is sure, hardly anything but what it would have
/// written. The text has no law that can be written down: it depends on what was drafted, and is tagged
/// [`LawTag::Lossy`](super::LawTag::Lossy). What is forbidden has no probability and is never accepted. With
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

    /// With these bounds. `ε` lies between 0 and 1, and `δ` is not below 0: with 0 for one of them all that
    /// may be drawn is accepted.
    ///
    /// # Errors
    /// One of them is out of its range.
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

    /// `ε`: what is more likely than this is always accepted.
    pub fn epsilon(&self) -> f64 {
        self.epsilon
    }

    /// `δ`: how far less likely tokens are accepted where the law is spread out.
    pub fn delta(&self) -> f64 {
        self.delta
    }

    /// The probability above which tokens of a part are accepted. Cost: a pass over the part.
    pub(crate) fn threshold<W: Weight>(&self, part: &impl Part<W>) -> f64 {
        let surprise = |share: &W| match share.is_positive() {
            true => -share.ln() * share.ln().exp(),
            false => 0.0,
        };
        let entropy: f64 = part.shares().iter().map(surprise).sum();
        self.epsilon.min(self.delta * (-entropy).exp())
    }

    /// The first of these tokens that is accepted where a part is the law.
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
