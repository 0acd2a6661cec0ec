//! Hosts outside the process: judges that are asked about several texts at once, and scores that tilt a law.

use crate::counted::Gate;
use crate::laws::{agrees, engine, request, shares, text, vocabulary};
use crate::populations::has_mean;
use crate::rig::{generate, global, listen, wait_until};
use lexiform_engine::{
    EngineConfig, EngineError, Finish, Law, MonitorProblem, Request, Resampling, Speculation, Tilt,
    TokenProposal, Watched,
};
use lexiform_law::monitor::{Failure, Judge, Judged, PerText, Question, Verdict, Written};
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

const COUNT: u64 = 2000;

/// A judge that a function decides; it notes how many texts it was asked about at a time.
struct Host<F> {
    function: F,
    asked: Arc<Mutex<Vec<usize>>>,
}

impl<F: Fn(&Question) -> Result<Verdict, Failure> + Send + Sync + 'static> Judge for Host<F> {
    fn judge(&self, texts: &[Question]) -> Result<Vec<Verdict>, Failure> {
        self.asked.lock().expect("no panic").push(texts.len());
        texts.iter().map(&self.function).collect()
    }

    fn together(&self) -> usize {
        4
    }
}

fn host(
    name: &str,
    function: impl Fn(&Question) -> Result<Verdict, Failure> + Send + Sync + 'static,
) -> (Watched, Arc<Mutex<Vec<usize>>>) {
    let asked = Arc::<Mutex<Vec<usize>>>::default();
    let host = Host {
        function,
        asked: asked.clone(),
    };
    let judged = Arc::new(Judged::new(&vocabulary(), host));
    (Watched::new(name, judged).remote(), asked)
}

fn no_twins(question: &Question) -> Result<Verdict, Failure> {
    Ok(match question.text.starts_with("11") {
        true => Verdict::Forbidden,
        false => Verdict::Open,
    })
}

/// The texts of the request are 000, 100 and 101.
fn hosted(seed: u64) -> Request {
    request(Law::Local, seed).monitors(vec![host("twins", no_twins).0])
}

#[test]
fn a_host_that_is_asked_together_draws_the_text_of_one_that_is_not() {
    let engine = engine(EngineConfig::default());
    let near = Arc::new(PerText::new(&vocabulary(), |written| match written {
        Written::Prefix(text) | Written::Whole(text) => Ok(!text.starts_with(b"11")),
    }));
    for seed in 0..100 {
        let expected = generate(
            &engine,
            request(Law::Local, seed).monitors(vec![Watched::new("twins", near.clone())]),
        );
        let drafted = hosted(seed)
            .speculation(Speculation::all())
            .reference(vec![1, 0, 1]);
        for request in [hosted(seed), drafted] {
            assert_eq!(text(&generate(&engine, request)), text(&expected), "{seed}");
        }
    }
    let law = [("000", 0.5), ("100", 0.25), ("101", 0.25)];
    agrees(&shares(&engine, hosted, COUNT), &law, COUNT);
    wait_until(&engine, |stats| stats.blocks_used == 0 && stats.running == 0);
}

/// The text and its end are four draws; the beginning is asked about with the first of them.
#[test]
fn a_token_takes_one_question() {
    let engine = engine(EngineConfig::default());
    let (watched, asked) = host("twins", no_twins);
    let heard = generate(&engine, request(Law::Local, 3).monitors(vec![watched]));
    assert_eq!(heard.outcome().finish, Finish::Stop);
    let asked = asked.lock().expect("no panic");
    assert!(asked.len() <= 4, "{asked:?}");
    assert_eq!(asked[0], 3, "the beginning and both digits");
}

