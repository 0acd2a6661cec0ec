//! Laws that draw several texts for an answer: particles, chains, and texts that teach the next.

use crate::laws::{agrees, engine, request, shares, text};
use crate::rig::{generate, listen, wait_until};
use lexiform_engine::{
    Cuts, Diagnostics, EngineConfig, EngineError, Event, Finish, LawChoice, LawTag, OnBudget, Refusal,
    Request, Resampling, Sampling, Sink,
};
use std::sync::mpsc::channel;

const COUNT: u64 = 2000;
/// The probability that the model writes a text of the grammar.
const Z: f64 = 0.505;

fn smc(particles: usize) -> LawChoice {
    LawChoice::Smc {
        particles,
        threshold: 0.5,
        resampling: Resampling::Systematic,
    }
}

fn mcmc(steps: u32, cuts: Cuts) -> LawChoice {
    LawChoice::Mcmc { steps, cuts }
}

/// The estimate of `Z` has that mean, and weighted by it each text its probability.
#[test]
fn particles_are_properly_weighted() {
    for law in [smc(4), LawChoice::Sir { candidates: 3 }] {
        let engine = engine(EngineConfig::default());
        let (mut sum, mut of_rare) = (0.0, 0.0);
        for seed in 0..COUNT {
            let heard = generate(&engine, request(law, seed));
            let weight = heard.outcome().log_weight.expect("an estimate").exp();
            sum += weight;
            of_rare += if text(&heard).starts_with("000") {
                weight
            } else {
                0.0
            };
        }
        let (estimate, rare) = (sum / COUNT as f64, of_rare / COUNT as f64);
        assert!((estimate - Z).abs() < 0.03, "{law:?}: {estimate}");
        assert!((rare - 0.005).abs() < 0.002, "{law:?}: {rare}");
        wait_until(&engine, |stats| stats.blocks_used == 0 && stats.running == 0);
    }
}

#[test]
fn a_chain_has_the_law_of_its_steps() {
    let engine = engine(EngineConfig::default());
    let shares = shares(&engine, |seed| request(mcmc(2, Cuts::Restart), seed), COUNT);
    let rare = 0.5 * 0.2525 + 0.7475 / 200.0;
    let other = (1.0 - rare) / 4.0;
    let law = [
        ("000", rare),
        ("100", other),
        ("101", other),
        ("110", other),
        ("111", other),
    ];
    agrees(&shares, &law, COUNT);
    wait_until(&engine, |stats| stats.blocks_used == 0 && stats.running == 0);
}

#[test]
fn an_answer_says_how_it_came_about() {
    let engine = engine(EngineConfig::default());
    let outcome = |law| generate(&engine, request(law, 3)).outcome().clone();
    let particles = outcome(smc(6));
    assert_eq!((particles.law, particles.finish), (LawTag::Smc, Finish::Stop));
    assert!(matches!(
        particles.diagnostics,
        Some(Diagnostics::Particles { particles: 6, .. })
    ));
    assert_eq!(outcome(LawChoice::Sir { candidates: 2 }).law, LawTag::Sir);
    for cuts in [Cuts::Restart, Cuts::Uniform, Cuts::Priority] {
        let chain = outcome(mcmc(7, cuts));
        assert_eq!((chain.law, chain.log_weight), (LawTag::Mcmc, None));
        assert!(matches!(chain.diagnostics, Some(Diagnostics::Chain { steps: 7, moves }) if moves <= 7));
    }
    let adaptive = outcome(LawChoice::Asap);
    assert_eq!((adaptive.law, adaptive.attempts), (LawTag::Asap, 1));
    assert!(adaptive.log_weight.is_some_and(|weight| weight <= 0.0));
}

/// With what later texts of one key have learned, the rare text becomes as rare as it is.
#[test]
fn texts_teach_those_after_them() {
    let engine = engine(EngineConfig::default());
    let first = request(LawChoice::Asap, 0);
    let adaptive = |seed| Request {
        share_attempts: true,
        sampling: Sampling::seeded(seed),
        ..first.clone()
    };
    let rare = (0..400).filter(|&seed| text(&generate(&engine, adaptive(seed))).starts_with("000"));
    assert!(rare.count() < 20, "the local law has 200 of them");
}

