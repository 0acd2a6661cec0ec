//! Drafts of a model that are verified by the residual rule or by k-seq: the law is the one without drafts,
//! even if a draft ends the text, and as many are accepted as possible.

use crate::laws::{END, agrees, vocabulary};
use crate::rig::{
    Heard, WIDTH, drafting, generate, grammar_over, vocabulary as letters_vocabulary, wordy_script,
};
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform_engine::{
    Assistant, Drafting, Engine, EngineConfig, Model, OwnTokens, Reporting, Request, Sampling, ScriptedModel,
    Speculation, Verification, Worked,
};
use lexiform_law::draft::LongestMatch;
use lexiform_law::{Allowed, History, Law, Part, Row, Warper, Warping};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The model: what it writes depends on how long the answer is and on its first token.
pub(crate) fn model(answer: &[u32]) -> [f32; 3] {
    match (answer.len() % 3, answer.first()) {
        (0, _) => [0.3, 0.6, 0.1],
        (1, Some(0)) => [0.1, 0.2, 0.7],
        (1, _) => [0.6, 0.1, 0.3],
        _ => [0.25, 0.35, 0.4],
    }
}

/// The draft model, which is often wrong and likes to end.
pub(crate) fn draft(answer: &[u32]) -> [f32; 3] {
    match answer.len() % 3 {
        0 => [0.7, 0.2, 0.1],
        1 => [0.2, 0.2, 0.6],
        _ => [0.1, 0.5, 0.4],
    }
}

pub(crate) fn script(law: fn(&[u32]) -> [f32; 3]) -> impl Fn(&[u32]) -> Vec<f32> + Send {
    move |prefix| law(&prefix[1..]).map(f32::ln).to_vec()
}

fn engine(config: EngineConfig) -> Engine {
    let scripted = |law| Box::new(ScriptedModel::new(3, 100, script(law)));
    Engine::start(scripted(model), Some(scripted(draft)), vocabulary(), config).unwrap()
}

/// One whose passes cost what is said, so that the arms of a bandit are chosen alike on every machine.
fn counted_engine(drafting: Drafting) -> Engine {
    let scripted = |law| Box::new(ScriptedModel::new(3, 100, script(law)));
    let config = EngineConfig {
        drafting,
        ..EngineConfig::default()
    };
    let cost = |worked| match worked {
        Worked::Pass { decoded, .. } => Duration::from_micros(100 + 5 * decoded as u64),
        Worked::DraftPass(_) => Duration::from_micros(20),
    };
    let draft = Some(scripted(draft) as Box<dyn Model>);
    Engine::start_counted(scripted(model), draft, vocabulary(), config, Box::new(cost)).unwrap()
}

/// One to four digits, and any number of them in a longer row that begins with 1.
pub(crate) const PATTERN: &str = "[01]{1,4}|11[01]{3,5}";

fn request(grammar: bool, max_draft: usize, seed: u64) -> Request {
    Request::new(vec![0], 6)
        .grammar(grammar.then(|| grammar_over(&vocabulary(), PATTERN)))
        .sampling(Sampling::seeded(seed))
        .speculation(Speculation {
            model: max_draft > 0,
            max_draft,
            ..Speculation::none()
        })
}

pub(crate) fn text(heard: &Heard) -> String {
    heard.tokens().iter().map(|token| token.to_string()).collect()
}

/// The laws of whole texts, from the rows and the rule of the masks: with a grammar at most six tokens
/// without the end, without one any text, cut at six tokens.
pub(crate) fn law(grammar: bool) -> BTreeMap<String, f64> {
    let mut law = BTreeMap::new();
    let mut open: Vec<(Vec<u32>, f64)> = vec![(Vec::new(), 1.0)];
    let is_prefix = |answer: &[u32]| answer.len() <= 4 || answer.len() <= 6 && answer[..2] == [1, 1];
    while let Some((answer, probability)) = open.pop() {
        let name: String = answer.iter().map(ToString::to_string).collect();
        let row = model(&answer);
        let allowed = |token: u32| match token {
            _ if !grammar => answer.len() < 6,
            END => !answer.is_empty() && (answer.len() <= 4 || answer.len() >= 5),
            token => is_prefix(&[&answer[..], &[token]].concat()),
        };
        let mass: f32 = (0..3)
            .filter(|&token| allowed(token))
            .map(|token| row[token as usize])
            .sum();
        let only_the_end = (0..2).all(|token| !allowed(token));
        if only_the_end {
            *law.entry(name).or_insert(0.0) += probability;
            continue;
        }
        for token in (0..3).filter(|&token| allowed(token)) {
            let share = probability * f64::from(row[token as usize] / mass);
            match token {
                END => *law.entry(name.clone()).or_insert(0.0) += share,
                token => open.push(([&answer[..], &[token]].concat(), share)),
            }
        }
    }
    law
}

