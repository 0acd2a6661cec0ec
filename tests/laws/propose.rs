//! Proposals of particles: the estimate of `Z` is unbiased with every one of them.

use lexiform_law::{
    Allowed, Attempt, Chooser, Part, Particles, Place, Resampling, Row, Step, Table, Trie, Weight, Weighted,
    law_of, recursive,
};

use crate::adaptive;
use crate::model::{END, Task, Word};
use crate::number::{Exact, ratio, total};

#[derive(Clone, Copy, Debug, PartialEq)]
enum How {
    Masked,
    Asked,
    /// Over a trie that so many texts have taught.
    Twisted(usize),
    /// The first of these for one particle, and the last for the other.
    Mixed,
    /// Draws what the trie says, and weighs as if it were the mask.
    Mutant,
}

/// A particle on its way.
#[derive(Clone)]
struct Particle {
    how: How,
    text: Word,
    attempt: Attempt<Exact>,
}

fn masked<C: Chooser<Exact>>(
    row: &Table<Exact>,
    allowed: Allowed<'_>,
    place: Place,
    chooser: &mut C,
) -> Option<Weighted<Exact>> {
    let part = row.part(allowed);
    let (token, weight) = (part.draw(place, chooser)?, part.mass());
    Some(Weighted { token, weight })
}

fn extend<C: Chooser<Exact>>(
    task: &Task,
    (number, particle): (usize, &mut Particle),
    trie: &mut Trie<Exact>,
    chooser: &mut C,
) -> Exact {
    let row = task.row(&particle.text);
    let mask = task.mask(&particle.text);
    let allowed = Allowed::Words(&mask);
    let place = Place::new(number as u32, particle.text.len() as u32);
    let proposed = match particle.how {
        How::Masked => masked(&row, allowed, place, chooser),
        How::Asked => recursive(&row, |token| allowed.contains(token), place, chooser),
        _ => match particle.attempt.next(trie, &row, allowed, chooser) {
            Step::Token(drawn) | Step::End(drawn) => Some(Weighted {
                token: drawn.token,
                weight: particle.attempt.factor().clone(),
            }),
            Step::Restart | Step::Stuck(_) => None,
        },
    };
    let Some(Weighted { token, weight }) = proposed else {
        return Exact::zero();
    };
    let weight = match particle.how {
        How::Mutant => task.mass(&particle.text),
        _ => weight,
    };
    particle.text.push(token);
    weight
}

/// The estimate of `Z`, and the text picked.
fn smc<C: Chooser<Exact>>(task: &Task, how: How, count: usize, chooser: &mut C) -> (Exact, Option<Word>) {
    let mut trie = Trie::new(&[END], 4, usize::MAX);
    let before = match how {
        How::Twisted(before) => before,
        How::Mutant => 1,
        _ => 0,
    };
    for _ in 0..before {
        adaptive::text(task, &mut trie, chooser);
    }
    let mut weights = Particles::new(count);
    let particle = |number| Particle {
        how: match (how, number) {
            (How::Mixed, 0) => How::Asked,
            (How::Mixed, _) => How::Twisted(0),
            _ => how,
        },
        text: Word::new(),
        attempt: Attempt::adaptive(&mut trie, number as u32),
    };
    let mut particles: Vec<Particle> = (0..count).map(particle).collect();
    for step in 0.. {
        let is_open =
            |number: usize, text: &Word| text.last() != Some(&END) && weights_alive(&weights, number);
        let open: Vec<usize> = (0..count)
            .filter(|&number| is_open(number, &particles[number].text))
            .collect();
        if open.is_empty() {
            break;
        }
        for number in open {
            let factor = extend(task, (number, &mut particles[number]), &mut trie, chooser);
            weights.weigh(number, factor);
        }
        if weights.is_degenerate(&ratio(2, 1)) {
            let ancestors = weights.resample(Resampling::Systematic, step, chooser);
            particles = ancestors.iter().map(|&it| particles[it].clone()).collect();
        }
    }
    let text = weights
        .pick(0, chooser)
        .map(|number| particles[number].text.clone());
    (weights.estimate(), text)
}

