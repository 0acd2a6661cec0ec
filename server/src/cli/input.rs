//! What a command reads: sources, texts, standard input, tokenizers, and the file of flags.

pub mod config;
pub mod demo;
pub mod folder;
pub mod source;
pub mod stdin;
pub mod texts;
pub mod tokenizer;
