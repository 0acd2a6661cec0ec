//! The difference between two JSON values by field.
//!
//! A *field* is a place that has a scalar or an empty container. Fields of the wanted value are right or
//! wrong, and fields that nobody asked for are wrong. A field that is null and one that is absent are the
//! same: both say that nothing is known.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::{Map, Value};

use super::decimal::Decimal;

/// The JSON value that is right, with the places at which others are right too.
///
/// Places are JSON pointers into the wanted value.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Wanted {
    pub(crate) value: Value,
    /// Other values that are right at a place.
    pub(super) or: BTreeMap<String, Vec<Value>>,
    /// The places that may be absent.
    pub(super) optional: BTreeSet<String>,
    /// The arrays whose items may come in any order.
    pub(super) unordered: BTreeSet<String>,
    /// `true` if texts are compared by their letters and digits alone, in any case.
    pub(super) fold: bool,
}

/// A place at which an answer is wrong.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Difference {
    /// The JSON pointer into the answer.
    pub(crate) pointer: String,
    /// The value of the answer; `None` if there is none.
    pub(crate) got: Option<Value>,
    /// The value that is right; `None` if there should be none.
    pub(crate) wanted: Option<Value>,
}

/// The longest value that is shown, in characters.
const SHOWN: usize = 60;

impl fmt::Display for Difference {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: &Option<Value>| match value {
            None => "nothing".to_owned(),
            Some(value) => {
                let text = value.to_string();
                match text.char_indices().nth(SHOWN) {
                    Some((end, _)) => format!("{}…", &text[..end]),
                    None => text,
                }
            }
        };
        let place = if self.pointer.is_empty() {
            "the answer"
        } else {
            &self.pointer
        };
        write!(
            to,
            "{place}: {}, wanted {}",
            shown(&self.got),
            shown(&self.wanted)
        )
    }
}

/// The result of a comparison.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Compared {
    /// The number of fields that are right.
    pub(super) right: usize,
    /// The number of fields.
    pub(super) all: usize,
    pub(super) differences: Vec<Difference>,
}

impl Compared {
    /// Returns the share of right fields; 1 if nothing was wanted and nothing is there.
    pub(super) fn share(&self) -> f64 {
        match self.all {
            0 => 1.0,
            all => self.right as f64 / all as f64,
        }
    }

    pub(super) fn is_right(&self) -> bool {
        self.differences.is_empty()
    }

    fn right(fields: usize) -> Self {
        Self {
            right: fields,
            all: fields,
            differences: Vec::new(),
        }
    }

    fn wrong(place: &str, got: Option<&Value>, wanted: Option<&Value>) -> Self {
        let fields = |value: Option<&Value>| value.map_or(0, fields);
        Self {
            right: 0,
            all: fields(wanted).max(fields(got).min(1)),
            differences: vec![Difference {
                pointer: place.to_owned(),
                got: got.cloned(),
                wanted: wanted.cloned(),
            }],
        }
    }

    /// Counts all fields of a value that nobody asked for.
    fn extra(place: &str, got: &Value) -> Self {
        Self {
            all: fields(got),
            ..Self::wrong(place, Some(got), None)
        }
    }

    fn add(&mut self, other: Self) {
        self.right += other.right;
        self.all += other.all;
        self.differences.extend(other.differences);
    }
}

/// Compares a value with the one that is wanted.
pub(super) fn compare(wanted: &Wanted, got: &Value) -> Compared {
    wanted.compare(&wanted.value, Some(got), "", "")
}

/// Returns `true` if two values are the same.
pub(super) fn is_same(wanted: &Value, got: &Value, fold: bool) -> bool {
    let plain = Wanted {
        fold,
        ..Wanted::default()
    };
    plain.compare(wanted, Some(got), "", "").is_right()
}

/// Returns `true` if two texts are the same.
pub(super) fn is_same_text(wanted: &str, got: &str, fold: bool) -> bool {
    let folded = |text: &str| -> String {
        let kept = text.chars().filter(|it| it.is_alphanumeric());
        kept.flat_map(char::to_lowercase).collect()
    };
    wanted == got || (fold && !folded(wanted).is_empty() && folded(wanted) == folded(got))
}

