//! Markov chains: for a number of steps, a text is cut, its rest drawn anew, and the new text accepted or
//! rejected.
//!
//! ```text
//!   read the prompt (branch 0) ─► fork, draw to the end ─► the first text
//!     each step:  fork of branch 0 ─ draw from the cut to the end ─► accepted: the text from now on
//! ```
//!
//! Every answer has its own chain. [`lexiform_law::Chain`] computes the cut and the acceptance. Branches that
//! have ended cannot be forked, so the part of the text that a step keeps is read again, many tokens per
//! pass.
//!
//! Nothing of a text is reported before its chain has made all its steps.

use super::{Branch, BranchEvent, Driver, Order, Orders, Report, Verdict};
use crate::error::EngineError;
use crate::request::Diagnostics;
use lexiform_law::{Chain, Chooser, Cuts, LawTag, LogWeight};
use std::sync::Arc;

/// The chain of one answer.
struct Link<C> {
    chain: Chain<LogWeight>,
    chooser: C,
    /// The branch of the chain's current text.
    at: Option<Branch>,
    /// The tokens of the current text.
    text: Arc<Vec<u32>>,
    /// The branch that is being drawn.
    drawing: Branch,
    /// The number of texts that were drawn in vain before the first.
    lost: u32,
    is_open: bool,
}

/// The chains of a request.
pub(crate) struct Chains<C> {
    links: Vec<Link<C>>,
    steps: u32,
    has_begun: bool,
}

impl<C: Chooser<LogWeight> + Send> Chains<C> {
    /// Returns chains of `steps` steps after the first text: one for each answer, with a chooser from
    /// `choosers`.
    pub(crate) fn new(steps: u32, cuts: Cuts, choosers: impl IntoIterator<Item = C>) -> Self {
        let link = |(number, chooser): (usize, C)| Link {
            chain: Chain::new(cuts),
            chooser,
            at: None,
            text: Arc::default(),
            drawing: number as Branch + 1,
            lost: 0,
            is_open: true,
        };
        let links: Vec<_> = choosers.into_iter().enumerate().map(link).collect();
        Chains {
            links,
            steps,
            has_begun: false,
        }
    }

    fn begin(&mut self, orders: &mut Orders) {
        self.has_begun = true;
        for link in self.links.iter().filter(|link| link.is_open) {
            let to = link.drawing;
            orders.extend([Order::Fork { of: 0, to, at: 0 }, Order::Draw(to)]);
        }
    }

    /// Handles a text that was proposed to the chain of an answer, or a proposal that cannot become whole.
    fn step(&mut self, answer: usize, report: &Report, orders: &mut Orders) {
        let link = &mut self.links[answer];
        let is_accepted = report.is_whole() && {
            let rows = report.rows.iter().map(|&(log_probability, log_mass)| {
                (LogWeight::from_ln(log_probability), LogWeight::from_ln(log_mass))
            });
            let tokens = report.text.to_vec();
            link.chain.propose(tokens, rows.collect(), &mut link.chooser)
        };
        if !report.is_whole() {
            link.chain.reject();
        }
        if is_accepted {
            orders.extend(link.at.replace(report.branch).map(Order::Drop));
            link.text = report.text.clone();
        } else {
            orders.push_back(Order::Drop(report.branch));
        }
        if let Some(error) = report.breakdown() {
            return self.end(answer, Err(error.clone()), orders);
        }
        let texts = link.chain.steps() + link.lost;
        match (&report.event, link.at) {
            // Filters may leave nothing after a text that was begun, and something of others.
            (_, None) if texts < self.steps => {
                link.lost += 1;
                self.propose(answer, orders);
            }
            (BranchEvent::Failed(error), None) => self.end(answer, Err(error.clone()), orders),
            (_, None) => self.end(answer, Err(EngineError::Unanswered), orders),
            (_, Some(branch)) if texts >= self.steps => self.end(answer, Ok(branch), orders),
            _ => self.propose(answer, orders),
        }
    }

    /// Starts drawing the next proposal of a chain.
    fn propose(&mut self, answer: usize, orders: &mut Orders) {
        let chains = self.links.len() as Branch;
        let link = &mut self.links[answer];
        let kept = link.chain.cut(&mut link.chooser);
        // Branch numbers do not depend on which chain is faster: a branch draws by its number, and a seed
        // determines the texts of all chains.
        let branch = link.drawing + chains;
        link.drawing = branch;
        orders.push_back(Order::Fork {
            of: 0,
            to: branch,
            at: 0,
        });
        orders.push_back(match kept {
            0 => Order::Draw(branch),
            _ => Order::Score {
                branch,
                tokens: link.text[..kept].to_vec(),
            },
        });
    }

    fn end(&mut self, answer: usize, with: Result<Branch, EngineError>, orders: &mut Orders) {
        self.links[answer].is_open = false;
        match with {
            Ok(branch) => orders.push_back(Order::Finish { branch, answer }),
            Err(error) => {
                orders.extend(self.links[answer].at.take().map(Order::Drop));
                orders.push_back(Order::Fail { answer, error });
            }
        }
        self.drop_prompt(orders);
    }

    /// Drops the branch of the prompt once all chains have ended, as nothing is forked from it any more.
    fn drop_prompt(&self, orders: &mut Orders) {
        if self.links.iter().all(|link| !link.is_open) {
            orders.push_back(Order::Drop(0));
        }
    }
}

impl<C: Chooser<LogWeight> + Send> Driver for Chains<C> {
    fn next(&mut self, report: &Report, orders: &mut Orders) {
        let answer = self.links.iter().position(|link| link.drawing == report.branch);
        match (&report.event, answer) {
            (BranchEvent::Begun, _) => orders.push_back(Order::Read(report.branch)),
            (BranchEvent::Read, _) => self.begin(orders),
            (BranchEvent::Failed(error), _) if !self.has_begun => {
                for answer in 0..self.links.len() {
                    self.end(answer, Err(error.clone()), orders);
                }
            }
            (_, None) => (),
            (BranchEvent::Drew | BranchEvent::Scored | BranchEvent::Ranked | BranchEvent::Weighed, _) => {
                orders.push_back(Order::Draw(report.branch))
            }
            (BranchEvent::Ended(_) | BranchEvent::Failed(_), Some(answer)) => {
                self.step(answer, report, orders)
            }
        }
    }

    fn leave(&mut self, answer: usize, orders: &mut Orders) {
        if let Some(link) = self.links.get_mut(answer) {
            link.is_open = false;
            orders.extend(link.at.map(Order::Drop));
            orders.push_back(Order::Drop(link.drawing));
        }
        self.drop_prompt(orders);
    }

    /// The texts that are being drawn are the last to be proposed.
    fn hurry(&mut self) {
        self.steps = 0;
    }

    fn verdict(&self, answer: usize) -> Option<Verdict> {
        let chain = &self.links.get(answer)?.chain;
        Some(Verdict {
            law: LawTag::Mcmc,
            log_weight: None,
            diagnostics: Some(Diagnostics::Chain {
                steps: chain.steps() as usize,
                moves: chain.moves() as usize,
            }),
            particles: Vec::new(),
        })
    }

    fn branch_of(&self, _: usize) -> Option<Branch> {
        None
    }
}
