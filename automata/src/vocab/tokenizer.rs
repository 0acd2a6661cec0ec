//! Text to tokens and back, with the cutting rules of a `tokenizer.json`.
//!
//! The cutting is done by Hugging Face's `tokenizers`; the bytes of the tokens come from this crate's own
//! reader, so that a text and its tokens can be compared exactly. Text enters a model in three ways, and they
//! differ:
//!
//! ```text
//!   encode               text that a model goes on with   exactly these bytes; no dummy space, no normalization
//!   encode_plain         text from a stranger             the file's own rules, but nothing becomes a special token
//!   encode_with_special  a rendered chat template         the file's own rules; "<|im_end|>" is the token
//! ```
//!
//! The dummy space of SentencePiece models is part of the second and third way only: a model sees ` Hello`
//! for a prompt `Hello`, yet what it writes after the prompt has just the spaces that it writes.

use std::panic::catch_unwind;

use serde_json::{Value, json};
use tokenizers::{
    Model, Normalizer, NormalizerWrapper, OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer,
    PreTokenizerWrapper,
};

use super::pieces::{Cut, at_least, has_seams, keeps_ascii, pieces};
use super::spelling::parts;
use super::{
    ReadLimits, TextStream, TokenKind, TokenizerFile, Vocabulary, VocabularyError, from_tokenizer_json,
};

/// Why a tokenizer could not be made, or a text not be encoded.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum TokenizerError {
    /// The file's tokens could not be read.
    #[error(transparent)]
    Vocabulary(#[from] VocabularyError),
    /// The file is not text.
    #[error("the tokenizer file is not UTF-8 at byte {at}")]
    NotUtf8 {
        /// The offset of the first bad byte.
        at: usize,
    },
    /// The rules for cutting text are broken or unknown.
    #[error("the tokenizer file cannot be used to tokenize text: {message}")]
    Unusable {
        /// What the library that cuts text says.
        message: String,
    },
    /// A token has another id when text is cut than the file gives it.
    #[error("the token {name:?} has the id {cut} when text is tokenized, which is another token in the file")]
    OtherId {
        /// The content of the token.
        name: String,
        /// The id that encoding would give.
        cut: u32,
    },
    /// No sequence of tokens writes the text.
    #[error("the vocabulary has no token for the text at byte {at}")]
    Unwritable {
        /// The furthest offset that tokens reach.
        at: usize,
    },
}

/// A tokenizer: cuts text into tokens, and knows what they write. Shared between threads.
#[derive(Debug)]
pub struct Tokenizer {
    cutter: tokenizers::Tokenizer,
    exact: TextTreatment,
    file: TokenizerFile,
    /// The file's tokens without an end of sequence, to look up bytes.
    tokens: Vocabulary,
    opening: Vec<u32>,
    /// Whether a text may be cut in pieces; see [`Tokenizer::pieces`].
    has_seams: bool,
    /// Whether tokens write texts of ASCII as they are; see [`Tokenizer::at_least`].
    keeps_ascii: bool,
    /// The texts of added tokens.
    names: Vec<String>,
}

/// What happens to text before the model cuts it.
#[derive(Clone, Debug)]
struct TextTreatment {
    normalizer: Option<NormalizerWrapper>,
    pre_tokenizer: Option<PreTokenizerWrapper>,
}

impl Tokenizer {
    /// Reads the bytes of a `tokenizer.json`.
    pub fn from_bytes(json: &[u8]) -> Result<Self, TokenizerError> {
        let text = str::from_utf8(json).map_err(|error| TokenizerError::NotUtf8 {
            at: error.valid_up_to(),
        })?;
        let file = from_tokenizer_json(text, &ReadLimits::default())?;
        let tokens = file.vocabulary(&[])?;
        let cutter = cutter(json)?;
        check_ids(&cutter, &tokens)?;
        let exact = TextTreatment::exact(&cutter)?;
        let opening = opening(&cutter)?;
        let mut tokenizer = Tokenizer {
            cutter,
            exact,
            file,
            tokens,
            opening,
            has_seams: false,
            keeps_ascii: false,
            names: Vec::new(),
        };
        tokenizer.look()?;
        Ok(tokenizer)
    }

