//! Drafts that are drawn from what a store remembers of rows: the law of the text is the one without drafts,
//! an accurate store is always accepted, and mistakes in the drawing have another law.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use lexiform_law::draft::{
    Candidate, Constraint, Context, Draft, Here, NGrams, Node, NodeId, Observation, Origin, Predictor,
    Proposal, Sampled, Template, Text,
};
use lexiform_law::verify::{Next, tree};
use lexiform_law::{
    Allowed, Chooser, Mirostat, MirostatVersion, Part, Place, Purpose, Row, Sparse, Table, Weight, law_of,
};

use crate::model::{END, Task, Word};
use crate::number::{Cases, Exact, ratio};
use crate::speculation::local;
use crate::trees::{Words, tokens};

/// A tree of two draws after the text, and two after the first of them.
const TREE: [(Option<usize>, usize); 4] = [(None, 0), (None, 1), (Some(0), 0), (Some(0), 1)];

/// The text before an answer: without one, a store of n-grams knows nothing at the beginning.
const PROMPT: [u32; 1] = [1];

/// Ways to draft: the right one, and mistakes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum How {
    Right,
    /// Siblings are drawn with replacement, and offered as drawn without.
    Replacing,
    /// Tokens are drawn from another row than the one that is offered with them.
    OtherRow,
    /// Tokens that turn out to be unlikely are not offered.
    Dropping,
    /// Siblings are drawn without replacement, and offered as drawn independently.
    AsIndependent,
}

/// A rational for a chance: any will do, as long as it is always the same.
fn weigh(chance: f32) -> Exact {
    ratio((chance * 100.0).ceil() as i64, 100)
}

/// A store that has learned rows that are somewhat like the model's.
fn store(task: &Task, prefixes: &[Word]) -> NGrams {
    let (mut store, mut cases) = (NGrams::new(1 << 12), Cases(7));
    for prefix in prefixes {
        let row = task.row(prefix).0;
        let noise = cases.row(row.len());
        let mut likely: Vec<(u32, f32)> = (0..)
            .zip(row.iter().zip(&noise))
            .map(|(token, (share, noise))| (token, (share.to_f64() * 0.7 + noise.to_f64() * 0.3) as f32))
            .collect();
        likely.sort_by(|one, other| other.1.total_cmp(&one.1));
        let context = Context {
            text: Text {
                prompt: &PROMPT,
                answer: &[],
            },
            path: prefix,
            state: None,
        };
        let seen = Observation {
            likely: &likely,
            allowed: &likely,
            drawn: None,
        };
        store.learn(&context, &seen);
    }
    store
}

/// All prefixes of the words of a task that are not whole.
fn prefixes(task: &Task) -> Vec<Word> {
    let of = |word: &Word| {
        (0..word.len())
            .map(|length| word[..length].to_vec())
            .collect::<Vec<_>>()
    };
    let mut all: Vec<Word> = task.words.iter().flat_map(of).collect();
    all.sort();
    all.dedup();
    all
}

/// Small tasks; in every other one all texts are words, so that three tokens may come.
fn tasks() -> Vec<Task> {
    let task = |seed: u64| {
        let mut task = Task::random(seed, 2);
        if seed.is_multiple_of(2) {
            task.words = task.sequences().into_keys().collect();
        }
        task
    };
    (1..16).map(task).collect()
}

type Drafted<'t> = Draft<'t, Words<'t>, Sparse<Exact>>;

/// Drafts by hand, with a mistake.
fn by_hand(
    how: How,
    store: &NGrams,
    text: Text<'_>,
    draft: &mut Drafted<'_>,
    chooser: &mut impl Chooser<Exact>,
) {
    let mut nodes: Vec<Option<NodeId>> = Vec::new();
    for (number, &(above, rank)) in (0..).zip(&TREE) {
        let parent = above.map(|above| nodes[above]);
        nodes.push(None);
        if parent == Some(None) {
            continue;
        }
        let parent = parent.flatten();
        let path: Word = draft
            .path(parent)
            .iter()
            .map(|&node| draft.nodes()[node].token)
            .collect();
        if draft.room_below(parent) == 0 {
            continue;
        }
        let context = Context {
            text,
            path: &path,
            state: None,
        };
        let mut found: Vec<Candidate> = Vec::new();
        store.predict(&context, &mut found);
        let at = draft.at(parent);
        let may_come = |token: u32| at.is_some_and(|(words, state)| words.step(state, token).is_some());
        found.retain(|candidate| may_come(candidate.token));
        let chance = |candidate: &Candidate| weigh(candidate.chance);
        let row = Arc::new(Sparse::new(
            found.iter().map(|found| (found.token, chance(found))),
        ));
        let squared = found
            .iter()
            .map(|found| (found.token, chance(found) * chance(found)));
        let source = match how {
            How::OtherRow => Sparse::new(squared),
            _ => (*row).clone(),
        };
        let siblings = draft.nodes().iter().filter(|node| node.parent == parent);
        let siblings: Word = siblings.map(|node| node.token).collect();
        let drawn = if how == How::Replacing {
            &[][..]
        } else {
            &siblings[..]
        };
        let mask = Allowed::All.without(drawn, source.len());
        let place = Place::new(0, path.len() as u32).to(Purpose::Draft).round(number);
        let Some(token) = source.part(Allowed::Words(&mask)).draw(place, chooser) else {
            continue;
        };
        let is_dropped =
            how == How::Dropping && rank == 0 && row.part(Allowed::All).share(token) < ratio(1, 2);
        let proposal = match how {
            How::AsIndependent => Proposal::Independent(row),
            _ => Proposal::Sampled(row),
        };
        if !is_dropped {
            let node = draft.offer_below(parent, token, Origin::NGram, proposal);
            nodes[number as usize] = node;
        }
    }
}

