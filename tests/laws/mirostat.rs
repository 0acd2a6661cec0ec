//! Mirostat along a text: its bound is a function of the drawn tokens, with and without drafts.

use std::f64::consts::LN_2;

use lexiform_law::{
    Allowed, Fallback, History, Law as Choice, LawError, Mirostat, MirostatVersion, Part, Row, Sampler,
    Seeded, Step, Table, Walk, Warper, Warping, Weight, law_of,
};

use crate::cuts::Slow;
use crate::model::{END, Law, Task, Word};
use crate::number::Exact;
use crate::speculation::{DRAFTERS, speculate};

const VERSIONS: [MirostatVersion; 2] = [MirostatVersion::One, MirostatVersion::Two];

/// Numbers that no sum of logarithms of small ratios meets.
fn steered(version: MirostatVersion) -> Mirostat {
    Mirostat {
        version,
        tau: 0.437,
        eta: 0.911,
    }
}

fn warper(mirostat: Mirostat) -> Warper {
    let warping = Warping {
        mirostat: Some(mirostat),
        ..Warping::default()
    };
    Warper::new(warping, Choice::Local).expect("the parameters are in range")
}

fn walk<W: Weight>(version: MirostatVersion) -> Walk<W> {
    Walk::local(&warper(steered(version)), true, &[END])
}

/// The law by its definition: below every prefix the tokens that its bound admits.
fn definition(task: &Task, version: MirostatVersion, is_fed_back: bool) -> Law {
    let mirostat = steered(version);
    let mut law = Law::new();
    let mut open = vec![(Word::new(), Exact::one(), 2.0 * f64::from(mirostat.tau))];
    while let Some((word, probability, bits)) = open.pop() {
        let mask = task.mask(&word);
        let row = task.row(&word).0;
        let logits: Vec<f32> = row.iter().map(|p| p.ln() as f32).collect();
        let allowed = Allowed::Words(&mask);
        let mut slow = Slow::new(&logits, allowed, 1.0);
        let masked: Vec<u32> = slow.tokens.iter().map(|token| token.id).collect();
        match version {
            MirostatVersion::One => slow.mirostat_1(bits),
            MirostatVersion::Two => slow.mirostat_2(bits),
        }
        let total = |tokens: &[u32]| {
            let weights = tokens.iter().map(|&token| row[token as usize].clone());
            weights.fold(Exact::zero(), |sum, weight| sum + weight)
        };
        let kept: Vec<u32> = slow.tokens.iter().map(|token| token.id).collect();
        for &token in &kept {
            let own = row[token as usize].clone();
            let of = match version {
                MirostatVersion::One => total(&masked),
                MirostatVersion::Two => total(&kept),
            };
            let surprise = (of.ln() - own.ln()) / LN_2;
            let error = f64::from(mirostat.eta) * (surprise - f64::from(mirostat.tau));
            let is_counted = is_fed_back && masked.len() > 1;
            let next = [&word[..], &[token]].concat();
            let probability = probability.clone() * own / total(&kept);
            match token {
                END => drop(law.insert(next, probability)),
                _ => open.push((next, probability, if is_counted { bits - error } else { bits })),
            }
        }
    }
    law
}

/// Drafts of all kinds, right and wrong ones, leave the law of the whole text as its definition has it.
#[test]
fn drafts_meet_the_bound_that_undrafted_decoding_meets() {
    for version in VERSIONS {
        for seed in 0..12 {
            let task = Task::random(seed, 3);
            let wanted = definition(&task, version, true);
            for drafts in DRAFTERS {
                let law: Law = law_of(|chooser| {
                    speculate(&task, |number| number, &drafts, &mut walk(version), chooser)
                        .expect("never stuck")
                });
                assert_eq!(law, wanted, "{version:?}, task {seed}");
            }
        }
    }
}

/// A bound that is not fed back, as of a draft whose rows were all cut by the bound at its beginning.
#[test]
fn a_bound_that_stands_still_has_another_law() {
    for version in VERSIONS {
        let differs = |seed: &u64| {
            let task = Task::random(*seed, 3);
            definition(&task, version, true) != definition(&task, version, false)
        };
        let failures = (0..40).filter(differs).count();
        assert!(
            failures > 6,
            "{version:?}: the mutant fails only {failures} times"
        );
    }
}

#[test]
fn with_a_seed_drafts_leave_every_token_and_the_weight_alone() {
    for version in VERSIONS {
        for seed in 0..200 {
            let task = Task::random(seed % 10, 3);
            let texts = DRAFTERS.map(|drafts| {
                let (mut walk, mut chooser) = (walk(version), Seeded::new(seed, 0));
                let text = speculate(&task, |number| number.to_f64(), &drafts, &mut walk, &mut chooser);
                let bits = walk.ceiling_at(walk.position()).map(|ceiling| ceiling.bits());
                (text, bits, walk.log_weight())
            });
            assert!(texts.iter().all(|text| *text == texts[0] && text.0.is_ok()));
        }
    }
}

