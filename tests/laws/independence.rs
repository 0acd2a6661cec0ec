//! The chain that replaces attempts: its law is that of an independence sampler over the trie that they
//! updated.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use lexiform_law::{Fallback, LawError, LawTag, Trie, Walk, Weight, law_of};

use crate::adaptive::text;
use crate::global::{Outcomes, attempt, run, trie};
use crate::model::{END, Law, Task, Word, normalised, variation};
use crate::number::Exact;

/// The law of a text over a trie, and its weight.
type Proposals = BTreeMap<Word, (Exact, Exact)>;

fn proposals(task: &Task, trie: &Trie<Exact>) -> Proposals {
    let law = law_of(|chooser| text(task, &mut trie.clone(), chooser));
    law.into_iter()
        .map(|((word, weight), share)| (word, (share, weight)))
        .collect()
}

/// The law after one step, by its formula.
fn after(law: &Law, proposals: &Proposals) -> Law {
    let mut next = Law::new();
    let mut add = |word: &Word, share: Exact| {
        let entry = next.entry(word.clone()).or_insert_with(Exact::zero);
        *entry = entry.clone() + share;
    };
    for (word, p) in law {
        let (_, weight) = &proposals[word];
        let mut stays = Exact::one();
        for (other, (share, proposed)) in proposals {
            let moves = share.clone() * (proposed.clone() / weight.clone()).at_most(Exact::one());
            stays = stays - moves.clone();
            add(other, p.clone() * moves);
        }
        add(word, p.clone() * stays);
    }
    next
}

/// The law of a text in place of one failed attempt, after so many steps, by its formula.
fn expected(task: &Task, steps: u32) -> Law {
    let outcomes = Outcomes::by(&trie(4), &|trie, chooser| attempt(task, trie, chooser));
    let mut law = Law::new();
    for ((word, key), share) in &outcomes.law {
        let known = &outcomes.tries[key];
        if word.is_some() || known.bound(&[]).is_some_and(|bound| !bound.is_positive()) {
            continue;
        }
        let proposals = proposals(task, known);
        let first = proposals
            .iter()
            .map(|(word, (share, _))| (word.clone(), share.clone()));
        let last = (0..steps).fold(first.collect(), |law, _| after(&law, &proposals));
        for (word, p) in last {
            let entry = law.entry(word).or_insert_with(Exact::zero);
            *entry = entry.clone() + p * share.clone();
        }
    }
    normalised(law)
}

/// The law of what a walk of one attempt writes in its place.
fn found(task: &Task, steps: u32) -> Law {
    let law = law_of(|chooser| {
        let shared = Arc::new(Mutex::new(trie(4)));
        let mut walk = Walk::global(shared, 1, Fallback::Chain { steps });
        let word = run(task, &mut walk, chooser).expect("a chain always has a word here");
        let is_chain = walk.tag() == LawTag::Mcmc;
        assert_eq!(walk.moves().is_some(), is_chain);
        assert!(is_chain || walk.tag() == LawTag::GlobalExact);
        assert_eq!(walk.failed_attempts(), u32::from(is_chain));
        assert!(
            walk.moves()
                .is_none_or(|(all, moves)| all == steps && moves <= steps)
        );
        (is_chain, word)
    });
    let of_chain = law.into_iter().filter(|((is_chain, _), _)| *is_chain);
    normalised(of_chain.map(|((_, word), share)| (word, share)).collect())
}

fn tasks() -> [Task; 4] {
    [
        Task::first(),
        Task::random(1, 2),
        Task::random(4, 2),
        Task::random(6, 2),
    ]
}

#[test]
fn a_chain_in_place_of_attempts_has_the_law_of_its_formula() {
    for task in tasks() {
        for steps in 0..3 {
            assert_eq!(found(&task, steps), expected(&task, steps), "{steps} steps");
        }
    }
}

#[test]
fn the_global_law_is_stationary_over_any_trie() {
    for task in tasks() {
        let (global, _) = task.global(4);
        let outcomes = Outcomes::by(&trie(4), &|trie, chooser| attempt(&task, trie, chooser));
        for known in outcomes.tries.values() {
            assert_eq!(after(&global, &proposals(&task, known)), global);
        }
    }
}

#[test]
fn steps_come_nearer_to_the_global_law() {
    let task = Task::first();
    let (global, _) = task.global(4);
    let distances: Vec<Exact> = (0..4)
        .map(|steps| variation(&expected(&task, steps), &global))
        .collect();
    assert!(distances.is_sorted_by(|one, other| one > other), "{distances:?}");
}

/// The weights of the local law do not belong to texts that were drawn with what the trie knows.
#[test]
fn weights_of_another_law_fail() {
    let is_stationary = |task: &Task| {
        let (global, _) = task.global(4);
        let outcomes = Outcomes::by(&trie(4), &|trie, chooser| attempt(task, trie, chooser));
        outcomes.tries.values().all(|known| {
            let mut proposals = proposals(task, known);
            for (word, (_, weight)) in &mut proposals {
                *weight = task.weight(word);
            }
            after(&global, &proposals) == global
        })
    };
    assert!(!is_stationary(&Task::first()));
}

#[test]
fn a_chain_without_any_text_is_exhausted() {
    let mut task = Task::first();
    task.words = [vec![0, END]].into();
    let law = law_of(|chooser| {
        let shared = Arc::new(Mutex::new(trie(4)));
        let mut walk = Walk::global(shared, 1, Fallback::Chain { steps: 3 });
        run(&task, &mut walk, chooser).map_err(|error| matches!(error, LawError::Exhausted { .. }))
    });
    assert_eq!(law.into_keys().collect::<Vec<_>>(), [Err(true)]);
}
