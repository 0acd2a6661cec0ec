//! A decoder as data: what a model's config.json says, checked.
//!
//! ```text
//!   config.json ─► read (fields, and what is wrong with them)
//!                    │     family: what a model_type implies, and how its tensors are called
//!                    └──► block, rope ─► Config ─► decoder, which knows no family
//! ```
//!
//! The reader takes what `transformers` 4 and 5 write. A value that would change the computation and is not understood
//! is an error: a model that runs with a wrong idea of itself writes plausible nonsense.

mod block;
mod family;
mod read;
mod rope;

use super::attention::Heads;
use super::files::ModelFiles;
use super::rope::Rope;
use crate::error::LoadError;
pub(crate) use family::{Family, Names};
use serde_json::Value;

const FILE: &str = "config.json";

/// Everything that the decoder needs to know.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Config {
    pub(crate) family: &'static Family,
    pub(crate) vocab: i64,
    pub(crate) hidden: i64,
    pub(crate) max_positions: usize,
    /// What embeddings are multiplied by.
    pub(crate) embedding_scale: Option<f64>,
    /// What is added in norms to what is divided by.
    pub(crate) eps: f64,
    pub(crate) attention: Attention,
    /// How far back attention looks in layers that do not look back all the way.
    pub(crate) window: Option<i64>,
    /// The ways to turn that layers have.
    pub(crate) ropes: Vec<Rope>,
    pub(crate) activation: Activation,
    pub(crate) mlp_bias: bool,
    pub(crate) layers: Vec<Block>,
    /// Logits `x` become `cap · tanh(x / cap)`.
    pub(crate) logit_cap: Option<f64>,
    /// Whether the head is the embedding.
    pub(crate) tied: bool,
    pub(crate) eos: Vec<u32>,
}

/// What attention is like in all layers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Attention {
    pub(crate) heads: i64,
    pub(crate) kv_heads: i64,
    pub(crate) head_dim: i64,
    pub(crate) qkv_bias: bool,
    pub(crate) out_bias: bool,
    /// What products of queries and keys are multiplied by, if that is not one over the root of the head size.
    pub(crate) scale: Option<f64>,
    /// Scaled products `x` become `cap · tanh(x / cap)`.
    pub(crate) cap: Option<f64>,
}

impl Attention {
    pub(super) fn heads(&self) -> Heads {
        Heads {
            queries: self.heads,
            keys: self.kv_heads,
            size: self.head_dim,
        }
    }
}

/// One layer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Block {
    pub(crate) windowed: bool,
    /// Which of the ropes turns its queries and keys, if any.
    pub(crate) rope: Option<usize>,
    pub(crate) mlp: Mlp,
}

/// The second half of a layer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Mlp {
    /// One network of this width.
    Dense { width: i64 },
    /// So many networks of this width, of which a token uses `chosen`.
    Experts {
        count: i64,
        chosen: i64,
        width: i64,
        /// Whether the shares of the chosen ones are made to sum to one.
        normalised: bool,
    },
}

/// A norm's kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NormKind {
    /// By the root of the mean of squares.
    Rms,
    /// The same, with scales that are stored less one.
    RmsPlusOne,
    /// By mean and variance, with a bias.
    Layer,
}

/// What queries and keys are normed over before they are turned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QkNorm {
    /// They are not.
    None,
    /// Each head.
    Head,
    /// All heads of a token.
    Token,
}

/// What lies between the matrices of a layer's second half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activation {
    Silu,
    /// With the error function.
    Gelu,
    /// The approximation with tanh.
    GeluTanh,
    Relu,
}

