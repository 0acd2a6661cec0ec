//! The service as clients meet it: a real server on a free port, real connections, a model that follows a script.

#[path = "http/bodies.rs"]
mod bodies;
#[path = "http/chats.rs"]
mod chats;
#[path = "http/constraints.rs"]
mod constraints;
#[path = "http/errors.rs"]
mod errors;
#[path = "http/leaving.rs"]
mod leaving;
#[path = "http/service.rs"]
mod service;
#[path = "http/streams.rs"]
mod streams;
#[path = "http/tokenizer.rs"]
mod tokenizer;
