//! Drafts that go as far as they are right: copies that are being confirmed, passages of a corpus, and a
//! draft model beside other sources.

use crate::rig::{EOS, WIDTH, drafting, generate, letters, start, vocabulary, wait_until};
use lexiform_engine::{
    DraftStores, Engine, EngineConfig, Learner, Model, Request, ScriptedModel, Speculation, Verification,
};
use lexiform_law::draft::Retrieval;

/// Letters in an order without long repetitions.
fn text(tokens: usize, seed: u32) -> Vec<u32> {
    let letter = |number: u32| {
        let mixed = (number + 1).wrapping_mul(0x9e37_79b9).wrapping_add(seed);
        let mixed = (mixed ^ mixed >> 15).wrapping_mul(0x85eb_ca6b);
        b'a' + ((mixed >> 13) % 26) as u8
    };
    let all: Vec<u8> = (0..tokens as u32).map(letter).collect();
    letters(std::str::from_utf8(&all).unwrap())
}

/// A model that writes a text after its prompt, whatever it has written before.
fn writes(prompt: usize, text: Vec<u32>) -> impl Fn(&[u32]) -> Vec<f32> + Send + Clone {
    move |prefix: &[u32]| {
        let mut row = vec![0.0; WIDTH];
        let next = prefix.len().checked_sub(prompt).and_then(|place| text.get(place));
        row[next.copied().unwrap_or(EOS) as usize] = 12.0;
        row
    }
}

/// Returns the passes that an answer took after its prompt.
fn passes(engine: &Engine, request: Request, wanted: &[u32]) -> u64 {
    let before = engine.stats();
    let heard = generate(engine, request);
    assert_eq!(heard.tokens(), wanted);
    let after = wait_until(engine, |stats| {
        stats.running == 0 && stats.requests > before.requests
    });
    after.steps - before.steps
}

/// A prediction of 600 tokens that is right took 36 passes of 16 drafts.
#[test]
fn a_prediction_that_is_right_takes_passes_in_proportion_to_its_logarithm() {
    let wanted = text(600, 1);
    let engine = start(writes(4, wanted.clone()), drafting());
    let mut request = Request::new(letters("aaaa"), 700).speculation(Speculation::all());
    request.prompt.reference = [letters("aaaa"), wanted.clone()].concat();
    let passes = passes(&engine, request, &wanted);
    assert!(passes <= 9, "{passes}");
}

/// After a token that differs, a copy begins small again.
#[test]
fn a_prediction_with_other_words_is_copied_between_them() {
    let mut wanted = text(400, 2);
    let reference = [letters("aaaa"), wanted.clone()].concat();
    for place in [90, 200, 310] {
        wanted[place] = letters(" ")[0];
    }
    let engine = start(writes(4, wanted.clone()), drafting());
    let mut request = Request::new(letters("aaaa"), 500).speculation(Speculation::all());
    request.prompt.reference = reference;
    let passes = passes(&engine, request, &wanted);
    assert!(passes <= 32, "{passes}");
}

/// The corpus was drafted three tokens at a time, because each of them counted as likely as not.
#[test]
fn a_passage_of_the_corpus_is_written_in_three_passes() {
    let wanted = text(30, 3);
    let config = EngineConfig {
        draft_stores: DraftStores {
            learners: vec![Learner::Retrieval],
            corpus: Some(Retrieval::of_texts([[letters("aaaa"), wanted.clone()].concat()]).unwrap()),
            ..DraftStores::default()
        },
        ..drafting()
    };
    let engine = start(writes(4, wanted.clone()), config);
    let request = Request::new(letters("aaaa"), 60).speculation(Speculation {
        learned: true,
        max_draft: 32,
        ..Speculation::none()
    });
    let passes = passes(&engine, request, &wanted);
    assert!(passes <= 3, "{passes}");
}

/// A draft model was not asked wherever the last words had continued in two ways, which is nearly everywhere
/// in this text of two letters.
#[test]
fn a_draft_model_goes_on_where_other_drafts_branch() {
    let two: Vec<u32> = text(60, 4)
        .into_iter()
        .map(|token| letters("ab")[token as usize % 2])
        .collect();
    let prompt = letters("aababbabaabbbaaabab");
    let script = writes(prompt.len(), two.clone());
    for verification in [Verification::DrawOnce, Verification::Residual] {
        let engine = with_itself(script.clone());
        let request = |model| {
            Request::new(prompt.clone(), 100).speculation(Speculation {
                lookup: true,
                model,
                max_draft: 12,
                branches: 3,
                verification,
                ..Speculation::none()
            })
        };
        let (without, with) = (
            passes(&engine, request(false), &two),
            passes(&engine, request(true), &two),
        );
        assert!(
            2 * with <= without,
            "{with} passes with the draft model, {without} without"
        );
    }
}

/// An engine whose model and draft model are the same.
fn with_itself(script: impl Fn(&[u32]) -> Vec<f32> + Send + Clone + 'static) -> Engine {
    let model = Box::new(ScriptedModel::new(WIDTH, 100_000, script.clone()));
    let draft: Box<dyn Model> = Box::new(ScriptedModel::new(WIDTH, 100_000, script));
    Engine::start(model, Some(draft), vocabulary(), drafting()).unwrap()
}
