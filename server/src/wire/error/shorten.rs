//! Texts of clients, cut to a length that an answer or a log may repeat.

use std::borrow::Cow;

/// How many characters of each problem are shown.
const SHOWN_CHARS: usize = 400;

/// At most `SHOWN_CHARS` characters of a text that a client sent.
pub fn shortened(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(SHOWN_CHARS) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
    }
}
