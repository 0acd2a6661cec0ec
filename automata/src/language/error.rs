//! The errors of building a regular language.

/// The error of a regular language that cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TerminalError {
    /// No word belongs to the language.
    #[error("no text can match this expression")]
    Empty,
    /// A limit was reached.
    #[error("the expression needs more than {limit} {what}")]
    Limit {
        /// The counted quantity, such as states.
        what: &'static str,
        /// The value of the limit.
        limit: usize,
    },
    /// The counted unit is not a prefix code, or two different units are counted at once.
    #[error("the repeated part cannot be counted: {0}")]
    Units(&'static str),
    /// The expression uses look-around.
    #[error("look-around is not possible inside a grammar")]
    Look,
}
