//! SVIP: a draft ends where its drafter is unsure of what comes next.
//!
//! The probability that a token drawn from `q` is accepted is at least `1 − √(c H(q))`, where `H` is the
//! entropy of `q`, for models of one family ([Zhang et al. 2024](https://arxiv.org/abs/2411.18462)). So a
//! draft continues while that bound is high enough, and all drafted tokens are fed. `q` is the distribution
//! that the token is drawn from: the row inside the mask. Forced text has the entropy 0 and never ends a
//! draft.
//!
//! The entropy depends on the row, not on the token drawn from it, which is drafted in any case: sampled
//! tokens stay exact ([`lexiform_law::verify`]).

use lexiform_law::draft::{Chain, Stop};

/// The paper's constant `c`.
const SLACK: f64 = 0.15;
/// The largest `√(c H)` with which a draft continues, as in the paper.
const MOST_ENTROPY: f32 = 0.3;

/// Returns `true` if a draft ends after a token that was drawn from a row with these shares.
pub(crate) fn ends_after(shares: impl IntoIterator<Item = f64>) -> bool {
    let surprise = |share: f64| if share > 0.0 { -share * share.ln() } else { 0.0 };
    let entropy: f64 = shares.into_iter().map(surprise).sum();
    (SLACK * entropy).sqrt() > MOST_ENTROPY.into()
}

/// Returns the shape in which the tokens of a store are drafted.
pub(crate) fn shape() -> Chain {
    Chain {
        stop: Stop::Unsure(MOST_ENTROPY),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bound is 0.6 nats: between a coin that falls the same way two times out of three and a fair one.
    #[test]
    fn a_draft_ends_where_the_entropy_is_above_six_tenths() {
        assert!(!ends_after([1.0]));
        assert!(!ends_after([0.75, 0.25, 0.0]));
        assert!(ends_after([0.5, 0.5]));
        assert!(ends_after([0.25; 4]));
    }
}
