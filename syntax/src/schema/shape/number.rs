//! Sets of numbers while they are collected: the demands of keywords on a number, and their conjunctions.

use foldhash::HashSet;

use crate::schema::decimal::Decimal;
use crate::schema::forms::{Bound, NumberShape};
use crate::schema::node::{Keyword, Kind, Types, Whole};

use super::demand::Demand;
use super::listed::push_new;
use super::step::{NumberStep, Step};

/// The most multiples that are listed one by one.
const MOST_MULTIPLES: i128 = 500;

impl NumberShape {
    pub(crate) fn add(&mut self, step: NumberStep) -> bool {
        match step {
            NumberStep::Lower { value, exclusive } => {
                let new = Bound { value, exclusive };
                let tighter = self
                    .lower
                    .as_ref()
                    .is_none_or(|old| (&new.value, new.exclusive) > (&old.value, old.exclusive));
                if tighter {
                    self.lower = Some(new);
                }
            }
            NumberStep::Upper { value, exclusive } => {
                let new = Bound { value, exclusive };
                let tighter = self
                    .upper
                    .as_ref()
                    .is_none_or(|old| (&new.value, !new.exclusive) < (&old.value, !old.exclusive));
                if tighter {
                    self.upper = Some(new);
                }
            }
            NumberStep::Multiple(step) => self.add_step(step),
            NumberStep::NotMultiple(step) => push_new(&mut self.not_steps, step),
            NumberStep::Among(values) => match &mut self.only {
                Some(only) => {
                    let values: HashSet<&Decimal> = values.iter().collect();
                    only.retain(|value| values.contains(value));
                }
                None => self.only = Some(values.to_vec()),
            },
            NumberStep::NotAmong(values) => self.except.extend(values.iter().cloned()),
            NumberStep::Spelled(plain) => {
                if self.plain.is_some_and(|old| old != plain) {
                    return false;
                }
                self.plain = Some(plain);
            }
        }
        self.lower.is_none() || self.upper.is_none() || self.interval_has_values()
    }

    fn add_step(&mut self, step: Decimal) {
        let common = match &self.step {
            None => Some(step.clone()),
            Some(old) => old.common_multiple(&step),
        };
        self.too_fine |= common.as_ref().is_none_or(|step| step.scaled().is_none());
        self.step = Some(common.unwrap_or(step));
    }

    fn interval_has_values(&self) -> bool {
        let (Some(lower), Some(upper)) = (&self.lower, &self.upper) else {
            return true;
        };
        lower.value < upper.value || (lower.value == upper.value && !lower.exclusive && !upper.exclusive)
    }

    /// Normalises the demands: if there are finitely many values, they are listed. Returns `false` if none
    /// are left.
    pub(crate) fn finish(&mut self) -> bool {
        if let (Some(step), true) = (&self.step, !self.not_steps.is_empty())
            && self
                .not_steps
                .iter()
                .any(|not| step.is_multiple_of(not) == Some(true))
        {
            return false;
        }
        let divides_all = |step: &Decimal| Decimal::one().is_multiple_of(step) == Some(true);
        if self.plain == Some(true) && self.not_steps.iter().any(divides_all) {
            return false;
        }
        if let (Some(lower), Some(upper)) = (&self.lower, &self.upper)
            && self.only.is_none()
            && lower.value == upper.value
        {
            self.only = Some(vec![lower.value.clone()]);
        }
        if self.only.is_none() && self.plain.is_none() {
            self.only = self.few_multiples();
        }
        if let Some(mut kept) = self.only.take() {
            let except: HashSet<Decimal> = self.except.drain(..).collect();
            kept.retain(|value| !except.contains(value) && self.contains(value));
            *self = NumberShape {
                only: Some(kept),
                plain: self.plain,
                ..NumberShape::default()
            };
            return self.only.as_ref().is_some_and(|only| !only.is_empty());
        }
        self.except.sort();
        self.except.dedup();
        let all = self.except.clone();
        self.except.clear();
        self.except = all.into_iter().filter(|value| self.contains(value)).collect();
        self.some_whole_number_fits()
    }

    /// Returns the numbers of an interval one by one, if they are multiples that would take a large
    /// automaton.
    fn few_multiples(&self) -> Option<Vec<Decimal>> {
        let (Some(lower), Some(upper), Some(step)) = (&self.lower, &self.upper, &self.step) else {
            return None;
        };
        if *step == Decimal::one() && self.not_steps.is_empty() {
            return None;
        }
        step.multiples_between(&lower.value, &upper.value, MOST_MULTIPLES)
    }

    /// Checks whether an interval of integers contains one; other steps are left to the automata.
    fn some_whole_number_fits(&self) -> bool {
        let whole = self.plain == Some(true) || self.step.as_ref().is_some_and(Decimal::is_integer);
        let (Some(lower), Some(upper), true) = (&self.lower, &self.upper, whole) else {
            return true;
        };
        match (
            lower.value.ceil(lower.exclusive),
            upper.value.floor(upper.exclusive),
        ) {
            (Some(lower), Some(upper)) => lower <= upper,
            _ => true,
        }
    }
}

/// Returns the demand of `type` on a kind of value.
pub(crate) fn type_demand(types: Types, whole: Whole, kind: Kind) -> Demand {
    if types.has(kind) {
        return Demand::nothing();
    }
    if kind != Kind::Number || !types.has_integers() {
        return Demand::Never;
    }
    Demand::one(Step::Number(match whole {
        Whole::Value => NumberStep::Multiple(Decimal::one()),
        Whole::Spelling => NumberStep::Spelled(true),
    }))
}

/// Returns the demand of the denial of `type` on a kind of value.
pub(crate) fn not_type_demand(types: Types, whole: Whole, kind: Kind) -> Demand {
    if types.has(kind) {
        return Demand::Never;
    }
    if kind != Kind::Number || !types.has_integers() {
        return Demand::nothing();
    }
    Demand::one(Step::Number(match whole {
        Whole::Value => NumberStep::NotMultiple(Decimal::one()),
        Whole::Spelling => NumberStep::Spelled(false),
    }))
}

/// Returns the demand of a bound or a step on a number.
pub(crate) fn affirm(keyword: &Keyword) -> Demand {
    Demand::one(Step::Number(match keyword {
        Keyword::Minimum { value, exclusive } => NumberStep::Lower {
            value: value.clone(),
            exclusive: *exclusive,
        },
        Keyword::Maximum { value, exclusive } => NumberStep::Upper {
            value: value.clone(),
            exclusive: *exclusive,
        },
        Keyword::MultipleOf(step) => NumberStep::Multiple(step.clone()),
        _ => return Demand::nothing(),
    }))
}

/// Returns the demand of the denial of a bound or a step on a number.
pub(crate) fn deny(keyword: &Keyword) -> Demand {
    Demand::one(Step::Number(match keyword {
        Keyword::Minimum { value, exclusive } => NumberStep::Upper {
            value: value.clone(),
            exclusive: !exclusive,
        },
        Keyword::Maximum { value, exclusive } => NumberStep::Lower {
            value: value.clone(),
            exclusive: !exclusive,
        },
        Keyword::MultipleOf(step) => NumberStep::NotMultiple(step.clone()),
        _ => return Demand::Never,
    }))
}
