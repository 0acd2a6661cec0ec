//! Token healing of a request: its prompt is shortened to the last boundary that no token can span, and its
//! answer begins with the removed bytes, which are not reported.
//!
//! ```text
//!   prompt  [http] [:]          heal ─►  prompt [http], healed ":"  ─► compile with Options::prefix ":" ─► grammar
//!   drawn   [://] [example]              reported  "//" "example"
//! ```
//!
//! Tests: `engine/tests/engine/healing.rs` enumerates all texts of a small model;
//! `server/tests/http/healing.rs` sends requests.

use crate::request::Request;
use lexiform::vocab::Vocabulary;

impl Request {
    /// Heals the prompt ([`Vocabulary::heal`]): removes the tokens at its end that a longer token could have
    /// replaced, and stores the bytes that they write in [`Prompt::healed`](super::Prompt::healed), which it
    /// returns. If this is not empty, [the grammar](super::Constraints::grammar) must begin with it;
    /// `Source::Any` is the grammar of free text.
    ///
    /// The first token always stays, since a model predicts nothing without input. A prompt that was already
    /// healed is not changed.
    pub fn heal(&mut self, vocabulary: &Vocabulary) -> &[u8] {
        let prompt = &mut self.prompt;
        if let (Some((_, rest)), true) = (prompt.tokens.split_first(), prompt.healed.is_empty()) {
            let healed = vocabulary.heal(rest);
            prompt.tokens.truncate(1 + healed.kept);
            prompt.healed = healed.removed;
        }
        &prompt.healed
    }

    /// Returns the number of removed bytes that are still to be spelled after these tokens of the answer.
    /// O(removed bytes).
    pub(crate) fn unspelled(&self, answer: &[u32], vocabulary: &Vocabulary) -> usize {
        let healed = self.prompt.healed.len();
        // Each of these tokens writes at least a byte.
        let spelling = answer.iter().take(healed);
        let spelled: usize = spelling.map(|&token| vocabulary.bytes(token).len()).sum();
        healed.saturating_sub(spelled)
    }
}