#[test]
fn several_answers_of_one_request_are_all_whole() {
    let engine = engine(EngineConfig::default());
    for law in [smc(4), mcmc(3, Cuts::Uniform), LawChoice::Asap] {
        let request = Request {
            samples: 3,
            ..request(law, 5)
        };
        let (senders, events): (Vec<_>, Vec<_>) = (0..3).map(|_| channel()).unzip();
        let sink = |sender: std::sync::mpsc::Sender<Event>| -> Sink {
            Box::new(move |event| sender.send(event).is_ok())
        };
        let _tickets = engine
            .submit_all(request, senders.into_iter().map(sink).collect())
            .unwrap();
        for events in events {
            let heard: Vec<Event> = events.iter().collect();
            assert_eq!(heard.len(), 4, "{law:?}: {heard:?}");
            assert!(matches!(heard.last(), Some(Event::Done(outcome)) if outcome.completion_tokens == 4));
        }
    }
    wait_until(&engine, |stats| stats.blocks_used == 0 && stats.running == 0);
}

#[test]
fn who_leaves_takes_all_texts_along() {
    let engine = engine(EngineConfig::default());
    for law in [
        smc(16),
        LawChoice::Sir { candidates: 16 },
        mcmc(1000, Cuts::Priority),
    ] {
        for seed in 0..20 {
            listen(&engine, request(law, seed)).cancel();
        }
    }
    wait_until(&engine, |stats| {
        stats.blocks_used == 0 && stats.running == 0 && stats.waiting == 0
    });
}

/// A small cache makes branches take turns; the texts of a seed stay.
#[test]
fn a_small_cache_changes_no_text() {
    let wide = engine(EngineConfig::default());
    let narrow = engine(EngineConfig {
        blocks: 12,
        block_size: 2,
        max_running: 3,
        ..EngineConfig::default()
    });
    for law in [smc(8), mcmc(5, Cuts::Uniform)] {
        for seed in 0..20 {
            let texts = [&wide, &narrow].map(|engine| text(&generate(engine, request(law, seed))));
            assert_eq!(texts[0], texts[1], "{law:?} {seed}");
        }
    }
}

#[test]
fn numbers_that_a_law_cannot_have_are_refused_by_name() {
    let engine = engine(EngineConfig {
        max_branches: 8,
        ..EngineConfig::default()
    });
    let threshold = |threshold| LawChoice::Smc {
        particles: 2,
        threshold,
        resampling: Resampling::Residual,
    };
    for (request, name) in [
        (request(smc(0), 1), "particles"),
        (request(smc(9), 1), "particles"),
        (request(LawChoice::Sir { candidates: 0 }, 1), "particles"),
        (request(threshold(0.0), 1), "ess_threshold"),
        (request(threshold(f64::NAN), 1), "ess_threshold"),
        (request(threshold(1.1), 1), "ess_threshold"),
        (request(mcmc(0, Cuts::Restart), 1), "steps"),
        (
            Request {
                samples: 8,
                ..request(mcmc(1, Cuts::Restart), 1)
            },
            "samples",
        ),
        (
            Request {
                best_of: Some(2),
                ..request(smc(2), 1)
            },
            "best_of",
        ),
        (
            Request {
                on_budget: OnBudget::Cut,
                ..request(smc(2), 1)
            },
            "on_budget",
        ),
        (
            Request {
                sampling: Sampling {
                    temperature: 0.0,
                    ..Sampling::seeded(1)
                },
                ..request(LawChoice::Asap, 1)
            },
            "temperature",
        ),
    ] {
        match engine.check(&request) {
            Err(Refusal::Invalid { name: found, .. }) => assert_eq!(found, name),
            other => panic!("{name}: {other:?}"),
        }
    }
}

/// Without a grammar there is nothing to condition on.
#[test]
fn without_a_grammar_every_law_is_the_models_own() {
    let engine = engine(EngineConfig::default());
    for law in [smc(4), mcmc(2, Cuts::Restart), LawChoice::Asap] {
        let heard = generate(
            &engine,
            Request {
                grammar: None,
                ..request(law, 2)
            },
        );
        assert_eq!(heard.outcome().law, LawTag::Raw);
    }
}

