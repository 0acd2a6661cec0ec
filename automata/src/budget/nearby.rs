//! The mask where hardly any tokens are left: every token is judged by its own distance.
//!
//! Tokens with the same future are judged once, so that a hundred thousand ways to go on inside a string are one
//! question: those that stay within a regular language by their place in it, others by their heads. A place does not
//! name the text of a key or of a word that a judge tells, so that tokens whose futures depend on it are questions of
//! their own:
//!
//! ```text
//!   a string value         by its place: any text may be closed
//!   an open key            by its place, if it can be the last key; but not what a key that was written begins with
//!   one of several keys    each: which keys are left depends on it
//! ```
//!
//! A token that is judged on its own takes real steps of the machine, which the grammar remembers until it
//! is compacted. All other masks remember only themselves and the state that they are kept for.

use rustc_hash::{FxHashMap, FxHashSet};

use super::place::Place;
use super::profile::{Ahead, Part};
use super::tokens::TokenDistances;
use crate::language::{ByteSet, plus};
use crate::mask::Mask;
use crate::pushdown::{ConfigId, FrameId, HangingSets, Head, View};
use crate::work::spend;

/// The tokens of the mask after which the text can be completed within the limit; the end tokens stay as they are.
pub(super) fn mask(
    distances: &TokenDistances,
    place: Place<'_>,
    config: ConfigId,
    mask: &Mask,
    limit: u64,
) -> Mask {
    let vocabulary = place.vocabulary();
    let stacks = place.machine.stacks();
    let mut nearby = Nearby {
        distances,
        place,
        mask,
        limit,
        walk: Ahead::new(distances.achievable(), place),
        near: Mask::empty(vocabulary.len()),
        worth: None,
        hanging: HangingSets::default(),
        shared: FxHashSet::default(),
        may_search: distances.steps.gaps || place.is_small(),
        config,
    };
    let readers = &stacks.closure(config).readers;
    readers.iter().for_each(|&reader| nearby.staying(reader));
    let left = mask.without(&nearby.near);
    let left: Vec<u32> = left.iter().take(EACH + 1).collect();
    match left.len() <= nearby.most_each() {
        true => nearby.each(left),
        false => nearby.all(readers),
    }
    let mut near = nearby.near;
    near.intersect(mask);
    for (special, &token) in place.specials.iter().enumerate() {
        let next = stacks.step_special(config, special as u32);
        if next.is_some_and(|next| distances.within(place, next, limit)) {
            near.insert(token);
        }
    }
    if stacks.closure(config).accepting {
        near.insert_all(vocabulary.eos());
    }
    near
}

struct Nearby<'a> {
    distances: &'a TokenDistances,
    place: Place<'a>,
    mask: &'a Mask,
    limit: u64,
    walk: Ahead<'a>,
    near: Mask,
    config: ConfigId,
    /// Whether completions may be searched, so that any may be found and not just the one that is spelled.
    may_search: bool,
    /// How a completion begins that is found, once it was asked for.
    worth: Option<Vec<u8>>,
    /// What is known of the heads of the walk.
    hanging: HangingSets,
    /// Tokens that more than one reader may take.
    shared: FxHashSet<u32>,
}

/// So many tokens are each judged by themselves, where each is a question of its own. Of more, those are with which the
/// completion begins that is spelled, or the way that is searched, so that following it leads to the end; a hundred
/// thousand are too many questions.
const EACH: usize = 64;

/// The same in a small vocabulary, where each may be a search.
const EACH_SEARCHED: usize = 32;

/// What the text of a key in progress makes a difference to.
#[derive(Default)]
struct KeyText {
    /// Whether to the futures of all tokens, and not only of those that go on like a taken key.
    hangs: bool,
    /// Bytes after which only keys are left that may not be written.
    taken: Vec<Vec<u8>>,
}

impl KeyText {
    /// Whether no key goes on with all of these bytes, or ends within them.
    fn forbids(&self, bytes: &[u8]) -> bool {
        self.taken.iter().any(|taken| bytes.starts_with(taken))
    }
}

impl<'a> Nearby<'a> {
    /// The tokens that stay within the language of a reader, where its own way to the end is short enough in steps. What other
    /// readers make of a token can only be shorter, so that none of them has to be asked: free text that may end anywhere, beside
    /// calls that are long, is one look at what stays free text.
    fn staying(&mut self, (frame, callers): (FrameId, ConfigId)) {
        let stacks = self.place.machine.stacks();
        if matches!(stacks.view(frame), View::Key(..)) {
            return;
        }
        let part = Part::new(&mut self.walk, self.place, (frame, callers));
        let Some(part) = part.filter(|part| !part.judged) else {
            return;
        };
        let below = self.distances.achievable().of(stacks, callers);
        if below > self.limit {
            return;
        }
        let end_states = self.place.tables.end_states(part.terminal, part.cursor.state);
        for (cursor, tokens) in end_states.from(part.terminal, part.cursor) {
            let own = self.distances.achievable().of_view(stacks, frame, cursor);
            if plus(own, below) <= self.limit {
                tokens.add_to(&mut self.near);
            }
        }
    }

