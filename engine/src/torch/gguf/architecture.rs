//! A table of what each `general.architecture` implies. It maps the keys and tensors of a GGUF file to the
//! config.json and the names of the same model as a Hugging Face folder, so that all other code knows one
//! form of a model.
//!
//! Three things are stored differently than in such a folder, and converted when a tensor is read:
//!
//! - Rows of queries and keys of the Llama family are in pairs that are rotated together; a folder has the
//!   first halves of all pairs before the second halves ([`Architecture::paired`]).
//! - Gemma's norms have the 1 added that a folder leaves to the program ([`Architecture::norms_plus_one`]).
//! - The matrices of all experts of a layer are one tensor.

/// The way in which a key becomes a field of config.json.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    /// A required integer.
    Needed,
    /// An optional integer.
    Integer,
    /// An optional number.
    Number,
}

/// A key without the prefix of the architecture, the field of config.json that it becomes, and how.
pub(super) type Field = (&'static str, &'static str, Kind);

/// The common properties of the models of one `general.architecture`.
#[derive(Debug, PartialEq)]
pub(crate) struct Architecture {
    pub(super) name: &'static str,
    /// The `model_type` of the same model as a folder.
    pub(super) model_type: &'static str,
    /// The `model_type` of a model with experts, if a folder gives that another name.
    pub(super) with_experts: Option<&'static str>,
    pub(super) fields: &'static [&'static [Field]],
    /// The rest of a name after the number of a layer, without `.weight` or `.bias`: in a folder, and in the
    /// file.
    pub(super) in_layers: &'static [(&'static str, &'static str)],
    /// The names outside of layers, in a folder and in the file.
    pub(super) outside: &'static [(&'static str, &'static str)],
    pub(crate) paired: bool,
    pub(crate) norms_plus_one: bool,
    /// The number of layers of the one model size of this architecture whose attention is scaled by the
    /// hidden size divided by the number of heads.
    pub(super) scaled_by_share: Option<i64>,
}

use Kind::{Integer, Needed, Number};

const SIZES: &[Field] = &[
    ("block_count", "num_hidden_layers", Needed),
    ("context_length", "max_position_embeddings", Needed),
    ("embedding_length", "hidden_size", Needed),
    ("feed_forward_length", "intermediate_size", Integer),
    ("attention.head_count", "num_attention_heads", Needed),
    ("attention.head_count_kv", "num_key_value_heads", Integer),
    ("attention.key_length", "head_dim", Integer),
    ("attention.layer_norm_rms_epsilon", "rms_norm_eps", Number),
    ("rope.freq_base", "rope_theta", Number),
];

const WINDOW: &[Field] = &[("attention.sliding_window", "sliding_window", Integer)];

/// The theta of layers with a window.
const LOCAL_ROPE: &[Field] = &[("rope.freq_base_swa", "rope_local_base_freq", Number)];

const CAPS: &[Field] = &[
    ("attn_logit_softcapping", "attn_logit_softcapping", Number),
    ("final_logit_softcapping", "final_logit_softcapping", Number),
];

const EXPERTS: &[Field] = &[
    ("expert_count", "num_experts", Integer),
    ("expert_used_count", "num_experts_per_tok", Integer),
    ("expert_feed_forward_length", "moe_intermediate_size", Integer),
];

const GPT2_SIZES: &[Field] = &[
    ("block_count", "n_layer", Needed),
    ("context_length", "n_positions", Needed),
    ("embedding_length", "n_embd", Needed),
    ("feed_forward_length", "n_inner", Integer),
    ("attention.head_count", "n_head", Needed),
    ("attention.layer_norm_epsilon", "layer_norm_epsilon", Number),
];

const OUTSIDE: &[(&str, &str)] = &[
    ("model.embed_tokens", "token_embd"),
    ("model.norm", "output_norm"),
    ("lm_head", "output"),
];

