//! What a terminal state allows whatever is below it.
//!
//! For one cursor of a terminal the tokens fall into three groups: *inner* ones stay within the terminal; *escaping*
//! ones leave it at a place where it may end, and their rest has to be matched by the callers; all others are out.
//!
//! ```text
//!   inside a JSON string:   inner    hello   ␠the   \n
//!                           escapes  ok|",   x|"}      (the bar is where the string ends)
//! ```
//!
//! Escapes are kept by the first byte of their rest; those of one byte become a trie of rests when a caller that can
//! take the byte first asks. Inside a JSON string 1,312 of Llama's tokens escape, with 576 different rests.
//!
//! A state that differs little from another is found by its difference. In `"na` with the key `name` excluded, all
//! goes on as in any string, but for the few tokens that continue with `me"`. Such a factor names its *base*, the
//! tokens for which the base must not be believed, and what is true of those. Near a bound of a counted language the
//! factor is found without bounds, and a [`Profile`] says which of its tokens are within them.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::branch::Ground;
use super::cache::Tables;
use super::lasting::{FIRST_KNOWN, Lasting};
use super::loops;
use super::near::{self, Near};
use super::profile::Profile;
use super::set::TokenSet;
use crate::machine::{Cursor, Terminal};
use crate::vocab::{Alphabet, Trie, Vocabulary};
use crate::work::spend;

/// The inner tokens and the escapes of one cursor of a terminal.
#[derive(Debug)]
pub(crate) struct Factor {
    /// The factor that this one corrects; a base has none itself.
    pub(crate) base: Option<Arc<Factor>>,
    /// The tokens for which the base is not to be believed.
    pub(crate) except: Box<[u32]>,
    pub(crate) inner: TokenSet,
    /// By first byte what is left of the tokens that leave the terminal.
    pub(crate) rests: Box<[Rests]>,
}

/// The rests of tokens behind a place where the terminal may have ended, as far as they begin with one byte.
#[derive(Debug)]
pub(crate) struct Rests {
    pub(crate) byte: u8,
    /// The nodes of the vocabulary's trie that are entered with that byte and have much below them: their subtrees
    /// serve as they are.
    pub(crate) large: Box<[u32]>,
    /// The others, whose subtrees share most of their rests.
    small: Box<[u32]>,
    trie: OnceLock<Trie>,
    number: u64,
}

/// A subtree with more nodes than this is walked where it is.
const LARGE: u32 = 256;

impl Rests {
    fn new(byte: u8, mut nodes: Vec<u32>, tables: &Tables) -> Rests {
        let vocab = tables.vocabulary().trie();
        nodes.sort_unstable();
        nodes.dedup();
        let is_large = |&node: &u32| vocab.nodes()[node as usize].end - node > LARGE;
        let (large, small): (Vec<u32>, Vec<u32>) = nodes.into_iter().partition(is_large);
        Rests {
            byte,
            large: large.into(),
            small: small.into(),
            trie: OnceLock::new(),
            number: tables.number(),
        }
    }

    /// The trie as the ground of a walk.
    pub(super) fn ground<'t>(&'t self, vocab: &Trie) -> Ground<'t> {
        Ground {
            trie: self.trie(vocab),
            number: self.number,
        }
    }

    /// The nodes of the vocabulary's trie that are entered with that byte, each behind a place where a word may end.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = usize> + '_ {
        self.large.iter().chain(&self.small).map(|&node| node as usize)
    }

    /// The rests below small nodes as a trie; tokens with the same rest end at the same node.
    pub(crate) fn trie(&self, vocab: &Trie) -> &Trie {
        self.trie.get_or_init(|| {
            let mut pairs = Vec::new();
            for &node in &self.small {
                vocab.for_each_below(node as usize, |rest, tokens| {
                    pairs.extend(tokens.iter().map(|&token| (token, rest.to_vec())));
                });
            }
            Trie::new(pairs)
        })
    }
}

/// What is known of a cursor of a terminal.
#[derive(Debug)]
pub(crate) enum Entry {
    /// No token can feel a bound.
    Unbounded(Arc<Factor>),
    /// Near a bound of a counted language.
    Bounded(Bounds),
}

