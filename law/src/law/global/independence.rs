//! A Markov chain of independent texts over a trie that failed attempts have filled, for use after the
//! attempts have run out.
//!
//! ```text
//!   trie after the attempts, frozen ─► w₀ ─► w₁ ─► … ─► wₖ         each drawn by an attempt that does not fail
//!   w' takes the place of w with probability  min(1, W(w') / W(w))
//! ```
//!
//! [`Attempt::adaptive`] draws a text from `q(w) = P(w) / W(w)`, where `W` is the product of its factors. As
//! long as the trie does not change, `W` is a function of the text, and the ratio above is the acceptance
//! ratio of an independence sampler (Tierney 1994, *Ann. Statist.* 22; for language models the restarts of
//! Gonzalez et al. 2025, arXiv 2506.05754): the global law is stationary, and the distance to it falls by at
//! least the factor `1 − Z/max W` a step. The more the attempts have learned, the nearer `max W` is to `Z`.
//! So every text is drawn over a copy of the trie. If a text changed the trie for the next one, their weights
//! would belong to different laws, and the chain would have another law.
//!
//! The text that the chain ends with may not be the one that was drawn last. It is then replayed from its
//! rows: a decode loop sees this as one more attempt.
//!
//! Cost: `k + 1` texts, and one more replay where the last was not accepted; a copy of the trie for each.

use super::cars::Attempt;
use super::trie::Trie;
use crate::law::{Allowed, Chooser, Drawn, Part, Place, Purpose, Row, Step, Weight};

/// A text with the factors of its weight, each at most 1.
#[derive(Clone, Debug)]
struct WeightedText<W> {
    tokens: Vec<u32>,
    factors: Vec<W>,
}

/// A chain over a frozen trie; a decode loop calls [`next`](Self::next) at every prefix.
#[derive(Clone, Debug)]
pub(in crate::law) struct Independence<W> {
    frozen: Trie<W>,
    trie: Trie<W>,
    attempt: Attempt<W>,
    number: u32,
    /// The text that is being drawn.
    drawing: WeightedText<W>,
    /// The text that the chain is at.
    now: Option<WeightedText<W>>,
    /// The number of texts still to be drawn after this one.
    left: u32,
    /// The number of texts accepted after the first.
    moves: u32,
    steps: u32,
    is_retelling: bool,
}

impl<W: Weight> Independence<W> {
    /// Creates a chain of `steps` steps after its first text, over a copy of what this trie knows now.
    pub(in crate::law) fn new(known: &Trie<W>, steps: u32, number: u32) -> Self {
        let frozen = known.clone();
        let mut trie = frozen.clone();
        Independence {
            attempt: Attempt::adaptive(&mut trie, number),
            frozen,
            trie,
            number,
            drawing: WeightedText {
                tokens: Vec::new(),
                factors: Vec::new(),
            },
            now: None,
            left: steps,
            moves: 0,
            steps,
            is_retelling: false,
        }
    }

    /// Takes the step at the current prefix. [`Step::End`] ends the chain; after [`Step::Restart`] the decode
    /// loop goes back to the prompt and calls [`begin`](Self::begin). Returns `None` if the chain ended
    /// without a text.
    pub(in crate::law) fn next<R, C>(
        &mut self,
        row: &R,
        allowed: Allowed<'_>,
        chooser: &mut C,
    ) -> Option<Step<W>>
    where
        R: Row<W>,
        C: Chooser<W> + ?Sized,
    {
        if self.is_retelling {
            return self.retell(row, allowed);
        }
        let step = self.attempt.next(&mut self.trie, row, allowed, chooser);
        match &step {
            Step::Token(drawn) | Step::End(drawn) => {
                self.drawing.tokens.push(drawn.token);
                self.drawing.factors.push(self.attempt.factor().clone());
            }
            Step::Restart | Step::Stuck(_) => (),
        }
        let is_accepted = match &step {
            Step::Token(_) => return Some(step),
            Step::End(_) => self.accepts(chooser),
            // The text has no probability.
            Step::Restart | Step::Stuck(_) => false,
        };
        if is_accepted {
            self.moves += u32::from(self.now.is_some());
            self.now = Some(self.drawing.clone());
        }
        match (self.left, is_accepted, &self.now) {
            (0, true, _) => Some(step),
            (0, false, None) => None,
            _ => Some(Step::Restart),
        }
    }

    /// Returns how many texts are proposed after the first, and how many of them were accepted.
    pub(in crate::law) fn moves(&self) -> (u32, u32) {
        (self.steps, self.moves)
    }

    /// Proposes no further texts after the present one.
    pub(in crate::law) fn hurry(&mut self) {
        self.steps -= std::mem::take(&mut self.left);
    }

    /// Begins the next text, which draws with the random numbers of attempt `number`.
    pub(in crate::law) fn begin(&mut self, number: u32) {
        self.number = number;
        self.drawing.tokens.clear();
        self.drawing.factors.clear();
        self.is_retelling = self.left == 0;
        self.left = self.left.saturating_sub(1);
        if !self.is_retelling {
            self.trie = self.frozen.clone();
            self.attempt = Attempt::adaptive(&mut self.trie, number);
        }
    }

    fn accepts<C: Chooser<W> + ?Sized>(&self, chooser: &mut C) -> bool {
        let Some(now) = &self.now else {
            return true;
        };
        let ratio = ratio(&self.drawing.factors, &now.factors);
        if ratio >= W::one() {
            return true;
        }
        let place = Place::new(self.number, 0).to(Purpose::Move);
        chooser.choose(place, &[ratio.clone(), W::one() - ratio]) == 0
    }

    /// Replays the next token of the text that the chain is at, if it is at one.
    fn retell<R: Row<W>>(&mut self, row: &R, allowed: Allowed<'_>) -> Option<Step<W>> {
        let place = self.drawing.tokens.len();
        let text = self.now.as_ref()?;
        let possible = self.trie.possible(allowed, place as u32, row.len());
        let part = row.part(Allowed::Words(&possible));
        let (mass, log_mass) = (part.mass(), part.log_mass());
        let token = *text.tokens.get(place)?;
        let drawn = Drawn {
            token,
            mass,
            log_mass,
            log_probability: row.log_probability(token),
            log_kept: log_mass,
        };
        let is_last = place + 1 == text.tokens.len();
        self.drawing.tokens.push(token);
        Some(match is_last {
            true => Step::End(drawn),
            false => Step::Token(drawn),
        })
    }
}

/// Returns the quotient of two products of numbers that are at most 1, multiplied so that intermediate
/// results stay near 1.
fn ratio<W: Weight>(above: &[W], below: &[W]) -> W {
    let (mut above, mut below) = (above.iter().cloned(), below.iter().cloned());
    let mut ratio = W::one();
    loop {
        let is_large = ratio > W::one();
        let next = match is_large {
            true => above.next().map(|factor| (factor, true)),
            false => below.next().map(|factor| (factor, false)),
        };
        let next = next.or_else(|| match is_large {
            true => below.next().map(|factor| (factor, false)),
            false => above.next().map(|factor| (factor, true)),
        });
        ratio = match next {
            Some((factor, true)) => ratio * factor,
            Some((factor, false)) => ratio / factor,
            None => return ratio,
        };
    }
}
