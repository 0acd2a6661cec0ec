//! Constraints that are queried for each token: the law of the tokens that they allow, without a mask.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform_law::draft::{Node, NodeId, Origin, Proposal};
use lexiform_law::monitor::{
    Coverage, Failure, Monitor, MonitorState, PerText, PerToken, Product, Written, sample,
};
use lexiform_law::verify::{Next, Verified};
use lexiform_law::{
    Allowed, Ask, Chooser, Drawn, Fallback, Law as Choice, LawError, Part, Place, Row, Seeded, Step, Table,
    Trie, Walk, Warper, Warping, Weight, asked, law_of,
};

use crate::model::{END, Law, Task, Word};
use crate::number::{Cases, Exact, ratio, total};

const PLACE: fn() -> Place = || Place::new(0, 0);
const TOKENS: usize = 4;

/// A row, a mask, and what of it is allowed.
struct Case {
    row: Table<Exact>,
    mask: [u32; 1],
    allowed: [u32; 1],
}

fn cases() -> Vec<Case> {
    let mut cases = Cases(77);
    let case = |_| Case {
        row: Table(cases.row(TOKENS)),
        mask: [cases.below(1 << TOKENS) as u32 | 1 << cases.below(TOKENS as u64)],
        allowed: [cases.below(1 << TOKENS) as u32],
    };
    (0..150).map(case).collect()
}

/// Answers from a mask; after this many refusals another mask is offered, and this many tokens are drawn
/// ahead.
struct Answers<'a> {
    allowed: Allowed<'a>,
    offered: (usize, [u32; 1]),
    refused: usize,
    ahead: usize,
}

impl Ask for Answers<'_> {
    fn allows(&mut self, token: u32) -> bool {
        let is_allowed = self.allowed.contains(token);
        self.refused += usize::from(!is_allowed);
        is_allowed
    }

    fn narrow(&mut self) -> Option<Vec<u32>> {
        (self.refused >= self.offered.0).then(|| self.offered.1.to_vec())
    }

    fn ahead(&mut self) -> usize {
        self.ahead
    }
}

/// A token with the weight that was found for it.
type Found = Option<(u32, Exact)>;

fn found(drawn: Option<Drawn<Exact>>) -> Found {
    drawn.map(|drawn| (drawn.token, drawn.mass))
}

/// Asserts that an outcome is of the masked row, and weighs what its mask has on average.
fn is_masked(law: &BTreeMap<Found, Exact>, case: &Case) {
    let both = [case.mask[0] & case.allowed[0]];
    let part = case.row.part(Allowed::Words(&both));
    for token in 0..TOKENS as u32 {
        let of = law
            .iter()
            .filter(|(found, _)| found.as_ref().is_some_and(|it| it.0 == token));
        let (mut share, mut weight) = (Exact::zero(), Exact::zero());
        for (found, p) in of {
            let (_, mass) = found.clone().expect("a token");
            share = share + p.clone();
            weight = weight + mass * p.clone();
        }
        assert_eq!(share, part.share(token), "the law of {token}");
        let expected = part.share(token) * part.mass();
        assert_eq!(weight, expected, "the weight of {token}");
    }
}

#[test]
fn asking_draws_from_the_masked_row_and_estimates_its_mass() {
    for case in &cases() {
        for (refusals, ahead) in [(1, 1), (2, 1), (usize::MAX, 1), (1, 3), (usize::MAX, 2)] {
            // Offered after some refusals: exactly what is allowed, or a little more.
            for more in [0, 0b0110] {
                let law = law_of(|chooser| {
                    let mut answers = Answers {
                        allowed: Allowed::Words(&case.allowed),
                        offered: (refusals, [case.allowed[0] | more]),
                        refused: 0,
                        ahead,
                    };
                    let mask = Allowed::Words(&case.mask);
                    found(asked(&case.row, mask, &mut answers, PLACE(), chooser))
                });
                is_masked(&law, case);
            }
        }
    }
}

