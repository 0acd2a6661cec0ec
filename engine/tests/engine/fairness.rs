//! Requests of one owner do not delay those of others: neither slow grammars, nor many requests, nor long
//! prompts. The tests count passes of the model, not time.

use crate::counted::{Counted, Gate};
use crate::rig::{
    Heard, Listener, Redraw, WIDTH, cycle_script, engine, generate, global, grammar, letters, listen,
    phrase_script, start, vocabulary, wait_until, wordy_script,
};
use lexiform_engine::{
    Drafting, Draw, Engine, EngineConfig, EngineError, Finish, Grammar, Law, MaskHook, Refusal, Reporting,
    Request, Sampling, ScriptedModel, Sink, Speculation,
};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// An engine whose masks are found after the hook.
fn hooked(config: EngineConfig, hook: MaskHook) -> Engine {
    let model = Box::new(ScriptedModel::new(WIDTH, 100_000, wordy_script));
    Engine::start_with_hook(model, vocabulary(), config, hook).unwrap()
}

/// An engine on which the masks of these grammars wait at a gate.
fn gated(config: EngineConfig, slow: &[Grammar], gate: &Gate) -> Engine {
    let (slow, gate) = (slow.to_vec(), gate.clone());
    let hook = move |grammar: &Grammar| {
        if slow.iter().any(|slow| slow.ptr_eq(grammar)) {
            gate.pass();
        }
        Ok(())
    };
    hooked(config, Arc::new(hook))
}

fn request(grammar: Option<&Grammar>, owner: &str, seed: u64) -> Request {
    Request::new(letters("go "), 40)
        .grammar(grammar.cloned())
        .sampling(Sampling::seeded(seed))
        .owner(Some(owner.into()))
}

const PATTERN: &str = "(ab|cd){2,4} [0-9]{3}";

/// Guards against a mask of a second that stops everybody for a second.
#[test]
fn a_slow_mask_holds_up_its_own_request_alone() {
    let (quick, slow) = (grammar(PATTERN), grammar(PATTERN));
    let expected = generate(&engine(wordy_script), request(Some(&quick), "", 3));
    for mask_threads in [1, 3] {
        let gate = Gate::default();
        let config = EngineConfig {
            mask_threads,
            ..EngineConfig::default()
        };
        let engine = gated(config, std::slice::from_ref(&slow), &gate);
        let held_up = listen(&engine, request(Some(&slow), "slow", 3));
        for (seed, owner) in [(1, "a"), (2, "slow"), (3, "b")] {
            let heard = generate(&engine, request(Some(&quick), owner, seed));
            assert_eq!(heard.outcome().finish, Finish::Stop);
            generate(&engine, request(None, owner, seed)).outcome();
        }
        gate.open(u64::MAX);
        let late = held_up.wait();
        assert_eq!(late.tokens_without_origin(), expected.tokens_without_origin());
        assert_eq!(late.outcome().log_weight, expected.outcome().log_weight);
    }
}

/// However many slow grammars there are, the threads of masks serve the others.
#[test]
fn many_slow_grammars_do_not_keep_the_threads_of_masks() {
    let (quick, gate) = (grammar(PATTERN), Gate::default());
    let slow: Vec<Grammar> = (0..8).map(|_| grammar(PATTERN)).collect();
    let engine = gated(EngineConfig::default(), &slow, &gate);
    let held_up: Vec<Listener> = (0..)
        .zip(&slow)
        .flat_map(|(owner, slow)| [(owner, slow); 2])
        .map(|(owner, slow)| listen(&engine, request(Some(slow), &format!("slow {owner}"), 1)))
        .collect();
    for seed in 0..5 {
        let heard = generate(&engine, request(Some(&quick), "quick", seed));
        assert_eq!(heard.outcome().finish, Finish::Stop);
    }
    gate.open(u64::MAX);
    for listener in held_up {
        assert_eq!(listener.wait().outcome().finish, Finish::Stop);
    }
}

