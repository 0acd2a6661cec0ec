//! Tokens drawn by the kernels of [`draw.cu`](crate::torch::kernels), which add and choose as the library does: the token and every
//! number are those that the library finds in the same row, to the last bit.

use crate::error::EngineError;
use crate::model::flight::{Ask, Drawing};
use crate::torch::kernels::asks::Sent;
use crate::torch::kernels::draw::{Draw, DrawnRow};
use crate::torch::kernels::launcher::{Parcel, SharedLauncher};
use crate::torch::kernels::node::Place;
use crate::torch::kernels::shapes::DRAWN_BYTES;
use crate::torch::kernels::step::Step;
use lexiform_law::Drawn;
use std::sync::PoisonError;
use tch::{Kind, TchError, Tensor};

type Result<T> = std::result::Result<T, TchError>;

/// One draw for each of these asks from rows `[rows, width]` in `f32`, whose columns that are no tokens hold minus infinity. The
/// kernels serve all asks. `None` where a row has to be looked at; see [`Flight::draw`](crate::Flight::draw).
pub(crate) fn draw(
    launcher: &SharedLauncher,
    logits: &Tensor,
    asks: &[Ask<'_>],
) -> Result<Vec<Option<Drawn>>> {
    match asks.is_empty() {
        true => Ok(Vec::new()),
        false => start(launcher, logits, asks)?.receive(),
    }
}

/// Draws that the kernels make.
pub(crate) struct Started {
    launcher: SharedLauncher,
    /// Which piece of memory of the host they come to, until somebody has read it.
    parcel: Option<Parcel>,
    scales: Vec<f64>,
    /// Where they are written, and the other memory that the kernels use.
    out: Tensor,
    _room: [Tensor; 2],
}

impl Started {
    /// Where the draws are on the device, [`DRAWN_BYTES`] each, and how many there are.
    pub(crate) fn at(&self) -> (u64, usize) {
        (self.out.data_ptr() as u64, self.scales.len())
    }

    fn receive(&mut self) -> Result<Vec<Option<Drawn>>> {
        let Some(parcel) = self.parcel.take() else {
            return Err(TchError::Io(std::io::Error::other("draws are read once")));
        };
        let mut home = vec![0; DRAWN_BYTES * self.scales.len()];
        let mut launcher = self.launcher.lock().unwrap_or_else(PoisonError::into_inner);
        launcher.receive(parcel, &mut home)?;
        let found = home.as_chunks::<DRAWN_BYTES>().0.iter().zip(&self.scales);
        Ok(found
            .map(|(row, &scale)| DrawnRow::read(row).drawn(scale))
            .collect())
    }
}

impl Drawing for Started {
    fn wait(&mut self) -> std::result::Result<Vec<Option<Drawn>>, EngineError> {
        self.receive()
            .map_err(|error| EngineError::Model(error.to_string()))
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if let Some(parcel) = self.parcel {
            let mut launcher = self.launcher.lock().unwrap_or_else(PoisonError::into_inner);
            launcher.discard(parcel);
        }
    }
}

/// Starts the draws of [`draw`], of at least one row, and waits for nothing.
pub(crate) fn start(launcher: &SharedLauncher, logits: &Tensor, asks: &[Ask<'_>]) -> Result<Started> {
    let (width, device) = (logits.size()[1] as usize, logits.device());
    let sent = Sent::new(asks, width);
    let new = |bytes: usize| Tensor::f_empty([bytes as i64], (Kind::Uint8, device));
    let (inputs, room, out) = (
        new(sent.bytes.len())?,
        new(Draw::<u64>::room(&sent, width))?,
        new(DRAWN_BYTES * asks.len())?,
    );
    let start = |tensor: &Tensor| Place::start(tensor.data_ptr() as u64);
    let draw = Draw {
        logits: start(logits),
        asked: start(&inputs),
        sent: &sent,
        room: start(&room),
        out: start(&out),
        width,
    };
    let steps: Vec<Step<u64>> = draw.nodes().into_iter().map(Step::Launch).collect();
    let mut running = launcher.lock().unwrap_or_else(PoisonError::into_inner);
    running.write(start(&inputs).address(), &sent.bytes)?;
    running.start(&steps)?;
    let parcel = running.send(start(&out).address(), DRAWN_BYTES * asks.len())?;
    drop(running);
    Ok(Started {
        launcher: launcher.clone(),
        parcel: Some(parcel),
        scales: asks.iter().map(|ask| ask.warper.scale()).collect(),
        out,
        _room: [inputs, room],
    })
}
