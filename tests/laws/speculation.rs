//! F5, and whole sequences: a draft never changes a law.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use lexiform_law::draft::{Node, NodeId, Origin, Proposal};
use lexiform_law::verify::{Next, residual, tree};
use lexiform_law::{
    Allowed, Chooser, Fallback, Law as Choice, LawError, Part, Place, Purpose, Row, Seeded, Table, Trie,
    Walk, Warper, Warping, Weight, law_of,
};

use crate::model::{END, Law, Task, Word};
use crate::number::{Cases, Exact, ratio, total};

const TOKENS: usize = 5;
const CASES: usize = 300;

/// A target row, a draft row and a mask of three tokens or four.
struct Case {
    p: Table<Exact>,
    q: Table<Exact>,
    mask: [u32; 1],
}

impl Case {
    fn all() -> Vec<Case> {
        let mut cases = Cases(5);
        let case = |_| {
            let (p, q) = (cases.row(TOKENS), cases.row(TOKENS));
            let likely = (0..TOKENS)
                .max_by(|&a, &b| p[a].cmp(&p[b]))
                .expect("there are tokens");
            let mut mask: u32 = 1 << likely;
            while mask.count_ones() < 3 {
                mask |= 1 << cases.below(TOKENS as u64);
            }
            Case {
                p: Table(p),
                q: Table(q),
                mask: [mask],
            }
        };
        (0..CASES).map(case).collect()
    }

    /// The cases in which the masked draft row has mass.
    fn draftable() -> Vec<Case> {
        let drafts = |case: &Case| case.q.part(case.allowed()).mass().is_positive();
        Case::all().into_iter().filter(drafts).collect()
    }

    fn allowed(&self) -> Allowed<'_> {
        Allowed::Words(&self.mask)
    }

    fn target(&self) -> impl Part<Exact> {
        self.p.part(self.allowed())
    }

    /// p̃, the law that every correct rule must have.
    fn wanted(&self) -> BTreeMap<u32, Exact> {
        let shares = (0..TOKENS as u32).map(|token| (token, self.target().share(token)));
        shares.filter(|(_, share)| share.is_positive()).collect()
    }
}

fn at() -> Place {
    Place::new(0, 0)
}

fn draft(part: &impl Part<Exact>, chooser: &mut impl Chooser<Exact>) -> u32 {
    part.draw(at().to(Purpose::Draft), chooser)
        .expect("the draft row has mass")
}

/// Accepts with probability min(1, one/other).
fn accepts(one: Exact, other: Exact, chooser: &mut impl Chooser<Exact>) -> bool {
    if one >= other {
        return true;
    }
    chooser.choose(at().to(Purpose::Accept), &[one.clone(), other - one]) == 0
}

/// norm(max(0, one − other)) inside a mask; nothing if it is zero.
fn excess(one: impl Fn(u32) -> Exact, other: impl Fn(u32) -> Exact, allowed: Allowed<'_>) -> Table<Exact> {
    let difference = |token| match (one(token), other(token)) {
        (one, other) if one > other && allowed.contains(token) => one - other,
        _ => Exact::zero(),
    };
    Table((0..TOKENS as u32).map(difference).collect())
}

fn draw(row: &Table<Exact>, chooser: &mut impl Chooser<Exact>) -> Option<u32> {
    row.part(Allowed::All).draw(at().to(Purpose::Residual), chooser)
}

#[test]
fn the_residual_rule_has_the_target_law() {
    for case in Case::all() {
        let draft_row = case.q.part(Allowed::All);
        let law = law_of(|chooser| {
            let drafted = draft(&draft_row, chooser);
            residual(&case.target(), [(drafted, draft_row.clone())], at(), chooser)
                .expect("the target has mass")
                .token
        });
        assert_eq!(law, case.wanted());
    }
    for case in Case::draftable() {
        let draft_row = case.q.part(case.allowed());
        let law = law_of(|chooser| {
            let drafted = draft(&draft_row, chooser);
            residual(&case.target(), [(drafted, draft_row.clone())], at(), chooser)
                .expect("the target has mass")
                .token
        });
        assert_eq!(law, case.wanted());
    }
}

