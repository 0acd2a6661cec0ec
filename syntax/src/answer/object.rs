//! Calls that are JSON objects, whatever the order of their members.

use serde_json::Value;

/// Returns the name and the arguments of a call that is this JSON text, if it is one.
///
/// Models write `{"name": …, "arguments": …}` with `parameters` in place of `arguments`, in another order,
/// with arguments as a string of JSON, and inside of `{"type": "function", "function": …}`.
pub(super) fn call(text: &str) -> Option<(String, String)> {
    let value: Value = serde_json::from_str(text).ok()?;
    let call = match value.get("function") {
        Some(inner @ Value::Object(_)) => inner,
        _ => &value,
    };
    let name = call.get("name")?.as_str().filter(|name| !name.is_empty())?;
    let arguments = ["arguments", "parameters"]
        .into_iter()
        .find_map(|key| call.get(key));
    let arguments = match arguments {
        Some(Value::String(text)) => text.clone(),
        Some(arguments) => arguments.to_string(),
        None => "{}".to_owned(),
    };
    Some((name.to_owned(), arguments))
}
