//! The paged cache's bookkeeping: which block holds which positions of which sequence.
//!
//! A full block is remembered by its tokens *and* all tokens before it, so that a later sequence with the
//! same beginning takes it over instead of computing it again:
//!
//! ```text
//!   "You are a helpful assistant. ..."         chain:  ROOT ──tokens 0..16──► 7 ──tokens 16..32──► 9 ──► ...
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
//! reused, so equal links mean equal text: no hash collision can hand one user another user's cache. A block
//! without references keeps its content until the space is needed. The least recently used block is evicted
//! first; within one sequence, the last block goes before the first, as no lookup can reach a block whose
//! predecessor is gone.

use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The number of blocks by which a text can grow before it meets the next one, if there is room: a thousand
/// tokens in blocks of 16. With a larger value, texts are further apart and grow longer in one piece; with a
/// smaller one, they reuse more of the memory of earlier texts.
const ROOM: u32 = 64;

/// The id of a text that ends with a full block. The empty text is [`ROOT`].
type Chain = u64;
const ROOT: Chain = 0;

/// The key of a full block: the text before it and its own tokens.
pub(crate) type Beginning = (Chain, Box<[u32]>);

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
    /// The chain after each of the leading blocks that are full and remembered.
    chains: Vec<Chain>,
}

impl Table {
    pub(crate) fn blocks(&self) -> &[u32] {
        &self.blocks
    }

