//! Draft models with a different vocabulary: their texts are drafted in the model's tokens, and change only
//! the passes.

use crate::rig::{
    EOS, Heard, PHRASE, WIDTH, drafting, generate, grammar, letters, phrase_script, start, vocabulary,
    wait_until, wordy_script,
};
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform_engine::{
    Assistant, Engine, EngineConfig, EngineError, OwnTokens, Request, Sampling, ScriptedModel, Speculation,
    Verification,
};
use lexiform_law::draft::LongestMatch;
use std::sync::Arc;

/// Words and pieces of words, in an order of their own, then the letters, and an end.
fn own_vocabulary() -> Arc<Vocabulary> {
    let words = [
        "quick ", "th", "e qu", "brown", " fo", "x ju", "mps over", " lazy", "d", "og", "ab", "c a",
    ];
    let single = "zyxwvutsrqponmlkjihgfecba 9876543210".chars().map(String::from);
    let texts = words.map(String::from).into_iter().chain(single);
    let texts = texts.map(|text| (TokenKind::Text, text));
    let end = (TokenKind::Special, "</s>".to_string());
    let tokens: Vec<(TokenKind, String)> = std::iter::once(end).chain(texts).collect();
    Arc::new(Vocabulary::new(&tokens, &[0]).unwrap())
}

/// What tokens of the draft model write.
fn written(vocabulary: &Vocabulary, tokens: &[u32]) -> Vec<u8> {
    let texts = tokens.iter().flat_map(|&token| vocabulary.bytes(token));
    texts.copied().collect()
}

fn with_other_tokens(
    script: impl Fn(&[u32]) -> Vec<f32> + Send + 'static,
    draft: impl Fn(&[u32]) -> Vec<f32> + Send + 'static,
    config: EngineConfig,
) -> Result<Engine, EngineError> {
    let own = own_vocabulary();
    let assistant = Assistant::Model {
        model: Box::new(ScriptedModel::new(own.len() + 3, 10_000, draft)),
        tokens: Some(OwnTokens {
            tokeniser: Arc::new(LongestMatch(own.clone())),
            vocabulary: own,
        }),
        mask: None,
    };
    let tokeniser = Arc::new(LongestMatch(vocabulary()));
    let model = Box::new(ScriptedModel::new(WIDTH, 100_000, script));
    Engine::start_with_tokeniser(model, Some(assistant), vocabulary(), tokeniser, config)
}

/// A row of the draft model that likes the longest token with which this text goes on.
fn going_on(text: &[u8]) -> Vec<f32> {
    let own = own_vocabulary();
    let length = |token: u32| match own.kind(token) {
        TokenKind::Text if text.starts_with(own.bytes(token)) => own.bytes(token).len(),
        _ => 0,
    };
    let width = own.len() as u32 + 3;
    (0..width).map(|token| length(token) as f32).collect()
}

/// Writes [`PHRASE`], then ends.
fn phrase_draft(prefix: &[u32]) -> Vec<f32> {
    let text = written(&own_vocabulary(), prefix);
    let rest = PHRASE.as_bytes().get(text.len()..).unwrap_or_default();
    let mut row = going_on(rest);
    row[0] = 0.5;
    row
}

/// Guesses the next letter of [`wordy_script`] from the letters so far.
fn wordy_draft(prefix: &[u32]) -> Vec<f32> {
    let text = written(&own_vocabulary(), prefix);
    let text = String::from_utf8(text).unwrap_or_default();
    let row = wordy_script(&letters(&text));
    let likeliest = (0..26).max_by(|&one, &other| row[one].total_cmp(&row[other]));
    going_on(&[b'a' + likeliest.unwrap_or(0) as u8])
}

fn model(verification: Verification) -> Speculation {
    Speculation {
        model: true,
        max_draft: 12,
        verification,
        ..Speculation::none()
    }
}

fn compare(without: &Heard, with: &Heard, what: &str) {
    assert_eq!(without.tokens(), with.tokens(), "{what}");
    let (without, with) = (without.outcome(), with.outcome());
    assert_eq!(
        (without.law, without.log_probability, without.finish),
        (with.law, with.log_probability, with.finish),
        "{what}"
    );
}

#[test]
fn the_text_of_a_seed_is_the_one_without_drafts() {
    let plain = start(wordy_script, drafting());
    let other = with_other_tokens(wordy_script, wordy_draft, drafting()).unwrap();
    for pattern in [
        None,
        Some("[a-z]{1,20}"),
        Some("(ab|bc|the )*z?"),
        Some("the [0-9] the [0-9] the"),
    ] {
        for seed in 0..6 {
            for temperature in [0.0, 0.3, 1.0] {
                let request = |speculation| {
                    Request::new(letters("abc ab"), 25)
                        .grammar(pattern.map(grammar))
                        .sampling(Sampling {
                            temperature,
                            ..Sampling::seeded(seed)
                        })
                        .speculation(speculation)
                };
                let without = generate(&plain, request(Speculation::none()));
                let by_text = (temperature == 0.0).then_some(model(Verification::Residual));
                for speculation in by_text.into_iter().chain([
                    model(Verification::DrawOnce),
                    Speculation {
                        verification: Verification::DrawOnce,
                        ..Speculation::all()
                    },
                ]) {
                    let what = format!("{pattern:?}, {seed}, {temperature}, {speculation:?}");
                    compare(&without, &generate(&other, request(speculation)), &what);
                }
            }
        }
    }
    let stats = wait_until(&other, |stats| stats.running == 0);
    assert!(
        stats.accepted > 0 && stats.accepted < stats.drafted && !stats.draft_model_failed,
        "{stats:?}"
    );
}

