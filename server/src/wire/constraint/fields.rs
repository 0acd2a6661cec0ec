//! The many fields in which clients ask for a constraint, read into one form.
//!
//! | field | who sends it |
//! |---|---|
//! | `response_format` | every OpenAI client |
//! | `structured_outputs` | vLLM's clients |
//! | `guided_json`, `guided_regex`, `guided_choice`, `guided_grammar`, also in `nvext` | older clients of vLLM and NIM, which get a `Deprecation` header |
//! | `regex`, `ebnf`, `json_schema` | SGLang's clients |
//! | `grammar` | clients of llama.cpp, TGI and mistral.rs |
//!
//! Two of the fields may contain a structural tag, which `tags` reads.
//!
//! A request may have one of them. `ebnf` is Lexiform's own notation; in the other fields, the notation of a
//! grammar is that of `notation` beside it, or the one that is recognised.

use lexiform::schema::AdditionalProperties;
use serde_json::Value;

use super::{Constraint, KeyOrder, Source, Whitespace, boundary, schema_constraint, tags, with_dialect};
use crate::wire::fields::{Fields, Problems};

/// The maximum number of choices that `choice` may list.
const CHOICES: usize = 200_000;
/// The maximum length of a text of which the output may be a span, in bytes.
const EXTRACTED: usize = 64 << 10;

/// Takes all constraint fields of a request.
pub fn read(fields: &mut Fields, problems: &mut Problems) -> Option<Constraint> {
    let mut found = Vec::new();
    found.extend(response_format(fields, problems));
    found.extend(structured_outputs(fields, problems));
    found.extend(guided(fields, problems));
    if let Some(mut nvext) = fields.object("nvext", problems) {
        found.extend(guided(&mut nvext, problems));
        nvext.finish(problems);
    }
    found.extend(top_level(fields, problems));
    found.extend(grammar_field(fields, problems));
    if let Some(second) = found.get(1) {
        problems.invalid(
            second.param.clone(),
            format!(
                "only one constraint is allowed; {} is another one",
                found[0].param
            ),
        );
    }
    let constraint = with_dialect(fields, found.into_iter().next(), problems);
    layout(fields, constraint, problems)
}

/// Takes the layout of JSON and applies it to the constraint.
fn layout(
    fields: &mut Fields,
    constraint: Option<Constraint>,
    problems: &mut Problems,
) -> Option<Constraint> {
    let whitespace = fields.word(
        "whitespace",
        &["indented", "compact", "flexible"].map(|word| (word, word)),
        problems,
    );
    let whitespace = whitespace.map(|word| match word {
        "compact" => Whitespace::Compact,
        "flexible" => Whitespace::Flexible,
        _ => Whitespace::Indented,
    });
    let pattern = fields
        .string("guided_whitespace_pattern", problems)
        .map(Whitespace::Pattern);
    let key_order = fields.word(
        "key_order",
        &[("schema", KeyOrder::Schema), ("any", KeyOrder::Any)],
        problems,
    );
    let is_schema = constraint
        .as_ref()
        .is_some_and(|c| matches!(c.source, Source::Schema(_)));
    let given = [
        ("whitespace", whitespace.is_some()),
        ("guided_whitespace_pattern", pattern.is_some()),
        ("key_order", key_order.is_some()),
    ];
    for (name, given) in given {
        if given && !is_schema {
            problems.invalid(name, "requires a JSON constraint");
        }
    }
    constraint.map(|constraint| Constraint {
        whitespace: whitespace.or(pattern).unwrap_or(constraint.whitespace),
        key_order: key_order.unwrap_or(constraint.key_order),
        ..constraint
    })
}

fn response_format(fields: &mut Fields, problems: &mut Problems) -> Option<Constraint> {
    format(fields.object("response_format", problems)?, problems)
}

/// Reads a constraint in the form of `response_format`: a type, and the fields of this type.
pub(super) fn format(mut format: Fields, problems: &mut Problems) -> Option<Constraint> {
    let path = format.path("type");
    let kind = format.string("type", problems);
    let constraint = match kind.as_deref() {
        Some("text") => None,
        Some("json_object") => json_object(&mut format, path, problems),
        Some("json_schema") => json_schema(&mut format, problems),
        Some("regex") => text(&mut format, "pattern", Source::Regex, problems),
        Some("ebnf") => text(&mut format, "grammar", Source::ebnf, problems),
        Some("grammar") => text(&mut format, "grammar", Source::grammar, problems),
        Some("structural_tag") => tags::read(&mut format, path, problems),
        Some(other) => {
            problems.unsupported(path, format!("unknown response format '{other}'"));
            return None;
        }
        None => {
            if !format.has("type") {
                problems.invalid(path, "expected 'text', 'json_object' or 'json_schema'");
            }
            return None;
        }
    };
    let constraint = with_dialect(&mut format, constraint, problems);
    format.finish_strict(problems);
    constraint
}

