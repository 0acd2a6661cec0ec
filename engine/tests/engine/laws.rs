//! The laws that answers are drawn from, measured on a model small enough to know them exactly.
//!
//! The model writes three digits and ends. Its texts and their probabilities are counted out by hand, so the
//! law under a grammar is known; thousands of answers with different seeds are compared with it. Seeds are
//! fixed: these tests cannot fail by chance.

use crate::rig::{Heard, Redraw, drafting, generate, global, grammar_over, listen};
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform_engine::{
    Diagnostics, Engine, EngineConfig, EngineError, Fallback, Law, LawTag, MaskHook, Refusal, Reporting,
    Request, Sampling, ScriptedModel, Speculation, Verification,
};
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

pub(crate) const END: u32 = 2;

pub(crate) fn vocabulary() -> Arc<Vocabulary> {
    static VOCABULARY: LazyLock<Arc<Vocabulary>> = LazyLock::new(|| {
        let tokens = [
            (TokenKind::Text, "0"),
            (TokenKind::Text, "1"),
            (TokenKind::Special, "$"),
        ];
        Arc::new(Vocabulary::new(&tokens, &[END]).unwrap())
    });
    VOCABULARY.clone()
}

/// Fixture F1: three digits; a leading 0 makes another 0 unlikely (1/10), a leading 1 leaves both equal.
pub(crate) fn script(prefix: &[u32]) -> Vec<f32> {
    let answer = &prefix[1..];
    let probabilities: [f32; 3] = match answer {
        [_, _, _] => [0.0, 0.0, 1.0],
        [0, ..] => [0.1, 0.9, 0.0],
        _ => [0.5, 0.5, 0.0],
    };
    probabilities.map(f32::ln).to_vec()
}

pub(crate) fn engine(config: EngineConfig) -> Engine {
    let model = ScriptedModel::new(3, 100, script);
    Engine::start(Box::new(model), None, vocabulary(), config).unwrap()
}

/// The same, with masks that are found after the hook.
pub(crate) fn hooked(config: EngineConfig, hook: MaskHook) -> Engine {
    let model = ScriptedModel::new(3, 100, script);
    Engine::start_with_hook(Box::new(model), vocabulary(), config, hook).unwrap()
}

/// Only 000, or anything that begins with 1.
const PATTERN: &str = "000|1[01][01]";

pub(crate) fn request(law: Law, seed: u64) -> Request {
    // However busy the machine is.
    Request::new(vec![0], 10)
        .task(law)
        .grammar(Some(grammar_over(&vocabulary(), PATTERN)))
        .sampling(Sampling::seeded(seed))
        .monitor_time(Duration::from_secs(60))
}

pub(crate) fn text(heard: &Heard) -> String {
    heard.tokens().iter().map(|token| token.to_string()).collect()
}

/// The share of each text in `count` answers.
pub(crate) fn shares(engine: &Engine, request: impl Fn(u64) -> Request, count: u64) -> BTreeMap<String, f64> {
    let mut shares = BTreeMap::new();
    for seed in 0..count {
        *shares
            .entry(text(&generate(engine, request(seed))))
            .or_insert(0.0) += 1.0 / count as f64;
    }
    shares
}

/// No share is further from the law than five standard deviations of a normal law would be: by the bound of
/// Chernoff, a share at least so far away has a probability of at most `exp(−count · KL)`, whatever is
/// expected, where `KL` is the divergence of a coin with the share from one with the law. Deviations
/// themselves say nothing about rare texts: where a fifth of one is expected, two are five away.
pub(crate) fn agrees(shares: &BTreeMap<String, f64>, law: &[(&str, f64)], count: u64) {
    assert!(
        shares
            .keys()
            .all(|text| law.iter().any(|(known, _)| known == text)),
        "{shares:?}"
    );
    for &(text, expected) in law {
        let found = shares.get(text).copied().unwrap_or(0.0).min(1.0);
        assert!(
            count as f64 * divergence(found, expected) < 5.0 * 5.0 / 2.0,
            "{text}: {found}, expected {expected}"
        );
    }
}

