//! Passes that are begun after the draws of another one: when that is possible, and how the loop continues
//! from them.

use super::Core;
use crate::engine::ahead::{Admitted, Ahead, Lead, Next, Pass};
use crate::model::flight::Flight;
use crate::sampling::can_stay;
use crate::scheduler::pass::Work;
use crate::sequence::Sequence;

/// The number of passes after which waiting sequences that could not be admitted are reconsidered: the share
/// of another owner may have become too large.
const LOOKED_AT_EVERY: u64 = 16;

impl Core {
    /// Admits waiting sequences as far as there is room, and records which ones were present.
    pub(super) fn admit(&mut self) {
        self.scheduler.admit(&mut self.blocks, &self.config);
        self.admitted = self.present();
    }

    /// Returns the sequences that are present now.
    fn present(&self) -> Admitted {
        Admitted {
            running: self.scheduler.running.len(),
            waiting: self.scheduler.waiting.len(),
            next: self.next_sequence,
            step: self.stats.steps,
        }
    }

    /// Takes the pass that was begun after the last draws, if a sequence continues from one of its rows.
    pub(super) fn take_ahead(&mut self) -> Option<Ahead> {
        let is_wanted = |ahead: &Ahead| ahead.is_wanted(&self.scheduler.running);
        if !self.ahead.as_ref().is_some_and(is_wanted) {
            self.settle();
        }
        self.ahead.take()
    }

    /// Continues from a pass that was begun ahead; returns `None` if all sequences that needed its rows have
    /// ended, or wait for their grammars.
    pub(super) fn go_on(&mut self, ahead: Ahead) -> Option<Pass> {
        let works = ahead.works(&self.scheduler.running);
        if works.is_empty() {
            self.ahead = Some(ahead);
            self.settle();
            return None;
        }
        let mut drafted = false;
        for work in &works {
            let drafts = &mut self.scheduler.running[work.index].draft.drafts;
            drafted |= !drafts.is_empty();
            drafts.clear();
        }
        self.scheduler.go_along(&works);
        self.stats.steps_ahead += 1;
        self.meters.pass_tokens.observe(ahead.tokens() as f64);
        Some(Pass {
            asked: self.ask_for_masks(&works),
            works,
            tokens: ahead.tokens(),
            flight: ahead.flight,
            begun: ahead.begun,
            drafted,
            lead: None,
            landed: None,
        })
    }

    /// Returns the tokens to feed after the draws of a pass, with room for them; `None` if the next pass has
    /// to wait for the host.
    pub(super) fn lead(&mut self, pass: &Pass, flight: &dyn Flight) -> Option<Lead> {
        if !self.config.overlap || !flight.starts_draws() || pass.drafted || !self.is_steady(&pass.works) {
            return None;
        }
        let mut next = Vec::with_capacity(pass.works.len());
        for (ask, work) in pass.works.iter().enumerate() {
            let sequence = &mut self.scheduler.running[work.index];
            if sequence.remaining() <= 1 {
                // This token is its last one.
                continue;
            }
            let start = sequence.text.tokens.len();
            if !self.blocks.reserve(&mut sequence.text.table, start, start + 1) {
                return None;
            }
            next.push(Next {
                sequence: sequence.id.number,
                ask,
                start,
                table: sequence.text.table.blocks().to_vec(),
                scale: sequence.draw.warper.scale(),
            });
        }
        (!next.is_empty()).then_some(Lead(next))
    }

    /// Returns `true` if the next pass will have exactly the sequences of this one, with a plain token each.
    fn is_steady(&self, works: &[Work]) -> bool {
        let running = &self.scheduler.running;
        let has_model = self.draft_model.is_some();
        let is_plain_part = |work: &Work| {
            let sequence = &running[work.index];
            let drafts = has_model && sequence.request.speculation.model;
            work.rows == 1
                && sequence.grammar.cooldown == 0
                && !drafts
                && sequence.is_quiet()
                && can_stay(sequence)
        };
        let takes_part = |sequence: &&Sequence| !sequence.report.closed && !sequence.is_idle();
        works.len() == running.iter().filter(takes_part).count()
            && works.iter().all(is_plain_part)
            && self.admits_nobody()
    }

    /// Returns `true` if no sequence waits, or none that is known to be admissible.
    fn admits_nobody(&self) -> bool {
        let waits = self.scheduler.waiting.iter().any(|sequence| !sequence.is_idle());
        let now = self.present();
        let looked_at = now.step < self.admitted.step + LOOKED_AT_EVERY;
        !waits
            || looked_at
                && now
                    == Admitted {
                        step: now.step,
                        ..self.admitted
                    }
    }

    /// Waits for the pass that was begun ahead and whose rows are not needed. Its result is ignored.
    pub(crate) fn settle(&mut self) {
        if let Some(Ahead {
            flight: Ok(mut flight),
            ..
        }) = self.ahead.take()
        {
            let _ = flight.wait();
            self.stats.steps_unused += 1;
        }
        self.blocks.land();
    }
}
