//! Cautious next token prediction: where the model is unsure, several continuations are tried, and the one
//! that the model finds likeliest is kept.
//!
//! ```text
//!   draw ─ draw ─┬─ trial 1: draw ─ draw ─ "."     all from the same place, each up to the next boundary
//!      unsure    ├─ trial 2: draw ─ ","   ◄─ kept: the least perplexity
//!                └─ trial 3: draw ─ draw ─ draw ─ ";"
//! ```
//!
//! *Cautious Next Token Prediction*, 2025, arXiv 2507.03038. The entropy `H` of a row, in nats, measures how
//! unsure the model is: up to `low` a token is drawn as usual, from `high` on there are `trials` trials, and
//! in between `1 + ⌈(trials − 1)·(H − low)/(high − low)⌉`. A trial ends after a token with a punctuation
//! mark, a closing bracket, a quotation mark or a line break, after `longest` tokens, or at the end of the
//! text. The trial with the greatest mean `ln p` of its tokens is kept.
//!
//! Unlike the paper, the entropy is that of the row after temperature, filters and *mask*: where the grammar
//! leaves one token there is nothing to be unsure about. The perplexity is the warped model's own, without
//! the mask.
//!
//! Every token of every trial takes a row. Kept tokens are final, so they can be reported at once.

use crate::error::EngineError;
use crate::request::Diagnostics;
use crate::request::driver::{Branch, BranchEvent, Driver, Latest, Order, Orders, Report, Verdict};
use lexiform::vocab::Vocabulary;
use lexiform_law::LawTag;
use std::collections::HashMap;
use std::sync::Arc;

/// Bytes after which a trial ends.
const BOUNDARY: &[u8] = b".,;:!?\"'()[]{}\n";

/// When trials are drawn, and how long they are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caution {
    /// The maximum number of trials.
    pub(crate) trials: usize,
    /// The entropies up to which there is one trial, and from which on there are all.
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// The maximum number of tokens of a trial.
    pub(crate) longest: usize,
}

/// An unfinished answer.
#[derive(Debug)]
struct OpenText {
    wanted: bool,
    /// The branch of the final tokens; `None` while there are trials.
    branch: Option<Branch>,
    /// The number of final tokens, and `ln P` of them.
    tokens: usize,
    log_probability: f64,
    /// The trials, in the order in which they began; each with its state once it has ended.
    trials: Vec<(Branch, Option<Ended>)>,
    score: f64,
    failure: Option<EngineError>,
}

/// A trial that has ended.
#[derive(Clone, Copy, Debug)]
struct Ended {
    tokens: usize,
    log_probability: f64,
    is_whole: bool,
}

/// The answers of one request.
pub(crate) struct Cntp {
    caution: Caution,
    vocabulary: Arc<Vocabulary>,
    texts: Vec<OpenText>,
    /// A map from branches to the answers that they belong to.
    of: HashMap<Branch, usize>,
    next_branch: Branch,
    rows: usize,
    has_begun: bool,
}

impl Cntp {
    /// Returns the driver of `answers` answers.
    pub(crate) fn new(caution: Caution, vocabulary: Arc<Vocabulary>, answers: usize) -> Self {
        let text = |number| OpenText {
            wanted: true,
            branch: Some(number as Branch),
            tokens: 0,
            log_probability: 0.0,
            trials: Vec::new(),
            score: 0.0,
            failure: None,
        };
        Cntp {
            caution,
            vocabulary,
            texts: (0..answers).map(text).collect(),
            of: (0..answers).map(|answer| (answer as Branch, answer)).collect(),
            next_branch: answers as Branch,
            rows: 0,
            has_begun: false,
        }
    }

    fn begin(&mut self, orders: &mut Orders) {
        self.has_begun = true;
        let fork = |to| Order::Fork { of: 0, to, at: 0 };
        orders.extend((1..self.texts.len() as Branch).map(fork));
        for (branch, text) in (0..).zip(&self.texts) {
            orders.push_back(match text.wanted {
                true => Order::Draw(branch),
                false => Order::Drop(branch),
            });
        }
    }

