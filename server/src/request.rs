//! Requests on their way in: from the bytes of a body to what the engine takes.
//!
//! `body` reads bytes within bounds of time and memory, `prompt` renders and compiles, `tokenization` cuts texts into
//! tokens until they fit or cannot.

pub mod body;
pub mod prompt;
pub mod tokenization;
