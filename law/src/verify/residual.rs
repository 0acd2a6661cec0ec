//! The rejection rule for sampled drafts.

use crate::law::{Allowed, Chooser, Part, Place, Purpose, Row, Table, Weight};

/// The outcome of [`residual`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Judged {
    /// The token to append; its law is the target's.
    pub token: u32,
    /// `true` if the token was drafted.
    pub accepted: bool,
}

/// Judges tokens that were drawn one after the other, each from its proposal, in the order in which they were
/// drawn:
///
/// ```text
///   p ← target
///   for each (x, q):   accept x with probability min(1, p(x) / q(x)), or else   p ← norm(max(0, p − q))
///   none accepted:     draw from p
/// ```
///
/// The token returned has the law `target` exactly, as long as each token was drawn from its `q`, which may
/// depend on the tokens before it. For draws without replacement, `q` is the drafter's row without the tokens
/// before. A single token is accepted with probability `Σ min(target, q)`, which is the best possible;
/// without any token this draws from the target.
///
/// All laws must be restricted to the mask: cut and renormalised. Returns `None` if the target has no mass.
///
/// The draws differ from those of undrafted decoding, so a seed does not give the same tokens as without a
/// draft.
pub fn residual<W: Weight, Q: Part<W>>(
    target: &impl Part<W>,
    trials: impl IntoIterator<Item = (u32, Q)>,
    place: Place,
    chooser: &mut (impl Chooser<W> + ?Sized),
) -> Option<Judged> {
    let mut left = None;
    let mut replaces = place;
    for (number, (drafted, proposal)) in (0..).zip(trials) {
        replaces = place.to(Purpose::Residual);
        let at = place.to(Purpose::Accept).round(number);
        let accepted = match &left {
            None => accepts(target, &proposal, drafted, at, chooser),
            Some(left) => accepts(left, &proposal, drafted, at, chooser),
        };
        if accepted {
            return Some(Judged {
                token: drafted,
                accepted,
            });
        }
        let wanted = left.as_ref().map_or_else(|| target.shares(), Part::shares);
        let excess = excess(wanted, proposal.shares());
        if !excess.part(Allowed::All).mass().is_positive() {
            // The two laws are equal up to rounding, and the token was rejected by rounding alone.
            break;
        }
        left = Some(excess.part(Allowed::All));
    }
    let token = match &left {
        Some(left) => left.draw(replaces, chooser),
        None => target.draw(replaces, chooser),
    };
    token.map(|token| Judged {
        token,
        accepted: false,
    })
}

/// Returns `true` if a token drawn from the proposal is accepted.
fn accepts<W: Weight>(
    target: &impl Part<W>,
    proposal: &impl Part<W>,
    drafted: u32,
    place: Place,
    chooser: &mut (impl Chooser<W> + ?Sized),
) -> bool {
    let (wanted, given) = (target.share(drafted), proposal.share(drafted));
    if wanted >= given {
        // A token that its proposal cannot draw was not drawn from it.
        return given.is_positive();
    }
    wanted.is_positive() && chooser.choose(place, &[wanted.clone(), given - wanted]) == 0
}

/// Returns `max(0, wanted − given)`, for every token that is wanted.
fn excess<W: Weight>(wanted: Vec<W>, given: Vec<W>) -> Table<W> {
    let given = given.into_iter().chain(std::iter::repeat_with(W::zero));
    let excess = wanted
        .into_iter()
        .zip(given)
        .map(|(wanted, given)| if wanted > given { wanted - given } else { W::zero() });
    Table(excess.collect())
}
