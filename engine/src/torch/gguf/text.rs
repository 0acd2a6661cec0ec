//! The small texts of a folder: the special tokens, the chat template, and the sampling that the makers of a
//! model recommend.

use super::file::Gguf;
use crate::error::LoadError;
use serde_json::{Map, Value, json};

type Result<T> = std::result::Result<T, LoadError>;

/// The texts of tokens that end a turn. If a model has several ends, files name them only by these texts.
const ENDS: [&str; 8] = [
    "<|eot_id|>",
    "<|eom_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<end_of_turn>",
    "<|return|>",
];

/// The `token_type` of a control token.
pub(super) const CONTROL: i64 = 3;

/// Returns the tokens that end a text.
pub(super) fn ends(file: &Gguf) -> Result<Vec<i64>> {
    let tokens = tokens(file)?;
    let mut ends = Vec::new();
    for key in ["eos_token_id", "eot_token_id", "eom_token_id"] {
        if let Some(token) = special(file, key, tokens)? {
            ends.push(token);
        }
    }
    let kinds = file
        .read(file.metadata.integers("tokenizer.ggml.token_type"))?
        .unwrap_or_default();
    for (number, (text, kind)) in tokens.iter().zip(kinds).enumerate() {
        if *kind == CONTROL && ENDS.contains(&text.as_str()) {
            ends.push(number as i64);
        }
    }
    ends.sort_unstable();
    ends.dedup();
    Ok(ends)
}

/// Returns the texts of all tokens.
pub(super) fn tokens(file: &Gguf) -> Result<&[String]> {
    const KEY: &str = "tokenizer.ggml.tokens";
    let tokens = file.read(file.metadata.texts(KEY))?;
    tokens.ok_or_else(|| file.malformed(format!("the key {KEY} is missing: it has no tokenizer")))
}

/// Returns a special token, which must be in the vocabulary.
pub(super) fn special(file: &Gguf, key: &str, tokens: &[String]) -> Result<Option<i64>> {
    let key = format!("tokenizer.ggml.{key}");
    let token = file.read(file.metadata.integer(&key))?;
    match token {
        // Some writers use these values if there is no such token.
        Some(-1 | 0xffff_ffff) | None => Ok(None),
        Some(token) if usize::try_from(token).is_ok_and(|token| token < tokens.len()) => Ok(Some(token)),
        Some(token) => {
            let message = format!("{key} is {token}; there are {} tokens", tokens.len());
            Err(file.malformed(message))
        }
    }
}

/// Returns the text of tokenizer_config.json.
pub(super) fn tokenizer_config(file: &Gguf) -> Result<String> {
    let tokens = tokens(file)?;
    let mut config = Map::new();
    for (key, name) in [
        ("bos_token_id", "bos_token"),
        ("eos_token_id", "eos_token"),
        ("unknown_token_id", "unk_token"),
        ("padding_token_id", "pad_token"),
    ] {
        if let Some(token) = special(file, key, tokens)? {
            config.insert(name.to_owned(), json!(tokens[token as usize]));
        }
    }
    if let Some(template) = file.read(file.metadata.text("tokenizer.chat_template"))? {
        config.insert("chat_template".to_owned(), json!(template));
    }
    Ok(Value::Object(config).to_string())
}

/// Returns the text of generation_config.json.
pub(super) fn generation_config(file: &Gguf) -> Result<String> {
    let mut config = Map::new();
    config.insert("eos_token_id".to_owned(), json!(ends(file)?));
    for (key, name) in [
        ("temp", "temperature"),
        ("top_k", "top_k"),
        ("top_p", "top_p"),
        ("min_p", "min_p"),
        ("penalty_repeat", "repetition_penalty"),
    ] {
        let number = file.read(file.metadata.number(&format!("general.sampling.{key}")))?;
        if let Some(number) = number {
            let number = if name == "top_k" {
                json!(number as i64)
            } else {
                json!(number)
            };
            config.insert(name.to_owned(), number);
        }
    }
    Ok(Value::Object(config).to_string())
}
