//! The demo model, embedded if its files were present when the program was built.

use lexiform_engine::ModelFiles;

/// The name and the contents of a file.
type File = (&'static str, &'static [u8]);

include!(concat!(env!("OUT_DIR"), "/demo_files.rs"));

/// Returns the files of the demo model.
pub fn model() -> Option<ModelFiles> {
    (!MODEL.is_empty()).then(|| ModelFiles::embedded("models/demo", MODEL))
}

/// Returns the files of the small draft model of the demo model.
pub fn draft_model() -> Option<ModelFiles> {
    (!DRAFT.is_empty()).then(|| ModelFiles::embedded("models/demo/draft", DRAFT))
}

/// Returns the size of the weights of the demo model in bytes.
pub fn bytes() -> u64 {
    let weights = MODEL.iter().filter(|(name, _)| name.ends_with(".safetensors"));
    weights.map(|(_, bytes)| bytes.len() as u64).sum()
}
