//! The filter `tojson` as `transformers` defines it: Python's `json.dumps`, by default without escapes for
//! characters beyond ASCII.
//!
//! Texts keep their origins, in escapes too. What the filter adds, such as brackets, counts as written by the
//! request, which determines how many of them there are.

use crate::text::{Origin, Text};
use crate::value::{Map, Value, float};

/// The maximum depth of a value.
const DEPTH: usize = 200;

/// The options of the filter.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    /// The text that indents a level, if each item has a line.
    pub(crate) indent: Option<String>,
    /// The texts after an item and after a key.
    pub(crate) separators: Option<(String, String)>,
    /// `true` to escape characters beyond ASCII.
    pub(crate) ensure_ascii: bool,
    /// `true` to sort keys.
    pub(crate) sort_keys: bool,
}

/// Returns a value as JSON.
///
/// # Errors
/// Returns the message for a value that JSON does not have.
pub(crate) fn to_json(value: &Value, options: &Options) -> Result<Text, String> {
    let mut writer = Writer {
        options,
        out: Text::default(),
        depth: 0,
    };
    writer.value(value)?;
    Ok(writer.out)
}

struct Writer<'o> {
    options: &'o Options,
    out: Text,
    depth: usize,
}

impl Writer<'_> {
    fn say(&mut self, text: &str) {
        self.out.push_str(text, Origin::REQUEST);
    }

    fn value(&mut self, value: &Value) -> Result<(), String> {
        if self.depth > DEPTH {
            return Err("tojson: the value is nested too deeply".to_owned());
        }
        match value {
            Value::None => self.say("null"),
            Value::Bool(flag) => self.say(&flag.to_string()),
            Value::Int(number) => self.say(&number.to_string()),
            Value::Float(number) => self.say(&float(*number)),
            Value::Text(text) => self.text(text),
            Value::List(items) => {
                self.open("[");
                for (index, item) in items.iter().enumerate() {
                    self.begin_item(index);
                    self.value(item)?;
                }
                self.close("]", items.is_empty());
            }
            Value::Map(map) => self.map(map)?,
            Value::Namespace(map) => self.map(&map.borrow())?,
            other => return Err(format!("tojson: JSON has no value for {}", other.kind())),
        }
        Ok(())
    }

    fn map(&mut self, map: &Map) -> Result<(), String> {
        let mut entries: Vec<&(Text, Value)> = map.entries().iter().collect();
        if self.options.sort_keys {
            entries.sort_by(|(one, _), (two, _)| one.as_str().cmp(two.as_str()));
        }
        self.open("{");
        for (index, (key, value)) in entries.iter().enumerate() {
            self.begin_item(index);
            self.text(key);
            let separators = self.options.separators.as_ref();
            let after_key = separators.map_or(": ", |(_, after_key)| after_key);
            self.out.push_str(after_key, Origin::REQUEST);
            self.value(value)?;
        }
        self.close("}", entries.is_empty());
        Ok(())
    }

    fn open(&mut self, bracket: &str) {
        self.say(bracket);
        self.depth += 1;
    }

    fn close(&mut self, bracket: &str, is_empty: bool) {
        self.depth -= 1;
        if !is_empty {
            self.new_line();
        }
        self.say(bracket);
    }

    fn begin_item(&mut self, index: usize) {
        if index > 0 {
            let usual = if self.options.indent.is_some() { "," } else { ", " };
            let separators = self.options.separators.as_ref();
            let after_item = separators.map_or(usual, |(after_item, _)| after_item);
            self.out.push_str(after_item, Origin::REQUEST);
        }
        self.new_line();
    }

    fn new_line(&mut self) {
        if let Some(indent) = &self.options.indent {
            let line = format!("\n{}", indent.repeat(self.depth));
            self.say(&line);
        }
    }

    fn text(&mut self, text: &Text) {
        let ensure_ascii = self.options.ensure_ascii;
        self.say("\"");
        self.out
            .push(&text.rewritten(|c, out| escape(c, ensure_ascii, out)));
        self.say("\"");
    }
}

fn escape(c: char, ensure_ascii: bool, out: &mut String) {
    match c {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\u{8}' => out.push_str("\\b"),
        '\u{c}' => out.push_str("\\f"),
        c if c < ' ' || (ensure_ascii && !c.is_ascii()) => {
            for unit in c.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        }
        c => out.push(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn written(options: &Options) -> String {
        let json = json!({"b": [1, 2.5, "é<\u{1}"], "a": {}, "🙂": []});
        let value = Value::of_json(&json, "", &mut |_| Origin(2));
        to_json(&value, options).expect("JSON").as_str().to_owned()
    }

    #[test]
    fn json_is_written_as_python_writes_it() {
        let usual = written(&Options::default());
        assert_eq!(usual, r#"{"b": [1, 2.5, "é<\u0001"], "a": {}, "🙂": []}"#);
        let all = Options {
            indent: Some(" ".to_owned()),
            separators: None,
            ensure_ascii: true,
            sort_keys: true,
        };
        let lines = [
            "{",
            " \"a\": {},",
            " \"b\": [",
            "  1,",
            "  2.5,",
            "  \"\\u00e9<\\u0001\"",
            " ],",
            " \"\\ud83d\\ude42\": []",
            "}",
        ];
        assert_eq!(written(&all), lines.join("\n"));
        let dense = Options {
            separators: Some((",".to_owned(), ":".to_owned())),
            ..Options::default()
        };
        assert_eq!(written(&dense), r#"{"b":[1,2.5,"é<\u0001"],"a":{},"🙂":[]}"#);
    }
}
