//! Vocabularies, from tokens and from the text of a `tokenizer.json`.

use std::sync::Arc;

use lexiform::vocab;
use lexiform::vocab::{ReadLimits, TokenKind, VocabularyError, from_tokenizer_json};
use napi::bindgen_prelude::Uint8Array;
use napi::{Error, Result};
use napi_derive::napi;

use crate::error::call_error;
use crate::options;
use crate::options::whole;

/// The tokens of a model as bytes.
#[napi]
pub struct Vocabulary(pub(crate) Arc<vocab::Vocabulary>);

/// A prompt without the tokens at its end that a token could begin in and end after.
#[napi(object, object_from_js = false)]
pub struct Healed {
    /// The number of tokens that are kept.
    pub kept: u32,
    /// The bytes of the others.
    pub removed: Uint8Array,
}

#[napi]
impl Vocabulary {
    /// Creates the vocabulary of these tokens by id. `bytes` holds them one after the other, `lengths` how
    /// long each is, and `kinds` the kind of each, if they are not all text.
    #[napi(constructor, catch_unwind)]
    pub fn new(
        bytes: &[u8],
        lengths: &[u32],
        eos: Vec<f64>,
        kinds: Option<Vec<String>>,
    ) -> Result<Vocabulary> {
        if kinds.as_ref().is_some_and(|kinds| kinds.len() != lengths.len()) {
            let kinds = kinds.map_or(0, |kinds| kinds.len());
            let message = format!("there are {} tokens and {kinds} kinds", lengths.len());
            return Err(call_error(message));
        }
        let (mut rest, mut tokens) = (bytes, Vec::with_capacity(lengths.len()));
        for (index, &length) in lengths.iter().enumerate() {
            let (token, after) = rest
                .split_at_checked(length as usize)
                .ok_or_else(|| call_error("the lengths of the tokens exceed their bytes"))?;
            rest = after;
            let kind = kinds
                .as_ref()
                .map_or(Ok(TokenKind::Text), |kinds| kind_of(&kinds[index]))?;
            tokens.push((kind, token));
        }
        wrapped(vocab::Vocabulary::new(&tokens, &options::tokens(&eos)?))
    }

    /// Creates the vocabulary of the text of a `tokenizer.json`.
    #[napi(factory, catch_unwind)]
    pub fn from_tokenizer_json(text: String, eos: Vec<f64>, rows: Option<f64>) -> Result<Vocabulary> {
        let limits = ReadLimits::default();
        let rows = rows.map(|rows| whole("`rows`", rows)).transpose()?;
        let rows = rows.map(|rows| rows as usize);
        if let Some(rows) = rows.filter(|&rows| rows > limits.tokens) {
            let limit = limits.tokens;
            let message = format!("a model with {rows} rows is not supported; the limit is {limit}");
            return Err(call_error(message));
        }
        let file = from_tokenizer_json(&text, &limits).map_err(vocabulary_error)?;
        let file = match rows {
            Some(rows) => file.fitted_to(rows),
            None => file,
        };
        wrapped(file.vocabulary(&options::tokens(&eos)?))
    }

    /// The number of tokens.
    #[napi(getter, catch_unwind)]
    pub fn length(&self) -> u32 {
        count(self.0.len())
    }

    /// The tokens that end a sequence.
    #[napi(getter, catch_unwind)]
    pub fn eos(&self) -> Vec<u32> {
        self.0.eos().to_vec()
    }

    /// Returns the bytes of a token, or the name of a special one; empty outside the vocabulary.
    #[napi(catch_unwind)]
    pub fn bytes(&self, token: f64) -> Result<Uint8Array> {
        let token = whole("a token", token)?;
        Ok(self.0.bytes(token).to_vec().into())
    }

    /// Returns the kind of a token: "text", "special", "mark" or "unused".
    #[napi(catch_unwind)]
    pub fn kind(&self, token: f64) -> Result<&'static str> {
        let kind = self.0.kind(whole("a token", token)?);
        let known = KINDS.iter().find(|(_, known)| *known == kind);
        Ok(known.map_or("unused", |(name, _)| name))
    }

    /// Returns the special token or mark of this name.
    #[napi(catch_unwind)]
    pub fn special(&self, name: String) -> Option<u32> {
        self.0.special(&name)
    }

    /// Returns how many tokens of a prompt are kept, and the bytes of the removed ones.
    #[napi(catch_unwind)]
    pub fn heal(&self, prompt: Vec<f64>) -> Result<Healed> {
        let healed = self.0.heal(&options::tokens(&prompt)?);
        Ok(Healed {
            kept: count(healed.kept),
            removed: healed.removed.into(),
        })
    }
}

/// The kinds of tokens by their names.
const KINDS: [(&str, TokenKind); 4] = [
    ("text", TokenKind::Text),
    ("special", TokenKind::Special),
    ("mark", TokenKind::Mark),
    ("unused", TokenKind::Unused),
];

fn kind_of(name: &str) -> Result<TokenKind> {
    let known = KINDS.iter().find(|(known, _)| *known == name);
    known.map(|(_, kind)| *kind).ok_or_else(|| {
        call_error(format!(
            "{name:?} is no kind of token; there are \"text\", \"special\", \"mark\" and \"unused\""
        ))
    })
}

/// Returns a count for JavaScript.
pub(crate) fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Returns the number of 32-bit words of a mask.
pub(crate) fn words(vocabulary: &vocab::Vocabulary) -> usize {
    vocabulary.len().div_ceil(32)
}

fn wrapped(made: std::result::Result<vocab::Vocabulary, VocabularyError>) -> Result<Vocabulary> {
    made.map(|made| Vocabulary(Arc::new(made)))
        .map_err(vocabulary_error)
}

/// Returns the error of an invalid vocabulary.
pub(crate) fn vocabulary_error(error: VocabularyError) -> Error {
    call_error(error.to_string())
}
