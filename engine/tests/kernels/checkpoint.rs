//! A checkpoint with random weights, as a folder that the decoder of torch loads and as the buffers of a
//! plan.

use crate::memory::{Chance, Memory, narrow};
use lexiform_engine::torch::load_launched_by;
use lexiform_engine::{Dtype, LoadOptions, LoadedModel, Model, ModelFiles, WeightFormat, load};
use lexiform_kernels::experts::Mixture;
use lexiform_kernels::launcher::Launcher;
use lexiform_kernels::plan::{Buffer, LayerWeight, ModelWeight, Shape};
use serde_json::json;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(crate) const POSITIONS: usize = 256;
const THETA: f64 = 10_000.0;

/// What differs between the models of the tests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    pub(crate) family: &'static str,
    pub(crate) architecture: &'static str,
    pub(crate) heads: usize,
    pub(crate) key_heads: usize,
    pub(crate) head_size: usize,
    pub(crate) norms_heads: bool,
    pub(crate) window: Option<usize>,
    pub(crate) is_tied: bool,
    pub(crate) hidden: usize,
    pub(crate) inner: usize,
    pub(crate) layers: usize,
    pub(crate) experts: Option<Experts>,
}

/// The experts of a model, and which of its layers have none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Experts {
    pub(crate) count: usize,
    pub(crate) chosen: usize,
    pub(crate) inner: usize,
    pub(crate) is_normalised: bool,
    pub(crate) dense: &'static [usize],
    /// The router, the experts, and an expert's gate, up and down, by their names in checkpoints.
    names: [&'static str; 5],
}

/// Four query heads, and two key heads.
pub(crate) const LLAMA: Kind = Kind {
    family: "llama",
    architecture: "LlamaForCausalLM",
    heads: 4,
    key_heads: 2,
    head_size: 64,
    norms_heads: false,
    window: None,
    is_tied: true,
    hidden: 128,
    inner: 200,
    layers: 2,
    experts: None,
};
/// The same with a window, and a head of its own.
pub(crate) const MISTRAL: Kind = Kind {
    family: "mistral",
    architecture: "MistralForCausalLM",
    window: Some(20),
    is_tied: false,
    ..LLAMA
};
/// The same with norms of wider heads.
pub(crate) const QWEN: Kind = Kind {
    family: "qwen3",
    architecture: "Qwen3ForCausalLM",
    heads: 2,
    key_heads: 1,
    head_size: 128,
    norms_heads: true,
    is_tied: false,
    ..LLAMA
};

/// Experts in all layers, whose shares sum to one.
pub(crate) const MIXTRAL: Kind = Kind {
    family: "mixtral",
    architecture: "MixtralForCausalLM",
    is_tied: false,
    experts: Some(Experts {
        count: 5,
        chosen: 2,
        inner: 48,
        is_normalised: true,
        dense: &[],
        names: [
            "block_sparse_moe.gate",
            "block_sparse_moe.experts",
            "w1",
            "w3",
            "w2",
        ],
    }),
    ..LLAMA
};
/// Norms of heads, a layer without experts, and shares of all experts.
pub(crate) const QWEN_MIXTURE: Kind = Kind {
    family: "qwen3_moe",
    architecture: "Qwen3MoeForCausalLM",
    experts: Some(Experts {
        count: 8,
        chosen: 3,
        inner: 32,
        is_normalised: false,
        dense: &[0],
        names: ["mlp.gate", "mlp.experts", "gate_proj", "up_proj", "down_proj"],
    }),
    ..QWEN
};

/// Numbers of a row that decide which experts it uses: no layer changes them, so that no rounding decides.
const TOLD: usize = 16;

/// Weights in bf16 by their names in checkpoints.
pub(crate) struct Checkpoint {
    kind: Kind,
    pub(crate) shape: Shape,
    tensors: BTreeMap<String, (Vec<usize>, Vec<u16>)>,
}

