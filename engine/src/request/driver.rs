//! Drivers, which decide about the branches of a request.
//!
//! ```text
//!   loop ── Report (begun, read, drew, scored, ended, failed) ──► Driver
//!   loop ◄── Orders (fork, rewind, read, draw, score, drop, emit, finish) ──┘
//! ```
//!
//! A *branch* is one text of a request in progress: a sequence with its keys and values, its grammar state
//! and its walk. A request begins with one branch, number 0, that holds the prompt. Its driver forks others
//! from it, and decides after every report how each continues; a branch without an order waits, and costs no
//! pass. The client receives *answers*: the driver decides which branch's tokens are reported as which
//! answer, and when.
//!
//! The loop knows nothing else about drivers: the scheduler sees the branches of all requests that have
//! tokens to feed. So anything that draws several texts at once (`n` samples, the best of `n`, particles,
//! chains, searches) is a driver, and batching, drafts, masks and preemption are the same for all of them.
//!
//! Under the global law a failed attempt returns to its prompt by itself: this is part of the law, decided by
//! the walk over the trie, and needs no order. The driver receives only the text that was accepted.
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

/// The number of a branch within its request. It also selects the branch's random stream.
pub(crate) type Branch = u32;

/// An event of a branch.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum BranchEvent {
    /// The request begins; nothing of its prompt has been read.
    Begun,
    /// The branch is in the cache up to its last token, as ordered.
    Read,
    /// The branch drew tokens.
    Drew,
    /// The branch has the given tokens, as far as the grammar allows them, and counts them as if it had drawn
    /// them.
    Scored,
    /// The likeliest continuations of the branch are known.
    Ranked,
    /// Some of the options to be weighed have been weighed.
    Weighed,
    /// The text of the branch is complete, or has reached its maximum length.
    Ended(Finish),
    /// The branch cannot continue.
    Failed(EngineError),
}

/// A report about a branch: an event, and the state of its text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Report {
    pub(crate) branch: Branch,
    pub(crate) event: BranchEvent,
    /// The number of tokens of the answer so far.
    pub(crate) tokens: usize,
    /// `ln P` of these tokens under the warped model.
    pub(crate) log_probability: f64,
    /// `Σ ln m` of these tokens: the log importance weight of the text so far.
    pub(crate) log_weight: f64,
    /// `true` if these tokens already follow the law. Those of an attempt that may still fail do not, and
    /// must not be emitted.
    pub(crate) is_certain: bool,
    /// The tokens of a branch that has ended; empty for other branches.
    pub(crate) text: Arc<Vec<u32>>,
    /// `ln p` and `ln m` of each token of `text`.
    pub(crate) rows: Vec<(f64, f64)>,
    /// The requested continuations: the likeliest first, then the named ones.
    pub(crate) ranked: Vec<Ranked>,
    /// The weights found for options, if they were to be weighed.
    pub(crate) weighed: Vec<Weight>,
    /// The fewest tokens that complete the text, its end included, if requested and known.
    pub(crate) distance: Option<usize>,
    /// The token drawn last, for requests whose driver inspects it.
    pub(crate) latest: Option<Latest>,
}

/// The weight of a node, or of an end, in the row of the node before it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Weight {
    pub(crate) of: Of,
    /// `ln p` under the warped model.
    pub(crate) log_probability: f64,
    /// `ln` of the probability among the tokens that may be drawn.
    pub(crate) log_share: f64,
    pub(crate) is_allowed: bool,
}

/// The subject of a weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    /// A node's token, after the node before it.
    Node(usize),
    /// An end after this node.
    End(usize),
}

/// A token that was drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Latest {
    pub(crate) token: u32,
    /// The entropy of the distribution that the token was drawn from, in nats.
    pub(crate) entropy: f64,
}

/// A request for the tokens that may come next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Look {
    /// The number of likeliest tokens to return.
    pub(crate) count: usize,
    /// Tokens to return as well, if they are allowed.
    pub(crate) also: Arc<[u32]>,
    /// `true` to return the number of tokens that the text needs to be completed.
    pub(crate) distance: bool,
}

