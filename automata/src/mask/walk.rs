//! Walks a trie with a set of heads.
//!
//! The trie is that of the vocabulary, or a small one of rests after a terminal. A node is entered if some
//! head can read its byte; a subtree that no head can enter is skipped.

mod level;

use std::cell::Cell;
use std::collections::BTreeMap;

use rustc_hash::FxHashSet;

use level::{Ahead, Level};

use super::cache::Tables;
use super::ground::{Exits, Ground, children};
use super::set::Mask;
use super::skip::loops;
use crate::language::ByteSet;
use crate::pushdown::{Head, Local, Lookahead, Stacks};
use crate::work::spend;

/// A walk, whose buffers are kept from node to node and for all walks of one mask.
pub(super) struct Walk<'a> {
    pub(super) lookahead: Lookahead<'a>,
    room: WalkRoom,
    tables: &'a Tables,
}

/// The buffers of a walk, reused by the next walk on the same operating-system thread.
#[derive(Default)]
struct WalkRoom {
    local: Local,
    path: Vec<u8>,
    levels: Vec<Level>,
    next: Vec<Head>,
    /// The readers that the walk was started with.
    begun: Vec<Head>,
    /// The exits of subtree masks that have not been walked yet, with their readers.
    open: Vec<(Exits, Head)>,
    /// The nodes at which a reader has branched off. Where a word can be split in several ways, as in nested
    /// loops, all of the ways reach the same nodes; without this set, each of them would be walked again.
    branched: FxHashSet<(Option<usize>, Head)>,
    /// The nodes after subtree masks that have not been walked yet, with the indices of their readers in
    /// `after`.
    exits: BTreeMap<u32, Vec<u32>>,
    /// The sets of readers that came out of subtree masks, indexed by the numbers in `exits`.
    after: Vec<Vec<Head>>,
}

/// Buffers for more readers than this are not reused.
const KEPT_READERS: usize = 1 << 12;

thread_local! {
    static SPARE: Cell<Option<Box<WalkRoom>>> = const { Cell::new(None) };
}