    /// Finds out what holds of all texts.
    fn look(&mut self) -> Result<(), TokenizerError> {
        let normalizer = self.cutter.get_normalizer().map(serde_json::to_value);
        let normalizer = normalizer.transpose().map_err(unusable)?;
        let added: Vec<_> = self.cutter.get_added_tokens_decoder().into_values().collect();
        // An added token that takes the blanks beside it could take that of a seam, and takes many at once.
        let strips = added.iter().any(|token| token.lstrip || token.rstrip);
        let crosses = added.iter().any(|token| token.content.contains(' '));
        let cuts: [Cut<'_>; 3] = [
            &|text| self.encode(text).ok(),
            &|text| self.encode_plain(text).ok(),
            &|text| self.encode_with_special(text).ok(),
        ];
        self.has_seams = !strips && !crosses && has_seams(normalizer.as_ref(), &self.tokens, &cuts);
        let keeps = normalizer.as_ref().is_none_or(keeps_ascii);
        self.keeps_ascii = !strips && keeps && self.file.unknown().is_none();
        self.names = added.into_iter().map(|token| token.content).collect();
        Ok(())
    }

    /// A number of tokens that no way of encoding this text falls short of, up to `most`, for far less than
    /// encoding it; zero where nothing is known.
    pub fn at_least(&self, text: &str, most: usize) -> usize {
        if !self.keeps_ascii || !text.is_ascii() {
            return 0;
        }
        let occurs = |name: &&str| !name.is_empty() && text.contains(*name);
        let names: Vec<&str> = self.names.iter().map(String::as_str).filter(occurs).collect();
        at_least(text.as_bytes(), &self.tokens, &names, most)
    }

