//! The buffer between token bytes and text that may be sent: whole characters only, and nothing that could
//! still become a stop string.
//!
//! ```text
//!   bytes ─► [ incomplete character held back ] ─► [ possible stop string held back ] ─► text
//! ```

use lexiform::vocab::TextStream;

/// Collects the bytes of one sample and releases text as soon as it is certain.
#[derive(Debug, Default)]
pub struct TextBuffer {
    characters: TextStream,
    held: String,
    stops: Vec<String>,
    include_stop: bool,
    stopped: bool,
}

impl TextBuffer {
    /// Creates a buffer that ends at the first of these texts.
    pub fn new(stops: Vec<String>, include_stop: bool) -> Self {
        Self {
            stops,
            include_stop,
            ..Self::default()
        }
    }

    /// Returns `true` if a stop string was found; no more text is released then.
    pub fn stopped(&self) -> bool {
        self.stopped
    }

    /// Takes the bytes of one more token and returns the text that is now certain.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        if self.stopped {
            return String::new();
        }
        self.held += &self.characters.push(bytes);
        self.release()
    }

    /// Ends the text and returns what was held back. An incomplete character becomes U+FFFD if the text ends
    /// there; if the text was cut, the character is missing like the rest of the text.
    pub fn finish(&mut self, is_cut: bool) -> String {
        if self.stopped {
            return String::new();
        }
        let rest = self.characters.finish();
        if !is_cut {
            self.held += &rest;
        }
        let rest = self.release();
        rest + &std::mem::take(&mut self.held)
    }

    /// Cuts at the first stop string, or holds back the longest suffix that could begin one.
    fn release(&mut self) -> String {
        let found = self
            .stops
            .iter()
            .filter_map(|stop| self.held.find(stop.as_str()).map(|at| (at, stop.len())))
            .min();
        if let Some((at, length)) = found {
            self.stopped = true;
            self.held
                .truncate(if self.include_stop { at + length } else { at });
            return std::mem::take(&mut self.held);
        }
        let keep = self
            .stops
            .iter()
            .map(|stop| overlap(&self.held, stop))
            .max()
            .unwrap_or(0);
        let rest = self.held.split_off(self.held.len() - keep);
        std::mem::replace(&mut self.held, rest)
    }
}

/// Returns how many bytes at the end of `text` are a proper prefix of `stop`.
pub fn overlap(text: &str, stop: &str) -> usize {
    let longest = text.len().min(stop.len().saturating_sub(1));
    (1..=longest)
        .rev()
        .find(|&length| stop.is_char_boundary(length) && text.ends_with(&stop[..length]))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_way_of_cutting_bytes_splits_a_character() {
        let text = "aé漢🦀z";
        for first in 0..=text.len() {
            for second in first..=text.len() {
                let bytes = text.as_bytes();
                let mut buffer = TextBuffer::default();
                let mut out = buffer.push(&bytes[..first]);
                out += &buffer.push(&bytes[first..second]);
                out += &buffer.push(&bytes[second..]);
                out += &buffer.finish(false);
                assert_eq!(out, text);
            }
        }
    }

    #[test]
    fn broken_bytes_become_replacement_characters_at_once() {
        let mut buffer = TextBuffer::default();
        assert_eq!(buffer.push(b"a\xff\xfeb"), "a\u{fffd}\u{fffd}b");
        assert_eq!(buffer.push(b"\xe6\xbc"), "");
        assert_eq!(buffer.finish(false), "\u{fffd}");
    }

    #[test]
    fn a_character_that_is_cut_does_not_come_out() {
        let mut buffer = TextBuffer::new(vec!["éé".to_owned()], false);
        assert_eq!(buffer.push(b"x\xc3\xa9\xc3"), "x");
        assert_eq!(buffer.finish(true), "é");
    }

    #[test]
    fn a_stop_string_is_found_across_tokens_and_nothing_of_it_gets_out() {
        let mut buffer = TextBuffer::new(vec!["END".to_owned(), "\n\n".to_owned()], false);
        assert_eq!(buffer.push(b"one E"), "one ");
        assert_eq!(buffer.push(b"N"), "");
        assert_eq!(buffer.push(b"T E"), "ENT ");
        assert_eq!(buffer.push(b"NDs"), "");
        assert!(buffer.stopped());
        assert_eq!(buffer.push(b"more"), "");
        assert_eq!(buffer.finish(false), "");
    }

    #[test]
    fn the_first_stop_in_the_text_wins_and_may_be_included() {
        let mut buffer = TextBuffer::new(vec!["c".to_owned(), "b".to_owned()], true);
        assert_eq!(buffer.push(b"abc"), "ab");
        assert!(buffer.stopped());
    }

    #[test]
    fn what_might_have_been_a_stop_comes_out_at_the_end() {
        let mut buffer = TextBuffer::new(vec!["éé".to_owned()], false);
        assert_eq!(buffer.push("xé".as_bytes()), "x");
        assert_eq!(buffer.finish(false), "é");
    }
}
