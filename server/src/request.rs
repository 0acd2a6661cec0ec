//! Requests on their way in: from the bytes of a body to the input of the engine.
//!
//! `body` reads bytes within limits of time and memory, `prompt` renders and compiles, `engine_request` turns
//! settings into those of the engine, `told` describes tools and schemas to the model, `contrast` renders the
//! prompt that an answer is contrasted with, `monitors` compiles the constraints beside the main one,
//! `infilling` writes prompts for answers between two texts, `healing` handles answers that begin with the
//! end of a prompt, `continuing` those that a prompt has begun, `penalties` finds the text that penalties
//! concern, `rewriting` shows the model a text to be rewritten, `tokenization` splits texts into tokens
//! within bounds.

pub mod body;
pub mod continuing;
pub mod contrast;
pub mod engine_request;
pub mod healing;
pub mod infilling;
pub mod monitors;
pub mod penalties;
pub mod permission;
pub mod prompt;
pub mod rewriting;
pub mod thoughts;
pub mod tokenization;
pub mod told;
