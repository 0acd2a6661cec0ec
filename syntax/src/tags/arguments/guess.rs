//! Arguments of tools whose schema is not known, or that do not obey it.

use serde_json::{Map, Value};

use crate::schema::ArgumentStyle;
use crate::schema::frame::Frame;

use super::scan::{self, Item, Told, WHITE_SPACE};

/// Returns the arguments that a text in a style seems to write, or `None` if it is not in the style. Where
/// the style does not tell the kind of a value, a JSON text other than a string is a value of that kind, and
/// anything else is a string. Of two arguments with one name, the last counts.
pub fn guessed_arguments(style: ArgumentStyle, text: &str) -> Option<Value> {
    let Some(frame) = Frame::of(style) else {
        return serde_json::from_str(text).ok();
    };
    let items = scan::items(frame, text).ok()?;
    Some(object(frame, &items))
}

fn object(frame: Frame, items: &[Item<'_>]) -> Value {
    let members = items.iter().map(|item| (item.name.clone(), value(frame, item)));
    Value::Object(members.collect::<Map<_, _>>())
}

fn array(frame: Frame, items: &[Item<'_>]) -> Value {
    items.iter().map(|item| value(frame, item)).collect()
}

fn value(frame: Frame, item: &Item<'_>) -> Value {
    let is_unnamed = |inner: &Item<'_>| inner.name.is_empty() || inner.name == "item";
    match item.told {
        Told::Text => Value::String(string(frame, item.text)),
        Told::List => array(frame, &item.items),
        Told::Dict => object(frame, &item.items),
        Told::Json | Told::Nothing if item.items.is_empty() => {
            let parsed = serde_json::from_str(item.text.trim_matches(WHITE_SPACE)).ok();
            let other = parsed.filter(|value| !matches!(value, Value::String(_)));
            other.unwrap_or_else(|| Value::String(string(frame, item.text)))
        }
        Told::Json | Told::Nothing if item.items.iter().all(is_unnamed) => array(frame, &item.items),
        Told::Json | Told::Nothing => object(frame, &item.items),
    }
}

/// Returns a string without the line breaks that models put around it.
fn string(frame: Frame, text: &str) -> String {
    if !frame.has_lines {
        return text.to_owned();
    }
    let text = text.strip_prefix('\n').unwrap_or(text);
    text.strip_suffix('\n').unwrap_or(text).to_owned()
}
