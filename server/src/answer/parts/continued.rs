//! The format of answers that a prompt has begun.

use std::sync::Arc;

use super::{OutputFormat, Part, PartReader};

/// Returns the format of answers after this text of theirs, or `None` if it has more than content, or ends in
/// what may be the beginning of a call.
pub fn after(format: OutputFormat, begun: &str) -> Option<OutputFormat> {
    let mut reader = PartReader::new(Arc::new(format.clone()));
    let parts = reader.push(begun);
    let is_content = parts.iter().all(|part| matches!(part, Part::Content(_)));
    (is_content && reader.holds_nothing()).then(|| OutputFormat {
        begun: begun.to_owned(),
        ..format
    })
}