#[test]
fn masking_the_draft_never_lowers_acceptance() {
    let accepted = |case: &Case, allowed: Allowed<'_>| {
        let draft_row = case.q.part(allowed);
        let law = law_of(|chooser| {
            let drafted = draft(&draft_row, chooser);
            residual(&case.target(), [(drafted, draft_row.clone())], at(), chooser)
                .expect("mass")
                .accepted
        });
        law.get(&true).cloned().unwrap_or_else(Exact::zero)
    };
    for case in Case::draftable() {
        let masked = accepted(&case, case.allowed());
        let shares = (0..TOKENS as u32).map(|token| {
            case.target()
                .share(token)
                .at_most(case.q.part(case.allowed()).share(token))
        });
        assert_eq!(masked, total(&shares.collect::<Vec<_>>()));
        assert!(masked >= accepted(&case, Allowed::All));
    }
}

#[test]
fn drawing_once_has_the_target_law_whatever_is_drafted() {
    for case in Case::all().iter().take(60) {
        for drafted in 0..TOKENS as u32 {
            let law = law_of(|chooser| {
                let mut walk = local(&[]);
                let rows = |_| Ok::<_, Infallible>(Some((case.p.clone(), case.allowed())));
                let Ok(verified) = tree(&chain::<Exact>(&[drafted]), rows, &mut walk, chooser);
                assert_eq!(verified.accepted() == 1, verified.drawn[0].token == drafted);
                assert_eq!(verified.drawn.len(), verified.accepted() + 1);
                verified.drawn[0].token
            });
            assert_eq!(law, case.wanted());
        }
    }
}

#[test]
fn a_residual_of_the_unmasked_target_has_another_law() {
    let differs = |case: &Case| {
        let q = case.q.part(Allowed::All);
        let unmasked = excess(
            |token| case.p.probability(token),
            |token| q.share(token),
            case.allowed(),
        );
        let law = law_of(|chooser| {
            let drafted = draft(&q, chooser);
            if accepts(case.target().share(drafted), q.share(drafted), chooser) {
                return drafted;
            }
            draw(&unmasked, chooser)
                .or_else(|| case.target().draw(at(), chooser))
                .expect("the target has mass")
        });
        law != case.wanted()
    };
    let failures = Case::all().iter().filter(|case| differs(case)).count();
    assert!(failures > CASES / 2, "the mutant fails only {failures} times");
}

#[test]
fn a_ratio_with_the_unmasked_draft_row_has_another_law() {
    let differs = |case: &Case| {
        let (masked, unmasked) = (case.q.part(case.allowed()), case.q.part(Allowed::All));
        let law = law_of(|chooser| {
            let drafted = draft(&masked, chooser);
            residual(&case.target(), [(drafted, unmasked.clone())], at(), chooser)
                .expect("mass")
                .token
        });
        law != case.wanted()
    };
    let failures = Case::draftable().iter().filter(|case| differs(case)).count();
    assert!(failures > CASES / 2, "the mutant fails only {failures} times");
}

#[test]
fn dropping_a_drafted_token_for_its_own_probability_has_another_law() {
    let differs = |case: &Case| {
        let q = case.q.part(Allowed::All);
        let law = law_of(|chooser| {
            let drafted = draft(&q, chooser);
            if q.share(drafted) < ratio(1, 5) {
                return case.target().draw(at(), chooser).expect("mass");
            }
            residual(&case.target(), [(drafted, q.clone())], at(), chooser)
                .expect("mass")
                .token
        });
        law != case.wanted()
    };
    let failures = Case::all().iter().filter(|case| differs(case)).count();
    assert!(failures > CASES / 2, "the mutant fails only {failures} times");
}

#[test]
fn judging_unmasked_and_redrawing_what_is_not_allowed_is_exact() {
    for case in Case::all() {
        let (whole, q) = (case.p.part(Allowed::All), case.q.part(Allowed::All));
        let law = law_of(|chooser| {
            let drafted = draft(&q, chooser);
            let token = residual(&whole, [(drafted, q.clone())], at(), chooser)
                .expect("mass")
                .token;
            if case.allowed().contains(token) {
                token
            } else {
                case.target().draw(at(), chooser).expect("mass")
            }
        });
        assert_eq!(law, case.wanted());
    }
}

/// Tokens chosen without chance, one below the other.
fn chain<W: Weight>(tokens: &[u32]) -> Vec<Node<(), Table<W>>> {
    let node = |(number, &token): (usize, &u32)| Node {
        token,
        parent: number.checked_sub(1),
        origin: Origin::Copied,
        proposal: Proposal::Point,
        chance: None,
        state: None,
    };
    tokens.iter().enumerate().map(node).collect()
}

