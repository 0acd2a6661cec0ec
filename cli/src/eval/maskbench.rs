//! `lexiform eval maskbench`: every instance of every schema, token by token, as MaskBench walks them.
//!
//! ```text
//!   schema text ──compile──► grammar ──mask(start)──► first mask
//!   instance ──json.dumps──► text ──tokenizer──► tokens:  step, mask, is the next token allowed?  …  at the end: EOS?
//! ```
//!
//! A sample of `mask_us` covers the way from one token to the next mask: the step with the token and the mask
//! of the resulting state, since a lazy engine may do its work in either.

mod collection;
pub(crate) mod keywords;
mod page;

use std::cell::Cell;
use std::collections::BTreeMap;

use clap::ValueEnum;
use lexiform::Grammar;
use lexiform::error::CompileError;
use lexiform::vocab::Tokenizer;
use lexiform::{Compiler, Options, Source};
use serde_json::{Map, Value, json};

use super::clock::timed;
use super::figures::{Reasons, Samples};
use super::panics::{caught, quietly};
use super::python_json;
use super::report::{Findings, Publishing, again};
use super::verdict::{Counts, Data, Failures, Verdict, progress};
use crate::failure::{EXIT_CODES, Failure};
use crate::input::source::Meaning;
use crate::input::tokenizer::TokenizerArgs;
use crate::report::{CommandLine, Made};

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
    /// Only the schema with this name; may be repeated
    #[arg(long, value_name = "NAME", conflicts_with = "limit")]
    only: Vec<String>,
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
pub(super) fn report(args: &Args) -> Result<Findings, Failure> {
    let data = args.data.path();
    let mut entries = collection::read(data)?;
    if !args.only.is_empty() {
        entries = collection::named(entries, &args.only)?;
    }
    entries.truncate(args.limit.unwrap_or(entries.len()));
    let made = Made::here().read(data)?;
    let mut bench = Bench::new(args)?;
    let bar = progress(entries.len());
    quietly(|| {
        for entry in &entries {
            bench.walk_entry(&entry.parse()?);
            bar.inc(1);
        }
        Ok::<(), Failure>(())
    })?;
    bar.finish_and_clear();
    Ok(Findings {
        report: bench.results.report(made),
        failures: bench.results.failures,
    })
}

/// The engine under test with everything it needs, and the results so far.
struct Bench {
    tokenizer: Tokenizer,
    compiler: Compiler,
    options: Options,
    cache: WarmTables,
    /// The command line of this run, without what would choose other schemas or write files.
    again: CommandLine,
    results: Results,
}

#[derive(Default)]
struct Results {
    counts: Counts,
    by_split: BTreeMap<String, Counts>,
    by_keyword: BTreeMap<String, Counts>,
    errors: Reasons,
    failures: Failures,
    instances_valid: u64,
    instances_invalid: u64,
    mask_us: Samples,
    compile_us: Samples,
    first_mask_us: Samples,
    /// The bytes of each schema, and the microseconds of its compile.
    sizes: Vec<(usize, f64)>,
    /// The time and the memory of the tables that are built once for the vocabulary, before the first schema.
    prime_us: f64,
    tables_bytes: usize,
}

/// How far the walk of a schema has come.
#[derive(Clone, Copy)]
enum Stage {
    Compile,
    /// The instance with this index is walked; it is valid or not.
    Instance {
        index: usize,
        valid: bool,
    },
}

/// A verdict on a schema, with the place that decided it.
struct Judged {
    verdict: Verdict,
    /// The place, with what is there; empty if the verdict is that nothing is wrong.
    place: String,
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
            again: again().without(&["--limit", "--only"]),
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
        let stage = Cell::new(Stage::Compile);
        let judged = caught(|| self.judge(&schema, tests, &stage));
        let judged = judged.unwrap_or_else(|panic| Judged::of_panic(stage.get(), panic));
        self.results.add(entry, tests, judged, &self.again);
    }

    fn judge(&mut self, schema: &str, tests: &[Value], stage: &Cell<Stage>) -> Judged {
        if self.cache == WarmTables::Cold {
            // Grammars share data through their compiler; a fresh one has compiled only the parts of JSON.
            self.compiler = self.compiler.fresh();
        }
        let (compiled, compile_us) =
            timed(|| self.compiler.compile(Source::JsonSchema(schema), &self.options));
        self.results.compile_us.push(compile_us);
        self.results.sizes.push((schema.len(), compile_us));
        let grammar = match compiled {
            Ok((grammar, _)) => grammar,
            Err(error) => return Judged::of_error(&error),
        };
        let (_, mask_us) = timed(|| grammar.mask(grammar.start()));
        self.results.first_mask_us.push(compile_us + mask_us);
        self.results.mask_us.push(mask_us);
        for (index, test) in tests.iter().enumerate() {
            let valid = test["valid"] == Value::Bool(true);
            stage.set(Stage::Instance { index, valid });
            let judged = self.judge_instance(&grammar, &test["data"], valid);
            if let Some((verdict, what)) = judged {
                return Judged {
                    verdict,
                    place: format!("instance #/tests/{index}/data{what}"),
                };
            }
        }
        Judged {
            verdict: Verdict::Right,
            place: String::new(),
        }
    }

    /// Walks an instance; returns what is wrong, if anything is, and where in its text.
    fn judge_instance(&mut self, grammar: &Grammar, data: &Value, valid: bool) -> Option<(Verdict, String)> {
        let text = python_json::dumps(data);
        let tokens = match self.tokenizer.encode(&text) {
            Ok(tokens) => tokens,
            Err(error) => return Some((Verdict::Refused(error.to_string()), format!(": {error}"))),
        };
        match (valid, self.walk(grammar, &tokens)) {
            (true, Err(walked)) => {
                let bytes = tokens[..walked]
                    .iter()
                    .map(|token| grammar.vocabulary().bytes(*token).len());
                let what = what_is_refused(&text, bytes.sum());
                Some((Verdict::Refused("valid instance rejected".to_owned()), what))
            }
            (false, Ok(())) => {
                let verdict = Verdict::LetThrough("invalid instance accepted".to_owned());
                Some((verdict, String::new()))
            }
            _ => None,
        }
    }

    /// Walks tokens as far as masks allow them, and then the end.
    ///
    /// # Errors
    /// Returns how many tokens were walked.
    fn walk(&mut self, grammar: &Grammar, tokens: &[u32]) -> Result<(), usize> {
        let mut state = grammar.start();
        let mut mask = grammar.mask(state);
        for (walked, token) in tokens.iter().enumerate() {
            if !mask.contains(*token) {
                return Err(walked);
            }
            let (next, microseconds) = timed(|| {
                grammar
                    .step(state, *token)
                    .map(|state| (state, grammar.mask(state)))
            });
            let Some(next) = next else { return Err(walked) };
            self.results.mask_us.push(microseconds);
            (state, mask) = next;
        }
        let may_end = grammar.vocabulary().eos().iter().any(|eos| mask.contains(*eos));
        may_end.then_some(()).ok_or(tokens.len())
    }
}

