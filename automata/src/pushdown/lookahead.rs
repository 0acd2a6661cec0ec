//! Configurations for looking ahead.
//!
//! A mask tries thousands of continuations, of which one will be written. The configurations of [`Stacks`]
//! are interned permanently, which is right for text that was written and wrong for text that only might be:
//! a key that some token could begin would stay in memory for ever. So masks look ahead with *heads* of a
//! graph-structured stack: the same pairs of a frame and its callers, as plain values in lists that are
//! dropped with the mask.
//!
//! ```text
//!   Stacks      config 17 ──"a"──► config 18                      interned, memoised, shared
//!   Lookahead   [reader, reader] ──step──► [head] ──expand──► [reader, reader, …]
//!                                   read a byte    follow calls and returns
//! ```
//!
//! The place of a head in a terminal is given by the cursor alone, and the text of a key by the position in
//! the path of the walk at which the key began, so nothing needs to be interned to read on. Callers are a
//! configuration of the stacks or a local set. Local sets are hash-consed, and heads in the same place are
//! merged by uniting their callers, so ambiguity costs no more here than in the stacks.
//!
//! # Why heads are not interned
//!
//! Memoising every step by frame and byte class leaks memory for text that is only tried: with open keys,
//! every token is a new key. A schema of three nested open objects went from 2 GB and 2 s per mask to 0.1 MB
//! and 20 µs.
//!
//! # Why lookahead continues after unknown keys
//!
//! The continuation after a key depends on the key only if keys can run out, or if one token writes a key
//! twice. A progress may be *in doubt* about one key; only tokens for which that matters are judged by their
//! bytes, in a copy of the machine (`pushdown/copy.rs`). Before, every token with a key, its value and more
//! was judged in this way, which took a third of the time of all masks.

mod future;
mod glance;
mod head;
mod local;
mod place;

use std::cell::Cell;

pub(crate) use future::SetLengths;
pub(crate) use head::{At, Head};
use head::{Callers, LOCAL};
pub(crate) use local::Local;
use local::Reached;

use super::frame::{FrameId, FrameKey, Guard, RETURN};
use super::stack::{ConfigId, END, Stacks};
use crate::language::Cursor;
use crate::work::spend;

/// The cost of following a head, in rounds of a plain loop. Its look-ups are in tables that are slow to
/// access.
const FOLLOWED: usize = 24;

/// The heads of one walk and the sets that they return to.
pub(crate) struct Lookahead<'a> {
    stacks: &'a Stacks,
    local: Local,
    /// `true` if nothing may be left in doubt, because lengths are computed.
    strict: bool,
    lost: bool,
    /// The lowest height of the configurations of the stacks that were looked at.
    lowest: Cell<u32>,
}

