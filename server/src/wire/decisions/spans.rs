//! The spans of a text that may answer a question.

use std::collections::HashSet;
use std::ops::Range;

use lexiform_syntax::notation::extract::{Boundary, pieces};

use crate::wire::constraint::boundary;
use crate::wire::fields::{Fields, Problems};

/// The maximum length of the text, in bytes.
const TEXT_BYTES: usize = 64 << 10;
/// The maximum number of spans of a text. Spans with equal text count once.
const SPANS: usize = 1 << 16;
/// The maximum number of words of a span that a request may set, and the default.
const WORDS: (i64, usize) = (64, 8);
/// The maximum number of spans that are reported.
const LISTED_SPANS: i64 = 20;

/// The spans of a text that may answer a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spans {
    /// The text.
    pub text: String,
    /// The first place of each different span, in bytes.
    pub places: Vec<Range<usize>>,
    /// The number of spans to report.
    pub told: usize,
}

impl Spans {
    /// Returns the text of a span.
    pub fn read(&self, number: usize) -> &str {
        &self.text[self.places[number].clone()]
    }

    /// Returns the place of a span in characters.
    pub fn characters(&self, number: usize) -> Range<usize> {
        let Range { start, end } = self.places[number];
        let before = |end: usize| self.text[..end].chars().count();
        before(start)..before(end)
    }
}

/// Takes the fields of a question for a span.
pub(super) fn read(fields: &mut Fields, problems: &mut Problems) -> Option<Spans> {
    let path = fields.path("text");
    let text = fields.string("text", problems);
    let boundary = boundary(fields, problems);
    let (most, usual) = WORDS;
    let longest = fields.integer("max_words", 1, most, problems);
    let longest = longest.map_or(usual, |longest| longest as usize);
    let told = fields
        .integer("spans", 1, LISTED_SPANS, problems)
        .map_or(1, |told| told as usize);
    let Some(text) = text.filter(|text| (1..=TEXT_BYTES).contains(&text.len())) else {
        problems.invalid(path, format!("expected a text of 1 to {TEXT_BYTES} bytes"));
        return None;
    };
    match places(&text, boundary, longest) {
        None => problems.invalid(path, "expected a text with a visible character"),
        Some(places) if places.len() > SPANS => problems.invalid(
            path,
            format!(
                "has more than {SPANS} different spans of at most {longest} words; max_words can be lowered"
            ),
        ),
        Some(places) => return Some(Spans { text, places, told }),
    }
    None
}

/// Returns the different spans of up to `longest` pieces, in order of occurrence; at most one more than the
/// limit. Returns `None` if the text has none.
fn places(text: &str, boundary: Boundary, longest: usize) -> Option<Vec<Range<usize>>> {
    let pieces = pieces(text, boundary);
    let (mut known, mut places) = (HashSet::new(), Vec::new());
    for (number, first) in pieces.iter().enumerate() {
        for last in pieces[number..].iter().take(longest) {
            let place = first.start..last.end;
            if known.insert(&text[place.clone()]) {
                places.push(place);
            }
            if places.len() > SPANS {
                return Some(places);
            }
        }
    }
    Some(places).filter(|places| !places.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, boundary: Boundary, longest: usize) -> Vec<&str> {
        let places = places(text, boundary, longest).unwrap_or_default();
        places.into_iter().map(|place| &text[place]).collect()
    }

    #[test]
    fn spans_begin_and_end_with_words_and_marks() {
        let found = read("Ada, 34, in Wien.", Boundary::Word, 2);
        let expected = [
            "Ada", "Ada,", ",", ", 34", "34", "34,", ", in", "in", "in Wien", "Wien", "Wien.", ".",
        ];
        assert_eq!(found, expected);
        assert_eq!(read("a b", Boundary::Character, 9), ["a", "a b", "b"]);
        assert_eq!(read("né é", Boundary::Character, 1), ["n", "é"]);
        assert_eq!(read(" \n", Boundary::Word, 3), [""; 0]);
    }

    #[test]
    fn places_are_told_in_characters() {
        let text = "né à Wien".to_owned();
        let places = places(&text, Boundary::Word, 1).expect("three");
        let spans = Spans {
            text,
            places,
            told: 1,
        };
        assert_eq!(
            (spans.read(2), spans.characters(2), spans.places[2].clone()),
            ("Wien", 5..9, 7..11)
        );
    }
}
