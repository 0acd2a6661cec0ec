//! Masks, states and budgets, against slow oracles and against files of digests; vocabularies; the nearest
//! valid text.

mod batch;
mod budget;
mod digested;
mod explain;
mod longest;
mod machine;
mod mask_digests;
mod oracle;
mod published;
mod punycode;
mod repair;
mod session;
mod special_tokens;
mod state_keys;
mod vocab;
mod vocab_tokenizer;
