//! Structural tags in a request: the library parses them, and their places are converted to paths of the
//! request.
//!
//! ```text
//!   {"triggers": ["<f="], "structures": [{"begin": "<f=a>", "schema": …, "end": "</f>"}]}      the older shape
//!   {"format": {"type": "triggered_tags" | "tag" | "sequence" | "or" | …}}                     the newer one
//! ```

use lexiform::error::{Place, Problem, ProblemKind};
use lexiform_syntax::tags;
use lexiform_syntax::tags::{Content, ContentKind};
use serde_json::{Map, Value};

use super::{Constraint, KeyOrder, Source, Whitespace};
use crate::wire::fields::{Fields, Problems};

/// The fields of a structural tag besides its `type`.
const FIELDS: [&str; 3] = ["format", "structures", "triggers"];

/// Takes the fields of a structural tag from an object that contains them beside its `type`.
pub(super) fn read(fields: &mut Fields, param: String, problems: &mut Problems) -> Option<Constraint> {
    let taken = FIELDS.map(|name| Some((name.to_owned(), fields.take(name)?)));
    let value = Value::Object(taken.into_iter().flatten().collect::<Map<_, _>>());
    let place = |pointer: &str| place(fields, &value, pointer);
    match tags::read_value(&value) {
        Ok(form) => {
            let form = form.map(&mut |content| constraint(content, &place));
            Some(Constraint::new(Source::Tags(Box::new(form)), param))
        }
        Err(error) => {
            for problem in error.problems {
                add(&problem, &place, problems);
            }
            None
        }
    }
}

fn constraint(content: Content, place: &impl Fn(&str) -> String) -> Constraint {
    let source = match content.kind {
        ContentKind::JsonSchema => Source::Schema(content.text),
        ContentKind::Regex => Source::Regex(content.text),
        ContentKind::Grammar => Source::grammar(content.text),
    };
    let mut constraint = Constraint::new(source, place(&content.pointer));
    constraint.arguments = content.style;
    constraint.excludes = content.excludes;
    if content.any_order {
        constraint.key_order = KeyOrder::Any;
    }
    constraint.whitespace = (content.whitespace).map_or(constraint.whitespace, Whitespace::Pattern);
    constraint
}

fn add(problem: &Problem, place: &impl Fn(&str) -> String, problems: &mut Problems) {
    let path = match &problem.place {
        Place::Pointer(pointer) => place(pointer),
        _ => place(""),
    };
    match problem.kind {
        ProblemKind::Unsupported => problems.unsupported(path, &problem.message),
        _ => problems.invalid(path, &problem.message),
    }
}

/// Converts a JSON pointer into the value to a path of the request: `/format/tags/0` to
/// `response_format.format.tags[0]`.
fn place(fields: &Fields, value: &Value, pointer: &str) -> String {
    let mut parts = pointer.split('/').skip(1);
    let first = parts.next().unwrap_or_default();
    let mut path = fields.path(first);
    let mut at = value.get(first);
    for part in parts {
        let part = part.replace("~1", "/").replace("~0", "~");
        let is_item = at.is_some_and(Value::is_array);
        at = match is_item {
            true => part.parse::<usize>().ok().and_then(|index| at?.get(index)),
            false => at.and_then(|at| at.get(&part)),
        };
        path += &match is_item {
            true => format!("[{part}]"),
            false => format!(".{part}"),
        };
    }
    path
}