const IN_LAYERS: &[(&str, &str)] = &[
    ("input_layernorm", "attn_norm"),
    ("self_attn.q_proj", "attn_q"),
    ("self_attn.k_proj", "attn_k"),
    ("self_attn.v_proj", "attn_v"),
    ("self_attn.q_norm", "attn_q_norm"),
    ("self_attn.k_norm", "attn_k_norm"),
    ("self_attn.o_proj", "attn_output"),
    ("post_attention_layernorm", "ffn_norm"),
    ("mlp.gate_proj", "ffn_gate"),
    ("mlp.up_proj", "ffn_up"),
    ("mlp.down_proj", "ffn_down"),
    // The names of experts: the number after `experts.` is that of one of them.
    ("mlp.gate", "ffn_gate_inp"),
    ("mlp.experts.gate_proj", "ffn_gate_exps"),
    ("mlp.experts.up_proj", "ffn_up_exps"),
    ("mlp.experts.down_proj", "ffn_down_exps"),
    ("block_sparse_moe.gate", "ffn_gate_inp"),
    ("block_sparse_moe.experts.w1", "ffn_gate_exps"),
    ("block_sparse_moe.experts.w3", "ffn_up_exps"),
    ("block_sparse_moe.experts.w2", "ffn_down_exps"),
];

/// The names in layers that also have norms after attention and network.
const NORMED_AFTER: &[(&str, &str)] = &[
    ("input_layernorm", "attn_norm"),
    ("self_attn.q_proj", "attn_q"),
    ("self_attn.k_proj", "attn_k"),
    ("self_attn.v_proj", "attn_v"),
    ("self_attn.q_norm", "attn_q_norm"),
    ("self_attn.k_norm", "attn_k_norm"),
    ("self_attn.o_proj", "attn_output"),
    ("post_attention_layernorm", "post_attention_norm"),
    ("pre_feedforward_layernorm", "ffn_norm"),
    ("mlp.gate_proj", "ffn_gate"),
    ("mlp.up_proj", "ffn_up"),
    ("mlp.down_proj", "ffn_down"),
    ("post_feedforward_layernorm", "post_ffw_norm"),
];

const LLAMA: Architecture = Architecture {
    name: "llama",
    model_type: "llama",
    with_experts: Some("mixtral"),
    fields: &[SIZES, WINDOW, EXPERTS],
    in_layers: IN_LAYERS,
    outside: OUTSIDE,
    paired: true,
    norms_plus_one: false,
    scaled_by_share: None,
};

const GEMMA2: Architecture = Architecture {
    name: "gemma2",
    model_type: "gemma2",
    with_experts: None,
    fields: &[SIZES, WINDOW, CAPS],
    in_layers: NORMED_AFTER,
    paired: false,
    norms_plus_one: true,
    scaled_by_share: Some(46),
    ..LLAMA
};

const ARCHITECTURES: [Architecture; 10] = [
    GEMMA2,
    Architecture {
        name: "gemma3",
        model_type: "gemma3_text",
        fields: &[SIZES, WINDOW, LOCAL_ROPE],
        scaled_by_share: Some(62),
        ..GEMMA2
    },
    Architecture {
        name: "gpt2",
        model_type: "gpt2",
        with_experts: None,
        fields: &[GPT2_SIZES],
        in_layers: &[
            ("ln_1", "attn_norm"),
            ("attn.c_attn", "attn_qkv"),
            ("attn.c_proj", "attn_output"),
            ("ln_2", "ffn_norm"),
            ("mlp.c_fc", "ffn_up"),
            ("mlp.c_proj", "ffn_down"),
        ],
        outside: &[
            ("transformer.wte", "token_embd"),
            ("transformer.wpe", "position_embd"),
            ("transformer.ln_f", "output_norm"),
            ("lm_head", "output"),
        ],
        paired: false,
        ..LLAMA
    },
    LLAMA,
    Architecture {
        name: "olmo2",
        model_type: "olmo2",
        with_experts: None,
        fields: &[SIZES],
        in_layers: NORMED_AFTER,
        paired: false,
        ..LLAMA
    },
    Architecture {
        name: "phi3",
        model_type: "phi3",
        with_experts: None,
        fields: &[SIZES, WINDOW],
        in_layers: &[
            ("input_layernorm", "attn_norm"),
            ("self_attn.qkv_proj", "attn_qkv"),
            ("self_attn.o_proj", "attn_output"),
            ("post_attention_layernorm", "ffn_norm"),
            ("mlp.gate_up_proj", "ffn_up"),
            ("mlp.down_proj", "ffn_down"),
        ],
        paired: false,
        ..LLAMA
    },
    Architecture {
        name: "qwen2",
        model_type: "qwen2",
        with_experts: None,
        fields: &[SIZES],
        paired: false,
        ..LLAMA
    },
    Architecture {
        name: "qwen3",
        model_type: "qwen3",
        with_experts: None,
        fields: &[SIZES],
        paired: false,
        ..LLAMA
    },
    Architecture {
        name: "qwen3moe",
        model_type: "qwen3_moe",
        with_experts: None,
        fields: &[SIZES, EXPERTS],
        paired: false,
        ..LLAMA
    },
    Architecture {
        name: "smollm3",
        model_type: "smollm3",
        with_experts: None,
        fields: &[SIZES],
        ..LLAMA
    },
];

