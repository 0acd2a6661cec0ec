//! A pass on a device: its rows stay there, and what is wanted of them comes to memory.

mod draw;
mod home;

use crate::error::EngineError;
use crate::model::flight::{Ask, Flight, check_rows};
use crate::model::logits::Logits;
use lexiform::law::Drawn;
use tch::{Kind, TchError, Tensor};

type Result<T> = std::result::Result<T, TchError>;

/// A pass whose products were given to the device. On a card they may still be on their way.
pub(super) struct Rows {
    /// `[rows, width]`, in the number type of the model.
    pub(super) logits: Tensor,
    /// `[rows, hidden]`: what the output layer made them from.
    pub(super) hidden: Tensor,
    /// Columns that are no tokens, if that is known.
    pub(super) left_out: Option<Tensor>,
    /// The scale at which the caller will want each row to be measured.
    pub(super) scales: Vec<f64>,
    /// Whether draws are made on the device.
    pub(super) draws: bool,
}

impl Rows {
    fn select(&self, tensor: &Tensor, rows: &[usize]) -> Result<Tensor> {
        if rows.iter().copied().eq(0..self.scales.len()) {
            return Ok(tensor.shallow_clone());
        }
        let rows: Vec<i64> = rows.iter().map(|&row| row as i64).collect();
        tensor.f_index_select(0, &Tensor::f_from_slice(&rows)?.f_to_device(tensor.device())?)
    }

    /// These rows of logits in `f32`, without what is no token.
    fn tokens(&self, rows: &[usize]) -> Result<Tensor> {
        let logits = self.select(&self.logits, rows)?;
        // A copy, since what is left out is overwritten.
        let logits = logits.f_to_dtype(Kind::Float, false, true)?;
        match &self.left_out {
            Some(columns) => logits.f_index_fill(1, columns, f64::NEG_INFINITY),
            None => Ok(logits),
        }
    }

    fn bring(&self, rows: &[usize]) -> Result<Logits> {
        if rows.is_empty() {
            return Ok(Logits::default());
        }
        let scales = rows.iter().map(|&row| self.scales[row]).collect();
        home::bring(&self.select(&self.logits, rows)?, self.left_out.as_ref(), scales)
    }
}

impl Flight for Rows {
    fn len(&self) -> usize {
        self.scales.len()
    }

    fn wait(&mut self) -> std::result::Result<(), EngineError> {
        if let tch::Device::Cuda(index) = self.logits.device() {
            tch::Cuda::synchronize(index as i64);
        }
        Ok(())
    }

    fn draws(&self) -> bool {
        self.draws
    }

    fn draw(&mut self, asks: &[Ask<'_>]) -> std::result::Result<Vec<Option<Drawn>>, EngineError> {
        let rows: Vec<usize> = asks.iter().map(|ask| ask.row).collect();
        check_rows(&rows, self.len())?;
        let draw = |asks: &[Ask<'_>]| {
            let rows: Vec<usize> = asks.iter().map(|ask| ask.row).collect();
            draw::draw(&self.tokens(&rows)?, asks)
        };
        let drawn = asks.chunks(draw::ROWS).map(draw).collect::<Result<Vec<_>>>();
        Ok(drawn.map_err(failed)?.concat())
    }

    fn top(
        &mut self,
        rows: &[usize],
        count: usize,
    ) -> std::result::Result<Vec<Vec<(u32, f64)>>, EngineError> {
        check_rows(rows, self.len())?;
        let top = |rows: &[usize]| draw::top(&self.tokens(rows)?, count);
        let found = rows.chunks(draw::ROWS).map(top).collect::<Result<Vec<_>>>();
        Ok(found.map_err(failed)?.concat())
    }

    fn hidden(&mut self, rows: &[usize]) -> std::result::Result<Option<Vec<f32>>, EngineError> {
        check_rows(rows, self.len())?;
        let read = || {
            let hidden = self.select(&self.hidden, rows)?.f_to_kind(Kind::Float)?;
            Vec::<f32>::try_from(
                &hidden
                    .f_to_device(tch::Device::Cpu)?
                    .f_contiguous()?
                    .f_view([-1])?,
            )
        };
        read().map(Some).map_err(failed)
    }

    fn rows(&mut self, rows: &[usize]) -> std::result::Result<Logits, EngineError> {
        check_rows(rows, self.len())?;
        self.bring(rows).map_err(failed)
    }
}

fn failed(error: TchError) -> EngineError {
    EngineError::Model(error.to_string())
}
