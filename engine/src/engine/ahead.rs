//! A pass that is begun before the tokens are known that it feeds.
//!
//! ```text
//!   device   pass i ─ draw i ┬ pass i+1 ──────────────────────── draw i+1 ┬ pass i+2 ─ …
//!                            ▼                                     ▲      ▼
//!   host               tokens i ─ write, tell ─ grammar, masks ────┘ start the draws, submit pass i+2, wait
//! ```
//!
//! Of a sequence that draws a plain token, the next pass needs the token and nothing else: where the device
//! draws, it is there already. So pass `i+1` is submitted right behind the draws of pass `i`, and what the
//! host has to do about tokens `i` costs nothing as long as it takes less than a pass. Clients hear of a
//! token at once, before the next draws are started: that makes a cycle no longer unless the host's work is
//! longer than a pass, and then only by a draw.
//!
//! **When.** All that run, and do not wait for their drivers, take part in the pass with one row each; all
//! draws are ones that the device makes; nobody drafts, or has done so lately; no grammar was slow lately;
//! nobody could be admitted; and there is a free block for each that needs one. Else the next pass waits for
//! the host. Who joins does so one pass later than without.
//!
//! **What becomes of a row** is decided when the pass is over: it counts if its sequence still runs and its
//! text ends with the token that was fed. If it does not (the token ended the text, the client left, the
//! deadline came, a mask was late, a driver went back), nothing of the row is written or committed, and what
//! the pass wrote behind the text is overwritten by the pass that feeds the token again. Blocks that are
//! given back meanwhile are free when the pass is over ([`Blocks::hold`]). A token that no more than its last
//! one can follow has no row at all.
//!
//! **Errors** of such a pass are those of the sequences whose rows count: they are told when it would have
//! been submitted without.
//!
//! Texts, laws and told probabilities are those of the loop that waits, because a draw depends on its place
//! alone.
//!
//! A model that cannot take tokens from its own draws says so by default, and its passes wait for the host.
//!
//! Tests: `engine/tests/engine/overlap.rs` runs the loop over a device that works by itself (`device.rs`)
//! and checks which pass writes where. `planned_overlap.rs` does the same over passes by kernels.

use crate::blocks::Blocks;
use crate::error::EngineError;
use crate::model::flight::{Drawing, Flight};
use crate::model::{Feed, Model};
use crate::scheduler::pass::Work;
use crate::sequence::{Phase, Sequence};
use std::time::Instant;

/// A pass under way, and whose rows it computes.
pub(crate) struct Pass {
    pub(crate) works: Vec<Work>,
    /// The pass, or why there is none.
    pub(crate) flight: Result<Box<dyn Flight>, EngineError>,
    /// When it was submitted, or began behind another one.
    pub(crate) begun: Instant,
    /// How many tokens it was fed.
    pub(crate) tokens: usize,
    /// Whether masks are being looked for.
    pub(crate) asked: bool,
    /// Whether somebody would have fed drafts.
    pub(crate) drafted: bool,
    /// What is to be fed behind its draws, if that need not wait.
    pub(crate) lead: Option<Lead>,
    /// When it was over.
    pub(crate) landed: Option<Instant>,
}

/// A pass that could begin behind the draws of another one, in whose order these are.
pub(crate) struct Lead(pub(crate) Vec<Next>);

/// A token of which only the place is known.
pub(crate) struct Next {
    /// The identity of the sequence.
    pub(crate) sequence: u64,
    /// The number of the draw that brings it.
    pub(crate) ask: usize,
    /// Where it stands in its text.
    pub(crate) start: usize,
    pub(crate) table: Vec<u32>,
    pub(crate) scale: f64,
}

/// A pass that was begun behind draws.
pub(crate) struct Ahead {
    pub(crate) flight: Result<Box<dyn Flight>, EngineError>,
    /// When the draws were over.
    pub(crate) begun: Instant,
    rows: Vec<AheadRow>,
}

/// A row of a pass that was begun behind draws.
struct AheadRow {
    sequence: u64,
    /// How long the text is with the token that was fed.
    text: usize,
}

/// Who was there when somebody was last admitted, or could not be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Admitted {
    pub(crate) running: usize,
    pub(crate) waiting: usize,
    /// The identity of the next sequence.
    pub(crate) next: u64,
    /// After how many passes that was.
    pub(crate) step: u64,
}

impl Next {
    fn feed(&self) -> Feed<'_> {
        Feed {
            tokens: &[0],
            start: self.start,
            table: &self.table,
            rows: 1,
            parents: None,
            scale: self.scale,
        }
    }
}

impl Lead {
    /// Submits the pass behind these draws; `None` if the model cannot.
    pub(crate) fn submit(
        self,
        model: &mut dyn Model,
        blocks: &mut Blocks,
        drawing: &dyn Drawing,
    ) -> Option<Ahead> {
        let feeds: Vec<Feed<'_>> = self.0.iter().map(Next::feed).collect();
        let asks: Vec<usize> = self.0.iter().map(|next| next.ask).collect();
        let mut copies = blocks.take_copies().into_iter();
        let copied = copies.try_for_each(|round| model.copy_blocks(&round));
        let submitted = copied.and_then(|()| model.submit_after(drawing, &asks, &feeds));
        let flight = submitted.transpose()?;
        let row = |next: &Next| AheadRow {
            sequence: next.sequence,
            text: next.start + 1,
        };
        Some(Ahead {
            flight,
            begun: Instant::now(),
            rows: self.0.iter().map(row).collect(),
        })
    }
}

impl Ahead {
    /// Forgets the rows of these sequences: what they were fed is not what they drew.
    pub(crate) fn leave_out(&mut self, sequences: &[u64]) {
        for row in &mut self.rows {
            if sequences.contains(&row.sequence) {
                row.text = 0;
            }
        }
    }

    /// Whether any of its rows is one of these sequences'.
    pub(crate) fn is_wanted(&self, running: &[Sequence]) -> bool {
        running.iter().any(|sequence| self.row_of(sequence).is_some())
    }

    /// The sequences that go on from its rows.
    pub(crate) fn works(&self, running: &[Sequence]) -> Vec<Work> {
        let work = |(index, sequence): (usize, &Sequence)| {
            let first_row = self.row_of(sequence).filter(|_| sequence.is_ready())?;
            Some(Work {
                index,
                feed: 1,
                rows: 1,
                first_row,
            })
        };
        running.iter().enumerate().filter_map(work).collect()
    }

    /// How many tokens were fed.
    pub(crate) fn tokens(&self) -> usize {
        self.rows.len()
    }

    /// The row that follows the text of a sequence.
    fn row_of(&self, sequence: &Sequence) -> Option<usize> {
        let text = sequence.text.tokens.len();
        let draws =
            sequence.phase == Phase::Drawing && !sequence.report.closed && sequence.text.computed + 1 == text;
        let is_its = |row: &AheadRow| row.sequence == sequence.id.number && row.text == text;
        self.rows.iter().position(is_its).filter(|_| draws)
    }
}
