//! The nearest valid text: the text of a grammar's language that takes the least cost of edits from a given
//! one.
//!
//! ```text
//!   given      {"name": 'Bob', "age": 3       edits   ' ► "  ' ► "   insert }      cost 3
//!   nearest    {"name": "Bob", "age": 3}
//! ```
//!
//! An edit inserts, deletes or replaces one character, and has a cost. The answer is exact: no valid text is
//! nearer. It is found on the machine of the grammar, so a schema, a regular expression and a grammar in EBNF
//! are repaired alike. It is a shortest path (A*, Hart, Nilsson & Raphael 1968) over pairs of a configuration
//! of the machine and a place in the text; the distance to the end of the grammar says how many characters
//! must be inserted at least. For context-free languages the problem goes back to Aho & Peterson 1972.
//!
//! Where the texts of a grammar are JSON, [`Repair::of_json`] keeps values whole instead of as many
//! characters as it can.
//!
//! What somebody else made of a text, a model for example, is compared with it by [`Repair::between`], in the
//! same edits.
//!
//! What a repair costs grows with the length of the text times the number of configurations within reach of
//! the edits, and the latter grows quickly with their cost. [`RepairLimits`] bound it; beyond them there is
//! an error and no answer.

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
    /// The edits that lead from one text to another at the least cost, whatever either is: what a text that
    /// somebody else wrote in place of a given one changes about it.
    ///
    /// Of several ways the one with the fewest substitutions is taken, and always the same one. It takes time
    /// for twice as many pairs of places as the product of the lengths in characters, without what both texts
    /// begin and end with, and memory for a row of them (Hirschberg 1975).
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
    /// A text is too long, their pairs of places are more than the limit `nodes`, or somebody called the
    /// comparison off.
    pub fn between(
        from: &str,
        to: &str,
        costs: &Costs,
        limits: &RepairLimits,
    ) -> Result<Repair, RepairError> {
        Task::new(to, costs, limits)?;
        cheapest(&Task::new(from, costs, limits)?, to)
    }
    /// The valid text at the least cost from this one. Of several, always the same one.
    ///
    /// What the search finds out is dropped with it: the grammar does not grow.
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
    /// When a limit is reached, which the error names, or no text can be valid.
    pub fn of_text(
        grammar: &Grammar,
        text: &str,
        costs: &Costs,
        limits: &RepairLimits,
    ) -> Result<Repair, RepairError> {
        let task = Task::new(text, costs, limits)?;
        nearest_with_keys(grammar, &task)
    }

    /// The valid text that holds the JSON values of this one, for a grammar whose texts are JSON.
    ///
    /// The text is read as people and models write JSON: in a fence, with prose around it, with keys in
    /// another order or without quotation marks, with other quotation marks, `True`, `None` and trailing
    /// commas, and cut off at its end. Then every key, number and string is kept as a whole where the grammar
    /// allows it, and dropped as a whole elsewhere; nothing is renamed. What the grammar demands beyond that
    /// is added in the shortest way. [`Repair::changes`] says what was done.
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
    /// Those of [`of_text`](Repair::of_text).
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
