//! Structural tags: free text in which some parts have a form, as SGLang's and vLLM's clients describe it.
//!
//! ```text
//!   {"triggers": ["<f="], "structures": [{"begin": "<f=a>", "schema": …, "end": "</f>"}]}      the older shape
//!   {"format": {"type": "triggered_tags" | "tag" | "sequence" | "or" | …}}                     the newer one
//! ```
//!
//! A form that is not known is refused, as every constraint that would not be honoured.

use serde_json::Value;

use super::{Constraint, Count, Form, Source, Tag, schema_constraint};
use crate::wire::fields::{Fields, Problems};

/// The most parts of one form.
const PARTS: usize = 256;

/// Takes the fields of a structural tag out of an object that holds them beside its `type`.
pub(super) fn read(fields: &mut Fields, param: String, problems: &mut Problems) -> Option<Constraint> {
    let form = match fields.take("format") {
        Some(format) => form(format, &fields.path("format"), problems),
        None => structures(fields, problems),
    };
    Some(Constraint::new(Source::Tags(Box::new(form?)), param))
}

/// The older shape.
fn structures(fields: &mut Fields, problems: &mut Problems) -> Option<Form> {
    let triggers = texts(fields, "triggers", problems);
    let path = fields.path("structures");
    let items = list(fields, "structures", problems)?;
    let mut tags = Vec::with_capacity(items.len());
    for (index, item) in items.into_iter().enumerate() {
        let path = format!("{path}[{index}]");
        let mut inner = Fields::of(item, &path, problems)?;
        let begin = inner.string("begin", problems).unwrap_or_default();
        let end = inner.string("end", problems).unwrap_or_default();
        let schema = inner.take("schema").unwrap_or(Value::Bool(true));
        let content = schema_constraint(schema, inner.path("schema"), problems);
        inner.finish_strict(problems);
        let content = Form::Obeys(Box::new(content?));
        tags.push(Tag { begin, content, end });
    }
    let count = Count {
        at_least_one: false,
        stop_after_first: false,
    };
    triggered(triggers?, (tags, &path), count, problems)
}

fn triggered(
    triggers: Vec<String>,
    (tags, path): (Vec<Tag>, &str),
    count: Count,
    problems: &mut Problems,
) -> Option<Form> {
    for (index, tag) in tags.iter().enumerate() {
        if !triggers
            .iter()
            .any(|trigger| tag.begin.starts_with(trigger.as_str()))
        {
            problems.invalid(
                format!("{path}[{index}].begin"),
                "must begin with one of the triggers",
            );
            return None;
        }
    }
    Some(Form::Triggered {
        triggers,
        tags,
        count,
    })
}

/// The newer shape.
fn form(value: Value, path: &str, problems: &mut Problems) -> Option<Form> {
    let mut fields = Fields::of(value, path, problems)?;
    let kind = fields.string("type", problems);
    let form = match kind.as_deref() {
        Some("const_string") => required(&mut fields, "value", problems).map(Form::Text),
        Some("any_text") => Some(Form::Any),
        Some("json_schema") => {
            let param = fields.path("json_schema");
            let schema = fields.take("json_schema").unwrap_or(Value::Null);
            schema_constraint(schema, param, problems).map(obeys)
        }
        Some("regex") => source(&mut fields, "pattern", Source::Regex, problems),
        Some("grammar") => source(&mut fields, "grammar", Source::Ebnf, problems),
        Some("sequence") => forms(&mut fields, problems).map(Form::All),
        Some("or") => forms(&mut fields, problems).map(Form::Either),
        Some("tag") => tag(&mut fields, problems).map(|tag| Form::Tag(Box::new(tag))),
        Some("triggered_tags") => {
            let triggers = texts(&mut fields, "triggers", problems);
            let (path, tags) = (fields.path("tags"), tags(&mut fields, problems));
            let count = count(&mut fields, problems);
            triggered(triggers?, (tags?, &path), count, problems)
        }
        Some("tags_with_separator") => {
            let separator = fields.string("separator", problems).unwrap_or_default();
            let (tags, count) = (tags(&mut fields, problems), count(&mut fields, problems));
            tags.map(|tags| Form::Separated {
                separator,
                tags,
                count,
            })
        }
        _ => {
            problems.unsupported(fields.path("type"), "unknown format of a structural tag");
            return None;
        }
    };
    fields.finish_strict(problems);
    form
}

/// A text that must be there.
fn required(fields: &mut Fields, name: &'static str, problems: &mut Problems) -> Option<String> {
    if !fields.has(name) {
        problems.invalid(fields.path(name), "a string is required");
    }
    fields.string(name, problems)
}

fn obeys(constraint: Constraint) -> Form {
    Form::Obeys(Box::new(constraint))
}

fn source(
    fields: &mut Fields,
    name: &'static str,
    source: fn(String) -> Source,
    problems: &mut Problems,
) -> Option<Form> {
    let param = fields.path(name);
    let text = required(fields, name, problems)?;
    Some(obeys(Constraint::new(source(text), param)))
}

fn forms(fields: &mut Fields, problems: &mut Problems) -> Option<Vec<Form>> {
    let path = fields.path("elements");
    let items = list(fields, "elements", problems)?.into_iter().enumerate();
    let read = items.map(|(index, item)| form(item, &format!("{path}[{index}]"), problems));
    read.collect()
}

fn tags(fields: &mut Fields, problems: &mut Problems) -> Option<Vec<Tag>> {
    let path = fields.path("tags");
    let items = list(fields, "tags", problems)?.into_iter().enumerate();
    let read = items.map(|(index, item)| {
        let mut inner = Fields::of(item, &format!("{path}[{index}]"), problems)?;
        inner.ignore(&["type"]);
        let tag = tag(&mut inner, problems);
        inner.finish_strict(problems);
        tag
    });
    read.collect()
}

fn tag(fields: &mut Fields, problems: &mut Problems) -> Option<Tag> {
    let begin = fields.string("begin", problems).unwrap_or_default();
    let end = fields.string("end", problems).unwrap_or_default();
    let path = fields.path("content");
    let content = fields.take("content").unwrap_or(Value::Null);
    let content = form(content, &path, problems)?;
    Some(Tag { begin, content, end })
}

fn count(fields: &mut Fields, problems: &mut Problems) -> Count {
    Count {
        at_least_one: fields.boolean("at_least_one", problems).unwrap_or(false),
        stop_after_first: fields.boolean("stop_after_first", problems).unwrap_or(false),
    }
}

/// A list of something, neither empty nor too long.
fn list(fields: &mut Fields, name: &'static str, problems: &mut Problems) -> Option<Vec<Value>> {
    let items = fields.array(name, problems).unwrap_or_default();
    if items.is_empty() || items.len() > PARTS {
        problems.invalid(fields.path(name), format!("expected a list of 1 to {PARTS}"));
        return None;
    }
    Some(items)
}

fn texts(fields: &mut Fields, name: &'static str, problems: &mut Problems) -> Option<Vec<String>> {
    let items = list(fields, name, problems)?;
    let text = |item: &Value| item.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let texts: Option<Vec<String>> = items.iter().map(text).collect();
    if texts.is_none() {
        problems.invalid(fields.path(name), "expected non-empty strings");
    }
    texts
}
