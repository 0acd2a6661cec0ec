//! A set of bytes.

/// A set of bytes, one bit for each of the 256.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ByteSet([u64; 4]);

impl ByteSet {
    /// Adds the bytes from `first` to `last`, both included.
    pub fn insert_range(&mut self, first: u8, last: u8) {
        for byte in first..=last {
            self.0[usize::from(byte >> 6)] |= 1 << (byte & 63);
        }
    }

    /// Adds the bytes of another set.
    pub(crate) fn unite(&mut self, other: &ByteSet) {
        for (word, more) in self.0.iter_mut().zip(other.0) {
            *word |= more;
        }
    }

    /// Returns `true` if all bytes of this set are in another.
    pub(crate) fn is_within(&self, other: &ByteSet) -> bool {
        self.0.iter().zip(other.0).all(|(word, other)| word & !other == 0)
    }

    /// Returns the bytes that are in both sets.
    pub(crate) fn common(&self, other: &ByteSet) -> ByteSet {
        let mut common = *self;
        for (word, other) in common.0.iter_mut().zip(other.0) {
            *word &= other;
        }
        common
    }

    /// Returns the bytes that are not in another set.
    pub(crate) fn without(&self, other: &ByteSet) -> ByteSet {
        let mut without = *self;
        for (word, other) in without.0.iter_mut().zip(other.0) {
            *word &= !other;
        }
        without
    }

    /// Returns the bytes as ranges, first and last, in order.
    pub(crate) fn ranges(mut self) -> Vec<(u8, u8)> {
        let mut ranges: Vec<(u8, u8)> = Vec::new();
        while let Some(byte) = self.pop() {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == byte => *last = byte,
                _ => ranges.push((byte, byte)),
            }
        }
        ranges
    }

    /// Returns `true` if the set is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.0 == [0; 4]
    }

    /// Returns the number of bytes.
    pub(crate) fn len(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// Removes and returns the smallest byte.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<u8> {
        let (word, at) = self
            .0
            .iter_mut()
            .zip((0u8..).step_by(64))
            .find(|(word, _)| **word != 0)?;
        let byte = at + word.trailing_zeros() as u8;
        *word &= *word - 1;
        Some(byte)
    }

    /// Returns `true` if the byte is in the set.
    #[inline]
    pub(crate) fn contains(&self, byte: u8) -> bool {
        self.0[usize::from(byte >> 6)] >> (byte & 63) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_what_was_added() {
        let mut set = ByteSet::default();
        set.insert_range(60, 130);
        let mut other = ByteSet::default();
        other.insert_range(255, 255);
        set.unite(&other);
        assert!(other.is_within(&set) && !set.is_within(&other));
        let held: Vec<u8> = (0..=255).filter(|&byte| set.contains(byte)).collect();
        let expected: Vec<u8> = (60..=130).chain([255]).collect();
        assert_eq!(held, expected);
        assert_eq!(set.len(), 72);
        assert_eq!(std::iter::from_fn(|| set.pop()).collect::<Vec<_>>(), expected);
        assert!(set.is_empty());
    }
}
