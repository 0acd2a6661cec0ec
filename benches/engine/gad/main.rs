//! Samplers of the global law compared on the grammars of the GAD benchmark: the cost of a sample, and the
//! divergence of its law from the enumerated one.
//!
//! ```sh
//! cargo run --release -p lexiform-engine --example gad -- --grammars .data/gad/BV4 --model ngram --tokens 52
//! cargo run --release -p lexiform-engine --example gad -- --grammars .data/gad/BV4 --model demo --tokens 50
//! ```
//!
//! Each grammar has a prompt in the same folder (`NAME.ebnf`, `NAME.txt`). `--model ngram` is a table of
//! n-grams that is counted on random texts of the grammar with mistakes in them, and knows no syntax beyond
//! the last `--context N` tokens (5): the law alone, without a network. `--model demo` is a model folder:
//! `models/demo`, or the one that `--folder` names. `--requests R` requests have `--samples S` samples each
//! (20 of 10); the samples of a request share the rows that it has computed and the results that it has
//! learned.
//!
//! A *pass* is one run of the model over a tree of tokens, which yields the row after each. A request keeps
//! the rows that it has computed, so a sampler pays only for new prefixes: a KV cache gives this to all
//! samplers alike. The output is a Markdown table of means over all grammars: passes, rows and attempts for
//! each sample, samples that gave up after 2,000 attempts, and `KL(samples ‖ law)` if the law could be
//! enumerated. The divergence of finitely many samples is above zero even for the exact law; the exact
//! samplers show by how much.

mod exact;
mod models;
mod rows;
mod samplers;

use exact::Enumerated;
use lexiform::vocab::Tokenizer;
use lexiform::{Compiler, Options as CompileOptions, Source};
use lexiform_engine::{LoadOptions, ModelFiles, load};
use models::{Demo, Model, Ngram};
use rows::{Memo, Rows, Task};
use samplers::{METHODS, Request};
use std::collections::HashMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;

struct Options(HashMap<String, String>);

impl Options {
    fn read() -> Result<Self, Box<dyn Error>> {
        let mut values = HashMap::new();
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let name = argument
                .strip_prefix("--")
                .ok_or(format!("{argument:?} is no option"))?;
            let value = arguments.next().ok_or(format!("--{name} wants a value"))?;
            values.insert(name.to_string(), value);
        }
        Ok(Options(values))
    }

    fn number(&self, name: &str, default: usize) -> Result<usize, Box<dyn Error>> {
        let parse = |value: &String| {
            value
                .parse()
                .map_err(|error| format!("--{name} {value}: {error}").into())
        };
        self.0.get(name).map_or(Ok(default), parse)
    }

    fn word<'a>(&'a self, name: &str, default: &'a str) -> &'a str {
        self.0.get(name).map_or(default, String::as_str)
    }
}

/// The results of a method on all grammars.
#[derive(Default)]
struct Figures {
    passes: f64,
    rows: f64,
    attempts: f64,
    wanted: f64,
    found: f64,
    /// The divergences on the grammars that were enumerated.
    divergences: Vec<f64>,
}

impl Figures {
    fn line(&self, name: &str) -> String {
        let mean = |sum: f64| match self.found > 0.0 {
            true => format!("{:.2}", sum / self.found),
            false => "–".to_owned(),
        };
        let divergence = match self.divergences.len() {
            0 => "–".to_owned(),
            count => format!("{:.3}", self.divergences.iter().sum::<f64>() / count as f64),
        };
        format!(
            "| {name} | {} | {} | {} | {:.0} of {:.0} | {divergence} |",
            mean(self.passes),
            mean(self.rows),
            mean(self.attempts),
            self.wanted - self.found,
            self.wanted,
        )
    }
}

/// Returns the grammars of a folder, sorted by name.
fn grammars(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "ebnf") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Runs every method on a grammar, and adds up the results.
fn compare(
    task: &Task,
    memo: &mut Memo<'_>,
    (requests, samples): (usize, usize),
    figures: &mut [Figures; METHODS.len()],
) -> Result<(), Box<dyn Error>> {
    let law = Enumerated::of(task, memo)?;
    if let Some(law) = &law {
        eprintln!("{}: Z = {:.3e}", task.name, law.mass());
    }
    for ((name, method), figures) in METHODS.iter().zip(figures) {
        let mut texts = Vec::new();
        let mut given_up = false;
        for number in 0..requests {
            // A sampler that found nothing in a whole request will find nothing in the next one.
            if given_up {
                figures.wanted += samples as f64;
                continue;
            }
            let mut rows = Rows::new(memo);
            let mut request = Request::new(task, *method, number as u64);
            let mut found = 0;
            for _ in 0..samples {
                let sample = request.sample(&mut rows)?;
                figures.attempts += f64::from(sample.attempts);
                found += usize::from(sample.text.is_some());
                if sample.text.is_none() {
                    break;
                }
                texts.extend(sample.text);
            }
            given_up = found == 0;
            figures.found += found as f64;
            figures.wanted += samples as f64;
            figures.passes += rows.passes as f64;
            figures.rows += rows.rows as f64;
        }
        let divergence = match &law {
            Some(law) => law.divergence(&texts, memo)?,
            None => None,
        };
        figures.divergences.extend(divergence);
        eprintln!(
            "{}: {name}: {} samples, KL {divergence:?}",
            task.name,
            texts.len()
        );
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::read()?;
    let folder = options.word("folder", "models/demo");
    let tokens = options.number("tokens", 50)?;
    let counts = (options.number("requests", 20)?, options.number("samples", 10)?);
    let tokenizer = Arc::new(Tokenizer::from_bytes(&std::fs::read(format!(
        "{folder}/tokenizer.json"
    ))?)?);
    let mut loaded = load(&ModelFiles::folder(folder), &LoadOptions::default())?;
    let vocabulary = Arc::new(tokenizer.vocabulary_with_rows(&loaded.eos, loaded.config.vocab_size)?);
    let compile = CompileOptions::default();
    let compiler = Compiler::new(vocabulary.clone()).primed(&compile)?;
    let mut figures: [Figures; METHODS.len()] = std::array::from_fn(|_| Figures::default());
    let files = grammars(Path::new(options.word("grammars", ".data/gad/BV4")))?;
    let kind = options.word("model", "ngram").to_owned();
    for file in files.iter().take(options.number("files", usize::MAX)?) {
        let text = std::fs::read_to_string(file)?;
        let (grammar, _) = compiler.compile(Source::Ebnf(&text), &compile)?;
        let task = Task::new(file, grammar, &vocabulary, &tokenizer, tokens);
        let mut model: Box<dyn Model> = match kind.as_str() {
            "ngram" => Box::new(Ngram::counted(&task, options.number("context", 5)?)),
            "demo" => {
                let prompt = tokenizer.encode(&std::fs::read_to_string(file.with_extension("txt"))?)?;
                Box::new(Demo::new(&mut loaded, prompt, tokens)?)
            }
            other => return Err(format!("--model {other}: ngram and demo are known").into()),
        };
        compare(&task, &mut Memo::new(&mut *model, &task), counts, &mut figures)?;
    }
    println!("| sampler | passes a sample | rows a sample | attempts a sample | gave up | KL |");
    println!("|---|--:|--:|--:|--:|--:|");
    for ((name, _), figures) in METHODS.iter().zip(&figures) {
        println!("{}", figures.line(name));
    }
    Ok(())
}
