//! Vocabularies: the bytes that each token writes.
//!
//! A [`Vocabulary`] knows the exact bytes of every text token, keeps special tokens separate, and holds all
//! text tokens in a [`Trie`] laid out in depth-first order, so that a walk is a scan with skips.
//!
//! ```text
//!   tokenizer.json ── from_tokenizer_json ──┐
//!                                           ├──► TokenizerFile ── vocabulary(eos) ──► Vocabulary, Trie
//!   tiktoken ranks ── from_tiktoken ────────┘
//! ```
//!
//! The readers take text, not paths: the library does no I/O. They do not trust their input: the worst effect
//! of a malformed or malicious file is an error that names a place in it.

mod alphabet;
mod children;
mod healing;
mod node;
#[cfg(feature = "tokenizers")]
mod pieces;
mod spelling;
mod stream;
mod tiktoken;
mod tokenisations;
#[cfg(feature = "tokenizers")]
mod tokenizer;
mod tokenizer_file;
mod tokenizer_json;
mod trie;
#[cfg(feature = "tokenizers")]
mod trusting;
mod vocabulary;

pub(crate) use alphabet::{Alphabet, BEYOND_ASCII, UNSOUND, Within, ascii, beyond};
pub use healing::Healed;
pub use node::Node;
pub use spelling::Scheme;
pub use stream::TextStream;
pub use tiktoken::from_tiktoken;
pub use tokenisations::Tokenisations;
#[cfg(feature = "tokenizers")]
pub use tokenizer::{Tokenizer, TokenizerError};
pub use tokenizer_file::{ReadLimits, TokenizerFile};
pub use tokenizer_json::from_tokenizer_json;
pub use trie::Trie;
pub use vocabulary::{TokenKind, Vocabulary, VocabularyError};
