//! Contrasts: an answer is that of a model whose rows are the combined ones, whatever the law, the drafts,
//! the pieces of the prompts and the room in the cache.

use crate::branches::answers;
use crate::rig::{
    Heard, Redraw, WIDTH, drafting, generate, global, grammar, letters, start, wait_until, wordy_script,
};
use lexiform_engine::{
    AmateurRows, Contrast, ContrastWith, EngineConfig, Event, LawTag, Options, Refusal, Request, Sampling,
    Search, Speculation, Task, Weigh,
};
use lexiform_law::Allowed;
use std::sync::mpsc::channel;

const PROMPT: &str = "the quick brown fox";
const OTHER: &str = "a lazy dog that is longer than the prompt of the answer, and says something else";

fn other() -> Vec<u32> {
    letters(&OTHER.replace(',', ""))
}

fn contrast(alpha: f32) -> Contrast {
    Contrast::beyond(alpha, 0.5)
}

/// The rows of the combined model, where no mask decides what is plausible.
fn combined_script(prefix: &[u32]) -> Vec<f32> {
    let mut row = wordy_script(prefix);
    let answer = &prefix[PROMPT.len()..];
    let mut amateur = wordy_script(&[&other(), answer].concat());
    // The columns beyond the vocabulary are no tokens.
    row.truncate(WIDTH);
    amateur.truncate(WIDTH);
    contrast(0.0).combine(&mut row, &amateur, Allowed::All).unwrap();
    row
}

/// The script where the combined model is to be compared: the prompt alone.
fn combined(prefix: &[u32]) -> Vec<f32> {
    match prefix.len() < PROMPT.len() {
        true => wordy_script(prefix),
        false => combined_script(prefix),
    }
}

fn request(max_tokens: usize) -> Request {
    Request::new(letters(PROMPT), max_tokens)
}

fn contrasted(request: Request) -> Request {
    let contrast = Some(ContrastWith {
        amateur: AmateurRows::Prompt(other()),
        contrast: contrast(0.0),
    });
    Request {
        sampling: Sampling {
            contrast,
            ..request.sampling.clone()
        },
        ..request
    }
}

/// What answers are compared by: their tokens and numbers, without what was drafted.
pub(crate) fn told(heard: &Heard) -> (Vec<u32>, Vec<f32>, LawTag, String) {
    let logprobs = heard.events.iter().filter_map(|event| match event {
        Event::Token { logprob, .. } => *logprob,
        _ => None,
    });
    let outcome = heard.outcome();
    let numbers = format!("{:.6} {:?}", outcome.log_probability, outcome.log_weight);
    (heard.tokens(), logprobs.collect(), outcome.law, numbers)
}

/// Requests of many kinds.
pub(crate) fn requests() -> Vec<(&'static str, Request)> {
    let drawn = |seed| request(40).sampling(Sampling::seeded(seed));
    let constrained = |seed| Request {
        constraints: lexiform_engine::Constraints {
            grammar: Some(grammar("(the |quick |ab|bc){3,9}")),
            ..Default::default()
        },
        ..drawn(seed)
    };
    let trees = Speculation {
        branches: 3,
        ..Speculation::all()
    };
    let searched = |search| Request {
        task: Task::Search { search, answers: 2 },
        ..constrained(0)
    };
    vec![
        ("greedy", request(40)),
        ("drawn", drawn(1)),
        ("constrained", constrained(2)),
        ("trees", constrained(3).speculation(trees)),
        ("without drafts", constrained(4).speculation(Speculation::none())),
        ("samples", constrained(5).answers(4)),
        ("attempts", constrained(6).law(global(500)).answers(2)),
        (
            "beam",
            searched(Search::Beam {
                width: 4,
                length_penalty: 0.0,
                patience: None,
            }),
        ),
    ]
}

fn compare(config: &EngineConfig) {
    let plain = start(combined, drafting());
    let tested = start(wordy_script, config.clone());
    for (name, request) in requests() {
        let wanted: Vec<_> = answers(&plain, request.clone()).iter().map(told).collect();
        let got: Vec<_> = answers(&tested, contrasted(request)).iter().map(told).collect();
        assert_eq!(wanted, got, "{name}");
    }
    wait_until(&tested, |stats| stats.running == 0 && stats.blocks_used == 0);
}

#[test]
fn an_answer_is_that_of_the_combined_model() {
    compare(&drafting());
}

#[test]
fn pieces_of_prompts_and_small_blocks_change_nothing() {
    compare(&EngineConfig {
        block_size: 3,
        blocks: 1000,
        prompt_piece: 5,
        max_step_tokens: 7,
        ..drafting()
    });
}

