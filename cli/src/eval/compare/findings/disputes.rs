//! Masks that differ, in tables: how often, where, and a text for each kind.

use super::Findings;
use super::numbers::{ending, grouped, shortened};
use crate::eval::compare::dispute::{Blame, Example, Judgement, Side};
use crate::eval::compare::place::Place;
use crate::report::{Part, Table};

impl Findings<'_> {
    pub(super) fn dispute_parts(&self) -> Vec<Part> {
        if self.others().all(|engine| engine.tally.disputes.masks == 0) {
            return Vec::new();
        }
        vec![self.mask_counts(), self.kinds(), self.examples()]
    }

    fn mask_counts(&self) -> Part {
        let rows = self.others().map(|engine| {
            let disputes = &engine.tally.disputes;
            let share = 100.0 * disputes.different as f64 / disputes.masks.max(1) as f64;
            vec![
                engine.name.clone(),
                grouped(disputes.masks),
                grouped(disputes.different),
                format!("{share:.1} %"),
                grouped(disputes.looked_at),
            ]
        });
        table(
            "Masks of Lexiform and of each engine at the same text",
            &["engine", "compared", "different", "share", "looked at"],
            rows.collect(),
            "Text tokens and the end are compared. Of each schema, the first two pairs of different masks are \
             looked at token by token.",
        )
    }

    fn kinds(&self) -> Part {
        let mut rows = Vec::new();
        for engine in self.others() {
            for ((side, place), tally) in &engine.tally.disputes.kinds {
                rows.push(vec![
                    engine.name.clone(),
                    allowed_by(*side, &engine.name),
                    place.to_string(),
                    grouped(tally.tokens),
                    grouped(tally.masks),
                    grouped(tally.schemas.len() as u64),
                ]);
            }
        }
        table(
            "Where tokens are allowed by one engine alone",
            &["engine", "allowed by", "place", "tokens", "masks", "schemas"],
            rows,
            "The place is that of the first byte of the token that the other engine refuses. How far another \
             engine reads a token is told by the shorter tokens that its mask allows.",
        )
    }

    fn examples(&self) -> Part {
        let mut rows = Vec::new();
        for engine in self.others() {
            for ((side, place), tally) in &engine.tally.disputes.kinds {
                for example in &tally.examples {
                    rows.push(vec![
                        format!("{} at {}", engine.name, example.schema),
                        format!("{place}, {}", allowed_by(*side, &engine.name)),
                        format!("{} ▸ {}", ending(&example.before, 40), token(example)),
                        whole(example),
                        judgement(example, *side, *place, &engine.name),
                    ]);
                }
            }
        }
        table(
            "A text for each kind",
            &[
                "engine and schema",
                "allowed by",
                "text ▸ token",
                "whole text",
                "who is right",
            ],
            rows,
            "Lexiform completes a text in the fewest tokens; another engine writes on by its own masks, at most \
             64 tokens. The validator is the crate jsonschema, which asserts formats here.",
        )
    }
}

fn allowed_by(side: Side, name: &str) -> String {
    match side {
        Side::Ours => "Lexiform alone".to_owned(),
        Side::Theirs => format!("{name} alone"),
    }
}

fn token(example: &Example) -> String {
    match example.token.as_str() {
        "" => "the end".to_owned(),
        token => format!("{token:?}"),
    }
}

fn whole(example: &Example) -> String {
    let none = || "not completed".to_owned();
    example
        .whole
        .as_ref()
        .map_or_else(none, |(text, _)| shortened(text, 160))
}

fn judgement(example: &Example, side: Side, place: Place, name: &str) -> String {
    let why = match &example.whole {
        Some((_, Judgement::Invalid(why) | Judgement::Unknown(why))) => format!(" ({})", shortened(why, 120)),
        _ => String::new(),
    };
    let how = if why.is_empty() { "valid" } else { "invalid" };
    let manner = if why.is_empty() { "narrow" } else { "wide" };
    match example.blame(side, place) {
        Blame::Nobody => "both allow the text".to_owned(),
        Blame::WhiteSpace => "valid: Lexiform leaves this white space out by choice".to_owned(),
        Blame::Lexiform => format!("{how}: Lexiform is too {manner}{why}"),
        Blame::TheOther => format!("{how}: {name} is too {manner}{why}"),
        Blame::Unknown => format!("not known{why}"),
    }
}

pub(super) fn table(title: &str, columns: &[&str], rows: Vec<Vec<String>>, note: &str) -> Part {
    Part::Table(Table {
        title: title.to_owned(),
        columns: columns.iter().map(|it| (*it).to_owned()).collect(),
        rows,
        note: note.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_validator_decides_who_is_wrong_except_about_cuts_and_white_space() {
        let said = |whole: Option<Judgement>, side, place| {
            let example = Example {
                schema: "s".to_owned(),
                before: String::new(),
                token: " ".to_owned(),
                whole: whole.map(|judgement| ("text".to_owned(), judgement)),
            };
            judgement(&example, side, place, "xgrammar")
        };
        let invalid = || Some(Judgement::Invalid("no".to_owned()));
        let valid = || Some(Judgement::Valid);
        let (ours, theirs) = (Side::Ours, Side::Theirs);
        assert_eq!(said(valid(), ours, Place::Key), "valid: xgrammar is too narrow");
        assert_eq!(
            said(invalid(), theirs, Place::Key),
            "invalid: xgrammar is too wide (no)"
        );
        assert_eq!(said(valid(), theirs, Place::Key), "valid: Lexiform is too narrow");
        assert_eq!(
            said(invalid(), ours, Place::Key),
            "invalid: Lexiform is too wide (no)"
        );
        assert_eq!(
            said(valid(), theirs, Place::Space),
            "valid: Lexiform leaves this white space out by choice"
        );
        assert_eq!(said(valid(), ours, Place::Cut), "both allow the text");
        assert_eq!(said(None, theirs, Place::Key), "not known");
    }
}
