//! The loop against a scripted model: whatever is scheduled together, the text must be the one the script
//! implies.

use crate::rig::{self, Heard, PHRASE, engine, generate, letters, listen, start, text_of, wait_until};
use crate::rig::{EOS, cycle_script, phrase_script, wordy_script};
use lexiform_engine::{
    Engine, EngineConfig, EngineError, Event, Finish, LawTag, Lookahead, Origin, Refusal, Reporting, Request,
    Sampling, ScriptedModel, Speculation,
};
use std::sync::Arc;

#[test]
fn greedy_text_follows_the_script_to_its_end() {
    let engine = engine(phrase_script);
    let heard = generate(&engine, Request::new(letters("the "), 40));
    assert_eq!(heard.text(), &PHRASE[4..]);
    let outcome = heard.outcome();
    assert_eq!((outcome.finish, outcome.law), (Finish::Stop, LawTag::Greedy));
    assert_eq!(
        (outcome.prompt_tokens, outcome.completion_tokens),
        (4, PHRASE.len() - 4 + 1)
    );
}

#[test]
fn max_tokens_ends_the_text() {
    let engine = engine(phrase_script);
    let heard = generate(&engine, Request::new(letters("the "), 5));
    assert_eq!(
        (heard.text(), heard.outcome().finish),
        (PHRASE[4..9].to_string(), Finish::Length)
    );
}

#[test]
fn requests_join_and_leave_without_changing_each_other() {
    let request = |seed| Request::new(letters("ab"), 30).sampling(Sampling::seeded(seed));
    let alone: Vec<String> = (0..12)
        .map(|seed| generate(&engine(wordy_script), request(seed)).text())
        .collect();
    let engine = start(
        wordy_script,
        EngineConfig {
            max_running: 5,
            ..EngineConfig::default()
        },
    );
    let together: Vec<_> = (0..12).map(|seed| listen(&engine, request(seed))).collect();
    let together: Vec<String> = together
        .into_iter()
        .map(|listener| listener.wait().text())
        .collect();
    assert_eq!(alone, together);
    assert!(alone.iter().any(|text| *text != alone[0]), "seeds must matter");
}

#[test]
fn long_prompts_are_fed_in_pieces() {
    let prompt = letters(&"abc ".repeat(50));
    let small = EngineConfig {
        max_step_tokens: 7,
        ..EngineConfig::default()
    };
    let request = Request::new(prompt, 20).sampling(Sampling::seeded(3));
    let whole = generate(&engine(wordy_script), request.clone()).text();
    assert_eq!(generate(&start(wordy_script, small), request).text(), whole);
}

#[test]
fn a_shared_beginning_is_computed_once() {
    let engine = engine(wordy_script);
    let prompt = letters(&"abc ".repeat(12));
    let first = generate(&engine, Request::new(prompt.clone(), 4));
    let second = generate(&engine, Request::new(prompt, 4));
    assert_eq!(
        (first.outcome().cached_tokens, second.outcome().cached_tokens),
        (0, 32)
    );
    assert_eq!(first.text(), second.text());
}

#[test]
fn a_full_cache_preempts_without_changing_any_text() {
    let request = |seed| Request::new(letters("ab"), 40).sampling(Sampling::seeded(seed));
    let roomy = engine(wordy_script);
    let expected: Vec<String> = (0..6)
        .map(|seed| generate(&roomy, request(seed)).text())
        .collect();
    let tight = start(
        wordy_script,
        EngineConfig {
            blocks: 14,
            block_size: 4,
            ..EngineConfig::default()
        },
    );
    let listeners: Vec<_> = (0..6).map(|seed| listen(&tight, request(seed))).collect();
    let texts: Vec<String> = listeners
        .into_iter()
        .map(|listener| listener.wait().text())
        .collect();
    assert_eq!(texts, expected);
    assert!(
        wait_until(&tight, |stats| stats.running == 0).preemptions > 0,
        "the cache was meant to be too small"
    );
}

