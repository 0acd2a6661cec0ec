//! Converts a stream of tokens to text: tokens may end in the middle of a character, the text must not.

/// Converts the bytes of successive tokens to text that never splits a character.
///
/// Bytes that cannot become UTF-8 are written as U+FFFD, exactly where [`String::from_utf8_lossy`] of all the
/// bytes would write it. Only the first bytes of a character that may still be completed are held back, at
/// most three.
///
/// ```
/// use lexiform::vocab::TextStream;
///
/// let mut stream = TextStream::default();
/// assert_eq!(stream.push(b"caf\xC3"), "caf");
/// assert_eq!(stream.push(b"\xA9"), "é");
/// assert_eq!(stream.finish(), "");
/// ```
#[derive(Clone, Debug, Default)]
pub struct TextStream {
    held: Vec<u8>,
}

impl TextStream {
    /// Adds the bytes of the next token and returns the text that is now complete.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        self.held.extend_from_slice(bytes);
        let complete = self.held.len() - unfinished(&self.held);
        let text = String::from_utf8_lossy(&self.held[..complete]).into_owned();
        self.held.drain(..complete);
        text
    }

    /// Returns the bytes that wait for the rest of their character.
    pub fn held(&self) -> &[u8] {
        &self.held
    }

    /// Ends the stream. Bytes that are still held can no longer be completed and are replaced.
    pub fn finish(&mut self) -> String {
        let text = String::from_utf8_lossy(&self.held).into_owned();
        self.held.clear();
        text
    }
}

/// Returns how many bytes at the end begin a character that more bytes could complete.
fn unfinished(bytes: &[u8]) -> usize {
    // A character has at most four bytes, so only the last three can be waiting. The longest such suffix is
    // chosen: a shorter one would begin with a continuation byte.
    let longest = bytes.len().min(3);
    let waits = |&count: &usize| match str::from_utf8(&bytes[bytes.len() - count..]) {
        Err(error) => error.valid_up_to() == 0 && error.error_len().is_none(),
        Ok(_) => false,
    };
    (1..=longest).rev().find(waits).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns pieces that are likely to split, complete and break characters.
    fn pieces() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let cut = prop::sample::select(vec![
            0xC3u8, 0xA9, 0xE2, 0x82, 0xAC, 0xF0, 0x9F, 0x98, 0x80, 0xED, 0xA0, 0xFF, b'a',
        ]);
        prop::collection::vec(prop::collection::vec(cut, 0..6), 0..12)
    }

    proptest! {
        #[test]
        fn the_chunks_are_the_lossy_text(pieces in pieces()) {
            let mut stream = TextStream::default();
            let mut text = String::new();
            for piece in &pieces {
                text += &stream.push(piece);
                prop_assert!(stream.held().len() <= 3);
            }
            text += &stream.finish();
            prop_assert_eq!(text, String::from_utf8_lossy(&pieces.concat()).into_owned());
        }

        #[test]
        fn valid_text_is_never_replaced(text in any::<String>(), cuts in prop::collection::vec(0usize..64, 0..8)) {
            let mut stream = TextStream::default();
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|&cut| cut <= text.len()).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let chunks: String = cuts.windows(2).map(|pair| stream.push(&text.as_bytes()[pair[0]..pair[1]])).collect();
            prop_assert_eq!(chunks, text);
            prop_assert!(stream.held().is_empty());
        }
    }
}
