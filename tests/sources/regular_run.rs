//! Runs a `Regular` on texts, by simulating the automaton that regex-automata builds of each part.

use lexiform_automata::grammar::{Part, Regular};
use regex_automata::nfa::thompson::{Compiler, Config, NFA, State};
use regex_automata::util::primitives::StateID;
use regex_syntax::hir::{Hir, Repetition};

/// The automata of all parts, and whether each must match.
pub(crate) struct Runner {
    parts: Vec<(NFA, bool)>,
}

impl Runner {
    /// Builds the automata; the error is a reason in words.
    pub(crate) fn new(regular: &Regular) -> Result<Self, String> {
        let parts: Result<Vec<_>, _> = regular.parts.iter().map(automaton).collect();
        Ok(Runner { parts: parts? })
    }

    /// Returns `true` if the text as a whole is in the language.
    pub(crate) fn accepts(&self, text: &[u8]) -> bool {
        self.parts
            .iter()
            .all(|(nfa, expected)| matches_whole(nfa, text) == *expected)
    }
}

fn automaton(part: &Part) -> Result<(NFA, bool), String> {
    let (hir, expected) = match part {
        Part::Match(hir) => (Hir::clone(hir), true),
        Part::Not(hir) => (Hir::clone(hir), false),
        Part::Units { unit, min, max } => {
            let (min, max) = (*min as u32, max.map(|max| max as u32));
            (
                Hir::repetition(Repetition {
                    min,
                    max,
                    greedy: true,
                    sub: Box::new(Hir::clone(unit)),
                }),
                true,
            )
        }
    };
    assert!(
        hir.properties().look_set().is_empty(),
        "a part has look-around left"
    );
    let config = Config::new().utf8(false).nfa_size_limit(Some(200 << 20));
    let nfa = Compiler::new().configure(config).build_from_hir(&hir);
    Ok((nfa.map_err(|error| format!("too large: {error}"))?, expected))
}

fn matches_whole(nfa: &NFA, text: &[u8]) -> bool {
    let mut now = vec![nfa.start_anchored()];
    close(nfa, &mut now);
    for &byte in text {
        let mut next: Vec<StateID> = now.iter().filter_map(|&id| advance(nfa, id, byte)).collect();
        close(nfa, &mut next);
        now = next;
    }
    now.iter().any(|&id| matches!(nfa.state(id), State::Match { .. }))
}

fn advance(nfa: &NFA, id: StateID, byte: u8) -> Option<StateID> {
    match nfa.state(id) {
        State::ByteRange { trans } => trans.matches_byte(byte).then_some(trans.next),
        State::Sparse(sparse) => sparse.matches_byte(byte),
        State::Dense(dense) => dense.matches_byte(byte),
        _ => None,
    }
}

/// Adds all states that are reached without reading, and drops duplicates.
fn close(nfa: &NFA, states: &mut Vec<StateID>) {
    let mut seen = vec![false; nfa.states().len()];
    let mut stack = std::mem::take(states);
    while let Some(id) = stack.pop() {
        if std::mem::replace(&mut seen[id.as_usize()], true) {
            continue;
        }
        states.push(id);
        match nfa.state(id) {
            State::Union { alternates } => stack.extend(alternates.iter().copied()),
            State::BinaryUnion { alt1, alt2 } => stack.extend([*alt1, *alt2]),
            State::Capture { next, .. } => stack.push(*next),
            _ => {}
        }
    }
}
