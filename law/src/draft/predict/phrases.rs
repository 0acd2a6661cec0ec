//! A pool of phrases keyed by their first token, as in lookahead decoding.

use super::{Candidate, Context, Observation, Predictor};
use crate::draft::Origin;
use std::collections::VecDeque;

use foldhash::HashMap;

/// The most phrases that begin with the same token.
const PHRASES_A_TOKEN: usize = 7;
/// The factor that each shared token puts on the probability that the phrase is a different one. A smaller
/// factor gives deeper and narrower drafts.
const UNLIKE: f32 = 0.5;

/// N-grams that were guessed or written, keyed by their first token ([Fu et al.
/// 2024](https://arxiv.org/abs/2402.02057)).
///
/// Lookahead decoding fills its pool from the trajectories of Jacobi iterations, Ouroboros ([Zhao et al.
/// 2024](https://arxiv.org/abs/2402.13720)) from the tokens that verification discarded: both through
/// [`learn_phrase`](Predictor::learn_phrase). Drawn tokens are learned as well. For each first token the 7
/// latest phrases are kept.
///
/// A phrase is offered after a text that ends in its first token, or in more of its tokens, and phrases that
/// share the most come first. Drafted tokens count as text here, so that the next phrase continues where one
/// ends, and a draft becomes as long as there is room: these are the joined phrases of Ouroboros.
#[derive(Clone, Debug)]
pub struct Phrases {
    pool: HashMap<u32, VecDeque<Box<[u32]>>>,
    /// First tokens in order of arrival.
    order: VecDeque<u32>,
    /// The most tokens of a phrase, the first one included.
    length: usize,
    most: usize,
}

impl Phrases {
    /// Creates an empty pool of phrases of `length` tokens, at least 2, which holds at most `bytes` bytes.
    pub fn new(length: usize, bytes: usize) -> Phrases {
        Phrases {
            pool: HashMap::default(),
            order: VecDeque::new(),
            length: length.max(2),
            most: bytes,
        }
    }

    /// Adds all phrases in these tokens; fewer tokens than a phrase has are added as a short one.
    pub fn add(&mut self, tokens: &[u32]) {
        if tokens.len() < 2 {
            return;
        }
        for phrase in tokens.windows(self.length.min(tokens.len())) {
            self.add_phrase(phrase);
        }
    }

    fn add_phrase(&mut self, phrase: &[u32]) {
        let first = phrase[0];
        if !self.pool.contains_key(&first) {
            while self.order.len() + 1 > self.most / self.each() {
                let Some(oldest) = self.order.pop_front() else {
                    return;
                };
                self.pool.remove(&oldest);
            }
            self.order.push_back(first);
        }
        let known = self.pool.entry(first).or_default();
        known.retain(|known| known[..] != phrase[1..]);
        known.truncate(PHRASES_A_TOKEN - 1);
        known.push_front(phrase[1..].into());
    }

    /// Returns the most bytes that the phrases of one first token take.
    fn each(&self) -> usize {
        let phrase = size_of::<Box<[u32]>>() + (self.length - 1) * size_of::<u32>();
        // The deque grows to a power of two, the map and the order to twice their length.
        2 * size_of::<(u32, VecDeque<Box<[u32]>>, u64)>() + (PHRASES_A_TOKEN + 1) * phrase
    }
}

impl Predictor for Phrases {
    fn predict(&self, at: &Context<'_>, found: &mut Vec<Candidate>) {
        let last: Vec<u32> = at.back().take(self.length - 1).collect();
        let mut left = 1.0;
        for shared in (1..=last.len()).rev() {
            let (first, after) = (last[shared - 1], last[..shared - 1].iter().rev());
            let phrases = self.pool.get(&first).into_iter().flatten();
            let alike =
                phrases.filter(|phrase| phrase.iter().zip(after.clone()).all(|(one, other)| one == other));
            for token in alike.filter_map(|phrase| phrase.get(shared - 1).copied()) {
                if found.iter().all(|known| known.token != token) {
                    let chance = left * (1.0 - UNLIKE.powi(shared as i32));
                    left -= chance;
                    found.push(Candidate {
                        token,
                        chance,
                        origin: Origin::Phrase,
                    });
                }
            }
        }
    }

    fn learn(&mut self, at: &Context<'_>, seen: &Observation<'_>) {
        let Some(drawn) = seen.drawn else { return };
        let mut phrase: Vec<u32> = at.back().take(self.length - 1).collect();
        phrase.reverse();
        phrase.push(drawn);
        if phrase.len() == self.length {
            self.add_phrase(&phrase);
        }
    }

    fn learn_phrase(&mut self, phrase: &[u32]) {
        self.add(phrase);
    }

    fn bytes(&self) -> usize {
        self.order.len() * self.each()
    }
}
