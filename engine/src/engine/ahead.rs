//! A pass that is submitted before the tokens that it feeds are known.
//!
//! ```text
//!   device   pass i ─ draw i ┬ pass i+1 ──────────────────────── draw i+1 ┬ pass i+2 ─ …
//!                            ▼                                     ▲      ▼
//!   host               tokens i ─ write, tell ─ grammar, masks ────┘ start the draws, submit pass i+2, wait
//! ```
//!
//! For a sequence that draws a plain token, the next pass needs only that token: if the device draws, the
//! token is already there. So pass `i+1` is submitted directly after the draws of pass `i`, and the host's
//! work on tokens `i` adds no time as long as it takes less than a pass. Clients receive a token at once,
//! before the next draws are started: this lengthens a cycle only if the host's work is longer than a pass,
//! and then only by a draw.
//!
//! **Conditions.** All sequences that run, and do not wait for their drivers, take part in the pass with one
//! row each; all draws can be made by the device; no sequence drafts, or has done so recently; no grammar was
//! slow recently; no sequence could be admitted; and there is a free block for each sequence that needs one.
//! Otherwise the next pass waits for the host. A new sequence joins one pass later than without this.
//!
//! **The use of a row** is decided when the pass is over: it counts if its sequence still runs and its text
//! ends with the token that was fed. Otherwise (the token ended the text, the client left, the deadline
//! passed, a mask was late, a driver rewound the branch), nothing of the row is written or committed, and
//! what the pass wrote after the text is overwritten by the pass that feeds the token again. Blocks that are
//! released meanwhile become free when the pass is over ([`Blocks::hold`]). A token that only the last token
//! of the answer can follow has no row.
//!
//! **Errors** of such a pass belong to the sequences whose rows count: they are reported when the pass would
//! otherwise have been submitted.
//!
//! Texts, laws and reported probabilities are the same as those of the loop that waits, because a draw
//! depends only on its place.
//!
//! A model is by default assumed unable to take tokens from its own draws, and its passes wait for the host.
//!
//! Tests: `engine/tests/engine/overlap.rs` runs the loop over a device that works asynchronously
//! (`device.rs`) and checks which pass writes where. `planned_overlap.rs` does the same over passes by
//! kernels.

use crate::blocks::Blocks;
use crate::error::EngineError;
use crate::model::flight::{Drawing, Flight};
use crate::model::{Feed, Model};
use crate::scheduler::pass::Work;
use crate::sequence::{Phase, Sequence};
use std::time::Instant;

/// A pass in progress, and the sequences whose rows it computes.
pub(crate) struct Pass {
    pub(crate) works: Vec<Work>,
    /// The pass, or the reason why there is none.
    pub(crate) flight: Result<Box<dyn Flight>, EngineError>,
    /// The time at which it was submitted, or began after another one.
    pub(crate) begun: Instant,
    /// The number of tokens fed.
    pub(crate) tokens: usize,
    /// `true` if masks are being computed.
    pub(crate) asked: bool,
    /// `true` if a sequence would have fed drafts.
    pub(crate) drafted: bool,
    /// The tokens to feed after its draws, if that need not wait.
    pub(crate) lead: Option<Lead>,
    /// The time at which the pass was over.
    pub(crate) landed: Option<Instant>,
}

/// The feeds of a pass that can begin after the draws of another one, in the order of those draws.
pub(crate) struct Lead(pub(crate) Vec<Next>);

/// A token of which only the position is known.
pub(crate) struct Next {
    /// The identity of the sequence.
    pub(crate) sequence: u64,
    /// The number of the draw that produces the token.
    pub(crate) ask: usize,
    /// The position of the token in its text.
    pub(crate) start: usize,
    pub(crate) table: Vec<u32>,
    pub(crate) scale: f64,
}

/// A pass that was begun after draws.
pub(crate) struct Ahead {
    pub(crate) flight: Result<Box<dyn Flight>, EngineError>,
    /// The time at which the draws were over.
    pub(crate) begun: Instant,
    rows: Vec<AheadRow>,
}

/// A row of a pass that was begun after draws.
struct AheadRow {
    sequence: u64,
    /// The length of the text including the token that was fed.
    text: usize,
}

/// The sequences present when the scheduler last tried to admit one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Admitted {
    pub(crate) running: usize,
    pub(crate) waiting: usize,
    /// The identity of the next sequence.
    pub(crate) next: u64,
    /// The number of passes before that.
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
    /// Submits the pass after these draws; returns `None` if the model cannot do that.
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
    /// Discards the rows of these sequences: they were not fed the tokens that they drew.
    pub(crate) fn leave_out(&mut self, sequences: &[u64]) {
        for row in &mut self.rows {
            if sequences.contains(&row.sequence) {
                row.text = 0;
            }
        }
    }

    /// Returns `true` if any of its rows belongs to one of these sequences.
    pub(crate) fn is_wanted(&self, running: &[Sequence]) -> bool {
        running.iter().any(|sequence| self.row_of(sequence).is_some())
    }

    /// Returns the work of the sequences that continue from its rows.
    pub(crate) fn works(&self, running: &[Sequence]) -> Vec<Work> {
        let work = |(index, sequence): (usize, &Sequence)| {
            let first_row = self.row_of(sequence).filter(|_| sequence.is_ready())?;
            Some(Work {
                index,
                feed: 1,
                rows: 1,
                first_row,
                ..Work::default()
            })
        };
        running.iter().enumerate().filter_map(work).collect()
    }

    /// Returns the number of tokens that were fed.
    pub(crate) fn tokens(&self) -> usize {
        self.rows.len()
    }

    /// Returns the row that follows the text of a sequence.
    fn row_of(&self, sequence: &Sequence) -> Option<usize> {
        let text = sequence.text.tokens.len();
        let draws =
            sequence.phase == Phase::Drawing && !sequence.report.closed && sequence.text.computed + 1 == text;
        let is_its = |row: &AheadRow| row.sequence == sequence.id.number && row.text == text;
        self.rows.iter().position(is_its).filter(|_| draws)
    }
}
