//! The paged cache's bookkeeping: which block holds which positions of which sequence.
//!
//! A full block is remembered by what it holds *and* everything before it, so that a later sequence with the same
//! beginning takes it over instead of computing it again:
//!
//! ```text
//!   "You are a helpful assistant. ..."          chain:  ROOT ──tokens 0..16──► 7 ──tokens 16..32──► 9 ──► ...
//!   table of sequence A   [ 4 | 5 | 6 ]                          block 4            block 5
//!   table of sequence B   [ 4 | 5 | 12 ]        blocks 4 and 5 are shared: two references each
//! ```
//!
//! A link of the chain is the pair (chain id of the block before, this block's tokens). Chain ids are never reused, so
//! equal links mean equal text: no hash can collide and hand one user another user's cache. A block without references
//! keeps its content until the space is needed; then the one unused for longest goes first, and of one sequence the
//! last block before the first, as nobody can reach a block whose predecessor is gone.

use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Names a text by its last full block. The empty text is [`ROOT`].
type Chain = u64;
const ROOT: Chain = 0;

#[derive(Clone, Debug)]
struct Link {
    before: Chain,
    tokens: Box<[u32]>,
    own: Chain,
}

/// The blocks of one sequence, in order of position.
#[derive(Debug, Default)]
pub(crate) struct Table {
    blocks: Vec<u32>,
    /// How many of the blocks are full and remembered; they are never written again.
    committed: usize,
    /// The chain after the committed blocks.
    chain: Chain,
}

impl Table {
    pub(crate) fn blocks(&self) -> &[u32] {
        &self.blocks
    }
}