/// Decodes a text with drafts, and returns it with the numbers of tokens drafted and accepted.
fn decode(
    task: &Task,
    mut drafted: impl FnMut(Text<'_>, &mut Drafted<'_>, &mut dyn FnMut(Place, &[Exact]) -> usize),
    chooser: &mut impl Chooser<Exact>,
) -> (Word, usize, usize) {
    let (words, mut word, mut sampler) = (Words(task), Word::new(), local(&[END]));
    let (mut offered, mut accepted) = (0, 0);
    loop {
        let state = word.iter().fold(Words::START, |state, token| state << 2 | token);
        let mut draft: Drafted<'_> = Draft::new(Some((&words, state)), &[END], TREE.len());
        let text = Text {
            prompt: &PROMPT,
            answer: &word,
        };
        drafted(text, &mut draft, &mut |place, weights| {
            chooser.choose(place, weights)
        });
        let nodes: &[Node<u32, Sparse<Exact>>] = draft.nodes();
        let prefix = |node: Option<NodeId>| -> Word {
            let path = draft.path(node).into_iter().map(|node| nodes[node].token);
            word.iter().copied().chain(path).collect()
        };
        let masks: Vec<Vec<u32>> = std::iter::once(None)
            .chain((0..nodes.len()).map(Some))
            .map(|node| task.mask(&prefix(node)))
            .collect();
        let rows = |node: Option<NodeId>| {
            let mask = &masks[node.map_or(0, |node| node + 1)];
            Ok::<_, Infallible>(Some((task.row(&prefix(node)), Allowed::Words(mask))))
        };
        let Ok(verified) = tree(nodes, rows, &mut sampler, chooser);
        offered += nodes.len();
        accepted += verified.accepted();
        word.extend(tokens(&verified.drawn));
        match verified.next {
            Next::Open => (),
            Next::Ended => return (word, offered, accepted),
            Next::Restart | Next::Stuck(_) => panic!("the local law goes on"),
        }
    }
}

/// A closure as a chooser.
struct Through<'c>(&'c mut dyn FnMut(Place, &[Exact]) -> usize);

impl Chooser<Exact> for Through<'_> {
    fn choose(&mut self, place: Place, weights: &[Exact]) -> usize {
        self.0(place, weights)
    }
}

/// The law of a text whose drafts a store draws.
fn law(task: &Task, how: How) -> BTreeMap<Word, Exact> {
    let store = store(task, &prefixes(task));
    let shape = Sampled {
        template: Template::new(TREE.to_vec()).expect("a tree"),
        weigh: |_: Here<'_, Words<'_>>, found: &[Candidate]| {
            found.iter().map(|found| weigh(found.chance)).collect::<Vec<_>>()
        },
    };
    law_of(|chooser| {
        let draw =
            |text: Text<'_>, draft: &mut Drafted<'_>, choose: &mut dyn FnMut(Place, &[Exact]) -> usize| {
                let first = Place::new(0, text.answer.len() as u32);
                match how {
                    How::Right => shape.grow(&store, text, None, draft, first, &mut Through(choose)),
                    _ => by_hand(how, &store, text, draft, &mut Through(choose)),
                }
            };
        decode(task, draw, chooser).0
    })
}

#[test]
fn texts_with_sampled_drafts_have_the_law_of_texts_without() {
    for (number, task) in tasks().iter().enumerate() {
        assert_eq!(law(task, How::Right), task.local(), "task {number}");
    }
}

#[test]
fn mistakes_in_drawing_have_another_law() {
    for how in [How::Replacing, How::OtherRow, How::Dropping, How::AsIndependent] {
        let differs = |task: &&Task| law(task, how) != task.local();
        let failures = tasks().iter().filter(differs).count();
        assert!(failures >= 3, "{how:?} fails only {failures} times");
    }
}

