//! Masks of many sequences at once.

use super::batch_row::Job;
use super::{BatchRow, Pool};
use crate::error::Exhausted;

impl Pool {
    /// Writes the masks of all rows into one buffer, with `stride` words per row, ready for one copy to a
    /// device. Words beyond a mask are cleared; a mask longer than `stride` is cut off. A row that is `None`
    /// has no constraint and allows everything.
    ///
    /// Masks that take little work are written by the calling thread. The others are computed on the threads
    /// of the pool, so that with enough threads a batch takes as long as its slowest mask. In addition,
    /// O(rows · stride).
    ///
    /// Returns the numbers of the rows whose masks would cost more than their limits allow. The words of
    /// these rows are cleared: their sequences cannot continue, and no other sequence is affected.
    ///
    /// # Panics
    /// Panics if the buffer is shorter than `rows.len() * stride`.
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

    /// Writes the masks of rows at any positions in the buffer, as [`fill_batch`](Self::fill_batch) does:
    /// each row has a number, its mask is written to the `stride` words at that number, and all other words
    /// are left as they are. If several rows have the same number, the first one is written.
    ///
    /// # Panics
    /// Panics if the buffer is too short for one of the numbers.
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
