//! The format of answers that a prompt has begun.

use super::{OutputFormat, Part, without_places};

/// Returns the format of answers after this text of theirs, or `None` if it has more than content, or ends in
/// what may be the beginning of a call.
pub fn after(format: OutputFormat, begun: &str) -> Option<OutputFormat> {
    let mut reader = format.reader();
    let is_content = without_places(reader.push(begun)).all(|part| matches!(part, Part::Content(_)));
    (is_content && reader.holds_nothing()).then(|| OutputFormat {
        begun: begun.to_owned(),
        ..format
    })
}
