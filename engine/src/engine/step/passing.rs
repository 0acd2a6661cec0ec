//! The stages of a pass, from the sequences that are due to the rows that can be drawn from.

use super::Core;
use crate::engine::ahead::Pass;
use crate::engine::grammar_task::Goal;
use crate::error::EngineError;
use crate::model::Feed;
use crate::model::flight::{Flight, Landed};
use crate::scheduler::pass::Work;
use crate::sequence::{Phase, Sequence};
use crate::speculation::draft::parents;
use crate::speculation::policy::Worked;
use std::time::{Duration, Instant};

/// The time that the loop sleeps while all sequences sit out, before it checks for new requests.
const IDLE: Duration = Duration::from_millis(1);

/// The number of rows of a pass up to which masks are computed before the model runs, rather than
/// concurrently.
const FEW_ROWS: usize = 8;

impl Core {
    /// Plans a pass and starts it; if the running sequences wait for grammars, waits for those instead.
    pub(super) fn begin(&mut self) -> Option<Pass> {
        let works = self.scheduler.schedule(&mut self.blocks, &self.config, self.pace);
        if works.is_empty() {
            if !self.is_idle() {
                self.grammar_tasks.wait(&mut self.scheduler, IDLE);
            }
            return None;
        }
        let asked = self.ask_for_masks(&works);
        let tokens = works.iter().map(Work::tokens).sum();
        self.meters.pass_tokens.observe(tokens as f64);
        let begun = Instant::now();
        Some(Pass {
            flight: self.submit(&works),
            works,
            begun,
            tokens,
            asked,
            drafted: false,
            lead: None,
            landed: None,
        })
    }

    /// Lets the draft model extend the drafts of sequences whose grammars are quick, as far as that pays;
    /// returns how long it took.
    pub(super) fn propose(&mut self) -> Duration {
        let Some(model) = &mut self.draft_model else {
            return Duration::ZERO;
        };
        let begun = Instant::now();
        let decodes = |sequence: &Sequence| {
            let is_quick = sequence.grammar.cooldown == 0 && sequence.grammar.masks.is_none();
            let draws = sequence.phase == Phase::Drawing && sequence.unfed() == 1 && sequence.is_ready();
            // A draft model reads a single text.
            let drafts = sequence.request.speculation.model && !sequence.is_asked();
            drafts && draws && is_quick
        };
        self.scheduler.plan_model(decodes);
        let running = self.scheduler.running.iter_mut();
        let mut for_model: Vec<_> = running.filter(|sequence| sequence.draft.reach > 0).collect();
        let sequences = for_model.len();
        let read = for_model
            .iter_mut()
            .map(|it| std::mem::replace(&mut it.draft.record.is_read, true));
        let readings = read.filter(|is_read| !is_read).count();
        let (target, grace) = (&*self.model, self.config.mask_grace);
        match model.propose(target, &mut for_model, &self.grammar_tasks, grace) {
            Ok(rounds) => {
                let took = match &self.counted {
                    Some(counted) => counted(Worked::DraftPass(sequences)) * rounds as u32,
                    None => begun.elapsed(),
                };
                self.scheduler.policy.drafted((rounds, readings), took);
            }
            Err(_) => {
                // Drafts are optional; a model that fails once would fail again.
                self.stats.draft_model_failed = true;
                self.draft_model = None;
            }
        }
        begun.elapsed()
    }

    /// Starts tasks for the masks of all rows that are not known yet; returns `true` if there are any to wait
    /// for.
    pub(super) fn ask_for_masks(&mut self, works: &[Work]) -> bool {
        let running = &mut self.scheduler.running;
        let mut asked = false;
        let few = works.iter().map(|work| work.rows).sum::<usize>() <= FEW_ROWS;
        for work in works.iter().filter(|work| work.rows > 0) {
            let sequence = &mut running[work.index];
            let is_masked = sequence.is_masked();
            asked |= is_masked;
            let is_known = sequence.grammar.masks.is_some()
                || few && is_masked && self.grammar_tasks.find_briefly(sequence);
            if is_masked && !is_known {
                self.grammar_tasks.start(sequence, Goal::Masks);
            }
        }
        asked
    }