    /// A text in pieces whose tokens, one after another, are those of the whole. Long texts take a hundred
    /// times their size in memory while they are encoded; pieces of them do not, and whoever can use only so
    /// many tokens may stop. A text without a place to cut it is one piece, however long. Only where
    /// [`encode`](Self::encode) has to leave the file's rules it does so for a piece and not for the whole.
    pub fn pieces<'t>(&self, text: &'t str) -> impl Iterator<Item = &'t str> {
        pieces(text, self.has_seams)
    }

    /// Tokens that write exactly this text: what a model would have to write to say it. No special tokens, no
    /// dummy space, no Unicode normalization. Where the file's rules cannot write the text (a character that
    /// normalization would replace), the fewest tokens that write it are taken.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, TokenizerError> {
        let tokens = self.exact.cut(text, &self.cutter)?;
        if self.writes(&tokens, text.as_bytes()) {
            return Ok(tokens);
        }
        self.spell(text.as_bytes())
    }

    /// The tokens of a prompt from a stranger. Nothing in the text becomes an added token: `<|im_end|>` is
    /// spelt by ordinary tokens. The file's normalization and dummy space apply.
    pub fn encode_plain(&self, text: &str) -> Result<Vec<u32>, TokenizerError> {
        let way = TextTreatment {
            normalizer: self.cutter.get_normalizer().cloned(),
            pre_tokenizer: self.cutter.get_pre_tokenizer().cloned(),
        };
        let mut plain = Vec::new();
        for token in way.cut(text, &self.cutter)? {
            // A model may still cut a special piece out of the text (Unigram knows all of its pieces): spell
            // it.
            let special = self.tokens.kind(token) != TokenKind::Text && self.file.unknown() != Some(token);
            match special {
                true => plain.extend(self.spell(self.tokens.bytes(token))?),
                false => plain.push(token),
            }
        }
        Ok(plain)
    }

    /// The tokens of a rendered chat template: the names of special and other added tokens become those
    /// tokens. Never give it text from a stranger. Nothing is put in front; see [`opening`](Self::opening).
    pub fn encode_with_special(&self, text: &str) -> Result<Vec<u32>, TokenizerError> {
        let encoding = self.cutter.encode_fast(text, false).map_err(unusable)?;
        Ok(encoding.get_ids().to_vec())
    }

    /// The tokens that the file puts before every text, such as `<|begin_of_text|>`. Chat templates write
    /// them out themselves; a bare prompt wants them.
    pub fn opening(&self) -> &[u32] {
        &self.opening
    }

    /// The text of these tokens, without special tokens. Bytes that are not UTF-8 are replaced. A dummy space
    /// stays: the tokens do not say whether it was one.
    pub fn decode(&self, tokens: &[u32]) -> String {
        let mut stream = TextStream::default();
        let text = tokens
            .iter()
            .filter(|&&token| matches!(self.tokens.kind(token), TokenKind::Text | TokenKind::Mark));
        let mut text: String = text.map(|&token| stream.push(self.tokens.bytes(token))).collect();
        text += &stream.finish();
        text
    }

    /// What the file says about its tokens.
    pub fn file(&self) -> &TokenizerFile {
        &self.file
    }

    /// The id of the added token of this name.
    pub fn special(&self, name: &str) -> Option<u32> {
        self.tokens.special(name)
    }

    /// The vocabulary for a model that ends a sequence by one of these tokens.
    pub fn vocabulary(&self, eos: &[u32]) -> Result<Vocabulary, VocabularyError> {
        self.file.vocabulary(eos)
    }

    /// The same for a model whose output has this many rows, at least as many as there are tokens.
    pub fn vocabulary_with_rows(&self, eos: &[u32], rows: usize) -> Result<Vocabulary, VocabularyError> {
        self.file.clone().with_vocab_size(rows)?.vocabulary(eos)
    }

    fn writes(&self, tokens: &[u32], text: &[u8]) -> bool {
        let mut rest = Some(text);
        for &token in tokens {
            let bytes = self.tokens.bytes(token);
            rest = rest.and_then(|rest| rest.strip_prefix(bytes));
            if self.tokens.kind(token) != TokenKind::Text {
                return false;
            }
        }
        rest.is_some_and(<[u8]>::is_empty)
    }

    /// The fewest tokens that write these bytes, by dynamic programming from the end.
    fn spell(&self, text: &[u8]) -> Result<Vec<u32>, TokenizerError> {
        // best[i] is the count of tokens for text[i..] and the first of them.
        let mut best: Vec<Option<(usize, u32, usize)>> = vec![None; text.len() + 1];
        best[text.len()] = Some((0, 0, 0));
        for at in (0..text.len()).rev() {
            for (len, tokens) in self.tokens.trie().prefixes(&text[at..]) {
                let Some((count, ..)) = best[at + len] else {
                    continue;
                };
                if best[at].is_none_or(|(least, ..)| count + 1 < least) {
                    best[at] = Some((count + 1, tokens[0], len));
                }
            }
        }
        let mut spelt = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let (_, token, len) = best[at].ok_or_else(|| self.unwritable(text))?;
            spelt.push(token);
            at += len;
        }
        Ok(spelt)
    }

    fn unwritable(&self, text: &[u8]) -> TokenizerError {
        let mut reached = vec![false; text.len() + 1];
        reached[0] = true;
        for at in 0..text.len() {
            if reached[at] {
                for (len, _) in self.tokens.trie().prefixes(&text[at..]) {
                    reached[at + len] = true;
                }
            }
        }
        TokenizerError::Unwritable {
            at: reached.iter().rposition(|&reached| reached).unwrap_or(0),
        }
    }
}

fn unusable(error: impl std::fmt::Display) -> TokenizerError {
    TokenizerError::Unusable {
        message: error.to_string(),
    }
}

fn cutter(json: &[u8]) -> Result<tokenizers::Tokenizer, TokenizerError> {
    // The library checks most of a file but not all: some wrong ones (an added token that its normalizer
    // cannot take) meet an `unwrap` in it. A file from a stranger must not end the process.
    let read = catch_unwind(|| tokenizers::Tokenizer::from_bytes(json));
    let mut cutter = read
        .map_err(|_| unusable("the tokenizers library cannot load it"))?
        .map_err(unusable)?;
    // Settings for training batches; prompts are neither cut short nor filled up behind the caller's back.
    cutter.with_truncation(None).map_err(unusable)?;
    cutter.with_padding(None);
    Ok(cutter)
}

