//! The paged cache's bookkeeping: which block holds which positions of which sequence.
//!
//! A full block is remembered by its tokens *and* all tokens before it, so that a later sequence with the
//! same beginning takes it over instead of computing it again:
//!
//! ```text
//!   "You are a helpful assistant. ..."         chain: scope ──tokens 0..16──► 7 ──tokens 16..32──► 9 ──► ..
//!   table of sequence A   [ 4 | 5 | 6 ]                          block 4            block 5
//!   table of sequence B   [ 4 | 5 | 12 ]        blocks 4 and 5 are shared: two references each
//! ```
//!
//! A block that other sequences read too is never written: a sequence that continues in the middle of one,
//! after a [fork](Blocks::fork) or a [rewind](Blocks::rewind), gets a copy of it first
//! ([`reserve`](Blocks::reserve)), which the model makes before the next pass
//! ([`take_copies`](Blocks::take_copies)).
//!
//! A link of the chain is the pair (chain id of the previous block, this block's tokens). Chain ids are never
//! reused, so equal links mean equal text: no hash collision can hand one user another user's cache. Every
//! chain begins with a [`Scope`], and texts share blocks only within one: neither the number of tokens found
//! nor the time of an answer tells an owner what the texts of another begin with.
//!
//! A block without references keeps its content until the space is needed. The least recently used block is
//! evicted first; within one sequence, the last block goes before the first, as no lookup can reach a block
//! whose predecessor is gone.

use crate::fairness::pool::Owner;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// The number of blocks by which a text can grow before it meets the next one, if there is room: a thousand
/// tokens in blocks of 16. With a larger value, texts are further apart and grow longer in one piece; with a
/// smaller one, they reuse more of the memory of earlier texts.
const ROOM: u32 = 64;

/// The id of a text that ends with a full block.
type Chain = u64;

/// The texts that share blocks: those of one owner with the same salt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Scope {
    /// The owner; `None` for the texts that all owners share.
    pub(crate) owner: Owner,
    /// What separates the owner's own texts.
    pub(crate) salt: Option<Arc<str>>,
}

/// The text before a block.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Before {
    /// The empty text of a scope.
    Nothing(Scope),
    /// A text that ends with a full block.
    Text(Chain),
}

/// The key of a full block: the text before it and its own tokens.
pub(crate) type Beginning = (Before, Box<[u32]>);

#[derive(Clone, Debug)]
struct Link {
    before: Before,
    tokens: Box<[u32]>,
    own: Chain,
}

/// The blocks of one sequence, in order of position.
#[derive(Debug, Default)]
pub(crate) struct Table {
    scope: Scope,
    blocks: Vec<u32>,
    /// The chain after each of the leading blocks that are full and remembered.
    chains: Vec<Chain>,
}

impl Table {
    /// Returns the empty table of a text in a scope.
    pub(crate) fn of(scope: Scope) -> Self {
        Table {
            scope,
            ..Table::default()
        }
    }

    /// Takes the blocks, and leaves an empty table of the same scope.
    pub(crate) fn take(&mut self) -> Self {
        let empty = Table::of(self.scope.clone());
        std::mem::replace(self, empty)
    }

    /// Returns the scope of the text.
    pub(crate) fn scope(&self) -> &Scope {
        &self.scope
    }

    pub(crate) fn blocks(&self) -> &[u32] {
        &self.blocks
    }

    /// Returns the text of the remembered blocks.
    fn remembered(&self) -> Before {
        match self.chains.last() {
            Some(&chain) => Before::Text(chain),
            None => Before::Nothing(self.scope.clone()),
        }
    }
}

/// The bookkeeping of all blocks of the cache.
#[derive(Debug)]
pub(crate) struct Blocks {
    size: usize,
    references: Vec<u32>,
    links: Vec<Option<Link>>,
    by_link: HashMap<Beginning, u32>,
    /// Free blocks whose content is not remembered.
    blank: BTreeSet<u32>,
    /// Free blocks that are still remembered, by the time of their release.
    kept: BTreeMap<u64, u32>,
    kept_since: Vec<u64>,
    clock: u64,
    next_chain: Chain,
    /// The blocks whose content must be copied before the next pass, each with its destination, in this
    /// order.
    copies: Vec<(u32, u32)>,
    /// The blocks released during a pass that may still write to them; `None` while no such pass is running.
    held: Option<Vec<u32>>,
}

impl Blocks {
    pub(crate) fn new(count: usize, size: usize) -> Self {
        Blocks {
            size,
            references: vec![0; count],
            links: vec![None; count],
            by_link: HashMap::new(),
            blank: (0..count as u32).collect(),
            kept: BTreeMap::new(),
            kept_since: vec![0; count],
            clock: 0,
            next_chain: 0,
            copies: Vec::new(),
            held: None,
        }
    }

