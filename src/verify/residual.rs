//! The rejection rule for sampled drafts.

use crate::law::{Chooser, Part, Place, Purpose, Weight};

/// The outcome of [`residual`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Judged {
    /// The token to append; its law is the target's.
    pub token: u32,
    /// Whether it is the drafted one.
    pub accepted: bool,
}

/// Judges a token that was drawn from `proposal`: accepts it with probability `min(1, target/proposal)`, or else draws from
/// what the target has more than the proposal. The token returned has the law `target` exactly; it is the drafted one
/// with probability `Σ min(target, proposal)`.
///
/// Both laws must be the ones inside the mask: `proposal` that which `drafted` was drawn from, cut and renormalised, and
/// `target` likewise. `len` is the number of tokens of the rows. `None` if the target has no mass.
///
/// The draws differ from those of undrafted decoding, so a seed does not give the same tokens as without a draft.
pub fn residual<W: Weight>(
    target: &impl Part<W>,
    proposal: &impl Part<W>,
    drafted: u32,
    len: usize,
    place: Place,
    chooser: &mut (impl Chooser<W> + ?Sized),
) -> Option<Judged> {
    let (wanted, given) = (target.share(drafted), proposal.share(drafted));
    if wanted >= given && given.is_positive() {
        return Some(Judged {
            token: drafted,
            accepted: true,
        });
    }
    if wanted.is_positive() {
        let reject = given.clone() - wanted.clone();
        if chooser.choose(place.to(Purpose::Accept), &[wanted, reject]) == 0 {
            return Some(Judged {
                token: drafted,
                accepted: true,
            });
        }
    }
    let excess = |token: usize| {
        let (wanted, given) = (target.share(token as u32), proposal.share(token as u32));
        if wanted > given { wanted - given } else { W::zero() }
    };
    let weights: Vec<W> = (0..len).map(excess).collect();
    if !weights.iter().any(W::is_positive) {
        // The two laws are equal up to rounding, and the token was rejected by rounding alone.
        return target
            .draw(place.to(Purpose::Residual), chooser)
            .map(|token| Judged {
                token,
                accepted: false,
            });
    }
    let token = chooser.choose(place.to(Purpose::Residual), &weights) as u32;
    Some(Judged {
        token,
        accepted: false,
    })
}
