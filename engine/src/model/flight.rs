//! A pass that was started; its results stay where they are until they are requested.
//!
//! ```text
//!   submit ─► flight ─┬─ draw   a token of each row, with the numbers that a walk needs: some bytes a row
//!                     ├─ top    the most likely tokens of each row
//!                     ├─ hidden the last hidden state of each row
//!                     └─ rows   the rows themselves: 4 bytes a token of the vocabulary, 512 KB of a large one
//! ```
//!
//! The thread that submits a pass need not wait for it: the loop lets other threads find masks meanwhile. A
//! row from which nothing is requested costs nothing after the pass.
//!
//! The next pass need not wait for the host either. A device that can start draws ([`Flight::start_draw`])
//! without being waited for can be fed with the drawn tokens where they are
//! ([`Model::submit_after`](crate::Model::submit_after)):
//!
//! ```text
//!   device   pass 1 ─ draw 1 ┬ pass 2 ─────────────── draw 2 ┬ pass 3 ─ …
//!                            └─► tokens ─► host: grammar, masks ┘ └─► tokens ─► host …
//! ```
//!
//! [`Landed`] is a pass whose rows are in memory. Its draws are made by the library's law in `f64`, and are
//! the reference for the draws of every device.
//!
//! Tests: `engine/tests/engine/flights.rs` and `torch_flights.rs` compare draws of devices with draws from
//! rows in memory.

use crate::error::EngineError;
use crate::model::logits::Logits;
use lexiform_law::{Allowed, Distribution, Drawn, History, Part, Place, Row, Seeded, Warper};
use std::any::Any;

/// A request for a draw from a row: from what [`Warper::row`] and a mask leave, with the random numbers of a
/// place.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// The number of the row in its pass.
    pub row: usize,
    /// The allowed tokens.
    pub allowed: Allowed<'a>,
    /// How the row is changed: [`Warper::by_rank`] determines how filters cut it.
    pub warper: &'a Warper,
    /// The tokens before the row, if the warper [reads them](Warper::penalises).
    pub history: History<'a>,
    /// The source of random numbers.
    pub seeded: Seeded,
    /// The place of this draw in the sequence.
    pub place: Place,
}

impl Ask<'_> {
    /// Returns the random numbers that choose a group of blocks, a block in it, and a token in that.
    pub fn uniforms(&self) -> [f64; 3] {
        let places = [self.place.group(), self.place.block(), self.place];
        places.map(|place| self.seeded.uniform(place))
    }
}

/// A pass that was submitted.
pub trait Flight: Send {
    /// Returns the number of rows that it computes, of all feeds in their order.
    fn len(&self) -> usize;

    /// Returns `true` if it computes no rows.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Waits until the rows are computed, so that their duration is known.
    ///
    /// # Errors
    /// Fails if the pass failed.
    fn wait(&mut self) -> Result<(), EngineError> {
        Ok(())
    }

    /// Returns `true` if tokens should be drawn here, by [`draw`](Self::draw), rather than from rows that
    /// were copied to memory. Only a model that excludes the columns that are not tokens
    /// ([`Model::leave_out`](crate::Model::leave_out)) may return `true`.
    fn draws(&self) -> bool {
        false
    }

