//! Operators, attributes, items and slices.

use std::cmp::Ordering;

use minijinja::machinery::ast::{BinOpKind, CompareOpKind};

use super::Result;
use crate::text::Text;
use crate::value::{Loop, Value};

/// Returns `-value`.
pub(super) fn negated(value: &Value) -> Result<Value> {
    match value {
        Value::Float(number) => Ok(Value::Float(-number)),
        other => {
            let number = other.as_int().and_then(i128::checked_neg);
            number
                .map(Value::Int)
                .ok_or_else(|| format!("{} has no negative", other.kind()).into())
        }
    }
}

/// Returns the value of an operation that writes no text.
pub(super) fn calculated(operator: BinOpKind, left: &Value, right: &Value) -> Result<Value> {
    use BinOpKind as Op;
    let compared_as = match operator {
        Op::Eq => Some(CompareOpKind::Eq),
        Op::Ne => Some(CompareOpKind::Ne),
        Op::Lt => Some(CompareOpKind::Lt),
        Op::Lte => Some(CompareOpKind::Lte),
        Op::Gt => Some(CompareOpKind::Gt),
        Op::Gte => Some(CompareOpKind::Gte),
        Op::In => Some(CompareOpKind::In),
        _ => None,
    };
    if let Some(comparison) = compared_as {
        return compared(comparison, left, right).map(Value::Bool);
    }
    let wrong = || format!("{} and {} cannot be combined so", left.kind(), right.kind());
    if let (Some(one), Some(two)) = (left.as_int(), right.as_int())
        && !matches!(operator, Op::Div)
    {
        return whole(operator, one, two)
            .map(Value::Int)
            .ok_or_else(|| wrong().into());
    }
    let (one, two) = left.as_number().zip(right.as_number()).ok_or_else(wrong)?;
    let result = match operator {
        Op::Add => one + two,
        Op::Sub => one - two,
        Op::Mul => one * two,
        Op::Div => one / two,
        Op::FloorDiv => (one / two).floor(),
        Op::Rem => one - two * (one / two).floor(),
        Op::Pow => one.powf(two),
        _ => return Err(wrong().into()),
    };
    match result.is_finite() {
        true => Ok(Value::Float(result)),
        false => Err("a number is out of range".into()),
    }
}

fn whole(operator: BinOpKind, one: i128, two: i128) -> Option<i128> {
    match operator {
        BinOpKind::Add => one.checked_add(two),
        BinOpKind::Sub => one.checked_sub(two),
        BinOpKind::Mul => one.checked_mul(two),
        BinOpKind::FloorDiv => {
            let quotient = one.checked_div(two)?;
            let is_below = one % two != 0 && (one < 0) != (two < 0);
            quotient.checked_sub(i128::from(is_below))
        }
        BinOpKind::Rem => {
            let rest = one.checked_rem(two)?;
            let is_other_side = rest != 0 && (rest < 0) != (two < 0);
            Some(if is_other_side { rest + two } else { rest })
        }
        BinOpKind::Pow => one.checked_pow(u32::try_from(two).ok()?),
        _ => None,
    }
}

/// Returns whether a comparison holds.
pub(super) fn compared(operator: CompareOpKind, left: &Value, right: &Value) -> Result<bool> {
    let order = || {
        let wrong = || format!("{} and {} have no order", left.kind(), right.kind());
        left.order(right).ok_or_else(wrong)
    };
    Ok(match operator {
        CompareOpKind::Eq => left.equals(right),
        CompareOpKind::Ne => !left.equals(right),
        CompareOpKind::Lt => order()? == Ordering::Less,
        CompareOpKind::Lte => order()? != Ordering::Greater,
        CompareOpKind::Gt => order()? == Ordering::Greater,
        CompareOpKind::Gte => order()? != Ordering::Less,
        CompareOpKind::In => contains(right, left)?,
        CompareOpKind::NotIn => !contains(right, left)?,
    })
}

/// Returns whether a value is in a container.
pub(super) fn contains(container: &Value, value: &Value) -> Result<bool> {
    match (container, value) {
        (Value::Undefined, _) => Ok(false),
        (Value::Text(text), Value::Text(part)) => Ok(text.as_str().contains(part.as_str())),
        (Value::List(items), value) => Ok(items.iter().any(|item| item.equals(value))),
        (Value::Map(map), key) => Ok(map.get(key.display().as_str()).is_some()),
        (Value::Namespace(map), key) => Ok(map.borrow().get(key.display().as_str()).is_some()),
        (container, value) => Err(format!("{} cannot contain {}", container.kind(), value.kind()).into()),
    }
}

/// Returns an attribute, which for a mapping is the value of a key.
pub(super) fn attribute(value: &Value, name: &str) -> Result<Value> {
    match value {
        Value::Map(map) => Ok(map.get(name).cloned().unwrap_or(Value::Undefined)),
        Value::Namespace(map) => Ok(map.borrow().get(name).cloned().unwrap_or(Value::Undefined)),
        Value::Loop(pass) => Ok(of_loop(pass, name)),
        Value::Undefined => Err(format!("an undefined value has no attribute `{name}`").into()),
        _ => Ok(Value::Undefined),
    }
}