/// Mistakes that look natural: each has another law, or another weight, for some row.
#[test]
fn mutants_of_asking_are_told_apart() {
    let mask = |case: &Case| [case.mask[0] & case.allowed[0]];
    type Mutant = fn(&Case, &mut dyn Chooser<Exact>) -> Found;
    let mutants: [Mutant; 3] = [
        // The mass of the mask instead of what is allowed of it.
        |case, chooser| {
            let asks = |token| Allowed::Words(&case.allowed).contains(token);
            let drawn = asked(
                &case.row,
                Allowed::Words(&case.mask),
                &mut { asks },
                PLACE(),
                chooser,
            )?;
            Some((drawn.token, case.row.part(Allowed::Words(&case.mask)).mass()))
        },
        // The first allowed token in the order of probability, without chance.
        |case, _| {
            let part = case.row.part(Allowed::Words(&[case.mask[0] & case.allowed[0]]));
            let best = (0..TOKENS as u32).max_by_key(|&token| part.share(token))?;
            part.share(best).is_positive().then(|| (best, part.mass()))
        },
        // After a refusal one of the others, all alike.
        |case, chooser| {
            let row = case.row.part(Allowed::Words(&case.mask));
            let first = row.draw(PLACE(), chooser)?;
            let both = [case.mask[0] & case.allowed[0]];
            let part = case.row.part(Allowed::Words(&both));
            if Allowed::Words(&both).contains(first) {
                return Some((first, part.mass()));
            }
            let alike = |token| {
                if part.share(token).is_positive() {
                    Exact::one()
                } else {
                    Exact::zero()
                }
            };
            let alike: Vec<Exact> = (0..TOKENS as u32).map(alike).collect();
            let is_any = alike.iter().any(Weight::is_positive);
            is_any.then(|| (chooser.choose(PLACE().round(1), &alike) as u32, part.mass()))
        },
    ];
    for (number, mutant) in mutants.into_iter().enumerate() {
        let differs = cases().iter().any(|case| {
            let law = law_of(|chooser| mutant(case, chooser));
            let both = mask(case);
            let part = case.row.part(Allowed::Words(&both));
            (0..TOKENS as u32).any(|token| {
                let of = law
                    .iter()
                    .filter(|(found, _)| found.as_ref().is_some_and(|it| it.0 == token));
                let weights = of
                    .clone()
                    .map(|(found, p)| found.clone().expect("a token").1 * p.clone());
                let weights: Vec<Exact> = weights.collect();
                let share = total(of.map(|(_, p)| p));
                share != part.share(token) || total(&weights) != part.share(token) * part.mass()
            })
        });
        assert!(differs, "mutant {number}");
    }
}

/// How a language of a task is told.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Exact,
    Over,
    Ask,
}

/// The words of a task as a constraint.
struct Words {
    task: Arc<Task>,
    kind: Kind,
}

#[derive(Clone)]
struct WordState {
    task: Arc<Task>,
    kind: Kind,
    text: Word,
}

impl Monitor for Words {
    fn start(&self) -> Box<dyn MonitorState> {
        Box::new(WordState {
            task: self.task.clone(),
            kind: self.kind,
            text: Word::new(),
        })
    }
}

impl MonitorState for WordState {
    fn fork(&self) -> Box<dyn MonitorState> {
        Box::new(self.clone())
    }

    fn allows(&mut self, token: u32, _: Option<usize>) -> Result<bool, Failure> {
        Ok(Allowed::Words(&self.task.mask(&self.text)).contains(token))
    }

    fn advance(&mut self, token: u32) -> Result<(), Failure> {
        self.text.push(token);
        Ok(())
    }

    fn narrow(&mut self, words: &mut [u32], _: Option<usize>) -> Result<Coverage, Failure> {
        let mask = self.task.mask(&self.text)[0];
        match self.kind {
            Kind::Exact => {
                words[0] &= mask;
                Ok(Coverage::Exact)
            }
            Kind::Over => {
                words[0] &= mask | 0b001;
                Ok(Coverage::Over)
            }
            Kind::Ask => Ok(Coverage::Ask),
        }
    }
}

fn warper() -> Warper {
    Warper::new(Warping::default(), Choice::Local).expect("a warping")
}

fn walk() -> Walk<Exact> {
    Walk::local(&warper(), true, &[END])
}

