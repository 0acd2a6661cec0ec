//! Passes that begin before the host has read the draws of the previous one, on an asynchronous device:
//! texts, laws and reported probabilities equal those of the loop that waits.

use crate::branches;
use crate::device::{Device, Fault, Log, Manner};
use crate::rig::{
    EOS, Heard, PATIENCE, Redraw, WIDTH, generate, grammar, letters, listen, phrase_script, start,
    vocabulary, wait_until, wordy_script,
};
use lexiform_engine::{
    Engine, EngineConfig, EngineError, Event, Finish, MaskHook, Reporting, Request, Sampling, ScriptedModel,
    Speculation, Verification,
};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// No pass does without a late mask, so that passes can be counted on a busy machine too.
fn config() -> EngineConfig {
    EngineConfig {
        block_size: 4,
        mask_grace: PATIENCE,
        ..EngineConfig::default()
    }
}

/// An engine over a device, and what will have been asked of it.
fn over(manner: Manner, config: EngineConfig) -> (Engine, Arc<Log>) {
    by(wordy_script, manner, config, None)
}

fn by(
    script: fn(&[u32]) -> Vec<f32>,
    manner: Manner,
    config: EngineConfig,
    hook: Option<MaskHook>,
) -> (Engine, Arc<Log>) {
    let device = Device::new(script, manner);
    let log = device.log.clone();
    let engine = match hook {
        Some(hook) => Engine::start_with_hook(Box::new(device), vocabulary(), config, hook),
        None => Engine::start(Box::new(device), None, vocabulary(), config),
    };
    (engine.unwrap(), log)
}

fn plain(seed: u64, tokens: usize) -> Request {
    Request::new(letters("ab cd"), tokens)
        .sampling(Sampling::seeded(seed))
        .ignore_eos(true)
}

/// The tokens that were told, and how the text ended.
type Told = (Vec<Event>, Option<String>);

/// All that was heard, without where tokens came from: what is drafted depends on the time that passes take.
fn told(heard: &Heard) -> Told {
    let end = match heard.events.last() {
        Some(Event::Done(outcome)) => Some(format!(
            "{:?} {:?} {} {:?} {:?}",
            outcome.finish, outcome.law, outcome.log_probability, outcome.log_weight, outcome.steered
        )),
        Some(Event::Failed(error)) => Some(error.to_string()),
        _ => None,
    };
    (heard.tokens_without_origin(), end)
}

/// Requests with and without grammars, ends, budgets, drafts and filters, at several temperatures.
fn request(number: u64) -> Request {
    let grammars = ["[a-z ]{2,40}(the|[0-9]{1,3})", "(ab|cd|abab){3,}"];
    let speculation = match number % 5 {
        3 => Speculation {
            verification: Verification::DrawOnce,
            ..Speculation::all()
        },
        _ => Speculation::none(),
    };
    Request::new(
        letters(["ab cd", "the quick", "abab cd ab"][number as usize % 3]),
        1 + (number as usize * 13) % 60,
    )
    .grammar((number % 3 == 1).then(|| grammar(grammars[number as usize / 3 % 2])))
    .sampling(Sampling {
        temperature: [1.0, 0.7, 1.5, 0.0][number as usize % 4],
        top_p: if number % 11 == 5 { 0.8 } else { 1.0 },
        ..Sampling::seeded(number)
    })
    .speculation(speculation)
    .ignore_eos(number % 4 == 2)
    .reporting(Reporting {
        logprobs: (number % 7 == 2).then_some(0),
        ..Reporting::default()
    })
}

const REQUESTS: u64 = 48;

/// What all requests hear of an engine that they come to at once.
fn together(engine: &Engine) -> Vec<Told> {
    let listeners: Vec<_> = (0..REQUESTS)
        .map(|number| listen(engine, request(number)))
        .collect();
    let heard = listeners.into_iter().map(|listener| told(&listener.wait()));
    heard.collect()
}

fn is_empty(engine: &Engine) {
    let stats = wait_until(engine, |stats| stats.running == 0 && stats.blocks_used == 0);
    assert_eq!(stats.panics, 0);
}

