//! The models that are served: engine, tokenizer, chat template, and the requests that run on them.
//!
//! `registry` has the models by name and decides which are in memory; `served` puts the parts of one
//! together, `text` is the content of the model's folder besides its weights, `running` is one request in the
//! engine, and `limits` bounds its time and the size of the queues. `corpus` reads the texts of the operator
//! from which answers are drafted.

pub mod corpus;
pub mod limits;
pub mod registry;
pub mod running;
pub mod served;
pub mod source;
pub mod template_file;
pub mod text;
pub mod weighing;