#[test]
fn lookup_drafts_save_passes_and_change_nothing() {
    let request = |speculation| {
        Request::new(letters("abc abc abc "), 60)
            .sampling(Sampling::seeded(5))
            .speculation(speculation)
            .reporting(Reporting {
                logprobs: Some(3),
                ..Reporting::default()
            })
    };
    let (plain, drafting) = (engine(cycle_script), engine(cycle_script));
    let without = generate(&plain, request(Speculation::none()));
    let with = generate(&drafting, request(Speculation::all()));
    assert_eq!(without.tokens_without_origin(), with.tokens_without_origin());
    let outcome = with.outcome();
    assert!(outcome.accepted > 0 && outcome.accepted <= outcome.drafted);
    assert_eq!(outcome.log_probability, without.outcome().log_probability);
    let steps = |engine| wait_until(engine, |stats| stats.requests == 1 && stats.running == 0).steps;
    assert!(steps(&drafting) < steps(&plain));
    assert!(with.origins().contains(&Origin::Drafted));
}

#[test]
fn a_client_that_leaves_frees_its_blocks() {
    let engine = engine(wordy_script);
    let mut left = 3;
    let sink = move |_event| {
        left -= 1;
        left > 0
    };
    let request = Request::new(letters("ab"), 5000).ignore_eos(true);
    let ticket = engine.submit(request, Box::new(sink)).unwrap();
    let stats = wait_until(&engine, |stats| stats.requests == 1 && stats.running == 0);
    assert_eq!((stats.blocks_used, stats.failed), (0, 1));
    drop(ticket);
}

#[test]
fn dropping_the_ticket_cancels() {
    let engine = engine(wordy_script);
    let request = Request::new(letters("ab"), 5000).ignore_eos(true);
    let listener = listen(&engine, request);
    wait_until(&engine, |stats| stats.generated > 10);
    let heard = listener.cancel();
    assert_eq!(heard.outcome().finish, Finish::Cancelled);
    assert_eq!(wait_until(&engine, |stats| stats.running == 0).blocks_used, 0);
}

#[test]
fn a_waiting_request_can_be_cancelled() {
    let engine = start(
        wordy_script,
        EngineConfig {
            max_running: 1,
            ..EngineConfig::default()
        },
    );
    let endless = Request::new(letters("ab"), 5000).ignore_eos(true);
    let running = listen(&engine, endless.clone());
    wait_until(&engine, |stats| stats.running == 1);
    let waiting = listen(&engine, endless);
    wait_until(&engine, |stats| stats.waiting == 1);
    assert_eq!(waiting.cancel().outcome().completion_tokens, 0);
    assert_eq!(wait_until(&engine, |stats| stats.waiting == 0).running, 1);
    running.cancel();
}

#[test]
fn a_full_queue_refuses() {
    let engine = start(
        wordy_script,
        EngineConfig {
            max_running: 1,
            max_waiting: 2,
            ..EngineConfig::default()
        },
    );
    let endless = Request::new(letters("ab"), 5000).ignore_eos(true);
    let running = listen(&engine, endless.clone());
    wait_until(&engine, |stats| stats.running == 1);
    let waiting = [listen(&engine, endless.clone()), listen(&engine, endless.clone())];
    let refusal = engine.submit(endless.clone(), Box::new(|_| true)).err();
    assert_eq!(refusal, Some(Refusal::Busy { waiting: 2, limit: 2 }));
    let [first, second] = waiting;
    first.cancel();
    wait_until(&engine, |stats| stats.waiting == 1);
    let third = listen(&engine, endless);
    for listener in [running, second, third] {
        listener.cancel();
    }
}

#[test]
fn nonsense_is_refused_by_name() {
    let engine = engine(phrase_script);
    let refuse = |request| engine.submit(request, Box::new(|_| true)).err().unwrap();
    let limit = engine.max_context();
    assert_eq!(refuse(Request::new(vec![], 4)), Refusal::EmptyPrompt);
    let long = Refusal::TooLong {
        prompt: 2,
        max_tokens: usize::MAX,
        limit,
    };
    assert_eq!(refuse(Request::new(vec![1, 1], usize::MAX)), long);
    assert!(matches!(
        refuse(Request::new(vec![1], 0)),
        Refusal::Invalid {
            name: "max_tokens",
            ..
        }
    ));
    assert!(matches!(
        refuse(Request::new(vec![1, 9999], 4)),
        Refusal::UnknownToken {
            place: 1,
            token: 9999,
            ..
        }
    ));
    for (name, sampling) in [
        (
            "temperature",
            Sampling {
                temperature: f32::NAN,
                ..Sampling::default()
            },
        ),
        (
            "top_p",
            Sampling {
                top_p: 0.0,
                ..Sampling::default()
            },
        ),
        (
            "top_k",
            Sampling {
                top_k: Some(0),
                ..Sampling::default()
            },
        ),
        (
            "min_p",
            Sampling {
                min_p: 1.5,
                ..Sampling::default()
            },
        ),
        (
            "logit_bias",
            Sampling {
                logit_bias: vec![(1, f32::INFINITY)],
                ..Sampling::default()
            },
        ),
    ] {
        let refusal = refuse(Request::new(vec![1], 4).sampling(sampling));
        assert!(
            matches!(refusal, Refusal::Invalid { name: found, .. } if found == name),
            "{refusal}"
        );
    }
}

