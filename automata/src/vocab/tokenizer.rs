//! Converts text to tokens and back, with the tokenization rules of a `tokenizer.json`.
//!
//! Hugging Face's `tokenizers` does the tokenization; the bytes of the tokens come from this crate's own
//! reader, so that a text and its tokens can be compared exactly. There are four ways to encode text for a
//! model:
//!
//! ```text
//!   encode               text that continues a prompt  exactly these bytes; no dummy space, no normalization
//!   encode_plain         an untrusted text             the file's own rules, but no special tokens
//!   encode_with_special  a text that is trusted        the file's own rules; "<|im_end|>" is the token
//!   encode_trusting      a rendered chat template      likewise, in those parts of it that are trusted
//! ```
//!
//! All but the first way add the dummy space of SentencePiece models: a model sees ` Hello` for a
//! prompt `Hello`, but the text after the prompt contains exactly the spaces that the model writes.

use std::ops::Range;
use std::panic::catch_unwind;

use serde_json::{Value, json};
use tokenizers::{
    Model, NormalizedString, Normalizer, NormalizerWrapper, OffsetReferential, OffsetType,
    PreTokenizedString, PreTokenizer, PreTokenizerWrapper, Token,
};

use super::pieces::{Cut, at_least, has_seams, keeps_ascii, pieces};
use super::spelling::parts;
use super::trusting::{AddedTokens, cut, is_within};
use super::{
    ReadLimits, TextStream, TokenKind, TokenizerFile, Vocabulary, VocabularyError, from_tokenizer_json,
};

/// The error of creating a tokenizer or encoding a text.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum TokenizerError {
    /// The file's tokens could not be read.
    #[error(transparent)]
    Vocabulary(#[from] VocabularyError),
    /// The file is not UTF-8.
    #[error("the tokenizer file is not UTF-8 at byte {at}")]
    NotUtf8 {
        /// The offset of the first bad byte.
        at: usize,
    },
    /// The tokenization rules are broken or unknown.
    #[error("the tokenizer file cannot be used to tokenize text: {message}")]
    Unusable {
        /// The message of the `tokenizers` library.
        message: String,
    },
    /// Encoding gives a token another id than the file does.
    #[error("the token {name:?} has the id {cut} when text is tokenized, which is another token in the file")]
    OtherId {
        /// The content of the token.
        name: String,
        /// The id that encoding gives.
        cut: u32,
    },
    /// No sequence of tokens writes the text.
    #[error("the vocabulary has no token for the text at byte {at}")]
    Unwritable {
        /// The furthest offset that tokens reach.
        at: usize,
    },
}

/// A tokenizer: converts text to tokens, and knows the bytes that they write. Shared between threads.
#[derive(Debug)]
pub struct Tokenizer {
    cutter: tokenizers::Tokenizer,
    exact: TextTreatment,
    file: TokenizerFile,
    /// The file's tokens without end tokens, to look up bytes.
    tokens: Vocabulary,
    opening: Vec<u32>,
    added: AddedTokens,
    /// `true` if a text may be split into pieces; see [`Tokenizer::pieces`].
    has_seams: bool,
    /// `true` if tokens write ASCII texts unchanged; see [`Tokenizer::at_least`].
    keeps_ascii: bool,
    /// The texts of added tokens.
    names: Vec<String>,
}