#[test]
fn a_request_whose_mask_is_being_found_can_be_cancelled() {
    let (slow, gate) = (grammar(PATTERN), Gate::default());
    let engine = gated(EngineConfig::default(), std::slice::from_ref(&slow), &gate);
    let held_up = listen(&engine, request(Some(&slow), "slow", 1));
    wait_until(&engine, |stats| stats.steps > 0);
    let heard = held_up.cancel();
    assert_eq!(heard.outcome().finish, Finish::Cancelled);
    let stats = wait_until(&engine, |stats| stats.running == 0);
    assert_eq!(stats.blocks_used, 0);
    gate.open(u64::MAX);
    let heard = generate(&engine, request(Some(&slow), "slow", 1));
    assert_eq!(heard.outcome().finish, Finish::Stop);
}

/// A mask that costs too much, and one that panics, fail the request that needs it. Nothing is drawn without
/// it.
#[test]
fn a_mask_that_cannot_be_had_fails_its_own_request() {
    let too_expensive = EngineError::TooExpensive {
        limit: "mask_work",
        allowed: 7,
    };
    let (quick, refused, broken) = (grammar(PATTERN), grammar(PATTERN), grammar(PATTERN));
    let hook = {
        let (refused, broken, error) = (refused.clone(), broken.clone(), too_expensive.clone());
        move |grammar: &Grammar| match grammar {
            grammar if grammar.ptr_eq(&refused) => Err(error.clone()),
            grammar if grammar.ptr_eq(&broken) => panic!("the test says so"),
            _ => Ok(()),
        }
    };
    for mask_threads in [0, 1] {
        let config = EngineConfig {
            mask_threads,
            ..EngineConfig::default()
        };
        let engine = hooked(config, Arc::new(hook.clone()));
        let speculating = |grammar| request(Some(grammar), "", 1).speculation(Speculation::all());
        let well = listen(&engine, speculating(&quick));
        let refused = generate(&engine, speculating(&refused));
        assert_eq!(refused.failure(), Some(&too_expensive));
        assert!(refused.tokens().is_empty());
        let message = too_expensive.to_string();
        assert!(
            message.contains("mask_work") && message.contains('7'),
            "{message}"
        );
        let broken = generate(&engine, speculating(&broken));
        let panicked = EngineError::Panicked("while computing a mask".to_string());
        assert_eq!(broken.failure(), Some(&panicked));
        assert_eq!(well.wait().outcome().finish, Finish::Stop);
        let stats = wait_until(&engine, |stats| stats.running == 0 && stats.failed == 2);
        assert_eq!((stats.panics, stats.blocks_used), (0, 0));
    }
}

