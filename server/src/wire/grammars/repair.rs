//! `POST /v1/repair`: the request, and the answers of both ways to repair a text.

use lexiform::error::Place;
use lexiform::repair::{Change, Costs, Edit, Repair};
use lexiform_engine::Law;
use serde_json::{Map, Value, json};

use super::{Named, Names};
use crate::wire::error::ApiError;
use crate::wire::fields::{Fields, Ignored, Problems, type_name};
use crate::wire::generation::{self, Drafts, Generation, Task, caching, values};
use crate::wire::law::LawFields;
use crate::wire::response::{Extension, Told, Usage, response_extension};

/// The maximum cost of an edit.
const GREATEST_COST: i64 = 1_000;

/// The fields of `rewrite` that the engine may refuse.
pub const INSIDE: &[&str] = &[
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "max_tokens",
    "particles",
    "max_attempts",
    "mcmc_steps",
    "ess_threshold",
    "aprad_exponent",
    "batch_invariant",
];

/// A request to repair a text.
#[derive(Clone, Debug)]
pub struct RepairRequest {
    /// The grammar that the repaired text must obey.
    pub grammar: Named,
    /// The text.
    pub text: String,
    /// The costs of edits.
    pub costs: Costs,
    /// The settings with which the model rewrites the text, instead of searching for the nearest one.
    pub rewrite: Option<Rewrite>,
    /// The fields that have no effect here.
    pub ignored: Ignored,
}

/// The settings for a text that the model writes in place of the given one.
#[derive(Clone, Debug)]
pub struct Rewrite {
    /// An instruction for the model in addition to its task.
    pub instruction: Option<String>,
    /// The generation settings. The constraint is the grammar of the repair.
    pub generation: Generation,
}

/// Reads a request.
///
/// # Errors
/// Returns all problems of the body in one error.
pub fn read(body: &[u8]) -> Result<RepairRequest, ApiError> {
    let mut fields = Fields::root(crate::wire::object(body)?);
    let mut problems = Problems::default();
    let names = Names::read(&mut fields, &mut problems);
    let is_there = fields.has("text");
    let text = fields.string("text", &mut problems);
    if !is_there {
        problems.invalid("text", "expected the text to be repaired");
    }
    let costs = costs(&mut fields, &mut problems);
    let is_nearest = fields.word("mode", &[("nearest", ())], &mut problems);
    let mut rewrite = rewrite(&mut fields, &mut problems);
    match &mut rewrite {
        Some(rewrite) => {
            let model = fields.string("model", &mut problems);
            rewrite.generation.model = model.unwrap_or_default();
            if is_nearest.is_some() {
                problems.invalid(
                    "mode",
                    "cannot be combined with rewrite, which asks for the text of the model",
                );
            }
        }
        None => fields.ignore(&["model"]),
    }
    fields.finish_strict(&mut problems);
    let grammar = names.one(&mut problems);
    let ignored = problems.check()?;
    Ok(RepairRequest {
        grammar: grammar.ok_or_else(ApiError::internal)?,
        text: text.unwrap_or_default(),
        costs,
        rewrite,
        ignored,
    })
}

/// Takes `true`, or an object with settings.
fn rewrite(fields: &mut Fields, problems: &mut Problems) -> Option<Rewrite> {
    let path = fields.path("rewrite");
    let mut inner = match fields.take("rewrite")? {
        Value::Bool(false) => return None,
        Value::Bool(true) => Fields::root(Map::new()),
        value @ Value::Object(_) => Fields::of(value, &path, problems)?,
        other => {
            let found = type_name(&other);
            problems.invalid(path, format!("expected true, false or an object, found {found}"));
            return None;
        }
    };
    let instruction = inner.string("instruction", problems);
    let temperature = inner.number("temperature", 0.0, 2.0, problems);
    let LawFields {
        law,
        return_particles,
    } = LawFields::read(&mut inner, problems);
    let unsaid = match law {
        Law::Local => 0.0,
        // The other laws need probabilities, and none are left at temperature 0.
        _ => 1.0,
    };
    let wants_drafts = inner.has("draft");
    let generation = Generation {
        temperature: Some(temperature.unwrap_or(unsaid)),
        task: Task::Draw(law),
        return_particles,
        max_tokens: values::max_tokens(&mut inner, problems),
        top_p: inner.number("top_p", 0.0, 1.0, problems),
        top_k: values::top_k(&mut inner, problems),
        min_p: inner.number("min_p", 0.0, 1.0, problems),
        seed: values::seed(&mut inner, problems),
        weights: inner.boolean("weights", problems).unwrap_or(false),
        schema_in_prompt: generation::schema_in_prompt(&mut inner, problems),
        draft: Drafts::read(&mut inner, problems),
        batch_invariant: inner.boolean("batch_invariant", problems).unwrap_or(false),
        timeout: values::timeout(&mut inner, problems),
        priority: values::priority(&mut inner, problems),
        cache_salt: caching::salt(&mut inner, problems),
        ..Generation::plain("")
    };
    generation.note_ineffective(wants_drafts, &inner, problems);
    inner.finish_strict(problems);
    Some(Rewrite {
        instruction,
        generation,
    })
}

fn costs(fields: &mut Fields, problems: &mut Problems) -> Costs {
    let mut costs = Costs::default();
    let Some(mut inner) = fields.object("costs", problems) else {
        return costs;
    };
    for (name, cost) in [
        ("insert", &mut costs.insert),
        ("delete", &mut costs.delete),
        ("substitute", &mut costs.substitute),
    ] {
        if let Some(given) = inner.integer(name, 1, GREATEST_COST, problems) {
            *cost = u32::try_from(given).unwrap_or(1);
        }
    }
    inner.finish(problems);
    costs
}

/// Returns the answer, for the grammar with this identity.
pub fn told(id: &str, repair: &Repair) -> Value {
    json!({
        "object": "repair",
        "id": id,
        "text": repair.text,
        "cost": repair.cost,
        "edits": repair.edits.iter().map(edit).collect::<Vec<_>>(),
        "changes": repair.changes.iter().map(change).collect::<Vec<_>>(),
    })
}

fn change(change: &Change) -> Value {
    json!({"kind": change.kind.name(), "pointer": change.pointer, "text": change.text})
}

/// A text that the model has rewritten, for the answer.
#[derive(Clone, Copy, Debug)]
pub struct Rewritten<'a> {
    /// The identity of the grammar.
    pub id: &'a str,
    /// The name of the model.
    pub model: &'a str,
    /// The text that the model wrote.
    pub text: &'a str,
    /// The changes from the given text, unless the two are too long to compare.
    pub changes: Option<&'a Repair>,
    /// The reason why the text ended.
    pub finish_reason: &'static str,
    /// The tokens used.
    pub usage: Usage,
}

/// Returns the answer with a text that the model has rewritten, and the fields that are specific to this
/// server.
pub fn rewritten(rewritten: &Rewritten<'_>, extension: Option<Extension<'_>>, sample: &Told) -> Value {
    let mut told = json!({
        "object": "repair",
        "id": rewritten.id,
        "text": rewritten.text,
        "cost": rewritten.changes.map(|changes| changes.cost),
        "edits": rewritten.changes.map(|changes| changes.edits.iter().map(edit).collect::<Vec<_>>()),
        "model": rewritten.model,
        "finish_reason": rewritten.finish_reason,
        "usage": rewritten.usage,
    });
    if let Value::Object(told) = &mut told {
        told.extend(response_extension(extension, Some(sample)));
    }
    told
}

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
