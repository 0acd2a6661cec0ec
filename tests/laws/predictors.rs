//! Drafts of predictors that learn while they draft, exactly: no store in any shape changes the law of a
//! text, whatever it has learned from previous texts.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use lexiform_law::draft::{
    BestFirst, Chain, Combined, Consensus, Constraint, Context, Draft, Layer, NGrams, NodeId, Observation,
    OptTree, Phrases, Predictor, Recycling, Retrieval, Sequoia, Shape, StateKeyed, Stop, Suffixes, Text,
    Trigram, Union,
};
use lexiform_law::verify::{Next, tree};
use lexiform_law::{Allowed, Chooser, Fallback, Sampler, Seeded, Table, Trie, Walk, law_of};

use crate::model::{END, Law, Task, Word, normalised};
use crate::number::Exact;
use crate::speculation::local;
use crate::trees::{Words, tokens};

const BYTES: usize = 1 << 12;

type Store = Box<dyn Predictor>;

fn stores() -> Vec<fn() -> Store> {
    vec![
        || Box::new(Recycling::new(BYTES)),
        || Box::new(Trigram::new(BYTES)),
        || Box::new(NGrams::new(BYTES)),
        || Box::new(StateKeyed::new(BYTES)),
        || Box::new(Consensus::new(BYTES)),
        || Box::new(Suffixes::new(BYTES)),
        || Box::new(Phrases::new(3, BYTES)),
        || Box::new(Retrieval::new(vec![0, 1, 1, END, 1, 0, 0, END]).expect("it is short")),
        || {
            let layers = vec![
                Layer::new(StateKeyed::new(BYTES)),
                Layer::new(Recycling::new(BYTES)),
            ];
            Box::new(Combined::new(layers, Union::All))
        },
    ]
}

/// The shapes, and one that drafts nothing.
const SHAPES: [&str; 4] = ["chain", "best first", "OPT-Tree", "template"];
const NONE: &str = "none";

fn grow(shape: &str, store: &dyn Predictor, text: Text<'_>, draft: &mut Draft<'_, Words<'_>, Table<Exact>>) {
    match shape {
        "chain" => Chain {
            stop: Stop::Unsure(0.3),
        }
        .grow(store, text, None, draft),
        "best first" => BestFirst { least: 0.0 }.grow(store, text, None, draft),
        "OPT-Tree" => OptTree {
            width: 2,
            least_gain: 0.1,
        }
        .grow(store, text, None, draft),
        "template" => Sequoia::halving().template(4, 2).grow(store, text, None, draft),
        _ => {}
    }
}

/// A model with a store that drafts for it and learns from it.
struct Bench<'t> {
    task: &'t Task,
    shape: &'static str,
    store: Store,
    accepted: usize,
}

impl Bench<'_> {
    /// Decodes a text, drafting in every pass; `None` where there is none.
    fn decode(
        &mut self,
        sampler: &mut impl Sampler<Exact>,
        chooser: &mut impl Chooser<Exact>,
    ) -> Option<Word> {
        let words = Words(self.task);
        let mut word = Word::new();
        loop {
            let state = word.iter().fold(Words::START, |state, token| state << 2 | token);
            let mut draft: Draft<'_, Words<'_>, Table<Exact>> = Draft::new(Some((&words, state)), &[END], 4);
            let text = Text {
                prompt: &[],
                answer: &word,
            };
            grow(self.shape, &*self.store, text, &mut draft);
            let path = |node: Option<NodeId>| -> Word {
                let path = draft.path(node).into_iter();
                path.map(|node| draft.nodes()[node].token).collect()
            };
            let prefix = |node| [&word[..], &path(node)].concat();
            let masks: Vec<Vec<u32>> = std::iter::once(None)
                .chain((0..draft.nodes().len()).map(Some))
                .map(|node| self.task.mask(&prefix(node)))
                .collect();
            let rows = |node: Option<NodeId>| {
                let mask = &masks[node.map_or(0, |node| node + 1)];
                Ok::<_, Infallible>(Some((self.task.row(&prefix(node)), Allowed::Words(mask))))
            };
            let Ok(verified) = tree(draft.nodes(), rows, sampler, chooser);
            let drawn = tokens(&verified.drawn);
            // Rows of all nodes are learned from, those of the path with what was drawn there.
            let states: Vec<Option<u32>> = draft.states().collect();
            for (place, node) in std::iter::once(None)
                .chain((0..draft.nodes().len()).map(Some))
                .enumerate()
            {
                let depth = match node {
                    None => Some(0),
                    Some(node) => verified.path.iter().position(|&at| at == node).map(|at| at + 1),
                };
                if node.is_some_and(|node| draft.nodes()[node].token == END) {
                    continue;
                }
                let row: Vec<(u32, f32)> = (0..)
                    .zip(self.task.row(&prefix(node)).0)
                    .map(|(token, share)| (token, share.to_f64() as f32))
                    .collect();
                let context = Context {
                    text,
                    path: &path(node),
                    state: states[place].map(|state| words.key(state)),
                };
                self.store.learn(
                    &context,
                    &Observation {
                        likely: &row,
                        allowed: &row,
                        drawn: depth.and_then(|depth| drawn.get(depth).copied()),
                    },
                );
            }
            self.accepted += verified.accepted();
            word.extend(drawn);
            match verified.next {
                Next::Open => (),
                Next::Ended => break,
                Next::Restart => word.clear(),
                Next::Stuck(_) => return None,
            }
        }
        self.store.record(&word);
        Some(word)
    }
}