/// Returns the number of fields of a value.
fn fields(value: &Value) -> usize {
    match value {
        Value::Object(members) if !members.is_empty() => members.values().map(fields).sum(),
        Value::Array(items) if !items.is_empty() => items.iter().map(fields).sum(),
        _ => 1,
    }
}

/// Returns the pointer to a member of a place.
fn below(place: &str, key: &str) -> String {
    format!("{place}/{}", key.replace('~', "~0").replace('/', "~1"))
}

impl Wanted {
    /// Compares the value at a place of the answer with the one at a place of the wanted value. The two
    /// places differ only within arrays that have no order.
    fn compare(&self, wanted: &Value, got: Option<&Value>, at: &str, place: &str) -> Compared {
        let got = got.filter(|it| !it.is_null());
        if got.is_none() && self.optional.contains(at) {
            return Compared::default();
        }
        let compared = self.compare_with(wanted, got, at, place);
        let others = self.or.get(at).map_or(&[][..], Vec::as_slice);
        let is_other = got.is_some_and(|got| others.iter().any(|it| is_same(it, got, self.fold)));
        match !compared.is_right() && is_other {
            true => Compared::right(fields(wanted)),
            false => compared,
        }
    }

    fn compare_with(&self, wanted: &Value, got: Option<&Value>, at: &str, place: &str) -> Compared {
        match (wanted, got) {
            (Value::Null, None) => Compared::right(1),
            (Value::Object(wanted), Some(Value::Object(got))) => self.objects(wanted, got, at, place),
            (Value::Array(wanted), Some(Value::Array(got))) if self.unordered.contains(at) => {
                self.unordered(wanted, got, at, place)
            }
            (Value::Array(wanted), Some(Value::Array(got))) => self.lists(wanted, got, at, place),
            (Value::Number(one), Some(Value::Number(other))) if same_number(one, other) => Compared::right(1),
            (Value::String(one), Some(Value::String(other))) if is_same_text(one, other, self.fold) => {
                Compared::right(1)
            }
            (Value::Bool(one), Some(Value::Bool(other))) if one == other => Compared::right(1),
            _ => Compared::wrong(place, got, Some(wanted)),
        }
    }

    fn objects(
        &self,
        wanted: &Map<String, Value>,
        got: &Map<String, Value>,
        at: &str,
        place: &str,
    ) -> Compared {
        if wanted.is_empty() && got.values().all(Value::is_null) {
            return Compared::right(1);
        }
        let mut compared = Compared::default();
        for (key, value) in wanted {
            compared.add(self.compare(value, got.get(key), &below(at, key), &below(place, key)));
        }
        let extra = got
            .iter()
            .filter(|(key, value)| !wanted.contains_key(*key) && !value.is_null());
        for (key, value) in extra {
            compared.add(Compared::extra(&below(place, key), value));
        }
        compared
    }

    fn lists(&self, wanted: &[Value], got: &[Value], at: &str, place: &str) -> Compared {
        if wanted.is_empty() && got.is_empty() {
            return Compared::right(1);
        }
        let mut compared = Compared::default();
        for (index, value) in wanted.iter().enumerate() {
            let index_text = index.to_string();
            let (at, place) = (below(at, &index_text), below(place, &index_text));
            compared.add(self.compare(value, got.get(index), &at, &place));
        }
        for (index, value) in got.iter().enumerate().skip(wanted.len()) {
            compared.add(Compared::extra(&below(place, &index.to_string()), value));
        }
        compared
    }

