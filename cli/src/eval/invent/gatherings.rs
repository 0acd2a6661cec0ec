//! Texts about events, and trips of several legs.

use serde_json::{Value, json};

use super::draw::{Day, Draw, clock, clock_spelled, in_words};
use super::shape::{Document, Shape, list, or_null};

const TITLES: [&str; 5] = [
    "Soil and Water",
    "The Long Winter",
    "Bridges of Wood",
    "Bees in Cities",
    "Old Maps",
];
const KINDS: [&str; 4] = ["talk", "concert", "reading", "workshop"];
const HALLS: [&str; 4] = ["Mill Hall", "Harbour Hall", "Studio Nine", "Linden House"];

fn start(draw: &mut Draw) -> i64 {
    draw.step(9 * 60, 20 * 60, 15)
}

pub(super) fn event_line(draw: &mut Draw) -> Document {
    let (title, kind, city) = (draw.one(&TITLES), draw.one(&KINDS), draw.cities(1)[0]);
    let (day, minutes) = (draw.day(2026), start(draw));
    Document {
        text: format!(
            "The {kind} \"{title}\" takes place in {city} on {} and begins at {}.",
            day.spelled(draw, 1),
            clock_spelled(minutes, draw, 1)
        ),
        fields: vec![
            ("title", "", Shape::Text),
            ("city", "", Shape::Text),
            ("date", "", Shape::Date),
            ("start", "", Shape::Time),
        ],
        facts: json!({"title": title, "city": city, "date": day.iso(), "start": clock(minutes)}),
    }
}

pub(super) fn event(draw: &mut Draw, level: u64) -> Document {
    let (title, kind) = (draw.one(&TITLES), draw.one(&KINDS));
    let (city, hall) = (draw.cities(1)[0], draw.one(&HALLS));
    let (day, minutes) = (draw.day(2026), start(draw));
    let people: Vec<String> = (0..level).map(|_| draw.person()).collect();
    let fee = draw.chance(50).then(|| draw.between(4, 30));
    let paid = match fee {
        Some(fee) => format!("Admission is {fee} euros."),
        None => "Seats are not numbered.".to_owned(),
    };
    let (on, at) = (day.spelled(draw, level), clock_spelled(minutes, draw, level));
    let later = if level == 3 { draw.between(2, 9) } else { 0 };
    let text = match &people[..] {
        [first, second] => format!(
            "{first} and {second} give the {kind} \"{title}\" on {on}, {at}, in {hall}, {city}. {paid} It is the third evening \
             of a series that began with \"Rivers\"."
        ),
        people => format!(
            "The {kind} \"{title}\", planned for {on}, is put off by {} days. {} and {} are joined by {}, who takes the place \
             of {}. As before it begins at {at}, but in {hall} in {city}, since the town library is closed. {paid}",
            in_words(later),
            people[0],
            people[1],
            people[2],
            draw.person()
        ),
    };
    let place = vec![("name", "", Shape::Text), ("city", "", Shape::Text)];
    Document {
        text,
        fields: vec![
            ("title", "", Shape::Text),
            ("kind", "", Shape::OneOf(&KINDS)),
            ("date", "", Shape::Date),
            ("start", "", Shape::Time),
            ("place", "", Shape::Object(place)),
            (
                "people",
                "who take part, in the order of the text",
                list(Shape::Text),
            ),
            ("fee", "in euros", or_null(Shape::Number)),
        ],
        facts: json!({
            "title": title, "kind": kind, "date": day.plus(later).iso(), "start": clock(minutes),
            "place": {"name": hall, "city": city}, "people": people, "fee": fee,
        }),
    }
}

const MEANS: [&str; 4] = ["train", "bus", "ship", "plane"];

pub(super) fn trip_line(draw: &mut Draw) -> Document {
    let (traveller, day, by) = (draw.person(), draw.day(2026), draw.one(&MEANS));
    let cities = draw.cities(2);
    Document {
        text: format!(
            "{traveller} goes from {} to {} by {by} on {}.",
            cities[0],
            cities[1],
            day.spelled(draw, 1)
        ),
        fields: vec![
            ("traveller", "", Shape::Text),
            ("from", "", Shape::Text),
            ("to", "", Shape::Text),
            ("date", "", Shape::Date),
            ("by", "", Shape::OneOf(&MEANS)),
        ],
        facts: json!({
            "traveller": traveller, "from": cities[0], "to": cities[1], "date": day.iso(), "by": by,
        }),
    }
}

pub(super) fn trip(draw: &mut Draw, level: u64) -> Document {
    let traveller = draw.person();
    let legs = legs(draw, level);
    let nights = draw.between(2, 6);
    let hotel = draw
        .chance(50)
        .then(|| draw.one(&["Anchor", "Three Pines", "Central"]));
    let sleeps = hotel.map_or_else(String::new, |it| {
        format!(" {nights} nights are booked at the hotel {it}.")
    });
    let told: Vec<&str> = legs.iter().map(|it| it.0.as_str()).collect();
    let text = match level {
        2 => format!(
            "{traveller} travels {}.{sleeps} The passport is valid until 2031.",
            told.join(" and ")
        ),
        _ => format!(
            "Instead of {}, who is ill, {traveller} makes the tour: {}.{sleeps} The flight to {} that was booked at first is \
             cancelled.",
            draw.person(),
            told.join(", then "),
            draw.one(&["Oslo", "Madrid"])
        ),
    };
    let leg = vec![
        ("date", "", Shape::Date),
        ("by", "", Shape::OneOf(&MEANS)),
        ("from", "", Shape::Text),
        ("to", "", Shape::Text),
    ];
    let room = vec![("name", "", Shape::Text), ("nights", "", Shape::Whole)];
    Document {
        text,
        fields: vec![
            ("traveller", "", Shape::Text),
            ("legs", "", list(Shape::Object(leg))),
            ("hotel", "", or_null(Shape::Object(room))),
        ],
        facts: json!({
            "traveller": traveller,
            "legs": legs.iter().map(|it| &it.1).collect::<Vec<_>>(),
            "hotel": hotel.map(|it| json!({"name": it, "nights": nights})),
        }),
    }
}

/// Returns the legs of a trip, in words and as facts.
fn legs(draw: &mut Draw, level: u64) -> Vec<(String, Value)> {
    let cities = draw.cities(level as usize + 1);
    let mut day = draw.day(2026);
    let mut legs = Vec::new();
    for pair in cities.windows(2) {
        let by = draw.one(&MEANS);
        let (when, date) = if legs.is_empty() {
            (format!("on {}", day.spelled(draw, level)), day)
        } else {
            next(draw, level, day)
        };
        day = date;
        let leg = json!({"date": day.iso(), "by": by, "from": pair[0], "to": pair[1]});
        legs.push((format!("{when} by {by} from {} to {}", pair[0], pair[1]), leg));
    }
    legs
}

/// Returns a day after another one, in words and itself.
fn next(draw: &mut Draw, level: u64, day: Day) -> (String, Day) {
    let later = draw.between(1, 6);
    let day = day.plus(later);
    let words = match later {
        1 => "the day after that".to_owned(),
        later if level == 3 => format!("{} days later", in_words(later)),
        _ => format!("on {}", day.spelled(draw, level)),
    };
    (words, day)
}
