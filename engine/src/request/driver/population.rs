//! Particles: several weighted texts in progress, of which unlikely ones are replaced by copies of likelier
//! ones.
//!
//! ```text
//!   read the prompt ─┬─ draw ─┐          ┌─ draw ─┐
//!                    ├─ draw ─┼ resample ┼─ draw ─┼ … all have ended ─► an answer is a text drawn by weight
//!                    └─ draw ─┘          └─ draw ─┘
//! ```
//!
//! [`lexiform_law::Particles`] computes weights, resampling and the choice of the answer; this driver maps
//! them to branches. A particle that was copied continues in its branch, and each copy in a fork of it. Texts
//! that have ended are not forked: several particles can share one of them. Without resampling, no particle
//! waits for the others.
//!
//! Nothing of any text is reported before the last has ended.

use super::{Branch, BranchEvent, Driver, Order, Orders, Report, Verdict};
use crate::error::EngineError;
use crate::request::{self, Diagnostics};
use lexiform_law::{Chooser, LawTag, LogWeight, Particles, Resampling, Weight};
use std::sync::Arc;

/// The stage of a particle.
#[derive(Clone, Copy, Debug, PartialEq)]
enum ParticleStage {
    /// A pass is drawing its next token.
    Drawing,
    /// The particle waits for the others.
    Waiting,
    /// The text is whole.
    Ended,
    /// The text can never be whole; its weight is zero.
    Lost,
}

/// A particle of the population; its weight is stored separately.
#[derive(Clone, Debug)]
struct Particle {
    branch: Branch,
    stage: ParticleStage,
    /// The number of tokens of its text.
    tokens: usize,
    /// The tokens themselves, once the text is whole.
    text: Arc<Vec<u32>>,
    /// The log weight of its text when it was last weighed.
    weighed: f64,
}

/// The settings of a population.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Plan {
    pub(crate) particles: usize,
    /// The share of the particles below which the effective size triggers resampling; 0 means never.
    pub(crate) threshold: f64,
    pub(crate) resampling: Resampling,
}

/// The particles of one request, from which its answers are drawn at the end.
pub(crate) struct Population<C> {
    plan: Plan,
    chooser: C,
    weights: Particles<LogWeight>,
    particles: Vec<Particle>,
    next_branch: Branch,
    resampled: u32,
    /// `true` for each answer whose client is still there.
    wanted: Vec<bool>,
    failure: Option<EngineError>,
    /// The effective size at the end.
    effective_size: f64,
}

impl<C: Chooser<LogWeight> + Send> Population<C> {
    pub(crate) fn new(plan: Plan, answers: usize, chooser: C) -> Self {
        Population {
            chooser,
            weights: Particles::new(plan.particles),
            particles: Vec::new(),
            next_branch: plan.particles as Branch,
            resampled: 0,
            wanted: vec![true; answers],
            failure: None,
            effective_size: 0.0,
            plan,
        }
    }

    /// Starts all particles after the prompt.
    fn begin(&mut self, orders: &mut Orders) {
        let branches = 0..self.plan.particles as Branch;
        orders.extend(
            branches
                .clone()
                .skip(1)
                .map(|to| Order::Fork { of: 0, to, at: 0 }),
        );
        orders.extend(branches.clone().map(Order::Draw));
        let particle = |branch| Particle {
            branch,
            stage: ParticleStage::Drawing,
            tokens: 0,
            text: Arc::default(),
            weighed: 0.0,
        };
        self.particles = branches.map(particle).collect();
    }

    /// Updates the weight of the particle that a report belongs to.
    fn weigh(&mut self, report: &Report, stage: ParticleStage) {
        let is_its = |particle: &Particle| {
            particle.branch == report.branch && particle.stage == ParticleStage::Drawing
        };
        let Some(number) = self.particles.iter().position(is_its) else {
            return;
        };
        let particle = &mut self.particles[number];
        let factor = match stage {
            ParticleStage::Lost => LogWeight::zero(),
            _ => LogWeight::from_ln(report.log_weight - particle.weighed),
        };
        self.weights.weigh(number, factor);
        (particle.stage, particle.tokens, particle.weighed) = (stage, report.tokens, report.log_weight);
        particle.text = report.text.clone();
    }

    /// Continues with all particles once none is being drawn any more: resamples if necessary, and draws
    /// again or chooses.
    fn go_on(&mut self, orders: &mut Orders) {
        if self
            .particles
            .iter()
            .any(|particle| particle.stage == ParticleStage::Drawing)
        {
            return;
        }
        let threshold = LogWeight::from_ln(self.plan.threshold.ln());
        if self.weights.is_degenerate(&threshold) {
            self.resample(orders);
        }
        self.draw(orders);
        if self
            .particles
            .iter()
            .all(|particle| matches!(particle.stage, ParticleStage::Ended | ParticleStage::Lost))
        {
            self.choose(orders);
        }
    }

