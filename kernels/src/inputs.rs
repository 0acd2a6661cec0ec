//! The inputs of a pass in one buffer of a fixed layout, so that one graph serves all passes of a bucket.
//!
//! ```text
//!   tokens │ positions │ slots │ sees │ wanted │ starts │ firsts │ parts │ tables        i32 each (sees: u32)
//!     M         M         M       M       R         S       S + 1     S     S · blocks
//! ```
//!
//! A pass is copied into this buffer at once and the graph of its bucket is replayed. Rows of padding have
//! slot −1, sequences of padding feed nothing, and wanted rows of padding are −1: the kernels write nothing
//! for them.
//!
//! **Prompts.** Attention takes a few tokens of a sequence. A sequence that feeds more is cut into pieces,
//! which come after the other sequences, each with the table of its text and the slots before it: keys and
//! values of all pieces are stored before any of them attends, so that a piece sees the ones before it like
//! text of an earlier pass.
//!
//! ```text
//!   feeds       a: 1 token     b: 40 tokens, 100 cached                    c: 2 tokens
//!   sequences   a │ c │ b, 8 from slot 100 │ b, 16 from 108 │ b, 16 from 124      nodes of a tree stay together in the last piece
//! ```
//!
//! Such a pass rarely recurs in the same size, so it is not padded and has no graph.

use super::shapes::{Attend, BLOCK_SIZE, MOST_QUERY_ROWS, SPLITS};
use std::fmt;
use std::ops::Range;

/// The numbers of fed tokens that passes are padded to. Larger passes are not padded.
pub const BUCKETS: [usize; 11] = [1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128];
/// The numbers of blocks that tables are padded to: texts of 256 to 262,144 tokens.
pub const TABLES: [usize; 6] = [16, 64, 256, 1024, 4096, 16384];
/// The number of fed tokens of a sequence that fit into the bits of `sees`.
const MOST_SEEN: usize = 32;
/// The most tokens of a pass: their intermediate results take memory that nothing else can use.
pub const MOST_TOKENS: usize = 8192;
/// The most rows of logits of a pass, for the same reason.
pub const MOST_ROWS: usize = 256;
/// The most numbers of all tables of a pass with prompts: each piece has a whole table.
const MOST_TABLES: usize = 1 << 22;
/// About the number of pieces of prompts that occupy a card: if there are fewer, they are split by their
/// keys.
const MANY_PIECES: usize = 128;

/// The tokens that one sequence feeds in one pass.
#[derive(Clone, Copy, Debug)]
pub struct Feed<'a> {
    /// The tokens, in slots `start..start + tokens.len()`.
    pub tokens: &'a [u32],
    /// The number of slots cached before them, all of them text.
    pub start: usize,
    /// The blocks of all slots up to the last fed one.
    pub table: &'a [u32],
    /// The number of the last fed tokens that have rows of logits.
    pub rows: usize,
    /// The parents of the last `parents.len()` tokens, which are nodes of a tree below the last token of the
    /// text: 0 is that token, `k` the `k`-th node, which comes before its child. At least one token of the
    /// text is then fed too. `None` for a chain.
    pub parents: Option<&'a [u16]>,
}

impl Feed<'_> {
    /// Returns the fed token that this one continues; `None` if that one was not fed.
    fn parent(&self, number: usize) -> Option<usize> {
        let parents = self.parents.unwrap_or_default();
        let text = self.tokens.len() - parents.len();
        match number.checked_sub(text) {
            None => number.checked_sub(1),
            Some(node) => (text + usize::from(parents[node])).checked_sub(1),
        }
    }

    /// Returns the position of each fed token in its text.
    fn positions(&self) -> Vec<usize> {
        let mut positions = Vec::with_capacity(self.tokens.len());
        for number in 0..self.tokens.len() {
            let before = self.parent(number).map(|parent| positions[parent]);
            positions.push(before.map_or(self.start, |before| before + 1));
        }
        positions
    }

    /// Returns, for a piece of at most 32 tokens, the tokens of the piece that each sees, as bits: itself and
    /// those that it continues.
    fn sees(&self, piece: &Range<usize>) -> Vec<u32> {
        let mut sees = Vec::with_capacity(piece.len());
        for number in piece.clone() {
            let before = self
                .parent(number)
                .and_then(|parent| parent.checked_sub(piece.start));
            sees.push(before.map_or(0, |before| sees[before]) | 1 << (number - piece.start));
        }
        sees
    }
}

/// The sizes of a pass that one graph serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bucket {
    /// The number of fed tokens.
    pub tokens: usize,
    /// The number of sequences that feed a few tokens.
    pub sequences: usize,
    /// The number of pieces of those that feed more.
    pub pieces: usize,
    /// The number of rows of logits.
    pub rows: usize,
    /// The number of blocks of the cache in the table of a sequence.
    pub table_width: usize,
    /// The most fed tokens of one sequence or piece.
    pub most_fed: usize,
}

