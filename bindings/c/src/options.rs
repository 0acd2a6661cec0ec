//! The options of a compile, read from JSON, and its problems, written as JSON.

use std::ffi::c_char;

use lexiform::Options;
use lexiform::error::{CompileError, Place, Problem};
use lexiform::regex::Dialect;
use lexiform::schema::{AdditionalProperties, KeyOrder, Numbers, Refuse, Whitespace};
use lexiform_syntax::suggest;
use serde_json::{Value, json};

use crate::boundary::slice;

const FIELDS: [&str; 8] = [
    "whitespace",
    "key_order",
    "additional_properties",
    "numbers",
    "dialect",
    "notation",
    "start",
    "refuse",
];

/// Reads options; without a text, returns those for generation by models.
///
/// # Errors
/// The first mistake in the options.
pub(crate) fn read(text: Option<&str>) -> Result<Options, String> {
    let mut options = Options::for_generation();
    let Some(text) = text.filter(|text| !text.trim().is_empty()) else {
        return Ok(options);
    };
    let value: Value =
        serde_json::from_str(text).map_err(|error| format!("the options are no JSON: {error}"))?;
    let fields = value.as_object().ok_or("the options must be a JSON object")?;
    for (name, value) in fields {
        set(&mut options, name, value)?;
    }
    Ok(options)
}

fn set(options: &mut Options, name: &str, value: &Value) -> Result<(), String> {
    match (name, value.as_str()) {
        ("whitespace", Some("indented")) => options.schema.whitespace = Whitespace::Indented,
        ("whitespace", Some("flexible")) => options.schema.whitespace = Whitespace::Flexible,
        ("whitespace", Some("compact")) => options.schema.whitespace = Whitespace::Compact,
        ("key_order", Some("schema")) => options.schema.key_order = KeyOrder::Schema,
        ("key_order", Some("any")) => options.schema.key_order = KeyOrder::Any,
        ("additional_properties", Some("closed")) => {
            options.schema.additional_properties = AdditionalProperties::Closed;
        }
        ("additional_properties", Some("open")) => {
            options.schema.additional_properties = AdditionalProperties::Specified;
        }
        ("numbers", Some("double")) => options.schema.numbers = Numbers::Double,
        ("numbers", Some("any")) => options.schema.numbers = Numbers::Any,
        ("dialect", Some("rust")) => options.regex = Dialect::Rust,
        ("dialect", Some("ecma")) => options.regex = Dialect::Ecma,
        ("dialect", Some("python")) => options.regex = Dialect::Python,
        ("notation", Some(notation)) => options.grammar.notation = Some(notation.parse()?),
        ("start", Some(start)) => options.grammar.start = Some(start.to_owned()),
        ("notation" | "start", None) => return Err(format!("`{name}` must be a string")),
        ("refuse", Some("nothing")) => options.schema.refuse = Refuse::Nothing,
        ("refuse", Some("ineffective")) => options.schema.refuse = Refuse::Ineffective,
        ("refuse", Some("inexact")) => options.schema.refuse = Refuse::Inexact,
        ("whitespace", ..) => {
            return Err("`whitespace` must be \"indented\", \"flexible\" or \"compact\"".to_owned());
        }
        ("key_order", ..) => return Err("`key_order` must be \"schema\" or \"any\"".to_owned()),
        ("additional_properties", ..) => {
            return Err("`additional_properties` must be \"closed\" or \"open\"".to_owned());
        }
        ("numbers", ..) => return Err("`numbers` must be \"double\" or \"any\"".to_owned()),
        ("dialect", ..) => return Err("`dialect` must be \"rust\", \"ecma\" or \"python\"".to_owned()),
        ("refuse", ..) => {
            return Err("`refuse` must be \"nothing\", \"ineffective\" or \"inexact\"".to_owned());
        }
        _ => {
            return Err(match suggest::nearest(name, FIELDS) {
                Some(near) => format!("unknown option `{name}`; did you mean `{near}`?"),
                None => format!("unknown option `{name}` (options: {})", FIELDS.join(", ")),
            });
        }
    }
    Ok(())
}

/// Returns all problems of a source, as `{"problems": […]}`.
pub(crate) fn problems(error: &CompileError) -> String {
    json!({"problems": listed(&error.problems)}).to_string()
}

/// Returns problems or findings as JSON objects.
pub(crate) fn listed(problems: &[Problem]) -> Value {
    problems.iter().map(listing).collect()
}

fn listing(problem: &Problem) -> Value {
    let mut listing = json!({"kind": problem.kind.name(), "message": problem.message});
    match &problem.place {
        Place::Whole => {}
        Place::Pointer(pointer) => listing["pointer"] = json!(pointer),
        Place::LineColumn { line, column } => {
            listing["line"] = json!(line);
            listing["column"] = json!(column);
        }
        Place::Rule(rule) => listing["rule"] = json!(rule),
    }
    listing
}

/// Returns a mistake in a call, in the format of the problems of a source.
pub(crate) fn mistake(message: &str) -> String {
    json!({"problems": [{"kind": "call", "message": message}]}).to_string()
}

/// Returns a text of C.
///
/// # Safety
/// The pointer is null, or has this many bytes for the duration of the call.
pub(crate) unsafe fn text<'a>(pointer: *const c_char, len: usize) -> Result<&'a str, String> {
    // SAFETY: as the caller promises.
    let bytes = unsafe { slice(pointer.cast::<u8>(), len) };
    let bytes = bytes.ok_or_else(|| mistake("a text is null"))?;
    std::str::from_utf8(bytes).map_err(|error| mistake(&error.to_string()))
}
