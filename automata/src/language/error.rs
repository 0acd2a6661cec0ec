//! Why a regular expression has no automaton.

/// Why a regular language could not be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TerminalError {
    /// No word belongs to the language.
    #[error("no text can match this expression")]
    Empty,
    /// A limit was reached.
    #[error("the expression needs more than {limit} {what}")]
    Limit {
        /// What there are too many of.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// The counted unit is not a prefix code, or two different units are counted at once.
    #[error("the repeated part cannot be counted: {0}")]
    Units(&'static str),
    /// The expression looks around.
    #[error("look-around is not possible inside a grammar")]
    Look,
}
