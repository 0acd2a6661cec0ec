//! Makes the tokenizer.json of a GGUF file, in the form that the crate `tokenizers` reads.
//!
//! - `gpt2`: bytes are merged by a list of merges; the way in which a text is cut before is given by a name
//!   ([`pretokenizers`](super::pretokenizers)).
//! - `llama`: SentencePiece. A file has a score for each token, and no merges: two pieces are merged if their
//!   text is a token, the one with the highest score first. As merges, these are all ways to split a token
//!   into two tokens, ordered by the scores of the whole, which is how `transformers` converts such a model.
//!
//! Both keep added tokens (control tokens and those of the user) separate from the merges.

use super::file::Gguf;
use super::pretokenizers;
use super::text::{self, CONTROL};
use crate::error::LoadError;
use serde_json::{Map, Value, json};
use std::collections::HashMap;

type Result<T> = std::result::Result<T, LoadError>;

const MODELS: &str = "gpt2, llama";
/// The `token_type` of the unknown token, and of a token that the user added.
const UNKNOWN_TOKEN: i64 = 2;
const ADDED: i64 = 4;
/// The sign that SentencePiece writes for a space.
const SPACE: &str = "▁";
/// The longest token that is split in all ways, in characters. Real models have at most 96.
const LONGEST_TOKEN: usize = 1 << 10;

/// Returns the text of tokenizer.json.
pub(super) fn tokenizer(file: &Gguf) -> Result<String> {
    const KEY: &str = "tokenizer.ggml.model";
    let parts = match file.read(file.metadata.text(KEY))?.unwrap_or_default() {
        "gpt2" => bytes(file)?,
        "llama" => pieces(file)?,
        other => return Err(file.unsupported(KEY, other, MODELS)),
    };
    let tokenizer = json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": added(file, parts.added_as)?,
        "normalizer": parts.normalizer,
        "pre_tokenizer": parts.pre_tokenizer,
        "post_processor": opening(file, parts.is_opened)?,
        "decoder": parts.decoder,
        "model": parts.model,
    });
    Ok(tokenizer.to_string())
}

/// The parts in which the two kinds differ.
struct TokenizerParts {
    normalizer: Value,
    pre_tokenizer: Value,
    decoder: Value,
    model: Value,
    /// `true` if a text begins with the first token by default.
    is_opened: bool,
    added_as: AddedAs,
}

/// The form in which the tokens that a user added are written.
#[derive(Clone, Copy, PartialEq)]
enum AddedAs {
    /// As they appear in a text.
    Text,
    /// As pieces: with the sign for a space, which a text has only after it is normalised.
    Pieces,
}

/// Returns the parts of a tokenizer that merges bytes.
fn bytes(file: &Gguf) -> Result<TokenizerParts> {
    const KEY: &str = "tokenizer.ggml.pre";
    let usual = if file.architecture.name == "gpt2" {
        "gpt-2"
    } else {
        ""
    };
    let name = file.read(file.metadata.text(KEY))?.unwrap_or(usual);
    let cutting =
        pretokenizers::of(name).ok_or_else(|| file.unsupported(KEY, name, pretokenizers::KNOWN_NAMES))?;
    let split = |pattern: &&str| json!({"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": false});
    let by_level =
        json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false});
    let cuts: Vec<Value> = cutting
        .patterns
        .iter()
        .map(split)
        .chain([by_level.clone()])
        .collect();
    let merges = file.read(file.metadata.texts("tokenizer.ggml.merges"))?;
    let merges = merges.ok_or_else(|| file.malformed("the key tokenizer.ggml.merges is missing"))?;
    Ok(TokenizerParts {
        normalizer: if cutting.composed {
            json!({"type": "NFC"})
        } else {
            Value::Null
        },
        pre_tokenizer: json!({"type": "Sequence", "pretokenizers": cuts}),
        decoder: by_level,
        model: json!({
            "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
            "ignore_merges": cutting.whole_words, "vocab": vocabulary(file)?, "merges": merges,
        }),
        added_as: AddedAs::Text,
        is_opened: cutting == pretokenizers::of("llama-bpe").unwrap_or(cutting) && cutting.whole_words,
    })
}

