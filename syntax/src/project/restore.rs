//! Restores values from answers of a target: takes back what was recoded.

use std::fmt;

use serde_json::{Map, Value};

use lexiform_automata::limits::Limits;

use crate::schema::read_json;

use super::form::{Field, Form, FormId, Forms, Items, Keys, Presence, Rest, WRAPPED};

/// The reason why a value cannot be restored from an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RestoreError {
    /// The JSON pointer of the place in the answer.
    pub pointer: String,
    /// What is wrong there, for people.
    pub message: String,
}

impl fmt::Display for RestoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}: {}", self.pointer, self.message)
    }
}

impl std::error::Error for RestoreError {}

/// Restores the value that an answer stands for.
pub(super) fn restore(forms: &Forms, answer: Value, limits: &Limits) -> Result<Value, RestoreError> {
    let mut restoring = Restoring {
        forms,
        limits,
        path: Vec::new(),
    };
    if !forms.is_wrapped {
        return restoring.value(forms.root, answer);
    }
    match answer {
        Value::Object(mut map) if map.contains_key(WRAPPED) => {
            let value = map.remove(WRAPPED).unwrap_or_default();
            restoring.path.push(WRAPPED.to_owned());
            restoring.value(forms.root, value)
        }
        _ => Err(restoring.error(format!("the answer must be an object with `{WRAPPED}`"))),
    }
}

struct Restoring<'f> {
    forms: &'f Forms,
    limits: &'f Limits,
    /// The keys from the root to the current place.
    path: Vec<String>,
}

impl Restoring<'_> {
    fn error(&self, message: impl Into<String>) -> RestoreError {
        let segments = self
            .path
            .iter()
            .map(|key| format!("/{}", crate::schema::escape_segment(key)));
        RestoreError {
            pointer: segments.collect(),
            message: message.into(),
        }
    }

    /// Restores a value at a form. A value that the form does not have is left as it is, since whoever
    /// validates it says more about it.
    fn value(&mut self, id: FormId, value: Value) -> Result<Value, RestoreError> {
        if self.path.len() > self.limits.nesting {
            return Err(self.error("the answer nests too deep"));
        }
        let forms = self.forms;
        match (forms.get(id), value) {
            (Form::Definition(definition), value) => {
                self.value(forms.definitions[definition.index()].form, value)
            }
            (Form::Union(parts), value) => match parts
                .iter()
                .find(|&&part| fits(forms, part, &value, &mut Looking::new()))
            {
                Some(&part) => self.value(part, value),
                None => Ok(value),
            },
            (Form::JsonText(_), Value::String(text)) => {
                read_json(&text, self.limits).map_err(|problem| self.error(problem.to_string()))
            }
            (Form::Array(items), Value::Array(list)) => self.array(items, list),
            (Form::Object(keys), Value::Object(map)) => self.object(keys, map),
            (_, value) => Ok(value),
        }
    }

    fn at(&mut self, key: String, id: FormId, value: Value) -> Result<Value, RestoreError> {
        self.path.push(key);
        let restored = self.value(id, value);
        self.path.pop();
        restored
    }

    fn array(&mut self, items: &Items, list: Vec<Value>) -> Result<Value, RestoreError> {
        let places = list.into_iter().enumerate();
        let restored = places.map(|(at, item)| match items.prefix.get(at).copied().or(items.rest) {
            Some(form) => self.at(at.to_string(), form, item),
            None => Ok(item),
        });
        Ok(Value::Array(restored.collect::<Result<_, _>>()?))
    }

    fn object(&mut self, keys: &Keys, map: Map<String, Value>) -> Result<Value, RestoreError> {
        let mut restored = Map::new();
        let mut further = Vec::new();
        for (key, value) in map {
            if let Some(field) = keys.fields.iter().find(|field| field.name == key) {
                if field.presence == Presence::NullIfAbsent && value.is_null() {
                    continue;
                }
                let value = self.at(key.clone(), field.form, value)?;
                restored.insert(key, value);
                continue;
            }
            match (&keys.packed, &keys.rest) {
                (Some((name, fields)), _) if *name == key => {
                    further.push((key, self.packed(name, fields, value)?))
                }
                (_, Rest::Pairs { field, entries, .. }) if *field == key => {
                    let pairs = self.at(key.clone(), *entries, value)?;
                    further.push((key.clone(), self.pairs(&key, pairs)?));
                }
                (
                    _,
                    Rest::Open {
                        others: Some(form), ..
                    },
                ) => {
                    let value = self.at(key.clone(), *form, value)?;
                    restored.insert(key, value);
                }
                _ => {
                    restored.insert(key, value);
                }
            }
        }
        for (from, more) in further {
            for (key, value) in more {
                if restored.contains_key(&key) {
                    self.path.push(from);
                    return Err(self.error(format!("the key {} is there twice", Value::from(key))));
                }
                restored.insert(key, value);
            }
        }
        Ok(Value::Object(restored))
    }

    /// Returns the properties that are packed into a JSON text.
    fn packed(
        &mut self,
        name: &str,
        fields: &[Field],
        value: Value,
    ) -> Result<Map<String, Value>, RestoreError> {
        self.path.push(name.to_owned());
        let read = match &value {
            Value::String(text) => {
                read_json(text, self.limits).map_err(|problem| self.error(problem.to_string()))
            }
            _ => Err(self.error("this must be a string with the JSON text of an object")),
        };
        let unknown = |map: &Map<String, Value>| {
            map.keys()
                .find(|key| !fields.iter().any(|field| field.name == **key))
                .cloned()
        };
        let map = match read? {
            Value::Object(map) => match unknown(&map) {
                Some(key) => Err(self.error(format!("there is no property {}", Value::from(key)))),
                None => Ok(map),
            },
            _ => Err(self.error("this must be the JSON text of an object")),
        };
        self.path.pop();
        map
    }

    /// Returns the keys and values of a list of pairs.
    fn pairs(&mut self, field: &str, pairs: Value) -> Result<Map<String, Value>, RestoreError> {
        self.path.push(field.to_owned());
        let Value::Array(list) = pairs else {
            return Err(self.error("this must be a list of objects with `key` and `value`"));
        };
        let mut map = Map::new();
        for (at, pair) in list.into_iter().enumerate() {
            self.path.push(at.to_string());
            let Value::Object(mut pair) = pair else {
                return Err(self.error("this must be an object with `key` and `value`"));
            };
            match (pair.remove("key"), pair.remove("value")) {
                (Some(Value::String(key)), Some(value)) if !map.contains_key(&key) => {
                    map.insert(key, value);
                }
                (Some(Value::String(key)), Some(_)) => {
                    return Err(self.error(format!("the key {} is there twice", Value::from(key))));
                }
                _ => return Err(self.error("this must be an object with `key` and `value`")),
            }
            self.path.pop();
        }
        self.path.pop();
        Ok(map)
    }
}

