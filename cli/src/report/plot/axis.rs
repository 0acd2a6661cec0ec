//! The axes of a plot: the range that they show, and the places of their ticks.

use std::ops::Range;

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};

use crate::report::model::Scale;

/// The number of ticks that fit beside an axis.
const TICKS: usize = 6;
/// The decades below the largest value that a logarithmic axis shows at most: a value far below all others,
/// which may be an error of rounding, must not squeeze them.
const DECADES: f64 = 12.0;

/// How an axis places values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mapping {
    /// By the values themselves.
    Linear,
    /// By their logarithms.
    Log,
    /// By the logarithms of what a share lacks to 1: each further nine of 90%, 99%, 99.9% takes as much
    /// space.
    Nines,
}

/// The nines that an axis of shares shows at least and at most.
const NINES: (f64, f64) = (2.0, 3.0);

/// An axis, which maps values to pixels.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Axis {
    mapping: Mapping,
    /// The places of both ends, which differ.
    low: f64,
    high: f64,
    /// The places of the ticks.
    ticks: Vec<f64>,
}

impl Axis {
    /// Creates an axis that shows all of these values. Those that are not finite are ignored.
    pub(super) fn of(values: impl Iterator<Item = f64>, scale: Scale) -> Self {
        let values = values.filter(|value| value.is_finite());
        match scale {
            Scale::Linear => linear(values),
            Scale::Log => logarithmic(values.filter(|value| *value > 0.0)),
        }
    }

    /// Creates an axis of shares, on which the tail of a distribution is as visible as its body.
    pub(super) fn of_shares(shares: impl Iterator<Item = f64>) -> Self {
        let partial = shares.filter(|share| (0.0..1.0).contains(share));
        let most = partial.fold(0.0, f64::max);
        // Rounding must not add a nine.
        let nines = (nines(most) - 1e-6).ceil().clamp(NINES.0, NINES.1);
        let decades = (1..=nines as i32).map(f64::from);
        Axis {
            mapping: Mapping::Nines,
            low: 0.0,
            // The greatest sample has a place of its own: all samples are at most as large.
            high: nines + 0.5,
            ticks: [0.0, self::nines(0.5)].into_iter().chain(decades).collect(),
        }
    }

    /// Returns the place of a value; a value beyond an end, such as zero on a logarithmic axis, lies at it.
    fn place(&self, value: f64) -> f64 {
        let place = match self.mapping {
            Mapping::Linear => value,
            Mapping::Log if value > 0.0 => value.log10(),
            Mapping::Log => self.low,
            Mapping::Nines if value < 1.0 => nines(value),
            Mapping::Nines => self.high,
        };
        place.clamp(self.low, self.high)
    }

    /// Returns the value at which bars begin: zero, or the lower end of a logarithmic axis, which has no
    /// zero.
    pub(super) fn zero(&self) -> f64 {
        self.value(self.place(0.0))
    }

    fn value(&self, place: f64) -> f64 {
        match self.mapping {
            Mapping::Linear => place,
            Mapping::Log => 10_f64.powf(place),
            Mapping::Nines => 1.0 - 10_f64.powf(-place),
        }
    }
}

impl Ranged for Axis {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        // Halves, because the difference of both ends may be more than a number can be.
        let (low, high) = (self.low / 2.0, self.high / 2.0);
        let share = (self.place(*value) / 2.0 - low) / (high - low);
        from + (share * f64::from(to - from)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        match hint.weight().allow_light_points() {
            true => Vec::new(),
            false => self.ticks.iter().map(|place| self.value(*place)).collect(),
        }
    }

    fn range(&self) -> Range<f64> {
        self.value(self.low)..self.value(self.high)
    }
}

/// Returns the place of a share below 1 among nines.
fn nines(share: f64) -> f64 {
    -(1.0 - share).log10()
}

/// Returns the least and the greatest value.
fn ends(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |ends, value| {
        let (low, high) = ends.unwrap_or((value, value));
        Some((low.min(value), high.max(value)))
    })
}

/// Creates an axis from 0, or from the least value if that is negative.
fn linear(values: impl Iterator<Item = f64>) -> Axis {
    let (low, high) = ends(values).unwrap_or((0.0, 1.0));
    // Differences of values must not overflow either.
    let (low, high) = (low.clamp(-1e300, 0.0), high.clamp(0.0, 1e300));
    let high = if high > low { high } else { low + 1.0 };
    let step = round_step((high - low) / (TICKS - 1) as f64);
    let (first, last) = ((low / step).floor(), (high / step).ceil());
    let ticks = (0..=(last - first) as usize).map(|index| (first + index as f64) * step);
    Axis {
        mapping: Mapping::Linear,
        low: first * step,
        high: last * step,
        ticks: ticks.collect(),
    }
}

