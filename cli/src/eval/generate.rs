//! `lexiform eval generate`: the answers of an endpoint under the schemas of a collection.
//!
//! ```text
//!   collection ─► items ─► runner ─► endpoint             (any server with OpenAI's chat completions)
//!                            │  └──► judge                (the crate `jsonschema`)
//!                            ▼
//!                         records ─► journal              (a line for each answer; a later run goes on)
//!                            └─────► tallies ─► report
//! ```
//!
//! Nothing here knows which engine answers: the figures of different servers can be compared. The order of
//! the items and the seeds of the requests depend only on `--seed` and the names of the items.

mod collection;
mod coverage;
mod endpoint;
pub mod endpoints;
mod fault;
mod findings;
mod item;
mod journal;
mod judge;
mod quality;
mod record;
mod runner;
mod stream;
mod tally;
#[cfg(test)]
mod tests;
mod wire;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value, json};

use self::collection::Collection;
use self::endpoint::Endpoint;
use self::findings::{By, Group, Pair};
use self::item::{Arm, Item};
use self::journal::{Header, Journal, Records};
use self::record::{Outcome, Record};
use self::runner::{End, Job, Runner};
use self::wire::{ConstraintField, Sampling, quoted};
use super::panics::quietly;
use super::verdict::Data;
use crate::failure::{Code, EXIT_CODES, Failure, Outcome as Ended};
use crate::report::{Destinations, Made, Report};
use crate::shown::output::{self, Output};
use crate::shown::paint::{bad, dim, good};

/// The arguments of `lexiform eval generate`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub struct Args {
    #[command(flatten)]
    data: Data,
    /// Ask tasks, whose answers can be right or wrong, in place of schemas: in any form that `lexiform eval
    /// tasks` reads
    #[arg(long, value_name = "PATH", group = "Data")]
    tasks: Option<PathBuf>,
    /// The address of the API, as http://127.0.0.1:8000/v1
    #[arg(long, value_name = "URL")]
    endpoint: String,
    /// The name of the model in requests
    #[arg(long, value_name = "NAME")]
    model: String,
    /// The environment variable that has the API key
    #[arg(long, value_name = "NAME")]
    api_key_env: Option<String>,
    /// Whether the schema is in the prompt and constrains the answer; may be given several times to compare
    #[arg(long, value_enum, value_name = "ARM", default_values_t = [Arm::Both])]
    arm: Vec<Arm>,
    /// The field of the request that has the schema
    #[arg(long, value_enum, default_value_t)]
    constraint: ConstraintField,
    /// Further fields of every request, as a JSON object: {"law": "global"}
    #[arg(long, value_name = "JSON", default_value = "{}", value_parser = object)]
    fields: Fields,
    /// Only this schema; may be given several times
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Only N schemas, chosen by the seed
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// The seed of the order of the schemas and of the seeds in the requests
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// The number of requests at a time
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=512))]
    concurrency: u16,
    /// The most tokens of an answer
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..))]
    max_tokens: u32,
    /// The temperature
    #[arg(long, value_name = "T", default_value_t = 0.0, value_parser = temperature)]
    temperature: f64,
    /// The longest time of an answer
    #[arg(long, value_name = "S", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout_seconds: u64,
    /// The further attempts after failures that may pass
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(0..=20))]
    retries: u16,
    /// Keep every answer in this file of JSON lines; a later run with the same file goes on where this one
    /// stopped
    #[arg(long, value_name = "FILE")]
    answers: Option<PathBuf>,
    #[command(flatten)]
    pub(super) output: Output,
    #[command(flatten)]
    destinations: Destinations,
}

/// What came of a run.
struct Run {
    report: Report,
    /// `true` if a request failed or a constrained answer is not valid. A wrong answer is a result.
    failed: bool,
    end: End,
    records: Records,
    /// The text of the answer if only one was asked for, which is how a failure is looked at.
    only: Option<String>,
}

/// Runs `lexiform eval generate`.
///
/// # Errors
/// The data cannot be read, the endpoint has no address, or answers cannot be kept.
pub(super) fn run(args: &Args) -> Ended {
    let run = quietly(|| evaluate(args))?;
    let (json, text) = (json!(run.report), text(&run.report));
    let code = args
        .destinations
        .publish_as(run.report, args.output, &json, &text, run.failed)?;
    if let (Some(text), false, false) = (&run.only, args.output.json, args.output.quiet) {
        output::out(&format!("\n{text}\n"))?;
    }
    if run.end == End::Complete {
        return Ok(code);
    }
    output::err(&args.why_it_gave_up(&run.records));
    Ok(Code::Unable)
}