#[test]
fn every_pass_of_a_plain_text_but_the_first_is_begun_ahead() {
    for tokens in [1, 2, 3, 50] {
        let (engine, log) = over(Manner::default(), config());
        let heard = generate(&engine, plain(1, tokens));
        assert_eq!(
            (heard.tokens().len(), heard.outcome().finish),
            (tokens, Finish::Length)
        );
        is_empty(&engine);
        let passes = log.passes.load(Ordering::Relaxed);
        assert_eq!((passes, log.ahead()), (tokens, tokens - 1), "none after the last");
        wait_until(&engine, |it| {
            (it.steps, it.steps_ahead + 1, it.steps_unused) == (tokens as u64, tokens as u64, 0)
        });
        log.is_clean();
    }
}

/// An end is not foreseen: one row is fed in vain, and nobody hears of it.
#[test]
fn a_text_that_ends_by_itself_has_one_pass_too_many() {
    let (engine, log) = by(phrase_script, Manner::default(), config(), None);
    let request = Request::new(letters("the quick brown fox jumps over"), 40).sampling(Sampling::seeded(3));
    let waited = generate(&start(phrase_script, config()), request.clone());
    let heard = generate(&engine, request);
    assert_eq!(told(&heard), told(&waited));
    is_empty(&engine);
    let tokens = heard.outcome().completion_tokens;
    assert_eq!(heard.outcome().finish, Finish::Stop);
    assert_eq!(log.passes.load(Ordering::Relaxed), tokens + 1);
    assert_eq!(log.ahead(), tokens);
    let stats = wait_until(&engine, |stats| stats.steps_unused == 1);
    assert_eq!(stats.steps_ahead + 1, stats.steps);
    log.is_clean();
}

#[test]
fn several_plain_texts_go_on_together() {
    let (engine, log) = over(Manner::default(), config());
    let request = plain(7, 40).answers(6);
    let heard = branches::answers(&engine, request.clone());
    let waited = branches::answers(&start(wordy_script, config()), request);
    for (one, other) in heard.iter().zip(&waited) {
        assert_eq!(told(one), told(other));
    }
    is_empty(&engine);
    assert!(log.ahead() >= 38, "{}", log.ahead());
    log.is_clean();
}

#[test]
fn all_texts_are_those_of_the_loop_that_waits() {
    let waited = together(&start(wordy_script, config()));
    let crowded = EngineConfig {
        max_running: 5,
        mask_grace: Duration::ZERO,
        ..config()
    };
    let tight = EngineConfig {
        blocks: 20,
        ..config()
    };
    let split = EngineConfig {
        block_size: 1,
        blocks: 100,
        ..config()
    };
    let usual = Manner::default();
    let manners = [
        usual,
        Manner {
            looked_at: 3,
            ..usual
        },
        Manner {
            looked_at: 1,
            ..usual
        },
        Manner {
            refuses: true,
            ..usual
        },
        Manner {
            pass: Duration::ZERO,
            ..usual
        },
    ];
    // Where some of those that run cannot go ahead, nobody does, which depends on who comes together.
    let (mut preemptions, mut ahead) = (0, 0);
    for manner in manners {
        for config in [config(), crowded.clone(), tight.clone(), split.clone()] {
            let (engine, log) = over(manner, config.clone());
            for (number, (one, other)) in together(&engine).iter().zip(&waited).enumerate() {
                assert_eq!(
                    one, other,
                    "request {number}, {manner:?}, {} blocks",
                    config.blocks
                );
            }
            is_empty(&engine);
            preemptions += engine.stats().preemptions;
            assert!(!manner.refuses || log.ahead() == 0);
            ahead += log.ahead();
            log.is_clean();
        }
    }
    assert!(preemptions > 0 && ahead > 40, "{preemptions}, {ahead}");
}

/// The same by the scripted model itself, whose passes are over when they are submitted.
#[test]
fn a_model_that_draws_at_once_writes_the_same_texts() {
    let waited = together(&start(wordy_script, config()));
    let model = ScriptedModel::new(WIDTH, 1000, wordy_script).drawing();
    let engine = Engine::start(Box::new(model), None, vocabulary(), config()).unwrap();
    assert_eq!(together(&engine), waited);
    is_empty(&engine);
}

