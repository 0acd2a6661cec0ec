//! Monitors: programs of the caller that are queried about tokens, with or without a grammar.

use crate::counted::Gate;
use crate::laws::{agrees, engine, request, shares, text, vocabulary};
use crate::rig::{generate, grammar_over, listen, wait_until};
use lexiform_engine::{
    Engine, EngineConfig, EngineError, Finish, Law, LawTag, Mirostat, MirostatVersion, MonitorProblem,
    Reporting, Request, Resampling, Sampling, Speculation, TokenProposal, Watched,
};
use lexiform_law::monitor::{Failure, PerText, Written};
use std::sync::Arc;
use std::time::Duration;

const COUNT: u64 = 2000;

/// A monitor that a function of the text decides.
fn watched(
    name: &str,
    function: impl Fn(Written<'_>) -> Result<bool, Failure> + Send + Sync + 'static,
) -> Watched {
    Watched::new(name, Arc::new(PerText::new(&vocabulary(), function)))
}

/// Texts that do not begin with 11.
fn no_twins() -> Watched {
    watched("no twins", |written| match written {
        Written::Prefix(text) | Written::Whole(text) => Ok(!text.starts_with(b"11")),
    })
}

/// A request with monitors, whose texts are 000, 100 and 101.
fn monitored(law: Law, seed: u64) -> Request {
    request(law, seed).monitors(vec![no_twins()])
}

const LOCAL: [(&str, f64); 3] = [("000", 0.5), ("100", 0.25), ("101", 0.25)];

#[test]
fn the_law_is_that_of_the_model_inside_grammar_and_monitors() {
    let engine = engine(EngineConfig::default());
    let local = |seed| monitored(Law::Local, seed);
    agrees(&shares(&engine, local, COUNT), &LOCAL, COUNT);
    let heard = generate(&engine, local(1));
    let outcome = heard.outcome();
    assert_eq!((outcome.law, outcome.finish), (LawTag::Local, Finish::Stop));
    // A grammar serves as a monitor, and a monitor without a grammar.
    for request in [
        |seed| {
            request(Law::Local, seed).grammar(None).monitors(vec![
                no_twins(),
                Watched::new("digits", Arc::new(grammar_over(&vocabulary(), "000|1[01][01]"))),
            ])
        },
        |seed| {
            request(Law::Local, seed).monitors(vec![Watched::new(
                "digits",
                Arc::new(grammar_over(&vocabulary(), "0+|10[01]")),
            )])
        },
    ] {
        agrees(&shares(&engine, request, COUNT), &LOCAL, COUNT);
    }
    wait_until(&engine, |stats| stats.blocks_used == 0 && stats.running == 0);
}

/// The text of a seed is the same with drafts, in a small cache, and beside others.
#[test]
fn drafts_and_company_leave_the_text_of_a_seed() {
    let wide = engine(EngineConfig::default());
    let narrow = engine(EngineConfig {
        blocks: 12,
        block_size: 2,
        max_running: 3,
        ..EngineConfig::default()
    });
    let mut accepted = 0;
    for seed in 0..100 {
        let plain = monitored(Law::Local, seed);
        let drafted = plain
            .clone()
            .speculation(Speculation::all())
            .reference(vec![1, 0, 1]);
        let expected = text(&generate(&wide, plain.clone()));
        for engine in [&wide, &narrow] {
            let others: Vec<_> = (0..3)
                .map(|more| listen(engine, monitored(Law::Local, more)))
                .collect();
            let heard = generate(engine, drafted.clone());
            accepted += heard.outcome().accepted;
            assert_eq!(text(&heard), expected, "{seed}");
            assert_eq!(text(&generate(engine, plain.clone())), expected, "{seed}");
            others.into_iter().for_each(|other| drop(other.wait()));
        }
    }
    assert!(accepted > 0, "no draft was accepted");
}

#[test]
fn weights_lead_to_the_law_of_whole_texts() {
    let engine = engine(EngineConfig::default());
    let smc = |proposal| Law::Smc {
        particles: 3,
        threshold: 0.5,
        resampling: Resampling::Systematic,
        proposal,
    };
    for law in [Law::Local, smc(TokenProposal::Masked), smc(TokenProposal::Asked)] {
        let (mut weights, mut of_one) = (Vec::new(), Vec::new());
        for seed in 0..COUNT {
            let request = monitored(law, seed).reporting(Reporting {
                weigh_end: true,
                ..Reporting::default()
            });
            let heard = generate(&engine, request);
            let weight = heard.outcome().log_weight.expect("a weight").exp();
            weights.push(weight);
            of_one.push(if text(&heard).starts_with("101") {
                weight
            } else {
                0.0
            });
        }
        // P(000) + P(100) + P(101), and the last of them.
        crate::populations::has_mean(&weights, 0.255, &format!("{law:?}"));
        crate::populations::has_mean(&of_one, 0.125, &format!("{law:?}, 101"));
    }
    let filtered = monitored(Law::Local, 1)
        .sampling(Sampling {
            top_p: 0.9,
            ..Sampling::seeded(1)
        })
        .reporting(Reporting {
            weigh_end: true,
            ..Reporting::default()
        });
    assert_eq!(generate(&engine, filtered).outcome().log_weight, None);
}

/// A plain request beside one whose monitor misbehaves.
fn fails_alone(engine: &Engine, bad: Request) -> EngineError {
    let beside: Vec<_> = (0..4)
        .map(|seed| listen(engine, request(Law::Local, seed)))
        .collect();
    let error = generate(engine, bad).failure().cloned().expect("a failure");
    for listener in beside {
        assert_eq!(listener.wait().outcome().finish, Finish::Stop);
    }
    let after = generate(engine, monitored(Law::Local, 3));
    assert_eq!(after.outcome().finish, Finish::Stop);
    let stats = wait_until(engine, |stats| stats.blocks_used == 0 && stats.running == 0);
    assert_eq!(stats.panics, 0);
    error
}

fn problem(error: EngineError, name: &str) -> MonitorProblem {
    match error {
        EngineError::Monitor { monitor, problem } if monitor == name => problem,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_monitor_that_panics_or_fails_fails_its_request_alone() {
    let engine = engine(EngineConfig::default());
    let with = |monitor: Watched| // To print where a panic came from may take a while.
        request(Law::Local, 1).monitors(vec![no_twins(), monitor]).monitor_time(Duration::from_secs(60));
    let panics = watched("panics", |written| match written {
        Written::Prefix(text) if text.len() > 1 => panic!("no idea of {} bytes", text.len()),
        _ => Ok(true),
    });
    let panicked = problem(fails_alone(&engine, with(panics)), "panics");
    assert_eq!(
        panicked,
        MonitorProblem::Failed("panicked: no idea of 2 bytes".to_owned())
    );
    let fails = watched("fails", |_| Err(Failure("the database is gone".to_owned())));
    let failed = problem(fails_alone(&engine, with(fails)), "fails");
    assert_eq!(failed, MonitorProblem::Failed("the database is gone".to_owned()));
}

/// The monitor has no answer until all is over; the request ends after its time, and others do not wait for
/// it.
#[test]
fn a_slow_monitor_fails_its_request_alone() {
    let engine = engine(EngineConfig::default());
    let gate = Gate::default();
    let held = gate.clone();
    let slow = watched("slow", move |written| {
        if matches!(written, Written::Prefix(text) if text.len() > 1) {
            held.pass();
        }
        Ok(true)
    });
    let allowed = Duration::from_millis(100);
    let request = // It is alone: on a busy machine, a quick one beside it may be the late one.
        request(Law::Local, 1).monitors(vec![slow]).monitor_time(allowed);
    let found = problem(fails_alone(&engine, request), "slow");
    assert_eq!(found, MonitorProblem::Slow { allowed });
    gate.open(u64::MAX);
}

/// A monitor that is late for its pass is not too late: its sequence sits out, and the text is the same.
#[test]
fn a_late_answer_is_as_good() {
    let engine = engine(EngineConfig::default());
    let late = || {
        watched("late", |written| {
            std::thread::sleep(Duration::from_millis(15));
            match written {
                Written::Prefix(text) | Written::Whole(text) => Ok(!text.starts_with(b"11")),
            }
        })
    };
    for seed in 0..6 {
        let request = request(Law::Local, seed).monitors(vec![late()]);
        let expected = text(&generate(&engine, monitored(Law::Local, seed)));
        assert_eq!(text(&generate(&engine, request)), expected, "{seed}");
    }
}

/// The grammar allows 0 and 1 here, the monitors one each: nothing is left, and nothing is written that one
/// of them forbids.
#[test]
fn where_nothing_is_allowed_the_monitor_is_named() {
    let engine = engine(EngineConfig::default());
    let ends = |name: &str, digit: u8| {
        watched(name, move |written| match written {
            Written::Prefix(text) => Ok(text.len() < 3 || text[2] == digit),
            Written::Whole(_) => Ok(true),
        })
    };
    let request = |law| {
        request(law, 1)
            .grammar(Some(grammar_over(&vocabulary(), "1[01][01]")))
            .monitors(vec![ends("ends in 0", b'0'), ends("ends in 1", b'1')])
    };
    // Whose no was the last depends on which token was drawn first.
    let EngineError::Monitor { monitor, problem } = fails_alone(&engine, request(Law::Local)) else {
        panic!("another failure");
    };
    assert_eq!(problem, MonitorProblem::Refused { generated: 2 });
    assert!(["ends in 0", "ends in 1"].contains(&&*monitor), "{monitor}");
    // For particles this is a text without weight, as a dead end is.
    let sir = Law::Sir {
        candidates: 3,
        proposal: TokenProposal::Masked,
    };
    let heard = generate(&engine, request(sir));
    assert!(
        matches!(heard.failure(), Some(EngineError::Monitor { .. })),
        "{heard:?}"
    );
}

#[test]
fn laws_that_need_masks_have_no_monitors() {
    let engine = engine(EngineConfig::default());
    let twisted = Law::Sir {
        candidates: 3,
        proposal: TokenProposal::Twisted,
    };
    for law in [
        crate::rig::global(3),
        Law::Asap {
            share_attempts: false,
        },
        twisted,
    ] {
        let refused = engine.check(&monitored(law, 1));
        assert!(
            matches!(&refused, Err(refusal) if refusal.field() == Some("monitors")),
            "{law:?}: {refused:?}"
        );
    }
    let mirostat = monitored(Law::Local, 1).sampling(Sampling {
        mirostat: Some(Mirostat {
            version: MirostatVersion::Two,
            tau: 5.0,
            eta: 0.1,
        }),
        ..Sampling::seeded(1)
    });
    let refused = engine.check(&mirostat);
    assert!(
        matches!(&refused, Err(refusal) if refusal.field() == Some("mirostat_mode")),
        "{refused:?}"
    );
}