/// Takes the `text` of a response: its format has the schema's name and the schema beside its type.
pub fn text_format(fields: &mut Fields, problems: &mut Problems) -> Option<Constraint> {
    let mut text = fields.object("text", problems)?;
    text.ignore(&["verbosity"]);
    let format = text.object("format", problems);
    text.finish_strict(problems);
    let mut format = format?;
    let path = format.path("type");
    let constraint = match format.string("type", problems).as_deref() {
        Some("text") => None,
        Some("json_object") => json_object(&mut format, path, problems),
        Some("json_schema") => return named_schema(format, problems),
        Some("regex") => self::text(&mut format, "pattern", Source::Regex, problems),
        Some("ebnf") => self::text(&mut format, "grammar", Source::ebnf, problems),
        Some("grammar") => self::text(&mut format, "grammar", Source::grammar, problems),
        _ => {
            problems.unsupported(path, "expected 'text', 'json_object' or 'json_schema'");
            return None;
        }
    };
    let constraint = with_dialect(&mut format, constraint, problems);
    format.finish_strict(problems);
    constraint
}

/// Returns the constraint for a JSON object of any content.
fn any_object(param: String) -> Constraint {
    Constraint::new(Source::Schema(r#"{"type":"object"}"#.to_owned()), param)
}

/// Takes the `schema` that some clients send with `json_object`; without one, the content of the object is
/// free.
fn json_object(format: &mut Fields, path: String, problems: &mut Problems) -> Option<Constraint> {
    match format.has("schema") {
        true => optional_schema(format, "schema", problems),
        false => Some(any_object(path)),
    }
}

/// Takes the `json_schema` of a response format. The output always obeys it, whatever `strict` says; see
/// [`crate::grammars::enforcement`].
fn json_schema(format: &mut Fields, problems: &mut Problems) -> Option<Constraint> {
    if !format.has("json_schema") {
        problems.invalid(
            format.path("json_schema"),
            "expected an object with 'name' and 'schema'",
        );
        return None;
    }
    let inner = format.object("json_schema", problems)?;
    named_schema(inner, problems)
}

fn named_schema(mut inner: Fields, problems: &mut Problems) -> Option<Constraint> {
    let name = inner.string("name", problems);
    let named = |name: &str| {
        name.len() <= 64
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
    };
    if name
        .as_deref()
        .is_some_and(|name| name.is_empty() || !named(name))
    {
        problems.invalid(inner.path("name"), "expected 1 to 64 letters, digits, '_' or '-'");
    }
    inner.ignore(&["description"]);
    let strict = inner.boolean("strict", problems).unwrap_or(false);
    let param = inner.path("schema");
    let schema = inner.take("schema");
    inner.finish_strict(problems);
    let Some(schema) = schema else {
        problems.invalid(param, "a schema is required");
        return None;
    };
    Some(Constraint {
        name,
        strict,
        ..schema_constraint(schema, param, problems)?
    })
}

fn text(
    fields: &mut Fields,
    name: &'static str,
    source: fn(String) -> Source,
    problems: &mut Problems,
) -> Option<Constraint> {
    let param = fields.path(name);
    if !fields.has(name) {
        problems.invalid(param, "a string is required");
        return None;
    }
    Some(Constraint::new(source(fields.string(name, problems)?), param))
}

fn optional_text(
    fields: &mut Fields,
    name: &'static str,
    source: fn(String) -> Source,
    problems: &mut Problems,
) -> Option<Constraint> {
    if fields.has(name) {
        text(fields, name, source, problems)
    } else {
        None
    }
}

fn optional_schema(fields: &mut Fields, name: &'static str, problems: &mut Problems) -> Option<Constraint> {
    let param = fields.path(name);
    schema_constraint(fields.take(name)?, param, problems)
}

/// Takes vLLM's object; its fields exclude one another.
fn structured_outputs(fields: &mut Fields, problems: &mut Problems) -> Option<Constraint> {
    let mut inner = fields.object("structured_outputs", problems)?;
    let path = inner.path("json_object");
    let object = inner
        .boolean("json_object", problems)
        .filter(|wanted| *wanted)
        .map(|_| any_object(path));
    let found: Vec<Constraint> = [
        optional_schema(&mut inner, "json", problems),
        optional_text(&mut inner, "regex", Source::Regex, problems),
        choice(&mut inner, "choice", problems),
        extract(&mut inner, problems),
        optional_text(&mut inner, "grammar", Source::grammar, problems),
        structural_tag(&mut inner, problems),
        object,
    ]
    .into_iter()
    .flatten()
    .collect();
    let mut whitespace = inner
        .string("whitespace_pattern", problems)
        .map(Whitespace::Pattern);
    if let Some(true) = inner.boolean("disable_any_whitespace", problems) {
        whitespace = Some(Whitespace::Compact);
    }
    let closed = inner.boolean("disable_additional_properties", problems) == Some(true);
    inner.ignore(&["_backend", "_backend_was_auto", "disable_fallback"]);
    let (number, constraint) = (found.len(), found.into_iter().next());
    let constraint = with_dialect(&mut inner, constraint, problems);
    inner.finish_strict(problems);
    if number != 1 {
        problems.invalid(
            "structured_outputs",
            "expected exactly one of 'json', 'regex', 'choice', 'grammar', 'extract', 'json_object', 'structural_tag'",
        );
    }
    let constraint = constraint?;
    if whitespace.is_some() && matches!(constraint.source, Source::Tags(_)) {
        problems.unsupported(
            "structured_outputs.structural_tag",
            "whitespace cannot be set for the JSON in a structural tag",
        );
    }
    Some(Constraint {
        whitespace: whitespace.unwrap_or(constraint.whitespace),
        additional_properties: match closed {
            true => AdditionalProperties::Closed,
            false => constraint.additional_properties,
        },
        ..constraint
    })
}

/// Takes a structural tag as an object, or as a text that contains one.
fn structural_tag(fields: &mut Fields, problems: &mut Problems) -> Option<Constraint> {
    let param = fields.path("structural_tag");
    let value = match fields.take("structural_tag")? {
        Value::String(text) => serde_json::from_str(&text).unwrap_or(Value::String(text)),
        value => value,
    };
    let mut inner = Fields::of(value, &param, problems)?;
    inner.word("type", &[("structural_tag", ())], problems);
    let constraint = tags::read(&mut inner, param, problems);
    inner.finish_strict(problems);
    constraint
}

/// Takes the older `guided_*` fields. The name of a back end has no effect: there is only one here.
fn guided(fields: &mut Fields, problems: &mut Problems) -> Vec<Constraint> {
    fields.without_effect("guided_decoding_backend", problems);
    [
        optional_schema(fields, "guided_json", problems),
        optional_text(fields, "guided_regex", Source::Regex, problems),
        choice(fields, "guided_choice", problems),
        optional_text(fields, "guided_grammar", Source::grammar, problems),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn top_level(fields: &mut Fields, problems: &mut Problems) -> Vec<Constraint> {
    [
        optional_schema(fields, "json_schema", problems),
        optional_text(fields, "regex", Source::Regex, problems),
        optional_text(fields, "ebnf", Source::ebnf, problems),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Takes `grammar`: an object that names its syntax, or a text whose notation is recognised.
fn grammar_field(fields: &mut Fields, problems: &mut Problems) -> Option<Constraint> {
    let value = fields.take("grammar")?;
    let path = fields.path("grammar");
    if let Value::String(text) = value {
        return Some(Constraint::new(Source::grammar(text), path));
    }
    let mut inner = Fields::of(value, &path, problems)?;
    let kind = inner.string("type", problems);
    let constraint = match kind.as_deref() {
        Some("json" | "json_schema") => optional_schema(&mut inner, "value", problems),
        Some("regex") => text(&mut inner, "value", Source::Regex, problems),
        Some("ebnf") => text(&mut inner, "value", Source::ebnf, problems),
        Some("grammar") => text(&mut inner, "value", Source::grammar, problems),
        Some(other) => {
            problems.unsupported(
                inner.path("type"),
                format!("grammars of type '{other}' are not supported"),
            );
            return None;
        }
        None => {
            problems.invalid(
                inner.path("type"),
                "expected 'json', 'regex', 'ebnf' or 'grammar'",
            );
            return None;
        }
    };
    inner.finish_strict(problems);
    constraint
}

/// Takes a text of which the output must be a span.
fn extract(fields: &mut Fields, problems: &mut Problems) -> Option<Constraint> {
    let param = fields.path("extract");
    let mut inner = fields.object("extract", problems)?;
    if !inner.has("text") {
        problems.invalid(inner.path("text"), "a text is required");
    }
    let text = inner.string("text", problems);
    let boundary = boundary(&mut inner, problems);
    inner.finish_strict(problems);
    let text = text?;
    match text.len() <= EXTRACTED {
        true => Some(Constraint::new(Source::Extract(text, boundary), param)),
        false => {
            let message = format!(
                "expected a text of at most {EXTRACTED} bytes, found {}",
                text.len()
            );
            problems.invalid(format!("{param}.text"), message);
            None
        }
    }
}

/// Takes a list of texts, one of which must be the output.
fn choice(fields: &mut Fields, name: &'static str, problems: &mut Problems) -> Option<Constraint> {
    let param = fields.path(name);
    let items = fields.array(name, problems)?;
    if items.is_empty() || items.len() > CHOICES {
        problems.invalid(param, format!("expected 1 to {CHOICES} texts"));
        return None;
    }
    let mut texts = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        match item.as_str() {
            Some(text) => texts.push(text.to_owned()),
            None => problems.invalid(format!("{param}[{index}]"), "expected a string"),
        }
    }
    Some(Constraint::new(Source::Choice(texts), param))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::error::ApiError;

    fn read_text(body: &str) -> Result<Option<Constraint>, ApiError> {
        let map = match serde_json::from_str(body) {
            Ok(Value::Object(map)) => map,
            other => panic!("a test body is an object: {other:?}"),
        };
        let (mut fields, mut problems) = (Fields::root(map), Problems::default());
        let constraint = read(&mut fields, &mut problems);
        fields.finish(&mut problems);
        problems.check().map(|_| constraint)
    }

    #[test]
    fn each_field_that_asks_for_a_schema_is_read() {
        let bodies = [
            r#"{"response_format":{"type":"json_schema","json_schema":{"name":"P","schema":{"type":"null"}}}}"#,
            r#"{"response_format":{"type":"json_schema","json_schema":{"name":"P","strict":false,"schema":{"type":"null"}}}}"#,
            r#"{"structured_outputs":{"json":{"type":"null"}}}"#,
            r#"{"structured_outputs":{"json":"{\"type\":\"null\"}"}}"#,
            r#"{"guided_json":{"type":"null"},"guided_decoding_backend":"xgrammar"}"#,
            r#"{"nvext":{"guided_json":{"type":"null"}}}"#,
            r#"{"json_schema":"{\"type\":\"null\"}"}"#,
            r#"{"grammar":{"type":"json","value":{"type":"null"}}}"#,
        ];
        for body in bodies {
            let constraint = read_text(body).unwrap_or_else(|error| panic!("{body}: {error}"));
            let source = constraint.map(|constraint| constraint.source);
            assert_eq!(
                source,
                Some(Source::Schema(r#"{"type":"null"}"#.to_owned())),
                "{body}"
            );
        }
    }

    #[test]
    fn what_looks_like_a_constraint_and_is_not_honoured_is_refused() {
        let bodies = [
            r#"{"grammar":{"type":"lark","value":"start: \"a\""}}"#,
            r#"{"response_format":{"type":"grammar"}}"#,
            r#"{"response_format":{"type":"structural_tag","structures":[]}}"#,
            r#"{"response_format":{"type":"json_schema","json_schema":{"name":"P","schema":{},"regex":"a"}}}"#,
            r#"{"response_format":{}}"#,
            r#"{"response_format":"json"}"#,
            r#"{"structured_outputs":{}}"#,
            r#"{"structured_outputs":{"regex":"a","choice":["a"]}}"#,
            r#"{"structured_outputs":{"structural_tag":"{}"}}"#,
            r#"{"guided_whitespace_pattern":" "}"#,
            r#"{"guided_regex":"a","guided_json":{}}"#,
            r#"{"logits_processors":["x"]}"#,
            r#"{"functions":[]}"#,
            r#"{"output_schema":{}}"#,
            r#"{"guided_regex":"a","whitespace":"compact"}"#,
            r#"{"whitespace":"compact"}"#,
        ];
        for body in bodies {
            let error = read_text(body).expect_err(body);
            assert_eq!(error.status().as_u16(), 400, "{body}");
        }
    }

    #[test]
    fn choices_are_literal() {
        let constraint = read_text(r#"{"guided_choice":["a.b","c|d"]}"#).expect("a list of texts");
        let source = constraint.map(|constraint| constraint.source);
        let texts = ["a.b", "c|d"].map(str::to_owned).to_vec();
        assert_eq!(source, Some(Source::Choice(texts)));
    }

    #[test]
    fn a_text_format_is_no_constraint() {
        assert_eq!(
            read_text(r#"{"response_format":{"type":"text"}}"#).expect("text"),
            None
        );
        assert_eq!(read_text(r#"{"response_format":null}"#).expect("null"), None);
    }
}
