//! Several predictors combined into one.

use super::trust::Trust;
use super::{Candidate, Context, Observation, Predictor};
use crate::draft::Origin;

/// A predictor with the depths of a draft at which it predicts.
pub struct Layer {
    /// The predictor.
    pub predictor: Box<dyn Predictor>,
    /// The range of depths (drafted tokens before a place, from 0) at which it predicts; at other depths it
    /// only learns. A horizontal cascade ([Chen et al. 2023](https://arxiv.org/abs/2312.11462)) uses good
    /// predictors early and cheap ones late.
    pub depths: std::ops::Range<usize>,
}

impl Layer {
    /// Creates a layer that predicts at every depth.
    pub fn new(predictor: impl Predictor + 'static) -> Layer {
        Layer {
            predictor: Box::new(predictor),
            depths: 0..usize::MAX,
        }
    }
}

/// The rule that combines the candidates of several predictors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Union {
    /// Takes the candidates of the first predictor that has any: hierarchy drafting ([Cho et al.
    /// 2025](https://arxiv.org/abs/2502.05609)), where the most recent store comes first.
    First,
    /// Takes the candidates of the predictor whose best candidate is the likeliest, by its chance and by how
    /// often candidates of its predictor with such chances came; of equally sure predictors, the first. A
    /// predictor that always has some candidates, such as one that knows the state of a constraint alone,
    /// does not keep others from being asked.
    #[default]
    Surest,
    /// Takes the candidates of all, each with its largest chance: the fused trees of RASD ([Quan et al.
    /// 2025](https://arxiv.org/abs/2503.03434)).
    All,
}

/// A sequence of predictors. All of them learn.
pub struct Combined {
    pub(super) layers: Vec<Layer>,
    union: Union,
    trust: Trust,
}

impl Combined {
    /// Combines predictors, which are in this order, by a rule.
    pub fn new(layers: Vec<Layer>, union: Union) -> Combined {
        Combined {
            layers,
            union,
            trust: Trust::default(),
        }
    }

    /// Returns how likely the best of some candidates is to be drawn, as far as candidates like it were; 0
    /// for none.
    fn surety(&self, candidates: &[Candidate]) -> f32 {
        let best = candidates
            .iter()
            .max_by(|one, other| one.chance.total_cmp(&other.chance));
        best.map_or(0.0, |best| self.trust.of(best.origin, best.chance))
    }
}

/// Adds candidates to others; of those with the same token, the likelier one stays.
fn merge(taken: &mut Vec<Candidate>, more: Vec<Candidate>) {
    for candidate in more {
        match taken.iter_mut().find(|known| known.token == candidate.token) {
            Some(known) if known.chance < candidate.chance => *known = candidate,
            Some(_) => {}
            None => taken.push(candidate),
        }
    }
}

impl Predictor for Combined {
    fn predict(&self, at: &Context<'_>, found: &mut Vec<Candidate>) {
        let depth = at.path.len();
        let mut taken: Vec<Candidate> = Vec::new();
        for layer in self.layers.iter().filter(|layer| layer.depths.contains(&depth)) {
            let mut more = Vec::new();
            layer.predictor.predict(at, &mut more);
            match self.union {
                Union::First => taken = more,
                Union::Surest if self.surety(&more) > self.surety(&taken) => taken = more,
                Union::Surest => {}
                Union::All => merge(&mut taken, more),
            }
            if self.union == Union::First && !taken.is_empty() {
                break;
            }
        }
        taken.sort_by(|one, other| other.chance.total_cmp(&one.chance));
        found.append(&mut taken);
    }

    fn learn(&mut self, at: &Context<'_>, seen: &Observation<'_>) {
        for layer in &mut self.layers {
            layer.predictor.learn(at, seen);
        }
    }

    fn learn_phrase(&mut self, phrase: &[u32]) {
        for layer in &mut self.layers {
            layer.predictor.learn_phrase(phrase);
        }
    }

    fn judge(&mut self, origin: Origin, chance: f32, is_confirmed: bool) {
        self.trust.judge(origin, chance, is_confirmed);
    }

    fn record(&mut self, answer: &[u32]) {
        for layer in &mut self.layers {
            layer.predictor.record(answer);
        }
    }

    fn save(&self, keep: &mut dyn FnMut(&'static str, Vec<u8>)) {
        for layer in &self.layers {
            layer.predictor.save(keep);
        }
    }

    fn restore(&mut self, name: &str, part: &[u8]) -> bool {
        let layers = self.layers.iter_mut();
        // Each layer restores the part, even if another one has recognised it.
        let known = layers.map(|layer| layer.predictor.restore(name, part));
        known.filter(|&is_known| is_known).count() > 0
    }

    fn bytes(&self) -> usize {
        self.layers.iter().map(|layer| layer.predictor.bytes()).sum()
    }
}
