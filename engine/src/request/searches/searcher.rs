//! The driver of a search: turns the requests of its strategy into orders, and its texts into answers.
//!
//! ```text
//!   strategy ─► prefixes to look at ─► fork, take, rank ─► rows ─► strategy ─ … ─► texts ─► fork, take, tell
//! ```
//!
//! A branch that is not needed any more continues with one of its children; the other children are forks. If
//! there are too many branches, the least recently used one is dropped, and its prefix is recomputed if the
//! search returns to it. A text that has ended needs no branch: it is written again for its answer, token by
//! token, without a pass.

use crate::error::EngineError;
use crate::request::Diagnostics;
use crate::request::driver::{Branch, BranchEvent, Driver, Look, Order, Orders, Report, Verdict};
use crate::request::searches::strategy::{Ask, Next, Strategy};
use crate::request::searches::tree::{Node, ROOT, Seen, Tree};
use lexiform::vocab::Vocabulary;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// The search of one request.
pub(crate) struct Searcher<S> {
    strategy: S,
    tree: Tree,
    /// The branches whose rows are awaited, with their prefixes and the number of continuations requested.
    awaited: HashMap<Branch, (Node, usize)>,
    next_branch: Branch,
    /// The maximum number of branches at a time.
    most: usize,
    /// `true` for each answer whose client is still there.
    wanted: Vec<bool>,
    rows: usize,
    /// The scores of the answers, once they are known.
    scores: Vec<f64>,
    /// The bound that ended the search before it had found all answers, if one did.
    met: Option<&'static str>,
    /// The answers whose texts have reached the maximum length, by their branches.
    telling: BTreeMap<Branch, usize>,
    failure: Option<EngineError>,
    is_over: bool,
}

impl<S: Strategy> Searcher<S> {
    /// Returns a search for `answers` answers of at most `longest` tokens, with at most `most` branches at a
    /// time.
    pub(crate) fn new(
        strategy: S,
        (answers, longest, most): (usize, usize, usize),
        vocabulary: Arc<Vocabulary>,
    ) -> Self {
        Searcher {
            strategy,
            tree: Tree::new(longest, vocabulary),
            awaited: HashMap::new(),
            next_branch: 1,
            most,
            wanted: vec![true; answers],
            rows: 0,
            scores: Vec::new(),
            met: None,
            telling: BTreeMap::new(),
            failure: None,
            is_over: false,
        }
    }

    /// Queries the strategy until it needs a row, or is over.
    fn go_on(&mut self, orders: &mut Orders) {
        while self.awaited.is_empty() && !self.is_over {
            match self.strategy.next(&mut self.tree) {
                Next::Look(asks) => self.look(asks, orders),
                Next::Over { found, error } => self.tell(&found, error, orders),
            }
        }
    }

    /// Orders the rows of prefixes that are not known yet.
    fn look(&mut self, mut asks: Vec<Ask>, orders: &mut Orders) {
        let mut asked = HashSet::new();
        asks.retain(|ask| !self.tree.knows(ask.node, ask.count) && asked.insert(ask.node));
        // A branch that is not needed moves to the last of the prefixes that begin with it.
        let mut movers: HashMap<Node, Node> = HashMap::new();
        for ask in &asks {
            let (donor, _) = self.tree.donor(ask.node);
            if donor != ask.node && donor != ROOT && self.tree.is_released(donor) {
                movers.insert(donor, ask.node);
            }
        }
        let stays: Vec<Node> = asks.iter().map(|ask| self.tree.donor(ask.node).0).collect();
        let new = asks.len() - movers.len();
        self.make_room(new, &stays, orders);
        let (moving, forking): (Vec<Ask>, Vec<Ask>) = asks
            .into_iter()
            .partition(|ask| movers.values().any(|&mover| mover == ask.node));
        for ask in forking.into_iter().chain(moving) {
            self.look_at(&ask, &movers, orders);
        }
        let released = self.tree.take_released();
        orders.extend(released.into_iter().map(Order::Drop));
    }

    fn look_at(&mut self, ask: &Ask, movers: &HashMap<Node, Node>, orders: &mut Orders) {
        let (donor, branch) = self.tree.donor(ask.node);
        let moves = movers.get(&donor) == Some(&ask.node);
        let of = branch.unwrap_or(0);
        let branch = match donor == ask.node || moves {
            true => of,
            false => self.fork(of, self.tree.tokens(donor), orders),
        };
        if moves {
            self.tree.set_branch(donor, None);
        }
        if donor == ask.node {
            // Its last token may already be computed, and is recomputed: the row comes from a pass.
            let to = self.tree.tokens(donor);
            orders.push_back(Order::Rewind { branch, to });
        }
        let steps = self.tree.steps(donor, ask.node).into_iter();
        orders.extend(steps.map(|ranked| Order::Take { branch, ranked }));
        self.tree.set_branch(ask.node, Some(branch));
        let look = Look {
            count: ask.count,
            also: ask.also.as_slice().into(),
            distance: ask.distance,
        };
        orders.push_back(Order::Rank { branch, look });
        self.awaited.insert(branch, (ask.node, ask.count));
    }

    fn fork(&mut self, of: Branch, at: usize, orders: &mut Orders) -> Branch {
        let to = self.next_branch;
        self.next_branch += 1;
        orders.push_back(Order::Fork { of, to, at });
        to
    }

