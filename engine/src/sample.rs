//! From a row of logits to one token, with the figures that travel with it.
//!
//! ```text
//!   logits ─ bias, penalties ─ temperature ─ top-k, top-p, min-p ─► p ─ mask ─► p·1_A, with mass m ─► draw
//! ```
//!
//! The draw depends on the seed and on the token's position only, not on how many passes it took to get there: so
//! drafting, batching, preemption and chunked prompts leave the text as it is.

use crate::error::EngineError;
use crate::request::Sampling;

/// A drawn token.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Draw {
    pub(crate) token: u32,
    /// Under the model itself.
    pub(crate) logprob: f32,
    /// `ln p` under the warped law.
    pub(crate) log_p: f64,
    /// `ln m`.
    pub(crate) log_mass: f64,
    pub(crate) top: Vec<(u32, f32)>,
}

/// Working memory, kept between draws.
#[derive(Default)]
pub(crate) struct Sampler {
    weights: Vec<f64>,
    order: Vec<u32>,
}

/// What a draw depends on beside the logits.
pub(crate) struct Context<'a> {
    pub(crate) sampling: &'a Sampling,
    /// Tokens generated so far.
    pub(crate) generated: &'a [u32],
    pub(crate) logprobs: Option<u8>,
    /// Packed bits of the allowed tokens.
    pub(crate) allowed: &'a [u32],
    /// Packed bits of all tokens that exist.
    pub(crate) usable: &'a [u32],
}

fn has(words: &[u32], token: usize) -> bool {
    words
        .get(token / 32)
        .is_some_and(|word| word >> (token % 32) & 1 == 1)
}

impl Sampler {
    pub(crate) fn draw(&mut self, logits: &[f32], context: &Context<'_>) -> Result<Draw, EngineError> {
        let raw_norm = log_sum_exp(logits, context.usable);
        if !raw_norm.is_finite() {
            return Err(EngineError::Model("the logits are not finite".to_string()));
        }
        self.warp(logits, context);
        let greedy = context.sampling.temperature == 0.0;
        let total: f64 = self.weights.iter().sum();
        let mass: f64 = self.allowed(context).map(|token| self.weights[token]).sum();
        if mass <= 0.0 {
            return Err(EngineError::DeadEnd {
                generated: context.generated.len(),
            });
        }
        let token = match greedy {
            true => self.most_likely(context),
            false => self.choose(
                uniform(context.sampling.seed, context.generated.len() as u64) * mass,
                context,
            ),
        };
        Ok(Draw {
            token: token as u32,
            logprob: (f64::from(logits[token]) - raw_norm) as f32,
            log_p: (self.weights[token] / total).ln(),
            log_mass: (mass / total).ln(),
            top: self.top(logits, raw_norm, context),
        })
    }

    fn allowed<'a>(&self, context: &'a Context<'_>) -> impl Iterator<Item = usize> + use<'a> {
        (0..self.weights.len()).filter(|&token| has(context.allowed, token))
    }

    /// Fills `weights` with numbers proportional to `p`.
    fn warp(&mut self, logits: &[f32], context: &Context<'_>) {
        let sampling = context.sampling;
        let temperature = if sampling.temperature == 0.0 {
            1.0
        } else {
            f64::from(sampling.temperature)
        };
        self.weights.clear();
        self.weights.extend(logits.iter().map(|&logit| f64::from(logit)));
        for &(token, bias) in &sampling.logit_bias {
            if let Some(weight) = self.weights.get_mut(token as usize) {
                *weight += f64::from(bias);
            }
        }
        self.penalise(context);
        let usable = |token: usize| has(context.usable, token);
        let weights = self
            .weights
            .iter()
            .enumerate()
            .filter(|&(token, _)| usable(token));
        let max = weights
            .map(|(_, &weight)| weight)
            .fold(f64::NEG_INFINITY, f64::max);
        for (token, weight) in self.weights.iter_mut().enumerate() {
            *weight = if usable(token) {
                ((*weight - max) / temperature).exp()
            } else {
                0.0
            };
        }
        if sampling.temperature > 0.0 {
            self.filter(sampling);
        }
    }

    fn penalise(&mut self, context: &Context<'_>) {
        let Sampling {
            presence_penalty,
            frequency_penalty,
            ..
        } = *context.sampling;
        if presence_penalty == 0.0 && frequency_penalty == 0.0 {
            return;
        }
        for (index, &token) in context.generated.iter().enumerate() {
            self.weights[token as usize] -= f64::from(frequency_penalty);
            if !context.generated[..index].contains(&token) {
                self.weights[token as usize] -= f64::from(presence_penalty);
            }
        }
    }

    fn filter(&mut self, sampling: &Sampling) {
        if sampling.top_k.is_none() && sampling.top_p >= 1.0 && sampling.min_p <= 0.0 {
            return;
        }
        let weights = &mut self.weights;
        self.order.clear();
        self.order.extend(0..weights.len() as u32);
        self.order
            .sort_by(|&a, &b| weights[b as usize].total_cmp(&weights[a as usize]));
        let total: f64 = weights.iter().sum();
        let floor = f64::from(sampling.min_p) * weights[self.order[0] as usize];
        let mut before = 0.0;
        for (rank, &token) in self.order.iter().enumerate() {
            let weight = &mut weights[token as usize];
            let kept = before < f64::from(sampling.top_p) * total
                && sampling.top_k.is_none_or(|k| rank < k as usize)
                && *weight >= floor;
            before += *weight;
            if !kept {
                *weight = 0.0;
            }
        }
    }

    fn most_likely(&self, context: &Context<'_>) -> usize {
        let better = |best: usize, token: usize| {
            if self.weights[token] > self.weights[best] {
                token
            } else {
                best
            }
        };
        self.allowed(context).reduce(better).unwrap_or(0)
    }

    fn choose(&self, target: f64, context: &Context<'_>) -> usize {
        let mut sum = 0.0;
        let mut last = 0;
        for token in self.allowed(context).filter(|&token| self.weights[token] > 0.0) {
            sum += self.weights[token];
            last = token;
            if target < sum {
                break;
            }
        }
        last
    }

    fn top(&mut self, logits: &[f32], norm: f64, context: &Context<'_>) -> Vec<(u32, f32)> {
        let Some(count) = context.logprobs.filter(|&count| count > 0) else {
            return Vec::new();
        };
        self.order.clear();
        self.order
            .extend((0..logits.len() as u32).filter(|&token| has(context.usable, token as usize)));
        self.order
            .sort_by(|&a, &b| logits[b as usize].total_cmp(&logits[a as usize]));
        let logprob = |&token: &u32| (token, (f64::from(logits[token as usize]) - norm) as f32);
        self.order.iter().take(usize::from(count)).map(logprob).collect()
    }
}

fn log_sum_exp(logits: &[f32], usable: &[u32]) -> f64 {
    let used = || {
        logits
            .iter()
            .enumerate()
            .filter(|&(token, _)| has(usable, token))
            .map(|(_, &logit)| logit)
    };
    let max = used().fold(f32::NEG_INFINITY, f32::max);
    used().map(|logit| f64::from(logit - max).exp()).sum::<f64>().ln() + f64::from(max)
}

/// A number in `[0, 1)` from a seed and a counter.
fn uniform(seed: u64, counter: u64) -> f64 {
    let mix = |mut x: u64| {
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    };
    (mix(mix(seed).wrapping_add(counter.wrapping_mul(0x9e37_79b9_7f4a_7c15))) >> 11) as f64
        / (1u64 << 53) as f64
}