/// A text under the product of some constraints, over the model of a task; `None` where nothing is allowed.
fn text(task: &Task, product: &Product, chooser: &mut impl Chooser<Exact>) -> Option<Word> {
    let (mut state, mut walk, mut text) = (product.begin(), walk(), Word::new());
    loop {
        let step = sample::step(&mut walk, &task.row(&text), &mut state, None, chooser);
        match step.expect("an answer") {
            Step::Token(drawn) => {
                state.advance(drawn.token).expect("an answer");
                text.push(drawn.token);
            }
            Step::End(drawn) => {
                text.push(drawn.token);
                return Some(text);
            }
            Step::Stuck(_) => return None,
            Step::Restart => panic!("the local law never goes back"),
        }
    }
}

/// The local law of two languages together, from masks.
fn masked(model: &Task, other: &Task) -> BTreeMap<Option<Word>, Exact> {
    law_of(|chooser| {
        let mut text = Word::new();
        loop {
            let both = [model.mask(&text)[0] & other.mask(&text)[0]];
            let row = model.row(&text);
            let token = row.part(Allowed::Words(&both)).draw(PLACE(), chooser)?;
            text.push(token);
            if token == END {
                return Some(text);
            }
        }
    })
}

#[test]
fn a_product_has_the_local_law_of_the_intersected_masks() {
    let kinds = [Kind::Exact, Kind::Over, Kind::Ask];
    let (mut dead_ends, mut several) = (0, 0);
    for seed in 0..12 {
        let (model, other) = (
            Arc::new(Task::random(seed, 3)),
            Arc::new(Task::random(seed + 100, 3)),
        );
        let expected = masked(&model, &other);
        dead_ends += usize::from(expected.contains_key(&None));
        several += usize::from(expected.len() > 1);
        for one in kinds {
            for two in kinds {
                let part = |task: &Arc<Task>, kind| -> Arc<dyn Monitor> {
                    Arc::new(Words {
                        task: task.clone(),
                        kind,
                    })
                };
                let product = Product::new(vec![part(&model, one), part(&other, two)]);
                let law = law_of(|chooser| text(&model, &product, chooser));
                assert_eq!(law, expected, "{seed} {one:?} {two:?}");
            }
        }
    }
    assert!(dead_ends > 0 && several > 5, "{dead_ends} {several}");
}

#[test]
fn the_kind_of_a_product_is_that_of_its_parts_together() {
    let task = Arc::new(Task::first());
    let kind = |kinds: &[Kind]| {
        let part = |&kind: &Kind| -> Arc<dyn Monitor> {
            Arc::new(Words {
                task: task.clone(),
                kind,
            })
        };
        let mut words = [0b111];
        let product = Product::new(kinds.iter().map(part).collect());
        (product.begin().narrow(&mut words, None), words[0])
    };
    assert_eq!(kind(&[Kind::Exact, Kind::Exact]), (Ok(Coverage::Exact), 0b011));
    assert_eq!(kind(&[Kind::Exact, Kind::Ask]), (Ok(Coverage::Over), 0b011));
    assert_eq!(kind(&[Kind::Ask, Kind::Ask]), (Ok(Coverage::Ask), 0b111));
    assert_eq!(kind(&[]).0, Ok(Coverage::Exact));
}

/// A text by drafts of the same two tokens at each place, verified without a mask.
fn drafted(
    task: &Task,
    product: &Product,
    draft: &[(Option<NodeId>, u32)],
    chooser: &mut impl Chooser<Exact>,
) -> Option<Word> {
    let node = |&(parent, token): &(Option<NodeId>, u32)| Node::<(), Table<Exact>> {
        token,
        parent,
        origin: Origin::Copied,
        proposal: Proposal::Point,
        chance: None,
        state: None,
    };
    let nodes: Vec<_> = draft.iter().map(node).collect();
    let (mut state, mut walk, mut text) = (product.begin(), walk(), Word::new());
    loop {
        let path = |node: Option<NodeId>| {
            let mut path: Vec<u32> = std::iter::successors(node, |&node| draft[node].0)
                .map(|node| draft[node].1)
                .collect();
            path.reverse();
            path
        };
        let rows = |node| Ok::<_, Failure>(Some(task.row(&[&text[..], &path(node)].concat())));
        let verified: Verified<Exact> =
            sample::verify(&nodes, rows, &state, None, (&mut walk, chooser)).expect("an answer");
        for drawn in &verified.drawn {
            text.push(drawn.token);
            if drawn.token != END {
                state.advance(drawn.token).expect("an answer");
            }
        }
        match verified.next {
            Next::Open => (),
            Next::Ended => return Some(text),
            Next::Stuck(_) | Next::Restart => return None,
        }
    }
}

