//! The values of arguments: which of the values that the schema allows a text writes.

use std::cell::Cell;

use serde_json::{Map, Number, Value};

use crate::schema::Decimal;
use crate::schema::frame::Frame;

use super::error::ArgumentError;
use super::plan::{Goal, Items, Place, Plan, Properties};
use super::scan::{Item, Told, WHITE_SPACE};

/// The most values that are tried, over all branches of the schema.
const STEPS: usize = 100_000;

/// Returns the object that these arguments write.
///
/// # Errors
/// Fails if the schema does not allow it.
pub(super) fn read(frame: Frame, plan: &Plan, items: &[Item<'_>]) -> Result<Value, ArgumentError> {
    let reader = ValueReader {
        frame,
        plan,
        steps: Cell::new(STEPS),
    };
    let missed = ArgumentError::Argument(String::new());
    let object = plan
        .goals
        .first()
        .map_or(Err(missed), |root| reader.object(root, items));
    match reader.steps.get() {
        0 => Err(ArgumentError::Steps),
        _ => object,
    }
}

struct ValueReader<'p> {
    frame: Frame,
    plan: &'p Plan,
    steps: Cell<usize>,
}

impl ValueReader<'_> {
    /// Returns the object of the first branch that allows these properties, or the error of the first branch.
    fn object(&self, goal: &Goal, items: &[Item<'_>]) -> Result<Value, ArgumentError> {
        let mut first = None;
        for object in &goal.objects {
            match self.properties(object, items) {
                Ok(read) => return Ok(read),
                Err(error) => first = first.or(Some(error)),
            }
        }
        let named = || items.first().map_or_else(String::new, |item| item.name.clone());
        Err(first.unwrap_or_else(|| ArgumentError::Argument(named())))
    }

    fn properties(&self, object: &Properties, items: &[Item<'_>]) -> Result<Value, ArgumentError> {
        let mut read = Map::new();
        for item in items {
            let value = match object.listed.get(&item.name) {
                Some(places) => self.value(places, item),
                None => {
                    let mut classes = object.others.iter();
                    let class = classes.find(|(names, _)| names.contains(&item.name, &self.steps));
                    class.and_then(|(_, places)| self.value(places, item))
                }
            };
            let value = value.ok_or_else(|| ArgumentError::Argument(item.name.clone()))?;
            if read.insert(item.name.clone(), value).is_some() {
                return Err(ArgumentError::Argument(item.name.clone()));
            }
        }
        match object.required.iter().find(|name| !read.contains_key(*name)) {
            Some(name) => Err(ArgumentError::Missing(name.clone())),
            None => Ok(Value::Object(read)),
        }
    }

    fn array(&self, array: &Items, items: &[Item<'_>]) -> Option<Value> {
        if (items.len() as u64) < array.min {
            return None;
        }
        let places = array.prefix.iter().chain(std::iter::repeat(&array.others));
        let values = items
            .iter()
            .zip(places)
            .map(|(item, places)| self.value(places, item));
        Some(Value::Array(values.collect::<Option<_>>()?))
    }

    /// Returns the value of the first of these places that allows it.
    fn value(&self, places: &[Place], item: &Item<'_>) -> Option<Value> {
        places.iter().find_map(|&place| {
            let steps = self.steps.get();
            self.steps.set(steps.saturating_sub(1));
            self.one(self.plan.goals.get(place).filter(|_| steps > 0)?, item)
        })
    }

    fn one(&self, goal: &Goal, item: &Item<'_>) -> Option<Value> {
        // No string contains the frame of a value.
        let text = Some(item.text).filter(|_| item.items.is_empty());
        let string = || self.string(goal, text?).map(Value::String);
        let json = || json(goal, item.text.trim_matches(WHITE_SPACE));
        match item.told {
            Told::Text => string(),
            Told::Json => json(),
            Told::List => goal
                .arrays
                .iter()
                .find_map(|array| self.array(array, &item.items)),
            Told::Dict => self.object(goal, &item.items).ok(),
            Told::Nothing if goal.has_any_string => string(),
            Told::Nothing if self.frame.item.is_none() => string().or_else(json),
            Told::Nothing => {
                let inner = || {
                    let object = self.object(goal, &item.items).ok();
                    object.or_else(|| {
                        goal.arrays
                            .iter()
                            .find_map(|array| self.array(array, &item.items))
                    })
                };
                let is_inner = !item.items.is_empty() || item.text.trim_matches(WHITE_SPACE).is_empty();
                string().or_else(|| if is_inner { inner() } else { json() })
            }
        }
    }

    /// Returns the string that a text writes, if it is allowed. White space that models or the grammar put
    /// around a string is part of it only where the string is allowed with it alone.
    fn string(&self, goal: &Goal, text: &str) -> Option<String> {
        let inner = match self.frame.has_lines {
            true => {
                let text = text.strip_prefix('\n').unwrap_or(text);
                text.strip_suffix('\n').unwrap_or(text)
            }
            false => text,
        };
        if goal.has_any_string {
            return Some(inner.to_owned());
        }
        let ways = [inner, text.trim_matches(WHITE_SPACE), text];
        let is_allowed = |text: &&str| {
            goal.strings
                .iter()
                .any(|strings| strings.contains(text, &self.steps))
        };
        ways.into_iter().find(is_allowed).map(str::to_owned)
    }
}

/// Returns the value of a JSON text other than a string, if it is allowed. What arrays and objects contain is
/// not compared with the schema.
fn json(goal: &Goal, text: &str) -> Option<Value> {
    let parsed = || serde_json::from_str::<Value>(text).ok();
    match text.bytes().next()? {
        b'n' if goal.null && text == "null" => Some(Value::Null),
        b't' if goal.yes && text == "true" => Some(Value::Bool(true)),
        b'f' if goal.no && text == "false" => Some(Value::Bool(false)),
        b'[' if goal.has_arrays => parsed(),
        b'{' if goal.has_objects => parsed(),
        b'-' | b'0'..=b'9' => {
            let number: Number = serde_json::from_str(text).ok()?;
            let value = Decimal::parse(text)?;
            let is_allowed = goal.numbers.iter().any(|shape| shape.contains(&value));
            is_allowed.then_some(Value::Number(number))
        }
        _ => None,
    }
}