/// Which drafts are fed depends on what became of earlier ones, and on how unsure the draft model is, never
/// on the drafted token.
#[test]
fn no_policy_changes_the_law() {
    let count = 1500;
    for policy in [Drafting::Svip, Drafting::Ucb1, Drafting::Exp3] {
        let engine = counted_engine(policy);
        for grammar in [true, false] {
            let law = law(grammar);
            let law: Vec<(&str, f64)> = law.iter().map(|(text, share)| (text.as_str(), *share)).collect();
            let (mut shares, mut accepted) = (BTreeMap::new(), 0);
            for seed in 0..count {
                let request = request(grammar, 0, seed).speculation(Speculation::all());
                let heard = generate(&engine, request);
                accepted += heard.outcome().accepted;
                *shares.entry(text(&heard)).or_insert(0.0) += 1.0 / count as f64;
            }
            agrees(&shares, &law, count);
            assert!(accepted > 100, "{policy:?}: {accepted}");
        }
    }
}

#[test]
fn the_residual_rule_leaves_the_law_alone() {
    let (engine, count) = (engine(drafting()), 6000);
    for grammar in [true, false] {
        let law = law(grammar);
        let law: Vec<(&str, f64)> = law.iter().map(|(text, share)| (text.as_str(), *share)).collect();
        // The last is a mixture: forced and copied tokens, then those of the model.
        let model = |max_draft| request(grammar, max_draft, 0).speculation;
        for speculation in [model(1), model(5), Speculation::all()] {
            let (mut shares, mut accepted) = (BTreeMap::new(), 0);
            for seed in 0..count {
                let request = request(grammar, 0, seed).speculation(speculation);
                let heard = generate(&engine, request);
                accepted += heard.outcome().accepted;
                *shares.entry(text(&heard)).or_insert(0.0) += 1.0 / count as f64;
            }
            agrees(&shares, &law, count);
            assert!(accepted > count as usize / 2);
        }
    }
}

/// The draft model with tokens of its own: another order, one that the model lacks, and an end of another
/// name.
fn engine_with_other_tokens() -> Engine {
    const TOKENS: [(TokenKind, &str); 4] = [
        (TokenKind::Special, "</other>"),
        (TokenKind::Text, "00"),
        (TokenKind::Text, "1"),
        (TokenKind::Text, "0"),
    ];
    let own = Arc::new(Vocabulary::new(&TOKENS, &[0]).unwrap());
    let draft = |prefix: &[u32]| {
        let text: String = prefix.iter().map(|&token| TOKENS[token as usize].1).collect();
        let answer: Vec<u32> = text.bytes().skip(1).map(|byte| u32::from(byte - b'0')).collect();
        let [zero, one, end] = draft(&answer);
        // What the model has no token for is as likely as all else.
        [end, 1.0, one, zero].map(f32::ln).to_vec()
    };
    let assistant = Assistant::Model {
        model: Box::new(ScriptedModel::new(4, 100, draft)),
        tokens: Some(OwnTokens {
            tokeniser: Arc::new(LongestMatch(own.clone())),
            vocabulary: own,
        }),
        mask: None,
    };
    let known = vocabulary();
    let tokeniser = Arc::new(LongestMatch(known.clone()));
    let model = Box::new(ScriptedModel::new(3, 100, script(model)));
    Engine::start_with_tokeniser(model, Some(assistant), known, tokeniser, drafting()).unwrap()
}

/// Tokens that both have are drafted as likely as the draft model finds them, and judged like those of one
/// with the same tokens.
#[test]
fn a_draft_model_with_other_tokens_leaves_the_law_alone() {
    let (other, same, count) = (engine_with_other_tokens(), engine(drafting()), 1500);
    for grammar in [true, false] {
        let law = law(grammar);
        let law: Vec<(&str, f64)> = law.iter().map(|(text, share)| (text.as_str(), *share)).collect();
        let accepted = |engine: &Engine, verification: Verification| {
            let (mut shares, mut accepted) = (BTreeMap::new(), 0);
            for seed in 0..count {
                let mut request = request(grammar, 5, seed);
                request.speculation.verification = verification;
                let heard = generate(engine, request);
                accepted += heard.outcome().accepted;
                *shares.entry(text(&heard)).or_insert(0.0) += 1.0 / count as f64;
            }
            agrees(&shares, &law, count);
            accepted as f64
        };
        let [by_residual, by_k_seq, drawn_once] =
            [Verification::Residual, Verification::KSeq, Verification::DrawOnce]
                .map(|verification| accepted(&other, verification));
        // As many as of one with the same tokens.
        let known = accepted(&same, Verification::Residual);
        assert!(
            by_residual > 0.9 * known && by_k_seq > 0.9 * known,
            "{by_residual} and {by_k_seq} of {known}"
        );
        assert!(drawn_once > 0.3 * known, "{drawn_once} of {known}");
    }
}

