//! Adaptive sampling with approximate expected futures: the published values, and weights that are proper for
//! any trie.

use std::sync::{Arc, Mutex};

use lexiform_law::{Allowed, Attempt, Chooser, LawTag, Sampler, Step, Trie, Walk, Weight, law_of};

use crate::model::{END, Task, Word};
use crate::number::{Exact, ratio, total};

/// Draws a text with its importance weight.
pub(crate) fn text(task: &Task, trie: &mut Trie<Exact>, chooser: &mut impl Chooser<Exact>) -> (Word, Exact) {
    let mut attempt = Attempt::adaptive(trie, 0);
    let (mut word, mut weight) = (Word::new(), Exact::one());
    loop {
        let mask = task.mask(&word);
        let step = attempt.next(trie, &task.row(&word), Allowed::Words(&mask), chooser);
        weight = weight * attempt.factor().clone();
        match step {
            Step::Token(drawn) => word.push(drawn.token),
            Step::End(drawn) => {
                word.push(drawn.token);
                return (word, weight);
            }
            other => panic!("an adaptive attempt comes to its end here: {other:?}"),
        }
    }
}

#[test]
fn the_first_fixture_has_its_published_values() {
    let task = Task::first();
    let expected = [ratio(1, 2), ratio(103, 404), ratio(107, 808), ratio(115, 1616)];
    for (before, expected) in expected.into_iter().enumerate() {
        let law = law_of(|chooser| {
            let mut trie = Trie::new(&[END], 4, usize::MAX);
            for _ in 0..before {
                text(&task, &mut trie, chooser);
            }
            text(&task, &mut trie, chooser).0
        });
        assert_eq!(law[&vec![0, 0, 0, END]], expected, "after {before} texts");
    }
}

#[test]
fn texts_are_properly_weighted_whatever_the_trie_has_learned() {
    for task in [Task::first(), Task::random(1, 2), Task::random(4, 2)] {
        let (global, mass) = task.global(4);
        for before in 0..3 {
            let law = law_of(|chooser| {
                let mut trie = Trie::new(&[END], 4, usize::MAX);
                for _ in 0..before {
                    text(&task, &mut trie, chooser);
                }
                text(&task, &mut trie, chooser)
            });
            for (word, p) in &global {
                let of_word = law.iter().filter(|((text, _), _)| text == word);
                let mean: Vec<Exact> = of_word
                    .map(|((_, weight), share)| weight.clone() * share.clone())
                    .collect();
                assert_eq!(total(&mean), p.clone() * mass.clone(), "{word:?} after {before}");
            }
        }
    }
}

/// Without the factor of the first place, the weights are those of another `Z`.
#[test]
fn weights_without_the_root_fail() {
    let task = Task::random(1, 2);
    let (_, mass) = task.global(4);
    let law = law_of(|chooser| {
        let mut trie = Trie::new(&[END], 4, usize::MAX);
        let (_, weight) = text(&task, &mut trie, chooser);
        weight / task.mass(&[])
    });
    let mean: Vec<Exact> = law.into_iter().map(|(weight, share)| weight * share).collect();
    assert!(task.mass(&[]) == Exact::one() || total(&mean) != mass);
}

#[test]
fn a_walk_carries_the_weight() {
    let task = Task::first();
    law_of(|chooser| {
        let trie = Arc::new(Mutex::new(Trie::new(&[END], 4, usize::MAX)));
        for _ in 0..2 {
            let mut walk = Walk::adaptive(trie.clone());
            let mut word = Word::new();
            while word.last() != Some(&END) {
                assert!(!walk.is_certain());
                let mask = task.mask(&word);
                match walk.next(&task.row(&word), Allowed::Words(&mask), chooser) {
                    Step::Token(drawn) | Step::End(drawn) => word.push(drawn.token),
                    other => panic!("{other:?}"),
                }
            }
            assert_eq!(walk.tag(), LawTag::Asap);
            let factors: f64 = walk.rows().iter().map(|row| row.1).sum();
            assert!((walk.log_weight() - factors).abs() < 1e-12 && walk.log_weight() < 1e-12);
        }
    });
}
