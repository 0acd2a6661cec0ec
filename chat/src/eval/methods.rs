//! Methods of texts, mappings and loops, as Python has them.

use super::arguments::Arguments;
use super::{Evaluator, Result};
use crate::text::{Ends, Text};
use crate::value::{Loop, Value};

impl Evaluator<'_> {
    /// Calls a method of a value.
    pub(super) fn method(&mut self, object: &Value, name: &str, mut given: Arguments) -> Result<Value> {
        let unknown = || format!("{} has no method `{name}`", object.kind());
        let value = match object {
            Value::Text(text) => self.text_method(text, name, &mut given)?,
            Value::Map(map) => match name {
                "get" => {
                    let key = given.required("key")?.display();
                    let default = given.take("default").unwrap_or(Value::None);
                    Some(map.get(key.as_str()).cloned().unwrap_or(default))
                }
                "items" | "keys" | "values" => Some(entries(object, name)),
                _ => None,
            },
            Value::Namespace(map) if ["items", "keys", "values", "get"].contains(&name) => {
                let map = Value::map(map.borrow().clone());
                return self.method(&map, name, given);
            }
            Value::List(items) if name == "index" || name == "count" => {
                let wanted = given.required("value")?;
                let mut places = (0..items.len()).filter(|&at| items[at].equals(&wanted));
                let number = match name {
                    "index" => places.next().ok_or("the list does not contain the value")?,
                    _ => places.count(),
                };
                Some(Value::Int(number as i128))
            }
            Value::Loop(pass) => return of_loop(pass, name, given),
            _ => None,
        };
        let value = value.ok_or_else(unknown)?;
        given.finish()?;
        Ok(value)
    }

    fn text_method(&mut self, text: &Text, name: &str, given: &mut Arguments) -> Result<Option<Value>> {
        let all = |is: fn(char) -> bool| Value::Bool(!text.is_empty() && text.as_str().chars().all(is));
        let value = match name {
            "strip" => trimmed(text, Ends::BOTH, given)?,
            "lstrip" => trimmed(
                text,
                Ends {
                    left: true,
                    right: false,
                },
                given,
            )?,
            "rstrip" => trimmed(
                text,
                Ends {
                    left: false,
                    right: true,
                },
                given,
            )?,
            "upper" | "lower" | "title" | "capitalize" => {
                return self
                    .filter(name, Value::text(text.clone()), Arguments::default())
                    .map(Some);
            }
            "replace" => return self.replaced(text, given).map(Some),
            "split" => parts(text, given)?,
            "rsplit" => parts_from_the_end(text, given)?,
            "splitlines" => Value::list(lines(text)),
            "startswith" | "endswith" => {
                let wanted = given.required("prefix")?;
                let is_at_end = |part: &str| match name {
                    "startswith" => text.as_str().starts_with(part),
                    _ => text.as_str().ends_with(part),
                };
                Value::Bool(match wanted {
                    Value::Text(part) => is_at_end(part.as_str()),
                    Value::List(parts) => parts.iter().any(|part| is_at_end(part.display().as_str())),
                    other => return Err(format!("expected a string, found {}", other.kind()).into()),
                })
            }
            "find" | "rfind" | "count" | "index" => found(text, name, given)?,
            "join" => {
                let items = given.required("items")?;
                let items = self.items(&items)?.ok_or("only a list can be joined")?;
                return self
                    .joined_items(items.iter().map(Value::display), text)
                    .map(Some);
            }
            "removeprefix" | "removesuffix" => {
                let part = given.required_text("part")?;
                Value::text(without(text, part.as_str(), name == "removeprefix"))
            }
            "isdigit" | "isnumeric" | "isdecimal" => all(char::is_numeric),
            "isalpha" => all(char::is_alphabetic),
            "isalnum" => all(char::is_alphanumeric),
            "isspace" => all(char::is_whitespace),
            "isascii" => Value::Bool(text.as_str().is_ascii()),
            "isupper" => Value::Bool(has_case(text, char::is_uppercase, char::is_lowercase)),
            "islower" => Value::Bool(has_case(text, char::is_lowercase, char::is_uppercase)),
            _ => return Ok(None),
        };
        Ok(Some(value))
    }

    /// Returns a text with a part replaced.
    pub(super) fn replaced(&mut self, text: &Text, given: &mut Arguments) -> Result<Value> {
        let (old, new) = (given.required("old")?.display(), given.required("new")?.display());
        let most = given.int("count")?.and_then(|count| usize::try_from(count).ok());
        let most = most.unwrap_or(usize::MAX);
        let count = text.as_str().matches(old.as_str()).take(most).count();
        self.pay(text.len(), new.len().saturating_mul(count))?;
        self.step((count + text.len() / 16) as u64)?;
        Ok(Value::text(text.replaced(old.as_str(), &new, most)))
    }

    /// Returns texts with a separator between them.
    pub(super) fn joined_items(
        &mut self,
        items: impl Iterator<Item = Text>,
        separator: &Text,
    ) -> Result<Value> {
        let mut out = Text::default();
        for (index, item) in items.enumerate() {
            self.pay(out.len(), item.len() + separator.len())?;
            if index > 0 {
                out.push(separator);
            }
            out.push(&item);
        }
        Ok(Value::text(out))
    }
}

