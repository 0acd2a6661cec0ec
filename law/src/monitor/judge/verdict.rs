//! What a host is asked, and what it answers.

use std::sync::Arc;

/// A text that a host is asked about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Question {
    /// The text, without the bytes of a last character that is not complete. Bytes that are not UTF-8 are
    /// replaced by U+FFFD.
    pub text: String,
    /// `true` if the text is to end here, `false` if more may come.
    pub is_whole: bool,
}

/// The answer to a [`Question`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No text begins like this; or, of a whole text: it does not end here.
    Forbidden,
    /// Some texts that begin like this are allowed: longer ones are judged again. A whole text is allowed.
    Open,
    /// All texts that begin like this are allowed, and the text may end: nothing more is asked.
    Allowed,
    /// One of these follows, and is judged when it is complete. None of them is empty. A whole text is not
    /// allowed. An empty list is the same as [`Verdict::Forbidden`].
    Next(Vec<Arc<str>>),
}
