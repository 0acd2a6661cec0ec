//! The keys that a series has used.
//!
//! A register names them by a list that grows at its end. What is asked of them again and again, by all masks up to the next
//! key, is which of them begin like the text at hand, and for that they are read out and sorted once. Only the last list is
//! kept, and from it the one with one key more is made: a growing object is another list with each of its keys, and all of
//! them would be the square of its size.

use std::sync::{Arc, Mutex};

use super::frame::Frames;
use super::interner::NIL;
use super::key_set::KeySet;
use super::series::Register;

/// The list that was asked for last, with its keys.
#[derive(Debug, Default)]
pub(super) struct LastUsed(Mutex<Option<(u32, Arc<KeySet>)>>);

impl Frames {
    /// The keys that were used, in order. O(their length) where neither this list nor the one that it continues was asked
    /// for last.
    pub(super) fn used_keys(&self, register: Register) -> Arc<KeySet> {
        if register.used == NIL {
            return Arc::default();
        }
        // Who would have to wait finds them by itself.
        let mut last = self.last_used.0.try_lock().ok();
        let known = last.as_deref().and_then(Option::as_ref);
        if let Some((list, keys)) = known
            && *list == register.used
        {
            return keys.clone();
        }
        let texts = self.keys.iter(register.used).map(|text| self.texts.to_vec(text));
        let keys = match (known, self.keys.split_last(register.used)) {
            (Some((list, keys)), Some((before, text))) if *list == before => {
                keys.with(&self.texts.to_vec(text))
            }
            _ => KeySet::new(texts.collect()),
        };
        let keys = Arc::new(keys);
        if let Some(last) = &mut last {
            **last = Some((register.used, keys.clone()));
        }
        keys
    }
}
