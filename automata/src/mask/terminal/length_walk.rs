//! Computes a length mask in one walk of the vocabulary.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::length_mask::{Ends, Group, LengthMask, only_upper};
use super::places::Places;
use super::token_lengths::begins;
use crate::language::Terminal;
use crate::mask::cache::Tables;
use crate::mask::set::TokenSet;
use crate::mask::skip::closed::{ClosedAlphabets, Kept};
use crate::vocab::Trie;
use crate::work::spend;

impl Tables {
    /// Returns the length mask of a state of a counted language.
    pub(crate) fn length_mask(&self, terminal: &Terminal, state: u32) -> Arc<LengthMask> {
        let name = LengthMask::name(terminal, state);
        self.known_or((&self.base.length_masks, &self.length_masks), name, || {
            let length_mask = LengthMask::new(terminal, state, self);
            (length_mask.bytes(), Arc::new(length_mask))
        })
    }
}

impl LengthMask {
    /// Walks the vocabulary once from a state. O(nodes of the trie that are visited).
    pub(crate) fn new(terminal: &Terminal, state: u32, tables: &Tables) -> LengthMask {
        let (vocab, closed) = (tables.vocabulary(), tables.closed(terminal));
        let mut walk = LengthWalk::new(terminal, vocab.trie(), state, &closed);
        walk.run();
        let names = terminal.language_ids(true);
        let inner = walk.inner.into_iter().map(|(state, units, tokens)| Group {
            language: names[state as usize],
            units,
            tokens: TokenSet::new(tokens, vocab.len()),
        });
        let sets = walk.sets.into_iter();
        let ends = walk.ends.into_iter().map(|((byte, units), nodes)| Ends {
            byte,
            units,
            nodes: nodes.into(),
        });
        LengthMask {
            sets: sets
                .map(|(more, places)| (more, places.into_set(tables)))
                .collect(),
            inner: inner.collect(),
            ends: ends.collect(),
        }
    }
}

struct LengthWalk<'a> {
    terminal: &'a Terminal,
    trie: &'a Trie,
    /// `true` if all states are treated as endless.
    only_upper: bool,
    /// Finds the subtrees that stay within the language with one unit per character.
    closed: ClosedAlphabets<'a>,
    /// The place in `closed` of each state, once known.
    places: Vec<u32>,
    /// The step at each depth of the path.
    path: Vec<WalkStep>,
    /// The node at each depth of the path, from depth 1.
    nodes: Vec<u32>,
    /// The depth up to which nodes of the path are already recorded as ends.
    marked: usize,
    /// The places of tokens, by the number of units beyond their characters in the shortest word beginning
    /// with them.
    sets: Vec<(i64, Places)>,
    /// Tokens whose end state is not endless, by that state and their units.
    inner: Vec<(u32, u64, Vec<u32>)>,
    /// The index in `inner` for each state and number of units, or [`NONE`].
    groups: Vec<Vec<u32>>,
    ends: FxHashMap<(u8, u64), Vec<u32>>,
}

/// A state, with the units completed and the characters begun on the path to it.
#[derive(Clone, Copy)]
struct WalkStep {
    state: u32,
    units: u64,
    begun: u64,
}

const NONE: u32 = u32::MAX;

