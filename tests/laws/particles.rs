//! Particles: copies in proportion to weights, an unbiased estimate of `Z`, and proper weights.

use std::collections::BTreeMap;

use lexiform_law::{Allowed, Chooser, Part, Particles, Place, Resampling, Row, Weight, law_of};

use crate::model::{END, Task, Word, normalised, variation};
use crate::number::{Cases, Exact, ratio, total};

const SCHEMES: [Resampling; 4] = [
    Resampling::Multinomial,
    Resampling::Stratified,
    Resampling::Systematic,
    Resampling::Residual,
];

fn weighted(weights: &[Exact]) -> Particles<Exact> {
    let mut particles = Particles::new(weights.len());
    for (particle, weight) in weights.iter().enumerate() {
        particles.weigh(particle, weight.clone());
    }
    particles
}

fn copies(ancestors: &[usize], particle: usize) -> usize {
    ancestors.iter().filter(|&&ancestor| ancestor == particle).count()
}

fn number(count: usize) -> Exact {
    ratio(count as i64, 1)
}

/// Random weights, some of them zero, not all.
fn some_weights(cases: &mut Cases, count: usize) -> Vec<Exact> {
    loop {
        let weights: Vec<Exact> = (0..count).map(|_| ratio(cases.below(6) as i64, 7)).collect();
        if weights.iter().any(Weight::is_positive) {
            return weights;
        }
    }
}

#[test]
fn copies_are_as_many_as_the_weights_say() {
    let mut cases = Cases(11);
    for case in 0..40 {
        let count = 1 + case % 4;
        let weights = some_weights(&mut cases, count);
        let all = total(&weights);
        for scheme in SCHEMES {
            let law = law_of(|chooser| weighted(&weights).resample(scheme, 0, chooser));
            assert_eq!(total(law.values()), Exact::one());
            for particle in 0..count {
                let mean = law
                    .iter()
                    .map(|(ancestors, p)| number(copies(ancestors, particle)) * p.clone());
                let mean = total(&mean.collect::<Vec<_>>());
                let expected = number(count) * weights[particle].clone() / all.clone();
                assert_eq!(mean, expected, "{scheme:?} of {weights:?}, particle {particle}");
            }
            assert!(
                law.keys()
                    .all(|ancestors| ancestors.len() == count && ancestors.is_sorted())
            );
        }
    }
}

#[test]
fn systematic_and_residual_copies_are_near_what_is_expected() {
    let mut cases = Cases(12);
    for _ in 0..40 {
        let weights = some_weights(&mut cases, 4);
        let all = total(&weights);
        for scheme in [Resampling::Systematic, Resampling::Residual] {
            let law = law_of(|chooser| weighted(&weights).resample(scheme, 0, chooser));
            for (ancestors, particle) in law
                .keys()
                .flat_map(|it| (0..4).map(move |particle| (it, particle)))
            {
                let expected = ratio(4, 1) * weights[particle].clone() / all.clone();
                let copies = number(copies(ancestors, particle));
                assert!(copies.clone() + Exact::one() > expected);
                assert!(scheme == Resampling::Residual || copies < expected + Exact::one());
            }
        }
    }
}

#[test]
fn resampling_keeps_the_estimate_and_makes_all_weights_equal() {
    let weights = [ratio(1, 2), ratio(1, 6), ratio(0, 1)];
    let mut particles = weighted(&weights);
    assert_eq!(particles.effective_size(), ratio(8, 5));
    assert!(particles.is_degenerate(&ratio(2, 3)) && !particles.is_degenerate(&ratio(1, 2)));
    let before = particles.estimate();
    struct First;
    impl Chooser<Exact> for First {
        fn choose(&mut self, _: Place, weights: &[Exact]) -> usize {
            weights.iter().position(Weight::is_positive).expect("some weight")
        }
    }
    particles.resample(Resampling::Systematic, 0, &mut First);
    assert_eq!(particles.estimate(), before);
    assert_eq!(particles.effective_size(), ratio(3, 1));
}

/// What a run gives: the estimate of `Z` and the text picked, if any particle has finished.
type Outcome = (Exact, Option<Word>);

/// What may be wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mutant {
    None,
    /// After resampling every particle keeps the weight of its place.
    KeepsWeights,
    /// Weights are those of prefixes without the mass of the end.
    ForgetsEnd,
}

