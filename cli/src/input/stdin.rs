//! Standard input, which can be read only once.

use std::io::Read as _;
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileTypeExt as _;
use std::sync::Mutex;

use crate::failure::Failure;

/// The name of standard input on the command line.
pub const DASH: &str = "-";

/// The argument that read standard input, if any did.
static READER: Mutex<Option<&'static str>> = Mutex::new(None);

/// Returns all bytes of standard input, for the argument that requested them.
///
/// # Errors
/// They cannot be read, or another argument has read them.
pub fn bytes(reader: &'static str) -> Result<Vec<u8>, Failure> {
    let mut last = READER.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(first) = *last {
        return Err(Failure::message(format!(
            "standard input can be read once, and both {first} and {reader} ask for it"
        )));
    }
    *last = Some(reader);
    let mut bytes = Vec::new();
    let read = std::io::stdin().read_to_end(&mut bytes);
    read.map(|_| bytes).map_err(|source| Failure::Read {
        path: "standard input".into(),
        source,
    })
}

/// Returns standard input as text, for the argument that requested it.
///
/// # Errors
/// It cannot be read, another argument has read it, or it is not UTF-8.
pub fn text(reader: &'static str) -> Result<String, Failure> {
    String::from_utf8(bytes(reader)?).map_err(|_| Failure::message("standard input is not UTF-8 text"))
}

/// Returns `true` if a text was passed without naming `-`: a pipe or a file that nothing has read yet. A
/// terminal waits for a person, and `/dev/null` is empty.
pub fn is_handed_over() -> bool {
    let read = READER.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let file = std::io::stdin()
        .as_fd()
        .try_clone_to_owned()
        .map(std::fs::File::from);
    let kind = file.and_then(|file| file.metadata()).map(|data| data.file_type());
    read.is_none() && kind.is_ok_and(|kind| kind.is_file() || kind.is_fifo())
}
