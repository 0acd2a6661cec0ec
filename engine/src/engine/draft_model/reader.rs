//! The texts that a draft model has read: its separate cache of keys and values, and which parts of it are
//! still valid.
//!
//! The cache is optional. A text that finds no room in it goes without drafts; no text is preempted for
//! another.

use crate::blocks::{Blocks, Scope, Table};
use crate::config::EngineConfig;
use crate::error::EngineError;
use crate::model::logits::Logits;
use crate::model::{Feed, Model};
use std::borrow::Borrow;
use std::collections::HashMap;
use std::sync::Arc;

/// A text to be read by a draft model.
pub(super) struct Passage {
    /// The identity of its sequence.
    pub(super) id: u64,
    /// The texts that it may share blocks with.
    pub(super) scope: Scope,
    /// The certain tokens.
    pub(super) text: Arc<Vec<u32>>,
    /// The number of tokens of the text that have not changed since the last time.
    pub(super) unchanged: usize,
    /// The drafts after the text, which may be rejected.
    pub(super) drafts: Vec<u32>,
    /// The parents of the drafts as a feed counts them, if they are not a chain and all have rows.
    pub(super) parents: Option<Vec<u16>>,
    /// The number of last tokens whose rows are needed, at least 1.
    pub(super) rows: usize,
    /// The scale at which its row is measured ([`Feed::scale`]).
    pub(super) scale: f64,
}

impl Passage {
    fn len(&self) -> usize {
        self.text.len() + self.drafts.len()
    }

    /// Returns where a pass of at most `most` tokens after `read` ends: at the end, or where a later one has
    /// all rows.
    fn end(&self, read: usize, most: usize) -> usize {
        match read + most >= self.len() {
            true => self.len(),
            false => (read + most).min(self.len() - self.rows),
        }
    }

    /// Returns the tokens from a position on, without visiting those before it.
    fn from(&self, place: usize) -> impl Iterator<Item = u32> {
        let text = self.text.get(place..).unwrap_or_default();
        let drafts = self.drafts.iter().skip(place.saturating_sub(self.text.len()));
        text.iter().chain(drafts).copied()
    }
}

/// The part of a passage that was read. Of the text only the length is stored: a text is long, and a step
/// adds little to it.
#[derive(Default)]
struct Track {
    table: Table,
    /// The number of tokens of the text whose keys and values are in the cache.
    text: usize,
    /// The drafts that were read after them, which may have been rejected since.
    tail: Vec<u32>,
}

/// A model that reads texts incrementally.
pub(super) struct Reader {
    model: Box<dyn Model>,
    blocks: Blocks,
    tracks: HashMap<u64, Track>,
    max_feed: usize,
}

impl Reader {
    pub(super) fn new(mut model: Box<dyn Model>, config: &EngineConfig) -> Result<Self, EngineError> {
        model.create_cache(config.blocks, config.block_size)?;
        Ok(Reader {
            blocks: Blocks::new(config.blocks, config.block_size),
            tracks: HashMap::new(),
            max_feed: config.max_step_tokens,
            model,
        })
    }

    /// Returns the number of logits per row.
    pub(super) fn width(&self) -> usize {
        self.model.vocab_size()
    }

    /// Tells the model which columns are not tokens.
    pub(super) fn leave_out(&mut self, columns: &[usize]) {
        self.model.leave_out(columns);
    }

    /// Forgets texts whose sequences have ended.
    pub(super) fn retain(&mut self, alive: impl Fn(u64) -> bool) {
        let gone = self.tracks.extract_if(|&id, _| !alive(id));
        for (_, track) in gone {
            self.blocks.release(track.table);
        }
    }

    /// Empties the cache, whose contents are undefined after a panic.
    pub(super) fn reset(&mut self, config: &EngineConfig) {
        self.tracks.clear();
        self.blocks = Blocks::new(config.blocks, config.block_size);
    }

    /// Returns the number of tokens that the model can read.
    pub(super) fn context(&self) -> usize {
        self.model.max_positions()
    }

    /// Returns `true` if the model can read that many tokens.
    pub(super) fn reaches(&self, tokens: usize) -> bool {
        tokens <= self.model.max_positions()
    }

    /// Rewinds to the part of a passage that was already read, and reserves room for the rest; returns
    /// `false` if there is none.
    pub(super) fn prepare(&mut self, passage: &Passage) -> bool {
        let track = self.tracks.entry(passage.id).or_default();
        let mut unchanged = passage.unchanged;
        if track.table.blocks().is_empty() {
            let (table, text) = self.blocks.take_over(&passage.scope, &passage.text);
            *track = Track {
                table,
                text,
                tail: Vec::new(),
            };
            unchanged = passage.text.len();
        }
        track.meet(passage, unchanged);
        let read = track.read();
        let end = passage.end(read, self.max_feed);
        self.blocks.reserve(&mut track.table, read, end)
    }

    /// Returns the rows of each passage, however long it takes to read it. Where there is no room for all of
    /// them at once, other texts are forgotten.
    ///
    /// # Errors
    /// Fails if the model does, or if there is no room for one of them by itself.
    pub(super) fn rows(&mut self, mut passages: Vec<Passage>) -> Result<Vec<Vec<Vec<f32>>>, EngineError> {
        let mut found: Vec<Option<Vec<Vec<f32>>>> = passages.iter().map(|_| None).collect();
        while let Some(first) = found.iter().position(Option::is_none) {
            let mut ready = Vec::new();
            for (number, passage) in passages.iter_mut().enumerate() {
                if found[number].is_none() && self.prepare(passage) {
                    ready.push(number);
                }
                // From now on, what was read of it is of this text.
                passage.unchanged = passage.text.len();
            }
            if ready.is_empty() {
                let passage = &passages[first];
                self.retain(|id| id == passage.id);
                if !self.prepare(passage) {
                    let problem = format!("the draft model has no room for {} tokens", passage.len());
                    return Err(EngineError::Model(problem));
                }
                ready.push(first);
            }
            let read: Vec<&Passage> = ready.iter().map(|&number| &passages[number]).collect();
            let (logits, rows) = self.forward(&read)?;
            for (number, row) in ready.into_iter().zip(rows) {
                let count = passages[number].rows;
                let copied = |row: usize| (row..row + count).map(|row| logits.row(row).to_vec()).collect();
                found[number] = row.map(copied);
            }
        }
        Ok(found.into_iter().flatten().collect())
    }

