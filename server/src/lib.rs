//! The service and the command line of Lexiform.
//!
//! ```text
//!   body ─► wire ─► prompt ─► worker ─► engine (its own thread)
//!           checked  tokens,    │
//!                    grammar    ▼
//!                            sample ─► answer ─► whole, or stream ─► client
//! ```
//!
//! * `app` makes the server and wraps every request; `routes` says what answers where.
//! * `wire` is the JSON of the API: what requests may hold, every problem with its path, and the shapes of answers.
//! * `served` is a model that is ready to be asked; `prompt` turns a checked request into what its engine takes, with
//!   `template` (chat templates) and `grammars` (the compiler and its cache).
//! * `language` is what a whole answer may be (a thought, content, calls of tools), written as one
//!   grammar; `channels` reads an answer back into these parts.
//! * `worker` submits; `sample` follows one text as it grows (`text` holds back what is not certain); `answer` puts
//!   the samples of a request into the API's shapes; `stream` is the body of a streamed answer.
//! * `cli` is the command line; the binary is a single call of [`cli::main`]. Everything is a library, so that the
//!   tests can start the same service in their own process.
//!
//! Whoever drops an answer frees its sequences: no part of the server has to remember to cancel.

#![forbid(unsafe_code)]

pub mod answer;
pub mod app;
pub mod audit;
pub mod body;
pub mod certify;
pub mod chance;
pub mod channels;
pub mod cli;
pub mod compile_memory;
pub mod confidence;
pub mod config;
pub mod cors;
pub mod cutting;
pub mod decide;
pub mod demo;
mod effort;
pub mod enforcement;
pub mod error;
pub mod flight;
pub mod grammars;
pub mod growth;
pub mod inspect;
pub mod language;
pub mod metrics;
pub mod prepare;
pub mod process;
pub mod prompt;
mod respond;
pub mod resume;
pub mod routes;
pub mod sample;
pub mod security;
pub mod served;
pub mod shelf;
pub mod stream;
pub mod template;
pub mod text;
pub mod tls;
pub mod traces;
pub mod wire;
pub mod worker;
