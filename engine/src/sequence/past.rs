//! The tokens before a row, as far as its penalties concern them.
//!
//! Under [`PenaltyScope::JsonText`], penalties concern the free text of a JSON answer: what is inside strings
//! that are values. Punctuation, keys, numbers and quotes do not count there, and are not penalised, and
//! neither is a string of a closed list. Which tokens these are follows from the text alone (and, for closed
//! lists, from the mask of the row, which follows from the text), so a row is still a function of the text
//! before it: drafts, forks and rewinds need no record.
//!
//! A row outside of strings has no history. A row inside a string has those tokens of the history that were
//! written inside of one, without those that would leave the string if they came next.

use crate::request::{PenaltyScope, Preamble, PreambleReader, Request, law};
use crate::speculation::class::{JsonReader, StateClass};
use lexiform::vocab::Vocabulary;
use lexiform_law::{Allowed, History, Warper};
use std::sync::Arc;

/// How the tokens of free text are found, for a request whose penalties concern no others.
#[derive(Clone, Debug)]
pub(crate) struct Sparing {
    vocabulary: Arc<Vocabulary>,
    begin: TextPlace,
    /// `true` if a string counts as one of a closed list where the mask leaves few tokens. The laws over
    /// whole texts condition the model as it is before any mask.
    by_mask: bool,
}

impl Sparing {
    /// Returns how tokens are spared for a request, or `None` if its penalties concern all tokens.
    pub(crate) fn of(request: &Request, warper: &Warper) -> Option<Arc<Self>> {
        let PenaltyScope::JsonText(preamble) = request.sampling.penalty_scope else {
            return None;
        };
        let grammar = request.constraints.grammar.as_ref()?;
        let mut begin = TextPlace::new(preamble, request.prompt.healed.len());
        request.prompt.begun.iter().for_each(|&byte| begin.read(byte));
        let sparing = Sparing {
            vocabulary: grammar.vocabulary().clone(),
            begin,
            by_mask: law::masks_before_filters(request),
        };
        warper.penalises().then(|| Arc::new(sparing))
    }

    /// Returns the place after this token.
    fn after(&self, place: TextPlace, token: u32) -> Crossed {
        let mut crossed = Crossed {
            place,
            is_inside: true,
        };
        for &byte in self.vocabulary.bytes(token) {
            crossed.is_inside &= crossed.place.is_text();
            crossed.place.read(byte);
        }
        crossed.is_inside &= crossed.place.is_text();
        crossed
    }
}

/// The result of reading a token.
struct Crossed {
    place: TextPlace,
    /// `true` if the whole token was inside free text.
    is_inside: bool,
}

/// The place in an answer that a text has reached.
#[derive(Clone, Debug)]
enum TextPlace {
    /// This number of bytes belongs to the end of the prompt.
    Healed(usize, Option<Preamble>),
    /// Nothing but white space was read: a preamble may begin.
    Start(Preamble),
    /// In the preamble.
    Preamble(Preamble, PreambleReader),
    /// In the JSON text.
    Json(JsonReader),
}

impl TextPlace {
    fn new(preamble: Option<Preamble>, healed: usize) -> Self {
        match (healed, preamble) {
            (1.., _) => TextPlace::Healed(healed, preamble),
            (_, None) => TextPlace::Json(JsonReader::default()),
            (_, Some(preamble)) if preamble.is_open => {
                TextPlace::Preamble(preamble, PreambleReader::new(&preamble))
            }
            (_, Some(preamble)) => TextPlace::Start(preamble),
        }
    }

    /// Returns `true` in the preamble and inside strings that are values.
    fn is_text(&self) -> bool {
        match self {
            TextPlace::Healed(..) | TextPlace::Start(_) => false,
            TextPlace::Preamble(..) => true,
            TextPlace::Json(reader) => reader.class(None, || None) == StateClass::Text,
        }
    }

    /// Returns `true` inside a string of which few tokens may come next.
    fn is_closed(&self, allowed: Allowed<'_>) -> bool {
        let count = || match allowed {
            Allowed::All => None,
            Allowed::Words(words) => Some(words.iter().map(|word| word.count_ones() as usize).sum()),
        };
        match self {
            TextPlace::Json(reader) => reader.class(None, count) == StateClass::Enum,
            _ => false,
        }
    }

