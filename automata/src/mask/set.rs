//! Sets of tokens as packed bits.
//!
//! # Why one bit per token, however few tokens a mask has
//!
//! Masks stored as lists, or as differences from another set, save a tenth of the time in memory and lose it
//! again in bookkeeping (`benches/record/2026-11-22-forms.md`), and sampling needs one contiguous piece. The
//! smaller sets inside terminal masks are stored as lists.

/// The tokens that may come next: bit `t % 32` of word `t / 32` represents token `t`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Mask {
    words: Box<[u32]>,
}

impl Mask {
    /// Creates an empty set for a vocabulary of `tokens` tokens.
    pub fn empty(tokens: usize) -> Mask {
        Mask {
            words: vec![0; tokens.div_ceil(32)].into(),
        }
    }

    /// Returns `true` if the token is in the set; a token outside the vocabulary is not.
    pub fn contains(&self, token: u32) -> bool {
        self.words
            .get(token as usize / 32)
            .is_some_and(|word| word >> (token % 32) & 1 == 1)
    }

    /// Returns the packed words, one for every 32 tokens, ready to be copied to a device.
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// Copies the packed words into a buffer. Buffer words beyond the set are cleared; a set longer than the
    /// buffer is cut off.
    pub fn copy_to(&self, words: &mut [u32]) {
        let shared = words.len().min(self.words.len());
        words[..shared].copy_from_slice(&self.words[..shared]);
        words[shared..].fill(0);
    }

    /// Returns the number of tokens in the set.
    pub fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Returns `true` if the set is empty.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// Returns the tokens in ascending order.
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

    /// Returns the tokens that are not in `other`.
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

/// A set of tokens in one of two representations.
#[derive(Debug)]
pub(crate) enum TokenSet {
    /// The tokens, listed.
    List(Box<[u32]>),
    /// One bit per token.
    Bits(Mask),
}

impl TokenSet {
    /// Creates a set of tokens of a vocabulary of `len`, in the smaller representation.
    pub(crate) fn new(tokens: Vec<u32>, len: usize) -> TokenSet {
        TokenSet::of(tokens.len(), std::iter::once(&tokens[..]), len)
    }

    /// Creates a set of `count` tokens, which are listed in parts, in the smaller representation.
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

    /// Creates a set in the representation that is added to a mask faster.
    pub(crate) fn quick(tokens: Vec<u32>, len: usize) -> TokenSet {
        if tokens.len() * QUICK < len {
            return TokenSet::List(tokens.into());
        }
        let mut mask = Mask::empty(len);
        mask.insert_all(&tokens);
        TokenSet::Bits(mask)
    }

    /// Converts a mask to the smaller representation.
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

/// The number of bits that are united with a mask in the time that inserting one token takes.
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
