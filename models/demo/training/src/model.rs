//! The model: a decoder-only transformer of the Llama family, in the exact form of `transformers`'
//! `LlamaForCausalLM`.
//!
//! ```text
//!  ids ─ embedding ─►(+)─────────────►(+)──────────────► … ─ norm ─ embedding transposed ─► logits
//!                     │ norm ─ attention ┘│ norm ─ SwiGLU ┘   (6 layers)
//! ```
//!
//! Queries and keys are turned by rotary positions; each key-value head serves several query heads; input and
//! output share one embedding.

use crate::random::Random;
use serde_json::{Value, json};
use tch::{Device, Kind, Tensor};

/// The longest sequence that the model is declared to read.
pub(crate) const POSITIONS: usize = 4096;
/// The name of the rows that stand for tokens.
pub(crate) const EMBEDDING: &str = "model.embed_tokens.weight";
const EPSILON: f64 = 1e-5;
const THETA: f64 = 10_000.0;

/// The measures of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) layers: i64,
    pub(crate) width: i64,
    pub(crate) heads: i64,
    pub(crate) key_heads: i64,
    pub(crate) hidden: i64,
    pub(crate) vocabulary: i64,
}

impl Shape {
    /// The demo model: 4.7 million parameters.
    pub(crate) const DEMO: Self = Self {
        layers: 6,
        width: 256,
        heads: 8,
        key_heads: 4,
        hidden: 640,
        vocabulary: crate::tokenizer::VOCABULARY as i64,
    };
    /// Its draft: a tenth of that.
    pub(crate) const DRAFT: Self = Self {
        layers: 2,
        width: 128,
        heads: 4,
        key_heads: 2,
        hidden: 256,
        vocabulary: crate::tokenizer::VOCABULARY as i64,
    };

    /// The size of one attention head.
    pub(crate) fn head(&self) -> i64 {
        self.width / self.heads
    }

    /// `config.json` as `transformers` reads it.
    pub(crate) fn config(&self) -> Value {
        json!({
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "vocab_size": self.vocabulary,
            "hidden_size": self.width,
            "intermediate_size": self.hidden,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.key_heads,
            "head_dim": self.head(),
            "hidden_act": "silu",
            "max_position_embeddings": POSITIONS,
            "rms_norm_eps": EPSILON,
            "rope_theta": THETA,
            "rope_scaling": null,
            "attention_bias": false,
            "attention_dropout": 0.0,
            "mlp_bias": false,
            "tie_word_embeddings": true,
            "initializer_range": 0.02,
            "pretraining_tp": 1,
            "use_cache": true,
            "bos_token_id": null,
            "eos_token_id": crate::tokenizer::END,
            "pad_token_id": crate::tokenizer::PAD,
            "torch_dtype": "bfloat16",
        })
    }

    /// Reads back what [`Shape::config`] wrote.
    pub(crate) fn from_config(config: &Value) -> Option<Self> {
        let read = |name: &str| config[name].as_i64();
        Some(Self {
            layers: read("num_hidden_layers")?,
            width: read("hidden_size")?,
            heads: read("num_attention_heads")?,
            key_heads: read("num_key_value_heads")?,
            hidden: read("intermediate_size")?,
            vocabulary: read("vocab_size")?,
        })
    }

    /// The name and size of every parameter, in the order in which they are applied.
    pub(crate) fn parameters(&self) -> Vec<(String, Vec<i64>)> {
        let keys = self.key_heads * self.head();
        let mut all = vec![(EMBEDDING.to_owned(), vec![self.vocabulary, self.width])];
        for layer in 0..self.layers {
            let mut add = |name: &str, size: &[i64]| {
                all.push((format!("model.layers.{layer}.{name}.weight"), size.to_vec()))
            };
            add("input_layernorm", &[self.width]);
            add("self_attn.q_proj", &[self.width, self.width]);
            add("self_attn.k_proj", &[keys, self.width]);
            add("self_attn.v_proj", &[keys, self.width]);
            add("self_attn.o_proj", &[self.width, self.width]);
            add("post_attention_layernorm", &[self.width]);
            add("mlp.gate_proj", &[self.hidden, self.width]);
            add("mlp.up_proj", &[self.hidden, self.width]);
            add("mlp.down_proj", &[self.width, self.hidden]);
        }
        all.push(("model.norm.weight".to_owned(), vec![self.width]));
        all
    }
}

/// A model with its weights in f32.
pub(crate) struct Model {
    /// Its measures.
    pub(crate) shape: Shape,
    /// The weights, in the order of [`Shape::parameters`].
    pub(crate) weights: Vec<Tensor>,
    cosine: Tensor,
    sine: Tensor,
}

/// Weights for each layer, after the embedding.
const PER_LAYER: usize = 9;

