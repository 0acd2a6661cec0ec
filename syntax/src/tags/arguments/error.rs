//! The errors of reading arguments.

use std::fmt;

use lexiform_automata::error::CompileError;

/// The reason why a text is not the arguments of a call.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ArgumentError {
    /// The schema of the arguments does not compile.
    Schema(CompileError),
    /// The text is not JSON; the message of the parser gives the place.
    Json(String),
    /// The text has no argument, and does not end, at this byte.
    Frame(usize),
    /// The arguments are nested too deeply.
    Depth,
    /// The schema allows no argument of this name, or not this value.
    Argument(String),
    /// A required argument of this name is missing.
    Missing(String),
    /// The schema has so many branches that finding the one that was written takes too many steps.
    Steps,
}

impl fmt::Display for ArgumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ArgumentError::Schema(error) => write!(f, "the schema of the arguments: {error}"),
            ArgumentError::Json(message) => write!(f, "the arguments are not JSON: {message}"),
            ArgumentError::Frame(at) => write!(f, "byte {at}: expected an argument or the end of the text"),
            ArgumentError::Depth => write!(f, "the arguments are nested too deeply"),
            ArgumentError::Argument(name) => {
                write!(
                    f,
                    "the schema does not allow the argument `{name}` with this value"
                )
            }
            ArgumentError::Missing(name) => write!(f, "the argument `{name}` is missing"),
            ArgumentError::Steps => write!(f, "the schema has too many branches to read the arguments by"),
        }
    }
}

impl std::error::Error for ArgumentError {}