    /// Compares arrays without order: as many items as possible are paired with one that is right, and each
    /// of the others with the most similar one that is left.
    fn unordered(&self, wanted: &[Value], got: &[Value], at: &str, place: &str) -> Compared {
        if wanted.is_empty() && got.is_empty() {
            return Compared::right(1);
        }
        let item = |index: usize, other: usize| {
            let (at, place) = (below(at, &index.to_string()), below(place, &other.to_string()));
            self.compare(&wanted[index], Some(&got[other]), &at, &place)
        };
        let right: Vec<Vec<usize>> = (0..wanted.len())
            .map(|index| (0..got.len()).filter(|it| item(index, *it).is_right()).collect())
            .collect();
        let mut owners = matching(&right, got.len());
        let mut compared = Compared::default();
        for (index, value) in wanted.iter().enumerate() {
            if let Some(other) = owners.iter().position(|owner| *owner == Some(index)) {
                compared.add(item(index, other));
                continue;
            }
            let free = (0..got.len()).filter(|it| owners[*it].is_none());
            let nearest = free
                .map(|other| (item(index, other), other))
                .filter(|(it, _)| it.right > 0)
                .max_by(|(one, first), (other, second)| {
                    one.share().total_cmp(&other.share()).then(second.cmp(first))
                });
            match nearest {
                Some((nearest, other)) => {
                    owners[other] = Some(index);
                    compared.add(nearest);
                }
                None => {
                    let (at, place) = (below(at, &index.to_string()), below(place, &index.to_string()));
                    compared.add(self.compare(value, None, &at, &place));
                }
            }
        }
        for other in (0..got.len()).filter(|it| owners[*it].is_none()) {
            compared.add(Compared::extra(&below(place, &other.to_string()), &got[other]));
        }
        compared
    }
}

/// Returns, for each thing of the right side, the thing of the left side that it is paired with, so that as
/// many as possible are paired. `edges` has the possible partners of each thing of the left side.
fn matching(edges: &[Vec<usize>], right: usize) -> Vec<Option<usize>> {
    fn finds_partner(
        thing: usize,
        edges: &[Vec<usize>],
        seen: &mut [bool],
        owners: &mut [Option<usize>],
    ) -> bool {
        edges[thing].iter().any(|&partner| {
            if std::mem::replace(&mut seen[partner], true) {
                return false;
            }
            let is_free = match owners[partner] {
                None => true,
                Some(owner) => finds_partner(owner, edges, seen, owners),
            };
            if is_free {
                owners[partner] = Some(thing);
            }
            is_free
        })
    }
    let mut owners = vec![None; right];
    for thing in 0..edges.len() {
        finds_partner(thing, edges, &mut vec![false; right], &mut owners);
    }
    owners
}