/// Whichever passes a request sits out, its text, its probability and the random numbers used are the same.
#[test]
fn sitting_out_changes_no_answer() {
    let pattern = "[a-z ]{2,9}(the|[0-9]{1,3})";
    let requests = |grammar: &Grammar| {
        let request = |seed: u64| {
            request(Some(grammar), &(seed % 4).to_string(), seed)
                .law(match seed % 3 {
                    0 => global(2000),
                    _ => Law::Local,
                })
                .speculation(match seed % 2 {
                    0 => Speculation::none(),
                    // Which rows of others are there to learn from depends on who sat out, and what is
                    // drafted teaches the global law.
                    _ => Speculation {
                        learned: false,
                        ..Speculation::all()
                    },
                })
                .reporting(Reporting {
                    logprobs: Some(2),
                    weigh_end: seed % 5 == 4,
                    ..Reporting::default()
                })
        };
        (0..16).map(request).collect::<Vec<_>>()
    };
    let answers = |engine: &Engine| -> Vec<Heard> {
        let grammar = grammar(pattern);
        let listeners: Vec<_> = requests(&grammar)
            .into_iter()
            .map(|request| listen(engine, request))
            .collect();
        listeners.into_iter().map(Listener::wait).collect()
    };
    let expected = answers(&engine(wordy_script));
    let masks = AtomicU64::new(0);
    let hook = move |_: &Grammar| {
        if masks.fetch_add(1, Ordering::Relaxed) % 7 == 3 {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    };
    let config = EngineConfig {
        mask_grace: Duration::ZERO,
        max_running: 6,
        ..EngineConfig::default()
    };
    let late = answers(&hooked(config, Arc::new(hook)));
    for (number, (expected, late)) in expected.iter().zip(&late).enumerate() {
        assert_eq!(
            expected.tokens_without_origin(),
            late.tokens_without_origin(),
            "{number}"
        );
        let (expected, late) = (expected.outcome(), late.outcome());
        assert_eq!(
            (
                expected.log_probability,
                expected.log_weight,
                expected.attempts,
                expected.steered
            ),
            (late.log_probability, late.log_weight, late.attempts, late.steered),
            "{number}"
        );
    }
}

/// Guards against one client's many streams that keep others out: each of them counts.
#[test]
fn many_requests_of_one_owner_do_not_keep_another_out() {
    let counted = Counted::new(EngineConfig {
        max_running: 8,
        ..EngineConfig::default()
    });
    let heavy: Vec<_> = (0..64).map(|_| counted.endless("h", 8, 500)).collect();
    (0..20).for_each(|_| counted.pass());
    let light = counted.endless("l", 8, 10);
    let passes = counted.passes_until(&light, 10);
    assert!(passes <= 12, "{passes} passes for 10 tokens");
    // A second owner of as many requests has as many of the places.
    let other: Vec<_> = (0..64).map(|_| counted.endless("o", 8, 500)).collect();
    let of = |all: &[Arc<AtomicU64>]| all.iter().map(|told| told.load(Ordering::Acquire)).sum::<u64>();
    let before = (of(&heavy), of(&other));
    (0..100).for_each(|_| counted.pass());
    let gained = (of(&heavy) - before.0, of(&other) - before.1);
    assert!(
        gained.0.abs_diff(gained.1) <= 80 && gained.0 + gained.1 >= 700,
        "{gained:?}"
    );
    counted.gate.open(u64::MAX);
    counted.engine.stop();
}

/// Guards against long prompts that stall others: who decodes has a token of every pass, and a short prompt
/// goes first.
#[test]
fn long_prompts_do_not_stall_others() {
    let counted = Counted::new(EngineConfig {
        max_step_tokens: 32,
        ..EngineConfig::default()
    });
    let early = counted.endless("e", 4, 400);
    counted.passes_until(&early, 1);
    let long: Vec<_> = (0..8).map(|_| counted.endless("h", 1000, 50)).collect();
    let begun = early.load(Ordering::Acquire);
    (0..30).for_each(|_| counted.pass());
    assert!(early.load(Ordering::Acquire) - begun >= 29);
    let light = counted.endless("l", 6, 10);
    let passes = counted.passes_until(&light, 10);
    assert!(passes <= 12, "{passes} passes for 10 tokens behind long prompts");
    let passes = counted.passes_until(&long[0], 1);
    assert!(passes < 8 * 1000 / 28, "{passes}: they are fed all the while");
    counted.gate.open(u64::MAX);
    counted.engine.stop();
}

/// Guards against drafts that others pay for: 64 sequences with a token and eight drafts each are more than a
/// pass of 512 tokens, and still each of them is in every pass.
#[test]
fn drafts_of_some_do_not_cost_others_a_pass() {
    for (owners, waits) in [(1, 0), (2, 0), (64, 0), (1, 1), (3, 2)] {
        let counted = Counted::with(
            cycle_script,
            EngineConfig {
                max_running: 64 + waits,
                blocks: 8192,
                drafting: Drafting::Always,
                ..EngineConfig::default()
            },
        );
        let request = |owner: usize, prompt: &str, tokens| {
            Request::new(letters(prompt), tokens)
                .speculation(Speculation {
                    max_draft: 32,
                    ..Speculation::all()
                })
                .owner(Some(owner.to_string().into()))
        };
        let told: Vec<_> = (0..64)
            .map(|number| counted.submit(request(number % owners, &"abc ".repeat(3), 6000)))
            .collect();
        let all = || -> Vec<u64> { told.iter().map(|told| told.load(Ordering::Acquire)).collect() };
        while all().contains(&0) {
            counted.pass();
        }
        let prompts: Vec<_> = (0..waits)
            .map(|number| counted.submit(request(number, &"cab ".repeat(2000 + number), 5)))
            .collect();
        let (begun, mut before) = (all(), all());
        for pass in 0..30 {
            counted.pass();
            let after = all();
            let waited = before
                .iter()
                .zip(&after)
                .filter(|(before, after)| before == after);
            assert_eq!(
                waited.count(),
                0,
                "{owners} owners, pass {pass}: {before:?} {after:?}"
            );
            before = after;
        }
        let gained: u64 = before
            .iter()
            .zip(begun)
            .map(|(after, before)| after - before)
            .sum();
        assert!(gained > 30 * 64 * 2, "{gained}: drafts are fed too");
        for told in prompts {
            let passes = counted.passes_until(&told, 1);
            assert!(passes < 16_000 / 64, "{passes}: prompts are fed all the while");
        }
        counted.stop();
    }
}

/// Where a pass has fewer tokens than branches decode, they take turns, and prompts are read all the while.
#[test]
fn nobody_starves_in_a_pass_that_is_too_short_for_all() {
    let counted = Counted::new(EngineConfig {
        max_running: 48,
        max_step_tokens: 16,
        ..EngineConfig::default()
    });
    let of = |samples, prompt: &str, tokens| {
        Request::new(letters(prompt), tokens)
            .task(Draw {
                answers: samples,
                ..Draw::default()
            })
            .sampling(Sampling::seeded(7))
            .ignore_eos(true)
    };
    let told: Vec<_> = (0..40).map(|_| Arc::new(AtomicU64::new(0))).collect();
    let sink = |told: &Arc<AtomicU64>| -> Sink {
        let told = told.clone();
        Box::new(move |_| told.fetch_add(1, Ordering::AcqRel) < u64::MAX)
    };
    let sinks = told.iter().map(sink).collect();
    let _tickets = counted.engine.submit_all(of(40, "abc", 400), sinks).unwrap();
    for told in &told {
        counted.passes_until(told, 1);
    }
    let alone = counted.submit(of(1, "ab", 400));
    counted.passes_until(&alone, 1);
    let prompt = counted.submit(of(1, &"c".repeat(400), 5));
    let all = || -> Vec<u64> { told.iter().map(|told| told.load(Ordering::Acquire)).collect() };
    let (begun, before) = (all(), alone.load(Ordering::Acquire));
    (0..40).for_each(|_| counted.pass());
    // The prompt has four tokens of each pass, the request that is alone one, and the 40 branches of the
    // other 11.
    let gained: Vec<u64> = all()
        .iter()
        .zip(begun)
        .map(|(after, before)| after - before)
        .collect();
    assert!(
        gained.iter().all(|gained| (9..=14).contains(gained)),
        "{gained:?}"
    );
    assert!(alone.load(Ordering::Acquire) - before >= 39);
    let passes = counted.passes_until(&prompt, 1);
    assert!(passes <= 70, "{passes}");
    counted.stop();
}

/// A piece of a prompt beside others is as long as the operator allows; alone it is as long as the pass.
#[test]
fn pieces_of_prompts_beside_others_are_bounded() {
    let counted = Counted::new(EngineConfig {
        prompt_piece: 10,
        ..EngineConfig::default()
    });
    let alone = counted.endless("a", 200, 300);
    assert_eq!(counted.passes_until(&alone, 1), 1);
    let beside = counted.endless("b", 200, 5);
    // The pass that was planned when it came is one more.
    let passes = counted.passes_until(&beside, 1);
    assert!((20..=21).contains(&passes), "{passes}");
    assert_eq!(alone.load(Ordering::Acquire), 1 + passes);
    counted.stop();
}

/// Guards against a cache that one owner fills: it gives way.
#[test]
fn a_cache_full_of_one_owner_s_prompts_has_room_for_another() {
    let counted = Counted::new(EngineConfig {
        blocks: 64,
        block_size: 4,
        max_step_tokens: 300,
        ..EngineConfig::default()
    });
    let heavy: Vec<_> = (0..4).map(|_| counted.endless("h", 60, 150)).collect();
    (0..5).for_each(|_| counted.pass());
    let light = counted.endless("l", 30, 5);
    let passes = counted.passes_until(&light, 5);
    assert!(passes <= 12, "{passes} passes for 5 tokens");
    for told in &heavy {
        counted.passes_until(told, 150);
    }
}

/// Whoever brings how much, all get to their ends, with the texts that they have alone.
#[test]
fn nobody_starves_and_nobody_s_text_changes() {
    let pattern = "(ab|cd|[0-9]{3} ){12}";
    let of = |owner: usize, seed: u64| {
        request(Some(&grammar(pattern)), &owner.to_string(), seed).speculation(Speculation::all())
    };
    let roomy = engine(wordy_script);
    let expected: Vec<String> = (0..12).map(|seed| generate(&roomy, of(0, seed)).text()).collect();
    let tight = start(
        wordy_script,
        EngineConfig {
            blocks: 40,
            block_size: 4,
            max_running: 4,
            max_step_tokens: 9,
            ..EngineConfig::default()
        },
    );
    let crowd: Vec<_> = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 2]
        .into_iter()
        .zip(0..)
        .map(|(owner, seed)| listen(&tight, of(owner, seed)))
        .collect();
    for (listener, expected) in crowd.into_iter().zip(expected) {
        assert_eq!(listener.wait().text(), expected);
    }
    assert_eq!(wait_until(&tight, |stats| stats.running == 0).blocks_used, 0);
}

