//! The buffer between tokens and text that may be sent: nothing that could still become a stop, and whole
//! characters only.
//!
//! ```text
//!   tokens ─► [ possible stop held back ] ─► bytes ─► [ incomplete character held back ] ─► text
//! ```

pub mod stops;

use lexiform::vocab::TextStream;
use lexiform_engine::Grammar;

use self::stops::{StopSearch, Written};
use crate::wire::generation::Stop;

/// Collects the bytes of one sample and releases text as soon as it is certain.
#[derive(Debug, Default)]
pub struct TextBuffer {
    stops: StopSearch,
    characters: TextStream,
}

impl TextBuffer {
    /// Creates a buffer that ends where one of these stops the sample.
    pub fn new(stop: &Stop) -> Self {
        Self {
            stops: StopSearch::new(stop),
            ..Self::default()
        }
    }

    /// Stops the sample only where its text is a whole text of this grammar.
    pub fn judge_stops(&mut self, grammar: &Grammar) {
        self.stops.judge(grammar);
    }

    /// Returns `true` if the sample obeys a grammar, so that it also ends without a stop.
    pub fn is_judged(&self) -> bool {
        self.stops.is_judged()
    }

    /// Returns `true` if the sample has stopped; no more text is released then.
    pub fn stopped(&self) -> bool {
        self.stops.is_over()
    }

    /// Takes one more token and returns the text that is now certain.
    pub fn push(&mut self, written: Written<'_>) -> String {
        if self.stopped() {
            return String::new();
        }
        let text = self.characters.push(&self.stops.push(written));
        match self.stopped() {
            true => text + &self.characters.finish(),
            false => text,
        }
    }

    /// Ends the text and returns what was held back. An incomplete character becomes U+FFFD if the text ends
    /// there; if the text was cut, the character is missing like the rest of the text.
    pub fn finish(&mut self, is_cut: bool) -> String {
        if self.stopped() {
            return String::new();
        }
        let text = self.characters.push(&self.stops.finish());
        match self.characters.finish() {
            rest if !is_cut => text + &rest,
            _ => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer(stops: &[&str], keeps_text: bool) -> TextBuffer {
        TextBuffer::new(&Stop {
            texts: stops.iter().map(|&text| text.to_owned()).collect(),
            keeps_text,
            tokens: Vec::new(),
        })
    }

    /// A token that writes these bytes.
    fn of(bytes: &[u8]) -> Written<'_> {
        Written {
            token: 0,
            spelled: bytes,
            bytes,
        }
    }

    #[test]
    fn no_way_of_cutting_bytes_splits_a_character() {
        let text = "aé漢🦀z";
        for first in 0..=text.len() {
            for second in first..=text.len() {
                let bytes = text.as_bytes();
                let mut buffer = TextBuffer::default();
                let mut out = buffer.push(of(&bytes[..first]));
                out += &buffer.push(of(&bytes[first..second]));
                out += &buffer.push(of(&bytes[second..]));
                out += &buffer.finish(false);
                assert_eq!(out, text);
            }
        }
    }

    #[test]
    fn broken_bytes_become_replacement_characters_at_once() {
        let mut buffer = TextBuffer::default();
        assert_eq!(buffer.push(of(b"a\xff\xfeb")), "a\u{fffd}\u{fffd}b");
        assert_eq!(buffer.push(of(b"\xe6\xbc")), "");
        assert_eq!(buffer.finish(false), "\u{fffd}");
    }

    #[test]
    fn a_character_that_is_cut_does_not_come_out() {
        let mut buffer = buffer(&["éé"], false);
        assert_eq!(buffer.push(of(b"x\xc3\xa9\xc3")), "x");
        assert_eq!(buffer.finish(true), "é");
    }

    #[test]
    fn a_stop_string_is_found_across_tokens_and_nothing_of_it_gets_out() {
        let mut buffer = buffer(&["END", "\n\n"], false);
        assert_eq!(buffer.push(of(b"one E")), "one ");
        assert_eq!(buffer.push(of(b"N")), "");
        assert_eq!(buffer.push(of(b"T E")), "ENT ");
        assert_eq!(buffer.push(of(b"NDs")), "");
        assert!(buffer.stopped());
        assert_eq!(buffer.push(of(b"more")), "");
        assert_eq!(buffer.finish(false), "");
    }

    #[test]
    fn the_first_stop_in_the_text_wins_and_may_be_included() {
        let mut buffer = buffer(&["c", "b"], true);
        assert_eq!(buffer.push(of(b"abc")), "ab");
        assert!(buffer.stopped());
    }

    #[test]
    fn what_might_have_been_a_stop_comes_out_at_the_end() {
        let mut buffer = buffer(&["éé"], false);
        assert_eq!(buffer.push(of("xé".as_bytes())), "x");
        assert_eq!(buffer.finish(false), "é");
    }
}