#[test]
fn an_accurate_store_is_always_accepted_and_the_likeliest_tokens_are_not() {
    let task = Task::first();
    let store = store(&task, &prefixes(&task));
    let chain = Template::new(vec![(None, 0), (Some(0), 0), (Some(1), 0)]).expect("a chain");
    let row_at = |state: u32, token: u32| {
        let prefix = Words::prefix(state);
        let mask = task.mask(&prefix);
        task.row(&prefix).part(Allowed::Words(&mask)).share(token)
    };
    let shape = Sampled {
        template: chain.clone(),
        weigh: |here: Here<'_, Words<'_>>, found: &[Candidate]| {
            let (_, state) = here.at.expect("a constraint");
            found
                .iter()
                .map(|found| row_at(state, found.token))
                .collect::<Vec<_>>()
        },
    };
    let sampled = law_of(|chooser| {
        let draw =
            |text: Text<'_>, draft: &mut Drafted<'_>, choose: &mut dyn FnMut(Place, &[Exact]) -> usize| {
                let first = Place::new(0, text.answer.len() as u32);
                shape.grow(&store, text, None, draft, first, &mut Through(choose));
            };
        let (word, offered, accepted) = decode(&task, draw, chooser);
        assert_eq!(accepted, offered, "all of {word:?}");
        offered
    });
    assert!(sampled.keys().all(|&offered| offered >= 3));
    let likeliest = law_of(|chooser| {
        let draw = |text: Text<'_>, draft: &mut Drafted<'_>, _: &mut dyn FnMut(Place, &[Exact]) -> usize| {
            lexiform_law::draft::Shape::grow(&chain, &store, text, None, draft);
        };
        let (_, offered, accepted) = decode(&task, draw, chooser);
        accepted == offered
    });
    assert!(likeliest[&false] >= ratio(1, 2), "{likeliest:?}");
}

#[test]
fn a_token_that_the_mask_of_the_verification_forbids_has_no_weight() {
    // Near the end of a budget the mask allows less than the constraint, which `weigh` has to say.
    let task = Task::random(4, 2);
    let (store, words) = (store(&task, &prefixes(&task)), Words(&task));
    let shape = Sampled {
        template: Template::new(TREE.to_vec()).expect("a tree"),
        weigh: |here: Here<'_, Words<'_>>, found: &[Candidate]| {
            let weigh = |found: &Candidate| match (here.path.len(), found.token) {
                (0, 1) => Exact::zero(),
                _ => weigh(found.chance),
            };
            found.iter().map(weigh).collect::<Vec<_>>()
        },
    };
    let drafts = law_of(|chooser| {
        let mut draft: Drafted<'_> = Draft::new(Some((&words, Words::START)), &[END], TREE.len());
        let text = Text {
            prompt: &PROMPT,
            answer: &[],
        };
        shape.grow(&store, text, None, &mut draft, Place::new(0, 0), chooser);
        let first = draft.nodes().iter().filter(|node| node.parent.is_none());
        first.map(|node| node.token).collect::<Word>()
    });
    assert_eq!(drafts.into_keys().collect::<Vec<_>>(), [vec![0]]);
}

#[test]
fn a_sparse_row_is_the_table_with_the_same_weights() {
    let mut cases = Cases(3);
    for _ in 0..200 {
        let weights = cases.row(9);
        let listed = (0..9).zip(weights.iter().cloned()).rev();
        let (sparse, table) = (Sparse::new(listed), Table(weights));
        let mask = [cases.below(1 << 9) as u32];
        let mirostat = Mirostat {
            version: MirostatVersion::Two,
            tau: 0.5,
            eta: 0.1,
        };
        for ceiling in [None, ceiling(mirostat)] {
            let one = sparse.part_under(Allowed::Words(&mask), ceiling);
            let other = table.part_under(Allowed::Words(&mask), ceiling);
            assert_eq!(one.mass(), other.mass());
            if !one.mass().is_positive() {
                continue;
            }
            let mut shares = one.shares();
            shares.resize(9, Exact::zero());
            assert_eq!(shares, other.shares());
            for token in 0..9 {
                assert_eq!(one.share(token), other.share(token));
                assert_eq!(one.share_without(token), other.share_without(token));
            }
            let draw = |part: &dyn Fn(&mut lexiform_law::Every<Exact>) -> Option<u32>| {
                law_of(|chooser| part(chooser))
            };
            let place = Place::new(0, 0);
            assert_eq!(
                draw(&|chooser| one.draw(place, chooser)),
                draw(&|chooser| other.draw(place, chooser))
            );
        }
    }
}

/// The bound on the surprise of the first token.
fn ceiling(mirostat: Mirostat) -> Option<lexiform_law::Ceiling> {
    use lexiform_law::{Law, Walk, Warper, Warping};
    let warping = Warping {
        mirostat: Some(mirostat),
        ..Warping::default()
    };
    let warper = Warper::new(warping, Law::Local).expect("a warping");
    Walk::<f64>::local(&warper, true, &[END]).ceiling_at(0)
}
