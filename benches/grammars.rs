//! The cost of grammars in all notations: `cargo bench --bench grammars`.
//!
//! The benchmark compiles every grammar of this repository, and every grammar of other projects in
//! `.data/grammars/` that can be read. It walks their texts, and then texts that are drawn from
//! their masks by a generator with a fixed seed, which reach states that no text of a test suite reaches. A
//! time covers a step and the mask of the state that it leads to, in a fresh grammar; at each position, the
//! fastest of several rounds counts. The hash covers all masks: if it stays the same, a change has made no
//! difference to the allowed tokens.
//!
//! Each grammar uses the tables of a compiler that is primed with JSON, and shares nothing with the grammars
//! before it. `cargo bench --bench grammars -- NAME …` measures the grammars with these names only.

#[path = "texts/draw.rs"]
mod draw;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use draw::draw;
use lexiform::grammar::Notation;
use lexiform::vocab::Tokenizer;
use lexiform::{Compiler, Options, Source};
use lexiform::{Grammar, Mask};
use serde_json::Value;

const ROUNDS: usize = 3;
/// The number of texts drawn from each grammar, and the length of each in tokens.
const DRAWN: u64 = 8;
const LENGTH: usize = 48;
/// The number of slowest grammars that are shown.
const SHOWN: usize = 12;

struct Case {
    name: String,
    notation: Notation,
    source: String,
    texts: Vec<String>,
}

/// The fastest times of one grammar in microseconds, and the hash of its masks.
#[derive(Default)]
struct Figures {
    compile: Vec<f64>,
    masks: Vec<f64>,
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
    let asked: Vec<String> = std::env::args()
        .skip(1)
        .filter(|name| !name.starts_with('-'))
        .collect();
    let is_asked = |case: &Case| asked.is_empty() || asked.contains(&case.name);
    let mut all = Vec::new();
    for case in cases(&root).into_iter().filter(is_asked) {
        let rounds: Option<Vec<Figures>> = (0..ROUNDS).map(|_| measure(&primed, &tokenizer, &case)).collect();
        // Grammars of other dialects are skipped.
        if let Some(figures) = rounds.and_then(|rounds| rounds.into_iter().reduce(quickest)) {
            all.push((case.name, figures));
        }
    }
    report(all);
}

fn report(mut all: Vec<(String, Figures)>) {
    let hash = (all.iter()).fold(0u64, |hash, (_, figures)| hash.wrapping_mul(31) ^ figures.hash);
    println!("{} grammars, all masks {hash:016x}; times in µs\n", all.len());
    println!("| | samples | mean | p50 | p90 | p99 | max |\n|---|--:|--:|--:|--:|--:|--:|");
    let together = |pick: fn(&Figures) -> &Vec<f64>| -> Vec<f64> {
        all.iter()
            .flat_map(|(_, figures)| pick(figures).clone())
            .collect()
    };
    row("compile", together(|figures| &figures.compile));
    row("mask", together(|figures| &figures.masks));
    let sum = |figures: &Figures| figures.masks.iter().sum::<f64>();
    all.sort_by(|one, other| sum(&other.1).total_cmp(&sum(&one.1)));
    for (name, figures) in all.iter().take(SHOWN) {
        row(name, figures.masks.clone());
    }
    println!("\n| compile | µs |\n|---|--:|");
    all.sort_by(|one, other| other.1.compile[0].total_cmp(&one.1.compile[0]));
    for (name, figures) in all.iter().take(SHOWN) {
        println!("| {name} | {:.0} |", figures.compile[0]);
    }
}

fn row(name: &str, mut samples: Vec<f64>) {
    samples.sort_by(f64::total_cmp);
    let mean = samples.iter().sum::<f64>() / samples.len() as f64;
    let at = |share: f64| samples[((share * samples.len() as f64).ceil() as usize).max(1) - 1];
    println!(
        "| {name} | {} | {mean:.2} | {:.2} | {:.2} | {:.1} | {:.0} |",
        samples.len(),
        at(0.5),
        at(0.9),
        at(0.99),
        at(1.0)
    );
}

