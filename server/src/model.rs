//! The model that is served: engine, tokenizer, chat template, and the requests that run on it.
//!
//! `served` puts them together, `text` is what the model's folder says beside its weights, `running` is one request in
//! the engine, and `limits` says how long it may take and how much may wait.

pub mod limits;
pub mod running;
pub mod served;
pub mod template;
pub mod text;