#[test]
fn a_panic_fails_what_ran_and_the_next_request_works() {
    let engine = engine(|prefix| match text_of(prefix).contains("xyz") {
        true => panic!("the script does not like this"),
        false => phrase_script(prefix),
    });
    let heard = generate(&engine, Request::new(letters("xyz"), 4));
    let expected = EngineError::Panicked("the script does not like this".to_string());
    assert_eq!(heard.failure(), Some(&expected));
    assert_eq!(
        generate(&engine, Request::new(letters("the "), 40)).text(),
        &PHRASE[4..]
    );
    let stats = engine.stats();
    assert_eq!((stats.alive, stats.panics, stats.failed), (true, 1, 1));
}

#[test]
fn an_engine_that_panics_again_and_again_stops() {
    let engine = engine(|_| panic!("always"));
    for _ in 0..3 {
        assert!(
            generate(&engine, Request::new(letters("a"), 4))
                .failure()
                .is_some()
        );
    }
    wait_until(&engine, |stats| !stats.alive);
    assert_eq!(
        engine
            .submit(Request::new(letters("a"), 4), Box::new(|_| true))
            .err(),
        Some(Refusal::Stopped)
    );
}

#[test]
fn logits_that_are_not_numbers_are_an_error() {
    let engine = engine(|_| vec![f32::NAN; rig::WIDTH]);
    let heard = generate(&engine, Request::new(letters("a"), 4));
    assert!(
        matches!(heard.failure(), Some(EngineError::Model(_))),
        "{heard:?}"
    );
}

#[test]
fn a_client_that_panics_hurts_only_itself() {
    let engine = engine(phrase_script);
    let _ticket = engine
        .submit(Request::new(letters("the "), 40), Box::new(|_| panic!("client")))
        .unwrap();
    assert_eq!(
        generate(&engine, Request::new(letters("the "), 40)).text(),
        &PHRASE[4..]
    );
    assert_eq!(wait_until(&engine, |stats| stats.running == 0).panics, 0);
}

#[test]
fn stop_tokens_end_the_text_and_are_not_reported() {
    let engine = engine(phrase_script);
    let stop_tokens = letters("k");
    let heard = generate(
        &engine,
        Request::new(letters("the "), 40).stop_tokens(stop_tokens),
    );
    assert_eq!(
        (heard.text().as_str(), heard.outcome().finish),
        ("quic", Finish::Stop)
    );
}

#[test]
fn penalties_and_bias_change_the_choice() {
    let engine = engine(|_| {
        (0..rig::WIDTH)
            .map(|token| if token == 1 { 1.0 } else { 0.0 })
            .collect()
    });
    let choose = |sampling| generate(&engine, Request::new(letters("z"), 3).sampling(sampling)).tokens();
    assert_eq!(choose(Sampling::default()), [1, 1, 1]);
    let frequency = Sampling {
        frequency_penalty: 0.6,
        ..Sampling::default()
    };
    assert_eq!(choose(frequency)[..2], [1, 1]);
    let presence = Sampling {
        presence_penalty: 1.1,
        ..Sampling::default()
    };
    assert_eq!(choose(presence)[1], 0);
    let bias = Sampling {
        logit_bias: vec![(7, 5.0)],
        ..Sampling::default()
    };
    assert_eq!(choose(bias), [7, 7, 7]);
}

