//! What an automaton may cost, and why there is none.

use crate::limits::Cancel;

/// Why an expression could not become an automaton.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It looks around.
    Look,
    /// It cannot be had over characters: it speaks of bytes that are no text, or tells too many characters
    /// apart.
    NotText,
    /// It needs more memory, or more work, than it may take, or nobody wants it any more.
    Limit,
}

/// What an automaton may cost.
#[derive(Clone, Copy, Debug)]
pub struct Room<'a> {
    /// The bytes that it may take while it is built, and with them the work.
    pub bytes: usize,
    /// Whether anybody still wants it.
    pub cancel: &'a Cancel,
}
