//! The arguments of a filter, test, method, function or macro.

use super::Result;
use crate::text::Text;
use crate::value::Value;

/// Arguments by place and by name. All of them have to be taken.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    pub(super) placed: Vec<Value>,
    pub(super) named: Vec<(String, Value)>,
}

impl Arguments {
    /// Takes the next argument by place, or else the one of this name.
    pub(super) fn take(&mut self, name: &str) -> Option<Value> {
        if !self.placed.is_empty() {
            return Some(self.placed.remove(0));
        }
        self.take_named(name)
    }

    /// Takes the argument of this name.
    pub(super) fn take_named(&mut self, name: &str) -> Option<Value> {
        let at = self.named.iter().position(|(known, _)| known == name)?;
        Some(self.named.remove(at).1)
    }

    /// Takes an argument that is required.
    pub(super) fn required(&mut self, name: &str) -> Result<Value> {
        self.take(name)
            .ok_or_else(|| format!("the argument `{name}` is missing").into())
    }

    /// Takes a text, if there is one.
    pub(super) fn text(&mut self, name: &str) -> Result<Option<Text>> {
        match self.take(name) {
            None | Some(Value::None | Value::Undefined) => Ok(None),
            Some(Value::Text(text)) => Ok(Some((*text).clone())),
            Some(other) => Err(format!(
                "the argument `{name}` has to be a string, and is {}",
                other.kind()
            )
            .into()),
        }
    }

    /// Takes a text that is required.
    pub(super) fn required_text(&mut self, name: &str) -> Result<Text> {
        self.text(name)?
            .ok_or_else(|| format!("the argument `{name}` is missing").into())
    }

    /// Takes a whole number, if there is one.
    pub(super) fn int(&mut self, name: &str) -> Result<Option<i128>> {
        match self.take(name) {
            None | Some(Value::None | Value::Undefined) => Ok(None),
            Some(value) => {
                let wrong = || format!("the argument `{name}` has to be a whole number").into();
                value.as_int().map(Some).ok_or_else(wrong)
            }
        }
    }

    /// Takes a condition; the default is `false`.
    pub(super) fn flag(&mut self, name: &str) -> bool {
        self.take(name).is_some_and(|value| value.is_true())
    }

    /// Refuses arguments that nobody took.
    pub(super) fn finish(self) -> Result<()> {
        match (self.placed.len(), self.named.first()) {
            (0, None) => Ok(()),
            (0, Some((name, _))) => Err(format!("there is no argument `{name}`").into()),
            _ => Err("there are too many arguments".into()),
        }
    }
}