/// The prompt counts as well as the answer.
#[test]
fn tokens_that_were_there_before_are_less_likely_under_a_repetition_penalty() {
    let there = letters("z")[0];
    let engine = engine(move |_| {
        let logit = |token| match token {
            1 => 1.0,
            2 => 0.5,
            _ if token == there => 1.5,
            _ => 0.0,
        };
        (0..rig::WIDTH as u32).map(logit).collect()
    });
    let choose = |repetition_penalty| {
        let sampling = Sampling {
            repetition_penalty,
            ..Sampling::default()
        };
        let request = Request::new(vec![there], 3).sampling(sampling);
        generate(&engine, request).tokens()
    };
    assert_eq!(choose(1.0), [there; 3]);
    assert_eq!(choose(4.0), [1, 2, there]);
    let refused = Request::new(vec![there], 3).sampling(Sampling {
        repetition_penalty: 0.0,
        ..Sampling::default()
    });
    let refusal = engine.check(&refused).err();
    assert_eq!(engine.submit(refused, Box::new(|_| true)).err(), refusal);
    assert!(
        matches!(
            &refusal,
            Some(Refusal::Invalid {
                name: "repetition_penalty",
                ..
            })
        ),
        "{refusal:?}"
    );
}

#[test]
fn a_config_of_nothing_is_an_error() {
    let model = ScriptedModel::new(rig::WIDTH, 100, phrase_script);
    let config = EngineConfig {
        blocks: 0,
        ..EngineConfig::default()
    };
    let error = Engine::start(Box::new(model), None, rig::vocabulary(), config).err();
    assert_eq!(
        error,
        Some(EngineError::Config(
            "blocks is 0, but must be at least 1".to_string()
        ))
    );
}

/// Guards against a window that silently becomes another one than was asked for.
#[test]
fn a_window_of_guesses_without_end_or_beginning_is_an_error() {
    let refused = |columns, length| {
        let model = ScriptedModel::new(rig::WIDTH, 100, phrase_script);
        let config = EngineConfig {
            lookahead: Some(Lookahead { columns, length }),
            ..EngineConfig::default()
        };
        match Engine::start(Box::new(model), None, rig::vocabulary(), config).err() {
            Some(EngineError::Config(message)) => message,
            other => panic!("{other:?}"),
        }
    };
    let columns = "but must be from 1 to 256";
    assert_eq!(refused(0, 5), format!("lookahead.columns is 0, {columns}"));
    assert_eq!(refused(257, 5), format!("lookahead.columns is 257, {columns}"));
    assert_eq!(refused(9, 1), "lookahead.length is 1, but must be from 2 to 64");
}

#[test]
fn logprobs_are_the_models_own() {
    let engine = engine(phrase_script);
    let sampling = Sampling {
        temperature: 0.5,
        seed: 1,
        ..Sampling::default()
    };
    let heard: Heard = generate(
        &engine,
        Request::new(letters("the "), 3)
            .sampling(sampling)
            .reporting(Reporting {
                logprobs: Some(2),
                ..Reporting::default()
            }),
    );
    for event in &heard.events[..3] {
        let Event::Token {
            token,
            logprob,
            log_mass,
            top,
            ..
        } = event
        else {
            panic!("{event:?}")
        };
        assert_eq!((top.len(), *log_mass), (2, 0.0));
        if *token == top[0].0 {
            assert_eq!(*logprob, Some(top[0].1));
        }
    }
    assert!(heard.tokens().iter().all(|&token| token != EOS));
}

/// Guards against programs that end while the decode thread still computes: on a card that is a crash.
#[test]
fn a_stopped_engine_has_let_go_of_its_model() {
    let token = Arc::new(());
    let held = token.clone();
    let script = move |prefix: &[u32]| {
        assert_eq!(*held, ());
        cycle_script(prefix)
    };
    let engine = start(script, EngineConfig::default());
    let request = || Request::new(letters("ab"), 10_000).ignore_eos(true);
    let listener = listen(&engine, request());
    wait_until(&engine, |stats| stats.generated > 3);
    engine.stop();
    assert_eq!(Arc::strong_count(&token), 1, "the model is dropped");
    assert_eq!(listener.wait().failure(), Some(&EngineError::Stopped));
    let refused = engine.submit(request(), Box::new(|_| true));
    assert_eq!(refused.err(), Some(Refusal::Stopped));
    engine.stop();
}
