//! The verdicts that a judge has given, as far as they fit.

use std::collections::HashMap;

use super::verdict::{Question, Verdict};

/// The most bytes of texts and verdicts that are kept.
const MOST_BYTES: usize = 8 << 20;
/// What an entry takes besides its texts.
const ENTRY: usize = 64;

/// Verdicts about texts. When they have become too many, all of them are forgotten.
#[derive(Debug, Default)]
pub(super) struct Known {
    verdicts: HashMap<Question, Verdict>,
    bytes: usize,
}

impl Known {
    /// Returns the verdict about a text, if it is known.
    pub(super) fn get(&self, question: &Question) -> Option<Verdict> {
        self.verdicts.get(question).cloned()
    }

    /// Adds verdicts.
    pub(super) fn extend(&mut self, verdicts: impl Iterator<Item = (Question, Verdict)>) {
        if self.bytes > MOST_BYTES {
            *self = Known::default();
        }
        for (question, verdict) in verdicts {
            let of_verdict = match &verdict {
                Verdict::Next(items) => items.iter().map(|item| item.len() + ENTRY).sum(),
                Verdict::Forbidden | Verdict::Open | Verdict::Allowed => 0,
            };
            self.bytes += question.text.len() + ENTRY + of_verdict;
            self.verdicts.insert(question, verdict);
        }
    }
}
