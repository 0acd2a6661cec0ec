//! The production path: logits in `f32`, sums in `f64`, draws by seed.

use std::collections::BTreeMap;

use lexiform_law::{
    Allowed, Attempt, Chooser, Distribution, Fallback, History, Law as Choice, LawError, LawTag, Measured,
    Part, Place, Purpose, Row, RowError, Sampler, Seeded, Step, Table, Trie, Walk, Warper, Warping, law_of,
};
use proptest::prelude::*;

use crate::model::{END, Task, Word};

/// ln Σ exp over some logits, the slow and careful way.
fn log_sum(logits: impl Iterator<Item = f32> + Clone) -> f64 {
    let peak = logits.clone().fold(f32::NEG_INFINITY, f32::max);
    if peak == f32::NEG_INFINITY {
        return f64::NEG_INFINITY;
    }
    f64::from(peak)
        + logits
            .map(|logit| (f64::from(logit) - f64::from(peak)).exp())
            .sum::<f64>()
            .ln()
}

fn kept<'a>(logits: &'a [f32], mask: &'a [u32]) -> impl Iterator<Item = f32> + Clone + 'a {
    let allowed = Allowed::Words(mask);
    (0..)
        .zip(logits)
        .filter(move |&(token, _)| allowed.contains(token))
        .map(|(_, &logit)| logit)
}

fn logits() -> impl Strategy<Value = Vec<f32>> {
    let logit = prop_oneof![9 => -30.0f32..30.0, 1 => -2000.0f32..2000.0];
    prop::collection::vec(logit, 1..300)
}

fn warper(warping: Warping) -> Warper {
    Warper::new(warping, Choice::Local).expect("the parameters are in range")
}

/// Logits, a mask over them with at least one token, and a temperature.
pub(crate) fn masked() -> impl Strategy<Value = (Vec<f32>, Vec<u32>, f32)> {
    let word = prop_oneof![Just(0u32), Just(u32::MAX), any::<u32>()];
    (logits(), prop::collection::vec(word, 10), 0.2f32..3.0).prop_map(|(logits, mut words, temperature)| {
        words[0] |= 1;
        (logits, words, temperature)
    })
}

