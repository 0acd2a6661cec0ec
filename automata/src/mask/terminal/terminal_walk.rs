//! Computes terminal masks, either in one walk of the vocabulary or from the differences between two states.

use std::ops::Range;
use std::sync::Arc;

use super::places::Places;
use super::terminal_mask::{Bounds, Entry, Rests, TerminalMask};
use crate::language::{Cursor, Terminal};
use crate::mask::cache::Tables;
use crate::mask::skip::closed::{ClosedAlphabets, FIRST_KNOWN, Kept};
use crate::mask::skip::loops;
use crate::vocab::{Alphabet, Trie, Vocabulary};
use crate::work::spend;

impl Tables {
    /// Returns the entry of a cursor.
    pub(crate) fn entry(&self, terminal: &Terminal, cursor: Cursor) -> Arc<Entry> {
        let id = terminal.cursor_id(cursor, self.horizon);
        if let Some(known) = self.entries.get(&id) {
            return known.clone();
        }
        // No lock is held meanwhile, because the computation may query these tables.
        let entry = Arc::new(Entry::new(terminal, cursor, self));
        self.grow(entry.bytes() + 96);
        self.entries.entry(id).or_insert(entry).clone()
    }

    /// Returns the terminal mask of a state, ignoring bounds.
    pub(crate) fn terminal_mask(&self, terminal: &Terminal, state: u32) -> Arc<TerminalMask> {
        let language = terminal.language_ids(false)[state as usize];
        self.known_or(
            (&self.base.terminal_masks, &self.terminal_masks),
            language,
            || {
                let terminal_mask = Arc::new(TerminalMask::new(terminal, state, self));
                (terminal_mask.bytes(), terminal_mask)
            },
        )
    }
}

impl Entry {
    pub(crate) fn new(terminal: &Terminal, cursor: Cursor, tables: &Tables) -> Entry {
        let terminal_mask = tables.terminal_mask(terminal, cursor.state);
        if terminal.is_plain(cursor, tables.horizon()) {
            return Entry::Unbounded(terminal_mask);
        }
        let length_mask = tables.length_mask(terminal, cursor.state);
        Entry::Bounded(Bounds {
            unbounded: terminal_mask,
            inner: length_mask.inner(terminal, cursor, tables.lengths(), tables.vocabulary().len()),
            length_mask,
        })
    }
}

impl TerminalMask {
    /// Walks the vocabulary once from a state, ignoring bounds. If the state is similar to another, only the
    /// differences are walked. O(nodes of the trie that are visited).
    pub(crate) fn new(terminal: &Terminal, state: u32, tables: &Tables) -> TerminalMask {
        let model = model(terminal, state).map(|model| (model, tables.terminal_mask(terminal, model)));
        // A base has no base itself.
        match model.filter(|(_, base)| base.base.is_none()) {
            Some((model, base)) => TerminalMask::by_difference(terminal, (state, model), base, tables),
            None => {
                let closed = tables.closed(terminal);
                let mut walk = Walk::new(terminal, tables.vocabulary().trie());
                walk.run_all(state, &closed);
                walk.into_terminal_mask(None, Vec::new(), tables)
            }
        }
    }

    fn by_difference(
        terminal: &Terminal,
        states: (u32, u32),
        base: Arc<TerminalMask>,
        tables: &Tables,
    ) -> TerminalMask {
        let mut walk = Walk::new(terminal, tables.vocabulary().trie());
        let difference = Difference::new(terminal, states, tables.vocabulary());
        let except = difference.run(&mut walk);
        walk.into_terminal_mask(Some(base), except, tables)
    }
}

/// If two states differ on more bytes than this, comparing them does not pay.
const PARTING_BYTES: usize = 24;

/// A state has to loop on more bytes than this to be a base.
const LOOPING_BYTES: usize = 32;

/// Returns a state with the same successors on nearly all bytes that loops on most of them.
fn model(terminal: &Terminal, state: u32) -> Option<u32> {
    let targets: Vec<u32> = (0..=255)
        .filter_map(|byte| terminal.next_state(state, byte))
        .collect();
    let count = |state: u32| targets.iter().filter(|&&target| target == state).count();
    let model = targets.iter().copied().max_by_key(|&state| count(state))?;
    let names = terminal.language_ids(false);
    if names[model as usize] == names[state as usize] || !end_alike(terminal, model, state) {
        return None;
    }
    let name = |state: Option<u32>| state.map(|state| names[state as usize]);
    let parts = |&byte: &u8| name(terminal.next_state(model, byte)) != name(terminal.next_state(state, byte));
    let loops = (0..=255u8).filter(|&byte| terminal.next_state(model, byte) == Some(model));
    (loops.count() > LOOPING_BYTES && (0..=255u8).filter(parts).count() <= PARTING_BYTES).then_some(model)
}

