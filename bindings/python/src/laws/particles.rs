//! A population of weighted texts: sequential Monte Carlo, and importance resampling as its case without
//! resampling.
//!
//! ```text
//!   rows of the active particles ─► next ─► (tilt) ─► resample ─► which particle continues which ─► rows …
//! ```

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lexiform::Mask;
use lexiform_law as law;
use lexiform_law::{
    Allowed, Distribution, Law, LawTag, LogWeight, Resampling, Seeded, TokenProposal, Walk, Weight,
};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::arguments;
use super::setting::{Common, Logits, Setting, rows_of};
use super::text::Text;
use super::trie::{Trie, trie_of};
use crate::fork;
use crate::grammar::Grammar;

/// Draws a population of weighted answers from the rows of a model. Answers that are picked by weight have
/// the law of the model under the condition of the grammar, in the limit of many particles.
#[pyclass(frozen, module = "lexiform")]
pub(crate) struct Particles {
    setting: Setting,
    population: Mutex<Population>,
}

/// What becomes of a particle.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Its next row is wanted.
    Active,
    /// Its text is whole.
    Whole,
    /// Its text can never be whole, or has been given up; its weight is zero.
    Lost,
}

struct Particle {
    text: Text,
    stage: Stage,
    /// The log weight of the text when it was last weighed.
    weighed: f64,
}

struct Population {
    weights: law::Particles<LogWeight>,
    particles: Vec<Particle>,
    proposal: TokenProposal,
    resampling: Resampling,
    threshold: f64,
    /// The number of resamplings.
    resampled: u32,
    seed: u64,
    /// The number of the sequence of draws that the next copy has.
    next_sequence: u32,
}

