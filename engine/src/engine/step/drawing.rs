//! Draws what every sequence writes from the rows of a pass.
//!
//! ```text
//!   sequences ─┬─ whose rows can stay ──► flight: draw ─┬─ drawn ─────────────► written
//!              └─ all others ───────────► flight: rows ◄┘ could not be drawn
//!                                                └─► law, on several threads ──► written
//! ```
//!
//! A device that draws copies some bytes per row to memory; features that need the row itself (the global
//! law, filters that use the whole law, tokens that a draft model sampled, numbers about other tokens) copy
//! the row, and so do penalties and filters that the device does not support. If the next pass is fed from
//! the device's draws ([`ahead`](crate::engine::ahead)), it is submitted between the draws and the wait for
//! them.

use super::Core;
use crate::blocks::Blocks;
use crate::engine::ahead::{Ahead, Lead, Pass};
use crate::engine::draft_model::DraftModel;
use crate::engine::grammar_task::GrammarTasks;
use crate::error::EngineError;
use crate::grammar::masks::Bounds;
use crate::model::Model;
use crate::model::flight::{Ask, Flight};
use crate::model::logits::{Logits, Row};
use crate::request::AmateurRows;
use crate::request::law::masks_before_filters;
use crate::sampling::crew;
use crate::sampling::inquiry::Inquiry;
use crate::sampling::observed::{self, LIKELIEST, Turn};
use crate::sampling::write::{Writer, Written};
use crate::sampling::{Columns, Found, Likely, can_stay, not_a_law};
use crate::scheduler::pass::Work;
use crate::sequence::Sequence;
use crate::sequence::past::Counted;
use crate::speculation::draft::{Draft, path};
use lexiform::Mask;
use lexiform_law::{Allowed, Contrast, Drawn, Seeded};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

/// A sequence that can be drawn for.
struct Task<'a> {
    /// The index of its work.
    number: usize,
    sequence: &'a mut Sequence,
    /// The indices of its rows in the pass.
    rows: Range<usize>,
    /// The indices of the rows of its second text, if it has one.
    amateur_rows: Range<usize>,
    /// The rows of the draft model, if those of the sequence are contrasted with them.
    draft_rows: Vec<Vec<f32>>,
    /// The tokens allowed at each row, if there is a grammar.
    masks: Option<Vec<Bounds>>,
    /// The tokens that the penalties of each row concern, if there are penalties.
    counted: Vec<Counted>,
    /// The token that the device drew for each row that has one, if it drew them all.
    drawn: Option<Vec<Option<Drawn>>>,
    /// The likeliest tokens of its first rows, if the device drew and they are learned.
    likely: Vec<Likely>,
}

/// Sequences that are drawn for one after the other, each with its rows.
type Bundle<'a> = Vec<(Task<'a>, Vec<Row<'a>>)>;

impl Core {
    /// Draws for all sequences that have rows and know what is allowed there; returns what was written for
    /// each.
    ///
    /// Sequences under the global law that share a trie are drawn one after the other: the text of a seed
    /// must not depend on which thread was faster.
    pub(super) fn write(
        &mut self,
        pass: &mut Pass,
        flight: &mut dyn Flight,
    ) -> Result<Vec<Option<Written>>, EngineError> {
        let mut tasks = tasks(&mut self.scheduler.running, &pass.works);
        if read_by_draft_model(&mut self.draft_model, &mut tasks) {
            self.stats.draft_model_failed = true;
        }
        let rows = pass.works.iter().map(|work| work.rows).sum();
        let turn = Turn::new(self.stats.steps, rows);
        let mut device = Device {
            model: &mut *self.model,
            blocks: &mut self.blocks,
            ahead: &mut self.ahead,
        };
        device.draw(pass, flight, &mut tasks)?;
        if !device.is_ahead() {
            find_likely(flight, &mut tasks, turn);
        }
        let works = &pass.works;
        let undrawn = tasks.iter().filter(|task| task.drawn.is_none());
        let wanted: Vec<usize> = undrawn.flat_map(|task| task.rows.clone()).collect();
        let mut logits = match wanted.is_empty() {
            true => Logits::default(),
            false => flight.rows(&wanted)?,
        };
        for row in logits.rows_mut() {
            self.columns.clean(row);
        }
        contrast(flight, &mut tasks, &mut logits, &self.columns)?;
        let is_watched = tasks.iter().any(|task| task.sequence.is_watched());
        if is_watched {
            let aside = ask_monitors(&mut self.grammar_tasks, tasks, &logits, &self.columns);
            let grace = self.grace();
            self.grammar_tasks.gather(&mut self.scheduler, grace);
            tasks = rejoined(&mut self.scheduler.running, aside);
        }
        let threads = crew::threads(self.config.draw_threads, logits.numbers());
        let writer = Writer {
            vocabulary: &self.vocabulary,
            turn,
        };
        let bundles = crew::each(bundles(tasks, &logits, &self.columns), threads, |bundle| {
            let write = |(task, rows): (Task<'_>, Vec<Row<'_>>)| {
                let found = match &task.drawn {
                    None => Found::Rows(&rows),
                    Some(drawn) => Found::Drawn {
                        drawn,
                        likely: &task.likely,
                    },
                };
                let written = writer.write_on(task.sequence, found, task.masks.as_deref());
                (task.number, written)
            };
            bundle.into_iter().map(write).collect::<Vec<_>>()
        });
        let mut written: Vec<Option<Written>> = works.iter().map(|_| None).collect();
        for (number, what) in bundles.into_iter().flatten() {
            written[number] = Some(what);
        }
        Ok(written)
    }
}

