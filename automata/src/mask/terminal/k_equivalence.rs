//! States that no short text tells apart.
//!
//! The terminal mask of such a state is that of the other, but for long tokens. Where a pattern counts words or letters, each
//! count is a state of its own, and only the last of them differ in what a token of eight bytes may do.

use std::sync::{Arc, Mutex, Weak};

use super::terminal_mask::TerminalMask;
use crate::language::Terminal;

/// The states of a terminal that are walked before it is found out which are alike.
const FIRST: usize = 3;

/// How many transitions are compared in the time of one walk.
const TRANSITIONS: usize = 12_000;

/// No more states are compared with.
const MOST: usize = 64;

/// The states of a terminal that were walked as a whole.
#[derive(Debug, Default)]
pub(crate) struct Walked(Mutex<Vec<(u32, Weak<TerminalMask>)>>);

/// A state, its terminal mask, and the number of bytes for which another state goes on like it.
pub(crate) struct KEquivalent {
    pub(crate) state: u32,
    pub(crate) terminal_mask: Arc<TerminalMask>,
    pub(crate) bytes: usize,
}

/// The state that is like this one for the longest, among those that were walked.
pub(crate) fn find(walked: &Walked, terminal: &Terminal, state: u32) -> Option<KEquivalent> {
    let walked = walked.0.lock().ok()?;
    // It is done when it would have paid already.
    if walked.len() < FIRST || walked.len() * TRANSITIONS < terminal.transitions() {
        return None;
    }
    let alike = terminal.k_equivalence();
    let near = walked.iter().filter_map(|(other, terminal_mask)| {
        Some(KEquivalent {
            state: *other,
            bytes: alike.bytes(state, *other)?,
            terminal_mask: terminal_mask.upgrade()?,
        })
    });
    near.max_by_key(|near| near.bytes)
}

/// Remembers the terminal mask of a state that others may be like.
pub(crate) fn remember(walked: &Walked, state: u32, terminal_mask: &Arc<TerminalMask>) {
    let (None, Ok(mut walked)) = (&terminal_mask.base, walked.0.lock()) else {
        return;
    };
    if walked.len() == MOST {
        walked.remove(0);
    }
    walked.push((state, Arc::downgrade(terminal_mask)));
}