/// Rules that judge several tokens at a place, with how many there are.
const COMBS: [(Verification, usize, usize); 4] = [
    (Verification::Residual, 2, 5),
    (Verification::KSeq, 2, 5),
    (Verification::KSeq, 3, 7),
    // The likeliest beside the one that the same numbers draw.
    (Verification::DrawOnce, 3, 7),
];

#[test]
fn candidates_side_by_side_leave_the_law_alone() {
    let (engine, count) = (engine(drafting()), 6000);
    for grammar in [true, false] {
        let law = law(grammar);
        let law: Vec<(&str, f64)> = law.iter().map(|(text, share)| (text.as_str(), *share)).collect();
        for (verification, candidates, max_draft) in COMBS {
            let (mut shares, mut accepted) = (BTreeMap::new(), 0);
            for crowd in (0..count).collect::<Vec<_>>().chunks(50) {
                let listeners: Vec<_> = crowd
                    .iter()
                    .map(|&seed| {
                        let mut request = request(grammar, max_draft, seed);
                        request.speculation.candidates = candidates;
                        request.speculation.verification = verification;
                        crate::rig::listen(&engine, request)
                    })
                    .collect();
                for listener in listeners {
                    let heard = listener.wait();
                    accepted += heard.outcome().accepted;
                    *shares.entry(text(&heard)).or_insert(0.0) += 1.0 / count as f64;
                }
            }
            agrees(&shares, &law, count);
            assert!(accepted > count as usize / 4, "{verification:?}: {accepted}");
        }
    }
}

/// Where nothing is left to chance or the text of a seed is wanted, candidates change no token.
#[test]
fn candidates_do_not_change_the_text_of_a_seed() {
    let engine = engine(drafting());
    let mut accepted = [0, 0];
    for seed in 0..200 {
        for (temperature, verification) in [
            (1.0, Verification::DrawOnce),
            (0.0, Verification::KSeq),
            (0.0, Verification::Residual),
        ] {
            let heard = |candidates: usize| {
                let mut request = request(true, 6 * candidates.min(1), seed);
                request.sampling.temperature = temperature;
                request.speculation.candidates = candidates;
                request.speculation.verification = verification;
                generate(&engine, request)
            };
            let plain = heard(0);
            for (number, candidates) in [1, 3].into_iter().enumerate() {
                let with = heard(candidates);
                assert_eq!(text(&with), text(&plain), "{verification:?}, {candidates}");
                accepted[number] += with.outcome().accepted;
            }
        }
    }
    assert!(accepted[0] > 0 && accepted[1] > 0, "{accepted:?}");
}

/// A cache that is nearly full, and company: drafts are cut and dropped, and sequences lose their blocks.
#[test]
fn a_crowd_leaves_the_law_alone() {
    let config = EngineConfig {
        max_running: 7,
        blocks: 12,
        block_size: 2,
        ..drafting()
    };
    let (engine, count) = (engine(config), 3000);
    let (law, mut shares) = (law(true), BTreeMap::new());
    let law: Vec<(&str, f64)> = law.iter().map(|(text, share)| (text.as_str(), *share)).collect();
    for crowd in (0..count).collect::<Vec<_>>().chunks(50) {
        let listeners: Vec<_> = crowd
            .iter()
            .map(|&seed| crate::rig::listen(&engine, request(true, 5, seed)))
            .collect();
        for listener in listeners {
            *shares.entry(text(&listener.wait())).or_insert(0.0) += 1.0 / count as f64;
        }
    }
    agrees(&shares, &law, count);
}