/// A state near a bound of its language.
#[derive(Debug)]
pub(crate) struct Bounds {
    /// The state with the bounds left aside; only its rests count.
    pub(crate) unbounded: Arc<Factor>,
    /// The inner tokens within the bounds.
    pub(crate) inner: TokenSet,
    /// What tells which rests are out of bounds.
    pub(crate) profile: Arc<Profile>,
}

impl Entry {
    pub(crate) fn new(terminal: &Terminal, cursor: Cursor, tables: &Tables) -> Entry {
        let factor = tables.factor(terminal, cursor.state);
        if terminal.is_plain(cursor, tables.horizon()) {
            return Entry::Unbounded(factor);
        }
        let profile = tables.profile(terminal, cursor.state);
        Entry::Bounded(Bounds {
            unbounded: factor,
            inner: profile.inner(terminal, cursor, tables),
            profile,
        })
    }

    /// The memory that the entry takes, in bytes, without what it shares.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Entry::Unbounded(_) => 64,
            Entry::Bounded(bounds) => 128 + bounds.inner.bytes(),
        }
    }
}

impl Factor {
    /// Walks the vocabulary once from a state, bounds left aside, or where the state is like another only what they
    /// differ in. O(nodes of the trie that are visited).
    pub(crate) fn new(terminal: &Terminal, state: u32, tables: &Tables) -> Factor {
        let model = model(terminal, state).map(|state| Near {
            state,
            factor: tables.factor(terminal, state),
            bytes: 0,
        });
        // A base has none itself.
        let model = model.filter(|near| near.factor.base.is_none());
        match model.or_else(|| near::find(terminal, state)) {
            Some(model) => Factor::by_difference(terminal, state, model, tables),
            None => {
                let mut walk = Walk::new(terminal, tables.vocabulary().trie());
                walk.run_all(state);
                walk.into_factor(None, Vec::new(), tables)
            }
        }
    }

    /// The same for a state that few tokens get past, so that nothing is known by its name. O(nodes that are visited).
    pub(super) fn narrow(terminal: &Terminal, state: u32, tables: &Tables) -> Factor {
        let trie = tables.vocabulary().trie();
        let mut walk = Walk::new(terminal, trie);
        walk.run(0, trie.nodes().len(), vec![state], &[]);
        walk.into_factor(None, Vec::new(), tables)
    }

    fn by_difference(terminal: &Terminal, state: u32, model: Near, tables: &Tables) -> Factor {
        let mut walk = Walk::new(terminal, tables.vocabulary().trie());
        let difference = Difference::new(terminal, (state, &model), tables.vocabulary());
        let except = difference.run(&mut walk);
        walk.into_factor(Some(model.factor), except, tables)
    }

    /// Makes the tries of rests now.
    pub(crate) fn find_rests(&self, vocab: &Vocabulary) {
        for rests in &self.rests {
            rests.trie(vocab.trie());
        }
    }

    /// The memory that the factor takes, in bytes, with its tries of rests once they are made.
    pub(crate) fn bytes(&self) -> usize {
        let rests = self
            .rests
            .iter()
            .map(|rests| 96 + rests.large.len() * 4 + rests.small.len() * 48);
        96 + self.except.len() * 4 + self.inner.bytes() + rests.sum::<usize>()
    }
}

/// More bytes than this on which two states part, and comparing them is not worth it.
const PARTING_BYTES: usize = 24;

/// A state that stays in itself for more bytes than this is worth comparing with.
const LOOPING_BYTES: usize = 32;

