//! Siblings that were sampled without replacement: the rule that verifies them, and mistakes in it.

use std::collections::BTreeMap;

use lexiform_law::verify::residual;
use lexiform_law::{Allowed, Chooser, Part, Place, Purpose, Row, Table, Weight, law_of};

use crate::number::{Cases, Exact, ratio, total};

/// Ways to judge siblings that were drawn without replacement: the rule, and mistakes in it.
#[derive(Clone, Copy, PartialEq)]
enum Judge {
    Right,
    /// Tries the smallest token first.
    ByToken,
    /// Takes later siblings for draws from the whole row.
    StaleProposal,
    /// Compares later siblings with what is left of the target as it is.
    NotRenormalised,
    /// Does not try tokens that the drafter finds unlikely.
    Dropping,
    /// Tries the first alone, and draws from the target if it is rejected.
    NoResidual,
}

const TOKENS: usize = 4;

type Weights = Vec<Exact>;

fn norm(weights: &Weights) -> Weights {
    let sum = total(weights);
    match sum.is_positive() {
        true => weights
            .iter()
            .map(|weight| weight.clone() / sum.clone())
            .collect(),
        false => weights.clone(),
    }
}

fn without(row: &Weights, token: u32) -> Weights {
    let mut row = row.clone();
    row[token as usize] = Exact::zero();
    row
}

fn draw(weights: &Weights, place: Place, chooser: &mut impl Chooser<Exact>) -> u32 {
    chooser.choose(place, weights) as u32
}

/// Draws `count` siblings from `q` and judges them by hand, in a way that may be wrong.
fn by_hand(p: &Weights, q: &Weights, count: usize, judge: Judge, chooser: &mut impl Chooser<Exact>) -> u32 {
    let place = Place::new(0, 0);
    let (mut row, mut siblings) = (q.clone(), Vec::new());
    for number in 0..count as u32 {
        if !total(&row).is_positive() {
            break;
        }
        let token = draw(&row, place.to(Purpose::Draft).round(number), chooser);
        siblings.push(token);
        row = without(&row, token);
    }
    if judge == Judge::ByToken {
        siblings.sort_unstable();
    }
    let (mut left, mut row) = (p.clone(), q.clone());
    for token in siblings {
        let at = token as usize;
        let given = norm(if judge == Judge::StaleProposal { q } else { &row });
        row = without(&row, token);
        if judge == Judge::Dropping && given[at] < ratio(1, 3) {
            continue;
        }
        let wanted = if judge == Judge::NotRenormalised {
            left.clone()
        } else {
            norm(&left)
        };
        let weights = [
            wanted[at].clone().at_most(given[at].clone()),
            given[at].clone() - wanted[at].clone().at_most(given[at].clone()),
        ];
        if chooser.choose(place.to(Purpose::Accept), &weights) == 0 {
            return token;
        }
        if judge == Judge::NoResidual {
            return draw(p, place, chooser);
        }
        let excess = wanted.into_iter().zip(&given);
        let excess = excess.map(|(one, other)| one.clone() - one.at_most(other.clone()));
        left = excess.collect();
        if !total(&left).is_positive() {
            left.clone_from(p);
        }
    }
    draw(&left, place.to(Purpose::Residual), chooser)
}

/// Pairs of a target and a drafter's row.
fn pairs() -> Vec<(Weights, Weights)> {
    let mut cases = Cases(11);
    (0..60).map(|_| (cases.row(TOKENS), cases.row(TOKENS))).collect()
}

fn possible(p: &Weights) -> BTreeMap<u32, Exact> {
    let shares = (0..).zip(p.iter().cloned());
    shares.filter(|(_, share)| share.is_positive()).collect()
}

#[test]
fn siblings_without_replacement_have_the_target_law_and_accept_no_less_than_fewer() {
    for (p, q) in pairs() {
        let mut least = Exact::zero();
        for count in 1..=3 {
            let judged = law_of(|chooser| {
                let (row, mut siblings, mut proposals) = (Table(q.clone()), Vec::new(), Vec::new());
                for number in 0..count {
                    let mask = Allowed::All.without(&siblings, TOKENS);
                    let part = row.part(Allowed::Words(&mask));
                    let place = Place::new(0, 0).to(Purpose::Draft).round(number);
                    if let Some(token) = part.draw(place, chooser) {
                        siblings.push(token);
                        proposals.push((token, part));
                    }
                }
                let target = Table(p.clone());
                residual(&target.part(Allowed::All), proposals, Place::new(0, 0), chooser).expect("mass")
            });
            let mut law: BTreeMap<u32, Exact> = BTreeMap::new();
            let mut accepted = Exact::zero();
            for (judged, share) in judged {
                let all = law.entry(judged.token).or_insert_with(Exact::zero);
                *all = all.clone() + share.clone();
                if judged.accepted {
                    accepted = accepted + share;
                }
            }
            assert_eq!(law, possible(&p));
            let by_hand = law_of(|chooser| by_hand(&p, &q, count as usize, Judge::Right, chooser));
            assert_eq!(by_hand, law);
            if count == 1 {
                let smaller = p.iter().zip(&q).map(|(p, q)| p.clone().at_most(q.clone()));
                assert_eq!(accepted, total(&smaller.collect::<Vec<_>>()));
            }
            assert!(accepted >= least);
            least = accepted;
        }
    }
}

fn failures(judge: Judge, count: usize) -> usize {
    let differs =
        |(p, q): &(Weights, Weights)| law_of(|chooser| by_hand(p, q, count, judge, chooser)) != possible(p);
    pairs().iter().filter(|pair| differs(pair)).count()
}

#[test]
fn mistakes_in_judging_siblings_have_another_law() {
    for judge in [
        Judge::ByToken,
        Judge::StaleProposal,
        Judge::NotRenormalised,
        Judge::Dropping,
        Judge::NoResidual,
    ] {
        let failures = failures(judge, 3);
        assert!(
            failures > 30,
            "mutant {} fails only {failures} times",
            judge as u8
        );
    }
    assert_eq!(failures(Judge::Right, 3), 0);
}
