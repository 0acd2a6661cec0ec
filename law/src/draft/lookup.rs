//! Prompt lookup: copies what followed an earlier occurrence of the last tokens, in the text or in a
//! reference text.
//!
//! ```text
//!   prompt  … "name" : " Ada Lovelace " …        answer  … "author" : " Ada
//!                        └─┬─┘ └──┬─────                              └─┬─┘
//!                        match  copied                         the longest suffix found
//! ```
//!
//! If the last tokens were followed by several continuations, each may be offered: a draft whose branches
//! share its tokens.
//!
//! Places are found by an index of the few tokens before each ([`Places`]), which grows with the text and
//! shrinks when it is rewound. Reading a token adds a few entries to hash tables; a look-up reads as many,
//! however long the text is.

mod places;

use self::places::Places;
use super::{Constraint, Draft, Drafter, NodeId, Origin, Proposal, Text};
use std::cmp::Reverse;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// The most tokens that places are indexed by; places that share this many are compared token by token for
/// longer suffixes.
const KEY: usize = places::KEY;
/// The number of places with the same key that are compared, the latest first: a bound on the time of a
/// look-up.
const LOOKED_AT: usize = 32;

/// The parameters of prompt lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PromptLookup {
    /// The most tokens of a suffix that are compared: longer matches count as equally good.
    pub longest: usize,
    /// The fewest tokens that a place must share with the suffix.
    pub shortest: usize,
    /// The number of continuations with different first tokens to offer, the best first.
    pub branches: usize,
    /// The number of tokens that are searched, from the end of a text and from the beginning of a reference:
    /// a bound on the memory of the index, which is about 100 bytes a token.
    pub window: usize,
}

impl Default for PromptLookup {
    fn default() -> Self {
        PromptLookup {
            longest: 3,
            shortest: 1,
            branches: 1,
            window: 1 << 16,
        }
    }
}

impl PromptLookup {
    /// Returns the lengths of the suffixes by which places are indexed.
    fn keys(&self) -> RangeInclusive<usize> {
        let shortest = self.shortest.clamp(1, KEY);
        shortest..=self.longest.min(KEY).max(shortest)
    }
}

/// A text that the answer is likely to repeat.
#[derive(Debug)]
struct Reference {
    tokens: Vec<u32>,
    places: Places,
}

/// A place whose tokens may come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FoundMatch {
    /// The number of tokens before the place that match the end of the text, up to a bound.
    shared: usize,
    is_reference: bool,
    place: usize,
    /// The token at the place.
    token: u32,
}

impl FoundMatch {
    /// Returns the rank; a greater one is better: longer matches first, then places of the reference, then
    /// later places.
    fn rank(&self) -> (usize, bool, usize) {
        (self.shared, self.is_reference, self.place)
    }
}

/// Copies what followed earlier occurrences of the last tokens of one growing text: the index of prompt
/// lookup.
///
/// The longest suffix wins; among equally long ones the reference comes before the text, and later places
/// before earlier ones. Among places that share their last few tokens the 32 latest are compared. A clone
/// shares the index of the prompt and of the reference.
#[derive(Clone, Debug)]
pub struct Lookup {
    how: PromptLookup,
    prompt: Arc<Places>,
    answer: Places,
    reference: Option<Arc<Reference>>,
}

