//! The bytes of every token.

use super::Trie;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// Writes its bytes.
    Text,
    /// A control token: writes nothing that a grammar could match, except where the grammar names it.
    Special,
    /// A hole in the numbering, or a row of the model without a token; never allowed.
    Unused,
}

/// Why a vocabulary could not be made.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum VocabularyError {
    /// The end-of-sequence token is not a token of the vocabulary.
    #[error("the end-of-sequence token {token} is outside the vocabulary of {len} tokens")]
    NoSuchEos {
        /// The token asked for.
        token: u32,
        /// The number of tokens.
        len: usize,
    },
    /// There is no token at all.
    #[error("the vocabulary is empty")]
    Empty,
    /// A tokenizer file could not be understood.
    #[error("{place}: {message}")]
    Malformed {
        /// A JSON pointer or a line number.
        place: String,
        /// What was expected.
        message: String,
    },
}

/// The tokens of a model as bytes: immutable, shared, built once per model.
#[derive(Debug)]
pub struct Vocabulary {
    bytes: Vec<u8>,
    starts: Vec<u32>,
    kinds: Vec<TokenKind>,
    eos: Vec<u32>,
    trie: Trie,
}

impl Vocabulary {
    /// Makes a vocabulary of `(kind, bytes)` by token id. `eos` are the tokens that end a sequence (at least one);
    /// they count as special whatever their kind says. For special tokens the bytes are their name.
    pub fn new<B: AsRef<[u8]>>(tokens: &[(TokenKind, B)], eos: &[u32]) -> Result<Self, VocabularyError> {
        if tokens.is_empty() {
            return Err(VocabularyError::Empty);
        }
        if let Some(&token) = eos.iter().find(|&&token| token as usize >= tokens.len()) {
            return Err(VocabularyError::NoSuchEos {
                token,
                len: tokens.len(),
            });
        }
        let mut kinds: Vec<TokenKind> = tokens.iter().map(|(kind, _)| *kind).collect();
        for &token in eos {
            kinds[token as usize] = TokenKind::Special;
        }
        let mut bytes = Vec::new();
        let mut starts = vec![0];
        for (_, token) in tokens {
            bytes.extend_from_slice(token.as_ref());
            starts.push(bytes.len() as u32);
        }
        let text = tokens
            .iter()
            .enumerate()
            .filter(|&(id, _)| kinds[id] == TokenKind::Text);
        let trie = Trie::new(text.map(|(id, (_, token))| (id as u32, token)));
        Ok(Vocabulary {
            bytes,
            starts,
            kinds,
            eos: eos.to_vec(),
            trie,
        })
    }

    /// The number of tokens, holes included.
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Whether there is no token; never true of a vocabulary that [`new`](Self::new) made.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// What the token writes, or a special token's name; empty for an id outside the vocabulary.
    pub fn bytes(&self, token: u32) -> &[u8] {
        let token = token as usize;
        if token >= self.len() {
            return &[];
        }
        &self.bytes[self.starts[token] as usize..self.starts[token + 1] as usize]
    }

    /// What kind of token this is; [`TokenKind::Unused`] outside the vocabulary.
    pub fn kind(&self, token: u32) -> TokenKind {
        self.kinds
            .get(token as usize)
            .copied()
            .unwrap_or(TokenKind::Unused)
    }

    /// The tokens that end a sequence.
    pub fn eos(&self) -> &[u32] {
        &self.eos
    }

    /// Whether this token ends a sequence.
    pub fn is_eos(&self, token: u32) -> bool {
        self.eos.contains(&token)
    }

    /// The special token of this name.
    pub fn special(&self, name: &str) -> Option<u32> {
        (0..self.len() as u32)
            .find(|&id| self.kind(id) == TokenKind::Special && self.bytes(id) == name.as_bytes())
    }

    /// All text tokens by their bytes.
    pub fn trie(&self) -> &Trie {
        &self.trie
    }
}