/// Returns the sequences of a pass that have rows and know what is allowed there.
fn tasks<'a>(running: &'a mut [Sequence], works: &[Work]) -> Vec<Task<'a>> {
    let mut tasks = Vec::with_capacity(works.len());
    let mut left = works.iter().enumerate().peekable();
    for (index, sequence) in running.iter_mut().enumerate() {
        let Some((number, work)) = left.next_if(|(_, work)| work.index == index) else {
            continue;
        };
        if work.rows == 0 || sequence.report.closed {
            continue;
        }
        let masks = sequence.grammar.masks.take();
        if sequence.is_masked() && masks.is_none() {
            continue;
        }
        tasks.push(Task {
            number,
            sequence,
            rows: work.all_rows(),
            amateur_rows: work.all_amateur_rows(),
            draft_rows: Vec::new(),
            masks,
            counted: Vec::new(),
            drawn: None,
            likely: Vec::new(),
        });
    }
    tasks
}

/// The model, which draws and may take the next pass from its own draws.
struct Device<'a> {
    model: &'a mut dyn Model,
    blocks: &'a mut Blocks,
    ahead: &'a mut Option<Ahead>,
}

impl Device<'_> {
    /// Returns `true` if the next pass has begun: results that were not requested would wait for its end.
    fn is_ahead(&self) -> bool {
        self.ahead.is_some()
    }

    /// Draws from a pass, as far as its flight does that, and begins the next one if the host need not see
    /// the draws before that. The pass is then over.
    fn draw(
        &mut self,
        pass: &mut Pass,
        flight: &mut dyn Flight,
        tasks: &mut [Task<'_>],
    ) -> Result<(), EngineError> {
        for task in tasks.iter_mut().filter(|task| task.is_penalised()) {
            task.counted = (0..task.rows.len()).map(|row| task.counted_before(row)).collect();
        }
        // A sequence that sits out feeds its last token again.
        let is_led = tasks.len() == pass.works.len() && !tasks.iter().any(Task::is_narrowed);
        if let Some(lead) = pass.lead.take().filter(|_| is_led)
            && self.draw_and_lead(pass, flight, tasks, lead)?
        {
            return Ok(());
        }
        if pass.landed.is_none() {
            flight.wait()?;
            self.land(pass);
        }
        match flight.draws() {
            true => draw(flight, tasks),
            false => Ok(()),
        }
    }

    /// Starts the draws and the next pass after them, and waits for the draws; returns `true` if they could
    /// be started.
    fn draw_and_lead(
        &mut self,
        pass: &mut Pass,
        flight: &mut dyn Flight,
        tasks: &mut [Task<'_>],
        lead: Lead,
    ) -> Result<bool, EngineError> {
        let asks: Vec<Ask<'_>> = tasks.iter().flat_map(Task::asks).collect();
        let Some(mut drawing) = flight.start_draw(&asks)? else {
            return Ok(false);
        };
        *self.ahead = lead.submit(self.model, self.blocks, &*drawing);
        let drawn = drawing.wait();
        self.land(pass);
        let undrawn = hand_out(tasks, drawn?);
        if let (Some(ahead), Some(landed)) = (self.ahead.as_mut(), pass.landed) {
            ahead.begun = landed;
            ahead.leave_out(&undrawn);
        }
        Ok(true)
    }

    /// Records that a pass is over, and frees the blocks that it could write to; the next pass may already
    /// be running.
    fn land(&mut self, pass: &mut Pass) {
        pass.landed = Some(Instant::now());
        self.blocks.land();
        if self.ahead.is_some() {
            self.blocks.hold();
        }
    }
}

/// Gives each task of one row the token that was drawn from it; returns the sequences whose rows have to be
/// inspected.
fn hand_out(tasks: &mut [Task<'_>], drawn: Vec<Option<Drawn>>) -> Vec<u64> {
    let mut undrawn = Vec::new();
    for (task, drawn) in tasks.iter_mut().zip(drawn) {
        if drawn.is_none() {
            undrawn.push(task.sequence.id.number);
        }
        task.drawn = drawn.map(|drawn| vec![Some(drawn)]);
    }
    undrawn
}

/// Requests the draws of all sequences that depend on nothing else from the device.
fn draw(flight: &mut dyn Flight, tasks: &mut [Task<'_>]) -> Result<(), EngineError> {
    let plain = tasks.iter().filter(|task| task.can_stay());
    let asks: Vec<Ask<'_>> = plain.flat_map(Task::asks).collect();
    if asks.is_empty() {
        return Ok(());
    }
    let rows: Vec<usize> = asks.iter().map(|ask| ask.row).collect();
    let drawn = flight.draw(&asks)?;
    let mut by_row: HashMap<usize, Option<Drawn>> = rows.into_iter().zip(drawn).collect();
    for task in tasks.iter_mut().filter(|task| task.can_stay()) {
        // A row without an ask is not drawn from. One that could not be drawn from has to be inspected.
        let drawn: Vec<_> = task.rows.clone().map(|row| by_row.remove(&row)).collect();
        let is_whole = drawn.iter().all(|drawn| !matches!(drawn, Some(None)));
        task.drawn = is_whole.then(|| drawn.into_iter().map(Option::flatten).collect());
    }
    Ok(())
}

/// Requests the likeliest tokens of the rows that stores learn from, of the sequences that the device drew
/// for. A row that is no distribution teaches nothing; a device that has failed fails the next request, too.
fn find_likely(flight: &mut dyn Flight, tasks: &mut [Task<'_>], turn: Turn) {
    let wanted = |task: &Task<'_>| match task.drawn {
        Some(_) => task.rows.start..task.rows.start + observed::wanted(task.sequence, turn),
        None => 0..0,
    };
    let rows: Vec<usize> = tasks.iter().flat_map(wanted).collect();
    let found = match rows.is_empty() {
        true => Ok(Vec::new()),
        false => flight.top(&rows, LIKELIEST),
    };
    let mut found = found.unwrap_or_default().into_iter();
    for task in tasks.iter_mut() {
        let likely = found.by_ref().take(wanted(task).len());
        let chances = |row: Vec<(u32, f64)>| {
            row.into_iter()
                .map(|(token, log)| (token, log.exp() as f32))
                .collect()
        };
        task.likely = likely.map(chances).collect();
    }
}

/// Lets the draft model read the texts that are contrasted with its rows. If it fails, so do their sequences,
/// which have no rows without it, and it is dropped; returns `true` if it does.
fn read_by_draft_model(model: &mut Option<DraftModel>, tasks: &mut Vec<Task<'_>>) -> bool {
    let is_read = |task: &&mut Task<'_>| {
        let with = task.sequence.request.sampling.contrast.as_ref();
        with.is_some_and(|with| with.amateur == AmateurRows::DraftModel)
    };
    let mut read: Vec<&mut Task<'_>> = tasks.iter_mut().filter(is_read).collect();
    if read.is_empty() {
        return false;
    }
    let mut sequences: Vec<&mut Sequence> = read.iter_mut().map(|task| &mut *task.sequence).collect();
    let rows = match model {
        Some(model) => model.rows(&mut sequences),
        None => Err(EngineError::Model("the draft model has failed".to_owned())),
    };
    match rows {
        Ok(rows) => {
            for (task, rows) in read.into_iter().zip(rows) {
                task.draft_rows = rows;
            }
            false
        }
        Err(error) => {
            sequences
                .into_iter()
                .for_each(|sequence| sequence.fail(error.clone()));
            tasks.retain(|task| !task.sequence.report.closed);
            *model = None;
            true
        }
    }
}

/// Combines the rows of the sequences whose rows are a contrast with those of their second texts, or of the
/// draft model. `logits` has the rows of the tasks that the device did not draw for, one after the other.
fn contrast(
    flight: &mut dyn Flight,
    tasks: &mut [Task<'_>],
    logits: &mut Logits,
    columns: &Columns,
) -> Result<(), EngineError> {
    let wanted: Vec<usize> = tasks.iter().flat_map(|task| task.amateur_rows.clone()).collect();
    if wanted.is_empty() && tasks.iter().all(|task| task.draft_rows.is_empty()) {
        return Ok(());
    }
    let mut amateurs = match wanted.is_empty() {
        true => Logits::default(),
        false => flight.rows(&wanted)?,
    };
    amateurs.rows_mut().for_each(|row| columns.clean(row));
    let mut amateurs = (0..wanted.len()).map(|row| amateurs.row(row));
    let mut rows = logits.changed_rows_mut();
    for task in tasks.iter_mut().filter(|task| task.drawn.is_none()) {
        let experts = rows.by_ref().take(task.rows.len());
        let contrast = task.sequence.request.sampling.contrast.as_ref();
        let contrast = contrast.map(|with| with.contrast);
        match (contrast, task.draft_rows.is_empty()) {
            (Some(contrast), true) => task.combine(contrast, experts, &mut amateurs)?,
            (Some(contrast), false) => {
                let rows = std::mem::take(&mut task.draft_rows);
                task.combine(contrast, experts, rows.iter().map(Vec::as_slice))?;
            }
            (None, _) => experts.for_each(drop),
        }
    }
    Ok(())
}

/// A task without its sequence, while that is elsewhere.
struct Aside {
    number: usize,
    /// The identity of the sequence.
    sequence: u64,
    rows: Range<usize>,
    amateur_rows: Range<usize>,
    masks: Option<Vec<Bounds>>,
    drawn: Option<Vec<Option<Drawn>>>,
    likely: Vec<Likely>,
}

/// Starts inquiries of the monitors of the sequences that wait for them.
fn ask_monitors(
    grammar_tasks: &mut GrammarTasks,
    tasks: Vec<Task<'_>>,
    logits: &Logits,
    columns: &Columns,
) -> Vec<Aside> {
    let mut first = 0;
    let set_aside = |task: Task<'_>| {
        if task.drawn.is_none() {
            let brought = first..first + task.rows.len();
            first = brought.end;
            if task.sequence.waits_for_monitors() {
                let rows: Vec<Row<'_>> = brought.map(|row| columns.of(logits, row)).collect();
                let inquiry = Inquiry::of(task.sequence, &rows, task.masks.as_deref());
                grammar_tasks.ask(task.sequence, inquiry);
            }
        }
        Aside {
            number: task.number,
            sequence: task.sequence.id.number,
            rows: task.rows,
            amateur_rows: task.amateur_rows,
            masks: task.masks,
            drawn: task.drawn,
            likely: task.likely,
        }
    };
    tasks.into_iter().map(set_aside).collect()
}

/// Returns the tasks with their sequences, which are in the same order.
fn rejoined(running: &mut [Sequence], aside: Vec<Aside>) -> Vec<Task<'_>> {
    let mut running = running.iter_mut();
    let join = |aside: Aside| {
        let sequence = running.find(|sequence| sequence.id.number == aside.sequence)?;
        Some(Task {
            number: aside.number,
            sequence,
            rows: aside.rows,
            amateur_rows: aside.amateur_rows,
            draft_rows: Vec::new(),
            masks: aside.masks,
            counted: Vec::new(),
            drawn: aside.drawn,
            likely: aside.likely,
        })
    };
    aside.into_iter().filter_map(join).collect()
}

impl Task<'_> {
    /// Returns `true` if the remaining token budget narrows the choice in one of its rows; then the rows are
    /// inspected.
    fn is_narrowed(&self) -> bool {
        self.masks.iter().flatten().any(Bounds::is_steered)
    }

    /// Returns `true` if its rows can stay where they were computed.
    fn can_stay(&self) -> bool {
        can_stay(self.sequence) && !self.is_narrowed()
    }

    /// Combines its rows with those of its second text, or of the draft model.
    fn combine<'e, 'a>(
        &self,
        contrast: Contrast,
        experts: impl Iterator<Item = &'e mut [f32]>,
        amateurs: impl Iterator<Item = &'a [f32]>,
    ) -> Result<(), EngineError> {
        let masks = self.masks.as_ref();
        let masks = masks.filter(|_| masks_before_filters(&self.sequence.request));
        for (number, (expert, amateur)) in experts.zip(amateurs).enumerate() {
            // The rows of two models may have columns beyond their tokens.
            let width = expert.len().min(amateur.len());
            let (expert, beyond) = expert.split_at_mut(width);
            beyond.fill(f32::NEG_INFINITY);
            let amateur = &amateur[..width];
            let allowed = masks.map_or(Allowed::All, |masks| Allowed::Words(masks[number].mask.words()));
            contrast.combine(expert, amateur, allowed).map_err(not_a_law)?;
        }
        Ok(())
    }

    /// Returns `true` if its draws depend on the tokens before its rows, and are not made in memory anyway.
    fn is_penalised(&self) -> bool {
        self.sequence.draw.warper.penalises() && self.can_stay()
    }

    /// Returns the tokens before one of its rows that the penalties of the row concern.
    fn counted_before(&self, row: usize) -> Counted {
        let drafts = &self.sequence.draft.drafts;
        let path = path(drafts, row.checked_sub(1)).into_iter();
        let drafted = path.map(|node| drafts[node].token).collect();
        let mask = self.masks.as_ref().map(|masks| masks[row].mask.words());
        let allowed = mask.map_or(Allowed::All, Allowed::Words);
        self.sequence.past().counted(drafted, allowed)
    }

    /// Returns the draws of its rows, each with the place that it would have if the text came there.
    fn asks(&self) -> impl Iterator<Item = Ask<'_>> {
        let sequence = &*self.sequence;
        let seeded = Seeded::new(sequence.request.sampling.seed, sequence.stream());
        let past = sequence.past();
        (0..self.rows.len()).filter_map(move |number| {
            let node = number.checked_sub(1);
            let draft = node.map(|node| &sequence.draft.drafts[node]);
            let is_guess = draft.is_some_and(Draft::is_guess);
            if draft.is_some_and(|draft| draft.is_last) && !is_guess {
                return None;
            }
            let after = path(&sequence.draft.drafts, node).len();
            let mask = self.masks.as_ref().map(|masks| &*masks[number].mask);
            // After a guess that the grammar forbids, the mask is empty; the likeliest token is needed all
            // the same, so the mask is ignored.
            let mask = mask.filter(|mask| !is_guess || mask.count() > 0).map(Mask::words);
            Some(Ask {
                row: self.rows.start + number,
                allowed: mask.map_or(Allowed::All, Allowed::Words),
                warper: &sequence.draw.warper,
                history: past.history(self.counted.get(number).unwrap_or(Counted::UNDRAFTED)),
                seeded,
                place: sequence.draw.walk.place_after(after as u32),
            })
        })
    }
}