pub(crate) fn local<W: Weight>(ends: &[u32]) -> Walk<W> {
    let warper = Warper::new(Warping::default(), Choice::Local).expect("the default is in range");
    Walk::local(&warper, true, ends)
}

/// Decodes with drafts of up to three tokens, right and wrong ones, until the end.
pub(crate) fn speculate<W: Weight>(
    task: &Task,
    number: impl Fn(Exact) -> W,
    drafts: &dyn Fn(&[u32]) -> Word,
    walk: &mut Walk<W>,
    chooser: &mut impl Chooser<W>,
) -> Result<Word, LawError> {
    let mut word: Word = Vec::new();
    loop {
        let mut draft = Vec::new();
        // A drafter offers only what the mask allows along the way.
        for token in drafts(&word) {
            let path = [&word[..], &draft].concat();
            if token == END || !Allowed::Words(&task.mask(&path)).contains(token) {
                break;
            }
            draft.push(token);
        }
        let paths: Vec<Word> = (0..=draft.len())
            .map(|at| [&word[..], &draft[..at]].concat())
            .collect();
        let masks: Vec<Vec<u32>> = paths.iter().map(|path| task.mask(path)).collect();
        let rows = |node: Option<NodeId>| {
            let at = node.map_or(0, |node| node + 1);
            let row = Table(task.row(&paths[at]).0.into_iter().map(&number).collect());
            Ok::<_, Infallible>(Some((row, Allowed::Words(&masks[at]))))
        };
        let Ok(verified) = tree(&chain::<W>(&draft), rows, walk, chooser);
        word.extend(verified.drawn.iter().map(|drawn| drawn.token));
        match verified.next {
            Next::Open => {}
            Next::Ended => return Ok(word),
            Next::Restart => word.clear(),
            Next::Stuck(error) => return Err(error),
        }
    }
}

pub(crate) type DraftRule = fn(&[u32]) -> Word;

pub(crate) const DRAFTERS: [DraftRule; 4] = [
    |_| vec![],
    |_| vec![0, 0, 0],
    |word| vec![word.len() as u32 % 2; 2],
    |word| vec![1, word.first().copied().unwrap_or(0), 1],
];

#[test]
fn drafts_leave_the_local_law_of_sequences_alone() {
    for seed in 0..8 {
        let task = Task::random(seed, 3);
        for drafts in DRAFTERS {
            let law: Law = law_of(|chooser| {
                speculate(&task, |number| number, &drafts, &mut local(&[END]), chooser).expect("never stuck")
            });
            assert_eq!(law, task.local());
        }
    }
}

#[test]
fn drafts_leave_the_global_law_of_sequences_alone() {
    for task in [Task::first(), Task::random(3, 2), Task::random(4, 2)] {
        let laws = DRAFTERS.map(|drafts| {
            law_of(|chooser| {
                let trie = Arc::new(Mutex::new(Trie::new(&[END], 4, 1000)));
                let mut walk = Walk::global(trie, 2, Fallback::Fail);
                speculate(&task, |number| number, &drafts, &mut walk, chooser).ok()
            })
        });
        assert!(
            laws.iter().all(|law| *law == laws[0]),
            "the chance of failing is the same, too"
        );
        let accepted: Law = laws[0]
            .iter()
            .filter_map(|(word, p)| Some((word.clone()?, p.clone())))
            .collect();
        assert_eq!(crate::model::normalised(accepted), task.global(4).0);
    }
}

#[test]
fn with_a_seed_drafts_leave_every_token_alone() {
    for seed in 0..200 {
        let task = Task::random(seed % 10, 3);
        let local_words = DRAFTERS.map(|drafts| {
            let mut chooser = Seeded::new(seed, 0);
            speculate(
                &task,
                |number| number.to_f64(),
                &drafts,
                &mut local(&[END]),
                &mut chooser,
            )
        });
        assert!(
            local_words
                .iter()
                .all(|word| word.is_ok() && *word == local_words[0])
        );
        let global_words = DRAFTERS.map(|drafts| {
            let trie = Arc::new(Mutex::new(Trie::new(&[END], 4, 1000)));
            let mut walk = Walk::global(trie, 50, Fallback::Weighted);
            speculate(
                &task,
                |number| number.to_f64(),
                &drafts,
                &mut walk,
                &mut Seeded::new(seed, 1),
            )
        });
        assert!(
            global_words
                .iter()
                .all(|word| word.is_ok() && *word == global_words[0])
        );
    }
}