/// All blocks of the cache.
#[derive(Debug)]
pub(crate) struct Blocks {
    size: usize,
    references: Vec<u32>,
    links: Vec<Option<Link>>,
    by_link: HashMap<(Chain, Box<[u32]>), u32>,
    /// Free blocks that hold nothing worth keeping.
    blank: BTreeSet<u32>,
    /// Free blocks that are still remembered, by the time they were let go.
    kept: BTreeMap<u64, u32>,
    kept_since: Vec<u64>,
    clock: u64,
    next_chain: Chain,
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
            next_chain: ROOT + 1,
        }
    }

    /// All blocks.
    pub(crate) fn total(&self) -> usize {
        self.references.len()
    }

    /// Blocks that a sequence refers to.
    pub(crate) fn used(&self) -> usize {
        self.total() - self.free()
    }

    /// Blocks that could be handed out.
    pub(crate) fn free(&self) -> usize {
        self.blank.len() + self.kept.len()
    }

    /// Free blocks whose content may still be taken over.
    pub(crate) fn kept(&self) -> usize {
        self.kept.len()
    }

    /// A table that starts with the longest remembered beginning of `tokens`, and the number of positions it covers.
    /// The last token is never covered: somebody wants its logits.
    pub(crate) fn take_over(&mut self, tokens: &[u32]) -> (Table, usize) {
        let mut table = Table::default();
        let coverable = tokens.len().saturating_sub(1) / self.size * self.size;
        for chunk in tokens[..coverable].chunks(self.size) {
            let Some(&block) = self.by_link.get(&(table.chain, Box::from(chunk))) else {
                break;
            };
            let Some(link) = &self.links[block as usize] else {
                break;
            };
            table.chain = link.own;
            table.blocks.push(block);
            self.refer(block);
        }
        table.committed = table.blocks.len();
        let covered = table.committed * self.size;
        (table, covered)
    }

    /// Makes room for `positions` positions; `false`, and nothing changed, if there are not enough free blocks.
    pub(crate) fn grow(&mut self, table: &mut Table, positions: usize) -> bool {
        let missing = self.missing(table, positions);
        if missing > self.free() {
            return false;
        }
        for _ in 0..missing {
            let block = self.pick(table.blocks.last().copied());
            self.references[block as usize] = 1;
            table.blocks.push(block);
        }
        true
    }

    /// How many blocks a table lacks to hold this many positions.
    pub(crate) fn missing(&self, table: &Table, positions: usize) -> usize {
        positions.div_ceil(self.size).saturating_sub(table.blocks.len())
    }

    /// Remembers the blocks that are full once the first `computed` of `tokens` are in the cache.
    pub(crate) fn commit(&mut self, table: &mut Table, tokens: &[u32], computed: usize) {
        while (table.committed + 1) * self.size <= computed {
            let start = table.committed * self.size;
            let held: Box<[u32]> = Box::from(&tokens[start..start + self.size]);
            let key = (table.chain, held);
            table.chain = match self
                .by_link
                .get(&key)
                .and_then(|&block| self.links[block as usize].as_ref())
            {
                // Another sequence was first; this block stays anonymous and is blank once released.
                Some(link) => link.own,
                None => self.remember(table.blocks[table.committed], key),
            };
            table.committed += 1;
        }
    }

    fn remember(&mut self, block: u32, (before, tokens): (Chain, Box<[u32]>)) -> Chain {
        let own = self.next_chain;
        self.next_chain += 1;
        self.links[block as usize] = Some(Link {
            before,
            tokens: tokens.clone(),
            own,
        });
        self.by_link.insert((before, tokens), block);
        own
    }

    /// Gives all blocks of a table back.
    pub(crate) fn release(&mut self, table: Table) {
        for &block in table.blocks.iter().rev() {
            let references = &mut self.references[block as usize];
            *references -= 1;
            if *references > 0 {
                continue;
            }
            if self.links[block as usize].is_some() {
                self.clock += 1;
                self.kept.insert(self.clock, block);
                self.kept_since[block as usize] = self.clock;
            } else {
                self.blank.insert(block);
            }
        }
    }

    fn refer(&mut self, block: u32) {
        let references = &mut self.references[block as usize];
        if *references == 0 {
            self.kept.remove(&self.kept_since[block as usize]);
        }
        *references += 1;
    }

    /// A free block: the one after `last` if possible, so that a model can read a sequence as one piece of memory.
    fn pick(&mut self, last: Option<u32>) -> u32 {
        if let Some(next) = last.map(|block| block + 1)
            && self.blank.remove(&next)
        {
            return next;
        }
        if let Some(block) = self.middle_of_largest_gap() {
            self.blank.remove(&block);
            return block;
        }
        let (_, block) = self
            .kept
            .pop_first()
            .expect("grow() checked that a block is free");
        if let Some(link) = self.links[block as usize].take() {
            self.by_link.remove(&(link.before, link.tokens));
        }
        block
    }

    /// Starting in the middle leaves the sequence before the gap as much room to grow as the new one gets.
    fn middle_of_largest_gap(&self) -> Option<u32> {
        let (mut best, mut run) = ((0, 0), (0, 0));
        for &block in &self.blank {
            run = if run.0 + run.1 == block {
                (run.0, run.1 + 1)
            } else {
                (block, 1)
            };
            if run.1 > best.1 {
                best = run;
            }
        }
        (best.1 > 0).then_some(best.0 + best.1 / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(count: u32) -> Vec<u32> {
        (100..100 + count).collect()
    }

    fn filled(blocks: &mut Blocks, tokens: &[u32]) -> Table {
        let (mut table, _) = blocks.take_over(tokens);
        assert!(blocks.grow(&mut table, tokens.len()));
        blocks.commit(&mut table, tokens, tokens.len());
        table
    }

    #[test]
    fn a_shared_beginning_is_taken_over() {
        let mut blocks = Blocks::new(8, 4);
        let first = filled(&mut blocks, &tokens(10));
        let (second, covered) = blocks.take_over(&tokens(12));
        assert_eq!(covered, 8);
        assert_eq!(second.blocks(), &first.blocks()[..2]);
        assert_eq!(blocks.used(), 3, "two blocks are shared");
        blocks.release(first);
        assert_eq!(blocks.used(), 2);
        blocks.release(second);
        assert_eq!((blocks.used(), blocks.kept()), (0, 2));
    }

    #[test]
    fn the_last_token_is_always_left_to_feed() {
        let mut blocks = Blocks::new(8, 4);
        let table = filled(&mut blocks, &tokens(8));
        blocks.release(table);
        assert_eq!(blocks.take_over(&tokens(8)).1, 4);
        assert_eq!(blocks.take_over(&tokens(9)).1, 8);
    }

    #[test]
    fn a_block_is_found_only_behind_the_same_beginning() {
        let mut blocks = Blocks::new(8, 2);
        let table = filled(&mut blocks, &[1, 2, 3, 4]);
        blocks.release(table);
        assert_eq!(blocks.take_over(&[9, 9, 3, 4, 5]).1, 0);
        assert_eq!(blocks.take_over(&[1, 2, 3, 4, 5]).1, 4);
    }

    #[test]
    fn the_block_unused_for_longest_goes_first_and_ends_before_beginnings() {
        let mut blocks = Blocks::new(4, 2);
        let old = filled(&mut blocks, &[1, 2, 3, 4]);
        blocks.release(old);
        let new = filled(&mut blocks, &[5, 6, 7, 8]);
        blocks.release(new);
        let (mut other, _) = blocks.take_over(&[9, 9, 9]);
        assert!(blocks.grow(&mut other, 2));
        assert_eq!(
            blocks.take_over(&[1, 2, 3, 4, 0]).1,
            2,
            "the end of the older text was given up"
        );
        assert_eq!(blocks.take_over(&[5, 6, 7, 8, 0]).1, 4);
    }

    #[test]
    fn growing_beyond_the_cache_changes_nothing() {
        let mut blocks = Blocks::new(2, 4);
        let mut table = Table::default();
        assert!(!blocks.grow(&mut table, 9));
        assert_eq!((blocks.used(), table.blocks().len()), (0, 0));
        assert!(blocks.grow(&mut table, 8));
    }

    #[test]
    fn two_growing_sequences_stay_in_one_piece_each() {
        let mut blocks = Blocks::new(32, 4);
        let (mut a, mut b) = (Table::default(), Table::default());
        for positions in 1..32 {
            assert!(blocks.grow(&mut a, positions) && blocks.grow(&mut b, positions));
        }
        for table in [a, b] {
            assert!(
                table.blocks().windows(2).all(|pair| pair[1] == pair[0] + 1),
                "{:?}",
                table.blocks()
            );
        }
    }
}
