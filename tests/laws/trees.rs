//! Drafted trees, exactly: whatever their shape and however their tokens were chosen, the law of the text is
//! the one without a draft.

use std::collections::HashSet;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use lexiform_law::draft::{Constraint, Draft, NodeId, Origin, Proposal};
use lexiform_law::verify::{Next, tree};
use lexiform_law::{
    Allowed, Chooser, Drawn, Fallback, Part, Place, Purpose, Row, Sampler, Seeded, Step, Table, Trie, Walk,
    Weight, law_of,
};

use crate::model::{END, Law, Task, Word, normalised};
use crate::number::Exact;
use crate::speculation::local;

/// The words of a task as a constraint; a state is a prefix, a token in every two bits below a leading one.
pub(crate) struct Words<'t>(pub(crate) &'t Task);

impl Words<'_> {
    pub(crate) const START: u32 = 1;

    pub(crate) fn prefix(state: u32) -> Word {
        let length = (31 - state.leading_zeros()) / 2;
        (0..length).rev().map(|at| state >> (2 * at) & 3).collect()
    }
}

impl Constraint for Words<'_> {
    type State = u32;

    fn step(&self, state: u32, token: u32) -> Option<u32> {
        let mask = self.0.mask(&Self::prefix(state));
        Allowed::Words(&mask)
            .contains(token)
            .then_some(state << 2 | token)
    }

    fn step_bytes(&self, _state: u32, _bytes: &[u8]) -> Option<u32> {
        None
    }

    fn forced(&self, _state: u32) -> Vec<u8> {
        Vec::new()
    }

    fn key(&self, state: u32) -> u64 {
        state.into()
    }

    fn is_accepting(&self, _state: u32) -> bool {
        false
    }
}

/// How a child of a shape is chosen.
#[derive(Clone, Copy, PartialEq)]
enum How {
    /// This token.
    Point(u32),
    /// Drawn from the drafter's row without the siblings that were drawn before.
    Sampled,
    /// Drawn from the drafter's row, whatever its siblings are.
    Independent,
}

use How::{Independent, Point, Sampled};

/// A tree to be drafted: for each node the number of its parent and how its token is chosen.
type Shape = &'static [(Option<usize>, How)];

const SHAPES: [Shape; 13] = [
    &[],
    // Drawing once: a chain, and a tree with all tokens at its root.
    &[(None, Point(0)), (Some(0), Point(1)), (Some(1), Point(1))],
    &[
        (None, Point(1)),
        (None, Point(0)),
        (None, Point(2)),
        (Some(0), Point(0)),
        (Some(0), Point(1)),
        (Some(3), Point(2)),
    ],
    // The residual rule: a chain, and with a token that no draft has.
    &[(None, Sampled), (Some(0), Sampled), (Some(1), Sampled)],
    // Without replacement: two, three, and below one another.
    &[
        (None, Sampled),
        (None, Sampled),
        (Some(0), Sampled),
        (Some(1), Point(1)),
    ],
    &[(None, Sampled), (None, Sampled), (None, Sampled)],
    &[
        (None, Sampled),
        (Some(0), Sampled),
        (Some(0), Sampled),
        (Some(0), Sampled),
    ],
    // Mixtures, the same token twice among them.
    &[
        (None, Point(0)),
        (None, Sampled),
        (Some(0), Sampled),
        (None, Point(1)),
        (Some(1), Point(0)),
    ],
    &[
        (None, Sampled),
        (None, Point(1)),
        (None, Sampled),
        (Some(1), Sampled),
    ],
    // k-seq: two, three, and below one another.
    &[
        (None, Independent),
        (None, Independent),
        (Some(0), Independent),
        (Some(0), Independent),
    ],
    &[(None, Independent), (None, Independent), (None, Independent)],
    // Some of each kind, and one alone.
    &[
        (None, Independent),
        (None, Sampled),
        (None, Independent),
        (Some(1), Point(0)),
    ],
    &[(None, Independent), (Some(0), Independent), (None, Point(1))],
];

/// Where a shape is drafted: a target, a drafter's model, and how rationals become weights.
struct Rig<'t, W> {
    task: &'t Task,
    drafter: &'t Task,
    number: fn(Exact) -> W,
}

