//! Functions that every template can call.

use std::cell::RefCell;
use std::rc::Rc;

use super::arguments::Arguments;
use super::{Evaluator, Result};
use crate::clock;
use crate::text::Text;
use crate::value::{Map, Value};

/// The maximum number of items of a range.
const RANGE: i128 = 100_000;

impl Evaluator<'_> {
    /// Calls a function by its name.
    pub(super) fn function(&mut self, name: &str, mut given: Arguments) -> Result<Value> {
        match name {
            "raise_exception" => {
                let message = given.required("message")?.display();
                Err(message.as_str().into())
            }
            "strftime_now" => {
                let format = given.required_text("format")?;
                given.finish()?;
                Ok(Value::of_template(clock::at(self.now, format.as_str())?))
            }
            "namespace" => Ok(Value::Namespace(Rc::new(RefCell::new(map_of(given)?)))),
            "dict" => map_of(given).map(Value::map),
            "range" => range(given),
            _ => Err(format!("there is no function `{name}`").into()),
        }
    }
}

fn map_of(given: Arguments) -> Result<Map> {
    let mut map = Map::default();
    for value in given.placed {
        let Value::Map(first) = value else {
            return Err("only a mapping or arguments with names can be given here".into());
        };
        map = (*first).clone();
    }
    for (name, value) in given.named {
        map.set(Text::of_template(name), value);
    }
    Ok(map)
}

fn range(mut given: Arguments) -> Result<Value> {
    let first = given.int("start")?.ok_or("the argument `stop` is missing")?;
    let (start, stop) = given.int("stop")?.map_or((0, first), |stop| (first, stop));
    let step = given.int("step")?.unwrap_or(1);
    given.finish()?;
    if step == 0 {
        return Err("the step of a range must not be zero".into());
    }
    let mut items = Vec::new();
    let mut at = start;
    while (step > 0 && at < stop) || (step < 0 && at > stop) {
        if items.len() as i128 >= RANGE {
            return Err(format!("a range has more than {RANGE} items").into());
        }
        items.push(Value::Int(at));
        at = at.saturating_add(step);
    }
    Ok(Value::list(items))
}
