//! How a judged text may go on.

use std::sync::Arc;

use super::verdict::Verdict;

/// The rest of an item of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rest {
    item: Arc<str>,
    from: usize,
}

impl Rest {
    fn bytes(&self) -> &[u8] {
        &self.item.as_bytes()[self.from..]
    }
}

/// How a text may go on: freely, by being judged again, or by the rest of an item.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Way {
    /// `true` if anything may follow.
    pub(super) free: bool,
    /// `true` if longer texts, and the end of this one, are judged.
    pub(super) open: bool,
    /// The rests of the items that the text has begun, sorted; none is empty.
    rests: Vec<Rest>,
}

impl Way {
    /// Adds what a verdict about the text allows, of which `cut` was not judged.
    pub(super) fn then(mut self, verdict: &Verdict, cut: &[u8]) -> Self {
        match verdict {
            Verdict::Forbidden => (),
            Verdict::Open => self.open = true,
            Verdict::Allowed => self.free = true,
            Verdict::Next(items) => {
                let begun = items.iter().filter(|item| item.as_bytes().starts_with(cut));
                self.rests.extend(begun.map(|item| Rest {
                    item: item.clone(),
                    from: cut.len(),
                }));
                self.rests.sort_by(|one, other| one.bytes().cmp(other.bytes()));
                self.rests.dedup_by(|one, other| one.bytes() == other.bytes());
            }
        }
        self
    }

    /// Returns what is left after more bytes, before the text with them is judged.
    pub(super) fn after(&self, more: &[u8]) -> Self {
        let begun = self.rests.iter();
        let begun = begun.filter(|rest| rest.bytes().len() > more.len() && rest.bytes().starts_with(more));
        Way {
            free: self.free,
            open: false,
            rests: begun
                .map(|rest| Rest {
                    item: rest.item.clone(),
                    from: rest.from + more.len(),
                })
                .collect(),
        }
    }

    /// Returns `true` if an item goes on after these bytes.
    pub(super) fn leads(&self, bytes: &[u8]) -> bool {
        let first = self.rests.partition_point(|rest| rest.bytes() <= bytes);
        self.rests
            .get(first)
            .is_some_and(|rest| rest.bytes().starts_with(bytes))
    }

    /// Returns `true` if an item is complete within these bytes.
    pub(super) fn completes(&self, bytes: &[u8]) -> bool {
        let is_item = |length| {
            let item = &bytes[..length];
            self.rests.binary_search_by(|rest| rest.bytes().cmp(item)).is_ok()
        };
        (1..=bytes.len()).any(is_item)
    }
}
