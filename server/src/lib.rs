//! The service and the command line of Lexiform.
//!
//! ```text
//!   bytes ─► routes ─► request ─► model ─► engine (its own thread)
//!              │       prompt,      │ events
//!              │       grammars     ▼
//!              └─────────────── answer ─► whole, or stream ─► client
//! ```
//!
//! The modules, from the bottom to the top; each uses only those before it (`SERVER_ROOMS` in
//! `tests/rules/architecture.rs`):
//!
//! * `wire` is the JSON of the API: what requests may contain, every problem with its path, the shapes of
//!   answers and errors.
//! * `operate` is what operators configure and see: keys, TLS, CORS, accounts of requests, metrics, traces.
//! * `grammars` writes the language of a whole answer as one grammar, compiles it once for all requests, and
//!   caches it.
//! * `model` is a model that is ready for requests: engine, tokenizer, chat template, and the requests that
//!   run on it.
//! * `request` turns a request into the input of the engine: the body, the prompt in tokens, the sampling.
//! * `gateway` is another service: it forwards chats to an upstream that takes less of JSON Schema.
//! * `answer` reads the output of the engine back into parts and writes them in the shapes of the API, whole
//!   or as a stream.
//! * `routes` has a file per endpoint, the code that they share, and the HTTP server around them.
//! * `cli` is the command line; the binary is a single call of [`cli::main`]. Everything is a library, so
//!   that the tests can start the same service in their own process.
//!
//! Dropping an answer frees its sequences: no part of the server has to remember to cancel.

#![forbid(unsafe_code)]

pub mod answer;
pub mod cli;
pub mod gateway;
pub mod grammars;
pub mod model;
pub mod operate;
pub mod request;
pub mod routes;
pub mod wire;
