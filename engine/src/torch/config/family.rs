//! What a `model_type` implies: a table.
//!
//! A family says what its config.json leaves unsaid (where norms stand, which biases there are, what a
//! missing field means) and what its tensors are called. Whatever can differ between models of one family is
//! read from config.json.

use super::kinds::{NormKind, QkNorm};

/// A bias, or another thing that is there or not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Flag {
    Is(bool),
    /// As this field says; a missing one says no.
    Field(&'static str),
}

/// Which layers look back over a window only, where config.json does not list them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Windows {
    /// None, whatever is said of a window.
    Never,
    /// All, if there is a window.
    All,
    /// All, if `use_sliding_window` says so.
    AllIfUsed,
    /// Those from `max_window_layers` on, if `use_sliding_window` says so.
    LastIfUsed,
    /// Those that do not turn, if `use_sliding_window` says so.
    UnturnedIfUsed,
    /// All but every so-manieth, or as `sliding_window_pattern` says.
    AllButEvery(i64),
}

/// What of queries and keys is turned by their positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turned {
    /// Nothing: there are learned positions.
    Nothing,
    /// Whole heads.
    Whole,
    /// As much of each head as `partial_rotary_factor` says.
    Part,
}

/// Which fields describe experts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ExpertFields {
    /// How many there are; the first of these that is there.
    pub(crate) count: [&'static str; 2],
    pub(crate) width: &'static str,
    pub(crate) normalised: Flag,
}

/// What config.json calls what every model has.
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

/// Sizes that go without saying.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sizes {
    pub(crate) vocab: i64,
    pub(crate) heads: i64,
    pub(crate) kv_heads: i64,
    pub(crate) positions: i64,
}

/// What a missing field means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Defaults {
    pub(crate) eps: f64,
    pub(crate) activation: &'static str,
    /// If there are none, these must be said; as many key heads as heads are meant if those are not.
    pub(crate) sizes: Option<Sizes>,
    /// If there is none, a head's share of the hidden numbers.
    pub(crate) head_dim: Option<i64>,
    /// If there is none, a multiple of the hidden numbers.
    pub(crate) width_factor: Option<i64>,
    pub(crate) theta: f64,
    /// How windowed layers turn, where those turn in a way of their own.
    pub(crate) local_theta: Option<f64>,
    pub(crate) window: Option<i64>,
    pub(crate) tied: bool,
    /// What `attn_logit_softcapping` and `final_logit_softcapping` are, where there are such fields.
    pub(crate) caps: Option<[Option<f64>; 2]>,
    /// What one over the square of the attention scale is, where there is a field `query_pre_attn_scalar`.
    pub(crate) query_scalar: Option<f64>,
}

/// What tensors are called. All but the head's begin with one of the prefixes; those of a layer go on with
/// `layers` and its number, those of an expert with `experts` and its number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Names {
    /// The first with which there is an embedding is the one.
    pub(crate) prefixes: &'static [&'static str],
    pub(crate) embedding: &'static str,
    /// What is added to embeddings at each position, if anything.
    pub(crate) positions: Option<&'static str>,
    pub(crate) norm: &'static str,
    pub(crate) layers: &'static str,
    pub(crate) before_attention: Option<&'static str>,
    /// One matrix for queries, keys and values each, or one for all.
    pub(crate) qkv: &'static [&'static str],
    pub(crate) qk_norms: [&'static str; 2],
    pub(crate) out: &'static str,
    pub(crate) after_attention: Option<&'static str>,
    pub(crate) before_mlp: Option<&'static str>,
    /// One matrix for gates and ups each, or one for both, or for what is not gated.
    pub(crate) up: &'static [&'static str],
    pub(crate) down: &'static str,
    pub(crate) router: &'static str,
    pub(crate) experts: &'static str,
    pub(crate) expert_up: &'static [&'static str],
    pub(crate) expert_down: &'static str,
    pub(crate) after_mlp: Option<&'static str>,
    /// Whether matrices of layers are stored as `[in, out]`.
    pub(crate) transposed: bool,
}

/// What models of one `model_type` have in common.
#[derive(Debug, PartialEq)]
pub(crate) struct Family {
    pub(crate) name: &'static str,
    /// The object that describes the decoder, where that is not the whole of config.json: other parts see or
    /// hear, and are not read.
    pub(crate) nested: Option<&'static str>,
    pub(crate) fields: Fields,
    pub(crate) defaults: Defaults,
    pub(crate) names: Names,
    pub(crate) norm: NormKind,
    /// Whether embeddings are multiplied by the root of their size.
    pub(crate) scaled_embedding: bool,
    pub(crate) turned: Turned,
    pub(crate) qkv_bias: Flag,
    pub(crate) out_bias: Flag,
    pub(crate) mlp_bias: Flag,
    pub(crate) qk_norm: QkNorm,
    pub(crate) windows: Windows,
    pub(crate) gated: bool,
    pub(crate) experts: Option<ExpertFields>,
    /// Flags that would change the computation, and the value that does not.
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

/// The models that see images too, on text alone.
const GEMMA3_IMAGES: Family = Family {
    name: "gemma3",
    nested: Some("text_config"),
    names: Names {
        // As they were published, and as a running model calls them.
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

/// Every family, and their names for a message.
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