/// The rows of a pass in vain are never found: a text that continues another one has its own rows.
#[test]
fn what_a_useless_row_wrote_is_never_read() {
    let (engine, log) = over(
        Manner {
            looked_at: 5,
            ..Manner::default()
        },
        EngineConfig {
            block_size: 2,
            ..config()
        },
    );
    let mut found = 0;
    for seed in 0..24 {
        let sampling = Sampling::seeded(seed);
        let first = Request::new(letters("ab"), 30).sampling(sampling.clone());
        let heard = generate(&engine, first);
        // Once more behind its end, and behind what it had written.
        for tail in [vec![EOS, 5], vec![7], vec![3], vec![EOS]] {
            let prompt = [letters("ab"), heard.tokens(), tail].concat();
            let next = Request::new(prompt, 6)
                .sampling(sampling.clone())
                .ignore_eos(true);
            let alone = generate(&start(wordy_script, config()), next.clone());
            let heard = generate(&engine, next);
            assert_eq!(told(&heard), told(&alone), "seed {seed}");
            found += heard.outcome().cached_tokens;
        }
    }
    assert!(found > 100, "{found} tokens were found in the cache");
    is_empty(&engine);
    log.is_clean();
}

/// Guards against masks, reading and telling that the device waits for.
#[test]
fn a_pass_is_under_way_while_the_host_works() {
    let during = Arc::new(Mutex::new((0, 0)));
    let seen: Arc<Mutex<Option<Arc<Log>>>> = Arc::default();
    let (count, at) = (during.clone(), seen.clone());
    let hook: MaskHook = Arc::new(move |_| {
        if let Some(log) = at.lock().unwrap().as_ref() {
            let mut during = count.lock().unwrap();
            during.0 += 1;
            during.1 += usize::from(log.under_way() > 0);
        }
        Ok(())
    });
    let slow = Manner {
        pass: Duration::from_millis(2),
        ..Manner::default()
    };
    let (engine, log) = by(wordy_script, slow, config(), Some(hook));
    *seen.lock().unwrap() = Some(log.clone());
    let request = Request::new(letters("ab"), 64)
        .grammar(Some(grammar("[a-z ]{60}")))
        .sampling(Sampling::seeded(4));
    let (sender, events) = channel();
    let heard_by = log.clone();
    let sink = move |event: Event| sender.send((event, heard_by.under_way())).is_ok();
    let ticket = engine.submit(request, Box::new(sink)).unwrap();
    let under_way: Vec<usize> = events
        .iter()
        .take_while(|(event, _)| matches!(event, Event::Token { .. }))
        .map(|(_, under_way)| under_way)
        .collect();
    drop(ticket);
    let told = under_way.iter().filter(|&&passes| passes == 1).count();
    assert!(told + 2 >= under_way.len() && told > 20, "{under_way:?}");
    let (masks, beside) = *during.lock().unwrap();
    assert!(masks > 20 && beside + 2 >= masks, "{beside} of {masks} masks");
    log.is_clean();
}

/// All samples of one request, whose passes are the same in both loops.
fn samples() -> Request {
    plain(2, 24).answers(4).ignore_eos(false)
}

fn heard_with(fault: Fault, overlaps: bool) -> (Vec<Told>, Arc<Log>) {
    let (engine, log) = over(
        Manner {
            overlaps,
            fault,
            ..Manner::default()
        },
        config(),
    );
    let heard = branches::answers(&engine, samples());
    let told = heard.iter().map(told).collect();
    wait_until(&engine, |stats| stats.running == 0 && stats.blocks_used == 0);
    // Who comes later is served.
    let again = generate(&engine, plain(9, 12));
    assert_eq!(
        told_tokens(&again),
        told_tokens(&generate(&start(wordy_script, config()), plain(9, 12)))
    );
    (told, log)
}

fn told_tokens(heard: &Heard) -> Vec<u32> {
    assert_eq!(heard.outcome().finish, Finish::Length);
    heard.tokens()
}