/// The reason why a pass does not fit a bucket.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// Too many tokens, sequences or rows in all.
    #[error("the pass has {found} {what}, more than {limit}")]
    Pass {
        /// The size that is exceeded.
        what: &'static str,
        /// Its value.
        found: usize,
        /// Its limit.
        limit: usize,
    },
    /// Too many tokens or blocks of one sequence.
    #[error("feed {feed} has {found} {what}, more than {limit}")]
    Feed {
        /// The number of the feed.
        feed: usize,
        /// The size that is exceeded.
        what: &'static str,
        /// Its value.
        found: usize,
        /// Its limit.
        limit: usize,
    },
}

/// All sizes that do not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfits(pub Vec<Misfit>);

impl fmt::Display for Misfits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self.0.iter().map(Misfit::to_string).collect();
        f.write_str(&all.join("; "))
    }
}

impl std::error::Error for Misfits {}

/// A part of the inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// The fed tokens.
    Tokens,
    /// The position of each fed token in its text.
    Positions,
    /// The slot for the keys and values of each fed token.
    Slots,
    /// The fed tokens of its sequence that each sees.
    Sees,
    /// The tokens whose logits are requested.
    Wanted,
    /// The number of slots of each sequence that are cached before the pass.
    Starts,
    /// The first fed token of each sequence, and the end of the last.
    Firsts,
    /// The place of the sums of the splits of each sequence: the number of split rows of those before it.
    Parts,
    /// The blocks of each sequence.
    Tables,
}

/// Returns the number of pieces that a feed is cut into, at most `most_fed` tokens each.
fn pieces_of(feed: &Feed<'_>, most_fed: usize) -> usize {
    feed.tokens.len().div_ceil(most_fed.max(1))
}

/// Returns the pieces of at most `most_fed` tokens that a feed of `count` tokens is cut into. All but the
/// first have exactly that many, so that the nodes of a tree are in the last.
fn cut(count: usize, most_fed: usize) -> impl Iterator<Item = Range<usize>> {
    let most_fed = most_fed.max(1);
    (0..count.div_ceil(most_fed)).rev().map(move |left| {
        let end = count - left * most_fed;
        end.saturating_sub(most_fed)..end
    })
}

/// Returns the number of blocks that hold the text of a feed and its fed tokens.
fn blocks_of(feed: &Feed<'_>) -> usize {
    (feed.start + feed.tokens.len()).div_ceil(BLOCK_SIZE)
}

/// Returns the most tokens of a sequence that a launch of attention takes, if `group` query heads share a key
/// head.
fn most_fed(group: usize) -> usize {
    MOST_SEEN.min(MOST_QUERY_ROWS / group.max(1))
}

