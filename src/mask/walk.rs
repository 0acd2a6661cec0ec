//! A walk of threads through a trie.
//!
//! The trie is that of the vocabulary, or a small one of rests behind a terminal. A node is entered if some thread
//! can take its byte; a subtree that none can enter is passed over.

mod level;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use level::{Ahead, Level};

use super::branch::{Branch, Exits, Ground, children};
use super::cache::Tables;
use super::loops;
use super::passage::{Met, Passage, Passages};
use super::set::{Mask, TokenSet};
use crate::machine::{ByteSet, Local, Stacks, Thread, Threads};
use crate::work::spend;

/// What is kept from node to node, and from walk to walk of one mask.
pub(super) struct Walk<'a> {
    pub(super) threads: Threads<'a>,
    room: Room,
    tables: &'a Tables,
    passages: &'a Passages,
}

/// Where a walk puts what it finds.
pub(super) trait Found {
    fn insert_all(&mut self, tokens: &[u32]);

    fn insert_branch(&mut self, branch: &Arc<Branch>);

    fn insert_set(&mut self, tokens: &TokenSet);
}

impl Found for Mask {
    fn insert_all(&mut self, tokens: &[u32]) {
        Mask::insert_all(self, tokens);
    }

    fn insert_branch(&mut self, branch: &Arc<Branch>) {
        branch.inner.add_to(self);
    }

    fn insert_set(&mut self, tokens: &TokenSet) {
        tokens.add_to(self);
    }
}

/// Room for a walk, handed on to the next one of the same operating-system thread.
#[derive(Default)]
struct Room {
    local: Local,
    path: Vec<u8>,
    levels: Vec<Level>,
    next: Vec<Thread>,
    /// What the walk was started with.
    begun: Vec<Thread>,
    /// Those of them for which no passage is known.
    walked: Vec<Thread>,
    /// The ways out of branches and passages that have not been walked yet, with their readers.
    open: Vec<(Exits, Thread)>,
    /// The ways out of the passage that is being found.
    came_out: Vec<(u8, u32)>,
    /// The nodes that a reader has branched off at. Where a word can be split in several ways, as in a loop of loops, all
    /// of them come to the same places, and each way again would be as many walks as there are ways.
    branched: FxHashSet<(Option<usize>, Thread)>,
    /// Nodes behind branches that have not been walked yet, with who comes there.
    exits: BTreeMap<u32, Vec<u32>>,
    /// The readers that came out of branches, by their numbers in `exits`.
    behind: Vec<Vec<Thread>>,
}

/// So many readers are walked one by one where what each allows is known.
const FEW_READERS: usize = 4;

/// Room for more readers than this is not handed on.
const KEPT_READERS: usize = 1 << 12;

thread_local! {
    static SPARE: Cell<Option<Box<Room>>> = const { Cell::new(None) };
}

/// What is remembered and what it is found for.
impl Found for (Passage, &mut Mask) {
    fn insert_all(&mut self, tokens: &[u32]) {
        self.0.insert_all(tokens);
        self.1.insert_all(tokens);
    }

    fn insert_branch(&mut self, branch: &Arc<Branch>) {
        self.0.insert_branch(branch);
        branch.inner.add_to(self.1);
    }

    fn insert_set(&mut self, tokens: &TokenSet) {
        self.0.insert_set(tokens);
        tokens.add_to(self.1);
    }
}

