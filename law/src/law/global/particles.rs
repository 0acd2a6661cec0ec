//! Sequential Monte Carlo: several texts with weights, of which unlikely ones give way to copies of likelier
//! ones.
//!
//! ```text
//!   particle 0   w₀ ─ draw a token from the masked row, w₀ *= m(u) ─┐
//!   particle 1   w₁ ─ …                                            ├─ effective size < threshold·N ? ─► resample:
//!   particle 2   w₂ ─ …                                            ┘   copy by weight, all weights ← their mean
//! ```
//!
//! A masked draw loses the factor `m(u)` against the model; the product of these is the importance weight of
//! a text, and a population in which all weights are near zero but one has learned next to nothing from the
//! others. Resampling moves the effort to the prefixes that promise mass. Finished texts keep their weight
//! and take part; one that cannot be finished has weight zero.
//!
//! `E[mean weight] = Z` for any number of particles, threshold and resampling scheme (Del Moral 2004,
//! *Feynman-Kac Formulae*; for language models Lew et al. 2023, arXiv 2306.03081, and Loula et al. 2025,
//! arXiv 2504.13139). One text drawn by weight has the global law in the limit of many particles, with a bias
//! of the order of 1/N. Without resampling (threshold 0) this is sampling-importance-resampling (Rubin 1987).
//!
//! Cost: N passes' rows a token, and a fork of the cache for each copy.

use crate::law::weight::sum;
use crate::law::{Chooser, Place, Purpose, Weight};

/// How copies are allotted. Each gives particle `i` a number of copies whose mean is `N·wᵢ/Σw`; they differ
/// in variance (Douc, Cappé, Moulines 2005, arXiv cs/0507025).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Resampling {
    /// Independent draws: the simplest, and the one that varies most.
    Multinomial,
    /// One draw from each Nth of the total.
    Stratified,
    /// One draw for all Nths: between `⌊N·w⌋` and `⌈N·w⌉` copies.
    #[default]
    Systematic,
    /// `⌊N·w⌋` copies for certain, and independent draws of the rest.
    Residual,
}

/// The weights of a population.
#[derive(Clone, Debug)]
pub struct Particles<W> {
    weights: Vec<W>,
}

