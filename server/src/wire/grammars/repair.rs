//! `POST /v1/repair`: the request, and the answer.

use lexiform::error::Place;
use lexiform::repair::{Costs, Edit, Repair};
use serde_json::{Value, json};

use super::{Named, Names};
use crate::wire::error::ApiError;
use crate::wire::fields::{Fields, Ignored, Problems};

/// The greatest cost of an edit.
const GREATEST_COST: i64 = 1_000;

/// A text to be repaired.
#[derive(Clone, Debug)]
pub struct RepairRequest {
    /// What it is to obey.
    pub grammar: Named,
    /// The text.
    pub text: String,
    /// What edits cost.
    pub costs: Costs,
    /// The fields that mean nothing here.
    pub ignored: Ignored,
}

/// Reads a request.
///
/// # Errors
/// All problems of the body, in one error.
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
    // More ways may come; there is one by now.
    fields.word("mode", &[("nearest", ())], &mut problems);
    fields.ignore(&["model"]);
    fields.finish_strict(&mut problems);
    let grammar = names.one(&mut problems);
    let ignored = problems.check()?;
    Ok(RepairRequest {
        grammar: grammar.ok_or_else(ApiError::internal)?,
        text: text.unwrap_or_default(),
        costs,
        ignored,
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

/// The answer, for the grammar of this identity.
pub fn told(id: &str, repair: &Repair) -> Value {
    json!({
        "object": "repair",
        "id": id,
        "text": repair.text,
        "cost": repair.cost,
        "edits": repair.edits.iter().map(edit).collect::<Vec<_>>(),
    })
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
