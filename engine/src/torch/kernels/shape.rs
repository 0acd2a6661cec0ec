//! The sizes of a model for the kernels, or all reasons why they cannot compute it.
//!
//! The kernels compute decoders of the Llama family in bf16: norms by the root of the mean of squares before
//! both halves of a layer, no biases, whole heads rotated by one rope, a gated network with SiLU or experts
//! that are such networks. Every other requirement of a description is reported as a reason by its name, so
//! that an operator sees why a model runs without the kernels.

use crate::torch::config::{Activation, Config, Mlp, NormKind, QkNorm};
use lexiform_kernels::experts::Mixture;
use lexiform_kernels::plan::{NoPlan, Shape, Unplanned};
use lexiform_kernels::shapes::Format;
use tch::Kind;

/// Returns the sizes of the model with this description, which computes in the numbers `kind` over a cache
/// with blocks of `block_size` slots, with matrices in bf16 or in a format of eight bits.
///
/// # Errors
/// All requirements that the kernels do not support.
pub(super) fn shape(
    config: &Config,
    kind: Kind,
    block_size: usize,
    rounded: Option<Format>,
) -> Result<Shape, NoPlan> {
    let mut reasons = lacking(config, kind);
    let mixture = mixture(config);
    if mixture.is_some() && rounded.is_some() {
        reasons.push(Unplanned::Feature("experts with weights in eight bits"));
    }
    let dense = config.layers.iter().find_map(|layer| match layer.mlp {
        Mlp::Dense { width } => Some(width as usize),
        Mlp::Experts { .. } => None,
    });
    let (attention, window) = (&config.attention, config.window.map(|window| window as usize));
    let shape = Shape {
        hidden: config.hidden as usize,
        inner: dense.unwrap_or_default(),
        heads: attention.heads as usize,
        key_heads: attention.kv_heads as usize,
        head_size: attention.head_dim as usize,
        vocab: config.vocab as usize,
        eps: config.eps as f32,
        norms_heads: config.family.qk_norm == QkNorm::Head,
        windows: config
            .layers
            .iter()
            .map(|layer| window.filter(|_| layer.windowed))
            .collect(),
        mixture,
        block_size,
        rounded,
    };
    if reasons.is_empty() {
        return shape.check().map(|()| shape);
    }
    reasons.extend(shape.check().err().into_iter().flat_map(|sizes| sizes.0));
    Err(NoPlan(reasons))
}

/// Returns the experts of the layers that have some, which are alike in all of them.
fn mixture(config: &Config) -> Option<Mixture> {
    let layers = || config.layers.iter().map(|layer| &layer.mlp);
    layers().find_map(|mlp| match *mlp {
        Mlp::Dense { .. } => None,
        Mlp::Experts {
            count,
            chosen,
            width,
            normalised,
        } => Some(Mixture {
            experts: count as usize,
            chosen: chosen as usize,
            inner: width as usize,
            is_normalised: normalised,
            layers: layers().map(|mlp| matches!(mlp, Mlp::Experts { .. })).collect(),
        }),
    })
}

