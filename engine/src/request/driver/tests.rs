//! Tests of the drivers over a table model: every path of choices is enumerated, so that their laws are
//! computed, not estimated.

use super::*;
use crate::request::Diagnostics;
use lexiform_law::{
    Allowed, Chooser, Cuts, Every, LogWeight, Part, Place, Resampling, Row, Table, Weight, law_of,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// The end token; tokens 0 and 1 write.
const END: u32 = 2;

type Word = Vec<u32>;

/// Returns the row of the model after a prefix. Words have three letters. After a leading 0 the model writes
/// 0 one time in ten; the valid words are those with a leading 1, and `000`.
fn row(prefix: &[u32]) -> [f64; 3] {
    match (prefix.len(), prefix.first()) {
        (3, _) => [0.0, 0.0, 1.0],
        (1 | 2, Some(0)) => [0.1, 0.9, 0.0],
        _ => [0.5, 0.5, 0.0],
    }
}

fn mask(prefix: &[u32]) -> [u32; 1] {
    match (prefix.len(), prefix.first()) {
        (3, _) => [0b100],
        (1 | 2, Some(0)) => [0b001],
        _ => [0b011],
    }
}

const Z: f64 = 101.0 / 200.0;

/// Returns the words with their probabilities under the model.
fn words() -> BTreeMap<Word, f64> {
    let mut words = BTreeMap::from([(vec![0, 0, 0, END], 0.005)]);
    words.extend((0..4).map(|bits| (vec![1, bits >> 1, bits & 1, END], 0.125)));
    words
}

/// A chooser shared by a driver and its branches.
#[derive(Clone)]
struct Shared<'e>(Arc<Mutex<&'e mut Every<LogWeight>>>);

impl Chooser<LogWeight> for Shared<'_> {
    fn choose(&mut self, place: Place, weights: &[LogWeight]) -> usize {
        self.0.lock().expect("one thread").choose(place, weights)
    }
}

/// A branch as the loop stores it.
#[derive(Clone, Default)]
struct Text {
    tokens: Word,
    given: Word,
    rows: Vec<(f64, f64)>,
    is_drawing: bool,
}

impl Text {
    /// Continues with a token, drawn or given, and returns the event to report.
    fn go_on(&mut self, chooser: &mut Shared<'_>) -> BranchEvent {
        let row = Table(row(&self.tokens).map(|p| LogWeight::from_ln(p.ln())).to_vec());
        let mask = mask(&self.tokens);
        let part = row.part(Allowed::Words(&mask));
        let given = !self.given.is_empty();
        let token = match given {
            true => self.given.remove(0),
            false => part
                .draw(Place::new(0, 0), chooser)
                .expect("every prefix can be completed"),
        };
        self.rows.push((row.probability(token).ln(), part.mass().ln()));
        self.tokens.push(token);
        match token {
            END => BranchEvent::Ended(Finish::Stop),
            _ if given => BranchEvent::Scored,
            _ => BranchEvent::Drew,
        }
    }

    fn report(&self, branch: Branch, event: BranchEvent) -> Report {
        Report {
            branch,
            tokens: self.tokens.len(),
            log_probability: self.rows.iter().map(|row| row.0).sum(),
            log_weight: self.rows.iter().map(|row| row.1).sum(),
            is_certain: true,
            text: Arc::new(self.tokens.clone()),
            rows: self.rows.clone(),
            ranked: Vec::new(),
            weighed: Vec::new(),
            distance: None,
            latest: None,
            event,
        }
    }
}

