//! What tokens do in a counted language, whatever the bounds are.
//!
//! A string of at most 60 characters has another mask at each of its characters once a token can reach the end. All
//! of these come from one walk: for each token the state it ends in and the units it completes on the way. A token
//! fits iff a word within the bounds can be completed from there, which the counter of the terminal at hand says for
//! a group of tokens at once.
//!
//! ```text
//!   group                        tokens                    left 2     left 5
//!   in the string, 1 unit        a  b  é  \n …               ✓          ✓
//!   in the string, 2 units       th  in  er …                ✓          ✓
//!   in the string, 5 units       hello  world …                         ✓
//!   ended after 3 units          the|"  the|",  …                       ✓      (rests: found with the callers)
//! ```
//!
//! Tokens that leave the language are found without the bounds first; those that could only have left it with a wrong
//! number of units are then judged again, each for itself.

use rustc_hash::FxHashMap;

use super::loops;
use super::set::{Mask, TokenSet};
use crate::machine::{ByteSet, Cursor, Digest, Terminal};
use crate::vocab::{Alphabet, Trie, UNSOUND, Vocabulary};

/// The tokens of one state of a counted language, grouped by what they do.
#[derive(Debug)]
pub(crate) struct Profile {
    /// Tokens that stay within the language.
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

impl Profile {
    /// Walks the vocabulary once from a state. O(nodes of the trie that the language can reach).
    pub(crate) fn new(terminal: &Terminal, state: u32, vocab: &Vocabulary) -> Profile {
        let mut walk = Walk::new(terminal, vocab, state);
        walk.run();
        let inner = walk.inner.into_iter().map(|(state, units, tokens)| Group {
            language: walk.names[state as usize],
            units,
            tokens: TokenSet::new(tokens, vocab.len()),
        });
        let ends = walk.ends.into_iter().map(|((byte, units), nodes)| Ends {
            byte,
            units,
            nodes: nodes.into(),
        });
        Profile {
            inner: inner.collect(),
            ends: ends.collect(),
        }
    }

    /// The tokens that stay within the language from a cursor of a terminal, which stands in the state of the profile.
    pub(crate) fn inner(&self, terminal: &Terminal, cursor: Cursor, vocab: &Vocabulary) -> TokenSet {
        let mut mask = Mask::empty(vocab.len());
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
        inner + ends
    }
}

struct Walk<'a> {
    terminal: &'a Terminal,
    vocab: &'a Vocabulary,
    trie: &'a Trie,
    names: &'a [Digest],
    /// The state at each depth of the path, and the units completed on the way.
    path: Vec<(u32, u64)>,
    /// The node at each depth of the path, from depth 1.
    nodes: Vec<u32>,
    /// Nodes of the path up to this depth are already kept as ends.
    marked: usize,
    /// Tokens by the state that they lead to and their units.
    inner: Vec<(u32, u64, Vec<u32>)>,
    /// For each state and number of units the place in `inner`, or [`NONE`].
    groups: Vec<Vec<u32>>,
    /// The characters that are a unit each and lead back to a state; with [`UNSOUND`] once known.
    loops: Vec<Alphabet>,
    /// Tokens that end within a character, with the state and the units from where a subtree was passed over.
    cut_off: Vec<(u32, u32, u64)>,
    ends: FxHashMap<(u8, u64), Vec<u32>>,
}

const NONE: u32 = u32::MAX;

impl<'a> Walk<'a> {
    fn new(terminal: &'a Terminal, vocab: &'a Vocabulary, state: u32) -> Walk<'a> {
        Walk {
            terminal,
            vocab,
            trie: vocab.trie(),
            names: terminal.names(true),
            path: vec![(state, 0)],
            nodes: Vec::new(),
            marked: 0,
            inner: Vec::new(),
            groups: vec![Vec::new(); terminal.len()],
            loops: vec![0; terminal.len()],
            cut_off: Vec::new(),
            ends: FxHashMap::default(),
        }
    }

    fn run(&mut self) {
        let nodes = self.trie.nodes();
        let mut at = 0;
        while at < nodes.len() {
            let node = &nodes[at];
            let depth = usize::from(node.depth);
            self.path.truncate(depth);
            self.nodes.truncate(depth - 1);
            self.marked = self.marked.min(depth - 1);
            let (state, units) = self.path[depth - 1];
            if node.end as usize > at + 1 && self.trie.alphabet(at) & !self.loops(state) == 0 {
                self.pass_over(at, state, units);
                at = node.end as usize;
                continue;
            }
            at = match self.terminal.next_unit(state, node.byte) {
                Some((next, unit)) => {
                    let units = units + u64::from(unit);
                    if node.count > 0 {
                        let trie = self.trie;
                        self.group(next, units).extend_from_slice(trie.tokens_at(node));
                    }
                    self.path.push((next, units));
                    self.nodes.push(at as u32);
                    at + 1
                }
                None => {
                    self.leave(at as u32, depth);
                    node.end as usize
                }
            };
        }
    }

    /// Adds the tokens of a subtree each character of which is a unit and leads back to the state.
    fn pass_over(&mut self, top: usize, state: u32, units: u64) {
        let trie = self.trie;
        let path = self.nodes.iter().map(|&node| trie.nodes()[node as usize].byte);
        let before = path.filter(|byte| byte & 0xC0 != 0x80).count() as u64;
        for place in trie.places_below(top) {
            let token = trie.tokens()[place as usize];
            match trie.characters()[place as usize] {
                0 => self.cut_off.push((token, state, units)),
                characters => self
                    .group(state, units + u64::from(characters) - before)
                    .push(token),
            }
        }
        self.read_cut_off(usize::from(trie.nodes()[top].depth) - 1);
    }

    /// Adds tokens that end within a character.
    fn read_cut_off(&mut self, depth: usize) {
        for (token, state, units) in std::mem::take(&mut self.cut_off) {
            let read = |(state, units), &byte: &u8| {
                let (state, unit) = self.terminal.next_unit(state, byte)?;
                Some((state, units + u64::from(unit)))
            };
            let bytes = &self.vocab.bytes(token)[depth..];
            let (state, units) = bytes
                .iter()
                .try_fold((state, units), read)
                .expect("the state passes over them");
            self.group(state, units).push(token);
        }
    }

    /// The tokens that lead to a state with so many units.
    #[inline]
    fn group(&mut self, state: u32, units: u64) -> &mut Vec<u32> {
        let groups = &mut self.groups[state as usize];
        if groups.len() <= units as usize {
            groups.resize(units as usize + 1, NONE);
        }
        let group = &mut groups[units as usize];
        if *group == NONE {
            *group = self.inner.len() as u32;
            self.inner.push((state, units, Vec::new()));
        }
        &mut self.inner[*group as usize].2
    }

    fn loops(&mut self, state: u32) -> Alphabet {
        let known = &mut self.loops[state as usize];
        if *known == 0 {
            *known = loops::of_units(self.terminal, state) | UNSOUND;
        }
        *known & !UNSOUND
    }

    /// As in a factor: every place on the way where a word may have ended, but for the start.
    fn leave(&mut self, node: u32, depth: usize) {
        let marked = std::mem::replace(&mut self.marked, depth - 1);
        for depth in (marked + 1).max(2)..=depth {
            let entered = self.nodes.get(depth - 1).copied().unwrap_or(node);
            let (state, units) = self.path[depth - 1];
            if self.terminal.is_accepting_state(state) {
                let byte = self.trie.nodes()[entered as usize].byte;
                self.ends.entry((byte, units)).or_default().push(entered);
            }
        }
    }
}
