//! Sequential Monte Carlo: several texts with weights, in which unlikely texts are replaced by copies of
//! likelier ones.
//!
//! ```text
//!   particle 0   w₀ ─ draw a token from the masked row, w₀ *= m(u) ─┐
//!   particle 1   w₁ ─ …                                            ├─ effective size < threshold·N ? ─► resample:
//!   particle 2   w₂ ─ …                                            ┘   copy by weight, all weights ← their mean
//! ```
//!
//! A masked draw loses the factor `m(u)` against the model; the product of these factors is the importance
//! weight of a text. If all weights of a population but one are near zero, the other texts contribute almost
//! nothing. Resampling moves the effort to the prefixes with more mass. Finished texts keep their weight and
//! take part; one that cannot be finished has weight zero.
//!
//! `E[mean weight] = Z` for any number of particles, threshold and resampling scheme (Del Moral 2004,
//! *Feynman-Kac Formulae*; for language models Lew et al. 2023, arXiv 2306.03081, and Loula et al. 2025,
//! arXiv 2504.13139). One text drawn by weight has the global law in the limit of many particles, with a bias
//! of the order of 1/N. Without resampling (threshold 0) this is sampling-importance-resampling (Rubin 1987).
//!
//! Cost: the rows of N passes a token, and a fork of the cache for each copy.

use crate::law::weight::sum;
use crate::law::{Chooser, Place, Purpose, Weight};

/// The scheme by which copies are allotted. Each gives particle `i` a number of copies whose mean is
/// `N·wᵢ/Σw`; they differ in variance (Douc, Cappé, Moulines 2005, arXiv cs/0507025).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Resampling {
    /// Independent draws: the simplest scheme, and the one with the largest variance.
    Multinomial,
    /// One draw in each Nth of the total.
    Stratified,
    /// One draw for all Nths: each particle gets `⌊N·w⌋` to `⌈N·w⌉` copies.
    #[default]
    Systematic,
    /// `⌊N·w⌋` copies for certain, and independent draws for the remainder.
    Residual,
}

/// The weights of a population.
#[derive(Clone, Debug)]
pub struct Particles<W> {
    weights: Vec<W>,
}

impl<W: Weight> Particles<W> {
    /// Creates `count` particles at the empty prefix, each of weight 1.
    pub fn new(count: usize) -> Self {
        Particles {
            weights: vec![W::one(); count],
        }
    }

    /// Returns the number of particles.
    pub fn len(&self) -> usize {
        self.weights.len()
    }

    /// Returns `true` if there are no particles.
    pub fn is_empty(&self) -> bool {
        self.weights.is_empty()
    }

    /// Returns the weight of a particle.
    pub fn weight(&self, particle: usize) -> &W {
        &self.weights[particle]
    }

    /// Multiplies the weight of a particle by the factor of its last draw; zero gives the particle up.
    pub fn weigh(&mut self, particle: usize, factor: W) {
        self.weights[particle] = self.weights[particle].clone() * factor;
    }

    /// Multiplies the weight of each particle by a metric, which must not be negative: texts picked
    /// afterwards have the law `∝ P(w) · metric(w)` in the limit of many particles, and the mean weight
    /// estimates `Z` times the mean of the metric. Call this once all texts are whole
    /// (sampling-importance-resampling by a metric, Rubin 1987).
    pub fn tilt(&mut self, mut metric: impl FnMut(usize) -> W) {
        for particle in 0..self.len() {
            self.weigh(particle, metric(particle));
        }
    }

    /// Returns the mean weight, an unbiased estimate of `Z`.
    pub fn estimate(&self) -> W {
        sum(&self.weights) / self.number(self.len())
    }

    /// Returns `(Σw)² / Σw²`, the effective sample size: the number of particles of equal weight that would
    /// be as informative. Zero if all weights are zero.
    pub fn effective_size(&self) -> W {
        let total = sum(&self.weights);
        if !total.is_positive() {
            return W::zero();
        }
        let shares = self.weights.iter().map(|weight| weight.clone() / total.clone());
        let squares: Vec<W> = shares.map(|share| share.clone() * share).collect();
        W::one() / sum(&squares)
    }

    /// Returns `true` if the effective size is below this share of the number of particles.
    pub fn is_degenerate(&self, threshold: &W) -> bool {
        let is_alive = self.weights.iter().any(Weight::is_positive);
        is_alive && self.effective_size() < threshold.clone() * self.number(self.len())
    }

    /// Resamples the particles. Returns, for each place, the particle that it continues from, in ascending
    /// order, and gives every particle the mean weight. `step` is the number of this resampling, which
    /// separates its draws from those of others.
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

    /// Draws a particle in proportion to its weight; `None` if all weights are zero. `number` separates
    /// several such draws.
    pub fn pick<C: Chooser<W> + ?Sized>(&self, number: u32, chooser: &mut C) -> Option<usize> {
        let place = Place::new(0, number).to(Purpose::Pick);
        let is_alive = self.weights.iter().any(Weight::is_positive);
        is_alive.then(|| chooser.choose(place, &self.weights))
    }

    /// Returns how often each particle is drawn in `draws` independent draws.
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

    /// Returns `N·w/Σw` of each particle.
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

    /// Draws once from each unit of `[0, N)`, on which the particles are laid side by side with their
    /// expected copies as lengths.
    fn stratified<C: Chooser<W> + ?Sized>(&self, place: Place, chooser: &mut C) -> Vec<usize> {
        let mut copies = vec![0; self.len()];
        // The part of the present particle inside the present unit, and the part after it.
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
        // The last unit may be short by rounding; it is drawn from as a whole.
        let left = self.len() - number;
        if !unit.iter().any(Weight::is_positive) {
            unit.clone_from(&self.weights);
        }
        for draw in 0..left {
            copies[chooser.choose(place.round((number + draw) as u32), &unit)] += 1;
        }
        copies
    }

    /// Like [`stratified`](Self::stratified), with the same point in each unit. The copies change only where
    /// that point passes the end of a particle, so the draw chooses among the intervals between these ends.
    fn systematic<C: Chooser<W> + ?Sized>(&self, place: Place, chooser: &mut C) -> Vec<usize> {
        let mut ends = Vec::with_capacity(self.len());
        let mut end = (0, W::zero());
        for expected in self.expected() {
            let (more, rest) = whole(expected);
            let (carry, rest) = whole(end.1 + rest);
            end = (end.0 + more + carry, rest);
            ends.push(end.clone());
        }
        // The last particle with any weight ends at N, whatever the rounding.
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
        // The number of the points `j + at` before an end.
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

/// Returns the integer part of a number, and its fractional part.
fn whole<W: Weight>(mut number: W) -> (usize, W) {
    let mut units = 0;
    while number >= W::one() {
        number = number - W::one();
        units += 1;
    }
    (units, number)
}
