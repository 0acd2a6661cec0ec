//! The keys that a series has used, in the order of their bytes.
//!
//! A register names them by a list that grows at its end. What is asked of them again and again, by all masks up to the next
//! key, is whether one begins like the text at hand, and for that they are read out and sorted once. Only the last list is
//! kept: a growing object is another list with each of its keys, and all of them would be the square of its size.

use std::sync::{Arc, Mutex};

use super::frame::Frames;
use super::interner::NIL;
use super::series::Register;

/// Keys in order.
pub(super) type Keys = Arc<[Vec<u8>]>;

/// The list that was asked for last, with its keys.
#[derive(Debug, Default)]
pub(super) struct LastUsed(Mutex<Option<(u32, Keys)>>);

impl Frames {
    /// The keys that were used, in order. O(their length) where another list was asked for last.
    pub(super) fn used_keys(&self, register: Register) -> Keys {
        if register.used == NIL {
            return Keys::default();
        }
        // Who would have to wait finds them by itself.
        let mut last = self.last_used.0.try_lock().ok();
        if let Some((list, keys)) = last.as_deref().and_then(Option::as_ref)
            && *list == register.used
        {
            return keys.clone();
        }
        let texts = self.keys.iter(register.used).map(|text| self.texts.to_vec(text));
        let mut keys: Vec<Vec<u8>> = texts.collect();
        keys.sort_unstable();
        let keys = Keys::from(keys);
        if let Some(last) = &mut last {
            **last = Some((register.used, keys.clone()));
        }
        keys
    }
}

/// Those of the keys that begin with a prefix, without it.
pub(super) fn behind<'k>(keys: &'k [Vec<u8>], prefix: &'k [u8]) -> impl Iterator<Item = &'k [u8]> {
    let first = keys.partition_point(|key| **key < *prefix);
    keys[first..]
        .iter()
        .map_while(move |key| key.strip_prefix(prefix))
}