impl Checkpoint {
    pub(crate) fn random(kind: Kind, chance: &mut Chance) -> Self {
        let shape = Shape {
            hidden: kind.hidden,
            inner: kind.inner,
            heads: kind.heads,
            key_heads: kind.key_heads,
            head_size: kind.head_size,
            vocab: 96,
            eps: 1e-5,
            norms_heads: kind.norms_heads,
            windows: vec![kind.window; kind.layers],
            mixture: kind.experts.map(|experts| Mixture {
                experts: experts.count,
                chosen: experts.chosen,
                inner: experts.inner,
                is_normalised: experts.is_normalised,
                layers: (0..kind.layers)
                    .map(|layer| !experts.dense.contains(&layer))
                    .collect(),
            }),
            block_size: 16,
            rounded: None,
        };
        let mut checkpoint = Checkpoint {
            kind,
            shape,
            tensors: BTreeMap::new(),
        };
        checkpoint.fill(chance);
        checkpoint
    }

    fn fill(&mut self, chance: &mut Chance) {
        let Shape { hidden, inner, .. } = self.shape;
        let (vocab, size) = (self.shape.vocab, self.kind.head_size);
        let (queries, keys) = (self.kind.heads * size, self.kind.key_heads * size);
        let mut matrices = vec![("model.embed_tokens.weight".to_owned(), vocab, hidden)];
        if !self.kind.is_tied {
            matrices.push(("lm_head.weight".to_owned(), vocab, hidden));
        }
        let mut norms = vec![("model.norm.weight".to_owned(), hidden)];
        for layer in 0..self.shape.windows.len() {
            let named = |name: &str| format!("model.layers.{layer}.{name}.weight");
            matrices.extend([
                (named("self_attn.q_proj"), queries, hidden),
                (named("self_attn.k_proj"), keys, hidden),
                (named("self_attn.v_proj"), keys, hidden),
                (named("self_attn.o_proj"), hidden, queries),
            ]);
            for (network, inner) in self.networks(layer, inner) {
                let [gate, up, down] = network;
                matrices.extend([(gate, inner, hidden), (up, inner, hidden), (down, hidden, inner)]);
            }
            if let Some(experts) = self.experts_of(layer) {
                matrices.push((named(experts.names[0]), experts.count, hidden));
            }
            norms.extend([
                (named("input_layernorm"), hidden),
                (named("post_attention_layernorm"), hidden),
            ]);
            if self.kind.norms_heads {
                norms.extend([
                    (named("self_attn.q_norm"), size),
                    (named("self_attn.k_norm"), size),
                ]);
            }
        }
        for (name, rows, columns) in matrices {
            // So large that every step changes what comes out.
            let values = chance.numbers(rows * columns, 1.5 / (columns as f32).sqrt());
            self.tensors.insert(name, (vec![rows, columns], values));
        }
        for (name, width) in norms {
            self.tensors
                .insert(name, (vec![width], chance.numbers(width, 1.0)));
        }
        if self.kind.experts.is_some() {
            self.decide(chance);
        }
    }

    /// The experts of a layer, if it has some.
    fn experts_of(&self, layer: usize) -> Option<Experts> {
        self.kind
            .experts
            .filter(|experts| !experts.dense.contains(&layer))
    }

    /// The names of gates, ups and downs of a layer, of all experts or of the one network, and the width
    /// behind the gates.
    fn networks(&self, layer: usize, inner: usize) -> Vec<([String; 3], usize)> {
        let named = |name: &str| format!("model.layers.{layer}.{name}.weight");
        let Some(experts) = self.experts_of(layer) else {
            return vec![(
                ["mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"].map(named),
                inner,
            )];
        };
        let [_, all, names @ ..] = experts.names;
        let network = |number: usize| names.map(|name| named(&format!("{all}.{number}.{name}")));
        (0..experts.count)
            .map(|number| (network(number), experts.inner))
            .collect()
    }