/// Numbers whose exponents do not fit are the same if they are spelled alike.
fn same_number(one: &serde_json::Number, other: &serde_json::Number) -> bool {
    let (one, other) = (one.to_string(), other.to_string());
    match (Decimal::parse(&one), Decimal::parse(&other)) {
        (Some(one), Some(other)) => one == other,
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn wanted(value: Value) -> Wanted {
        Wanted {
            value,
            ..Wanted::default()
        }
    }

    /// The right fields, all fields, and the places that differ.
    fn counts(wanted: &Wanted, got: &Value) -> (usize, usize, Vec<String>) {
        let compared = compare(wanted, got);
        let places = compared.differences.iter().map(|it| it.pointer.clone());
        (compared.right, compared.all, places.collect())
    }

    #[test]
    fn fields_are_counted() {
        let task = wanted(json!({"a": 1, "b": {"c": "x", "d/e": [1, 2, 3]}, "f": null}));
        let right = json!({"b": {"d/e": [1.0, 2, 3e0], "c": "x"}, "a": 1});
        assert_eq!(counts(&task, &right), (6, 6, vec![]));
        let half = json!({"a": "1", "b": {"c": "x", "d/e": [1, 3]}, "f": 0, "g": [1, 2]});
        let places = ["/a", "/b/d~1e/1", "/b/d~1e/2", "/f", "/g"].map(str::to_owned);
        assert_eq!(counts(&task, &half), (2, 8, places.to_vec()));
        assert_eq!(counts(&task, &json!([])), (0, 6, vec![String::new()]));
        assert_eq!(counts(&task, &Value::Null), (0, 6, vec![String::new()]));
    }

    #[test]
    fn empty_containers_are_fields() {
        assert_eq!(
            counts(&wanted(json!({"a": []})), &json!({"a": []})),
            (1, 1, vec![])
        );
        assert_eq!(
            counts(&wanted(json!([])), &json!([1, 2])),
            (0, 2, vec!["/0".to_owned(), "/1".to_owned()])
        );
        assert_eq!(counts(&wanted(json!({})), &json!({"a": null})), (1, 1, vec![]));
        assert_eq!(compare(&wanted(json!({})), &json!({})).share(), 1.0);
    }

    #[test]
    fn other_values_and_absent_ones_are_right_where_a_task_says_so() {
        let mut task = wanted(json!({"name": "f", "arguments": {"unit": "m", "size": 2}}));
        task.or
            .insert("/arguments/unit".to_owned(), vec![json!("metre"), json!(["m"])]);
        task.optional.insert("/arguments/size".to_owned());
        for (arguments, right, all) in [
            (json!({"unit": "metre", "size": 2}), 3, 3),
            (json!({"unit": ["m"]}), 2, 2),
            (json!({"unit": "km", "size": 2}), 2, 3),
            (json!({"unit": "m", "size": 3}), 2, 3),
        ] {
            let (found, of, _) = counts(&task, &json!({"name": "f", "arguments": arguments}));
            assert_eq!((found, of), (right, all), "{arguments}");
        }
    }

    // Pairing the first right partner of each would leave the second item without one.
    #[test]
    fn items_without_order_are_paired_as_well_as_possible() {
        let mut task = wanted(json!([{"a": 1}, {"a": 2}]));
        task.unordered.insert(String::new());
        task.or.insert("/0/a".to_owned(), vec![json!(2)]);
        assert_eq!(counts(&task, &json!([{"a": 2}, {"a": 1}])), (2, 2, vec![]));
        assert_eq!(counts(&task, &json!([{"a": 1}, {"a": 2}])), (2, 2, vec![]));
        assert_eq!(
            counts(&task, &json!([{"a": 2}, {"a": 2}, {"b": 3}])),
            (2, 3, vec!["/2".to_owned()])
        );
    }

    #[test]
    fn the_most_similar_item_is_told_what_it_lacks() {
        let mut task = wanted(json!({"calls": [{"name": "f", "x": 1, "y": 2}, {"name": "g", "x": 5}]}));
        task.unordered.insert("/calls".to_owned());
        let got = json!({"calls": [{"name": "g", "x": 6}, {"name": "f", "x": 1, "y": 3}]});
        let places = ["/calls/1/y", "/calls/0/x"].map(str::to_owned).to_vec();
        assert_eq!(counts(&task, &got), (3, 5, places));
        assert_eq!(
            counts(&task, &json!({"calls": []})),
            (0, 5, vec!["/calls/0".to_owned(), "/calls/1".to_owned()])
        );
    }

    #[test]
    fn texts_are_folded_where_asked_for() {
        for (one, other, fold, same) in [
            ("Elm St. 4", "elm st 4", true, true),
            ("Elm St. 4", "elm st 4", false, false),
            ("ÉCOLE", "école", true, true),
            ("+", "-", true, false),
            ("", "", false, true),
            ("a", "", true, false),
        ] {
            assert_eq!(is_same_text(one, other, fold), same, "{one} {other}");
        }
    }

    #[test]
    fn numbers_are_compared_as_they_are_written() {
        let number = |text: &str| serde_json::from_str::<Value>(text).expect("a number");
        assert!(is_same(&number("1e400"), &number("10e399"), false));
        assert!(!is_same(
            &number("9007199254740993"),
            &number("9007199254740992"),
            false
        ));
        let absurd = "1e99999999999999999999";
        assert!(is_same(&number(absurd), &number(absurd), false));
        assert!(!is_same(&number("1"), &json!("1"), true));
    }

    #[test]
    fn a_difference_is_told_in_a_line() {
        let difference = compare(&wanted(json!({"a": 1})), &json!({"a": "x".repeat(100)})).differences;
        let told = difference[0].to_string();
        assert!(
            told.starts_with("/a: \"xxx") && told.ends_with("x…, wanted 1"),
            "{told}"
        );
    }
}
