//! Checks whether counting characters ever needs a character beyond ASCII. If wherever such a character may
//! be written, ASCII characters lead to the same place, the fewest bytes that complete a text are also the
//! fewest characters.

use super::Machine;
use super::plan::nfa::Label;
use crate::language::Terminal;

/// The maximum number of states of a language that is examined.
const STATES: usize = 1 << 14;

/// Returns the bounds of the second byte of a character, given its first byte (Unicode 3.9, table 3-7).
pub fn second_bytes(first: u8) -> (u8, u8) {
    match first {
        0xE0 => (0xA0, 0xBF),
        0xED => (0x80, 0x9F),
        0xF0 => (0x90, 0xBF),
        0xF4 => (0x80, 0x8F),
        _ => (0x80, 0xBF),
    }
}

/// Returns the number of bytes of a character after its first.
pub fn more_bytes(first: u8) -> usize {
    match first {
        0xC2..=0xDF => 1,
        0xE0..=0xEF => 2,
        0xF0..=0xF4 => 3,
        _ => 0,
    }
}

impl Machine {
    /// Returns `true` if for each character beyond ASCII that may occur anywhere, at least `least` ASCII
    /// characters lead to the same place. Returns `false` also if that is not known. O(size of the grammar).
    pub fn takes_ascii_for_all(&self, least: usize) -> bool {
        let frames = &self.stacks.frames;
        let is_ascii = |label| !matches!(label, Label::Bytes(_, 0x80..));
        let mut edges = frames.nfa.nodes.iter().flatten();
        frames.nfa.validated.is_empty()
            && edges.all(|edge| is_ascii(edge.label))
            && frames.terminals.iter().flatten().all(|terminal| {
                terminal.len() <= STATES
                    && (0..terminal.len() as u32).all(|state| state_takes_ascii(terminal, state, least))
            })
    }

    /// Returns the maximum number of keys that a list of the grammar excludes by name.
    pub fn excluded_keys(&self) -> usize {
        let object_lists = self.stacks.frames.nfa.object_lists.iter();
        object_lists.map(|plan| plan.taken.len()).max().unwrap_or(0)
    }
}

/// Returns `true` if, for each other character, at least `least` ASCII characters lead from a state to the
/// same target.
fn state_takes_ascii(terminal: &Terminal, state: u32, least: usize) -> bool {
    let mut to: Vec<(u32, bool)> = (0..0x80)
        .filter_map(|byte| terminal.next_unit(state, byte))
        .collect();
    to.sort_unstable();
    let enough = |target: &(u32, bool)| {
        let first = to.partition_point(|other| other < target);
        to[first..].iter().take_while(|&other| other == target).count() >= least
    };
    let mut seen = Vec::new();
    for first in 0xC2..=0xF4 {
        let Some((inside, false)) = terminal.next_unit(state, first) else {
            if terminal.next_unit(state, first).is_some() {
                return false;
            }
            continue;
        };
        let key = (inside, second_bytes(first), more_bytes(first));
        if seen.contains(&key) {
            continue;
        }
        seen.push(key);
        let (low, high) = second_bytes(first);
        if !ends_of(terminal, inside, (low, high), more_bytes(first))
            .iter()
            .all(enough)
        {
            return false;
        }
    }
    true
}

/// Returns the targets of a partial character that misses this many bytes, the next one within these bounds.
fn ends_of(terminal: &Terminal, state: u32, (low, high): (u8, u8), missing: usize) -> Vec<(u32, bool)> {
    let mut open = vec![(state, false)];
    for place in 0..missing {
        let (low, high) = if place == 0 { (low, high) } else { (0x80, 0xBF) };
        let next = open
            .iter()
            .flat_map(|&(state, _)| (low..=high).filter_map(move |byte| terminal.next_unit(state, byte)));
        let mut next: Vec<(u32, bool)> = next.collect();
        next.sort_unstable();
        next.dedup();
        open = next;
    }
    open
}
