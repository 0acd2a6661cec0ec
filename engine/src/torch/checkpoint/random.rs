//! Untrained models: the shapes of known models with random weights, for measurements that do not depend on
//! the text.
//!
//! The weights are normally distributed with a standard deviation of 0.02, as they are before training;
//! vectors, which are scales of norms, are ones. Making billions of random numbers takes minutes, so a
//! stretch of a million is made once, and each tensor repeats that stretch from a different start.

use serde_json::{Value, json};
use std::cell::OnceCell;
use std::fmt;
use std::str::FromStr;
use tch::{Device, Kind, TchError, Tensor};

/// The file that a shape replaces.
pub(super) const CONFIG: &str = "config.json";
/// The number type in which the checkpoints of these shapes are stored.
pub(super) const KIND: Kind = Kind::BFloat16;

/// The number of random numbers that are made. It is a prime, so that the rows of a matrix, whatever their
/// length, are not all the same.
const STRETCH: i64 = 1_048_583;
/// The standard deviation of weights.
const DEVIATION: f64 = 0.02;

/// The shape of a model: those of SmolLM 2 (135m), Llama 3.2 (1b, 3b) and Llama 3.1 (8b), all with tied
/// embeddings, and a tiny one that is made in a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Two layers of 256.
    Tiny,
    /// 135 million weights.
    M135,
    /// 1.24 billion weights.
    B1,
    /// 3.2 billion weights.
    B3,
    /// 7.5 billion weights.
    B8,
}

impl Shape {
    /// All shapes.
    pub const ALL: [Shape; 5] = [Shape::Tiny, Shape::M135, Shape::B1, Shape::B3, Shape::B8];

    fn name(self) -> &'static str {
        match self {
            Shape::Tiny => "tiny",
            Shape::M135 => "135m",
            Shape::B1 => "1b",
            Shape::B3 => "3b",
            Shape::B8 => "8b",
        }
    }

    /// Returns the config.json of a model of this shape with these end tokens.
    pub(super) fn config(self, eos: Value) -> Value {
        let [hidden, inner, layers, heads, key_heads, size, vocabulary] = match self {
            Shape::Tiny => [256, 640, 2, 8, 4, 32, 4_096],
            Shape::M135 => [576, 1536, 30, 9, 3, 64, 49_152],
            Shape::B1 => [2048, 8192, 16, 32, 8, 64, 128_256],
            Shape::B3 => [3072, 8192, 28, 24, 8, 128, 128_256],
            Shape::B8 => [4096, 14336, 32, 32, 8, 128, 128_256],
        };
        json!({
            "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": hidden,
            "intermediate_size": inner, "num_hidden_layers": layers, "num_attention_heads": heads,
            "num_key_value_heads": key_heads, "head_dim": size, "vocab_size": vocabulary, "hidden_act": "silu",
            "max_position_embeddings": 8192, "rms_norm_eps": 1e-5, "rope_theta": 500_000.0,
            "tie_word_embeddings": true, "torch_dtype": "bfloat16", "eos_token_id": eos,
        })
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Shape {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = Self::ALL.into_iter().find(|shape| shape.name() == text);
        named.ok_or_else(|| format!("{text:?} is not a shape; expected tiny, 135m, 1b, 3b or 8b"))
    }
}

/// The source of random tensors.
#[derive(Default)]
pub(super) struct RandomWeights {
    stretch: OnceCell<Tensor>,
}

impl RandomWeights {
    /// Returns the tensor with this name, which is always the same.
    pub(super) fn tensor(&self, name: &str, shape: &[i64]) -> Result<Tensor, TchError> {
        let options = (KIND, Device::Cpu);
        if shape.len() < 2 {
            return Tensor::f_ones(shape, options);
        }
        let stretch = match self.stretch.get() {
            Some(stretch) => stretch.shallow_clone(),
            None => {
                let made = normal_numbers()?;
                self.stretch.get_or_init(|| made).shallow_clone()
            }
        };
        let count: i64 = shape.iter().product();
        let from = i64::from(crc32fast::hash(name.as_bytes())) % STRETCH;
        let times = (from + count) / STRETCH + 1;
        stretch.f_repeat([times])?.f_narrow(0, from, count)?.f_view(shape)
    }
}

/// Returns the stretch, by the sum of twelve uniform numbers less six: near enough to normal, and the same on
/// every machine.
fn normal_numbers() -> Result<Tensor, TchError> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut uniform = || {
        // xorshift64* (Marsaglia 2003, Vigna 2016).
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 40) as f64 / f64::from(1 << 24)
    };
    let mut normal = || (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
    let numbers: Vec<f32> = (0..STRETCH).map(|_| (DEVIATION * normal()) as f32).collect();
    Tensor::f_from_slice(&numbers)?.f_to_kind(KIND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_normal_and_their_rows_differ() {
        let random = RandomWeights::default();
        let made = random.tensor("model.embed_tokens.weight", &[2000, 1024]).unwrap();
        assert_eq!(made.size(), [2000, 1024]);
        let numbers = made.to_kind(Kind::Float);
        let mean = f64::try_from(numbers.mean(Kind::Float)).unwrap();
        let deviation = f64::try_from(numbers.std(true)).unwrap();
        assert!(
            mean.abs() < 1e-4 && (deviation - DEVIATION).abs() < 1e-4,
            "{mean} {deviation}"
        );
        assert!(!numbers.get(0).equal(&numbers.get(1)) && !numbers.get(0).equal(&numbers.get(1024)));
        let again = RandomWeights::default()
            .tensor("model.embed_tokens.weight", &[2000, 1024])
            .unwrap();
        assert!(again.equal(&made));
        let other = random
            .tensor("model.layers.0.mlp.up_proj.weight", &[2000, 1024])
            .unwrap();
        assert!(!other.equal(&made));
        let scale = random.tensor("model.norm.weight", &[8]).unwrap();
        assert_eq!(f64::try_from(scale.sum(Kind::Float)).unwrap(), 8.0);
    }

    #[test]
    fn shapes_are_read_and_written() {
        for shape in Shape::ALL {
            assert_eq!(shape.to_string().parse(), Ok(shape));
        }
        assert!(
            "7b".parse::<Shape>()
                .unwrap_err()
                .contains("tiny, 135m, 1b, 3b or 8b")
        );
    }
}