/// A long text of a wide vocabulary, beside the algorithm as the paper has it.
fn follow(version: MirostatVersion, mask: &dyn Fn(u32) -> Vec<u32>) -> f64 {
    let mirostat = Mirostat {
        version,
        tau: 3.0,
        eta: 0.2,
    };
    let warper = warper(mirostat);
    let mut walk: Walk = Walk::local(&warper, true, &[]);
    let (mut bits, mut surprises) = (2.0 * f64::from(mirostat.tau), Vec::new());
    for position in 0..600u32 {
        let logit = |token: u32| {
            let noise = token.wrapping_mul(2_654_435_761).wrapping_add(position * 40_503);
            let noise = (noise >> 16) & 0xFF;
            -((f64::from(token % 400) + 1.0).ln() * 1.3) as f32 + noise as f32 / 512.0
        };
        let logits: Vec<f32> = (0..400).map(logit).collect();
        let words = mask(position);
        let allowed = Allowed::Words(&words);
        let mut slow = Slow::new(&logits, allowed, 1.0);
        let masked = slow.shares(logits.len());
        match version {
            MirostatVersion::One => slow.mirostat_1(bits),
            MirostatVersion::Two => slow.mirostat_2(bits),
        }
        let ceiling = walk.ceiling_at(position).expect("there is a bound");
        assert!((ceiling.bits() - bits).abs() < 1e-7, "at {position}");
        let row = warper.row(&logits, History::default()).expect("finite");
        if slow.edge > 1e-6 {
            let part = row.part_under(allowed, Some(ceiling));
            let is_kept = |&token: &u32| part.share(token) > 0.0;
            assert!((0..400).filter(is_kept).eq(slow.ids()), "at {position}");
        }
        let Step::Token(drawn) = walk.next(&row, allowed, &mut Seeded::new(5, 0)) else {
            panic!("a token is allowed");
        };
        let is_forced = words.iter().map(|word| word.count_ones()).sum::<u32>() == 1;
        if !is_forced {
            let share = match version {
                MirostatVersion::One => masked[drawn.token as usize],
                MirostatVersion::Two => (drawn.log_probability - drawn.log_kept).exp(),
            };
            surprises.push(-share.log2());
            bits -= f64::from(mirostat.eta) * (-share.log2() - f64::from(mirostat.tau));
        }
    }
    surprises.iter().sum::<f64>() / surprises.len() as f64
}

#[test]
fn a_long_text_has_the_surprise_that_is_asked_for() {
    for version in VERSIONS {
        let free = follow(version, &|_| vec![u32::MAX; 13]);
        assert!((free - 3.0).abs() < 0.2, "{version:?}: {free} bits");
        // Nine of ten tokens are forced: they neither count nor wind the bound up.
        let forced = |position: u32| match position % 10 {
            0 => vec![u32::MAX; 13],
            _ => vec![1 << (position % 32)],
        };
        let between = follow(version, &forced);
        assert!((between - 3.0).abs() < 0.8, "{version:?}: {between} bits");
    }
}

#[test]
fn forks_and_rewinds_have_the_bound_of_their_place() {
    let row = Table(vec![0.5, 0.25, 0.125, 0.125]);
    for version in VERSIONS {
        let mut walk: Walk = Walk::local(&warper(steered(version)), true, &[]);
        let mut chooser = Seeded::new(3, 0);
        let mut bounds = vec![walk.ceiling_at(0)];
        for _ in 0..20 {
            walk.next(&row, Allowed::All, &mut chooser);
            bounds.push(walk.ceiling_at(walk.position()));
        }
        let mut fork = walk.fork();
        assert_eq!(fork.ceiling_at(20), bounds[20]);
        assert!(walk.rewind(7));
        assert_eq!((walk.position(), walk.ceiling_at(7)), (7, bounds[7]));
        // The next draw is under the bound of the place: the token has no more surprise than it admits.
        for walk in [&mut walk, &mut fork] {
            let position = walk.position();
            let ceiling = walk.ceiling_at(position);
            let Step::Token(drawn) = walk.next(&row, Allowed::All, &mut chooser) else {
                panic!("a token is allowed");
            };
            assert!(row.part_under(Allowed::All, ceiling).share(drawn.token) > 0.0);
            assert_eq!(drawn.log_kept, row.part_under(Allowed::All, ceiling).log_kept());
        }
    }
}

#[test]
fn the_global_law_has_no_bound_and_a_greedy_text_none_either() {
    let warping = |temperature| Warping {
        temperature,
        mirostat: Some(steered(MirostatVersion::Two)),
        ..Warping::default()
    };
    let global = Choice::Global {
        share_attempts: false,
        max_attempts: 5,
        fallback: Fallback::Weighted,
    };
    assert_eq!(
        Warper::new(warping(1.0), global).err(),
        Some(LawError::MirostatGlobal)
    );
    let greedy = Warper::new(warping(0.0), Choice::Local).expect("in range");
    assert_eq!(Walk::<f64>::local(&greedy, true, &[]).ceiling_at(0), None);
}
