//! The inputs of a pass in one buffer of a fixed layout, so that one graph serves all passes of a bucket.
//!
//! ```text
//!   tokens │ positions │ slots │ sees │ wanted │ starts │ firsts │ parts │ tables        i32 each (sees: u32)
//!     M         M         M       M       R         S       S + 1     S     S · blocks
//! ```
//!
//! A pass is copied here in one piece and the graph of its bucket is replayed. Rows of padding have slot −1, sequences of
//! padding feed nothing, and wanted rows of padding are −1: the kernels write nothing for them.

use super::shapes::{Attend, BLOCK_SIZE, MOST_QUERY_ROWS};
use crate::model::Feed;
use crate::model::tree::Sight;
use std::fmt;

/// The numbers of fed tokens that passes are padded to. A larger pass is made without a graph.
pub const BUCKETS: [usize; 11] = [1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128];
/// The numbers of blocks that tables are padded to: texts of 256 to 262,144 tokens.
pub const TABLES: [usize; 6] = [16, 64, 256, 1024, 4096, 16384];
/// Fed tokens of a sequence that fit the bits of `sees`.
const MOST_SEEN: usize = 32;

/// What a pass of one graph can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bucket {
    /// Fed tokens.
    pub tokens: usize,
    /// Sequences.
    pub sequences: usize,
    /// Rows of logits.
    pub rows: usize,
    /// Blocks of the cache that a sequence has.
    pub table_width: usize,
    /// Fed tokens of one sequence.
    pub most_fed: usize,
}

/// Why a pass does not fit a bucket.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// Too many tokens, sequences or rows in all.
    #[error("the pass has {found} {what}, more than {limit}")]
    Pass {
        /// What there is too much of.
        what: &'static str,
        /// How many.
        found: usize,
        /// How many there may be.
        limit: usize,
    },
    /// Too many tokens or blocks of one sequence.
    #[error("feed {feed} has {found} {what}, more than {limit}")]
    Feed {
        /// The number of the feed.
        feed: usize,
        /// What there is too much of.
        what: &'static str,
        /// How many.
        found: usize,
        /// How many there may be.
        limit: usize,
    },
}

/// Everything that does not fit.
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
    /// Where each stands in its text.
    Positions,
    /// Where its keys and values go.
    Slots,
    /// Which fed tokens of its sequence each sees.
    Sees,
    /// The tokens whose logits are wanted.
    Wanted,
    /// The slots of each sequence that are cached before the pass.
    Starts,
    /// The first fed token of each sequence, and the end of the last.
    Firsts,
    /// Where attention has the sums of the splits of each sequence: the split rows of those before it.
    Parts,
    /// The blocks of each sequence.
    Tables,
}

