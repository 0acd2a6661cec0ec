//! Filters of a request: the tokens that Mirostat admits depend on the text and not on its drafts, and the
//! reported figures of a token refer to the tokens that were left.

use crate::drafting::{nearly_wordy, sources, with_draft_model};
use crate::rig::{drafting, engine, generate, global, grammar, letters, wordy_script};
use lexiform_engine::{
    Event, Law, LawTag, LogprobsOf, Mirostat, MirostatVersion, Reporting, Request, Sampling, Speculation,
};

const VERSIONS: [MirostatVersion; 2] = [MirostatVersion::One, MirostatVersion::Two];

fn steered(version: MirostatVersion, seed: u64) -> Request {
    Request::new(letters("the the "), 40)
        .grammar(Some(grammar("[a-z ]{1,40}")))
        .sampling(Sampling {
            mirostat: Some(Mirostat {
                version,
                tau: 2.5,
                eta: 0.7,
            }),
            typical_p: 0.99,
            ..Sampling::seeded(seed)
        })
}

/// The draft model guesses without Mirostat, so its rows are others: drafts may be rejected, the text may not
/// change.
#[test]
fn drafts_meet_the_bound_of_the_text() {
    let plain = engine(wordy_script);
    let drafted = with_draft_model(nearly_wordy, drafting());
    let mut accepted = 0;
    for version in VERSIONS {
        for seed in 0..6 {
            let without = generate(&plain, steered(version, seed));
            assert_eq!(without.outcome().law, LawTag::LocalFiltered);
            for speculation in sources() {
                let request = steered(version, seed).speculation(speculation);
                let with = generate(&drafted, request);
                let what = format!("{version:?}, seed {seed}, {speculation:?}");
                assert_eq!(
                    without.tokens_without_origin(),
                    with.tokens_without_origin(),
                    "{what}"
                );
                assert_eq!(without.outcome().log_weight, with.outcome().log_weight, "{what}");
                accepted += with.outcome().accepted;
            }
        }
    }
    assert!(accepted > 0);
}

/// The bound at a token is that of its place, also in what is told of the others that might have come.
#[test]
fn shares_are_of_what_the_bound_left() {
    let drafted = with_draft_model(nearly_wordy, drafting());
    let mut cut = 0;
    for version in VERSIONS {
        let request = steered(version, 3)
            .speculation(Speculation::all())
            .reporting(Reporting {
                logprobs: Some(5),
                logprobs_of: LogprobsOf::Allowed,
                candidates: Some(40),
                ..Reporting::default()
            });
        for event in generate(&drafted, request).events {
            let Event::Token {
                token,
                log_share,
                top,
                candidates: Some(candidates),
                ..
            } = event
            else {
                continue;
            };
            let listed = candidates
                .likely
                .iter()
                .find(|candidate| candidate.token == token);
            let share = listed.expect("all are listed").log_share;
            assert!((share - log_share).abs() < 1e-4, "{share} and {log_share}");
            let shares = candidates.likely.iter().map(|other| other.log_share.exp());
            let all: f32 = shares.sum();
            assert!((all - 1.0).abs() < 1e-3, "{all}");
            let best = candidates.likely.iter().map(|other| other.log_share);
            let best = best.fold(f32::NEG_INFINITY, f32::max);
            assert!((top[0].1 - best).abs() < 1e-4, "{top:?}");
            let is_cut =
                |other: &lexiform_engine::Candidate| other.is_allowed && other.log_share == f32::NEG_INFINITY;
            cut += usize::from(candidates.likely.iter().any(is_cut));
        }
    }
    assert!(cut > 10, "only {cut} tokens were drawn from a part");
}

#[test]
fn what_no_filter_can_be_is_refused_by_name() {
    let engine = engine(wordy_script);
    let mirostat = |tau, eta| {
        Some(Mirostat {
            version: MirostatVersion::Two,
            tau,
            eta,
        })
    };
    let plain = || Sampling::seeded(1);
    let wrong = [
        (
            "typical_p",
            Sampling {
                typical_p: 0.0,
                ..plain()
            },
        ),
        (
            "top_n_sigma",
            Sampling {
                top_n_sigma: Some(-1.0),
                ..plain()
            },
        ),
        (
            "epsilon_cutoff",
            Sampling {
                epsilon_cutoff: 2.0,
                ..plain()
            },
        ),
        (
            "eta_cutoff",
            Sampling {
                eta_cutoff: f32::NAN,
                ..plain()
            },
        ),
        (
            "mirostat_tau",
            Sampling {
                mirostat: mirostat(0.0, 0.1),
                ..plain()
            },
        ),
        (
            "mirostat_eta",
            Sampling {
                mirostat: mirostat(3.0, -0.1),
                ..plain()
            },
        ),
        (
            "mirostat_mode",
            Sampling {
                mirostat: mirostat(3.0, 0.1),
                ..plain()
            },
        ),
    ];
    for (wanted, sampling) in wrong {
        // Steered texts are wrong under laws about whole texts alone.
        let law = match wanted {
            "mirostat_mode" => global(10),
            _ => Law::Local,
        };
        let request = Request::new(letters("x"), 10)
            .task(law)
            .grammar(grammar("[a-z]{1,9}"))
            .sampling(sampling);
        match engine.submit(request, Box::new(|_| true)).err() {
            Some(refusal) => assert_eq!(refusal.field(), Some(wanted)),
            None => panic!("{wanted}"),
        }
    }
}