/// Keys and values of the tokens read so far, for writing one token at a time.
pub(crate) type Cache = Vec<Option<(Tensor, Tensor)>>;

impl Model {
    /// A model with random weights that follow from `seed`.
    pub(crate) fn new(shape: Shape, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let weights = shape
            .parameters()
            .iter()
            .map(|(name, size)| initial(name, size, &mut random))
            .collect();
        Self::with_weights(shape, weights)
    }

    /// A model with the given weights, in the order of [`Shape::parameters`].
    pub(crate) fn with_weights(shape: Shape, weights: Vec<Tensor>) -> Self {
        let half = shape.head() / 2;
        let positions = Tensor::arange(POSITIONS as i64, (Kind::Float, Device::Cpu));
        let steps =
            Tensor::arange(half, (Kind::Float, Device::Cpu)) * (-2.0 / shape.head() as f64 * THETA.ln());
        let angles = positions.outer(&steps.exp());
        let angles = Tensor::cat(&[&angles, &angles], 1);
        Self {
            shape,
            weights,
            cosine: angles.cos(),
            sine: angles.sin(),
        }
    }

    /// How many numbers the model is made of.
    pub(crate) fn size(&self) -> usize {
        self.weights.iter().map(Tensor::numel).sum()
    }

    /// The logits after the tokens at `places` of `ids`, which is `[rows, tokens]` like their `positions`, as
    /// `[places, vocabulary]`.
    pub(crate) fn logits(&self, ids: &Tensor, positions: &Tensor, places: &Tensor) -> Tensor {
        let stream = self.advance(ids, positions, &mut self.empty_cache(), false);
        self.head(&stream.view([-1, self.shape.width]).index_select(0, places))
    }

    /// A cache for a text yet unread.
    pub(crate) fn empty_cache(&self) -> Cache {
        (0..self.shape.layers).map(|_| None).collect()
    }

    /// Reads one more token, the one at `position`, and gives the logits after it as `[rows, vocabulary]`.
    pub(crate) fn step(&self, ids: &Tensor, position: i64, cache: &mut Cache) -> Tensor {
        let positions = Tensor::arange_start(position, position + ids.size()[1], (Kind::Int64, Device::Cpu));
        let stream = self.advance(ids, &positions.unsqueeze(0), cache, true);
        self.head(&stream.select(1, -1))
    }

    #[expect(
        clippy::assign_op_pattern,
        reason = "`+=` works in place, on a tensor that the gradient still needs"
    )]
    fn advance(&self, ids: &Tensor, positions: &Tensor, cache: &mut Cache, keep: bool) -> Tensor {
        let of = |angles: &Tensor| {
            let (rows, tokens) = (positions.size()[0], positions.size()[1]);
            angles
                .index_select(0, &positions.reshape([-1]))
                .view([rows, 1, tokens, -1])
        };
        let (cosine, sine) = (of(&self.cosine), of(&self.sine));
        let mut stream = Tensor::embedding(&self.weights[0], ids, -1, false, false);
        for (layer, kept) in self.weights[1..].chunks_exact(PER_LAYER).zip(cache) {
            let normed = norm(&stream, &layer[0]);
            stream = stream + self.attend(&normed, &layer[1..5], (&cosine, &sine), kept, keep);
            let normed = norm(&stream, &layer[5]);
            let gate = normed.linear(&layer[6], None::<Tensor>).silu();
            let hidden = gate * normed.linear(&layer[7], None::<Tensor>);
            stream = stream + hidden.linear(&layer[8], None::<Tensor>);
        }
        stream
    }

    /// What may come next, from what the last layer says.
    fn head(&self, stream: &Tensor) -> Tensor {
        let last = &self.weights[self.weights.len() - 1];
        norm(stream, last).linear(&self.weights[0], None::<Tensor>)
    }

    fn attend(
        &self,
        input: &Tensor,
        weights: &[Tensor],
        turn: (&Tensor, &Tensor),
        kept: &mut Option<(Tensor, Tensor)>,
        keep: bool,
    ) -> Tensor {
        let (rows, tokens, head) = (input.size()[0], input.size()[1], self.shape.head());
        let split = |weight: &Tensor| {
            input
                .linear(weight, None::<Tensor>)
                .view([rows, tokens, -1, head])
                .transpose(1, 2)
        };
        let query = rotate(&split(&weights[0]), turn);
        let mut key = rotate(&split(&weights[1]), turn);
        let mut value = split(&weights[2]);
        let causal = tokens > 1;
        if keep {
            if let Some((keys, values)) = kept.take() {
                key = Tensor::cat(&[keys, key], 2);
                value = Tensor::cat(&[values, value], 2);
            }
            *kept = Some((key.shallow_clone(), value.shallow_clone()));
        }
        let shared = self.shape.heads / self.shape.key_heads;
        let (key, value) = (spread(&key, shared), spread(&value, shared));
        let mixed = Tensor::scaled_dot_product_attention(
            &query,
            &key,
            &value,
            None::<Tensor>,
            0.0,
            causal,
            None,
            false,
        );
        mixed
            .transpose(1, 2)
            .reshape([rows, tokens, -1])
            .linear(&weights[3], None::<Tensor>)
    }
}

