//! The mask where hardly any tokens are left: every token is judged by its own distance.
//!
//! Tokens with the same future are judged once, so that a hundred thousand ways to go on inside a string are one
//! question: those that stay within a regular language by their place in it, others by their threads.

use rustc_hash::FxHashMap;

use super::profile::{Ahead, Part};
use super::{Budget, Place};
use crate::machine::{ConfigId, Cursor, FrameId, Thread, plus};
use crate::mask::Mask;

/// The tokens of the mask after which the text can be completed within the limit; the end tokens stay as they are.
pub(super) fn mask(budget: &Budget, place: Place<'_>, config: ConfigId, mask: &Mask, limit: u64) -> Mask {
    let vocabulary = place.vocabulary();
    let stacks = place.machine.stacks();
    let mut nearby = Nearby {
        budget,
        place,
        mask,
        limit,
        walk: Ahead::new(budget.achievable(), place),
        near: Mask::empty(vocabulary.len()),
        worth: None,
        config,
    };
    let mut others = Vec::new();
    for &reader in &stacks.fringe(config).readers {
        if !nearby.reader(reader) {
            others.push(reader);
        }
    }
    if !others.is_empty() {
        nearby.readers(&others);
    }
    let mut near = nearby.near;
    near.intersect(mask);
    for (special, &token) in place.specials.iter().enumerate() {
        let next = stacks.step_special(config, special as u32);
        if next.is_some_and(|next| budget.within(place, next, limit)) {
            near.insert(token);
        }
    }
    if stacks.fringe(config).accepting {
        near.insert_all(vocabulary.eos());
    }
    near
}

struct Nearby<'a> {
    budget: &'a Budget,
    place: Place<'a>,
    mask: &'a Mask,
    limit: u64,
    walk: Ahead<'a>,
    near: Mask,
    config: ConfigId,
    worth: Option<Worth>,
}

/// Which tokens that go on in a word in progress are worth judging by more than their steps. The future of each hangs on its
/// text, so that each is a question of its own, and of a hundred thousand tokens that is too many questions.
enum Worth {
    All,
    /// Those that the completion begins with which is spelled, so that following it leads to the end.
    Beginning(Vec<u8>),
}

impl Nearby<'_> {
    /// One reader, by parts; whether that is possible. Its tokens are judged by what it can do alone: a token that
    /// another reader takes too is judged there as well. What stays is judged by one token for all that come to the same
    /// place, so that none of them may have another way.
    fn reader(&mut self, (frame, callers): (FrameId, ConfigId)) -> bool {
        let part = Part::new(&mut self.walk, self.place, (frame, callers));
        let Some(part) = part.filter(|part| !part.judged && !part.overlaps) else {
            return false;
        };
        let alone = self.place.machine.stacks().intern(vec![(frame, callers)]);
        let stacks = self.place.machine.stacks();
        let below = self.budget.achievable().of(stacks, callers);
        let mut lengths: FxHashMap<Cursor, u64> = FxHashMap::default();
        let mut judged: FxHashMap<Cursor, bool> = FxHashMap::default();
        for_each_inner(&part, self.place, |cursor, tokens| {
            let length = *lengths
                .entry(cursor)
                .or_insert_with(|| plus(self.budget.achievable().of_view(stacks, frame, cursor), below));
            let near = length <= self.limit || {
                let first = tokens.iter().find(|&&token| self.mask.contains(token));
                first.is_some_and(|&token| *judged.entry(cursor).or_insert_with(|| self.allows(alone, token)))
            };
            if near {
                self.near.insert_all(tokens);
            }
        });
        let mut open = Vec::new();
        let (near, limit) = (&mut self.near, self.limit);
        if !part.is_sure() {
            part.leaving(&mut self.walk, self.place, |_, _, tokens| {
                open.extend(tokens.iter().map(|&token| (Vec::new(), token)));
            });
            self.judge(alone, open);
            return true;
        }
        part.leaving(&mut self.walk, self.place, |threads, length, tokens| {
            sort_out(near, &mut open, limit, (threads, length, tokens));
        });
        self.judge(alone, open);
        true
    }

    /// Readers together, through the whole vocabulary.
    fn readers(&mut self, readers: &[(FrameId, ConfigId)]) {
        let config = self.place.machine.stacks().intern(readers.to_vec());
        let readers = readers.iter();
        let readers: Vec<Thread> = readers
            .map(|&(frame, callers)| self.walk.threads.reader(frame, callers, 0))
            .collect();
        let mut open = Vec::new();
        let (near, limit) = (&mut self.near, self.limit);
        self.walk.visit(
            self.place.vocabulary().trie(),
            &readers,
            |threads, length, tokens| {
                sort_out(near, &mut open, limit, (threads, length, tokens));
            },
        );
        self.judge(config, open);
    }

    fn judge(&mut self, config: ConfigId, open: Vec<(Vec<Thread>, u32)>) {
        let mut judged: FxHashMap<Vec<Thread>, bool> = FxHashMap::default();
        for (threads, token) in open {
            if !self.mask.contains(token) {
                continue;
            }
            let allowed = match threads.is_empty() {
                // Threads that do not know how to go on have no future to be told apart by.
                true => self.allows(config, token),
                false if self.walk.threads.are_judged(&threads) => {
                    self.is_worth_judging(token) && self.allows(config, token)
                }
                false => {
                    let futures = self.walk.threads.futures(&threads);
                    *judged
                        .entry(futures)
                        .or_insert_with(|| self.allows(config, token))
                }
            };
            if allowed {
                self.near.insert(token);
            }
        }
    }

    fn is_worth_judging(&mut self, token: u32) -> bool {
        let (budget, place, config) = (self.budget, self.place, self.config);
        let worth = self.worth.get_or_insert_with(|| {
            let steps = budget.achievable().of(place.machine.stacks(), config);
            match budget.searches(place, steps) {
                true => Worth::All,
                false => Worth::Beginning(budget.spelled_bytes(place, config)),
            }
        });
        match worth {
            Worth::All => true,
            Worth::Beginning(text) => text.starts_with(place.vocabulary().bytes(token)),
        }
    }

    fn allows(&self, config: ConfigId, token: u32) -> bool {
        self.budget.allows(self.place, config, token, self.limit)
    }
}

/// Tokens near enough by their steps alone go into the mask, others are kept to be judged.
fn sort_out(
    near: &mut Mask,
    open: &mut Vec<(Vec<Thread>, u32)>,
    limit: u64,
    (threads, length, tokens): (&[Thread], u64, &[u32]),
) {
    if length <= limit {
        near.insert_all(tokens);
    } else {
        open.extend(tokens.iter().map(|&token| (threads.to_vec(), token)));
    }
}

/// Visits the nodes of the vocabulary at which tokens end that stay within the regular language of a part.
fn for_each_inner(part: &Part<'_>, place: Place<'_>, mut visit: impl FnMut(Cursor, &[u32])) {
    let trie = place.vocabulary().trie();
    let mut cursors = vec![part.cursor];
    let mut at = 0;
    while let Some(node) = trie.nodes().get(at) {
        cursors.truncate(usize::from(node.depth));
        match part.terminal.next(cursors[cursors.len() - 1], node.byte) {
            Some(cursor) => {
                cursors.push(cursor);
                if node.count > 0 {
                    visit(cursor, trie.tokens_at(node));
                }
                at += 1;
            }
            None => at = node.end as usize,
        }
    }
}
