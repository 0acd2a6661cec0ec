//! `lexiform eval endpoints`: the answers of several endpoints to the same questions, side by side.
//!
//! Reads the files that `lexiform eval generate --answers` wrote, one for each endpoint or setting, and asks
//! nothing. Only questions that were asked of all endpoints, and are too long for none of them, count: so
//! none of them has easier ones.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::collection::{self, Collection};
use super::fault::Kind;
use super::findings::{self, By, Group};
use super::item::Arm;
use super::journal::{self, Header, Records};
use super::record::{Outcome, Record};
use super::wire::{self, quoted};
use super::{quality, text};
use crate::failure::{EXIT_CODES, Failure, Outcome as Ended};
use crate::report::{Destinations, Made, Part, Report, Table};
use crate::shown::output::Output;

/// The arguments of `lexiform eval endpoints`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub struct Args {
    /// The files that `lexiform eval generate --answers` wrote, each with a name for tables and plots
    #[arg(value_name = "NAME=FILE", required = true, value_parser = named)]
    answers: Vec<(String, PathBuf)>,
    /// The schemas that were asked
    #[arg(
        long,
        value_name = "DATA",
        required_unless_present = "tasks",
        conflicts_with = "tasks"
    )]
    data: Option<PathBuf>,
    /// The tasks that were asked
    #[arg(long, value_name = "PATH")]
    tasks: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(flatten)]
    destinations: Destinations,
}

fn named(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, file)) if !name.is_empty() && !file.is_empty() => Ok((name.to_owned(), file.into())),
        _ => Err("expected NAME=FILE, as vllm=answers.jsonl".to_owned()),
    }
}

/// The answers of one endpoint.
struct Endpoint<'a> {
    name: &'a str,
    header: Header,
    records: Records,
}

/// The questions that all endpoints were asked and had room for.
struct Common {
    asked: HashSet<(String, Arm)>,
    arms: Vec<Arm>,
}

/// Runs `lexiform eval endpoints`.
///
/// # Errors
/// A file cannot be read or is no file of answers, answers are about other data, or the endpoints have no
/// question in common.
pub(crate) fn run(args: &Args) -> Ended {
    let report = evaluate(args)?;
    let (whole, shown) = (json!(report), text(&report));
    // Answers that are not valid are the result of the comparison, and no failure of it.
    args.destinations
        .publish_as(report, args.output, &whole, &shown, false)
}

/// Reads the answers and writes the report.
pub(super) fn evaluate(args: &Args) -> Result<Report, Failure> {
    args.check_names()?;
    let collection = match &args.tasks {
        Some(path) => collection::read_tasks(path, 0)?,
        None => collection::read(args.path(), 0)?,
    };
    let endpoints = args
        .answers
        .iter()
        .map(|(name, path)| Endpoint::read(name, path, &collection))
        .collect::<Result<Vec<_>, _>>()?;
    let common = Common::of(&endpoints)?;
    Ok(args.report(&collection, &endpoints, &common))
}

impl<'a> Endpoint<'a> {
    fn read(name: &'a str, path: &Path, collection: &Collection) -> Result<Self, Failure> {
        let (header, records) = journal::read(path)?;
        let data = &collection.data;
        if header.data != data.sha256 {
            return Err(Failure::message(format!(
                "{} has answers about data with the sum {}; that of {} is {}",
                path.display(),
                header.data,
                data.path,
                data.sha256,
            )));
        }
        Ok(Self {
            name,
            header,
            records,
        })
    }
}

impl Common {
    fn of(endpoints: &[Endpoint<'_>]) -> Result<Self, Failure> {
        let fits = |record: &Record| !matches!(&record.outcome, Outcome::Failed(fault) if fault.kind == Kind::TooLong);
        let keys = |it: &Endpoint<'_>| {
            let fitting = it.records.iter().filter(|(_, record)| fits(record));
            fitting.map(|(key, _)| key.clone()).collect::<HashSet<_>>()
        };
        let asked = endpoints.iter().map(keys).reduce(|asked, other| &asked & &other);
        let asked = asked.unwrap_or_default();
        if asked.is_empty() {
            let message = "the endpoints were asked no question in common";
            return Err(Failure::message(message.to_owned()));
        }
        let mut arms: Vec<Arm> = asked.iter().map(|(_, arm)| *arm).collect();
        arms.sort();
        arms.dedup();
        Ok(Self { asked, arms })
    }