impl<'a> Lookahead<'a> {
    pub(crate) fn new(stacks: &'a Stacks) -> Lookahead<'a> {
        Lookahead::within(stacks, Local::default())
    }

    /// Creates heads that use the given buffers; see [`leave`](Self::leave).
    pub(crate) fn within(stacks: &'a Stacks, local: Local) -> Lookahead<'a> {
        Lookahead {
            stacks,
            local,
            strict: false,
            lost: false,
            lowest: Cell::new(u32::MAX),
        }
    }

    /// Returns the buffers, empty again. Heads and sets handed out before become invalid.
    pub(crate) fn leave(&mut self) -> Local {
        let mut local = std::mem::take(&mut self.local);
        local.clear();
        local
    }

    /// Creates heads that do not continue after the item of a key, so that the lengths of all heads are
    /// exact.
    pub(crate) fn strict(stacks: &'a Stacks) -> Lookahead<'a> {
        Lookahead {
            strict: true,
            ..Lookahead::new(stacks)
        }
    }

    /// Returns the readers of a configuration; `written` is the length of the path to it.
    pub(crate) fn readers_of(&self, config: ConfigId, written: usize) -> Vec<Head> {
        let readers = self.closure(config).iter();
        readers
            .map(|&(frame, callers)| self.reader(frame, callers, written))
            .collect()
    }

    /// Returns the frames with which a configuration reads next, with their callers.
    fn closure(&self, config: ConfigId) -> &'a [(FrameId, ConfigId)] {
        let closure = self.stacks.closure(config);
        self.look_into(closure.lowest);
        &closure.readers
    }

    /// Records the height of a configuration that was looked at.
    pub(crate) fn look_into(&self, height: u32) {
        self.lowest.set(self.lowest.get().min(height));
    }

    /// Returns the lowest height of the configurations that were looked at.
    pub(crate) fn lowest(&self) -> u32 {
        self.lowest.get()
    }

    /// Returns a frame that reads, with its callers, as a head.
    pub(crate) fn reader(&self, frame: FrameId, callers: ConfigId, written: usize) -> Head {
        Head {
            at: self.stacks.frames.place(frame, written),
            callers,
        }
    }

    /// Returns the readers after a complete key of the frame, whatever the key is.
    pub(crate) fn after_key(&mut self, frame: FrameId, callers: ConfigId) -> Vec<Head> {
        let item = self.item_of(frame, callers);
        let mut readers = Vec::new();
        self.expand(&[item], &[], &mut readers);
        readers
    }

    /// Returns `true` if a step or an expansion since the last call reached a point where an unknown key
    /// makes a difference. The heads that it found are then incomplete, and tokens that lead there must be
    /// judged by their bytes.
    pub(crate) fn take_lost(&mut self) -> bool {
        std::mem::take(&mut self.lost)
    }

    /// Computes the heads after the last byte of the path.
    pub(crate) fn step(&mut self, readers: &[Head], path: &[u8], next: &mut Vec<Head>) {
        next.clear();
        spend(readers.len());
        for reader in readers {
            if let Some(at) = self.stacks.frames.read_at(reader.at, path) {
                self.lost |= self.is_in_doubt(at);
                self.settle(at, reader.callers, next);
            }
        }
        if next.len() > 1 {
            self.merge(next);
        }
    }

    fn is_in_doubt(&self, at: At) -> bool {
        match at {
            At::Key { frame, cursor, .. } => self.stacks.frames.is_in_doubt(frame, cursor),
            _ => false,
        }
    }

    /// Adds a head. A place that is complete and has no continuation is replaced by its callers.
    fn settle(&self, at: At, callers: Callers, into: &mut Vec<Head>) {
        match (at, callers) {
            (At::Frame(RETURN), callers) if callers != END => self.pairs_of(callers, into),
            _ => into.push(Head { at, callers }),
        }
    }

    fn pairs_of(&self, callers: Callers, into: &mut Vec<Head>) {
        if callers & LOCAL != 0 {
            let set = self.local.set(callers);
            spend(set.len());
            return into.extend_from_slice(set);
        }
        self.look_into(self.stacks.height(callers));
        let pairs = self.stacks.pairs(callers).iter();
        into.extend(pairs.map(|&(frame, callers)| Head {
            at: At::Frame(frame),
            callers,
        }));
    }

    /// Unites the callers of heads in the same place.
    fn merge(&mut self, heads: &mut Vec<Head>) {
        for head in heads.iter_mut() {
            if let At::Frame(frame) = head.at {
                head.at = self.stacks.frames.place_in_rule(frame);
            }
        }
        heads.sort_unstable();
        heads.dedup();
        if heads.windows(2).all(|two| two[0].at != two[1].at) {
            return;
        }
        let all = std::mem::take(heads);
        for group in all.chunk_by(|a, b| a.at == b.at) {
            let callers = if group.len() == 1 {
                group[0].callers
            } else {
                self.unite(group)
            };
            heads.push(Head {
                at: group[0].at,
                callers,
            });
        }
    }

    fn unite(&mut self, group: &[Head]) -> Callers {
        let mut all = Vec::new();
        for head in group {
            match head.callers {
                callers @ END => all.push(Head {
                    at: At::Frame(RETURN),
                    callers,
                }),
                callers => self.pairs_of(callers, &mut all),
            }
        }
        spend(all.len());
        all.sort_unstable();
        all.dedup();
        self.local.union(all)
    }

    /// Computes the readers of the heads, following calls and returns as far as nothing is read.
    pub(crate) fn expand(&mut self, heads: &[Head], path: &[u8], readers: &mut Vec<Head>) {
        readers.clear();
        if let [only] = heads
            && self.only_reads(only)
        {
            readers.push(*only);
            return;
        }
        let mut open = std::mem::take(&mut self.local.open);
        open.clear();
        open.extend(heads);
        self.follow(&mut open, path, readers);
        self.local.open = open;
    }

    /// Returns `true` if a head continues to read at its place, and neither calls nor ends.
    fn only_reads(&self, head: &Head) -> bool {
        let frames = &self.stacks.frames;
        match head.at {
            At::Frame(frame) => frames.only_reads(frame),
            At::Node { .. } => true,
            At::Terminal(index, cursor) => !frames.terminal(index).is_accepting(cursor),
            At::Key { frame, cursor, .. } => !frames.key_terminal_of(frame).is_accepting(cursor),
            At::NextKey { frame, node } => frames.only_reads_next_key(&frames.next_key_state(frame, node)),
            At::Validated { .. } | At::Way { .. } | At::AfterKey(_) => false,
        }
    }

    fn follow(&mut self, open: &mut Reached, path: &[u8], readers: &mut Vec<Head>) {
        let mut at = 0;
        while let Some(&head) = open.list.get(at) {
            at += 1;
            spend(FOLLOWED);
            match head.at {
                At::Frame(frame) => self.expand_frame(frame, head.callers, path.len(), open, readers),
                At::Node { .. } => readers.push(head),
                At::NextKey { frame, node } => {
                    self.expand_next_key((frame, node), head.callers, open, readers);
                }
                At::Way { frame, way } => {
                    let frames = &self.stacks.frames;
                    let after = frames.frame_after_way(&frames.next_key_state(frame, 0), way);
                    open.push(Head {
                        at: At::Frame(after),
                        callers: head.callers,
                    });
                }
                At::Terminal(index, cursor) => {
                    readers.push(head);
                    if self.stacks.frames.terminal(index).is_accepting(cursor) {
                        match self.stacks.frames.guards.of(index, cursor.state) {
                            None => self.end_terminal(head.callers, path, open, readers),
                            Some(guard) => self.end_guarded(guard, head.callers, path, readers),
                        }
                    }
                }
                At::Key { frame, cursor, start } => {
                    readers.push(head);
                    self.expand_key((frame, cursor, start), head.callers, path, open);
                }
                At::Validated { frame, start, .. } => {
                    readers.push(head);
                    if self.stacks.frames.word_ends(frame, &path[start as usize..]) {
                        self.give_back(head.callers, path.len(), open, readers);
                    }
                }
                At::AfterKey(frame) => match self.after_item(frame) {
                    Some(next) => open.push(Head {
                        at: At::Frame(next),
                        callers: head.callers,
                    }),
                    None => self.lost = true,
                },
            }
        }
    }

    /// Continues with the callers of a terminal that may end. A walk reaches the same callers after every
    /// letter of a word; their readers are computed once, unless they depend on the position in the path.
    fn end_terminal(&mut self, callers: Callers, path: &[u8], open: &mut Reached, readers: &mut Vec<Head>) {
        if callers == END || callers & LOCAL == 0 {
            return self.give_back(callers, path.len(), open, readers);
        }
        if let Some(known) = self.local.after(callers) {
            spend(known.len());
            return readers.extend_from_slice(known);
        }
        let lost = self.take_lost();
        let mut below = Reached::default();
        below.extend(self.local.set(callers));
        let first = readers.len();
        self.follow(&mut below, path, readers);
        let in_place = |head: &Head| matches!(head.at, At::Key { .. } | At::Validated { .. });
        if !self.lost && !readers[first..].iter().any(in_place) {
            self.local.keep_after(callers, &readers[first..]);
        }
        self.lost |= lost;
    }

    /// Continues with the callers of a word that some bytes must not follow.
    fn end_guarded(&mut self, guard: Guard, callers: Callers, path: &[u8], readers: &mut Vec<Head>) {
        let (mut below, mut after) = (Reached::default(), Vec::new());
        self.end_terminal(callers, path, &mut below, &mut after);
        self.follow(&mut below, path, &mut after);
        let frames = &self.stacks.frames;
        readers.extend(after.into_iter().filter_map(|head| {
            let frame = frames.frame_of_reader(head.at);
            let at = match frames.guarded(frame, guard)? {
                same if same == frame => head.at,
                guarded => At::Frame(guarded),
            };
            Some(Head { at, ..head })
        }));
    }

    fn after_item(&self, frame: FrameId) -> Option<FrameId> {
        (!self.strict)
            .then(|| self.stacks.frames.frame_after_any_key(frame))
            .flatten()
    }

    fn expand_frame(
        &mut self,
        frame: FrameId,
        callers: Callers,
        written: usize,
        open: &mut Reached,
        readers: &mut Vec<Head>,
    ) {
        let frames = &self.stacks.frames;
        let known = frames.get(frame);
        if let FrameKey::NextKey(at) = known.key {
            return self.expand_next_key((frame, at.node), callers, open, readers);
        }
        if let FrameKey::Terminal(index, cursor) = known.key {
            let at = At::Terminal(index, cursor);
            return open.push(Head { at, callers });
        }
        if known.reads {
            readers.push(Head {
                at: self.stacks.frames.place(frame, written),
                callers,
            });
        }
        for call in frames.calls(frame) {
            let below = match call.then {
                RETURN => callers,
                then => self.local.single(Head {
                    at: At::Frame(then),
                    callers,
                }),
            };
            open.push(Head {
                at: At::Frame(call.callee),
                callers: below,
            });
        }
        if known.accepting {
            self.give_back(callers, written, open, readers);
        }
    }

    /// Expands a next key. The continuation after each property is computed only when the property is
    /// complete, since few will be.
    fn expand_next_key(
        &mut self,
        (frame, node): (FrameId, u32),
        callers: Callers,
        open: &mut Reached,
        readers: &mut Vec<Head>,
    ) {
        let frames = &self.stacks.frames;
        let at = frames.next_key_state(frame, node);
        if frames.next_key_reads(&at) {
            let at = At::NextKey { frame, node };
            readers.push(Head { at, callers });
        }
        for (way, rule, node) in frames.own_ways(at) {
            let at = At::Way { frame, way };
            let callers = self.local.single(Head { at, callers });
            let at = self.stacks.frames.place_along(rule, node);
            open.push(Head { at, callers });
        }
    }

    fn expand_key(
        &mut self,
        (frame, cursor, start): (FrameId, Cursor, u32),
        callers: Callers,
        path: &[u8],
        open: &mut Reached,
    ) {
        let frames = &self.stacks.frames;
        let written = &path[start as usize..];
        if !frames.key_ends(frame, cursor, written) {
            return;
        }
        // The key written here may repeat the key in doubt.
        if frames.is_doubted(frame) {
            self.lost = true;
            return;
        }
        open.push(self.item_of(frame, callers));
    }

    /// Returns the item after a complete key.
    fn item_of(&mut self, frame: FrameId, callers: Callers) -> Head {
        let at = At::AfterKey(frame);
        let callers = self.local.single(Head { at, callers });
        let at = At::Frame(self.stacks.frames.item_of(frame));
        Head { at, callers }
    }

    /// Continues with the callers of a complete place.
    fn give_back(&self, callers: Callers, written: usize, open: &mut Reached, readers: &mut Vec<Head>) {
        match callers {
            END => self.look_into(0),
            local if local & LOCAL != 0 => open.extend(self.local.set(local)),
            // The readers of a configuration of the stacks are known already, or worth caching.
            config => {
                let found = self.closure(config).iter();
                spend(found.len());
                readers.extend(found.map(|&(frame, callers)| self.reader(frame, callers, written)));
            }
        }
    }

    /// Computes the readers of the callers of a reader that has ended.
    pub(crate) fn after(&mut self, reader: &Head, readers: &mut Vec<Head>) {
        let mut callers = Vec::new();
        match (reader.at, reader.callers) {
            (At::Key { frame, .. }, below) => callers.push(self.item_of(frame, below)),
            (_, END) => self.look_into(0),
            (_, known) => self.pairs_of(known, &mut callers),
        }
        self.expand(&callers, &[], readers);
    }
}
