//! Exact search: the likeliest texts of the grammar, each with a proof that no other text is likelier.
//!
//! ```text
//!   open continuations, those with the greatest bound first ─► an end: the next best text, exactly
//!                                                           └► another token: its row, then its continuations are open
//! ```
//!
//! Best-first search in the manner of A* (Hart, Nilsson, Raphael 1968). The bound of a continuation is `ln P`
//! of its prefix: no text is likelier than any of its prefixes. Of each row only the likeliest continuations
//! are known at first. The bound of all others together is `ln P(u) + ln min(p, m(u) − Σp)`, where `m(u)` is
//! the mass of the tokens that are allowed after `u`, the sum runs over the probabilities of the known
//! continuations, and `p` is the least of these; once no open continuation has a greater bound, twice as many
//! are requested. Bounds are never too small, so texts leave the queue in the order of their probability.
//!
//! A text may be written in several token sequences, and is found with the likeliest of them: the first that
//! leaves the queue. The others are dropped when they leave it.
//!
//! For a confident model the search needs little more than the rows of the answers. For others, exponentially
//! many prefixes may be likelier than the best text; so rows and open prefixes are bounded. If a bound is
//! reached, the texts found until then are answers, and the others fail with
//! [`EngineError::SearchExhausted`].

use crate::error::EngineError;
use crate::request::searches::strategy::{Ask, Frontier, Next, Strategy};
use crate::request::searches::tree::{Node, ROOT, Tree, WrittenText};
use lexiform_law::LawTag;
use std::collections::HashSet;

/// The number of continuations of a prefix that are requested at first.
const FIRST_CONTINUATIONS: usize = 16;

/// The queue of one request.
#[derive(Debug)]
pub(crate) struct KBest {
    max_rows: usize,
    max_frontier: usize,
    answers: usize,
    frontier: Frontier,
    found: Vec<(f64, Node)>,
    /// What the texts found write: a later token sequence that writes the same is less likely, and dropped.
    written: HashSet<WrittenText>,
    /// The likeliest texts seen so far, including those still in the queue, each with `ln P` of the likeliest
    /// token sequence that was seen to write it, the likeliest first.
    seen: Vec<(f64, WrittenText)>,
    rows: usize,
    /// The prefix whose row was requested, and the number of its continuations that were known before.
    asked: Option<(Node, usize)>,
}

impl KBest {
    /// Returns a search for the best `answers` texts within `max_rows` rows and `max_frontier` open prefixes.
    pub(crate) fn new(max_rows: usize, max_frontier: usize, answers: usize) -> Self {
        KBest {
            max_rows,
            max_frontier,
            answers,
            frontier: Frontier::default(),
            found: Vec::new(),
            written: HashSet::new(),
            seen: Vec::new(),
            rows: 0,
            asked: None,
        }
    }

    /// Returns the bound below which nothing can be an answer any more.
    fn least(&self) -> f64 {
        let last = self.seen.get(self.answers.saturating_sub(1));
        last.map_or(f64::NEG_INFINITY, |seen| seen.0)
    }

    /// Opens the continuations of a prefix starting at `from`, and records which of them are texts.
    fn open(&mut self, node: Node, from: usize, tree: &mut Tree) {
        let (before, last) = (
            tree.log_probability(node),
            tree.tokens(node) + 1 == tree.longest(),
        );
        let mut text = None;
        for next in tree.ranked(node).iter().skip(from) {
            if next.ends || last {
                let text = text.get_or_insert_with(|| tree.text(node));
                let written = tree.text_with(text, next);
                self.see(before + next.drawn.log_probability, written);
            }
        }
        let least = self.least();
        self.frontier.open(node, from, least, tree);
        self.frontier.retain(|open| open.bound >= least, tree);
    }

    /// Notes that a token sequence writes a text.
    fn see(&mut self, total: f64, written: WrittenText) {
        match self.seen.iter().position(|other| other.1 == written) {
            Some(same) if self.seen[same].0 >= total => return,
            Some(same) => drop(self.seen.remove(same)),
            None => (),
        }
        let place = self.seen.partition_point(|other| other.0 >= total);
        self.seen.insert(place, (total, written));
        self.seen.truncate(self.answers);
    }

    fn ask(&mut self, node: Node, known: usize, tree: &mut Tree) -> Next {
        if self.rows == self.max_rows {
            return self.exhausted("max_rows", self.max_rows, tree);
        }
        if self.frontier.len() > self.max_frontier {
            return self.exhausted("max_frontier", self.max_frontier, tree);
        }
        self.rows += 1;
        self.asked = Some((node, known));
        let count = FIRST_CONTINUATIONS.max(2 * known);
        Next::Look(vec![Ask::of(node, count)])
    }

    fn exhausted(&mut self, limit: &'static str, allowed: usize, tree: &mut Tree) -> Next {
        self.over(
            Some(EngineError::SearchExhausted {
                limit,
                allowed,
                found: self.found.len(),
            }),
            tree,
        )
    }

    fn over(&mut self, error: Option<EngineError>, tree: &mut Tree) -> Next {
        self.frontier.retain(|_| false, tree);
        Next::Over {
            found: std::mem::take(&mut self.found),
            error,
        }
    }
}

impl Strategy for KBest {
    fn next(&mut self, tree: &mut Tree) -> Next {
        match self.asked.take() {
            None => {
                tree.hold(ROOT);
                return self.ask(ROOT, 0, tree);
            }
            Some((node, known)) => self.open(node, known, tree),
        }
        while self.found.len() < self.answers {
            let Some(open) = self.frontier.pop() else {
                break;
            };
            if open.is_rest {
                return self.ask(open.node, open.place, tree);
            }
            let step = tree.ranked(open.node)[open.place].clone();
            let node = tree.child(open.node, &step);
            let least = self.least();
            self.frontier.open(open.node, open.place + 1, least, tree);
            if !tree.is_final(node) {
                return self.ask(node, 0, tree);
            }
            match self.written.insert(tree.text(node)) {
                true => self.found.push((tree.log_probability(node), node)),
                false => tree.release(node),
            }
        }
        self.over(None, tree)
    }

    fn tag(&self) -> LawTag {
        LawTag::KBest
    }

    fn width(&self) -> Option<usize> {
        None
    }
}
