//! Drafts that update the trie: accepted samples have the global law at every trie that harvesting attempts
//! can reach, if they are thinned, and fewer attempts are needed.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use lexiform_law::draft::{Node, Origin, Proposal};
use lexiform_law::verify::{Next, tree};
use lexiform_law::{
    Allowed, Attempt, Chooser, Fallback, LawError, LawTag, Part, Place, Purpose, Row, Step, Table, Trie,
    Walk, Weight, law_of,
};

use crate::global::{NoThinning, Outcomes, expected_attempts, reachable_by, trie};
use crate::model::{END, Task, Word, normalised};
use crate::number::{Exact, ratio, total};

/// How drafts are chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Drafts {
    /// None.
    None,
    /// The same chain everywhere.
    Chain(&'static [u32]),
    /// All letters, and all letters after these; also those that no word has.
    Wide,
    /// The most likely letter, and the most likely one after it.
    Likely,
}

const DRAFTS: [Drafts; 4] = [
    Drafts::Chain(&[0, 0]),
    Drafts::Chain(&[1, 0, 1]),
    Drafts::Wide,
    Drafts::Likely,
];

type Tree = Vec<(Option<usize>, u32)>;

impl Drafts {
    fn after(self, task: &Task, prefix: &[u32]) -> Tree {
        let likeliest = |prefix: &[u32]| {
            let row = task.row(prefix);
            u32::from(row.probability(1) > row.probability(0))
        };
        match self {
            Drafts::None => Tree::new(),
            Drafts::Chain(tokens) => (0..)
                .zip(tokens)
                .map(|(at, &token)| (before(at), token))
                .collect(),
            Drafts::Wide => vec![
                (None, 0),
                (None, 1),
                (Some(0), 0),
                (Some(1), 1),
                (Some(0), 1),
                (Some(1), 0),
                (Some(0), END),
            ],
            Drafts::Likely if prefix.len() < 3 => {
                let first = likeliest(prefix);
                vec![(None, first), (Some(0), likeliest(&[prefix, &[first]].concat()))]
            }
            Drafts::Likely => Tree::new(),
        }
    }
}

fn before(node: usize) -> Option<usize> {
    node.checked_sub(1)
}

/// The prefix after a node.
fn path(prefix: &[u32], tree: &Tree, node: Option<usize>) -> Word {
    match node {
        None => prefix.to_vec(),
        Some(node) => [path(prefix, tree, tree[node].0), vec![tree[node].1]].concat(),
    }
}

fn masks(task: &Task, prefix: &[u32], tree: &Tree) -> Vec<Vec<u32>> {
    let after = |at: usize| task.mask(&path(prefix, tree, before(at)));
    (0..=tree.len()).map(after).collect()
}

fn at(node: Option<usize>) -> usize {
    node.map_or(0, |node| node + 1)
}

fn harvest(task: &Task, attempt: &mut Attempt<Exact>, trie: &mut Trie<Exact>, prefix: &[u32], tree: &Tree) {
    let masks = masks(task, prefix, tree);
    let rows = |node| {
        let row = task.row(&path(prefix, tree, node));
        Ok::<_, Infallible>(Some((row, Allowed::Words(&masks[at(node)]))))
    };
    let Ok(()) = attempt.harvest(trie, tree, rows);
}

/// One attempt with drafts at every place, to its end.
fn attempt<C: Chooser<Exact>>(
    task: &Task,
    drafts: Drafts,
    trie: &mut Trie<Exact>,
    chooser: &mut C,
) -> Option<Word> {
    let mut attempt = Attempt::begin(trie, 0);
    let mut word = Vec::new();
    loop {
        harvest(task, &mut attempt, trie, &word, &drafts.after(task, &word));
        let mask = task.mask(&word);
        match attempt.next(trie, &task.row(&word), Allowed::Words(&mask), chooser) {
            Step::Token(drawn) => word.push(drawn.token),
            Step::End(drawn) => return Some([word, vec![drawn.token]].concat()),
            Step::Restart => return None,
            Step::Stuck(error) => panic!("an attempt is never stuck: {error}"),
        }
    }
}

fn tasks(random: u64) -> impl Iterator<Item = Task> {
    std::iter::once(Task::first()).chain((0..random).map(|seed| Task::random(seed, 3)))
}

