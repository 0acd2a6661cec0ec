//! The inputs of commands: sources, texts, standard input and tokenizers.

pub mod folder;
pub(crate) mod hash;
pub mod source;
pub mod stdin;
pub mod texts;
pub mod tokenizer;
