//! The values of a template: Python's, as far as templates see them, with texts that know their origins.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::ops::Deref;
use std::rc::Rc;

use serde_json::Value as Json;

use crate::text::{Origin, Text};

/// The number of keys above which a mapping has an index.
const INDEXED: usize = 12;

/// A value of a template.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// A variable, attribute or item that does not exist.
    Undefined,
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(Rc<Text>),
    List(Rc<List>),
    Map(Rc<Map>),
    /// What `namespace()` returns: the only value that can be changed.
    Namespace(Rc<RefCell<Map>>),
    /// The variable `loop`.
    Loop(Rc<Loop>),
    /// A macro, by its place in the list of the evaluator.
    Macro(usize),
    /// A function that every template has.
    Function(&'static str),
}

/// A list, which knows how deep it is.
#[derive(Debug, Default)]
pub(crate) struct List {
    items: Vec<Value>,
    depth: usize,
}

impl Deref for List {
    type Target = [Value];

    fn deref(&self) -> &[Value] {
        &self.items
    }
}

/// A mapping of texts in the order of insertion.
#[derive(Clone, Debug, Default)]
pub(crate) struct Map {
    entries: Vec<(Text, Value)>,
    index: HashMap<String, usize>,
    depth: usize,
}

/// One pass of a loop.
#[derive(Debug)]
pub(crate) struct Loop {
    pub(crate) items: Rc<List>,
    pub(crate) index: usize,
    pub(crate) depth: usize,
    /// What `loop.changed` was last called with, in any pass.
    pub(crate) seen: Rc<RefCell<Option<Vec<Value>>>>,
}

impl Map {
    fn position(&self, key: &str) -> Option<usize> {
        if self.entries.len() > INDEXED {
            return self.index.get(key).copied();
        }
        self.entries.iter().position(|(known, _)| known.as_str() == key)
    }

    /// Returns the value of a key.
    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        Some(&self.entries[self.position(key)?].1)
    }

    /// Sets the value of a key.
    pub(crate) fn set(&mut self, key: Text, value: Value) {
        self.depth = self.depth.max(value.depth());
        if let Some(at) = self.position(key.as_str()) {
            self.entries[at].1 = value;
            return;
        }
        self.entries.push((key, value));
        let len = self.entries.len();
        if len > INDEXED {
            let first = if self.index.is_empty() { 0 } else { len - 1 };
            let new = self.entries.iter().enumerate().skip(first);
            let new = new.map(|(at, (key, _))| (key.as_str().to_owned(), at));
            self.index.extend(new);
        }
    }

    /// Returns the keys and values in order.
    pub(crate) fn entries(&self) -> &[(Text, Value)] {
        &self.entries
    }
}

impl Value {
    /// Creates a text that the template wrote.
    pub(crate) fn of_template(text: impl Into<String>) -> Self {
        Self::text(Text::of_template(text))
    }

    /// Creates a text.
    pub(crate) fn text(text: Text) -> Self {
        Self::Text(Rc::new(text))
    }

    /// Creates a list.
    pub(crate) fn list(items: Vec<Value>) -> Self {
        let depth = items.iter().map(Value::depth).max().unwrap_or(0);
        Self::List(Rc::new(List { items, depth }))
    }

    /// Creates a mapping.
    pub(crate) fn map(map: Map) -> Self {
        Self::Map(Rc::new(map))
    }

    /// Returns whether a condition with this value holds.
    pub(crate) fn is_true(&self) -> bool {
        match self {
            Self::Undefined | Self::None => false,
            Self::Bool(flag) => *flag,
            Self::Int(number) => *number != 0,
            Self::Float(number) => *number != 0.0,
            Self::Text(text) => !text.is_empty(),
            Self::List(items) => !items.is_empty(),
            Self::Map(map) => !map.entries.is_empty(),
            Self::Namespace(_) | Self::Loop(_) | Self::Macro(_) | Self::Function(_) => true,
        }
    }

    /// Returns how many lists and mappings are within each other at most. What can be changed has no depth
    /// that would stay, so a list or mapping of it is deeper than any.
    pub(crate) fn depth(&self) -> usize {
        match self {
            Self::List(items) => items.depth.saturating_add(1),
            Self::Map(map) => map.depth.saturating_add(1),
            Self::Namespace(_) | Self::Loop(_) => usize::MAX,
            _ => 0,
        }
    }

