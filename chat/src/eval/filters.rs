//! Filters: what may follow `|`.

use std::cmp::Ordering;

use super::arguments::Arguments;
use super::{Evaluator, Result, methods, operators};
use crate::json::{self, Options};
use crate::text::{Ends, Text};
use crate::value::Value;

/// The filters of lists.
const OF_LISTS: [&str; 16] = [
    "first",
    "last",
    "list",
    "reverse",
    "join",
    "map",
    "select",
    "reject",
    "selectattr",
    "rejectattr",
    "sort",
    "unique",
    "min",
    "max",
    "sum",
    "batch",
];

impl Evaluator<'_> {
    /// Applies a filter to a value.
    pub(super) fn filter(&mut self, name: &str, value: Value, mut given: Arguments) -> Result<Value> {
        self.read(&value)?;
        let of_text = self.text_filter(name, &value, &mut given)?;
        let result = match of_text {
            Some(result) => result,
            None => match self.list_filter(name, &value, &mut given)? {
                Some(result) => result,
                None => self.plain_filter(name, value, &mut given)?,
            },
        };
        given.finish()?;
        Ok(result)
    }

    fn text_filter(&mut self, name: &str, value: &Value, given: &mut Arguments) -> Result<Option<Value>> {
        let text = || value.display();
        let rewritten = |write: &mut dyn FnMut(char, &mut String)| Value::text(text().rewritten(write));
        let mut is_first = true;
        Ok(Some(match name {
            "trim" => methods::trimmed(&text(), Ends::BOTH, given)?,
            "lower" => rewritten(&mut |c, out| out.extend(c.to_lowercase())),
            "upper" => rewritten(&mut |c, out| out.extend(c.to_uppercase())),
            "capitalize" => rewritten(&mut |c, out| match std::mem::take(&mut is_first) {
                true => out.extend(c.to_uppercase()),
                false => out.extend(c.to_lowercase()),
            }),
            "title" => rewritten(&mut |c, out| {
                match is_first {
                    true => out.extend(c.to_uppercase()),
                    false => out.extend(c.to_lowercase()),
                }
                is_first = !c.is_alphanumeric();
            }),
            "replace" => self.replaced(&text(), given)?,
            "string" | "safe" => Value::text(text()),
            "lines" => Value::list(methods::lines(&text())),
            "indent" => self.indented(&text(), given)?,
            "escape" | "e" => rewritten(&mut |c, out| match c {
                '&' => out.push_str("&amp;"),
                '<' => out.push_str("&lt;"),
                '>' => out.push_str("&gt;"),
                '"' => out.push_str("&#34;"),
                '\'' => out.push_str("&#39;"),
                c => out.push(c),
            }),
            "split" => {
                let given = std::mem::take(given);
                self.method(&Value::text(text()), "split", given)?
            }
            "tojson" => {
                let options = json_options(given)?;
                let text = json::to_json(value, &options)?;
                self.pay(0, text.len())?;
                Value::text(text)
            }
            _ => return Ok(None),
        }))
    }

    fn indented(&mut self, text: &Text, given: &mut Arguments) -> Result<Value> {
        let width = match given.take("width") {
            None => Text::of_template("    "),
            Some(Value::Text(indent)) => (*indent).clone(),
            Some(number) => {
                let width = number.as_int().and_then(|width| u8::try_from(width).ok());
                let width = width.ok_or("the width has to be a number from 0 to 255")?;
                Text::of_template(" ".repeat(usize::from(width)))
            }
        };
        let (first, blank) = (given.flag("first"), given.flag("blank"));
        let mut out = Text::default();
        let mut start = 0;
        for (index, line) in text.as_str().split_inclusive('\n').enumerate() {
            self.pay(out.len(), line.len() + width.len())?;
            let is_indented = if index == 0 { first } else { blank || line != "\n" };
            if is_indented {
                out.push(&width);
            }
            out.push(&text.part(start..start + line.len()));
            start += line.len();
        }
        Ok(Value::text(out))
    }

    fn list_filter(&mut self, name: &str, value: &Value, given: &mut Arguments) -> Result<Option<Value>> {
        if !OF_LISTS.contains(&name) {
            return Ok(None);
        }
        let Some(items) = self.items(value)? else {
            return Err(format!("`{name}` needs a list, and gets {}", value.kind()).into());
        };
        self.step(items.len() as u64)?;
        let reversed = items.iter().rev();
        let attribute = |given: &mut Arguments| given.text("attribute");
        let one = |item: Option<&Value>| item.cloned().unwrap_or(Value::Undefined);
        Ok(Some(match name {
            "first" => one(items.first()),
            "last" => one(items.last()),
            "list" => Value::List(items),
            "reverse" => match value {
                Value::Text(text) => {
                    let letters: Vec<Text> = text.chars().collect();
                    self.joined_items(letters.into_iter().rev(), &Text::default())?
                }
                _ => Value::list(reversed.cloned().collect()),
            },
            "join" => {
                let separator = given
                    .take("d")
                    .map(|separator| separator.display())
                    .unwrap_or_default();
                let attribute = attribute(given)?;
                let joined: Vec<Value> = items
                    .iter()
                    .map(|item| at_path(item, attribute.as_ref()))
                    .collect::<Result<_>>()?;
                self.joined_items(joined.iter().map(Value::display), &separator)?
            }
            "map" => self.mapped(&items, given)?,
            "select" | "reject" => self.chosen_by_test(&items, None, name == "select", given)?,
            "selectattr" | "rejectattr" => {
                let attribute = given.required_text("attribute")?;
                self.chosen_by_test(&items, Some(&attribute), name == "selectattr", given)?
            }
            "sort" => {
                let is_reversed = given.flag("reverse");
                given.flag("case_sensitive");
                let attribute = attribute(given)?;
                Value::list(sorted(&items, attribute.as_ref(), is_reversed)?)
            }
            "unique" => self.unique(&items)?,
            "min" => one(sorted(&items, None, false)?.first()),
            "max" => one(sorted(&items, None, true)?.first()),
            "sum" => sum(&items)?,
            _ => batches(&items, given)?,
        }))
    }

    fn unique(&mut self, items: &[Value]) -> Result<Value> {
        self.step((items.len() * items.len() / 8) as u64)?;
        let mut unique: Vec<Value> = Vec::new();
        for item in items {
            if !unique.iter().any(|known| known.equals(item)) {
                unique.push(item.clone());
            }
        }
        Ok(Value::list(unique))
    }

    /// The filter `map`, with an attribute or with another filter.
    fn mapped(&mut self, items: &[Value], given: &mut Arguments) -> Result<Value> {
        let mut out = Vec::with_capacity(items.len());
        if let Some(attribute) = given.take_named("attribute") {
            let default = given.take_named("default");
            for item in items {
                let found = at_path(item, Some(&attribute.display()))?;
                out.push(match (&found, &default) {
                    (Value::Undefined, Some(default)) => default.clone(),
                    _ => found,
                });
            }
            return Ok(Value::list(out));
        }
        let filter = given.required_text("filter")?;
        let placed = std::mem::take(&mut given.placed);
        let named = std::mem::take(&mut given.named);
        self.enter()?;
        for item in items {
            let arguments = Arguments {
                placed: placed.clone(),
                named: named.clone(),
            };
            out.push(self.filter(filter.as_str(), item.clone(), arguments)?);
        }
        self.depth -= 1;
        Ok(Value::list(out))
    }

    fn chosen_by_test(
        &mut self,
        items: &[Value],
        attribute: Option<&Text>,
        wanted: bool,
        given: &mut Arguments,
    ) -> Result<Value> {
        let test = given.text("test")?;
        let placed = std::mem::take(&mut given.placed);
        let mut chosen = Vec::new();
        for item in items {
            let value = at_path(item, attribute)?;
            let holds = match &test {
                None => value.is_true(),
                Some(test) => {
                    let arguments = Arguments {
                        placed: placed.clone(),
                        named: Vec::new(),
                    };
                    self.holds(test.as_str(), &value, arguments)?
                }
            };
            if holds == wanted {
                chosen.push(item.clone());
            }
        }
        Ok(Value::list(chosen))
    }

    fn plain_filter(&mut self, name: &str, value: Value, given: &mut Arguments) -> Result<Value> {
        match name {
            "length" | "count" => {
                let length = value.length();
                let length = length.ok_or_else(|| format!("{} has no length", value.kind()))?;
                Ok(Value::Int(length as i128))
            }
            "default" | "d" => {
                let default = given
                    .take("default_value")
                    .unwrap_or_else(|| Value::of_template(""));
                let is_also_false = given.flag("boolean");
                let is_missing = matches!(value, Value::Undefined) || (is_also_false && !value.is_true());
                Ok(if is_missing { default } else { value })
            }
            "items" => match &value {
                Value::Map(_) => Ok(methods::entries(&value, "items")),
                Value::Undefined => Ok(Value::list(Vec::new())),
                other => Err(format!("`items` needs a mapping, and gets {}", other.kind()).into()),
            },
            "dictsort" => {
                let Value::List(pairs) = methods::entries(&value, "items") else {
                    return Ok(value);
                };
                given.flag("case_sensitive");
                let by = given.text("by")?;
                let at = Text::of_template(if by.is_some_and(|by| by.as_str() == "value") {
                    "1"
                } else {
                    "0"
                });
                Ok(Value::list(sorted(&pairs, Some(&at), given.flag("reverse"))?))
            }
            "attr" => {
                let name = given.required_text("name")?;
                operators::attribute(&value, name.as_str())
            }
            "bool" => Ok(Value::Bool(value.is_true())),
            "int" | "float" | "abs" | "round" => number(name, &value, given),
            _ => Err(format!("there is no filter `{name}`").into()),
        }
    }
}