    fn submit(&mut self, works: &[Work]) -> Result<Box<dyn Flight>, EngineError> {
        let running = &self.scheduler.running;
        let own = works.iter().filter(|work| work.feed > 0);
        let own = own.map(|work| Fed::of_text(&running[work.index], work));
        let second = works.iter().filter(|work| work.amateur > 0);
        let second = second.filter_map(|work| Fed::of_amateur(&running[work.index], work));
        let fed: Vec<Fed<'_>> = own.chain(second).collect();
        let feeds: Vec<Feed<'_>> = fed.iter().map(Fed::feed).collect();
        let mut copies = self.blocks.take_copies().into_iter();
        let copied = copies.try_for_each(|round| self.model.copy_blocks(&round));
        copied?;
        self.model.submit(&feeds)
    }

    /// Waits briefly for the masks of a pass; first for the pass itself, unless another one is to begin after
    /// its draws.
    pub(super) fn land(&mut self, pass: &mut Pass) -> Result<Box<dyn Flight>, EngineError> {
        let nothing: Result<Box<dyn Flight>, EngineError> = Ok(Box::<Landed>::default());
        let mut flight = std::mem::replace(&mut pass.flight, nothing)?;
        pass.lead = self.lead(pass, &*flight);
        if pass.lead.is_none() {
            flight.wait()?;
            pass.landed = Some(Instant::now());
            self.blocks.land();
            self.time(pass);
        }
        let begun = Instant::now();
        let grace = self.grace();
        self.grammar_tasks.gather(&mut self.scheduler, grace);
        if pass.asked && pass.lead.is_none() {
            self.meters.mask_waits.observe_time(begun.elapsed());
        }
        Ok(flight)
    }

    /// Records how long a finished pass took.
    pub(super) fn time(&mut self, pass: &Pass) {
        let Some(landed) = pass.landed else {
            return;
        };
        self.last_pass = landed.saturating_duration_since(pass.begun);
        self.pace.observe(pass.tokens, self.last_pass);
        self.meters.passes.observe_time(self.last_pass);
    }
}

/// What a sequence feeds of one of its texts.
struct Fed<'a> {
    tokens: Vec<u32>,
    start: usize,
    table: &'a [u32],
    rows: usize,
    parents: Option<Vec<u16>>,
    scale: f64,
}

impl<'a> Fed<'a> {
    fn of_text(sequence: &'a Sequence, work: &Work) -> Self {
        let start = sequence.text.computed;
        let tokens = sequence.text.tokens[start..start + work.feed].to_vec();
        Self::with_drafts(sequence, work, (tokens, start, sequence.text.table.blocks()))
    }

    fn of_amateur(sequence: &'a Sequence, work: &Work) -> Option<Self> {
        let amateur = sequence.amateur.as_ref()?;
        let tokens = amateur.next(sequence.generated(), work.amateur);
        Some(Self::with_drafts(
            sequence,
            work,
            (tokens, amateur.computed, amateur.table.blocks()),
        ))
    }

    fn with_drafts(sequence: &Sequence, work: &Work, text: (Vec<u32>, usize, &'a [u32])) -> Self {
        let (mut tokens, start, table) = text;
        let mut tree = None;
        if work.rows > 0 {
            tokens.extend(sequence.draft.drafts.iter().map(|draft| draft.token));
            tree = parents(&sequence.draft.drafts);
        }
        Fed {
            tokens,
            start,
            table,
            rows: work.rows,
            parents: tree,
            scale: sequence.draw.warper.scale(),
        }
    }

    fn feed(&self) -> Feed<'_> {
        Feed {
            tokens: &self.tokens,
            start: self.start,
            table: self.table,
            rows: self.rows,
            parents: self.parents.as_deref(),
            scale: self.scale,
        }
    }
}
