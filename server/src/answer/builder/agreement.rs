//! The agreement of JSON values, and the choice of the values that samples agree on.
//!
//! Two scalars agree wholly if they are equal; numbers are compared by value. Strings that differ agree by
//! the overlap of their words (F1, as in Rajpurkar et al. 2016). The agreement of arrays and objects is the
//! mean over the places or keys that either of them has. The value of minimum Bayes risk under this gain is
//! the one with the largest mean agreement with the other samples (Kumar and Byrne 2004); under the gain of
//! equality it is the one that occurs most often (self-consistency, Wang et al. 2022).

use std::collections::HashMap;

use serde_json::{Map, Value};

/// A sample to choose among.
#[derive(Clone, Debug)]
pub(super) struct Ballot {
    /// The value that it wrote.
    pub(super) value: Value,
    /// Its log-probability per token, which decides ties.
    pub(super) log_probability: f64,
}

/// Returns the numbers of the samples, those first whose value occurs most often: one of each value, the
/// likeliest, and then all others in the same order.
pub(super) fn majority(ballots: &[Ballot]) -> Vec<usize> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for sample in by_likelihood(ballots) {
        let is_same = |group: &&mut Vec<usize>| equal(&ballots[group[0]].value, &ballots[sample].value);
        match groups.iter_mut().find(is_same) {
            Some(group) => group.push(sample),
            None => groups.push(vec![sample]),
        }
    }
    // A stable sort: groups of one size stay in the order of their likeliest samples.
    groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
    let firsts = groups.iter().map(|group| group[0]);
    let others = groups.iter().flat_map(|group| &group[1..]).copied();
    firsts.chain(others).collect()
}

/// Returns the numbers of the samples, each with its mean agreement with the others, the largest first.
pub(super) fn by_agreement(ballots: &[Ballot]) -> Vec<(usize, f64)> {
    let mean = |sample: usize| {
        let others = (0..ballots.len()).filter(|&other| other != sample);
        let all: f64 = others
            .map(|other| agreement(&ballots[sample].value, &ballots[other].value))
            .sum();
        match ballots.len() {
            1 => 1.0,
            count => all / (count - 1) as f64,
        }
    };
    let mut order: Vec<(usize, f64)> = by_likelihood(ballots)
        .into_iter()
        .map(|sample| (sample, mean(sample)))
        .collect();
    order.sort_by(|one, other| other.1.total_cmp(&one.1));
    order
}

/// Returns the numbers of the samples, the likeliest first.
pub(super) fn by_likelihood(ballots: &[Ballot]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..ballots.len()).collect();
    order.sort_by(|&one, &other| {
        let log_probability = |sample: usize| ballots[sample].log_probability;
        log_probability(other).total_cmp(&log_probability(one))
    });
    order
}

/// Returns how far two values agree, from 0 to 1.
fn agreement(one: &Value, other: &Value) -> f64 {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let shared: f64 = one
                .iter()
                .filter_map(|(key, value)| Some(agreement(value, other.get(key)?)))
                .sum();
            share(shared, union(one, other))
        }
        (Value::Array(one), Value::Array(other)) => {
            let shared: f64 = one
                .iter()
                .zip(other)
                .map(|(one, other)| agreement(one, other))
                .sum();
            share(shared, one.len().max(other.len()))
        }
        (Value::String(one), Value::String(other)) if one != other => overlap(one, other),
        _ => f64::from(u8::from(equal(one, other))),
    }
}

/// Returns the share of a sum in a number of places; two empty lists of places agree.
fn share(sum: f64, places: usize) -> f64 {
    match places {
        0 => 1.0,
        places => sum / places as f64,
    }
}

fn union(one: &Map<String, Value>, other: &Map<String, Value>) -> usize {
    one.len() + other.keys().filter(|key| !one.contains_key(*key)).count()
}

/// Returns the harmonic mean of the shares of words of each text that occur in the other one.
fn overlap(one: &str, other: &str) -> f64 {
    let (one, other) = (words(one), words(other));
    let total: usize = one.values().chain(other.values()).sum();
    let shared = one
        .iter()
        .filter_map(|(word, count)| Some(count.min(other.get(word)?)));
    match total {
        0 => 0.0,
        total => (2 * shared.sum::<usize>()) as f64 / total as f64,
    }
}

/// Returns the words of a text, with how often each occurs.
fn words(text: &str) -> HashMap<&str, usize> {
    let words = text.split(|letter: char| !letter.is_alphanumeric());
    let mut counts = HashMap::new();
    for word in words.filter(|word| !word.is_empty()) {
        *counts.entry(word).or_default() += 1;
    }
    counts
}

/// Returns `true` if two values are equal: numbers by value, objects in any order of their keys.
pub(super) fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let is_there =
                |(key, value): (&String, &Value)| other.get(key).is_some_and(|other| equal(value, other));
            one.len() == other.len() && one.iter().all(is_there)
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| equal(one, other))
        }
        (Value::Number(one), Value::Number(other)) => {
            decimal(&one.to_string()) == decimal(&other.to_string())
        }
        (one, other) => one == other,
    }
}