    /// All readers, by parts or through the whole vocabulary.
    fn all(&mut self, readers: &[(FrameId, ConfigId)]) {
        let mut others = Vec::new();
        for readers in self.together(readers) {
            if !self.bulk(&readers) {
                others.extend(readers);
            }
        }
        if !others.is_empty() {
            self.readers(&others);
        }
    }

    /// So many tokens are each judged by themselves.
    fn most_each(&self) -> usize {
        match self.place.is_small() {
            true => EACH_SEARCHED,
            false => EACH,
        }
    }

    /// The readers in groups of which no two take a common token. How far it is after a token depends on all that take it:
    /// the completion that is spelled is the shortest of all.
    fn together(&self, readers: &[(FrameId, ConfigId)]) -> Vec<Vec<(FrameId, ConfigId)>> {
        let heads = &self.walk.lookahead;
        let mut groups: Vec<(ByteSet, Vec<(FrameId, ConfigId)>)> = Vec::new();
        for &(frame, callers) in readers {
            spend(groups.len());
            let (mut bytes, mut group) = (ByteSet::default(), vec![(frame, callers)]);
            let reader = heads.reader(frame, callers, 0);
            heads.add_bytes(&reader, &mut bytes, &mut ByteSet::default());
            groups.retain_mut(|(others, other)| {
                let apart = bytes.common(others).is_empty();
                if !apart {
                    bytes.unite(others);
                    group.append(other);
                }
                apart
            });
            groups.push((bytes, group));
        }
        groups.into_iter().map(|(_, group)| group).collect()
    }

    /// A group of readers of which one can be judged by parts; whether there is one. What the others take is judged apart.
    fn bulk(&mut self, readers: &[(FrameId, ConfigId)]) -> bool {
        for &bulk in readers {
            let Some(part) = self.part(bulk) else { continue };
            let others = readers.iter().copied().filter(|&reader| reader != bulk);
            self.share(others.collect());
            self.reader(bulk, &part);
            return true;
        }
        false
    }

    /// Tokens that these readers take and another may take, too.
    fn share(&mut self, readers: Vec<(FrameId, ConfigId)>) {
        let (near, limit) = (&mut self.near, self.limit);
        let (mut open, mut shared) = (Vec::new(), Vec::new());
        walk_readers(&mut self.walk, self.place, &readers, |_, length, tokens| {
            shared.extend_from_slice(tokens);
            match length <= limit {
                true => near.insert_all(tokens),
                false => open.extend_from_slice(tokens),
            }
        });
        self.shared.extend(shared);
        self.each(open);
    }