fn of_loop(pass: &Loop, name: &str) -> Value {
    let (index, length) = (pass.index, pass.items.len());
    let int = |number: usize| Value::Int(number as i128);
    let item = |at: Option<usize>| {
        let item = at.and_then(|at| pass.items.get(at));
        item.cloned().unwrap_or(Value::Undefined)
    };
    match name {
        "index" => int(index + 1),
        "index0" => int(index),
        "revindex" => int(length - index),
        "revindex0" => int(length - index - 1),
        "length" => int(length),
        "first" => Value::Bool(index == 0),
        "last" => Value::Bool(index + 1 == length),
        "depth" => int(pass.depth),
        "depth0" => int(pass.depth - 1),
        "previtem" => item(index.checked_sub(1)),
        "nextitem" => item(Some(index + 1)),
        _ => Value::Undefined,
    }
}

/// Returns an item: of a list or text by its place, of a mapping by its key.
pub(super) fn item(value: &Value, key: &Value) -> Result<Value> {
    match (value, key) {
        (Value::List(items), key) => {
            let at = key.as_int().and_then(|at| place(at, items.len()));
            Ok(at.map_or(Value::Undefined, |at| items[at].clone()))
        }
        (Value::Text(text), key) if key.as_int().is_some() => {
            let length = text.as_str().chars().count();
            let at = key.as_int().and_then(|at| place(at, length));
            let letter = at.and_then(|at| text.chars().nth(at));
            Ok(letter.map_or(Value::Undefined, Value::text))
        }
        (value, key) => attribute(value, key.display().as_str()),
    }
}

fn place(at: i128, length: usize) -> Option<usize> {
    let from_end = if at < 0 { length as i128 } else { 0 };
    usize::try_from(at + from_end).ok().filter(|at| *at < length)
}

/// Returns a part of a list or a text, by the bounds and the step that Python has.
pub(super) fn slice(value: &Value, bounds: [Option<i128>; 3]) -> Result<Value> {
    match value {
        Value::List(items) => {
            let chosen = places(bounds, items.len())?;
            Ok(Value::list(chosen.map(|at| items[at].clone()).collect()))
        }
        Value::Text(text) => Ok(Value::text(part(text, bounds)?)),
        Value::Undefined => Ok(Value::list(Vec::new())),
        other => Err(format!("{} has no parts", other.kind()).into()),
    }
}

fn part(text: &Text, bounds: [Option<i128>; 3]) -> Result<Text> {
    let starts: Vec<usize> = text.as_str().char_indices().map(|(at, _)| at).collect();
    let end_of = |at: usize| starts.get(at + 1).copied().unwrap_or(text.len());
    let mut chosen = places(bounds, starts.len())?;
    if bounds[2].unwrap_or(1) == 1 {
        let first = chosen.next();
        let last = chosen.last().or(first);
        let range = first.zip(last).map(|(first, last)| starts[first]..end_of(last));
        return Ok(range.map_or_else(Text::default, |range| text.part(range)));
    }
    let mut out = Text::default();
    chosen.for_each(|at| out.push(&text.part(starts[at]..end_of(at))));
    Ok(out)
}

/// Returns the places of a slice.
fn places([start, stop, step]: [Option<i128>; 3], length: usize) -> Result<impl Iterator<Item = usize>> {
    let (length, step) = (length as i128, step.unwrap_or(1));
    if step == 0 {
        return Err("the step of a slice must not be zero".into());
    }
    let (lowest, highest) = if step > 0 { (0, length) } else { (-1, length - 1) };
    let bound = |given: Option<i128>, usual: i128| match given {
        None => usual,
        Some(at) if at < 0 => at.saturating_add(length).clamp(lowest, highest),
        Some(at) => at.clamp(lowest, highest),
    };
    let (first, past) = if step > 0 { (0, length) } else { (length - 1, -1) };
    let (mut at, stop) = (bound(start, first), bound(stop, past));
    Ok(std::iter::from_fn(move || {
        let is_inside = if step > 0 { at < stop } else { at > stop };
        let found = usize::try_from(at).ok().filter(|_| is_inside)?;
        at = at.saturating_add(step);
        Some(found)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_those_of_python() {
        let cut = |bounds| {
            part(&Text::of_template("abcdé"), bounds)
                .expect("a part")
                .as_str()
                .to_owned()
        };
        assert_eq!(cut([Some(1), Some(3), None]), "bc");
        assert_eq!(cut([Some(-2), None, None]), "dé");
        assert_eq!(cut([None, None, Some(-1)]), "édcba");
        assert_eq!(cut([Some(3), Some(0), Some(-2)]), "db");
        assert_eq!(cut([None, Some(-1), Some(2)]), "ac");
        assert_eq!(cut([Some(4), Some(2), None]), "");
        assert_eq!(cut([Some(-99), Some(99), None]), "abcdé");
        assert!(part(&Text::default(), [None, None, Some(0)]).is_err());
    }

    #[test]
    fn whole_numbers_are_divided_as_in_python() {
        let calculate = |operator, one, two| calculated(operator, &Value::Int(one), &Value::Int(two));
        for (one, two, quotient, rest) in [(7, 2, 3, 1), (-7, 2, -4, 1), (7, -2, -4, -1), (-7, -2, 3, -1)] {
            let value = calculate(BinOpKind::FloorDiv, one, two).expect("a quotient");
            assert!(value.equals(&Value::Int(quotient)), "{one} // {two}");
            let value = calculate(BinOpKind::Rem, one, two).expect("a rest");
            assert!(value.equals(&Value::Int(rest)), "{one} % {two}");
        }
        assert!(calculate(BinOpKind::Rem, 1, 0).is_err());
        assert!(calculate(BinOpKind::Div, 1, 0).is_err());
        assert!(calculate(BinOpKind::Mul, i128::MAX, 2).is_err());
    }
}
