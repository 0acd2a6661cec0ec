//! A pass that was started: what it computes stays where it is until somebody asks for it.
//!
//! ```text
//!   submit ─► flight ─┬─ draw   a token of each row, with the numbers that a walk needs: some bytes a row
//!                     ├─ top    the most likely tokens of each row
//!                     ├─ hidden the last hidden state of each row
//!                     └─ rows   the rows themselves: 4 bytes a token of the vocabulary, 512 KB of a large one
//! ```
//!
//! Who submits a pass need not wait for it: the loop lets other threads find masks meanwhile. A row that is
//! asked for nothing costs nothing after the pass.
//!
//! Nor need the next pass wait for the host. A device that can start draws ([`Flight::start_draw`]) without
//! being waited for can be fed with their tokens where they are
//! ([`Model::submit_after`](crate::Model::submit_after)):
//!
//! ```text
//!   device   pass 1 ─ draw 1 ┬ pass 2 ─────────────── draw 2 ┬ pass 3 ─ …
//!                            └─► tokens ─► host: grammar, masks ┘ └─► tokens ─► host …
//! ```
//!
//! [`Landed`] is a pass whose rows are in memory. Its draws are made by the library's law in `f64`, and are
//! what the draws of every device are compared with.
//!
//! Tests: `engine/tests/engine/flights.rs` and `torch_flights.rs` compare draws of devices with draws from
//! rows in memory.

use crate::error::EngineError;
use crate::model::logits::Logits;
use lexiform_law::{Allowed, Distribution, Drawn, History, Part, Place, Row, Seeded, Warper};
use std::any::Any;

/// A draw that is asked of a row: what [`Warper::row`] and a mask leave, with the random numbers of a place.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// The number of the row in its pass.
    pub row: usize,
    /// The tokens that may come.
    pub allowed: Allowed<'a>,
    /// How the row is changed: [`Warper::by_rank`] says how filters cut it.
    pub warper: &'a Warper,
    /// The tokens before the row, if the warper [reads them](Warper::penalises).
    pub history: History<'a>,
    /// Where chance comes from.
    pub seeded: Seeded,
    /// Where in the sequence this draw is.
    pub place: Place,
}

impl Ask<'_> {
    /// The random numbers of the choice of a group of blocks, of a block in it, and of a token in that.
    pub fn uniforms(&self) -> [f64; 3] {
        let places = [self.place.group(), self.place.block(), self.place];
        places.map(|place| self.seeded.uniform(place))
    }
}

/// A pass that was submitted.
pub trait Flight: Send {
    /// How many rows it computes, of all feeds in their order.
    fn len(&self) -> usize;

    /// Whether it computes no rows.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Waits until the rows are computed, so that it is known how long they took.
    ///
    /// # Errors
    /// The pass failed.
    fn wait(&mut self) -> Result<(), EngineError> {
        Ok(())
    }

    /// Whether tokens should be drawn here, by [`draw`](Self::draw), rather than from rows that were brought
    /// to memory. Only a model that leaves the columns out that are no tokens
    /// ([`Model::leave_out`](crate::Model::leave_out)) can say so.
    fn draws(&self) -> bool {
        false
    }

    /// One draw for each ask; `None` where the row itself has to be looked at: it is no law, nothing is
    /// allowed that has a probability, or too little for the numbers here, or the row is changed in a way
    /// that is not known here. Every device knows what [`Warper::is_plain`] holds for.
    ///
    /// # Errors
    /// The pass failed, or there is no row of this number.
    fn draw(&mut self, asks: &[Ask<'_>]) -> Result<Vec<Option<Drawn>>, EngineError>;

    /// Whether draws can be started here without being waited for, and a pass be submitted behind them.
    fn starts_draws(&self) -> bool {
        false
    }

    /// Starts one draw for each ask, and waits for nothing: what [`draw`](Self::draw) would return comes from
    /// the [`Drawing`]. `None`, and nothing started, if these asks cannot be served so. The rows can be asked
    /// for afterwards all the same.
    ///
    /// # Errors
    /// As [`draw`](Self::draw), as far as it is known by now.
    fn start_draw(&mut self, _asks: &[Ask<'_>]) -> Result<Option<Box<dyn Drawing>>, EngineError> {
        Ok(None)
    }

    /// The most likely tokens of these rows with their log-probabilities under the model itself, `count` at
    /// most, best first; of equal ones that of the least number.
    ///
    /// # Errors
    /// As [`draw`](Self::draw), or a row is no law.
    fn top(&mut self, rows: &[usize], count: usize) -> Result<Vec<Vec<(u32, f64)>>, EngineError>;

    /// What the output layer made these rows from, one row after another; `None` if the model has no such
    /// thing.
    ///
    /// # Errors
    /// As [`draw`](Self::draw).
    fn hidden(&mut self, _rows: &[usize]) -> Result<Option<Vec<f32>>, EngineError> {
        Ok(None)
    }

    /// These rows, in this order. They are given away: whatever else is asked of them must be asked before.
    ///
    /// # Errors
    /// As [`draw`](Self::draw).
    fn rows(&mut self, rows: &[usize]) -> Result<Logits, EngineError>;
}

/// Draws that were started. The model that made them knows its own, by their type, and can feed a pass with
/// the tokens before anybody has waited for them.
pub trait Drawing: Any + Send {
    /// Waits for the draws and all that was submitted before them, not for what was submitted since; one for
    /// each ask, as [`Flight::draw`] has them. Asked once.
    ///
    /// # Errors
    /// As [`Flight::draw`].
    fn wait(&mut self) -> Result<Vec<Option<Drawn>>, EngineError>;
}

/// Draws that were made as soon as they were asked for.
#[derive(Debug)]
pub(crate) struct Made(Vec<Option<Drawn>>);

impl Made {
    /// The token of each ask; 0 where the row has to be looked at.
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
    /// A pass that computed these rows.
    pub fn new(logits: Logits) -> Self {
        Landed {
            logits,
            draws: false,
            starts_draws: false,
        }
    }

    /// The same, which wants to be asked for draws: how a loop is tested that asks a device for them.
    #[must_use]
    pub fn drawing(self) -> Self {
        Landed { draws: true, ..self }
    }

    /// The same, whose draws a next pass can be fed with.
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

/// Says whether there are rows of these numbers.
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

/// The draw of the law itself.
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