/// All names, for a message.
pub(super) const NAMES: &str = "gemma2, gemma3, gpt2, llama, olmo2, phi3, qwen2, qwen3, qwen3moe, smollm3";

/// Keys that change the computation, and that no architecture above reads: a file with one of them would be
/// computed wrongly.
pub(super) const REFUSED: [&str; 6] = [
    "attention.scale",
    "embedding_scale",
    "expert_shared_count",
    "leading_dense_block_count",
    "logit_scale",
    "residual_scale",
];

/// The place of a folder's tensor in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The name of the tensor in the file.
    pub(super) name: String,
    /// The number of the expert, if the tensor holds all experts.
    pub(super) expert: Option<usize>,
}

impl Architecture {
    /// Returns the architecture with this name.
    pub(super) fn of(name: &str) -> Option<&'static Architecture> {
        static ALL: [Architecture; 10] = ARCHITECTURES;
        ALL.iter().find(|architecture| architecture.name == name)
    }

    /// Returns the place of the tensor with this name in a folder.
    pub(super) fn place(&self, name: &str) -> Option<Place> {
        let (name, end) = name.rsplit_once('.')?;
        let named = |table: &[(&str, &'static str)], name: &str| {
            let found = table.iter().find(|(folder, _)| *folder == name);
            found.map(|(_, own)| *own)
        };
        if let Some(own) = named(self.outside, name) {
            return Some(Place {
                name: format!("{own}.{end}"),
                expert: None,
            });
        }
        let rest = ["model.layers.", "transformer.h."]
            .into_iter()
            .find_map(|prefix| name.strip_prefix(prefix))?;
        let (layer, rest) = rest.split_once('.')?;
        let (rest, expert) = without_expert(rest);
        Some(Place {
            name: format!("blk.{layer}.{}.{end}", named(self.in_layers, &rest)?),
            expert,
        })
    }

    /// Returns the number of heads whose rows are in pairs in the tensor with this name in the file.
    pub(super) fn paired_heads(&self, own: &str, [queries, keys]: [i64; 2]) -> Option<i64> {
        let part = own.split('.').nth(2)?;
        match part {
            "attn_q" if self.paired => Some(queries),
            "attn_k" if self.paired => Some(keys),
            _ => None,
        }
    }
}

/// Splits `experts.7.up` into `experts.up` and 7.
fn without_expert(name: &str) -> (String, Option<usize>) {
    let parts: Vec<&str> = name.split('.').collect();
    let number = parts.iter().position(|part| *part == "experts");
    let expert = number.and_then(|at| parts.get(at + 1)?.parse().ok().map(|expert| (at + 1, expert)));
    match expert {
        Some((at, expert)) => {
            let rest = parts.iter().enumerate().filter(|(number, _)| *number != at);
            let rest: Vec<&str> = rest.map(|(_, part)| *part).collect();
            (rest.join("."), Some(expert))
        }
        None => (name.to_owned(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_names_all_architectures() {
        let names: Vec<&str> = ARCHITECTURES
            .iter()
            .map(|architecture| architecture.name)
            .collect();
        assert_eq!(names.join(", "), NAMES);
    }

    #[test]
    fn tensors_are_found_by_the_names_of_folders() {
        let place = |of: &Architecture, name: &str| of.place(name).map(|place| (place.name, place.expert));
        let of = |name: &str, expert| Some((name.to_owned(), expert));
        assert_eq!(place(&LLAMA, "lm_head.weight"), of("output.weight", None));
        assert_eq!(
            place(&LLAMA, "model.layers.3.self_attn.q_proj.bias"),
            of("blk.3.attn_q.bias", None)
        );
        assert_eq!(
            place(&LLAMA, "model.layers.3.block_sparse_moe.experts.7.w2.weight"),
            of("blk.3.ffn_down_exps.weight", Some(7))
        );
        assert_eq!(
            place(&GEMMA2, "model.layers.0.post_attention_layernorm.weight"),
            of("blk.0.post_attention_norm.weight", None)
        );
        assert_eq!(place(&LLAMA, "model.layers.0.nobody.weight"), None);
    }
}