    /// Returns the number of trials after a row with this entropy.
    fn trials(&self, entropy: f64) -> usize {
        let Caution {
            trials, low, high, ..
        } = self.caution;
        if entropy <= low {
            return 1;
        }
        let share = ((entropy - low) / (high - low).max(f64::MIN_POSITIVE)).min(1.0);
        1 + (share * (trials.saturating_sub(1)) as f64).ceil() as usize
    }

    fn is_boundary(&self, token: u32) -> bool {
        let bytes = self.vocabulary.bytes(token);
        bytes.iter().any(|byte| BOUNDARY.contains(byte))
    }

    /// Handles a token that a branch drew.
    fn drew(&mut self, answer: usize, report: &Report, latest: Latest, orders: &mut Orders) {
        self.rows += 1;
        let branch = report.branch;
        if self.texts[answer].trials.is_empty() {
            let count = self.trials(latest.entropy);
            if count == 1 {
                self.certain(answer, report);
                orders.extend([Order::Emit { branch, answer }, Order::Draw(branch)]);
                return;
            }
            self.try_out(answer, branch, count, orders);
        }
        let begun = self.texts[answer].tokens;
        if self.is_boundary(latest.token) || report.tokens - begun >= self.caution.longest {
            return self.end_trial(answer, report, orders);
        }
        orders.push_back(Order::Draw(branch));
    }

    /// Handles the end of a branch's text, possibly by a token that it drew where it was unsure.
    fn ended(&mut self, answer: usize, report: &Report, latest: Option<Latest>, orders: &mut Orders) {
        let text = &self.texts[answer];
        let before = text.trials.is_empty().then_some(text.tokens);
        let has_drawn = before.is_none_or(|before| report.tokens > before);
        self.rows += usize::from(has_drawn);
        let latest = latest.filter(|_| has_drawn && before.is_some());
        let count = latest.map_or(1, |latest| self.trials(latest.entropy));
        if count > 1 {
            self.try_out(answer, report.branch, count, orders);
        }
        if self.texts[answer].trials.is_empty() {
            self.certain(answer, report);
            return self.finish(answer, report.branch, orders);
        }
        self.end_trial(answer, report, orders);
    }

    fn certain(&mut self, answer: usize, report: &Report) {
        let text = &mut self.texts[answer];
        (text.tokens, text.log_probability) = (report.tokens, report.log_probability);
    }

    /// Makes the branch, which has drawn a token, the first of `count` trials.
    fn try_out(&mut self, answer: usize, branch: Branch, count: usize, orders: &mut Orders) {
        let at = self.texts[answer].tokens;
        self.texts[answer].branch = None;
        self.texts[answer].trials.push((branch, None));
        for _ in 1..count {
            let to = self.next_branch;
            self.next_branch += 1;
            self.of.insert(to, answer);
            self.texts[answer].trials.push((to, None));
            orders.extend([Order::Fork { of: branch, to, at }, Order::Draw(to)]);
        }
    }

    fn end_trial(&mut self, answer: usize, report: &Report, orders: &mut Orders) {
        let ended = Ended {
            tokens: report.tokens,
            log_probability: report.log_probability,
            is_whole: matches!(report.event, BranchEvent::Ended(_)),
        };
        let trials = &mut self.texts[answer].trials;
        if let Some(trial) = trials.iter_mut().find(|trial| trial.0 == report.branch) {
            trial.1 = Some(ended);
        }
        self.choose(answer, orders);
    }

