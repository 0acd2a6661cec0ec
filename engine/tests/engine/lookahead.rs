//! Lookahead decoding: guesses are part of the passes, and change only the number of passes.

use crate::drafting::{PATTERNS, compare};
use crate::rig::{
    WIDTH, cycle_script, drafting, engine, generate, global, grammar, letters, listen, start, wait_until,
    wordy_script,
};
use lexiform_engine::{
    DraftStores, EngineConfig, Law, Learner, Lookahead, Reporting, Request, Sampling, Speculation,
    Verification,
};

/// An engine's sizes with a window and a pool of phrases.
fn guessing(columns: usize, length: usize) -> EngineConfig {
    EngineConfig {
        lookahead: Some(Lookahead { columns, length }),
        ..pooling()
    }
}

/// The same without the window.
fn pooling() -> EngineConfig {
    EngineConfig {
        draft_stores: DraftStores {
            learners: vec![Learner::Phrases],
            ..DraftStores::default()
        },
        ..drafting()
    }
}

fn once() -> Speculation {
    Speculation {
        verification: Verification::DrawOnce,
        ..Speculation::all()
    }
}

#[test]
fn guesses_change_no_answer() {
    let plain = engine(wordy_script);
    for (columns, length) in [(1, 2), (7, 4), (15, 5)] {
        let guessing = start(wordy_script, guessing(columns, length));
        for pattern in PATTERNS.map(Some).into_iter().chain([None]) {
            for seed in 0..4 {
                for temperature in [0.0, 0.3, 1.0] {
                    let request = |speculation| {
                        Request::new(letters("the the "), 30)
                            .grammar(pattern.map(grammar))
                            .sampling(Sampling {
                                temperature,
                                top_p: 0.9,
                                frequency_penalty: 0.1,
                                ..Sampling::seeded(seed)
                            })
                            .speculation(speculation)
                            .reporting(Reporting {
                                logprobs: Some(2),
                                weigh_end: seed == 1,
                                ..Reporting::default()
                            })
                    };
                    let without = generate(&plain, request(Speculation::none()));
                    let what = format!("{columns} columns, {pattern:?}, {seed}, {temperature}");
                    compare(&without, &generate(&guessing, request(once())), &what);
                    // There is no draft model, so the residual rule has nothing to judge.
                    compare(&without, &generate(&guessing, request(Speculation::all())), &what);
                }
            }
        }
        let stats = wait_until(&guessing, |stats| stats.running == 0);
        assert!(stats.accepted > 0 && stats.drafted > stats.accepted);
        assert_eq!((stats.blocks_used, stats.draft_stores_failed), (0, 0));
    }
}

/// Attempts fail and begin again with guesses that were made for other texts.
#[test]
fn attempts_at_the_global_law_may_have_guesses() {
    let (plain, guessing) = (engine(wordy_script), start(wordy_script, guessing(7, 4)));
    for seed in 0..20 {
        for law in [global(2000), Law::Local] {
            let request = |speculation| {
                Request::new(letters("the the "), 30)
                    .task(law)
                    .grammar(Some(grammar("(th|he|the|quick){3,9}")))
                    .sampling(Sampling::seeded(seed))
                    .speculation(speculation)
            };
            let without = generate(&plain, request(Speculation::none()));
            compare(
                &without,
                &generate(&guessing, request(once())),
                &format!("{seed}"),
            );
        }
    }
}

/// Goes on from each letter to another one, which depends on nothing else, so that a phrase is right wherever
/// it was guessed.
fn chain_script(prefix: &[u32]) -> Vec<f32> {
    let mut row = vec![0.0; WIDTH];
    let last = prefix.last().copied().unwrap_or(0);
    row[((7 * last + 3) % 37) as usize] = 9.0;
    row
}

#[test]
fn phrases_that_never_came_are_drafted() {
    let passes = |config: EngineConfig| {
        let engine = start(chain_script, config);
        let request = Request::new(vec![12, 5, 1], 8).speculation(Speculation {
            lookup: false,
            ..Speculation::all()
        });
        let heard = generate(&engine, request);
        engine.stop();
        let stats = engine.stats();
        (heard.tokens(), stats.steps, heard.outcome().accepted)
    };
    let (text, pooled, accepted) = passes(pooling());
    assert_eq!(text, [10, 36, 33, 12, 13, 20, 32, 5]);
    assert_eq!((pooled, accepted), (8, 0), "nothing came before");
    let (guessed, few, accepted) = passes(guessing(6, 4));
    assert_eq!(guessed, text);
    assert!(few < pooled && accepted > 0, "{few} passes, {accepted} accepted");
}

/// Guesses are the first that a pass or a cache has no room for.
#[test]
fn guesses_give_way_where_there_is_no_room() {
    let config = |mut config: EngineConfig| {
        (config.blocks, config.block_size, config.max_step_tokens) = (40, 4, 24);
        config
    };
    let (plain, guessing) = (
        start(cycle_script, config(drafting())),
        start(cycle_script, config(guessing(15, 5))),
    );
    let request = |speculation, seed| {
        Request::new(letters("abc abc "), 40)
            .sampling(Sampling::seeded(seed))
            .speculation(speculation)
            .ignore_eos(true)
    };
    let listeners: Vec<_> = (0..8)
        .map(|seed| listen(&guessing, request(once(), seed)))
        .collect();
    for (seed, listener) in (0..).zip(listeners) {
        let without = generate(&plain, request(Speculation::none(), seed));
        compare(&without, &listener.wait(), "crowded");
    }
    assert_eq!(wait_until(&guessing, |stats| stats.running == 0).blocks_used, 0);
}
