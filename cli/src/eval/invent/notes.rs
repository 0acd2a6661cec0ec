//! Texts about samples of water, and lives of people.

use serde_json::{Value, json};

use super::draw::{Draw, hundredths, in_words};
use super::shape::{Document, Shape, list, or_null};

/// A quantity, its unit, and the hundredths between which its values lie.
type Measure = (&'static str, &'static str, i64, i64);

const MEASURES: [Measure; 4] = [
    ("temperature", "°C", 300, 2400),
    ("acidity", "pH", 600, 850),
    ("nitrate", "mg/l", 200, 4900),
    ("oxygen", "mg/l", 500, 1200),
];

fn sample_number(draw: &mut Draw) -> String {
    format!("W{}", draw.between(100, 999))
}

pub(super) fn sample_line(draw: &mut Draw) -> Document {
    let (sample, day, city) = (sample_number(draw), draw.day(2025), draw.cities(1)[0]);
    let temperature = hundredths(draw.step(300, 2400, 10));
    Document {
        text: format!(
            "Water sample {sample}, taken near {city} on {}, had a temperature of {temperature} degrees.",
            day.spelled(draw, 1)
        ),
        fields: vec![
            ("sample", "", Shape::Text),
            ("place", "", Shape::Text),
            ("date", "", Shape::Date),
            ("temperature", "", Shape::Number),
        ],
        facts: json!({"sample": sample, "place": city, "date": day.iso(), "temperature": temperature}),
    }
}

pub(super) fn sample(draw: &mut Draw, level: u64) -> Document {
    let (sample, day, city) = (sample_number(draw), draw.day(2025), draw.cities(1)[0]);
    let by = draw.chance(50).then(|| draw.person());
    let readings: Vec<(Measure, i64)> = draw
        .some(&MEASURES, level as usize + 1)
        .into_iter()
        .map(|measure| (measure, draw.step(measure.2, measure.3, 10)))
        .collect();
    let who = by.as_ref().map_or_else(String::new, |it| format!(" by {it}"));
    let taken = format!(
        "{sample} was taken{who} near {city} on {}",
        day.spelled(draw, level)
    );
    let text = sample_text(draw, level, &taken, &readings);
    let readings: Vec<Value> = readings
        .iter()
        .map(|(it, value)| json!({"quantity": it.0, "value": hundredths(*value), "unit": it.1}))
        .collect();
    let reading = vec![
        (
            "quantity",
            "",
            Shape::OneOf(&["temperature", "acidity", "nitrate", "oxygen"]),
        ),
        ("value", "", Shape::Number),
        ("unit", "", Shape::Text),
    ];
    Document {
        text,
        fields: vec![
            ("sample", "", Shape::Text),
            ("place", "", Shape::Text),
            ("date", "", Shape::Date),
            ("taken_by", "", or_null(Shape::Text)),
            (
                "readings",
                "in the order of the text, as they were in the end",
                list(Shape::Object(reading)),
            ),
        ],
        facts: json!({
            "sample": sample, "place": city, "date": day.iso(), "taken_by": by, "readings": readings,
        }),
    }
}

fn sample_text(draw: &mut Draw, level: u64, taken: &str, readings: &[(Measure, i64)]) -> String {
    let told: Vec<String> = readings
        .iter()
        .map(|(it, value)| format!("{} {} {}", it.0, hundredths(*value), it.1))
        .collect();
    if level == 2 {
        return format!(
            "Sample {taken}. In the laboratory: {}. Sample W{} of the same week was lost.",
            told.join(", "),
            draw.between(10, 99)
        );
    }
    let ((name, unit, ..), value) = readings[0];
    format!(
        "Report by {}. The bottle {taken}, two days before the flood. First reading: {name} {} {unit}, {}. The device for {name} \
         was then found to be faulty; a second one shows {}. The other values were confirmed.",
        draw.person(),
        hundredths(value + draw.step(50, 300, 10)),
        told[1..].join(", "),
        hundredths(value)
    )
}

const JOBS: [&str; 6] = ["nurse", "surveyor", "cook", "teacher", "printer", "pilot"];
const EMPLOYERS: [&str; 5] = ["Alder Press", "Northgate", "Vale & Sons", "Meridian", "Tidewater"];

pub(super) fn person_line(draw: &mut Draw) -> Document {
    let year = draw.between(1950, 1985);
    let (name, born, city, job) = (draw.person(), draw.day(year), draw.cities(1)[0], draw.one(&JOBS));
    Document {
        text: format!(
            "{name} was born in {city} on {} and works as a {job}.",
            born.spelled(draw, 1)
        ),
        fields: vec![
            ("name", "", Shape::Text),
            ("born", "", Shape::Date),
            ("birthplace", "", Shape::Text),
            ("job", "", Shape::Text),
        ],
        facts: json!({"name": name, "born": born.iso(), "birthplace": city, "job": job}),
    }
}

pub(super) fn person(draw: &mut Draw, level: u64) -> Document {
    let year = draw.between(1950, 1985);
    let (name, born) = (draw.person(), draw.day(year));
    let city = draw.chance(60).then(|| draw.cities(1)[0]);
    let posts = posts(draw, level, year);
    let place = city.map_or_else(String::new, |it| format!(" in {it}"));
    let on = born.spelled(draw, level);
    let sibling = draw.day(year + 2);
    let text = match &posts[..] {
        [first, last] => format!("{name}, born{place} on {on}, was {} and is {}.", first.0, last.0),
        posts => format!(
            "{name} was born{place} on {on}, and a brother named {} on {}. The former was {}, then {}, and is {}. The brother \
             lives in {}.",
            draw.given(1)[0],
            sibling.spelled(draw, level),
            posts[0].0,
            posts[1].0,
            posts[2].0,
            draw.cities(1)[0]
        ),
    };
    let post = vec![
        ("employer", "", Shape::Text),
        ("job", "", Shape::Text),
        ("from", "a year", Shape::Whole),
        ("to", "a year, null if it lasts", or_null(Shape::Whole)),
    ];
    Document {
        text,
        fields: vec![
            ("name", "", Shape::Text),
            ("born", "", Shape::Date),
            ("birthplace", "", or_null(Shape::Text)),
            ("posts", "", list(Shape::Object(post))),
        ],
        facts: json!({
            "name": name, "born": born.iso(), "birthplace": city,
            "posts": posts.iter().map(|it| &it.1).collect::<Vec<_>>(),
        }),
    }
}

/// Returns the posts of a person, in words and as facts; the last one lasts.
fn posts(draw: &mut Draw, level: u64, born: i64) -> Vec<(String, Value)> {
    let employers = draw.some(&EMPLOYERS, level as usize);
    let mut from = born + draw.between(19, 26);
    let mut posts = Vec::new();
    for (index, employer) in employers.iter().enumerate() {
        let (job, years) = (draw.one(&JOBS), draw.between(2, 8));
        let is_last = index + 1 == employers.len();
        let words = match (is_last, level) {
            (true, _) => format!("since {from} a {job} at {employer}"),
            (_, 2) => format!("a {job} at {employer} from {from} to {}", from + years),
            _ => format!("a {job} at {employer} for {} years from {from}", in_words(years)),
        };
        let to = (!is_last).then_some(from + years);
        posts.push((
            words,
            json!({"employer": employer, "job": job, "from": from, "to": to}),
        ));
        from += years + draw.between(0, 2);
    }
    posts
}