proptest! {
    #[test]
    fn the_measured_mass_is_the_sum_of_the_allowed_tokens((logits, mask, temperature) in masked()) {
        let warper = warper(Warping { temperature, ..Warping::default() });
        let row = warper.row(&logits, History::default()).expect("the logits are finite");
        let part = row.part(Allowed::Words(&mask));
        let scale = 1.0 / f64::from(temperature);
        let scaled = |logit: f32| (f64::from(logit) * scale) as f32;
        let exact = logits.iter().all(|&logit| f64::from(scaled(logit)) == f64::from(logit) * scale);
        let (all, some): (Vec<f32>, Vec<f32>) =
            (logits.iter().copied().map(scaled).collect(), kept(&logits, &mask).map(scaled).collect());
        let expected = log_sum(some.iter().copied()) - log_sum(all.iter().copied());
        // Where the scaled logits are no `f32`, the reference itself is only as good as their rounding.
        let tolerance = if exact { 1e-11 } else { 2e-6 * (1.0 + logits.iter().fold(0.0, |a: f64, b| a.max(f64::from(b.abs()))) * scale) };
        prop_assert!((part.log_mass() - expected).abs() <= tolerance, "{} against {expected}", part.log_mass());
    }

    /// Whoever computed the row may have measured it, at the scale of its temperature: the law and its draws
    /// are those of a row that we measure, also where penalties and bias changed it since, and what cannot be
    /// a measure of the row is not believed.
    #[test]
    fn a_row_that_others_measured_is_the_same_law(
        (logits, mask, temperature) in masked(), seed in any::<u64>(), change in any::<(u16, bool, bool)>(),
    ) {
        let token = u32::from(change.0) % logits.len() as u32;
        let warper = warper(Warping {
            temperature,
            top_p: if change.1 { 0.95 } else { 1.0 },
            repetition_penalty: if change.2 { 1.3 } else { 1.0 },
            bias: if change.2 { vec![(token, 1.0)] } else { Vec::new() },
            ..Warping::default()
        });
        let history = History { prompt: &[0, 3, 7], ..History::default() };
        let (peak, scale) = (logits.iter().copied().fold(f32::NEG_INFINITY, f32::max), warper.scale());
        let weight = |logit: &f32| (scale * (f64::from(*logit) - f64::from(peak))).exp();
        let sums: Vec<f64> = logits.chunks(32).map(|block| block.iter().map(weight).sum()).collect();
        let (nothing, more) = (vec![f64::NAN; sums.len()], [&sums[..], &[1.0]].concat());
        let plain = warper.row(&logits, history).expect("the logits are finite");
        for (peak, scale, sums) in [
            (peak, scale, &sums), (peak, scale, &nothing), (peak, scale, &more), (f32::NAN, scale, &sums),
            (peak, 2.0 * scale, &sums),
        ] {
            let measured = Some(Measured { peak, scale, sums });
            let row = warper.row_of(&logits, measured, history).expect("the logits are finite");
            let (one, other) = (plain.part(Allowed::Words(&mask)), row.part(Allowed::Words(&mask)));
            prop_assert!((one.log_mass() - other.log_mass()).abs() < 1e-11);
            prop_assert!((plain.log_probability(0) - row.log_probability(0)).abs() < 1e-11);
            for position in 0..5 {
                let mut chooser = Seeded::new(seed, 0);
                let place = Place::new(0, position);
                prop_assert_eq!(one.draw(place, &mut chooser), other.draw(place, &mut chooser));
            }
        }
    }

    #[test]
    fn shares_sum_to_one_inside_the_mask((logits, mask, _) in masked()) {
        let row = Distribution::new(&logits).expect("the logits are finite");
        let part = row.part(Allowed::Words(&mask));
        let naive = log_sum(kept(&logits, &mask));
        let mut sum = 0.0;
        for (token, &logit) in (0..).zip(&logits) {
            let share = part.share(token);
            let expected = if Allowed::Words(&mask).contains(token) { (f64::from(logit) - naive).exp() } else { 0.0 };
            prop_assert!((share - expected).abs() < 1e-12);
            prop_assert!((part.share_without(token) - (1.0 - expected)).abs() < 1e-12);
            sum += share;
        }
        prop_assert!((sum - 1.0).abs() < 1e-12);
        prop_assert!((row.log_probability(0) - (f64::from(logits[0]) - log_sum(logits.iter().copied()))).abs() < 1e-11);
    }

    #[test]
    fn draws_stay_inside_the_mask((logits, mask, temperature) in masked(), seed: u64) {
        let warper = warper(Warping { temperature, top_p: 0.9, ..Warping::default() });
        let row = warper.row(&logits, History::default()).expect("the logits are finite");
        let part = row.part(Allowed::Words(&mask));
        for position in 0..20 {
            let token = part.draw(Place::new(0, position), &mut Seeded::new(seed, 0)).expect("a token is allowed");
            prop_assert!(Allowed::Words(&mask).contains(token) && (token as usize) < logits.len());
            prop_assert!(part.share(token) > 0.0);
        }
    }

    #[test]
    fn the_filters_keep_what_a_sort_would_keep(
        (logits, mask, _) in masked(), top_k in 1u32..40, top_p in 0.05f32..1.0, min_p in 0.0f32..0.3,
    ) {
        let warping = Warping { top_k: Some(top_k), top_p, min_p, ..Warping::default() };
        let row_of = warper(warping);
        let row = row_of.row(&logits, History::default()).expect("the logits are finite");
        let part = row.part(Allowed::Words(&mask));
        let mut order: Vec<u32> = (0..logits.len() as u32).filter(|&t| Allowed::Words(&mask).contains(t)).collect();
        order.sort_by(|&a, &b| logits[b as usize].total_cmp(&logits[a as usize]).then(a.cmp(&b)));
        order.truncate(top_k as usize);
        let best = logits[order[0] as usize];
        let weight = |token: u32| (f64::from(logits[token as usize]) - f64::from(best)).exp();
        let bound = f64::from(top_p) * order.iter().map(|&token| weight(token)).sum::<f64>();
        let mut reached = 0.0;
        for token in order {
            // A token at the very edge may fall on either side by rounding.
            let edge = (reached - bound).abs() < 1e-9 || (weight(token) - f64::from(min_p)).abs() < 1e-9;
            let keep = reached < bound && weight(token) >= f64::from(min_p);
            prop_assert!(edge || keep == (part.share(token) > 0.0), "token {token}");
            reached += weight(token);
        }
    }

    #[test]
    fn the_bounds_of_a_floating_trie_stay_in_order(seed in 0u64..500) {
        let task = Task::random(seed % 20, 3);
        let mut trie: Trie<f64> = Trie::new(&[END], 4, 40);
        for number in 0..30 {
            attempt(&task, &mut trie, number, seed);
            for prefix in trie.prefixes() {
                let (bound, mass) = (trie.bound(&prefix).expect("visited"), trie.mass(&prefix).expect("visited"));
                prop_assert!(0.0 <= bound && bound <= mass + 1e-12 && mass <= 1.0 + 1e-12);
                prop_assert!(task.completion(&prefix, 4).to_f64() <= bound + 1e-12);
            }
        }
    }

    #[test]
    fn attempts_in_turn_keep_a_small_trie_in_order(seed in 0u64..500, capacity in 8usize..24) {
        let task = Task::random(seed % 20, 3);
        let mut trie: Trie<f64> = Trie::new(&[END], 4, capacity);
        let mut chooser = Seeded::new(seed, 0);
        for round in 0..8 {
            // Each begins when those before it are a step ahead.
            let mut open: Vec<(Attempt<f64>, Word)> = Vec::new();
            for turn in 0..14 {
                if turn < 10 {
                    open.push((Attempt::begin(&mut trie, 10 * round + turn), Word::new()));
                }
                open.retain_mut(|(attempt, word)| {
                    let (row, mask) = (table(&task, word), task.mask(word));
                    let step = attempt.next(&mut trie, &row, Allowed::Words(&mask), &mut chooser);
                    if let Step::Token(drawn) = &step {
                        word.push(drawn.token);
                    }
                    matches!(step, Step::Token(_))
                });
            }
            prop_assert!(open.is_empty());
            let prefixes = trie.prefixes();
            prop_assert!(trie.len() <= capacity);
            for prefix in &prefixes {
                prop_assert_eq!(prefixes.iter().filter(|other| *other == prefix).count(), 1);
                let (bound, mass) = (trie.bound(prefix).expect("visited"), trie.mass(prefix).expect("visited"));
                prop_assert!((mass - task.mass(prefix).to_f64()).abs() < 1e-12);
                prop_assert!(task.completion(prefix, 4).to_f64() <= bound + 1e-12 && bound <= mass + 1e-12);
            }
        }
    }
}

