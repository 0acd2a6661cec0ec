//! Masks of many sequences at once.

use rayon::prelude::*;

use super::{Grammar, State};

/// One sequence of a batch: its grammar, where it stands, and the tokens that it may still take. `None` for no limit.
#[derive(Clone, Debug)]
pub struct Row {
    /// What the sequence obeys.
    pub grammar: Grammar,
    /// Where it stands.
    pub state: State,
    /// As in [`Grammar::mask_within`].
    pub budget: Option<usize>,
}

/// Writes the masks of all rows into one buffer, `stride` words for each, ready for one copy to a device: words beyond
/// a mask are cleared, missing ones are left out. A row that is `None` has no constraint, and allows everything.
///
/// Masks that are known are copied; the others are found on the threads of rayon's current pool, so that a batch takes
/// as long as its slowest mask where there are threads enough. O(rows · stride) besides.
///
/// # Panics
/// When the buffer is shorter than `rows.len() * stride`.
pub fn fill_batch(rows: &[Option<Row>], stride: usize, words: &mut [u32]) {
    assert!(
        words.len() >= rows.len() * stride,
        "the buffer has room for every row"
    );
    if stride == 0 {
        return;
    }
    let targets = words.par_chunks_mut(stride).zip(rows);
    targets.with_max_len(1).for_each(|(words, row)| match row {
        None => words.fill(u32::MAX),
        Some(row) => row.fill(words),
    });
}

impl Row {
    fn fill(&self, words: &mut [u32]) {
        let mask = match self.budget {
            Some(budget) => self.grammar.mask_within(self.state, budget),
            None => self.grammar.mask(self.state),
        };
        mask.copy_to(words);
    }
}
