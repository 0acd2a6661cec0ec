//! A table of what each `model_type` implies.
//!
//! A family describes what its config.json leaves out (the places of norms, the biases, the meaning of a
//! missing field) and the names of its tensors. Everything that can differ between models of one family is
//! read from config.json.

use super::kinds::{NormKind, QkNorm};

/// A property that a model has or does not have, such as a bias.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Flag {
    Is(bool),
    /// The value of this field; a missing field means no.
    Field(&'static str),
}

/// The layers that attend only to a window, if config.json does not list them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Windows {
    /// No layer, even if there is a window.
    Never,
    /// All layers, if there is a window.
    All,
    /// All layers, if `use_sliding_window` is true.
    AllIfUsed,
    /// The layers from `max_window_layers` on, if `use_sliding_window` is true.
    LastIfUsed,
    /// The layers that do not rotate, if `use_sliding_window` is true.
    UnturnedIfUsed,
    /// All layers except every n-th one; `sliding_window_pattern` overrides the n given here.
    AllButEvery(i64),
}

/// The part of queries and keys that is rotated by their positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turned {
    /// Nothing: positions are learned.
    Nothing,
    /// Whole heads.
    Whole,
    /// The share of each head that `partial_rotary_factor` gives.
    Part,
}

/// The fields that describe experts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ExpertFields {
    /// The number of experts; the first of these fields that exists.
    pub(crate) count: [&'static str; 2],
    pub(crate) width: &'static str,
    pub(crate) normalised: Flag,
}

/// The names in config.json of the properties that every model has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Fields {
    pub(crate) hidden: &'static str,
    pub(crate) heads: &'static str,
    pub(crate) layers: &'static str,
    pub(crate) positions: &'static str,
    pub(crate) width: &'static str,
    pub(crate) activation: &'static str,
    pub(crate) eps: &'static str,
}

/// Sizes that config.json may omit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sizes {
    pub(crate) vocab: i64,
    pub(crate) heads: i64,
    pub(crate) kv_heads: i64,
    pub(crate) positions: i64,
}

/// The meaning of missing fields.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Defaults {
    pub(crate) eps: f64,
    pub(crate) activation: &'static str,
    /// If `None`, these sizes are required, except that the number of key heads defaults to that of the
    /// heads.
    pub(crate) sizes: Option<Sizes>,
    /// If `None`, the hidden size divided by the number of heads.
    pub(crate) head_dim: Option<i64>,
    /// If `None`, the width is required; otherwise it is this multiple of the hidden size.
    pub(crate) width_factor: Option<i64>,
    pub(crate) theta: f64,
    /// The theta of windowed layers, if they rotate in a different way.
    pub(crate) local_theta: Option<f64>,
    pub(crate) window: Option<i64>,
    pub(crate) tied: bool,
    /// The defaults of `attn_logit_softcapping` and `final_logit_softcapping`, in families with these fields.
    pub(crate) caps: Option<[Option<f64>; 2]>,
    /// The default of `query_pre_attn_scalar`, one over the square of the attention scale, in families with
    /// this field.
    pub(crate) query_scalar: Option<f64>,
}

/// The names of tensors. All except the head's begin with one of the prefixes; those of a layer continue with
/// `layers` and its number, those of an expert with `experts` and its number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Names {
    /// The possible prefixes. The first one with which there is an embedding is used.
    pub(crate) prefixes: &'static [&'static str],
    pub(crate) embedding: &'static str,
    /// The table that is added to embeddings by position, if any.
    pub(crate) positions: Option<&'static str>,
    pub(crate) norm: &'static str,
    pub(crate) layers: &'static str,
    pub(crate) before_attention: Option<&'static str>,
    /// One matrix each for queries, keys and values, or one for all.
    pub(crate) qkv: &'static [&'static str],
    pub(crate) qk_norms: [&'static str; 2],
    pub(crate) out: &'static str,
    pub(crate) after_attention: Option<&'static str>,
    pub(crate) before_mlp: Option<&'static str>,
    /// One matrix each for gates and ups, or one for both, or one for a network without gates.
    pub(crate) up: &'static [&'static str],
    pub(crate) down: &'static str,
    pub(crate) router: &'static str,
    pub(crate) experts: &'static str,
    pub(crate) expert_up: &'static [&'static str],
    pub(crate) expert_down: &'static str,
    pub(crate) after_mlp: Option<&'static str>,
    /// `true` if the matrices of layers are stored as `[in, out]`.
    pub(crate) transposed: bool,
}