/// The divergence of a coin that falls on one side by `found` from one that does by `expected`.
fn divergence(found: f64, expected: f64) -> f64 {
    let part = |found: f64, expected: f64| match found > 0.0 {
        true => found * (found / expected).ln(),
        false => 0.0,
    };
    part(found, expected) + part(1.0 - found, 1.0 - expected)
}

const LOCAL: [(&str, f64); 5] = [
    ("000", 0.5),
    ("100", 0.125),
    ("101", 0.125),
    ("110", 0.125),
    ("111", 0.125),
];
pub(crate) const GLOBAL: [(&str, f64); 5] = [
    ("000", 1.0 / 101.0),
    ("100", 25.0 / 101.0),
    ("101", 25.0 / 101.0),
    ("110", 25.0 / 101.0),
    ("111", 25.0 / 101.0),
];
const ATTEMPTS: Law = global(1000);

#[test]
fn the_local_law_is_that_of_the_masked_rows() {
    let count = 2000;
    agrees(
        &shares(
            &engine(EngineConfig::default()),
            |seed| request(Law::Local, seed),
            count,
        ),
        &LOCAL,
        count,
    );
}

#[test]
fn local_weights_lead_to_the_global_law() {
    let engine = engine(EngineConfig::default());
    let (mut all, mut zeros) = (0.0, 0.0);
    for seed in 0..1000 {
        let request = request(Law::Local, seed).reporting(Reporting {
            weigh_end: true,
            ..Reporting::default()
        });
        let heard = generate(&engine, request);
        let weight = heard.outcome().log_weight.unwrap().exp();
        let expected = if text(&heard) == "000" { 0.01 } else { 1.0 };
        assert!((weight / expected - 1.0).abs() < 1e-5, "{heard:?}");
        all += weight;
        zeros += if text(&heard) == "000" { weight } else { 0.0 };
    }
    assert!((zeros / all - 1.0 / 101.0).abs() < 2e-3, "{}", zeros / all);
}

#[test]
fn the_global_law_is_the_model_conditioned_on_the_grammar() {
    let count = 2000;
    agrees(
        &shares(
            &engine(EngineConfig::default()),
            |seed| request(ATTEMPTS, seed),
            count,
        ),
        &GLOBAL,
        count,
    );
}

#[test]
fn sharing_attempts_keeps_the_law_and_saves_attempts() {
    let (count, mut attempts) = (2000, [0, 0]);
    for share_attempts in [false, true] {
        let engine = engine(EngineConfig::default());
        let grammar = grammar_over(&vocabulary(), PATTERN);
        let request = |seed| {
            request(ATTEMPTS, seed)
                .share_attempts(share_attempts)
                .grammar(Some(grammar.clone()))
        };
        let heard: Vec<Heard> = (0..count).map(|seed| generate(&engine, request(seed))).collect();
        attempts[usize::from(share_attempts)] = heard.iter().map(|heard| heard.outcome().attempts).sum();
        let mut shares = BTreeMap::new();
        for heard in &heard {
            *shares.entry(text(heard)).or_insert(0.0) += 1.0 / count as f64;
        }
        agrees(&shares, &GLOBAL, count);
    }
    // 1.53182 attempts a sample from an empty trie; from one that knows all there is to know, one.
    let mean = attempts[0] as f64 / count as f64;
    assert!((mean - 1.53182).abs() < 0.1, "{mean}");
    assert!(attempts[1] < count as usize + 50, "{attempts:?}");
}

/// After a leading 0 all that may follow is drafted. Its rows teach at once what an attempt would find out at
/// two places, so the first attempt succeeds with probability ½ + ½ · 0.01, and the second always: 1.495
/// attempts, where it is 1.53182 without.
#[test]
fn drafts_teach_attempts_and_leave_their_law() {
    let count = 4000;
    let engine = engine(drafting());
    let (mut attempts, mut shares) = (0, BTreeMap::new());
    for seed in 0..count {
        let request = request(ATTEMPTS, seed).speculation(Speculation {
            learned: false,
            ..Speculation::all()
        });
        let heard = generate(&engine, request);
        attempts += heard.outcome().attempts;
        *shares.entry(text(&heard)).or_insert(0.0) += 1.0 / count as f64;
    }
    agrees(&shares, &GLOBAL, count);
    let mean = attempts as f64 / count as f64;
    assert!((mean - 1.495).abs() < 0.025, "{mean}");
}

