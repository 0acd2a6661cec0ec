//! Anything with a label: "The serial number is X7" for a schema that asks for `serial_number`.
//!
//! The other domains teach what words mean; this one teaches that the words of a key may simply stand in the
//! text.

use super::dates::Day;
use super::scene::{Fact, Node, Scene, fact, fill};
use super::values::{Values, capital};
use super::words;

/// Labels whose values may be of any kind: underscores here are spaces in the text.
const LABELS: &[&str] = &[
    "serial_number",
    "model",
    "color",
    "size",
    "weight",
    "height",
    "width",
    "depth",
    "speed",
    "distance",
    "capital",
    "population",
    "area",
    "language",
    "currency",
    "population_density",
    "teacher",
    "student",
    "course",
    "grade",
    "score",
    "winner",
    "team",
    "captain",
    "coach",
    "stadium",
    "species",
    "habitat",
    "diet",
    "owner",
    "breed",
    "pet",
    "dog",
    "cat",
    "horse",
    "ship",
    "car",
    "engine",
    "driver",
    "license_plate",
    "mileage",
    "fuel",
    "project",
    "budget",
    "deadline",
    "leader",
    "manager",
    "client",
    "department",
    "floor",
    "room",
    "building",
    "street",
    "zip_code",
    "state",
    "region",
    "river",
    "mountain",
    "lake",
    "island",
    "planet",
    "star",
    "moon",
    "temperature",
    "pressure",
    "volume",
    "voltage",
    "power",
    "frequency",
    "version",
    "file",
    "folder",
    "format",
    "host",
    "port",
    "user",
    "password",
    "token",
    "server",
    "database",
    "table",
    "column",
    "song",
    "album",
    "artist",
    "band",
    "singer",
    "genre",
    "label",
    "composer",
    "instrument",
    "length",
    "recipe",
    "dish",
    "chef",
    "ingredient",
    "servings",
    "calories",
    "drug",
    "dose",
    "doctor",
    "patient",
    "hospital",
    "diagnosis",
    "symptom",
    "bank",
    "account",
    "balance",
    "interest_rate",
    "amount",
    "sender",
    "receiver",
    "subject",
    "topic",
    "chapter",
    "page",
    "section",
    "editor",
    "translator",
    "village",
    "school",
    "university",
    "degree",
    "major",
    "mother",
    "father",
    "sister",
    "brother",
    "neighbor",
    "landlord",
    "rent",
    "material",
    "shape",
    "pattern",
    "brand",
    "batch",
    "quantity",
    "warehouse",
    "supplier",
    "carrier",
    "tracking_number",
    "flag",
    "king",
    "queen",
    "president",
    "mayor",
    "minister",
    "party",
    "vote",
    "law",
    "article",
    "date",
    "time",
    "year",
    "month",
    "first_name",
    "last_name",
    "middle_name",
    "nickname",
    "code",
    "key",
    "value",
    "name",
    "type",
    "kind",
    "category",
    "priority",
    "status",
    "count",
];

fn node(values: &mut Values) -> (String, Node) {
    let words = match values.random.below(12) {
        0 => values.person(),
        1 => values.city(),
        2 => values.code(),
        3 => values.first(),
        4 => values.company(),
        5 | 6 => values.invented(),
        7 => values.goods(),
        8 => return number(values),
        9 => {
            return if values.random.chance(70) {
                whole(values)
            } else {
                several(values)
            };
        }
        10 => return day(values),
        _ => phrase(values),
    };
    (words.clone(), Node::Text(words))
}

fn number(values: &mut Values) -> (String, Node) {
    let digits = values.amount();
    (digits.clone(), Node::Number(digits))
}

fn whole(values: &mut Values) -> (String, Node) {
    let value = *values.random.pick(&[99, 999, 99_999]);
    let value = values.random.between(0, value);
    (value.to_string(), Node::Integer(value))
}

/// A list of whole numbers.
fn several(values: &mut Values) -> (String, Node) {
    let numbers: Vec<i64> = (0..2 + values.random.below(4))
        .map(|_| values.random.between(0, 120))
        .collect();
    let words: Vec<String> = numbers.iter().map(i64::to_string).collect();
    (
        super::people::listed(&words),
        Node::List(numbers.into_iter().map(Node::Integer).collect()),
    )
}

fn day(values: &mut Values) -> (String, Node) {
    let day = Day::any(values, 1900, 2040);
    let words = day.words(values);
    (words.clone(), Node::Formatted("date", day.iso(), words))
}

/// A few words that mean nothing together.
fn phrase(values: &mut Values) -> String {
    let lists = [
        words::TOPICS,
        words::GOODS,
        words::ADJECTIVES,
        words::GATHERINGS,
        words::JOBS,
    ];
    let mut out = Vec::new();
    for _ in 0..1 + values.random.below(4) {
        let list = *values.random.pick(&lists);
        out.push(values.from(list));
    }
    out.join(" ")
}

/// Some labels with their values, as sentences or as lines.
pub(crate) fn labelled(values: &mut Values) -> Scene {
    let count = 1 + values.random.below(5);
    let patterns = [
        "The {label} is {value}.",
        "The {label} is {value}.",
        "{Label}: {value}.",
        "{label}: {value}",
        "{Label} = {value};",
        "Its {label} is {value}.",
        "{value} is the {label}.",
        "We chose {value} as the {label}.",
    ];
    let pattern = *values.random.pick(&patterns);
    let same = values.random.chance(60);
    let separator = if values.random.chance(25) { "\n" } else { " " };
    let mut sentences = Vec::new();
    let mut said = Vec::new();
    for index in values.random.positions(LABELS.len(), count) {
        let key = &LABELS[index..=index];
        let label = key[0].replace('_', " ");
        let (words, node) = node(values);
        let pattern = if same {
            pattern
        } else {
            values.random.pick(&patterns)
        };
        let parts: [Fact; 3] = [
            fact("label", &[], label.clone(), Node::Flag(true)),
            fact("Label", &[], capital(&label), Node::Flag(true)),
            fact("value", &[], words.clone(), Node::Flag(true)),
        ];
        sentences.push(fill(pattern, &parts));
        said.push(fact(key[0], key, words, node));
    }
    Scene {
        text: sentences.join(separator),
        said,
        unsaid: Vec::new(),
    }
}

/// A bare value and a question for it: the simplest thing to learn copying from.
pub(crate) fn echo(values: &mut Values) -> Scene {
    let (words, node) = node(values);
    let key: &[&str] = &[
        "value", "text", "answer", "result", "word", "content", "output", "data",
    ];
    let text = if values.random.chance(60) {
        words.clone()
    } else {
        format!("Copy this: {words}")
    };
    Scene {
        text,
        said: vec![fact("value", key, words, node)],
        unsaid: Vec::new(),
    }
}