fn table(task: &Task, prefix: &[u32]) -> Table<f64> {
    Table(task.row(prefix).0.iter().map(|weight| weight.to_f64()).collect())
}

fn attempt(task: &Task, trie: &mut Trie<f64>, number: u32, seed: u64) -> Option<Word> {
    let mut attempt = Attempt::begin(trie, number);
    let mut word = Vec::new();
    loop {
        let (row, mask) = (table(task, &word), task.mask(&word));
        match attempt.next(trie, &row, Allowed::Words(&mask), &mut Seeded::new(seed, 0)) {
            Step::Token(drawn) => word.push(drawn.token),
            Step::End(drawn) => return Some([word, vec![drawn.token]].concat()),
            _ => return None,
        }
    }
}

/// Pearson's statistic against its quantile at 1 − 10⁻⁶ (by Wilson and Hilferty); cells expected below 5 are
/// pooled.
fn fits(counts: &BTreeMap<Word, usize>, law: &BTreeMap<Word, f64>) -> bool {
    let all: usize = counts.values().sum();
    let mut cells: Vec<(f64, f64)> = Vec::new();
    let mut pooled = (0.0, 0.0);
    for (word, probability) in law {
        let (seen, expected) = (
            counts.get(word).copied().unwrap_or(0) as f64,
            probability * all as f64,
        );
        match expected < 5.0 {
            true => pooled = (pooled.0 + seen, pooled.1 + expected),
            false => cells.push((seen, expected)),
        }
    }
    if pooled.1 > 0.0 {
        cells.push(pooled);
    }
    assert!(
        counts.keys().all(|word| law.contains_key(word)),
        "something impossible was drawn"
    );
    let statistic: f64 = cells
        .iter()
        .map(|(seen, expected)| (seen - expected).powi(2) / expected)
        .sum();
    let freedom = (cells.len() as f64 - 1.0).max(1.0);
    let spread = 2.0 / (9.0 * freedom);
    statistic <= freedom * (1.0 - spread + 4.753 * spread.sqrt()).powi(3)
}

