//! A pass on a device: its rows stay there, and only the requested ones are copied to host memory.
//!
//! # Why masks stay on the host, and rows come to it
//!
//! A mask costs some microseconds on another thread, and a pass waits a hundredth of a millisecond for its
//! masks. Laws, drafts and weights need rows in `f64` and seeded choices, and one implementation of them can
//! be exact. A row of 128,000 logits takes 10 µs to copy. Its exponentials are the expensive part: the GPU
//! sums them in blocks of 32 tokens (`lexiform_law::Measured`), and a draw only sums those blocks again that
//! a mask cuts.

mod draw;
mod home;

use crate::error::{EngineError, in_one_line};
use crate::model::flight::{Ask, Drawing as Draws, Flight, check_rows};
use crate::model::logits::Logits;
use crate::torch::passes::{Lease, SharedDrawer};
use lexiform_law::Drawn;
use tch::{Kind, TchError, Tensor};

type Result<T> = std::result::Result<T, TchError>;

/// The way in which tokens are drawn on the device.
#[derive(Clone)]
pub(super) enum Drawing {
    /// No draws: rows are copied to host memory.
    Off,
    /// By torch's operations.
    Torch,
    /// By the kernels, where they support the draw; the rows are `f32`, and columns that are not tokens are
    /// minus infinity already.
    Kernels(SharedDrawer),
}

/// A pass whose products were submitted to the device. On a GPU they may not be computed yet.
pub(super) struct Rows {
    /// The logits, `[rows, width]`, in the number type of the model.
    pub(super) logits: Tensor,
    /// The hidden states from which the output layer made them, `[rows, hidden]`.
    pub(super) hidden: Tensor,
    /// The columns that are not tokens, if known.
    pub(super) left_out: Option<Tensor>,
    /// The scale at which the caller will need each row to be measured.
    pub(super) scales: Vec<f64>,
    /// The way in which tokens are drawn.
    pub(super) drawing: Drawing,
    /// The lease on the memory of the rows, if the pass only borrowed it.
    pub(super) lease: Option<Lease>,
}

impl Rows {
    fn select(&self, tensor: &Tensor, rows: &[usize]) -> Result<Tensor> {
        if rows.iter().copied().eq(0..self.scales.len()) {
            return Ok(tensor.shallow_clone());
        }
        let rows: Vec<i64> = rows.iter().map(|&row| row as i64).collect();
        tensor.f_index_select(0, &Tensor::f_from_slice(&rows)?.f_to_device(tensor.device())?)
    }

    /// Returns these rows of logits in `f32`, with minus infinity in the columns that are not tokens.
    fn tokens(&self, rows: &[usize]) -> Result<Tensor> {
        let logits = self.select(&self.logits, rows)?;
        // A copy, since the columns that are left out are overwritten.
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
        let mut logits = self.select(&self.logits, rows)?;
        if self.lease.is_some() && logits.device() == tch::Device::Cpu {
            // Rows in host memory are not copied by `home::bring`, and the next pass would overwrite them.
            logits = logits.f_to_dtype(Kind::Float, false, true)?;
        }
        home::bring(&logits, self.left_out.as_ref(), scales)
    }

    /// Draws for these asks: by the kernels where they support the ask, otherwise by torch if it does.
    fn drawn(&self, asks: &[Ask<'_>]) -> Result<Vec<Option<Drawn>>> {
        let by: Vec<DrawnBy> = asks.iter().map(|ask| self.server(ask)).collect();
        let mut drawn = vec![None; asks.len()];
        for one in [DrawnBy::Kernels, DrawnBy::Torch] {
            let numbers: Vec<usize> = (0..asks.len()).filter(|&ask| by[ask] == one).collect();
            if numbers.is_empty() {
                continue;
            }
            let some: Vec<Ask<'_>> = numbers.iter().map(|&ask| asks[ask]).collect();
            let found = match &self.drawing {
                Drawing::Kernels(drawer) if one == DrawnBy::Kernels => drawer.draw(&self.logits, &some)?,
                _ => {
                    let rows: Vec<usize> = some.iter().map(|ask| ask.row).collect();
                    draw::draw(&self.tokens(&rows)?, &some)?
                }
            };
            numbers
                .into_iter()
                .zip(found)
                .for_each(|(ask, found)| drawn[ask] = found);
        }
        Ok(drawn)
    }

    /// Returns who makes a draw.
    fn server(&self, ask: &Ask<'_>) -> DrawnBy {
        let width = self.logits.size()[1] as usize;
        match &self.drawing {
            Drawing::Kernels(drawer) if drawer.serves(ask, width) => DrawnBy::Kernels,
            _ if ask.warper.is_plain() => DrawnBy::Torch,
            _ => DrawnBy::Nobody,
        }
    }
}

/// The maker of a draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DrawnBy {
    Kernels,
    Torch,
    /// No one on the device: the row is needed on the host.
    Nobody,
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
        !matches!(self.drawing, Drawing::Off)
    }

    fn starts_draws(&self) -> bool {
        matches!(self.drawing, Drawing::Kernels(_))
    }

    fn start_draw(&mut self, asks: &[Ask<'_>]) -> std::result::Result<Option<Box<dyn Draws>>, EngineError> {
        let width = self.logits.size()[1] as usize;
        let Drawing::Kernels(drawer) = &self.drawing else {
            return Ok(None);
        };
        if asks.is_empty() || !asks.iter().all(|ask| drawer.serves(ask, width)) {
            return Ok(None);
        }
        let rows: Vec<usize> = asks.iter().map(|ask| ask.row).collect();
        check_rows(&rows, self.len())?;
        drawer.start(&self.logits, asks).map(Some).map_err(failed)
    }

    fn draw(&mut self, asks: &[Ask<'_>]) -> std::result::Result<Vec<Option<Drawn>>, EngineError> {
        let rows: Vec<usize> = asks.iter().map(|ask| ask.row).collect();
        check_rows(&rows, self.len())?;
        let drawn = asks.chunks(draw::ROWS).map(|asks| self.drawn(asks));
        let drawn = drawn.collect::<Result<Vec<_>>>();
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
    EngineError::Model(in_one_line(&error))
}