/// Returns `true` if words end in both states or in none, before the same bytes.
fn end_alike(terminal: &Terminal, one: u32, other: u32) -> bool {
    terminal.is_accepting_state(one) == terminal.is_accepting_state(other)
        && terminal.blocked(one) == terminal.blocked(other)
}

/// The walk of one terminal through a trie.
pub(crate) struct Walk<'a> {
    terminal: &'a Terminal,
    trie: &'a Trie,
    /// Finds the subtrees that stay within the terminal; used where walks are long.
    closed: Option<ClosedAlphabets<'a>>,
    /// The characters and the heights of all subtrees, if `closed` is used.
    subtrees: (&'a [Alphabet], &'a [u8]),
    /// The states reached so far, if `closed` is used.
    known: Vec<Known>,
    /// The depth of the nodes that are entered first. Ends of the terminal before them are ignored: if the
    /// terminal is complete before the walk, the callers handle it.
    first: usize,
    /// The state at each depth of the current path.
    states: Vec<u32>,
    /// The node at each depth of the current path, from depth 1.
    path: Vec<u32>,
    /// The depth up to which nodes of the path are already recorded as exits.
    marked: usize,
    inner: Places,
    exits: Vec<Vec<u32>>,
}

const UNKNOWN_PLACE: u32 = u32::MAX;

/// The characters that a state is known to accept.
#[derive(Clone, Copy)]
struct Known {
    /// The characters that lead back to the state.
    loops: Alphabet,
    /// The place of the state in `closed`, which knows how long other characters last.
    place: u32,
}

impl<'a> Walk<'a> {
    fn new(terminal: &'a Terminal, trie: &'a Trie) -> Walk<'a> {
        Walk {
            terminal,
            trie,
            closed: None,
            subtrees: (&[], &[]),
            known: Vec::new(),
            first: 1,
            states: Vec::new(),
            path: Vec::new(),
            marked: 0,
            inner: Places::default(),
            exits: vec![Vec::new(); 256],
        }
    }

    fn run_all(&mut self, state: u32, kept: &'a Kept) {
        let unknown = Known {
            loops: 0,
            place: UNKNOWN_PLACE,
        };
        self.known = vec![unknown; self.terminal.len()];
        self.closed = Some(ClosedAlphabets::new(self.terminal, self.trie, kept));
        self.subtrees = (self.trie.alphabets(), self.trie.heights());
        self.run(0, self.trie.nodes().len(), vec![state], &[]);
    }

    /// Walks a range of siblings and their subtrees. `states` and `path` describe the path to them.
    fn run(&mut self, start: usize, end: usize, states: Vec<u32>, path: &[u32]) {
        let trie = self.trie;
        let nodes = trie.nodes();
        self.states = states;
        self.path.clear();
        self.path.extend_from_slice(path);
        self.marked = 0;
        let mut at = start;
        while at < end {
            spend(1);
            let node = &nodes[at];
            let depth = node.depth as usize;
            self.marked = self.marked.min(depth - 1);
            let state = self.states[depth - 1];
            let is_leaf = node.end as usize == at + 1;
            if !is_leaf && self.passes_over(at, state) {
                self.inner.add(trie.places_below(at));
                at = node.end as usize;
                continue;
            }
            match self.terminal.next_state(state, node.byte) {
                Some(state) => {
                    self.inner.add(node.places());
                    at += 1;
                    if !is_leaf {
                        self.go_down(state, at as u32 - 1, depth);
                    }
                }
                None => {
                    self.leave(at as u32, depth);
                    at = node.end as usize;
                }
            }
        }
    }

    fn go_down(&mut self, state: u32, node: u32, depth: usize) {
        self.states.truncate(depth);
        self.states.push(state);
        self.path.truncate(depth - 1);
        self.path.push(node);
    }

    /// Returns `true` if all of a subtree stays within the terminal.
    #[inline]
    fn passes_over(&mut self, node: usize, state: u32) -> bool {
        let Some(closed) = &mut self.closed else {
            return loops::pass_over(self.terminal, self.trie, node, state);
        };
        let known = &mut self.known[state as usize];
        if known.place == UNKNOWN_PLACE {
            known.loops = loops::of(self.terminal, state);
            known.place = closed.place(state);
        }
        let (alphabets, heights) = self.subtrees;
        let alphabet = alphabets[node];
        alphabet & !known.loops == 0
            || known.place >= FIRST_KNOWN && alphabet & !closed.alphabet(known.place, heights[node]) == 0
    }

    /// Records the exits when the terminal cannot read the byte of this node: one for each position on the
    /// path where the terminal may have ended.
    fn leave(&mut self, node: u32, depth: usize) {
        let nodes = self.trie.nodes();
        let marked = std::mem::replace(&mut self.marked, depth - 1);
        for at in marked.max(self.first) + 1..=depth {
            let entered = if at < depth { self.path[at - 1] } else { node };
            let byte = nodes[entered as usize].byte;
            if self.terminal.ends_before(self.states[at - 1], byte) {
                self.exits[byte as usize].push(entered);
            }
        }
    }

    /// Walks the subtree of a node, or the whole trie. Returns the tokens that stay within the terminal, and
    /// the nodes that are entered after a position where it may have ended.
    pub(crate) fn below(
        terminal: &'a Terminal,
        state: u32,
        trie: &'a Trie,
        top: Option<usize>,
    ) -> (Vec<u32>, impl Iterator<Item = u32>) {
        let mut walk = Walk::new(terminal, trie);
        let (start, end, depth) = match top.map(|node| (node, &trie.nodes()[node])) {
            None => (0, trie.nodes().len(), 0),
            Some((at, node)) => (at + 1, node.end as usize, usize::from(node.depth)),
        };
        walk.first = depth + 1;
        let mut states = vec![0; depth];
        states.push(state);
        walk.run(start, end, states, &vec![0; depth]);
        let tokens = |range: &Range<u32>| &trie.tokens()[range.start as usize..range.end as usize];
        let inner = walk.inner.ranges.iter().flat_map(tokens).copied().collect();
        (inner, walk.exits.into_iter().flatten())
    }

    fn into_terminal_mask(
        self,
        base: Option<Arc<TerminalMask>>,
        except: Vec<u32>,
        tables: &Tables,
    ) -> TerminalMask {
        let exits = self.exits.into_iter().zip(0u8..=255);
        let rests = exits
            .filter(|(nodes, _)| !nodes.is_empty())
            .map(|(nodes, byte)| Rests::new(byte, nodes, tables.vocabulary().trie(), tables.number()));
        TerminalMask {
            base,
            except: except.into(),
            inner: self.inner.into_set(tables),
            rests: rests.collect(),
        }
    }
}