/// Returns the attribute at a path with dots, or the item itself without a path.
fn at_path(item: &Value, path: Option<&Text>) -> Result<Value> {
    let mut found = item.clone();
    for part in path.iter().flat_map(|path| path.as_str().split('.')) {
        found = match (&found, part.parse::<i128>()) {
            (Value::Undefined, _) => return Ok(Value::Undefined),
            (Value::List(_), Ok(at)) => operators::item(&found, &Value::Int(at))?,
            _ => operators::attribute(&found, part)?,
        };
    }
    Ok(found)
}

/// Returns the items in order; texts are compared without regard to case, as Jinja does.
fn sorted(items: &[Value], attribute: Option<&Text>, is_reversed: bool) -> Result<Vec<Value>> {
    let key = |item: &Value| -> Result<Value> {
        let key = at_path(item, attribute)?;
        Ok(match &key {
            Value::Text(text) => Value::of_template(text.as_str().to_lowercase()),
            _ => key,
        })
    };
    let keyed = items.iter().map(|item| Ok((key(item)?, item.clone())));
    let mut keyed = keyed.collect::<Result<Vec<_>>>()?;
    let mut is_ordered = true;
    keyed.sort_by(|(one, _), (two, _)| {
        let order = one.order(two).unwrap_or_else(|| {
            is_ordered = false;
            Ordering::Equal
        });
        if is_reversed { order.reverse() } else { order }
    });
    match is_ordered {
        true => Ok(keyed.into_iter().map(|(_, item)| item).collect()),
        false => Err("these values have no order".into()),
    }
}

