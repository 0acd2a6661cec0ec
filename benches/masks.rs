//! The cost of masks: `cargo bench --bench masks` (or `cargo xtask bench`).
//!
//! For each vocabulary and source, a text is walked token by token twice: in a fresh grammar (every mask is
//! new), and again in the same grammar (every mask is cached). A time covers the step with a token and the
//! mask of the state that it leads to. At each position, the fastest of several rounds counts: on a shared
//! machine, the others measure the neighbours.
//!
//! The vocabularies are read from `.data/tokenizers/`, which is not part of this repository; a missing one is
//! skipped by name.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use lexiform::vocab::{Tokenizer, Vocabulary};
use lexiform::{Compiler, Options, Source};
use lexiform::{Grammar, State};

const ROUNDS: usize = 7;

const VOCABULARIES: [(&str, &str); 2] = [("llama3_1", "<|eot_id|>"), ("qwen3", "<|im_end|>")];

/// Sources with a text of each, from the simple to the unusual.
const CASES: [(&str, Source<'static>, &str); 6] = [
    (
        "any JSON",
        Source::JsonSchema("true"),
        r#"{"a": [1, 2.5, {"b": "some text with spaces"}], "c": null}"#,
    ),
    (
        "person",
        Source::JsonSchema(
            r#"{"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0},
                "tags": {"type": "array", "items": {"type": "string"}}}, "required": ["name", "age"],
                "additionalProperties": false}"#,
        ),
        r#"{"name": "Johanna Quandt", "age": 41, "tags": ["reader", "early bird"]}"#,
    ),
    (
        "enum",
        Source::JsonSchema(
            r#"{"type": "object", "properties": {"unit": {"enum": ["metre", "mile", "inch"]}}}"#,
        ),
        r#"{"unit": "metre"}"#,
    ),
    (
        "bounded string",
        Source::JsonSchema(r#"{"type": "string", "maxLength": 200, "pattern": "^[A-Z]"}"#),
        r#""A sentence of moderate length, as people write them.""#,
    ),
    (
        "date and time",
        Source::JsonSchema(r#"{"type": "string", "format": "date-time"}"#),
        r#""2026-11-21T09:30:00Z""#,
    ),
    (
        "regex",
        Source::Regex(r"[a-z]+(\.[a-z]+)*@[a-z]+\.(com|org)"),
        "maria.keller@example.org",
    ),
];

fn main() {
    println!(
        "| vocabulary | source | tokens | compile µs | first mask µs | new mask p50 / max µs | known mask p50 µs |"
    );
    println!("|---|---|--:|--:|--:|--:|--:|");
    for (name, eos) in VOCABULARIES {
        let Some((tokenizer, vocabulary)) = load(name, eos) else {
            continue;
        };
        for (label, source, text) in CASES {
            let tokens = tokenizer
                .encode(text)
                .expect("the vocabularies can write every text");
            println!("| {name} | {label} | {} |", measure(&vocabulary, source, &tokens));
        }
    }
}

fn load(name: &str, eos: &str) -> Option<(Tokenizer, Arc<Vocabulary>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join(".data/tokenizers")
        .join(name);
    let Ok(bytes) = std::fs::read(folder.join("tokenizer.json")) else {
        println!(
            "skipped: {name}: {} is not there",
            folder.join("tokenizer.json").display()
        );
        return None;
    };
    let tokenizer = Tokenizer::from_bytes(&bytes).expect("a tokenizer file");
    let end = tokenizer.special(eos).expect("the end of a turn");
    let vocabulary = Arc::new(tokenizer.vocabulary(&[end]).expect("a vocabulary"));
    Some((tokenizer, vocabulary))
}

/// Returns a row of the table: the fastest of all rounds for each measurement.
fn measure(vocabulary: &Arc<Vocabulary>, source: Source<'_>, tokens: &[u32]) -> String {
    let mut compile = f64::INFINITY;
    let mut first = f64::INFINITY;
    let mut new = vec![f64::INFINITY; tokens.len()];
    let mut known = new.clone();
    for _ in 0..ROUNDS {
        let compiler = Compiler::new(vocabulary.clone());
        let (compiled, took) = timed(|| compiler.compile(source, &Options::default()));
        let (grammar, _) = compiled.expect("the sources of this benchmark compile");
        compile = compile.min(took);
        first = first.min(timed(|| grammar.mask(grammar.start())).1);
        walk(&grammar, tokens, &mut new);
        walk(&grammar, tokens, &mut known);
    }
    let (new_max, new_p50) = (largest(&new), median(&mut new));
    let known_p50 = median(&mut known);
    format!(
        "{} | {compile:.0} | {first:.1} | {new_p50:.1} / {new_max:.1} | {known_p50:.2}",
        tokens.len()
    )
}

fn walk(grammar: &Grammar, tokens: &[u32], quickest: &mut [f64]) {
    let mut state = grammar.start();
    for (token, quickest) in tokens.iter().zip(quickest) {
        let (next, took) = timed(|| step_and_mask(grammar, state, *token));
        state = next.expect("the texts of this benchmark belong to their sources");
        *quickest = quickest.min(took);
    }
    assert!(
        grammar.is_accepting(state),
        "the texts of this benchmark are whole"
    );
}

fn step_and_mask(grammar: &Grammar, state: State, token: u32) -> Option<State> {
    let next = grammar.step(state, token)?;
    std::hint::black_box(grammar.mask(next));
    Some(next)
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed().as_nanos() as f64 / 1000.0)
}

fn median(samples: &mut [f64]) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied().unwrap_or(f64::NAN)
}

fn largest(samples: &[f64]) -> f64 {
    samples.iter().copied().fold(0.0, f64::max)
}
