//! What tokens do in a counted language, whatever the bounds are.
//!
//! A string of at most 60 characters has another mask at each of its characters once a token can reach the end. All
//! of these come from one walk: for each token how many units a word has at least that begins with it. Mostly this is
//! one for each character of the token and some more, so that tokens are kept by how many more it takes, and the ones
//! with few enough characters are picked from all of them at once.
//!
//! ```text
//!   set                          tokens                    left 2            left 5
//!   no more than its characters  a  th  hello  world …     a  th             a  th  hello  world
//!   one more                     a\\  th\\ …               a\\               a\\  th\\
//!   group, ended after 3 units   the"  …                   by the counter of the terminal at hand
//! ```
//!
//! That is all there is to know as long as nothing but the upper bound can be missed: if there is no lower one, or in
//! states from which words of any larger number of units can be completed. Tokens that lead to other states are kept by
//! their state and their units, and the counter of the terminal at hand is asked for all of a group at once.
//!
//! Tokens that leave the language are found without the bounds first; those that could only have left it with a wrong
//! number of units are then judged again, each for itself.

use rustc_hash::FxHashMap;

use super::cache::Tables;
use super::factor::Places;
use super::lasting::Lasting;
use super::lengths::begins;
use super::set::{Mask, TokenSet};
use crate::machine::{ByteSet, Cursor, Digest, Terminal};
use crate::vocab::Trie;
use crate::work::spend;

/// The tokens of one state of a counted language, grouped by what they do.
#[derive(Debug)]
pub(crate) struct Profile {
    /// Tokens that stay within the language, by how many units more than characters a word takes that begins with them.
    sets: Vec<(i64, TokenSet)>,
    /// Other tokens that stay within the language.
    inner: Vec<Group>,
    /// Where a word may have ended.
    ends: Vec<Ends>,
}

/// Tokens that complete the same number of units and lead to the same language.
#[derive(Debug)]
struct Group {
    language: Digest,
    units: u64,
    tokens: TokenSet,
}

/// The nodes that are entered with a byte right behind a word of so many units.
#[derive(Debug)]
struct Ends {
    byte: u8,
    units: u64,
    nodes: Box<[u32]>,
}

/// Told from profiles of the same language that serve lower bounds as well.
const ONLY_UPPER: Digest = 0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C834;

impl Profile {
    /// The name of the profile of a state.
    pub(crate) fn name(terminal: &Terminal, state: u32) -> Digest {
        let language = terminal.names(true)[state as usize];
        match only_upper(terminal, state) {
            true => language ^ ONLY_UPPER,
            false => language,
        }
    }

    /// Walks the vocabulary once from a state. O(nodes of the trie that are visited).
    pub(crate) fn new(terminal: &Terminal, state: u32, tables: &Tables) -> Profile {
        let vocab = tables.vocabulary();
        let mut walk = Walk::new(terminal, vocab.trie(), state);
        walk.run();
        let names = terminal.names(true);
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
        Profile {
            sets: sets
                .map(|(more, places)| (more, places.into_set(tables)))
                .collect(),
            inner: inner.collect(),
            ends: ends.collect(),
        }
    }

    /// The tokens that stay within the language from a cursor of a terminal, which stands in the state of the profile.
    pub(crate) fn inner(&self, terminal: &Terminal, cursor: Cursor, tables: &Tables) -> TokenSet {
        let mut mask = Mask::empty(tables.vocabulary().len());
        let left = terminal.units_left(cursor.count);
        for (more, tokens) in &self.sets {
            let most = left.map_or(i64::MAX, |left| {
                i64::try_from(left).unwrap_or(i64::MAX).saturating_sub(*more)
            });
            tables.lengths().add_shorter(tokens, most, &mut mask);
        }
        for group in &self.inner {
            if terminal.is_alive_at(group.language, cursor.count + group.units) {
                group.tokens.add_to(&mut mask);
            }
        }
        TokenSet::from_mask(mask)
    }

