//! The texts of seeds: with each law, with filters and penalties, drafted or not, a seed gives the text that
//! it gave before. `GOLDEN=write cargo test -p lexiform-engine --features kernels --test engine seeds` writes
//! the list anew; a change of it is a change that users see.

use crate::rig::{generate, global, grammar_over};
use crate::searches::{LETTERS, engine, vocabulary};
use lexiform_engine::{
    Cuts, Draw, EngineConfig, Fallback, Law, Request, Resampling, Sampling, Speculation, TokenProposal,
    Verification,
};
use std::fmt::Write;
use std::path::Path;

const SEEDS: u64 = 6;

fn weighted(proposal: TokenProposal) -> [(&'static str, Law); 2] {
    [
        (
            "smc",
            Law::Smc {
                particles: 4,
                threshold: 0.5,
                resampling: Resampling::Systematic,
                proposal,
            },
        ),
        (
            "sir",
            Law::Sir {
                candidates: 4,
                proposal,
            },
        ),
    ]
}

/// All laws, by a name that says their parameters.
fn laws() -> Vec<(String, Law)> {
    let mut laws = vec![
        ("local".to_owned(), Law::Local),
        ("global".to_owned(), global(50)),
        (
            "global, weighted".to_owned(),
            Law::Global {
                max_attempts: 1,
                fallback: Fallback::Weighted,
                share_attempts: false,
            },
        ),
        (
            "global, chain".to_owned(),
            Law::Global {
                max_attempts: 1,
                fallback: Fallback::Chain { steps: 3 },
                share_attempts: false,
            },
        ),
        (
            "asap".to_owned(),
            Law::Asap {
                share_attempts: false,
            },
        ),
        (
            "aprad".to_owned(),
            Law::Aprad {
                exponent: 1,
                max_errors: 50,
            },
        ),
    ];
    for proposal in [
        TokenProposal::Masked,
        TokenProposal::Asked,
        TokenProposal::Twisted,
    ] {
        let named = |(name, law)| (format!("{name}, {proposal:?}"), law);
        laws.extend(weighted(proposal).map(named));
    }
    for cuts in [Cuts::Restart, Cuts::Uniform, Cuts::Priority] {
        laws.push((format!("mcmc, {cuts:?}"), Law::Mcmc { steps: 4, cuts }));
    }
    laws
}

/// The settings of sampling that a seed is drawn with.
fn settings(seed: u64) -> [(&'static str, Sampling); 3] {
    let plain = Sampling::seeded(seed);
    let filtered = Sampling {
        temperature: 0.7,
        top_p: 0.9,
        top_k: Some(3),
        min_p: 0.05,
        ..plain.clone()
    };
    let penalised = Sampling {
        repetition_penalty: 1.2,
        presence_penalty: 0.3,
        frequency_penalty: 0.2,
        logit_bias: vec![(1, 1.5)],
        ..plain.clone()
    };
    [("plain", plain), ("filtered", filtered), ("penalised", penalised)]
}

#[test]
fn seeds_give_the_texts_that_they_gave() {
    let mut list = String::new();
    for (name, law) in laws() {
        // Texts teach each other, so each line is from an engine that has seen nothing else.
        let engine = engine(3, EngineConfig::default());
        for setting in 0..3 {
            write!(list, "{name}, {}:", settings(0)[setting].0).expect("a string");
            for seed in 0..SEEDS {
                let request = Request::new(vec![0], 7)
                    .task(Draw {
                        law,
                        ..Draw::default()
                    })
                    .grammar(grammar_over(&vocabulary(), "(ab|cd|a|d)*b?"))
                    .sampling(settings(seed)[setting].1.clone());
                let drafted = request.clone().speculation(Speculation {
                    verification: Verification::DrawOnce,
                    ..Speculation::all()
                });
                let text = text(&engine, request);
                let is_own = matches!(law, Law::Local | Law::Aprad { .. });
                if is_own {
                    assert_eq!(self::text(&engine, drafted), text, "{name}, seed {seed}, drafted");
                }
                write!(list, " {text}").expect("a string");
            }
            list.push('\n');
        }
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/seeds.txt");
    if std::env::var_os("GOLDEN").is_some_and(|value| value == "write") {
        return std::fs::write(&file, list).expect("the fixtures can be written");
    }
    let kept = std::fs::read_to_string(&file).expect("the list of texts");
    for (found, kept) in list.lines().zip(kept.lines()) {
        assert_eq!(found, kept, "GOLDEN=write writes the list anew");
    }
    assert_eq!(list.lines().count(), kept.lines().count());
}

/// The letters of an answer; `-` for an empty one.
fn text(engine: &lexiform_engine::Engine, request: Request) -> String {
    let tokens = generate(engine, request).tokens();
    let letters = tokens.iter().filter(|token| **token < LETTERS);
    let text: String = letters.map(|token| char::from(b'a' + *token as u8)).collect();
    if text.is_empty() { "-".to_owned() } else { text }
}
