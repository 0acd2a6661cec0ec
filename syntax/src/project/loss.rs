//! What a projection loses and what it recodes, with the places in the source.

use std::fmt;

/// The side to which a projection loses what the target cannot have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Toward {
    /// Constraints are dropped: the target allows every value of the schema, and answers are validated.
    #[default]
    Wider,
    /// Values are dropped: the target allows no value that the schema does not.
    Narrower,
}

/// A constraint of a schema that a target cannot have.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Loss {
    /// The JSON pointer of the keyword, or of the schema that it follows from.
    pub pointer: String,
    /// What it does to the set of values.
    pub effect: Effect,
    /// What is lost, for people.
    pub message: String,
    /// `true` if all that is lost is that a property that may be null may also be absent.
    pub is_absence: bool,
}

/// The effect of a loss on the set of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Effect {
    /// The target allows values that the schema does not.
    Wider,
    /// The target does not allow some values of the schema.
    Narrower,
}

impl Effect {
    /// Returns its name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Effect::Wider => "wider",
            Effect::Narrower => "narrower",
        }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}: {}: {}", self.pointer, self.effect.as_str(), self.message)
    }
}

/// A part of a schema that is written in another shape, and restored from answers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Recoding {
    /// The JSON pointer of the part.
    pub pointer: String,
    /// How it is written, for people.
    pub message: String,
    /// `true` if it is a string that holds JSON text, in which a target may write anything.
    pub is_text: bool,
}

impl fmt::Display for Recoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}: {}", self.pointer, self.message)
    }
}
