//! The nearest valid text: the text of a grammar's language with the lowest cost of edits from a given text.
//!
//! ```text
//!   given      {"name": 'Bob', "age": 3       edits   ' ► "  ' ► "   insert }      cost 3
//!   nearest    {"name": "Bob", "age": 3}
//! ```
//!
//! An edit inserts, deletes or replaces one character, and has a cost. The answer is exact: no valid text is
//! nearer. It is computed on the machine of the grammar, so a schema, a regular expression and an EBNF
//! grammar are repaired in the same way. The search finds a shortest path (A*, Hart, Nilsson & Raphael 1968)
//! over pairs of a configuration of the machine and a place in the text; the distance to the end of the
//! grammar is a lower bound on the characters that must be inserted. For context-free languages the problem
//! goes back to Aho & Peterson 1972.
//!
//! If the texts of a grammar are JSON, [`Repair::of_json`] keeps values whole instead of as many characters
//! as possible.
//!
//! [`Repair::between`] compares two given texts with the same edits, for example a text with the one that a
//! model made of it.
//!
//! The cost of a repair grows with the length of the text times the number of configurations within reach of
//! the edits, and that number grows quickly with the cost of the edits. [`RepairLimits`] bound it; beyond
//! them the result is an error.

mod between;
mod characters;
mod edits;
mod json;
mod keys;
mod remaining;
mod search;
mod task;
mod weights;

use lexiform_automata::matcher::Grammar;

use between::cheapest;
pub use edits::Edit;
use keys::{is_valid, nearest_with_keys};
use task::Task;
pub use task::{Change, ChangeKind, Costs, Repair, RepairError, RepairLimits};

impl Repair {
    /// Returns the edits of lowest cost that lead from one text to another, without any grammar: for example,
    /// what a text written by someone else changes about the given one.
    ///
    /// Among several ways, the one with the fewest substitutions is chosen, and always the same one. The time
    /// is proportional to twice the product of the lengths in characters, without the common prefix and
    /// suffix of the texts; the memory is one row of such pairs (Hirschberg 1975).
    ///
    /// ```
    /// # use lexiform::repair::{Costs, Repair, RepairLimits};
    /// let repair = Repair::between("age: 3", "age = 42", &Costs::default(), &RepairLimits::default())?;
    /// assert_eq!((repair.cost, &repair.text[..]), (4, "age = 42"));
    /// assert_eq!((&repair.edits[0].removed[..], &repair.edits[0].inserted[..]), (":", " ="));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if a text is too long, if there are more pairs of places than the limit `nodes`, or
    /// if the comparison was cancelled.
    pub fn between(
        from: &str,
        to: &str,
        costs: &Costs,
        limits: &RepairLimits,
    ) -> Result<Repair, RepairError> {
        Task::new(to, costs, limits)?;
        cheapest(&Task::new(from, costs, limits)?, to)
    }
    /// Returns the valid text with the lowest cost from this one. Among several, it is always the same one.
    ///
    /// The results of the search are dropped at its end: the grammar does not grow.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use lexiform::{Options, Source, compile};
    /// # use lexiform::repair::{Costs, Repair, RepairLimits};
    /// # use lexiform::vocab::{TokenKind, Vocabulary};
    /// # let vocabulary = Arc::new(Vocabulary::new(&[(TokenKind::Text, "<eos>")], &[0])?);
    /// let schema = r#"{"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    ///                  "required": ["name", "age"], "additionalProperties": false}"#;
    /// let (grammar, _) = compile(Source::JsonSchema(schema), &vocabulary, &Options::default())?;
    /// let repair = Repair::of_text(&grammar, r#"{"name": "Bob", "age": 3]"#, &Costs::default(), &RepairLimits::default())?;
    /// assert_eq!((&repair.text[..], repair.cost), (r#"{"name": "Bob", "age": 3}"#, 1));
    /// assert_eq!((repair.edits[0].offset, &repair.edits[0].removed[..], &repair.edits[0].inserted[..]), (24, "]", "}"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if a limit is reached, which the error names, or if no text can be valid.
    pub fn of_text(
        grammar: &Grammar,
        text: &str,
        costs: &Costs,
        limits: &RepairLimits,
    ) -> Result<Repair, RepairError> {
        let task = Task::new(text, costs, limits)?;
        nearest_with_keys(grammar, &task)
    }

    /// Returns the valid text that contains the JSON values of this one, for a grammar whose texts are JSON.
    ///
    /// The text is read as people and models write JSON: in a fence, with prose around it, with keys in
    /// another order or without quotation marks, with other quotation marks, `True`, `None` and trailing
    /// commas, and cut off at its end. Then every key, number and string is kept as a whole if the grammar
    /// allows it, and dropped as a whole otherwise; nothing is renamed. Everything else that the grammar
    /// requires is added in the shortest way. [`Repair::changes`] lists what was done.
    ///
    /// A text of which no value can be kept is repaired by its characters, as [`of_text`](Repair::of_text)
    /// does.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use lexiform::{Options, Source, compile};
    /// # use lexiform::repair::{ChangeKind, Costs, Repair, RepairLimits};
    /// # use lexiform::vocab::{TokenKind, Vocabulary};
    /// # let vocabulary = Arc::new(Vocabulary::new(&[(TokenKind::Text, "<eos>")], &[0])?);
    /// let schema = r#"{"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    ///                  "required": ["name", "age"], "additionalProperties": false}"#;
    /// let (grammar, _) = compile(Source::JsonSchema(schema), &vocabulary, &Options::default())?;
    /// let text = "Here it is: {age: 3, 'name': 'Bob'}";
    /// let repair = Repair::of_json(&grammar, text, &Costs::default(), &RepairLimits::default())?;
    /// assert_eq!(repair.text, r#"{"name": "Bob", "age": 3}"#);
    /// assert_eq!(repair.changes[0].kind, ChangeKind::Reordered);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Returns the same errors as [`of_text`](Repair::of_text).
    pub fn of_json(
        grammar: &Grammar,
        text: &str,
        costs: &Costs,
        limits: &RepairLimits,
    ) -> Result<Repair, RepairError> {
        let task = Task::new(text, costs, limits)?;
        let is_valid = is_valid(&grammar.fresh(), text).unwrap_or(false);
        let repaired = if is_valid {
            None
        } else {
            json::repaired(grammar, &task)?
        };
        match repaired {
            Some(repair) => Ok(repair),
            None => nearest_with_keys(grammar, &task),
        }
    }
}