    fn read(&mut self, byte: u8) {
        match self {
            TextPlace::Healed(left, preamble) => *self = TextPlace::new(*preamble, *left - 1),
            TextPlace::Start(_) if byte.is_ascii_whitespace() => {}
            // A JSON text never begins with the first byte of a mark.
            TextPlace::Start(preamble) if preamble.open.as_bytes().first() == Some(&byte) => {
                let begun = Preamble {
                    is_open: true,
                    ..*preamble
                };
                *self = TextPlace::Preamble(begun, PreambleReader::new(&begun));
            }
            TextPlace::Start(_) => {
                let mut reader = JsonReader::default();
                reader.read(byte);
                *self = TextPlace::Json(reader);
            }
            TextPlace::Preamble(preamble, reader) => {
                reader.read(preamble, byte);
                if !reader.is_inside() {
                    *self = TextPlace::Json(JsonReader::default());
                }
            }
            TextPlace::Json(reader) => reader.read(byte),
        }
    }
}

/// The text of a sequence before its rows.
#[derive(Clone, Copy)]
pub(crate) struct Past<'a> {
    prompt: &'a [u32],
    answer: &'a [u32],
    sparing: Option<&'a Sparing>,
}

impl<'a> Past<'a> {
    /// Returns the text of which the first `prompt` tokens are the prompt.
    pub(crate) fn new(tokens: &'a [u32], prompt: usize, sparing: Option<&'a Sparing>) -> Self {
        let (prompt, answer) = tokens.split_at(prompt);
        Past {
            prompt,
            answer,
            sparing,
        }
    }

    /// Returns the tokens that the penalties of a row concern, after these drafted tokens.
    pub(crate) fn counted(&self, draft: Vec<u32>, allowed: Allowed<'_>) -> Counted {
        let Some(sparing) = self.sparing else {
            return Counted { draft, free: None };
        };
        let mut place = sparing.begin.clone();
        let mut inside = |tokens: &[u32]| -> Vec<u32> {
            let mut kept = Vec::new();
            for &token in tokens {
                let crossed = sparing.after(place.clone(), token);
                kept.extend(crossed.is_inside.then_some(token));
                place = crossed.place;
            }
            kept
        };
        let (answer, draft) = (inside(self.answer), inside(&draft));
        if !place.is_text() || sparing.by_mask && place.is_closed(allowed) {
            return Counted {
                draft: Vec::new(),
                free: Some((Vec::new(), Vec::new())),
            };
        }
        let stays = |token: &u32| sparing.after(place.clone(), *token).is_inside;
        let kept = |tokens: &[u32]| tokens.iter().copied().filter(stays).collect();
        Counted {
            draft: kept(&draft),
            free: Some((kept(self.prompt), kept(&answer))),
        }
    }

    /// Returns these tokens as a history.
    pub(crate) fn history<'b>(&self, counted: &'b Counted) -> History<'b>
    where
        'a: 'b,
    {
        let (prompt, answer) = match &counted.free {
            Some((prompt, answer)) => (&prompt[..], &answer[..]),
            None => (self.prompt, self.answer),
        };
        History {
            prompt,
            answer,
            draft: &counted.draft,
        }
    }
}

/// The tokens before a row that its penalties concern.
pub(crate) struct Counted {
    draft: Vec<u32>,
    /// Those of the prompt and the answer, if not all of them are concerned.
    free: Option<(Vec<u32>, Vec<u32>)>,
}

impl Counted {
    /// The tokens of the prompt and the answer, and none that are drafted.
    pub(crate) const UNDRAFTED: &'static Counted = &Counted {
        draft: Vec::new(),
        free: None,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    const THOUGHT: Preamble = Preamble {
        open: "<think>",
        close: &["</think>"],
        is_open: false,
    };

    /// Marks the bytes before which a text stands in free text.
    fn marked(mut place: TextPlace, text: &str) -> String {
        let mark = |byte: u8| {
            let is_text = place.is_text();
            place.read(byte);
            if is_text { '^' } else { '.' }
        };
        text.bytes().map(mark).collect()
    }

    #[test]
    fn free_text_is_that_of_thoughts_and_of_strings_that_are_values() {
        let text = r#"{"k":"a\"b","n":[1,"c"]}"#;
        let found = "......^^^^^.........^^..";
        assert_eq!(marked(TextPlace::new(None, 0), text), found);
        assert_eq!(marked(TextPlace::new(Some(THOUGHT), 0), text), found);
        let healed = format!("\"xy{text}");
        assert_eq!(marked(TextPlace::new(None, 3), &healed), format!("...{found}"));
        let thought = format!("\n<think>\"<</think>{text}");
        let before = format!("..{}", "^".repeat("think>\"<</think>".len()));
        assert_eq!(
            marked(TextPlace::new(Some(THOUGHT), 0), &thought),
            format!("{before}{found}")
        );
        let open = Preamble {
            is_open: true,
            ..THOUGHT
        };
        let begun = format!("so</think>{text}");
        assert_eq!(
            marked(TextPlace::new(Some(open), 0), &begun),
            format!("^^^^^^^^^^{found}")
        );
    }
}
