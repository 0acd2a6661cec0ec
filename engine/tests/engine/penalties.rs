//! Penalties that spare the structure of JSON: at every token, the probability equals that of a slow reading
//! of the text, whose free strings are found by their quotes.

use crate::rig::{Heard, drafting, generate, grammar, grammar_over};
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform_engine::{
    Engine, Event, PenaltyScope, Refusal, Request, Sampling, ScriptedModel, Speculation, Verification,
};
use std::sync::{Arc, LazyLock};

/// A value of a list, a number, and three free strings, whose tokens are more than 64.
const PATTERN: &str =
    r#"\{"(ab|ba|b)":"(aa|bb|cab)","n":[0-9]{3},("(ab|ba|b)":"[a-zA-Z0-9 ._-]{12}",){3}"z":""\}"#;

fn vocabulary() -> Arc<Vocabulary> {
    static VOCABULARY: LazyLock<Arc<Vocabulary>> = LazyLock::new(|| {
        let letters = ('a'..='z')
            .chain('A'..='Z')
            .chain('0'..='9')
            .chain(" ._-{}\":,".chars());
        let longer = ["ab", "ba", "\":\"", "a\"", "\",", "{\"", ".\",\"", "\"a", "aa"];
        let texts = letters.map(String::from).chain(longer.map(str::to_owned));
        let mut tokens: Vec<(TokenKind, String)> = texts.map(|text| (TokenKind::Text, text)).collect();
        tokens.push((TokenKind::Special, "<end>".to_owned()));
        let end = tokens.len() as u32 - 1;
        Arc::new(Vocabulary::new(&tokens, &[end]).unwrap())
    });
    VOCABULARY.clone()
}

/// Likes few letters, and the tokens that cross a quote.
fn script(_: &[u32]) -> Vec<f32> {
    let vocabulary = vocabulary();
    let liking = |token: u32| match vocabulary.bytes(token) {
        [b'a'..=b'c'] | [_, _, ..] => 3.0,
        [other] => f32::from(other % 13) / 6.0 - 0.5,
        [] => -1.0,
    };
    (0..vocabulary.len() as u32).map(liking).collect()
}

fn engine(draws: bool) -> Engine {
    let model = ScriptedModel::new(vocabulary().len(), 100_000, script);
    let model = match draws {
        true => model.drawing(),
        false => model,
    };
    Engine::start(Box::new(model), None, vocabulary(), drafting()).unwrap()
}

fn prompt() -> Vec<u32> {
    let vocabulary = vocabulary();
    let token = |text: &str| {
        let mut all = 0..vocabulary.len() as u32;
        all.find(|&token| vocabulary.bytes(token) == text.as_bytes())
            .unwrap()
    };
    ["a", "\"", "a\"", "\":\"", "b", "1", "ab", "{\""]
        .map(token)
        .to_vec()
}

fn sampling(penalty_scope: PenaltyScope, seed: u64) -> Sampling {
    Sampling {
        repetition_penalty: 1.3,
        presence_penalty: 0.4,
        frequency_penalty: 0.3,
        penalty_scope,
        ..Sampling::seeded(seed)
    }
}

fn request(penalty_scope: PenaltyScope, seed: u64) -> Request {
    Request::new(prompt(), 120)
        .grammar(Some(grammar_over(&vocabulary(), PATTERN)))
        .sampling(sampling(penalty_scope, seed))
}

/// Returns `true` inside a string that is a value: after an opening quote that follows a colon.
fn is_in_value(text: &[u8]) -> bool {
    let is_open = text.iter().filter(|&&byte| byte == b'"').count() % 2 == 1;
    let before = text
        .iter()
        .rposition(|&byte| byte == b'"')
        .and_then(|quote| quote.checked_sub(1));
    is_open && before.is_some_and(|before| text[before] == b':')
}

/// Returns the logits of a row after penalties that spare structure.
fn penalised(answer: &[u32], allowed: usize) -> Vec<f64> {
    let vocabulary = vocabulary();
    let mut logits: Vec<f64> = script(&[]).into_iter().map(f64::from).collect();
    let (mut text, mut counts) = (Vec::new(), vec![0; logits.len()]);
    for &token in answer {
        let bytes = vocabulary.bytes(token);
        counts[token as usize] += usize::from(is_in_value(&text) && !bytes.contains(&b'"'));
        text.extend_from_slice(bytes);
    }
    if !is_in_value(&text) || allowed <= 64 {
        return logits;
    }
    for (token, logit) in logits.iter_mut().enumerate() {
        let is_free = !vocabulary.bytes(token as u32).contains(&b'"');
        if is_free && (counts[token] > 0 || prompt().contains(&(token as u32))) {
            *logit = if *logit > 0.0 { *logit / 1.3 } else { *logit * 1.3 };
        }
        if counts[token] > 0 {
            *logit -= 0.3 * counts[token] as f64 + 0.4;
        }
    }
    logits
}

/// Returns the largest difference between the reported log-probabilities of tokens and those of the slow
/// reading.
fn difference(heard: &Heard) -> f64 {
    let grammar = grammar_over(&vocabulary(), PATTERN);
    let (mut state, mut answer, mut largest) = (grammar.start(), Vec::new(), 0.0_f64);
    for event in &heard.events {
        let Event::Token { token, log_share, .. } = event else {
            continue;
        };
        let mask = grammar.mask(state);
        let logits = penalised(&answer, mask.count());
        let total: f64 = mask.iter().map(|token| logits[token as usize].exp()).sum();
        let expected = logits[*token as usize] - total.ln();
        largest = largest.max((expected - f64::from(*log_share)).abs());
        state = grammar.step(state, *token).unwrap();
        answer.push(*token);
    }
    assert!(answer.len() > 30, "{answer:?}");
    largest
}

#[test]
fn penalties_of_text_spare_the_structure_of_json() {
    let engine = engine(false);
    for seed in 0..12 {
        let spared = generate(&engine, request(PenaltyScope::JsonText(None), seed));
        assert!(difference(&spared) < 1e-4, "seed {seed}: {}", difference(&spared));
        let all = generate(&engine, request(PenaltyScope::All, seed));
        assert!(difference(&all) > 0.1, "seed {seed}");
    }
}

#[test]
fn drafts_and_devices_spare_the_same_tokens() {
    let (plain, device) = (engine(false), engine(true));
    let mut accepted = 0;
    for seed in 0..12 {
        let request = request(PenaltyScope::JsonText(None), seed);
        let expected = generate(&plain, request.clone()).tokens_without_origin();
        let drafted = request.clone().speculation(Speculation {
            verification: Verification::DrawOnce,
            ..Speculation::all()
        });
        for engine in [&plain, &device] {
            for request in [&request, &drafted] {
                let heard = generate(engine, request.clone());
                assert_eq!(heard.tokens_without_origin(), expected, "seed {seed}");
                accepted += heard.outcome().accepted;
            }
        }
    }
    assert!(accepted > 100, "{accepted}");
}

#[test]
fn without_a_grammar_there_is_no_structure_to_spare() {
    let engine = crate::rig::engine(|_| vec![0.0; crate::rig::WIDTH]);
    let free = Request::new(vec![1], 3).sampling(sampling(PenaltyScope::JsonText(None), 1));
    let refused = engine.check(&free).err();
    assert!(
        matches!(
            &refused,
            Some(Refusal::Invalid {
                name: "penalty_scope",
                ..
            })
        ),
        "{refused:?}"
    );
    assert_eq!(engine.check(&free.grammar(Some(grammar("[a-z]+")))), Ok(()));
}
