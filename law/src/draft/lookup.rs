//! Prompt lookup: what followed the last words the last time they stood in the text, or in a text that was
//! given as a reference.
//!
//! ```text
//!   prompt  … "name" : " Ada Lovelace " …        answer  … "author" : " Ada
//!                        └─┬─┘ └──┬─────                              └─┬─┘
//!                        match  copied                         the longest suffix found
//! ```
//!
//! Where the last words have gone on in several ways, each may be offered: a draft whose branches share its
//! tokens.
//!
//! Places are found by an index of the few tokens before each ([`Places`]), which grows with the text and
//! shrinks when it is rewound. A text that grows by a token costs some entries of hash tables; a look costs
//! as many, however long the text is.

mod places;

use self::places::Places;
use super::{Constraint, Draft, Drafter, NodeId, Origin, Proposal, Text};
use std::cmp::Reverse;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// The most tokens that places are indexed by; of those that share so many, longer suffixes are told apart by
/// looking.
const KEY: usize = places::KEY;
/// How many places with the same key are looked at, the latest first: a bound on the time of a look.
const LOOKED_AT: usize = 32;

/// Which places lookup copies from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PromptLookup {
    /// The most tokens of a suffix that are compared: of two longer matches none is better than the other.
    pub longest: usize,
    /// The fewest tokens that a place must share with the suffix.
    pub shortest: usize,
    /// How many continuations that begin with different tokens to offer, the best first.
    pub branches: usize,
    /// How far back from its end a text is searched, in tokens, and a reference from its beginning: a bound
    /// on the memory of the index, which is about 100 bytes a token.
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
    /// The lengths of the suffixes that places are indexed by.
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
    /// How many tokens before it the text ends in, up to a bound.
    shared: usize,
    is_reference: bool,
    place: usize,
    /// What stands there.
    token: u32,
}

impl FoundMatch {
    /// The better the greater: what is like it for longer, then what was given as a reference, then what is
    /// later.
    fn rank(&self) -> (usize, bool, usize) {
        (self.shared, self.is_reference, self.place)
    }
}

/// Copies what followed earlier occurrences of the last tokens of one growing text: the drafter of prompt
/// lookup.
///
/// The longest suffix wins; of equally long ones the reference comes before the text, and later places before
/// earlier ones. Of places that share their last few tokens the 32 latest are looked at. A clone shares what
/// is known of the prompt and of the reference.
#[derive(Clone, Debug)]
pub struct Lookup {
    how: PromptLookup,
    prompt: Arc<Places>,
    answer: Places,
    reference: Option<Arc<Reference>>,
}

impl Lookup {
    /// For a text that begins with this prompt, and an answer that is likely to repeat this reference, which
    /// may be empty.
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

    /// Offers so many continuations from now on.
    #[must_use]
    pub fn branches(mut self, branches: usize) -> Self {
        self.how.branches = branches;
        self
    }

    /// Reads on to the end of the text, which must begin with what was read before.
    pub fn grow(&mut self, text: Text<'_>) {
        if text.len() < self.answer.end() {
            // Nobody said that it was rewound.
            self.restart(text);
        }
        self.answer.grow(text);
        if self.answer.len() > 2 * self.how.window {
            self.restart(text);
            self.answer.grow(text);
        }
    }

    /// Forgets what comes after the first `to` tokens of the text, prompt included, which was read as it is
    /// given here. Costs as many steps as it takes tokens back, or a window of them where places come into
    /// the window that had left it.
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

    /// The first place of the answer that is within the window.
    fn first_place(&self, text: Text<'_>) -> usize {
        let begin = text.len().saturating_sub(self.how.window);
        begin.max(text.prompt.len())
    }

    /// Knows nothing of the answer but what is within the window of its end.
    fn restart(&mut self, text: Text<'_>) {
        self.answer = Places::new(self.first_place(text), self.how.keys());
    }

    /// The token that is likeliest to come next, if the end of the text has been there before.
    pub fn guess(&self, text: Text<'_>) -> Option<u32> {
        self.find(text, &[]).first().map(|found| found.token)
    }

    /// The best places to copy from after a text and drafted tokens, the best first.
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

    /// The places behind a key that share enough with the last tokens.
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

    /// Copies from a place below a node, at most so many tokens. A copy that reaches the end of the text goes
    /// on with what was drafted and copied: repeated text is drafted in full. One of the reference ends with
    /// it.
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
                // Refused, or there already.
                return;
            }
            after.push(token);
        }
    }
}

/// How many tokens before a place are those that the text ends in, up to a bound.
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