impl<'a> Walk<'a> {
    pub(super) fn new(stacks: &'a Stacks, tables: &'a Tables) -> Walk<'a> {
        let mut room = SPARE.take().map_or_else(WalkRoom::default, |room| *room);
        Walk {
            lookahead: Lookahead::within(stacks, std::mem::take(&mut room.local)),
            room,
            tables,
        }
    }

    /// Starts a walk with these readers. Returns the bytes that they may read.
    pub(super) fn start(&mut self, readers: &[Head]) -> ByteSet {
        self.room.begun.clear();
        self.room.begun.extend_from_slice(readers);
        self.ahead(&self.room.begun).bytes
    }

    fn ahead(&self, readers: &[Head]) -> Ahead {
        let mut ahead = Ahead::default();
        spend(readers.len());
        for reader in readers {
            self.lookahead
                .add_bytes(reader, &mut ahead.bytes, &mut ahead.sure);
            let terminal = self.lookahead.home(reader, self.tables.horizon());
            let loops = terminal.map_or(0, |(terminal, state)| loops::of(terminal, state));
            // These must be the loops of a single reader, which then stays wherever a token leads.
            if loops.count_ones() > ahead.loops.count_ones() {
                ahead.loops = loops;
            }
        }
        ahead
    }

    /// Adds the tokens of a node and its subtree, or of the whole trie, that the readers given to
    /// [`start`](Self::start) allow. Tokens that can be decided only by their own bytes are put into `lost`
    /// instead.
    pub(super) fn tokens(
        &mut self,
        ground: Ground<'_>,
        top: Option<usize>,
        mask: &mut Mask,
        lost: &mut Vec<u32>,
    ) {
        let begun = std::mem::take(&mut self.room.begun);
        self.walk((ground, top), &begun, mask, lost);
        self.room.begun = begun;
    }

    /// Adds the tokens that these readers allow, and those after the open exits.
    fn walk(
        &mut self,
        (ground, top): (Ground<'_>, Option<usize>),
        readers: &[Head],
        mask: &mut Mask,
        lost: &mut Vec<u32>,
    ) {
        self.room.branched.clear();
        self.room.after.clear();
        self.room.level(0);
        let level = &mut self.room.levels[0];
        level.readers.clear();
        level.readers.extend_from_slice(readers);
        match top {
            None => {
                self.room.path.clear();
                self.look_ahead(ground, None, 0, mask, lost);
                self.run(ground, 0, mask, lost);
            }
            Some(node) => {
                self.room.levels[0].ahead = self.ahead(&self.room.levels[0].readers);
                self.under(ground, node, mask, lost);
            }
        }
        loop {
            while let Some((exits, reader)) = self.room.open.pop() {
                self.leave(ground, &exits, reader, mask, lost);
            }
            // The nodes after an exit lead to greater nodes only, so no node is walked twice.
            let Some((node, sources)) = self.room.exits.pop_first() else {
                return;
            };
            let all = sources.iter().map(|&source| &self.room.after[source as usize]);
            let mut readers: Vec<Head> = all.flatten().copied().collect();
            if sources.len() > 1 {
                readers.sort_unstable();
                readers.dedup();
            }
            let ahead = self.ahead(&readers);
            let level = &mut self.room.levels[0];
            (level.readers, level.ahead) = (readers, ahead);
            self.under(ground, node as usize, mask, lost);
        }
    }

    /// Finds the nodes and readers with which the walk continues after a subtree mask.
    fn leave(
        &mut self,
        ground: Ground<'_>,
        exits: &Exits,
        reader: Head,
        mask: &mut Mask,
        lost: &mut Vec<u32>,
    ) {
        let level = &mut self.room.levels[0];
        self.lookahead.after(&reader, &mut level.readers);
        if self.lookahead.take_lost() {
            for &(_, node) in exits.iter() {
                lost.extend_from_slice(ground.trie.tokens_below(node as usize));
            }
            return;
        }
        let ahead = self.ahead(&self.room.levels[0].readers);
        let WalkRoom {
            levels,
            exits: open,
            after,
            ..
        } = &mut self.room;
        let readers = &levels[0].readers;
        spend(after.len() + exits.len());
        let known = after.iter().position(|known| known == readers);
        let source = known.unwrap_or_else(|| {
            after.push(readers.clone());
            after.len() - 1
        }) as u32;
        for &(byte, node) in exits.iter() {
            if ahead.bytes.contains(byte) && !ahead.settles(ground.trie, (byte, node as usize), mask) {
                let sources = open.entry(node).or_default();
                spend(sources.len());
                if !sources.contains(&source) {
                    sources.push(source);
                }
            }
        }
    }

    /// Walks a node with the readers of the first level.
    fn under(&mut self, ground: Ground<'_>, node: usize, mask: &mut Mask, lost: &mut Vec<u32>) {
        let byte = ground.trie.nodes()[node].byte;
        let level = &mut self.room.levels[0];
        level.look_at(0..0);
        let settled = level.ahead.settles(ground.trie, (byte, node), mask);
        if !settled && self.enter(ground, (byte, node), 0, mask, lost) {
            self.run(ground, 1, mask, lost);
        }
    }

    /// Walks the remaining children, from this depth on.
    fn run(&mut self, ground: Ground<'_>, mut depth: usize, mask: &mut Mask, lost: &mut Vec<u32>) {
        loop {
            let level = &mut self.room.levels[depth];
            let Some(node) = level.next_child(ground.trie) else {
                match depth.checked_sub(1) {
                    Some(above) => depth = above,
                    None => return,
                }
                continue;
            };
            if !level.ahead.settles(ground.trie, node, mask) {
                depth += usize::from(self.enter(ground, node, depth, mask, lost));
            }
        }
    }

    /// Reads the byte of a node and adds the tokens that end there. Returns `true` if a level was created
    /// below.
    fn enter(
        &mut self,
        ground: Ground<'_>,
        (byte, node): (u8, usize),
        depth: usize,
        mask: &mut Mask,
        lost: &mut Vec<u32>,
    ) -> bool {
        spend(1);
        let trie = ground.trie;
        let WalkRoom {
            path, levels, next, ..
        } = &mut self.room;
        path.truncate(depth);
        path.push(byte);
        if let [reader] = levels[depth].readers[..]
            && let Some(next) = self.lookahead.read_on(&reader, byte)
        {
            return self.read_on(ground, node, depth, next, mask);
        }
        self.lookahead.step(&levels[depth].readers, path, next);
        if self.lookahead.take_lost() {
            lost.extend_from_slice(trie.tokens_below(node));
            return false;
        }
        if next.is_empty() {
            return false;
        }
        let known = &trie.nodes()[node];
        mask.insert_all(trie.tokens_at(known));
        if known.end as usize == node + 1 {
            return false;
        }
        self.room.level(depth + 1);
        let WalkRoom {
            path, levels, next, ..
        } = &mut self.room;
        self.lookahead.expand(next, path, &mut levels[depth + 1].readers);
        if self.lookahead.take_lost() {
            lost.extend_from_slice(trie.tokens_below(node));
            return false;
        }
        self.look_ahead(ground, Some(node), depth + 1, mask, lost)
    }

    /// Enters a node with a single reader that stays in fixed text, which neither calls a rule nor ends.
    fn read_on(
        &mut self,
        ground: Ground<'_>,
        node: usize,
        depth: usize,
        next: Head,
        mask: &mut Mask,
    ) -> bool {
        let known = &ground.trie.nodes()[node];
        mask.insert_all(ground.trie.tokens_at(known));
        if known.end as usize == node + 1 {
            return false;
        }
        self.room.level(depth + 1);
        let level = &mut self.room.levels[depth + 1];
        level.readers.clear();
        level.readers.push(next);
        level.ahead = Ahead::default();
        let Ahead { bytes, sure, .. } = &mut level.ahead;
        self.lookahead.add_bytes(&next, bytes, sure);
        level.look_at(ground.trie.children(Some(node)));
        true
    }

    /// Prepares the level below a node, or below the root, whose readers are known. Returns `true` if any
    /// children remain to be visited there.
    fn look_ahead(
        &mut self,
        ground: Ground<'_>,
        node: Option<usize>,
        depth: usize,
        mask: &mut Mask,
        lost: &mut Vec<u32>,
    ) -> bool {
        let size = node.map_or(ground.trie.nodes().len(), |node| {
            ground.trie.nodes()[node].end as usize - node
        });
        let mut readers = std::mem::take(&mut self.room.levels[depth].readers);
        if size > self.tables.small() {
            readers.retain(|reader| {
                !self.branches_off(ground, node, reader, mask)
                    && !self.key_branches_off(ground, node, reader, mask, lost)
            });
        }
        let ahead = self.ahead(&readers);
        let is_open = !readers.is_empty();
        let level = &mut self.room.levels[depth];
        (level.readers, level.ahead) = (readers, ahead);
        level.look_at(if is_open { ground.trie.children(node) } else { 0..0 });
        is_open
    }

    /// Adds the tokens that a reader allows below a node, if they do not depend on its callers. The nodes
    /// after the exits are left open.
    fn branches_off(
        &mut self,
        ground: Ground<'_>,
        node: Option<usize>,
        reader: &Head,
        mask: &mut Mask,
    ) -> bool {
        let Some((terminal, cursor)) = self.lookahead.terminal(reader) else {
            return false;
        };
        if !terminal.has_language_ids() || !terminal.is_plain(cursor, self.tables.horizon()) {
            return false;
        }
        if !self.room.branched.insert((node, *reader)) {
            return true;
        }
        let subtree_mask = self.tables.subtree_mask(terminal, cursor.state, ground, node);
        subtree_mask.inner.add_to(mask);
        if !subtree_mask.exits.is_empty() {
            self.room.open.push((subtree_mask.exits.clone(), *reader));
        }
        true
    }

    /// Adds the tokens that a reader in a key allows below a node, without the keys that may not be written.
    /// The nodes after the keys are left open.
    fn key_branches_off(
        &mut self,
        ground: Ground<'_>,
        node: Option<usize>,
        reader: &Head,
        mask: &mut Mask,
        lost: &mut Vec<u32>,
    ) -> bool {
        let Some(key) = self.lookahead.key(reader) else {
            return false;
        };
        if !key.terminal.has_language_ids() || !key.terminal.is_plain(key.cursor, self.tables.horizon()) {
            return false;
        }
        let Some(subtree_mask) = self
            .tables
            .key_subtree_mask(key.terminal, key.cursor.state, ground, node)
        else {
            return false;
        };
        if !self.room.branched.insert((node, *reader)) {
            return true;
        }
        subtree_mask.inner.add_to(mask);
        let trie = ground.trie;
        if subtree_mask.ends.is_empty() {
            return true;
        }
        let written = &self.room.path[key.start..];
        let Some(unwritable) = self
            .lookahead
            .unwritable_after(&key, written, subtree_mask.longest)
        else {
            let doubted = subtree_mask.ends.iter();
            lost.extend(doubted.flat_map(|&end| trie.tokens_below(end as usize)));
            return true;
        };
        let unwritable = unwritable.iter().filter_map(|rest| trie.find_below(node, rest));
        let unwritable: Vec<usize> = unwritable.collect();
        let exits = if unwritable.is_empty() {
            mask.insert_all(&subtree_mask.end_tokens);
            subtree_mask.exits.clone()
        } else {
            let ends = subtree_mask.ends.iter().map(|&end| end as usize);
            let ends = ends.filter(|end| !unwritable.contains(end));
            let after = ends.inspect(|&end| mask.insert_all(trie.tokens_at(&trie.nodes()[end])));
            after.flat_map(|end| children(trie, Some(end))).collect()
        };
        if !exits.is_empty() {
            self.room.open.push((exits, *reader));
        }
        true
    }

    /// Returns `true` if a reader allows these bytes, or `None` if heads cannot decide it.
    pub(super) fn allows(&mut self, reader: Head, bytes: &[u8]) -> Option<bool> {
        let mut readers = vec![reader];
        let WalkRoom { path, next, .. } = &mut self.room;
        path.clear();
        for (at, &byte) in bytes.iter().enumerate() {
            path.push(byte);
            self.lookahead.step(&readers, path, next);
            if at + 1 < bytes.len() {
                self.lookahead.expand(next, path, &mut readers);
            }
            if self.lookahead.take_lost() {
                return None;
            }
        }
        Some(!next.is_empty())
    }
}

impl WalkRoom {
    /// Ensures that there is a level at this depth, if there is one above.
    fn level(&mut self, depth: usize) {
        if self.levels.len() == depth {
            self.levels.push(Level::default());
        }
    }
}

impl Drop for Walk<'_> {
    fn drop(&mut self) {
        let mut room = std::mem::take(&mut self.room);
        room.local = self.lookahead.leave();
        // A finished walk has emptied these; a walk whose query was ended has not.
        room.open.clear();
        room.exits.clear();
        room.levels
            .retain(|level| level.readers.capacity() <= KEPT_READERS);
        if room.branched.capacity().max(room.after.capacity()) > KEPT_READERS {
            (room.branched, room.after) = Default::default();
        }
        SPARE.set(Some(Box::new(room)));
    }
}
