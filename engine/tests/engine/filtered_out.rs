//! Filters that leave nothing of what a constraint allows, under the laws and searches whose filters cut the
//! model before the mask; and the tags of answers that such filters have shaped.

use crate::laws::{agrees, shares, text, vocabulary};
use crate::rig::{generate, grammar_over, wait_until};
use crate::searches::{EXACT, beam};
use lexiform_engine::{
    Cuts, Engine, EngineConfig, EngineError, Fallback, Law, LawTag, Request, Resampling, Sampling,
    ScriptedModel, Search, Speculation, Task, TokenProposal,
};

/// Three digits; after a 0, another 0 is unlikely.
fn script(prefix: &[u32]) -> Vec<f32> {
    let probabilities: [f32; 3] = match prefix[1..] {
        [] | [1, ..] if prefix.len() < 4 => [0.5, 0.5, 0.0],
        [0] => [0.1, 0.9, 0.0],
        [0, _] => [0.4, 0.6, 0.0],
        _ => [0.0, 0.0, 1.0],
    };
    probabilities.map(f32::ln).to_vec()
}

fn engine() -> Engine {
    let model = ScriptedModel::new(3, 100, script);
    Engine::start(Box::new(model), None, vocabulary(), EngineConfig::default()).unwrap()
}

/// A request whose filter removes a 0 after a 0.
fn request(task: impl Into<Task>, pattern: &str, seed: u64) -> Request {
    Request::new(vec![0], 10)
        .task(task)
        .grammar(Some(grammar_over(&vocabulary(), pattern)))
        .sampling(Sampling {
            min_p: 0.2,
            ..Sampling::seeded(seed)
        })
}

/// Texts none of which the filter leaves.
const NONE: &str = "00[01]";
/// Texts of which it leaves four, all equally likely.
const SOME: &str = "000|1[01][01]";
const LEFT: [(&str, f64); 4] = [("100", 0.25), ("101", 0.25), ("110", 0.25), ("111", 0.25)];
/// What is drawn where the filter cuts after the mask.
const LOCAL: [(&str, f64); 2] = [("000", 0.4), ("001", 0.6)];

fn global(max_attempts: u32, fallback: Fallback) -> Law {
    Law::Global {
        max_attempts,
        fallback,
        share_attempts: false,
    }
}

/// All laws about the model, with the tags of their answers under a filter.
fn laws() -> Vec<(Law, LawTag)> {
    let mut laws = vec![
        (global(100, Fallback::Fail), LawTag::GlobalExactFiltered),
        (
            Law::Asap {
                share_attempts: false,
            },
            LawTag::AsapFiltered,
        ),
        (
            Law::Aprad {
                exponent: 1,
                max_errors: 100,
            },
            LawTag::ApradFiltered,
        ),
        (
            Law::Mcmc {
                steps: 4,
                cuts: Cuts::Restart,
            },
            LawTag::McmcFiltered,
        ),
    ];
    for proposal in [
        TokenProposal::Masked,
        TokenProposal::Asked,
        TokenProposal::Twisted,
    ] {
        let smc = Law::Smc {
            particles: 16,
            threshold: 0.5,
            resampling: Resampling::Systematic,
            proposal,
        };
        let sir = Law::Sir {
            candidates: 16,
            proposal,
        };
        laws.extend([(smc, LawTag::SmcFiltered), (sir, LawTag::SirFiltered)]);
    }
    laws
}

fn filtered_out() -> EngineError {
    EngineError::FilteredOut {
        filters: vec!["min_p"],
    }
}

#[test]
fn a_law_whose_filters_leave_nothing_names_them() {
    let engine = engine();
    for (law, _) in laws() {
        for seed in 0..5 {
            for drafts in [Speculation::none(), Speculation::all()] {
                let heard = generate(&engine, request(law, NONE, seed).speculation(drafts));
                assert_eq!(heard.failure(), Some(&filtered_out()), "{law:?}");
            }
        }
    }
    let both = request(global(100, Fallback::Fail), NONE, 1).sampling(Sampling {
        top_k: Some(1),
        top_p: 0.5,
        ..Sampling::seeded(1)
    });
    let EngineError::FilteredOut { filters } = generate(&engine, both).failure().unwrap().clone() else {
        panic!("another failure");
    };
    assert_eq!(filters, ["top_k", "top_p"]);
    wait_until(&engine, |stats| stats.blocks_used == 0 && stats.running == 0);
}

