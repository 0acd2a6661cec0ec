//! Drafts that are accepted because they are typical: by the formula of the paper, only if a request asks for
//! it, and reported in the answer.

use crate::laws::{END, agrees, text, vocabulary};
use crate::rig::{Redraw, drafting, generate, grammar_over, listen};
use lexiform_engine::{
    Engine, Law, LawTag, Request, Sampling, ScriptedModel, Speculation, TypicalAcceptance, Verification,
    Watched,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most tokens of an answer, and of a draft.
const TOKENS: usize = 5;
const DRAFTED: usize = 3;
/// In a row of two likely tokens all that is above 0.2 is typical, and in one that is sure of a token only
/// that.
const ACCEPTS: (f64, f64) = (0.3, 0.45);

/// What the model thinks after an answer.
fn row(answer: &[u32]) -> [f64; 3] {
    match (answer.len() % 3, answer.last()) {
        (0, _) => [0.45, 0.5, 0.05],
        (1, Some(0)) => [0.1, 0.85, 0.05],
        (1, _) => [0.35, 0.55, 0.1],
        _ => [0.15, 0.7, 0.15],
    }
}

/// What the draft model writes after it, whatever the numbers.
fn drafted(answer: &[u32]) -> u32 {
    [0, 0, 1, 1, 0][answer.len() % 5]
}

fn engine() -> Engine {
    let model = |prefix: &[u32]| row(&prefix[1..]).map(|share| (share as f32).ln()).to_vec();
    let draft = |prefix: &[u32]| {
        let token = drafted(&prefix[1..]);
        (0..3)
            .map(|other| if other == token { 0.0 } else { f32::NEG_INFINITY })
            .collect()
    };
    Engine::start(
        Box::new(ScriptedModel::new(3, 100, model)),
        Some(Box::new(ScriptedModel::new(3, 100, draft))),
        vocabulary(),
        drafting(),
    )
    .unwrap()
}

fn accepts() -> TypicalAcceptance {
    TypicalAcceptance::new(ACCEPTS.0, ACCEPTS.1).unwrap()
}

fn request(lossy: Option<TypicalAcceptance>, verification: Verification, seed: u64) -> Request {
    Request::new(vec![0], TOKENS)
        .task(lossy.map_or(Law::Local, Law::Lossy))
        .sampling(Sampling::seeded(seed))
        .speculation(Speculation {
            model: true,
            max_draft: DRAFTED,
            verification,
            ..Speculation::none()
        })
}

/// The tokens that the drafts of one pass lead to, each with its probability: a draft is accepted where it is
/// typical, and where the law draws it all the same.
fn verified(answer: &[u32], drafts: usize, share: f64, found: &mut Vec<(Vec<u32>, f64)>) {
    let (row, draft) = (row(answer), drafted(answer));
    let entropy: f64 = row.iter().map(|share| -share * share.ln()).sum();
    let threshold = ACCEPTS.0.min(ACCEPTS.1 * (-entropy).exp());
    let is_typical = row[draft as usize] > threshold;
    let chosen = match drafts > 0 && is_typical {
        true => vec![(draft, 1.0)],
        false => (0..).zip(row).collect(),
    };
    for (token, chance) in chosen {
        let longer = [answer, &[token]].concat();
        match drafts > 0 && token == draft {
            true => verified(&longer, drafts - 1, share * chance, found),
            false => found.push((longer, share * chance)),
        }
    }
}

/// The law of whole texts, pass by pass.
fn law() -> BTreeMap<String, f64> {
    let (mut law, mut open) = (BTreeMap::new(), vec![(Vec::new(), 1.0)]);
    while let Some((answer, share)) = open.pop() {
        let mut found = Vec::new();
        let drafts = DRAFTED.min(TOKENS - answer.len() - 1);
        verified(&answer, drafts, share, &mut found);
        for (longer, share) in found {
            let is_whole = longer.last() == Some(&END) || longer.len() == TOKENS;
            let text = longer
                .iter()
                .filter(|token| **token != END)
                .map(ToString::to_string);
            match is_whole {
                true => *law.entry(text.collect()).or_insert(0.0) += share,
                false => open.push((longer, share)),
            }
        }
    }
    law
}

/// The share of each text in the answers of so many seeds.
fn shares(engine: &Engine, request: impl Fn(u64) -> Request, count: u64) -> BTreeMap<String, f64> {
    let mut shares = BTreeMap::new();
    for crowd in (0..count).collect::<Vec<_>>().chunks(50) {
        let listeners: Vec<_> = crowd.iter().map(|&seed| listen(engine, request(seed))).collect();
        for listener in listeners {
            *shares.entry(text(&listener.wait())).or_insert(0.0) += 1.0 / count as f64;
        }
    }
    shares
}

#[test]
fn a_draft_is_accepted_where_it_is_typical_and_else_the_law_draws() {
    let (engine, count) = (engine(), 4000);
    let law = law();
    assert!((law.values().sum::<f64>() - 1.0).abs() < 1e-9);
    let expected: Vec<(&str, f64)> = law.iter().map(|(text, share)| (text.as_str(), *share)).collect();
    // How the draft was drawn does not matter.
    for verification in [Verification::Residual, Verification::DrawOnce] {
        let found = shares(
            &engine,
            |seed| request(Some(accepts()), verification, seed),
            count,
        );
        agrees(&found, &expected, count);
        // This test can tell the two laws apart.
        let exact = shares(&engine, |seed| request(None, verification, seed), count);
        let distance: f64 = law
            .iter()
            .map(|(text, share)| (share - exact.get(text).unwrap_or(&0.0)).abs() / 2.0)
            .sum();
        assert!(distance > 0.2, "{distance}");
    }
}

/// Guards against a law that is given up by a request that does not ask for it, on whatever path its tokens
/// are drawn.
#[test]
fn without_the_word_the_text_of_a_seed_is_the_one_without_drafts() {
    let engine = engine();
    let mut differ = 0;
    for seed in 0..300 {
        let plain = request(None, Verification::DrawOnce, seed).speculation(Speculation::none());
        let plain = generate(&engine, plain);
        let drafted = generate(&engine, request(None, Verification::DrawOnce, seed));
        assert_eq!(plain.tokens(), drafted.tokens());
        assert_eq!(drafted.outcome().law, LawTag::Raw);
        let lossy = generate(&engine, request(Some(accepts()), Verification::DrawOnce, seed));
        differ += usize::from(lossy.tokens() != plain.tokens());
        assert_eq!(
            (lossy.outcome().law, lossy.outcome().log_weight),
            (LawTag::Lossy, None)
        );
    }
    assert!(differ > 50, "{differ}");
}

#[test]
fn a_grammar_is_obeyed_and_a_greedy_text_stays_what_it_is() {
    let engine = engine();
    let all = TypicalAcceptance::new(0.0, 0.0).unwrap();
    let mut accepted = 0;
    for seed in 0..50 {
        let constrained = |lossy| {
            request(lossy, Verification::Residual, seed)
                .grammar(Some(grammar_over(&vocabulary(), "1[01]{2,4}")))
        };
        let heard = generate(&engine, constrained(Some(all)));
        assert_eq!(heard.outcome().law, LawTag::Lossy);
        let tokens = heard.tokens();
        assert!(tokens[0] == 1 && (3..=5).contains(&tokens.len()), "{tokens:?}");
        accepted += heard.outcome().accepted;
        let greedy = |lossy| constrained(lossy).sampling(Sampling::default());
        let (with, without) = (
            generate(&engine, greedy(Some(all))),
            generate(&engine, greedy(None)),
        );
        assert_eq!(with.tokens(), without.tokens());
        assert_eq!(with.outcome().law, LawTag::Greedy);
    }
    assert!(accepted > 50, "{accepted}");
}

#[test]
fn what_needs_a_law_is_refused_with_it() {
    let engine = engine();
    let base = || {
        request(Some(accepts()), Verification::Residual, 1)
            .grammar(Some(grammar_over(&vocabulary(), "[01]{1,4}")))
    };
    assert_eq!(engine.check(&base()), Ok(()));
    for request in [
        base().best_of(Some(2)),
        base().monitors(vec![Watched::new(
            "digits",
            Arc::new(grammar_over(&vocabulary(), "0+")),
        )]),
    ] {
        let refused = engine.check(&request).expect_err("it needs a law");
        assert_eq!(refused.field(), Some("lossy"));
    }
}