    /// Defers releases until [`land`](Self::land): a pass is starting that may write to blocks of sequences
    /// that have ended.
    pub(crate) fn hold(&mut self) {
        self.held.get_or_insert_default();
    }

    /// Ends the deferral of [`hold`](Self::hold), and frees the blocks that were released during the pass.
    pub(crate) fn land(&mut self) {
        for block in self.held.take().into_iter().flatten() {
            self.let_go(block);
        }
    }

    /// Returns the number of all blocks.
    pub(crate) fn total(&self) -> usize {
        self.references.len()
    }

    /// Returns the number of blocks that a sequence refers to.
    pub(crate) fn used(&self) -> usize {
        self.total() - self.free()
    }

    /// Returns the number of blocks that can be handed out.
    pub(crate) fn free(&self) -> usize {
        self.blank.len() + self.kept.len()
    }

    /// Returns the number of free blocks whose content can still be taken over.
    pub(crate) fn kept(&self) -> usize {
        self.kept.len()
    }

    /// Returns a table that starts with the longest beginning of `tokens` that is remembered in a scope, and
    /// the number of positions it covers. The last token is never covered, because the caller needs its
    /// logits.
    pub(crate) fn take_over(&mut self, scope: &Scope, tokens: &[u32]) -> (Table, usize) {
        let mut table = Table::of(scope.clone());
        let covered = self.extend(&mut table, tokens);
        (table, covered)
    }

    /// Extends a table, all of whose blocks are remembered, by blocks that were remembered since it was made.
    /// Returns the number of positions that it covers then.
    pub(crate) fn extend(&mut self, table: &mut Table, tokens: &[u32]) -> usize {
        let coverable = tokens.len().saturating_sub(1) / self.size * self.size;
        let known = table.chains.len() * self.size;
        if table.blocks.len() > table.chains.len() {
            return known;
        }
        for chunk in tokens[known.min(coverable)..coverable].chunks(self.size) {
            let Some(&block) = self.by_link.get(&(table.remembered(), Box::from(chunk))) else {
                break;
            };
            let Some(link) = &self.links[block as usize] else {
                break;
            };
            table.chains.push(link.own);
            table.blocks.push(block);
            self.refer(block);
        }
        table.chains.len() * self.size
    }

    /// Returns the first block of a table that is not remembered, if `end` tokens fill it.
    pub(crate) fn beginning(&self, table: &Table, tokens: &[u32], end: usize) -> Option<Beginning> {
        let start = table.chains.len() * self.size;
        let held = (start + self.size <= end).then(|| tokens.get(start..start + self.size));
        Some((table.remembered(), Box::from(held.flatten()?)))
    }

    /// Reserves blocks for the positions up to `to`, of which those from `from` on will be written. Returns
    /// `false`, and changes nothing, if there are not enough free blocks.
    pub(crate) fn reserve(&mut self, table: &mut Table, from: usize, to: usize) -> bool {
        let shared: Vec<usize> = self.shared(table, from, to).collect();
        let missing = self.missing(table, to);
        if missing + shared.len() > self.free() {
            return false;
        }
        for index in shared {
            let (block, copy) = (table.blocks[index], self.pick(None));
            self.references[copy as usize] = 1;
            self.copies.push((block, copy));
            table.blocks[index] = copy;
            self.let_go(block);
        }
        table.chains.truncate(from / self.size);
        for _ in 0..missing {
            let block = self.pick(table.blocks.last().copied());
            self.references[block as usize] = 1;
            table.blocks.push(block);
        }
        true
    }

    /// Returns the blocks of a table that hold positions from `from` up to `to` and that other sequences read
    /// or can take over.
    fn shared<'s>(&'s self, table: &'s Table, from: usize, to: usize) -> impl Iterator<Item = usize> + 's {
        let end = to.div_ceil(self.size).min(table.blocks.len());
        (from / self.size..end).filter(|&index| {
            let block = table.blocks[index] as usize;
            self.references[block] > 1 || self.links[block].is_some()
        })
    }

    /// Returns how many blocks a table lacks to hold `positions` positions.
    pub(crate) fn missing(&self, table: &Table, positions: usize) -> usize {
        positions.div_ceil(self.size).saturating_sub(table.blocks.len())
    }

    /// Returns a table that shares the blocks of another up to a position.
    pub(crate) fn fork(&mut self, of: &Table, positions: usize) -> Table {
        let held = positions.div_ceil(self.size).min(of.blocks.len());
        let blocks = of.blocks[..held].to_vec();
        blocks.iter().for_each(|&block| self.refer(block));
        let chains = of.chains.iter().copied().take(positions / self.size).collect();
        Table {
            scope: of.scope.clone(),
            blocks,
            chains,
        }
    }

