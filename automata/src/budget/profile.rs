//! The distances to the end that the tokens of a configuration can lead to.
//!
//! Nearly all tokens stay within a regular language and lead to few states: one bound holds for all of them.
//! The others leave it, and are walked as for a mask: along the rests of the terminal mask, with heads.
//!
//! ```text
//!   inside a string of an array     hello, ␠the, \n …      base: a quote, a bracket: 2 steps (after \u00: 6)
//!                                   ",{   "],[[             far: each with its own number of steps
//! ```

use std::ops::Range;
use std::sync::Arc;

use super::place::Place;
use crate::language::{ByteSet, Cursor, NEVER, Terminal, plus};
use crate::mask::Entry;
use crate::pushdown::{ConfigId, Distances, FrameId, Head, Lookahead, SetLengths, View};
use crate::vocab::Trie;
use crate::work::spend;

/// The maximum number of tokens in a profile; the others share one bound.
const LISTED_TOKENS: usize = 1 << 14;

/// The distances to the end after the tokens of a configuration, in steps.
#[derive(Debug)]
pub(crate) struct Profile {
    /// A bound for all tokens that are not in `far`.
    pub(super) base: u64,
    /// A bound for all tokens.
    pub(super) most: u64,
    /// The tokens with a distance greater than `base`, each with its distance.
    pub(super) far: Box<[(u64, u32)]>,
}

impl Profile {
    /// Returns the bytes that the profile takes, including its entry in the table of profiles.
    pub(super) fn bytes(&self) -> usize {
        128 + std::mem::size_of_val(&*self.far)
    }

    pub(super) fn new(shortest: &Distances, place: Place<'_>, config: ConfigId) -> Profile {
        let stacks = place.machine.stacks();
        let mut measure = Measure {
            walk: Ahead::new(shortest, place),
            base: shortest.of(stacks, config),
            far: Vec::new(),
        };
        measure.readers(place, config);
        measure.specials(place, config);
        measure.finish()
    }
}

struct Measure<'a> {
    walk: Ahead<'a>,
    base: u64,
    far: Vec<(u64, u32)>,
}

/// A reader in a regular language whose tokens stay within it or leave it by known rests.
pub(super) struct Part<'a> {
    pub(super) terminal: &'a Terminal,
    pub(super) cursor: Cursor,
    /// The heads after the regular language, expanded as far as they are known.
    pub(super) after: Vec<Head>,
    /// The bytes that these heads may read.
    next: ByteSet,
    entry: Arc<Entry>,
    /// A bound for the tokens that stay.
    pub(super) inner: u64,
    /// `true` if a validator decides which tokens leave and how far those that stay are from the end, or if
    /// that depends on the text of a key.
    pub(super) validated: bool,
    /// `true` if the continuation may begin with a byte that the language also reads, so that a token may do
    /// both.
    pub(super) overlaps: bool,
}

impl<'a> Part<'a> {
    /// Returns the part of a reader, if the reader is in a regular language and a bound is known.
    pub(super) fn new(
        walk: &mut Ahead<'_>,
        place: Place<'a>,
        (frame, callers): (FrameId, ConfigId),
    ) -> Option<Part<'a>> {
        let stacks = place.machine.stacks();
        let inner = plus(
            walk.shortest.peak_of(stacks, frame),
            walk.shortest.of(stacks, callers),
        );
        let (terminal, cursor, after) = match stacks.view(frame) {
            _ if inner == NEVER => return None,
            View::Terminal(terminal, cursor) | View::Validated(terminal, cursor) => {
                (terminal, cursor, walk.lookahead.readers_of(callers, 0))
            }
            View::Key(terminal, cursor) if terminal.is_prefix_code() => {
                (terminal, cursor, walk.lookahead.after_key(frame, callers))
            }
            _ => return None,
        };
        // The continuation after a key may depend on the key; then `after` is incomplete.
        if walk.lookahead.take_lost() {
            return None;
        }
        let mut next = ByteSet::default();
        for reader in &after {
            walk.lookahead
                .add_bytes(reader, &mut next, &mut ByteSet::default());
        }
        Some(Part {
            entry: place.tables.entry(terminal, cursor),
            terminal,
            cursor,
            after,
            next,
            inner,
            validated: matches!(stacks.view(frame), View::Validated(..)),
            overlaps: !next.common(terminal.bytes_after_words()).is_empty(),
        })
    }

    /// Returns `true` if all tokens that the part allows either stay or are visited by
    /// [`leaving`](Self::leaving). Near bounds, a token that cannot stay may have to leave in the middle of
    /// text that would stay without them.
    fn is_whole(&self) -> bool {
        !self.overlaps || matches!(&*self.entry, Entry::Unbounded(_))
    }

    /// Visits the tokens that leave the regular language.
    pub(super) fn leaving(
        &self,
        walk: &mut Ahead<'_>,
        place: Place<'_>,
        mut visit: impl FnMut(&[Head], u64, &[u32]),
    ) {
        let terminal_mask = match &*self.entry {
            Entry::Unbounded(terminal_mask) => terminal_mask,
            Entry::Bounded(bounds) => &bounds.unbounded,
        };
        let vocabulary = place.vocabulary().trie();
        let rests = terminal_mask
            .base
            .iter()
            .flat_map(|base| &base.rests)
            .chain(&terminal_mask.rests);
        for rests in rests.filter(|rests| self.next.contains(rests.byte)) {
            for &node in &rests.large {
                let range = node as usize..vocabulary.nodes()[node as usize].end as usize;
                walk.visit_range(vocabulary, range, &self.after, &mut visit);
            }
            walk.visit(rests.trie(vocabulary), &self.after, &mut visit);
        }
    }
}

