//! The nearest valid text, and the changes that lead to it.

use lexiform::Options;
use lexiform::error::Place;
use lexiform::repair;
use lexiform::repair::RepairLimits;
use napi::bindgen_prelude::AsyncTask;
use napi::{Env, Result, Task};
use napi_derive::napi;
use serde_json::{Value, json};

use crate::error::repair_error;
use crate::judged::Schema;
use crate::options;
use crate::options::RepairOptions;
use crate::watch::{Abort, Watch};

/// Returns the JSON text nearest to this one that a model may write under a schema, as JSON.
#[napi(catch_unwind)]
pub(crate) fn repair_text(
    schema: String,
    options: Option<String>,
    text: String,
    costs: Option<String>,
) -> Result<String> {
    task_of(schema, options, text, costs.as_deref(), None)?.compute()
}

/// Finds that text on another thread, on which the schema is compiled, too.
#[napi(catch_unwind)]
pub(crate) fn repair_text_async(
    schema: String,
    options: Option<String>,
    text: String,
    costs: Option<String>,
    abort: &Abort,
) -> Result<AsyncTask<RepairTask>> {
    let task = task_of(schema, options, text, costs.as_deref(), Some(abort))?;
    Ok(AsyncTask::new(task))
}

fn task_of(
    schema: String,
    options: Option<String>,
    text: String,
    costs: Option<&str>,
    abort: Option<&Abort>,
) -> Result<RepairTask> {
    let schema = Schema::new(schema, options, Options::for_generation(), "repair")?;
    let costs = options::repair(costs)?;
    Ok(RepairTask::new(
        Language::Schema(Box::new(schema)),
        text,
        costs,
        abort,
    ))
}

/// The language of the valid texts.
pub(crate) enum Language {
    /// The JSON texts of a schema.
    Schema(Box<Schema>),
    /// The JSON texts of a grammar that was made of a schema.
    Json(lexiform::Grammar),
    /// The texts of another grammar.
    Texts(lexiform::Grammar),
}

/// A repair that can run on any thread.
pub struct RepairTask {
    language: Language,
    text: String,
    options: RepairOptions,
    watch: Watch,
}

impl RepairTask {
    pub(crate) fn new(
        language: Language,
        text: String,
        options: RepairOptions,
        abort: Option<&Abort>,
    ) -> RepairTask {
        let watch = Watch::new("repair", options.timeout, abort);
        RepairTask {
            language,
            text,
            options,
            watch,
        }
    }
}

impl Task for RepairTask {
    type Output = String;
    type JsValue = String;

    fn compute(&mut self) -> Result<String> {
        let (text, costs) = (&self.text[..], &self.options.costs);
        self.watch.run(|cancel| {
            let usual = RepairLimits::default();
            let limits = RepairLimits {
                nodes: self.options.nodes.unwrap_or(usual.nodes),
                cancel,
                ..usual
            };
            let repaired = match &self.language {
                Language::Schema(schema) => {
                    let grammar = schema.grammar(&limits.cancel)?;
                    repair::Repair::of_json(&grammar, text, costs, &limits)
                }
                Language::Json(grammar) => repair::Repair::of_json(grammar, text, costs, &limits),
                Language::Texts(grammar) => repair::Repair::of_text(grammar, text, costs, &limits),
            };
            let repair = repaired.map_err(|error| repair_error(&error))?;
            Ok(told(text, &repair).to_string())
        })
    }

    fn resolve(&mut self, _env: Env, told: String) -> Result<String> {
        Ok(told)
    }
}

fn told(text: &str, repair: &repair::Repair) -> Value {
    let (mut at, mut start) = (0, 0);
    let edit = |edit: &repair::Edit| {
        start += text[at..edit.offset].encode_utf16().count();
        at = edit.offset;
        let (line, column) = match edit.place {
            Place::LineColumn { line, column } => (line, column),
            _ => (1, 1),
        };
        json!({
            "offset": edit.offset, "start": start, "line": line, "column": column,
            "removed": edit.removed, "inserted": edit.inserted,
        })
    };
    let change = |change: &repair::Change| json!({"kind": change.kind.name(), "pointer": change.pointer, "text": change.text});
    json!({
        "text": repair.text,
        "cost": repair.cost,
        "edits": repair.edits.iter().map(edit).collect::<Value>(),
        "changes": repair.changes.iter().map(change).collect::<Value>(),
    })
}
