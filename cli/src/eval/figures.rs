//! Computes the figures of a report from samples.

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// All samples of one measurement, in microseconds. Every one is kept: comparisons look at the tail, and an
/// estimate of a 99.9th percentile is of little use.
#[derive(Clone, Debug, Default)]
pub struct Samples(Vec<f32>);

impl Samples {
    /// Adds a sample.
    pub fn push(&mut self, microseconds: f64) {
        self.0.push(microseconds as f32);
    }

    /// Returns the number of samples.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns the mean; `None` if there is no sample.
    pub fn mean(&self) -> Option<f64> {
        let sum: f64 = self.0.iter().map(|it| f64::from(*it)).sum();
        (!self.0.is_empty()).then(|| sum / self.0.len() as f64)
    }

    /// Returns the smallest sample that at least each of these shares of the samples does not exceed; nothing
    /// if there is no sample.
    pub fn percentiles(&self, shares: &[f64]) -> Vec<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_by(f32::total_cmp);
        shares
            .iter()
            .filter_map(|share| nearest_rank(&sorted, *share))
            .collect()
    }

    /// Returns `count`, `mean`, percentiles and `max`; all but the count are null if there is no sample.
    pub fn summary(&self) -> Value {
        let mut sorted = self.0.clone();
        sorted.sort_by(f32::total_cmp);
        let mean = self.mean();
        let percentile = |share: f64| rounded(nearest_rank(&sorted, share));
        json!({
            "count": sorted.len(),
            "mean": rounded(mean),
            "p50": percentile(0.50),
            "p90": percentile(0.90),
            "p99": percentile(0.99),
            "p999": percentile(0.999),
            "max": rounded(sorted.last().map(|it| f64::from(*it))),
        })
    }
}

/// The shares of samples at which a distribution has points: each percent, and the tail.
const SHARES: [f64; 8] = [0.995, 0.998, 0.999, 0.9995, 0.9998, 0.9999, 0.99999, 1.0];

impl Samples {
    /// Returns points of the cumulative distribution: a sample, and the share of samples of at most it.
    pub fn distribution(&self) -> Vec<(f64, f64)> {
        let mut sorted = self.0.clone();
        sorted.sort_by(f32::total_cmp);
        let shares = (0..100).map(|percent| f64::from(percent) / 100.0).chain(SHARES);
        let points = shares.filter_map(|share| Some((nearest_rank(&sorted, share)?, share)));
        points.collect()
    }

    /// Returns the smallest sample that at least this share of the samples does not exceed; not a number if
    /// there is no sample.
    pub fn quantile(&self, share: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f32::total_cmp);
        nearest_rank(&sorted, share).unwrap_or(f64::NAN)
    }
}

/// Returns the smallest sample that at least this share of the samples does not exceed.
fn nearest_rank(sorted: &[f32], share: f64) -> Option<f64> {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).map(|it| f64::from(*it))
}

/// Rounds to two decimals: the clock cannot resolve a hundredth of a microsecond.
fn rounded(value: Option<f64>) -> Value {
    value.map_or(Value::Null, |it| json!((it * 100.0).round() / 100.0))
}

/// The number of occurrences of each reason, the most frequent first.
#[derive(Clone, Debug, Default)]
pub struct Reasons(BTreeMap<String, u64>);

impl Reasons {
    /// Counts a reason in its normal form, without the parts that differ from source to source.
    pub fn count(&mut self, reason: &str) {
        *self.0.entry(normal_form(reason)).or_default() += 1;
    }

    /// Returns `{reason: count}`.
    pub fn report(&self) -> Value {
        let mut all: Vec<_> = self.0.iter().collect();
        all.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        Value::Object(
            all.into_iter()
                .map(|(reason, count)| (reason.clone(), json!(count)))
                .collect::<Map<_, _>>(),
        )
    }
}

const REASON_CHARACTERS: usize = 120;

/// Replaces everything between double quotes by `…` and every number by `N`, and truncates a long text.
fn normal_form(reason: &str) -> String {
    let mut text = String::new();
    for (index, part) in reason.split('"').enumerate() {
        if index % 2 == 1 {
            text.push_str("\"…\"");
            continue;
        }
        for it in part.chars() {
            match it {
                digit if digit.is_ascii_digit() => text.extend((!text.ends_with('N')).then_some('N')),
                space if space.is_whitespace() => text.extend((!text.ends_with(' ')).then_some(' ')),
                other => text.push(other),
            }
        }
    }
    text.trim().chars().take(REASON_CHARACTERS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_samples() {
        let mut samples = Samples::default();
        (1..=1000).rev().for_each(|it| samples.push(f64::from(it)));
        let expected = json!({"count": 1000, "mean": 500.5, "p50": 500.0, "p90": 900.0, "p99": 990.0, "p999": 999.0, "max": 1000.0});
        assert_eq!(samples.summary(), expected);
        assert_eq!(samples.percentiles(&[0.01, 0.5, 1.0]), [10.0, 500.0, 1000.0]);
        assert_eq!((samples.count(), samples.mean()), (1000, Some(500.5)));
        assert!(Samples::default().percentiles(&[0.5]).is_empty());
    }

    #[test]
    fn one_sample_is_every_percentile_and_none_is_null() {
        let mut samples = Samples::default();
        assert_eq!(samples.summary()["p50"], Value::Null);
        samples.push(2.5);
        let summary = samples.summary();
        assert_eq!(
            (&summary["p50"], &summary["p999"], &summary["max"]),
            (&json!(2.5), &json!(2.5), &json!(2.5))
        );
    }

    #[test]
    fn a_distribution_rises_from_the_least_to_the_greatest_sample() {
        let mut samples = Samples::default();
        assert_eq!(samples.distribution(), []);
        (1..=1000).rev().for_each(|it| samples.push(f64::from(it)));
        let points = samples.distribution();
        assert_eq!((points[0], points[50]), ((1.0, 0.0), (500.0, 0.5)));
        assert_eq!((points.len(), points[points.len() - 1]), (108, (1000.0, 1.0)));
        assert!(points.is_sorted(), "{points:?}");
        assert_eq!(samples.quantile(0.25), 250.0);
    }

    #[test]
    fn like_reasons_are_counted_together() {
        let mut reasons = Reasons::default();
        reasons.count("the pattern \"^a$\" has 12 states, more than 10");
        reasons.count("the pattern \"b\" has 300 states, more than 10");
        reasons.count("`not` is not supported");
        let report = reasons.report();
        let listed: Vec<_> = report
            .as_object()
            .expect("an object")
            .iter()
            .map(|(key, it)| format!("{key} {it}"))
            .collect();
        assert_eq!(
            listed,
            [
                "the pattern \"…\" has N states, more than N 2",
                "`not` is not supported 1"
            ]
        );
    }
}