#[test]
fn what_is_told_of_a_text_does_not_depend_on_the_drafts() {
    let engine = engine(drafting());
    for weigh_end in [false, true] {
        let mut told: BTreeMap<String, (f64, Option<f64>, usize)> = BTreeMap::new();
        for seed in 0..600 {
            let request = request(true, if seed % 2 == 0 { 0 } else { 5 }, seed).reporting(Reporting {
                weigh_end,
                ..Reporting::default()
            });
            let heard = generate(&engine, request);
            let outcome = heard.outcome();
            let (probability, weight) = (outcome.log_probability, outcome.log_weight);
            let first = *told
                .entry(text(&heard))
                .or_insert((probability, weight, outcome.completion_tokens));
            assert!((first.0 - probability).abs() < 1e-9);
            // There is no weight where an end was not asked for.
            assert_eq!(first.1.is_some(), weight.is_some());
            assert!((first.1.unwrap_or(0.0) - weight.unwrap_or(0.0)).abs() < 1e-9);
            // Where an end that nobody asks for is drawn after all, it counts.
            assert_eq!(first.2, outcome.completion_tokens, "{heard:?}");
        }
    }
}

/// The same rows whatever came before.
pub(crate) fn steady(draft: bool) -> Vec<f32> {
    let noise = wordy_script(&[2]);
    let mix = |(logit, noise): (f32, &f32)| if draft { 0.5 * logit + 0.5 * noise } else { logit };
    wordy_script(&[1]).into_iter().zip(&noise).map(mix).collect()
}

/// What one of the two models draws from inside the warping.
fn shares(warping: &Warping, draft: bool) -> Vec<f64> {
    let warper = Warper::new(warping.clone(), Law::Local).unwrap();
    let logits = &steady(draft)[..letters_vocabulary().len() - 1];
    let row = warper.row(logits, History::default()).unwrap();
    row.part(Allowed::All).shares()
}

/// `1 − TV` of the two models inside the warping.
fn overlap(warping: &Warping) -> f64 {
    let pairs = shares(warping, false).into_iter().zip(shares(warping, true));
    pairs.map(|(p, q)| p.min(q)).sum()
}

/// How often k-seq accepts one of `k` tokens: `1 − (1 − β)^k`, with the smallest factor that keeps the law.
fn accepted_by_k_seq(temperature: f32, top_p: f32, k: i32) -> f64 {
    let warping = Warping {
        temperature,
        top_p,
        ..Warping::default()
    };
    let (p, q) = (shares(&warping, false), shares(&warping, true));
    let accepted = |factor: f64| -> f64 {
        let kept: f64 = p.iter().zip(&q).map(|(p, q)| q.min(p / factor)).sum();
        1.0 - (1.0 - kept).powi(k)
    };
    let is_right = |factor: &f64| {
        let kept: f64 = p.iter().zip(&q).map(|(p, q)| q.min(p / factor)).sum();
        accepted(*factor) / kept <= *factor
    };
    let mut factors = (1000..=1000 * k).map(|step| f64::from(step) / 1000.0);
    factors.find(is_right).map_or(0.0, accepted)
}

#[test]
fn as_many_drafts_are_accepted_as_can_be() {
    let scripted = |draft| Box::new(ScriptedModel::new(WIDTH, 10_000, move |_: &[u32]| steady(draft)));
    let engine = Engine::start(
        scripted(false),
        Some(scripted(true)),
        letters_vocabulary(),
        drafting(),
    )
    .unwrap();
    for (temperature, top_p) in [(1.0, 1.0), (0.7, 0.9), (1.5, 1.0)] {
        // Of the passes that draft, those in which some draft is accepted.
        let share = |verification, candidates| {
            let request = Request::new(vec![0], 6000)
                .sampling(Sampling {
                    temperature,
                    top_p,
                    ..Sampling::seeded(3)
                })
                .speculation(Speculation {
                    model: true,
                    candidates,
                    max_draft: candidates,
                    verification,
                    ..Speculation::none()
                })
                .ignore_eos(true);
            let outcome = generate(&engine, request).outcome().clone();
            (candidates * outcome.accepted) as f64 / outcome.drafted as f64
        };
        let (residual, once) = (share(Verification::Residual, 1), share(Verification::DrawOnce, 1));
        let best = overlap(&Warping {
            temperature,
            top_p,
            ..Warping::default()
        });
        assert!((residual - best).abs() < 0.03, "{residual} of {best}");
        assert!(once < residual - 0.05, "{once} and {residual}");
        let (without, k_seq) = (share(Verification::Residual, 3), share(Verification::KSeq, 3));
        let expected = accepted_by_k_seq(temperature, top_p, 3);
        assert!((k_seq - expected).abs() < 0.03, "{k_seq} of {expected}");
        assert!(without > residual + 0.02, "{without} and {residual}");
        // The likeliest of the draft model are more than one guess.
        let several = share(Verification::DrawOnce, 3);
        assert!(several > once + 0.005, "{several} and {once}");
    }
}
