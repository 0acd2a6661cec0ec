//! What a rule in progress allows, whoever called it.
//!
//! Behind every key of an object with open keys the same value may come, and behind every member of a list of objects the
//! same members, each time below other callers: another set of keys that are taken, another list. What the frame of a
//! rule allows without leaving the rule hangs on the frame alone. It is found once for a grammar, by a walk below callers
//! that are left open, and where the rule ends the walk goes on with those who called it this time.
//!
//! ```text
//!   behind  {"a"     inner   :   :"   :{"   :[{"   …
//!                    exits   :{│}   :""│,   :[]│}        (the bar is where the value ends)
//! ```
//!
//! Most frames are met once, so that this is done only for those that are met again. A passage names the branches that it
//! goes through and does not keep them: when the tables have dropped one, it is found again.

use std::sync::{Arc, Weak};

use super::branch::{Branch, Exits, Ground};
use super::set::{Mask, TokenSet};
use super::stripes::Stripes;
use super::walk::Found;
use crate::machine::Thread;

/// What was found from one place, below a node of a trie or in the whole of it.
#[derive(Debug, Default)]
pub(super) struct Passage {
    tokens: Vec<u32>,
    branches: Vec<Weak<Branch>>,
    /// Tokens that have to be judged by their bytes.
    pub(super) lost: Vec<u32>,
    pub(super) exits: Exits,
}

impl Passage {
    /// Adds what stays within the rule; `false` if some of that is no longer known.
    fn add_to(&self, mask: &mut Mask) -> bool {
        mask.insert_all(&self.tokens);
        self.branches.iter().all(|branch| {
            let branch = branch.upgrade();
            branch.inspect(|branch| branch.inner.add_to(mask)).is_some()
        })
    }

    fn bytes(&self) -> usize {
        128 + self.tokens.capacity() * 4
            + self.branches.capacity() * 8
            + self.lost.capacity() * 4
            + self.exits.len() * 8
    }
}

impl Found for Passage {
    fn insert_all(&mut self, tokens: &[u32]) {
        self.tokens.extend_from_slice(tokens);
    }

    fn insert_branch(&mut self, branch: &Arc<Branch>) {
        self.branches.push(Arc::downgrade(branch));
    }

    fn insert_set(&mut self, tokens: &TokenSet) {
        match tokens {
            TokenSet::List(tokens) => self.tokens.extend_from_slice(tokens),
            TokenSet::Bits(mask) => self.tokens.extend(mask.iter()),
        }
    }
}

/// The number of a trie, a node of it, and a place in a rule.
type Key = (u64, Option<u32>, Thread);

/// The passages that a grammar remembers, within a bound of bytes.
#[derive(Debug)]
pub(crate) struct Passages(Stripes<Key, Option<Arc<Passage>>>);

/// What is known of a place at a node.
pub(super) enum Met {
    /// It is met for the first time.
    Never,
    /// It was met before, and what was found of it may have been dropped.
    Once,
    Known(Arc<Passage>),
}

impl Passages {
    /// None yet; beyond `bound` bytes all are dropped.
    pub(crate) fn new(bound: usize) -> Passages {
        Passages(Stripes::new(bound))
    }

    /// The memory that the passages take, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.0.bytes()
    }

    /// Adds what is known to stay within the rule of a place to a mask; it is remembered that the place was met.
    pub(super) fn meet(&self, ground: Ground<'_>, top: Option<usize>, place: Thread, mask: &mut Mask) -> Met {
        let key = key(ground, top, place);
        match self.0.get(&key) {
            Some(Some(passage)) if passage.add_to(mask) => Met::Known(passage),
            Some(_) => Met::Once,
            None => {
                self.0.keep(key, None, size_of::<Key>() + 16);
                Met::Never
            }
        }
    }

    pub(super) fn keep(&self, ground: Ground<'_>, top: Option<usize>, place: Thread, passage: &Arc<Passage>) {
        let key = key(ground, top, place);
        self.0.keep(key, Some(passage.clone()), passage.bytes());
    }
}

fn key(ground: Ground<'_>, top: Option<usize>, place: Thread) -> Key {
    (ground.number, top.map(|node| node as u32), place)
}
