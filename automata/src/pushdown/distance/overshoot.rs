//! Bounds how far from the end any one token can lead, without examining tokens.
//!
//! A token leaves some frames of the stack, continues in one of those below, and makes calls from there. So
//! the text after it is at most as far from its end as the furthest place of that frame, including everything
//! that can be called from it within the bytes of the token, and the frames below:
//!
//! ```text
//!   [{"id":1,"tags":["a     frame      the furthest place                  below
//!   ││               │└     string     a \u of which no digit is there     ] } ]
//!   ││               └      array      …,"\u                               } ]
//!   │└                      object     …,"key":{"id":…                     ]
//!   └                       array      …,{"id":…                           –
//! ```
//!
//! Nearly all budgets are ample, which one number per configuration shows. It is composed from one number for
//! each rule and object list, which are computed along the calls:
//!
//! ```text
//!   rule        max over its nodes      distance(node)
//!                   and its calls       distance(after) + reach(callee)
//!   progress    distance(progress) +    reach(item)
//!               max over the items      a key and its item
//!               and the separator       reach(separator) + another item, which must follow it
//! ```
//!
//! If rules call themselves, each level reads at least one byte before it calls the next, one of the bytes
//! that it can begin with. No token of Llama's has more than four opening brackets, so it opens at most four
//! levels.
//!
//! # Why a bound instead of the tokens
//!
//! The decode loop requests every mask within the rest of `max_tokens`. Reading all tokens to learn how far
//! from the end they lead took 5 µs in the median, while the mask itself takes 0.1 µs. The bound comes from
//! the rules and answers for nearly all states; only near the end are tokens read. It must never be too
//! small, which tests check for vocabularies in which every byte is a token.

use super::Distances;
use super::calls::Calls;
use super::free::KEYS;
use super::remembered::Remembered;
use crate::language::{NEVER, plus};
use crate::pushdown::equivalence::TokenFacts;
use crate::pushdown::frame::{FrameId, FrameKey, Frames};
use crate::pushdown::object::progress::Progress;
use crate::pushdown::stack::{ConfigId, Stacks};

/// The overshoot bounds of one grammar.
#[derive(Debug)]
pub(crate) struct OvershootBound {
    /// The bound of each rule, wherever in it a token begins.
    rules: Vec<u64>,
    /// For each object list, the number to add to the distance of a progress.
    object_lists: Vec<u64>,
    configs: Remembered<ConfigId>,
}

impl OvershootBound {
    /// Computes the bounds from distances that are upper bounds, over all bytes; `facts` knows the contents
    /// of tokens. O(size of the grammar), multiplied by the number of levels that a token can open if rules
    /// call themselves.
    pub(crate) fn new(stacks: &Stacks, shortest: &Distances, facts: &impl TokenFacts) -> OvershootBound {
        let mut rules = Calls::new(&stacks.frames, shortest).furthest(facts);
        OvershootBound {
            object_lists: rules.split_off(stacks.frames.nfa.rules.len()),
            rules,
            configs: Remembered::default(),
        }
    }

    /// Returns a bound on the distance to the end after any token from the configuration; [`NEVER`] if no
    /// bound is known.
    pub(crate) fn of(&self, stacks: &Stacks, shortest: &Distances, config: ConfigId) -> u64 {
        self.configs.or_find(stacks, config, |pairs, below| {
            let furthest = pairs.iter().map(|&(frame, callers)| {
                let here = self.of_frame(&stacks.frames, shortest, frame);
                plus(here, shortest.of(stacks, callers)).max(below(callers))
            });
            furthest.max().unwrap_or(NEVER)
        })
    }

    fn of_frame(&self, frames: &Frames, shortest: &Distances, frame: FrameId) -> u64 {
        match &frames.get(frame).key {
            FrameKey::Return => 0,
            FrameKey::RuleStart(rule) | FrameKey::Rule { rule, .. } => self.rules[*rule as usize],
            FrameKey::TerminalStart(terminal) => shortest.peak(*terminal, frames.terminal(*terminal).start()),
            FrameKey::Terminal(terminal, cursor) => shortest.peak(*terminal, *cursor),
            FrameKey::ObjectList(object_list, progress) => {
                let left = shortest.of_frame(frames, frame);
                self.of_progress(frames, (*object_list, *progress), left)
            }
            FrameKey::NextKey(at) => {
                let left = shortest.of_progress(frames, at.object_list, at.progress);
                self.of_progress(frames, (at.object_list, at.progress), left)
            }
            FrameKey::Key {
                object_list,
                progress,
                ..
            } => {
                let left = shortest.of_progress(frames, *object_list, *progress);
                self.of_progress(frames, (*object_list, *progress), left)
            }
            FrameKey::Guarded(frame, _) => self.of_frame(frames, shortest, *frame),
            FrameKey::Validated { validated, .. } => frames.validator(*validated).longest_completion() as u64,
        }
    }

    fn of_progress(&self, frames: &Frames, (object_list, progress): (u32, Progress), left: u64) -> u64 {
        match frames.keys.iter(progress.used).nth(KEYS) {
            Some(_) => NEVER,
            None => plus(self.object_lists[object_list as usize], left),
        }
    }
}