#[test]
fn a_queue_that_one_owner_filled_takes_the_requests_of_another() {
    let counted = Counted::new(EngineConfig {
        max_running: 1,
        max_waiting: 8,
        ..EngineConfig::default()
    });
    let of = |owner: &str| Request::new(letters("ab"), 5).owner(Some(owner.into()));
    let submit = |owner| counted.engine.submit(of(owner), Box::new(|_| true));
    let mut tickets = Vec::new();
    let refusal = loop {
        match submit("h") {
            Ok(ticket) => tickets.push(ticket),
            Err(refusal) => break refusal,
        }
    };
    assert!(matches!(refusal, Refusal::Busy { limit: 8, .. }), "{refusal}");
    assert!(submit("l").is_ok());
    counted.gate.open(u64::MAX);
    counted.engine.stop();
}

/// Guards against a request that is called off because it waits, while the model works on it: a search tells
/// its answers when it ends.
#[test]
fn a_request_says_when_it_no_longer_waits() {
    let (entered, arrived) = channel();
    let (leave, left) = channel::<()>();
    let left = Mutex::new(left);
    let config = EngineConfig {
        max_running: 1,
        ..EngineConfig::default()
    };
    let held = move |prefix: &[u32]| {
        entered.send(()).ok();
        left.lock().unwrap().recv().ok();
        phrase_script(prefix)
    };
    let engine = Engine::start(
        Box::new(ScriptedModel::new(WIDTH, 1 << 10, held)),
        None,
        vocabulary(),
        config,
    );
    let engine = engine.unwrap();
    let request = || Request::new(letters("a"), 1);
    let submit = || engine.submit(request(), Box::new(|_| true)).unwrap();
    let first = submit();
    arrived.recv().unwrap();
    let second = submit();
    assert!(first.has_begun(), "it is in a pass, and nothing was told of it");
    assert!(!second.has_begun(), "there is no place for it");
    leave.send(()).unwrap();
    arrived.recv().unwrap();
    assert!(second.has_begun());
    drop(leave);
}
