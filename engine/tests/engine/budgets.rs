//! Answers that may not fit into their tokens: steered and marked, cut, or failed.

use crate::rig::{Heard, Redraw, engine, generate, global, grammar, letters, wordy_script};
use lexiform::Grammar;
use lexiform_engine::{
    Candidate, Engine, EngineError, Event, Finish, LogprobsOf, OnBudget, Refusal, Reporting, Request,
    Sampling, Speculation, Steered,
};
use std::collections::BTreeSet;

/// Guards against JSON that is cut by `max_tokens` and paid for again (C2).
const PATTERN: &str = "x(a|bcd|e{5}f)*(yy|z)";

fn request(pattern: &str, max_tokens: usize, on_budget: OnBudget, seed: u64) -> Request {
    Request::new(letters("go "), max_tokens)
        .grammar(Some(grammar(pattern)))
        .sampling(Sampling::seeded(seed))
        .on_budget(on_budget)
}

/// What the tokens left did to an answer, found the slow way: by asking about each token, and about going on
/// where the answer ended.
fn narrowed(grammar: &Grammar, heard: &Heard, max_tokens: usize) -> Option<Steered> {
    let mut state = grammar.start();
    let tokens = heard.tokens();
    let mut steered: Option<Steered> = None;
    for number in 0..=tokens.len() {
        // One more than the tokens left: the end takes none where nobody asks for it.
        let left = max_tokens + 1 - number;
        let allowed = grammar.mask(state);
        let fits = |token: &u32| match grammar.step(state, *token) {
            _ if grammar.vocabulary().is_eos(*token) => left >= 1,
            Some(next) => left >= 2 && grammar.completes_within(next, left - 1),
            None => false,
        };
        if !allowed.iter().all(|token| fits(&token)) {
            let steered = steered.get_or_insert(Steered {
                from: Some(number).filter(|&number| number < tokens.len()),
                max_tokens,
                is_diverted: false,
                is_ended: false,
                preamble: None,
            });
            let row = wordy_script(&[letters("go "), tokens[..number].to_vec()].concat());
            let likeliest = allowed
                .iter()
                .max_by(|&a, &b| row[a as usize].total_cmp(&row[b as usize]));
            steered.is_ended |= number == tokens.len();
            steered.is_diverted |= number < tokens.len() && !fits(&likeliest.unwrap());
        }
        if let Some(&token) = tokens.get(number) {
            state = grammar.step(state, token).unwrap();
        }
    }
    steered
}

#[test]
fn an_answer_says_from_where_its_tokens_steered_it() {
    let (engine, whole) = (engine(wordy_script), grammar(PATTERN));
    let mut seen = [0; 3];
    for max_tokens in 2..24 {
        for seed in 0..6 {
            let request =
                |speculation| request(PATTERN, max_tokens, OnBudget::Complete, seed).speculation(speculation);
            let heard = generate(&engine, request(Speculation::none()));
            let steered = heard.outcome().steered;
            let expected = narrowed(&whole, &heard, max_tokens);
            assert_eq!(steered, expected, "{:?}", heard.text());
            let drafted = generate(&engine, request(Speculation::all()));
            assert_eq!(drafted.outcome().steered, steered);
            let is_diverted = steered.map_or(0, |steered| 1 + usize::from(steered.is_diverted));
            seen[is_diverted] += 1;
        }
    }
    assert!(seen.iter().all(|&count| count > 5), "{seen:?}");
}

/// An answer that ends because no token is left for more, not because it could not go on, was steered too.
#[test]
fn an_end_that_only_the_tokens_left_force_is_steered() {
    let engine = engine(|_| {
        (0..crate::rig::WIDTH)
            .map(|token| if token == 0 { 9.0 } else { 0.0 })
            .collect()
    });
    let generate = |pattern, max_tokens| {
        let request = request(pattern, max_tokens, OnBudget::Complete, 0).sampling(Sampling::default());
        let heard = generate(&engine, request);
        assert_eq!(
            (heard.text().as_str(), heard.outcome().finish),
            ("aaa", Finish::Stop)
        );
        heard.outcome().steered
    };
    let ended = Steered {
        from: None,
        max_tokens: 3,
        is_diverted: false,
        is_ended: true,
        preamble: None,
    };
    assert_eq!(generate("a*", 3), Some(ended));
    assert_eq!(generate("a{3}", 3), None);
}