fn counted(draws: impl Iterator<Item = Word>) -> BTreeMap<Word, usize> {
    draws.fold(BTreeMap::new(), |mut counts, word| {
        *counts.entry(word).or_insert(0) += 1;
        counts
    })
}

#[test]
fn frequencies_of_drawn_tokens_fit_the_law() {
    let logits: Vec<f32> = (0..200).map(|token| ((token * 37 % 101) as f32) / 20.0).collect();
    let mask: Vec<u32> = vec![0xF0F0_F0F0, u32::MAX, 0, 0x8000_0001, u32::MAX, 3, 1];
    for (seed, temperature) in (0..20).zip([0.7, 1.0, 1.5].into_iter().cycle()) {
        let warper = warper(Warping {
            temperature,
            ..Warping::default()
        });
        let row = warper
            .row(&logits, History::default())
            .expect("the logits are finite");
        let part = row.part(Allowed::Words(&mask));
        let shares = (0..200).map(|token| (vec![token], part.share(token)));
        let law: BTreeMap<Word, f64> = shares.filter(|(_, share)| *share > 0.0).collect();
        let draw = |position| {
            part.draw(Place::new(0, position), &mut Seeded::new(seed, 0))
                .expect("mass")
        };
        let counts = counted((0..100_000).map(|position| vec![draw(position)]));
        assert!(fits(&counts, &law), "seed {seed}");
        // The test can fail: against the uniform law it does.
        let uniform = law
            .keys()
            .map(|word| (word.clone(), 1.0 / law.len() as f64))
            .collect();
        assert!(!fits(&counts, &uniform));
    }
}

#[test]
fn frequencies_of_accepted_sequences_fit_the_global_law() {
    let task = Task::first();
    let law: BTreeMap<Word, f64> = task
        .global(4)
        .0
        .into_iter()
        .map(|(word, p)| (word, p.to_f64()))
        .collect();
    let local: BTreeMap<Word, f64> = task
        .local()
        .into_iter()
        .map(|(word, p)| (word, p.to_f64()))
        .collect();
    for seed in 0..20 {
        let mut trie: Trie<f64> = Trie::new(&[END], 4, 6);
        let counts = counted((0..8000).filter_map(|number| attempt(&task, &mut trie, number, seed)));
        assert!(fits(&counts, &law), "seed {seed}");
        assert!(!fits(&counts, &local));
    }
}

/// Wide enough for groups of blocks: each level draws in proportion, and the chain of draws has the law.
#[test]
fn a_wide_row_is_drawn_in_three_steps() {
    let logits: Vec<f32> = (0..5000)
        .map(|token| (token * 37 % 101) as f32 / 20.0 - (token % 7) as f32)
        .collect();
    let row = Distribution::new(&logits).expect("the logits are finite");
    let part = row.part(Allowed::All);
    let law: BTreeMap<u32, f64> = law_of(|chooser| part.draw(Place::new(0, 0), chooser).expect("mass"));
    assert_eq!(law.len(), 5000);
    for (token, share) in law {
        assert!((share - part.share(token)).abs() < 1e-12);
    }
    let mut places = Vec::new();
    part.draw(Place::new(0, 0), &mut Noted(&mut places));
    assert_eq!(places, [Purpose::Group, Purpose::Block, Purpose::Token]);
}

/// Writes down what is chosen, and always chooses the first.
struct Noted<'a>(&'a mut Vec<Purpose>);

impl Chooser<f64> for Noted<'_> {
    fn choose(&mut self, place: Place, _weights: &[f64]) -> usize {
        self.0.push(place.purpose);
        0
    }
}

