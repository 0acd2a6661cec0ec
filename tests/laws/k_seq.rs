//! k-seq, exactly: the law of its token, its acceptance rate, and mistakes in it.

use std::collections::BTreeMap;

use lexiform_law::verify::k_seq;
use lexiform_law::{Allowed, Chooser, Place, Purpose, Row, Table, Weight, law_of};

use crate::number::{Cases, Exact, ratio, total};

const TOKENS: usize = 4;

type Weights = Vec<Exact>;

fn pairs() -> Vec<(Weights, Weights)> {
    let mut cases = Cases(23);
    (0..24).map(|_| (cases.row(TOKENS), cases.row(TOKENS))).collect()
}

fn possible(p: &Weights) -> BTreeMap<u32, Exact> {
    let shares = (0..).zip(p.iter().cloned());
    shares.filter(|(_, share)| share.is_positive()).collect()
}

/// Draws `count` tokens from `q`, each from all of it.
fn drafted(q: &Weights, count: u32, chooser: &mut impl Chooser<Exact>) -> Vec<u32> {
    let place = |number| Place::new(0, 0).to(Purpose::Draft).round(number);
    (0..count)
        .map(|number| chooser.choose(place(number), q) as u32)
        .collect()
}

/// The law of the token, and the probability that it is a drafted one.
fn judged(p: &Weights, q: &Weights, count: u32) -> (BTreeMap<u32, Exact>, Exact) {
    let (target, proposal) = (Table(p.clone()), Table(q.clone()));
    let judged = law_of(|chooser| {
        let drafted = drafted(q, count, chooser);
        let (target, proposal) = (target.part(Allowed::All), proposal.part(Allowed::All));
        k_seq(&target, &proposal, &drafted, Place::new(0, 0), chooser).expect("the target has mass")
    });
    let (mut law, mut accepted) = (BTreeMap::new(), Exact::zero());
    for (judged, share) in judged {
        let all = law.entry(judged.token).or_insert_with(Exact::zero);
        *all = all.clone() + share.clone();
        if judged.accepted {
            accepted = accepted + share;
        }
    }
    (law, accepted)
}

#[test]
fn the_token_has_the_target_law_and_more_drafts_are_accepted_more_often() {
    for (p, q) in pairs() {
        let mut least = Exact::zero();
        for count in 0..=3 {
            let (law, accepted) = judged(&p, &q, count);
            assert_eq!(law, possible(&p), "{count}");
            let alone = p.iter().zip(&q).map(|(p, q)| p.clone().at_most(q.clone()));
            match count {
                0 => assert_eq!(accepted, Exact::zero()),
                1 => assert_eq!(accepted, total(&alone.collect::<Vec<_>>())),
                // With the best factor it is never less; it is found to so much.
                _ => assert!(accepted.clone() + ratio(1, 500) >= least),
            }
            least = accepted;
        }
    }
}

/// No rule accepts more than `Σ min(p, k q)`; k-seq accepts at least `1 − (1 − 1/k)^k` of that.
#[test]
fn acceptance_is_within_the_bound_of_the_paper() {
    for (p, q) in pairs() {
        for count in 2..=3_u32 {
            let k = ratio(count.into(), 1);
            let most = p
                .iter()
                .zip(&q)
                .map(|(p, q)| p.clone().at_most(k.clone() * q.clone()));
            let most = total(&most.collect::<Vec<_>>());
            let missed = (0..count).fold(Exact::one(), |all, _| {
                all * (Exact::one() - Exact::one() / k.clone())
            });
            let (_, accepted) = judged(&p, &q, count);
            assert!(accepted <= most);
            assert!(accepted >= (Exact::one() - missed) * most);
        }
    }
}