/// Nothing is steered: the answer begins as it does with many tokens, and `length` is said where it stops
/// short.
#[test]
fn a_cut_answer_is_the_beginning_of_the_whole_one() {
    let (engine, whole) = (engine(wordy_script), grammar(PATTERN));
    let mut cut = 0;
    for seed in 0..6 {
        let free = generate(&engine, request(PATTERN, 500, OnBudget::Complete, seed));
        assert_eq!(
            (free.outcome().steered, free.outcome().finish),
            (None, Finish::Stop)
        );
        for max_tokens in 1..12 {
            for speculation in [Speculation::none(), Speculation::all()] {
                let request = request(PATTERN, max_tokens, OnBudget::Cut, seed).speculation(speculation);
                let heard = generate(&engine, request);
                let fits = free.tokens().len() <= max_tokens;
                let length = max_tokens.min(free.tokens().len());
                assert_eq!(heard.tokens(), free.tokens()[..length]);
                let finish = if fits { Finish::Stop } else { Finish::Length };
                assert_eq!((heard.outcome().finish, heard.outcome().steered), (finish, None));
                assert!(whole.step_bytes(whole.start(), heard.text().as_bytes()).is_some());
                cut += usize::from(!fits);
            }
        }
    }
    assert!(cut > 10, "{cut}");
}

#[test]
fn an_answer_that_must_not_be_cut_fails_instead() {
    let engine = engine(wordy_script);
    let mut failed = 0;
    for seed in 0..6 {
        let free = generate(&engine, request(PATTERN, 500, OnBudget::Complete, seed));
        for max_tokens in 2..12 {
            let heard = generate(&engine, request(PATTERN, max_tokens, OnBudget::Fail, seed));
            if free.tokens().len() <= max_tokens {
                assert_eq!(heard.text(), free.text());
                assert_eq!(
                    (heard.outcome().finish, heard.outcome().steered),
                    (Finish::Stop, None)
                );
            } else {
                assert_eq!(heard.failure(), Some(&EngineError::OutOfTokens { max_tokens }));
                failed += 1;
            }
        }
    }
    assert!(failed > 10, "{failed}");
    let request = Request::new(letters("go "), 4).on_budget(OnBudget::Fail);
    assert_eq!(
        generate(&engine, request).failure(),
        Some(&EngineError::OutOfTokens { max_tokens: 4 })
    );
}

#[test]
fn what_cannot_be_kept_is_refused() {
    let engine = engine(wordy_script);
    let submit = |request| engine.submit(request, Box::new(|_| true)).err();
    assert_eq!(submit(request("a{9}", 5, OnBudget::Cut, 0)), None);
    for on_budget in [OnBudget::Complete, OnBudget::Fail] {
        let refusal = submit(request("a{9}", 5, on_budget, 0));
        let least = Some(9);
        assert_eq!(refusal, Some(Refusal::TooFew { max_tokens: 5, least }));
    }
    for on_budget in [OnBudget::Cut, OnBudget::Fail] {
        let global = request("a{9}", 20, on_budget, 0).law(global(9));
        let name = match submit(global) {
            Some(refusal) => refusal.field(),
            None => None,
        };
        assert_eq!(name, Some("on_budget"));
    }
}

