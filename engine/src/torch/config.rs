//! The description of a decoder: the checked content of a model's config.json.
//!
//! ```text
//!   config.json ─► read (fields, and errors in them)
//!                    │     family: what a model_type implies, and the names of its tensors
//!                    └──► block, rope ─► Config ─► decoder, which knows no family
//! ```
//!
//! The reader accepts what `transformers` 4 and 5 write. A value that would change the computation and that
//! the reader does not understand is an error: a model that runs with a wrong configuration writes plausible
//! nonsense.

mod block;
mod description;
mod family;
pub(crate) mod frequencies;
mod kinds;
mod read;
mod reads;
mod rope;

use super::checkpoint::files::ModelFiles;
use crate::error::LoadError;
use description::FILE;
pub(crate) use description::{Config, Mlp};
pub(crate) use family::Names;
pub(crate) use kinds::{Activation, Heads, NormKind, QkNorm};
pub use reads::PassReads;
use serde_json::Value;

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

    /// Returns the configuration of a folder without some fields, and with others.
    fn changed(folder: &str, without: &[&str], with: Value) -> Value {
        let mut config = stored(folder);
        let fields = config.as_object_mut().unwrap();
        fields.retain(|name, _| !without.contains(&name.as_str()));
        fields.extend(with.as_object().unwrap().clone());
        config
    }

    /// Guards against rejecting models that were published with an older `transformers`, or that omit default
    /// values.
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