/// The common properties of the models of one `model_type`.
#[derive(Debug, PartialEq)]
pub(crate) struct Family {
    pub(crate) name: &'static str,
    /// The object that describes the decoder, if that is not the whole of config.json: the other objects
    /// describe vision or audio, and are not read.
    pub(crate) nested: Option<&'static str>,
    pub(crate) fields: Fields,
    pub(crate) defaults: Defaults,
    pub(crate) names: Names,
    pub(crate) norm: NormKind,
    /// `true` if embeddings are multiplied by the root of their size.
    pub(crate) scaled_embedding: bool,
    pub(crate) turned: Turned,
    pub(crate) qkv_bias: Flag,
    pub(crate) out_bias: Flag,
    pub(crate) mlp_bias: Flag,
    pub(crate) qk_norm: QkNorm,
    pub(crate) windows: Windows,
    pub(crate) gated: bool,
    pub(crate) experts: Option<ExpertFields>,
    /// Flags that would change the computation, with the supported value.
    pub(crate) fixed: &'static [(&'static str, bool)],
}

const LLAMA_NAMES: Names = Names {
    prefixes: &["model."],
    embedding: "embed_tokens",
    positions: None,
    norm: "norm",
    layers: "layers",
    before_attention: Some("input_layernorm"),
    qkv: &["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"],
    qk_norms: ["self_attn.q_norm", "self_attn.k_norm"],
    out: "self_attn.o_proj",
    after_attention: None,
    before_mlp: Some("post_attention_layernorm"),
    up: &["mlp.gate_proj", "mlp.up_proj"],
    down: "mlp.down_proj",
    router: "mlp.gate",
    experts: "mlp.experts",
    expert_up: &["gate_proj", "up_proj"],
    expert_down: "down_proj",
    after_mlp: None,
    transposed: false,
};

const LLAMA: Family = Family {
    name: "llama",
    nested: None,
    fields: Fields {
        hidden: "hidden_size",
        heads: "num_attention_heads",
        layers: "num_hidden_layers",
        positions: "max_position_embeddings",
        width: "intermediate_size",
        activation: "hidden_act",
        eps: "rms_norm_eps",
    },
    defaults: Defaults {
        eps: 1e-6,
        activation: "silu",
        sizes: None,
        head_dim: None,
        width_factor: None,
        theta: 10_000.0,
        local_theta: None,
        window: None,
        tied: false,
        caps: None,
        query_scalar: None,
    },
    names: LLAMA_NAMES,
    norm: NormKind::Rms,
    scaled_embedding: false,
    turned: Turned::Whole,
    qkv_bias: Flag::Field("attention_bias"),
    out_bias: Flag::Field("attention_bias"),
    mlp_bias: Flag::Field("mlp_bias"),
    qk_norm: QkNorm::None,
    windows: Windows::Never,
    gated: true,
    experts: None,
    fixed: &[],
};

const MISTRAL: Family = Family {
    name: "mistral",
    windows: Windows::All,
    ..LLAMA
};

const MIXTRAL: Family = Family {
    name: "mixtral",
    defaults: Defaults {
        eps: 1e-5,
        theta: 1_000_000.0,
        ..LLAMA.defaults
    },
    names: Names {
        router: "block_sparse_moe.gate",
        experts: "block_sparse_moe.experts",
        expert_up: &["w1", "w3"],
        expert_down: "w2",
        ..LLAMA_NAMES
    },
    experts: Some(ExpertFields {
        count: ["num_local_experts", "num_experts"],
        width: "intermediate_size",
        normalised: Flag::Is(true),
    }),
    ..MISTRAL
};

const QWEN2: Family = Family {
    name: "qwen2",
    qkv_bias: Flag::Is(true),
    out_bias: Flag::Is(false),
    windows: Windows::LastIfUsed,
    ..LLAMA
};

const QWEN3: Family = Family {
    name: "qwen3",
    qk_norm: QkNorm::Head,
    windows: Windows::LastIfUsed,
    ..LLAMA
};

const QWEN3_MOE: Family = Family {
    name: "qwen3_moe",
    windows: Windows::AllIfUsed,
    experts: Some(ExpertFields {
        count: ["num_experts", "num_local_experts"],
        width: "moe_intermediate_size",
        normalised: Flag::Field("norm_topk_prob"),
    }),
    ..QWEN3
};

const GEMMA2: Family = Family {
    name: "gemma2",
    fields: Fields {
        activation: "hidden_activation",
        ..LLAMA.fields
    },
    defaults: Defaults {
        activation: "gelu_pytorch_tanh",
        head_dim: Some(256),
        window: Some(4096),
        tied: true,
        caps: Some([Some(50.0), Some(30.0)]),
        query_scalar: Some(256.0),
        ..LLAMA.defaults
    },
    names: Names {
        after_attention: Some("post_attention_layernorm"),
        before_mlp: Some("pre_feedforward_layernorm"),
        after_mlp: Some("post_feedforward_layernorm"),
        ..LLAMA_NAMES
    },
    norm: NormKind::RmsPlusOne,
    scaled_embedding: true,
    windows: Windows::AllButEvery(2),
    fixed: &[("use_bidirectional_attention", false)],
    ..LLAMA
};