#[test]
fn drafts_are_verified_without_a_mask_and_change_no_law() {
    for seed in 0..10 {
        let (model, other) = (
            Arc::new(Task::random(seed, 2)),
            Arc::new(Task::random(seed + 50, 2)),
        );
        let expected = masked(&model, &other);
        let part = |task: &Arc<Task>, kind| -> Arc<dyn Monitor> {
            Arc::new(Words {
                task: task.clone(),
                kind,
            })
        };
        let product = Product::new(vec![part(&model, Kind::Ask), part(&other, Kind::Ask)]);
        // A chain, two siblings, and a tree with a token that may be forbidden.
        for draft in [
            &[(None, 0), (Some(0), 1)][..],
            &[(None, 0), (None, 1)],
            &[(None, 1), (Some(0), 0), (Some(0), END)],
        ] {
            let law = law_of(|chooser| drafted(&model, &product, draft, chooser));
            assert_eq!(law, expected, "{seed} {draft:?}");
        }
    }
}

/// Verification that draws afresh after a drafted token was not drawn, and verification that does not ask
/// about it.
#[test]
fn mutants_of_verification_are_told_apart() {
    let row = Table([(1, 2), (1, 3), (1, 6)].map(|(n, d)| ratio(n, d)).to_vec());
    let (allowed, draft) = ([0b011_u32], 0_u32);
    let may = |token| Allowed::Words(&allowed).contains(token);
    let right =
        law_of(|chooser| asked(&row, Allowed::All, &mut { may }, PLACE(), chooser).map(|it| it.token));
    let masked = row.part(Allowed::Words(&allowed));
    assert_eq!(right[&Some(0)], masked.share(0));
    let renoised = law_of(|chooser| {
        let first = row.part(Allowed::All).draw(PLACE(), chooser);
        match first == Some(draft) {
            true => first,
            false => masked.draw(PLACE().round(1), chooser),
        }
    });
    assert_ne!(renoised, right);
    let forbidden = 2;
    let unasked = law_of(|chooser| {
        let first = row.part(Allowed::All).draw(PLACE(), chooser);
        match first == Some(forbidden) {
            true => first,
            false => asked(&row, Allowed::All, &mut { may }, PLACE().round(1), chooser).map(|it| it.token),
        }
    });
    assert_ne!(unasked, right);
    assert!(unasked.contains_key(&Some(forbidden)));
}

/// Where the model rarely draws what is forbidden, two tokens are asked about, whatever the vocabulary.
#[test]
fn a_model_that_is_right_is_asked_little() {
    let mut row = vec![1e-6; 1000];
    row[17] = 1.0 - 999e-6;
    let row = Table(row);
    let (mut asks, count) = (0_u32, 2000);
    for sequence in 0..count {
        let mut may = |token: u32| {
            asks += 1;
            token % 2 == 1
        };
        let drawn = asked::<f64, _, _>(
            &row,
            Allowed::All,
            &mut may,
            PLACE(),
            &mut Seeded::new(1, sequence),
        );
        assert!(drawn.is_some_and(|drawn| drawn.token % 2 == 1));
    }
    assert!(f64::from(asks) / f64::from(count) < 2.1, "{asks}");
}

#[test]
fn functions_of_texts_and_of_tokens_are_constraints() {
    let tokens = [
        (TokenKind::Text, "a"),
        (TokenKind::Text, "bc"),
        (TokenKind::Special, "$"),
    ];
    let vocabulary = Arc::new(Vocabulary::new(&tokens, &[2]).expect("a vocabulary"));
    let text = PerText::new(&vocabulary, |written| match written {
        Written::Prefix(text) => Ok("abca".as_bytes().starts_with(text)),
        Written::Whole(text) => Ok(text == b"abca"),
    });
    let even = PerToken::new(|before: &[u32], token| Ok(token != 2 || before.len() % 2 == 1));
    let product = Product::new(vec![Arc::new(text), Arc::new(even)]);
    let mut state = product.begin();
    for (token, others) in [(0, [1, 2]), (1, [0, 2]), (0, [1, 2]), (2, [0, 1])] {
        for other in others {
            assert_eq!(state.fork().allows(other, None), Ok(false), "{other} for {token}");
        }
        assert_eq!(state.allows(token, None), Ok(true));
        state.advance(token).expect("an answer");
    }
    assert_eq!(state.last_refusal(), None);
    let mut fresh = product.begin();
    assert_eq!(fresh.allows(2, None), Ok(false));
    assert_eq!(fresh.last_refusal(), Some(0));
}