    fn draw(&mut self, orders: &mut Orders) {
        let waiting = self
            .particles
            .iter_mut()
            .filter(|particle| particle.stage == ParticleStage::Waiting);
        for particle in waiting {
            particle.stage = ParticleStage::Drawing;
            orders.push_back(Order::Draw(particle.branch));
        }
    }

    fn resample(&mut self, orders: &mut Orders) {
        let ancestors = self
            .weights
            .resample(self.plan.resampling, self.resampled, &mut self.chooser);
        self.resampled += 1;
        let lives = |branch: Branch, old: &[Particle]| ancestors.iter().any(|&it| old[it].branch == branch);
        let old = std::mem::take(&mut self.particles);
        // Drops first: the number of branches of a request is limited.
        let lost = old.iter().filter(|particle| !lives(particle.branch, &old));
        orders.extend(lost.map(|particle| Order::Drop(particle.branch)));
        for (place, &ancestor) in ancestors.iter().enumerate() {
            let mut particle = old[ancestor].clone();
            let is_copy = place > 0 && ancestors[place - 1] == ancestor;
            if is_copy && particle.stage == ParticleStage::Waiting {
                let of = std::mem::replace(&mut particle.branch, self.next_branch);
                self.next_branch += 1;
                orders.push_back(Order::Fork {
                    of,
                    to: particle.branch,
                    at: particle.tokens,
                });
            }
            self.particles.push(particle);
        }
    }

    /// Draws the answers from the final texts.
    fn choose(&mut self, orders: &mut Orders) {
        self.effective_size = self.weights.effective_size().ln().exp();
        let answers = (0..self.wanted.len()).filter(|&answer| self.wanted[answer]);
        for answer in answers {
            orders.push_back(match self.weights.pick(answer as u32, &mut self.chooser) {
                Some(number) => Order::Tell {
                    branch: self.particles[number].branch,
                    answer,
                },
                None => Order::Fail {
                    answer,
                    error: self.failure.clone().unwrap_or(EngineError::Unanswered),
                },
            });
        }
        self.give_up(orders);
    }

    /// Returns the final text and weight of every particle.
    fn texts(&self) -> Vec<request::Particle> {
        let text = |(number, particle): (usize, &Particle)| request::Particle {
            tokens: (particle.stage == ParticleStage::Ended).then(|| particle.text.clone()),
            log_weight: self.weights.weight(number).ln(),
        };
        self.particles.iter().enumerate().map(text).collect()
    }

    fn give_up(&mut self, orders: &mut Orders) {
        orders.extend(self.particles.iter().map(|particle| Order::Drop(particle.branch)));
    }
}

impl<C: Chooser<LogWeight> + Send> Driver for Population<C> {
    fn next(&mut self, report: &Report, orders: &mut Orders) {
        match &report.event {
            BranchEvent::Begun => return orders.push_back(Order::Read(report.branch)),
            BranchEvent::Read => return self.begin(orders),
            BranchEvent::Failed(error) if self.particles.is_empty() || report.breakdown().is_some() => {
                let fail = |answer| Order::Fail {
                    answer,
                    error: error.clone(),
                };
                orders.extend((0..self.wanted.len()).map(fail));
                return self.give_up(orders);
            }
            BranchEvent::Drew | BranchEvent::Scored | BranchEvent::Ranked | BranchEvent::Weighed => {
                self.weigh(report, ParticleStage::Waiting)
            }
            BranchEvent::Ended(_) if report.is_whole() => self.weigh(report, ParticleStage::Ended),
            BranchEvent::Ended(_) => {
                self.weigh(report, ParticleStage::Lost);
                orders.push_back(Order::Drop(report.branch));
            }
            BranchEvent::Failed(error) => {
                self.failure.get_or_insert(error.clone());
                self.weigh(report, ParticleStage::Lost);
                orders.push_back(Order::Drop(report.branch));
            }
        }
        if self.plan.threshold <= 0.0 {
            self.draw(orders);
        }
        self.go_on(orders);
    }

    fn leave(&mut self, answer: usize, orders: &mut Orders) {
        if let Some(wanted) = self.wanted.get_mut(answer) {
            *wanted = false;
        }
        if self.wanted.iter().all(|wanted| !wanted) {
            orders.push_back(Order::Drop(0));
            self.give_up(orders);
        }
    }

    fn verdict(&self, _: usize) -> Option<Verdict> {
        let law = match self.plan.threshold > 0.0 {
            true => LawTag::Smc,
            false => LawTag::Sir,
        };
        Some(Verdict {
            law,
            log_weight: Some(self.weights.estimate().ln()),
            diagnostics: Some(Diagnostics::Particles {
                particles: self.plan.particles,
                effective_size: self.effective_size,
                resampled: self.resampled as usize,
            }),
            particles: self.texts(),
        })
    }

    fn branch_of(&self, _: usize) -> Option<Branch> {
        None
    }
}