impl Bucket {
    /// The smallest bucket that holds a pass of these feeds, whose model has so many query heads for each key head; `None` if
    /// there is none. As many sequences and rows as tokens fit it, so that the tokens and the longest table alone choose it.
    pub fn of(feeds: &[Feed<'_>], group: usize) -> Option<Self> {
        let tokens = Self::tokens_for(feeds.iter().map(|feed| feed.tokens.len()).sum())?;
        let blocks = feeds
            .iter()
            .map(|feed| (feed.start + feed.tokens.len()).div_ceil(BLOCK_SIZE));
        let blocks = blocks.max().unwrap_or(0);
        let most_fed = tokens.min(MOST_SEEN).min(MOST_QUERY_ROWS / group.max(1));
        let fits = feeds.len() <= tokens && feeds.iter().all(|feed| feed.tokens.len() <= most_fed);
        fits.then_some(Bucket {
            tokens,
            sequences: tokens,
            rows: tokens,
            table_width: TABLES.into_iter().find(|&width| width >= blocks)?,
            most_fed,
        })
    }

    /// The smallest number of tokens of [`BUCKETS`] that holds so many.
    pub fn tokens_for(tokens: usize) -> Option<usize> {
        BUCKETS.into_iter().find(|&bucket| bucket >= tokens)
    }

    /// The parts in their order, and how many numbers each has.
    fn parts(&self) -> [(Input, usize); 9] {
        [
            (Input::Tokens, self.tokens),
            (Input::Positions, self.tokens),
            (Input::Slots, self.tokens),
            (Input::Sees, self.tokens),
            (Input::Wanted, self.rows),
            (Input::Starts, self.sequences),
            (Input::Firsts, self.sequences + 1),
            (Input::Parts, self.sequences),
            (Input::Tables, self.sequences * self.table_width),
        ]
    }

    /// Where a part begins, in bytes.
    pub fn offset(&self, part: Input) -> usize {
        let parts = self.parts().into_iter();
        4 * parts
            .take_while(|&(other, _)| other != part)
            .map(|(_, numbers)| numbers)
            .sum::<usize>()
    }

    /// Bytes of all inputs.
    pub fn bytes(&self) -> usize {
        4 * self.parts().iter().map(|(_, numbers)| numbers).sum::<usize>()
    }

    /// The inputs of a pass of these feeds, whose model has so many query heads for each key head. The feeds have been checked as
    /// [`Model::submit`](crate::Model::submit) checks them.
    ///
    /// # Errors
    /// All that does not fit.
    pub fn fill(&self, feeds: &[Feed<'_>], group: usize) -> Result<Vec<u8>, Misfits> {
        let misfits = self.misfits(feeds, group);
        if !misfits.is_empty() {
            return Err(Misfits(misfits));
        }
        let mut lists: [Vec<i32>; 9] = Default::default();
        let mut split_rows = 0;
        for feed in feeds {
            self.push(feed, &mut lists);
            lists[7].push(split_rows as i32);
            split_rows += split_rows_of(feed, group);
        }
        let end = lists[0].len() as i32;
        lists[6].push(end);
        let padding = [0, 0, -1, 0, -1, 0, end, 0, 0];
        let numbers =
            lists
                .into_iter()
                .zip(padding)
                .zip(self.parts())
                .flat_map(|((mut list, padding), (_, len))| {
                    list.resize(len, padding);
                    list
                });
        Ok(numbers.flat_map(i32::to_le_bytes).collect())
    }

    fn push(&self, feed: &Feed<'_>, lists: &mut [Vec<i32>; 9]) {
        let [tokens, positions, slots, sees, wanted, starts, firsts, _, tables] = lists;
        let (first, count, sight) = (tokens.len(), feed.tokens.len(), Sight::of(feed));
        firsts.push(first as i32);
        starts.push(feed.start as i32);
        tokens.extend(feed.tokens.iter().map(|&token| token as i32));
        positions.extend(sight.positions().map(|position| position as i32));
        for number in 0..count {
            let slot = feed.start + number;
            slots.push((feed.table[slot / BLOCK_SIZE] as usize * BLOCK_SIZE + slot % BLOCK_SIZE) as i32);
            let seen = sight.seen(number, usize::MAX);
            let fed = seen.slots().filter_map(|slot| slot.checked_sub(feed.start));
            sees.push(fed.fold(0_u32, |bits, fed| bits | 1 << fed) as i32);
        }
        wanted.extend((first + count - feed.rows..first + count).map(|row| row as i32));
        let blocks = (feed.start + count).div_ceil(BLOCK_SIZE);
        let end = tables.len() + self.table_width;
        tables.extend(feed.table[..blocks].iter().map(|&block| block as i32));
        tables.resize(end, 0);
    }

    fn misfits(&self, feeds: &[Feed<'_>], group: usize) -> Vec<Misfit> {
        let sum = |of: fn(&Feed<'_>) -> usize| feeds.iter().map(of).sum();
        let whole = [
            ("tokens", sum(|feed| feed.tokens.len()), self.tokens),
            ("sequences", feeds.len(), self.sequences),
            ("rows", sum(|feed| feed.rows), self.rows),
        ];
        let whole = whole.into_iter().filter(|(_, found, limit)| found > limit);
        let whole = whole.map(|(what, found, limit)| Misfit::Pass { what, found, limit });
        let most = self.most_fed.min(MOST_SEEN).min(MOST_QUERY_ROWS / group.max(1));
        let each = feeds.iter().enumerate().flat_map(|(feed, fed)| {
            let blocks = (fed.start + fed.tokens.len()).div_ceil(BLOCK_SIZE);
            [
                (feed, "tokens", fed.tokens.len(), most),
                (feed, "blocks", blocks, self.table_width),
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

/// The rows that the splits of a feed's text leave for each key head.
fn split_rows_of(feed: &Feed<'_>, group: usize) -> usize {
    let fed = feed.tokens.len();
    Attend::<()>::split_rows(feed.start + fed, fed, group)
}

/// The rows that the splits of all texts of a pass leave for each key head.
pub fn split_rows(feeds: &[Feed<'_>], group: usize) -> usize {
    feeds.iter().map(|feed| split_rows_of(feed, group)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUCKET: Bucket = Bucket {
        tokens: 8,
        sequences: 3,
        rows: 4,
        table_width: 2,
        most_fed: 5,
    };

    fn feed<'a>(tokens: &'a [u32], start: usize, table: &'a [u32], parents: Option<&'a [u16]>) -> Feed<'a> {
        Feed {
            tokens,
            start,
            table,
            rows: 1,
            parents,
            scale: 1.0,
        }
    }

    #[test]
    fn a_pass_lies_where_the_kernels_look_and_the_rest_is_padding() {
        let feeds = [
            feed(&[7], 0, &[3], None),
            feed(&[1, 2, 3, 4, 5], 14, &[6, 2, 9], Some(&[0, 0, 1, 1])),
        ];
        let bytes = BUCKET.fill(&feeds, 4).unwrap();
        assert_eq!(bytes.len(), BUCKET.bytes());
        let numbers: Vec<i32> = bytes
            .chunks(4)
            .map(|number| i32::from_le_bytes(number.try_into().unwrap()))
            .collect();
        let part = |part, len: usize| {
            let first = BUCKET.offset(part) / 4;
            &numbers[first..first + len]
        };
        assert_eq!(part(Input::Tokens, 8), [7, 1, 2, 3, 4, 5, 0, 0]);
        assert_eq!(part(Input::Positions, 8), [0, 14, 15, 15, 16, 16, 0, 0]);
        assert_eq!(part(Input::Slots, 8), [48, 110, 111, 32, 33, 34, -1, -1]);
        assert_eq!(part(Input::Sees, 8), [1, 1, 0b11, 0b101, 0b1011, 0b10011, 0, 0]);
        assert_eq!(part(Input::Wanted, 4), [0, 5, -1, -1]);
        assert_eq!(part(Input::Starts, 3), [0, 14, 0]);
        assert_eq!(part(Input::Firsts, 4), [0, 1, 6, 6]);
        assert_eq!(part(Input::Parts, 3), [0, 0, 0]);
        assert_eq!(part(Input::Tables, 6), [3, 0, 6, 2, 0, 0]);
    }

    #[test]
    fn splits_take_as_much_room_as_the_texts_of_a_pass_have() {
        let table = [0; 700];
        let texts = [(10_000, 2), (127, 1), (128, 1), (300, 3)];
        let feeds = texts.map(|(start, fed)| feed(&[1, 2, 3][..fed], start, &table, None));
        let bucket = Bucket::of(&feeds, 4).unwrap();
        let bytes = bucket.fill(&feeds, 4).unwrap();
        let first = bucket.offset(Input::Parts);
        let parts: Vec<i32> = bytes[first..first + 16]
            .chunks(4)
            .map(|number| i32::from_le_bytes(number.try_into().unwrap()))
            .collect();
        // 40 parts of 256 slots, one of 128, two, and three.
        assert_eq!(parts, [0, 40 * 8, 40 * 8, 40 * 8 + 2 * 4]);
        assert_eq!(split_rows(&feeds, 4), 40 * 8 + 2 * 4 + 3 * 12);
    }

    #[test]
    fn all_that_does_not_fit_is_named() {
        let table = [0; 9];
        let feeds = [
            feed(&[1; 6], 0, &table, None),
            feed(&[1; 2], 31, &table, None),
            feed(&[1], 0, &table, None),
            feed(&[1], 0, &table, None),
        ];
        let misfits = BUCKET.fill(&feeds, 4).unwrap_err();
        assert_eq!(
            misfits.to_string(),
            "the pass has 10 tokens, more than 8; the pass has 4 sequences, more than 3; \
             feed 0 has 6 tokens, more than 5; feed 1 has 3 blocks, more than 2"
        );
        assert_eq!(
            Bucket::of(&feeds, 4).map(|bucket| (bucket.tokens, bucket.table_width)),
            Some((16, 16))
        );
        assert_eq!(
            Bucket::of(&feeds, 16),
            None,
            "4 tokens of a sequence have 64 query heads of a key head"
        );
        assert_eq!(
            Bucket::of(&[feed(&[1; 40], 0, &table, None)], 1),
            None,
            "40 tokens do not fit the bits of `sees`"
        );
        assert_eq!(Bucket::tokens_for(17), Some(24));
        assert_eq!(Bucket::tokens_for(129), None);
    }
}
