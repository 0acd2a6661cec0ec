//! The keys that a series has used.
//!
//! A progress names them by a list that grows at its end. What is asked of them again and again, by all masks
//! up to the next key, is which of them begin like the text at hand, and for that they are read out and
//! sorted once. Only the last list is kept, and from it the one with one key more is made: a growing object
//! is another list with each of its keys, and all of them would be the square of its size.

use std::sync::{Arc, Mutex};

use super::key_set::KeySet;
use crate::pushdown::intern::interner::{Chains, NIL};

/// The list that was asked for last, with its keys.
#[derive(Debug, Default)]
pub(crate) struct LastUsed(Mutex<Option<(u32, Arc<KeySet>)>>);

impl LastUsed {
    /// The keys of a list, in order. O(their length) where neither this list nor the one that it continues
    /// was asked for last.
    pub(crate) fn keys(&self, list: u32, lists: &Chains<u32>, texts: &Chains<u8>) -> Arc<KeySet> {
        if list == NIL {
            return Arc::default();
        }
        // Who would have to wait finds them by itself.
        let mut last = self.0.try_lock().ok();
        let known = last.as_deref().and_then(Option::as_ref);
        if let Some((known, keys)) = known
            && *known == list
        {
            return keys.clone();
        }
        let keys = match (known, lists.split_last(list)) {
            (Some((known, keys)), Some((before, text))) if *known == before => keys.with(&texts.to_vec(text)),
            _ => KeySet::new(lists.iter(list).map(|text| texts.to_vec(text)).collect()),
        };
        let keys = Arc::new(keys);
        if let Some(last) = &mut last {
            **last = Some((list, keys.clone()));
        }
        keys
    }
}
