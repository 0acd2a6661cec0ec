//! Independent samples of one prompt, which is read once.
//!
//! ```text
//!   read the prompt ─┬─ draw ─ draw ─ draw ─ end      answer 0
//!                    ├─ draw ─ draw ─ end             answer 1
//!                    └─ draw ─ draw ─ draw ─ draw …   answer 2
//! ```
//!
//! A single sample is the plain case: nothing is read ahead, and nothing is forked.

use super::{Branch, BranchEvent, Driver, Order, Orders, Report};

/// The driver of independent samples; each branch becomes the answer of the same number.
pub(crate) struct Samples {
    /// `true` for each answer whose client is still there.
    wanted: Vec<bool>,
    forked: bool,
}

impl Samples {
    pub(crate) fn new(count: usize) -> Self {
        Samples {
            wanted: vec![true; count],
            forked: count == 1,
        }
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
        for (branch, wanted) in (0..).zip(&self.wanted) {
            orders.push_back(match wanted {
                true => Order::Draw(branch),
                false => Order::Drop(branch),
            });
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
            BranchEvent::Ended(_) => orders.push_back(Order::Finish { branch, answer }),
            BranchEvent::Failed(error) => {
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
            orders.push_back(Order::Drop(if self.forked { answer as Branch } else { 0 }));
        }
    }

    fn branch_of(&self, answer: usize) -> Option<Branch> {
        (self.forked || answer == 0).then_some(answer as Branch)
    }
}