impl<'a> Walk<'a> {
    pub(super) fn new(stacks: &'a Stacks, tables: &'a Tables, passages: &'a Passages) -> Walk<'a> {
        let mut room = SPARE.take().map_or_else(Room::default, |room| *room);
        Walk {
            threads: Threads::within(stacks, std::mem::take(&mut room.local)),
            room,
            tables,
            passages,
        }
    }

    /// Begins to read with these readers. The bytes that they may take.
    pub(super) fn start(&mut self, readers: &[Thread]) -> ByteSet {
        self.room.begun.clear();
        self.room.begun.extend_from_slice(readers);
        self.threads.spread(&mut self.room.begun);
        self.ahead(&self.room.begun).bytes
    }

    fn ahead(&self, readers: &[Thread]) -> Ahead {
        let mut ahead = Ahead::default();
        spend(readers.len());
        for reader in readers {
            self.threads.add_bytes(reader, &mut ahead.bytes, &mut ahead.sure);
            let terminal = self.threads.home(reader, self.tables.horizon());
            let loops = terminal.map_or(0, |(terminal, state)| loops::of(terminal, state));
            // One of them has to stay wherever a token leads.
            if loops.count_ones() > ahead.loops.count_ones() {
                ahead.loops = loops;
            }
        }
        ahead
    }

    /// Adds the tokens of a node and below it, or of the whole trie, that the readers of the [`start`](Self::start)
    /// allow. Tokens of which only their own bytes can tell are put into `lost` instead.
    pub(super) fn tokens(
        &mut self,
        ground: Ground<'_>,
        top: Option<usize>,
        mask: &mut Mask,
        lost: &mut Vec<u32>,
    ) {
        let begun = std::mem::take(&mut self.room.begun);
        let mut walked = std::mem::take(&mut self.room.walked);
        walked.clear();
        let mut passed = Vec::new();
        for &reader in &begun {
            match self.passage((ground, top), &reader, begun.len(), mask) {
                Some(passage) => {
                    lost.extend_from_slice(&passage.lost);
                    passed.push((passage.exits.clone(), reader));
                }
                None => walked.push(reader),
            }
        }
        self.room.open.append(&mut passed);
        self.walk((ground, top), &walked, mask, lost);
        (self.room.begun, self.room.walked) = (begun, walked);
    }

    /// Adds what a reader allows whoever called it, if it was met before.
    fn passage(
        &mut self,
        (ground, top): (Ground<'_>, Option<usize>),
        reader: &Thread,
        readers: usize,
        mask: &mut Mask,
    ) -> Option<Arc<Passage>> {
        let size = top.map_or(ground.trie.nodes().len(), |top| {
            ground.trie.nodes()[top].end as usize - top
        });
        // Readers that come to the same places are better walked together.
        if size <= self.tables.small() || readers > FEW_READERS {
            return None;
        }
        let below = self.threads.below_anyone(reader)?;
        match self.passages.meet(ground, top, below, mask) {
            Met::Never => None,
            Met::Known(passage) => Some(passage),
            Met::Once => {
                let (mut both, mut lost) = ((Passage::default(), mask), Vec::new());
                self.walk((ground, top), &[below], &mut both, &mut lost);
                let mut passage = both.0;
                passage.lost = lost;
                passage.exits = self.room.came_out.drain(..).collect();
                let passage = Arc::new(passage);
                self.passages.keep(ground, top, below, &passage);
                Some(passage)
            }
        }
    }

    /// Adds what these readers allow, and what comes behind the ways out that are open.
    fn walk(
        &mut self,
        (ground, top): (Ground<'_>, Option<usize>),
        readers: &[Thread],
        mask: &mut impl Found,
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
            // What is behind an exit leads to greater nodes only, so that none is walked again.
            let Some((node, sources)) = self.room.exits.pop_first() else {
                return;
            };
            let all = sources.iter().map(|&source| &self.room.behind[source as usize]);
            let mut readers: Vec<Thread> = all.flatten().copied().collect();
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

    /// Finds where and with which readers the walk goes on behind a branch or a passage.
    fn leave(
        &mut self,
        ground: Ground<'_>,
        exits: &Exits,
        reader: Thread,
        mask: &mut impl Found,
        lost: &mut Vec<u32>,
    ) {
        let level = &mut self.room.levels[0];
        self.threads.behind(&reader, &mut level.readers);
        if self.threads.take_came_out() {
            self.room.came_out.extend_from_slice(exits);
        }
        if self.threads.take_lost() {
            for &(_, node) in exits.iter() {
                lost.extend_from_slice(ground.trie.tokens_below(node as usize));
            }
            return;
        }
        let ahead = self.ahead(&self.room.levels[0].readers);
        let Room {
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
    fn under(&mut self, ground: Ground<'_>, node: usize, mask: &mut impl Found, lost: &mut Vec<u32>) {
        let byte = ground.trie.nodes()[node].byte;
        let level = &mut self.room.levels[0];
        level.look_at(0..0);
        let settled = level.ahead.settles(ground.trie, (byte, node), mask);
        if !settled && self.enter(ground, (byte, node), 0, mask, lost) {
            self.run(ground, 1, mask, lost);
        }
    }

    /// Walks what is left to be looked at, from this depth on.
    fn run(&mut self, ground: Ground<'_>, mut depth: usize, mask: &mut impl Found, lost: &mut Vec<u32>) {
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
        mask: &mut impl Found,
        lost: &mut Vec<u32>,
    ) -> bool {
        spend(1);
        let trie = ground.trie;
        let Room {
            path, levels, next, ..
        } = &mut self.room;
        path.truncate(depth);
        path.push(byte);
        if let [reader] = levels[depth].readers[..]
            && let Some(next) = self.threads.read_on(&reader, byte)
        {
            return self.read_on(ground, node, depth, next, mask);
        }
        self.threads.step(&levels[depth].readers, path, next);
        if self.threads.take_lost() {
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
        let Room {
            path, levels, next, ..
        } = &mut self.room;
        self.threads.expand(next, path, &mut levels[depth + 1].readers);
        if self.threads.take_came_out() {
            self.room.came_out.extend(children(trie, Some(node)));
        }
        if self.threads.take_lost() {
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
        next: Thread,
        mask: &mut impl Found,
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
        self.threads.add_bytes(&next, bytes, sure);
        level.look_at(ground.trie.children(Some(node)));
        true
    }

    /// Makes ready the level of what is below a node, or of the whole trie, whose readers are known. Whether anything is
    /// left to be looked at there.
    fn look_ahead(
        &mut self,
        ground: Ground<'_>,
        node: Option<usize>,
        depth: usize,
        mask: &mut impl Found,
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

    /// Adds what a reader allows below a node, if that is the same whoever comes here; what is behind it is left open.
    fn branches_off(
        &mut self,
        ground: Ground<'_>,
        node: Option<usize>,
        reader: &Thread,
        mask: &mut impl Found,
    ) -> bool {
        let Some((terminal, cursor)) = self.threads.terminal(reader) else {
            return false;
        };
        if !terminal.is_named() || !terminal.is_plain(cursor, self.tables.horizon()) {
            return false;
        }
        if !self.room.branched.insert((node, *reader)) {
            return true;
        }
        let branch = self.tables.branch(terminal, cursor.state, ground, node);
        mask.insert_branch(&branch);
        if !branch.exits.is_empty() {
            self.room.open.push((branch.exits.clone(), *reader));
        }
        true
    }

    /// Adds what a reader in a key allows below a node, less the keys that may not be written; what is behind them is left
    /// open.
    fn key_branches_off(
        &mut self,
        ground: Ground<'_>,
        node: Option<usize>,
        reader: &Thread,
        mask: &mut impl Found,
        lost: &mut Vec<u32>,
    ) -> bool {
        let Some(key) = self.threads.key(reader) else {
            return false;
        };
        if !key.terminal.is_named() || !key.terminal.is_plain(key.cursor, self.tables.horizon()) {
            return false;
        }
        let Some(branch) = self
            .tables
            .key_branch(key.terminal, key.cursor.state, ground, node)
        else {
            return false;
        };
        if !self.room.branched.insert((node, *reader)) {
            return true;
        }
        mask.insert_set(&branch.inner);
        let trie = ground.trie;
        if branch.ends.is_empty() {
            return true;
        }
        let written = &self.room.path[key.start..];
        let Some(unwritable) = self.threads.unwritable_behind(&key, written, branch.longest) else {
            let doubted = branch.ends.iter();
            lost.extend(doubted.flat_map(|&end| trie.tokens_below(end as usize)));
            return true;
        };
        let unwritable = unwritable.iter().filter_map(|rest| trie.find_below(node, rest));
        let unwritable: Vec<usize> = unwritable.collect();
        let exits = if unwritable.is_empty() {
            mask.insert_all(&branch.end_tokens);
            branch.exits.clone()
        } else {
            let ends = branch.ends.iter().map(|&end| end as usize);
            let ends = ends.filter(|end| !unwritable.contains(end));
            let behind = ends.inspect(|&end| mask.insert_all(trie.tokens_at(&trie.nodes()[end])));
            behind.flat_map(|end| children(trie, Some(end))).collect()
        };
        if !exits.is_empty() {
            self.room.open.push((exits, *reader));
        }
        true
    }

    /// Whether a reader allows these bytes; `None` if threads cannot tell.
    pub(super) fn allows(&mut self, reader: Thread, bytes: &[u8]) -> Option<bool> {
        let mut readers = vec![reader];
        let Room { path, next, .. } = &mut self.room;
        path.clear();
        for (at, &byte) in bytes.iter().enumerate() {
            path.push(byte);
            self.threads.step(&readers, path, next);
            if at + 1 < bytes.len() {
                self.threads.expand(next, path, &mut readers);
            }
            if self.threads.take_lost() {
                return None;
            }
        }
        Some(!next.is_empty())
    }
}

impl Room {
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
        room.local = self.threads.leave();
        // A walk that came to its end has emptied these; one whose question was too dear has not.
        room.open.clear();
        room.exits.clear();
        room.came_out.clear();
        room.levels
            .retain(|level| level.readers.capacity() <= KEPT_READERS);
        if room.branched.capacity().max(room.behind.capacity()) > KEPT_READERS {
            (room.branched, room.behind) = Default::default();
        }
        SPARE.set(Some(Box::new(room)));
    }
}