/// Returns the requirements of the description that no kernel supports.
fn lacking(config: &Config, kind: Kind) -> Vec<Unplanned> {
    let (attention, family) = (&config.attention, config.family);
    let names = &family.names;
    let size = attention.head_dim as usize;
    let turns_whole = config.ropes.len() == 1 && config.ropes.iter().all(|rope| rope.width == size);
    let plain_scale = 1.0 / (size as f64).sqrt();
    let is_scaled = attention
        .scale
        .is_some_and(|scale| (scale - plain_scale).abs() > 1e-9 * plain_scale);
    let before = names.before_attention.is_some() && names.before_mlp.is_some();
    let after = names.after_attention.is_some() || names.after_mlp.is_some();
    let found = [
        (kind != Kind::BFloat16, "in numbers other than bf16"),
        (attention.qkv_bias, "biases of queries, keys and values"),
        (attention.out_bias, "biases behind attention"),
        (config.mlp_bias, "biases of the network"),
        (!family.gated, "networks without gates"),
        (
            config.activation != Activation::Silu,
            "activations other than SiLU",
        ),
        (family.norm == NormKind::Layer, "norms by mean and variance"),
        (!before, "layers without a norm before attention or the network"),
        (after, "norms behind attention or the network"),
        (family.qk_norm == QkNorm::Token, "norms over all heads of a token"),
        (names.positions.is_some(), "learned positions"),
        (
            !turns_whole && names.positions.is_none(),
            "several ropes, or heads that are turned in part",
        ),
        (
            turns_whole && config.layers.iter().any(|layer| layer.rope.is_none()),
            "layers that are not turned",
        ),
        (config.embedding_scale.is_some(), "scaled embeddings"),
        (is_scaled, "a scale of attention of its own"),
        (attention.cap.is_some(), "capped scores of attention"),
        (config.logit_cap.is_some(), "capped logits"),
    ];
    let found = found.into_iter().filter(|&(is_lacking, _)| is_lacking);
    found.map(|(_, what)| Unplanned::Feature(what)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::torch::checkpoint::files::ModelFiles;
    use serde_json::{Value, json};

    fn config(family: &str, change: Value) -> Config {
        let path = format!(
            "{}/tests/fixtures/{family}/config.json",
            env!("CARGO_MANIFEST_DIR")
        );
        let mut config: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        config
            .as_object_mut()
            .unwrap()
            .extend(change.as_object().unwrap().clone());
        let text: &'static str = config.to_string().leak();
        Config::read(&ModelFiles::embedded(
            "test",
            vec![("config.json", text.as_bytes())].leak(),
        ))
        .unwrap()
    }

    /// Returns a configuration with sizes that the kernels support, for a family whose fixture is smaller.
    fn sized(family: &str) -> Config {
        config(
            family,
            json!({"head_dim": 64, "num_attention_heads": 4, "num_key_value_heads": 2}),
        )
    }

    #[test]
    fn a_shape_is_what_the_description_says() {
        let found = shape(&sized("llama3"), Kind::BFloat16, 16, None).unwrap();
        let sizes = (
            found.heads,
            found.key_heads,
            found.head_size,
            found.vocab,
            found.norms_heads,
        );
        assert_eq!(sizes, (4, 2, 64, 96, false));
        assert!(found.windows.iter().all(Option::is_none) && !found.windows.is_empty());
        assert!(
            shape(&sized("qwen3"), Kind::BFloat16, 16, None)
                .unwrap()
                .norms_heads
        );
        let windows = shape(&sized("mistral"), Kind::BFloat16, 16, None)
            .unwrap()
            .windows;
        assert!(windows.iter().all(Option::is_some), "{windows:?}");
    }

    #[test]
    fn layers_with_experts_are_told_apart_and_their_sizes_checked() {
        let sized = |family: &str, change: Value| {
            let mut sizes = json!({"head_dim": 64, "num_attention_heads": 4, "num_key_value_heads": 2});
            let changed = change.as_object().unwrap().clone();
            sizes.as_object_mut().unwrap().extend(changed);
            shape(&config(family, sizes), Kind::BFloat16, 16, None)
        };
        let found = sized("qwen3_moe", json!({})).unwrap();
        let mixture = Mixture {
            experts: 6,
            chosen: 3,
            inner: 16,
            is_normalised: false,
            layers: vec![false, true],
        };
        assert_eq!((found.inner, found.mixture), (48, Some(mixture)));
        let found = sized("mixtral", json!({"intermediate_size": 32})).unwrap();
        let mixture = found.mixture.unwrap();
        assert_eq!((found.inner, mixture.inner, mixture.is_normalised), (0, 32, true));
        assert_eq!(mixture.layers, [true, true]);
        let sizes = json!({"head_dim": 64, "num_attention_heads": 4, "num_key_value_heads": 2});
        let rounded = shape(&config("qwen3_moe", sizes), Kind::BFloat16, 16, Some(Format::Fp8));
        let why = "the kernels do not compute experts with weights in eight bits";
        assert_eq!(rounded.unwrap_err().to_string(), why);
        let odd = json!({"moe_intermediate_size": 24, "num_local_experts": 600, "num_experts_per_tok": 40, "hidden_size": 40});
        assert_eq!(
            sized("qwen3_moe", odd).unwrap_err().to_string(),
            "experts is 600; the kernels take up to 512; experts of a token is 40; the kernels take up to 32; \
             inner of experts is 24; the kernels take a multiple of 16; \
             hidden before experts is 40; the kernels take a multiple of 16"
        );
    }

    #[test]
    fn what_the_kernels_lack_is_named() {
        for (family, reason) in [
            ("qwen2", "biases of queries, keys and values"),
            ("qwen3_moe", "head_size is 8"),
            ("gemma2", "capped logits"),
            ("gemma3", "several ropes, or heads that are turned in part"),
            ("phi4", "several ropes, or heads that are turned in part"),
            ("gpt2", "learned positions"),
            ("olmo2", "norms over all heads of a token"),
            ("smollm3", "layers that are not turned"),
            ("llama_bias_yarn", "biases behind attention"),
        ] {
            let found = shape(&config(family, json!({})), Kind::BFloat16, 16, None).unwrap_err();
            assert!(found.to_string().contains(reason), "{family}: {found}");
        }
        let found = shape(&sized("llama3"), Kind::Float, 8, None).unwrap_err();
        let reasons =
            "the kernels do not compute in numbers other than bf16; block_size is 8; the kernels take 16";
        assert_eq!(found.to_string(), reasons);
    }
}
