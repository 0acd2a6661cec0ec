//! Creates tables whose base holds what other tables have learned.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::cache::{Base, BaseEndStates, Tables};
use super::ground::VOCABULARY;
use crate::language::Terminal;

/// The number of states of a terminal whose masks are computed for the base.
const PRIMED_STATES: usize = 64;

impl Tables {
    /// Returns tables whose base holds everything that these have learned, and the terminal masks of the
    /// states of their terminals. One walk of the vocabulary for each state whose language is new.
    pub fn primed(&self) -> Tables {
        let known = self.terminals.iter().flat_map(|list| list.value().clone());
        let terminals: Vec<Arc<Terminal>> = known.map(|(_, terminal)| terminal).collect();
        for terminal in &terminals {
            for state in 0..terminal.len().min(PRIMED_STATES) as u32 {
                self.terminal_mask(terminal, state).find_rests(&self.vocab);
                if terminal.is_counted() {
                    self.length_mask(terminal, state);
                }
            }
        }
        let terminal_masks = self.terminal_masks.iter();
        let mut base = Base {
            bytes: self.bytes(),
            everything: self.base.everything.clone(),
            lengths: self.base.lengths.clone(),
            facts: self.base.facts.clone(),
            terminals: self.base.terminals.clone(),
            terminal_masks: self.base.terminal_masks.clone(),
            length_masks: self.base.length_masks.clone(),
            subtree_masks: self.base.subtree_masks.clone(),
            key_subtree_masks: self.base.key_subtree_masks.clone(),
            closed: self.base.closed.clone(),
            end_states: BaseEndStates::default(),
            tries: self.next_trie.load(Ordering::Relaxed) - VOCABULARY - 1,
        };
        let length_masks = self.length_masks.iter();
        base.length_masks
            .extend(length_masks.map(|entry| (*entry.key(), entry.value().clone())));
        base.terminal_masks
            .extend(terminal_masks.map(|entry| (*entry.key(), entry.value().clone())));
        let subtree_masks = self.subtree_masks.iter();
        base.subtree_masks
            .extend(subtree_masks.map(|entry| (*entry.key(), entry.value().clone())));
        let subtree_masks = self.key_subtree_masks.iter();
        base.key_subtree_masks
            .extend(subtree_masks.map(|entry| (*entry.key(), entry.value().clone())));
        let closed = self.closed.iter();
        base.closed
            .extend(closed.map(|entry| (*entry.key(), entry.value().clone())));
        for list in &self.terminals {
            base.terminals
                .entry(*list.key())
                .or_default()
                .extend(list.value().clone());
        }
        let terminals = base.terminals.values().flatten();
        base.end_states.tables = terminals.map(|(_, terminal)| terminal.table_number()).collect();
        Tables::over(
            self.vocab.clone(),
            self.horizon,
            self.bound,
            Arc::new(base),
            self.automata.primed(),
        )
    }
}
