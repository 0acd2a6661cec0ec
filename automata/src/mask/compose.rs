//! Composes the mask of a configuration from the terminal masks of its frames.

use std::sync::Arc;

use super::cache::Tables;
use super::set::{Mask, TokenSet};
use super::terminal::terminal_mask::{Bounds, Entry, TerminalMask};
use super::walk::Walk;
use crate::language::{ByteSet, Cursor, Terminal};
use crate::pushdown::{ConfigId, FrameId, Head, Machine, Stacks, View};
use crate::work::spend;

/// Returns all text tokens that may come next in a configuration, and the lowest height in the stacks that
/// the computation looked at.
pub(crate) fn fill(machine: &Machine, tables: &Tables, config: ConfigId) -> (Mask, u32) {
    let stacks = machine.stacks();
    let mut fill = Fill {
        stacks,
        tables,
        walk: Walk::new(stacks, tables),
        lost: Vec::new(),
        begun: None,
    };
    let mask = fill.configuration(config);
    (mask, fill.walk.lookahead.lowest())
}

struct Fill<'a> {
    stacks: &'a Stacks,
    tables: &'a Tables,
    walk: Walk<'a>,
    /// Tokens of the current reader that have to be judged by their bytes.
    lost: Vec<u32>,
    /// The tokens that the previous readers allow, unless the current reader is adding to that mask itself.
    begun: Option<Mask>,
}