    /// Has the first numbers of a token decide which experts it uses, by so much that rounding decides
    /// nothing: they are a shuffled scale for each token, no layer adds to them, and a router reads one for
    /// each expert.
    fn decide(&mut self, chance: &mut Chance) {
        let hidden = self.shape.hidden;
        for (name, (sizes, values)) in &mut self.tensors {
            let rows = values.chunks_mut(*sizes.last().unwrap());
            let is_router = self
                .kind
                .experts
                .is_some_and(|experts| name.ends_with(&format!("{}.weight", experts.names[0])));
            if name == "model.embed_tokens.weight" {
                for row in rows {
                    let mut scale: Vec<u16> = (1..=TOLD).map(|step| narrow(step as f32 * 0.05)).collect();
                    chance.shuffle(&mut scale);
                    row[..TOLD].copy_from_slice(&scale);
                }
            } else if name.contains("post_attention_layernorm") {
                values[..TOLD].fill(narrow(1.0));
            } else if is_router {
                let first = chance.below(TOLD);
                for (expert, row) in rows.enumerate() {
                    row.fill(0);
                    row[(expert + first) % TOLD] = narrow(2.0);
                }
            } else if sizes[0] == hidden
                && (name.contains("o_proj") || name.contains("down_proj") || name.contains("w2"))
            {
                rows.take(TOLD).for_each(|row| row.fill(0));
            }
        }
    }

    /// The decoder of torch on the processor, in f32 with the weights as they are.
    pub(crate) fn decoder(&self) -> Box<dyn Model> {
        self.decoder_in(WeightFormat::Stored)
    }

    /// The same with weights that are kept so.
    pub(crate) fn decoder_in(&self, weights: WeightFormat) -> Box<dyn Model> {
        let options = LoadOptions {
            dtype: Dtype::F32,
            threads: 1,
            weights,
            ..LoadOptions::default()
        };
        self.load(&options, None)
    }

    /// The decoder of these options, and perhaps with passes by a launcher.
    pub(crate) fn load(&self, options: &LoadOptions, launcher: Option<Box<dyn Launcher>>) -> Box<dyn Model> {
        self.load_all(options, launcher).model
    }