/// The processing of a text before the model tokenizes it.
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
        let added = AddedTokens::new(cutter.get_added_tokens_decoder(), cutter.get_normalizer());
        let added = added.map_err(unusable)?;
        let mut tokenizer = Tokenizer {
            cutter,
            exact,
            file,
            tokens,
            opening,
            added,
            has_seams: false,
            keeps_ascii: false,
            names: Vec::new(),
        };
        tokenizer.look()?;
        Ok(tokenizer)
    }

    /// Determines the properties that hold for all texts.
    fn look(&mut self) -> Result<(), TokenizerError> {
        let normalizer = self.cutter.get_normalizer().map(serde_json::to_value);
        let normalizer = normalizer.transpose().map_err(unusable)?;
        let added: Vec<_> = self.cutter.get_added_tokens_decoder().into_values().collect();
        // An added token that strips adjacent blanks could absorb the space of a seam, and may take many at
        // once.
        let strips = added.iter().any(|token| token.lstrip || token.rstrip);
        let crosses = added.iter().any(|token| token.content.contains(' '));
        let cuts: [Cut<'_>; 4] = [
            &|text| self.encode(text).ok(),
            &|text| self.encode_plain(text).ok(),
            &|text| self.encode_with_special(text).ok(),
            &|text| self.encode_trusting(text, &[]).ok(),
        ];
        self.has_seams = !strips && !crosses && has_seams(normalizer.as_ref(), &self.tokens, &cuts);
        let keeps = normalizer.as_ref().is_none_or(keeps_ascii);
        self.keeps_ascii = !strips && keeps && self.file.unknown().is_none();
        self.names = added.into_iter().map(|token| token.content).collect();
        Ok(())
    }

    /// Returns a lower bound on the number of tokens of this text in any encoding, at most `most`, for far
    /// less than encoding it costs. Returns zero if no bound is known.
    pub fn at_least(&self, text: &str, most: usize) -> usize {
        if !self.keeps_ascii || !text.is_ascii() {
            return 0;
        }
        let occurs = |name: &&str| !name.is_empty() && text.contains(*name);
        let names: Vec<&str> = self.names.iter().map(String::as_str).filter(occurs).collect();
        at_least(text.as_bytes(), &self.tokens, &names, most)
    }

    /// Splits a text into pieces whose tokens, concatenated, are the tokens of the whole text. Encoding a
    /// long text takes a hundred times its size in memory; encoding piece by piece does not, and a caller
    /// that needs only a certain number of tokens may stop early. A text without seams is one piece, however
    /// long it is. If [`encode`](Self::encode) has to deviate from the file's rules, it does so for that
    /// piece and not for the whole text.
    pub fn pieces<'t>(&self, text: &'t str) -> impl Iterator<Item = &'t str> {
        pieces(text, self.has_seams)
    }

    /// Returns tokens that write exactly this text, as a model would have to write it: no special tokens, no
    /// dummy space, no Unicode normalization. If the file's rules cannot write the text (a character that
    /// normalization would replace), returns the fewest tokens that write it.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, TokenizerError> {
        let tokens = self.exact.cut(text, &self.cutter)?;
        if self.writes(&tokens, text.as_bytes()) {
            return Ok(tokens);
        }
        self.spell(text.as_bytes())
    }

    /// Returns the tokens of an untrusted prompt. No part of the text becomes an added token: `<|im_end|>` is
    /// spelled by ordinary tokens. The file's normalization and dummy space apply.
    pub fn encode_plain(&self, text: &str) -> Result<Vec<u32>, TokenizerError> {
        let way = TextTreatment {
            normalizer: self.cutter.get_normalizer().cloned(),
            pre_tokenizer: self.cutter.get_pre_tokenizer().cloned(),
        };
        let mut plain = Vec::new();
        for token in way.cut(text, &self.cutter)? {
            // A model may still produce a special piece from the text (a Unigram model knows all of its
            // pieces): spell it out.
            let special = self.tokens.kind(token) != TokenKind::Text && self.file.unknown() != Some(token);
            match special {
                true => plain.extend(self.spell(self.tokens.bytes(token))?),
                false => plain.push(token),
            }
        }
        Ok(plain)
    }

    /// Returns the tokens of a trusted text: the names of special and other added tokens become those tokens.
    /// Never pass untrusted text. No tokens are prepended; see [`opening`](Self::opening).
    pub fn encode_with_special(&self, text: &str) -> Result<Vec<u32>, TokenizerError> {
        let encoding = self.cutter.encode_fast(text, false).map_err(unusable)?;
        Ok(encoding.get_ids().to_vec())
    }

    /// Returns the tokens of a text of which only these parts, in order, are trusted: the name of an added
    /// token becomes the token if it lies in one of them, and is spelled by ordinary tokens elsewhere, also
    /// across the ends of a part. A text that names no added token has the tokens of
    /// [`encode_with_special`](Self::encode_with_special). The ends of the parts are between characters.
    pub fn encode_trusting(&self, text: &str, trusted: &[Range<usize>]) -> Result<Vec<u32>, TokenizerError> {
        let mut pieces = PreTokenizedString::from(text);
        let found = self.added.in_text(text, trusted);
        let cut_text = |_, whole: NormalizedString| Ok(cut(&whole, &found));
        pieces.split(cut_text).map_err(unusable)?;
        if let Some(normalizer) = self.cutter.get_normalizer() {
            let normalize = |piece: &mut NormalizedString| normalizer.normalize(piece);
            pieces.normalize(normalize).map_err(unusable)?;
        }
        if self.added.are_normalized() {
            let cut_piece = |_, piece: NormalizedString| {
                let found = self.added.in_normalized(&piece, trusted);
                Ok(cut(&piece, &found))
            };
            pieces.split(cut_piece).map_err(unusable)?;
        }
        if let Some(pre_tokenizer) = self.cutter.get_pre_tokenizer() {
            pre_tokenizer.pre_tokenize(&mut pieces).map_err(unusable)?;
        }
        let tokenize = |piece: &NormalizedString| self.model_tokens(piece, trusted);
        pieces.tokenize(tokenize).map_err(unusable)?;
        let encoding = pieces
            .into_encoding(None, 0, OffsetType::None)
            .map_err(unusable)?;
        Ok(encoding.get_ids().to_vec())
    }

    /// Returns the tokens that the model gives a piece of text. A model may know the names of added tokens
    /// (a Unigram model knows all of its pieces): outside the trusted parts, these are spelled out.
    fn model_tokens(
        &self,
        piece: &NormalizedString,
        trusted: &[Range<usize>],
    ) -> tokenizers::Result<Vec<Token>> {
        let tokens = self.cutter.get_model().tokenize(piece.get())?;
        let is_text = |token: &Token| {
            self.is_plain(token.id) || self.file.unknown() == Some(token.id) || self.added.is_blank(token.id)
        };
        if tokens.iter().all(is_text) {
            return Ok(tokens);
        }
        let shift = piece.offsets_original().0;
        let mut plain = Vec::with_capacity(tokens.len());
        for token in tokens {
            let place = tokenizers::normalizer::Range::Normalized(token.offsets.0..token.offsets.1);
            let place = piece.convert_offsets(place);
            let place = place.map(|place| place.start + shift..place.end + shift);
            if is_text(&token) || place.is_some_and(|place| is_within(&place, trusted)) {
                plain.push(token);
                continue;
            }
            let spelt = self.spell_with(self.tokens.bytes(token.id), |token| self.is_plain(token))?;
            plain.extend(
                spelt
                    .into_iter()
                    .map(|id| Token::new(id, String::new(), token.offsets)),
            );
        }
        Ok(plain)
    }

    /// Returns the tokens that the file puts before every text, such as `<|begin_of_text|>`. Chat templates
    /// write them explicitly; a bare prompt needs them prepended.
    pub fn opening(&self) -> &[u32] {
        &self.opening
    }

    /// Returns the text of these tokens, without special tokens. Bytes that are not UTF-8 are replaced. A
    /// dummy space is kept: it cannot be distinguished from other spaces in the tokens.
    pub fn decode(&self, tokens: &[u32]) -> String {
        let mut stream = TextStream::default();
        let text = tokens
            .iter()
            .filter(|&&token| matches!(self.tokens.kind(token), TokenKind::Text | TokenKind::Mark));
        let mut text: String = text.map(|&token| stream.push(self.tokens.bytes(token))).collect();
        text += &stream.finish();
        text
    }

    /// Returns the tokens of the file.
    pub fn file(&self) -> &TokenizerFile {
        &self.file
    }

    /// Returns the id of the special token or mark of this name.
    pub fn special(&self, name: &str) -> Option<u32> {
        self.tokens.special(name)
    }

    /// Returns the vocabulary for a model in which these tokens end a sequence.
    pub fn vocabulary(&self, eos: &[u32]) -> Result<Vocabulary, VocabularyError> {
        self.file.vocabulary(eos)
    }

    /// Returns the vocabulary for a model whose output has this many rows, at least as many as there are
    /// tokens.
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

    /// Returns `true` if a token writes text and was not added.
    fn is_plain(&self, token: u32) -> bool {
        self.tokens.kind(token) == TokenKind::Text && !self.added.is_control(token)
    }

    /// Returns the fewest text tokens that write these bytes. Marks, which write their names, are no text: a
    /// text that spells one must not become it.
    fn spell(&self, text: &[u8]) -> Result<Vec<u32>, TokenizerError> {
        self.spell_with(text, |token| self.tokens.kind(token) == TokenKind::Text)
    }

    /// Returns the fewest of these tokens that write these bytes, by dynamic programming from the end.
    fn spell_with(&self, text: &[u8], may_write: impl Fn(u32) -> bool) -> Result<Vec<u32>, TokenizerError> {
        // best[i] is the number of tokens for text[i..], and the first of them with its length.
        let mut best: Vec<Option<(usize, u32, usize)>> = vec![None; text.len() + 1];
        best[text.len()] = Some((0, 0, 0));
        for at in (0..text.len()).rev() {
            for (len, tokens) in self.tokens.trie().prefixes(&text[at..]) {
                let text = tokens.iter().find(|&&token| may_write(token));
                let (Some((count, ..)), Some(&token)) = (best[at + len], text) else {
                    continue;
                };
                if best[at].is_none_or(|(least, ..)| count + 1 < least) {
                    best[at] = Some((count + 1, token, len));
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
    // The library checks most of a file but not everything: some malformed files (an added token that its
    // normalizer cannot process) hit an `unwrap` in it. An untrusted file must not end the process.
    let read = catch_unwind(|| tokenizers::Tokenizer::from_bytes(json));
    let mut cutter = read
        .map_err(|_| unusable("the tokenizers library cannot load it"))?
        .map_err(unusable)?;
    // Settings for training batches: prompts must be neither truncated nor padded without the caller's
    // knowledge.
    cutter.with_truncation(None).map_err(unusable)?;
    cutter.with_padding(None);
    Ok(cutter)
}

/// Rejects files with holes in their ids: the library renumbers their added tokens, so text would be encoded
/// to the wrong tokens.
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
    /// Returns the file's processing without the steps that change the text: of the normalizer only the
    /// replacement of the space remains, and no pre-tokenizer prepends a space.
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

/// Switches off every dummy space. The JSON reader bounds the nesting of the value.
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