    /// A reader that can be judged by parts.
    fn part(&mut self, reader: (FrameId, ConfigId)) -> Option<Part<'a>> {
        let part = Part::new(&mut self.walk, self.place, reader);
        part.filter(|part| !part.judged && !part.overlaps)
    }

    /// One reader, by parts. What stays is judged by one token for all that come to the same place, so that none of them
    /// may have another way.
    fn reader(&mut self, (frame, callers): (FrameId, ConfigId), part: &Part<'_>) {
        let stacks = self.place.machine.stacks();
        let below = self.distances.achievable().of(stacks, callers);
        let (text, vocabulary) = (self.text(frame), self.place.vocabulary());
        let own = self.own(&text);
        let mut judged = Vec::new();
        let end_states = self.place.tables.end_states(part.terminal, part.cursor.state);
        for (cursor, tokens) in end_states.from(part.terminal, part.cursor) {
            let length = plus(self.distances.achievable().of_view(stacks, frame, cursor), below);
            if length <= self.limit {
                tokens.add_to(&mut self.near);
                continue;
            }
            let mut here = Mask::empty(vocabulary.len());
            tokens.add_to(&mut here);
            here.intersect(self.mask);
            let others = here.without(&own);
            if others.iter().next().is_some_and(|token| self.allows(token)) {
                self.near.unite(&others);
            }
            here.intersect(&own);
            judged.extend(here.iter());
        }
        self.each(judged);
        let mut open = Vec::new();
        let (near, limit) = (&mut self.near, self.limit);
        if !part.is_sure() {
            part.leaving(&mut self.walk, self.place, |_, _, tokens| {
                open.extend(tokens.iter().map(|&token| (Vec::new(), token)));
            });
            return self.judge(open);
        }
        part.leaving(&mut self.walk, self.place, |heads, length, tokens| {
            if text.taken.is_empty() {
                return sort_out(near, &mut open, limit, (heads, length, tokens));
            }
            // What follows is visited for keys alike, also after those that may not be written.
            let written = tokens
                .iter()
                .filter(|&&token| !text.forbids(vocabulary.bytes(token)));
            written.for_each(|&token| sort_out(near, &mut open, limit, (heads, length, &[token])));
        });
        self.judge(open);
    }

    /// The tokens for which no other may speak.
    fn own(&self, text: &KeyText) -> Mask {
        let vocabulary = self.place.vocabulary();
        if text.hangs {
            return self.mask.clone();
        }
        let mut own = Mask::empty(vocabulary.len());
        self.shared.iter().for_each(|&token| own.insert(token));
        let begins = text
            .taken
            .iter()
            .flat_map(|taken| vocabulary.trie().prefixes(taken));
        begins.for_each(|(_, tokens)| own.insert_all(tokens));
        own
    }

    /// Readers of which none can be judged by parts, through the whole vocabulary.
    fn readers(&mut self, readers: &[(FrameId, ConfigId)]) {
        let (near, limit) = (&mut self.near, self.limit);
        let mut open = Vec::new();
        walk_readers(&mut self.walk, self.place, readers, |heads, length, tokens| {
            sort_out(near, &mut open, limit, (heads, length, tokens));
        });
        self.judge(open);
    }

    /// What the text of the key makes a difference to which the frame reads, if it reads one.
    fn text(&self, frame: FrameId) -> KeyText {
        let stacks = self.place.machine.stacks();
        if !matches!(stacks.view(frame), View::Key(..)) {
            return KeyText::default();
        }
        KeyText {
            hangs: self.may_search || self.distances.achievable().needs_key_behind(stacks, frame),
            taken: stacks.taken(frame, |_| true),
        }
    }

    fn judge(&mut self, open: Vec<(Vec<Head>, u32)>) {
        let mut judged: FxHashMap<Vec<Head>, bool> = FxHashMap::default();
        let mut own = Vec::new();
        for (heads, token) in open {
            spend(1);
            if !self.mask.contains(token) {
                continue;
            }
            let allowed = match heads.is_empty() {
                // Heads that do not know how to go on have no future to be told apart by.
                true => self.allows(token),
                false if self.shared.contains(&token) || self.hang_on_text(&heads) => {
                    own.push(token);
                    false
                }
                false => {
                    let futures = self.walk.lookahead.futures(&heads);
                    *judged.entry(futures).or_insert_with(|| self.allows(token))
                }
            };
            if allowed {
                self.near.insert(token);
            }
        }
        self.each(own);
    }

    fn hang_on_text(&mut self, heads: &[Head]) -> bool {
        let (may_search, shortest) = (self.may_search, self.distances.achievable());
        let stacks = self.place.machine.stacks();
        let hangs = |frame| may_search || shortest.needs_key_behind(stacks, frame);
        self.walk.lookahead.hang_on_text(heads, hangs, &mut self.hanging)
    }

    /// Tokens whose futures have nothing in common that is known.
    fn each(&mut self, mut tokens: Vec<u32>) {
        tokens.retain(|&token| self.mask.contains(token));
        let all = tokens.len() <= self.most_each();
        for token in tokens {
            if (all || self.is_worth_judging(token)) && self.allows(token) {
                self.near.insert(token);
            }
        }
    }

    fn is_worth_judging(&mut self, token: u32) -> bool {
        let text = self.worth.take().unwrap_or_else(|| {
            let limit = plus(self.limit, 1);
            self.distances.completion(self.place, self.config, limit)
        });
        let is_worth = text.starts_with(self.place.vocabulary().bytes(token));
        self.worth = Some(text);
        is_worth
    }

    fn allows(&self, token: u32) -> bool {
        self.distances.allows(self.place, self.config, token, self.limit)
    }
}

/// Visits what these readers take, through the whole vocabulary.
fn walk_readers<'a>(
    walk: &mut Ahead<'a>,
    place: Place<'a>,
    readers: &[(FrameId, ConfigId)],
    visit: impl FnMut(&[Head], u64, &[u32]),
) {
    let readers = readers.iter();
    let heads = readers.map(|&(frame, callers)| walk.lookahead.reader(frame, callers, 0));
    let heads: Vec<Head> = heads.collect();
    walk.visit(place.vocabulary().trie(), &heads, visit);
}

/// Tokens near enough by their steps alone go into the mask, others are kept to be judged.
fn sort_out(
    near: &mut Mask,
    open: &mut Vec<(Vec<Head>, u32)>,
    limit: u64,
    (heads, length, tokens): (&[Head], u64, &[u32]),
) {
    if length <= limit {
        near.insert_all(tokens);
    } else {
        open.extend(tokens.iter().map(|&token| (heads.to_vec(), token)));
    }
}
