//! Tokens drawn by the kernels of [`draw.cu`](crate::torch::kernels), which add and choose as the library does: the token and every
//! number are those that the library finds in the same row, to the last bit.

use crate::error::EngineError;
use crate::model::flight::{Ask, Drawing};
use crate::torch::kernels::draw::{Draw, DrawnRow};
use crate::torch::kernels::launcher::{Parcel, SharedLauncher};
use crate::torch::kernels::node::Place;
use crate::torch::kernels::shapes::{DRAWN_BYTES, MOST_DRAW_WIDTH};
use crate::torch::kernels::step::Step;
use lexiform::law::{Allowed, Drawn, Purpose};
use std::sync::PoisonError;
use tch::{Kind, TchError, Tensor};

type Result<T> = std::result::Result<T, TchError>;

/// Tokens of a block, and bits of a word of a mask.
const BLOCK: usize = 32;

/// Whether the kernels make this draw, from a row of so many logits: the choice of a token, and not of the most likely one.
pub(crate) fn serves(ask: &Ask<'_>, width: usize) -> bool {
    let is_token = ask.place.purpose == Purpose::Token && ask.place.round == 0;
    is_token && !ask.warper.is_greedy() && (1..=MOST_DRAW_WIDTH).contains(&width)
}

/// One draw from each of these rows, `[rows, width]` in `f32`, whose columns that are no tokens hold minus infinity. The kernels
/// serve all asks. `None` where a row has to be looked at; see [`Flight::draw`](crate::Flight::draw).
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
    _room: [Tensor; 4],
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
    let (rows, width, device) = (asks.len(), logits.size()[1] as usize, logits.device());
    let blocks = width.div_ceil(BLOCK);
    let sent = Sent::new(asks, blocks);
    let room = |bytes: usize| Tensor::f_empty([bytes as i64], (Kind::Uint8, device));
    let inputs = room(sent.bytes.len())?;
    let sums = [4 * rows, 8 * rows * blocks, 8 * rows * blocks, DRAWN_BYTES * rows].map(room);
    let [peaks, whole, allowed, out] = sums;
    let (peaks, whole, allowed, out) = (peaks?, whole?, allowed?, out?);
    let start = |tensor: &Tensor| Place::start(tensor.data_ptr() as u64);
    let [seeds, places, mask_of, masks] = sent.offsets.map(|offset| Place {
        offset,
        ..start(&inputs)
    });
    let draw = Draw {
        logits: start(logits),
        peaks: start(&peaks),
        whole: start(&whole),
        allowed: start(&allowed),
        masks,
        mask_of,
        scales: start(&inputs),
        seeds,
        places,
        out: start(&out),
        width,
        rows,
    };
    let mut running = launcher.lock().unwrap_or_else(PoisonError::into_inner);
    running.write(start(&inputs).address(), &sent.bytes)?;
    running.start(&draw.nodes().map(Step::Launch))?;
    let parcel = running.send(start(&out).address(), DRAWN_BYTES * rows)?;
    drop(running);
    Ok(Started {
        launcher: launcher.clone(),
        parcel: Some(parcel),
        scales: asks.iter().map(|ask| ask.warper.scale()).collect(),
        out,
        _room: [inputs, peaks, whole, allowed],
    })
}

/// What the kernels are told of all asks, in one piece: scales, then seeds, places, masks of rows, and masks.
struct Sent {
    bytes: Vec<u8>,
    /// Where all but the scales begin.
    offsets: [usize; 4],
}

impl Sent {
    fn new(asks: &[Ask<'_>], blocks: usize) -> Self {
        let mut bytes: Vec<u8> = asks
            .iter()
            .flat_map(|ask| ask.warper.scale().to_le_bytes())
            .collect();
        let seeds = bytes.len();
        bytes.extend(asks.iter().flat_map(|ask| ask.seeded.seed().to_le_bytes()));
        let places = bytes.len();
        let place = |ask: &Ask<'_>| [ask.place.position, ask.place.attempt, ask.seeded.sequence()];
        bytes.extend(asks.iter().flat_map(place).flat_map(u32::to_le_bytes));
        let mask_of = bytes.len();
        let mut count = 0;
        for ask in asks {
            let number = match ask.allowed {
                Allowed::All => -1,
                Allowed::Words(_) => {
                    count += 1;
                    count - 1
                }
            };
            bytes.extend(i32::to_le_bytes(number));
        }
        let masks = bytes.len();
        for ask in asks {
            if let Allowed::Words(mask) = ask.allowed {
                let end = bytes.len() + 4 * blocks;
                bytes.extend(mask.iter().take(blocks).flat_map(|word| word.to_le_bytes()));
                bytes.resize(end, 0);
            }
        }
        let offsets = [seeds, places, mask_of, masks];
        Sent { bytes, offsets }
    }
}
