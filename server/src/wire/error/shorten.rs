//! Texts of clients, shortened so that an answer or a log may repeat them.

use std::borrow::Cow;

/// The maximum number of characters that are shown.
const SHOWN_CHARS: usize = 400;

/// Returns at most `SHOWN_CHARS` characters of a text that a client sent.
pub fn shortened(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(SHOWN_CHARS) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
    }
}
