//! Rejection control: proper weights at every level, particles at one end and rejection at the other.

use lexiform_law::{Allowed, Attempt, Chooser, Step, Trie, Weight, law_of};

use crate::adaptive;
use crate::global::{NoThinning, Outcomes, attempt, reachable_by, trie};
use crate::model::{Task, Word};
use crate::number::{Exact, ratio, total};

/// A text with its weight, unless it failed.
fn text<C: Chooser<Exact>>(
    task: &Task,
    level: &Exact,
    trie: &mut Trie<Exact>,
    chooser: &mut C,
) -> Option<(Word, Exact)> {
    let mut attempt = Attempt::controlled(trie, 0, level.clone());
    let mut word = Word::new();
    loop {
        let mask = task.mask(&word);
        match attempt.next(trie, &task.row(&word), Allowed::Words(&mask), chooser) {
            Step::Token(drawn) => word.push(drawn.token),
            Step::End(drawn) => {
                let word = [word, vec![drawn.token]].concat();
                return Some((word, attempt.weight().expect("under control")));
            }
            Step::Restart => return None,
            Step::Stuck(error) => panic!("{error}"),
        }
    }
}

/// Whether `E[weight · 1{text = w}] = P(w)` for every valid word.
fn is_proper(task: &Task, law: impl IntoIterator<Item = (Option<(Word, Exact)>, Exact)>) -> bool {
    let (global, mass) = task.global(4);
    let law: Vec<_> = law.into_iter().collect();
    global.iter().all(|(word, p)| {
        let of_word = law.iter().filter_map(|(outcome, share)| {
            let (text, weight) = outcome.as_ref()?;
            (text == word).then(|| weight.clone() * share.clone())
        });
        total(&of_word.collect::<Vec<_>>()) == p.clone() * mass.clone()
    })
}

fn tasks() -> impl Iterator<Item = Task> {
    std::iter::once(Task::first()).chain((0..8).map(|seed| Task::random(seed, 3)))
}

fn tries(task: &Task) -> Vec<Trie<Exact>> {
    reachable_by(trie(4), 2, &|trie, chooser| attempt(task, trie, chooser))
}

#[test]
fn weights_are_proper_at_every_level() {
    for task in tasks() {
        for level in [ratio(0, 1), ratio(1, 20), ratio(1, 3), ratio(1, 1)] {
            for trie in tries(&task) {
                let law = law_of(|chooser| text(&task, &level, &mut trie.clone(), chooser));
                assert!(is_proper(&task, law), "{level:?}");
            }
        }
    }
}

#[test]
fn level_zero_is_a_text_with_its_weight() {
    for task in tasks() {
        for trie in tries(&task) {
            let law = law_of(|chooser| text(&task, &ratio(0, 1), &mut trie.clone(), chooser));
            let adaptive = law_of(|chooser| Some(adaptive::text(&task, &mut trie.clone(), chooser)));
            assert_eq!(law, adaptive);
        }
    }
}

#[test]
fn level_one_is_rejection_sampling() {
    for task in tasks() {
        for trie in tries(&task) {
            let law = law_of(|chooser| text(&task, &ratio(1, 1), &mut trie.clone(), chooser));
            let accepted = Outcomes::by(&trie, &|trie, chooser| attempt(&task, trie, chooser)).accepted();
            let bound = trie.bound(&[]).unwrap_or_else(|| task.mass(&[]));
            for ((word, weight), share) in law.into_iter().filter_map(|(it, share)| Some((it?, share))) {
                assert_eq!(weight, bound);
                assert_eq!(share, accepted[&word]);
            }
        }
    }
}

#[test]
fn levels_between_fail_less_than_one_and_vary_less_than_zero() {
    let task = Task::first();
    let of = |level: Exact| {
        let law = law_of(|chooser| text(&task, &level, &mut trie(4), chooser));
        let failures = law.get(&None).cloned().unwrap_or_else(Exact::zero);
        let squares = law.iter().filter_map(|(outcome, share)| {
            let (_, weight) = outcome.as_ref()?;
            Some(weight.clone() * weight.clone() * share.clone())
        });
        let accepted = Exact::one() - failures.clone();
        // Of the texts that did not fail, the mean square of the weight over the square of its mean.
        let mean = task.global(4).1 / accepted.clone();
        let spread = total(&squares.collect::<Vec<_>>()) / accepted / (mean.clone() * mean);
        (failures, spread)
    };
    let (none, some, all) = (of(ratio(0, 1)), of(ratio(1, 10)), of(ratio(1, 1)));
    assert!(none.0 == Exact::zero() && none.0 < some.0 && some.0 < all.0);
    assert!(none.1 > some.1 && some.1 > all.1 && all.1 == Exact::one());
}

/// Every text goes on, with the weight of those that did not have to.
#[test]
fn a_weight_raised_without_failures_fails() {
    let (task, level) = (Task::first(), ratio(1, 10));
    let law = law_of(|chooser| text(&task, &level, &mut trie(4), &mut NoThinning(chooser)));
    assert!(!is_proper(&task, law));
}
