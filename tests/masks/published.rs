//! The vocabularies of published models, read from `.data`.

use std::path::Path;
use std::sync::Arc;

use lexiform::vocab::{ReadLimits, TokenKind, Vocabulary, from_tokenizer_json};

/// Returns a published vocabulary, whose last special token ends the text, and its file, or `None` with a
/// message that names the test if the file is missing.
pub(crate) fn published(test: &str, name: &str) -> Option<(Arc<Vocabulary>, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = root.join(".data/tokenizers").join(name).join("tokenizer.json");
    let Ok(json) = std::fs::read_to_string(&path) else {
        println!("skipped: {test}: {} is not there", path.display());
        return None;
    };
    let file = from_tokenizer_json(&json, &ReadLimits::default()).expect("a published tokenizer is read");
    let kinds = file.tokens().iter().map(|(kind, _)| *kind);
    let special = kinds.zip(0..).filter(|(kind, _)| *kind == TokenKind::Special);
    let (_, eos) = special.last().expect("every tokenizer has a special token");
    let vocabulary = file.vocabulary(&[eos]).expect("a vocabulary");
    Some((Arc::new(vocabulary), json))
}