    /// Moves tokens that may have left the language out of bounds from a mask to a list; only those count that go on
    /// with one of these bytes.
    pub(crate) fn doubt(
        &self,
        (terminal, cursor): (&Terminal, Cursor),
        bytes: &ByteSet,
        trie: &Trie,
        mask: &mut Mask,
        doubted: &mut Vec<u32>,
    ) {
        let out = |units: u64| !terminal.is_in_range(cursor.count + units);
        let wrong = self
            .ends
            .iter()
            .filter(|ends| bytes.contains(ends.byte) && out(ends.units));
        for &node in wrong.flat_map(|ends| &ends.nodes) {
            for &token in trie.tokens_below(node as usize) {
                if mask.contains(token) {
                    mask.remove_all(&[token]);
                    doubted.push(token);
                }
            }
        }
    }

    /// The memory that the profile takes, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let inner: usize = self.inner.iter().map(|group| 48 + group.tokens.bytes()).sum();
        let ends: usize = self.ends.iter().map(|ends| 32 + ends.nodes.len() * 4).sum();
        let sets: usize = self.sets.iter().map(|(_, tokens)| 16 + tokens.bytes()).sum();
        sets + inner + ends
    }
}

/// Whether nothing but the upper bound can be missed from this state on, and the state is not one that has a profile for
/// all bounds anyway.
fn only_upper(terminal: &Terminal, state: u32) -> bool {
    terminal.has_only_an_upper_bound() && !terminal.is_endless(state)
}

struct Walk<'a> {
    terminal: &'a Terminal,
    trie: &'a Trie,
    /// Whether all states count as endless.
    only_upper: bool,
    /// What tells which subtrees stay within the language with one unit a character.
    lasting: Lasting<'a>,
    /// The place in `lasting` of each state, once known.
    places: Vec<u32>,
    /// What there is at each depth of the path.
    path: Vec<Step>,
    /// The node at each depth of the path, from depth 1.
    nodes: Vec<u32>,
    /// Nodes of the path up to this depth are already kept as ends.
    marked: usize,
    /// The places of tokens by how many units more than characters a word takes that begins with them.
    sets: Vec<(i64, Places)>,
    /// Tokens by the state that they lead to and their units, where it is no endless one.
    inner: Vec<(u32, u64, Vec<u32>)>,
    /// For each state and number of units the place in `inner`, or [`NONE`].
    groups: Vec<Vec<u32>>,
    ends: FxHashMap<(u8, u64), Vec<u32>>,
}

/// A state with the units completed on the way and the characters begun.
#[derive(Clone, Copy)]
struct Step {
    state: u32,
    units: u64,
    begun: u64,
}

const NONE: u32 = u32::MAX;

impl<'a> Walk<'a> {
    fn new(terminal: &'a Terminal, trie: &'a Trie, state: u32) -> Walk<'a> {
        let only_upper = only_upper(terminal, state);
        Walk {
            terminal,
            trie,
            only_upper,
            lasting: Lasting::of_units(terminal, trie, only_upper),
            places: vec![NONE; terminal.len()],
            path: vec![Step {
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
            let next = Step {
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

    /// Whether each character of a subtree is a unit, and leads to a state from which a word takes as many as from here.
    #[inline]
    fn passes_over(&mut self, node: usize, state: u32) -> bool {
        let place = &mut self.places[state as usize];
        if *place == NONE {
            *place = self.lasting.place(state);
        }
        let lasts = self.lasting.alphabet(*place, self.trie.heights()[node]);
        self.trie.alphabet(node) & !lasts == 0
    }

    /// Adds tokens that lead to a state, or to others that are as far from the end.
    #[inline]
    fn add(&mut self, step: Step, places: std::ops::Range<u32>) {
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

    /// The tokens that lead to a state with so many units.
    fn group(&mut self, step: Step) -> &mut Vec<u32> {
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

    /// As in a factor: every place on the way where a word may have ended, but for the start.
    fn leave(&mut self, node: u32, depth: usize) {
        let marked = std::mem::replace(&mut self.marked, depth - 1);
        for at in (marked + 1).max(2)..=depth {
            let entered = if at < depth { self.nodes[at - 1] } else { node };
            let Step { state, units, .. } = self.path[at - 1];
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
    use crate::vocab::{TokenKind, Vocabulary};

    /// Words of the characters that the patterns tell apart, whole ones and some that are cut off, and large subtrees.
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
        Terminal::new(&Regular { parts }, &Limits::default()).ok()
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
                let profile = tables.profile(&terminal, cursor.state);
                let mut mask = Mask::empty(tables.vocabulary().len());
                profile.inner(&terminal, cursor, &tables).add_to(&mut mask);
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
