//! Models in one file, as llama.cpp writes them: weights, configuration, tokenizer and chat template.
//!
//! ```text
//!   file (or files) ─ container ─► keys ─┬─ architecture, config ► config.json            the texts of a
//!                        │               ├─ tokenizer ───────────► tokenizer.json         folder, as other
//!                        │               └─ text ────────────────► tokenizer_config.json  code reads them
//!                        └─ tensors ─ by the names of a folder ──► rows of blocks         widened in use
//! ```
//!
//! Nothing here names torch. A file is opened and read piece by piece, and not mapped: if it is truncated
//! meanwhile, that is an error and not a signal.
//!
//! Tests: `engine/tests/engine/gguf.rs` reads files that llama.cpp's own package wrote.

pub(crate) mod architecture;
pub(crate) mod blocks;
mod config;
mod container;
pub(crate) mod file;
mod metadata;
mod pretokenizers;
mod text;
mod tokenizer;

use self::file::Gguf;
use crate::error::LoadError;

/// A function that makes the text of a folder's file.
type Made = fn(&Gguf) -> Result<String, LoadError>;

/// The files that a Hugging Face folder would have beside its weights.
const TEXTS: [(&str, Made); 4] = [
    ("config.json", config::config),
    ("generation_config.json", text::generation_config),
    ("tokenizer.json", tokenizer::tokenizer),
    ("tokenizer_config.json", text::tokenizer_config),
];

/// Returns the text of the file with this name in a folder of this model; `None` if it would have no such
/// file.
///
/// # Errors
/// The content is missing in the GGUF file, or cannot be read.
pub(crate) fn text(file: &Gguf, name: &str) -> Result<Option<String>, LoadError> {
    let made = TEXTS.iter().find(|(known, _)| *known == name);
    made.map(|(_, make)| make(file)).transpose()
}

/// Returns `true` if a folder would have a file with this name.
pub(crate) fn has_text(name: &str) -> bool {
    TEXTS.iter().any(|(known, _)| *known == name)
}