#[pymethods]
impl Particles {
    /// Creates `count` particles at the beginning of an answer. A population that is less even than
    /// `ess_threshold`, the share of `count` that its effective size must have, is resampled by the scheme
    /// `resampling`: "systematic", "stratified", "residual" or "multinomial". With a threshold of 0 it never
    /// is, and the weights are those of independent answers of the local law.
    ///
    /// `proposal` is "masked" (from the masked row), "awrs" (without a mask: tokens are tried one after the
    /// other) or "twisted" (with what the texts over a trie have learned; this needs `max_tokens` or a
    /// `trie`). All draws depend on `seed`.
    ///
    /// The other arguments are those of `Sampler`.
    #[new]
    #[pyo3(signature = (grammar, count, *, proposal = "masked", resampling = "systematic", ess_threshold = 0.5, seed = 0,
        trie = None, prompt = None, max_tokens = None, ends = None, monitors = None, **warping))]
    #[expect(clippy::too_many_arguments, reason = "the keywords of a function of Python")]
    fn new(
        grammar: &Bound<'_, Grammar>,
        count: usize,
        proposal: &str,
        resampling: &str,
        ess_threshold: f64,
        seed: u64,
        trie: Option<&Bound<'_, Trie>>,
        prompt: Option<Vec<u32>>,
        max_tokens: Option<u32>,
        ends: Option<&Bound<'_, PyAny>>,
        monitors: Option<Vec<Bound<'_, PyAny>>>,
        warping: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Particles> {
        let (proposal, resampling) = (arguments::proposal(proposal)?, arguments::resampling(resampling)?);
        let law = law(count, ess_threshold, resampling, proposal)?;
        let is_watched = monitors.as_ref().is_some_and(|monitors| !monitors.is_empty());
        if is_watched && proposal == TokenProposal::Twisted {
            let message = "monitors cannot be combined with proposal=\"twisted\", which needs the tokens that all constraints \
                           together allow; use \"masked\" or \"awrs\"";
            return Err(PyValueError::new_err(message));
        }
        let common = Common {
            grammar,
            prompt,
            max_tokens,
            ends,
            warping,
            monitors,
        };
        let mut setting = Setting::new(common, law)?;
        let walks = walks(count, proposal, trie, &mut setting)?;
        let particle = |(number, walk): (u32, Walk)| Particle {
            text: Text::new(&setting, walk, seed, number),
            stage: Stage::Active,
            weighed: 0.0,
        };
        let particles: Vec<Particle> = (0..).zip(walks).map(particle).collect();
        let population = Population {
            weights: law::Particles::new(count),
            next_sequence: particles.len() as u32,
            particles,
            proposal,
            resampling,
            threshold: ess_threshold,
            resampled: 0,
            seed,
        };
        Ok(Particles {
            setting,
            population: Mutex::new(population),
        })
    }

    fn __len__(&self) -> usize {
        self.lock().particles.len()
    }

    /// The particles whose texts are not whole, in ascending order: those whose rows `next` needs.
    #[getter]
    fn active(&self) -> Vec<usize> {
        self.lock().active()
    }

    /// Draws a token for each active particle, given the model's rows after their texts: float32, one row
    /// for each of `active`, in that order. Returns the tokens; `None` stands for a particle that was given
    /// up, because no token with probability may come. `amateur` has the rows of the other model, with
    /// `contrast_beta`.
    #[pyo3(signature = (logits, *, amateur = None))]
    fn next(
        &self,
        py: Python<'_>,
        logits: &Bound<'_, PyAny>,
        amateur: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<Option<u32>>> {
        let active = self.lock().active();
        let model = rows_of(logits, active.len())?;
        let amateur = amateur.map(|rows| rows_of(rows, active.len())).transpose()?;
        let _inside = fork::enter(py);
        py.detach(|| {
            let logits = |row: usize| Logits {
                model: row_at(&model, row),
                amateur: amateur.as_ref().map(|rows| row_at(rows, row)),
            };
            let rows: Vec<Logits<'_>> = (0..active.len()).map(logits).collect();
            if self.setting.monitors.is_none() {
                return self.lock().next(&self.setting, &active, &rows);
            }
            let mut population = self.lock().copy();
            let drawn = population.next(&self.setting, &active, &rows)?;
            *self.lock() = population;
            Ok(drawn)
        })
    }

    /// Adds to the log weight of each particle, such as an energy or a metric of its text. Minus infinity
    /// gives a particle up. What is added along a text adds up: the law of the answers is that of the model
    /// times `exp` of the sum.
    fn tilt(&self, log_weights: Vec<f64>) -> PyResult<()> {
        let mut population = self.lock();
        let count = population.particles.len();
        if log_weights.len() != count {
            let given = log_weights.len();
            let message = format!("there are {given} log_weights for {count} particles");
            return Err(PyValueError::new_err(message));
        }
        let is_wrong = |weight: &f64| weight.is_nan() || *weight == f64::INFINITY;
        if let Some(number) = log_weights.iter().position(is_wrong) {
            let message = format!(
                "log_weights[{number}] is {}; it must be a number or minus infinity",
                log_weights[number]
            );
            return Err(PyValueError::new_err(message));
        }
        population.tilt(&log_weights);
        Ok(())
    }

    /// Resamples the particles if their weights have become too uneven. Returns for each place the particle
    /// that continues there, or `None` if nothing has changed. A particle that goes on stays in its place;
    /// only particles of the places of others are copies, whose caches have to be copied too.
    fn resample(&self) -> Option<Vec<usize>> {
        self.lock().resample()
    }

    /// Draws a particle in proportion to its weight, with the random numbers of this `number`; `None` if
    /// all weights are zero.
    #[pyo3(signature = (number = 0))]
    fn pick(&self, number: u32) -> Option<usize> {
        let population = self.lock();
        population.weights.pick(number, &mut population.chooser())
    }

    /// The tokens of the text of a particle so far.
    fn tokens(&self, particle: usize) -> PyResult<Vec<u32>> {
        let population = self.lock();
        match population.particles.get(particle) {
            Some(particle) => Ok(particle.text.tokens().to_vec()),
            None => Err(PyIndexError::new_err(format!(
                "particle {particle} is one of {}",
                population.particles.len()
            ))),
        }
    }

    /// The texts of all particles that are whole, with their log weights.
    #[getter]
    fn texts(&self) -> Vec<(Vec<u32>, f64)> {
        let population = self.lock();
        let particles = population.particles.iter().enumerate();
        let whole = particles.filter(|(_, particle)| particle.stage == Stage::Whole);
        let text = |(number, particle): (usize, &Particle)| {
            let weight = population.weights.weight(number).ln();
            (particle.text.tokens().to_vec(), weight)
        };
        whole.map(text).collect()
    }

    /// The log weight of each particle; minus infinity for one that was given up.
    #[getter]
    fn log_weights(&self) -> Vec<f64> {
        let population = self.lock();
        let numbers = 0..population.particles.len();
        numbers
            .map(|number| population.weights.weight(number).ln())
            .collect()
    }

    /// The log of the mean weight. Once all texts are whole, the mean weight is an unbiased estimate of the
    /// probability that the model writes a text of the grammar, times the mean of what it was tilted by.
    #[getter]
    fn log_z(&self) -> f64 {
        self.lock().weights.estimate().ln()
    }

    /// The number of particles of equal weight that would be as informative.
    #[getter]
    fn effective_size(&self) -> f64 {
        self.lock().weights.effective_size().ln().exp()
    }

    /// The law of an answer that is picked: "smc", or "sir" where nothing is resampled, with "-filtered"
    /// where filters cut the rows.
    #[getter]
    fn law(&self) -> &'static str {
        let law = match self.lock().threshold > 0.0 {
            true => LawTag::Smc,
            false => LawTag::Sir,
        };
        self.setting.tag(law).as_str()
    }
}