/// Says where a text is refused, with some of what stands before and after that place.
fn what_is_refused(text: &str, bytes: usize) -> String {
    let place = text.floor_char_boundary(bytes.min(text.len()));
    let (before, after) = text.split_at(place);
    if after.is_empty() {
        return ": its end is refused".to_owned();
    }
    let skipped = before.chars().count().saturating_sub(EXCERPT);
    let start = if skipped > 0 { "…" } else { "" };
    let before: String = before.chars().skip(skipped).collect();
    let after: String = after.chars().take(EXCERPT).collect();
    match before.is_empty() {
        true => format!(": `{after}` is refused at the start"),
        false => format!(", byte {place}: `{after}` is refused after `{start}{before}`"),
    }
}

/// The letters that are shown before and after a refused place.
const EXCERPT: usize = 40;

impl Judged {
    fn of_error(error: &CompileError) -> Self {
        let first = error.problems.first();
        let reason = first.map_or("no reason given", |problem| &problem.message);
        let problems: Vec<String> = error.problems.iter().map(ToString::to_string).collect();
        Judged {
            verdict: Verdict::DoesNotCompile(reason.to_owned()),
            place: problems.join("; "),
        }
    }

    fn of_panic(stage: Stage, panic: String) -> Self {
        let place = match stage {
            Stage::Compile => panic.clone(),
            Stage::Instance { index, .. } => format!("instance #/tests/{index}/data: {panic}"),
        };
        let verdict = match stage {
            Stage::Compile => Verdict::DoesNotCompile(panic),
            Stage::Instance { valid: true, .. } => Verdict::Refused(panic),
            Stage::Instance { valid: false, .. } => Verdict::LetThrough(panic),
        };
        Judged { verdict, place }
    }
}

impl Results {
    fn add(&mut self, entry: &Value, tests: &[Value], judged: Judged, again: &CommandLine) {
        let Judged { verdict, place } = judged;
        let valid = tests
            .iter()
            .filter(|test| test["valid"] == Value::Bool(true))
            .count() as u64;
        self.instances_valid += valid;
        self.instances_invalid += tests.len() as u64 - valid;
        self.counts.add(&verdict, 1);
        let name = entry["name"].as_str().unwrap_or("without a name");
        self.by_split
            .entry(split(entry["name"].as_str().unwrap_or("")))
            .or_default()
            .add(&verdict, 1);
        for keyword in keywords::of(&entry["schema"]) {
            self.by_keyword.entry(keyword).or_default().add(&verdict, 1);
        }
        let command = |name: &str| again.clone().with("--only", name).to_string();
        self.failures
            .note_at(place, || name.to_owned(), &verdict, command);
        match verdict {
            Verdict::Right => {}
            Verdict::DoesNotCompile(reason) | Verdict::Refused(reason) | Verdict::LetThrough(reason) => {
                self.errors.count(&reason);
            }
        }
    }

    fn figures(&self) -> Map<String, Value> {
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
        report
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
    fn a_refused_place_is_shown_with_its_surroundings() {
        let text = "{\"ä\": 12}";
        assert_eq!(
            [6, 3, 0, 99].map(|bytes| what_is_refused(text, bytes)),
            [
                ", byte 6: ` 12}` is refused after `{\"ä\":`",
                ", byte 2: `ä\": 12}` is refused after `{\"`",
                ": `{\"ä\": 12}` is refused at the start",
                ": its end is refused",
            ]
        );
        let long = what_is_refused(&"x".repeat(1000), 500);
        assert_eq!(long.matches('x').count(), 2 * EXCERPT);
    }

    #[test]
    fn names_say_their_part_of_the_collection() {
        assert_eq!(split("Github_easy---o123_x"), "Github_easy");
        assert_eq!(split("BFCL_java_0"), "BFCL");
        assert_eq!(split("alone"), "alone");
    }
}