impl Fill<'_> {
    fn configuration(&mut self, config: ConfigId) -> Mask {
        let mut walked = Vec::new();
        let closure = self.stacks.closure(config);
        self.walk.lookahead.look_into(closure.lowest);
        for &(frame, callers) in &closure.readers {
            let part = match self.stacks.view(frame) {
                View::Terminal(terminal, cursor) => self.part(PartKind::Terminal, terminal, cursor),
                View::Validated(terminal, cursor) => self.part(PartKind::Validated, terminal, cursor),
                View::Key(terminal, cursor) => RegularFrame {
                    taken: self.taken(frame),
                    ..self.part(PartKind::Key, terminal, cursor)
                },
                View::Rule => {
                    walked.push((frame, callers));
                    continue;
                }
            };
            self.add_part((frame, callers), part);
        }
        let mut mask = (self.begun.take()).unwrap_or_else(|| Mask::empty(self.tables.vocabulary().len()));
        if !walked.is_empty() {
            self.walk_all(&walked, &mut mask);
        }
        mask
    }

    fn add_part(&mut self, reader: (FrameId, ConfigId), part: RegularFrame<'_>) {
        if !part.takes_back()
            && let Some(mut mask) = self.begun.take()
        {
            self.add(reader, &part, &mut mask);
            self.begun = Some(mask);
            return;
        }
        // A part that removes tokens again must not remove tokens that other parts allow.
        let alone = self.alone(reader, part);
        match &mut self.begun {
            Some(mask) => mask.unite(&alone),
            None => self.begun = Some(alone),
        }
    }

    /// Returns the tokens that one frame allows.
    fn alone(&mut self, reader: (FrameId, ConfigId), part: RegularFrame<'_>) -> Mask {
        let copied = part.copied();
        let mut mask = copied.map_or_else(|| Mask::empty(self.tables.vocabulary().len()), Mask::clone);
        let part = RegularFrame {
            begun: copied.is_some(),
            ..part
        };
        self.add(reader, &part, &mut mask);
        mask
    }

    /// Returns the byte sequences after which a frame has only keys left that were written before, as far as
    /// tokens reach.
    fn taken(&self, frame: FrameId) -> Vec<Vec<u8>> {
        let trie = self.tables.vocabulary().trie();
        self.stacks.taken(frame, |key| trie.may_hold(key))
    }

    fn part<'t>(&self, kind: PartKind, terminal: &'t Terminal, cursor: Cursor) -> RegularFrame<'t> {
        RegularFrame {
            kind,
            entry: self.tables.entry(terminal, cursor),
            terminal,
            cursor,
            taken: Vec::new(),
            begun: false,
        }
    }

    /// Walks the whole trie with the readers that are frames of rules.
    fn walk_all(&mut self, walked: &[(FrameId, ConfigId)], mask: &mut Mask) {
        let readers: Vec<Head> = walked
            .iter()
            .map(|&(frame, callers)| self.walk.lookahead.reader(frame, callers, 0))
            .collect();
        self.walk.start(&readers);
        self.walk.tokens(self.tables.ground(), None, mask, &mut self.lost);
        let lost = std::mem::take(&mut self.lost);
        for &(frame, callers) in walked {
            self.lost.clone_from(&lost);
            self.find_lost(frame, callers, mask);
        }
    }

    /// Adds the tokens that one frame allows. If the part removes tokens again, the mask must hold nothing
    /// else.
    fn add(&mut self, (frame, callers): (FrameId, ConfigId), part: &RegularFrame<'_>, mask: &mut Mask) {
        let after = match part.kind {
            PartKind::Key => self.walk.lookahead.after_key(frame, callers),
            PartKind::Terminal | PartKind::Validated => self.walk.lookahead.readers_of(callers, 0),
        };
        // The key is the whole item, as in a list of distinct strings: the continuation depends on the key.
        let whole = self.walk.lookahead.take_lost();
        match &*part.entry {
            Entry::Unbounded(terminal_mask) => {
                let first = terminal_mask.base.as_ref().unwrap_or(terminal_mask);
                if !part.begun {
                    first.inner.add_to(mask);
                }
                match part.kind {
                    PartKind::Validated => self.add_validated(terminal_mask, frame, &after, mask),
                    _ => self.add_unbounded(terminal_mask, true, &after, mask),
                };
            }
            Entry::Bounded(bounds) => self.add_bounded(bounds, part, &after, mask),
        }
        if whole {
            self.doubt_rests(part);
        }
        self.take_out(part, mask);
        self.find_lost(frame, callers, mask);
    }

    /// Queues all tokens that leave the terminal, to be judged by their bytes.
    fn doubt_rests(&mut self, part: &RegularFrame<'_>) {
        let vocab = self.tables.vocabulary().trie();
        let terminal_mask = match &*part.entry {
            Entry::Unbounded(terminal_mask) => terminal_mask,
            Entry::Bounded(bounds) => &bounds.unbounded,
        };
        for rests in [terminal_mask.base.as_ref(), Some(terminal_mask)]
            .into_iter()
            .flatten()
            .flat_map(|f| &f.rests)
        {
            for &node in &rests.large {
                self.lost.extend_from_slice(vocab.tokens_below(node as usize));
            }
            self.lost.extend_from_slice(rests.trie(vocab).tokens());
        }
    }

    /// Adds the tokens that leave a state, ignoring bounds. The tokens that stay within the base of the
    /// terminal mask are already in the mask; with `inner`, those that stay within the mask itself are added
    /// too. Returns the bytes that may come after the terminal.
    fn add_unbounded(
        &mut self,
        terminal_mask: &TerminalMask,
        inner: bool,
        after: &[Head],
        mask: &mut Mask,
    ) -> ByteSet {
        let bytes = self.walk.start(after);
        if let Some(base) = &terminal_mask.base {
            self.add_rests(base, &bytes, mask);
            mask.remove_all(&terminal_mask.except);
            if inner {
                terminal_mask.inner.add_to(mask);
            }
        }
        self.add_rests(terminal_mask, &bytes, mask);
        bytes
    }

    /// Adds the tokens that leave a prefix of a validated word. All such prefixes can be completed, but only
    /// the validator can decide from the text where a word may end.
    fn add_validated(
        &mut self,
        terminal_mask: &TerminalMask,
        frame: FrameId,
        after: &[Head],
        mask: &mut Mask,
    ) -> ByteSet {
        let bytes = self.walk.start(after);
        if let Some(base) = &terminal_mask.base {
            self.add_validated_rests(base, frame, &bytes, mask);
            mask.remove_all(&terminal_mask.except);
            terminal_mask.inner.add_to(mask);
        }
        self.add_validated_rests(terminal_mask, frame, &bytes, mask);
        bytes
    }

    /// Adds the tokens that leave the terminal at the end of a word.
    fn add_validated_rests(
        &mut self,
        terminal_mask: &TerminalMask,
        frame: FrameId,
        bytes: &ByteSet,
        mask: &mut Mask,
    ) {
        let vocabulary = self.tables.vocabulary();
        let trie = vocabulary.trie();
        for rests in terminal_mask
            .rests
            .iter()
            .filter(|rests| bytes.contains(rests.byte))
        {
            for node in rests.nodes() {
                // All tokens below the node begin with the bytes that were read before it.
                let token = trie.tokens_below(node).first();
                let written = usize::from(trie.nodes()[node].depth) - 1;
                let word = token.map(|&token| &vocabulary.bytes(token)[..written]);
                if word.is_some_and(|word| self.stacks.word_ends(frame, word)) {
                    self.walk
                        .tokens(self.tables.ground(), Some(node), mask, &mut self.lost);
                }
            }
        }
    }

    /// Adds the tokens that a state allows near a bound of its language.
    fn add_bounded(&mut self, bounds: &Bounds, part: &RegularFrame<'_>, after: &[Head], mask: &mut Mask) {
        let bytes = self.add_unbounded(&bounds.unbounded, false, after, mask);
        let trie = self.tables.vocabulary().trie();
        let place = (part.terminal, part.cursor);
        bounds
            .length_mask
            .doubt(place, &bytes, trie, mask, &mut self.lost);
        bounds.inner.add_to(mask);
        let both = bytes.common(part.terminal.bytes_after_words());
        if !both.is_empty() {
            self.doubt_inner(bounds, &both);
        }
    }

    /// Queues, to be judged by their bytes, the tokens that would stay within the terminal but for its
    /// bounds: if the continuation may begin with a byte that the terminal accepts as well, they may leave it
    /// in time.
    fn doubt_inner(&mut self, bounds: &Bounds, both: &ByteSet) {
        let vocabulary = self.tables.vocabulary();
        let mut out = Mask::empty(vocabulary.len());
        if let Some(base) = &bounds.unbounded.base {
            base.inner.add_to(&mut out);
            out.remove_all(&bounds.unbounded.except);
        }
        bounds.unbounded.inner.add_to(&mut out);
        let mut inner = Mask::empty(vocabulary.len());
        bounds.inner.add_to(&mut inner);
        let may_leave = |&token: &u32| {
            let after = vocabulary.bytes(token).iter().skip(1);
            !inner.contains(token) && after.copied().any(|byte| both.contains(byte))
        };
        self.lost.extend(out.iter().filter(may_leave));
    }

    /// Adds the tokens that leave the terminal and continue after it, with the readers that the walk was
    /// started with.
    fn add_rests(&mut self, terminal_mask: &TerminalMask, bytes: &ByteSet, mask: &mut Mask) {
        let vocab = self.tables.ground();
        for rests in terminal_mask
            .rests
            .iter()
            .filter(|rests| bytes.contains(rests.byte))
        {
            for &node in &rests.large {
                self.walk.tokens(vocab, Some(node as usize), mask, &mut self.lost);
            }
            let ground = rests.ground(vocab.trie);
            self.walk.tokens(ground, None, mask, &mut self.lost);
        }
    }

    /// Removes the tokens that lead only to a key that was written before. If a key may continue after a
    /// complete one, some of these tokens may be allowed: they are queued to be judged by their bytes.
    fn take_out(&mut self, part: &RegularFrame<'_>, mask: &mut Mask) {
        let trie = self.tables.vocabulary().trie();
        for node in part.taken.iter().filter_map(|bytes| trie.find(bytes)) {
            mask.remove_all(trie.tokens_below(node));
            if !part.terminal.is_prefix_code() {
                self.lost.extend_from_slice(trie.tokens_below(node));
            }
        }
    }

    /// Judges queued tokens of a reader by their bytes: those that write a key, its item and more, or that
    /// may violate a bound.
    fn find_lost(&mut self, frame: FrameId, callers: ConfigId, mask: &mut Mask) {
        if self.lost.is_empty() {
            return;
        }
        let vocab = self.tables.vocabulary();
        let reader = self.walk.lookahead.reader(frame, callers, 0);
        let mut apart = None;
        self.lost.sort_unstable();
        self.lost.dedup();
        for token in std::mem::take(&mut self.lost) {
            spend(1);
            if mask.contains(token) || self.begun.as_ref().is_some_and(|begun| begun.contains(token)) {
                continue;
            }
            let bytes = vocab.bytes(token);
            let allowed = self.walk.allows(reader, bytes).unwrap_or_else(|| {
                // Copying the callers looks at all of them.
                self.walk.lookahead.look_into(0);
                let (stacks, config) = apart.get_or_insert_with(|| self.stacks.apart(frame, callers));
                let step = |config, &byte: &u8| stacks.step(config, byte);
                bytes.iter().try_fold(*config, step).is_some()
            });
            if allowed {
                mask.insert(token);
            }
        }
    }
}

/// The language that a frame is in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PartKind {
    Terminal,
    Key,
    Validated,
}

/// A frame inside a regular language.
struct RegularFrame<'t> {
    kind: PartKind,
    entry: Arc<Entry>,
    terminal: &'t Terminal,
    cursor: Cursor,
    /// The byte sequences after which only keys are left that must not be written again.
    taken: Vec<Vec<u8>>,
    /// `true` if the mask started as a copy of the tokens that stay within the language.
    begun: bool,
}

impl RegularFrame<'_> {
    /// Returns the set that is added first, if it is large enough to copy.
    fn copied(&self) -> Option<&Mask> {
        let Entry::Unbounded(terminal_mask) = &*self.entry else {
            return None;
        };
        match &terminal_mask.base.as_ref().unwrap_or(terminal_mask).inner {
            TokenSet::Bits(mask) => Some(mask),
            TokenSet::List(_) => None,
        }
    }

    /// Returns `true` if tokens that were added for this frame may be removed again.
    fn takes_back(&self) -> bool {
        match &*self.entry {
            Entry::Unbounded(terminal_mask) => terminal_mask.base.is_some() || !self.taken.is_empty(),
            Entry::Bounded(_) => true,
        }
    }
}