    /// Returns the name of its kind, for errors.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Undefined => "an undefined value",
            Self::None => "none",
            Self::Bool(_) => "a boolean",
            Self::Int(_) | Self::Float(_) => "a number",
            Self::Text(_) => "a string",
            Self::List(_) => "a list",
            Self::Map(_) => "a mapping",
            Self::Namespace(_) => "a namespace",
            Self::Loop(_) => "a loop",
            Self::Macro(_) => "a macro",
            Self::Function(_) => "a function",
        }
    }

    /// Returns the number of its items: characters of a text, keys of a mapping.
    pub(crate) fn length(&self) -> Option<usize> {
        match self {
            Self::Text(text) => Some(text.as_str().chars().count()),
            Self::List(items) => Some(items.len()),
            Self::Map(map) => Some(map.entries.len()),
            Self::Undefined => Some(0),
            _ => None,
        }
    }

    /// Returns what a loop over it sees: the items, the keys, the characters.
    pub(crate) fn items(&self) -> Option<Rc<List>> {
        let items = match self {
            Self::Undefined => Vec::new(),
            Self::List(items) => return Some(Rc::clone(items)),
            Self::Text(text) => text.chars().map(Value::text).collect(),
            Self::Map(map) => map
                .entries
                .iter()
                .map(|(key, _)| Value::text(key.clone()))
                .collect(),
            _ => return None,
        };
        Some(Rc::new(List { items, depth: 0 }))
    }

    /// Returns the number that it is, if it is one.
    pub(crate) fn as_number(&self) -> Option<f64> {
        match self {
            Self::Bool(flag) => Some(f64::from(u8::from(*flag))),
            Self::Int(number) => Some(*number as f64),
            Self::Float(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns the whole number that it is, if it is one.
    pub(crate) fn as_int(&self) -> Option<i128> {
        match self {
            Self::Bool(flag) => Some(i128::from(*flag)),
            Self::Int(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns `true` if both are the same value, as `==` in Python.
    pub(crate) fn equals(&self, other: &Value) -> bool {
        match (self, other) {
            (Self::Undefined, Self::Undefined) | (Self::None, Self::None) => true,
            (Self::Text(one), Self::Text(two)) => one.as_str() == two.as_str(),
            (Self::List(one), Self::List(two)) => {
                one.len() == two.len() && one.iter().zip(two.iter()).all(|(one, two)| one.equals(two))
            }
            (Self::Map(one), Self::Map(two)) => {
                let has = |(key, value): &(Text, Value)| {
                    two.get(key.as_str()).is_some_and(|other| value.equals(other))
                };
                one.entries.len() == two.entries.len() && one.entries.iter().all(has)
            }
            (Self::Int(one), Self::Int(two)) => one == two,
            (Self::Macro(one), Self::Macro(two)) => one == two,
            (Self::Function(one), Self::Function(two)) => one == two,
            (Self::Namespace(one), Self::Namespace(two)) => Rc::ptr_eq(one, two),
            _ => match (self.as_number(), other.as_number()) {
                (Some(one), Some(two)) => one == two,
                _ => false,
            },
        }
    }

    /// Returns the order of both, or `None` if Python has none for them.
    pub(crate) fn order(&self, other: &Value) -> Option<Ordering> {
        match (self, other) {
            (Self::Text(one), Self::Text(two)) => Some(one.as_str().cmp(two.as_str())),
            (Self::Int(one), Self::Int(two)) => Some(one.cmp(two)),
            (Self::List(one), Self::List(two)) => {
                for (one, two) in one.iter().zip(two.iter()) {
                    match one.order(two)? {
                        Ordering::Equal => {}
                        unequal => return Some(unequal),
                    }
                }
                Some(one.len().cmp(&two.len()))
            }
            _ => self.as_number()?.partial_cmp(&other.as_number()?),
        }
    }

    /// Returns the text that `{{ value }}` writes.
    pub(crate) fn display(&self) -> Text {
        match self {
            Self::Text(text) => (**text).clone(),
            Self::Undefined => Text::default(),
            other => {
                let mut out = Text::default();
                other.write_repr(&mut out);
                out
            }
        }
    }

    /// Appends what Python's `repr` writes. What is not part of a text counts as written by the request.
    fn write_repr(&self, out: &mut Text) {
        let mut say = |text: &str| out.push_str(text, Origin::REQUEST);
        match self {
            Self::Undefined => say("Undefined"),
            Self::None => say("None"),
            Self::Bool(true) => say("True"),
            Self::Bool(false) => say("False"),
            Self::Int(number) => say(&number.to_string()),
            Self::Float(number) => say(&float(*number)),
            Self::Text(text) => write_quoted(text, out),
            Self::List(items) => {
                say("[");
                for (index, item) in items.iter().enumerate() {
                    out.push_str(if index > 0 { ", " } else { "" }, Origin::REQUEST);
                    item.write_repr(out);
                }
                out.push_str("]", Origin::REQUEST);
            }
            Self::Map(map) => {
                say("{");
                for (index, (key, value)) in map.entries.iter().enumerate() {
                    out.push_str(if index > 0 { ", " } else { "" }, Origin::REQUEST);
                    write_quoted(key, out);
                    out.push_str(": ", Origin::REQUEST);
                    value.write_repr(out);
                }
                out.push_str("}", Origin::REQUEST);
            }
            Self::Namespace(_) => say("<Namespace>"),
            Self::Loop(_) => say("<LoopContext>"),
            Self::Macro(_) => say("<Macro>"),
            Self::Function(_) => say("<Function>"),
        }
    }

    /// Creates a value from JSON. `origin` gives the origin of a text by its JSON pointer within the value.
    pub(crate) fn of_json(json: &Json, pointer: &str, origin: &mut impl FnMut(&str) -> Origin) -> Value {
        match json {
            Json::Null => Self::None,
            Json::Bool(flag) => Self::Bool(*flag),
            Json::Number(number) => match number.to_string().parse() {
                Ok(whole) => Self::Int(whole),
                Err(_) => Self::Float(number.as_f64().unwrap_or(f64::INFINITY)),
            },
            Json::String(text) => Self::text(Text::new(text.as_str(), origin(pointer))),
            Json::Array(items) => {
                let items = items.iter().enumerate();
                let items = items.map(|(at, item)| Self::of_json(item, &format!("{pointer}/{at}"), origin));
                Self::list(items.collect())
            }
            Json::Object(entries) => {
                let mut map = Map::default();
                for (key, item) in entries {
                    let at = format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"));
                    let name = Text::new(key.as_str(), origin(&at));
                    map.set(name, Self::of_json(item, &at, origin));
                }
                Self::map(map)
            }
        }
    }
}

/// Appends a text in the quotes that Python chooses.
fn write_quoted(text: &Text, out: &mut Text) {
    let both = text.as_str().contains('\'') && !text.as_str().contains('"');
    let quote = if both { '"' } else { '\'' };
    let mark = quote.to_string();
    out.push_str(&mark, Origin::REQUEST);
    out.push(&text.rewritten(|c, written| match c {
        '\n' => written.push_str("\\n"),
        '\r' => written.push_str("\\r"),
        '\t' => written.push_str("\\t"),
        '\\' => written.push_str("\\\\"),
        c if c == quote => written.extend(['\\', c]),
        c if c < ' ' || c == '\u{7f}' => written.push_str(&format!("\\x{:02x}", u32::from(c))),
        c => written.push(c),
    }));
    out.push_str(&mark, Origin::REQUEST);
}

/// Returns a number as Python writes it.
pub(crate) fn float(number: f64) -> String {
    if number.is_nan() {
        return "nan".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let text = format!("{number:?}");
    let Some((digits, exponent)) = text.split_once('e') else {
        return text;
    };
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    format!("{digits}e{sign}{exponent:0>2}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_written_as_python_writes_them() {
        let json = json!({"a": [1, 2.5, "it's", null], "b": true, "c": {}, "d": 1e-7, "e": "\u{1}\n"});
        let text = Value::of_json(&json, "", &mut |_| Origin(2)).display();
        let expected = r#"{'a': [1, 2.5, "it's", None], 'b': True, 'c': {}, 'd': 1e-07, 'e': '\x01\n'}"#;
        assert_eq!(text.as_str(), expected);
        assert_eq!(
            (float(1e16), float(0.1), float(-3.0)),
            ("1e+16".into(), "0.1".into(), "-3.0".into())
        );
    }

    #[test]
    fn a_large_mapping_finds_its_keys() {
        let mut map = Map::default();
        for key in 0..40 {
            map.set(Text::of_template(key.to_string()), Value::Int(key));
        }
        map.set(Text::of_template("7"), Value::None);
        assert!(map.get("7").is_some_and(|value| value.equals(&Value::None)));
        assert!((8..40).all(|key| {
            map.get(&key.to_string())
                .is_some_and(|it| it.equals(&Value::Int(key)))
        }));
        assert_eq!((map.entries().len(), map.get("40").is_none()), (40, true));
    }
}
