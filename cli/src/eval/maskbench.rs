//! `lexiform eval maskbench`: every instance of every schema, token by token, as MaskBench walks them.
//!
//! ```text
//!   schema text ──compile──► grammar ──mask(start)──► first mask
//!   instance ──json.dumps──► text ──tokenizer──► tokens:  step, mask, is the next token allowed?  …  at the end: EOS?
//! ```
//!
//! A sample of `mask_us` covers the way from one token to the next mask: the step with the token and the mask
//! of the resulting state, since a lazy engine may do its work in either.

use std::cell::Cell;
use std::collections::BTreeMap;

use clap::ValueEnum;
use lexiform::Grammar;
use lexiform::vocab::Tokenizer;
use lexiform::{Compiler, Options, Source};
use serde_json::{Map, Value, json};

use super::clock::timed;
use super::figures::{Reasons, Samples};
use super::panics::{caught, quietly};
use super::python_json;
use super::report::{Publishing, Report};
use super::verdict::{Counts, Data, Failures, Verdict, parse_line, progress};
use crate::failure::{EXIT_CODES, Failure, read_text};
use crate::input::source::Meaning;
use crate::input::tokenizer::TokenizerArgs;

/// The arguments of `lexiform eval maskbench`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub struct Args {
    #[command(flatten)]
    data: Data,
    #[command(flatten)]
    tokenizer: TokenizerArgs,
    #[command(flatten)]
    meaning: Meaning,
    /// Only the first N schemas
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Whether masks learned so far are forgotten before every schema, or kept from schema to schema
    #[arg(long, value_enum, default_value_t)]
    cache: WarmTables,
    #[command(flatten)]
    pub(super) publishing: Publishing,
}

/// The earlier work that a schema may profit from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum WarmTables {
    /// Its own earlier instances, and the tables that are built once for the vocabulary
    #[default]
    Cold,
    /// Everything that schemas before it have computed
    Warm,
}

/// Walks the collection and creates the report.
///
/// # Errors
/// The data or the tokenizer cannot be read.
pub(super) fn report(args: &Args) -> Result<Report, Failure> {
    let data = args.data.path();
    let text = read_text(data)?;
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let wanted = args.limit.unwrap_or(lines.len()).min(lines.len());
    let mut bench = Bench::new(args)?;
    let bar = progress(wanted);
    quietly(|| {
        for (index, line) in lines[..wanted].iter().enumerate() {
            let entry = parse_line(data, index + 1, line)?;
            bench.walk_entry(&entry);
            bar.inc(1);
        }
        Ok::<(), Failure>(())
    })?;
    bar.finish_and_clear();
    Ok(Report::new(bench.results.report(), bench.results.failures))
}

/// The engine under test with everything it needs, and the results so far.
struct Bench {
    tokenizer: Tokenizer,
    compiler: Compiler,
    options: Options,
    cache: WarmTables,
    results: Results,
}

#[derive(Default)]
struct Results {
    counts: Counts,
    by_split: BTreeMap<String, Counts>,
    errors: Reasons,
    failures: Failures,
    instances_valid: u64,
    instances_invalid: u64,
    mask_us: Samples,
    compile_us: Samples,
    first_mask_us: Samples,
    /// The time and the memory of the tables that are built once for the vocabulary, before the first schema.
    prime_us: f64,
    tables_bytes: usize,
}

/// The stage at which a panic occurred.
#[derive(Clone, Copy)]
enum PanicStage {
    Compile,
    Instance { valid: bool },
}

impl Bench {
    fn new(args: &Args) -> Result<Self, Failure> {
        let (tokenizer, vocabulary) = args.tokenizer.load()?;
        let options = args.meaning.options();
        let (compiler, prime_us) = timed(|| Compiler::new(vocabulary).primed(&options));
        let compiler = compiler.map_err(|error| Failure::message(error.to_string()))?;
        let tables_bytes = compiler.tables().bytes();
        Ok(Self {
            tokenizer,
            compiler,
            options,
            cache: args.cache,
            results: Results {
                prime_us,
                tables_bytes,
                ..Results::default()
            },
        })
    }

    fn walk_entry(&mut self, entry: &Value) {
        let schema = entry["schema"].to_string();
        let tests = entry["tests"].as_array().map_or(&[][..], Vec::as_slice);
        let stage = Cell::new(PanicStage::Compile);
        let verdict = caught(|| self.judge(&schema, tests, &stage));
        let verdict = verdict.unwrap_or_else(|panic| match stage.get() {
            PanicStage::Compile => Verdict::DoesNotCompile(panic),
            PanicStage::Instance { valid: true } => Verdict::Refused(panic),
            PanicStage::Instance { valid: false } => Verdict::LetThrough(panic),
        });
        self.results.add(entry, tests, &verdict);
    }