    /// Feeds the new tokens of each passage; returns, for each passage that was read to its end, the index of
    /// its first row.
    pub(super) fn forward(
        &mut self,
        passages: &[impl Borrow<Passage>],
    ) -> Result<(Logits, Vec<Option<usize>>), EngineError> {
        let passages: Vec<&Passage> = passages.iter().map(Borrow::borrow).collect();
        let read = |passage: &Passage| self.tracks[&passage.id].read();
        let fed = passages.iter().map(|&passage| -> Vec<u32> {
            let (read, end) = (read(passage), passage.end(read(passage), self.max_feed));
            passage.from(read).take(end - read).collect()
        });
        let fed: Vec<Vec<u32>> = fed.collect();
        let feeds = passages.iter().zip(&fed).map(|(passage, tokens)| {
            let track = &self.tracks[&passage.id];
            Feed {
                tokens,
                start: track.read(),
                table: track.table.blocks(),
                rows: match track.read() + tokens.len() == passage.len() {
                    true => passage.rows,
                    false => 0,
                },
                parents: match track.read() + tokens.len() == passage.len() {
                    true => passage.parents.as_deref(),
                    false => None,
                },
                scale: passage.scale,
            }
        });
        let feeds: Vec<Feed<'_>> = feeds.collect();
        if feeds.is_empty() {
            return Ok((Logits::default(), Vec::new()));
        }
        for round in self.blocks.take_copies() {
            self.model.copy_blocks(&round)?;
        }
        let logits = self.model.forward(&feeds)?;
        let ends = feeds
            .iter()
            .map(|feed| (feed.start + feed.tokens.len(), feed.rows));
        let ends: Vec<(usize, usize)> = ends.collect();
        let (mut number, mut rows) = (0, Vec::new());
        for (passage, (end, wanted)) in passages.iter().zip(ends) {
            rows.push((wanted > 0).then_some(number));
            number += wanted;
            if let Some(track) = self.tracks.get_mut(&passage.id) {
                track.reach(end, passage);
                // Drafts may be rejected; only certain tokens are shared with other sequences.
                self.blocks.commit(&mut track.table, &passage.text, track.text);
            }
        }
        Ok((logits, rows))
    }
}

impl Track {
    /// Returns the number of tokens that were read.
    fn read(&self) -> usize {
        self.text + self.tail.len()
    }

    /// Keeps the read tokens that the passage still has, except those whose rows are needed: these are fed
    /// again if necessary.
    fn meet(&mut self, passage: &Passage, unchanged: usize) {
        let mut read = self.text.min(unchanged);
        if read == self.text {
            let pairs = self.tail.iter().zip(passage.from(read));
            read += pairs.take_while(|&(&read, token)| read == token).count();
        }
        self.reach(read.min(passage.len() - passage.rows), passage);
    }

    /// Records that the first `end` tokens of the passage were read.
    fn reach(&mut self, end: usize, passage: &Passage) {
        self.text = end.min(passage.text.len());
        self.tail.clear();
        if passage.parents.is_some() {
            // What comes next continues one branch, and the others are between.
            return;
        }
        self.tail.extend(passage.from(self.text).take(end - self.text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Guards against copies of the whole text, and against forgetting a rewind: only drafts are stored, and
    /// the tokens known to be read are the same as a comparison of all tokens finds.
    #[test]
    fn a_track_holds_drafts_alone_and_knows_what_was_read() {
        let prompt = 5000;
        let (mut text, mut unchanged): (Vec<u32>, usize) = ((0..prompt).collect(), 0);
        let (mut track, mut read) = (Track::default(), Vec::new());
        let turns: [(usize, &[u32], &[u32]); 7] = [
            // The number of answer tokens kept, the tokens drawn, the tokens drafted.
            (9, &[7], &[1, 2, 3]),
            (9, &[1, 2, 4], &[5, 6]),
            (9, &[5, 6, 7], &[]),
            (2, &[9, 9, 9, 9], &[1]),
            (9, &[1, 2], &[3, 4]),
            (0, &[8, 1], &[2]),
            (9, &[], &[4]),
        ];
        for (back, drawn, drafted) in turns {
            text.truncate(prompt as usize + back);
            unchanged = unchanged.min(text.len());
            text.extend(drawn);
            let passage = Passage {
                id: 0,
                scope: Scope::default(),
                text: Arc::new(text.clone()),
                unchanged,
                drafts: drafted.to_vec(),
                parents: None,
                rows: 1,
                scale: 1.0,
            };
            track.meet(&passage, unchanged);
            unchanged = text.len();
            let now: Vec<u32> = passage.from(0).collect();
            let same = now
                .iter()
                .zip(&read)
                .take_while(|(now, read)| now == read)
                .count();
            assert_eq!(track.read(), same.min(now.len() - 1), "{now:?}");
            track.reach(now.len(), &passage);
            assert_eq!((track.read(), track.tail.len()), (now.len(), drafted.len()));
            read = now;
        }
    }
}
