//! Rotary positions: how fast each pair of dimensions rotates, and the ways to stretch that to longer texts.
//!
//! Pair `i` of `d/2` rotates by `theta^(-2i/d)` per position. The scalings slow some pairs down: `linear` all
//! of them, `llama3` and `yarn` those that rotate less than a few times within the original context,
//! `longrope` each by a separate factor.

use std::f64::consts::TAU;

/// A way to stretch the context.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Scaling {
    /// As trained. Also `dynamic`, which changes nothing up to the configured context, and the loop never
    /// goes beyond that.
    None,
    Linear {
        factor: f64,
    },
    Llama3 {
        factor: f64,
        low: f64,
        high: f64,
        original: f64,
    },
    Yarn(Yarn),
    /// One factor per pair. There is a second list for texts beyond the original context, which would require
    /// rotating all cached keys anew when a text grows past it: the context ends there instead.
    Long {
        factors: Vec<f64>,
        /// The factor of cosines and sines.
        attention: f64,
        /// The number of positions to which the factors apply.
        original: usize,
    },
}

/// See "YaRN: Efficient Context Window Extension of Large Language Models", Peng et al. 2023.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Yarn {
    pub(crate) factor: f64,
    pub(crate) original: f64,
    pub(crate) beta_fast: f64,
    pub(crate) beta_slow: f64,
    /// The factor of cosines and sines.
    pub(crate) attention: f64,
    /// `true` if the bounds of the ramp are rounded outwards.
    pub(crate) truncate: bool,
}

/// A rotary encoding of positions.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rope {
    pub(crate) theta: f64,
    /// The number of leading dimensions of a head that are rotated.
    pub(crate) width: usize,
    pub(crate) scaling: Scaling,
}

impl Rope {
    /// Returns the angle per position of each pair of dimensions.
    pub(crate) fn frequencies(&self) -> Vec<f64> {
        let plain = |pair: usize| self.theta.powf(-2.0 * pair as f64 / self.width as f64);
        let pairs = 0..self.width / 2;
        match &self.scaling {
            Scaling::None => pairs.map(plain).collect(),
            Scaling::Linear { factor } => pairs.map(|pair| plain(pair) / factor).collect(),
            Scaling::Llama3 {
                factor,
                low,
                high,
                original,
            } => pairs
                .map(|pair| {
                    let turns = original * plain(pair) / TAU;
                    // 1 keeps the frequency, 0 divides it by the factor.
                    let keep = ((turns - low) / (high - low)).clamp(0.0, 1.0);
                    plain(pair) * (keep + (1.0 - keep) / factor)
                })
                .collect(),
            Scaling::Yarn(yarn) => {
                let (from, to) = yarn.ramp(self.theta, self.width);
                pairs
                    .map(|pair| {
                        let slow = ((pair as f64 - from) / (to - from)).clamp(0.0, 1.0);
                        plain(pair) * (1.0 - slow + slow / yarn.factor)
                    })
                    .collect()
            }
            Scaling::Long { factors, .. } => pairs.map(|pair| plain(pair) / factors[pair]).collect(),
        }
    }

    /// Returns the sine and cosine of the angle of every pair at each of `positions` positions, position by
    /// position.
    pub(crate) fn turns(&self, positions: usize) -> Vec<(f64, f64)> {
        let (frequencies, scale) = (self.frequencies(), self.attention());
        let turn = |position: usize| {
            // The angle is rounded like in the reference implementation: at far positions the difference is
            // visible.
            let angle = move |&frequency: &f64| f64::from(frequency as f32 * position as f32);
            let turns = frequencies.iter().map(angle).map(f64::sin_cos);
            turns.map(move |(sine, cosine)| (sine * scale, cosine * scale))
        };
        (0..positions).flat_map(turn).collect()
    }

    /// Returns the number of positions that the encoding supports, if that is not the model's own limit.
    pub(crate) fn max_positions(&self) -> Option<usize> {
        match &self.scaling {
            Scaling::Long { original, .. } => Some(*original),
            _ => None,
        }
    }

    /// Returns the factor of cosines and sines.
    pub(crate) fn attention(&self) -> f64 {
        match &self.scaling {
            Scaling::Yarn(yarn) => yarn.attention,
            Scaling::Long { attention, .. } => *attention,
            _ => 1.0,
        }
    }
}

impl Yarn {
    /// Returns the range of pairs in which frequencies change from kept to divided.
    fn ramp(&self, theta: f64, width: usize) -> (f64, f64) {
        let dim = width as f64;
        // The pair that rotates this often within the original context.
        let pair = |turns: f64| dim * (self.original / (turns * TAU)).ln() / (2.0 * theta.ln());
        let (mut from, mut to) = (pair(self.beta_fast), pair(self.beta_slow));
        if self.truncate {
            (from, to) = (from.floor(), to.ceil());
        }
        (from, to) = (from.max(0.0), to.min(dim - 1.0));
        (from, if from == to { to + 0.001 } else { to })
    }
}

/// Returns the attention factor that YaRN's authors found for a stretch.
pub(crate) fn yarn_attention(factor: f64, mscale: f64) -> f64 {
    if factor <= 1.0 {
        1.0
    } else {
        0.1 * mscale * factor.ln() + 1.0
    }
}

#[cfg(test)]
mod tests {
    use crate::torch::checkpoint::files::ModelFiles;
    use crate::torch::config::Config;
    use serde_json::{Value, json};

    fn read(mut config: Value, change: impl Fn(&mut Value)) -> Config {
        change(&mut config);
        let text: &'static str = config.to_string().leak();
        let files = vec![("config.json", text.as_bytes())].leak();
        Config::read(&ModelFiles::embedded("test", files)).unwrap()
    }

    fn kinds() -> Vec<Value> {
        serde_json::from_str(include_str!("../../../tests/fixtures/rope.json")).unwrap()
    }

    #[test]
    fn frequencies_are_those_of_transformers() {
        for kind in kinds() {
            let config = read(kind["config"].clone(), |_| ());
            let expected: Vec<f64> = kind["frequencies"]
                .as_array()
                .unwrap()
                .iter()
                .map(|number| number.as_f64().unwrap())
                .collect();
            let found = config.ropes[0].frequencies();
            assert_eq!(found.len(), expected.len());
            for (found, expected) in found.iter().zip(&expected) {
                assert!(
                    (found / expected - 1.0).abs() < 1e-5,
                    "{}: {found} {expected}",
                    kind["name"]
                );
            }
            assert!((config.ropes[0].attention() - kind["attention"].as_f64().unwrap()).abs() < 1e-6);
        }
    }

    #[test]
    fn the_older_spelling_means_the_same() {
        for kind in kinds() {
            let new = read(kind["config"].clone(), |_| ());
            let old = read(kind["config"].clone(), |config| {
                let mut scaling = config["rope_parameters"].take();
                config["rope_theta"] = scaling["rope_theta"].take();
                scaling["type"] = scaling["rope_type"].take();
                let scaling: serde_json::Map<_, _> = scaling
                    .as_object()
                    .unwrap()
                    .clone()
                    .into_iter()
                    .filter(|(_, value)| !value.is_null())
                    .collect();
                config["rope_scaling"] = json!(scaling);
            });
            assert_eq!(new.ropes, old.ropes, "{}", kind["name"]);
        }
    }
}
