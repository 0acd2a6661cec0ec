//! Answers stay inside their grammar, whatever the model would rather write.

use crate::rig::{
    EOS, WIDTH, cycle_script, engine, generate, grammar, grammar_over, grammar_within, letters,
    phrase_script, start, text_of, vocabulary, wait_until, wordy_script,
};
use lexiform::vocab::Vocabulary;
use lexiform_engine::{
    EngineConfig, EngineError, Event, Finish, LawTag, Refusal, Reporting, Request, Sampling, Speculation,
};
use std::sync::Arc;

fn constrained(pattern: &str, seed: u64) -> Request {
    Request::new(letters("go "), 60)
        .grammar(Some(grammar(pattern)))
        .sampling(Sampling::seeded(seed))
}

/// Guards against servers that get less done under a constraint: without drafts a token is a pass, with one
/// or without, and a grammar asks for none of its own (B3).
#[test]
fn a_constraint_takes_no_passes_of_its_own() {
    let passes = |grammar| {
        let engine = engine(cycle_script);
        let request = Request::new(letters("go "), 20)
            .grammar(grammar)
            .sampling(Sampling::seeded(3))
            .speculation(Speculation::none());
        let heard = generate(&engine, request);
        let stats = wait_until(&engine, |stats| stats.running == 0);
        (heard.outcome().completion_tokens as u64, stats.steps)
    };
    let (free_tokens, free) = passes(None);
    let (tokens, constrained) = passes(Some(grammar("[a-z0-9 ]{12}[a-m]*")));
    assert!(free_tokens > 5 && tokens > 5, "{free_tokens} {tokens}");
    assert_eq!(free - free_tokens, constrained - tokens, "{free} {constrained}");
}

/// Long answers outgrow the memory of their grammar, and go on in one that takes its place.
#[test]
fn answers_outlive_their_grammars() {
    let pattern = "((ab|cd){1,500} ){40}";
    let engine = engine(wordy_script);
    let answer = |bytes: usize, seed: u64| {
        let grammar = grammar_within(bytes, pattern);
        let request = constrained(pattern, seed).grammar(Some(grammar.clone()));
        let heard = generate(&engine, request.max_tokens(400));
        (heard.text(), grammar)
    };
    for seed in 0..4 {
        let ((expected, whole), (text, left)) = (answer(64 << 20, seed), answer(1 << 16, seed));
        assert!(expected.len() > 100, "{expected}");
        assert_eq!(text, expected);
        assert!(
            whole.compacted().is_none() && left.compacted().is_some(),
            "{} and {} bytes",
            whole.memory_usage(),
            left.memory_usage()
        );
        assert!(
            left.memory_usage() < whole.memory_usage() / 2,
            "{} bytes were found where the answer began, {} in all",
            left.memory_usage(),
            whole.memory_usage()
        );
    }
}

#[test]
fn every_answer_matches() {
    let engine = engine(wordy_script);
    for seed in 0..20 {
        let heard = generate(&engine, constrained("(ab|cd){2,4} [0-9]{3}", seed));
        let text = heard.text();
        let (words, number) = text.split_once(' ').expect(&text);
        assert!(
            (4..=8).contains(&words.len()) && words.len().is_multiple_of(2),
            "{text}"
        );
        assert!(
            words
                .as_bytes()
                .chunks(2)
                .all(|pair| pair == b"ab" || pair == b"cd"),
            "{text}"
        );
        assert!(
            number.len() == 3 && number.bytes().all(|digit| digit.is_ascii_digit()),
            "{text}"
        );
        assert_eq!(
            (heard.outcome().finish, heard.outcome().law),
            (Finish::Stop, LawTag::Local)
        );
    }
}

#[test]
fn mask_threads_do_not_change_the_text() {
    let texts = |mask_threads| {
        let engine = start(
            wordy_script,
            EngineConfig {
                mask_threads,
                ..EngineConfig::default()
            },
        );
        (0..6)
            .map(|seed| generate(&engine, constrained("([a-f]|[0-9]{2})*z", seed)).text())
            .collect::<Vec<_>>()
    };
    let expected = texts(0);
    assert_eq!(texts(1), expected);
    assert_eq!(texts(3), expected);
}

#[test]
fn a_text_that_can_only_end_ends_without_asking_the_model() {
    let engine = engine(phrase_script);
    let request = Request::new(letters("a"), 10).grammar(Some(grammar("dog")));
    let heard = generate(&engine, request.clone());
    assert_eq!(
        (heard.text().as_str(), heard.outcome().completion_tokens),
        ("dog", 3)
    );
    assert_eq!(
        wait_until(&engine, |stats| stats.requests == 1 && stats.running == 0).steps,
        3
    );
    let weighed = generate(
        &engine,
        request.reporting(Reporting {
            weigh_end: true,
            ..Reporting::default()
        }),
    );
    assert_eq!(
        (weighed.text().as_str(), weighed.outcome().completion_tokens),
        ("dog", 4)
    );
    assert!(weighed.outcome().log_probability < heard.outcome().log_probability);
}

