//! Beam search: the likeliest texts, of which only so many prefixes are followed at a time.
//!
//! ```text
//!   read the prompt ─ rank ─┬─ take ─ rank ─┐             all candidates of all beams, the likeliest first:
//!                           ├─ take ─ rank ─┼─ select ─►  an end finishes a text, another token makes a beam,
//!                           └─ take ─ rank ─┘             until there are `width` of these
//! ```
//!
//! A prefix is judged by `ln P` under the warped model, which the mask only cuts: the constraint takes no part in the
//! score. A finished text of `t` tokens has the score `ln P / t^α`, where `α` is the length penalty: 0 finds the likeliest
//! text, 1 the one likeliest a token (Wu et al. 2016, arXiv 1609.08144). An end counts only among the `width` likeliest
//! candidates.
//!
//! The search is over once no beam can still become one of the best: `ln P` only falls, so a beam's score is at most
//! `ln P / T^α` with `T` the most tokens of an answer. *Patience* ends it earlier, once that many times `width` texts are
//! finished (Kasai et al. 2024, arXiv 2204.05424).

use super::{Branch, Driver, News, Order, Orders, Ranked, Report, Verdict};
use crate::error::EngineError;
use crate::request::Diagnostics;
use lexiform::law::LawTag;

/// How beams are searched.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Search {
    /// Prefixes that are followed at a time.
    pub(crate) width: usize,
    /// The exponent of the number of tokens in the score.
    pub(crate) length_penalty: f64,
    /// After how many finished texts, as a multiple of the width, the search ends whatever is left.
    pub(crate) patience: Option<f64>,
    /// The most tokens of an answer.
    pub(crate) longest: usize,
}

/// A prefix that is followed.
#[derive(Debug)]
struct Beam {
    branch: Branch,
    tokens: usize,
    log_probability: f64,
    /// Its likeliest continuations, once they are known.
    ranked: Option<Vec<Ranked>>,
}

/// The beams of one request.
pub(crate) struct Beams {
    search: Search,
    beams: Vec<Beam>,
    /// Scores and branches, the best first.
    finished: Vec<(f64, Branch)>,
    /// How many texts were finished, also those that are not among the best any more.
    count: usize,
    next_branch: Branch,
    /// Which answers somebody waits for.
    wanted: Vec<bool>,
    failure: Option<EngineError>,
}

impl Beams {
    /// A search for the best `answers` texts, of which there are no more than beams.
    pub(crate) fn new(search: Search, answers: usize) -> Self {
        Beams {
            search,
            beams: Vec::new(),
            finished: Vec::new(),
            count: 0,
            next_branch: 1,
            wanted: vec![true; answers],
            failure: None,
        }
    }

    fn score(&self, log_probability: f64, tokens: usize) -> f64 {
        log_probability / (tokens.max(1) as f64).powf(self.search.length_penalty)
    }

    /// Keeps a finished text if it is one of the best.
    fn finish(&mut self, score: f64, branch: Branch, orders: &mut Orders) {
        self.count += 1;
        let place = self.finished.partition_point(|other| other.0 >= score);
        self.finished.insert(place, (score, branch));
        if self.finished.len() > self.search.width {
            orders.extend(self.finished.pop().map(|(_, branch)| Order::Drop(branch)));
        }
    }

    /// Whether no beam can still become one of the answers, or enough texts are finished.
    fn is_over(&self) -> bool {
        let is_patient = |patience: f64| (self.count as f64) < patience * self.search.width as f64;
        if self.beams.is_empty() || !self.search.patience.is_none_or(is_patient) {
            return true;
        }
        let Some(&(worst, _)) = self.finished.get(self.wanted.len() - 1) else {
            return false;
        };
        let best = self.beams.iter().map(|beam| beam.log_probability);
        let best = best.fold(f64::NEG_INFINITY, f64::max);
        self.score(best, self.search.longest) <= worst
    }

    /// Goes on once the continuations of all beams are known.
    fn go_on(&mut self, orders: &mut Orders) {
        if self.beams.iter().any(|beam| beam.ranked.is_none()) {
            return;
        }
        if !self.beams.is_empty() {
            self.select(orders);
        }
        match self.is_over() {
            true => self.choose(orders),
            false => orders.extend(self.beams.iter().map(|beam| Order::Rank {
                branch: beam.branch,
                count: 2 * self.search.width,
            })),
        }
    }

