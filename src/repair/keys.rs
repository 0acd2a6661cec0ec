//! Objects whose keys must differ: first as if they need not, and then, where the nearest text has a key
//! twice, in earnest.
//!
//! ```text
//!   keys forgotten    few configurations    ─► nearest text ─► its keys differ: it is the nearest valid text, too
//!                                                           └► some key comes twice
//!   keys remembered   a configuration for each set of keys  ◄──┘
//! ```
//!
//! The first search reads all valid texts and more, so that its answer is a lower bound. In the second one
//! every character of a key leads to a configuration of its own. It tries those of ASCII and those of the
//! text alone where others cannot make a text nearer: each of the others could be replaced by enough of
//! ASCII, one of which makes the key differ from all others.

use super::characters::ascii;
use super::remaining::Remaining;
use super::search::nearest;
use super::task::{Repair, RepairError, Task};
use lexiform_automata::matcher::Grammar;

/// ASCII characters that lead to the same place as any other one. There are so many in JSON strings.
const ALTERNATIVES: usize = 90;

/// The valid text at the least cost.
pub(super) fn nearest_with_keys(grammar: &Grammar, task: &Task<'_>) -> Result<Repair, RepairError> {
    let machine = grammar.machine();
    let forgetful = grammar.over(machine.forgetting_keys());
    let is_ascii = grammar.ask_once(|| machine.takes_ascii_for_all(1))?;
    let remaining = forgetful.ask_once(|| Remaining::new(forgetful.machine(), is_ascii))?;
    let repair = nearest(&forgetful, task, remaining, None)?;
    if !machine.stacks().counts_keys() || is_valid(&grammar.fresh(), &repair.text)? {
        return Ok(repair);
    }
    // Between two members of an object, and two items that must differ, stands a comma.
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

/// Whether a text is of the language of a grammar.
pub(super) fn is_valid(grammar: &Grammar, text: &str) -> Result<bool, RepairError> {
    let state = grammar.try_step_bytes(grammar.start(), text.as_bytes())?;
    Ok(state.is_some_and(|state| grammar.is_accepting(state)))
}