impl Measure<'_> {
    fn readers(&mut self, place: Place<'_>, config: ConfigId) {
        let mut walked = Vec::new();
        for &(frame, callers) in &place.machine.stacks().closure(config).readers {
            let part = Part::new(&mut self.walk, place, (frame, callers));
            let Some(part) = part.filter(Part::is_whole) else {
                walked.push(self.walk.lookahead.reader(frame, callers, 0));
                continue;
            };
            self.base = self.base.max(part.inner);
            let (base, far) = (self.base, &mut self.far);
            part.leaving(&mut self.walk, place, |_, length, tokens| {
                if length > base {
                    far.extend(tokens.iter().map(|&token| (length, token)));
                }
            });
        }
        if !walked.is_empty() {
            self.tokens(place.vocabulary().trie(), &walked);
        }
    }

    fn tokens(&mut self, trie: &Trie, readers: &[Head]) {
        let (base, far) = (self.base, &mut self.far);
        self.walk.visit(trie, readers, |_, length, tokens| {
            if length > base {
                far.extend(tokens.iter().map(|&token| (length, token)));
            }
        });
    }

    fn specials(&mut self, place: Place<'_>, config: ConfigId) {
        let stacks = place.machine.stacks();
        for special in 0..place.specials.len() as u32 {
            if let Some(next) = stacks.step_special(config, special) {
                let length = self.walk.shortest.of(stacks, next);
                if length > self.base {
                    let tokens = place.specials.tokens(special);
                    self.far.extend(tokens.map(|token| (length, token)));
                }
            }
        }
    }

    fn finish(mut self) -> Profile {
        self.far.retain(|&(length, _)| length > self.base);
        let most = self.far.iter().map(|&(length, _)| length).max();
        let most = most.unwrap_or(0).max(self.base);
        if self.far.len() > LISTED_TOKENS {
            // The farthest tokens are listed, and the others share one bound.
            let (_, nearest, _) = self
                .far
                .select_nth_unstable_by(LISTED_TOKENS, |one, other| other.0.cmp(&one.0));
            self.base = nearest.0;
            self.far.truncate(LISTED_TOKENS);
            self.far.retain(|&(length, _)| length > self.base);
        }
        Profile {
            base: self.base,
            most,
            far: self.far.into(),
        }
    }
}

/// A walk that computes the distance to the end after each token.
pub(super) struct Ahead<'a> {
    pub(super) lookahead: Lookahead<'a>,
    pub(super) shortest: &'a Distances,
    lengths: SetLengths,
    path: Vec<u8>,
    levels: Vec<Vec<Head>>,
    next: Vec<Head>,
}

impl<'a> Ahead<'a> {
    pub(super) fn new(shortest: &'a Distances, place: Place<'a>) -> Ahead<'a> {
        Ahead {
            lookahead: Lookahead::strict(place.machine.stacks()),
            shortest,
            lengths: SetLengths::default(),
            path: Vec::new(),
            levels: Vec::new(),
            next: Vec::new(),
        }
    }

    /// Visits all nodes of a trie at which tokens end and that the readers can reach, with the heads there,
    /// their distance to the end in steps, and the tokens. If the heads cannot decide how to continue, all
    /// tokens below are visited with the distance [`NEVER`].
    pub(super) fn visit(&mut self, trie: &Trie, readers: &[Head], visit: impl FnMut(&[Head], u64, &[u32])) {
        self.visit_range(trie, 0..trie.nodes().len(), readers, visit);
    }

    fn visit_range(
        &mut self,
        trie: &Trie,
        range: Range<usize>,
        readers: &[Head],
        mut visit: impl FnMut(&[Head], u64, &[u32]),
    ) {
        let Some(first) = trie.nodes().get(range.start) else {
            return;
        };
        let base = usize::from(first.depth);
        self.set_level(0, readers.to_vec());
        let mut at = range.start;
        while at < range.end {
            spend(1);
            let node = &trie.nodes()[at];
            let depth = usize::from(node.depth) - base;
            self.path.truncate(depth);
            self.path.push(node.byte);
            self.lookahead
                .step(&self.levels[depth], &self.path, &mut self.next);
            if self.next.is_empty() {
                at = node.end as usize;
                continue;
            }
            let tokens = trie.tokens_at(node);
            if !tokens.is_empty() {
                let length =
                    self.lookahead
                        .shortest(&self.next, &self.path, self.shortest, &mut self.lengths);
                visit(&self.next, length, tokens);
            }
            if node.end as usize == at + 1 {
                at += 1;
                continue;
            }
            let mut readers = self
                .levels
                .get_mut(depth + 1)
                .map(std::mem::take)
                .unwrap_or_default();
            self.lookahead.expand(&self.next, &self.path, &mut readers);
            self.set_level(depth + 1, readers);
            at = match self.lookahead.take_lost() {
                true => {
                    visit(&[], NEVER, trie.tokens_below(at));
                    node.end as usize
                }
                false => at + 1,
            };
        }
    }

    fn set_level(&mut self, depth: usize, readers: Vec<Head>) {
        if self.levels.len() == depth {
            self.levels.push(Vec::new());
        }
        self.levels[depth] = readers;
    }
}