/// A filter that leaves nothing allowed is a text that cannot be; where all are such, the answer fails.
#[test]
fn texts_that_cannot_be_have_no_weight() {
    let engine = engine(EngineConfig::default());
    let filtered = |law, seed| Request {
        sampling: Sampling {
            top_k: Some(1),
            ..Sampling::seeded(seed)
        },
        ..request(law, seed)
    };
    // After a leading 0 the likeliest token is 1, which is not allowed; of two equal ones the first is kept.
    for law in [smc(4), mcmc(3, Cuts::Restart)] {
        let heard = generate(&engine, filtered(law, 1));
        assert!(
            matches!(
                heard.failure(),
                Some(EngineError::DeadEnd { .. } | EngineError::Unanswered)
            ),
            "{heard:?}"
        );
    }
    wait_until(&engine, |stats| stats.blocks_used == 0 && stats.running == 0);
}

fn beam(width: usize) -> LawChoice {
    LawChoice::Beam {
        width,
        length_penalty: 0.0,
        patience: None,
    }
}

/// The masked row after a leading 0 hides that 000 is unlikely; a search by the model's own weights is not misled, and a wide
/// one finds all texts in order.
#[test]
fn a_search_finds_the_likeliest_texts() {
    let engine = engine(EngineConfig::default());
    let narrow = generate(&engine, request(beam(2), 0));
    assert!(text(&narrow).starts_with('1'));
    let outcome = narrow.outcome();
    assert_eq!(outcome.law, LawTag::Beam);
    let Some(Diagnostics::Beam { width: 2, score }) = outcome.diagnostics else {
        panic!("{outcome:?}");
    };
    assert!((score - 0.125_f64.ln()).abs() < 1e-5 && (score - outcome.log_probability).abs() < 1e-9);
    let wide = Request {
        samples: 5,
        ..request(beam(5), 0)
    };
    let (senders, events): (Vec<_>, Vec<_>) = (0..5).map(|_| channel()).unzip();
    let sink = |sender: std::sync::mpsc::Sender<Event>| -> Sink {
        Box::new(move |event| sender.send(event).is_ok())
    };
    let _tickets = engine
        .submit_all(wide, senders.into_iter().map(sink).collect())
        .unwrap();
    let texts: Vec<String> = events
        .iter()
        .map(|events| {
            let heard = crate::rig::Heard {
                events: events.iter().collect(),
            };
            text(&heard)
        })
        .collect();
    assert_eq!(texts[4], "000");
    let distinct: std::collections::BTreeSet<&String> = texts.iter().collect();
    assert_eq!(distinct.len(), 5, "{texts:?}");
    wait_until(&engine, |stats| stats.blocks_used == 0 && stats.running == 0);
}

/// Without a grammar texts end where the model ends them, or are as long as they may be.
#[test]
fn a_search_needs_no_grammar() {
    let engine = engine(EngineConfig::default());
    for (max_tokens, length) in [(10, 4), (2, 2)] {
        let free = Request {
            grammar: None,
            max_tokens,
            ..request(beam(3), 0)
        };
        let heard = generate(&engine, free);
        assert_eq!(heard.outcome().completion_tokens, length, "{heard:?}");
    }
    wait_until(&engine, |stats| stats.blocks_used == 0 && stats.running == 0);
}

/// Particles that wait for each other give their places to those that they wait for, whoever has the others.
#[test]
fn many_populations_in_a_small_batch_all_end() {
    let engine = engine(EngineConfig {
        max_running: 4,
        blocks: 64,
        block_size: 2,
        ..EngineConfig::default()
    });
    let laws = [smc(8), mcmc(4, Cuts::Uniform), beam(6), smc(16)];
    let listeners: Vec<_> = (0..24)
        .map(|seed| listen(&engine, request(laws[seed as usize % 4], seed)))
        .collect();
    for listener in listeners {
        assert_eq!(listener.wait().outcome().completion_tokens, 4);
    }
    wait_until(&engine, |stats| stats.blocks_used == 0 && stats.running == 0);
}
