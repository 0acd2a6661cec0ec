//! Sets of tokens as packed bits.
//!
//! # Why one bit a token, however few tokens a mask has
//!
//! Masks that are kept as lists, or as another set with corrections, save a tenth of the time in memory and
//! spend it on bookkeeping (`benches/record/2026-11-22-forms.md`); and sampling needs one piece. Sets inside
//! of terminal masks are lists where they are small.

/// The tokens that may come next: bit `t % 32` of word `t / 32` stands for token `t`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Mask {
    words: Box<[u32]>,
}

impl Mask {
    /// The set of no token of a vocabulary of `tokens` tokens.
    pub fn empty(tokens: usize) -> Mask {
        Mask {
            words: vec![0; tokens.div_ceil(32)].into(),
        }
    }

    /// Whether the token is in the set; tokens outside the vocabulary are not.
    pub fn contains(&self, token: u32) -> bool {
        self.words
            .get(token as usize / 32)
            .is_some_and(|word| word >> (token % 32) & 1 == 1)
    }

    /// The packed words, one for each 32 tokens, ready to be copied to a device.
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// Writes the packed words into a buffer; its words beyond the set are cleared, missing ones are left
    /// out.
    pub fn copy_to(&self, words: &mut [u32]) {
        let shared = words.len().min(self.words.len());
        words[..shared].copy_from_slice(&self.words[..shared]);
        words[shared..].fill(0);
    }

    /// The number of tokens in the set.
    pub fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether no token is in the set.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// The tokens in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.words.iter().zip(0u32..).flat_map(|(&word, index)| {
            let mut left = word;
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros())?;
                left &= left - 1;
                Some(index * 32 + bit)
            })
        })
    }

    /// The tokens that are not in another set.
    pub(crate) fn without(&self, other: &Mask) -> Mask {
        let words = self.words.iter().zip(&other.words);
        Mask {
            words: words.map(|(word, other)| word & !other).collect(),
        }
    }

    #[inline]
    pub(crate) fn insert(&mut self, token: u32) {
        self.words[token as usize / 32] |= 1 << (token % 32);
    }

    pub(crate) fn insert_all(&mut self, tokens: &[u32]) {
        for &token in tokens {
            self.insert(token);
        }
    }

    pub(crate) fn remove_all(&mut self, tokens: &[u32]) {
        for &token in tokens {
            self.words[token as usize / 32] &= !(1 << (token % 32));
        }
    }

    pub(crate) fn intersect(&mut self, other: &Mask) {
        for (word, kept) in self.words.iter_mut().zip(&other.words) {
            *word &= kept;
        }
    }

    pub(crate) fn unite(&mut self, other: &Mask) {
        for (word, more) in self.words.iter_mut().zip(&other.words) {
            *word |= more;
        }
    }
}

/// A set of tokens in the smaller of two forms.
#[derive(Debug)]
pub(crate) enum TokenSet {
    /// The tokens themselves.
    List(Box<[u32]>),
    /// One bit a token.
    Bits(Mask),
}

impl TokenSet {
    /// The smaller form of these tokens of a vocabulary of `len`.
    pub(crate) fn new(tokens: Vec<u32>, len: usize) -> TokenSet {
        TokenSet::of(tokens.len(), std::iter::once(&tokens[..]), len)
    }

    /// The smaller form of `count` tokens, which are listed in parts.
    pub(crate) fn of<'a>(count: usize, parts: impl Iterator<Item = &'a [u32]>, len: usize) -> TokenSet {
        if count < len / 32 {
            let mut tokens = Vec::with_capacity(count);
            parts.for_each(|part| tokens.extend_from_slice(part));
            return TokenSet::List(tokens.into());
        }
        let mut mask = Mask::empty(len);
        parts.for_each(|part| mask.insert_all(part));
        TokenSet::Bits(mask)
    }

    /// The form of these tokens that is added to a mask the faster.
    pub(crate) fn quick(tokens: Vec<u32>, len: usize) -> TokenSet {
        if tokens.len() * QUICK < len {
            return TokenSet::List(tokens.into());
        }
        let mut mask = Mask::empty(len);
        mask.insert_all(&tokens);
        TokenSet::Bits(mask)
    }

    /// The smaller form of a set.
    pub(crate) fn from_mask(mask: Mask) -> TokenSet {
        if mask.count() < mask.words.len() {
            return TokenSet::List(mask.iter().collect());
        }
        TokenSet::Bits(mask)
    }

    pub(crate) fn add_to(&self, mask: &mut Mask) {
        match self {
            TokenSet::List(tokens) => mask.insert_all(tokens),
            TokenSet::Bits(bits) => mask.unite(bits),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        match self {
            TokenSet::List(tokens) => tokens.len() * 4,
            TokenSet::Bits(mask) => mask.words().len() * 4,
        }
    }
}

/// The bits that are united with a mask in the time in which one token is put into it.
const QUICK: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_hold_the_same_tokens() {
        for tokens in [vec![1, 63], (0..64).collect::<Vec<u32>>()] {
            let mut mask = Mask::empty(70);
            TokenSet::new(tokens.clone(), 70).add_to(&mut mask);
            assert_eq!(mask.iter().collect::<Vec<_>>(), tokens);
            assert_eq!(mask.count(), tokens.len());
        }
    }
}