impl Particles {
    fn lock(&self) -> MutexGuard<'_, Population> {
        self.population.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Population {
    fn active(&self) -> Vec<usize> {
        let particles = self.particles.iter().enumerate();
        let active = particles.filter(|(_, particle)| particle.stage == Stage::Active);
        active.map(|(number, _)| number).collect()
    }

    fn chooser(&self) -> Seeded {
        Seeded::new(self.seed, 0)
    }

    /// Returns a copy, whose particles have the same draws.
    fn copy(&self) -> Population {
        let copy = |particle: &Particle| Particle {
            text: particle.text.copy(),
            ..*particle
        };
        Population {
            weights: self.weights.clone(),
            particles: self.particles.iter().map(copy).collect(),
            ..*self
        }
    }

    /// Draws a token for each of these particles. All rows and masks are checked before the first draw.
    fn next<'a>(
        &mut self,
        setting: &'a Setting,
        active: &[usize],
        rows: &[Logits<'a>],
    ) -> PyResult<Vec<Option<u32>>> {
        let row =
            |(&number, &logits): (&usize, &Logits<'a>)| -> PyResult<(Distribution<'a>, Option<Arc<Mask>>)> {
                let text = &self.particles[number].text;
                let mask = match self.proposal {
                    TokenProposal::Asked => None,
                    _ => Some(setting.mask(text.state(), setting.budget(text.tokens()))?),
                };
                Ok((setting.row(logits, text.tokens())?, mask))
            };
        let rows: Vec<_> = active.iter().zip(rows).map(row).collect::<PyResult<_>>()?;
        let draw = |(&number, (row, mask)): (&usize, (Distribution<'a>, Option<Arc<Mask>>))| {
            let text = &mut self.particles[number].text;
            let mask = mask.as_ref().map(|mask| Allowed::Words(mask.words()));
            let step = match mask.filter(|_| setting.monitors.is_none()) {
                Some(allowed) => text.next(setting, &row, allowed)?,
                None => text.next_asked(setting, &row, mask)?,
            };
            Ok(self.weigh(number, step))
        };
        active.iter().zip(rows).map(draw).collect()
    }

    /// Updates the weight of a particle after a step, and returns the token.
    fn weigh(&mut self, number: usize, step: law::Step) -> Option<u32> {
        let particle = &mut self.particles[number];
        let (token, stage) = match step {
            law::Step::Token(drawn) => (Some(drawn.token), Stage::Active),
            law::Step::End(drawn) => (Some(drawn.token), Stage::Whole),
            law::Step::Restart | law::Step::Stuck(_) => (None, Stage::Lost),
        };
        let weight = particle.text.walk.log_weight();
        let factor = match stage {
            Stage::Lost => LogWeight::zero(),
            _ => LogWeight::from_ln(weight - particle.weighed),
        };
        (particle.stage, particle.weighed) = (stage, weight);
        self.weights.weigh(number, factor);
        token
    }

    fn tilt(&mut self, log_weights: &[f64]) {
        self.weights
            .tilt(|number| LogWeight::from_ln(log_weights[number]));
        for (particle, &weight) in self.particles.iter_mut().zip(log_weights) {
            if weight == f64::NEG_INFINITY && particle.stage == Stage::Active {
                particle.stage = Stage::Lost;
            }
        }
    }

    fn resample(&mut self) -> Option<Vec<usize>> {
        let threshold = LogWeight::from_ln(self.threshold.ln());
        if !self.weights.is_degenerate(&threshold) {
            return None;
        }
        let mut chooser = self.chooser();
        let ancestors = self
            .weights
            .resample(self.resampling, self.resampled, &mut chooser);
        self.resampled += 1;
        let from = in_place(&ancestors, self.particles.len());
        // A particle that goes on stays where it is, so that no copy is made of one that was overwritten.
        for (place, &from) in from.iter().enumerate() {
            if place != from {
                let (sequence, of) = (self.next_sequence, &self.particles[from]);
                self.next_sequence = self.next_sequence.wrapping_add(1);
                self.particles[place] = Particle {
                    text: of.text.fork(sequence),
                    ..*of
                };
            }
        }
        Some(from)
    }
}

/// Returns the particle that continues in each place, from the list of those that continue: each stays in
/// its own place, and its copies take the places of others.
fn in_place(ancestors: &[usize], count: usize) -> Vec<usize> {
    let mut copies = vec![0_usize; count];
    ancestors.iter().for_each(|&ancestor| copies[ancestor] += 1);
    let more = copies.iter().enumerate();
    let mut more = more.flat_map(|(of, &copies)| std::iter::repeat_n(of, copies.saturating_sub(1)));
    let place = |place: usize| match copies[place] {
        0 => more.next().unwrap_or(place),
        _ => place,
    };
    (0..count).map(place).collect()
}

/// Returns one of several rows that follow each other.
fn row_at((numbers, width): &(Vec<f32>, usize), row: usize) -> &[f32] {
    &numbers[row * width..(row + 1) * width]
}

/// Returns the law of a population.
fn law(count: usize, threshold: f64, resampling: Resampling, proposal: TokenProposal) -> PyResult<Law> {
    if count == 0 || u32::try_from(count).is_err() {
        let message = format!("count is {count}; it must be between 1 and {}", u32::MAX);
        return Err(PyValueError::new_err(message));
    }
    if !(0.0..=1.0).contains(&threshold) {
        let message = format!("ess_threshold is {threshold}; it must be between 0 and 1");
        return Err(PyValueError::new_err(message));
    }
    Ok(match threshold > 0.0 {
        true => Law::Smc {
            particles: count,
            threshold,
            resampling,
            proposal,
        },
        false => Law::Sir {
            candidates: count,
            proposal,
        },
    })
}

/// Returns a walk for each particle.
fn walks(
    count: usize,
    proposal: TokenProposal,
    trie: Option<&Bound<'_, Trie>>,
    setting: &mut Setting,
) -> PyResult<Vec<Walk>> {
    if proposal == TokenProposal::Twisted {
        let trie = trie_of(trie, setting, "proposal=\"twisted\"")?;
        return Ok((0..count).map(|_| Walk::twisted(trie.clone())).collect());
    }
    if trie.is_some() {
        let message = "trie has no effect without proposal=\"twisted\"";
        return Err(PyValueError::new_err(message));
    }
    Ok((0..count).map(|_| setting.local_walk()).collect())
}