#[test]
fn a_search_whose_filters_leave_nothing_names_them() {
    let engine = engine();
    let best_first = Search::BestFirstBeam {
        width: 2,
        length_penalty: 1.0,
    };
    let diverse = Search::DiverseBeam {
        width: 2,
        groups: 2,
        diversity: 1.0,
        length_penalty: 1.0,
    };
    let a_star = Search::AStarEsque {
        width: 2,
        length_penalty: 1.0,
        distance_weight: 1.0,
        look_ahead: 2,
        must_contain: Vec::new(),
        must_not_contain: Vec::new(),
    };
    for search in [beam(2, 1.0), best_first, diverse, EXACT, a_star] {
        let task = |answers| Task::Search {
            search: search.clone(),
            answers,
        };
        let heard = generate(&engine, request(task(1), NONE, 1));
        assert_eq!(heard.failure(), Some(&filtered_out()), "{search:?}");
        let heard = generate(&engine, request(task(1), SOME, 1));
        assert!(LEFT.iter().any(|left| left.0 == text(&heard)), "{search:?}");
    }
    wait_until(&engine, |stats| stats.blocks_used == 0 && stats.running == 0);
}

/// The way out of attempts that fail is taken: a text of the local law with the filter after the mask,
/// whether the attempts have learned that there is nothing, or ran out before, and with the weight of that
/// law.
#[test]
fn a_way_out_draws_locally_what_filters_leave_of_the_allowed_tokens() {
    let engine = engine();
    let count = 400;
    for max_attempts in [1, 100] {
        for fallback in [Fallback::Weighted, Fallback::Chain { steps: 5 }] {
            let law = global(max_attempts, fallback);
            let shares = shares(&engine, |seed| request(law, NONE, seed), count);
            agrees(&shares, &LOCAL, count);
            for seed in 0..20 {
                let plain = generate(&engine, request(law, NONE, seed));
                let outcome = plain.outcome();
                assert_eq!(outcome.law, LawTag::LocalFiltered);
                let weight = outcome.log_weight.expect("the end is weighed");
                assert!((weight - 0.05_f64.ln()).abs() < 1e-5, "{weight}");
                let share = LOCAL.iter().find(|law| law.0 == text(&plain)).unwrap().1;
                assert!((outcome.log_probability - (0.05 * share).ln()).abs() < 1e-5);
                assert!(outcome.attempts > 1, "{outcome:?}");
            }
        }
    }
    wait_until(&engine, |stats| stats.blocks_used == 0 && stats.running == 0);
}

#[test]
fn what_filters_shape_is_told_by_the_tag() {
    let engine = engine();
    let count = 400;
    for (law, tag) in laws() {
        let heard = generate(&engine, request(law, SOME, 3));
        assert_eq!(heard.outcome().law, tag, "{law:?}");
        let plain = request(law, SOME, 3).sampling(Sampling::seeded(3));
        let own = generate(&engine, plain).outcome().law;
        assert_eq!(own.filtered(), tag);
        assert_ne!(own, tag);
    }
    let law = global(100, Fallback::Fail);
    agrees(
        &shares(&engine, |seed| request(law, SOME, seed), count),
        &LEFT,
        count,
    );
    for (fallback, tag) in [
        (Fallback::Weighted, LawTag::GlobalWeightedFiltered),
        (Fallback::Chain { steps: 3 }, LawTag::McmcFiltered),
    ] {
        let mut tags = Vec::new();
        for seed in 0..40 {
            let heard = generate(&engine, request(global(1, fallback), SOME, seed));
            // Nothing is told of a text that was given up.
            let texts = LEFT.iter().map(|left| left.0).chain(["000"]);
            assert!(texts.clone().any(|whole| whole == text(&heard)), "{heard:?}");
            tags.push(heard.outcome().law);
        }
        assert!(tags.contains(&tag), "{fallback:?} {tags:?}");
        assert!(
            tags.contains(&LawTag::GlobalExactFiltered),
            "{fallback:?} {tags:?}"
        );
    }
}
