//! Numbers: bounds and steps where the target takes them, else the few values that there are.

use serde_json::Value;

use crate::project::form::{End, Form, Number, number_value};
use crate::project::profile::NumberKeyword;
use crate::schema::{Bound, Decimal, GoalId, NumberShape};

use super::Fitting;

/// The most integers of an interval that are listed.
const MOST_LISTED: i128 = 128;

impl Fitting<'_> {
    pub(super) fn number(&mut self, shape: &NumberShape, goal: GoalId) -> Option<Form> {
        if let Some(only) = &shape.only {
            // In draft 4 a number with a point is no integer, which targets do not tell apart.
            let is_pointed = shape.plain == Some(false);
            if is_pointed
                && !self.lose(
                    goal,
                    &["not", "enum", "type"],
                    "numbers without a point are not excluded",
                )
            {
                return None;
            }
            return Some(Form::Constants(only.iter().map(number_value).collect()));
        }
        let mut number = whole(shape);
        let missing = self.missing(&number, shape);
        if missing.is_empty() {
            return Some(Form::Number(number));
        }
        if let Some(listed) = listed(shape) {
            return Some(Form::Constants(listed));
        }
        for keyword in missing {
            let message = format!("`{keyword}` is not enforced");
            if !self.lose(goal, &[keyword, "minimum", "maximum"], &message) {
                return None;
            }
            match keyword {
                "exclusiveMinimum" => {
                    self.without_exclusive(&mut number.lower, number.is_integer, NumberKeyword::Minimum)
                }
                "exclusiveMaximum" => {
                    self.without_exclusive(&mut number.upper, number.is_integer, NumberKeyword::Maximum)
                }
                "minimum" => number.lower = None,
                "maximum" => number.upper = None,
                "multipleOf" => number.step = None,
                _ => {
                    number.not_steps.clear();
                    number.except.clear();
                }
            }
        }
        Some(Form::Number(number))
    }

    /// Turns an exclusive end into an inclusive one, or drops it.
    fn without_exclusive(&self, end: &mut Option<End>, is_integer: bool, inclusive: NumberKeyword) {
        match end {
            Some(end) if self.takes(is_integer, inclusive) => end.is_exclusive = false,
            _ => *end = None,
        }
    }

    fn takes(&self, is_integer: bool, keyword: NumberKeyword) -> bool {
        let taken = match is_integer {
            true => &self.profile.integer,
            false => &self.profile.number,
        };
        taken.contains(&keyword)
    }

    /// Returns the keywords that a number would need and the target does not take.
    fn missing(&self, number: &Number, shape: &NumberShape) -> Vec<&'static str> {
        let lower = |exclusive| {
            if exclusive {
                NumberKeyword::ExclusiveMinimum
            } else {
                NumberKeyword::Minimum
            }
        };
        let upper = |exclusive| {
            if exclusive {
                NumberKeyword::ExclusiveMaximum
            } else {
                NumberKeyword::Maximum
            }
        };
        let needed = [
            number.lower.as_ref().map(|end| lower(end.is_exclusive)),
            number.upper.as_ref().map(|end| upper(end.is_exclusive)),
            number.step.as_ref().map(|_| NumberKeyword::MultipleOf),
        ];
        let needed = needed.into_iter().flatten();
        let mut missing: Vec<&'static str> = needed
            .filter(|&keyword| !self.takes(number.is_integer, keyword))
            .map(NumberKeyword::name)
            .collect();
        let is_negative = !shape.not_steps.is_empty() || !shape.except.is_empty();
        if is_negative && !self.profile.combine {
            missing.push("not");
        }
        if shape.plain == Some(false) || shape.too_fine {
            missing.push("type");
        }
        missing
    }
}

/// Returns the number of a shape, with inclusive ends for integers.
fn whole(shape: &NumberShape) -> Number {
    let is_whole = |step: &Decimal| step.is_integer();
    let is_integer = shape.plain == Some(true) || shape.step.as_ref().is_some_and(is_whole);
    let one = Decimal::one();
    let end = |bound: &Bound, round: fn(&Decimal, bool) -> Option<i128>| {
        let rounded = is_integer.then(|| round(&bound.value, bound.exclusive)).flatten();
        match rounded.and_then(|value| Decimal::parse(&value.to_string())) {
            Some(value) => End {
                value,
                is_exclusive: false,
            },
            None => End {
                value: bound.value.clone(),
                is_exclusive: bound.exclusive,
            },
        }
    };
    Number {
        is_integer,
        lower: shape.lower.as_ref().map(|bound| end(bound, Decimal::ceil)),
        upper: shape.upper.as_ref().map(|bound| end(bound, Decimal::floor)),
        step: shape.step.clone().filter(|step| !is_integer || *step != one),
        not_steps: shape.not_steps.clone(),
        except: shape.except.iter().map(number_value).collect(),
    }
}

/// Returns the integers of a shape, if they are few.
fn listed(shape: &NumberShape) -> Option<Vec<Value>> {
    let step = shape.step.as_ref().filter(|step| step.is_integer())?;
    let (lower, upper) = (shape.lower.as_ref()?, shape.upper.as_ref()?);
    let values = step.multiples_between(&lower.value, &upper.value, MOST_LISTED)?;
    Some(
        values
            .iter()
            .filter(|value| shape.contains(value))
            .map(number_value)
            .collect(),
    )
}
