//! Drivers: what decides over the branches of a request.
//!
//! ```text
//!   loop ── Report (begun, read, drew, scored, ended, failed) ──► Driver
//!   loop ◄── Orders (fork, rewind, read, draw, score, drop, emit, finish) ──┘
//! ```
//!
//! A *branch* is one text that a request has under way: a sequence with its keys and values, its state of the grammar and
//! its walk. A request begins with one branch, number 0, that holds the prompt. Its driver forks others from it, and says
//! after every report what becomes of each; a branch that has no order waits, and costs no pass. What the client hears
//! are *answers*: the driver says which branch's tokens are told as which answer, and when.
//!
//! The loop knows nothing of drivers but this: the scheduler sees branches that have tokens to feed, those of all requests
//! together. So whatever draws several texts at once (`n` samples, the best of `n`, particles, chains, beams) is a driver,
//! and batching, drafts, masks and preemption are the same for all of them.
//!
//! Under the global law a failed attempt goes back to its prompt by itself: that is part of the law, as the walk over the
//! trie says, and needs nobody's decision. A driver hears of the text that was accepted.

mod beams;
mod best;
mod chains;
mod population;
mod samples;

pub(crate) use beams::{Beams, Search};
pub(crate) use best::BestOf;
pub(crate) use chains::Chains;
pub(crate) use population::{Plan, Population};
pub(crate) use samples::Samples;

use crate::error::EngineError;
use crate::request::{Diagnostics, Finish};
use lexiform::law::{Drawn, LawTag};
use std::collections::VecDeque;
use std::sync::Arc;

/// The number of a branch within its request. It also numbers the random numbers of the branch.
pub(crate) type Branch = u32;

/// What happened to a branch.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum News {
    /// The request begins; nothing of its prompt has been read.
    Begun,
    /// The branch is in the cache up to its last token, as was ordered.
    Read,
    /// It drew tokens.
    Drew,
    /// It has the tokens that it was given, as far as the grammar allows them, and counts them as if it had drawn them.
    Scored,
    /// The likeliest continuations of it are known.
    Ranked,
    /// Its text is complete, or as long as it may be.
    Ended(Finish),
    /// It cannot go on.
    Failed(EngineError),
}

/// News of a branch, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Report {
    pub(crate) branch: Branch,
    pub(crate) news: News,
    /// Tokens of the answer so far.
    pub(crate) tokens: usize,
    /// `ln P` of them under the warped model.
    pub(crate) log_probability: f64,
    /// `Σ ln m` of them: the log importance weight of the text so far.
    pub(crate) log_weight: f64,
    /// Whether they are of the law already. Those of an attempt that may still fail are not, and must not be emitted.
    pub(crate) is_certain: bool,
    /// The tokens of a branch that has ended; of others none are told.
    pub(crate) text: Arc<Vec<u32>>,
    /// `ln p` and `ln m` of each of these.
    pub(crate) rows: Vec<(f64, f64)>,
    /// The likeliest continuations, if they were asked for, the likeliest first.
    pub(crate) ranked: Vec<Ranked>,
}

/// A token that could come next.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ranked {
    /// What would be said of it if it were drawn.
    pub(crate) drawn: Drawn,
    /// Whether it ends the text.
    pub(crate) ends: bool,
}

impl Report {
    /// Whether the branch has ended with a whole text.
    pub(crate) fn is_whole(&self) -> bool {
        self.news == News::Ended(Finish::Stop)
    }

    /// Why the branch failed, where that says nothing of its text: a law that took such a text for an impossible one would be
    /// another law.
    pub(crate) fn breakdown(&self) -> Option<&EngineError> {
        match &self.news {
            News::Failed(EngineError::DeadEnd { .. }) => None,
            News::Failed(error) => Some(error),
            _ => None,
        }
    }
}

/// What is told of an answer that is not simply one branch's.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Verdict {
    pub(crate) law: LawTag,
    /// Its weight with respect to the global law, if it has one.
    pub(crate) log_weight: Option<f64>,
    pub(crate) diagnostics: Option<Diagnostics>,
}

/// What a driver wants done. Orders are carried out one after the other.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Order {
    /// A new branch with the prompt and the first `at` tokens of another one, whose keys and values it shares.
    Fork { of: Branch, to: Branch, at: usize },
    /// The branch goes back to its first `to` tokens, and draws anew from there.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "no driver of this crate goes back yet")
    )]
    Rewind { branch: Branch, to: usize },
    /// The branch is computed up to its last token, which is what others can be forked from.
    Read(Branch),
    /// The branch draws what comes next: a token, or several where a draft holds.
    Draw(Branch),
    /// The likeliest tokens that may come next, at most so many, are told; none is drawn.
    Rank { branch: Branch, count: usize },
    /// The branch, which stands where it was ranked, goes on with one of these tokens.
    Take { branch: Branch, drawn: Drawn },
    /// The branch goes on with these tokens; what the law says of them is found out as if they had been drawn. Not in the middle
    /// of an attempt of the global law, which is a sample only if all of it was drawn.
    Score { branch: Branch, tokens: Vec<u32> },
    /// The branch is given up.
    Drop(Branch),
    /// An answer hears what it has not heard yet of this branch.
    Emit { branch: Branch, answer: usize },
    /// An answer hears the rest of this branch, and that it ended as the branch did, which is given up.
    Finish { branch: Branch, answer: usize },
    /// An answer hears all of this branch, which has ended, and that it ended. Others may hear the same afterwards.
    Tell { branch: Branch, answer: usize },
    /// An answer hears that there will be none.
    Fail { answer: usize, error: EngineError },
}

/// What a driver orders, the first first.
pub(crate) type Orders = VecDeque<Order>;

/// Decides over the branches of one request.
pub(crate) trait Driver: Send {
    /// Says what is to be done after this.
    fn next(&mut self, report: &Report, orders: &mut Orders);

    /// Nobody listens to this answer any more: its client has left. What is done for it alone can be given up.
    fn leave(&mut self, answer: usize, orders: &mut Orders);

    /// What is told of an answer, where it is not what its branch says of itself.
    fn verdict(&self, _answer: usize) -> Option<Verdict> {
        None
    }

    /// The branch that an answer is of so far, if it is of one.
    fn branch_of(&self, answer: usize) -> Option<Branch>;
}

#[cfg(test)]
mod tests;