    /// Releases the blocks that hold only positions from `positions` on.
    pub(crate) fn rewind(&mut self, table: &mut Table, positions: usize) {
        let held = positions.div_ceil(self.size).min(table.blocks.len());
        for block in table.blocks.drain(held..).rev().collect::<Vec<_>>() {
            self.let_go(block);
        }
        table.chains.truncate(positions / self.size);
    }

    /// Takes the copies to make before the next pass, in rounds: a copy may read or write what one of an
    /// earlier round wrote, but not what one of its own round did.
    pub(crate) fn take_copies(&mut self) -> Vec<Vec<(u32, u32)>> {
        let mut rounds: Vec<Vec<(u32, u32)>> = Vec::new();
        for (from, to) in self.copies.drain(..) {
            let meets = |&(other, written): &(u32, u32)| written == from || written == to || other == to;
            match rounds.last_mut().filter(|round| !round.iter().any(meets)) {
                Some(round) => round.push((from, to)),
                None => rounds.push(vec![(from, to)]),
            }
        }
        rounds
    }

    /// Remembers the blocks that are full once the first `computed` tokens are in the cache.
    pub(crate) fn commit(&mut self, table: &mut Table, tokens: &[u32], computed: usize) {
        while (table.chains.len() + 1) * self.size <= computed {
            let start = table.chains.len() * self.size;
            let held: Box<[u32]> = Box::from(&tokens[start..start + self.size]);
            let key = (table.remembered(), held);
            let chain = match self
                .by_link
                .get(&key)
                .and_then(|&block| self.links[block as usize].as_ref())
            {
                // Another sequence was first; this block is not remembered, and becomes blank when it is
                // released.
                Some(link) => link.own,
                None => self.remember(table.blocks[table.chains.len()], key),
            };
            table.chains.push(chain);
        }
    }

    fn remember(&mut self, block: u32, (before, tokens): Beginning) -> Chain {
        let own = self.next_chain;
        self.next_chain += 1;
        self.links[block as usize] = Some(Link {
            before: before.clone(),
            tokens: tokens.clone(),
            own,
        });
        self.by_link.insert((before, tokens), block);
        own
    }

    /// Releases all blocks of a table.
    pub(crate) fn release(&mut self, table: Table) {
        for &block in table.blocks.iter().rev() {
            self.let_go(block);
        }
    }

    fn let_go(&mut self, block: u32) {
        if let Some(held) = &mut self.held {
            return held.push(block);
        }
        let references = &mut self.references[block as usize];
        *references -= 1;
        if *references > 0 {
            return;
        }
        if self.links[block as usize].is_some() {
            self.clock += 1;
            self.kept.insert(self.clock, block);
            self.kept_since[block as usize] = self.clock;
        } else {
            self.blank.insert(block);
        }
    }

    fn refer(&mut self, block: u32) {
        let references = &mut self.references[block as usize];
        if *references == 0 {
            self.kept.remove(&self.kept_since[block as usize]);
        }
        *references += 1;
    }

    /// Takes a free block: the one after `last` if possible, so that a model can read a sequence as one piece
    /// of memory.
    fn pick(&mut self, last: Option<u32>) -> u32 {
        if let Some(next) = last.map(|block| block + 1)
            && self.blank.remove(&next)
        {
            return next;
        }
        if let Some(block) = self.beginning_of_text() {
            self.blank.remove(&block);
            return block;
        }
        let (_, block) = self
            .kept
            .pop_first()
            .expect("reserve() checked that a block is free");
        if let Some(link) = self.links[block as usize].take() {
            self.by_link.remove(&(link.before, link.tokens));
        }
        block
    }

    /// Returns the first block for a new text: [`ROOM`] blocks into the first gap in which both it and the
    /// text before the gap have room to grow. The memory of a block is allocated when it is first written, so
    /// texts stay near the beginning, where earlier ones were. Where no gap is that large, the middle of the
    /// largest one leaves both texts the same room.
    fn beginning_of_text(&self) -> Option<u32> {
        let (mut best, mut run) = ((0, 0), (0, 0));
        for &block in &self.blank {
            run = if run.0 + run.1 == block {
                (run.0, run.1 + 1)
            } else {
                (block, 1)
            };
            if run.1 == 2 * ROOM {
                return Some(run.0 + ROOM);
            }
            if run.1 > best.1 {
                best = run;
            }
        }
        (best.1 > 0).then_some(best.0 + best.1 / 2)
    }
}

#[cfg(test)]
mod tests;