impl Bucket {
    /// Returns the bucket for a pass of these feeds, for a model with `group` query heads for each key head:
    /// the smallest of the sizes that passes are padded to, or the exact sizes of a larger pass or one with
    /// prompts. `None` if the kernels do not support the pass.
    pub fn of(feeds: &[Feed<'_>], group: usize) -> Option<Self> {
        let blocks = feeds.iter().map(blocks_of).max().unwrap_or(0);
        let table_width = TABLES.into_iter().find(|&width| width >= blocks)?;
        let most_fed = most_fed(group);
        let sizes = feeds.iter().map(|feed| feed.tokens.len());
        let tokens = sizes.clone().sum();
        let padded = Self::tokens_for(tokens).filter(|_| sizes.clone().all(|size| size <= most_fed));
        if let Some(tokens) = padded {
            // As many sequences and rows as tokens, so that only the tokens and the longest table choose the
            // bucket.
            return Some(Bucket {
                tokens,
                sequences: tokens,
                pieces: 0,
                rows: tokens,
                table_width,
                most_fed: tokens.min(most_fed),
            });
        }
        let (short, long): (Vec<_>, Vec<_>) = feeds.iter().partition(|feed| feed.tokens.len() <= most_fed);
        let bucket = Bucket {
            tokens,
            sequences: short.len(),
            pieces: long.iter().map(|feed| pieces_of(feed, most_fed)).sum(),
            rows: feeds.iter().map(|feed| feed.rows).sum(),
            table_width: blocks,
            most_fed,
        };
        let tables = (bucket.sequences + bucket.pieces) * blocks;
        let fits = most_fed > 0 && tokens <= MOST_TOKENS && bucket.rows <= MOST_ROWS && tables <= MOST_TABLES;
        (fits && bucket.misfits(feeds, group).is_empty()).then_some(bucket)
    }

    /// Returns `true` if this is one of the sizes that passes are padded to, which recur.
    pub fn is_padded(&self) -> bool {
        self.pieces == 0 && self.tokens <= BUCKETS[BUCKETS.len() - 1]
    }

    /// Returns the most parts that the keys of a piece are split into: many pieces occupy a card without
    /// splits.
    pub fn piece_splits(&self) -> usize {
        let splits = (MANY_PIECES / self.pieces.max(1)).max(1);
        (1 << splits.ilog2()).min(SPLITS)
    }

    /// Returns the smallest number of tokens in [`BUCKETS`] that holds `tokens`.
    pub fn tokens_for(tokens: usize) -> Option<usize> {
        BUCKETS.into_iter().find(|&bucket| bucket >= tokens)
    }

    /// Returns `true` if a pass of this bucket takes at least as much memory as one of the other, whatever
    /// the model: it has no fewer tokens, and its texts may be as long.
    pub fn is_as_large_as(&self, other: &Bucket) -> bool {
        self.tokens >= other.tokens && self.table_width >= other.table_width
    }

    /// Returns the parts in their order, with the number of numbers of each.
    fn parts(&self) -> [(Input, usize); 9] {
        let sequences = self.sequences + self.pieces;
        [
            (Input::Tokens, self.tokens),
            (Input::Positions, self.tokens),
            (Input::Slots, self.tokens),
            (Input::Sees, self.tokens),
            (Input::Wanted, self.rows),
            (Input::Starts, sequences),
            (Input::Firsts, sequences + 1),
            (Input::Parts, sequences),
            (Input::Tables, sequences * self.table_width),
        ]
    }

    /// Returns the offset of a part, in bytes.
    pub fn offset(&self, part: Input) -> usize {
        let parts = self.parts().into_iter();
        4 * parts
            .take_while(|&(other, _)| other != part)
            .map(|(_, numbers)| numbers)
            .sum::<usize>()
    }

    /// Returns the offset at which a part describes pieces, in bytes.
    pub fn offset_of_pieces(&self, part: Input) -> usize {
        let each = match part {
            Input::Tables => self.table_width,
            _ => 1,
        };
        self.offset(part) + 4 * self.sequences * each
    }

    /// Returns the number of bytes of all inputs.
    pub fn bytes(&self) -> usize {
        4 * self.parts().iter().map(|(_, numbers)| numbers).sum::<usize>()
    }

    /// Returns the inputs of a pass of these feeds, for a model with `group` query heads for each key head.
    /// The caller has to ensure that the feeds are as [`Feed`] describes.
    ///
    /// # Errors
    /// All sizes that do not fit.
    pub fn fill(&self, feeds: &[Feed<'_>], group: usize) -> Result<Vec<u8>, Misfits> {
        let misfits = self.misfits(feeds, group);
        if !misfits.is_empty() {
            return Err(Misfits(misfits));
        }
        let most = self.most_fed.min(most_fed(group));
        let mut lists = Lists::new(self.table_width);
        // The position of the first token of each feed.
        let mut begins = vec![0; feeds.len()];
        let (short, long): (Vec<usize>, Vec<usize>) =
            (0..feeds.len()).partition(|&feed| feeds[feed].tokens.len() <= most);
        for (numbers, sequences, most_splits) in [
            (short, self.sequences, SPLITS),
            (long, self.sequences + self.pieces, self.piece_splits()),
        ] {
            for number in numbers {
                begins[number] = lists.tokens.len();
                lists.push(&feeds[number], most, |slots, fed| {
                    Attend::<()>::split_rows(slots, fed, group, most_splits)
                });
            }
            lists.pad(sequences);
        }
        let wanted = feeds.iter().zip(begins).flat_map(|(feed, begin)| {
            let end = begin + feed.tokens.len();
            (end - feed.rows..end).map(|row| row as i32)
        });
        let lists = lists.in_order(wanted.collect());
        let padding = [0, 0, -1, 0, -1, 0, 0, 0, 0];
        let numbers = lists.into_iter().zip(padding).zip(self.parts());
        let numbers = numbers.flat_map(|((mut list, padding), (_, len))| {
            list.resize(len, padding);
            list
        });
        Ok(numbers.flat_map(i32::to_le_bytes).collect())
    }

    /// Returns the number of rows that the splits of all texts of such a pass leave for each key head.
    pub fn split_rows(&self, feeds: &[Feed<'_>], group: usize) -> usize {
        let most = self.most_fed.min(most_fed(group));
        let of_feed = |feed: &Feed<'_>| {
            let most_splits = match feed.tokens.len() <= most {
                true => SPLITS,
                false => self.piece_splits(),
            };
            let of_piece = |fed: Range<usize>| {
                Attend::<()>::split_rows(feed.start + fed.end, fed.len(), group, most_splits)
            };
            cut(feed.tokens.len(), most).map(of_piece).sum::<usize>()
        };
        feeds.iter().map(of_feed).sum()
    }

    fn misfits(&self, feeds: &[Feed<'_>], group: usize) -> Vec<Misfit> {
        let most = self.most_fed.min(most_fed(group));
        let is_short = |feed: &&Feed<'_>| feed.tokens.len() <= most;
        let long = feeds.iter().filter(|feed| !is_short(feed));
        let whole = [
            (
                "tokens",
                feeds.iter().map(|feed| feed.tokens.len()).sum(),
                self.tokens,
            ),
            ("sequences", feeds.iter().filter(is_short).count(), self.sequences),
            (
                "pieces",
                long.map(|feed| pieces_of(feed, most)).sum(),
                self.pieces,
            ),
            ("rows", feeds.iter().map(|feed| feed.rows).sum(), self.rows),
        ];
        let whole = whole.into_iter().filter(|(_, found, limit)| found > limit);
        let whole = whole.map(|(what, found, limit)| Misfit::Pass { what, found, limit });
        let each = feeds.iter().enumerate().flat_map(|(feed, fed)| {
            let nodes = fed.parents.map_or(0, <[u16]>::len);
            [
                (feed, "nodes", nodes, most),
                (feed, "blocks", blocks_of(fed), self.table_width),
            ]
        });
        let each = each.filter(|(_, _, found, limit)| found > limit);
        let each = each.map(|(feed, what, found, limit)| Misfit::Feed {
            feed,
            what,
            found,
            limit,
        });
        whole.chain(each).collect()
    }
}

/// The inputs of a pass under construction.
struct Lists {
    tokens: Vec<i32>,
    positions: Vec<i32>,
    slots: Vec<i32>,
    sees: Vec<i32>,
    starts: Vec<i32>,
    firsts: Vec<i32>,
    /// The positions at which the sums of the splits of each sequence begin, in rows of a key head.
    parts: Vec<i32>,
    tables: Vec<i32>,
    table_width: usize,
    /// The number of such rows so far.
    split_rows: usize,
}

impl Lists {
    fn new(table_width: usize) -> Self {
        Lists {
            tokens: Vec::new(),
            positions: Vec::new(),
            slots: Vec::new(),
            sees: Vec::new(),
            starts: Vec::new(),
            firsts: Vec::new(),
            parts: Vec::new(),
            tables: Vec::new(),
            table_width,
            split_rows: 0,
        }
    }

    /// Adds a feed in pieces of at most `most_fed` tokens. `split_rows` returns the split rows of a piece
    /// from the number of slots that it sees and of tokens that it feeds.
    fn push(&mut self, feed: &Feed<'_>, most_fed: usize, split_rows: impl Fn(usize, usize) -> usize) {
        let count = feed.tokens.len();
        self.tokens.extend(feed.tokens.iter().map(|&token| token as i32));
        let positions = feed.positions().into_iter();
        self.positions.extend(positions.map(|position| position as i32));
        let slot = |slot: usize| feed.table[slot / BLOCK_SIZE] as usize * BLOCK_SIZE + slot % BLOCK_SIZE;
        let slots = feed.start..feed.start + count;
        self.slots.extend(slots.map(|number| slot(number) as i32));
        let first = self.tokens.len() - count;
        for fed in cut(count, most_fed) {
            self.parts.push(self.split_rows as i32);
            self.split_rows += split_rows(feed.start + fed.end, fed.len());
            self.push_piece(feed, fed, first);
        }
    }

    /// Adds one of the pieces of a feed whose first token has the number `first`.
    fn push_piece(&mut self, feed: &Feed<'_>, fed: Range<usize>, first: usize) {
        let start = feed.start + fed.start;
        self.starts.push(start as i32);
        self.firsts.push((first + fed.start) as i32);
        self.sees
            .extend(feed.sees(&fed).into_iter().map(|bits| bits as i32));
        let blocks = (feed.start + fed.end).div_ceil(BLOCK_SIZE);
        let end = self.tables.len() + self.table_width;
        self.tables
            .extend(feed.table[..blocks].iter().map(|&block| block as i32));
        self.tables.resize(end, 0);
    }

    /// Adds sequences that feed nothing, up to `sequences`.
    fn pad(&mut self, sequences: usize) {
        self.starts.resize(sequences, 0);
        self.firsts.resize(sequences, self.tokens.len() as i32);
        self.parts.resize(sequences, 0);
        self.tables.resize(sequences * self.table_width, 0);
    }

    /// Returns the lists in the order of the inputs.
    fn in_order(mut self, wanted: Vec<i32>) -> [Vec<i32>; 9] {
        self.firsts.push(self.tokens.len() as i32);
        [
            self.tokens,
            self.positions,
            self.slots,
            self.sees,
            wanted,
            self.starts,
            self.firsts,
            self.parts,
            self.tables,
        ]
    }
}

#[cfg(test)]
mod tests;