impl<W: Weight> Rig<'_, W> {
    fn row_of(&self, task: &Task, prefix: &[u32]) -> Table<W> {
        Table(task.row(prefix).0.into_iter().map(self.number).collect())
    }

    /// Drafts a shape after a word. A node whose parent was not taken is not drafted either.
    fn draft<'c, 'w>(
        &self,
        words: &'c Words<'w>,
        word: &[u32],
        shape: Shape,
        chooser: &mut impl Chooser<W>,
    ) -> Draft<'c, Words<'w>, Table<W>> {
        let state = word.iter().fold(Words::START, |state, token| state << 2 | token);
        let mut draft = Draft::new(Some((words, state)), &[END], shape.len());
        let mut nodes: Vec<Option<NodeId>> = Vec::new();
        for (number, &(parent, how)) in (0..).zip(shape) {
            let parent = match parent.map(|parent| nodes[parent]) {
                Some(None) => {
                    nodes.push(None);
                    continue;
                }
                Some(node) => node,
                None => None,
            };
            let choice = match how {
                Point(token) => Some((token, Proposal::Point)),
                Sampled | Independent => self.sample(&draft, word, parent, (number, how), chooser),
            };
            nodes.push(choice.and_then(|(token, how)| draft.offer_below(parent, token, Origin::Model, how)));
        }
        draft
    }

    /// A token of the drafter's row inside the mask and, unless it is independent, without the siblings
    /// sampled before; `None` if there is none. Independent siblings share the row.
    fn sample(
        &self,
        draft: &Draft<'_, Words<'_>, Table<W>>,
        word: &[u32],
        parent: Option<NodeId>,
        (number, how): (u32, How),
        chooser: &mut impl Chooser<W>,
    ) -> Option<(u32, Proposal<Table<W>>)> {
        let above = draft
            .path(parent)
            .into_iter()
            .map(|node| draft.nodes()[node].token);
        let prefix: Word = word.iter().copied().chain(above).collect();
        if prefix.last() == Some(&END) {
            return None;
        }
        let mut row = Arc::new(self.row_of(self.drafter, &prefix));
        let mut siblings = Vec::new();
        for node in draft.nodes().iter().filter(|node| node.parent == parent) {
            match &node.proposal {
                Proposal::Independent(theirs) if how == Independent => row = theirs.clone(),
                proposal if proposal.is_sampled() && how == Sampled => siblings.push(node.token),
                _ => {}
            }
        }
        let mask = Allowed::Words(&self.task.mask(&prefix)).without(&siblings, row.len());
        let place = Place::new(0, prefix.len() as u32)
            .to(Purpose::Draft)
            .round(number);
        let token = row.part(Allowed::Words(&mask)).draw(place, chooser)?;
        Some(match how {
            Independent => (token, Proposal::Independent(row)),
            _ => (token, Proposal::Sampled(row)),
        })
    }

    /// Decodes with one draft of the shape and then without, until the end; what was drawn, and how much was
    /// accepted.
    fn decode(
        &self,
        shape: Shape,
        passes: usize,
        sampler: &mut impl Sampler<W>,
        chooser: &mut impl Chooser<W>,
    ) -> Option<(Vec<Drawn<W>>, usize)> {
        let words = Words(self.task);
        let (mut word, mut all, mut accepted) = (Word::new(), Vec::new(), 0);
        for pass in 0.. {
            let shape = if pass < passes { shape } else { &[] };
            let draft = self.draft(&words, &word, shape, chooser);
            let prefix = |node: Option<NodeId>| -> Word {
                let path = draft.path(node).into_iter();
                word.iter()
                    .copied()
                    .chain(path.map(|node| draft.nodes()[node].token))
                    .collect()
            };
            let masks: Vec<Vec<u32>> = std::iter::once(None)
                .chain((0..draft.nodes().len()).map(Some))
                .map(|node| self.task.mask(&prefix(node)))
                .collect();
            let rows = |node: Option<NodeId>| {
                let mask = &masks[node.map_or(0, |node| node + 1)];
                let row = self.row_of(self.task, &prefix(node));
                Ok::<_, Infallible>(Some((row, Allowed::Words(mask))))
            };
            let Ok(verified) = tree(draft.nodes(), rows, sampler, chooser);
            let path: Word = verified
                .path
                .iter()
                .map(|&node| draft.nodes()[node].token)
                .collect();
            assert_eq!(path, tokens(&verified.drawn)[..verified.accepted()]);
            accepted += verified.accepted();
            word.extend(tokens(&verified.drawn));
            all.extend(verified.drawn);
            match verified.next {
                Next::Open => (),
                Next::Ended => break,
                Next::Restart => {
                    word.clear();
                    all.clear();
                }
                Next::Stuck(_) => return None,
            }
        }
        Some((all, accepted))
    }
}

