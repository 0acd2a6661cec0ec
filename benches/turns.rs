//! The cost of sharing a grammar among many sequences: `cargo bench --bench turns`.
//!
//! A server reads a token of every sequence in turn, so anything that a grammar keeps at hand for one
//! sequence is of no use to the next. Here, 64 texts that are drawn from the masks of a grammar are walked in
//! two orders: one text after the other, and a token of each in turn. A time covers a step and the mask of
//! the state that it leads to, in a fresh grammar (*new*) and again in the same grammar (*known*); at each
//! position, the fastest of several rounds counts. Both orders take the same steps, and their masks are
//! compared.
//!
//! ```text
//!   one after the other   a a a a … b b b b … c c c c …
//!   in turns              a b c … a b c … a b c …          ratio: the mean of this by the mean of that
//! ```
//!
//! The schemas are some of `.data/maskbench/`, which is not part of this repository; the grammars are in
//! `grammars/`.

#[path = "texts/draw.rs"]
mod draw;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use draw::draw;
use lexiform::Grammar;
use lexiform::vocab::Tokenizer;
use lexiform::{Compiler, Options, Source};
use serde_json::Value;

const ROUNDS: usize = 7;
const SEQUENCES: u64 = 64;
/// The maximum length of a text in tokens; longer texts are cut.
const LENGTH: usize = 64;
/// The distance between two walked schemas in the benchmark.
const STRIDE: usize = 348;
/// The grammars of this repository that are walked.
const GRAMMARS: [&str; 4] = ["json", "tool_call", "s_expression", "arithmetic"];

enum Text {
    Schema(String),
    Ebnf(String),
}

/// The fastest times of all steps of all texts in microseconds, and the hash of all masks.
struct Walked {
    times: Vec<Vec<f64>>,
    hash: u64,
}

fn main() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let Ok(bytes) = std::fs::read(root.join(".data/tokenizers/llama3_1/tokenizer.json")) else {
        println!("skipped: .data/tokenizers/llama3_1/tokenizer.json is not there");
        return;
    };
    let tokenizer = Tokenizer::from_bytes(&bytes).expect("a tokenizer file");
    let end = tokenizer.special("<|eot_id|>").expect("the end of a turn");
    let vocabulary = Arc::new(tokenizer.vocabulary(&[end]).expect("a vocabulary"));
    let primed = Compiler::new(vocabulary).primed(&Options::default());
    let primed = primed.expect("the usual options are sound");
    println!("| | tokens | new: alone | in turns | ratio | known: alone | in turns | ratio |");
    println!("|---|--:|--:|--:|--:|--:|--:|--:|");
    let mut all = [0.0; 4];
    let mut tokens = 0;
    for (name, text) in cases(&root) {
        let Some((count, times)) = measure(&primed, &text) else {
            continue;
        };
        row(&name, count, times);
        all.iter_mut().zip(times).for_each(|(all, time)| *all += time);
        tokens += count;
    }
    row("all", tokens, all);
}

/// Formats a line of the table from the sums of times.
fn row(name: &str, tokens: usize, [new, new_turns, known, known_turns]: [f64; 4]) {
    let mean = |sum: f64| sum / tokens as f64;
    println!(
        "| {name} | {tokens} | {:.3} | {:.3} | {:.2} | {:.3} | {:.3} | {:.2} |",
        mean(new),
        mean(new_turns),
        new_turns / new,
        mean(known),
        mean(known_turns),
        known_turns / known
    );
}

fn cases(root: &Path) -> Vec<(String, Text)> {
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap_or_default();
    let rows = read(".data/maskbench/dev.jsonl");
    let schemas = rows.lines().step_by(STRIDE).map(|row| {
        let row: Value = serde_json::from_str(row).expect("a row is JSON");
        let name = row["name"].as_str().unwrap_or_default().to_owned();
        (name, Text::Schema(row["schema"].to_string()))
    });
    let grammars = GRAMMARS.map(|name| {
        let text = read(&format!("grammars/{name}/grammar.ebnf"));
        (name.to_owned(), Text::Ebnf(text))
    });
    schemas.chain(grammars).collect()
}

