//! Several predictors combined into one.

use super::{Candidate, Context, Observation, Predictor};

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
    #[default]
    First,
    /// Takes the candidates of all, each with its largest chance: the fused trees of RASD ([Quan et al.
    /// 2025](https://arxiv.org/abs/2503.03434)).
    All,
}

/// A sequence of predictors. All of them learn.
pub struct Combined {
    /// The predictors in order.
    pub layers: Vec<Layer>,
    /// The rule that combines their candidates.
    pub union: Union,
}

impl Predictor for Combined {
    fn predict(&self, at: &Context<'_>, found: &mut Vec<Candidate>) {
        let begin = found.len();
        for layer in self
            .layers
            .iter()
            .filter(|layer| layer.depths.contains(&at.path.len()))
        {
            if self.union == Union::First && found.len() > begin {
                return;
            }
            let mut more = Vec::new();
            layer.predictor.predict(at, &mut more);
            for candidate in more {
                match found[begin..]
                    .iter_mut()
                    .find(|known| known.token == candidate.token)
                {
                    Some(known) if known.chance < candidate.chance => *known = candidate,
                    Some(_) => {}
                    None => found.push(candidate),
                }
            }
        }
        found[begin..].sort_by(|one, other| other.chance.total_cmp(&one.chance));
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