    /// Returns one draw for each ask; `None` if the row itself has to be inspected: it is not a distribution,
    /// nothing is allowed that has a probability, or too little for the numbers here, or the row is changed
    /// in a way that is not supported here. Every device supports what [`Warper::is_plain`] holds for.
    ///
    /// # Errors
    /// Fails if the pass failed, or if there is no row of this number.
    fn draw(&mut self, asks: &[Ask<'_>]) -> Result<Vec<Option<Drawn>>, EngineError>;

    /// Returns `true` if draws can be started here without being waited for, and a pass can be submitted
    /// after them.
    fn starts_draws(&self) -> bool {
        false
    }

    /// Starts one draw for each ask without waiting: the result that [`draw`](Self::draw) would return comes
    /// from the [`Drawing`]. Returns `None`, and starts nothing, if these asks cannot be served this way. The
    /// rows can still be requested afterwards.
    ///
    /// # Errors
    /// Fails like [`draw`](Self::draw), as far as errors are known by now.
    fn start_draw(&mut self, _asks: &[Ask<'_>]) -> Result<Option<Box<dyn Drawing>>, EngineError> {
        Ok(None)
    }

    /// Returns the most likely tokens of these rows with their log-probabilities under the model itself, at
    /// most `count`, best first; of equal ones, the one with the smallest number first.
    ///
    /// # Errors
    /// Fails like [`draw`](Self::draw), or if a row is not a distribution.
    fn top(&mut self, rows: &[usize], count: usize) -> Result<Vec<Vec<(u32, f64)>>, EngineError>;

    /// Returns the inputs of the output layer for these rows, one row after another; `None` if the model has
    /// no such layer.
    ///
    /// # Errors
    /// Fails like [`draw`](Self::draw).
    fn hidden(&mut self, _rows: &[usize]) -> Result<Option<Vec<f32>>, EngineError> {
        Ok(None)
    }

    /// Returns these rows, in this order. They are moved out: all other results must be requested before.
    ///
    /// # Errors
    /// Fails like [`draw`](Self::draw).
    fn rows(&mut self, rows: &[usize]) -> Result<Logits, EngineError>;
}

/// Draws that were started. The model that made them recognises its own, by their type, and can feed a pass
/// with the tokens before they have been waited for.
pub trait Drawing: Any + Send {
    /// Waits for the draws and all that was submitted before them, not for what was submitted since; returns
    /// one draw for each ask, like [`Flight::draw`]. Called once.
    ///
    /// # Errors
    /// Fails like [`Flight::draw`].
    fn wait(&mut self) -> Result<Vec<Option<Drawn>>, EngineError>;
}

/// Draws that were made as soon as they were requested.
#[derive(Debug)]
pub(crate) struct Made(Vec<Option<Drawn>>);

impl Made {
    /// Returns the token of each ask; 0 if the row has to be inspected.
    pub(crate) fn tokens(&self) -> impl Iterator<Item = u32> {
        self.0
            .iter()
            .map(|drawn| drawn.as_ref().map_or(0, |drawn| drawn.token))
    }
}

impl Drawing for Made {
    fn wait(&mut self) -> Result<Vec<Option<Drawn>>, EngineError> {
        Ok(self.0.clone())
    }
}

/// A pass that is over, with its rows in memory.
#[derive(Debug, Default)]
pub struct Landed {
    logits: Logits,
    draws: bool,
    starts_draws: bool,
}

impl Landed {
    /// Returns a pass that computed these rows.
    pub fn new(logits: Logits) -> Self {
        Landed {
            logits,
            draws: false,
            starts_draws: false,
        }
    }

    /// Makes the pass prefer to draw by itself, to test a loop that requests draws from a device.
    #[must_use]
    pub fn drawing(self) -> Self {
        Landed { draws: true, ..self }
    }

    /// Makes the pass start draws that a next pass can be fed with.
    pub(crate) fn starting_draws(self) -> Self {
        Landed {
            draws: true,
            starts_draws: true,
            ..self
        }
    }

    fn row(&self, row: usize) -> Result<&[f32], EngineError> {
        check_rows(&[row], self.logits.len())?;
        Ok(self.logits.row(row))
    }
}

/// Checks that there are rows of these numbers.
pub(crate) fn check_rows(rows: &[usize], len: usize) -> Result<(), EngineError> {
    match rows.iter().find(|&&row| row >= len) {
        Some(row) => Err(EngineError::Model(format!(
            "row {row} was asked for, of {len} rows"
        ))),
        None => Ok(()),
    }
}

impl Flight for Landed {
    fn len(&self) -> usize {
        self.logits.len()
    }

    fn draws(&self) -> bool {
        self.draws
    }

    fn draw(&mut self, asks: &[Ask<'_>]) -> Result<Vec<Option<Drawn>>, EngineError> {
        let draw = |ask: &Ask<'_>| Ok(draw_from(self.row(ask.row)?, ask));
        asks.iter().map(draw).collect()
    }

    fn starts_draws(&self) -> bool {
        self.starts_draws
    }

    fn start_draw(&mut self, asks: &[Ask<'_>]) -> Result<Option<Box<dyn Drawing>>, EngineError> {
        match self.starts_draws {
            true => Ok(Some(Box::new(Made(self.draw(asks)?)))),
            false => Ok(None),
        }
    }

    fn top(&mut self, rows: &[usize], count: usize) -> Result<Vec<Vec<(u32, f64)>>, EngineError> {
        let top = |&row: &usize| {
            let row = Distribution::new(self.row(row)?);
            let row = row.map_err(|error| EngineError::Model(error.to_string()))?;
            Ok(row.top(count))
        };
        rows.iter().map(top).collect()
    }

    fn rows(&mut self, rows: &[usize]) -> Result<Logits, EngineError> {
        check_rows(rows, self.logits.len())?;
        if rows.iter().copied().eq(0..self.logits.len()) {
            return Ok(std::mem::take(&mut self.logits));
        }
        Ok(self.logits.select(rows))
    }
}

/// Draws by the law itself.
fn draw_from(row: &[f32], ask: &Ask<'_>) -> Option<Drawn> {
    let row = ask.warper.row(row, ask.history).ok()?;
    let part = row.part(ask.allowed);
    let token = part.draw(ask.place, &mut ask.seeded.clone())?;
    Some(Drawn {
        token,
        mass: part.mass(),
        log_mass: part.log_mass(),
        log_probability: row.log_probability(token),
        log_kept: part.log_kept(),
    })
}