    /// Keeps the trial of the least perplexity once all have ended.
    fn choose(&mut self, answer: usize, orders: &mut Orders) {
        let text = &mut self.texts[answer];
        if text.trials.iter().any(|(_, ended)| ended.is_none()) {
            return;
        }
        let trials = std::mem::take(&mut text.trials);
        let mean = |ended: &Ended| {
            let tokens = (ended.tokens - text.tokens).max(1) as f64;
            (ended.log_probability - text.log_probability) / tokens
        };
        let ended = trials
            .iter()
            .filter_map(|(branch, ended)| Some((*branch, (*ended)?)));
        // The first of several equal trials wins.
        let best = ended.reduce(|best, other| match mean(&other.1) > mean(&best.1) {
            true => other,
            false => best,
        });
        let Some((branch, ended)) = best else {
            let error = text.failure.clone().unwrap_or(EngineError::Unanswered);
            return orders.push_back(Order::Fail { answer, error });
        };
        let others = trials.iter().filter(|trial| trial.0 != branch);
        for &(other, _) in others {
            self.of.remove(&other);
            orders.push_back(Order::Drop(other));
        }
        (text.tokens, text.log_probability) = (ended.tokens, ended.log_probability);
        text.branch = Some(branch);
        match ended.is_whole {
            true => self.finish(answer, branch, orders),
            false => orders.extend([Order::Emit { branch, answer }, Order::Draw(branch)]),
        }
    }

    fn finish(&mut self, answer: usize, branch: Branch, orders: &mut Orders) {
        let text = &mut self.texts[answer];
        text.score = text.log_probability / text.tokens.max(1) as f64;
        orders.push_back(Order::Finish { branch, answer });
    }

    /// Handles a branch that cannot continue.
    fn failed(&mut self, answer: usize, report: &Report, error: &EngineError, orders: &mut Orders) {
        orders.push_back(Order::Drop(report.branch));
        if !self.has_begun {
            let fail = |answer| Order::Fail {
                answer,
                error: error.clone(),
            };
            return orders.extend((0..self.texts.len()).map(fail));
        }
        let text = &mut self.texts[answer];
        if text.trials.is_empty() || report.breakdown().is_some() {
            self.drop_all(answer, orders);
            return orders.push_back(Order::Fail {
                answer,
                error: error.clone(),
            });
        }
        text.failure.get_or_insert(error.clone());
        text.trials.retain(|trial| trial.0 != report.branch);
        if text.trials.is_empty() {
            return orders.push_back(Order::Fail {
                answer,
                error: error.clone(),
            });
        }
        self.choose(answer, orders);
    }

    fn drop_all(&mut self, answer: usize, orders: &mut Orders) {
        let text = &mut self.texts[answer];
        let trials = text.trials.drain(..).map(|trial| trial.0);
        for branch in trials.chain(text.branch.take()) {
            self.of.remove(&branch);
            orders.push_back(Order::Drop(branch));
        }
    }
}

impl Driver for Cntp {
    fn next(&mut self, report: &Report, orders: &mut Orders) {
        let branch = report.branch;
        let Some(&answer) = self.of.get(&branch) else {
            return;
        };
        match (&report.event, report.latest) {
            (BranchEvent::Begun, _) => orders.push_back(Order::Read(branch)),
            (BranchEvent::Read, _) => self.begin(orders),
            (BranchEvent::Drew, Some(latest)) => self.drew(answer, report, latest, orders),
            (BranchEvent::Drew | BranchEvent::Scored | BranchEvent::Ranked | BranchEvent::Weighed, _) => {
                orders.push_back(Order::Draw(branch))
            }
            (BranchEvent::Ended(_), latest) => self.ended(answer, report, latest, orders),
            (BranchEvent::Failed(error), _) => self.failed(answer, report, error, orders),
        }
    }

    fn leave(&mut self, answer: usize, orders: &mut Orders) {
        let Some(text) = self.texts.get_mut(answer) else {
            return;
        };
        text.wanted = false;
        if self.has_begun {
            return self.drop_all(answer, orders);
        }
        if self.texts.iter().all(|text| !text.wanted) {
            orders.push_back(Order::Drop(0));
        }
    }

    fn verdict(&self, answer: usize) -> Option<Verdict> {
        Some(Verdict {
            law: LawTag::Cntp,
            log_weight: None,
            diagnostics: Some(Diagnostics::Search {
                width: None,
                score: self.texts.get(answer)?.score,
                rows: self.rows,
                found: None,
                met: None,
            }),
            particles: Vec::new(),
        })
    }

    fn branch_of(&self, answer: usize) -> Option<Branch> {
        self.texts
            .get(answer)?
            .branch
            .filter(|_| self.has_begun || answer == 0)
    }
}
