//! F4: token samplers with unbiased weights.

use std::collections::BTreeMap;

use lexiform_law::{
    Allowed, Chooser, Part, Place, Row, Table, Weight, Weighted, adaptive, law_of, recursive,
};

use crate::number::{Cases, Exact, ratio, total};

const PLACE: fn() -> Place = || Place::new(0, 0);

/// E[weight · 1{token = x}] by token.
fn expectations(law: &BTreeMap<Option<Weighted<Exact>>, Exact>) -> BTreeMap<u32, Exact> {
    let mut sums = BTreeMap::new();
    for (outcome, probability) in law {
        if let Some(Weighted { token, weight }) = outcome {
            let entry = sums.entry(*token).or_insert_with(Exact::zero);
            *entry = entry.clone() + weight.clone() * probability.clone();
        }
    }
    sums
}

/// The plausible mistake: `loops` extra loops, and the weight scaled by their number.
fn naive(row: &Table<Exact>, allowed: &[u32], loops: i64, chooser: &mut impl Chooser<Exact>) -> Exact {
    let mut words = vec![(1 << row.len()) - 1_u32];
    let (mut left, mut rejections) = (Exact::one(), 0);
    for turn in 0..=loops {
        loop {
            let part = row.part(Allowed::Words(&words));
            let token = part.draw(PLACE(), chooser).expect("an allowed token is left");
            if allowed.contains(&token) {
                break;
            }
            rejections += 1;
            left = if turn == 0 {
                left * part.share_without(token)
            } else {
                left
            };
            words[0] &= !(1 << token);
        }
    }
    left * ratio(loops, rejections + loops)
}

fn coin() -> Table<Exact> {
    Table(vec![ratio(1, 2), ratio(1, 2)])
}

#[test]
fn the_recursive_weight_of_a_single_valid_token_never_varies() {
    let law = law_of(|chooser| recursive(&coin(), |token| token == 0, PLACE(), chooser));
    let outcomes: Vec<_> = law.into_iter().collect();
    assert_eq!(
        outcomes,
        [(
            Some(Weighted {
                token: 0,
                weight: ratio(1, 2)
            }),
            Exact::one()
        )]
    );
}

#[test]
fn the_adaptive_weight_is_right_on_average() {
    let law = law_of(|chooser| adaptive(&coin(), |token| token == 0, PLACE(), chooser));
    assert_eq!(expectations(&law), BTreeMap::from([(0, ratio(1, 2))]));
}

#[test]
fn scaling_the_weight_by_extra_loops_is_biased() {
    let mean = |loops| {
        let law = law_of(|chooser| naive(&coin(), &[0], loops, chooser));
        total(
            &law.into_iter()
                .map(|(weight, probability)| weight * probability)
                .collect::<Vec<_>>(),
        )
    };
    assert_eq!(mean(1), ratio(1, 2));
    assert_eq!(mean(2), ratio(13, 24));
}

#[test]
fn both_samplers_are_properly_weighted() {
    let mut cases = Cases(4);
    for _ in 0..40 {
        let row = Table(cases.row(4));
        let allowed = 1 + cases.below(15) as u32;
        let allows = |token: u32| allowed >> token & 1 == 1;
        let possible = |token: &u32| allows(*token) && row.probability(*token).is_positive();
        let target: BTreeMap<u32, Exact> = (0..4)
            .filter(possible)
            .map(|token| (token, row.probability(token)))
            .collect();
        let law = law_of(|chooser| recursive(&row, allows, PLACE(), chooser));
        assert_eq!(expectations(&law), target);
        let law = law_of(|chooser| adaptive(&row, allows, PLACE(), chooser));
        assert_eq!(expectations(&law), target);
    }
}

#[test]
fn no_allowed_token_is_no_sample() {
    let law = law_of(|chooser| recursive(&coin(), |_| false, PLACE(), chooser));
    assert_eq!(law.into_keys().collect::<Vec<_>>(), [None]);
    let law = law_of(|chooser| adaptive(&coin(), |_| false, PLACE(), chooser));
    assert_eq!(law.into_keys().collect::<Vec<_>>(), [None]);
}