/// A walk of two states at once that stops where they become equivalent or differ.
struct Difference<'a> {
    terminal: &'a Terminal,
    vocab: &'a Vocabulary,
    /// The pair of states at each depth of the current path.
    pairs: Vec<(u32, u32)>,
    path: Vec<u32>,
    except: Vec<u32>,
}

impl<'a> Difference<'a> {
    fn new(terminal: &'a Terminal, states: (u32, u32), vocab: &'a Vocabulary) -> Difference<'a> {
        Difference {
            terminal,
            vocab,
            pairs: vec![states],
            path: Vec::new(),
            except: Vec::new(),
        }
    }

    /// Returns the tokens on which the states differ; `own` walks those for the first state.
    fn run(mut self, own: &mut Walk<'_>) -> Vec<u32> {
        let nodes = self.vocab.trie().nodes();
        let names = self.terminal.language_ids(false);
        let mut at = 0;
        while at < nodes.len() {
            spend(1);
            let node = &nodes[at];
            let depth = node.depth as usize;
            self.pairs.truncate(depth);
            self.path.truncate(depth - 1);
            let (one, other) = self.pairs[depth - 1];
            let next = |state| self.terminal.next_state(state, node.byte);
            // Both states loop on the whole subtree, so below it they are as here.
            let trie = self.vocab.trie();
            let passes = |state| loops::pass_over(self.terminal, trie, at, state);
            if passes(one) && passes(other) {
                at = node.end as usize;
                continue;
            }
            at = match (next(one), next(other)) {
                (None, None) => node.end as usize,
                (Some(one), Some(other)) if names[one as usize] == names[other as usize] => node.end as usize,
                (Some(one), Some(other)) if self.agree(one, other) => {
                    self.pairs.push((one, other));
                    self.path.push(at as u32);
                    at + 1
                }
                _ => self.part(at, own),
            };
        }
        self.except
    }

    /// Returns `true` if both states have the same rests at this position.
    fn agree(&self, one: u32, other: u32) -> bool {
        end_alike(self.terminal, one, other)
    }

    /// Leaves a subtree on which the states differ to the walk of the first one.
    fn part(&mut self, node: usize, own: &mut Walk<'_>) -> usize {
        let trie = self.vocab.trie();
        let end = trie.nodes()[node].end as usize;
        self.except.extend_from_slice(trie.tokens_below(node));
        let states = self.pairs.iter().map(|&(state, _)| state).collect();
        own.run(node, end, states, &self.path);
        end
    }
}