/// Returns the least of 1, 2, 5, 10, … that is not below a step.
fn round_step(step: f64) -> f64 {
    let unit = 10_f64.powf(step.log10().floor()).max(f64::MIN_POSITIVE);
    let steps = [1.0, 2.0, 5.0].map(|times| times * unit);
    steps
        .into_iter()
        .find(|round| *round >= step)
        .unwrap_or(10.0 * unit)
}

/// Creates an axis from a power of ten to another, or between parts of a decade if all values lie in few.
fn logarithmic(values: impl Iterator<Item = f64>) -> Axis {
    let (low, high) = ends(values).unwrap_or((1.0, 10.0));
    let high = high.log10();
    let low = low.log10().max(high - DECADES);
    let is_short = high - low < 1.5;
    let parts: &[f64] = if is_short { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let (first, last) = (low.floor() as i32 - 1, high.ceil() as i32 + 1);
    let marks =
        (first..=last).flat_map(|decade| parts.iter().map(move |part| f64::from(decade) + part.log10()));
    let marks: Vec<f64> = marks.collect();
    // Rounding must not push a value beyond the mark that it equals.
    let start = marks.iter().rposition(|mark| *mark <= low + 1e-9).unwrap_or(0);
    let end = marks.iter().position(|mark| *mark >= high - 1e-9);
    let end = end.unwrap_or(marks.len() - 1).max(start + 1).min(marks.len() - 1);
    let shown = &marks[start..=end];
    let step = shown.len().div_ceil(TICKS + 1);
    Axis {
        mapping: Mapping::Log,
        low: shown[0],
        high: shown[shown.len() - 1],
        ticks: shown.iter().copied().step_by(step).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(values: &[f64], scale: Scale) -> Vec<f64> {
        let axis = Axis::of(values.iter().copied(), scale);
        let rounded = |place: &f64| (axis.value(*place) * 1e6).round() / 1e6;
        axis.ticks.iter().map(rounded).collect()
    }

    #[test]
    fn ticks_are_round_numbers() {
        assert_eq!(
            ticks(&[3.0, 97.0], Scale::Linear),
            [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]
        );
        assert_eq!(ticks(&[-1.0, 1.0], Scale::Linear), [-1.0, -0.5, 0.0, 0.5, 1.0]);
        assert_eq!(ticks(&[0.3, 250.0], Scale::Log), [0.1, 1.0, 10.0, 100.0, 1000.0]);
        assert_eq!(ticks(&[12.0, 80.0], Scale::Log), [10.0, 20.0, 50.0, 100.0]);
        assert_eq!(ticks(&[10.0], Scale::Log), [10.0, 20.0]);
    }

    #[test]
    fn each_nine_of_a_share_takes_as_much_space() {
        let axis = Axis::of_shares([0.0, 0.5, 0.999, 1.0, f64::NAN].into_iter());
        let ticks: Vec<f64> = axis.ticks.iter().map(|place| axis.value(*place)).collect();
        let expected = [0.0, 0.5, 0.9, 0.99, 0.999];
        assert!(
            ticks
                .iter()
                .zip(expected)
                .all(|(tick, share)| (tick - share).abs() < 1e-12),
            "{ticks:?}"
        );
        assert_eq!(ticks.len(), expected.len());
        let pixels = [0.0, 0.9, 0.99, 0.999, 1.0].map(|share| axis.map(&share, (0, 350)));
        assert_eq!(pixels, [0, 100, 200, 300, 350]);
    }

    /// A value of zero has no logarithm, and measurements may be missing or broken.
    #[test]
    fn every_list_of_values_has_an_axis() {
        let strange = [
            vec![],
            vec![0.0],
            vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY],
            vec![f64::MAX, f64::MIN],
            vec![f64::MIN_POSITIVE, f64::MAX],
            vec![-5.0],
            vec![5e-324],
        ];
        for values in strange {
            for scale in [Scale::Linear, Scale::Log] {
                let axis = Axis::of(values.iter().copied(), scale);
                assert!(axis.low < axis.high, "{values:?}: {axis:?}");
                assert!((2..=10).contains(&axis.ticks.len()), "{values:?}: {axis:?}");
                let all = axis.ticks.iter().chain([&axis.low, &axis.high]);
                assert!(all.clone().all(|place| place.is_finite()), "{values:?}: {axis:?}");
                let places = values
                    .iter()
                    .filter(|it| it.is_finite())
                    .map(|it| axis.place(*it));
                assert!(places.into_iter().all(|it| (axis.low..=axis.high).contains(&it)));
            }
        }
        let axis = Axis::of([0.0, 1.0, 1e5].into_iter(), Scale::Log);
        assert_eq!(
            (axis.place(0.0), axis.place(-1.0), axis.place(1e5)),
            (0.0, 0.0, 5.0)
        );
    }
}