/// What earlier answers taught is drafted at places that nothing else drafts, and teaches the trie there.
#[test]
fn drafts_of_what_was_learned_teach_more_and_leave_the_law() {
    let count = 4000;
    let engine = engine(drafting());
    let (mut attempts, mut shares) = (0, BTreeMap::new());
    for seed in 0..count {
        let request = request(ATTEMPTS, seed).speculation(Speculation::all());
        let heard = generate(&engine, request);
        attempts += heard.outcome().attempts;
        *shares.entry(text(&heard)).or_insert(0.0) += 1.0 / count as f64;
    }
    agrees(&shares, &GLOBAL, count);
    let mean = attempts as f64 / count as f64;
    assert!(mean < 1.45, "{mean}");
}

/// One attempt, and then a chain of as many steps as make its law the global one to within what can be
/// measured.
#[test]
fn a_chain_in_place_of_attempts_nears_the_global_law() {
    let engine = engine(EngineConfig::default());
    let (mut shares, mut count) = (BTreeMap::new(), 0);
    for seed in 0..2000 {
        let law = Law::Global {
            share_attempts: false,
            max_attempts: 1,
            fallback: Fallback::Chain { steps: 20 },
        };
        let heard = generate(&engine, request(law, seed));
        let outcome = heard.outcome();
        if outcome.law == LawTag::GlobalExact {
            assert_eq!((outcome.attempts, outcome.diagnostics), (1, None));
            continue;
        }
        assert_eq!(
            (outcome.law, outcome.log_weight, outcome.attempts),
            (LawTag::Mcmc, None, 2)
        );
        let Some(Diagnostics::Chain { steps: 20, moves }) = outcome.diagnostics else {
            panic!("{outcome:?}");
        };
        assert!(moves <= 20);
        count += 1;
        *shares.entry(text(&heard)).or_insert(0.0) += 1.0;
    }
    shares.values_mut().for_each(|share| *share /= count as f64);
    agrees(&shares, &GLOBAL, count);
}

/// Pearson's sum over the texts of a law; large where they are not of it.
fn chi_square(shares: &BTreeMap<String, f64>, law: &[(&str, f64)], count: f64) -> f64 {
    let cell = |&(text, expected): &(&str, f64)| {
        let found = shares.get(text).copied().unwrap_or(0.0);
        count * (found - expected).powi(2) / expected
    };
    law.iter().map(cell).sum()
}

/// Guards against draws of a request that are those which taught the trie: with equal seeds the law was
/// another.
#[test]
fn equal_seeds_over_a_shared_trie_keep_the_law() {
    const COUNT: u32 = 4000;
    let skewed = |prefix: &[u32]| {
        let probabilities: [f32; 3] = match &prefix[1..] {
            [] => [0.5, 0.5, 0.0],
            [0] => [0.1, 0.9, 0.0],
            [1] => [0.5, 0.5, 0.0],
            _ => [0.0, 0.0, 1.0],
        };
        probabilities.map(f32::ln).to_vec()
    };
    let law = [("00", 1.0 / 11.0), ("10", 5.0 / 11.0), ("11", 5.0 / 11.0)];
    for seed in [0, 7, 1 << 40] {
        let engine = Engine::start(
            Box::new(ScriptedModel::new(3, 100, skewed)),
            None,
            vocabulary(),
            EngineConfig::default(),
        );
        let (engine, grammar) = (engine.unwrap(), grammar_over(&vocabulary(), "00|1[01]"));
        let mut shares = BTreeMap::new();
        for _ in 0..COUNT {
            let request = request(ATTEMPTS, seed)
                .share_attempts(true)
                .grammar(Some(grammar.clone()));
            *shares.entry(text(&generate(&engine, request))).or_insert(0.0) += 1.0 / f64::from(COUNT);
        }
        // With two degrees of freedom one in 30,000 fair samples is beyond.
        let distance = chi_square(&shares, &law, f64::from(COUNT));
        assert!(distance < 20.6, "seed {seed}: {distance}, {shares:?}");
    }
}

