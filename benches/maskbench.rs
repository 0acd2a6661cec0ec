//! The cost of compiles, masks and masks within a budget: `cargo bench --bench maskbench -- [EVERY [FIRST]]`.
//!
//! The benchmark compiles every sixteenth schema of MaskBench's development half (or every `EVERY`th, from
//! `FIRST` on), with keys in any order and without anything cached from other schemas, and walks its valid
//! instances with Llama 3.1's vocabulary. A time is the smaller of the thread's processor time and the
//! wall-clock time, since the work takes no longer than either of them:
//!
//! | row | what is timed |
//! |---|---|
//! | compile | the text of a schema to its grammar |
//! | first walk | a step and the mask after it; the grammar keeps its caches from one instance to the next |
//! | second walk | the same walk once more, on the same grammar |
//! | first question | `min_completion` of the empty text, which does the work that a grammar needs once |
//! | 4,096 | the mask within a budget of 4,096 tokens, after the mask itself has been computed |
//! | the text | such a mask with a budget of the text's remaining tokens, until one of them is refused |
//! | the least | such a mask with a budget of `min_completion`, while tokens are drawn until the text ends |
//!
//! The data is read from `.data/`; if it is missing, the benchmark says so and exits.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lexiform::MaskRequest;
use lexiform::schema::KeyOrder;
use lexiform::vocab::Tokenizer;
use lexiform::{Compiler, Options, Source};
use lexiform::{Grammar, Mask, State};
use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;

/// The maximum number of tokens of a text.
const TOKENS: usize = 400;

/// A row of the table: the time of each sample in microseconds, with the schema that it belongs to.
#[derive(Default)]
struct Row {
    samples: Vec<(f64, Arc<str>)>,
}

impl Row {
    fn time<T>(&mut self, schema: &Arc<str>, work: impl FnOnce() -> T) -> T {
        let (thread, wall) = (thread_time(), Instant::now());
        let result = work();
        let wall = wall.elapsed();
        let time = wall.min(thread_time().saturating_sub(thread));
        self.samples
            .push((time.as_nanos() as f64 / 1000.0, schema.clone()));
        result
    }

    fn print(mut self, name: &str) {
        self.samples.sort_by(|a, b| a.0.total_cmp(&b.0));
        let count = self.samples.len();
        let Some((max, slowest)) = self.samples.last() else {
            return;
        };
        let mean = self.samples.iter().map(|sample| sample.0).sum::<f64>() / count as f64;
        let at = |part: f64| self.samples[((count as f64 * part).ceil() as usize).clamp(1, count) - 1].0;
        let [p50, p90, p99, p999] = [0.5, 0.9, 0.99, 0.999].map(at);
        println!(
            "| {name} | {count} | {mean:.2} | {p50:.2} | {p90:.1} | {p99:.1} | {p999:.0} | {max:.0} | {slowest} |"
        );
    }
}

/// Returns the processor time of this thread so far.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.cast_unsigned(), time.tv_nsec as u32)
}

/// All rows of the table.
#[derive(Default)]
struct Table {
    compile: Row,
    first: Row,
    second: Row,
    question: Row,
    ample: Row,
    text: Row,
    least: Row,
    /// The number of walks within the least budget that ended with no token allowed.
    stuck: usize,
}

fn main() {
    let mut numbers = std::env::args().filter_map(|argument| argument.parse().ok());
    let (every, first) = (numbers.next().unwrap_or(16), numbers.next().unwrap_or(0));
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join(".data");
    let schemas = data.join("maskbench/dev.jsonl");
    let Ok(lines) = std::fs::read_to_string(&schemas) else {
        return println!("skipped: {} is not there", schemas.display());
    };
    let Some((tokenizer, compiler)) = load(&data.join("tokenizers/llama3_1/tokenizer.json")) else {
        return;
    };
    let mut table = Table::default();
    for line in lines.lines().skip(first).step_by(every) {
        let entry: Value = serde_json::from_str(line).expect("a line of JSON");
        table.measure(&entry, &tokenizer, &compiler);
    }
    table.print();
}

fn load(file: &Path) -> Option<(Tokenizer, Compiler)> {
    let Ok(bytes) = std::fs::read(file) else {
        println!("skipped: {} is not there", file.display());
        return None;
    };
    let tokenizer = Tokenizer::from_bytes(&bytes).expect("a tokenizer file");
    let end = tokenizer.special("<|eot_id|>").expect("the end of a turn");
    let vocabulary = Arc::new(tokenizer.vocabulary(&[end]).expect("a vocabulary"));
    let compiler = Compiler::new(vocabulary)
        .primed(&options())
        .expect("what compilers are primed with compiles");
    Some((tokenizer, compiler))
}