/// Returns the sign, the digits without zeros at either end, and the exponent of a number; or its text if the
/// exponent is out of range.
fn decimal(text: &str) -> (bool, String, i64) {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_negative = whole.starts_with('-');
    let digits = format!("{}{fraction}", whole.trim_start_matches('-'));
    let kept = digits.trim_end_matches('0');
    let zeros = (digits.len() - kept.len()) as i64;
    let kept = kept.trim_start_matches('0');
    if kept.is_empty() {
        return (false, String::new(), 0);
    }
    let exponent = exponent.parse::<i64>().ok();
    let exponent = exponent.and_then(|exponent| exponent.checked_add(zeros - fraction.len() as i64));
    match exponent {
        Some(exponent) => (is_negative, kept.to_owned(), exponent),
        None => (is_negative, text.to_owned(), 0),
    }
}

/// Lists the scalars of a value, each with its JSON pointer. Empty arrays and objects count as scalars.
pub(super) fn scalars<'v>(value: &'v Value, path: &str, found: &mut Vec<(String, &'v Value)>) {
    match value {
        Value::Object(entries) if !entries.is_empty() => {
            for (key, value) in entries {
                let key = key.replace('~', "~0").replace('/', "~1");
                scalars(value, &format!("{path}/{key}"), found);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (index, value) in items.iter().enumerate() {
                scalars(value, &format!("{path}/{index}"), found);
            }
        }
        _ => found.push((path.to_owned(), value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ballots(values: &[(&str, f64)]) -> Vec<Ballot> {
        let ballot = |&(text, log_probability): &(&str, f64)| Ballot {
            value: serde_json::from_str(text).expect("JSON"),
            log_probability,
        };
        values.iter().map(ballot).collect()
    }

    fn agree(one: &str, other: &str) -> f64 {
        let [one, other] = [one, other].map(|text| serde_json::from_str::<Value>(text).expect("JSON"));
        let found = agreement(&one, &other);
        assert!(
            (found - agreement(&other, &one)).abs() < 1e-12,
            "{one} and {other}"
        );
        found
    }

    #[test]
    fn values_agree_by_their_fields() {
        for (one, other, expected) in [
            ("1", "1.0", 1.0),
            ("100", "1e2", 1.0),
            ("-0", "0.00", 1.0),
            ("12345678901234567890123", "12345678901234567890124", 0.0),
            ("1", "\"1\"", 0.0),
            ("null", "false", 0.0),
            ("{}", "{}", 1.0),
            ("{}", "[]", 0.0),
            (r#"{"a":1,"b":2}"#, r#"{"b":2.0,"a":1}"#, 1.0),
            (r#"{"a":1,"b":2}"#, r#"{"a":1,"c":2}"#, 1.0 / 3.0),
            ("[1,2,3]", "[1,3]", 1.0 / 3.0),
            ("[]", "[1]", 0.0),
            ("\"Maria Keller\"", "\"Maria K. Keller\"", 4.0 / 5.0),
            ("\"a a\"", "\"a\"", 2.0 / 3.0),
            ("\"!\"", "\"?\"", 0.0),
            ("\"x\"", "\"x\"", 1.0),
            (r#"{"p":{"x":1,"y":[1,2]}}"#, r#"{"p":{"x":1,"y":[1,9]}}"#, 0.75),
        ] {
            assert!((agree(one, other) - expected).abs() < 1e-12, "{one} and {other}");
        }
    }

    #[test]
    fn the_value_that_occurs_most_often_comes_first() {
        let all = [
            (r#"{"a":1}"#, -0.1),
            (r#"{"a":2}"#, -3.0),
            (r#"{"a":3}"#, -0.5),
            (r#"{"a":2.0}"#, -2.0),
            (r#"{"a":20e-1}"#, -4.0),
        ];
        assert_eq!(majority(&ballots(&all)), [3, 0, 2, 1, 4]);
        let apart = [("1", -2.0), ("2", -1.0), ("3", -3.0)];
        assert_eq!(majority(&ballots(&apart)), [1, 0, 2]);
    }

    #[test]
    fn the_value_of_least_risk_need_not_occur_most_often() {
        // Two equal outliers, and three that share two of three fields with each other.
        let all = [
            (r#"{"a":9,"b":9,"c":9}"#, -1.0),
            (r#"{"a":9,"b":9,"c":9}"#, -1.0),
            (r#"{"a":1,"b":2,"c":3}"#, -2.0),
            (r#"{"a":1,"b":2,"c":4}"#, -1.5),
            (r#"{"a":1,"b":2,"c":5}"#, -1.8),
        ];
        let ballots = ballots(&all);
        assert_eq!(majority(&ballots)[0], 0);
        let order = by_agreement(&ballots);
        let samples: Vec<usize> = order.iter().map(|(sample, _)| *sample).collect();
        assert_eq!(samples, [3, 4, 2, 0, 1]);
        assert!((order[0].1 - (2.0 / 3.0 + 2.0 / 3.0) / 4.0).abs() < 1e-12);
        assert_eq!(by_agreement(&ballots[..1]), [(0, 1.0)]);
    }

    #[test]
    fn scalars_have_pointers() {
        let value = json!({"a/b": [1, {"c": null}], "d": {}});
        let mut found = Vec::new();
        scalars(&value, "", &mut found);
        let paths: Vec<&str> = found.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(paths, ["/a~1b/0", "/a~1b/1/c", "/d"]);
    }
}