/// A failed pass fails the texts in it, also where it was begun ahead; a pass in vain fails none.
#[test]
fn an_error_in_flight_is_that_of_who_goes_on() {
    let (all, _) = heard_with(Fault::Never, false);
    let passes = all.iter().map(|(tokens, _)| tokens.len() + 1).max().unwrap();
    assert!(passes > 6, "{passes}");
    let mut failed = 0;
    for pass in 1..=passes {
        for fault in [
            Fault::Refuses(pass),
            Fault::Loses(pass),
            Fault::DrawsNothing(pass),
        ] {
            let (waited, _) = heard_with(fault, false);
            let (found, log) = heard_with(fault, true);
            assert_eq!(found, waited, "{fault:?}");
            failed += found
                .iter()
                .filter(|(_, end)| end.as_ref().is_some_and(|end| end.contains("lost")))
                .count();
            log.is_clean();
        }
    }
    assert!(failed > 20, "{failed}");
}

#[test]
fn a_panic_of_the_device_fails_who_runs_and_no_more() {
    for pass in 1..12 {
        let (engine, _) = over(
            Manner {
                fault: Fault::Panics(pass),
                ..Manner::default()
            },
            config(),
        );
        let heard = generate(&engine, plain(1, 20));
        assert!(
            matches!(heard.failure(), Some(EngineError::Panicked(_))),
            "{pass}: {heard:?}"
        );
        let again = generate(&engine, plain(1, 20));
        assert_eq!(
            told(&again),
            told(&generate(&start(wordy_script, config()), plain(1, 20)))
        );
        let stats = wait_until(&engine, |stats| stats.running == 0 && stats.blocks_used == 0);
        assert_eq!(stats.panics, 1);
    }
}

/// A panic in a mask ends its answer where it would without, and no other one's.
#[test]
fn a_panic_in_a_mask_ends_its_answer_alone() {
    let heard = |overlaps: bool, at: usize| {
        let masks = AtomicUsize::new(0);
        let hook: MaskHook = Arc::new(move |_| {
            assert!(masks.fetch_add(1, Ordering::Relaxed) != at, "a mask is on fire");
            Ok(())
        });
        let (engine, log) = by(
            wordy_script,
            Manner {
                overlaps,
                ..Manner::default()
            },
            config(),
            Some(hook),
        );
        let request = plain(3, 48).grammar(Some(grammar("[a-z ]{40}")));
        let heard = generate(&engine, request);
        let other = generate(&engine, plain(5, 9));
        is_empty(&engine);
        log.is_clean();
        (told(&heard), told(&other))
    };
    for at in [0, 1, 5, 20] {
        let (waited, found) = (heard(false, at), heard(true, at));
        assert_eq!(found, waited, "mask {at}");
        assert!(found.0.1.is_some_and(|end| end.contains("mask")));
    }
}

/// Clients that leave, in the middle of texts that others go on with.
#[test]
fn who_leaves_changes_nothing_for_the_others() {
    let (engine, log) = over(
        Manner {
            pass: Duration::from_micros(200),
            ..Manner::default()
        },
        config(),
    );
    let reference = start(wordy_script, config());
    for round in 0..12 {
        let (sender, events) = channel();
        let most = 1 + round % 5;
        let mut heard = 0;
        let leaving = move |event: Event| {
            heard += 1;
            let _ = sender.send(event);
            heard < most
        };
        let ticket = engine.submit(plain(round, 50), Box::new(leaving)).unwrap();
        let cancelled = listen(&engine, plain(100 + round, 50));
        let staying = listen(&engine, plain(200 + round, 30));
        std::thread::sleep(Duration::from_millis(round));
        let cancelled = cancelled.cancel();
        let whole = generate(&reference, plain(100 + round, 50));
        let whole = whole.tokens_without_origin();
        let heard = cancelled.tokens_without_origin();
        assert_eq!(heard, whole[..heard.len()], "round {round}");
        let staying = staying.wait();
        assert_eq!(
            told(&staying),
            told(&generate(&reference, plain(200 + round, 30)))
        );
        drop(ticket);
        let left: Vec<Event> = events.iter().collect();
        assert_eq!(left.len() as u64, most);
    }
    wait_until(&engine, |stats| stats.running == 0 && stats.blocks_used == 0);
    assert!(log.ahead() > 50, "{}", log.ahead());
    log.is_clean();
}

