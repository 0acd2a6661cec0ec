//! The vocabulary: the bytes of every token.

use rustc_hash::FxHashMap;

use super::Trie;

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// A token that writes its bytes.
    Text,
    /// A control token: it writes no text that a grammar could match, and may come only where the grammar
    /// names it.
    Special,
    /// A mark that was added to the vocabulary by hand without being declared special, such as `<think>`. It
    /// writes its content, but is not used to write text: like a special token, it may come only where the
    /// grammar names it.
    Mark,
    /// A hole in the ids, or a row of the model without a token; never allowed.
    Unused,
}

/// The error of creating a vocabulary or reading a tokenizer file.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum VocabularyError {
    /// An end token is not a token of the vocabulary.
    #[error("the end-of-sequence token {token} is outside the vocabulary of {len} tokens")]
    NoSuchEos {
        /// The end token.
        token: u32,
        /// The number of tokens.
        len: usize,
    },
    /// There are no tokens.
    #[error("the vocabulary is empty")]
    Empty,
    /// A tokenizer file does not have the expected form.
    #[error("{place}: {message}")]
    Malformed {
        /// A JSON pointer, or a line and column if the text cannot be parsed at all.
        place: String,
        /// The expected form.
        message: String,
    },
    /// A tokenizer file is understood, but its tokens have no fixed bytes.
    #[error("{place}: {message}")]
    Unsupported {
        /// A JSON pointer.
        place: String,
        /// The unsupported feature.
        message: String,
    },
    /// A token id exceeds the limit.
    #[error("{place}: the token id {id} is not below the limit of {limit} tokens")]
    IdTooLarge {
        /// A JSON pointer or a line number.
        place: String,
        /// The id.
        id: u64,
        /// The limit, [`ReadLimits::tokens`](super::ReadLimits::tokens).
        limit: usize,
    },
    /// The model has fewer rows than the tokenizer has tokens.
    #[error("a model with {rows} rows cannot write the {len} tokens of its tokenizer")]
    TooNarrow {
        /// The number of rows of the model.
        rows: usize,
        /// The number of tokens.
        len: usize,
    },
    /// The tokens are too long for 32-bit offsets.
    #[error("the tokens have {bytes} bytes together, more than {limit}")]
    TooManyBytes {
        /// The total number of bytes of all tokens.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
}

/// The tokens of a model as bytes: immutable, shared, and built once per model.
#[derive(Debug)]
pub struct Vocabulary {
    bytes: Vec<u8>,
    /// The offset of each token in `bytes`: token `t` is `bytes[starts[t]..starts[t + 1]]`.
    starts: Vec<u32>,
    kinds: Vec<TokenKind>,
    eos: Vec<u32>,
    trie: Trie,
    /// For each byte, the token that writes it alone.
    of_byte: Box<[Option<u32>; 256]>,
    special: FxHashMap<Box<[u8]>, u32>,
    longest: usize,
}

/// Vocabularies are equal if all their tokens are: by id, bytes and kind, and by those that end a sequence.
impl PartialEq for Vocabulary {
    fn eq(&self, other: &Self) -> bool {
        // The other fields are computed from these.
        self.starts == other.starts
            && self.bytes == other.bytes
            && self.kinds == other.kinds
            && self.eos == other.eos
    }
}

impl Eq for Vocabulary {}