fn weights_alive(weights: &Particles<Exact>, number: usize) -> bool {
    weights.weight(number).is_positive()
}

/// Whether the estimate is unbiased, and the text that was picked properly weighted by it.
fn is_proper(task: &Task, how: How, count: usize) -> bool {
    let (global, mass) = task.global(4);
    let law = law_of(|chooser| smc(task, how, count, chooser));
    let mean = |wanted: Option<&Word>| {
        let of = law
            .iter()
            .filter(|((_, text), _)| wanted.is_none() || text.as_ref() == wanted);
        total(
            &of.map(|((estimate, _), share)| estimate.clone() * share.clone())
                .collect::<Vec<_>>(),
        )
    };
    let of_words = global
        .iter()
        .all(|(word, p)| mean(Some(word)) == p.clone() * mass.clone());
    mean(None) == mass && of_words
}

#[test]
fn the_estimate_is_unbiased_with_every_proposal() {
    let hows = [
        How::Masked,
        How::Asked,
        How::Twisted(0),
        How::Twisted(1),
        How::Mixed,
    ];
    for task in [Task::first(), Task::random(1, 2), Task::random(5, 2)] {
        for how in hows {
            for count in [1, 2] {
                assert!(is_proper(&task, how, count), "{how:?}, {count}");
            }
        }
    }
}

#[test]
fn weights_of_the_mask_do_not_fit_a_twist() {
    assert!(!is_proper(&Task::first(), How::Mutant, 1));
}

/// What texts before taught makes the weights vary less: here the first text teaches nearly all there is to
/// know.
#[test]
fn a_taught_twist_varies_less() {
    let task = Task::first();
    let spread = |how| {
        let law = law_of(|chooser| smc(&task, how, 1, chooser).0);
        let squares = law
            .into_iter()
            .map(|(estimate, share)| estimate.clone() * estimate * share);
        total(&squares.collect::<Vec<_>>())
    };
    assert!(spread(How::Twisted(1)) < spread(How::Twisted(0)));
    assert!(spread(How::Twisted(0)) <= spread(How::Masked));
}

/// Texts chosen among particles by a metric of the caller have the law that the metric tilts.
#[test]
fn a_metric_tilts_the_law() {
    let task = Task::first();
    let (global, mass) = task.global(4);
    // Texts that begin with 0 count tenfold, those that end with 1 nothing.
    let metric = |text: &Word| match text[..] {
        [0, ..] => ratio(10, 1),
        [.., 1, END] => ratio(0, 1),
        _ => ratio(1, 1),
    };
    let law = law_of(|chooser| {
        let mut texts = vec![Word::new(); 2];
        let mut weights = Particles::new(2);
        for (number, text) in texts.iter_mut().enumerate() {
            while text.last() != Some(&END) {
                let mask = task.mask(text);
                let place = Place::new(number as u32, text.len() as u32);
                let proposed = masked(&task.row(text), Allowed::Words(&mask), place, chooser);
                let Weighted { token, weight } = proposed.expect("every prefix can be completed");
                weights.weigh(number, weight);
                text.push(token);
            }
        }
        weights.tilt(|number| metric(&texts[number]));
        let picked = weights.pick(0, chooser).map(|number| texts[number].clone());
        (weights.estimate(), picked)
    });
    for (word, p) in &global {
        let of_word = law.iter().filter(|((_, text), _)| text.as_ref() == Some(word));
        let mean: Vec<Exact> = of_word
            .map(|((estimate, _), share)| estimate.clone() * share.clone())
            .collect();
        assert_eq!(total(&mean), p.clone() * mass.clone() * metric(word), "{word:?}");
    }
    // Where the metric says nothing of any text, there is no answer.
    assert!(law.iter().any(|((_, text), _)| text.is_none()));
}
