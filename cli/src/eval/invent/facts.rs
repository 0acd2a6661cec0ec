//! Invents texts with facts, which are to be found and written as JSON.
//!
//! Level 1 has a few flat fields. Level 2 has lists and objects, a fact that may be missing, and another
//! one that looks like it. Level 3 has longer lists, corrections, days that are told by other days, and
//! several missing facts.

use serde_json::json;

use super::draw::{Draw, Invented};
use super::shape::{Document, Shape};
use super::{gatherings, notes, offers};

/// The documents: with a few facts, and with many at a level of 2 or 3.
type Documents = (fn(&mut Draw) -> Document, fn(&mut Draw, u64) -> Document);

const DOCUMENTS: [Documents; 6] = [
    (offers::order_line, offers::order),
    (offers::flat_line, offers::flat),
    (gatherings::event_line, gatherings::event),
    (gatherings::trip_line, gatherings::trip),
    (notes::sample_line, notes::sample),
    (notes::person_line, notes::person),
];

pub(super) fn task(draw: &mut Draw, level: u64) -> Invented {
    let (few, many) = DOCUMENTS[draw.between(0, DOCUMENTS.len() as i64 - 1) as usize];
    let document = match level {
        1 => few(draw),
        level => many(draw, level),
    };
    let fields = Shape::Object(document.fields);
    let missing = if level == 1 {
        ""
    } else {
        " What is not said is null."
    };
    Invented {
        prompt: format!(
            "Write these facts of the text as a JSON object: {}.{missing}\n\nText: {}",
            fields.words(),
            document.text
        ),
        form: ("schema", fields.schema()),
        answer: json!({"json": document.facts, "fold": true}),
    }
}