/// Returns the number of tokens of all texts, and the sums of their times: new and known, each alone and in
/// turns.
fn measure(primed: &Compiler, text: &Text) -> Option<(usize, [f64; 4])> {
    let options = Options::default();
    let fresh = || {
        let source = match text {
            Text::Schema(text) => Source::JsonSchema(text),
            Text::Ebnf(text) => Source::Ebnf(text),
        };
        Some(primed.fresh().compile(source, &options).ok()?.0)
    };
    let grammar = fresh()?;
    let texts: Vec<Vec<u32>> = (0..SEQUENCES).map(|seed| drawn(&grammar, seed)).collect();
    let orders = [alone(&texts), in_turns(&texts)];
    let mut quickest: [Vec<Vec<f64>>; 4] =
        std::array::from_fn(|_| texts.iter().map(|text| vec![f64::INFINITY; text.len()]).collect());
    for _ in 0..ROUNDS {
        let mut hashes = Vec::new();
        for (place, order) in orders.iter().enumerate() {
            let grammar = fresh()?;
            for known in [0, 2] {
                let walked = walk(&grammar, &texts, order);
                take_quickest(&mut quickest[known + place], walked.times);
                hashes.push(walked.hash);
            }
        }
        assert!(
            hashes.iter().all(|hash| *hash == hashes[0]),
            "both orders see the same masks"
        );
    }
    let tokens = texts.iter().map(Vec::len).sum();
    Some((tokens, quickest.map(|times| times.iter().flatten().sum())))
}

/// Draws a text of the grammar, or the beginning of one.
fn drawn(grammar: &Grammar, seed: u64) -> Vec<u32> {
    let mut random = seed;
    let mut state = grammar.start();
    let mut text = Vec::new();
    while text.len() < LENGTH
        && let Some(token) = draw(grammar, &grammar.mask(state), &mut random)
    {
        state = grammar.step(state, token).expect("the mask allows the token");
        text.push(token);
    }
    text
}

/// Returns the steps of all texts, each as the text and the position, one text after the other.
fn alone(texts: &[Vec<u32>]) -> Vec<(usize, usize)> {
    let texts = texts.iter().enumerate();
    texts
        .flat_map(|(text, tokens)| (0..tokens.len()).map(move |at| (text, at)))
        .collect()
}

/// Returns the same steps with a token of each text in turn.
fn in_turns(texts: &[Vec<u32>]) -> Vec<(usize, usize)> {
    let mut steps = alone(texts);
    steps.sort_by_key(|&(text, at)| (at, text));
    steps
}

fn walk(grammar: &Grammar, texts: &[Vec<u32>], order: &[(usize, usize)]) -> Walked {
    let mut states = vec![grammar.start(); texts.len()];
    let mut walked = Walked {
        times: vec![Vec::new(); texts.len()],
        hash: 0,
    };
    for &(text, at) in order {
        let start = Instant::now();
        let next = grammar.step(states[text], texts[text][at]);
        let next = next.expect("the texts were drawn from the masks");
        let mask = grammar.mask(next);
        walked.times[text].push(start.elapsed().as_nanos() as f64 / 1000.0);
        states[text] = next;
        // A sum does not depend on the order.
        let place = (text * LENGTH + at) as u64;
        let words = mask.words().iter();
        let hash = words.fold(place, |hash, &word| {
            (hash ^ u64::from(word)).wrapping_mul(0x0100_0000_01b3)
        });
        walked.hash = walked.hash.wrapping_add(hash);
    }
    walked
}

fn take_quickest(quickest: &mut [Vec<f64>], times: Vec<Vec<f64>>) {
    let all = quickest.iter_mut().flatten().zip(times.into_iter().flatten());
    all.for_each(|(quickest, time)| *quickest = quickest.min(time));
}
