//! Computes the keys and properties of a list that make no difference to tokens.

use std::sync::Arc;

use super::classes::{Equivalence, Hidden};
use super::token_facts::TokenFacts;
use crate::grammar::ItemOrder;
use crate::language::{ByteSet, Cursor, Terminal};
use crate::pushdown::object::key_set::KeySet;
use crate::pushdown::object::progress::{Bits, with_bit};
use crate::pushdown::plan::nfa::{Callee, Label, ObjectListPlan};
use crate::work::spend;

impl<F: TokenFacts> Equivalence<'_, F> {
    pub(crate) fn hidden(&self, object_list: u32) -> &Hidden {
        self.classes.hidden[object_list as usize].get_or_init(|| self.find_hidden(object_list))
    }

    fn find_hidden(&self, object_list: u32) -> Hidden {
        let plan = &self.frames.nfa.object_lists[object_list as usize];
        let keys = self.held_texts(object_list, plan);
        let none: Bits = vec![0; plan.properties.len().div_ceil(64)].into();
        let (mut after_item, mut anywhere) = (none.clone(), none);
        let unseen = self.unseen_after_items(object_list, plan);
        for (index, property) in plan.properties.iter().enumerate() {
            let mut rules = property.ways.iter().map(|&(rule, _)| rule);
            if rules.all(|rule| self.begins_like_a_key(object_list, plan, rule)) {
                anywhere = with_bit(&anywhere, index);
                after_item = with_bit(&after_item, index);
            } else if unseen(index as u32) {
                after_item = with_bit(&after_item, index);
            }
        }
        Hidden {
            keys,
            after_item,
            anywhere,
        }
    }

    /// Returns the keys that tokens contain, if the keys of an object list never run out and all begin and
    /// end with the same bytes.
    fn held_texts(&self, object_list: u32, plan: &ObjectListPlan) -> Option<Arc<KeySet>> {
        if plan.additional.is_empty() || self.frames.capacities[object_list as usize].is_some() {
            return None;
        }
        let mut edges = Vec::new();
        for additional in &plan.additional {
            let terminal = self.frames.terminal(additional.key?);
            edges.push(terminal.edges().filter(|_| terminal.is_endless_inside())?);
        }
        edges.dedup();
        match edges[..] {
            [(opening, closing)] if self.are_keys_alike((opening, closing)) => {
                self.facts.texts(opening, closing)
            }
            _ => None,
        }
    }

    /// The keys that tokens contain are cached by list, so all object lists must have the same first and last
    /// byte.
    fn are_keys_alike(&self, edges: (u8, u8)) -> bool {
        *self.classes.key_edges.get_or_init(|| edges) == edges
    }

    /// Returns a function that decides which properties tokens cannot see from after an item.
    fn unseen_after_items(&self, object_list: u32, plan: &ObjectListPlan) -> impl Fn(u32) -> bool {
        let automaton = self.frames.next_key_automaton(object_list);
        let separator = plan.separator.filter(|_| plan.order == ItemOrder::Any);
        let seen = separator
            .filter(|&rule| !self.frames.analysis.is_nullable(Callee::Rule(rule)))
            .zip(automaton.opening())
            .and_then(|(separator, opening)| {
                let first = self.first_bytes(separator)?;
                Some(automaton.properties_after(opening, &self.facts.after(&first, opening)))
            });
        move |property| seen.as_ref().is_some_and(|seen| !seen.contains(&property))
    }

    /// Returns the bytes with which the words of a rule begin; `None` if a rule does more than read bytes
    /// first.
    fn first_bytes(&self, rule: u32) -> Option<ByteSet> {
        let start = self.frames.start(Callee::Rule(rule));
        self.frames.only_reads(start).then(|| *self.frames.bytes(start))
    }

    /// Returns `true` if infinitely many other keys continue like the key of a rule up to its last byte, and
    /// no token contains the key.
    fn begins_like_a_key(&self, object_list: u32, plan: &ObjectListPlan, rule: u32) -> bool {
        if plan.order != ItemOrder::Any || self.frames.capacities[object_list as usize].is_some() {
            return false;
        }
        plan.additional
            .iter()
            .filter_map(|additional| additional.key)
            .any(|key| {
                let terminal = self.frames.terminal(key);
                let Some((opening, closing)) = terminal.edges().filter(|_| terminal.is_endless_inside())
                else {
                    return false;
                };
                let held = self.facts.texts(opening, closing);
                let start = self.frames.nfa.rules[rule as usize].start;
                let key = self.text_left((rule, start), (terminal, terminal.start()), closing);
                key.zip(held)
                    .is_some_and(|(key, held)| key[0] == opening && !held.contains(&key))
            })
    }

    /// Returns the text with which all words continue from a node of a rule, up to the first byte with which
    /// keys close; `None` if that is not fixed, or if not infinitely many keys continue like it.
    pub(crate) fn text_left(
        &self,
        (rule, mut node): (u32, u32),
        (terminal, mut cursor): (&Terminal, Cursor),
        closing: u8,
    ) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        loop {
            spend(1);
            let [edge] = &self.frames.nfa.nodes[node as usize][..] else {
                return None;
            };
            let Label::Bytes(byte, last) = edge.label else {
                return None;
            };
            if byte != last || node == self.frames.nfa.rules[rule as usize].accept {
                return None;
            }
            let is_first = text.is_empty() && cursor == terminal.start();
            text.push(byte);
            node = edge.to;
            if byte == closing && !is_first {
                return Some(text);
            }
            cursor = terminal
                .next(cursor, byte)
                .filter(|&next| terminal.is_infinite(next))?;
        }
    }
}
