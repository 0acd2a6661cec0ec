//! Requests on their way in: from the bytes of a body to what the engine takes.
//!
//! `body` reads bytes within bounds of time and memory, `prompt` renders and compiles, `monitors` compiles
//! what is beside the constraint, `healing` what begins with the end of a prompt, `rewriting` shows the model
//! a text to be written anew, `tokenization` cuts texts into tokens until they fit or cannot.

pub mod body;
pub mod healing;
pub mod monitors;
pub mod prompt;
pub mod rewriting;
pub mod tokenization;
pub mod told;
