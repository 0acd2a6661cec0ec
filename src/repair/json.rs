//! Repairs JSON: reads the values of a text as a person would, and writes them as the grammar requires.
//!
//! ```text
//!   Here it is: {name: 'Bob', "age": 34, "x": 1} Bye!   ─ read ─►   name, age, x   ─ write ─►   {"age": 34, "name": "Bob"}
//!   └─ dropped ┘                                └ dropped ┘         in the order of the grammar; x is not allowed
//! ```
//!
//! The nearest text by characters mixes up values: where two keys are swapped, renaming them takes fewer
//! edits than moving them, and an extra key is cut down to a digit of the number before it. So keys, numbers
//! and strings are kept or dropped as a whole here, and nothing is renamed. Required parts that are missing
//! are completed in the shortest way.
//!
//! [`read`](self::read) parses the text into a tree and tolerates everything that models write,
//! [`scalar`](self::scalar) lists the spellings of a value, [`order`](self::order) determines the order of
//! keys, and [`write`](self::write) walks the machine of the grammar. A text takes one walk, not a search:
//! the work is linear in it, except for the order of keys.

mod order;
mod read;
mod scalar;
mod write;

use super::between::cheapest;
use super::edits::Edit;
use super::task::{Change, ChangeKind, Repair, RepairError, Task};
use super::weights::Weights;
use lexiform_automata::error::Place;
use lexiform_automata::matcher::Grammar;
use read::Read;
use write::Writer;

/// The most values in a text that are tried: those in brackets, the longest first, and the text as a whole.
const CANDIDATES: usize = 5;

/// Returns the valid text that contains the values of a given one, or `None` if none of them can be kept.
pub(super) fn repaired(grammar: &Grammar, task: &Task<'_>) -> Result<Option<Repair>, RepairError> {
    let mut best: Option<(usize, Read, Writer<'_>)> = None;
    let grammar = &grammar.fresh();
    for value in read::candidates(task.text, CANDIDATES) {
        let mut writer = match Writer::new(grammar, task) {
            Ok(writer) => writer,
            Err(error) => return given_up(error),
        };
        match writer.whole(&value) {
            Ok(false) => continue,
            Err(error) => {
                given_up::<()>(error)?;
                continue;
            }
            Ok(true) => {}
        }
        let loss = writer.loss();
        if writer.kept() > 0 && best.as_ref().is_none_or(|(least, ..)| loss < *least) {
            best = Some((loss, value, writer));
        }
    }
    let Some((_, value, writer)) = best else {
        return Ok(None);
    };
    let (text, mut changes) = writer.into_parts();
    for around in [&task.text[..value.span.start], &task.text[value.span.end..]] {
        if !around.trim().is_empty() {
            changes.push(Change::new(ChangeKind::Around, String::new(), around.trim()));
        }
    }
    let Some(text) = text.filter(|text| is_valid(grammar, text)) else {
        return Ok(None);
    };
    let (cost, edits) = compared(task, &text)?;
    Ok(Some(Repair {
        text,
        cost,
        edits,
        changes,
    }))
}

/// Ends one walk so that others can be tried, unless the repair was cancelled.
fn given_up<T>(error: RepairError) -> Result<Option<T>, RepairError> {
    match error {
        RepairError::Cancelled => Err(error),
        _ => Ok(None),
    }
}

fn is_valid(grammar: &Grammar, text: &str) -> bool {
    let state = grammar.try_step_bytes(grammar.start(), text.as_bytes());
    matches!(state, Ok(Some(state)) if grammar.is_accepting(state))
}

/// Returns the edits to the text, and their cost: the cheapest edits or, if the texts are too long to
/// compare, a single edit for the whole difference.
fn compared(task: &Task<'_>, text: &str) -> Result<(u64, Vec<Edit>), RepairError> {
    match cheapest(task, text) {
        Ok(repair) => Ok((repair.cost, repair.edits)),
        Err(RepairError::TooManyPairs { .. }) => Ok(replaced(task, text)),
        Err(error) => Err(error),
    }
}

fn replaced(task: &Task<'_>, text: &str) -> (u64, Vec<Edit>) {
    let same = |(one, other): &((usize, char), char)| one.1 == *other;
    let begun = task.text.char_indices().zip(text.chars()).take_while(same);
    let begun: usize = begun.map(|((_, c), _)| c.len_utf8()).sum();
    let (from, to) = (&task.text[begun..], &text[begun..]);
    let ended = from.chars().rev().zip(to.chars().rev());
    let ended: usize = ended
        .take_while(|(one, other)| one == other)
        .map(|(c, _)| c.len_utf8())
        .sum();
    let (removed, inserted) = (&from[..from.len() - ended], &to[..to.len() - ended]);
    let edit = Edit {
        offset: begun,
        place: Place::in_text(task.text, begun),
        removed: removed.to_owned(),
        inserted: inserted.to_owned(),
    };
    let cost = Weights::of_replacement(task.costs, removed.chars().count(), inserted.chars().count());
    (cost, vec![edit])
}
