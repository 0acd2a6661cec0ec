//! The best of several samples: those with the highest mean log-probability per token under the model itself.
//!
//! A sample chosen this way has no simple law, whatever law each candidate has: the likeliest texts are
//! favoured. Nothing is reported before all candidates have ended.

use super::{Branch, BranchEvent, Driver, Order, Orders, Report, Samples, Verdict};
use crate::error::EngineError;
use lexiform_law::LawTag;

/// The driver that answers with the best of more candidates than there are answers.
pub(crate) struct BestOf {
    candidates: Samples,
    /// `true` for each answer whose client is still there.
    wanted: Vec<bool>,
    ended: Vec<(Branch, f64)>,
    failed: Vec<EngineError>,
}

impl BestOf {
    /// Returns the driver for the best `answers` of `candidates`; there are at least as many candidates as
    /// answers.
    pub(crate) fn new(answers: usize, candidates: Samples) -> Self {
        BestOf {
            candidates,
            wanted: vec![true; answers],
            ended: Vec::new(),
            failed: Vec::new(),
        }
    }

    /// Orders the best candidates once all have ended. If too few ended with a text, the remaining answers
    /// fail with the error of the first failed candidate.
    fn choose(&mut self, orders: &mut Orders) {
        if self.ended.len() + self.failed.len() < self.candidates.count() {
            return;
        }
        let better =
            |one: &(Branch, f64), other: &(Branch, f64)| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0));
        self.ended.sort_by(better);
        let mut best = self.ended.drain(..);
        for (answer, wanted) in self.wanted.iter().enumerate() {
            match (best.next(), self.failed.first()) {
                (Some((branch, _)), _) if *wanted => orders.push_back(Order::Finish { branch, answer }),
                (Some((branch, _)), _) => orders.push_back(Order::Drop(branch)),
                (None, Some(error)) if *wanted => orders.push_back(Order::Fail {
                    answer,
                    error: error.clone(),
                }),
                (None, _) => (),
            }
        }
        orders.extend(best.map(|(branch, _)| Order::Drop(branch)));
    }
}

impl Driver for BestOf {
    fn next(&mut self, report: &Report, orders: &mut Orders) {
        let branch = report.branch;
        match &report.event {
            BranchEvent::Begun | BranchEvent::Read => self.candidates.next(report, orders),
            BranchEvent::Drew | BranchEvent::Scored | BranchEvent::Ranked | BranchEvent::Weighed => {
                orders.push_back(Order::Draw(branch))
            }
            BranchEvent::Ended(_) => {
                self.candidates.stop(branch, orders);
                let mean = report.log_probability / report.tokens.max(1) as f64;
                self.ended.push((branch, mean));
                self.choose(orders);
            }
            BranchEvent::Failed(error) => {
                let lost = match self.candidates.is_forked() {
                    true => 1,
                    false => self.candidates.count(),
                };
                self.candidates.stop(branch, orders);
                self.failed.extend(std::iter::repeat_n(error.clone(), lost));
                orders.push_back(Order::Drop(branch));
                self.choose(orders);
            }
        }
    }

    fn leave(&mut self, answer: usize, orders: &mut Orders) {
        if let Some(wanted) = self.wanted.get_mut(answer) {
            *wanted = false;
        }
        if self.wanted.iter().all(|wanted| !wanted) {
            orders.extend((0..self.candidates.count() as Branch).map(Order::Drop));
        }
    }

    fn verdict(&self, _: usize) -> Option<Verdict> {
        Some(Verdict {
            law: LawTag::BestOf,
            log_weight: None,
            diagnostics: None,
            particles: Vec::new(),
        })
    }

    fn branch_of(&self, _: usize) -> Option<Branch> {
        None
    }
}