/// Asks the endpoint for what is not yet known, and writes the report.
fn evaluate(args: &Args) -> Result<Run, Failure> {
    let collection = args.collection()?;
    let timeout = Duration::from_secs(args.timeout_seconds);
    let endpoint = Endpoint::new(&args.endpoint, args.api_key_env.as_deref(), timeout)?;
    let jobs = args.jobs(&collection.items);
    let (records, end) = args.records(&collection, &endpoint, &jobs)?;
    let (report, failed) = args.report(&collection, &jobs, &records);
    Ok(Run {
        report,
        failed,
        end,
        only: only_answer(&jobs, &records),
        records,
    })
}

impl Args {
    /// Reads the collection, and drops what was not asked for.
    fn collection(&self) -> Result<Collection, Failure> {
        let path = self.path();
        let mut collection = match &self.tasks {
            Some(path) => collection::read_tasks(path, self.seed)?,
            None => collection::read(path, self.seed)?,
        };
        if let Some(missing) = self
            .only
            .iter()
            .find(|name| collection.items.iter().all(|item| item.name != **name))
        {
            let message = format!("{} has no schema of the name {missing:?}", path.display());
            return Err(Failure::message(message));
        }
        if !self.only.is_empty() {
            collection.items.retain(|item| self.only.contains(&item.name));
        }
        collection.items.truncate(self.limit.unwrap_or(usize::MAX));
        Ok(collection)
    }

    /// Returns the place of the collection.
    fn path(&self) -> &Path {
        self.tasks.as_deref().unwrap_or_else(|| self.data.path())
    }

