//! Laws that draw several texts for an answer: particles, chains, and texts from which later ones learn.

use crate::laws::{agrees, engine, request, shares, text};
use crate::rig::{Redraw, generate, listen, wait_until};
use lexiform_engine::{
    Cuts, Diagnostics, EngineConfig, EngineError, Event, Finish, Law, LawTag, MaskHook, OnBudget, Resampling,
    Sampling, Sink, TokenProposal,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;

const COUNT: u64 = 2000;
/// The probability that the model writes a text of the grammar.
const Z: f64 = 0.505;

fn smc(particles: usize) -> Law {
    Law::Smc {
        particles,
        threshold: 0.5,
        resampling: Resampling::Systematic,
        proposal: TokenProposal::Masked,
    }
}

fn sir(candidates: usize) -> Law {
    Law::Sir {
        candidates,
        proposal: TokenProposal::Masked,
    }
}

/// The same law with another proposal.
fn proposing(law: Law, proposal: TokenProposal) -> Law {
    match law {
        Law::Smc {
            particles,
            threshold,
            resampling,
            ..
        } => Law::Smc {
            particles,
            threshold,
            resampling,
            proposal,
        },
        Law::Sir { candidates, .. } => Law::Sir { candidates, proposal },
        other => other,
    }
}

/// Asserts that the mean of these numbers is as expected, to within five standard deviations of such a mean.
pub(crate) fn has_mean(numbers: &[f64], expected: f64, what: &str) {
    let count = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / count;
    let variance = numbers.iter().map(|number| (number - mean).powi(2)).sum::<f64>() / count;
    let error = 5.0 * (variance / count).sqrt() + 1e-9;
    assert!(
        (mean - expected).abs() < error,
        "{what}: {mean} ± {error}, expected {expected}"
    );
}

fn mcmc(steps: u32, cuts: Cuts) -> Law {
    Law::Mcmc { steps, cuts }
}

/// The estimate of `Z` has that mean, and weighted by it each text its probability, with every proposal.
#[test]
fn particles_are_properly_weighted() {
    for law in [smc(4), sir(3)] {
        for proposal in [
            TokenProposal::Masked,
            TokenProposal::Asked,
            TokenProposal::Twisted,
        ] {
            let law = proposing(law, proposal);
            let engine = engine(EngineConfig::default());
            let (mut weights, mut of_rare, mut of_all) = (Vec::new(), Vec::new(), Vec::new());
            for seed in 0..COUNT {
                let heard = generate(&engine, request(law, seed));
                let outcome = heard.outcome();
                let weight = outcome.log_weight.expect("an estimate").exp();
                let is_rare = text(&heard).starts_with("000");
                weights.push(weight);
                of_rare.push(if is_rare { weight } else { 0.0 });
                let rare = outcome.particles.iter().filter(|particle| {
                    let tokens = particle.tokens.as_ref();
                    tokens.is_some_and(|tokens| tokens.starts_with(&[0, 0, 0]))
                });
                let sum: f64 = rare.map(|particle| particle.log_weight.exp()).sum();
                of_all.push(sum / outcome.particles.len() as f64);
            }
            has_mean(&weights, Z, &format!("{law:?}"));
            has_mean(&of_rare, 0.005, &format!("{law:?}, the answer"));
            has_mean(&of_all, 0.005, &format!("{law:?}, all texts"));
            wait_until(&engine, |stats| stats.blocks_used == 0 && stats.running == 0);
        }
    }
}

/// A grammar that is asked computes no mask, and no text without an answer.
#[test]
fn who_is_asked_computes_no_mask() {
    let masks = Arc::new(AtomicUsize::new(0));
    let counted = {
        let masks = masks.clone();
        let hook: MaskHook = Arc::new(move |_| {
            masks.fetch_add(1, Ordering::Relaxed);
            Ok(())
        });
        crate::laws::hooked(EngineConfig::default(), hook)
    };
    let law = |proposal| proposing(smc(4), proposal);
    for seed in 0..20 {
        let heard = generate(&counted, request(law(TokenProposal::Asked), seed));
        assert_eq!(heard.outcome().finish, Finish::Stop);
    }
    assert_eq!(masks.load(Ordering::Relaxed), 0);
    generate(&counted, request(law(TokenProposal::Masked), 1));
    assert!(masks.load(Ordering::Relaxed) > 0);
}

/// Where texts teach one another, later ones are begun less often where little is left.
#[test]
fn a_twist_makes_estimates_vary_less() {
    let spread = |proposal| {
        let engine = engine(EngineConfig::default());
        let weight = |seed| {
            let heard = generate(&engine, request(proposing(sir(8), proposal), seed));
            heard.outcome().log_weight.expect("an estimate").exp()
        };
        (0..400).map(|seed| (weight(seed) - Z).powi(2)).sum::<f64>() / 400.0
    };
    let (masked, twisted) = (spread(TokenProposal::Masked), spread(TokenProposal::Twisted));
    assert!(twisted < 0.9 * masked, "{twisted} {masked}");
}

/// All texts of a population are told with their weights, whose mean is the estimate.
#[test]
fn an_answer_has_the_texts_that_it_was_drawn_from() {
    let engine = engine(EngineConfig::default());
    for law in [smc(6), sir(6)] {
        let heard = generate(&engine, request(law, 9));
        let outcome = heard.outcome();
        assert_eq!(outcome.particles.len(), 6);
        let weights: Vec<f64> = outcome
            .particles
            .iter()
            .map(|particle| particle.log_weight.exp())
            .collect();
        let mean = weights.iter().sum::<f64>() / 6.0;
        assert!((mean.ln() - outcome.log_weight.unwrap()).abs() < 1e-9);
        let squares: f64 = weights.iter().map(|weight| weight * weight).sum();
        let Some(Diagnostics::Particles { effective_size, .. }) = outcome.diagnostics else {
            panic!("{outcome:?}");
        };
        assert!(((6.0 * mean).powi(2) / squares - effective_size).abs() < 1e-6);
        let answer: Vec<u32> = heard.tokens();
        let is_it = |tokens: &&Arc<Vec<u32>>| tokens.starts_with(&answer);
        let whole = outcome
            .particles
            .iter()
            .filter_map(|particle| particle.tokens.as_ref());
        assert!(whole.clone().all(|tokens| tokens.len() == 4));
        assert!(whole.filter(is_it).count() > 0);
    }
    assert!(
        generate(&engine, request(Law::Local, 1))
            .outcome()
            .particles
            .is_empty()
    );
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
    assert_eq!(outcome(sir(2)).law, LawTag::Sir);
    for cuts in [Cuts::Restart, Cuts::Uniform, Cuts::Priority] {
        let chain = outcome(mcmc(7, cuts));
        assert_eq!((chain.law, chain.log_weight), (LawTag::Mcmc, None));
        assert!(matches!(chain.diagnostics, Some(Diagnostics::Chain { steps: 7, moves }) if moves <= 7));
    }
    let adaptive = outcome(Law::Asap {
        share_attempts: false,
    });
    assert_eq!((adaptive.law, adaptive.attempts), (LawTag::Asap, 1));
    assert!(adaptive.log_weight.is_some_and(|weight| weight <= 0.0));
}

/// With what later texts of one key have learned, the rare text becomes as rare as it is.
#[test]
fn texts_teach_those_after_them() {
    let engine = engine(EngineConfig::default());
    let first = request(
        Law::Asap {
            share_attempts: false,
        },
        0,
    );
    let adaptive = |seed| {
        first
            .clone()
            .share_attempts(true)
            .sampling(Sampling::seeded(seed))
    };
    let rare = (0..400).filter(|&seed| text(&generate(&engine, adaptive(seed))).starts_with("000"));
    assert!(rare.count() < 20, "the local law has 200 of them");
}

#[test]
fn several_answers_of_one_request_are_all_whole() {
    let engine = engine(EngineConfig::default());
    for law in [
        smc(4),
        mcmc(3, Cuts::Uniform),
        Law::Asap {
            share_attempts: false,
        },
    ] {
        let request = request(law, 5).answers(3);
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
    for law in [smc(16), sir(16), mcmc(1000, Cuts::Priority)] {
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
    for law in [
        smc(8),
        proposing(smc(8), TokenProposal::Asked),
        mcmc(5, Cuts::Uniform),
    ] {
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
    let threshold = |threshold| Law::Smc {
        particles: 2,
        threshold,
        resampling: Resampling::Residual,
        proposal: TokenProposal::Masked,
    };
    for (request, name) in [
        (request(smc(0), 1), "particles"),
        (request(smc(9), 1), "particles"),
        (request(sir(0), 1), "particles"),
        (request(threshold(0.0), 1), "ess_threshold"),
        (request(threshold(f64::NAN), 1), "ess_threshold"),
        (request(threshold(1.1), 1), "ess_threshold"),
        (request(mcmc(0, Cuts::Restart), 1), "steps"),
        (request(mcmc(1, Cuts::Restart), 1).answers(8), "answers"),
        (request(smc(2), 1).best_of(Some(2)), "best_of"),
        (request(smc(2), 1).on_budget(OnBudget::Cut), "on_budget"),
        (
            request(
                Law::Asap {
                    share_attempts: false,
                },
                1,
            )
            .sampling(Sampling {
                temperature: 0.0,
                ..Sampling::seeded(1)
            }),
            "temperature",
        ),
    ] {
        match engine.check(&request) {
            Err(refusal) => assert_eq!(refusal.field(), Some(name)),
            Ok(()) => panic!("{name}"),
        }
    }
}

/// Without a grammar there is nothing to condition on.
#[test]
fn without_a_grammar_every_law_is_the_models_own() {
    let engine = engine(EngineConfig::default());
    for law in [
        smc(4),
        mcmc(2, Cuts::Restart),
        Law::Asap {
            share_attempts: false,
        },
    ] {
        let heard = generate(&engine, request(law, 2).grammar(None));
        assert_eq!(heard.outcome().law, LawTag::Raw);
    }
}

/// A filter that leaves nothing allowed is a text that cannot be; where all are such, the answer fails.
#[test]
fn texts_that_cannot_be_have_no_weight() {
    let engine = engine(EngineConfig::default());
    let filtered = |law, seed| {
        request(law, seed).sampling(Sampling {
            top_k: Some(1),
            ..Sampling::seeded(seed)
        })
    };
    // After a leading 0 the likeliest token is 1, which is not allowed; of two equal ones the first is kept.
    for law in [
        smc(4),
        proposing(smc(4), TokenProposal::Asked),
        proposing(smc(4), TokenProposal::Twisted),
        mcmc(3, Cuts::Restart),
    ] {
        let heard = generate(&engine, filtered(law, 1));
        let filters = vec!["top_k"];
        assert_eq!(heard.failure(), Some(&EngineError::FilteredOut { filters }));
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
    let laws = [smc(8), mcmc(4, Cuts::Uniform), smc(6), smc(16)];
    let listeners: Vec<_> = (0..24)
        .map(|seed| listen(&engine, request(laws[seed as usize % 4], seed)))
        .collect();
    for listener in listeners {
        assert_eq!(listener.wait().outcome().completion_tokens, 4);
    }
    wait_until(&engine, |stats| stats.blocks_used == 0 && stats.running == 0);
}
