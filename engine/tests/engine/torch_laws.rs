//! The laws, drawn from a libtorch model: on the processor, and on a graphics card if there is one.
//!
//! The model has random weights, so its law is known only by running it: the probability of every text of a
//! small grammar is the product of the model's own rows, computed with one forward pass for each prefix on
//! the processor, and compared with counts of whole answers of the engine. The card's answers are therefore
//! compared with the processor's rows.

use crate::devices::cuda;
use crate::laws::agrees;
use crate::rig::{self, Heard, drafting, grammar_over, listen};
use crate::torch::{Kind, load_family, vocabulary};
use lexiform_engine::{Device, Engine, EngineConfig, Feed, Law, LawTag, Request, Sampling, Speculation};
use std::collections::BTreeMap;

const PROMPT: [u32; 5] = [40, 7, 33, 90, 12];
const END: u32 = 2;
const PATTERN: &str = "A[BC]|B[AC]{2}";
const TEXTS: [&str; 6] = ["AB", "AC", "BAA", "BAC", "BCA", "BCC"];
const COUNT: u64 = 1500;

fn tokens(text: &str) -> Vec<u32> {
    text.bytes().map(|byte| u32::from(byte - b' ')).collect()
}

/// What the model gives every token after these, on the processor.
fn row(prefix: &[u32]) -> Vec<f64> {
    let mut model = load_family(Kind::usual("llama3", Device::Cpu)).model;
    model.create_cache(16, 4).unwrap();
    let table: Vec<u32> = (0..16).collect();
    let feed = Feed {
        tokens: prefix,
        start: 0,
        table: &table,
        rows: 1,
        parents: None,
        scale: 1.0,
    };
    let logits = model.forward(&[feed]).unwrap();
    let weights: Vec<f64> = logits
        .row(0)
        .iter()
        .map(|&logit| f64::from(logit).exp())
        .collect();
    let total: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / total).collect()
}

/// The share of each text under the local law and under the global one, whose texts end with the end token.
fn shares_by_the_rows() -> [Vec<(&'static str, f64)>; 2] {
    let mut laws = [Vec::new(), Vec::new()];
    for text in TEXTS {
        let (mut local, mut global) = (1.0, 1.0);
        for at in 0..text.len() {
            let row = row(&[&PROMPT[..], &tokens(&text[..at])].concat());
            let own = tokens(&text[at..=at])[0] as usize;
            let mut next: Vec<u32> = TEXTS
                .iter()
                .filter(|other| other.starts_with(&text[..at]))
                .map(|other| tokens(&other[at..=at])[0])
                .collect();
            next.sort_unstable();
            next.dedup();
            let mass: f64 = next.iter().map(|&token| row[token as usize]).sum();
            local *= row[own] / mass;
            global *= row[own];
        }
        global *= row(&[&PROMPT[..], &tokens(text)].concat())[END as usize];
        laws[0].push((text, local));
        laws[1].push((text, global));
    }
    let total: f64 = laws[1].iter().map(|(_, share)| share).sum();
    laws[1].iter_mut().for_each(|(_, share)| *share /= total);
    laws
}

fn engine(device: Device) -> Engine {
    let load = |family| load_family(Kind::usual(family, device)).model;
    let config = EngineConfig {
        blocks: 400,
        block_size: 4,
        ..drafting()
    };
    Engine::start(load("llama3"), Some(load("llama2")), vocabulary(), config).unwrap()
}

fn text(heard: &Heard) -> String {
    heard
        .tokens()
        .iter()
        .map(|&token| char::from(b' ' + token as u8))
        .collect()
}

/// The shares of texts in many answers that run together, and the law that they say they were drawn from.
fn shares(engine: &Engine, request: impl Fn(u64) -> Request, law: LawTag) -> BTreeMap<String, f64> {
    let mut shares = BTreeMap::new();
    for seeds in (0..COUNT).collect::<Vec<_>>().chunks(200) {
        let listeners: Vec<_> = seeds.iter().map(|&seed| listen(engine, request(seed))).collect();
        for listener in listeners {
            let heard = listener.wait();
            assert_eq!(heard.outcome().law, law);
            *shares.entry(text(&heard)).or_insert(0.0) += 1.0 / COUNT as f64;
        }
    }
    shares
}

fn answers_follow_their_law(device: Device) {
    let [local, global] = shares_by_the_rows();
    let grammar = grammar_over(&vocabulary(), PATTERN);
    let engine = engine(device);
    let attempts = rig::global(1000);
    for (law, tag, expected) in [
        (Law::Local, LawTag::Local, &local),
        (attempts, LawTag::GlobalExact, &global),
    ] {
        for speculation in [Speculation::none(), Speculation::all()] {
            let request = |seed| {
                Request::new(PROMPT.to_vec(), 8)
                    .task(law)
                    .grammar(Some(grammar.clone()))
                    .sampling(Sampling::seeded(seed))
                    .speculation(speculation)
            };
            agrees(&shares(&engine, request, tag), expected, COUNT);
        }
    }
    let stats = engine.stats();
    assert!(
        stats.accepted > 0 && stats.accepted < stats.drafted,
        "drafts are judged: {stats:?}"
    );
    assert!(
        !stats.draft_model_failed && stats.panics == 0 && stats.failed == 0,
        "{stats:?}"
    );
}

#[test]
fn answers_follow_their_law_on_the_processor() {
    answers_follow_their_law(Device::Cpu);
}

#[test]
fn answers_follow_their_law_on_a_graphics_card() {
    if let Some(device) = cuda("answers_follow_their_law_on_a_graphics_card") {
        answers_follow_their_law(device);
    }
}