const GEMMA3: Family = Family {
    name: "gemma3_text",
    defaults: Defaults {
        sizes: Some(Sizes {
            vocab: 262_208,
            heads: 8,
            kv_heads: 4,
            positions: 131_072,
        }),
        theta: 1_000_000.0,
        local_theta: Some(10_000.0),
        caps: Some([None, None]),
        ..GEMMA2.defaults
    },
    qk_norm: QkNorm::Head,
    windows: Windows::AllButEvery(6),
    ..GEMMA2
};

/// The models that also accept images, on text only.
const GEMMA3_IMAGES: Family = Family {
    name: "gemma3",
    nested: Some("text_config"),
    names: Names {
        // As they were published, and as `transformers` names them in a running model.
        prefixes: &["language_model.model.", "model.language_model."],
        ..GEMMA2.names
    },
    ..GEMMA3
};

const PHI3: Family = Family {
    name: "phi3",
    defaults: Defaults {
        eps: 1e-5,
        ..LLAMA.defaults
    },
    names: Names {
        qkv: &["self_attn.qkv_proj"],
        up: &["mlp.gate_up_proj"],
        ..LLAMA_NAMES
    },
    turned: Turned::Part,
    qkv_bias: Flag::Is(false),
    out_bias: Flag::Is(false),
    mlp_bias: Flag::Is(false),
    windows: Windows::All,
    ..LLAMA
};

const OLMO2: Family = Family {
    name: "olmo2",
    defaults: Defaults {
        eps: 1e-5,
        ..LLAMA.defaults
    },
    names: Names {
        before_attention: None,
        after_attention: Some("post_attention_layernorm"),
        before_mlp: None,
        after_mlp: Some("post_feedforward_layernorm"),
        ..LLAMA_NAMES
    },
    qk_norm: QkNorm::Token,
    ..LLAMA
};

const SMOLLM3: Family = Family {
    name: "smollm3",
    defaults: Defaults {
        theta: 2_000_000.0,
        tied: true,
        ..LLAMA.defaults
    },
    windows: Windows::UnturnedIfUsed,
    ..LLAMA
};

const GPT2: Family = Family {
    name: "gpt2",
    fields: Fields {
        hidden: "n_embd",
        heads: "n_head",
        layers: "n_layer",
        positions: "n_positions",
        width: "n_inner",
        activation: "activation_function",
        eps: "layer_norm_epsilon",
    },
    defaults: Defaults {
        eps: 1e-5,
        activation: "gelu_new",
        width_factor: Some(4),
        tied: true,
        ..LLAMA.defaults
    },
    names: Names {
        // As `transformers` saves it, and as it was published.
        prefixes: &["transformer.", ""],
        embedding: "wte",
        positions: Some("wpe"),
        norm: "ln_f",
        layers: "h",
        before_attention: Some("ln_1"),
        qkv: &["attn.c_attn"],
        out: "attn.c_proj",
        before_mlp: Some("ln_2"),
        up: &["mlp.c_fc"],
        down: "mlp.c_proj",
        transposed: true,
        ..LLAMA_NAMES
    },
    norm: NormKind::Layer,
    turned: Turned::Nothing,
    qkv_bias: Flag::Is(true),
    out_bias: Flag::Is(true),
    mlp_bias: Flag::Is(true),
    gated: false,
    fixed: &[
        ("add_cross_attention", false),
        ("scale_attn_by_inverse_layer_idx", false),
        ("scale_attn_weights", true),
    ],
    ..LLAMA
};

/// All families, and their names for a message.
pub(super) static FAMILIES: [Family; 13] = [
    GEMMA2,
    GEMMA3_IMAGES,
    GEMMA3,
    GPT2,
    LLAMA,
    MISTRAL,
    MIXTRAL,
    OLMO2,
    PHI3,
    QWEN2,
    QWEN3,
    QWEN3_MOE,
    SMOLLM3,
];
pub(super) const NAMES: &str = "gemma2, gemma3, gemma3_text, gpt2, llama, mistral, mixtral, olmo2, phi3, qwen2, qwen3, qwen3_moe, smollm3";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_names_all_families() {
        let names: Vec<&str> = FAMILIES.iter().map(|family| family.name).collect();
        assert_eq!(names.join(", "), NAMES);
    }
}
