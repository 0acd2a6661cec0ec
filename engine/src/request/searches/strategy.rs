//! The interface of a search strategy, and the parts that several strategies share: finished texts, and
//! prefixes ordered by likelihood.

use crate::error::EngineError;
use crate::request::searches::tree::{Node, Tree, WrittenText};
use lexiform_law::LawTag;
use std::collections::BinaryHeap;

/// The state of a search, without a model: it requests the rows of prefixes, and decides once all of them are
/// known.
pub(crate) trait Strategy: Send {
    /// Returns the next step. At first no row is known.
    fn next(&mut self, tree: &mut Tree) -> Next;

    /// Returns the tag of answers of this search.
    fn tag(&self) -> LawTag;

    /// Returns the number of prefixes followed at a time, if it is bounded.
    fn width(&self) -> Option<usize>;
}

/// The next step of a search.
#[derive(Debug)]
pub(crate) enum Next {
    /// Look at the continuations of these prefixes, which the search holds.
    Look(Vec<Ask>),
    /// The search is over: the texts, which differ, the best first, and the reason why there are no more of
    /// them, if there is one.
    Over {
        found: Vec<(f64, Node)>,
        error: Option<EngineError>,
    },
}

/// A request for the continuations of a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ask {
    pub(crate) node: Node,
    /// The number of likeliest continuations to return.
    pub(crate) count: usize,
    /// Tokens to return as well, if they are allowed.
    pub(crate) also: Vec<u32>,
    /// `true` to return the number of tokens that the text needs to be completed.
    pub(crate) distance: bool,
}

impl Ask {
    /// Requests the `count` likeliest continuations.
    pub(crate) fn of(node: Node, count: usize) -> Self {
        Ask {
            node,
            count,
            also: Vec::new(),
            distance: false,
        }
    }
}

/// Returns the score of a text, `ln P / t^α`.
pub(crate) fn score(log_probability: f64, tokens: usize, length_penalty: f64) -> f64 {
    log_probability / (tokens.max(1) as f64).powf(length_penalty)
}

/// A text that has ended.
#[derive(Clone, Debug)]
pub(crate) struct FinishedText {
    pub(crate) score: f64,
    /// Its token sequence, which is held.
    pub(crate) node: Node,
    pub(crate) written: WrittenText,
}

/// The best of the texts that have ended. Each is kept once, in the best of the token sequences that write
/// it.
#[derive(Debug)]
pub(crate) struct Finished {
    /// The texts, the best first.
    texts: Vec<FinishedText>,
    most: usize,
    /// The number of token sequences that have ended, including those that are not kept.
    pub(crate) count: usize,
}

impl Finished {
    pub(crate) fn new(most: usize) -> Self {
        Finished {
            texts: Vec::new(),
            most,
            count: 0,
        }
    }

    /// Keeps a text, which is held, if it is one of the best; otherwise releases it.
    pub(crate) fn insert(&mut self, score: f64, node: Node, tree: &mut Tree) {
        self.count += 1;
        let written = tree.text(node);
        if let Some(same) = self.texts.iter().position(|other| other.written == written) {
            if self.texts[same].score >= score {
                return tree.release(node);
            }
            tree.release(self.texts.remove(same).node);
        }
        let place = self.texts.partition_point(|other| other.score >= score);
        let text = FinishedText { score, node, written };
        self.texts.insert(place, text);
        if self.texts.len() > self.most
            && let Some(worst) = self.texts.pop()
        {
            tree.release(worst.node);
        }
    }

    /// Returns the score of the last of the best `count` texts, if there are that many.
    pub(crate) fn worst_of(&self, count: usize) -> Option<f64> {
        self.texts.get(count.checked_sub(1)?).map(|text| text.score)
    }

    /// Returns the texts, the best first.
    pub(crate) fn texts(&self) -> &[FinishedText] {
        &self.texts
    }

    /// Ends the search with these texts.
    pub(crate) fn over(&mut self) -> Next {
        let texts = std::mem::take(&mut self.texts).into_iter();
        Next::Over {
            found: texts.map(|text| (text.score, text.node)).collect(),
            error: None,
        }
    }
}

/// Prefixes whose rows are known, each with its likeliest continuation that has not been taken yet.
#[derive(Debug, Default)]
pub(crate) struct Frontier {
    heap: BinaryHeap<Open>,
    entered: u64,
}

/// A continuation that could be taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    /// An upper bound of `ln P` of all texts not yet found here.
    pub(crate) bound: f64,
    /// The prefix, and the index of the continuation among the known ones.
    pub(crate) node: Node,
    pub(crate) place: usize,
    /// `true` if all known continuations are taken, and the ones from `place` on are still unknown.
    pub(crate) is_rest: bool,
    /// The number of tokens of the continuation.
    pub(crate) tokens: usize,
    entered: u64,
}

impl Frontier {
    /// Opens a prefix, whose row is known and which is held, at one of its continuations. If there is none,
    /// or if it is below `least`, the prefix is released.
    pub(crate) fn open(&mut self, node: Node, place: usize, least: f64, tree: &mut Tree) {
        let log_probability = tree.log_probability(node);
        let ranked = tree.ranked(node);
        let bound = match ranked.get(place) {
            Some(next) => next.drawn.log_probability,
            None if tree.has_all(node) => f64::NEG_INFINITY,
            None => rest(ranked),
        };
        let open = Open {
            bound: log_probability + bound,
            node,
            place,
            is_rest: place >= ranked.len(),
            tokens: tree.tokens(node) + 1,
            entered: self.entered,
        };
        if open.bound == f64::NEG_INFINITY || open.bound < least {
            return tree.release(node);
        }
        self.entered += 1;
        self.heap.push(open);
    }

    /// Returns the greatest bound of all open continuations.
    pub(crate) fn bound(&self) -> Option<f64> {
        self.heap.peek().map(|open| open.bound)
    }

    /// Removes and returns the likeliest continuation. Its prefix is not open any more, but still held.
    pub(crate) fn pop(&mut self) -> Option<Open> {
        self.heap.pop()
    }

    /// Returns the number of open prefixes.
    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }

    /// Releases the prefixes for which `is_wanted` returns `false`.
    pub(crate) fn retain(&mut self, is_wanted: impl Fn(&Open) -> bool, tree: &mut Tree) {
        self.heap.retain(|open| {
            let stays = is_wanted(open);
            if !stays {
                tree.release(open.node);
            }
            stays
        });
    }
}

/// Returns an upper bound of `ln` of the probability of a token that is not among these likeliest ones of a
/// row: no more than the last of them, and no more than the mass of all allowed tokens that they leave.
fn rest(ranked: &[crate::request::driver::Ranked]) -> f64 {
    let Some(last) = ranked.last() else {
        return 0.0;
    };
    let taken: f64 = ranked.iter().map(|next| next.drawn.log_probability.exp()).sum();
    let kept = last.drawn.log_kept.exp();
    // The sum has rounding errors, and the bound must not be too small.
    let left = (kept - taken + ROUNDING * kept).max(f64::MIN_POSITIVE);
    last.drawn.log_probability.min(left.ln())
}

/// The tolerated relative error of a sum of probabilities.
const ROUNDING: f64 = 1e-6;

impl PartialEq for Open {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Open {}

impl PartialOrd for Open {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Open {
    /// The likelier continuation is greater; of two equal ones the longer, which is nearer to its end, then
    /// the older.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let by_bound = self.bound.total_cmp(&other.bound);
        let by_tokens = || self.tokens.cmp(&other.tokens);
        by_bound
            .then_with(by_tokens)
            .then_with(|| other.entered.cmp(&self.entered))
    }
}
