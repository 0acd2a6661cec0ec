//! `lexiform eval compare`: engines side by side, on the same schemas and the same tokens.
//!
//! ```text
//!   schemas with instances ─► tokens ─┬─► lexiform ───┐ times, outcomes, ┌─► tables, plots
//!                                     ├─► llguidance ─┼─► sums of masks ─┤
//!                                     └─► …          ─┘ (processes)      └─► disagreements, each with a text
//! ```
//!
//! The engines take turns schema by schema, and at going first, so that other work of the machine hits all
//! alike. A time is the smaller of the processor time of the thread and of the time on the wall; what a look
//! at the clock and a call from Python cost is in every sample, and shown beside them.

mod answers;
mod arena;
mod cases;
mod dispute;
mod environment;
mod findings;
mod place;
mod process;
mod protocol;
mod run;
mod tables;
mod tally;
#[cfg(test)]
mod tests;
mod vocabulary;
mod worker;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::json;

use self::arena::{Arena, Grown};
use self::cases::Choice;
use self::dispute::Judge;
use self::environment::{PEERS, default_folder};
use self::findings::Findings;
use self::process::Bounds;
use self::run::{Entrant, Finished, OURS, Plan};
use self::vocabulary::{Named, Scratch, Subject};
use super::verdict::{Data, progress};
use crate::failure::{EXIT_CODES, Failure, Outcome, reason};
use crate::input::tokenizer::TokenizerArgs;
use crate::report::{Destinations, Made, Report};
use crate::shown::output::{Output, err};

/// The arguments of `lexiform eval compare`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub struct Args {
    #[command(flatten)]
    data: Data,
    #[command(flatten)]
    tokenizer: TokenizerArgs,
    /// Further tokenizers, which show how engines grow with the vocabulary; `FILE:ROWS` adds unused tokens
    /// up to this number
    #[arg(long, value_name = "FILE[:ROWS]", value_delimiter = ',')]
    tokenizers: Vec<Named>,
    /// The number of schemas that are walked with each of `--tokenizers`
    #[arg(long, value_name = "N", default_value_t = 40)]
    growth_schemas: usize,
    /// The engines to compare; Lexiform always comes first
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_values = PEERS, value_parser = engine)]
    engines: Vec<String>,
    /// Only so many schemas, spread evenly over the file
    #[arg(long, value_name = "N")]
    schemas: Option<usize>,
    /// Moves the first of the schemas that `--schemas` takes
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: usize,
    /// Only the schema of this name; can be given several times
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// The processor time of an engine for one schema
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, value_parser = seconds)]
    seconds: f64,
    /// The memory of an engine's process
    #[arg(long, value_name = "MIB", default_value_t = 1024)]
    memory_mb: u64,
    /// The time for all schemas: slow engines leave out schemas, evenly over the collection
    #[arg(long, value_name = "MINUTES", default_value_t = 25.0, value_parser = seconds)]
    minutes: f64,
    /// The number of schemas that two threads walk as well
    #[arg(long, value_name = "N", default_value_t = 20)]
    threaded: usize,
    /// The folder with the other engines; made if it is not there
    #[arg(long, value_name = "DIR")]
    environment: Option<PathBuf>,
    /// The Python that makes the environment
    #[arg(long, value_name = "PROGRAM", default_value = "python3")]
    python: String,
    #[command(flatten)]
    pub(super) output: Output,
    #[command(flatten)]
    destinations: Destinations,
}

/// Reads the name of an engine.
fn engine(name: &str) -> Result<String, String> {
    match name == OURS || PEERS.contains(&name) {
        true => Ok(name.to_owned()),
        false => Err(format!("the engines are {OURS}, {}", PEERS.join(", "))),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value > 0.0 && value.is_finite() => Ok(value),
        _ => Err("expected a number above 0".to_owned()),
    }
}

/// Answers the questions of a comparison on standard input, as the worker of Lexiform.
///
/// # Errors
/// Standard input or output cannot be used.
pub fn answer_questions() -> Outcome {
    worker::run()
}

