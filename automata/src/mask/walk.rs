//! A walk of heads through a trie.
//!
//! The trie is that of the vocabulary, or a small one of rests after a terminal. A node is entered if some
//! head can take its byte; a subtree that none can enter is passed over.

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

/// What is kept from node to node, and from walk to walk of one mask.
pub(super) struct Walk<'a> {
    pub(super) lookahead: Lookahead<'a>,
    room: WalkRoom,
    tables: &'a Tables,
}

/// Room for a walk, handed on to the next one of the same operating-system thread.
#[derive(Default)]
struct WalkRoom {
    local: Local,
    path: Vec<u8>,
    levels: Vec<Level>,
    next: Vec<Head>,
    /// What the walk was started with.
    begun: Vec<Head>,
    /// The ways out of subtree masks that have not been walked yet, with their readers.
    open: Vec<(Exits, Head)>,
    /// The nodes that a reader has branched off at. Where a word can be split in several ways, as in a loop
    /// of loops, all of them come to the same places, and each way again would be as many walks as there are
    /// ways.
    branched: FxHashSet<(Option<usize>, Head)>,
    /// Nodes after subtree masks that have not been walked yet, with who comes there.
    exits: BTreeMap<u32, Vec<u32>>,
    /// The readers that came out of subtree masks, by their numbers in `exits`.
    behind: Vec<Vec<Head>>,
}

/// Room for more readers than this is not handed on.
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

    /// Begins to read with these readers. The bytes that they may take.
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
            // One of them has to stay wherever a token leads.
            if loops.count_ones() > ahead.loops.count_ones() {
                ahead.loops = loops;
            }
        }
        ahead
    }

    /// Adds the tokens of a node and below it, or of the whole trie, that the readers of the
    /// [`start`](Self::start) allow. Tokens of which only their own bytes can tell are put into `lost`
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

    /// Adds what these readers allow, and what comes after the ways out that are open.
    fn walk(
        &mut self,
        (ground, top): (Ground<'_>, Option<usize>),
        readers: &[Head],
        mask: &mut Mask,
        lost: &mut Vec<u32>,
    ) {
        self.room.branched.clear();
        self.room.behind.clear();
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
            // What is after an exit leads to greater nodes only, so that none is walked again.
            let Some((node, sources)) = self.room.exits.pop_first() else {
                return;
            };
            let all = sources.iter().map(|&source| &self.room.behind[source as usize]);
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

    /// Finds where and with which readers the walk goes on after a subtree mask.
    fn leave(
        &mut self,
        ground: Ground<'_>,
        exits: &Exits,
        reader: Head,
        mask: &mut Mask,
        lost: &mut Vec<u32>,
    ) {
        let level = &mut self.room.levels[0];
        self.lookahead.behind(&reader, &mut level.readers);
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
            behind,
            ..
        } = &mut self.room;
        let readers = &levels[0].readers;
        spend(behind.len() + exits.len());
        let known = behind.iter().position(|known| known == readers);
        let source = known.unwrap_or_else(|| {
            behind.push(readers.clone());
            behind.len() - 1
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

    /// Walks what is left to be looked at, from this depth on.
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

    /// Reads the byte of a node and adds the tokens that end there. Whether a level was made below.
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

    /// The same for the only reader where it stays in fixed text, which neither calls nor ends.
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

    /// Makes ready the level of what is below a node, or of the whole trie, whose readers are known. Whether
    /// anything is left to be looked at there.
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

    /// Adds what a reader allows below a node, if that is the same whoever comes here; what is after it is
    /// left open.
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

    /// Adds what a reader in a key allows below a node, less the keys that may not be written; what is after
    /// them is left open.
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
            .unwritable_behind(&key, written, subtree_mask.longest)
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
            let behind = ends.inspect(|&end| mask.insert_all(trie.tokens_at(&trie.nodes()[end])));
            behind.flat_map(|end| children(trie, Some(end))).collect()
        };
        if !exits.is_empty() {
            self.room.open.push((exits, *reader));
        }
        true
    }

    /// Whether a reader allows these bytes; `None` if heads cannot tell.
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
    /// Makes sure that there is a level at this depth, if there is one above.
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
        // A walk that came to its end has emptied these; one whose question was too dear has not.
        room.open.clear();
        room.exits.clear();
        room.levels
            .retain(|level| level.readers.capacity() <= KEPT_READERS);
        if room.branched.capacity().max(room.behind.capacity()) > KEPT_READERS {
            (room.branched, room.behind) = Default::default();
        }
        SPARE.set(Some(Box::new(room)));
    }
}
