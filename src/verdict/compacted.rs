//! JSON texts without their white space, so that their values can be judged whatever it is.

/// A JSON text without the white space between its tokens.
pub(super) struct Compacted {
    pub(super) text: Vec<u8>,
    /// The offset in the given text of each byte that is kept.
    offsets: Vec<usize>,
    given: usize,
}

impl Compacted {
    /// Removes the white space. What keeps two words apart, as in `1 2` and `tru e`, stays: without it they
    /// would be one.
    pub(super) fn new(given: &[u8]) -> Compacted {
        let (mut text, mut offsets) = (Vec::with_capacity(given.len()), Vec::with_capacity(given.len()));
        let (mut in_string, mut escaped, mut blank) = (false, false, None);
        for (offset, &byte) in given.iter().enumerate() {
            if !in_string && matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                blank = Some(offset);
                continue;
            }
            let parted = blank
                .take()
                .filter(|_| is_word(byte) && text.last().is_some_and(|&last| is_word(last)));
            if let Some(offset) = parted {
                text.push(b' ');
                offsets.push(offset);
            }
            in_string ^= byte == b'"' && !escaped;
            escaped = in_string && byte == b'\\' && !escaped;
            text.push(byte);
            offsets.push(offset);
        }
        Compacted {
            text,
            offsets,
            given: given.len(),
        }
    }

    /// Returns the offset in the given text of an offset in this one.
    pub(super) fn given(&self, offset: usize) -> usize {
        self.offsets.get(offset).copied().unwrap_or(self.given)
    }
}

/// Returns `true` for bytes of which several in a row are one token outside of strings.
fn is_word(byte: u8) -> bool {
    !matches!(byte, b'{' | b'}' | b'[' | b']' | b':' | b',' | b'"')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compacted(text: &str) -> String {
        String::from_utf8(Compacted::new(text.as_bytes()).text).expect("UTF-8 stays UTF-8")
    }

    #[test]
    fn white_space_in_strings_stays() {
        let text = "{ \"a \\\" b\" :\r\n [1 ,\t\"\\\\\" , \" \" ] }";
        assert_eq!(compacted(text), "{\"a \\\" b\":[1,\"\\\\\",\" \"]}");
    }

    /// Guards against a check by value that took `[1 2]` for `[12]`.
    #[test]
    fn white_space_between_words_stays() {
        assert_eq!(compacted("[ 1  2 ,\n tru e ]"), "[1 2,tru e]");
        assert_eq!(compacted("- 1"), "- 1");
    }

    #[test]
    fn offsets_are_those_of_the_given_text() {
        let compacted = Compacted::new(b" [ 1, 2 ]\n");
        let offsets: Vec<usize> = (0..6).map(|offset| compacted.given(offset)).collect();
        assert_eq!(offsets, [1, 3, 4, 6, 8, 10]);
    }
}
