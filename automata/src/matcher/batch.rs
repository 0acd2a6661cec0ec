//! Masks of many sequences at once.

use super::batch_row::Job;
use super::{BatchRow, Pool};
use crate::error::Exhausted;

impl Pool {
    /// Writes the masks of all rows into one buffer, `stride` words for each, ready for one copy to a device:
    /// words beyond a mask are cleared, missing ones are left out. A row that is `None` has no constraint,
    /// and allows everything.
    ///
    /// Masks that take little work are written by the calling thread; the others are found on the threads of
    /// the pool, so that a batch takes as long as its slowest mask where there are threads enough. O(rows ·
    /// stride) besides.
    ///
    /// The result names the rows whose masks would cost more than their limits allow. Their words are
    /// cleared: those sequences cannot go on, and no other one is affected.
    ///
    /// # Panics
    /// When the buffer is shorter than `rows.len() * stride`.
    pub fn fill_batch(
        &self,
        rows: &[Option<BatchRow>],
        stride: usize,
        words: &mut [u32],
    ) -> Vec<(usize, Exhausted)> {
        assert!(
            words.len() >= rows.len() * stride,
            "the buffer has room for every row"
        );
        if stride == 0 {
            return Vec::new();
        }
        let mut jobs = Vec::new();
        for (number, (words, row)) in words.chunks_mut(stride).zip(rows).enumerate() {
            match row {
                None => words.fill(u32::MAX),
                Some(row) => jobs.push(Job {
                    number,
                    row: row.clone(),
                    words,
                }),
            }
        }
        self.finish(jobs)
    }

    /// [`fill_batch`](Self::fill_batch) for rows that stand anywhere in the buffer: each goes to the `stride`
    /// words of its number, and what is between them is left as it is. Of rows with the same number the first
    /// one is written.
    ///
    /// # Panics
    /// When the buffer is too short for one of the numbers.
    pub fn fill_rows(
        &self,
        rows: impl IntoIterator<Item = (usize, BatchRow)>,
        stride: usize,
        words: &mut [u32],
    ) -> Vec<(usize, Exhausted)> {
        let mut places: Vec<Option<&mut [u32]>> = words.chunks_exact_mut(stride.max(1)).map(Some).collect();
        let mut jobs = Vec::new();
        for (number, row) in rows {
            if let Some(words) = places[number].take() {
                jobs.push(Job { number, row, words });
            }
        }
        self.finish(jobs)
    }
}
