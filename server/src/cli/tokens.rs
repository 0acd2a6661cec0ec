//! Tokenizers for the commands that show or measure masks.

use std::path::Path;
use std::sync::Arc;

use lexiform::vocab::{TokenKind, Tokenizer, Vocabulary};
use serde_json::Value;

use crate::cli::failure::{Failure, read_text};

/// What models call the token that ends a sequence, for folders that hold nothing but a `tokenizer.json`. The token
/// that ends a chat turn comes before the one that ends a document, since instructed models write the former.
const USUAL_ENDS: [&str; 9] = [
    "<|eot_id|>",
    "<|im_end|>",
    "<|return|>",
    "<|end|>",
    "<|end_of_text|>",
    "<|endoftext|>",
    "<|eos|>",
    "</s>",
    "<eos>",
];

/// A tokenizer and its vocabulary, ended by the token of this name, or else by the one that the folder names.
///
/// # Errors
/// The file cannot be read, is not a `tokenizer.json`, or no token is known to end a sequence.
pub fn load(path: &Path, eos: Option<&str>) -> Result<(Tokenizer, Arc<Vocabulary>), Failure> {
    let bytes = std::fs::read(path).map_err(|source| Failure::Read {
        path: path.to_owned(),
        source,
    })?;
    let wrong = |error: &dyn std::fmt::Display| Failure::message(format!("{}: {error}", path.display()));
    let tokenizer = Tokenizer::from_bytes(&bytes).map_err(|error| wrong(&error))?;
    let end = match eos {
        Some(name) => tokenizer
            .special(name)
            .ok_or_else(|| wrong(&format!("there is no special token {name}")))?,
        None => usual_end(&tokenizer, path)
            .ok_or_else(|| wrong(&"no token is known to end a sequence; name one with --eos"))?,
    };
    let vocabulary = tokenizer.vocabulary(&[end]).map_err(|error| wrong(&error))?;
    Ok((tokenizer, Arc::new(vocabulary)))
}

fn usual_end(tokenizer: &Tokenizer, path: &Path) -> Option<u32> {
    let named = end_in_config(&path.with_file_name("tokenizer_config.json"));
    let names = named.iter().map(String::as_str).chain(USUAL_ENDS);
    names.into_iter().find_map(|name| tokenizer.special(name))
}

/// `eos_token` of the configuration beside the tokenizer: a name, or an object with the name as `content`.
fn end_in_config(path: &Path) -> Option<String> {
    let config: Value = serde_json::from_str(&read_text(path).ok()?).ok()?;
    let token = &config["eos_token"];
    Some(token.as_str().or_else(|| token["content"].as_str())?.to_owned())
}

/// A vocabulary with one token a byte, for questions about text that no tokenizer has a part in.
///
/// # Errors
/// Never in practice; the vocabulary is small and fixed.
pub fn bytes_only() -> Result<Arc<Vocabulary>, Failure> {
    let mut tokens: Vec<(TokenKind, Vec<u8>)> = (0..=255).map(|byte| (TokenKind::Text, vec![byte])).collect();
    tokens.push((TokenKind::Special, b"<end>".to_vec()));
    let vocabulary = Vocabulary::new(&tokens, &[256]).map_err(|error| Failure::message(error.to_string()))?;
    Ok(Arc::new(vocabulary))
}
