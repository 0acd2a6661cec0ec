//! Tests of the driver of searches over a table model: which branches there are, and how failures are
//! handled.

use super::*;
use crate::error::EngineError;
use crate::request::Finish;
use crate::request::driver::{Branch, BranchEvent, Order, Orders, Ranked, Report};
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform_law::Drawn;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

const END: u32 = 5;
const LONGEST: usize = 5;
/// More branches than any search here has.
const WIDE: usize = 1_000;

/// Returns the tokens that may follow a text, the likeliest first.
fn ranked(text: &[u32], count: usize) -> Vec<Ranked> {
    let hash = |token: u32| {
        let seed = text.iter().fold(u64::from(token) + 1, |hash, &token| {
            (hash ^ (u64::from(token) + 3))
                .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .rotate_left(23)
        });
        1.0 + (seed % 997) as f64
    };
    let tokens = if text.len() + 1 == LONGEST {
        END..=END
    } else {
        0..=END
    };
    let all: f64 = (0..=END).map(hash).sum();
    let kept: f64 = tokens.clone().map(hash).sum::<f64>() / all;
    let next = |token| Ranked {
        drawn: Drawn {
            token,
            mass: kept,
            log_mass: kept.ln(),
            log_probability: (hash(token) / all).ln(),
            log_kept: kept.ln(),
        },
        ends: token == END,
        narrowed: None,
    };
    let mut ranked: Vec<Ranked> = tokens.map(next).collect();
    ranked.sort_by(|one, other| other.drawn.log_probability.total_cmp(&one.drawn.log_probability));
    ranked.truncate(count);
    ranked
}

fn report(branch: Branch, event: BranchEvent) -> Report {
    Report {
        branch,
        event,
        tokens: 0,
        log_probability: 0.0,
        log_weight: 0.0,
        is_certain: true,
        text: Arc::default(),
        rows: Vec::new(),
        ranked: Vec::new(),
        weighed: Vec::new(),
        distance: None,
        latest: None,
    }
}

/// The record of a search.
#[derive(Debug, Default)]
struct Course {
    /// The text of each answer.
    heard: BTreeMap<usize, Vec<u32>>,
    failed: BTreeMap<usize, EngineError>,
    /// The maximum number of branches at a time, and the number of tokens fed, including those of recomputed
    /// prefixes.
    live: usize,
    fed: usize,
    rows: usize,
}

/// Carries out the orders of a driver, on texts; the row number given by `breaks` fails with its error.
fn run(mut driver: Box<dyn Driver>, breaks: Option<(usize, EngineError)>) -> Course {
    // The text of each branch, and how much of it is computed.
    let mut branches: BTreeMap<Branch, (Vec<u32>, usize)> = BTreeMap::from([(0, (Vec::new(), 0))]);
    let mut pending = VecDeque::from([report(0, BranchEvent::Begun)]);
    let mut course = Course::default();
    while let Some(report) = pending.pop_front() {
        let mut orders = Orders::new();
        driver.next(&report, &mut orders);
        for order in orders {
            match order {
                Order::Fork { of, to, at } => {
                    let (text, computed) = &branches[&of];
                    assert!(at <= text.len());
                    let fork = (text[..at].to_vec(), at.min(*computed));
                    assert!(branches.insert(to, fork).is_none());
                }
                Order::Read(branch) => pending.push_back(self::report(branch, BranchEvent::Read)),
                Order::Take { branch, ranked } => {
                    let text = &mut branches.get_mut(&branch).expect("a branch").0;
                    assert!(super::tests::ranked(text, 99).contains(&ranked));
                    text.push(ranked.drawn.token);
                }
                Order::Rank { branch, look } => {
                    let (text, computed) = branches.get_mut(&branch).expect("a branch");
                    course.fed += text.len() - *computed;
                    *computed = text.len();
                    course.rows += 1;
                    let event = match &breaks {
                        Some((number, error)) if *number == course.rows => BranchEvent::Failed(error.clone()),
                        _ if text.len() == LONGEST => BranchEvent::Ended(Finish::Length),
                        _ => BranchEvent::Ranked,
                    };
                    pending.push_back(Report {
                        ranked: super::tests::ranked(text, look.count),
                        distance: Some(LONGEST - text.len()),
                        ..self::report(branch, event)
                    });
                }
                Order::Rewind { branch, to } => {
                    let (text, computed) = branches.get_mut(&branch).expect("a branch");
                    assert_eq!(text.len(), to);
                    *computed = (*computed).min(to.saturating_sub(1));
                }
                Order::Drop(branch) => drop(branches.remove(&branch)),
                Order::Finish { branch, answer } => {
                    let (text, _) = branches.remove(&branch).expect("a branch");
                    course.heard.insert(answer, text);
                }
                Order::Fail { answer, error } => drop(course.failed.insert(answer, error)),
                other => panic!("{other:?}"),
            }
            course.live = course.live.max(branches.len());
        }
        // Dropped branches are not reported.
        pending.retain(|report| branches.contains_key(&report.branch));
    }
    assert!(branches.is_empty(), "branches are left: {branches:?}");
    course
}

