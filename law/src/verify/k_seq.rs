//! k-seq: several tokens drawn independently from one row.

use super::Judged;
use crate::law::{Allowed, Chooser, Part, Place, Purpose, Row, Table, Weight};

/// The number of times that the interval of the factor is halved.
const STEPS: usize = 10;

/// Judges tokens that were drawn from one proposal independently of each other, so that one may occur several
/// times (SpecTr, [Sun et al. 2023](https://arxiv.org/abs/2310.15141)):
///
/// ```text
///   kept = min(q, p / ρ)        β = Σ kept
///   for each x of k:  accept x with probability kept(x) / q(x)
///   none accepted:    draw from  norm(p − kept · (1 − (1 − β)^k) / β)
/// ```
///
/// The token returned has the law `target` exactly for every `ρ` with `(1 − (1 − β)^k) / β ≤ ρ`, because then
/// no more is subtracted from `p` than it has. The smallest such `ρ` is between 1 and `k` and accepts the
/// most, `1 − (1 − β)^k`, which is at least `1 − (1 − 1/k)^k` of what the best rule for independent drafts
/// accepts; it is found to `(k − 1) / 1024` by halving, from the two rows alone. A single token is judged by
/// the [residual rule](super::residual), with `ρ = 1`.
///
/// All laws must be restricted to the mask. Returns `None` if the target has no mass. Cost: some passes over
/// both rows.
pub fn k_seq<W: Weight>(
    target: &impl Part<W>,
    proposal: &impl Part<W>,
    drafted: &[u32],
    place: Place,
    chooser: &mut (impl Chooser<W> + ?Sized),
) -> Option<Judged> {
    let rejected = |token| Judged {
        token,
        accepted: false,
    };
    if drafted.is_empty() {
        return target.draw(place, chooser).map(rejected);
    }
    let (wanted, mut given) = (target.shares(), proposal.shares());
    given.resize(wanted.len().max(given.len()), W::zero());
    let factor = factor(&wanted, &given, drafted.len());
    let kept: Vec<W> = kept(&wanted, &given, &factor).collect();
    for (number, &token) in (0..).zip(drafted) {
        let at = place.to(Purpose::Accept).round(number);
        let (Some(kept), Some(given)) = (kept.get(token as usize), given.get(token as usize)) else {
            continue;
        };
        // A token that its proposal cannot draw was not drawn from it.
        let is_possible = given.is_positive() && kept.is_positive();
        if is_possible && chooser.choose(at, &[kept.clone(), given.clone() - kept.clone()]) == 0 {
            return Some(Judged {
                token,
                accepted: true,
            });
        }
    }
    let tried = tried(sum(kept.iter().cloned()), drafted.len());
    let left = wanted.into_iter().zip(kept).map(|(wanted, kept)| {
        let kept = kept * tried.clone();
        if wanted > kept { wanted - kept } else { W::zero() }
    });
    let left = Table(left.collect());
    let left = left.part(Allowed::All);
    let replaces = place.to(Purpose::Residual);
    // If only rounding is left, the two laws are equal, and the tokens were rejected by rounding alone.
    match left.mass().is_positive() {
        true => left.draw(replaces, chooser).map(rejected),
        false => target.draw(replaces, chooser).map(rejected),
    }
}

/// Returns `min(q, p / ρ)`.
fn kept<W: Weight>(wanted: &[W], given: &[W], factor: &W) -> impl Iterator<Item = W> {
    let pairs = wanted.iter().zip(given);
    pairs.map(|(wanted, given)| given.clone().at_most(wanted.clone() / factor.clone()))
}

fn sum<W: Weight>(weights: impl Iterator<Item = W>) -> W {
    weights.fold(W::zero(), |all, weight| all + weight)
}

/// Returns `(1 − (1 − β)^k) / β`: how many of `k` tokens are tried on average until one is accepted.
fn tried<W: Weight>(accepted: W, count: usize) -> W {
    let rejected = match accepted < W::one() {
        true => W::one() - accepted,
        false => W::zero(),
    };
    let mut reached = W::one();
    let mut tried = W::zero();
    for _ in 0..count {
        tried = tried + reached.clone();
        reached = reached * rejected.clone();
    }
    tried
}

/// Returns a factor `ρ` that preserves the law of the target, close to the smallest such factor.
fn factor<W: Weight>(wanted: &[W], given: &[W], count: usize) -> W {
    let is_right = |factor: &W| tried(sum(kept(wanted, given, factor)), count) <= *factor;
    let two = W::one() + W::one();
    let (mut low, mut high) = (W::one(), (0..count).fold(W::zero(), |all, _| all + W::one()));
    for _ in 0..STEPS {
        let middle = (low.clone() + high.clone()) / two.clone();
        match is_right(&middle) {
            true => high = middle,
            false => low = middle,
        }
    }
    high
}
