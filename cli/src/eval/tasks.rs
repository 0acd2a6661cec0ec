//! `lexiform eval tasks`: how many answers of a model are right, for answers that were collected by
//! anybody.
//!
//! ```text
//!   tasks (JSON lines) ──┬─► questions, as each arm asks them      (--questions FILE)
//!                        └─► with answers: right or wrong, and where ──► by arm, kind and level, with intervals
//! ```
//!
//! The same tasks are asked with and without a constraint, so that the effect of the constraint on the
//! quality of answers can be told from that of the prompt. Nothing of an answer is run.

pub(super) mod ask;
mod bfcl;
mod decimal;
mod difference;
mod given;
pub(super) mod judge;
pub(super) mod load;
mod reading;
mod records;
pub(super) mod results;
pub(super) mod statistics;
pub(super) mod task;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

pub(crate) use self::ask::{Arm, questions};
pub(crate) use self::given::Given;
use self::given::given;
pub(crate) use self::load::load;
use self::load::{Collection, Form};
pub(crate) use self::results::Results;
pub(crate) use self::task::{Message, Task};
use super::invent;
use crate::failure::{Code, EXIT_CODES, Failure, Outcome};
use crate::report::{Destinations, Made, Part, Report, in_columns};
use crate::shown::output::Output;

/// The most wrong answers shown in the text output; `--json` has all.
const LISTED: usize = 20;

/// The arguments of `lexiform eval tasks`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub struct Args {
    /// The tasks: a file of JSON lines or JSON, or a folder of such files
    #[arg(long, value_name = "PATH", required_unless_present = "write")]
    data: Option<PathBuf>,
    /// The form of the tasks; without it, the first record of a file shows it
    #[arg(long, value_enum)]
    tasks_form: Option<Form>,
    /// Judge the answers of this file: JSON lines with `name`, `text` and perhaps `arm`
    #[arg(long, value_name = "FILE")]
    answers: Option<PathBuf>,
    /// Only the task of this name, with all that is known about its answers
    #[arg(long, value_name = "NAME", requires = "data")]
    only: Option<String>,
    /// Write the questions to this file: JSON lines with `name`, `arm`, `messages` and `schema`
    #[arg(long, value_name = "FILE", requires = "data", conflicts_with = "answers")]
    questions: Option<PathBuf>,
    /// A way of asking, for --questions; all of them if none is named
    #[arg(long, value_enum, requires = "questions")]
    arm: Vec<Arm>,
    /// Invent tasks that nobody has seen, and write them into this folder
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["data", "answers"])]
    write: Option<PathBuf>,
    /// The seed of the tasks that --write invents
    #[arg(long, value_name = "N", default_value_t = invent::SEED, requires = "write")]
    seed: u64,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    destinations: Destinations,
}

impl Args {
    /// Returns `true` if the answer is printed as JSON.
    pub(super) fn is_json(&self) -> bool {
        self.output.json
    }
}

/// Runs `lexiform eval tasks`.
///
/// # Errors
/// A file cannot be read or written, or has broken records.
pub(super) fn run(args: &Args) -> Outcome {
    if let Some(folder) = &args.write {
        return write_invented(folder, args);
    }
    let data = args.data.as_deref().unwrap_or_else(|| Path::new("."));
    let mut collection = load(data, args.tasks_form)?;
    if let Some(path) = &args.questions {
        select(&mut collection, args.only.as_deref())?;
        return write_questions(&collection, path, args);
    }
    let Some(path) = &args.answers else {
        select(&mut collection, args.only.as_deref())?;
        return describe(&collection, args);
    };
    let answers = given(path, &collection.tasks)?;
    if let Some(name) = &args.only {
        return show(&collection, &answers, name, args);
    }
    let command = format!(
        "lexiform eval tasks --data {} --answers {} --only",
        data.display(),
        path.display()
    );
    args.destinations.check()?;
    let mut report = Results::judged(&collection.tasks, &answers).report(&command);
    report.made = Made::here().read(data)?.read(path)?;
    publish(report, &collection, args)
}

/// Keeps only the task of this name.
fn select(collection: &mut Collection, only: Option<&str>) -> Result<(), Failure> {
    if let Some(name) = only {
        collection.tasks.retain(|it| it.name == name);
        if collection.tasks.is_empty() {
            return Err(no_task(name));
        }
    }
    Ok(())
}

fn no_task(name: &str) -> Failure {
    Failure::message(format!("no task is named {name:?}"))
}

fn written(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|source| Failure::Write {
        path: path.to_owned(),
        source,
    })
}