/// Returns the tasks with those of their rows that were copied to memory; tasks that share a trie are
/// bundled.
fn bundles<'a>(tasks: Vec<Task<'a>>, logits: &'a Logits, columns: &Columns) -> Vec<Bundle<'a>> {
    let mut bundles: Vec<Bundle<'_>> = Vec::new();
    let mut by_trie: HashMap<*const (), usize> = HashMap::new();
    let mut first = 0;
    for task in tasks {
        let mut rows = Vec::new();
        if task.drawn.is_none() {
            let brought = first..first + task.rows.len();
            first = brought.end;
            rows.extend(brought.map(|row| columns.of(logits, row)));
        }
        if task.sequence.waits_for_monitors() {
            // The sequence sits out, and keeps its masks for the next pass.
            task.sequence.grammar.masks = task.masks;
            continue;
        }
        let mut bundle = bundles.len();
        if let Some(trie) = &task.sequence.draw.trie {
            // The rows that a trie keeps are compared with recomputed rows, without their measures.
            rows.iter_mut().for_each(|row| row.measured = None);
            bundle = *by_trie.entry(Arc::as_ptr(trie).cast()).or_insert(bundle);
        }
        if bundle == bundles.len() {
            bundles.push(Vec::new());
        }
        bundles[bundle].push((task, rows));
    }
    bundles
}