impl Vocabulary {
    /// Creates a vocabulary of `(kind, bytes)` by token id. `eos` are the tokens that end a sequence, which
    /// may be none; they count as special whatever their kind is. The bytes of a special token are its name.
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
        let (bytes, starts) = concatenate(tokens)?;
        let mut kinds: Vec<TokenKind> = tokens.iter().map(|(kind, _)| *kind).collect();
        for &token in eos {
            kinds[token as usize] = TokenKind::Special;
        }
        let of_kind = |kind| {
            let all = tokens
                .iter()
                .zip(&kinds)
                .enumerate()
                .filter(move |(_, (_, its))| **its == kind);
            all.map(|(id, ((_, token), _))| (id as u32, token.as_ref()))
        };
        let longest = of_kind(TokenKind::Text)
            .map(|(_, token)| token.len())
            .max()
            .unwrap_or(0);
        let trie = Trie::new(of_kind(TokenKind::Text));
        let mut special = FxHashMap::default();
        for (id, name) in of_kind(TokenKind::Special).chain(of_kind(TokenKind::Mark)) {
            special.entry(name.into()).or_insert(id);
        }
        Ok(Vocabulary {
            bytes,
            starts,
            kinds,
            eos: eos.to_vec(),
            of_byte: tokens_of_bytes(&trie),
            trie,
            special,
            longest,
        })
    }

    /// Returns this vocabulary without duplicate text tokens: of several with the same bytes only the first
    /// may be written, as the tokenizer of the model would. The others become holes: no mask contains them
    /// and no grammar steps over them.
    ///
    /// By default all of them are allowed, since a model may have learned to write any of them. O(bytes of
    /// all tokens).
    pub fn without_duplicates(&self) -> Vocabulary {
        let mut only = Vocabulary {
            bytes: self.bytes.clone(),
            starts: self.starts.clone(),
            kinds: self.kinds.clone(),
            eos: self.eos.clone(),
            trie: Trie::default(),
            of_byte: self.of_byte.clone(),
            special: self.special.clone(),
            longest: self.longest,
        };
        for token in 0..self.len() as u32 {
            let is_text = self.kind(token) == TokenKind::Text;
            if is_text
                && self
                    .token_of(self.bytes(token))
                    .is_some_and(|first| first != token)
            {
                only.kinds[token as usize] = TokenKind::Unused;
            }
        }
        let text = (0..only.len() as u32).filter(|&token| only.kind(token) == TokenKind::Text);
        only.trie = Trie::new(text.map(|token| (token, only.bytes(token))));
        only
    }

    /// Returns the number of tokens, holes included.
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Returns `true` if there are no tokens, which is never so for a vocabulary created by
    /// [`new`](Self::new).
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// Returns the bytes that a token writes, or a special token's name; empty for an id outside the
    /// vocabulary.
    pub fn bytes(&self, token: u32) -> &[u8] {
        let token = token as usize;
        if token >= self.len() {
            return &[];
        }
        &self.bytes[self.starts[token] as usize..self.starts[token + 1] as usize]
    }

    /// Returns the kind of a token; [`TokenKind::Unused`] outside the vocabulary.
    pub fn kind(&self, token: u32) -> TokenKind {
        self.kinds
            .get(token as usize)
            .copied()
            .unwrap_or(TokenKind::Unused)
    }

    /// Returns the tokens that end a sequence.
    pub fn eos(&self) -> &[u32] {
        &self.eos
    }

    /// Returns `true` if this token ends a sequence.
    pub fn is_eos(&self, token: u32) -> bool {
        self.eos.contains(&token)
    }

    /// Returns the special token or mark of this name; the lowest id if several share it.
    pub fn special(&self, name: &str) -> Option<u32> {
        self.special.get(name.as_bytes()).copied()
    }

    /// Returns all text tokens that write exactly these bytes, in order of id. SentencePiece vocabularies
    /// have several: the letter `A` and the byte `<0x41>` write the same byte.
    pub fn tokens_of(&self, bytes: &[u8]) -> &[u32] {
        // The trie lists its tokens in depth-first order, which is the order of their bytes.
        let tokens = self.trie.tokens();
        let first = tokens.partition_point(|&token| self.bytes(token) < bytes);
        let count = tokens[first..]
            .iter()
            .take_while(|&&token| self.bytes(token) == bytes)
            .count();
        &tokens[first..first + count]
    }

    /// Returns the text token that writes exactly these bytes; the lowest id if several do.
    pub fn token_of(&self, bytes: &[u8]) -> Option<u32> {
        self.tokens_of(bytes).first().copied()
    }

    /// Returns the token that writes this byte alone. Not every vocabulary has one for every byte: bytes that
    /// no UTF-8 text contains are often missing, and some SentencePiece models have none. O(1).
    pub fn token_of_byte(&self, byte: u8) -> Option<u32> {
        self.of_byte[usize::from(byte)]
    }

    /// Returns `true` if each byte that UTF-8 uses is a token.
    pub(crate) fn writes_utf8(&self) -> bool {
        let is_used = |byte: usize| byte < 0xC0 || (0xC2..0xF5).contains(&byte);
        let mut tokens = self.of_byte.iter().enumerate();
        tokens.all(|(byte, token)| token.is_some() || !is_used(byte))
    }

    /// Returns the length in bytes of the longest text token; 0 if there are no text tokens.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// Returns the trie of all text tokens.
    #[doc(hidden)]
    pub fn trie(&self) -> &Trie {
        &self.trie
    }

    /// Returns about how many bytes the vocabulary takes.
    pub fn memory(&self) -> usize {
        let names: usize = self
            .special
            .keys()
            .map(|name| name.len() + size_of::<(Box<[u8]>, u32)>())
            .sum();
        let tables = self.bytes.len() + size_of_val(&*self.starts) + size_of_val(&*self.kinds);
        let trie = size_of_val(self.trie.nodes()) + size_of_val(self.trie.tokens());
        tables + size_of_val(&*self.eos) + names + trie
    }
}

