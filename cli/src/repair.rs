//! `lexiform repair`: the nearest texts that belong to a constraint.
//!
//! ```text
//!   $ lexiform repair --schema person.json --text "{\"name\": 'Bob', \"age\": 3"
//!   {"name": "Bob", "age": 3}
//!   text 1: cost 3                                   (on standard error)
//!     line 1, column 10: "'" becomes "\""
//! ```
//!
//! Only the texts go to standard output, so that they can be piped on; the changes go to standard error.

use clap::ArgGroup;
use lexiform::error::Place;
use lexiform::repair::{Change, ChangeKind, Costs, Edit, Repair, RepairError, RepairLimits};
use serde_json::{Value, json};

use crate::failure::{Code, EXIT_CODES, Failure, Outcome};
use crate::input::source::{Constraint, KINDS, Meaning};
use crate::input::texts::{Text, Texts};
use crate::shown::output::{self, Output};
use crate::shown::paint::{bad, dim};
use crate::shown::problems;

/// The arguments of `lexiform repair`.
#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("constraint").args(KINDS).required(true), after_help = EXIT_CODES)]
pub struct Args {
    #[command(flatten)]
    constraint: Constraint,
    #[command(flatten)]
    meaning: Meaning,
    #[command(flatten)]
    texts: Texts,
    /// The cost of inserting a character, from 1 to 1000
    #[arg(long, value_name = "COST", default_value_t = 1)]
    insert: u32,
    /// The cost of deleting a character
    #[arg(long, value_name = "COST", default_value_t = 1)]
    delete: u32,
    /// The cost of replacing a character by another
    #[arg(long, value_name = "COST", default_value_t = 1)]
    substitute: u32,
    /// The most pairs of a place in the text and a state of the grammar to visit, for each text
    #[arg(long, value_name = "N", default_value_t = RepairLimits::default().nodes)]
    nodes: usize,
    #[command(flatten)]
    output: Output,
}

impl Args {
    /// Returns `true` if the answer is printed as JSON.
    pub fn is_json(&self) -> bool {
        self.output.json
    }
}

/// Runs `lexiform repair`.
///
/// # Errors
/// The source does not compile, or there is no text.
pub fn run(args: Args) -> Outcome {
    let source = args.constraint.load()?;
    let texts = args.texts.read();
    if texts.is_empty() {
        return Err(Failure::message(
            "name a text to repair: --text TEXT, a FILE, or standard input",
        ));
    }
    let compiled = source.compile(
        &source.vocabulary_of_bytes()?,
        &args.meaning.options_for_judging(),
    );
    let (grammar, _) = compiled.map_err(|error| problems::failure(&source, &error))?;
    let costs = Costs {
        insert: args.insert,
        delete: args.delete,
        substitute: args.substitute,
    };
    let limits = RepairLimits {
        nodes: args.nodes,
        ..RepairLimits::default()
    };
    let repaired = texts.into_iter().map(|text| {
        Repaired::of(text, |text| match source.is_schema() {
            true => Repair::of_json(&grammar, text, &costs, &limits),
            false => Repair::of_text(&grammar, text, &costs, &limits),
        })
    });
    let repaired: Vec<Repaired> = repaired.collect();
    let code = repaired.iter().map(Repaired::code).max().unwrap_or(Code::Fine);
    let written = || repaired.iter().map(Repaired::line).collect::<String>();
    let json = || {
        let texts: Vec<Value> = repaired.iter().map(Repaired::json).collect();
        json!({"ok": code == Code::Fine, "exit": code as u8, "texts": texts})
    };
    args.output.print(json, written, written)?;
    repaired.iter().for_each(|text| text.tell(args.output));
    Ok(code)
}

/// A text with the outcome of its repair.
struct Repaired {
    name: String,
    outcome: Result<Repair, Failure>,
}

impl Repaired {
    fn of(text: Text, repair: impl Fn(&str) -> Result<Repair, RepairError>) -> Self {
        let not_text = |_| Failure::message("it is not UTF-8 text");
        let outcome = text
            .bytes
            .and_then(|bytes| String::from_utf8(bytes).map_err(not_text))
            .and_then(|text| repair(&text).map_err(|error| failure(&error)));
        Self {
            name: text.name,
            outcome,
        }
    }

