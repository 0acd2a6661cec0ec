//! What one search decides, and what several of them keep: finished texts, and prefixes in the order of what
//! is likely.

use crate::error::EngineError;
use crate::request::searches::tree::{Node, Tree};
use lexiform_law::LawTag;
use std::collections::BinaryHeap;

/// The state of a search, without a model: it asks for the rows of prefixes, and decides once all of them are
/// known.
pub(crate) trait Strategy: Send {
    /// What comes next. At first no row is known.
    fn next(&mut self, tree: &mut Tree) -> Next;

    /// The search, as answers are tagged.
    fn tag(&self) -> LawTag;

    /// How many prefixes are followed at a time, if there is such a number.
    fn width(&self) -> Option<usize>;
}

/// What a search wants.
#[derive(Debug)]
pub(crate) enum Next {
    /// The continuations of these prefixes, which it holds.
    Look(Vec<Ask>),
    /// It is over: the texts, the best first, and why there are no more of them, if there is a reason.
    Over {
        found: Vec<(f64, Node)>,
        error: Option<EngineError>,
    },
}

/// A prefix of which the continuations are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ask {
    pub(crate) node: Node,
    /// So many of the likeliest.
    pub(crate) count: usize,
    /// These, too, if they are allowed.
    pub(crate) also: Vec<u32>,
    /// How many tokens the text takes to be completed.
    pub(crate) distance: bool,
}

impl Ask {
    /// Asks for so many of the likeliest continuations.
    pub(crate) fn of(node: Node, count: usize) -> Self {
        Ask {
            node,
            count,
            also: Vec::new(),
            distance: false,
        }
    }
}

/// `ln P / t^α`: the score of a text.
pub(crate) fn score(log_probability: f64, tokens: usize, length_penalty: f64) -> f64 {
    log_probability / (tokens.max(1) as f64).powf(length_penalty)
}

/// The best of the texts that have ended.
#[derive(Debug)]
pub(crate) struct Finished {
    /// With their scores, the best first.
    texts: Vec<(f64, Node)>,
    most: usize,
    /// How many there were, also those that are not among the best any more.
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

    /// Keeps a text, which is held, if it is one of the best; else it is released.
    pub(crate) fn insert(&mut self, score: f64, node: Node, tree: &mut Tree) {
        self.count += 1;
        let place = self.texts.partition_point(|other| other.0 >= score);
        self.texts.insert(place, (score, node));
        if self.texts.len() > self.most
            && let Some((_, node)) = self.texts.pop()
        {
            tree.release(node);
        }
    }

    /// The score of the last of the best `count`, if there are so many.
    pub(crate) fn worst_of(&self, count: usize) -> Option<f64> {
        self.texts.get(count.checked_sub(1)?).map(|text| text.0)
    }

    /// All of them, the best first.
    pub(crate) fn texts(&self) -> &[(f64, Node)] {
        &self.texts
    }

    /// The end of a search that has found these.
    pub(crate) fn over(&mut self) -> Next {
        Next::Over {
            found: std::mem::take(&mut self.texts),
            error: None,
        }
    }
}

/// Prefixes whose rows are known, each with its likeliest continuation that was not taken yet.
#[derive(Debug, Default)]
pub(crate) struct Frontier {
    heap: BinaryHeap<Open>,
    entered: u64,
}

/// A continuation that could be taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    /// An upper bound of `ln P` of all texts that are still to be found here.
    pub(crate) bound: f64,
    /// The prefix, and the place of the continuation among those that are known.
    pub(crate) node: Node,
    pub(crate) place: usize,
    /// Where the known continuations are all taken: these places are still to be found out.
    pub(crate) is_rest: bool,
    /// Tokens of the continuation.
    pub(crate) tokens: usize,
    entered: u64,
}

impl Frontier {
    /// Opens a prefix, whose row is known and which is held, at one of its continuations. Where there is
    /// none, or where it is below `least`, the prefix is released.
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

    /// The bound of all that is open.
    pub(crate) fn bound(&self) -> Option<f64> {
        self.heap.peek().map(|open| open.bound)
    }

    /// Takes the likeliest continuation out. Its prefix is not open any more, and still held.
    pub(crate) fn pop(&mut self) -> Option<Open> {
        self.heap.pop()
    }

    /// How many prefixes are open.
    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }

    /// Releases the prefixes that are not wanted any more.
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

/// `ln` of the most that a token can have which is not among these likeliest ones of a row: no more than the
/// last of them, and no more than they leave of the mass of all that are allowed.
fn rest(ranked: &[crate::request::driver::Ranked]) -> f64 {
    let Some(last) = ranked.last() else {
        return 0.0;
    };
    let taken: f64 = ranked.iter().map(|next| next.drawn.log_probability.exp()).sum();
    let kept = last.drawn.log_kept.exp();
    // The sum is that of numbers with rounding errors; the bound must not be below what it is a bound of.
    let left = (kept - taken + ROUNDING * kept).max(f64::MIN_POSITIVE);
    last.drawn.log_probability.min(left.ln())
}

/// The relative error of a sum of probabilities that is allowed for.
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
    /// The likelier one is greater; of two alike the longer one, which is nearer to its end, then the older
    /// one.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let by_bound = self.bound.total_cmp(&other.bound);
        let by_tokens = || self.tokens.cmp(&other.tokens);
        by_bound
            .then_with(by_tokens)
            .then_with(|| other.entered.cmp(&self.entered))
    }
}