impl<W: Weight> Particles<W> {
    /// So many particles at the empty prefix, each of weight 1.
    pub fn new(count: usize) -> Self {
        Particles {
            weights: vec![W::one(); count],
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.weights.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.weights.is_empty()
    }

    /// The weight of a particle.
    pub fn weight(&self, particle: usize) -> &W {
        &self.weights[particle]
    }

    /// Multiplies the weight of a particle by what its last draw lost or gained; zero gives it up.
    pub fn weigh(&mut self, particle: usize, factor: W) {
        self.weights[particle] = self.weights[particle].clone() * factor;
    }

    /// Multiplies the weight of each particle by what a metric says of it, which must not be negative: texts
    /// that are picked afterwards are of the law `∝ P(w) · metric(w)` in the limit of many, and the mean
    /// weight estimates `Z` times the mean of the metric. To be done once all texts are whole
    /// (sampling-importance-resampling by a metric, Rubin 1987).
    pub fn tilt(&mut self, mut metric: impl FnMut(usize) -> W) {
        for particle in 0..self.len() {
            self.weigh(particle, metric(particle));
        }
    }

    /// The mean weight, an unbiased estimate of `Z`.
    pub fn estimate(&self) -> W {
        sum(&self.weights) / self.number(self.len())
    }

    /// `(Σw)² / Σw²`: how many particles of equal weight would say as much. Zero if all weights are.
    pub fn effective_size(&self) -> W {
        let total = sum(&self.weights);
        if !total.is_positive() {
            return W::zero();
        }
        let shares = self.weights.iter().map(|weight| weight.clone() / total.clone());
        let squares: Vec<W> = shares.map(|share| share.clone() * share).collect();
        W::one() / sum(&squares)
    }

    /// Whether the effective size is below this share of the number of particles.
    pub fn is_degenerate(&self, threshold: &W) -> bool {
        let is_alive = self.weights.iter().any(Weight::is_positive);
        is_alive && self.effective_size() < threshold.clone() * self.number(self.len())
    }

    /// Gives each place the particle that it goes on with, in order of their numbers, and every particle the
    /// mean weight. `step` is the number of this resampling, which tells its draws from those of others.
    pub fn resample<C: Chooser<W> + ?Sized>(
        &mut self,
        scheme: Resampling,
        step: u32,
        chooser: &mut C,
    ) -> Vec<usize> {
        let place = Place::new(step, 0).to(Purpose::Resample);
        let copies = match scheme {
            Resampling::Multinomial => self.independent(&self.weights.clone(), self.len(), place, chooser),
            Resampling::Stratified => self.stratified(place, chooser),
            Resampling::Systematic => self.systematic(place, chooser),
            Resampling::Residual => self.residual(place, chooser),
        };
        let mean = self.estimate();
        self.weights.fill(mean);
        let of = |(particle, &copies): (usize, &usize)| std::iter::repeat_n(particle, copies);
        copies.iter().enumerate().flat_map(of).collect()
    }

    /// A particle, in proportion to its weight; `None` if none has any. `number` tells several such draws
    /// apart.
    pub fn pick<C: Chooser<W> + ?Sized>(&self, number: u32, chooser: &mut C) -> Option<usize> {
        let place = Place::new(0, number).to(Purpose::Pick);
        let is_alive = self.weights.iter().any(Weight::is_positive);
        is_alive.then(|| chooser.choose(place, &self.weights))
    }

    /// How often each is drawn in so many independent draws.
    fn independent<C: Chooser<W> + ?Sized>(
        &self,
        weights: &[W],
        draws: usize,
        place: Place,
        chooser: &mut C,
    ) -> Vec<usize> {
        let mut copies = vec![0; self.len()];
        for draw in 0..draws {
            copies[chooser.choose(place.round(draw as u32), weights)] += 1;
        }
        copies
    }

    /// `N·w/Σw` of each particle.
    fn expected(&self) -> Vec<W> {
        let mean = self.estimate();
        self.weights
            .iter()
            .map(|weight| weight.clone() / mean.clone())
            .collect()
    }

    fn residual<C: Chooser<W> + ?Sized>(&self, place: Place, chooser: &mut C) -> Vec<usize> {
        let split: Vec<(usize, W)> = self.expected().into_iter().map(whole).collect();
        let mut copies: Vec<usize> = split.iter().map(|(certain, _)| *certain).collect();
        let rests: Vec<W> = split.into_iter().map(|(_, rest)| rest).collect();
        let left = self.len().saturating_sub(copies.iter().sum());
        if rests.iter().any(Weight::is_positive) {
            let more = self.independent(&rests, left, place, chooser);
            copies.iter_mut().zip(more).for_each(|(all, more)| *all += more);
        }
        copies
    }

    /// One draw from each unit of `[0, N)`, on which the particles lie side by side with their expected
    /// copies as lengths.
    fn stratified<C: Chooser<W> + ?Sized>(&self, place: Place, chooser: &mut C) -> Vec<usize> {
        let mut copies = vec![0; self.len()];
        // What of the present particle lies in the present unit, and what of it lies after.
        let mut unit: Vec<W> = vec![W::zero(); self.len()];
        let (mut room, mut number) = (W::one(), 0);
        for (particle, mut length) in self.expected().into_iter().enumerate() {
            while length.is_positive() && number + 1 < self.len() && length >= room {
                length = length - room.clone();
                unit[particle] = unit[particle].clone() + room;
                copies[chooser.choose(place.round(number as u32), &unit)] += 1;
                (room, number) = (W::one(), number + 1);
                unit.fill(W::zero());
            }
            room = room.clone() - length.clone().at_most(room);
            unit[particle] = unit[particle].clone() + length;
        }
        // What rounding has left of the last unit is all of it.
        let left = self.len() - number;
        if !unit.iter().any(Weight::is_positive) {
            unit.clone_from(&self.weights);
        }
        for draw in 0..left {
            copies[chooser.choose(place.round((number + draw) as u32), &unit)] += 1;
        }
        copies
    }

    /// Like [`stratified`](Self::stratified), with the same place in each unit. The copies change only where
    /// that place passes the end of a particle, so the draw is one among the intervals between these.
    fn systematic<C: Chooser<W> + ?Sized>(&self, place: Place, chooser: &mut C) -> Vec<usize> {
        let mut ends = Vec::with_capacity(self.len());
        let mut end = (0, W::zero());
        for expected in self.expected() {
            let (more, rest) = whole(expected);
            let (carry, rest) = whole(end.1 + rest);
            end = (end.0 + more + carry, rest);
            ends.push(end.clone());
        }
        // The last that has any weight ends at N, whatever rounding says.
        let last = self.weights.iter().rposition(Weight::is_positive).unwrap_or(0);
        ends[last..].fill((self.len(), W::zero()));
        let mut starts: Vec<W> = ends.iter().map(|(_, rest)| rest.clone()).collect();
        starts.push(W::zero());
        starts.sort_by(|one, other| one.partial_cmp(other).unwrap_or(std::cmp::Ordering::Equal));
        let next = starts[1..].iter().cloned().chain([W::one()]);
        let lengths: Vec<W> = starts
            .iter()
            .cloned()
            .zip(next)
            .map(|(start, next)| next - start)
            .collect();
        let at = starts[chooser.choose(place, &lengths)].clone();
        // Of the points j + at, those before an end.
        let before = |(units, rest): &(usize, W)| units + usize::from(at < *rest);
        let bounds: Vec<usize> = ends.iter().map(before).collect();
        let from = [0].into_iter().chain(bounds.iter().copied());
        bounds
            .iter()
            .zip(from)
            .map(|(&to, from)| to.saturating_sub(from))
            .collect()
    }

    fn number(&self, count: usize) -> W {
        (0..count).fold(W::zero(), |sum, _| sum + W::one())
    }
}

/// The whole part of a number, and the rest.
fn whole<W: Weight>(mut number: W) -> (usize, W) {
    let mut units = 0;
    while number >= W::one() {
        number = number - W::one();
        units += 1;
    }
    (units, number)
}