#[test]
fn a_mask_far_below_the_peak_keeps_its_law() {
    let mut logits = vec![0.0_f32; 64];
    logits[0] = 3000.0;
    logits[40] = 2.0;
    logits[41] = 2.0 + std::f32::consts::LN_2;
    let row = Distribution::new(&logits).expect("the logits are finite");
    let mask = [0, 3 << 8];
    let part = row.part(Allowed::Words(&mask));
    assert!((part.share(41) - 2.0 / 3.0).abs() < 1e-6);
    assert!((part.log_mass() - (2.0 + 3.0_f64.ln() - 3000.0)).abs() < 1e-6);
    assert_eq!(part.mass(), 0.0);
    assert!(part.draw(Place::new(0, 0), &mut Seeded::new(1, 0)).is_some());
    let empty = row.part(Allowed::Words(&[0, 0]));
    assert_eq!(empty.draw(Place::new(0, 0), &mut Seeded::new(1, 0)), None);
    assert_eq!(empty.log_mass(), f64::NEG_INFINITY);
}

#[test]
fn broken_rows_are_refused_with_their_place() {
    let refused = |logits: &[f32]| {
        Distribution::new(logits)
            .expect_err("the row is broken")
            .to_string()
    };
    assert_eq!(refused(&[0.0, f32::NAN]), "the logit of token 1 is NaN");
    assert_eq!(refused(&[f32::INFINITY, 0.0]), "the logit of token 0 is inf");
    assert_eq!(
        Distribution::new(&[f32::NEG_INFINITY]).err(),
        Some(RowError::Empty)
    );
    assert_eq!(Distribution::new(&[]).err(), Some(RowError::Empty));
}

#[test]
fn parameters_out_of_range_are_refused_by_name() {
    let refused = |warping: Warping| match Warper::new(warping, Choice::Local) {
        Err(LawError::OutOfRange { name, .. }) => name,
        other => panic!("not refused: {other:?}"),
    };
    let plain = Warping::default;
    assert_eq!(
        refused(Warping {
            temperature: -1.0,
            ..plain()
        }),
        "temperature"
    );
    assert_eq!(
        refused(Warping {
            temperature: f32::NAN,
            ..plain()
        }),
        "temperature"
    );
    assert_eq!(
        refused(Warping {
            top_p: 0.0,
            ..plain()
        }),
        "top_p"
    );
    assert_eq!(
        refused(Warping {
            min_p: 1.5,
            ..plain()
        }),
        "min_p"
    );
    assert_eq!(
        refused(Warping {
            top_k: Some(0),
            ..plain()
        }),
        "top_k"
    );
    assert_eq!(
        refused(Warping {
            repetition_penalty: 0.0,
            ..plain()
        }),
        "repetition_penalty"
    );
    assert_eq!(
        refused(Warping {
            bias: vec![(3, f32::NAN)],
            ..plain()
        }),
        "bias"
    );
    let greedy = Warping {
        temperature: 0.0,
        ..plain()
    };
    let global = Choice::Global {
        share_attempts: false,
        max_attempts: 5,
        fallback: Fallback::Fail,
    };
    assert_eq!(Warper::new(greedy, global).err(), Some(LawError::GreedyGlobal));
}

#[test]
fn penalties_and_bias_change_the_tokens_they_name() {
    let logits = [2.0_f32, -2.0, 1.0, 0.0, 0.5];
    let change = |warping: Warping| -> Vec<f64> {
        let history = History {
            prompt: &[0, 1],
            answer: &[2],
            draft: &[2],
        };
        let warper = warper(warping);
        let row = warper.row(&logits, history).expect("the logits are finite");
        (0..5)
            .map(|token| row.log_probability(token) - row.log_probability(4) + 0.5)
            .collect()
    };
    let near = |changed: Vec<f64>, expected: [f64; 5]| {
        assert!(
            changed.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6),
            "{changed:?}"
        );
    };
    near(
        change(Warping {
            repetition_penalty: 2.0,
            ..Warping::default()
        }),
        [1.0, -4.0, 0.5, 0.0, 0.5],
    );
    near(
        change(Warping {
            frequency_penalty: 0.25,
            ..Warping::default()
        }),
        [2.0, -2.0, 0.5, 0.0, 0.5],
    );
    near(
        change(Warping {
            presence_penalty: 0.25,
            ..Warping::default()
        }),
        [2.0, -2.0, 0.75, 0.0, 0.5],
    );
    near(
        change(Warping {
            bias: vec![(3, 1.5), (9, 1.0)],
            ..Warping::default()
        }),
        [2.0, -2.0, 1.0, 1.5, 0.5],
    );
    let banned = Warping {
        bias: vec![(0, f32::NEG_INFINITY)],
        ..Warping::default()
    };
    assert_eq!(change(banned)[0], f64::NEG_INFINITY);
}