    /// Returns the chain after the remembered blocks.
    fn chain(&self) -> Chain {
        self.chains.last().copied().unwrap_or(ROOT)
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
            next_chain: ROOT + 1,
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

    /// Returns a table that starts with the longest remembered beginning of `tokens`, and the number of
    /// positions it covers. The last token is never covered, because the caller needs its logits.
    pub(crate) fn take_over(&mut self, tokens: &[u32]) -> (Table, usize) {
        let mut table = Table::default();
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
            let Some(&block) = self.by_link.get(&(table.chain(), Box::from(chunk))) else {
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
        Some((table.chain(), Box::from(held.flatten()?)))
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
        Table { blocks, chains }
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
            let key = (table.chain(), held);
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
            before,
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
mod tests {
    use super::*;

    fn tokens(count: u32) -> Vec<u32> {
        (100..100 + count).collect()
    }

    fn filled(blocks: &mut Blocks, tokens: &[u32]) -> Table {
        let (mut table, _) = blocks.take_over(tokens);
        assert!(blocks.reserve(&mut table, 0, tokens.len()));
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
        assert!(blocks.reserve(&mut other, 0, 2));
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
        assert!(!blocks.reserve(&mut table, 0, 9));
        assert_eq!((blocks.used(), table.blocks().len()), (0, 0));
        assert!(blocks.reserve(&mut table, 0, 8));
    }

    #[test]
    fn two_growing_sequences_stay_in_one_piece_each() {
        let mut blocks = Blocks::new(32, 4);
        let (mut a, mut b) = (Table::default(), Table::default());
        for positions in 1..32 {
            for table in [&mut a, &mut b] {
                assert!(blocks.reserve(table, positions - 1, positions));
            }
        }
        for table in [a, b] {
            assert!(
                table.blocks().windows(2).all(|pair| pair[1] == pair[0] + 1),
                "{:?}",
                table.blocks()
            );
        }
    }

    /// Guards against a large cache in which every client takes memory that none has used before.
    #[test]
    fn texts_one_after_the_other_are_in_the_same_blocks() {
        let mut blocks = Blocks::new(100_000, 4);
        let mut written = BTreeSet::new();
        for number in 0..200 {
            let mut tables = [Table::default(), Table::default(), Table::default()];
            for (client, table) in tables.iter_mut().enumerate() {
                let length = 4 * (1 + (number * 7 + client * 13) % 40);
                assert!(blocks.reserve(table, 0, length));
                written.extend(table.blocks().iter().copied());
            }
            tables.into_iter().for_each(|table| blocks.release(table));
        }
        assert!(
            written.iter().all(|&block| block < 3 * (40 + ROOM)),
            "{written:?}"
        );
    }

    #[test]
    fn a_fork_reads_the_same_blocks_until_it_writes() {
        let mut blocks = Blocks::new(8, 4);
        let mut first = filled(&mut blocks, &tokens(10));
        let mut second = blocks.fork(&first, 9);
        assert_eq!(second.blocks(), first.blocks());
        assert_eq!(blocks.used(), 3);
        assert!(blocks.reserve(&mut second, 9, 10));
        let copies = blocks.take_copies();
        assert_eq!(copies, [[(first.blocks()[2], second.blocks()[2])]]);
        assert_ne!(first.blocks()[2], second.blocks()[2]);
        // No other table reads the last block of the first any more.
        assert!(blocks.reserve(&mut first, 10, 11) && blocks.take_copies().is_empty());
        blocks.release(first);
        blocks.release(second);
        assert_eq!(blocks.used(), 0);
    }

    /// A remembered block can be taken over at any time, so no sequence may write to it again.
    #[test]
    fn a_rewind_gives_blocks_back_and_leaves_what_is_remembered() {
        let mut blocks = Blocks::new(8, 4);
        let mut table = filled(&mut blocks, &tokens(12));
        blocks.rewind(&mut table, 6);
        assert_eq!(blocks.used(), 2);
        let held = table.blocks().to_vec();
        let mut other = tokens(6);
        other.extend([7, 7]);
        assert!(blocks.reserve(&mut table, 6, 8));
        assert_eq!(blocks.take_copies(), [[(held[1], table.blocks()[1])]]);
        blocks.commit(&mut table, &other, 8);
        let (again, covered) = blocks.take_over(&tokens(13));
        assert_eq!((covered, &again.blocks()[..2]), (12, &held[..]));
        other.push(0);
        assert_eq!(blocks.take_over(&other).0.blocks(), table.blocks());
    }

    /// Guards against a text that gets the blocks of an ended one while a pass still writes to them.
    #[test]
    fn what_is_let_go_under_a_pass_is_free_when_it_is_over() {
        let mut blocks = Blocks::new(4, 2);
        let mut table = filled(&mut blocks, &[1, 2, 3, 4]);
        assert!(blocks.reserve(&mut table, 4, 5));
        blocks.hold();
        blocks.release(table);
        assert_eq!((blocks.used(), blocks.kept()), (3, 0));
        let (mut other, covered) = blocks.take_over(&[1, 2, 3, 4, 5]);
        assert_eq!(covered, 4, "what is remembered can be read");
        assert!(!blocks.reserve(&mut other, 4, 9), "but not what was let go");
        blocks.land();
        assert_eq!(blocks.used(), 2);
        assert!(blocks.reserve(&mut other, 4, 8));
        blocks.release(other);
        assert_eq!((blocks.used(), blocks.kept()), (0, 2));
    }

    /// A block that is released before its copy was made may be the destination of the next copy.
    #[test]
    fn copies_that_meet_are_made_in_rounds() {
        let mut blocks = Blocks::new(8, 4);
        blocks.copies = vec![(0, 1), (0, 2), (1, 3), (5, 3), (6, 7)];
        let rounds = blocks.take_copies();
        assert_eq!(rounds, [vec![(0, 1), (0, 2)], vec![(1, 3)], vec![(5, 3), (6, 7)]]);
        assert!(blocks.take_copies().is_empty());
    }

    /// Random forks, rewinds and texts: every block holds what its readers wrote, and no block is leaked at
    /// the end.
    #[test]
    fn no_reader_sees_what_another_wrote_and_no_block_is_lost() {
        let mut blocks = Blocks::new(64, 3);
        // The content that a model would have in its blocks.
        let mut cache = vec![0_u32; 64 * 3];
        let mut texts: Vec<(Table, Vec<u32>)> = vec![(Table::default(), Vec::new())];
        let mut chance = 1_u64;
        let mut draw = |below: usize| {
            chance = chance
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (chance >> 33) as usize % below
        };
        for round in 0..4_000 {
            let index = draw(texts.len());
            match draw(4) {
                0 if texts.len() < 6 => {
                    let (of, text) = &texts[index];
                    let at = draw(text.len() + 1);
                    let fork = (blocks.fork(of, at), text[..at].to_vec());
                    texts.push(fork);
                }
                1 => {
                    let (table, text) = &mut texts[index];
                    text.truncate(draw(text.len() + 1));
                    blocks.rewind(table, text.len());
                }
                2 if texts.len() > 1 => blocks.release(texts.swap_remove(index).0),
                _ if texts[index].1.len() < 24 => {
                    let (table, text) = &mut texts[index];
                    let from = text.len();
                    text.extend((0..1 + draw(5)).map(|_| 1 + draw(3) as u32));
                    assert!(blocks.reserve(table, from, text.len()));
                    for (from, to) in blocks.take_copies().into_iter().flatten() {
                        let from = from as usize * 3;
                        cache.copy_within(from..from + 3, to as usize * 3);
                    }
                    for (position, &token) in text.iter().enumerate().skip(from) {
                        cache[table.blocks()[position / 3] as usize * 3 + position % 3] = token;
                    }
                    blocks.commit(table, text, text.len());
                }
                _ => (),
            }
            for (table, text) in &texts {
                let slot = |position: usize| table.blocks()[position / 3] as usize * 3 + position % 3;
                let read: Vec<u32> = (0..text.len()).map(|position| cache[slot(position)]).collect();
                assert_eq!(&read, text, "round {round}");
            }
        }
        texts.into_iter().for_each(|(table, _)| blocks.release(table));
        assert_eq!(blocks.used(), 0);
    }
}
