//! Drivers: what decides over the branches of a request.
//!
//! ```text
//!   loop ── Report (begun, read, drew, scored, ended, failed) ──► Driver
//!   loop ◄── Orders (fork, rewind, read, draw, score, drop, emit, finish) ──┘
//! ```
//!
//! A *branch* is one text that a request has under way: a sequence with its keys and values, its state of the
//! grammar and its walk. A request begins with one branch, number 0, that holds the prompt. Its driver forks
//! others from it, and says after every report what becomes of each; a branch that has no order waits, and
//! costs no pass. What the client hears are *answers*: the driver says which branch's tokens are told as
//! which answer, and when.
//!
//! The loop knows nothing of drivers but this: the scheduler sees branches that have tokens to feed, those of
//! all requests together. So whatever draws several texts at once (`n` samples, the best of `n`, particles,
//! chains, searches) is a driver, and batching, drafts, masks and preemption are the same for all of them.
//!
//! Under the global law a failed attempt goes back to its prompt by itself: that is part of the law, as the
//! walk over the trie says, and needs nobody's decision. A driver hears of the text that was accepted.
//!
//! `engine/drive.rs` carries out the orders of a driver, and `sequence/job.rs` holds the sinks of its
//! answers. Branches share the blocks of their cache until one of them writes.
//!
//! Tests: `request/driver/tests.rs` computes the law of whole drivers over a table model,
//! `engine/drive/tests.rs` runs drivers over a model that reads its prefix back from its blocks, and
//! `engine/tests/engine/branches.rs` and `populations.rs` run them in the engine.

mod best;
mod chains;
mod likeliest;
mod population;
mod ranking;
mod samples;

pub(crate) use best::BestOf;
pub(crate) use chains::Chains;
pub(crate) use population::{Plan, Population};
pub(crate) use ranking::{Ranking, log_sum};
pub(crate) use samples::Samples;

use crate::error::{EngineError, MonitorProblem};
use crate::request::options::Weighed;
use crate::request::{Diagnostics, Finish, Particle};
use lexiform_law::{Drawn, LawTag};
use std::collections::VecDeque;
use std::sync::Arc;

/// The number of a branch within its request. It also numbers the random numbers of the branch.
pub(crate) type Branch = u32;

/// What happened to a branch.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum BranchEvent {
    /// The request begins; nothing of its prompt has been read.
    Begun,
    /// The branch is in the cache up to its last token, as was ordered.
    Read,
    /// It drew tokens.
    Drew,
    /// It has the tokens that it was given, as far as the grammar allows them, and counts them as if it had
    /// drawn them.
    Scored,
    /// The likeliest continuations of it are known.
    Ranked,
    /// Some of the options that were to be weighed are.
    Weighed,
    /// Its text is complete, or as long as it may be.
    Ended(Finish),
    /// It cannot go on.
    Failed(EngineError),
}

/// News of a branch, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Report {
    pub(crate) branch: Branch,
    pub(crate) event: BranchEvent,
    /// Tokens of the answer so far.
    pub(crate) tokens: usize,
    /// `ln P` of them under the warped model.
    pub(crate) log_probability: f64,
    /// `Σ ln m` of them: the log importance weight of the text so far.
    pub(crate) log_weight: f64,
    /// Whether they are of the law already. Those of an attempt that may still fail are not, and must not be
    /// emitted.
    pub(crate) is_certain: bool,
    /// The tokens of a branch that has ended; of others none are told.
    pub(crate) text: Arc<Vec<u32>>,
    /// `ln p` and `ln m` of each of these.
    pub(crate) rows: Vec<(f64, f64)>,
    /// The continuations that were asked for: the likeliest first, then those that were named.
    pub(crate) ranked: Vec<Ranked>,
    /// What was found about options, if they were to be weighed.
    pub(crate) weighed: Vec<Weight>,
    /// The fewest tokens that complete the text, its end included, where that was asked for and is known.
    pub(crate) distance: Option<usize>,
    /// The token drawn last, for requests whose driver looks at it.
    pub(crate) latest: Option<Latest>,
}