#[test]
fn weights_are_the_mass_of_the_mask() {
    // Six tokens are tokens of this vocabulary of which the pattern allows some; all are equally likely.
    let tokens = (EOS + 1) as f64;
    let engine = engine(|_| vec![0.0; WIDTH]);
    let request = constrained("[a-e]7", 3).reporting(Reporting {
        logprobs: Some(0),
        weigh_end: true,
        ..Reporting::default()
    });
    let heard = generate(&engine, request);
    let expected = (5.0 / tokens).ln() + 2.0 * (1.0 / tokens).ln();
    assert!((heard.outcome().log_weight.unwrap() - expected).abs() < 1e-9);
    assert!((heard.outcome().log_probability - 3.0 * (1.0 / tokens).ln()).abs() < 1e-9);
    let Event::Token {
        log_mass, logprob, ..
    } = &heard.events[0]
    else {
        panic!()
    };
    assert!((f64::from(*log_mass) - (5.0 / tokens).ln()).abs() < 1e-6);
    let logprob = logprob.expect("it was asked for");
    assert!((f64::from(logprob) - (1.0 / tokens).ln()).abs() < 1e-6);
}

/// Fewer tokens than the shortest answer has are refused, and the refusal says how many it takes.
#[test]
fn max_tokens_below_the_shortest_answer_are_refused() {
    let engine = engine(wordy_script);
    for (weigh_end, least) in [(false, 100), (true, 101)] {
        let request = |max_tokens| {
            constrained("a{100}b*", 1)
                .max_tokens(max_tokens)
                .reporting(Reporting {
                    weigh_end,
                    ..Reporting::default()
                })
        };
        let refusal = engine.submit(request(least - 1), Box::new(|_| true)).err();
        let expected = Refusal::TooFew {
            max_tokens: least - 1,
            least: Some(least),
        };
        assert_eq!(refusal, Some(expected));
        assert_eq!(engine.check(&request(least - 1)).err(), refusal);
        assert!(engine.check(&request(least)).is_ok());
        assert_eq!(generate(&engine, request(least)).outcome().finish, Finish::Stop);
    }
}

/// Whatever the number of tokens, an answer is complete: the masks leave only what can still be ended in
/// time. Drafts change nothing.
#[test]
fn every_answer_is_complete_within_its_tokens() {
    let pattern = "x(a|bcd|e{5}f)*(yy|z)";
    let whole = grammar(pattern);
    let engine = engine(wordy_script);
    for max_tokens in 2..14 {
        for seed in 0..6 {
            let request = |speculation, weigh_end| {
                constrained(pattern, seed)
                    .speculation(speculation)
                    .max_tokens(max_tokens)
                    .reporting(Reporting {
                        weigh_end,
                        ..Reporting::default()
                    })
            };
            let heard = generate(&engine, request(Speculation::none(), false));
            let state = whole.step_bytes(whole.start(), heard.text().as_bytes());
            assert!(
                state.is_some_and(|state| whole.is_accepting(state)),
                "{:?}",
                heard.text()
            );
            assert_eq!(heard.outcome().finish, Finish::Stop);
            assert!(heard.tokens().len() <= max_tokens);
            let drafted = generate(&engine, request(Speculation::all(), false));
            assert_eq!(drafted.text(), heard.text(), "{max_tokens} tokens, seed {seed}");
            if max_tokens > 2 {
                assert_eq!(
                    generate(&engine, request(Speculation::all(), true))
                        .outcome()
                        .finish,
                    Finish::Stop
                );
            }
        }
    }
}

#[test]
fn stop_tokens_do_not_end_a_grammar_early() {
    let engine = engine(phrase_script);
    let stop_tokens = letters("o");
    let request = Request::new(letters("a"), 10)
        .grammar(Some(grammar("dog")))
        .stop_tokens(stop_tokens);
    assert_eq!(generate(&engine, request).text(), "dog");
}

#[test]
fn no_probability_for_any_allowed_token_is_an_error() {
    let engine = engine(|prefix| {
        let mut row = phrase_script(prefix);
        letters("xyz")
            .into_iter()
            .for_each(|token| row[token as usize] = f32::NEG_INFINITY);
        row
    });
    let heard = generate(&engine, constrained("ab[xyz]", 0));
    assert!(
        matches!(heard.failure(), Some(EngineError::DeadEnd { generated: 1 | 2 })),
        "{heard:?}"
    );
    assert_eq!(wait_until(&engine, |stats| stats.running == 0).blocks_used, 0);
}

#[test]
fn a_grammar_over_another_vocabulary_is_refused() {
    let tokens: Vec<_> = (0..EOS + 1)
        .map(|token| (vocabulary().kind(token), text_of(&[token])))
        .collect();
    let other = Arc::new(Vocabulary::new(&tokens, &[EOS]).unwrap());
    let request = Request::new(letters("a"), 4).grammar(Some(grammar_over(&other, "a")));
    let refusal = engine(phrase_script).submit(request, Box::new(|_| true)).err();
    assert_eq!(refusal, Some(Refusal::OtherVocabulary));
}

#[test]
fn preemption_keeps_the_place_in_the_grammar() {
    let pattern = "(ab|cd|[0-9]{3} ){20}";
    let request = |seed| constrained(pattern, seed).speculation(Speculation::all());
    let roomy = engine(wordy_script);
    let expected: Vec<String> = (0..5)
        .map(|seed| generate(&roomy, request(seed)).text())
        .collect();
    let tight = start(
        wordy_script,
        EngineConfig {
            blocks: 20,
            block_size: 4,
            ..EngineConfig::default()
        },
    );
    let listeners: Vec<_> = (0..5)
        .map(|seed| crate::rig::listen(&tight, request(seed)))
        .collect();
    let texts: Vec<String> = listeners
        .into_iter()
        .map(|listener| listener.wait().text())
        .collect();
    assert_eq!(texts, expected);
    assert!(wait_until(&tight, |stats| stats.running == 0).preemptions > 0);
}