/// An identifier that is listed is written without further questions.
#[test]
fn what_comes_next_may_be_listed() {
    let engine = engine(EngineConfig::default());
    let (watched, asked) = host("names", |question| {
        Ok(match (&*question.text, question.is_whole) {
            ("", false) => Verdict::Next(vec!["101".into(), "111".into()]),
            (_, true) => Verdict::Open,
            // The first tokens are asked about before the list is known.
            (text, false) if text.len() != 2 => Verdict::Open,
            (text, false) => panic!("asked about {text}"),
        })
    });
    let request = |seed| request(Law::Local, seed).monitors(vec![watched.clone()]);
    agrees(
        &shares(&engine, request, COUNT),
        &[("101", 0.5), ("111", 0.5)],
        COUNT,
    );
    assert!(
        asked.lock().expect("no panic").len() < 10,
        "one host remembers what it was asked"
    );
}

#[test]
fn a_host_without_an_answer_fails_its_request_alone() {
    let engine = engine(EngineConfig::default());
    let gone = host("gone", |question| match question.text.len() {
        0 | 1 => Ok(Verdict::Open),
        _ => Err(Failure("refused the connection".to_owned())),
    });
    let gate = Gate::default();
    let held = gate.clone();
    let slow = host("slow", move |question| {
        if question.text.len() > 1 {
            held.pass();
        }
        Ok(Verdict::Open)
    });
    for (watched, is_late) in [(gone.0, false), (slow.0, true)] {
        let name = watched.name.to_string();
        // For particles, too: such a text is not impossible.
        for law in [Law::Local, sir(2)] {
            let request = request(law, 1)
                .monitors(vec![watched.clone()])
                .monitor_time(if is_late {
                    Duration::from_millis(100)
                } else {
                    Duration::from_secs(60)
                });
            let beside = listen(&engine, hosted(4));
            let heard = generate(&engine, request);
            let Some(EngineError::Monitor { monitor, problem }) = heard.failure() else {
                panic!("{heard:?}");
            };
            assert_eq!(monitor, &name);
            assert!(
                matches!(problem, MonitorProblem::Host { is_late: late, .. } if *late == is_late),
                "{problem:?}"
            );
            assert_eq!(beside.wait().outcome().finish, Finish::Stop);
        }
    }
    gate.open(u64::MAX);
}

/// More hosts are waited for than there are threads for masks, and others go on.
#[test]
fn hosts_that_are_waited_for_hold_no_thread_of_others() {
    let engine = engine(EngineConfig {
        mask_threads: 1,
        ..EngineConfig::default()
    });
    let gate = Gate::default();
    let waiting: Vec<_> = (0..8)
        .map(|seed| {
            let held = gate.clone();
            let (watched, _) = host("held", move |question| {
                held.pass();
                no_twins(question)
            });
            listen(&engine, request(Law::Local, seed).monitors(vec![watched]))
        })
        .collect();
    for seed in 0..20 {
        assert_eq!(
            generate(&engine, request(Law::Local, seed)).outcome().finish,
            Finish::Stop
        );
    }
    gate.open(u64::MAX);
    for (seed, waiting) in (0..).zip(waiting) {
        let heard = waiting.wait();
        assert_eq!(text(&heard), text(&generate(&engine, hosted(seed))));
    }
}

fn sir(candidates: usize) -> Law {
    Law::Sir {
        candidates,
        proposal: TokenProposal::Masked,
    }
}

fn smc(particles: usize, proposal: TokenProposal) -> Law {
    Law::Smc {
        particles,
        threshold: 0.7,
        resampling: Resampling::Systematic,
        proposal,
    }
}

/// Prefers texts with many ones, and 000 to 100.
fn energy(text: &[u32]) -> f64 {
    match text {
        [0, ..] => 2.0,
        _ => text.iter().map(|&token| f64::from(token)).sum::<f64>() - 1.5,
    }
}

fn tilt(prefixes: bool, score: impl Fn(&[u32]) -> f64 + Send + Sync + 'static) -> Tilt {
    Tilt {
        name: "energy".into(),
        score: Arc::new(move |text: &[u32], _: bool| Ok(score(text))),
        prefixes,
        is_remote: true,
    }
}