/// What is known of the row at a node, about one that may follow it or about the end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Weight {
    pub(crate) of: Of,
    /// `ln p` under the warped model.
    pub(crate) log_probability: f64,
    /// `ln` of the probability among what may be drawn.
    pub(crate) log_share: f64,
    pub(crate) is_allowed: bool,
}

/// Whose weight it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    /// That of a node's token after the node before it.
    Node(usize),
    /// That of an end after this node.
    End(usize),
}

/// A token that was drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Latest {
    pub(crate) token: u32,
    /// The entropy of what it was drawn from, in nats.
    pub(crate) entropy: f64,
}

/// What is wanted of the tokens that may come next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Look {
    /// So many of the likeliest.
    pub(crate) count: usize,
    /// These, too, if they are allowed.
    pub(crate) also: Arc<[u32]>,
    /// How many tokens the text takes to be completed.
    pub(crate) distance: bool,
}

/// A token that could come next.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ranked {
    /// What would be said of it if it were drawn.
    pub(crate) drawn: Drawn,
    /// Whether it ends the text.
    pub(crate) ends: bool,
    /// Whether the tokens left took something away here that the grammar allows.
    pub(crate) is_steered: bool,
}

impl Report {
    /// Whether the branch has ended with a whole text.
    pub(crate) fn is_whole(&self) -> bool {
        self.event == BranchEvent::Ended(Finish::Stop)
    }

    /// Why the branch failed, where that says nothing of its text: a law that took such a text for an
    /// impossible one would be another law.
    pub(crate) fn breakdown(&self) -> Option<&EngineError> {
        match &self.event {
            BranchEvent::Failed(
                EngineError::DeadEnd { .. }
                | EngineError::Monitor {
                    problem: MonitorProblem::Refused { .. },
                    ..
                },
            ) => None,
            BranchEvent::Failed(error) => Some(error),
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
    /// The texts that it was drawn from.
    pub(crate) particles: Vec<Particle>,
}

/// What a driver wants done. Orders are carried out one after the other.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Order {
    /// A new branch with the prompt and the first `at` tokens of another one, whose keys and values it
    /// shares.
    Fork { of: Branch, to: Branch, at: usize },
    /// The branch goes back to its first `to` tokens, and draws anew from there.
    Rewind { branch: Branch, to: usize },
    /// The branch is computed up to its last token, which is what others can be forked from.
    Read(Branch),
    /// The branch draws what comes next: a token, or several where a draft holds.
    Draw(Branch),
    /// Tokens that may come next are told; none is drawn.
    Rank { branch: Branch, look: Look },
    /// The branch goes on with a token that was found by ranking a branch of the same text.
    Take { branch: Branch, ranked: Ranked },
    /// The branch goes on with these tokens; what the law says of them is found out as if they had been
    /// drawn. Not in the middle of an attempt of the global law, which is a sample only if all of it was
    /// drawn.
    Score { branch: Branch, tokens: Vec<u32> },
    /// Nodes of the request's options are fed below the branch, which stands at one of them; what may follow
    /// each in the options is weighed, as far as there is room in a pass, and none is drawn. Parents stand
    /// before their children.
    Weigh {
        branch: Branch,
        root: usize,
        nodes: Vec<usize>,
    },
    /// The text of the branch is complete as it is.
    End(Branch),
    /// The branch is given up.
    Drop(Branch),
    /// An answer hears what it has not heard yet of this branch.
    Emit { branch: Branch, answer: usize },
    /// An answer hears the rest of this branch, and that it ended as the branch did, which is given up.
    Finish { branch: Branch, answer: usize },
    /// An answer hears all of this branch, which has ended, and that it ended. Others may hear the same
    /// afterwards.
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

    /// Nobody listens to this answer any more: its client has left. What is done for it alone can be given
    /// up.
    fn leave(&mut self, answer: usize, orders: &mut Orders);

    /// What is told of an answer, where it is not what its branch says of itself.
    fn verdict(&self, _answer: usize) -> Option<Verdict> {
        None
    }

    /// How likely the options are, if that is what was asked, and of how many of their tokens the probability
    /// was found out.
    fn weighed(&self) -> Option<(Vec<Weighed>, usize)> {
        None
    }

    /// The branch that an answer is of so far, if it is of one.
    fn branch_of(&self, answer: usize) -> Option<Branch>;
}

#[cfg(test)]
mod tests;