#[test]
fn a_deadline_ends_a_text_whose_next_pass_is_under_way() {
    let (engine, log) = over(
        Manner {
            pass: Duration::from_millis(3),
            ..Manner::default()
        },
        config(),
    );
    let late = plain(1, 900).deadline(Some(Instant::now() + Duration::from_millis(40)));
    let (late, other) = (listen(&engine, late), listen(&engine, plain(2, 40)));
    let late = late.wait();
    assert!(
        matches!(late.failure(), Some(EngineError::Late { .. })),
        "{late:?}"
    );
    let waited = generate(&start(wordy_script, config()), plain(2, 40));
    assert_eq!(told(&other.wait()), told(&waited));
    wait_until(&engine, |stats| stats.running == 0 && stats.blocks_used == 0);
    assert!(log.ahead() > 5, "{}", log.ahead());
    log.is_clean();
}

/// Guards against a program that ends while its device still computes.
#[test]
fn an_engine_that_has_stopped_has_no_pass_under_way() {
    let (engine, log) = over(
        Manner {
            pass: Duration::from_millis(2),
            ..Manner::default()
        },
        config(),
    );
    let listener = listen(&engine, plain(1, 4_000));
    wait_until(&engine, |stats| stats.generated > 8);
    engine.stop();
    assert_eq!(log.under_way(), 0);
    assert_eq!(listener.wait().failure(), Some(&EngineError::Stopped));
    assert!(log.ahead() > 4);
    log.is_clean();
}

/// Who waits while the batch is full keeps nobody from going ahead, and comes in when a place is free.
#[test]
fn a_queue_does_not_end_the_overlap() {
    let crowded = EngineConfig {
        max_running: 2,
        ..config()
    };
    let (engine, log) = over(Manner::default(), crowded);
    let listeners: Vec<_> = (0..6).map(|seed| listen(&engine, plain(seed, 40))).collect();
    let reference = start(wordy_script, config());
    for (seed, listener) in (0..).zip(listeners) {
        assert_eq!(
            told(&listener.wait()),
            told(&generate(&reference, plain(seed, 40)))
        );
    }
    // Three pairs of 40 tokens each.
    assert!(log.ahead() > 90, "{}", log.ahead());
    log.is_clean();
}

/// Guards against a text that nobody goes on with because others go ahead.
#[test]
fn who_has_to_be_looked_at_misses_a_pass_and_no_more() {
    let manner = Manner {
        looked_at: 50,
        ..Manner::default()
    };
    let (engine, log) = over(manner, config());
    let request = plain(4, 42).answers(2);
    let found = branches::answers(&engine, request);
    assert!(found.iter().all(|heard| heard.tokens().len() == 42));
    // The first token of one is looked at, and fed again: that of the prompt, 42 passes, and one more or two.
    let passes = log.passes.load(Ordering::Relaxed);
    assert!((44..=46).contains(&passes), "{passes}");
    log.is_clean();
}

/// What is fed as drafts is never known without the last token; texts that have none for a while go ahead.
#[test]
fn texts_with_drafts_wait_for_them() {
    let drafting = plain(1, 240)
        .grammar(Some(grammar(
            "(the quick ){6}[a-z]{30}(abc the lazy dog ){3}[a-z]{30}fox",
        )))
        .speculation(Speculation {
            forced: true,
            max_draft: 8,
            ..Speculation::none()
        });
    let (engine, log) = over(
        Manner::default(),
        EngineConfig {
            drafting: lexiform_engine::Drafting::Always,
            ..config()
        },
    );
    let heard = generate(&engine, drafting.clone());
    let waited = generate(&crate::rig::engine(wordy_script), drafting);
    assert_eq!(told(&heard), told(&waited));
    assert!(heard.outcome().accepted > 20, "{:?}", heard.outcome());
    assert!((20..62).contains(&log.ahead()), "{}", log.ahead());
    log.is_clean();
}