    fn judge(&mut self, schema: &str, tests: &[Value], stage: &Cell<PanicStage>) -> Verdict {
        if self.cache == WarmTables::Cold {
            // Grammars share data through their compiler; a fresh one has compiled only the parts of JSON.
            self.compiler = self.compiler.fresh();
        }
        let (compiled, compile_us) =
            timed(|| self.compiler.compile(Source::JsonSchema(schema), &self.options));
        self.results.compile_us.push(compile_us);
        let grammar = match compiled {
            Ok((grammar, _)) => grammar,
            Err(error) => {
                let first = error
                    .problems
                    .first()
                    .map_or("no reason given", |problem| &problem.message);
                return Verdict::DoesNotCompile(first.to_owned());
            }
        };
        let (_, mask_us) = timed(|| grammar.mask(grammar.start()));
        self.results.first_mask_us.push(compile_us + mask_us);
        self.results.mask_us.push(mask_us);
        for test in tests {
            let valid = test["valid"] == Value::Bool(true);
            stage.set(PanicStage::Instance { valid });
            let allowed = match self.tokenizer.encode(&python_json::dumps(&test["data"])) {
                Ok(tokens) => self.allows(&grammar, &tokens),
                Err(error) => return Verdict::Refused(error.to_string()),
            };
            match (valid, allowed) {
                (true, false) => return Verdict::Refused("valid instance rejected".to_owned()),
                (false, true) => return Verdict::LetThrough("invalid instance accepted".to_owned()),
                _ => {}
            }
        }
        Verdict::Right
    }

    /// Returns `true` if masks allow these tokens one after another, and then the end.
    fn allows(&mut self, grammar: &Grammar, tokens: &[u32]) -> bool {
        let mut state = grammar.start();
        let mut mask = grammar.mask(state);
        for token in tokens {
            if !mask.contains(*token) {
                return false;
            }
            let (next, microseconds) = timed(|| {
                grammar
                    .step(state, *token)
                    .map(|state| (state, grammar.mask(state)))
            });
            let Some(next) = next else { return false };
            self.results.mask_us.push(microseconds);
            (state, mask) = next;
        }
        grammar.vocabulary().eos().iter().any(|eos| mask.contains(*eos))
    }
}

impl Results {
    fn add(&mut self, entry: &Value, tests: &[Value], verdict: &Verdict) {
        let valid = tests
            .iter()
            .filter(|test| test["valid"] == Value::Bool(true))
            .count() as u64;
        self.instances_valid += valid;
        self.instances_invalid += tests.len() as u64 - valid;
        self.counts.add(verdict, 1);
        self.failures.note(
            || entry["name"].as_str().unwrap_or("without a name").to_owned(),
            verdict,
        );
        self.by_split
            .entry(split(entry["name"].as_str().unwrap_or("")))
            .or_default()
            .add(verdict, 1);
        match verdict {
            Verdict::Right => {}
            Verdict::DoesNotCompile(reason) | Verdict::Refused(reason) | Verdict::LetThrough(reason) => {
                self.errors.count(reason);
            }
        }
    }

    fn report(&self) -> Value {
        let mut report = schema_counts(&self.counts);
        report.extend([
            ("instances_valid".to_owned(), json!(self.instances_valid)),
            ("instances_invalid".to_owned(), json!(self.instances_invalid)),
            ("mask_us".to_owned(), self.mask_us.summary()),
            ("compile_us".to_owned(), self.compile_us.summary()),
            ("first_mask_us".to_owned(), self.first_mask_us.summary()),
            ("vocabulary_us".to_owned(), json!(self.prime_us.round())),
            ("vocabulary_bytes".to_owned(), json!(self.tables_bytes)),
        ]);
        let splits = self
            .by_split
            .iter()
            .map(|(name, counts)| (name.clone(), Value::Object(schema_counts(counts))));
        report.insert("by_split".to_owned(), Value::Object(splits.collect()));
        report.insert("errors".to_owned(), self.errors.report());
        Value::Object(report)
    }
}

fn schema_counts(counts: &Counts) -> Map<String, Value> {
    let fields = [
        ("schemas", counts.all),
        ("right", counts.right),
        ("compile_errors", counts.does_not_compile),
        ("valid_rejected", counts.refused),
        ("invalid_accepted", counts.let_through),
    ];
    fields
        .into_iter()
        .map(|(name, count)| (name.to_owned(), json!(count)))
        .collect()
}

/// Returns the part of the collection that a name belongs to: `Github_easy` for `Github_easy---o123`, `BFCL`
/// for `BFCL_java_0`.
fn split(name: &str) -> String {
    let part = name
        .split_once("---")
        .or_else(|| name.split_once('_'))
        .map_or(name, |(part, _)| part);
    part.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_their_part_of_the_collection() {
        assert_eq!(split("Github_easy---o123_x"), "Github_easy");
        assert_eq!(split("BFCL_java_0"), "BFCL");
        assert_eq!(split("alone"), "alone");
    }
}
