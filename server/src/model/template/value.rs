//! Conversions of request values to template values, and of template values to JSON.

use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Error, ErrorKind, Value as Jinja};
use serde_json::Value;

use crate::wire::chat::Message;

/// The maximum depth of a value for `tojson`; deeper ones cannot come from a request.
const VALUE_DEPTH: usize = 200;

/// Converts a JSON value for a template. Every string in it goes through `guard`.
pub(super) fn of_json(value: &Value, guard: &dyn Fn(&str) -> String) -> Jinja {
    match value {
        Value::Null => Jinja::from(()),
        Value::Bool(flag) => Jinja::from(*flag),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Jinja::from(whole),
            (None, Some(float)) => Jinja::from(float),
            (None, None) => Jinja::from(number.to_string()),
        },
        Value::String(text) => Jinja::from(guard(text)),
        Value::Array(items) => items.iter().map(|item| of_json(item, guard)).collect(),
        Value::Object(map) => map
            .iter()
            .map(|(key, item)| (guard(key), of_json(item, guard)))
            .collect(),
    }
}

/// Converts a message for a template, with the keys that templates use.
pub(super) fn of_message(message: &Message, guard: &dyn Fn(&str) -> String) -> Jinja {
    let mut entries = vec![("role", Jinja::from(message.role.as_str()))];
    let content = message.content.as_deref().map(guard);
    // Templates concatenate the content without checking that it exists.
    entries.push(("content", Jinja::from(content.unwrap_or_default())));
    let texts = [("name", &message.name), ("tool_call_id", &message.tool_call_id)];
    entries.extend(
        texts
            .into_iter()
            .filter_map(|(key, text)| Some((key, Jinja::from(guard(text.as_deref()?))))),
    );
    if !message.tool_calls.is_empty() {
        entries.push((
            "tool_calls",
            message
                .tool_calls
                .iter()
                .map(|call| of_json(call, guard))
                .collect(),
        ));
    }
    entries.into_iter().collect()
}

/// The `tojson` filter as `transformers` defines it: Python's `json.dumps` without escaping non-ASCII
/// characters.
pub(super) fn to_json(value: Jinja, options: Kwargs) -> Result<String, Error> {
    let indent: Option<usize> = options.get("indent")?;
    let _: Option<bool> = options.get("ensure_ascii")?;
    let _: Option<bool> = options.get("sort_keys")?;
    options.assert_all_used()?;
    let mut out = String::new();
    write(&value, indent, 0, &mut out)?;
    Ok(out)
}

fn write(value: &Jinja, indent: Option<usize>, depth: usize, out: &mut String) -> Result<(), Error> {
    if depth > VALUE_DEPTH {
        return Err(Error::new(
            ErrorKind::InvalidOperation,
            "tojson: the value is nested too deeply",
        ));
    }
    match value.kind() {
        ValueKind::Undefined | ValueKind::None => out.push_str("null"),
        ValueKind::Bool | ValueKind::Number => out.push_str(&value.to_string()),
        ValueKind::Seq | ValueKind::Iterable => {
            let items: Vec<Jinja> = value.try_iter()?.collect();
            write_all(
                items.iter().map(|item| (None, item)),
                ['[', ']'],
                indent,
                depth,
                out,
            )?;
        }
        ValueKind::Map => {
            let keys: Vec<Jinja> = value.try_iter()?.collect();
            let entries: Vec<(String, Jinja)> = keys
                .iter()
                .map(|key| Ok((key.to_string(), value.get_item(key)?)))
                .collect::<Result<_, Error>>()?;
            let entries = entries.iter().map(|(key, item)| (Some(key.as_str()), item));
            write_all(entries, ['{', '}'], indent, depth, out)?;
        }
        _ => out.push_str(&quoted(&value.to_string())),
    }
    Ok(())
}

fn write_all<'a>(
    entries: impl Iterator<Item = (Option<&'a str>, &'a Jinja)>,
    brackets: [char; 2],
    indent: Option<usize>,
    depth: usize,
    out: &mut String,
) -> Result<(), Error> {
    out.push(brackets[0]);
    let mut empty = true;
    for (key, item) in entries {
        if !empty {
            out.push_str(if indent.is_some() { "," } else { ", " });
        }
        empty = false;
        new_line(indent, depth + 1, out);
        if let Some(key) = key {
            out.push_str(&quoted(key));
            out.push_str(": ");
        }
        write(item, indent, depth + 1, out)?;
    }
    if !empty {
        new_line(indent, depth, out);
    }
    out.push(brackets[1]);
    Ok(())
}

fn new_line(indent: Option<usize>, depth: usize, out: &mut String) {
    if let Some(width) = indent {
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', width.min(16) * depth));
    }
}

fn quoted(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}