    /// Drops branches until there is room for `new` ones. Branches that are not held are dropped first.
    fn make_room(&mut self, new: usize, stays: &[Node], orders: &mut Orders) {
        let branches = self.tree.branches().count();
        let too_many = (branches + new).saturating_sub(self.most);
        if too_many == 0 {
            return;
        }
        let mut idle = self.tree.idle(stays);
        idle.sort_by_key(|&node| !self.tree.is_released(node));
        for node in idle.into_iter().take(too_many) {
            orders.extend(self.tree.donor(node).1.map(Order::Drop));
            self.tree.set_branch(node, None);
        }
    }

    /// Reports the answers. If there are fewer texts than answers, the others fail, with the reason why there
    /// is no text if there is none.
    fn tell(&mut self, found: &[(f64, Node)], error: Option<EngineError>, orders: &mut Orders) {
        self.is_over = true;
        self.scores = found.iter().map(|text| text.0).collect();
        let held = self.tree.branches().filter(|&branch| branch != 0);
        orders.extend(held.map(Order::Drop));
        if let Some(EngineError::SearchExhausted { limit, .. }) = error {
            self.met = Some(limit);
        }
        let failure = self.failure.clone().filter(|_| found.is_empty());
        let few = EngineError::FewTexts { found: found.len() };
        let error = error.or(failure).unwrap_or(few);
        for answer in 0..self.wanted.len() {
            match (self.wanted[answer], found.get(answer)) {
                (true, Some(&(_, node))) => self.write(answer, node, orders),
                (true, None) => orders.push_back(Order::Fail {
                    answer,
                    error: error.clone(),
                }),
                (false, _) => (),
            }
        }
        if self.telling.is_empty() {
            orders.push_back(Order::Drop(0));
        }
    }

    fn write(&mut self, answer: usize, node: Node, orders: &mut Orders) {
        let steps = self.tree.steps(ROOT, node);
        let is_whole = steps.last().is_some_and(|step| step.ends);
        let branch = self.fork(0, 0, orders);
        orders.extend(steps.into_iter().map(|ranked| Order::Take { branch, ranked }));
        if is_whole {
            return orders.push_back(Order::Finish { branch, answer });
        }
        // The branch ends when it is ordered to continue.
        self.telling.insert(branch, answer);
        let look = Look {
            count: 1,
            ..Look::default()
        };
        orders.push_back(Order::Rank { branch, look });
    }

    fn heard(&mut self, report: &Report, orders: &mut Orders) {
        let Some((node, count)) = self.awaited.remove(&report.branch) else {
            return;
        };
        self.rows += 1;
        let is_ranked = report.event == BranchEvent::Ranked;
        let seen = Seen {
            ranked: if is_ranked {
                report.ranked.clone()
            } else {
                Vec::new()
            },
            count,
            distance: report.distance,
        };
        self.tree.see(node, seen);
        if !is_ranked {
            // Nothing follows this prefix.
            self.tree.set_branch(node, None);
            orders.push_back(Order::Drop(report.branch));
        }
        self.go_on(orders);
    }

    fn fail_all(&mut self, error: &EngineError, orders: &mut Orders) {
        let fail = |answer| Order::Fail {
            answer,
            error: error.clone(),
        };
        orders.extend((0..self.wanted.len()).map(fail));
        self.give_up(orders);
    }

    fn give_up(&mut self, orders: &mut Orders) {
        self.is_over = true;
        let telling = self.telling.keys().copied();
        orders.extend(self.tree.branches().chain(telling).map(Order::Drop));
    }
}

impl<S: Strategy> Driver for Searcher<S> {
    fn next(&mut self, report: &Report, orders: &mut Orders) {
        if let (BranchEvent::Ended(_), Some(answer)) = (&report.event, self.telling.remove(&report.branch)) {
            orders.push_back(Order::Finish {
                branch: report.branch,
                answer,
            });
            if self.telling.is_empty() {
                orders.push_back(Order::Drop(0));
            }
            return;
        }
        match &report.event {
            BranchEvent::Begun => orders.push_back(Order::Read(report.branch)),
            BranchEvent::Read => self.go_on(orders),
            BranchEvent::Drew | BranchEvent::Scored | BranchEvent::Weighed => (),
            BranchEvent::Failed(error)
                if report.breakdown().is_some() || self.telling.contains_key(&report.branch) =>
            {
                self.fail_all(error, orders);
            }
            BranchEvent::Failed(error) => {
                self.failure.get_or_insert(error.clone());
                self.heard(report, orders);
            }
            BranchEvent::Ranked | BranchEvent::Ended(_) => self.heard(report, orders),
        }
    }

    fn leave(&mut self, answer: usize, orders: &mut Orders) {
        if let Some(wanted) = self.wanted.get_mut(answer) {
            *wanted = false;
        }
        if self.wanted.iter().all(|wanted| !wanted) {
            self.give_up(orders);
        }
    }

    fn verdict(&self, answer: usize) -> Option<Verdict> {
        Some(Verdict {
            law: self.strategy.tag(),
            log_weight: None,
            diagnostics: Some(Diagnostics::Search {
                width: self.strategy.width(),
                score: *self.scores.get(answer)?,
                rows: self.rows,
                found: Some(self.scores.len().min(self.wanted.len())),
                met: self.met,
            }),
            particles: Vec::new(),
        })
    }

    fn branch_of(&self, _: usize) -> Option<Branch> {
        None
    }
}
