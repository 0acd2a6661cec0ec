//! Arguments, written in the style of a model.

use serde_json::{Map, Value};

use crate::schema::ArgumentStyle;
use crate::schema::frame::{AfterKey, Close, Frame, ValueType, escaped};

/// Returns the arguments of a call as models write them in a style. Strings are written as they are; one that
/// contains the text that ends an argument cannot be read again.
///
/// # Examples
///
/// ```
/// use lexiform::schema::ArgumentStyle;
/// use lexiform::tags::write_arguments;
/// use serde_json::{Map, json};
///
/// let arguments = Map::from_iter([("city".to_owned(), json!("Paris"))]);
/// let text = write_arguments(ArgumentStyle::GlmXml, &arguments);
/// assert_eq!(text, "<arg_key>city</arg_key><arg_value>Paris</arg_value>");
/// ```
pub fn write_arguments(style: ArgumentStyle, arguments: &Map<String, Value>) -> String {
    let mut out = String::new();
    match Frame::of(style) {
        None => out.push_str(&Value::Object(arguments.clone()).to_string()),
        Some(frame) => properties(frame, arguments, &mut out),
    }
    out
}

fn properties(frame: Frame, arguments: &Map<String, Value>, out: &mut String) {
    for (name, argument) in arguments {
        if frame.has_lines && !out.is_empty() {
            out.push('\n');
        }
        out.push_str(frame.open);
        match frame.after_key {
            AfterKey::Kind => out.push_str(&escaped(name)),
            _ => out.push_str(name),
        }
        value(frame, Some(name), argument, out);
    }
}

/// Writes what follows a name: the text before the value, the value and its end.
fn value(frame: Frame, name: Option<&str>, value: &Value, out: &mut String) {
    let kind = kind(value);
    match frame.after_key {
        AfterKey::Text(text) => out.push_str(text),
        AfterKey::Texts(first, second) => out.extend([first, second]),
        AfterKey::IsString => {
            let is_string = kind == ValueType::String;
            out.push_str(&format!("\" string=\"{is_string}\">"));
        }
        AfterKey::Type => out.push_str(&format!("\" type=\"{}\"<|sep|>", kind.as_str())),
        AfterKey::Kind => {
            let quote = if name.is_some() { "\"" } else { "" };
            out.push_str(&format!("{quote} type=\"{}\">", kind.kind()));
        }
    }
    let line = if frame.has_lines { "\n" } else { "" };
    out.push_str(line);
    inner(frame, value, out);
    out.push_str(line);
    match frame.close {
        Close::Text(text) => out.push_str(text),
        Close::Named(before, after) => out.extend([before, "</", name.unwrap_or("item"), after]),
    }
}

fn inner(frame: Frame, inner: &Value, out: &mut String) {
    match (inner, frame.item) {
        (Value::String(text), _) => out.push_str(text),
        (Value::Object(object), Some(_)) => properties(frame, object, out),
        (Value::Array(items), Some(item)) => {
            for each in items {
                out.push_str(item);
                value(frame, None, each, out);
            }
        }
        (other, _) => out.push_str(&other.to_string()),
    }
}

fn kind(value: &Value) -> ValueType {
    match value {
        Value::Null => ValueType::Null,
        Value::Bool(_) => ValueType::Boolean,
        Value::Number(_) => ValueType::Number,
        Value::String(_) => ValueType::String,
        Value::Array(_) => ValueType::Array,
        Value::Object(_) => ValueType::Object,
    }
}
