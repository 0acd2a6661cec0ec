//! Tokens drawn by the kernels of [`draw.cu`](crate::torch::kernels), which add and choose as the library does: the token and every
//! number are those that the library finds in the same row, to the last bit.

use crate::model::flight::Ask;
use crate::torch::kernels::asks::Sent;
use crate::torch::kernels::draw::{Draw, DrawnRow};
use crate::torch::kernels::launcher::SharedLauncher;
use crate::torch::kernels::node::Place;
use crate::torch::kernels::shapes::DRAWN_BYTES;
use crate::torch::kernels::step::Step;
use lexiform::law::Drawn;
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
    if asks.is_empty() {
        return Ok(Vec::new());
    }
    let (width, device) = (logits.size()[1] as usize, logits.device());
    let sent = Sent::new(asks, width);
    let new = |bytes: usize| Tensor::f_empty([bytes as i64], (Kind::Uint8, device));
    let mut home = vec![0; DRAWN_BYTES * asks.len()];
    let (inputs, room, out) = (
        new(sent.bytes.len())?,
        new(Draw::<u64>::room(&sent, width))?,
        new(home.len())?,
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
    let mut launcher = launcher.lock().unwrap_or_else(PoisonError::into_inner);
    launcher.write(start(&inputs).address(), &sent.bytes)?;
    launcher.start(&steps)?;
    launcher.read(start(&out).address(), &mut home)?;
    drop(launcher);
    let found = home.as_chunks::<DRAWN_BYTES>().0.iter().zip(asks);
    Ok(found
        .map(|(row, ask)| DrawnRow::read(row).drawn(ask.warper.scale()))
        .collect())
}