/// A token that could come next.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ranked {
    /// The report of the token as if it were drawn.
    pub(crate) drawn: Drawn,
    /// `true` if it ends the text.
    pub(crate) ends: bool,
    /// Present if the remaining token budget excluded something here that the grammar allows; `true` if the
    /// limit of the preamble did.
    pub(crate) narrowed: Option<bool>,
}

impl Report {
    /// Returns `true` if the branch has ended with a whole text.
    pub(crate) fn is_whole(&self) -> bool {
        self.event == BranchEvent::Ended(Finish::Stop)
    }

    /// Returns the error of a failed branch if it says nothing about the text: treating such a text as
    /// impossible would change the law.
    pub(crate) fn breakdown(&self) -> Option<&EngineError> {
        match &self.event {
            BranchEvent::Failed(
                EngineError::DeadEnd { .. }
                | EngineError::FilteredOut { .. }
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

/// The report of an answer that is not the text of a single branch.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Verdict {
    pub(crate) law: LawTag,
    /// The weight with respect to the global law, if there is one.
    pub(crate) log_weight: Option<f64>,
    pub(crate) diagnostics: Option<Diagnostics>,
    /// The texts that the answer was drawn from.
    pub(crate) particles: Vec<Particle>,
}

/// An order of a driver. Orders are carried out in sequence.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Order {
    /// Creates a branch with the prompt and the first `at` tokens of another one, whose keys and values it
    /// shares.
    Fork { of: Branch, to: Branch, at: usize },
    /// Rewinds the branch to its first `to` tokens, from which it draws anew.
    Rewind { branch: Branch, to: usize },
    /// Computes the branch up to its last token, so that others can be forked from it.
    Read(Branch),
    /// Draws the next token of the branch, or several if a draft is accepted.
    Draw(Branch),
    /// Reports tokens that may come next, without drawing any.
    Rank { branch: Branch, look: Look },
    /// Continues the branch with a token that was found by ranking a branch of the same text.
    Take { branch: Branch, ranked: Ranked },
    /// Continues the branch with these tokens; their probabilities under the law are computed as if they had
    /// been drawn. Not allowed in the middle of an attempt of the global law, which is a sample only if all
    /// of it was drawn.
    Score { branch: Branch, tokens: Vec<u32> },
    /// Feeds nodes of the request's options below the branch, which is at `root`, and weighs what may follow
    /// each node in the options, as far as a pass has room. Nothing is drawn. Parents come before their
    /// children.
    Weigh {
        branch: Branch,
        root: usize,
        nodes: Vec<usize>,
    },
    /// Lets a branch that has drawn nothing begin with what the attempts of another one have found.
    Learn { branch: Branch, from: Branch },
    /// Ends the text of the branch as it is.
    End(Branch),
    /// Drops the branch.
    Drop(Branch),
    /// Sends an answer the tokens of this branch that it has not received yet.
    Emit { branch: Branch, answer: usize },
    /// Sends an answer the rest of this branch, and the branch's ending; then drops the branch.
    Finish { branch: Branch, answer: usize },
    /// Sends an answer all of this branch, which has ended, and its ending. Other answers may receive the
    /// same afterwards.
    Tell { branch: Branch, answer: usize },
    /// Reports to an answer that it failed.
    Fail { answer: usize, error: EngineError },
}

/// The orders of a driver, in sequence.
pub(crate) type Orders = VecDeque<Order>;

/// Decides about the branches of one request.
pub(crate) trait Driver: Send {
    /// Pushes the orders that follow from this report.
    fn next(&mut self, report: &Report, orders: &mut Orders);

    /// Called when the client of this answer has left. Work that serves this answer alone can be dropped.
    fn leave(&mut self, answer: usize, orders: &mut Orders);

    /// Called, perhaps several times, when little time is left: answers should end with what there is.
    fn hurry(&mut self) {}

    /// The verdict of an answer, if it differs from what its branch reports itself.
    fn verdict(&self, _answer: usize) -> Option<Verdict> {
        None
    }

    /// The probabilities of the options, if those were requested, and the number of option tokens whose
    /// probability was computed.
    fn weighed(&self) -> Option<(Vec<Weighed>, usize)> {
        None
    }

    /// The branch whose text is the answer so far, if there is one.
    fn branch_of(&self, answer: usize) -> Option<Branch>;
}

#[cfg(test)]
mod tests;