    /// Returns what is asked, in order: all arms of an item in turn, so that a run that is stopped has asked
    /// all arms for the same items.
    fn jobs<'a>(&self, items: &'a [Item]) -> Vec<Job<'a>> {
        let arms = self.arms();
        let of_item = |item: &'a Item| arms.iter().map(move |&arm| Job { item, arm });
        items.iter().flat_map(of_item).collect()
    }

    fn arms(&self) -> Vec<Arm> {
        let mut arms = self.arm.clone();
        arms.sort();
        arms.dedup();
        arms
    }

    /// Returns the records of earlier runs and of this one.
    fn records(
        &self,
        collection: &Collection,
        endpoint: &Endpoint,
        jobs: &[Job<'_>],
    ) -> Result<(Records, End), Failure> {
        let sampling = self.sampling();
        let header = Header::new(&self.endpoint, &self.model, &collection.data.sha256, &sampling);
        let (mut journal, mut records) = match &self.answers {
            None => (None, Records::new()),
            Some(path) => {
                let (journal, records) = Journal::open(path, &header)?;
                (Some(journal), records)
            }
        };
        let is_open = |job: &Job<'_>| records.get(&key(job)).is_none_or(Record::is_open);
        let open: Vec<Job<'_>> = jobs.iter().copied().filter(is_open).collect();
        let runner = Runner {
            endpoint,
            model: &self.model,
            sampling: &sampling,
            concurrency: usize::from(self.concurrency),
            retries: usize::from(self.retries),
        };
        let end = runner.run(&open, |record| {
            if let Some(journal) = &mut journal {
                journal.append(&record)?;
            }
            records.insert((record.name.clone(), record.arm), record);
            Ok(())
        })?;
        Ok((records, end))
    }

    fn sampling(&self) -> Sampling {
        Sampling {
            constraint: self.constraint,
            fields: self.fields.0.clone(),
            max_tokens: self.max_tokens,
            temperature: self.temperature,
            seed: self.seed,
        }
    }

    /// Returns the report, and whether anything but the contents of answers went wrong.
    fn report(&self, collection: &Collection, jobs: &[Job<'_>], records: &Records) -> (Report, bool) {
        let of_job = |job: &Job<'_>| records.get(&key(job));
        let group = |arm: &Arm| {
            let of_arm = jobs.iter().filter(|job| job.arm == *arm);
            let pairs: Vec<Pair<'_>> = of_arm.filter_map(|job| Some((job.item, of_job(job)?))).collect();
            let again = self.command(&["--arm", arm.name(), "--only"]);
            Group::new(arm.name(), *arm, pairs, again)
        };
        let groups: Vec<Group<'_>> = self.arms().iter().map(group).collect();
        let title = format!("{} at {}", self.model, self.endpoint);
        let made = self.made(collection);
        let mut report = findings::report(made, title, By::Arm, &groups);
        if collection.tasks.is_empty() {
            let failed = !report.failures.is_empty();
            return (report, failed);
        }
        quality::keep_promised(&mut report, &groups);
        let failed = !report.failures.is_empty();
        let arms = self.arms();
        let arms = arms.iter().flat_map(|arm| ["--arm", arm.name()]);
        let again: Vec<&str> = arms.chain(["--only"]).collect();
        quality::add(&mut report, &collection.tasks, &groups, &self.command(&again));
        (report, failed)
    }

    fn made(&self, collection: &Collection) -> Made {
        let mut rest: Vec<String> = Vec::new();
        for arm in self.arms() {
            rest.extend(["--arm".to_owned(), arm.name().to_owned()]);
        }
        for name in &self.only {
            rest.extend(["--only".to_owned(), name.clone()]);
        }
        rest.extend(
            self.limit
                .iter()
                .flat_map(|limit| ["--limit".to_owned(), limit.to_string()]),
        );
        rest.extend(["--concurrency".to_owned(), self.concurrency.to_string()]);
        let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
        Made {
            command: self.command(&rest),
            data: vec![collection.data.clone()],
            ..Made::here()
        }
    }

    /// Returns the command with these settings and further arguments.
    fn command(&self, rest: &[&str]) -> String {
        let mut words = wire::command(&self.endpoint, &self.model, &self.sampling());
        words.extend(
            self.api_key_env
                .iter()
                .flat_map(|name| ["--api-key-env".to_owned(), quoted(name)]),
        );
        let data = self.path().display().to_string();
        let kind = if self.tasks.is_some() { "--tasks" } else { "--data" };
        words.extend([kind.to_owned(), quoted(&data)]);
        words.extend(rest.iter().map(|word| quoted(word)));
        words.join(" ")
    }

    fn why_it_gave_up(&self, records: &Records) -> String {
        let reason = records.values().find_map(|record| match &record.outcome {
            Outcome::Failed(fault) if record.is_open() => Some(fault.reason.as_str()),
            _ => None,
        });
        let again = match &self.answers {
            Some(_) => "the same command goes on with the rest",
            None => "with --answers FILE, a later run goes on with the rest",
        };
        format!(
            "{} too many requests failed in a row, so the rest was not asked ({}); {again}\n",
            bad("stopped:"),
            reason.unwrap_or("no reason was given"),
        )
    }
}

fn only_answer(jobs: &[Job<'_>], records: &Records) -> Option<String> {
    let [job] = jobs else { return None };
    match &records.get(&key(job))?.outcome {
        Outcome::Answered { answer, .. } => Some(answer.text.clone()),
        Outcome::Failed(_) => None,
    }
}

/// The most failures that are listed in the terminal.
const LISTED_FAILURES: usize = 20;

fn text(report: &Report) -> String {
    let mut text = format!("{}\n", report.title);
    for answer in &report.answers {
        text += &format!("{}\n  {}\n", dim(&answer.question), answer.answer);
    }
    if report.failures.is_empty() {
        return text + &good("nothing failed") + "\n";
    }
    text += &format!("{}\n", bad(format!("{} failed", report.failures.len())));
    for failure in report.failures.iter().take(LISTED_FAILURES) {
        let reason = failure.reason.replace('\n', "; ");
        text += &format!("  {}: {}: {reason}\n", failure.case, failure.what);
    }
    let more = report.failures.len().saturating_sub(LISTED_FAILURES);
    if more > 0 {
        text += &format!("  {}\n", dim(format!("and {more} more; --json has all")));
    }
    text
}

fn key(job: &Job<'_>) -> (String, Arm) {
    (job.item.name.clone(), job.arm)
}

/// The fields of a JSON object.
#[derive(Clone, Debug)]
struct Fields(Map<String, Value>);

fn object(text: &str) -> Result<Fields, String> {
    serde_json::from_str(text)
        .map(Fields)
        .map_err(|error| format!("expected a JSON object: {error}"))
}

fn temperature(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && value >= 0.0 => Ok(value),
        _ => Err("a temperature is a number of at least 0".to_owned()),
    }
}
