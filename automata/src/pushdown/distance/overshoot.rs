//! How far from the end any one token can lead, without looking at tokens.
//!
//! A token leaves some frames of the stack, goes on in one of those below, and calls others from there. So
//! the text after it is at most as far from its end as the furthest place of that frame, with all that can be
//! called from it in the bytes of the token, and what stands below:
//!
//! ```text
//!   [{"id":1,"tags":["a     frame      the furthest place                  below
//!   ││               │└     string     a \u of which no digit is there     ] } ]
//!   ││               └      array      …,"\u                               } ]
//!   │└                      object     …,"key":{"id":…                     ]
//!   └                       array      …,{"id":…                           –
//! ```
//!
//! Nearly all budgets are ample, and one number for each configuration says so. It is put together from one
//! for each rule and series, which is found along the calls:
//!
//! ```text
//!   rule        max over its nodes      distance(node)
//!                   and its calls       distance(behind) + reach(callee)
//!   progress    distance(progress) +    reach(item)
//!               max over the items      a key and its item
//!               and the separator       reach(separator) + another item, which must follow it
//! ```
//!
//! Where rules call themselves, each level reads a byte at least before it calls the next, and one of those
//! that it can begin with. No token of Llama's has more than four brackets that open something, so that it
//! opens four levels at most.
//!
//! # Why a bound, and not the tokens
//!
//! The decode loop asks for every mask within the rest of `max_tokens`. Reading all tokens to learn how far
//! they lead from the end took 5 µs in the median, and the mask itself takes 0.1. The bound comes from the
//! rules and answers for nearly all states; only near the end are tokens read. It must never be too small,
//! which tests check where every byte is a token.

use super::Distances;
use super::calls::Calls;
use super::free::KEYS;
use super::remembered::Remembered;
use crate::language::{NEVER, plus};
use crate::pushdown::equivalence::TokenFacts;
use crate::pushdown::frame::{FrameId, FrameKey, Frames};
use crate::pushdown::object::progress::Progress;
use crate::pushdown::stack::{ConfigId, Stacks};

/// The bounds of one grammar.
#[derive(Debug)]
pub(crate) struct OvershootBound {
    /// Of each rule, wherever in it a token begins.
    rules: Vec<u64>,
    /// Of each series what is added to the distance of a progress.
    series: Vec<u64>,
    configs: Remembered<ConfigId>,
}

impl OvershootBound {
    /// The bounds for distances that are never too few, over all bytes, and tokens of which `facts` knows
    /// what they hold. O(size of the grammar); where rules call themselves, times how often a token can open
    /// one.
    pub(crate) fn new(stacks: &Stacks, shortest: &Distances, facts: &impl TokenFacts) -> OvershootBound {
        let mut rules = Calls::new(&stacks.frames, shortest).furthest(facts);
        OvershootBound {
            series: rules.split_off(stacks.frames.nfa.rules.len()),
            rules,
            configs: Remembered::default(),
        }
    }

    /// No token leads from the configuration to where the end is further than this; [`NEVER`] where no bound
    /// is known.
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
            FrameKey::Series(series, progress) => {
                let left = shortest.of_frame(frames, frame);
                self.of_progress(frames, (*series, *progress), left)
            }
            FrameKey::Choice(at) => {
                let left = shortest.of_progress(frames, at.series, at.progress);
                self.of_progress(frames, (at.series, at.progress), left)
            }
            FrameKey::Key { series, progress, .. } => {
                let left = shortest.of_progress(frames, *series, *progress);
                self.of_progress(frames, (*series, *progress), left)
            }
            FrameKey::Judged { judged, .. } => frames.judge(*judged).longest_completion() as u64,
        }
    }

    fn of_progress(&self, frames: &Frames, (series, progress): (u32, Progress), left: u64) -> u64 {
        match frames.keys.iter(progress.used).nth(KEYS) {
            Some(_) => NEVER,
            None => plus(self.series[series as usize], left),
        }
    }
}