impl Lookup {
    /// Creates a look-up for a text that begins with this prompt, and an answer that is likely to repeat this
    /// reference, which may be empty.
    pub fn new(how: PromptLookup, prompt: &[u32], mut reference: Vec<u32>) -> Self {
        reference.truncate(how.window);
        let of_prompt = Text { prompt, answer: &[] };
        let indexed = |text: Text<'_>| {
            let mut places = Places::new(text.len().saturating_sub(how.window), how.keys());
            places.grow(text);
            places
        };
        let of_reference = indexed(Text {
            prompt: &reference,
            answer: &[],
        });
        Lookup {
            prompt: Arc::new(indexed(of_prompt)),
            answer: Places::new(prompt.len(), how.keys()),
            reference: (!reference.is_empty()).then(|| {
                Arc::new(Reference {
                    tokens: reference,
                    places: of_reference,
                })
            }),
            how,
        }
    }

    /// Sets the number of continuations to offer from now on.
    #[must_use]
    pub fn branches(mut self, branches: usize) -> Self {
        self.how.branches = branches;
        self
    }

    /// Reads the rest of the text, which must begin with what was read before.
    pub fn grow(&mut self, text: Text<'_>) {
        if text.len() < self.answer.end() {
            // The text was rewound without a call of `rewind`.
            self.restart(text);
        }
        self.answer.grow(text);
        if self.answer.len() > 2 * self.how.window {
            self.restart(text);
            self.answer.grow(text);
        }
    }

    /// Removes everything after the first `to` tokens of the text, prompt included. `text` must be the text
    /// that was read. Costs one step for each token removed, or rereads a window of tokens if places that had
    /// left the window come back into it.
    pub fn rewind(&mut self, text: Text<'_>, to: usize) {
        let kept = Text {
            prompt: text.prompt,
            answer: &text.answer[..to.saturating_sub(text.prompt.len()).min(text.answer.len())],
        };
        if self.first_place(kept) < self.answer.begin() {
            self.restart(kept);
            self.answer.grow(kept);
        } else {
            self.answer.rewind(text, to);
        }
    }

    /// Returns the first place of the answer that is within the window.
    fn first_place(&self, text: Text<'_>) -> usize {
        let begin = text.len().saturating_sub(self.how.window);
        begin.max(text.prompt.len())
    }

    /// Drops all places of the answer, before those within the window of its end are read again.
    fn restart(&mut self, text: Text<'_>) {
        self.answer = Places::new(self.first_place(text), self.how.keys());
    }

    /// Returns the token that is likeliest to come next, if the end of the text has occurred before.
    pub fn guess(&self, text: Text<'_>) -> Option<u32> {
        self.find(text, &[]).first().map(|found| found.token)
    }

    /// Returns the best places to copy from after a text and drafted tokens, the best first.
    fn find(&self, text: Text<'_>, drafted: &[u32]) -> Vec<FoundMatch> {
        let most = self.how.longest.max(KEY);
        let begin = text.len().saturating_sub(most);
        let mut recent: Vec<u32> = (begin..text.len()).map(|place| text.at(place)).collect();
        recent.extend(drafted);
        let mut best: Vec<FoundMatch> = Vec::new();
        for length in self.how.keys().rev() {
            let Some(from) = recent.len().checked_sub(length) else {
                continue;
            };
            for found in self.at(text, &recent, &recent[from..]) {
                match best.iter_mut().find(|known| known.token == found.token) {
                    Some(known) if known.rank() < found.rank() => *known = found,
                    Some(_) => (),
                    None => best.push(found),
                }
            }
            if best.len() >= self.how.branches.max(1) {
                break;
            }
        }
        best.sort_by_key(|found| Reverse(found.rank()));
        best.truncate(self.how.branches.max(1));
        best
    }

    /// Returns the places under a key that share enough with the last tokens.
    fn at<'a>(
        &'a self,
        text: Text<'a>,
        recent: &'a [u32],
        key: &'a [u32],
    ) -> impl Iterator<Item = FoundMatch> + 'a {
        let begin = text.len().saturating_sub(self.how.window);
        let behind = move |places: &'a Places| places.behind(key);
        let here = behind(&self.answer).chain(behind(&self.prompt));
        let here = here.filter(move |place| (begin..text.len()).contains(place));
        let there = self.reference.iter().flat_map(move |reference| {
            let text = Text {
                prompt: &reference.tokens,
                answer: &[],
            };
            let places = behind(&reference.places).take(LOOKED_AT);
            places.map(move |place| (text, true, place))
        });
        let here = here.take(LOOKED_AT).map(move |place| (text, false, place));
        let found = there.chain(here).map(|(text, is_reference, place)| FoundMatch {
            shared: shared(text, place, recent, self.how.longest),
            is_reference,
            place,
            token: text.at(place),
        });
        found.filter(|found| found.shared >= self.how.shortest.max(1))
    }

    /// Offers tokens after the text, which was read to its end, and after what the draft already holds.
    pub fn offer<C: Constraint, Q>(&self, text: Text<'_>, draft: &mut Draft<'_, C, Q>) {
        let drafted: Vec<u32> = draft.tokens().collect();
        let places = self.find(text, &drafted);
        let tip = draft.nodes().len().checked_sub(1);
        let each = draft.room_below(tip).div_ceil(places.len().max(1));
        for found in places {
            self.copy(text, drafted.clone(), (found, each), (tip, draft));
        }
    }

    /// Copies at most `most` tokens from a place below a node. A copy that reaches the end of the text
    /// continues with what was drafted and copied, so repeated text is drafted in full. A copy from the
    /// reference ends with the reference.
    fn copy<C: Constraint, Q>(
        &self,
        text: Text<'_>,
        mut after: Vec<u32>,
        (found, most): (FoundMatch, usize),
        (mut node, draft): (Option<NodeId>, &mut Draft<'_, C, Q>),
    ) {
        let reference = self.reference.as_ref().filter(|_| found.is_reference);
        for place in found.place..found.place.saturating_add(most) {
            let (token, origin) = match reference {
                Some(reference) => (reference.tokens.get(place).copied(), Origin::Predicted),
                None if place < text.len() => (Some(text.at(place)), Origin::Copied),
                None => (after.get(place - text.len()).copied(), Origin::Copied),
            };
            let Some(token) = token else { return };
            let before = draft.nodes().len();
            node = draft.offer_below(node, token, origin, Proposal::Point);
            if node.is_none() || node.is_some_and(|node| node < before) {
                // Refused, or already there.
                return;
            }
            after.push(token);
        }
    }
}

/// Returns how many tokens before a place match the end of the text, up to a bound.
fn shared(text: Text<'_>, place: usize, recent: &[u32], bound: usize) -> usize {
    let before = (0..place).rev().map(|place| text.at(place));
    let pairs = before.zip(recent.iter().rev()).take(bound);
    pairs.take_while(|&(before, &recent)| before == recent).count()
}

impl<C: Constraint, Q> Drafter<C, Q> for Lookup {
    fn propose(&mut self, text: Text<'_>, draft: &mut Draft<'_, C, Q>) {
        self.grow(text);
        self.offer(text, draft);
    }
}

#[cfg(test)]
mod tests;