    /// The same with all that is loaded beside it.
    pub(crate) fn load_all(&self, options: &LoadOptions, launcher: Option<Box<dyn Launcher>>) -> LoadedModel {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("lexiform-random-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        self.write(&folder);
        let files = ModelFiles::folder(&folder);
        let loaded = match launcher {
            Some(launcher) => load_launched_by(&files, options, launcher),
            None => load(&files, options),
        };
        std::fs::remove_dir_all(&folder).unwrap();
        loaded.unwrap()
    }

    fn write(&self, folder: &Path) {
        let shape = &self.shape;
        let mut config = json!({
            "architectures": [self.kind.architecture], "model_type": self.kind.family, "vocab_size": shape.vocab,
            "hidden_size": shape.hidden, "intermediate_size": shape.inner, "num_hidden_layers": shape.windows.len(),
            "num_attention_heads": shape.heads, "num_key_value_heads": shape.key_heads, "head_dim": shape.head_size,
            "hidden_act": "silu", "max_position_embeddings": POSITIONS, "rms_norm_eps": 1e-5, "rope_theta": THETA,
            "tie_word_embeddings": self.kind.is_tied, "sliding_window": self.kind.window, "eos_token_id": 2,
            "attention_bias": false,
        });
        if let Some(experts) = self.kind.experts {
            let [count, width] = match self.kind.family {
                "mixtral" => ["num_local_experts", "intermediate_size"],
                _ => ["num_experts", "moe_intermediate_size"],
            };
            config[count] = json!(experts.count);
            config[width] = json!(experts.inner);
            config["num_experts_per_tok"] = json!(experts.chosen);
            config["norm_topk_prob"] = json!(experts.is_normalised);
            config["mlp_only_layers"] = json!(experts.dense);
        }
        let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
        for (name, (shape, values)) in &self.tensors {
            let first = data.len();
            data.extend(values.iter().flat_map(|value| value.to_le_bytes()));
            let entry = json!({"dtype": "BF16", "shape": shape, "data_offsets": [first, data.len()]});
            header.insert(name.clone(), entry);
        }
        let header = serde_json::Value::Object(header).to_string();
        let length = (header.len() as u64).to_le_bytes();
        std::fs::create_dir_all(folder).unwrap();
        std::fs::write(folder.join("config.json"), config.to_string()).unwrap();
        let file = [&length, header.as_bytes(), &data].concat();
        std::fs::write(folder.join("model.safetensors"), file).unwrap();
    }

    /// These tensors, one below the other.
    fn stack(&self, names: &[String]) -> Memory {
        let values = names.iter().flat_map(|name| self.tensors[name].1.iter().copied());
        Memory::bf16(&values.collect::<Vec<_>>())
    }

    /// All weights as the buffers of a plan.
    pub(crate) fn buffers(&self) -> HashMap<Buffer, Memory> {
        let whole = |name: &str| self.stack(&[name.to_owned()]);
        let head = match self.kind.is_tied {
            true => "model.embed_tokens.weight",
            false => "lm_head.weight",
        };
        let mut buffers = HashMap::from([
            (
                Buffer::Model(ModelWeight::Embedding),
                whole("model.embed_tokens.weight"),
            ),
            (Buffer::Model(ModelWeight::Head), whole(head)),
            (Buffer::Model(ModelWeight::Norm), whole("model.norm.weight")),
            (Buffer::Model(ModelWeight::Cosines), self.angles(f64::cos)),
            (Buffer::Model(ModelWeight::Sines), self.angles(f64::sin)),
        ]);
        for layer in 0..self.shape.windows.len() {
            buffers.extend(self.layer(layer));
        }
        buffers
    }

    fn layer(&self, layer: usize) -> Vec<(Buffer, Memory)> {
        let stack = |names: &[&str]| {
            let named = names
                .iter()
                .map(|name| format!("model.layers.{layer}.{name}.weight"));
            self.stack(&named.collect::<Vec<_>>())
        };
        let attention = ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"];
        let mut weights = vec![
            (LayerWeight::AttentionNorm, stack(&["input_layernorm"])),
            (LayerWeight::Qkv, stack(&attention)),
            (LayerWeight::Out, stack(&["self_attn.o_proj"])),
            (LayerWeight::InnerNorm, stack(&["post_attention_layernorm"])),
        ];
        let networks = self.networks(layer, 0);
        let ups = networks
            .iter()
            .flat_map(|([gate, up, _], _)| [gate.clone(), up.clone()]);
        let downs = networks.iter().map(|([.., down], _)| down.clone());
        let [ups, downs] = [ups.collect::<Vec<_>>(), downs.collect()].map(|names| self.stack(&names));
        weights.extend(match self.experts_of(layer) {
            None => vec![(LayerWeight::GateUp, ups), (LayerWeight::Down, downs)],
            Some(experts) => vec![
                (LayerWeight::Router, stack(&experts.names[..1])),
                (LayerWeight::ExpertUps, ups),
                (LayerWeight::ExpertDowns, downs),
            ],
        });
        if self.kind.norms_heads {
            let (queries, keys) = ("self_attn.q_norm", "self_attn.k_norm");
            let heads = [queries].repeat(self.kind.heads).into_iter();
            let heads: Vec<&str> = heads.chain([keys].repeat(self.kind.key_heads)).collect();
            weights.push((LayerWeight::HeadNorms, stack(&heads)));
        }
        let weights = weights.into_iter();
        weights
            .map(|(weight, memory)| (Buffer::Layer(layer, weight), memory))
            .collect()
    }

    fn angles(&self, of: fn(f64) -> f64) -> Memory {
        let size = self.kind.head_size;
        let angle =
            |position: usize, pair: usize| position as f64 * THETA.powf(-2.0 * pair as f64 / size as f64);
        let rows = (0..POSITIONS).flat_map(|position| (0..size / 2).map(move |pair| (position, pair)));
        let rows = rows.map(|(position, pair)| of(angle(position, pair)) as f32);
        Memory::f32(&rows.collect::<Vec<_>>())
    }
}