/// Returns the parts of a tokenizer that merges pieces by their scores.
fn pieces(file: &Gguf) -> Result<TokenizerParts> {
    let tokens = text::tokens(file)?;
    let prefixed = file
        .read(file.metadata.flag("tokenizer.ggml.add_space_prefix"))?
        .unwrap_or(true);
    let replace = json!({"type": "Replace", "pattern": {"String": " "}, "content": SPACE});
    let mut decoders = vec![
        json!({"type": "Replace", "pattern": {"String": SPACE}, "content": " "}),
        json!({"type": "ByteFallback"}),
        json!({"type": "Fuse"}),
    ];
    if prefixed {
        decoders.push(json!({"type": "Strip", "content": " ", "start": 1, "stop": 0}));
    }
    let unknown = text::special(file, "unknown_token_id", tokens)?;
    let unknown = unknown.and_then(|token| tokens.get(token as usize));
    Ok(TokenizerParts {
        normalizer: match prefixed {
            true => {
                json!({"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": SPACE}, replace]})
            }
            false => replace,
        },
        pre_tokenizer: Value::Null,
        decoder: json!({"type": "Sequence", "decoders": decoders}),
        model: json!({
            "type": "BPE", "dropout": null, "unk_token": unknown, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": true, "byte_fallback": true, "ignore_merges": false,
            "vocab": vocabulary(file)?, "merges": merges(file, tokens)?,
        }),
        added_as: AddedAs::Pieces,
        is_opened: true,
    })
}

/// Returns the numbers of the tokens by their texts.
fn vocabulary(file: &Gguf) -> Result<Map<String, Value>> {
    let mut vocabulary = Map::new();
    for (number, token) in text::tokens(file)?.iter().enumerate() {
        if vocabulary.insert(token.clone(), json!(number)).is_some() {
            return Err(file.malformed(format!("the token {token:?} is there twice")));
        }
    }
    Ok(vocabulary)
}

/// Returns all ways to split a token into two tokens, ordered by the scores of the whole.
fn merges(file: &Gguf, tokens: &[String]) -> Result<Vec<Value>> {
    const KEY: &str = "tokenizer.ggml.scores";
    let scores = file.read(file.metadata.floats(KEY))?;
    let scores = scores.filter(|scores| scores.len() == tokens.len());
    let scores =
        scores.ok_or_else(|| file.malformed(format!("{KEY} has no score for each of the tokens")))?;
    let numbers: HashMap<&str, usize> = tokens.iter().map(String::as_str).zip(0..).collect();
    let mut merges = Vec::new();
    for (whole, token) in tokens.iter().enumerate() {
        if token.chars().count() > LONGEST_TOKEN {
            return Err(file.malformed(format!("token {whole} has more than {LONGEST_TOKEN} characters")));
        }
        for (at, _) in token.char_indices().skip(1) {
            let (left, right) = token.split_at(at);
            if let (Some(&left), Some(&right)) = (numbers.get(left), numbers.get(right)) {
                merges.push((whole, left, right));
            }
        }
    }
    merges.sort_by(|one, other| {
        let by_score = scores[other.0].total_cmp(&scores[one.0]);
        by_score.then_with(|| one.cmp(other))
    });
    let pair = |(_, left, right): (usize, usize, usize)| json!([tokens[left], tokens[right]]);
    Ok(merges.into_iter().map(pair).collect())
}

/// Returns the control tokens and those that the user added.
fn added(file: &Gguf, added_as: AddedAs) -> Result<Vec<Value>> {
    let tokens = text::tokens(file)?;
    let kinds = file
        .read(file.metadata.integers("tokenizer.ggml.token_type"))?
        .unwrap_or_default();
    let token = |(number, (text, kind)): (usize, (&String, &i64))| {
        [CONTROL, UNKNOWN_TOKEN, ADDED].contains(kind).then(|| {
            json!({
                "id": number, "content": text, "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": *kind == ADDED && added_as == AddedAs::Pieces, "special": *kind != ADDED,
            })
        })
    };
    Ok(tokens.iter().zip(kinds).enumerate().filter_map(token).collect())
}

/// Returns the step that puts the first token before a text, if there is one.
fn opening(file: &Gguf, usually: bool) -> Result<Value> {
    let tokens = text::tokens(file)?;
    let is_opened = file
        .read(file.metadata.flag("tokenizer.ggml.add_bos_token"))?
        .unwrap_or(usually);
    let Some(first) = text::special(file, "bos_token_id", tokens)?.filter(|_| is_opened) else {
        return Ok(Value::Null);
    };
    let text = &tokens[first as usize];
    let special = json!({"SpecialToken": {"id": text, "type_id": 0}});
    let sequence = json!({"Sequence": {"id": "A", "type_id": 0}});
    Ok(json!({
        "type": "TemplateProcessing",
        "single": [special, sequence],
        "pair": [special, sequence, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {text: {"id": text, "ids": [first], "tokens": [text]}},
    }))
}