/// Runs the loop: branches with an order advance by a token, one after the other, until no branch has an
/// order. Returns what the answers received.
fn run<'e>(
    mut driver: Box<dyn Driver + 'e>,
    chooser: &mut Shared<'e>,
    answers: usize,
) -> Vec<(Word, Option<Verdict>)> {
    let mut branches = BTreeMap::from([(0, Text::default())]);
    let mut pending = VecDeque::from([(0, BranchEvent::Begun)]);
    let mut heard = vec![(Word::new(), None); answers];
    loop {
        while let Some((branch, event)) = pending.pop_front() {
            let Some(text) = branches.get_mut(&branch) else {
                continue;
            };
            text.is_drawing = false;
            let mut orders = Orders::new();
            driver.next(&text.report(branch, event), &mut orders);
            for order in orders {
                match order {
                    Order::Fork { of, to, at } => {
                        let mut fork = branches[&of].clone();
                        fork.tokens.truncate(at);
                        fork.rows.truncate(at);
                        assert!(branches.insert(to, fork).is_none());
                    }
                    Order::Read(branch) => pending.push_back((branch, BranchEvent::Read)),
                    Order::Draw(branch) => branches.get_mut(&branch).expect("a branch").is_drawing = true,
                    Order::Score { branch, tokens } => {
                        let text = branches.get_mut(&branch).expect("a branch");
                        (text.given, text.is_drawing) = (tokens, true);
                    }
                    Order::Drop(branch) => drop(branches.remove(&branch)),
                    Order::Tell { branch, answer } => {
                        heard[answer] = (branches[&branch].tokens.clone(), driver.verdict(answer));
                    }
                    Order::Finish { branch, answer } => {
                        let text = branches.remove(&branch).expect("a branch");
                        heard[answer] = (text.tokens, driver.verdict(answer));
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
        let Some((&branch, text)) = branches.iter_mut().find(|(_, text)| text.is_drawing) else {
            assert!(branches.is_empty(), "branches are left");
            return heard;
        };
        let event = text.go_on(chooser);
        match (&event, text.given.is_empty()) {
            (BranchEvent::Scored, false) => (),
            _ => pending.push_back((branch, event)),
        }
    }
}

/// Returns the law of the word of each answer, and the mean of its weight on each word.
fn laws(
    driver: impl for<'e> Fn(Shared<'e>) -> Box<dyn Driver + 'e>,
    answer: usize,
) -> (BTreeMap<Word, f64>, BTreeMap<Word, f64>) {
    let outcomes = law_of(|every| {
        let mut shared = Shared(Arc::new(Mutex::new(every)));
        let driver = driver(shared.clone());
        let heard = run(driver, &mut shared, answer + 1);
        let (word, verdict) = heard[answer].clone();
        let weight = verdict.and_then(|verdict| verdict.log_weight).unwrap_or(0.0);
        (word, (weight.exp() * 1e12).round() as u64)
    });
    let (mut law, mut weighted) = (BTreeMap::new(), BTreeMap::new());
    for ((word, weight), p) in outcomes {
        *law.entry(word.clone()).or_insert(0.0) += p.ln().exp();
        *weighted.entry(word).or_insert(0.0) += p.ln().exp() * weight as f64 * 1e-12;
    }
    (law, weighted)
}

fn assert_near(one: &BTreeMap<Word, f64>, other: &BTreeMap<Word, f64>) {
    assert!(one.keys().eq(other.keys()), "{one:?} {other:?}");
    for (word, p) in one {
        assert!((p - other[word]).abs() < 1e-9, "{word:?}: {p}, {}", other[word]);
    }
}

fn plan(particles: usize, threshold: f64, resampling: Resampling) -> Plan {
    Plan {
        particles,
        threshold,
        resampling,
    }
}

#[test]
fn what_a_population_gives_is_properly_weighted() {
    for resampling in [Resampling::Systematic, Resampling::Residual] {
        for (particles, threshold) in [(1, 1.0), (2, 0.0), (2, 0.5), (2, 1.0)] {
            let plan = plan(particles, threshold, resampling);
            let (_, weighted) = laws(|chooser| Box::new(Population::new(plan, 1, chooser)), 0);
            assert_near(&weighted, &words());
        }
    }
}

#[test]
fn a_second_answer_of_a_population_is_as_good_as_the_first() {
    let plan = plan(2, 1.0, Resampling::Systematic);
    let (_, weighted) = laws(|chooser| Box::new(Population::new(plan, 2, chooser)), 1);
    assert_near(&weighted, &words());
}

#[test]
fn a_population_says_what_became_of_it() {
    law_of(|every| {
        let mut shared = Shared(Arc::new(Mutex::new(every)));
        let driver = Population::new(plan(2, 1.0, Resampling::Systematic), 1, shared.clone());
        let heard = run(Box::new(driver), &mut shared, 1);
        let verdict = heard[0].1.clone().expect("a verdict");
        assert_eq!(verdict.law, LawTag::Smc);
        let Some(Diagnostics::Particles {
            particles: 2,
            effective_size,
            ..
        }) = verdict.diagnostics
        else {
            panic!("{verdict:?}");
        };
        assert!((1.0..2.0 + 1e-9).contains(&effective_size));
    });
}

/// Returns `q(to | from)` under cuts that are uniform over all positions, from its formula.
fn uniform_proposal(from: &Word, to: &Word) -> f64 {
    let common = from
        .iter()
        .zip(to)
        .take_while(|(one, other)| one == other)
        .count();
    let rest = |at: usize| -> f64 {
        let factor = |place: usize| {
            let (row, mask) = (row(&to[..place]), mask(&to[..place])[0]);
            let mass: f64 = (0..3)
                .filter(|token| mask >> token & 1 == 1)
                .map(|token| row[token])
                .sum();
            row[to[place] as usize] / mass
        };
        (at..to.len()).map(factor).product()
    };
    (0..=common.min(from.len() - 1)).map(rest).sum::<f64>() / from.len() as f64
}

#[test]
fn a_chain_takes_the_steps_that_its_law_says() {
    for (steps, expected) in [(1, 0.2525), (2, 0.5 * 0.2525 + 0.7475 / 200.0)] {
        let (law, _) = laws(
            |chooser| Box::new(Chains::new(steps, Cuts::Restart, [chooser])),
            0,
        );
        assert!((law[&vec![0, 0, 0, END]] - expected).abs() < 1e-9);
    }
    let (law, _) = laws(|chooser| Box::new(Chains::new(1, Cuts::Uniform, [chooser])), 0);
    let words = words();
    let local = |word: &Word| if word[0] == 0 { 0.5 } else { 0.125 };
    let mut expected: BTreeMap<Word, f64> = words.keys().map(|word| (word.clone(), 0.0)).collect();
    for (from, p) in &words {
        let mut stays = 1.0;
        for (to, other) in words.iter().filter(|(to, _)| *to != from) {
            let (there, back) = (uniform_proposal(from, to), uniform_proposal(to, from));
            let moves = there * f64::min(1.0, other * back / (p * there));
            *expected.get_mut(to).expect("a word") += local(from) * moves;
            stays -= moves;
        }
        *expected.get_mut(from).expect("a word") += local(from) * stays;
    }
    assert_near(&law, &expected);
}

#[test]
fn the_law_of_the_table_is_what_it_is_taken_for() {
    let total: f64 = words().values().sum();
    assert!((total - Z).abs() < 1e-12);
}

/// A breakdown of a branch does not mean that its text is impossible: continuing without it would change the
/// law.
#[test]
fn a_breakdown_of_one_branch_fails_the_answer() {
    let report = |branch, event| Text::default().report(branch, event);
    let broken = EngineError::Panicked("a mask".to_string());
    law_of(|every| {
        let shared = Shared(Arc::new(Mutex::new(every)));
        let drivers: [Box<dyn Driver + '_>; 2] = [
            Box::new(Population::new(
                plan(2, 1.0, Resampling::Systematic),
                1,
                shared.clone(),
            )),
            Box::new(Chains::new(3, Cuts::Restart, [shared])),
        ];
        for (mut driver, branch) in drivers.into_iter().zip([1, 1]) {
            let mut orders = Orders::new();
            driver.next(&report(0, BranchEvent::Read), &mut orders);
            orders.clear();
            driver.next(&report(branch, BranchEvent::Failed(broken.clone())), &mut orders);
            let fails = orders
                .iter()
                .any(|order| matches!(order, Order::Fail { answer: 0, error } if *error == broken));
            assert!(fails, "{orders:?}");
        }
    });
}
