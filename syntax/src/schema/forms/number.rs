//! Sets of numbers: an interval, a step, and finite sets that are allowed or excluded.

use crate::schema::decimal::Decimal;

/// One end of an interval.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Bound {
    pub(crate) value: Decimal,
    pub(crate) exclusive: bool,
}

/// A conjunction of demands on a number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct NumberShape {
    pub(crate) lower: Option<Bound>,
    pub(crate) upper: Option<Bound>,
    /// The value is a multiple of this; 1 for integers.
    pub(crate) step: Option<Decimal>,
    pub(crate) not_steps: Vec<Decimal>,
    /// The value is one of these.
    pub(crate) only: Option<Vec<Decimal>>,
    pub(crate) except: Vec<Decimal>,
    /// `Some(true)` if it must be written without a point and an exponent, `Some(false)` if it must not.
    pub(crate) plain: Option<bool>,
    /// `true` if two steps have a common multiple that is too long to compute with.
    pub(crate) too_fine: bool,
}

impl NumberShape {
    /// Returns `true` if membership depends on multiples of steps other than 1, which takes an automaton.
    pub(crate) fn is_counted(&self) -> bool {
        let one = Decimal::one();
        let step = self.step.as_ref().is_some_and(|step| *step != one);
        let not_steps = self.not_steps.iter().any(|step| *step != one);
        self.only.is_none() && (step || not_steps || (self.step.is_some() && !self.not_steps.is_empty()))
    }

    /// Returns `true` if all values are whole numbers that can be written in digits alone.
    pub(crate) fn is_in_digits(&self) -> bool {
        let whole = self.step.as_ref().is_some_and(Decimal::is_integer);
        self.plain == Some(true) || self.plain.is_none() && whole
    }

    /// Returns `true` if a value meets all demands.
    pub(crate) fn contains(&self, value: &Decimal) -> bool {
        let above = self
            .lower
            .as_ref()
            .is_none_or(|bound| value > &bound.value || (value == &bound.value && !bound.exclusive));
        let below = self
            .upper
            .as_ref()
            .is_none_or(|bound| value < &bound.value || (value == &bound.value && !bound.exclusive));
        let multiple = |step: &Decimal| value.is_multiple_of(step).unwrap_or(false);
        above
            && below
            && self.step.as_ref().is_none_or(multiple)
            && !self.not_steps.iter().any(multiple)
            && !self.except.contains(value)
            && self.only.as_ref().is_none_or(|only| only.contains(value))
            // Only whole numbers have a spelling without a point.
            && (self.plain != Some(true) || value.is_integer())
    }
}