#[test]
fn accepted_samples_have_the_global_law_at_every_trie() {
    let mut tries = 0;
    for task in tasks(8) {
        let (global, mass) = task.global(4);
        for drafts in DRAFTS {
            let way = |trie: &mut Trie<Exact>, chooser: &mut _| attempt(&task, drafts, trie, chooser);
            for trie in reachable_by(trie(4), 2, &way) {
                let accepted = Outcomes::by(&trie, &way).accepted();
                assert_eq!(normalised(accepted.clone()), global, "{drafts:?}");
                // The chance of acceptance is Z/θ(ε), where θ(ε) is that after the draft at the beginning.
                let mut taught = trie.clone();
                let mut first = Attempt::begin(&mut taught, 0);
                harvest(&task, &mut first, &mut taught, &[], &drafts.after(&task, &[]));
                let bound = taught.bound(&[]).expect("the beginning was harvested");
                assert_eq!(total(accepted.values()), mass.clone() / bound);
                tries += 1;
            }
        }
    }
    assert!(tries > 100, "only {tries} tries were reached");
}

#[test]
fn bounds_of_harvested_prefixes_are_right() {
    for task in tasks(8) {
        for drafts in DRAFTS {
            let way = |trie: &mut Trie<Exact>, chooser: &mut _| attempt(&task, drafts, trie, chooser);
            for trie in reachable_by(trie(4), 2, &way) {
                for prefix in trie.prefixes() {
                    let (bound, mass) = (trie.bound(&prefix).expect("known"), trie.mass(&prefix));
                    assert_eq!(mass, Some(task.mass(&prefix)));
                    assert!(task.completion(&prefix, 4) <= bound && bound <= task.mass(&prefix));
                }
            }
        }
    }
}

#[test]
fn a_small_trie_keeps_the_law() {
    for task in tasks(4) {
        let (global, _) = task.global(4);
        for capacity in [0, 1, 3, 5] {
            let way = |trie: &mut Trie<Exact>, chooser: &mut _| attempt(&task, Drafts::Wide, trie, chooser);
            for trie in reachable_by(Trie::new(&[END], 4, capacity), 2, &way) {
                assert!(trie.len() <= capacity);
                assert_eq!(normalised(Outcomes::by(&trie, &way).accepted()), global);
            }
        }
    }
}

/// Below the first letter the draft finds that there is less mass than the attempt was sent there with.
#[test]
fn harvesting_without_thinning_has_another_law() {
    let differs = |task: &Task| {
        let way = |trie: &mut Trie<Exact>, chooser: &mut _| {
            attempt(task, Drafts::Chain(&[0]), trie, &mut NoThinning(chooser))
        };
        normalised(Outcomes::by(&trie(4), &way).accepted()) != task.global(4).0
    };
    assert!(differs(&Task::first()));
    assert!(tasks(12).filter(differs).count() >= 10);
}

/// Draws the token that was drafted, as the attempt's own number would where it had drawn the draft.
struct Coupled<'a, C> {
    inner: &'a mut C,
    token: u32,
}

impl<C: Chooser<Exact>> Chooser<Exact> for Coupled<'_, C> {
    fn choose(&mut self, place: Place, weights: &[Exact]) -> usize {
        match place.purpose {
            // Its edge is the newest.
            Purpose::Branch => weights.len() - 1,
            Purpose::Token => self.token as usize,
            _ => self.inner.choose(place, weights),
        }
    }
}

/// The draft is the token that the attempt draws.
#[test]
fn a_draft_of_what_the_attempt_will_draw_must_not_teach() {
    let task = Task::first();
    let way = |trie: &mut Trie<Exact>, chooser: &mut _| {
        let mut attempt = Attempt::begin(trie, 0);
        let mut word = Word::new();
        loop {
            let (row, mask) = (task.row(&word), task.mask(&word));
            let part = row.part(Allowed::Words(&mask));
            let token = part.draw(Place::new(0, word.len() as u32), chooser)?;
            harvest(&task, &mut attempt, trie, &word, &vec![(None, token)]);
            let mut coupled = Coupled {
                inner: &mut *chooser,
                token,
            };
            match attempt.next(trie, &row, Allowed::Words(&mask), &mut coupled) {
                Step::Token(drawn) => word.push(drawn.token),
                Step::End(drawn) => return Some([word, vec![drawn.token]].concat()),
                _ => return None,
            }
        }
    };
    assert_ne!(
        normalised(Outcomes::by(&trie(4), &way).accepted()),
        task.global(4).0
    );
}