#[test]
fn what_is_learned_of_one_text_leaves_the_law_of_the_next_alone() {
    let task = Task::random(1, 2);
    let local_law = task.local();
    for (number, store) in stores().into_iter().enumerate() {
        for shape in SHAPES {
            let law = law_of(|chooser| {
                let mut bench = Bench {
                    task: &task,
                    shape,
                    store: store(),
                    accepted: 0,
                };
                let first = bench.decode(&mut local(&[END]), chooser);
                let second = bench.decode(&mut local(&[END]), chooser);
                (first.expect("never stuck"), second.expect("never stuck"))
            });
            for (first, share) in &local_law {
                for (second, other) in &local_law {
                    let both = law.get(&(first.clone(), second.clone()));
                    assert_eq!(both, Some(&(share.clone() * other.clone())), "store {number}");
                }
            }
        }
    }
}

#[test]
fn attempts_at_the_global_law_may_be_drafted_from_what_failed_ones_taught() {
    let task = Task::random(3, 2);
    for store in stores() {
        for shape in SHAPES {
            let law: std::collections::BTreeMap<Option<Word>, Exact> = law_of(|chooser| {
                let mut bench = Bench {
                    task: &task,
                    shape,
                    store: store(),
                    accepted: 0,
                };
                let trie = Arc::new(Mutex::new(Trie::new(&[END], 4, 1000)));
                bench.decode(&mut Walk::global(trie, 2, Fallback::Fail), chooser)
            });
            let accepted: Law = law
                .into_iter()
                .filter_map(|(word, share)| Some((word?, share)))
                .collect();
            assert_eq!(normalised(accepted), task.global(4).0);
        }
    }
}

/// Numbers of a seed, for rationals.
struct Rational(Seeded);

impl Chooser<Exact> for Rational {
    fn choose(&mut self, place: lexiform_law::Place, weights: &[Exact]) -> usize {
        let weights: Vec<f64> = weights.iter().map(Exact::to_f64).collect();
        self.0.choose(place, &weights)
    }
}

#[test]
fn a_seed_gives_the_same_texts_and_stores_get_better() {
    for (number, store) in stores().into_iter().enumerate() {
        let (mut early, mut late) = (0, 0);
        for (shape, task) in SHAPES.into_iter().zip(1..) {
            let task = Task::random(task, 3);
            let mut bench = Bench {
                task: &task,
                shape,
                store: store(),
                accepted: 0,
            };
            for seed in 0..40 {
                let mut plain = local::<Exact>(&[END]);
                let mut without = Bench {
                    task: &task,
                    shape: NONE,
                    store: store(),
                    accepted: 0,
                };
                let word = without.decode(&mut plain, &mut Rational(Seeded::new(seed, 0)));
                assert_eq!(without.accepted, 0);
                let drafted = bench.decode(&mut local(&[END]), &mut Rational(Seeded::new(seed, 0)));
                assert_eq!(drafted, word);
                if seed == 9 {
                    early += std::mem::take(&mut bench.accepted);
                }
                if seed >= 30 {
                    late += std::mem::take(&mut bench.accepted);
                } else if seed > 9 {
                    bench.accepted = 0;
                }
            }
        }
        assert!(late > 10, "store {number} is of no use: {late}");
        assert!(late + 5 >= early, "store {number} gets worse: {early}, {late}");
    }
}
