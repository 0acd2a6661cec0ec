//! Sets of keys in byte order.
//!
//! ```text
//!   text     "id""name""tags"
//!   places   head  "id"____   start 0   length 4
//!                  "name"__         4          6
//!                  "tags"__        10          6
//! ```
//!
//! The first bytes of all keys are stored contiguously, since they answer most queries: a mask asks hundreds
//! of keys whether they begin with its text, and reading each key in its own place took a third of the time
//! of masks of objects with that many keys.

use std::hash::{Hash, Hasher};

/// A set of keys in order, in one piece of memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeySet {
    /// The keys, concatenated in any order.
    text: Vec<u8>,
    places: Vec<TextRange>,
}

impl Hash for KeySet {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.len().hash(hasher);
        self.iter().for_each(|key| key.hash(hasher));
    }
}

/// The position of a key in the text.
#[derive(Clone, Copy, Debug)]
struct TextRange {
    /// The first bytes of the key, padded with zeros: a greater key never has a smaller head.
    head: u64,
    start: u32,
    length: u32,
}

impl KeySet {
    /// Creates the set of these keys, without duplicates. O(keys · log keys).
    pub(crate) fn new<K: AsRef<[u8]> + Ord>(mut keys: Vec<K>) -> KeySet {
        keys.sort_unstable();
        keys.dedup();
        let mut sorted = KeySet::default();
        for key in &keys {
            sorted.insert(sorted.len(), key.as_ref());
        }
        sorted
    }

    /// Returns the set with one more key, which must not be in it. O(length of the keys), as one copy.
    pub(crate) fn with(&self, key: &[u8]) -> KeySet {
        let mut keys = self.clone();
        keys.insert(self.places_before(key), key);
        keys
    }

    fn insert(&mut self, at: usize, key: &[u8]) {
        let place = TextRange {
            head: head(key),
            start: self.text.len() as u32,
            length: key.len() as u32,
        };
        self.text.extend_from_slice(key);
        self.places.insert(at, place);
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.places.iter().map(|place| self.key(place))
    }

    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        let at = self.places.get(self.places_before(key));
        at.is_some_and(|place| self.key(place) == key)
    }

    /// Returns the keys that begin with a prefix, without the prefix. A caller that uses only their lengths
    /// reads no key. O(log keys), and the bytes that are read.
    pub(crate) fn after(&self, prefix: &[u8]) -> impl Iterator<Item = &[u8]> {
        let length = prefix.len();
        let low = head(prefix);
        let high = low | u64::MAX.checked_shr(8 * length as u32).unwrap_or(0);
        let first = self.places.partition_point(|place| place.head < low);
        let alike = self.places[first..].partition_point(|place| place.head <= high);
        let mut found = &self.places[first..first + alike];
        if length > HEAD {
            found = &found[found.partition_point(|place| self.key(place) < prefix)..];
            found = &found[..found.partition_point(|place| self.key(place).starts_with(prefix))];
        }
        // A shorter key may have the same head, if zeros follow it in the prefix.
        let long = found.iter().filter(move |place| place.length as usize >= length);
        long.map(move |place| &self.key(place)[length..])
    }

    fn places_before(&self, key: &[u8]) -> usize {
        let head = head(key);
        self.places
            .partition_point(|place| place.head < head || (place.head == head && self.key(place) < key))
    }

    fn key(&self, place: &TextRange) -> &[u8] {
        &self.text[place.start as usize..][..place.length as usize]
    }
}

/// The number of bytes of a head.
const HEAD: usize = size_of::<u64>();

/// Returns the first bytes as a number with the same order.
fn head(bytes: &[u8]) -> u64 {
    let mut head = [0; HEAD];
    let length = bytes.len().min(HEAD);
    head[..length].copy_from_slice(&bytes[..length]);
    u64::from_be_bytes(head)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn keys_are_found_like_those_of_a_sorted_list(
            keys in prop::collection::btree_set("[\0a]{0,3}[ab]{0,8}[\0b]{0,2}", 0..12),
            prefix in "[\0a]{0,3}[ab]{0,7}\0?",
        ) {
            let sorted: Vec<Vec<u8>> = keys.iter().map(|key| key.clone().into_bytes()).collect();
            let at_once = KeySet::new(sorted.iter().rev().cloned().collect());
            let one_by_one = sorted.iter().rev().fold(KeySet::default(), |all, key| all.with(key));
            let prefix = prefix.as_bytes();
            let after: Vec<&[u8]> = sorted.iter().filter_map(|key| key.strip_prefix(prefix)).collect();
            for found in [&at_once, &one_by_one] {
                prop_assert_eq!(found.len(), sorted.len());
                prop_assert!(found.iter().eq(sorted.iter().map(|key| &key[..])));
                prop_assert!(found.after(prefix).eq(after.iter().copied()));
                prop_assert!(sorted.iter().all(|key| found.contains(key)));
                prop_assert_eq!(found.contains(prefix), sorted.iter().any(|key| key == prefix));
            }
        }
    }
}
