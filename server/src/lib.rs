//! The service and the command line of Lexiform.
//!
//! ```text
//!   bytes ─► routes ─► request ─► model ─► engine (its own thread)
//!              │       prompt,      │ events
//!              │       grammars     ▼
//!              └─────────────── answer ─► whole, or stream ─► client
//! ```
//!
//! The rooms, from the bottom to the top; each names only those before it (`SERVER_ROOMS` in
//! `tests/rules/architecture.rs`):
//!
//! * `wire` is the JSON of the API: what requests may hold, every problem with its path, the shapes of
//!   answers and errors.
//! * `operate` is what operators choose and see: keys, TLS, CORS, accounts of requests, metrics, traces.
//! * `grammars` writes the language of a whole answer as one grammar, compiles it once for all who ask, and
//!   keeps it.
//! * `model` is a model that is ready to be asked: engine, tokenizer, chat template, and the requests that
//!   run on it.
//! * `request` turns what is asked into what the engine takes: the body, the prompt in tokens, the sampling.
//! * `answer` reads what the engine writes back into parts and puts them into the shapes of the API, whole or
//!   as a stream.
//! * `routes` is a file per endpoint, what they share, and the HTTP server around them.
//! * `cli` is the command line; the binary is a single call of [`cli::main`]. Everything is a library, so
//!   that the tests can start the same service in their own process.
//!
//! Whoever drops an answer frees its sequences: no part of the server has to remember to cancel.

#![forbid(unsafe_code)]

pub mod answer;
pub mod cli;
pub mod grammars;
pub mod model;
pub mod operate;
pub mod request;
pub mod routes;
pub mod wire;