/// Weights are proportional to the probability of a text under the model times `exp` of its score: the mean
/// weight estimates the sum, and what the answers have of it is theirs.
#[test]
fn a_tilted_population_has_the_law_of_the_model_times_the_metric() {
    let engine = engine(EngineConfig::default());
    let texts = [
        ("000", 0.005),
        ("100", 0.125),
        ("101", 0.125),
        ("110", 0.125),
        ("111", 0.125),
    ];
    let tokens = |text: &str| {
        text.bytes()
            .map(|digit| u32::from(digit - b'0'))
            .collect::<Vec<u32>>()
    };
    let expected = |text: &str, p: f64| p * energy(&tokens(text)).exp();
    let twins = |text: &str| text.starts_with("11");
    for (law, prefixes, is_watched) in [
        (sir(3), false, false),
        (sir(3), false, true),
        (smc(4, TokenProposal::Masked), false, false),
        (smc(4, TokenProposal::Masked), true, false),
        (smc(4, TokenProposal::Asked), true, true),
    ] {
        let request = |seed| {
            let request = request(law, seed).tilt(tilt(prefixes, energy));
            match is_watched {
                true => request.monitors(vec![host("twins", no_twins).0]),
                false => request,
            }
        };
        let kept = |text: &str| !(is_watched && twins(text));
        let (mut weights, mut of_one) = (Vec::new(), Vec::new());
        for seed in 0..COUNT {
            let heard = generate(&engine, request(seed));
            let weight = heard.outcome().log_weight.expect("an estimate").exp();
            weights.push(weight);
            of_one.push(if text(&heard).starts_with("101") {
                weight
            } else {
                0.0
            });
        }
        let what = format!("{law:?} {prefixes} {is_watched}");
        let all = texts.iter().filter(|(text, _)| kept(text));
        has_mean(&weights, all.map(|&(text, p)| expected(text, p)).sum(), &what);
        has_mean(&of_one, expected("101", 0.125), &format!("{what}, 101"));
    }
}

#[test]
fn a_score_may_rule_a_text_out_and_has_to_be_a_number() {
    let engine = engine(EngineConfig::default());
    let never = |text: &[u32]| if text == [1, 0, 0] { f64::NEG_INFINITY } else { 0.0 };
    for seed in 0..50 {
        let heard = generate(&engine, request(sir(4), seed).tilt(tilt(false, never)));
        assert!(!text(&heard).starts_with("100"));
    }
    let failed = |score: fn(&[u32]) -> f64| {
        let heard = generate(&engine, request(sir(2), 1).tilt(tilt(false, score)));
        match heard.failure() {
            Some(EngineError::Monitor { monitor, problem }) if monitor == "energy" => problem.clone(),
            other => panic!("{other:?}"),
        }
    };
    let refused = failed(|_| f64::NEG_INFINITY);
    assert!(
        matches!(refused, MonitorProblem::Refused { generated: 3 }),
        "{refused:?}"
    );
    for wrong in [
        failed(|_| f64::NAN),
        failed(|_| f64::INFINITY),
        failed(|_| panic!("no energy")),
    ] {
        assert!(
            matches!(wrong, MonitorProblem::Host { is_late: false, .. }),
            "{wrong:?}"
        );
    }
}

#[test]
fn laws_without_particles_have_no_tilt() {
    let engine = engine(EngineConfig::default());
    let twisted = Law::Sir {
        candidates: 3,
        proposal: TokenProposal::Twisted,
    };
    for law in [Law::Local, global(3), twisted] {
        let refused = engine.check(&request(law, 1).tilt(tilt(false, energy)));
        assert!(
            matches!(&refused, Err(refusal) if refusal.field() == Some("tilt")),
            "{law:?}: {refused:?}"
        );
    }
    assert!(
        engine
            .check(&request(sir(2), 1).tilt(tilt(false, energy)))
            .is_ok()
    );
}