/// Returns, for each byte, the first token that writes it alone.
fn tokens_of_bytes(trie: &Trie) -> Box<[Option<u32>; 256]> {
    let mut found = Box::new([None; 256]);
    let mut at = 0;
    while let Some(node) = trie.nodes().get(at) {
        found[usize::from(node.byte)] = trie.tokens_at(node).first().copied();
        at = node.end as usize;
    }
    found
}

/// Returns the bytes of all tokens, concatenated, and the start of each token.
fn concatenate<B: AsRef<[u8]>>(tokens: &[(TokenKind, B)]) -> Result<(Vec<u8>, Vec<u32>), VocabularyError> {
    let total = tokens.iter().map(|(_, token)| token.as_ref().len()).sum();
    if u32::try_from(total).is_err() {
        return Err(VocabularyError::TooManyBytes {
            bytes: total,
            limit: u32::MAX as usize,
        });
    }
    let mut bytes = Vec::with_capacity(total);
    let mut starts = Vec::with_capacity(tokens.len() + 1);
    starts.push(0);
    for (_, token) in tokens {
        bytes.extend_from_slice(token.as_ref());
        starts.push(bytes.len() as u32);
    }
    Ok((bytes, starts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_found_by_their_bytes() {
        use TokenKind::{Special, Text, Unused};
        let tokens = [
            (Text, "b"),
            (Text, "a"),
            (Special, "a"),
            (Text, "ab"),
            (Text, "a"),
            (Unused, ""),
            (Text, "e"),
        ];
        let vocabulary = Vocabulary::new(&tokens, &[6]).expect("a vocabulary");
        assert_eq!(vocabulary.tokens_of(b"a"), [1, 4]);
        assert_eq!(vocabulary.token_of(b"ab"), Some(3));
        assert_eq!(
            (
                vocabulary.token_of(b"e"),
                vocabulary.token_of(b""),
                vocabulary.token_of(b"abc")
            ),
            (None, None, None)
        );
        assert_eq!(
            (
                vocabulary.special("a"),
                vocabulary.special("e"),
                vocabulary.special("b")
            ),
            (Some(2), Some(6), None)
        );
        assert_eq!(
            (vocabulary.token_of_byte(b'b'), vocabulary.token_of_byte(b'c')),
            (Some(0), None)
        );
        assert_eq!(vocabulary.longest(), 2);
        // Six bytes of text, seven kinds, eight starts, one end token, and three nodes and four tokens of the
        // trie.
        assert!(vocabulary.memory() >= 6 + 7 + 8 * 4 + 4 + 3 * size_of::<crate::vocab::Node>() + 4 * 4);
    }

    #[test]
    fn an_eos_outside_the_vocabulary_is_refused() {
        let tokens = [(TokenKind::Text, "a")];
        let error = Vocabulary::new(&tokens, &[1]).expect_err("outside");
        assert_eq!(error, VocabularyError::NoSuchEos { token: 1, len: 1 });
    }
}
