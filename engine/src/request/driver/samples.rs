//! Independent samples of one prompt, which is read once.
//!
//! ```text
//!   read the prompt ─┬─ draw ─ draw ─ draw ─ end      answer 0
//!                    ├─ draw ─ draw ─ end             answer 1
//!                    └─ draw ─ draw ─ draw ─ draw …   answer 2
//! ```
//!
//! A single sample is the plain case: nothing is read ahead, and nothing is forked.
//!
//! Samples that learn *in turn* are not all drawn at once: each but the first begins when its
//! [`teacher`](crate::request::law::teacher) has ended, with what that one has learned. Their texts then do
//! not depend on which sample is ahead of which.

use super::{Branch, BranchEvent, Driver, Order, Orders, Report};
use crate::request::law::teacher;

/// The driver of independent samples; each branch becomes the answer of the same number.
pub(crate) struct Samples {
    /// `true` for each answer whose client is still there.
    wanted: Vec<bool>,
    forked: bool,
    /// `true` for each sample that is drawn, or was.
    begun: Vec<bool>,
    in_turn: bool,
}

impl Samples {
    pub(crate) fn new(count: usize, in_turn: bool) -> Self {
        Samples {
            wanted: vec![true; count],
            forked: count == 1,
            begun: vec![false; count],
            in_turn,
        }
    }

    /// Returns the number of samples.
    pub(super) fn count(&self) -> usize {
        self.wanted.len()
    }

    /// Returns `true` if each sample has its own branch.
    pub(super) fn is_forked(&self) -> bool {
        self.forked
    }

    /// Forks the branches of the samples, all beginning after the prompt.
    fn fork(&mut self, orders: &mut Orders) {
        self.forked = true;
        let fork = |to| Order::Fork { of: 0, to, at: 0 };
        orders.extend((1..self.wanted.len() as Branch).map(fork));
        for branch in 0..self.wanted.len() as Branch {
            if !self.wanted[branch as usize] {
                self.stop(branch, orders);
                orders.push_back(Order::Drop(branch));
            } else if !self.in_turn || teacher(branch).is_none() {
                self.begin(branch, orders);
            }
        }
    }

    fn begin(&mut self, branch: Branch, orders: &mut Orders) {
        self.begun[branch as usize] = true;
        orders.push_back(Order::Draw(branch));
    }

    /// Begins the samples that learn from this one, which learns no more. Call it before the branch is
    /// dropped.
    pub(super) fn stop(&mut self, from: Branch, orders: &mut Orders) {
        if !self.in_turn || !self.forked {
            return;
        }
        for branch in 1..self.wanted.len() as Branch {
            let waits = self.wanted[branch as usize] && !self.begun[branch as usize];
            if waits && teacher(branch) == Some(from) {
                orders.push_back(Order::Learn { branch, from });
                self.begin(branch, orders);
            }
        }
    }
}

impl Driver for Samples {
    fn next(&mut self, report: &Report, orders: &mut Orders) {
        let branch = report.branch;
        let answer = branch as usize;
        match &report.event {
            BranchEvent::Begun if self.forked => orders.push_back(Order::Draw(branch)),
            BranchEvent::Begun => orders.push_back(Order::Read(branch)),
            BranchEvent::Read => self.fork(orders),
            BranchEvent::Drew | BranchEvent::Scored | BranchEvent::Ranked | BranchEvent::Weighed => {
                if report.is_certain {
                    orders.push_back(Order::Emit { branch, answer });
                }
                orders.push_back(Order::Draw(branch));
            }
            BranchEvent::Ended(_) => {
                self.stop(branch, orders);
                orders.push_back(Order::Finish { branch, answer });
            }
            BranchEvent::Failed(error) => {
                self.stop(branch, orders);
                let failed = match self.forked {
                    true => answer..answer + 1,
                    false => 0..self.wanted.len(),
                };
                let fail = |answer| Order::Fail {
                    answer,
                    error: error.clone(),
                };
                orders.extend(failed.map(fail));
                orders.push_back(Order::Drop(branch));
            }
        }
    }

    fn leave(&mut self, answer: usize, orders: &mut Orders) {
        if let Some(wanted) = self.wanted.get_mut(answer) {
            *wanted = false;
        }
        let nobody = self.wanted.iter().all(|wanted| !wanted);
        if self.forked || nobody {
            self.stop(answer as Branch, orders);
            orders.push_back(Order::Drop(if self.forked { answer as Branch } else { 0 }));
        }
    }

    fn branch_of(&self, answer: usize) -> Option<Branch> {
        (self.forked || answer == 0).then_some(answer as Branch)
    }
}