fn vocabulary() -> Arc<Vocabulary> {
    let tokens: Vec<_> = "abcde$"
        .chars()
        .map(|it| (TokenKind::Text, it.to_string()))
        .collect();
    Arc::new(Vocabulary::new(&tokens, &[END]).unwrap())
}

fn searches(most: usize) -> Vec<Box<dyn Fn() -> Box<dyn Driver>>> {
    let beam = Search::Beam {
        width: 3,
        length_penalty: 0.0,
        patience: None,
    };
    let best_first = Search::BestFirstBeam {
        width: 3,
        length_penalty: 0.0,
    };
    let diverse = Search::DiverseBeam {
        width: 4,
        groups: 2,
        diversity: 0.5,
        length_penalty: 1.0,
    };
    let exact = Search::KBest {
        max_rows: 1_000,
        max_frontier: 1_000,
    };
    let phrases = Search::DynamicBeam {
        width: 4,
        length_penalty: 0.0,
        must_contain: vec![vec![2, 3]],
    };
    let a_star = Search::AStarEsque {
        width: 2,
        length_penalty: 0.0,
        distance_weight: 1.0,
        look_ahead: 2,
        must_contain: vec![vec![vec![1], vec![2, 3]]],
        must_not_contain: vec![vec![2, 2]],
    };
    let vocabulary = vocabulary();
    let driver = |search: Search| -> Box<dyn Fn() -> Box<dyn Driver>> {
        let vocabulary = vocabulary.clone();
        Box::new(move || driver_within(most, &search, (2, LONGEST), &vocabulary))
    };
    let all = [beam, best_first, diverse, exact, phrases, a_star];
    all.into_iter().map(driver).collect()
}

#[test]
fn what_is_computed_again_changes_nothing() {
    let exact = |most| -> Box<dyn Driver> {
        let strategy = KBest::new(1_000, 1_000, 8);
        Box::new(Searcher::new(strategy, (8, LONGEST, most), vocabulary()))
    };
    let wide = run(exact(1_000), None);
    assert_eq!(wide.heard.len(), 8);
    let narrow = run(exact(3), None);
    assert_eq!(wide.heard, narrow.heard);
    assert!(narrow.live <= 3 && narrow.live < wide.live, "{narrow:?}");
    assert!(narrow.fed > wide.fed, "{} {}", narrow.fed, wide.fed);
}

/// If there are enough branches, every prefix whose row is needed is fed as one token; if there are few, the
/// texts are the same.
#[test]
fn prefixes_share_what_is_computed() {
    let mut texts = Vec::new();
    for search in searches(WIDE) {
        let course = run(search(), None);
        assert_eq!((course.heard.len(), course.failed.len()), (2, 0));
        assert_eq!(course.fed, course.rows - 1, "the root has no token");
        texts.push(course.heard);
    }
    for (search, texts) in searches(6).into_iter().zip(texts) {
        assert_eq!(run(search(), None).heard, texts);
    }
}

/// A breakdown of a branch does not mean that its text is impossible: without it other texts would be the
/// best.
#[test]
fn a_breakdown_of_one_branch_fails_the_answers() {
    let broken = EngineError::Panicked("a mask".to_string());
    for search in searches(WIDE) {
        for number in 1..4 {
            let course = run(search(), Some((number, broken.clone())));
            assert_eq!(course.heard, BTreeMap::new());
            assert!(course.failed.len() == 2 && course.failed.values().all(|error| *error == broken));
        }
    }
}

/// A prefix after which filters leave nothing is a dead end; other texts are still found.
#[test]
fn a_dead_end_is_no_answer() {
    let dead = EngineError::DeadEnd { generated: 1 };
    for search in searches(WIDE) {
        let course = run(search(), Some((2, dead.clone())));
        assert_eq!(course.heard.len(), 2, "{course:?}");
        let course = run(search(), Some((1, dead.clone())));
        let is_known =
            |error: &EngineError| *error == dead || matches!(error, EngineError::PhrasesMissing { .. });
        assert!(course.failed.len() == 2 && course.failed.values().all(is_known));
    }
}

#[test]
fn who_leaves_takes_all_branches_along() {
    for search in searches(WIDE) {
        let mut driver = search();
        let mut orders = Orders::new();
        driver.next(&report(0, BranchEvent::Read), &mut orders);
        let first = Report {
            ranked: ranked(&[], 99),
            ..report(0, BranchEvent::Ranked)
        };
        driver.next(&first, &mut orders);
        let forks = |order: &Order| match order {
            Order::Fork { to, .. } => Some(*to),
            _ => None,
        };
        let mut branches: Vec<Branch> = orders.iter().filter_map(forks).chain([0]).collect();
        orders.clear();
        driver.leave(1, &mut orders);
        assert!(orders.is_empty(), "somebody waits for the other answer");
        driver.leave(0, &mut orders);
        branches.retain(|&branch| !orders.contains(&Order::Drop(branch)));
        assert!(branches.is_empty(), "{branches:?}");
    }
}
