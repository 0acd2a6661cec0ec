//! The marks between which a model writes a thought, as a value that every format has.

/// The marks of a thought. The names of special tokens in a mark denote those tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ThoughtMarks {
    /// The mark that begins a thought.
    pub open: &'static str,
    /// The marks that end it: its own, then that of a call that may begin within the thought, which belongs
    /// to the call. A thought contains none of them.
    pub ends: &'static [&'static str],
}

/// The marks of most formats.
pub(crate) const THINK_MARKS: ThoughtMarks = ThoughtMarks {
    open: "<think>",
    ends: &["</think>"],
};

impl ThoughtMarks {
    /// Returns the mark that ends the thought and belongs to it.
    pub fn close(&self) -> &'static str {
        self.ends.first().copied().unwrap_or_default()
    }

    /// Returns the same marks for answers without calls.
    #[must_use]
    pub fn without_calls(self) -> Self {
        ThoughtMarks {
            ends: self.ends.get(..1).unwrap_or_default(),
            ..self
        }
    }
}

impl Default for ThoughtMarks {
    /// The marks of most models: `<think>` and `</think>`.
    fn default() -> Self {
        THINK_MARKS
    }
}