/// One that does not ask for it learns from nobody, whoever has learned: its seed gives the text that it has
/// alone.
#[test]
fn attempts_are_shared_among_those_who_ask_for_it() {
    let (alone, shared) = (engine(EngineConfig::default()), engine(EngineConfig::default()));
    let grammar = grammar_over(&vocabulary(), PATTERN);
    for seed in 0..50 {
        let request = |share_attempts| {
            request(ATTEMPTS, seed)
                .share_attempts(share_attempts)
                .grammar(Some(grammar.clone()))
        };
        let expected = generate(&alone, request(false));
        generate(&shared, request(true));
        let found = generate(&shared, request(false));
        assert_eq!(text(&expected), text(&found), "seed {seed}");
        assert_eq!(expected.outcome().attempts, found.outcome().attempts);
    }
}

/// One attempt, and then an answer drawn with what it has learned, with its weight.
fn weighted(seed: u64) -> Request {
    let law = Law::Global {
        share_attempts: false,
        max_attempts: 1,
        fallback: Fallback::Weighted,
    };
    request(law, seed)
}

#[test]
fn answers_in_place_of_global_ones_have_weights_that_lead_to_the_global_law() {
    let engine = engine(EngineConfig::default());
    let (mut exact, mut others) = (BTreeMap::new(), BTreeMap::new());
    let (mut counts, mut sums) = ([0_u64; 2], [0.0; 2]);
    for seed in 0..4000 {
        let heard = generate(&engine, weighted(seed));
        let (outcome, text) = (heard.outcome(), text(&heard));
        let weight = outcome.log_weight.expect("the end is weighed").exp();
        match outcome.law {
            LawTag::GlobalExact => {
                assert_eq!((outcome.attempts, weight), (1, 1.0));
                *exact.entry(text).or_insert(0.0) += 1.0;
                counts[0] += 1;
            }
            LawTag::GlobalWeighted => {
                let possible = [0.55, 0.055, 0.505];
                let is_one = |expected: &f64| (weight / expected - 1.0).abs() < 1e-5;
                assert!(possible.iter().any(is_one), "{seed} {weight} {heard:?}");
                assert_eq!((outcome.attempts, heard.tokens().len()), (2, 3));
                sums[0] += weight;
                sums[1] += if text == "000" { weight } else { 0.0 };
                *others.entry(text).or_insert(0.0) += 1.0;
                counts[1] += 1;
            }
            law => panic!("{law}"),
        }
    }
    assert!(counts[0] > 1000 && counts[1] > 1000, "{counts:?}");
    // Ten of eleven failures are after the first 0, whose bound is then 1/10, and the others after the
    // second, which leave 1/100.
    let zeros = 10.0 / 11.0 / 11.0 + 1.0 / 11.0 / 101.0;
    let mut learned = LOCAL.map(|(text, _)| (text, (1.0 - zeros) / 4.0));
    learned[0].1 = zeros;
    for (shares, law, count) in [
        (&mut exact, &GLOBAL, counts[0]),
        (&mut others, &learned, counts[1]),
    ] {
        shares.values_mut().for_each(|share| *share /= count as f64);
        agrees(shares, law, count);
    }
    assert!((sums[0] / counts[1] as f64 - 0.505).abs() < 1e-2, "{sums:?}");
    assert!((sums[1] / sums[0] - 1.0 / 101.0).abs() < 2e-3, "{sums:?}");
}

#[test]
fn answers_in_place_of_global_ones_are_the_same_with_drafts() {
    let (plain, drafting) = (engine(EngineConfig::default()), engine(EngineConfig::default()));
    for seed in 0..60 {
        let drafted = weighted(seed).speculation(Speculation {
            verification: Verification::DrawOnce,
            ..Speculation::all()
        });
        let (expected, found) = (generate(&plain, weighted(seed)), generate(&drafting, drafted));
        assert_eq!(text(&expected), text(&found), "seed {seed}");
        let (expected, found) = (expected.outcome(), found.outcome());
        assert_eq!((expected.law, expected.log_weight), (found.law, found.log_weight));
    }
}