    fn code(&self) -> Code {
        self.outcome.as_ref().map_or_else(Failure::code, |_| Code::Fine)
    }

    /// Returns the repaired text as a line; empty if there is none.
    fn line(&self) -> String {
        self.outcome
            .as_ref()
            .map_or_else(|_| String::new(), |repair| format!("{}\n", repair.text))
    }

    fn json(&self) -> Value {
        match &self.outcome {
            Ok(repair) => json!({
                "name": self.name,
                "text": repair.text,
                "cost": repair.cost,
                "edits": repair.edits.iter().map(edit).collect::<Vec<_>>(),
                "changes": repair.changes.iter().map(change).collect::<Vec<_>>(),
            }),
            Err(failure) => json!({"name": self.name, "error": failure.to_string()}),
        }
    }

    /// Reports on standard error what was changed, unless only the result is wanted, and always reports
    /// failures.
    fn tell(&self, output: Output) {
        match &self.outcome {
            // The failure names the file.
            Err(failure @ Failure::Read { .. }) => output::err(&format!("{} {failure}\n", bad("error:"))),
            Err(failure) => output::err(&format!("{} {}: {failure}\n", bad("error:"), self.name)),
            Ok(repair) if !output.json && !output.quiet => output::err(&self.changes(repair)),
            Ok(_) => {}
        }
    }

    fn changes(&self, repair: &Repair) -> String {
        if repair.edits.is_empty() {
            return format!("{}: {}\n", self.name, dim("belongs already"));
        }
        // For JSON, the changes of its values are more informative than the characters that differ.
        let values: String = repair
            .changes
            .iter()
            .map(|change| format!("  {}\n", in_words(change)))
            .collect();
        let edited = |edit: &Edit| {
            let (place, removed, inserted) = (&edit.place, &edit.removed, &edit.inserted);
            match (removed.is_empty(), inserted.is_empty()) {
                (true, _) => format!("  {place}: {inserted:?} is inserted\n"),
                (_, true) => format!("  {place}: {removed:?} is deleted\n"),
                _ => format!("  {place}: {removed:?} becomes {inserted:?}\n"),
            }
        };
        let edits: String = repair.edits.iter().map(edited).collect();
        let changes = if values.is_empty() { edits } else { values };
        format!("{}: cost {}\n{changes}", self.name, repair.cost)
    }
}

fn in_words(change: &Change) -> String {
    let Change {
        kind, pointer, text, ..
    } = change;
    let place = if pointer.is_empty() {
        "the value".to_owned()
    } else {
        pointer.clone()
    };
    match kind {
        ChangeKind::Around => format!("{text:?} around the value is deleted"),
        ChangeKind::Reordered => format!("{place}: the keys are put in order"),
        ChangeKind::Dropped => format!("{place}: {text} is deleted"),
        ChangeKind::Added => format!("{place}: {text} is inserted"),
        ChangeKind::Respelled => format!("{place}: {text} is spelled as JSON"),
    }
}

/// Returns a change as `POST /v1/repair` reports it.
fn change(change: &Change) -> Value {
    json!({"kind": change.kind.name(), "pointer": change.pointer, "text": change.text})
}

/// Returns an edit as `POST /v1/repair` reports it.
fn edit(edit: &Edit) -> Value {
    let (line, column) = match edit.place {
        Place::LineColumn { line, column } => (line, column),
        _ => (1, 1),
    };
    json!({
        "offset": edit.offset,
        "line": line,
        "column": column,
        "removed": edit.removed,
        "inserted": edit.inserted,
    })
}

fn failure(error: &RepairError) -> Failure {
    match error {
        RepairError::Cost { .. } => Failure::message(error.to_string()),
        RepairError::NoText => Failure::No {
            text: error.to_string(),
            json: json!({"reason": error.to_string()}),
        },
        // Limits, and a search that was cancelled.
        _ => Failure::Unable(error.to_string()),
    }
}