/// Returns the keys, the values or the pairs of a mapping.
pub(super) fn entries(map: &Value, name: &str) -> Value {
    let Value::Map(map) = map else {
        return Value::list(Vec::new());
    };
    let entry = |(key, value): &(Text, Value)| match name {
        "keys" => Value::text(key.clone()),
        "values" => value.clone(),
        _ => Value::list(vec![Value::text(key.clone()), value.clone()]),
    };
    Value::list(map.entries().iter().map(entry).collect())
}

/// Returns a text without the characters that are given, by default whitespace, at its ends.
pub(super) fn trimmed(text: &Text, ends: Ends, given: &mut Arguments) -> Result<Value> {
    let removed = given.text("chars")?;
    Ok(Value::text(match removed {
        None => text.trimmed(ends, char::is_whitespace),
        Some(removed) => text.trimmed(ends, |c| removed.as_str().contains(c)),
    }))
}

/// Returns the lines of a text, without their ends.
pub(super) fn lines(text: &Text) -> Vec<Value> {
    let mut lines = Vec::new();
    let mut start = 0;
    for line in text.as_str().split_inclusive('\n') {
        let kept = line.trim_end_matches('\n').trim_end_matches('\r').len();
        lines.push(Value::text(text.part(start..start + kept)));
        start += line.len();
    }
    lines
}

fn limit(given: &mut Arguments) -> Result<usize> {
    let most = given.int("maxsplit")?;
    Ok(most
        .and_then(|most| usize::try_from(most).ok())
        .unwrap_or(usize::MAX))
}

fn parts(text: &Text, given: &mut Arguments) -> Result<Value> {
    let separator = given.text("sep")?;
    let most = limit(given)?;
    let parts = match separator {
        None => text.words(most),
        Some(separator) if separator.is_empty() => return Err("the separator is empty".into()),
        Some(separator) => text.split(separator.as_str(), most),
    };
    Ok(Value::list(parts.into_iter().map(Value::text).collect()))
}

fn parts_from_the_end(text: &Text, given: &mut Arguments) -> Result<Value> {
    let separator = given.text("sep")?.filter(|separator| !separator.is_empty());
    let separator = separator.ok_or("rsplit needs a separator")?;
    let most = limit(given)?;
    let mut end = text.len();
    let mut parts = Vec::new();
    for (at, found) in text.as_str().rmatch_indices(separator.as_str()).take(most) {
        parts.push(Value::text(text.part(at + found.len()..end)));
        end = at;
    }
    parts.push(Value::text(text.part(0..end)));
    parts.reverse();
    Ok(Value::list(parts))
}

fn found(text: &Text, name: &str, given: &mut Arguments) -> Result<Value> {
    let part = given.required_text("sub")?;
    let (all, part) = (text.as_str(), part.as_str());
    let place = match name {
        "count" if part.is_empty() => return Ok(Value::Int(all.chars().count() as i128 + 1)),
        "count" => return Ok(Value::Int(all.matches(part).count() as i128)),
        "rfind" => all.rfind(part),
        _ => all.find(part),
    };
    match place {
        Some(at) => Ok(Value::Int(all[..at].chars().count() as i128)),
        None if name == "index" => Err("the string does not contain the other".into()),
        None => Ok(Value::Int(-1)),
    }
}

fn without(text: &Text, part: &str, is_prefix: bool) -> Text {
    let rest = match is_prefix {
        true => text.as_str().strip_prefix(part).map(|_| part.len()..text.len()),
        false => text.as_str().strip_suffix(part).map(|rest| 0..rest.len()),
    };
    rest.map_or_else(|| text.clone(), |rest| text.part(rest))
}

/// Returns `true` if the text has letters of one case and none of the other.
pub(super) fn has_case(text: &Text, is: fn(char) -> bool, is_other: fn(char) -> bool) -> bool {
    text.as_str().chars().any(is) && !text.as_str().chars().any(is_other)
}

fn of_loop(pass: &Loop, name: &str, mut given: Arguments) -> Result<Value> {
    match name {
        "cycle" if !given.placed.is_empty() => {
            let at = pass.index % given.placed.len();
            Ok(given.placed.swap_remove(at))
        }
        "changed" => {
            let now = std::mem::take(&mut given.placed);
            given.finish()?;
            let before = pass.seen.replace(Some(now.clone()));
            let same = |before: Vec<Value>| {
                before.len() == now.len() && before.iter().zip(&now).all(|(one, two)| one.equals(two))
            };
            Ok(Value::Bool(!before.is_some_and(same)))
        }
        _ => Err(format!("a loop has no method `{name}`").into()),
    }
}
