//! Repairs objects whose keys must differ: first without this constraint and then, if the nearest text
//! repeats a key, with it.
//!
//! ```text
//!   keys forgotten    few configurations    ─► nearest text ─► its keys differ: it is also the nearest valid text
//!                                                           └► it repeats a key
//!   keys remembered   a configuration for each set of keys  ◄──┘
//! ```
//!
//! The first search accepts all valid texts and more, so its cost is a lower bound. In the second one, every
//! character of a key leads to a different configuration. It tries only the ASCII characters and those of the
//! text if others cannot make a text nearer: each of the others could be replaced by enough ASCII characters,
//! one of which makes the key differ from all others.

use super::characters::ascii;
use super::remaining::Remaining;
use super::search::nearest;
use super::task::{Repair, RepairError, Task};
use lexiform_automata::matcher::Grammar;

/// The number of ASCII characters that must lead to the same place as any other one. JSON strings have that
/// many.
const ALTERNATIVES: usize = 90;

/// Returns the valid text with the lowest cost.
pub(super) fn nearest_with_keys(grammar: &Grammar, task: &Task<'_>) -> Result<Repair, RepairError> {
    let machine = grammar.machine();
    let forgetful = grammar.over(machine.forgetting_keys());
    let is_ascii = grammar.ask_once(|| machine.takes_ascii_for_all(1))?;
    let remaining = forgetful.ask_once(|| Remaining::new(forgetful.machine(), is_ascii))?;
    let repair = nearest(&forgetful, task, remaining, None)?;
    if !machine.stacks().counts_keys() || is_valid(&grammar.fresh(), &repair.text)? {
        return Ok(repair);
    }
    // There is a comma between two members of an object, and between two items that must differ.
    let members = task.text.matches(',').count() as u64 + 1;
    let most = |cost: u64| members + cost + machine.excluded_keys() as u64;
    if grammar.ask_once(|| machine.takes_ascii_for_all(ALTERNATIVES))?
        && most(repair.cost) < ALTERNATIVES as u64
    {
        let mut alphabet: Vec<char> = task.text.chars().chain(ascii().map(char::from)).collect();
        alphabet.sort_unstable();
        alphabet.dedup();
        let repair = nearest_remembering(grammar, task, true, Some(alphabet))?;
        if most(repair.cost) < ALTERNATIVES as u64 {
            return Ok(repair);
        }
    }
    nearest_remembering(grammar, task, false, None)
}

fn nearest_remembering(
    grammar: &Grammar,
    task: &Task<'_>,
    is_ascii: bool,
    alphabet: Option<Vec<char>>,
) -> Result<Repair, RepairError> {
    let grammar = grammar.fresh();
    let remaining = grammar.ask_once(|| Remaining::new(grammar.machine(), is_ascii))?;
    nearest(&grammar, task, remaining, alphabet)
}

/// Checks whether a text belongs to the language of a grammar.
pub(super) fn is_valid(grammar: &Grammar, text: &str) -> Result<bool, RepairError> {
    let state = grammar.try_step_bytes(grammar.start(), text.as_bytes())?;
    Ok(state.is_some_and(|state| grammar.is_accepting(state)))
}
