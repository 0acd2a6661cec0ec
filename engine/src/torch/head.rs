//! Trained heads that people publish: EAGLE and Medusa, read from their folders.
//!
//! ```text
//!   EAGLE-1, EAGLE-2   fc(token, state) ─ layer ─────────────► the model's output layer ─► row
//!   EAGLE-3            fc(three states) ┬ layer of both ─ norm ─► its own output layer ──► row of fewer tokens
//!                               token ──┘
//!   Medusa             state ─ a network for each of the next tokens ─────────────────────► a row each
//! ```
//!
//! A head belongs to one model: it uses the embedding and, except for EAGLE-3, the output layer of the model,
//! and reads its hidden states ([`States`](super::decoder::states)). Heads that belong to another model are
//! refused where a size tells.
//!
//! Tests: `engine/tests/engine/heads.rs` compares heads with a plain reading in numpy
//! (`engine/tests/fixtures/make_heads.py`).

mod eagle;
mod kind;
mod medusa;
mod own_config;

pub use self::kind::{DrafterKind, drafter_kind};

use self::eagle::Eagle;
use self::kind::HeadKind;
use self::medusa::Medusa;
use super::checkpoint::Checkpoint;
use super::checkpoint::files::ModelFiles;
use super::decoder::Decoder;
use super::decoder::states::StatesRead;
use super::options::WeightFormat;
use crate::error::LoadError;
use crate::model::head::Head;

/// Reads the head in a folder, for a model; returns it with the states of the model that it reads.
///
/// # Errors
/// The folder has no head, or one that belongs to another model, or one that cannot be run.
pub(super) fn load(
    files: &ModelFiles,
    model: &Decoder,
    format: WeightFormat,
) -> Result<(Box<dyn Head>, StatesRead), LoadError> {
    let checkpoint = Checkpoint::open(files)?;
    match kind::of(&checkpoint) {
        Some(HeadKind::Medusa { prefix }) => {
            let medusa = Medusa::load((files, &checkpoint, prefix), model, format)?;
            Ok((Box::new(medusa), StatesRead::Last))
        }
        Some(kind) => {
            let (eagle, read) = Eagle::load((files, &checkpoint), kind, model, format)?;
            Ok((Box::new(eagle), read))
        }
        None => Err(files.malformed("", "expected a head: the tensors of EAGLE or Medusa")),
    }
}
