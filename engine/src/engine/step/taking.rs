//! The results of a pass: tokens become text, blocks are committed, and events go to drivers.

use super::Core;
use crate::engine::ahead::Pass;
use crate::error::EngineError;
use crate::model::SlotMoves;
use crate::model::flight::Flight;
use crate::request::driver::BranchEvent;
use crate::sampling::write::Written;
use crate::scheduler::pass::Work;
use crate::sequence::{Phase, Sequence};
use lexiform_law::draft::NodeId;
use std::time::Instant;

impl Core {
    /// Draws from a pass, and continues with the drawn tokens.
    pub(super) fn sample(&mut self, pass: &mut Pass, flight: &mut dyn Flight) -> Result<(), EngineError> {
        let asked = Instant::now();
        let was_over = pass.landed.is_some();
        let written = self.write(pass, flight);
        if written.is_err() {
            // Nothing is released while a pass may write there.
            let _ = flight.wait();
        }
        if !was_over {
            self.time(pass);
        }
        self.take(&pass.works, written?);
        // The time before the end of the pass was not spent on drawing.
        let begun = pass.landed.map_or(asked, |landed| landed.max(asked));
        self.meters.draws.observe_time(begun.elapsed());
        Ok(())
    }

    /// Takes what was written for each work of a pass.
    fn take(&mut self, works: &[Work], written: Vec<Option<Written>>) {
        let mut drew = Vec::with_capacity(works.len());
        let mut moves = Vec::new();
        for (work, written) in works.iter().zip(written) {
            let sequence = &mut self.scheduler.running[work.index];
            self.stats.prefilled_tokens += prompt_part(sequence, work);
            let mut computed = sequence.text.computed + work.feed;
            if work.rows > 0 && written.is_none() {
                // The sequence sits out, and its last token is fed again for the row that could not be drawn
                // from.
                computed -= 1;
            }
            let (blocks, mut left) = (&mut self.blocks, None);
            if let Some(written) = written {
                written.count(&mut self.stats);
                if let Some(gap) = written.gap {
                    self.meters.gaps.observe_time(gap);
                }
                left = written.left;
                let accepted = if left.is_some() {
                    &[][..]
                } else {
                    &written.accepted
                };
                moves.extend(moved(sequence, computed, accepted));
                computed += accepted.len();
                drew.extend(
                    event(sequence, written.drawn).map(|event| (sequence.id.job, sequence.id.branch, event)),
                );
            }
            if left.is_none() {
                // The last token is always fed again for its row, including an accepted draft that had none.
                computed = computed.min(sequence.text.tokens.len() - 1);
            }
            sequence.text.computed = computed;
            let text = left.as_ref().unwrap_or(&sequence.text.tokens);
            blocks.commit(&mut sequence.text.table, text, computed);
            if let Some(left) = &left {
                // What the failed attempts computed is cached by its tokens; this attempt continues after the
                // common prefix.
                sequence.text.computed = common(left, &sequence.text.tokens).min(computed);
                blocks.rewind(&mut sequence.text.table, sequence.text.computed);
            }
        }
        self.compact(&moves);
        for (job, branch, event) in drew {
            self.tell(job, branch, event);
        }
        self.tell_read();
    }

    /// Moves the keys and values of accepted drafts to the slots where the text continues.
    fn compact(&mut self, moves: &[Moved]) {
        if moves.is_empty() {
            return;
        }
        let running = &self.scheduler.running;
        let find = |id: u64| running.iter().find(|sequence| sequence.id.number == id);
        let slots = moves.iter().filter_map(|moved| {
            Some(SlotMoves {
                table: find(moved.sequence)?.text.table.blocks(),
                start: moved.start,
                slots: &moved.slots,
            })
        });
        let slots: Vec<SlotMoves<'_>> = slots.collect();
        let Err(error) = self.model.move_slots(&slots) else {
            return;
        };
        let is_moved =
            |sequence: &&mut Sequence| moves.iter().any(|moved| moved.sequence == sequence.id.number);
        let running = self.scheduler.running.iter_mut();
        running
            .filter(is_moved)
            .for_each(|sequence| sequence.fail(error.clone()));
    }
}

/// Returns the event of a pass that brought `drawn` tokens. Given tokens may take several passes.
fn event(sequence: &Sequence, drawn: usize) -> Option<BranchEvent> {
    if sequence.report.closed {
        return None;
    }
    match &sequence.phase {
        Phase::Scoring { given } => given.is_empty().then_some(BranchEvent::Scored),
        Phase::Ranking(_) => (!sequence.draw.ranked.is_empty()).then_some(BranchEvent::Ranked),
        Phase::Weighing { .. } => (!sequence.draw.weighed.is_empty()).then_some(BranchEvent::Weighed),
        _ => (drawn > 0).then_some(BranchEvent::Drew),
    }
}

/// Accepted drafts that are not in the slots where the text continues.
struct Moved {
    sequence: u64,
    start: usize,
    slots: Vec<usize>,
}

/// Returns the slots that have to move: the drafts are stored after the text in the order of the tree, and it
/// continues with a path of them.
fn moved(sequence: &Sequence, start: usize, accepted: &[NodeId]) -> Option<Moved> {
    let lies_right = accepted.iter().enumerate().all(|(number, &node)| number == node);
    (!lies_right).then(|| Moved {
        sequence: sequence.id.number,
        start,
        slots: accepted.iter().map(|node| start + node).collect(),
    })
}

/// Returns the length of the common prefix of two texts, without the last token of the second one, whose row
/// is needed.
fn common(left: &[u32], text: &[u32]) -> usize {
    let same = left.iter().zip(text).take_while(|(one, other)| one == other);
    same.count().min(text.len() - 1)
}

/// Returns the number of prompt tokens that a sequence was fed.
fn prompt_part(sequence: &Sequence, work: &Work) -> u64 {
    let end = (sequence.text.computed + work.feed).min(sequence.request.prompt.tokens.len());
    end.saturating_sub(sequence.text.computed) as u64
}
