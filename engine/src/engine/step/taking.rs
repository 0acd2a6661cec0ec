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
            // A sequence that sits out feeds its last token again for the row that could not be drawn from.
            let again = usize::from(work.rows > 0 && written.is_none());
            let mut computed = sequence.text.computed + work.feed - again;
            let second = sequence.amateur.as_ref().map(|amateur| amateur.computed);
            let mut second = second.map(|computed| computed + work.amateur - again.min(work.amateur));
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
                moves.extend(moved(sequence, (computed, second), accepted));
                computed += accepted.len();
                second = second.map(|computed| computed + accepted.len());
                drew.extend(
                    event(sequence, written.drawn).map(|event| (sequence.id.job, sequence.id.branch, event)),
                );
            }
            sequence.commit((computed, second), left.as_ref().map(|left| &left[..]), blocks);
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
            let sequence = find(moved.sequence)?;
            let table = match moved.is_second {
                true => &sequence.amateur.as_ref()?.table,
                false => &sequence.text.table,
            };
            Some(SlotMoves {
                table: table.blocks(),
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
    /// `true` if the slots are those of its second text.
    is_second: bool,
    start: usize,
    slots: Vec<usize>,
}

/// Returns the slots of the text, and of the second text if there is one, that have to move: the drafts are
/// stored after each text in the order of the tree, and it continues with a path of them.
fn moved(
    sequence: &Sequence,
    (start, second): (usize, Option<usize>),
    accepted: &[NodeId],
) -> impl Iterator<Item = Moved> {
    let lies_right = accepted.iter().enumerate().all(|(number, &node)| number == node);
    let starts = [Some((start, false)), second.map(|start| (start, true))];
    let starts = starts.into_iter().flatten().filter(move |_| !lies_right);
    starts.map(|(start, is_second)| Moved {
        sequence: sequence.id.number,
        is_second,
        start,
        slots: accepted.iter().map(|node| start + node).collect(),
    })
}

/// Returns the number of prompt tokens that a sequence was fed.
fn prompt_part(sequence: &Sequence, work: &Work) -> u64 {
    let end = (sequence.text.computed + work.feed).min(sequence.request.prompt.tokens.len());
    end.saturating_sub(sequence.text.computed) as u64
}