/// A state that goes on like this one for nearly all bytes and stays in itself for most.
fn model(terminal: &Terminal, state: u32) -> Option<u32> {
    let targets: Vec<u32> = (0..=255)
        .filter_map(|byte| terminal.next_state(state, byte))
        .collect();
    let count = |state: u32| targets.iter().filter(|&&target| target == state).count();
    let model = targets.iter().copied().max_by_key(|&state| count(state))?;
    let names = terminal.names(false);
    if names[model as usize] == names[state as usize]
        || terminal.is_accepting_state(model) != terminal.is_accepting_state(state)
    {
        return None;
    }
    let name = |state: Option<u32>| state.map(|state| names[state as usize]);
    let parts = |&byte: &u8| name(terminal.next_state(model, byte)) != name(terminal.next_state(state, byte));
    let loops = (0..=255u8).filter(|&byte| terminal.next_state(model, byte) == Some(model));
    (loops.count() > LOOPING_BYTES && (0..=255u8).filter(parts).count() <= PARTING_BYTES).then_some(model)
}

/// The walk of one terminal through a trie.
pub(super) struct Walk<'a> {
    terminal: &'a Terminal,
    trie: &'a Trie,
    /// What tells which subtrees stay within the terminal, where walks are long.
    lasting: Option<Lasting<'a>>,
    /// The characters of all subtrees and how high they are, where `lasting` is asked about them.
    subtrees: (&'a [Alphabet], &'a [u8]),
    /// The states that were come to, as far as `lasting` is asked about them.
    known: Vec<Known>,
    /// The depth of the nodes that are entered first. Where the terminal may end before them is left out: a terminal that
    /// is complete before the walk is the callers' own business.
    first: usize,
    /// The state at each depth of the current path.
    states: Vec<u32>,
    /// The node at each depth of the current path, from depth 1.
    path: Vec<u32>,
    /// Nodes of the path up to this depth are already kept as escapes.
    marked: usize,
    inner: Places,
    escapes: Vec<Vec<u32>>,
}

const UNKNOWN: u32 = u32::MAX;

/// What is known of the characters that a state takes.
#[derive(Clone, Copy)]
struct Known {
    /// Those that lead back to it.
    loops: Alphabet,
    /// Where it is known how long others last.
    place: u32,
}

impl<'a> Walk<'a> {
    fn new(terminal: &'a Terminal, trie: &'a Trie) -> Walk<'a> {
        Walk {
            terminal,
            trie,
            lasting: None,
            subtrees: (&[], &[]),
            known: Vec::new(),
            first: 1,
            states: Vec::new(),
            path: Vec::new(),
            marked: 0,
            inner: Places::default(),
            escapes: vec![Vec::new(); 256],
        }
    }

    fn run_all(&mut self, state: u32) {
        let unknown = Known {
            loops: 0,
            place: UNKNOWN,
        };
        self.known = vec![unknown; self.terminal.len()];
        self.lasting = Some(Lasting::new(self.terminal, self.trie));
        self.subtrees = (self.trie.alphabets(), self.trie.heights());
        self.run(0, self.trie.nodes().len(), vec![state], &[]);
    }

    /// Walks a range of siblings and their subtrees; `states` and `path` are those of the way there.
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

    /// Whether all of a subtree stays within the terminal.
    #[inline]
    fn passes_over(&mut self, node: usize, state: u32) -> bool {
        let Some(lasting) = &mut self.lasting else {
            return loops::pass_over(self.terminal, self.trie, node, state);
        };
        let known = &mut self.known[state as usize];
        if known.place == UNKNOWN {
            known.loops = loops::of(self.terminal, state);
            known.place = lasting.place(state);
        }
        let (alphabets, heights) = self.subtrees;
        let alphabet = alphabets[node];
        alphabet & !known.loops == 0
            || known.place >= FIRST_KNOWN && alphabet & !lasting.alphabet(known.place, heights[node]) == 0
    }

    /// The terminal cannot take the byte of this node: every place on the way where it may have ended is an escape.
    fn leave(&mut self, node: u32, depth: usize) {
        let nodes = self.trie.nodes();
        let marked = std::mem::replace(&mut self.marked, depth - 1);
        for at in marked.max(self.first) + 1..=depth {
            let entered = if at < depth { self.path[at - 1] } else { node };
            if self.terminal.is_accepting_state(self.states[at - 1]) {
                self.escapes[nodes[entered as usize].byte as usize].push(entered);
            }
        }
    }

    /// Walks what is below a node, or the whole trie: the tokens that stay within the terminal, and the nodes that are
    /// entered behind a place where it may have ended.
    pub(super) fn below(
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
        (inner, walk.escapes.into_iter().flatten())
    }

    fn into_factor(self, base: Option<Arc<Factor>>, except: Vec<u32>, tables: &Tables) -> Factor {
        let escapes = self.escapes.into_iter().zip(0u8..=255);
        let rests = escapes
            .filter(|(nodes, _)| !nodes.is_empty())
            .map(|(nodes, byte)| Rests::new(byte, nodes, tables));
        Factor {
            base,
            except: except.into(),
            inner: self.inner.into_set(tables),
            rests: rests.collect(),
        }
    }
}