#[test]
fn greedy_takes_the_best_allowed_token() {
    let logits = [5.0_f32, 1.0, 3.0, 3.0];
    let warper = warper(Warping {
        temperature: 0.0,
        ..Warping::default()
    });
    let row = warper
        .row(&logits, History::default())
        .expect("the logits are finite");
    let mut walk: Walk = Walk::local(&warper, true, &[]);
    let Step::Token(drawn) = walk.next(&row, Allowed::Words(&[0b1110]), &mut Seeded::new(1, 0)) else {
        panic!("a token is allowed");
    };
    assert_eq!((drawn.token, walk.tag()), (2, LawTag::Greedy));
    assert!((drawn.mass - (1.0 - row.probability(0))).abs() < 1e-12);
    assert_eq!(walk.log_weight(), walk.log_probability());
    let best: Vec<u32> = row.top(3).into_iter().map(|(token, _)| token).collect();
    assert_eq!(best, [0, 2, 3]);
}

#[test]
fn filters_come_before_the_mask_under_the_global_law_and_after_it_under_the_local_one() {
    let logits = [3.0_f32, 2.0, 1.0, 0.0];
    let warping = || Warping {
        top_k: Some(2),
        ..Warping::default()
    };
    let mask = [0b1100];
    let local = warper(warping());
    let row = local
        .row(&logits, History::default())
        .expect("the logits are finite");
    assert!(row.part(Allowed::Words(&mask)).share(2) > 0.7);
    assert!(row.part(Allowed::Words(&[0b1110])).log_kept() < row.part(Allowed::Words(&[0b1110])).log_mass());
    assert_eq!(Walk::<f64>::local(&local, true, &[]).tag(), LawTag::LocalFiltered);
    let global = Choice::Global {
        share_attempts: false,
        max_attempts: 1,
        fallback: Fallback::Fail,
    };
    let global = Warper::new(warping(), global).expect("the parameters are in range");
    let row = global
        .row(&logits, History::default())
        .expect("the logits are finite");
    assert_eq!(row.part(Allowed::Words(&mask)).mass(), 0.0);
    assert!((row.probability(0) + row.probability(1) - 1.0).abs() < 1e-12);
    assert!(local.is_identity() && !global.is_identity());
    assert_eq!(row.probability(2), 0.0);
    assert_eq!(row.top(4).len(), 2);
}

#[test]
fn rows_among_some_tokens_forget_the_others() {
    let logits = [1.0_f32, 9.0, f32::NAN, 2.0, 0.5];
    let warper = warper(Warping::default()).among(vec![0b11001]);
    let row = warper
        .row(&logits, History::default())
        .expect("the broken logit is not looked at");
    let alone = [1.0_f32, 2.0, 0.5];
    let alone = Distribution::new(&alone).expect("the logits are finite");
    for (token, same) in [(0, 0), (3, 1), (4, 2)] {
        assert_eq!(row.log_probability(token), alone.log_probability(same));
        assert_eq!(
            row.part(Allowed::All).share(token),
            alone.part(Allowed::All).share(same)
        );
    }
    assert_eq!(row.probability(1), 0.0);
    assert_eq!(row.part(Allowed::Words(&[0b00111])).share(0), 1.0);
    assert_eq!(
        row.top(2).into_iter().map(|(token, _)| token).collect::<Vec<_>>(),
        [3, 0]
    );
}
