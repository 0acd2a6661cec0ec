//! A chat template in a file of its own, which the operator names in place of that of the model's folder.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use lexiform_chat::ChatTemplate;
use lexiform_cli::failure::reason;

/// The maximum size of a file with a template; those of published models have some kilobytes.
const MOST_BYTES: u64 = 1 << 20;

/// The file of a chat template cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the chat template {}: {why}", file.display())]
pub struct TemplateFileError {
    /// The file.
    file: PathBuf,
    /// Why not.
    why: String,
}

/// Reads the source of a template.
///
/// # Errors
/// Fails if the file cannot be read, is too long, or has no valid template.
pub fn read(file: &Path) -> Result<String, TemplateFileError> {
    let fails = |why: String| TemplateFileError {
        file: file.to_owned(),
        why,
    };
    let mut source = String::new();
    let opened = File::open(file).map(|opened| opened.take(MOST_BYTES + 1));
    let read = opened.and_then(|mut opened| opened.read_to_string(&mut source));
    read.map_err(|error| fails(reason(&error)))?;
    if source.len() as u64 > MOST_BYTES {
        return Err(fails(format!("it is longer than {MOST_BYTES} bytes")));
    }
    match ChatTemplate::new(&source, Vec::new()) {
        Ok(_) => Ok(source),
        Err(error) => Err(fails(error.to_string())),
    }
}