/// The library numbers added tokens anew where a file has holes; such a file would be cut into the wrong
/// tokens.
fn check_ids(cutter: &tokenizers::Tokenizer, tokens: &Vocabulary) -> Result<(), TokenizerError> {
    for (id, added) in cutter.get_added_tokens_decoder() {
        let same = match added.special {
            true => tokens.special(&added.content) == Some(id),
            false => tokens.kind(id) != TokenKind::Unused,
        };
        if !same {
            return Err(TokenizerError::OtherId {
                name: added.content,
                cut: id,
            });
        }
    }
    Ok(())
}

fn opening(cutter: &tokenizers::Tokenizer) -> Result<Vec<u32>, TokenizerError> {
    let encoding = cutter.encode("a", true).map_err(unusable)?;
    let special = encoding
        .get_special_tokens_mask()
        .iter()
        .take_while(|&&special| special == 1)
        .count();
    Ok(encoding.get_ids()[..special].to_vec())
}

impl TextTreatment {
    /// The file's way without what changes the text: only the stand-in for the space is left of the
    /// normalizer, and no pre-tokenizer puts a space in front.
    fn exact(cutter: &tokenizers::Tokenizer) -> Result<Self, TokenizerError> {
        let normalizer = match cutter.get_normalizer() {
            Some(normalizer) => spaces_only(&serde_json::to_value(normalizer).map_err(unusable)?)?,
            None => None,
        };
        let pre_tokenizer = match cutter.get_pre_tokenizer() {
            Some(pre_tokenizer) => {
                let mut value = serde_json::to_value(pre_tokenizer).map_err(unusable)?;
                forget_prefixes(&mut value);
                Some(serde_json::from_value(value).map_err(unusable)?)
            }
            None => None,
        };
        Ok(TextTreatment {
            normalizer,
            pre_tokenizer,
        })
    }

    fn cut(&self, text: &str, cutter: &tokenizers::Tokenizer) -> Result<Vec<u32>, TokenizerError> {
        let mut pieces = PreTokenizedString::from(text);
        if let Some(normalizer) = &self.normalizer {
            pieces
                .normalize(|piece| normalizer.normalize(piece))
                .map_err(unusable)?;
        }
        if let Some(pre_tokenizer) = &self.pre_tokenizer {
            pre_tokenizer.pre_tokenize(&mut pieces).map_err(unusable)?;
        }
        pieces
            .tokenize(|piece| cutter.get_model().tokenize(piece.get()))
            .map_err(unusable)?;
        let splits = pieces.get_splits(OffsetReferential::Original, OffsetType::None);
        let tokens = splits
            .into_iter()
            .flat_map(|(_, _, tokens)| tokens.iter().flatten());
        Ok(tokens.map(|token| token.id).collect())
    }
}

fn spaces_only(normalizer: &Value) -> Result<Option<NormalizerWrapper>, TokenizerError> {
    let all = parts(normalizer, "normalizers", "/normalizer")?;
    let is_space = |part: &Value| part.pointer("/pattern/String").and_then(Value::as_str) == Some(" ");
    let kept: Vec<&Value> = all
        .iter()
        .map(|(_, part)| *part)
        .filter(|part| is_space(part))
        .collect();
    if kept.is_empty() {
        return Ok(None);
    }
    let value = json!({"type": "Sequence", "normalizers": kept});
    serde_json::from_value(value).map(Some).map_err(unusable)
}

/// Switches every dummy space off. The nesting of the value is bounded by its JSON reader.
fn forget_prefixes(part: &mut Value) {
    match part.get("type").and_then(Value::as_str) {
        Some("Metaspace") => part["prepend_scheme"] = json!("never"),
        Some("ByteLevel") => part["add_prefix_space"] = json!(false),
        _ => {}
    }
    if let Some(Value::Array(parts)) = part.get_mut("pretokenizers") {
        parts.iter_mut().for_each(forget_prefixes);
    }
}
