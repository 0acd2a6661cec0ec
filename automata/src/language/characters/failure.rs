//! The limits on building an automaton, and the reasons why one cannot be built.

use crate::limits::Cancel;

/// The reason why an expression has no automaton.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The expression uses look-around.
    Look,
    /// The expression cannot be compiled over characters: it contains bytes that are not text, or
    /// distinguishes too many classes of characters.
    NotText,
    /// The automaton needs more memory or more work than allowed, or the compile was cancelled.
    Limit,
}

/// The limits on building an automaton.
#[derive(Clone, Copy, Debug)]
pub struct Room<'a> {
    /// The maximum number of bytes during the build, which also bounds the work.
    pub bytes: usize,
    /// Cancels the build.
    pub cancel: &'a Cancel,
}