/// What is told of the allowed tokens sums to one, and is the model's own where everything is allowed.
#[test]
fn log_probabilities_are_of_the_model_or_of_what_is_allowed() {
    let engine = engine(wordy_script);
    let events = |logprobs_of, temperature, pattern: &str| {
        let request = request(pattern, 60, OnBudget::Complete, 5)
            .sampling(Sampling {
                temperature,
                ..Sampling::seeded(5)
            })
            .speculation(Speculation::all())
            .reporting(Reporting {
                logprobs: Some(20),
                logprobs_of,
                ..Reporting::default()
            });
        generate(&engine, request).tokens_without_origin()
    };
    for temperature in [0.0, 0.7, 1.0] {
        let own = events(LogprobsOf::Model, temperature, "[a-e]{4}(ab|cd)*z");
        let allowed = events(LogprobsOf::Allowed, temperature, "[a-e]{4}(ab|cd)*z");
        assert_eq!(own.len(), allowed.len());
        for (own, allowed) in own.iter().zip(&allowed) {
            let (
                Event::Token {
                    logprob, top: all, ..
                },
                Event::Token {
                    token,
                    top,
                    log_share,
                    logprob: same,
                    ..
                },
            ) = (own, allowed)
            else {
                panic!("{own:?} {allowed:?}")
            };
            assert_eq!((logprob, all.len()), (same, 20));
            let sum: f32 = top.iter().map(|(_, logprob)| logprob.exp()).sum();
            assert!((sum - 1.0).abs() < 1e-4, "{sum}: {top:?}");
            let listed = top.iter().find(|(other, _)| other == token).unwrap();
            assert!((listed.1 - log_share).abs() < 1e-4, "{listed:?} {log_share}");
        }
    }
}

/// The tokens of an answer of the wordy model at this temperature within this many tokens, asked for in some
/// way.
fn told(engine: &Engine, (temperature, max_tokens): (f32, usize), asked: Request) -> Vec<Event> {
    let request = asked
        .grammar(Some(grammar("[a-e]{4}(ab|cd)*z")))
        .sampling(Sampling {
            temperature,
            ..Sampling::seeded(5)
        })
        .max_tokens(max_tokens);
    generate(engine, request).tokens_without_origin()
}

/// Guards against candidates that are said to be allowed and are not, or the other way round: where the
/// tokens left narrow what the grammar allows, too.
#[test]
fn candidates_tell_what_the_model_likes_and_what_the_mask_leaves() {
    let engine = engine(wordy_script);
    let plain = || Request::new(letters("go "), 1);
    let mut steered = 0;
    for settings in [(0.0, 60), (0.7, 60), (0.0, 5), (0.7, 5), (1.0, 5)] {
        let tops = |logprobs, logprobs_of| {
            let asked = plain().reporting(Reporting {
                logprobs: Some(logprobs),
                logprobs_of,
                ..Reporting::default()
            });
            told(&engine, settings, asked)
                .into_iter()
                .map(|event| match event {
                    Event::Token { top, .. } => top,
                    other => panic!("{other:?}"),
                })
        };
        let asked = plain().reporting(Reporting {
            candidates: Some(4),
            ..Reporting::default()
        });
        let events = told(&engine, settings, asked);
        let tops = tops(4, LogprobsOf::Model).zip(tops(255, LogprobsOf::Allowed));
        assert!(events.len() > 1);
        for (event, (own, allowed)) in events.iter().zip(tops) {
            let Event::Token {
                candidates: Some(candidates),
                ..
            } = event
            else {
                panic!("{event:?}")
            };
            steered += usize::from(candidates.is_steered);
            assert_eq!(candidates.allowed, allowed.len());
            hold(&candidates.likely, &own, &allowed);
        }
    }
    assert!(steered > 0);
}

/// Holds candidates against the model's likeliest tokens and all that may be drawn.
fn hold(likely: &[Candidate], own: &[(u32, f32)], allowed: &[(u32, f32)]) {
    let expected = own.iter().chain(allowed.iter().take(4)).map(|one| one.0);
    let told: BTreeSet<u32> = likely.iter().map(|one| one.token).collect();
    assert_eq!(told, expected.collect());
    assert!(likely.is_sorted_by(|one, other| one.logprob >= other.logprob));
    for one in likely {
        let share = allowed.iter().find(|(token, _)| *token == one.token);
        assert_eq!(one.is_allowed, share.is_some(), "{one:?}");
        let share = share.map_or(f32::NEG_INFINITY, |(_, share)| *share);
        assert!(
            one.log_share == share || (one.log_share - share).abs() < 1e-4,
            "{one:?} {share}"
        );
    }
}
