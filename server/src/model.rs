//! The model that is served: engine, tokenizer, chat template, and the requests that run on it.
//!
//! `served` puts them together, `text` is what the model's folder says beside its weights, `running` is one
//! request in the engine, and `limits` says how long it may take and how much may wait. `corpus` reads the
//! texts of the operator that answers are drafted from.

pub mod corpus;
pub mod limits;
pub mod running;
pub mod served;
pub mod source;
pub mod template;
pub mod text;
pub mod weighing;