/// Tokens by their places in the order of the trie, where those of a subtree are neighbours.
#[derive(Default)]
pub(super) struct Places {
    ranges: Vec<Range<u32>>,
    count: usize,
}

impl Places {
    /// Adds places behind all that were added before.
    pub(super) fn add(&mut self, range: Range<u32>) {
        self.count += range.len();
        match self.ranges.last_mut() {
            _ if range.is_empty() => {}
            Some(last) if last.end == range.start => last.end = range.end,
            _ => self.ranges.push(range),
        }
    }

    /// Most tokens are found by taking the others out of all.
    pub(super) fn into_set(self, tables: &Tables) -> TokenSet {
        let vocab = tables.vocabulary();
        let tokens = vocab.trie().tokens();
        let at = |range: &Range<u32>| &tokens[range.start as usize..range.end as usize];
        if self.count * 2 < tokens.len() {
            return TokenSet::of(self.count, self.ranges.iter().map(at), vocab.len());
        }
        let mut mask = tables.everything().clone();
        let mut end = 0;
        for range in self.ranges.iter().chain([&(tokens.len() as u32..0)]) {
            mask.remove_all(at(&(end..range.start)));
            end = range.end;
        }
        TokenSet::Bits(mask)
    }
}

/// A walk of two states at once that stops where they become one, or where they part.
struct Difference<'a> {
    terminal: &'a Terminal,
    vocab: &'a Vocabulary,
    /// Tokens of no more bytes are read alike.
    alike: usize,
    /// The pair of states at each depth of the current path.
    pairs: Vec<(u32, u32)>,
    path: Vec<u32>,
    except: Vec<u32>,
}

impl<'a> Difference<'a> {
    fn new(terminal: &'a Terminal, (state, model): (u32, &Near), vocab: &'a Vocabulary) -> Difference<'a> {
        Difference {
            terminal,
            vocab,
            alike: model.bytes,
            pairs: vec![(state, model.state)],
            path: Vec::new(),
            except: Vec::new(),
        }
    }

    /// The tokens on which the states disagree; what the first of them says of those is found by `own`.
    fn run(mut self, own: &mut Walk<'_>) -> Vec<u32> {
        let nodes = self.vocab.trie().nodes();
        let reaches = self.vocab.trie().reaches();
        let names = self.terminal.names(false);
        let mut at = 0;
        while at < nodes.len() {
            spend(1);
            let node = &nodes[at];
            if usize::from(reaches[at]) <= self.alike {
                at = node.end as usize;
                continue;
            }
            let depth = node.depth as usize;
            self.pairs.truncate(depth);
            self.path.truncate(depth - 1);
            let (one, other) = self.pairs[depth - 1];
            let next = |state| self.terminal.next_state(state, node.byte);
            // Whatever the states are, below they go on as here.
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

    /// Whether rests behind the two states would be the same.
    fn agree(&self, one: u32, other: u32) -> bool {
        self.terminal.is_accepting_state(one) == self.terminal.is_accepting_state(other)
    }

    /// From this node on the first state goes its own way.
    fn part(&mut self, node: usize, own: &mut Walk<'_>) -> usize {
        let trie = self.vocab.trie();
        let end = trie.nodes()[node].end as usize;
        self.except.extend_from_slice(trie.tokens_below(node));
        let states = self.pairs.iter().map(|&(state, _)| state).collect();
        own.run(node, end, states, &self.path);
        end
    }
}