/// Guards against texts that are confused when sequences give way to each other and come back, with either
/// of the two texts in the cache or not.
#[test]
fn a_full_cache_changes_nothing() {
    let config = EngineConfig {
        block_size: 4,
        // Two requests fit: each has 19 + 77 + 2 * 40 positions.
        blocks: 100,
        ..drafting()
    };
    let plain = start(combined, drafting());
    let tested = start(wordy_script, config);
    let seeds = 0..12;
    let drawn = |seed| request(40).sampling(Sampling::seeded(seed));
    let listeners: Vec<_> = seeds
        .clone()
        .map(|seed| crate::rig::listen(&tested, contrasted(drawn(seed))))
        .collect();
    for (seed, listener) in seeds.zip(listeners) {
        let wanted = generate(&plain, drawn(seed));
        assert_eq!(told(&wanted), told(&listener.wait()), "{seed}");
    }
    let stats = wait_until(&tested, |stats| stats.running == 0 && stats.blocks_used == 0);
    assert!(stats.preemptions > 0, "{stats:?}");
}

/// The rows of a request without a contrast stay as they are beside one that has it.
#[test]
fn others_are_left_alone() {
    let engine = start(wordy_script, drafting());
    let drawn = |seed| request(30).sampling(Sampling::seeded(seed));
    let alone: Vec<_> = (0..4).map(|seed| told(&generate(&engine, drawn(seed)))).collect();
    let with = crate::rig::listen(&engine, contrasted(drawn(9)));
    let beside: Vec<_> = (0..4)
        .map(|seed| crate::rig::listen(&engine, drawn(seed)))
        .collect();
    let beside: Vec<_> = beside
        .into_iter()
        .map(|listener| told(&listener.wait()))
        .collect();
    with.wait();
    assert_eq!(alone, beside);
}

#[test]
fn weighed_options_have_the_probabilities_of_the_combined_model() {
    let options = [letters("the "), letters("quick"), letters("dog")];
    let weigh = || {
        let options = Options::canonical(&options).unwrap();
        Request {
            task: Task::Weigh(Weigh {
                options: options.into(),
                likeliest: None,
            }),
            ..request(8).sampling(Sampling::seeded(0))
        }
    };
    let weighed = |script: fn(&[u32]) -> Vec<f32>, request| {
        let engine = start(script, drafting());
        format!("{:?}", generate(&engine, request).outcome().options)
    };
    assert_eq!(
        weighed(combined, weigh()),
        weighed(wordy_script, contrasted(weigh()))
    );
}

/// What is plausible is judged among the tokens that the grammar allows, and the answer says that it was
/// cut.
#[test]
fn something_plausible_is_left_of_every_mask() {
    let engine = start(wordy_script, drafting());
    for seed in 0..20 {
        let mut request = contrasted(request(40).sampling(Sampling::seeded(seed)));
        request.constraints.grammar = Some(grammar("(the |quick |ab|bc){3,9}"));
        request.sampling.contrast.as_mut().unwrap().contrast = contrast(1.0);
        let heard = generate(&engine, request);
        assert_eq!(heard.outcome().law, LawTag::LocalFiltered);
        assert_eq!(heard.outcome().log_weight, None);
        assert!(heard.failure().is_none());
    }
}

#[test]
fn a_contrast_that_cannot_be_is_refused() {
    let config = EngineConfig {
        block_size: 4,
        blocks: 40,
        ..drafting()
    };
    let engine = start(wordy_script, config);
    let prompt = AmateurRows::Prompt;
    let refusal = |change: &dyn Fn(&mut ContrastWith)| {
        let mut request = contrasted(request(4));
        change(request.sampling.contrast.as_mut().unwrap());
        let (sender, _events) = channel();
        let sink = Box::new(move |event| sender.send(event).is_ok());
        engine.submit(request, sink).err()
    };
    assert!(refusal(&|_| ()).is_none());
    let is_named = |refusal: Option<Refusal>, field: &str| matches!(refusal, Some(Refusal::Invalid { name, .. }) if name == field);
    assert!(is_named(
        refusal(&|with| with.amateur = prompt(Vec::new())),
        "contrast"
    ));
    assert!(is_named(refusal(&|with| with.contrast.alpha = 1.5), "alpha"));
    assert!(is_named(
        refusal(&|with| with.contrast.amateur = f32::NAN),
        "amateur"
    ));
    let unknown = refusal(&|with| with.amateur = prompt(vec![0, 0, 0, 1 << 20]));
    assert!(matches!(unknown, Some(Refusal::UnknownToken { place: 3, .. })));
    let long = refusal(&|with| with.amateur = prompt(vec![0; 170]));
    assert!(matches!(long, Some(Refusal::TooLong { .. })));
    // Each fits, and both do not.
    let both = refusal(&|with| with.amateur = prompt(vec![0; 140]));
    assert!(matches!(both, Some(Refusal::TooLong { limit: 160, .. })));
}
