//! The field `penalty_scope`: the tokens that `repetition_penalty`, `presence_penalty` and
//! `frequency_penalty` concern.

use super::super::fields::{Fields, Problems};

/// The tokens that penalties concern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PenaltyScope {
    /// Those inside the strings of a JSON answer that are values, and those of a thought.
    Text,
    /// All tokens.
    All,
}

/// Reads the field. If it is absent, the constraint decides.
pub(super) fn read(fields: &mut Fields, problems: &mut Problems) -> Option<PenaltyScope> {
    let words = [("text", PenaltyScope::Text), ("all", PenaltyScope::All)];
    fields.word("penalty_scope", &words, problems)
}