    /// Replaces the beams by their likeliest continuations.
    fn select(&mut self, orders: &mut Orders) {
        let parents = std::mem::take(&mut self.beams);
        let mut candidates: Vec<(f64, usize, Ranked)> = Vec::new();
        for (parent, beam) in parents.iter().enumerate() {
            let total = |ranked: &Ranked| beam.log_probability + ranked.drawn.log_probability;
            let ranked = beam.ranked.iter().flatten();
            candidates.extend(ranked.map(|ranked| (total(ranked), parent, ranked.clone())));
        }
        candidates.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
        let mut children: Vec<Vec<(f64, Ranked)>> = parents.iter().map(|_| Vec::new()).collect();
        let mut going = 0;
        for (place, (total, parent, ranked)) in candidates.into_iter().enumerate() {
            if going == self.search.width {
                break;
            }
            if ranked.ends && place >= self.search.width {
                continue;
            }
            going += usize::from(!ranked.ends);
            children[parent].push((total, ranked));
        }
        let childless = parents
            .iter()
            .zip(&children)
            .filter(|(_, children)| children.is_empty());
        orders.extend(childless.map(|(parent, _)| Order::Drop(parent.branch)));
        for (parent, children) in parents.iter().zip(children) {
            self.branch_out(parent, children, orders);
        }
    }

    /// The first continuation goes on in the branch of its parent, after the others have left it.
    fn branch_out(&mut self, parent: &Beam, children: Vec<(f64, Ranked)>, orders: &mut Orders) {
        for (number, (log_probability, ranked)) in children.into_iter().enumerate().rev() {
            let mut branch = parent.branch;
            if number > 0 {
                branch = self.next_branch;
                self.next_branch += 1;
                orders.push_back(Order::Fork {
                    of: parent.branch,
                    to: branch,
                    at: parent.tokens,
                });
            }
            let (drawn, ends) = (ranked.drawn, ranked.ends);
            orders.push_back(Order::Take { branch, drawn });
            let tokens = parent.tokens + 1;
            match ends {
                true => self.finish(self.score(log_probability, tokens), branch, orders),
                false => self.beams.push(Beam {
                    branch,
                    tokens,
                    log_probability,
                    ranked: None,
                }),
            }
        }
    }

    /// Tells the best.
    fn choose(&mut self, orders: &mut Orders) {
        for (answer, &wanted) in self.wanted.iter().enumerate() {
            orders.extend(match (self.finished.get(answer), wanted) {
                (Some(&(_, branch)), true) => Some(Order::Finish { branch, answer }),
                (None, true) => Some(Order::Fail {
                    answer,
                    error: self.failure.clone().unwrap_or(EngineError::Unanswered),
                }),
                (_, false) => None,
            });
        }
        self.give_up(orders);
    }

    fn give_up(&self, orders: &mut Orders) {
        let beams = self.beams.iter().map(|beam| beam.branch);
        let finished = self.finished.iter().map(|&(_, branch)| branch);
        orders.extend(beams.chain(finished).map(Order::Drop));
    }

    /// Takes a beam out that has ended by itself.
    fn take(&mut self, branch: Branch) -> Option<Beam> {
        let place = self.beams.iter().position(|beam| beam.branch == branch)?;
        Some(self.beams.remove(place))
    }
}

impl Driver for Beams {
    fn next(&mut self, report: &Report, orders: &mut Orders) {
        let branch = report.branch;
        match &report.news {
            News::Begun => orders.push_back(Order::Read(branch)),
            News::Read => {
                self.beams.push(Beam {
                    branch,
                    tokens: 0,
                    log_probability: 0.0,
                    ranked: None,
                });
                orders.push_back(Order::Rank {
                    branch,
                    count: 2 * self.search.width,
                });
            }
            News::Ranked => {
                let beam = self.beams.iter_mut().find(|beam| beam.branch == branch);
                if let Some(beam) = beam {
                    beam.ranked = Some(report.ranked.clone());
                    self.go_on(orders);
                }
            }
            News::Drew | News::Scored => (),
            // A text that has taken its end is finished already; this one is as long as it may be.
            News::Ended(_) => {
                if let Some(beam) = self.take(branch) {
                    self.finish(self.score(beam.log_probability, beam.tokens), branch, orders);
                    self.go_on(orders);
                }
            }
            News::Failed(error) if report.breakdown().is_some() => {
                let fail = |answer| Order::Fail {
                    answer,
                    error: error.clone(),
                };
                orders.extend((0..self.wanted.len()).map(fail));
                self.give_up(orders);
            }
            News::Failed(error) => {
                self.failure.get_or_insert(error.clone());
                self.take(branch);
                orders.push_back(Order::Drop(branch));
                self.go_on(orders);
            }
        }
    }

    fn leave(&mut self, answer: usize, orders: &mut Orders) {
        if let Some(wanted) = self.wanted.get_mut(answer) {
            *wanted = false;
        }
        if self.wanted.iter().all(|wanted| !wanted) {
            orders.push_back(Order::Drop(0));
            self.give_up(orders);
        }
    }

    fn verdict(&self, answer: usize) -> Option<Verdict> {
        let score = self.finished.get(answer)?.0;
        Some(Verdict {
            law: LawTag::Beam,
            log_weight: None,
            diagnostics: Some(Diagnostics::Beam {
                width: self.search.width,
                score,
            }),
        })
    }

    fn branch_of(&self, _: usize) -> Option<Branch> {
        None
    }
}