    /// Returns the label of an endpoint in an arm. If there is one arm, it needs no name.
    fn label(&self, endpoint: &Endpoint<'_>, arm: Arm) -> String {
        match self.arms.len() {
            1 => endpoint.name.to_owned(),
            _ => format!("{}, {}", endpoint.name, arm.name()),
        }
    }
}

impl Args {
    /// # Errors
    /// A name was given twice: tables and figures could not tell the two apart.
    fn check_names(&self) -> Result<(), Failure> {
        let mut names = HashSet::new();
        let twice = self.answers.iter().find(|(name, _)| !names.insert(name));
        twice.map_or(Ok(()), |(name, _)| {
            Err(Failure::message(format!("the name {name:?} is given twice")))
        })
    }

    fn path(&self) -> &Path {
        let path = self.tasks.as_deref().or(self.data.as_deref());
        path.unwrap_or(Path::new(""))
    }

    fn kind(&self) -> &'static str {
        if self.tasks.is_some() { "--tasks" } else { "--data" }
    }

    fn report(&self, collection: &Collection, endpoints: &[Endpoint<'_>], common: &Common) -> Report {
        let of_endpoint = |endpoint| {
            let arms = common.arms.iter();
            arms.map(move |&arm| self.group(collection, endpoint, arm, common))
        };
        let groups: Vec<Group<'_>> = endpoints.iter().flat_map(of_endpoint).collect();
        let title = match endpoints {
            [only] => format!("The answers of {}", only.name),
            all => format!("The answers of {} endpoints to the same questions", all.len()),
        };
        let made = Made {
            command: self.command(),
            data: vec![collection.data.clone()],
            ..Made::here()
        };
        let mut report = findings::report(made, title, By::Endpoint, &groups);
        if let (false, Some(first)) = (collection.tasks.is_empty(), groups.first()) {
            quality::keep_promised(&mut report, &groups);
            quality::add(&mut report, &collection.tasks, &groups, &first.again);
        }
        if let Some(section) = report.sections.first_mut() {
            section.parts.push(Part::Table(settings(endpoints, common)));
        }
        report
    }

    fn group<'a>(
        &self,
        collection: &'a Collection,
        endpoint: &'a Endpoint<'_>,
        arm: Arm,
        common: &Common,
    ) -> Group<'a> {
        let header = &endpoint.header;
        let mut again = wire::command(&header.endpoint, &header.model, &header.sampling);
        let data = self.path().display().to_string();
        again.extend([self.kind(), &quoted(&data), "--arm", arm.name(), "--only"].map(str::to_owned));
        let items = collection.items.iter();
        let pairs = items.filter_map(|item| {
            let key = (item.name.clone(), arm);
            let record = endpoint.records.get(&key)?;
            common.asked.contains(&key).then_some((item, record))
        });
        let label = common.label(endpoint, arm);
        Group::new(&label, arm, pairs.collect(), again.join(" "))
    }

    fn command(&self) -> String {
        let mut words = ["lexiform", "eval", "endpoints"].map(str::to_owned).to_vec();
        words.extend([self.kind().to_owned(), quoted(&self.path().display().to_string())]);
        let named = self.answers.iter();
        words.extend(named.map(|(name, path)| quoted(&format!("{name}={}", path.display()))));
        words.join(" ")
    }
}

fn further_fields(fields: &Map<String, Value>) -> String {
    match fields.is_empty() {
        true => "–".to_owned(),
        false => json!(fields).to_string(),
    }
}

/// Returns what determined the answers of each endpoint.
fn settings(endpoints: &[Endpoint<'_>], common: &Common) -> Table {
    let columns = [
        "endpoint",
        "model",
        "constraint",
        "most tokens",
        "temperature",
        "seed",
        "further fields",
        "questions",
    ];
    let rows = endpoints.iter().map(|endpoint| {
        let (model, sampling) = (&endpoint.header.model, &endpoint.header.sampling);
        vec![
            endpoint.name.to_owned(),
            model.clone(),
            sampling.constraint.name(),
            sampling.max_tokens.to_string(),
            sampling.temperature.to_string(),
            sampling.seed.to_string(),
            further_fields(&sampling.fields),
            endpoint.records.len().to_string(),
        ]
    });
    Table {
        title: "How the endpoints were asked".to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        rows: rows.collect(),
        note: format!(
            "{} questions were asked of all of them and fit into the context of each; only these count.",
            common.asked.len()
        ),
    }
}
