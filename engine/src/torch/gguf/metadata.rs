//! The key-value pairs of a GGUF file, and typed access to them.

use std::collections::HashMap;

/// A value of the metadata.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// Any unsigned integer.
    Unsigned(u64),
    /// Any signed integer.
    Signed(i64),
    /// A floating-point number.
    Float(f64),
    Bool(bool),
    Text(String),
    /// Integers or booleans, each as a number.
    Integers(Vec<i64>),
    Floats(Vec<f32>),
    Texts(Vec<String>),
}

impl Value {
    /// Returns the kind of the value, for a message.
    fn kind(&self) -> &'static str {
        match self {
            Value::Unsigned(_) | Value::Signed(_) => "an integer",
            Value::Float(_) => "a number",
            Value::Bool(_) => "a boolean",
            Value::Text(_) => "a text",
            Value::Integers(_) => "a list of integers",
            Value::Floats(_) => "a list of numbers",
            Value::Texts(_) => "a list of texts",
        }
    }
}

/// The key-value pairs of a file. A getter returns `None` for a key that is missing, and an error message for
/// one of another type.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Metadata(pub(super) HashMap<String, Value>);

type FoundValue<T> = Result<Option<T>, String>;

impl Metadata {
    pub(crate) fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    pub(crate) fn text(&self, key: &str) -> FoundValue<&str> {
        self.as_what(key, "a text", |value| match value {
            Value::Text(text) => Some(text.as_str()),
            _ => None,
        })
    }

    pub(crate) fn integer(&self, key: &str) -> FoundValue<i64> {
        self.as_what(key, "an integer", |value| match value {
            Value::Unsigned(number) => i64::try_from(*number).ok(),
            Value::Signed(number) => Some(*number),
            _ => None,
        })
    }

    /// Returns an integer that some writers repeat for every layer; a list counts as one number if all of its
    /// numbers are equal.
    pub(crate) fn integer_of_layers(&self, key: &str) -> FoundValue<i64> {
        match self.0.get(key) {
            Some(Value::Integers(numbers)) => match numbers.split_first() {
                Some((first, rest)) if rest.iter().all(|number| number == first) => Ok(Some(*first)),
                _ => Err(format!("{key} differs from layer to layer; expected one integer")),
            },
            _ => self.integer(key),
        }
    }

    pub(crate) fn number(&self, key: &str) -> FoundValue<f64> {
        self.as_what(key, "a number", |value| match value {
            Value::Float(number) => Some(*number),
            Value::Unsigned(number) => Some(*number as f64),
            Value::Signed(number) => Some(*number as f64),
            _ => None,
        })
    }

    pub(crate) fn flag(&self, key: &str) -> FoundValue<bool> {
        self.as_what(key, "a boolean", |value| match value {
            Value::Bool(flag) => Some(*flag),
            _ => None,
        })
    }

    pub(crate) fn texts(&self, key: &str) -> FoundValue<&[String]> {
        self.as_what(key, "a list of texts", |value| match value {
            Value::Texts(texts) => Some(texts.as_slice()),
            _ => None,
        })
    }

    pub(crate) fn integers(&self, key: &str) -> FoundValue<&[i64]> {
        self.as_what(key, "a list of integers", |value| match value {
            Value::Integers(numbers) => Some(numbers.as_slice()),
            _ => None,
        })
    }

    pub(crate) fn floats(&self, key: &str) -> FoundValue<&[f32]> {
        self.as_what(key, "a list of numbers", |value| match value {
            Value::Floats(numbers) => Some(numbers.as_slice()),
            _ => None,
        })
    }

    fn as_what<'a, T>(
        &'a self,
        key: &str,
        expected: &str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> FoundValue<T> {
        let Some(value) = self.0.get(key) else {
            return Ok(None);
        };
        match read(value) {
            Some(read) => Ok(Some(read)),
            None => Err(format!("{key} is {}; expected {expected}", value.kind())),
        }
    }
}
