//! Decides whether every value of one schema is a value of another.
//!
//! `A` is within `B` if no value satisfies `A` and not `B`. The algebra computes the normal form of that
//! conjunction, and a form without a value is a proof, unless something was left out of it.

use std::rc::Rc;

use foldhash::HashSet;
use serde_json::{Value, json};

use lexiform_automata::error::{CompileError, ProblemKind};
use lexiform_automata::limits::Limits;

use crate::schema::decimal::Decimal;
use crate::schema::forms::productive::productive;
use crate::schema::forms::{GoalId, NormalForms, NumberShape, StringShape};
use crate::schema::normal::normalise;
use crate::schema::options::{AdditionalProperties, Options};
use crate::schema::resolve::read;

/// What is known of two schemas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inclusion {
    /// Every value of the first is a value of the second.
    Proven,
    /// This was not proven: either some value is not, or the algebra cannot tell.
    Open,
}

/// Returns whether every value of `inner` is a value of `outer`, as the specification reads them under these
/// options. Objects are as open as the schemas say, whatever the options say.
///
/// ```
/// use lexiform::limits::Limits;
/// use lexiform::schema::{Inclusion, Options, inclusion};
/// use serde_json::json;
///
/// let (small, large) = (json!({"enum": [1, 2]}), json!({"type": "integer", "minimum": 0}));
/// let (options, limits) = (Options::default(), Limits::default());
/// assert_eq!(inclusion(&small, &large, &options, &limits)?, Inclusion::Proven);
/// assert_eq!(inclusion(&large, &small, &options, &limits)?, Inclusion::Open);
/// # Ok::<(), lexiform::error::CompileError>(())
/// ```
///
/// # Errors
/// Fails if one of the two does not compile. A limit that their conjunction exceeds is no error.
pub fn inclusion(
    inner: &Value,
    outer: &Value,
    options: &Options,
    limits: &Limits,
) -> Result<Inclusion, CompileError> {
    let limits = &*limits.begin();
    limits.cancel.unless(decided(inner, outer, options, limits))
}

fn decided(
    inner: &Value,
    outer: &Value,
    options: &Options,
    limits: &Limits,
) -> Result<Inclusion, CompileError> {
    let options = Options {
        additional_properties: AdditionalProperties::Specified,
        ..options.clone()
    };
    // One URI cannot name two schemas.
    let (names, others) = (identifiers(inner), identifiers(outer));
    if names.iter().any(|name| others.contains(name)) {
        return Ok(Inclusion::Open);
    }
    // Each is a document of its own, so that its references and its draft are its own.
    let mut documents = options.documents.clone();
    documents.extend([
        ("lexiform:inner".to_owned(), inner.to_string()),
        ("lexiform:outer".to_owned(), outer.to_string()),
    ]);
    let options = Options { documents, ..options };
    let both = json!({"allOf": [{"$ref": "lexiform:inner"}, {"not": {"$ref": "lexiform:outer"}}]});
    let (parsed, found) = read(&both.to_string(), &options, limits)?;
    let is_left_out = |kind| kind == ProblemKind::Narrowed;
    if found.findings.iter().any(|finding| is_left_out(finding.kind)) {
        return Ok(Inclusion::Open);
    }
    let mut forms = match normalise(parsed, &options, limits) {
        Ok(forms) => forms,
        Err(_) => return Ok(Inclusion::Open),
    };
    let is_whole = !forms.truncated && !forms.notes.iter().any(|note| is_left_out(note.kind));
    if !is_whole {
        return Ok(Inclusion::Open);
    }
    let is_empty = !forms.is_live(forms.root) || {
        leave_out_empty_numbers(&mut forms);
        leave_out_empty_strings(&mut forms);
        let goals: Vec<GoalId> = (0..forms.normals.len())
            .map(|index| GoalId(index as u32))
            .collect();
        !productive(&forms.normals, &goals, &limits.cancel)[forms.root.index()]
    };
    match is_empty {
        true => Ok(Inclusion::Proven),
        false => Ok(Inclusion::Open),
    }
}

/// Returns the URIs that a schema gives to itself and its parts.
fn identifiers(schema: &Value) -> HashSet<&str> {
    let mut found = HashSet::default();
    let mut open = vec![schema];
    while let Some(next) = open.pop() {
        match next {
            Value::Object(map) => {
                let names = ["$id", "id"]
                    .into_iter()
                    .filter_map(|keyword| map.get(keyword)?.as_str());
                found.extend(names);
                open.extend(map.values());
            }
            Value::Array(list) => open.extend(list),
            _ => {}
        }
    }
    found
}

/// Removes sets of strings that certainly have none, which elsewhere only the automata find out.
fn leave_out_empty_strings(forms: &mut NormalForms) {
    let NormalForms { normals, texts, .. } = forms;
    for normal in normals {
        let is_empty = |shape: &StringShape| {
            shape.only.is_none()
                && !shape.texts.is_empty()
                && texts.is_surely_empty(&shape.texts, shape.min, shape.max)
        };
        if normal.strings.iter().any(is_empty) {
            Rc::make_mut(normal).strings.retain(|shape| !is_empty(shape));
        }
    }
}

/// Removes sets of numbers that have none but a spelling, or none at all.
fn leave_out_empty_numbers(forms: &mut NormalForms) {
    let is_left_out = |shape: &NumberShape| is_spelling(shape) || is_empty_interval(shape);
    for normal in &mut forms.normals {
        if normal.numbers.iter().any(is_left_out) {
            Rc::make_mut(normal).numbers.retain(|shape| !is_left_out(shape));
        }
    }
}

/// Returns `true` for whole numbers that are written with a point or an exponent: draft 4 distinguishes `1.0`
/// from the integer 1, but they are one value.
fn is_spelling(shape: &NumberShape) -> bool {
    shape.plain == Some(false) && shape.step.as_ref().is_some_and(Decimal::is_integer)
}

/// The most multiples of a step that are looked at one by one.
const MOST_MULTIPLES: i128 = 1_000;

/// Returns `true` for an interval whose multiples are few and all excluded.
fn is_empty_interval(shape: &NumberShape) -> bool {
    let (Some(step), Some(lower), Some(upper)) = (&shape.step, &shape.lower, &shape.upper) else {
        return false;
    };
    let multiples = step.multiples_between(&lower.value, &upper.value, MOST_MULTIPLES);
    multiples.is_some_and(|multiples| !multiples.iter().any(|value| shape.contains(value)))
}