fn options() -> Options {
    let mut options = Options::default();
    options.schema.key_order = KeyOrder::Any;
    options
}

impl Table {
    /// Measures all samples of one schema.
    fn measure(&mut self, entry: &Value, tokenizer: &Tokenizer, compiler: &Compiler) {
        let name: Arc<str> = entry["name"].as_str().unwrap_or("?").into();
        let schema = entry["schema"].to_string();
        let fresh = compiler.fresh();
        let compiled = self
            .compile
            .time(&name, || fresh.compile(Source::JsonSchema(&schema), &options()));
        let Ok((grammar, _)) = compiled else { return };
        let tests = entry["tests"].as_array().map_or(&[][..], Vec::as_slice);
        let valid = tests.iter().filter(|test| test["valid"] == true);
        let texts = valid.filter_map(|test| tokenizer.encode(&spaced(&test["data"])).ok());
        let texts: Vec<Vec<u32>> = texts.filter(|tokens| tokens.len() <= TOKENS).collect();
        for row in [&mut self.first, &mut self.second] {
            for tokens in &texts {
                walk(&grammar, tokens, |state, token| {
                    row.time(&name, || step(&grammar, state, token))
                });
            }
        }
        let start = grammar.start();
        self.question.time(&name, || grammar.min_completion(start));
        for tokens in &texts {
            walk_within(&grammar, tokens, |_| 4096, (&name, &mut self.ample));
            walk_within(&grammar, tokens, |left| left + 1, (&name, &mut self.text));
        }
        let ends = close(&grammar, (&name, &mut self.least));
        self.stuck += usize::from(!ends);
    }

    fn print(self) {
        println!("| µs | samples | mean | p50 | p90 | p99 | p99.9 | max | slowest |");
        println!("|---|--:|--:|--:|--:|--:|--:|--:|---|");
        self.compile.print("compile");
        self.first.print("first walk");
        self.second.print("second walk");
        self.question.print("first question");
        self.ample.print("4,096");
        self.text.print("the text");
        self.least.print("the least");
        println!("walks within the least budget that could not end: {}", self.stuck);
    }
}

fn step(grammar: &Grammar, state: State, token: u32) -> Option<State> {
    let next = grammar.step(state, token)?;
    std::hint::black_box(grammar.mask(next));
    Some(next)
}

/// Walks a text as far as it is allowed.
fn walk(grammar: &Grammar, tokens: &[u32], mut step: impl FnMut(State, u32) -> Option<State>) {
    let mut state = grammar.start();
    for &token in tokens {
        match step(state, token) {
            Some(next) => state = next,
            None => return,
        }
    }
}

/// Walks a text, with a budget of the number of tokens that remain at each position.
fn walk_within(
    grammar: &Grammar,
    tokens: &[u32],
    budget: impl Fn(usize) -> usize,
    (name, row): (&Arc<str>, &mut Row),
) {
    let mut left = tokens.len();
    walk(grammar, tokens, |state, token| {
        let mask = ask(grammar, state, budget(left), (name, row));
        left -= 1;
        grammar.step(state, token).filter(|_| mask.contains(token))
    });
}

/// Draws from masks within the least budget, by a fixed sequence of numbers. Returns `true` if no mask was
/// empty.
fn close(grammar: &Grammar, (name, row): (&Arc<str>, &mut Row)) -> bool {
    let mut state = grammar.start();
    let Some(least) = grammar.min_completion(state).filter(|&least| least <= TOKENS) else {
        return true;
    };
    let mut chance: u64 = 1;
    for left in (1..=least).rev() {
        if grammar.is_finished(state) {
            break;
        }
        let mask = ask(grammar, state, left, (name, row));
        chance = chance
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let place = (chance >> 33) as usize % mask.count().max(1);
        let Some(token) = mask.iter().nth(place) else {
            return false;
        };
        state = grammar.step(state, token).expect("an allowed token");
    }
    true
}

fn ask(grammar: &Grammar, state: State, budget: usize, (name, row): (&Arc<str>, &mut Row)) -> Arc<Mask> {
    std::hint::black_box(grammar.mask(state));
    row.time(name, || {
        grammar
            .try_mask(MaskRequest::from(state).within(budget))
            .expect("within the limits")
    })
}

/// Writes a value with the spacing of Python's `json.dumps`, as in the collection's instances.
fn spaced(value: &Value) -> String {
    match value {
        Value::Array(list) => format!("[{}]", list.iter().map(spaced).collect::<Vec<_>>().join(", ")),
        Value::Object(map) => {
            let entry =
                |(key, value): (&String, &Value)| format!("{}: {}", Value::from(key.as_str()), spaced(value));
            format!("{{{}}}", map.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
        scalar => scalar.to_string(),
    }
}