impl<'a> LengthWalk<'a> {
    fn new(terminal: &'a Terminal, trie: &'a Trie, state: u32, kept: &'a Kept) -> LengthWalk<'a> {
        let only_upper = only_upper(terminal, state);
        LengthWalk {
            terminal,
            trie,
            only_upper,
            closed: ClosedAlphabets::of_units(terminal, trie, only_upper, kept),
            places: vec![NONE; terminal.len()],
            path: vec![WalkStep {
                state,
                units: 0,
                begun: 0,
            }],
            nodes: Vec::new(),
            marked: 0,
            sets: Vec::new(),
            inner: Vec::new(),
            groups: Vec::new(),
            ends: FxHashMap::default(),
        }
    }

    fn run(&mut self) {
        let trie = self.trie;
        let nodes = trie.nodes();
        let mut at = 0;
        while at < nodes.len() {
            spend(1);
            let node = &nodes[at];
            let depth = usize::from(node.depth);
            self.marked = self.marked.min(depth - 1);
            let step = self.path[depth - 1];
            let is_leaf = node.end as usize == at + 1;
            if !is_leaf && self.passes_over(at, step.state) {
                self.add(step, trie.places_below(at));
                at = node.end as usize;
                continue;
            }
            let Some((state, unit)) = self.terminal.next_unit(step.state, node.byte) else {
                self.leave(at as u32, depth);
                at = node.end as usize;
                continue;
            };
            let next = WalkStep {
                state,
                units: step.units + u64::from(unit),
                begun: step.begun + u64::from(begins(node.byte)),
            };
            if node.count > 0 {
                self.add(next, node.places());
            }
            if !is_leaf {
                self.path.truncate(depth);
                self.path.push(next);
                self.nodes.truncate(depth - 1);
                self.nodes.push(at as u32);
            }
            at += 1;
        }
    }

    /// Returns `true` if each character of a subtree is a unit and leads to a state from which a word takes
    /// as many units as from here.
    #[inline]
    fn passes_over(&mut self, node: usize, state: u32) -> bool {
        let place = &mut self.places[state as usize];
        if *place == NONE {
            *place = self.closed.place(state);
        }
        let lasts = self.closed.alphabet(*place, self.trie.heights()[node]);
        self.trie.alphabet(node) & !lasts == 0
    }

    /// Adds tokens that lead to a state, or to states equally far from the end.
    #[inline]
    fn add(&mut self, step: WalkStep, places: std::ops::Range<u32>) {
        if !self.only_upper && !self.terminal.is_endless(step.state) {
            let tokens = &self.trie.tokens()[places.start as usize..places.end as usize];
            self.group(step).extend_from_slice(tokens);
            return;
        }
        let units = step.units + self.terminal.least_units(step.state);
        let more = units as i64 - step.begun as i64;
        match self.sets.iter_mut().find(|set| set.0 == more) {
            Some(set) => set.1.add(places),
            None => {
                let mut set = Places::default();
                set.add(places);
                self.sets.push((more, set));
            }
        }
    }

    /// Returns the list of the tokens that lead to the state and the number of units of a step.
    fn group(&mut self, step: WalkStep) -> &mut Vec<u32> {
        let (state, units) = (step.state, step.units as usize);
        self.groups.resize_with(self.terminal.len(), Vec::new);
        let groups = &mut self.groups[state as usize];
        if groups.len() <= units {
            groups.resize(units + 1, NONE);
        }
        let group = &mut groups[units];
        if *group == NONE {
            *group = self.inner.len() as u32;
            self.inner.push((state, step.units, Vec::new()));
        }
        &mut self.inner[*group as usize].2
    }

    /// Records as ends all positions on the path where a word may have ended, except the start, as in a
    /// terminal mask.
    fn leave(&mut self, node: u32, depth: usize) {
        let marked = std::mem::replace(&mut self.marked, depth - 1);
        for at in (marked + 1).max(2)..=depth {
            let entered = if at < depth { self.nodes[at - 1] } else { node };
            let WalkStep { state, units, .. } = self.path[at - 1];
            if self.terminal.is_accepting_state(state) {
                let byte = self.trie.nodes()[entered as usize].byte;
                self.ends.entry((byte, units)).or_default().push(entered);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::grammar::{Part, Regular};
    use crate::limits::Limits;
    use crate::mask::set::Mask;
    use crate::vocab::{TokenKind, Vocabulary};

    /// Returns tokens of the characters that the patterns distinguish, whole ones and some that are cut off,
    /// with large subtrees.
    fn tokens() -> Vec<Vec<u8>> {
        let pieces = [
            "a", "b", "c", "x", ".", "-", "\"", "\\", "\\n", "é", "中", "abc", "cab.", "aa", " ",
        ];
        let mut tokens: Vec<Vec<u8>> = Vec::new();
        for one in pieces {
            for two in pieces {
                tokens
                    .extend(["", ".", "a", "bc", "中"].map(|three| [one, two, three].concat().into_bytes()));
            }
            tokens.push(one.into());
        }
        tokens.extend(
            [
                &b"a\xE4\xB8"[..],
                b"\xE4",
                b"\xC3",
                b"\xA9",
                b"a\xC3",
                b"\xA9b",
                b"c\xFF",
            ]
            .map(Vec::from),
        );
        tokens.extend((2..24).map(|count| vec![b'b'; count]));
        tokens.sort();
        tokens.dedup();
        tokens
    }

    fn tables() -> Tables {
        let mut all: Vec<(TokenKind, Vec<u8>)> = tokens()
            .into_iter()
            .map(|bytes| (TokenKind::Text, bytes))
            .collect();
        all.push((TokenKind::Special, b"end".to_vec()));
        let vocab = Vocabulary::new(&all, &[all.len() as u32 - 1]).expect("it is a vocabulary");
        Tables::new(Arc::new(vocab), usize::MAX)
    }

    fn terminal(matched: &str, unit: &str, (min, max): (u64, Option<u64>)) -> Option<Terminal> {
        let hir = |pattern: &str| {
            regex_syntax::parse(pattern)
                .expect("the test's pattern is well formed")
                .into()
        };
        let unit = hir(unit);
        let parts = vec![Part::Match(hir(matched)), Part::Units { unit, min, max }];
        Terminal::new(&Regular::of(parts), &Limits::default()).ok()
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

        #[test]
        fn a_profile_says_of_each_token_what_reading_it_says(
            shape in 0..7usize,
            count in 1..9usize,
            min in 0..7u64,
            more in prop::option::of(0..20u64),
            text in "[abc.é\\\\n-]{0,12}",
        ) {
            let matched = match shape {
                0 => "(?s).*".to_owned(),
                1 => format!("[a-cé]{{1,{count}}}(\\.[^.]{{1,{count}}}){{1,3}}"),
                2 => "(?s)[^.]*\\.[^x]*".to_owned(),
                3 => format!("(?s)(ab.|中)*[^\"]{{0,{count}}}"),
                4 => "(aa)*[bé]?(\\.|-)*".to_owned(),
                5 => "([^\\\\\"]|\\\\n)*\"?".to_owned(),
                _ => format!("(?s)a{{0,{count}}}(c.*)?"),
            };
            let unit = if shape == 5 { "[^\\\\\"]|\\\\n|\"" } else { "(?s)." };
            let Some(terminal) = terminal(&matched, unit, (min, more.map(|more| min + more))) else { return Ok(()) };
            let tables = tables();
            let mut cursor = terminal.start();
            for byte in text.bytes().map(Some).chain([None]) {
                let length_mask = tables.length_mask(&terminal, cursor.state);
                let mut mask = Mask::empty(tables.vocabulary().len());
                length_mask
                    .inner(&terminal, cursor, tables.lengths(), tables.vocabulary().len()).add_to(&mut mask);
                for (token, bytes) in (0u32..).zip(tokens()) {
                    let read = bytes.iter().try_fold(cursor, |cursor, &byte| terminal.next(cursor, byte));
                    let text = String::from_utf8_lossy(&bytes).into_owned();
                    prop_assert_eq!(mask.contains(token), read.is_some(), "{} {}..{:?} {:?} {}", matched, min, more, cursor, text);
                }
                match byte.and_then(|byte| terminal.next(cursor, byte)) {
                    Some(next) => cursor = next,
                    None => break,
                }
            }
        }
    }
}