impl Config {
    pub(crate) fn read(files: &ModelFiles) -> Result<Self, LoadError> {
        let text = files.text(FILE)?;
        let root: Value = serde_json::from_str(&text)
            .map_err(|error| files.malformed(FILE, format!("not JSON: {error}")))?;
        if !root.is_object() {
            return Err(files.malformed(FILE, "expected a JSON object"));
        }
        read::Reader::new(files, &root).config()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn stored(folder: &str) -> Value {
        let path = format!(
            "{}/tests/fixtures/{folder}/config.json",
            env!("CARGO_MANIFEST_DIR")
        );
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
    }

    fn read(config: &Value) -> Config {
        let text: &'static str = config.to_string().leak();
        let files = vec![("config.json", text.as_bytes())].leak();
        Config::read(&ModelFiles::embedded("test", files)).unwrap()
    }

    /// The configuration of a folder without these fields, and with those.
    fn changed(folder: &str, without: &[&str], with: Value) -> Value {
        let mut config = stored(folder);
        let fields = config.as_object_mut().unwrap();
        fields.retain(|name, _| !without.contains(&name.as_str()));
        fields.extend(with.as_object().unwrap().clone());
        config
    }

    /// Guards against models that were published with an older `transformers`, or say nothing of what goes without saying.
    #[test]
    fn the_older_spelling_means_the_same() {
        let longrope = json!({"type": "longrope", "short_factor": [1.0, 1.25], "long_factor": [2.0, 4.0]});
        for (folder, without, with) in [
            (
                "gemma3",
                &["layer_types", "rope_parameters"][..],
                json!({"rope_theta": 5000.0, "rope_local_base_freq": 100.0,
                    "rope_scaling": {"rope_type": "linear", "factor": 8.0}}),
            ),
            (
                "gemma2",
                &[
                    "layer_types",
                    "tie_word_embeddings",
                    "hidden_activation",
                    "rope_parameters",
                ],
                json!({"hidden_act": "gelu"}),
            ),
            (
                "phi4",
                &["rope_parameters"],
                json!({"rope_theta": 10000.0, "partial_rotary_factor": 0.5, "rope_scaling": longrope}),
            ),
            ("qwen3_moe", &["num_local_experts"], json!({"num_experts": 6})),
            ("mixtral", &["rope_parameters", "rms_norm_eps"], json!({})),
            (
                "smollm3",
                &["layer_types", "no_rope_layers", "rope_parameters"],
                json!({"no_rope_layer_interval": 2}),
            ),
            (
                "gpt2",
                &["tie_word_embeddings", "activation_function", "scale_attn_weights"],
                json!({}),
            ),
            ("phi3", &["rope_parameters", "rms_norm_eps"], json!({})),
        ] {
            assert_eq!(
                read(&changed(folder, without, with)),
                read(&stored(folder)),
                "{folder}"
            );
        }
    }

    #[test]
    fn a_missing_cap_is_not_one_that_is_switched_off() {
        let fields = ["attn_logit_softcapping", "final_logit_softcapping"];
        let missing = read(&changed("gemma2", &fields, json!({})));
        assert_eq!(
            (missing.attention.cap, missing.logit_cap),
            (Some(50.0), Some(30.0))
        );
        let off = json!({"attn_logit_softcapping": null, "final_logit_softcapping": null});
        let off = read(&changed("gemma2", &[], off));
        assert_eq!((off.attention.cap, off.logit_cap), (None, None));
    }

    #[test]
    fn what_models_that_see_images_leave_unsaid_is_known() {
        let mut whole = stored("gemma3_images");
        let text = whole["text_config"].as_object_mut().unwrap();
        let unsaid = [
            "vocab_size",
            "num_attention_heads",
            "num_key_value_heads",
            "head_dim",
            "eos_token_id",
        ];
        text.retain(|name, _| !unsaid.contains(&name.as_str()));
        let config = read(&whole);
        let attention = &config.attention;
        let sizes = (
            config.vocab,
            attention.heads,
            attention.kv_heads,
            attention.head_dim,
        );
        assert_eq!(sizes, (262_208, 8, 4, 256));
        assert_eq!(config.eos, [2], "the whole says it");
    }

    #[test]
    fn windows_follow_the_pattern() {
        let config = changed(
            "gemma3",
            &["layer_types", "sliding_window_pattern", "sliding_window"],
            json!({"num_hidden_layers": 7}),
        );
        let config = read(&config);
        let windowed: Vec<bool> = config.layers.iter().map(|layer| layer.windowed).collect();
        assert_eq!(windowed, [true, true, true, true, true, false, true]);
        assert_eq!(config.window, Some(4096));
        let ropes: Vec<Option<usize>> = config.layers.iter().map(|layer| layer.rope).collect();
        assert_eq!(ropes[4..], [Some(1), Some(0), Some(1)]);
    }
}