/// A host without an answer ends the text with its own words, and nothing is drawn.
#[test]
fn a_failure_of_the_host_is_the_result() {
    let failing = PerToken::new(|_: &[u32], _| Err(Failure("the database is gone".to_owned())));
    let fine = PerToken::new(|_: &[u32], _| Ok(true));
    let product = Product::new(vec![Arc::new(fine), Arc::new(failing)]);
    let (mut state, mut walk) = (product.begin(), Walk::<f64>::local(&warper(), true, &[END]));
    let row = Table(vec![0.5, 0.25, 0.25]);
    let step = sample::step(&mut walk, &row, &mut state, None, &mut Seeded::new(3, 0));
    assert_eq!(step, Err(Failure("the database is gone".to_owned())));
    assert_eq!(state.last_refusal(), Some(1));
}

/// Nobody draws past a monitor: a law that cannot ask says so.
#[test]
fn laws_that_need_masks_do_not_pass_over_a_monitor() {
    let none = PerToken::new(|_: &[u32], _| Ok(false));
    let product = Product::new(vec![Arc::new(none)]);
    let row = Table(vec![0.5, 0.25, 0.25]);
    let trie = || Arc::new(Mutex::new(Trie::new(&[END], 8, 64)));
    for mut walk in [
        Walk::<f64>::global(trie(), 3, Fallback::Fail),
        Walk::adaptive(trie()),
    ] {
        let step = sample::step(
            &mut walk,
            &row,
            &mut product.begin(),
            None,
            &mut Seeded::new(3, 0),
        );
        assert_eq!(step, Ok(Step::Stuck(LawError::NeedsMask)));
    }
    let (mut walk, mut state) = (Walk::<f64>::local(&warper(), true, &[END]), product.begin());
    let step = sample::step(&mut walk, &row, &mut state, None, &mut Seeded::new(3, 0));
    assert_eq!(step, Ok(Step::Stuck(LawError::NoMass { position: 0 })));
}

/// The local law has its weights: their mean on a text is its probability.
#[test]
fn weights_by_asking_lead_to_the_models_law() {
    let (model, other) = (Arc::new(Task::random(3, 3)), Arc::new(Task::random(103, 3)));
    let part = |task: &Arc<Task>| -> Arc<dyn Monitor> {
        Arc::new(Words {
            task: task.clone(),
            kind: Kind::Ask,
        })
    };
    let product = Product::new(vec![part(&model), part(&other)]);
    let law = law_of(|chooser| {
        let (mut state, mut walk, mut text, mut weight) =
            (product.begin(), walk(), Word::new(), Exact::one());
        loop {
            let step = sample::step(&mut walk, &model.row(&text), &mut state, None, chooser);
            let (drawn, ends) = match step.expect("an answer") {
                Step::Token(drawn) => (drawn, false),
                Step::End(drawn) => (drawn, true),
                Step::Stuck(_) | Step::Restart => return None,
            };
            weight = weight * drawn.mass;
            text.push(drawn.token);
            if ends {
                return Some((text, weight));
            }
            state.advance(drawn.token).expect("an answer");
        }
    });
    let mut means = Law::new();
    for ((word, weight), p) in law.into_iter().filter_map(|(found, p)| Some((found?, p))) {
        let mean = means.entry(word).or_insert_with(Exact::zero);
        *mean = mean.clone() + weight * p;
    }
    let mut expected = model.sequences();
    expected.retain(|word, _| model.words.contains(word) && other.words.contains(word));
    assert_eq!(means, expected);
    assert!(!means.is_empty());
}