/// Guards against a draft model that is asked and whose text is lost on the way: where both models write the
/// same text, nearly all of it is drafted and confirmed: all but words that the script spells in letters and
/// the tokenizer does not.
#[test]
fn what_both_would_write_is_written_in_few_passes() {
    for config in [
        drafting(),
        // The prompt is read in pieces.
        EngineConfig {
            max_step_tokens: 4,
            ..drafting()
        },
    ] {
        let other = with_other_tokens(phrase_script, phrase_draft, config).unwrap();
        for pattern in [None, Some("the [a-z ]*")] {
            let request = Request::new(letters(&PHRASE[..1]), 60)
                .grammar(pattern.map(grammar))
                .speculation(Speculation {
                    max_draft: 3,
                    ..model(Verification::Residual)
                });
            let request = match pattern {
                // The answer begins with what the grammar does.
                Some(_) => request.grammar(pattern.map(|_| grammar("he [a-z ]*"))),
                None => request,
            };
            let heard = generate(&other, request);
            assert_eq!(heard.text(), PHRASE[1..], "{pattern:?}");
            let outcome = heard.outcome();
            // How much is drafted under a grammar depends on how busy the machine is.
            let (least, share) = if pattern.is_none() { (26, 0.8) } else { (1, 0.5) };
            assert!(outcome.accepted >= least, "{pattern:?}: {outcome:?}");
            assert!(
                outcome.accepted as f64 > share * outcome.drafted as f64,
                "{pattern:?}: {outcome:?}"
            );
        }
    }
}

/// A cache that is nearly full, and company.
#[test]
fn a_crowd_changes_no_text() {
    let config = EngineConfig {
        max_running: 5,
        blocks: 16,
        block_size: 4,
        ..drafting()
    };
    let plain = start(wordy_script, drafting());
    let other = with_other_tokens(wordy_script, wordy_draft, config).unwrap();
    let request = |seed, speculation| {
        Request::new(letters("abc ab"), 20)
            .sampling(Sampling {
                temperature: 0.5,
                ..Sampling::seeded(seed)
            })
            .speculation(speculation)
    };
    let listeners = (0..20).map(|seed| {
        let request = request(seed, model(Verification::DrawOnce));
        (seed, crate::rig::listen(&other, request))
    });
    for (seed, listener) in listeners.collect::<Vec<_>>() {
        let without = generate(&plain, request(seed, Speculation::none()));
        compare(&without, &listener.wait(), &format!("{seed}"));
    }
    assert!(wait_until(&other, |stats| stats.running == 0).accepted > 0);
}

/// The same tokens under other words are the same: then the draft model draws with the numbers of the
/// request.
#[test]
fn a_vocabulary_that_is_the_same_is_taken_for_that() {
    let known = vocabulary();
    let tokens: Vec<(TokenKind, &[u8])> = (0..known.len() as u32)
        .map(|token| (known.kind(token), known.bytes(token)))
        .collect();
    let assistant = Assistant::Model {
        model: Box::new(ScriptedModel::new(WIDTH, 100_000, wordy_script)),
        tokens: Some(OwnTokens {
            vocabulary: Arc::new(Vocabulary::new(&tokens, &[EOS]).unwrap()),
            tokeniser: Arc::new(LongestMatch(vocabulary())),
        }),
        mask: None,
    };
    let model = Box::new(ScriptedModel::new(WIDTH, 100_000, wordy_script));
    let tokeniser = Arc::new(LongestMatch(vocabulary()));
    let engine = Engine::start_with_tokeniser(model, Some(assistant), vocabulary(), tokeniser, drafting());
    let request = Request::new(letters("ab"), 40)
        .sampling(Sampling::seeded(3))
        .speculation(Speculation {
            model: true,
            max_draft: 4,
            verification: Verification::DrawOnce,
            ..Speculation::none()
        })
        .ignore_eos(true);
    let outcome = generate(&engine.unwrap(), request).outcome().clone();
    // At this temperature nobody guesses without the numbers.
    assert_eq!(outcome.accepted, outcome.drafted);
    assert!(outcome.accepted > 20, "{outcome:?}");
}

#[test]
fn a_draft_model_without_a_byte_map_is_refused_at_start() {
    let tokens = [(TokenKind::Text, "a"), (TokenKind::Special, "</s>")];
    let own = Arc::new(Vocabulary::new(&tokens, &[1]).unwrap());
    let assistant = Assistant::Model {
        model: Box::new(ScriptedModel::new(2, 100, |_: &[u32]| vec![0.0; 2])),
        tokens: Some(OwnTokens {
            tokeniser: Arc::new(LongestMatch(own.clone())),
            vocabulary: own,
        }),
        mask: None,
    };
    let model = Box::new(ScriptedModel::new(WIDTH, 100, wordy_script));
    let tokeniser = Arc::new(LongestMatch(vocabulary()));
    let started = Engine::start_with_tokeniser(model, Some(assistant), vocabulary(), tokeniser, drafting());
    let error = started.err().expect("it cannot read a `b`");
    assert_eq!(
        error,
        EngineError::DraftTokens {
            token: 1,
            text: "b".to_owned()
        }
    );
}
