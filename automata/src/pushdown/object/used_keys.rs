//! The keys that an object list has used.
//!
//! A progress refers to them as a list that grows at its end. All masks up to the next key ask which of them
//! begin with the current text; for that, the keys are read out and sorted once. Only the last list is
//! cached, and a list with one key more is built from it: a growing object has another list after each of its
//! keys, and storing all of them would take memory quadratic in its size.

use std::sync::{Arc, Mutex};

use super::key_set::KeySet;
use crate::pushdown::intern::interner::{Chains, NIL};

/// The list that was requested last, with its keys.
#[derive(Debug, Default)]
pub(crate) struct LastUsed(Mutex<Option<(u32, Arc<KeySet>)>>);

impl LastUsed {
    /// Returns the keys of a list, in order. O(their length), unless this list or the one that it extends was
    /// requested last.
    pub(crate) fn keys(&self, list: u32, lists: &Chains<u32>, texts: &Chains<u8>) -> Arc<KeySet> {
        if list == NIL {
            return Arc::default();
        }
        // A thread that would have to wait computes the keys itself.
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
