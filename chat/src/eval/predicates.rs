//! Tests: what may follow `is`.

use std::cmp::Ordering;

use super::arguments::Arguments;
use super::methods::has_case;
use super::{Evaluator, Result, operators};
use crate::value::Value;

impl Evaluator<'_> {
    /// Returns whether a test holds.
    pub(super) fn holds(&mut self, name: &str, value: &Value, mut given: Arguments) -> Result<bool> {
        let is_whole = |rest: i128, divisor: i128| {
            value
                .as_int()
                .is_some_and(|number| number.checked_rem_euclid(divisor) == Some(rest))
        };
        let holds = match name {
            "defined" => !matches!(value, Value::Undefined),
            "undefined" => matches!(value, Value::Undefined),
            "none" => matches!(value, Value::None),
            "string" => matches!(value, Value::Text(_)),
            "mapping" => matches!(value, Value::Map(_)),
            "sequence" => matches!(value, Value::List(_) | Value::Text(_) | Value::Map(_)),
            "iterable" => matches!(value, Value::List(_) | Value::Text(_) | Value::Map(_)),
            "number" => matches!(value, Value::Int(_) | Value::Float(_)),
            "integer" | "int" => matches!(value, Value::Int(_)),
            "float" => matches!(value, Value::Float(_)),
            "boolean" => matches!(value, Value::Bool(_)),
            "true" => matches!(value, Value::Bool(true)),
            "false" => matches!(value, Value::Bool(false)),
            "callable" => matches!(value, Value::Macro(_) | Value::Function(_)),
            "odd" => is_whole(1, 2),
            "even" => is_whole(0, 2),
            "divisibleby" => is_whole(0, given.int("number")?.unwrap_or(0)),
            "lower" => {
                matches!(value, Value::Text(text) if has_case(text, char::is_lowercase, char::is_uppercase))
            }
            "upper" => {
                matches!(value, Value::Text(text) if has_case(text, char::is_uppercase, char::is_lowercase))
            }
            _ => self.compares(name, value, &given.required("other")?)?,
        };
        given.finish()?;
        Ok(holds)
    }

    fn compares(&self, name: &str, value: &Value, other: &Value) -> Result<bool> {
        let order = || value.order(other).ok_or("these values have no order");
        Ok(match name {
            "eq" | "equalto" | "==" | "sameas" => value.equals(other),
            "ne" | "!=" => !value.equals(other),
            "lt" | "lessthan" | "<" => order()? == Ordering::Less,
            "le" | "<=" => order()? != Ordering::Greater,
            "gt" | "greaterthan" | ">" => order()? == Ordering::Greater,
            "ge" | ">=" => order()? != Ordering::Less,
            "in" => operators::contains(other, value)?,
            _ => return Err(format!("there is no test `{name}`").into()),
        })
    }
}
