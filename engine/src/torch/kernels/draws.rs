//! Tokens drawn by the kernels of `draw.cu`, which add and choose like the library: the token and every
//! number are those that the library finds in the same row, to the last bit.

use super::conversions::failed;
use crate::error::EngineError;
use crate::model::flight::{Ask, Drawing};
use crate::torch::passes::{self, SharedDrawer};
use lexiform_kernels::asks::{self, Sent};
use lexiform_kernels::draw::{Draw, DrawnRow};
use lexiform_kernels::launcher::{Parcel, SharedLauncher};
use lexiform_kernels::node::Place;
use lexiform_kernels::shapes::DRAWN_BYTES;
use lexiform_kernels::step::Step;
use lexiform_law::Drawn;
use std::sync::{Arc, PoisonError};
use tch::{Kind, TchError, Tensor};

type Result<T> = std::result::Result<T, TchError>;

/// Draws by the kernels of a launcher.
pub(super) struct Drawer(SharedLauncher);

impl Drawer {
    pub(super) fn shared(launcher: &SharedLauncher) -> SharedDrawer {
        Arc::new(Drawer(launcher.clone()))
    }
}

impl passes::Drawer for Drawer {
    fn serves(&self, ask: &Ask<'_>, width: usize) -> bool {
        asks::serves(&ask.into(), width)
    }

    fn draw(&self, logits: &Tensor, asks: &[Ask<'_>]) -> Result<Vec<Option<Drawn>>> {
        match asks.is_empty() {
            true => Ok(Vec::new()),
            false => start(&self.0, logits, asks)?.receive(),
        }
    }

    fn start(&self, logits: &Tensor, asks: &[Ask<'_>]) -> Result<Box<dyn Drawing>> {
        Ok(Box::new(start(&self.0, logits, asks)?))
    }
}

/// Draws that the kernels have started.
pub(super) struct Started {
    launcher: SharedLauncher,
    /// The piece of host memory to which they are copied, until it is read.
    parcel: Option<Parcel>,
    scales: Vec<f64>,
    /// The memory to which they are written, and the other memory that the kernels use.
    out: Tensor,
    _room: [Tensor; 2],
}

impl Started {
    /// Returns the address of the draws on the device, [`DRAWN_BYTES`] each, and their number.
    pub(super) fn at(&self) -> (u64, usize) {
        (self.out.data_ptr() as u64, self.scales.len())
    }

    fn receive(&mut self) -> Result<Vec<Option<Drawn>>> {
        let Some(parcel) = self.parcel.take() else {
            return Err(TchError::Io(std::io::Error::other("draws are read once")));
        };
        let mut home = vec![0; DRAWN_BYTES * self.scales.len()];
        let mut launcher = self.launcher.lock().unwrap_or_else(PoisonError::into_inner);
        launcher.receive(parcel, &mut home).map_err(failed)?;
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

/// Starts draws of at least one row, without waiting.
fn start(launcher: &SharedLauncher, logits: &Tensor, asks: &[Ask<'_>]) -> Result<Started> {
    let (width, device) = (logits.size()[1] as usize, logits.device());
    let asked: Vec<asks::Ask<'_>> = asks.iter().map(asks::Ask::from).collect();
    let sent = Sent::new(&asked, width);
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
    running
        .write(start(&inputs).address(), &sent.bytes)
        .map_err(failed)?;
    running.start(&steps).map_err(failed)?;
    let parcel = running.send(start(&out).address(), DRAWN_BYTES * asks.len());
    let parcel = parcel.map_err(failed)?;
    drop(running);
    Ok(Started {
        launcher: launcher.clone(),
        parcel: Some(parcel),
        scales: asks.iter().map(|ask| ask.warper.scale()).collect(),
        out,
        _room: [inputs, room],
    })
}