fn write_invented(folder: &Path, args: &Args) -> Outcome {
    std::fs::create_dir_all(folder).map_err(|source| Failure::Write {
        path: folder.to_owned(),
        source,
    })?;
    let mut names = Vec::new();
    for (name, text) in invent::files(args.seed) {
        written(&folder.join(&name), &text)?;
        names.push(name);
    }
    let told = || format!("wrote {} into {}\n", names.join(", "), folder.display());
    args.output
        .print(|| json!({"ok": true, "files": names}), told, String::new)?;
    Ok(Code::Fine)
}

fn write_questions(collection: &Collection, path: &Path, args: &Args) -> Outcome {
    let all = [Arm::Free, Arm::Told, Arm::Constrained, Arm::Both];
    let arms = if args.arm.is_empty() { &all[..] } else { &args.arm };
    let questions = arms.iter().flat_map(|arm| questions(&collection.tasks, *arm));
    let lines: Vec<String> = questions.map(|it| format!("{}\n", it.json())).collect();
    written(path, &lines.concat())?;
    let told = || format!("wrote {} questions to {}\n", lines.len(), path.display());
    args.output.print(
        || json!({"ok": true, "questions": lines.len()}),
        told,
        String::new,
    )?;
    Ok(Code::Fine)
}

/// Prints what the tasks are.
fn describe(collection: &Collection, args: &Args) -> Outcome {
    let mut kinds: Vec<(String, usize)> = Vec::new();
    for task in &collection.tasks {
        let level = task.level.map_or_else(String::new, |it| format!(", level {it}"));
        let name = format!("{}{level}", task.kind);
        match kinds.iter_mut().find(|it| it.0 == name) {
            Some((_, count)) => *count += 1,
            None => kinds.push((name, 1)),
        }
    }
    let json = || {
        let kinds = kinds.iter().map(|(name, count)| (name.clone(), json!(count)));
        json!({
            "tasks": collection.tasks.len(),
            "kinds": kinds.collect::<serde_json::Map<_, _>>(),
            "left_out": left_out(collection),
        })
    };
    let text = || {
        let lines = kinds.iter().map(|(name, count)| format!("{count:>6}  {name}\n"));
        let total = format!("{:>6}  in all\n", collection.tasks.len());
        lines.chain([total]).chain(left_out_lines(collection)).collect()
    };
    args.output.print(json, text, String::new)?;
    Ok(Code::Fine)
}

fn left_out(collection: &Collection) -> Value {
    let left_out = collection.left_out.iter();
    left_out
        .map(|(place, reason)| json!({"place": place, "reason": reason}))
        .collect()
}

fn left_out_lines(collection: &Collection) -> Vec<String> {
    let left_out = collection.left_out.iter();
    left_out
        .map(|(place, reason)| format!("left out: {place}: {reason}\n"))
        .collect()
}

/// Prints a task with its answers and the verdicts on them.
fn show(collection: &Collection, answers: &[Given], name: &str, args: &Args) -> Outcome {
    let index = collection.tasks.iter().position(|it| it.name == name);
    let index = index.ok_or_else(|| no_task(name))?;
    let task = &collection.tasks[index];
    let judged: Vec<(&Given, judge::Judgement)> = answers
        .iter()
        .filter(|it| it.task == index)
        .map(|it| (it, task.judge(&it.text)))
        .collect();
    let json = || {
        let answers = judged
            .iter()
            .map(|(given, verdict)| json!({"arm": given.arm, "text": given.text, "verdict": verdict.json()}));
        json!({"name": name, "kind": task.kind, "answers": answers.collect::<Vec<_>>()})
    };
    let text = || {
        let mut text = format!("{}\n\n", task.prompt());
        for (given, verdict) in &judged {
            let told = match verdict.is_right() {
                true => "right".to_owned(),
                false => format!("wrong: {}", verdict.reason()),
            };
            text += &format!("{}: {}\n  {told}\n", given.arm, given.text);
        }
        text
    };
    args.output.print(json, text, String::new)?;
    Ok(Code::Fine)
}

/// Prints a report and writes it to the files that were named. Wrong answers are what is measured, and no
/// failure of the run.
fn publish(report: Report, collection: &Collection, args: &Args) -> Outcome {
    let mut json = serde_json::to_value(&report).unwrap_or_default();
    json["left_out"] = left_out(collection);
    let answers = report.answers.iter();
    let mut text: String = answers
        .map(|it| format!("{} {}\n", it.question, it.answer))
        .collect();
    if let Some(Part::Table(table)) = report.sections.first().and_then(|it| it.parts.first()) {
        text += &in_columns(table);
    }
    text += &format!("\n{} wrong\n", report.failures.len());
    for failure in report.failures.iter().take(LISTED) {
        text += &format!("  {}: {}\n", failure.case, failure.reason.replace('\n', " "));
    }
    text += &left_out_lines(collection).concat();
    args.destinations
        .publish_as(report, args.output, &json, &text, false)
}
