//! What a folder drafts with, by its files.

use super::own_config::{CONFIG, json};
use crate::error::LoadError;
use crate::torch::checkpoint::Checkpoint;
use crate::torch::checkpoint::files::ModelFiles;

/// Files of weights that are not read, with the file to write in their place.
const PICKLED: [(&str, &str); 2] = [
    ("pytorch_model.bin", "model.safetensors"),
    ("medusa_lm_head.pt", "medusa_lm_head.safetensors"),
];

/// What the files of a folder draft with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrafterKind {
    /// A model that predicts one token.
    Model,
    /// A model that predicts several tokens at once, one for each of these tokens after the text: PARD ([An
    /// et al. 2025](https://arxiv.org/abs/2504.18583)).
    Parallel {
        /// The token that stands for one that is not known.
        mask: u32,
    },
    /// A head that was trained for one model.
    Head,
}

/// The kinds of heads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeadKind {
    /// EAGLE-1 and EAGLE-2, whose networks are the same.
    Eagle,
    /// EAGLE-3; the beginning of the names of its layer.
    Eagle3 { layer: &'static str },
    /// Medusa; the beginning of the names of its tensors.
    Medusa { prefix: &'static str },
}

/// Returns the kind of head that these tensors are, if they are one.
pub(super) fn of(checkpoint: &Checkpoint<'_>) -> Option<HeadKind> {
    let has = |name: &str| checkpoint.names().any(|known| known == name);
    if has("fc.weight") {
        let layers = ["midlayer", "layers.0"];
        let layer = layers
            .into_iter()
            .find(|layer| has(&format!("{layer}.hidden_norm.weight")));
        return Some(match layer {
            Some(layer) => HeadKind::Eagle3 { layer },
            None => HeadKind::Eagle,
        });
    }
    let prefixes = ["", "medusa_head."];
    let prefix = prefixes
        .into_iter()
        .find(|prefix| has(&format!("{prefix}0.0.linear.weight")));
    prefix.map(|prefix| HeadKind::Medusa { prefix })
}

/// Returns what the files of a folder draft with.
///
/// # Errors
/// The weights are missing, or only there in a format that is not read, or a configuration is malformed.
pub fn drafter_kind(files: &ModelFiles) -> Result<DrafterKind, LoadError> {
    if files.gguf().is_some() || files.is_random() {
        return Ok(DrafterKind::Model);
    }
    let checkpoint = Checkpoint::open(files).map_err(|error| match pickled(files) {
        Some(pickled) => pickled,
        None => error,
    })?;
    if of(&checkpoint).is_some() {
        return Ok(DrafterKind::Head);
    }
    let config = json(files)?;
    let field = ["pard_token", "ptd_token_id"]
        .into_iter()
        .find_map(|name| Some((name, config.get(name)?)));
    match field {
        None => Ok(DrafterKind::Model),
        Some((name, value)) => {
            let mask = value.as_u64().and_then(|token| u32::try_from(token).ok());
            let wrong = || {
                files.malformed(
                    CONFIG,
                    format!("{name} is {value}; expected the number of a token"),
                )
            };
            Ok(DrafterKind::Parallel {
                mask: mask.ok_or_else(wrong)?,
            })
        }
    }
}

/// Returns the error for weights that are there, but not in safetensors.
fn pickled(files: &ModelFiles) -> Option<LoadError> {
    let (found, instead) = PICKLED.into_iter().find(|(name, _)| files.has(name))?;
    let message = format!(
        "weights are read from safetensors only; convert the file with `python -c \"import torch, \
         safetensors.torch as s; s.save_file(torch.load('{found}', map_location='cpu', weights_only=True), \
         '{instead}')\"`"
    );
    Some(files.malformed(found, message))
}
