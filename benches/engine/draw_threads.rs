//! The effect of more drawing threads if rows are wide: the time of a pass's draws with one thread and with
//! several.
//!
//! ```sh
//! cargo run --release -p lexiform-engine --example draw_threads -- 2
//! ```
//!
//! Runs 16 requests under the global law, each with its own trie, over a scripted model of 128,000 tokens,
//! whose passes cost almost nothing. The output is one line of JSON: the milliseconds that the draws of a
//! pass take with one thread and with the requested number, as medians of five alternating rounds.

use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform::{Compiler, Options, Source};
use lexiform_engine::{
    Engine, EngineConfig, Event, Fallback, Law, OnBudget, Request, Sampling, ScriptedModel, Sink,
};
use std::error::Error;
use std::sync::Arc;
use std::sync::mpsc::channel;

const TOKENS: usize = 128_000;
const REQUESTS: u64 = 16;
const ROUNDS: usize = 5;

/// Creates a vocabulary of tokens of one to four letters, and an end token.
fn vocabulary() -> Result<Arc<Vocabulary>, Box<dyn Error>> {
    let letter = |number: usize| b'a' + (number % 26) as u8;
    let text = |number: usize| match number {
        0..26 => vec![letter(number)],
        26..702 => vec![letter(number), letter(number / 26)],
        _ => vec![
            letter(number),
            letter(number / 26),
            letter(number / 676),
            letter(number / 17_576),
        ],
    };
    let mut tokens: Vec<(TokenKind, Vec<u8>)> = (0..TOKENS - 1)
        .map(|number| (TokenKind::Text, text(number)))
        .collect();
    tokens.push((TokenKind::Special, Vec::new()));
    Ok(Arc::new(Vocabulary::new(&tokens, &[TOKENS as u32 - 1])?))
}

/// Returns logits that look random and differ for each prefix.
fn script(prefix: &[u32]) -> Vec<f32> {
    let mut state = prefix.iter().fold(1_u64, |state, &token| {
        (state ^ u64::from(token)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }) | 1;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1 << 22) as f32
    };
    (0..TOKENS).map(next).collect()
}

/// Returns the milliseconds that the draws of a pass take.
fn run(threads: usize) -> Result<f64, Box<dyn Error>> {
    let vocabulary = vocabulary()?;
    let options = Options::default();
    let (grammar, _) = Compiler::new(vocabulary.clone()).compile(Source::Regex("[a-z]{1,9}"), &options)?;
    let config = EngineConfig {
        draw_threads: threads,
        ..EngineConfig::default()
    };
    let model = ScriptedModel::new(TOKENS, 1000, script);
    let engine = Engine::start(Box::new(model), None, vocabulary, config)?;
    let (sender, events) = channel();
    let mut tickets = Vec::new();
    for seed in 0..REQUESTS {
        let sender = sender.clone();
        let sink: Sink = Box::new(move |event| sender.send(event).is_ok());
        let request = Request::new(vec![seed as u32], 8)
            .task(Law::Global {
                share_attempts: false,
                max_attempts: 30,
                fallback: Fallback::Fail,
            })
            .grammar(Some(grammar.clone()))
            .sampling(Sampling::seeded(seed))
            .on_budget(OnBudget::Complete);
        tickets.push(engine.submit(request, sink)?);
    }
    drop(sender);
    events
        .iter()
        .filter(|event| matches!(event, Event::Done(_)))
        .count();
    let draws = &engine.meters().draws;
    Ok(1e3 * draws.sum() / draws.count() as f64)
}

fn main() -> Result<(), Box<dyn Error>> {
    let threads: usize = std::env::args().nth(1).map_or(Ok(2), |threads| threads.parse())?;
    let (mut one, mut many) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        one.push(run(1)?);
        many.push(run(threads)?);
    }
    let median = |times: &mut Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[ROUNDS / 2]
    };
    let (one, many) = (median(&mut one), median(&mut many));
    println!(
        "{{\"one\": {one:.3}, \"threads\": {threads}, \"many\": {many:.3}, \"ratio\": {:.2}}}",
        one / many
    );
    Ok(())
}