/// Gives each key-value head to `times` query heads.
fn spread(heads: &Tensor, times: i64) -> Tensor {
    let size = heads.size();
    heads
        .unsqueeze(2)
        .expand([size[0], size[1], times, size[2], size[3]], false)
        .reshape([size[0], size[1] * times, size[2], size[3]])
}

fn norm(input: &Tensor, weight: &Tensor) -> Tensor {
    input.rms_norm(weight.size(), Some(weight), EPSILON)
}

/// Turns each half-pair of numbers by the angle of its position.
fn rotate(heads: &Tensor, (cosine, sine): (&Tensor, &Tensor)) -> Tensor {
    let half = heads.size()[3] / 2;
    let turned = Tensor::cat(&[-heads.narrow(3, half, half), heads.narrow(3, 0, half)], 3);
    heads * cosine + turned * sine
}

/// Matrices that write into the stream begin at zero, so that every layer begins as the identity.
fn initial(name: &str, size: &[i64], random: &mut Random) -> Tensor {
    let count = size.iter().product::<i64>() as usize;
    let spread = match (size.len(), name) {
        (1, _) => return Tensor::ones(size, (Kind::Float, Device::Cpu)),
        (_, name) if name.contains("o_proj") || name.contains("down_proj") => 0.0,
        (_, name) if name.contains("embed") => 0.05,
        _ => 0.5 / (size[1] as f64).sqrt(),
    };
    let values: Vec<f32> = (0..count).map(|_| (normal(random) * spread) as f32).collect();
    Tensor::from_slice(&values).view(size)
}

/// A draw from the normal distribution, by Box and Muller's formula.
fn normal(random: &mut Random) -> f64 {
    let unit = |bits: u64| (bits >> 11) as f64 / (1u64 << 53) as f64;
    let (first, second) = (1.0 - unit(random.bits()), unit(random.bits()));
    (-2.0 * first.ln()).sqrt() * (std::f64::consts::TAU * second).cos()
}

#[cfg(test)]
mod tests {
    use super::{Model, Shape};
    use tch::Tensor;

    const SMALL: Shape = Shape {
        layers: 2,
        width: 32,
        heads: 4,
        key_heads: 2,
        hidden: 48,
        vocabulary: 50,
    };

    #[test]
    fn the_shapes_have_the_sizes_that_the_card_names() {
        let size = |shape: Shape| {
            shape
                .parameters()
                .iter()
                .map(|(_, size)| size.iter().product::<i64>())
                .sum::<i64>()
        };
        assert_eq!(size(Shape::DEMO), 4_657_408);
        assert!(size(Shape::DRAFT) * 8 < size(Shape::DEMO));
    }

    #[test]
    fn a_configuration_reads_back() {
        assert_eq!(Shape::from_config(&Shape::DEMO.config()), Some(Shape::DEMO));
        assert_eq!(Shape::from_config(&serde_json::json!({"hidden_size": 3})), None);
    }

    #[test]
    fn token_by_token_says_what_the_whole_says() {
        tch::set_num_threads(1);
        // Output matrices begin at zero, which would hide the layers from this test.
        let mut model = Model::new(SMALL, 3);
        for weight in &mut model.weights[1..] {
            let count = weight.numel() as i64;
            let ramp = Tensor::arange(count, (tch::Kind::Float, tch::Device::Cpu)).view(&weight.size()[..]);
            *weight = &*weight + (ramp * 0.7).sin() * 0.1;
        }
        let ids = [3i64, 14, 15, 9, 2, 6];
        let places = Tensor::from_slice(&[0i64, 1, 2, 3, 4, 5]);
        let whole = model.logits(
            &Tensor::from_slice(&ids).unsqueeze(0),
            &places.unsqueeze(0),
            &places,
        );
        let mut cache = model.empty_cache();
        for (position, &id) in ids.iter().enumerate() {
            let one = model.step(
                &Tensor::from_slice(&[id]).unsqueeze(0),
                position as i64,
                &mut cache,
            );
            let apart = (one.squeeze() - whole.get(position as i64))
                .abs()
                .max()
                .double_value(&[]);
            assert!(apart < 1e-4, "{apart} apart at {position}");
        }
    }
}