pub(crate) fn tokens<W>(drawn: &[Drawn<W>]) -> Word {
    drawn.iter().map(|drawn| drawn.token).collect()
}

fn exact<'t>(task: &'t Task, drafter: &'t Task) -> Rig<'t, Exact> {
    Rig {
        task,
        drafter,
        number: |number| number,
    }
}

#[test]
fn trees_leave_the_local_law_of_sequences_alone() {
    for seed in 0..6 {
        let (task, drafter) = (Task::random(seed, 3), Task::random(seed + 50, 3));
        for shape in SHAPES {
            let law: Law = law_of(|chooser| {
                let rig = exact(&task, &drafter);
                let decoded = rig.decode(shape, 1, &mut local(&[END]), chooser);
                tokens(&decoded.expect("never stuck").0)
            });
            assert_eq!(law, task.local());
        }
    }
}

#[test]
fn trees_in_every_pass_leave_the_local_law_alone() {
    let (task, drafter) = (Task::random(1, 2), Task::random(51, 2));
    for shape in SHAPES.into_iter().filter(|shape| shape.len() < 4) {
        let law: Law = law_of(|chooser| {
            let rig = exact(&task, &drafter);
            let decoded = rig.decode(shape, 9, &mut local(&[END]), chooser);
            tokens(&decoded.expect("never stuck").0)
        });
        assert_eq!(law, task.local());
    }
}

#[test]
fn what_is_told_of_a_token_does_not_depend_on_the_draft() {
    let (task, drafter) = (Task::random(2, 3), Task::random(52, 3));
    for shape in SHAPES {
        law_of(|chooser| {
            let rig = exact(&task, &drafter);
            let mut walk = local(&[END]);
            let (drawn, accepted) = rig.decode(shape, 1, &mut walk, chooser).expect("never stuck");
            let word = tokens(&drawn);
            for (at, drawn) in drawn.iter().enumerate() {
                let mass = task.mass(&word[..at]);
                assert_eq!(drawn.mass, mass);
                assert_eq!((drawn.log_mass, drawn.log_kept), (mass.ln(), mass.ln()));
                assert_eq!(
                    drawn.log_probability,
                    task.row(&word[..at]).log_probability(word[at])
                );
            }
            let (weight, told) = (task.weight(&word).ln(), walk.log_weight());
            assert!((weight - told).abs() < 1e-12, "{told} instead of {weight}");
            accepted
        });
    }
}

#[test]
fn trees_leave_the_global_law_alone() {
    for task in [Task::first(), Task::random(3, 2)] {
        let drafter = Task::random(53, 3);
        for shape in SHAPES.into_iter().filter(|shape| shape.len() < 5) {
            let law = law_of(|chooser| {
                let trie = Arc::new(Mutex::new(Trie::new(&[END], 4, 1000)));
                let mut walk = Walk::global(trie, 2, Fallback::Fail);
                let decoded = exact(&task, &drafter).decode(shape, 1, &mut walk, chooser);
                decoded.map(|(drawn, _)| tokens(&drawn))
            });
            let accepted = law.into_iter().filter_map(|(word, p)| Some((word?, p)));
            assert_eq!(normalised(accepted.collect()), task.global(4).0);
        }
    }
}

/// Where only tokens chosen without chance are drafted, and under the global law whatever is, the numbers
/// drawn are those of decoding without a draft.
#[test]
fn drawing_once_keeps_the_tokens_of_a_seed() {
    let mut accepted = 0;
    for seed in 0..200 {
        let (task, drafter) = (Task::random(seed % 10, 3), Task::random(50 + seed % 7, 3));
        let rig = Rig {
            task: &task,
            drafter: &drafter,
            number: |number: Exact| number.to_f64(),
        };
        let decode = |shape, walk: &mut Walk| {
            let decoded = rig.decode(shape, 9, walk, &mut Seeded::new(seed, 0));
            decoded.map(|(drawn, accepted)| (tokens(&drawn), accepted))
        };
        let global = || {
            let trie = Arc::new(Mutex::new(Trie::new(&[END], 4, 1000)));
            Walk::global(trie, 50, Fallback::Weighted)
        };
        let word = |decoded: Option<(Word, usize)>| decoded.map(|(word, _)| word);
        let (plain, attempted) = (
            word(decode(&[], &mut local(&[END]))),
            word(decode(&[], &mut global())),
        );
        for shape in SHAPES {
            if shape.iter().all(|(_, how)| matches!(how, Point(_))) {
                let with = decode(shape, &mut local(&[END]));
                accepted += with.as_ref().map_or(0, |with| with.1);
                assert_eq!(word(with), plain);
            }
            // The text that takes the place of failed attempts, too.
            assert_eq!(word(decode(shape, &mut global())), attempted);
        }
    }
    assert!(accepted > 100);
}