fn number(name: &str, value: &Value, given: &mut Arguments) -> Result<Value> {
    let text = value.display();
    let parsed = value.as_number().or_else(|| text.as_str().trim().parse().ok());
    let default = given.take("default");
    Ok(match name {
        "int" => match value.as_int().or_else(|| text.as_str().trim().parse().ok()) {
            Some(whole) => Value::Int(whole),
            None => match parsed {
                Some(number) => Value::Int(number as i128),
                None => default.unwrap_or(Value::Int(0)),
            },
        },
        "float" => parsed.map_or_else(|| default.unwrap_or(Value::Float(0.0)), Value::Float),
        "abs" => match value {
            Value::Int(whole) => Value::Int(whole.checked_abs().ok_or("a number is out of range")?),
            _ => Value::Float(value.as_number().ok_or("`abs` needs a number")?.abs()),
        },
        _ => {
            let places = default
                .and_then(|places| places.as_int())
                .unwrap_or(0)
                .clamp(-300, 300);
            let factor = 10f64.powi(i32::try_from(places).unwrap_or(0));
            let number = value.as_number().ok_or("`round` needs a number")?;
            Value::Float((number * factor).round() / factor)
        }
    })
}

fn json_options(given: &mut Arguments) -> Result<Options> {
    // In `transformers`, `ensure_ascii` is the first argument by place.
    let ensure_ascii = given.flag("ensure_ascii");
    let indent = match given.take("indent") {
        None | Some(Value::None | Value::Undefined) => None,
        Some(Value::Text(indent)) => Some(indent.as_str().to_owned()),
        Some(number) => {
            let width = number.as_int().map(|width| width.clamp(0, 16));
            let width = width.and_then(|width| usize::try_from(width).ok());
            Some(" ".repeat(width.ok_or("`indent` has to be a number or a string")?))
        }
    };
    let separators = match given.take("separators") {
        None | Some(Value::None | Value::Undefined) => None,
        Some(Value::List(two)) if two.len() == 2 => {
            let part = |at: usize| two[at].display().as_str().to_owned();
            Some((part(0), part(1)))
        }
        Some(_) => return Err("`separators` has to be a pair of strings".into()),
    };
    Ok(Options {
        indent,
        separators,
        ensure_ascii,
        sort_keys: given.flag("sort_keys"),
    })
}

/// Returns the sum of a list.
fn sum(items: &[Value]) -> Result<Value> {
    let mut sum = Value::Int(0);
    for item in items {
        sum = operators::calculated(minijinja::machinery::ast::BinOpKind::Add, &sum, item)?;
    }
    Ok(sum)
}

/// Returns the parts of a list of so many items each.
fn batches(items: &[Value], given: &mut Arguments) -> Result<Value> {
    let size = given
        .int("linecount")?
        .and_then(|size| usize::try_from(size).ok());
    let size = size
        .filter(|size| *size > 0)
        .ok_or("the size of a batch has to be positive")?;
    let parts = items.chunks(size).map(|part| Value::list(part.to_vec()));
    Ok(Value::list(parts.collect()))
}