#[test]
fn drafts_save_attempts() {
    let expected = |task: &Task, drafts| {
        let way = |trie: &mut Trie<Exact>, chooser: &mut _| attempt(task, drafts, trie, chooser);
        expected_attempts(&trie(4), &mut BTreeMap::new(), &way)
    };
    let task = Task::first();
    assert_eq!(expected(&task, Drafts::None), ratio(337, 220));
    // All of the language lies within the draft: the first attempt knows it.
    assert_eq!(expected(&task, Drafts::Chain(&[0, 0])), Exact::one());
    for task in tasks(8) {
        for drafts in DRAFTS {
            assert!(
                expected(&task, drafts) <= expected(&task, Drafts::None),
                "{drafts:?}"
            );
        }
    }
}

/// Texts that do not fail are properly weighted over tries that drafts have taught.
#[test]
fn weights_are_proper_with_drafts() {
    for task in tasks(3) {
        let (global, mass) = task.global(4);
        let law = law_of(|chooser| {
            let mut trie = trie(4);
            adaptive(&task, &mut trie, chooser);
            adaptive(&task, &mut trie, chooser)
        });
        for (word, p) in &global {
            let of_word = law.iter().filter(|((text, _), _)| text == word);
            let mean: Vec<Exact> = of_word
                .map(|((_, weight), share)| weight.clone() * share.clone())
                .collect();
            assert_eq!(total(&mean), p.clone() * mass.clone(), "{word:?}");
        }
    }
}

fn adaptive(task: &Task, trie: &mut Trie<Exact>, chooser: &mut impl Chooser<Exact>) -> (Word, Exact) {
    let mut attempt = Attempt::adaptive(trie, 0);
    let (mut word, mut weight) = (Word::new(), Exact::one());
    loop {
        harvest(
            task,
            &mut attempt,
            trie,
            &word,
            &Drafts::Likely.after(task, &word),
        );
        let mask = task.mask(&word);
        let step = attempt.next(trie, &task.row(&word), Allowed::Words(&mask), chooser);
        weight = weight * attempt.factor().clone();
        match step {
            Step::Token(drawn) => word.push(drawn.token),
            Step::End(drawn) => return ([word, vec![drawn.token]].concat(), weight),
            other => panic!("{other:?}"),
        }
    }
}

/// A walk that harvests each tree and then verifies it, as a decode loop does.
#[test]
fn verified_drafts_teach_and_leave_the_law() {
    for task in tasks(4) {
        let (global, _) = task.global(4);
        for drafts in DRAFTS {
            let law = law_of(|chooser| decode(&task, drafts, chooser).ok());
            let accepted = law
                .into_iter()
                .filter_map(|(word, share)| Some((word?, share)))
                .collect();
            assert_eq!(normalised(accepted), global, "{drafts:?}");
        }
    }
}

/// Two attempts at most.
fn decode(task: &Task, drafts: Drafts, chooser: &mut impl Chooser<Exact>) -> Result<Word, LawError> {
    let mut walk = Walk::global(Arc::new(Mutex::new(trie(4))), 2, Fallback::Fail);
    let mut word = Word::new();
    loop {
        let tree_of = drafts.after(task, &word);
        let masks = masks(task, &word, &tree_of);
        let mut rows = |node: Option<usize>| {
            let row = task.row(&path(&word, &tree_of, node));
            Ok::<_, Infallible>(Some((row, Allowed::Words(&masks[at(node)]))))
        };
        let Ok(()) = walk.harvest(&tree_of, &mut rows);
        let node = |&(parent, token): &(Option<usize>, u32)| Node::<(), Table<Exact>> {
            token,
            parent,
            origin: Origin::Copied,
            proposal: Proposal::Point,
            chance: None,
            state: Some(()),
        };
        let nodes: Vec<_> = tree_of.iter().map(node).collect();
        let Ok(verified) = tree(&nodes, rows, &mut walk, chooser);
        word.extend(verified.drawn.iter().map(|drawn| drawn.token));
        match verified.next {
            Next::Open => (),
            Next::Ended => {
                assert_eq!(walk.tag(), LawTag::GlobalExact);
                return Ok(word);
            }
            Next::Restart => word.clear(),
            Next::Stuck(error) => return Err(error),
        }
    }
}
