//! The demo model, built into the program if its files were there when the program was built.

use lexiform_engine::ModelFiles;

/// A file by its name.
type File = (&'static str, &'static [u8]);

include!(concat!(env!("OUT_DIR"), "/demo_files.rs"));

/// The demo model.
pub fn model() -> Option<ModelFiles> {
    (!MODEL.is_empty()).then(|| ModelFiles::embedded("models/demo", MODEL))
}

/// The small model that drafts for it.
pub fn draft_model() -> Option<ModelFiles> {
    (!DRAFT.is_empty()).then(|| ModelFiles::embedded("models/demo/draft", DRAFT))
}

/// The bytes of the weights of the demo model.
pub fn bytes() -> u64 {
    let weights = MODEL.iter().filter(|(name, _)| name.ends_with(".safetensors"));
    weights.map(|(_, bytes)| bytes.len() as u64).sum()
}
