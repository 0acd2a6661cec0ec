//! Markov chain Monte Carlo: a text is cut, its rest drawn anew, and the new text accepted or not.
//!
//! ```text
//!   w ─ cut at i, drawn from a law of the places of w ─► w' = w[..i] + masked draws to the end
//!   accept with probability  min(1, P(w')·q(w | w') / P(w)·q(w' | w))
//!   q(w' | w) = Σ_{i ≤ common prefix} cut_w(i) · Π_{j ≥ i} p(w'_j) / m(w'_j)
//! ```
//!
//! The proposal has to be summed over *all* positions at which the one text could have become the other;
//! using only the chosen one gives another law. The global law is stationary, and each step brings the chain
//! nearer to it as long as a cut at the beginning is possible (Gonzalez et al. 2025, arXiv 2506.05754). The
//! first text is drawn under the local law.
//!
//! Cost: one text a step; its unchanged part is read and not drawn.

use crate::law::{Chooser, Place, Purpose, Weight};

/// The law of the position at which a text is cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cuts {
    /// Every position is equally likely.
    Uniform,
    /// Half of the cuts at the beginning, the others in proportion to the perplexity of the token there,
    /// `1/p`: where the model found its token least likely. Cuts of that kind alone, as in the paper, fall
    /// nearly always on the one least likely token, so that a bad beginning is hardly ever left.
    Priority,
    /// At the beginning: the chain consists of independent samples, and a text is accepted with probability
    /// `min(1, W(w')/W(w))`.
    #[default]
    Restart,
}

/// A text with the probabilities of each of its tokens, the end included.
#[derive(Clone, Debug, PartialEq)]
struct ChainText<W> {
    tokens: Vec<u32>,
    /// `p` and `m` of each token.
    rows: Vec<(W, W)>,
}

impl<W: Weight> ChainText<W> {
    /// Returns the probability with which masked draws write the tokens from each position on, and 1 after
    /// the last.
    fn rests(&self) -> Vec<W> {
        let mut rests = vec![W::one()];
        for (probability, mass) in self.rows.iter().rev() {
            let rest = rests[rests.len() - 1].clone();
            rests.push(rest * probability.clone() / mass.clone());
        }
        rests.reverse();
        rests
    }

    /// Returns `Π p`.
    fn probability(&self) -> W {
        let factors = self.rows.iter().map(|(probability, _)| probability.clone());
        factors.fold(W::one(), |product, factor| product * factor)
    }
}

impl Cuts {
    /// Returns the law of the positions at which this text is cut, not normalised.
    fn weights<W: Weight>(self, text: &ChainText<W>) -> Vec<W> {
        let at = |(place, (probability, _)): (usize, &(W, W))| match self {
            Cuts::Uniform => W::one(),
            Cuts::Priority => W::one() / probability.clone(),
            Cuts::Restart if place == 0 => W::one(),
            Cuts::Restart => W::zero(),
        };
        let mut weights: Vec<W> = text.rows.iter().enumerate().map(at).collect();
        let total = crate::law::weight::sum(&weights);
        if let (Cuts::Priority, Some(first)) = (self, weights.first_mut()) {
            *first = first.clone() + total;
        }
        weights
    }

    /// Returns `q(to | from)`.
    fn proposal<W: Weight>(self, from: &ChainText<W>, to: &ChainText<W>) -> W {
        let weights = self.weights(from);
        let total = crate::law::weight::sum(&weights);
        let rests = to.rests();
        let pairs = from.tokens.iter().zip(&to.tokens);
        let common = pairs.take_while(|(one, other)| one == other).count();
        let last = common.min(from.tokens.len().min(to.tokens.len()).saturating_sub(1));
        let paths = weights.into_iter().zip(rests).take(last + 1);
        let paths: Vec<W> = paths.map(|(weight, rest)| weight * rest).collect();
        crate::law::weight::sum(&paths) / total
    }
}

/// A chain of texts.
#[derive(Clone, Debug)]
pub struct Chain<W> {
    cuts: Cuts,
    now: Option<ChainText<W>>,
    steps: u32,
    moves: u32,
}

impl<W: Weight> Chain<W> {
    /// Creates a chain that has no text yet.
    pub fn new(cuts: Cuts) -> Self {
        Chain {
            cuts,
            now: None,
            steps: 0,
            moves: 0,
        }
    }

    /// Returns how many texts were proposed after the first.
    pub fn steps(&self) -> u32 {
        self.steps
    }

    /// Returns how many of them were accepted.
    pub fn moves(&self) -> u32 {
        self.moves
    }

    /// Draws where the present text is cut: the number of tokens that are kept. Zero if there is no text.
    pub fn cut<C: Chooser<W> + ?Sized>(&self, chooser: &mut C) -> usize {
        let place = Place::new(self.steps, 0).to(Purpose::Cut);
        match &self.now {
            Some(text) => chooser.choose(place, &self.cuts.weights(text)),
            None => 0,
        }
    }

    /// Takes a whole text, drawn from the masked rows after the position where the present one was cut;
    /// `rows` are `p` and `m` of each of its tokens, the end included. Returns `true` if the text is
    /// accepted: the first text always is, and a text without tokens never is.
    pub fn propose<C: Chooser<W> + ?Sized>(
        &mut self,
        tokens: Vec<u32>,
        rows: Vec<(W, W)>,
        chooser: &mut C,
    ) -> bool {
        let next = ChainText { tokens, rows };
        let Some(now) = &self.now else {
            let is_text = !next.tokens.is_empty();
            self.now = is_text.then_some(next);
            return is_text;
        };
        let place = Place::new(self.steps, 0).to(Purpose::Move);
        self.steps += 1;
        if next.tokens.is_empty() {
            return false;
        }
        let gain = next.probability() * self.cuts.proposal(&next, now);
        let loss = now.probability() * self.cuts.proposal(now, &next);
        let is_accepted = gain >= loss || chooser.choose(place, &[gain.clone(), loss - gain]) == 0;
        if is_accepted {
            self.now = Some(next);
            self.moves += 1;
        }
        is_accepted
    }

    /// Counts the proposal of a text that cannot be completed, which is never accepted.
    pub fn reject(&mut self) {
        self.steps += u32::from(self.now.is_some());
    }
}
