//! Answers: reads the output of the engine back into parts and writes them in the shapes of the API.
//!
//! ```text
//!   events ─► sample, text_buffer ─► text ─► parts ─► builder ─► writer (chat | completion | responses | rewriting) ─► JSON
//!                                                     │                                            stream, resume ─► events of SSE
//!                                                     └ json_patch, confidence, certificate: reports on the answer
//! ```
//!
//! `decision` reads the distribution of the model itself: its answer is a distribution and has no text.

pub mod builder;
pub mod certificate;
pub mod chat;
pub mod completion;
pub mod confidence;
pub mod decision;

pub mod json_patch;
pub mod parts;
pub mod responses;
pub mod resume;
pub mod rewriting;
pub mod sample;
pub mod stream;
pub mod text_buffer;
pub mod writer;