#[test]
fn a_law_without_attempts_is_refused() {
    let engine = engine(EngineConfig::default());
    let none = weighted(0).task(global(0));
    let refusal = engine.submit(none, Box::new(|_| true)).err();
    assert!(
        matches!(
            refusal,
            Some(Refusal::Invalid {
                name: "max_attempts",
                ..
            })
        ),
        "{refusal:?}"
    );
}

#[test]
fn global_answers_in_company_with_drafts_are_those_alone() {
    let alone = engine(EngineConfig::default());
    let crowd = engine(EngineConfig {
        max_running: 7,
        blocks: 12,
        block_size: 2,
        ..EngineConfig::default()
    });
    let drafted = |seed| {
        request(ATTEMPTS, seed).speculation(Speculation {
            verification: Verification::DrawOnce,
            ..Speculation::all()
        })
    };
    let listeners: Vec<_> = (0..60).map(|seed| listen(&crowd, drafted(seed))).collect();
    for (seed, listener) in (0..).zip(listeners) {
        let (expected, found) = (generate(&alone, request(ATTEMPTS, seed)), listener.wait());
        assert_eq!(text(&expected), text(&found), "seed {seed}");
        assert_eq!(
            expected.outcome().attempts,
            found.outcome().attempts,
            "seed {seed}"
        );
        assert_eq!(
            expected.outcome().log_probability,
            found.outcome().log_probability,
            "seed {seed}"
        );
    }
}

#[test]
fn a_global_answer_says_so_and_weighs_one() {
    let heard = generate(&engine(EngineConfig::default()), request(ATTEMPTS, 7));
    let outcome = heard.outcome();
    assert_eq!(
        (outcome.law, outcome.log_weight, outcome.completion_tokens),
        (LawTag::GlobalExact, Some(0.0), 4)
    );
    assert_eq!(
        heard.tokens().len(),
        3,
        "tokens of failed attempts are not reported"
    );
}

#[test]
fn attempts_are_bounded() {
    let engine = engine(EngineConfig::default());
    let rare = request(global(2), 0).grammar(Some(grammar_over(&vocabulary(), "000")));
    let failures: Vec<_> = (0..20)
        .map(|seed| generate(&engine, rare.clone().sampling(Sampling::seeded(seed))))
        .collect();
    let failed = failures.iter().filter_map(Heard::failure).collect::<Vec<_>>();
    assert!(!failed.is_empty());
    for failure in failed {
        let EngineError::AttemptsExhausted { attempts: 2, bound } = failure else {
            panic!("{failure:?}")
        };
        assert!((0.0049..=0.5).contains(bound), "{bound}");
    }
}

#[test]
fn the_global_law_is_about_texts_that_fit() {
    // Three digits and the end are four tokens; with three there is no such text.
    let short = request(ATTEMPTS, 0).max_tokens(3);
    let refusal = engine(EngineConfig::default())
        .submit(short, Box::new(|_| true))
        .err();
    let (max_tokens, least) = (3, Some(4));
    assert_eq!(refusal, Some(Refusal::TooFew { max_tokens, least }));
}

#[test]
fn the_global_law_has_no_temperature_zero() {
    let greedy = request(ATTEMPTS, 0).sampling(Sampling::default());
    let refusal = engine(EngineConfig::default())
        .submit(greedy, Box::new(|_| true))
        .err();
    assert!(
        matches!(
            refusal,
            Some(Refusal::Invalid {
                name: "temperature",
                ..
            })
        ),
        "{refusal:?}"
    );
}

#[test]
fn without_a_grammar_the_law_is_the_models_own() {
    let engine = engine(EngineConfig::default());
    let raw = |seed| request(ATTEMPTS, seed).grammar(None);
    assert_eq!(generate(&engine, raw(1)).outcome().law, LawTag::Raw);
    let count = 2000;
    let zeros = shares(&engine, raw, count).get("000").copied().unwrap_or(0.0);
    assert!((zeros - 0.005).abs() < 0.008, "{zeros}");
}