/// Remembers where choices were made, and makes each place's once.
struct Once {
    chooser: Seeded,
    places: HashSet<Place>,
}

impl Chooser<f64> for Once {
    fn choose(&mut self, place: Place, weights: &[f64]) -> usize {
        assert!(self.places.insert(place), "{place:?} is used twice");
        self.chooser.choose(place, weights)
    }
}

#[test]
fn no_number_is_used_twice() {
    for seed in 0..50 {
        let (task, drafter) = (Task::random(seed % 10, 3), Task::random(50 + seed % 7, 3));
        for shape in SHAPES {
            let rig = Rig {
                task: &task,
                drafter: &drafter,
                number: |number: Exact| number.to_f64(),
            };
            let mut once = Once {
                chooser: Seeded::new(seed, 0),
                places: HashSet::new(),
            };
            rig.decode(shape, 1, &mut local(&[END]), &mut once)
                .expect("never stuck");
        }
    }
    let purposes = [Purpose::Token, Purpose::Draft, Purpose::Residual];
    let places = purposes.map(|purpose| Place::new(0, 0).to(purpose));
    let all: HashSet<Place> = places
        .into_iter()
        .flat_map(|place| [place, place.block(), place.group()])
        .collect();
    assert_eq!(all.len(), 9);
}

/// A walk ends where a row is missing, and what follows is drawn as if nothing had been drafted there.
#[test]
fn a_missing_row_ends_the_walk() {
    let (task, drafter) = (Task::random(4, 3), Task::random(54, 3));
    let law: Law = law_of(|chooser| {
        let (rig, words) = (exact(&task, &drafter), Words(&task));
        let draft = rig.draft(&words, &[], SHAPES[3], chooser);
        let masks = task.mask(&[]);
        let rows = |node: Option<NodeId>| {
            let row = node.is_none().then(|| (task.row(&[]), Allowed::Words(&masks)));
            Ok::<_, Infallible>(row)
        };
        let mut walk = local(&[END]);
        let Ok(verified) = tree(draft.nodes(), rows, &mut walk, chooser);
        assert!(verified.accepted() <= 1 && verified.drawn.len() == 1 && verified.next == Next::Open);
        let mut word = tokens(&verified.drawn);
        while word.last() != Some(&END) {
            let (row, mask) = (task.row(&word), task.mask(&word));
            let (Step::Token(drawn) | Step::End(drawn)) = walk.next(&row, Allowed::Words(&mask), chooser)
            else {
                panic!("the local law is never stuck here");
            };
            word.push(drawn.token);
        }
        word
    });
    assert_eq!(law, task.local());
}

#[test]
fn a_draft_refuses_what_it_must_and_merges_what_it_can() {
    let task = Task::first();
    let words = Words(&task);
    let mut draft: Draft<'_, Words<'_>, Table<f64>> = Draft::new(Some((&words, Words::START)), &[END], 6);
    let row = Arc::new(Table(vec![0.5, 0.5, 0.0]));
    let mut point = |parent, token| draft.offer_below(parent, token, Origin::Copied, Proposal::Point);
    let first = point(None, 0);
    assert_eq!(
        (first, point(None, 1), point(None, 0)),
        (Some(0), Some(1), Some(0))
    );
    // After 0 only 0 is valid; nothing ends before its third letter, and nothing goes below a node that is
    // not there.
    assert_eq!(
        (point(first, 1), point(None, END), point(Some(9), 0)),
        (None, None, None)
    );
    assert_eq!(
        (point(first, 0), point(Some(2), 0), point(Some(3), END)),
        (Some(2), Some(3), Some(4))
    );
    // Below an end there is nothing, and not much room is left.
    assert_eq!(point(Some(4), 0), None);
    let sampled = draft.offer_below(None, 1, Origin::Model, Proposal::Sampled(row));
    assert_eq!(sampled, Some(5));
    assert_eq!(
        (
            draft.room(),
            draft.offer_below(Some(1), 1, Origin::Copied, Proposal::Point)
        ),
        (0, None)
    );
    assert_eq!(
        draft.offer_below(first, 0, Origin::Copied, Proposal::Point),
        Some(2)
    );
    assert_eq!(
        (draft.path(Some(4)), draft.tokens().collect::<Word>()),
        (vec![0, 2, 3, 4], vec![1])
    );
}