/// Sequential Monte Carlo over a task, token by token.
fn smc<C: Chooser<Exact>>(
    task: &Task,
    (count, threshold, scheme): (usize, &Exact, Resampling),
    mutant: Mutant,
    chooser: &mut C,
) -> Outcome {
    let mut texts: Vec<Word> = vec![Vec::new(); count];
    let mut particles = Particles::new(count);
    let is_done = |text: &Word| text.last() == Some(&END);
    for step in 0.. {
        if texts.iter().all(is_done) {
            break;
        }
        for (particle, text) in texts.iter_mut().enumerate().filter(|(_, text)| !is_done(text)) {
            let row = task.row(text);
            let mask = task.mask(text);
            let part = row.part(Allowed::Words(&mask));
            let place = Place::new(particle as u32, text.len() as u32);
            let token = part.draw(place, chooser).expect("every prefix can be completed");
            if token != END || mutant != Mutant::ForgetsEnd {
                particles.weigh(particle, part.mass());
            }
            text.push(token);
        }
        if particles.is_degenerate(threshold) {
            let before = particles.clone();
            let ancestors = particles.resample(scheme, step, chooser);
            texts = ancestors
                .iter()
                .map(|&ancestor| texts[ancestor].clone())
                .collect();
            if mutant == Mutant::KeepsWeights {
                particles = before;
            }
        }
    }
    let text = particles.pick(0, chooser).map(|particle| texts[particle].clone());
    (particles.estimate(), text)
}

fn mean_of(law: &BTreeMap<Outcome, Exact>, of: impl Fn(&Outcome) -> Exact) -> Exact {
    total(
        &law.iter()
            .map(|(outcome, p)| of(outcome) * p.clone())
            .collect::<Vec<_>>(),
    )
}

fn law_of_pick(law: &BTreeMap<Outcome, Exact>) -> BTreeMap<Word, Exact> {
    let mut texts = BTreeMap::new();
    for ((_, text), p) in law {
        let entry = texts
            .entry(text.clone().expect("a text"))
            .or_insert_with(Exact::zero);
        *entry = entry.clone() + p.clone();
    }
    texts
}

/// Whether the estimate is unbiased, and the text that was picked properly weighted by it.
fn is_proper(task: &Task, longest: usize, setting: (usize, &Exact, Resampling), mutant: Mutant) -> bool {
    let (global, mass) = task.global(longest);
    let law = law_of(|chooser| smc(task, setting, mutant, chooser));
    let is_unbiased = mean_of(&law, |(estimate, _)| estimate.clone()) == mass;
    let of_text = |wanted: &Word| {
        mean_of(&law, |(estimate, text)| match text.as_ref() == Some(wanted) {
            true => estimate.clone(),
            false => Exact::zero(),
        })
    };
    let is_weighted = global
        .iter()
        .all(|(word, p)| of_text(word) == p.clone() * mass.clone());
    is_unbiased && is_weighted
}

#[test]
fn the_estimate_is_unbiased_and_the_pick_properly_weighted() {
    let never = ratio(0, 1);
    let (half, always) = (ratio(1, 2), ratio(2, 1));
    for task in [Task::first(), Task::random(1, 2), Task::random(5, 2)] {
        assert!(is_proper(
            &task,
            4,
            (1, &always, Resampling::Systematic),
            Mutant::None
        ));
        for scheme in SCHEMES {
            for threshold in [&never, &half, &always] {
                assert!(
                    is_proper(&task, 4, (2, threshold, scheme), Mutant::None),
                    "{scheme:?}"
                );
            }
        }
    }
}

#[test]
fn mutants_of_particles_fail() {
    let always = ratio(2, 1);
    for mutant in [Mutant::KeepsWeights, Mutant::ForgetsEnd] {
        let tasks = [Task::first()]
            .into_iter()
            .chain((0..8).map(|seed| Task::random(seed, 2)));
        let fails = |task: Task| !is_proper(&task, 4, (2, &always, Resampling::Systematic), mutant);
        assert!(tasks.into_iter().any(fails), "{mutant:?}");
    }
}

#[test]
fn the_pick_nears_the_global_law() {
    let (task, always) = (Task::first(), ratio(2, 1));
    let (global, _) = task.global(4);
    let distance = |count: usize| {
        let setting = (count, &always, Resampling::Multinomial);
        let law = law_of(|chooser| smc(&task, setting, Mutant::None, chooser));
        variation(&normalised(law_of_pick(&law)), &global)
    };
    let (one, two) = (distance(1), distance(2));
    // The distance of the local law of this task, and less with each particle.
    assert!((one.to_f64() - 0.490_099).abs() < 1e-6);
    assert!(two < one);
}
