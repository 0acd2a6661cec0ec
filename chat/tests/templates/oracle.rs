//! Another implementation of Jinja: `minijinja`'s own machine, with what `transformers` adds.

use lexiform_chat::Ending;
use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior, Value, context};
use serde_json::Value as Json;
use serde_json::ser::{Formatter, Serializer};

use super::conversations::Made;
use super::families::Family;

/// Returns the text of a conversation. A message that is continued is cut behind its content.
pub(crate) fn rendered(family: &Family, conversation: &Made) -> Result<String, Error> {
    const SEAM: &str = "\u{FDEF}";
    let mut environment = Environment::new();
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    environment.set_undefined_behavior(UndefinedBehavior::Lenient);
    environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    environment.add_function("raise_exception", |message: String| -> Result<String, Error> {
        Err(Error::new(ErrorKind::InvalidOperation, message))
    });
    environment.add_function("strftime_now", |format: String| {
        let parts = [
            ("%Y", "2023"),
            ("%m", "11"),
            ("%d", "14"),
            ("%B", "November"),
            ("%b", "Nov"),
        ];
        parts
            .iter()
            .fold(format, |text, (directive, value)| text.replace(directive, value))
    });
    environment.add_filter("tojson", tojson);
    let source = family.source.replace("{% generation %}", "{% if true %}");
    let source = source.replace("{%- endgeneration %}", "{%- endif %}");
    environment.add_template("chat", &source)?;
    let mut messages = conversation.messages.clone();
    let open = messages
        .last_mut()
        .filter(|_| conversation.ending == Ending::Open);
    let content = open.map(|message| std::mem::replace(&mut message["content"], SEAM.into()));
    let constants = family
        .constants
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()));
    let arguments = value_of(&Json::Object(conversation.arguments.clone()));
    let tools = match conversation.tools.is_empty() {
        true => Value::from(()),
        false => conversation.tools.iter().map(value_of).collect::<Value>(),
    };
    let context = context! {
        messages => messages.iter().map(value_of).collect::<Value>(),
        tools => tools,
        documents => (),
        add_generation_prompt => conversation.ending == Ending::Answer,
        ..minijinja::value::merge_maps([Value::from_iter(constants), arguments])
    };
    let mut text = environment.get_template("chat")?.render(context)?;
    if let Some(content) = content {
        let lost = || Error::new(ErrorKind::InvalidOperation, "the content is not written");
        text.truncate(text.rfind(SEAM).ok_or_else(lost)?);
        text.push_str(content.as_str().unwrap_or_default());
    }
    Ok(text)
}

/// Python's `json.dumps`, over serde's writer.
fn tojson(value: Value, options: Kwargs) -> Result<String, Error> {
    let indent: Option<usize> = options.get("indent")?;
    let separators: Option<Vec<String>> = options.get("separators")?;
    let _: Option<bool> = options.get("ensure_ascii")?;
    options.assert_all_used()?;
    let json = json_of(&value)?;
    let mut out = Vec::new();
    let done = match (indent, separators) {
        (Some(width), _) => {
            let blanks = " ".repeat(width);
            let pretty = serde_json::ser::PrettyFormatter::with_indent(blanks.as_bytes());
            serde::Serialize::serialize(&json, &mut Serializer::with_formatter(&mut out, pretty))
        }
        (None, Some(_)) => serde::Serialize::serialize(&json, &mut Serializer::new(&mut out)),
        (None, None) => serde::Serialize::serialize(&json, &mut Serializer::with_formatter(&mut out, Spaced)),
    };
    done.map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}

/// Not by serde, which has a form of its own for numbers of any precision.
fn value_of(json: &Json) -> Value {
    match json {
        Json::Null => Value::from(()),
        Json::Bool(flag) => Value::from(*flag),
        Json::Number(number) => Value::from(number.as_i64()),
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(items) => items.iter().map(value_of).collect(),
        Json::Object(entries) => entries
            .iter()
            .map(|(key, item)| (key.as_str(), value_of(item)))
            .collect(),
    }
}

fn json_of(value: &Value) -> Result<Json, Error> {
    Ok(match value.kind() {
        ValueKind::None => Json::Null,
        ValueKind::Bool => Json::Bool(value.is_true()),
        ValueKind::Number => Json::from(i64::try_from(value.clone())?),
        ValueKind::String => Json::from(value.as_str().unwrap_or_default()),
        ValueKind::Map => {
            let entries = value
                .try_iter()?
                .map(|key| Ok((key.to_string(), json_of(&value.get_item(&key)?)?)));
            Json::Object(entries.collect::<Result<_, Error>>()?)
        }
        _ => Json::Array(
            value
                .try_iter()?
                .map(|item| json_of(&item))
                .collect::<Result<_, Error>>()?,
        ),
    })
}

/// A blank after each comma and colon.
struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: std::io::Write + ?Sized>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        out.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_key<W: std::io::Write + ?Sized>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        out.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_value<W: std::io::Write + ?Sized>(&mut self, out: &mut W) -> std::io::Result<()> {
        out.write_all(b": ")
    }
}