/// How far a value is compared with the alternatives of a union. Beyond it, a value counts as fitting.
struct Looking {
    depth: usize,
    fuel: usize,
}

impl Looking {
    fn new() -> Looking {
        Looking {
            depth: 9,
            fuel: 20_000,
        }
    }
}

/// Returns `true` if a value has the shape of a form: kinds, constants, keys. Patterns and bounds are not
/// checked, since alternatives hardly ever differ in these alone.
fn fits(forms: &Forms, id: FormId, value: &Value, looking: &mut Looking) -> bool {
    if looking.depth == 0 || looking.fuel == 0 {
        return true;
    }
    looking.fuel -= 1;
    looking.depth -= 1;
    let fits = fits_here(forms, id, value, looking);
    looking.depth += 1;
    fits
}

fn fits_here(forms: &Forms, id: FormId, value: &Value, looking: &mut Looking) -> bool {
    match forms.get(id) {
        Form::Never => false,
        Form::Any => true,
        Form::Constants(values) => values.contains(value),
        Form::Number(number) => value
            .as_number()
            .is_some_and(|given| !number.is_integer || given.is_i64() || given.is_u64()),
        Form::String(_) | Form::JsonText(_) => value.is_string(),
        Form::Union(parts) => parts.iter().any(|&part| fits(forms, part, value, looking)),
        Form::Definition(definition) => {
            fits(forms, forms.definitions[definition.index()].form, value, looking)
        }
        Form::Array(items) => value.as_array().is_some_and(|list| {
            let is_counted =
                list.len() as u64 >= items.min && items.max.is_none_or(|max| list.len() as u64 <= max);
            let item = |(at, item)| {
                let form = items.prefix.get(at).copied().or(items.rest);
                form.is_some_and(|form| fits(forms, form, item, looking))
            };
            is_counted && list.iter().enumerate().all(item)
        }),
        Form::Object(keys) => value
            .as_object()
            .is_some_and(|map| keys_fit(forms, keys, map, looking)),
    }
}

fn keys_fit(forms: &Forms, keys: &Keys, map: &Map<String, Value>, looking: &mut Looking) -> bool {
    let is_there = |field: &Field| field.presence == Presence::Optional || map.contains_key(&field.name);
    let mut is_known = |key: &String, value: &Value| {
        if let Some(field) = keys.fields.iter().find(|field| field.name == *key) {
            let is_absent = field.presence == Presence::NullIfAbsent && value.is_null();
            return is_absent || fits(forms, field.form, value, looking);
        }
        let is_packed = keys.packed.as_ref().is_some_and(|(name, _)| name == key);
        match &keys.rest {
            _ if is_packed => true,
            Rest::Closed => false,
            Rest::Open { .. } => true,
            Rest::Pairs { field, .. } => field == key,
        }
    };
    keys.fields.iter().all(is_there) && map.iter().all(|(key, value)| is_known(key, value))
}
