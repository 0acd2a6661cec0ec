//! The tokens of a tokenizer file, before the end tokens of a model are known.

use super::{Scheme, TokenKind, Vocabulary, VocabularyError};

/// Bounds on tokenizer files, so that a malicious one cannot allocate far more memory than it has bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadLimits {
    /// The maximum number of token ids, holes included. One line `"x": 4000000000` would otherwise create
    /// four billion holes; the widest published vocabularies have about 260,000 tokens.
    pub tokens: usize,
}

impl Default for ReadLimits {
    fn default() -> Self {
        ReadLimits { tokens: 1 << 22 }
    }
}

/// The tokens of a tokenizer file: kind and bytes by id, without the end tokens, which depend on the model.
#[derive(Clone, Debug)]
pub struct TokenizerFile {
    tokens: Vec<(TokenKind, Vec<u8>)>,
    scheme: Scheme,
    dummy_space: bool,
    unknown: Option<u32>,
}

impl TokenizerFile {
    pub(super) fn new(table: TokenTable, scheme: Scheme) -> Self {
        let tokens = table
            .slots
            .into_iter()
            .map(|slot| slot.unwrap_or((TokenKind::Unused, Vec::new())));
        TokenizerFile {
            tokens: tokens.collect(),
            scheme,
            dummy_space: false,
            unknown: None,
        }
    }

    pub(super) fn with_dummy_space(self, dummy_space: bool) -> Self {
        TokenizerFile { dummy_space, ..self }
    }

    pub(super) fn with_unknown(self, unknown: Option<u32>) -> Self {
        TokenizerFile { unknown, ..self }
    }

    /// Returns the kind and bytes of every id. The bytes of a special token are its name; those of a hole are
    /// empty.
    pub fn tokens(&self) -> &[(TokenKind, Vec<u8>)] {
        &self.tokens
    }

    /// Returns the way in which the file spells bytes.
    #[doc(hidden)]
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Returns `true` if the tokenizer puts a space before a text that it encodes, as SentencePiece models
    /// do. The space is then in the bytes of the first token; text with which a model *continues* has no such
    /// space.
    pub fn puts_dummy_space(&self) -> bool {
        self.dummy_space
    }

    /// Returns the token for text that has no tokens of its own, if the model has one.
    pub fn unknown(&self) -> Option<u32> {
        self.unknown
    }

    /// Extends the ids to the rows of a model's output: the new ids are [`TokenKind::Unused`]. See
    /// [`fitted_to`](Self::fitted_to) for models with fewer rows than tokens.
    ///
    /// # Errors
    /// Returns [`TooNarrow`](VocabularyError::TooNarrow) if there are fewer rows than tokens.
    pub fn with_vocab_size(mut self, rows: usize) -> Result<Self, VocabularyError> {
        if rows < self.tokens.len() {
            return Err(VocabularyError::TooNarrow {
                rows,
                len: self.tokens.len(),
            });
        }
        self.tokens.resize(rows, (TokenKind::Unused, Vec::new()));
        Ok(self)
    }

    /// Extends or truncates the ids to the rows of a model's output: missing ids are [`TokenKind::Unused`],
    /// and tokens beyond the rows are dropped, since the model cannot write them. Some published models have
    /// fewer rows than their tokenizer has added tokens.
    #[must_use]
    pub fn fitted_to(mut self, rows: usize) -> Self {
        self.tokens.resize(rows, (TokenKind::Unused, Vec::new()));
        self.unknown = self.unknown.filter(|&unknown| (unknown as usize) < rows);
        self
    }

    /// Returns the vocabulary for a model in which these tokens end a sequence.
    pub fn vocabulary(&self, eos: &[u32]) -> Result<Vocabulary, VocabularyError> {
        Vocabulary::new(&self.tokens, eos)
    }
}

/// The tokens by id while a file is read. Grows up to the limit and rejects duplicate ids.
pub(super) struct TokenTable {
    slots: Vec<Option<(TokenKind, Vec<u8>)>>,
    limit: usize,
}

impl TokenTable {
    pub(super) fn new(limits: &ReadLimits) -> Self {
        TokenTable {
            slots: Vec::new(),
            limit: limits.tokens,
        }
    }

    /// Inserts a token whose id must be free.
    pub(super) fn insert(
        &mut self,
        id: u64,
        token: (TokenKind, Vec<u8>),
        place: &str,
    ) -> Result<(), VocabularyError> {
        let slot = self.slot(id, place)?;
        if slot.is_some() {
            let message = format!("the id {id} is already taken");
            return Err(VocabularyError::Malformed {
                place: place.to_owned(),
                message,
            });
        }
        *slot = Some(token);
        Ok(())
    }

    /// Sets a token, replacing any token with the same id.
    pub(super) fn replace(
        &mut self,
        id: u64,
        token: (TokenKind, Vec<u8>),
        place: &str,
    ) -> Result<(), VocabularyError> {
        *self.slot(id, place)? = Some(token);
        Ok(())
    }

    fn slot(&mut self, id: u64, place: &str) -> Result<&mut Option<(TokenKind, Vec<u8>)>, VocabularyError> {
        let Some(at) = usize::try_from(id).ok().filter(|&at| at < self.limit) else {
            return Err(VocabularyError::IdTooLarge {
                place: place.to_owned(),
                id,
                limit: self.limit,
            });
        };
        if at >= self.slots.len() {
            self.slots.resize(at + 1, None);
        }
        Ok(&mut self.slots[at])
    }
}