/// A token that the proposal cannot draw is judged as none, and laws that have nothing in common lose
/// nothing.
#[test]
fn what_was_not_drawn_from_the_proposal_is_never_accepted() {
    let row = |weights: [i64; 3]| Table(weights.map(|weight| ratio(weight, 4)).to_vec());
    let (p, q) = (row([1, 3, 0]), row([0, 0, 4]));
    let law = law_of(|chooser| {
        let (p, q) = (p.part(Allowed::All), q.part(Allowed::All));
        k_seq(&p, &q, &[1, 2, 9], Place::new(0, 0), chooser).expect("mass")
    });
    assert!(law.keys().all(|judged| !judged.accepted));
    let shares: Vec<Exact> = law.into_values().collect();
    assert_eq!(shares, [ratio(1, 4), ratio(3, 4)]);
    let nothing = Table(vec![Exact::zero(); 3]);
    let law = law_of(|chooser| {
        let q = q.part(Allowed::All);
        k_seq(
            &nothing.part(Allowed::All),
            &q,
            &[2, 2],
            Place::new(0, 0),
            chooser,
        )
    });
    assert_eq!(law, BTreeMap::from([(None, Exact::one())]));
}

/// Ways to judge independent drafts that are wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mistake {
    None,
    /// Accepts with `min(1, p / q)`, as for a single draft.
    NoFactor,
    /// Replaces what was rejected by a draw from `norm(p − kept)`, as for a single draft.
    OneTried,
    /// Draws the replacement from the target.
    NoResidual,
    /// Takes siblings that were drawn without replacement.
    WithoutReplacement,
    /// Tries the smallest token first.
    ByToken,
}

/// k-seq by hand with the factor `k`, which is right and not the best.
fn by_hand(p: &Weights, q: &Weights, mistake: Mistake, chooser: &mut impl Chooser<Exact>) -> u32 {
    const COUNT: u32 = 3;
    let factor = match mistake {
        Mistake::NoFactor => Exact::one(),
        _ => ratio(COUNT.into(), 1),
    };
    let kept: Weights = p
        .iter()
        .zip(q)
        .map(|(p, q)| q.clone().at_most(p.clone() / factor.clone()))
        .collect();
    let mut tokens = drafted(q, COUNT, chooser);
    if mistake == Mistake::WithoutReplacement {
        let mut row = q.clone();
        tokens.clear();
        for number in 0..COUNT {
            if total(&row).is_positive() {
                let place = Place::new(0, 0).to(Purpose::DraftBlock).round(number);
                let token = chooser.choose(place, &row);
                row[token] = Exact::zero();
                tokens.push(token as u32);
            }
        }
    }
    if mistake == Mistake::ByToken {
        tokens.sort_unstable();
    }
    for token in tokens {
        let at = token as usize;
        let weights = [kept[at].clone(), q[at].clone() - kept[at].clone()];
        if chooser.choose(Place::new(0, 0).to(Purpose::Accept), &weights) == 0 {
            return token;
        }
    }
    let rejected = Exact::one() - total(&kept);
    let mut tried = Exact::one() + rejected.clone() + rejected.clone() * rejected;
    if mistake == Mistake::OneTried {
        tried = Exact::one();
    }
    let left = p.iter().zip(&kept).map(|(p, kept)| {
        let kept = kept.clone() * tried.clone();
        p.clone() - kept.at_most(p.clone())
    });
    let left: Weights = left.collect();
    let row = if mistake == Mistake::NoResidual || !total(&left).is_positive() {
        p
    } else {
        &left
    };
    chooser.choose(Place::new(0, 0).to(Purpose::Residual), row) as u32
}

#[test]
fn mistakes_have_another_law() {
    let failures = |mistake: Mistake| {
        let differs =
            |(p, q): &(Weights, Weights)| law_of(|chooser| by_hand(p, q, mistake, chooser)) != possible(p);
        pairs().iter().filter(|pair| differs(pair)).count()
    };
    assert_eq!(failures(Mistake::None), 0);
    for mistake in [
        Mistake::NoFactor,
        Mistake::OneTried,
        Mistake::NoResidual,
        Mistake::WithoutReplacement,
        Mistake::ByToken,
    ] {
        let failures = failures(mistake);
        assert!(failures > 12, "{mistake:?} fails only {failures} times");
    }
}