/// Compares the engines, and publishes the report.
///
/// # Errors
/// The data or the tokenizer cannot be read, or there is no environment for the other engines.
pub(super) fn run(args: &Args) -> Outcome {
    args.destinations.check()?;
    let scratch = Scratch::new()?;
    let arena = args.arena(&scratch)?;
    let subject = Subject::new(&args.tokenizer, None, &scratch)?;
    let cases = cases::read(args.data.path(), &args.choice(), subject.tokenizer())?;
    let began = Instant::now();
    let judge = Judge::new(subject.vocabulary().clone());
    let plan = Plan {
        time: args.time(if args.tokenizers.is_empty() {
            1.0
        } else {
            1.0 - GROWTH
        }),
        judge: Some(&judge),
        threaded: args.threaded,
        clock: &|| began.elapsed(),
    };
    let (mut entrants, mut left_out) = arena.entrants(&subject);
    let bar = progress(cases.len());
    run::run(&mut entrants, &cases, &plan, || bar.inc(1));
    bar.finish_and_clear();
    left_out.extend(arena.missing());
    let engines: Vec<Finished> = entrants.into_iter().map(Entrant::finish).collect();
    let growth = args.growth(&arena, &scratch)?;
    let findings = Findings {
        engines: &engines,
        schemas: cases.len(),
        seconds: args.seconds,
        mebibytes: args.memory_mb,
        left_out: &left_out,
        growth: &growth,
        vocabulary: subject.name(),
        repeat: &|engine, case| args.command_for(engine, case),
    };
    publish(args, findings.report())
}

/// Prints the report and writes it to the files that were named. Other engines may fail: the comparison fails
/// only if Lexiform does.
fn publish(args: &Args, mut report: Report) -> Outcome {
    let text = findings::in_short(&report);
    let ours_failed = report
        .failures
        .iter()
        .any(|failure| failure.what.starts_with(OURS));
    report.made = Made {
        versions: report.made.versions,
        ..Made::here().read(args.data.path())?
    };
    let json = json!(report);
    args.destinations
        .publish_as(report, args.output, &json, &text, ours_failed)
}

impl Args {
    fn choice(&self) -> Choice<'_> {
        Choice {
            schemas: self.schemas,
            seed: self.seed,
            only: &self.only,
        }
    }

    /// Walks some of the schemas with each tokenizer; the first is that of the whole comparison.
    fn growth(&self, arena: &Arena, scratch: &Scratch) -> Result<Vec<Grown>, Failure> {
        if self.tokenizers.is_empty() {
            return Ok(Vec::new());
        }
        let others = self.tokenizers.iter();
        let others = others.map(|Named { path, rows }| (TokenizerArgs::of_file(path.clone()), *rows));
        let tokenizers: Vec<_> = std::iter::once((self.tokenizer.clone(), None))
            .chain(others)
            .collect();
        let choice = Choice {
            schemas: Some(self.growth_schemas),
            ..self.choice()
        };
        let read = |subject: &Subject| cases::read(self.data.path(), &choice, subject.tokenizer());
        arena.grown(&tokenizers, self.time(GROWTH), scratch, read)
    }

    /// Returns a part of the time for all schemas.
    fn time(&self, part: f64) -> Duration {
        Duration::from_secs_f64(self.minutes * 60.0 * part)
    }

    /// Makes the environment if any engine needs it.
    fn arena(&self, scratch: &Scratch) -> Result<Arena, Failure> {
        let others: Vec<&str> = PEERS
            .into_iter()
            .filter(|peer| self.engines.iter().any(|engine| engine == peer))
            .collect();
        let environment = match others.is_empty() {
            true => None,
            false => {
                let folder = self.environment.clone().or_else(default_folder).ok_or_else(|| {
                    Failure::message("no folder for the other engines is known: name one with --environment")
                })?;
                let say = |what: &str| err(&format!("{what}: {}\n", folder.display()));
                Some(environment::prepare(
                    &self.python,
                    &folder,
                    scratch.path(),
                    &others,
                    say,
                )?)
            }
        };
        let ours = std::env::current_exe()
            .map_err(|error| Failure::Unable(format!("cannot find this program: {}", reason(&error))))?;
        Ok(Arena {
            ours,
            others: others.into_iter().map(str::to_owned).collect(),
            environment,
            bounds: Bounds {
                seconds: self.seconds,
                seconds_to_load: SECONDS_TO_LOAD,
                mebibytes: self.memory_mb,
            },
            logs: scratch.path().to_owned(),
        })
    }

    /// Returns the command that repeats one schema with one engine.
    fn command_for(&self, engine: &str, case: &str) -> String {
        let data = self.data.path().display();
        let tokenizer = self
            .tokenizer
            .file()
            .map(|path| format!(" --tokenizer {}", path.display()));
        let tokenizer = tokenizer.unwrap_or_default();
        format!("lexiform eval compare {data}{tokenizer} --engines {engine} --only '{case}'")
    }
}

/// The time in which an engine has to be ready for a vocabulary.
const SECONDS_TO_LOAD: f64 = 120.0;

/// The part of the time in which engines grow with the vocabulary.
const GROWTH: f64 = 0.2;