/// Returns all grammars with their known texts.
fn cases(root: &Path) -> Vec<Case> {
    let data = root.join(".data/grammars");
    let mut cases = Vec::new();
    for folder in sorted(&root.join("grammars"))
        .into_iter()
        .filter(|path| path.is_dir())
    {
        let file = |notation: &Notation| folder.join(format!("grammar.{notation}"));
        let Some(notation) = Notation::all().find(|notation| file(notation).is_file()) else {
            continue;
        };
        let file = file(&notation);
        let accept = read(&folder.join("accept.txt"));
        let texts = accept.lines().filter_map(|line| serde_json::from_str(line).ok());
        cases.push(Case {
            name: named(&folder),
            notation,
            source: read(&file),
            texts: texts.collect(),
        });
    }
    for path in [sorted(&data.join("gbnf")), sorted(&data.join("lark"))].concat() {
        let is_lark = path.extension().is_some_and(|ending| ending == "lark");
        cases.push(Case {
            name: named(&path),
            notation: if is_lark { Notation::Lark } else { Notation::Gbnf },
            source: read(&path),
            texts: Vec::new(),
        });
    }
    for (file, notation) in [
        ("llamacpp_gbnf", Notation::Gbnf),
        ("xgrammar_lark", Notation::Llguidance),
        ("llguidance", Notation::Llguidance),
    ] {
        let rows = read(&data.join(format!("cases/{file}.jsonl")));
        for (line, row) in rows.lines().enumerate() {
            let row: Value = serde_json::from_str(row).expect("a row is JSON");
            let texts = row["accept"].as_array().into_iter().flatten();
            cases.extend(row["grammar"].as_str().map(|source| Case {
                name: format!("{file}:{}", line + 1),
                notation,
                source: source.to_owned(),
                texts: texts.filter_map(Value::as_str).map(str::to_owned).collect(),
            }));
        }
    }
    cases
}

fn sorted(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

fn named(path: &Path) -> String {
    path.file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

fn measure(primed: &Compiler, tokenizer: &Tokenizer, case: &Case) -> Option<Figures> {
    let compiler = primed.fresh();
    let mut options = Options::default();
    options.grammar.notation = Some(case.notation);
    // Grammars of Python begin with a file.
    let starts_with_file = case.source.contains("\nfile_input:") && !case.source.contains("\nstart:");
    options.grammar.start = starts_with_file.then(|| "file_input".to_owned());
    let (compiled, took) = timed(|| compiler.compile(Source::Grammar(&case.source), &options));
    let (grammar, _) = compiled.ok()?;
    let mut figures = Figures {
        compile: vec![took],
        ..Figures::default()
    };
    let (mask, took) = timed(|| grammar.mask(grammar.start()));
    figures.add(&mask, took);
    for text in &case.texts {
        let mut tokens = tokenizer.encode(text).expect("any text has tokens").into_iter();
        figures.walk(&grammar, |_| tokens.next());
    }
    for seed in 0..DRAWN {
        let mut random = seed;
        let mut left = LENGTH;
        figures.walk(&grammar, |mask| {
            left = left.checked_sub(1)?;
            draw(&grammar, mask, &mut random)
        });
    }
    Some(figures)
}

impl Figures {
    fn add(&mut self, mask: &Mask, took: f64) {
        self.masks.push(took);
        for &word in mask.words() {
            self.hash = (self.hash ^ u64::from(word))
                .wrapping_mul(0x0100_0000_01b3)
                .rotate_left(23);
        }
    }

    fn walk(&mut self, grammar: &Grammar, mut next: impl FnMut(&Mask) -> Option<u32>) {
        let mut state = grammar.start();
        let mut mask = grammar.mask(state);
        while let Some(token) = next(&mask) {
            let (stepped, took) = timed(|| {
                let state = grammar.step(state, token)?;
                Some((state, grammar.mask(state)))
            });
            // Another project may give its grammar a different meaning, so its texts may not belong here.
            let Some(stepped) = stepped else { return };
            (state, mask) = stepped;
            self.add(&mask, took);
        }
    }
}

/// Returns the smaller time at each position; the walks of all rounds are the same.
fn quickest(mut one: Figures, other: Figures) -> Figures {
    assert_eq!(one.hash, other.hash, "masks depend on the text alone");
    let lesser = |one: &mut Vec<f64>, other: &[f64]| {
        for (one, other) in one.iter_mut().zip(other) {
            *one = one.min(*other);
        }
    };
    lesser(&mut one.compile, &other.compile);
    lesser(&mut one.masks, &other.masks);
    one
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed().as_nanos() as f64 / 1000.0)
}
