//! The decoder that Llama, Mistral, Qwen2 and Qwen3 share.
//!
//! ```text
//!   x ─┬─ norm ─ q,k,v ─ (q,k norm) ─ rotate ─ attend ─ out ─ + ─┬─ norm ─ gate, up ─ silu(gate)·up ─ down ─ + ─►
//!      └───────────────────────────────────────────────────────┘ └──────────────────────────────────────────┘
//! ```
//!
//! Matrices that read the same input are stacked when the model is loaded, so a layer makes four products instead of
//! seven. One pass runs all sequences' tokens through them together; only attention tells sequences apart. On the CPU
//! in f32, what lies between the products is done by the loops of [`fused`].

use super::attention::{Heads, Layout, Place, Plan};
use super::cache::{self, Cache};
use super::checkpoint::Checkpoint;
use super::config::Config;
use super::fused::{self, Turning, floats, floats_mut};
use super::home;
use crate::error::{EngineError, LoadError};
use crate::model::{Feed, Logits, Model, SlotMoves, scales};
use crate::tree::{check_all, check_copies};
use tch::{Kind, TchError, Tensor};

type Result<T> = std::result::Result<T, TchError>;

/// A matrix, `[out, in]`, and perhaps a bias.
struct Linear {
    weight: Tensor,
    bias: Option<Tensor>,
}

impl Linear {
    fn apply(&self, x: &Tensor) -> Result<Tensor> {
        x.f_linear(&self.weight, self.bias.as_ref())
    }

    /// `sum += apply(x)`, in one operation where there is no bias.
    fn add_to(&self, sum: &mut Tensor, x: &Tensor) -> Result<()> {
        let _ = match &self.bias {
            None => sum.f_addmm_(x, &self.weight.f_tr()?)?,
            Some(_) => sum.f_add_(&self.apply(x)?)?,
        };
        Ok(())
    }
}

struct Layer {
    before_attention: Tensor,
    qkv: Linear,
    /// The scales of the query and key norms, one row a head.
    qk_norm: Option<Tensor>,
    out: Linear,
    before_mlp: Tensor,
    gate_up: Linear,
    down: Linear,
    windowed: bool,
}

/// A model with its weights and cache.
pub(super) struct Llama {
    config: Config,
    place: Place,
    threads: usize,
    /// Whether the loops of [`fused`] do what lies between the matrix products.
    fused: bool,
    embedding: Tensor,
    layers: Vec<Layer>,
    norm: Tensor,
    head: Tensor,
    /// `[positions, head size]`: cosines, and sines whose first half is negated.
    cosines: Tensor,
    sines: Tensor,
    caches: Vec<Cache>,
    block_size: usize,
    /// Columns that are no tokens. Rows are measured only if this is known.
    left_out: Option<Tensor>,
}

/// Reads weights to where they are needed.
struct Weights<'a> {
    checkpoint: &'a Checkpoint<'a>,
    config: &'a Config,
    place: Place,
}

impl Weights<'_> {
    fn tensor(&self, name: &str, shape: &[i64]) -> std::result::Result<Tensor, LoadError> {
        let tensor = self.checkpoint.tensor(name, shape)?;
        self.place(tensor)
    }

    fn place(&self, tensor: Tensor) -> std::result::Result<Tensor, LoadError> {
        let moved = tensor
            .f_to_device(self.place.device)
            .and_then(|tensor| tensor.f_to_kind(self.place.kind));
        moved.map_err(|error| self.no_memory(&error))
    }

    fn no_memory(&self, error: &TchError) -> LoadError {
        LoadError::Device {
            device: format!("{:?}", self.place.device),
            message: error.to_string(),
        }
    }

    /// The matrices `names`, all reading `inputs` numbers, one below the other.
    fn stacked(
        &self,
        inputs: i64,
        names: &[(String, i64)],
        bias: bool,
    ) -> std::result::Result<Linear, LoadError> {
        let stack = |parts: Vec<Tensor>| Tensor::f_cat(&parts, 0).map_err(|error| self.no_memory(&error));
        let weights = names
            .iter()
            .map(|(name, outputs)| self.tensor(&format!("{name}.weight"), &[*outputs, inputs]));
        let weight = stack(weights.collect::<std::result::Result<_, _>>()?)?;
        if !bias {
            return Ok(Linear { weight, bias: None });
        }
        let biases = names
            .iter()
            .map(|(name, outputs)| self.tensor(&format!("{name}.bias"), &[*outputs]));
        Ok(Linear {
            weight,
            bias: Some(stack(biases.collect::<std::result::Result<_, _>>()?)?),
        })
    }

    fn layer(&self, number: usize) -> std::result::Result<Layer, LoadError> {
        let config = self.config;
        let Config {
            hidden,
            ffn,
            heads,
            kv_heads,
            head_dim,
            ..
        } = *config;
        let prefix = format!("model.layers.{number}");
        let named = |part: &str, outputs: i64| (format!("{prefix}.{part}"), outputs);
        let qkv = [
            named("self_attn.q_proj", heads * head_dim),
            named("self_attn.k_proj", kv_heads * head_dim),
            named("self_attn.v_proj", kv_heads * head_dim),
        ];
        let gate_up = [named("mlp.gate_proj", ffn), named("mlp.up_proj", ffn)];
        Ok(Layer {
            before_attention: self.tensor(&format!("{prefix}.input_layernorm.weight"), &[hidden])?,
            qkv: self.stacked(hidden, &qkv, config.qkv_bias)?,
            qk_norm: if config.qk_norm {
                Some(self.qk_norm(&prefix)?)
            } else {
                None
            },
            out: self.stacked(
                heads * head_dim,
                &[named("self_attn.o_proj", hidden)],
                config.o_bias,
            )?,
            before_mlp: self.tensor(&format!("{prefix}.post_attention_layernorm.weight"), &[hidden])?,
            gate_up: self.stacked(hidden, &gate_up, config.mlp_bias)?,
            down: self.stacked(ffn, &[named("mlp.down_proj", hidden)], config.mlp_bias)?,
            windowed: config.windowed[number],
        })
    }

    fn qk_norm(&self, prefix: &str) -> std::result::Result<Tensor, LoadError> {
        let Config {
            heads,
            kv_heads,
            head_dim,
            ..
        } = *self.config;
        let queries = self.tensor(&format!("{prefix}.self_attn.q_norm.weight"), &[head_dim])?;
        let keys = self.tensor(&format!("{prefix}.self_attn.k_norm.weight"), &[head_dim])?;
        let rows = [
            queries.f_expand([heads, head_dim], true),
            keys.f_expand([kv_heads, head_dim], true),
        ];
        let [queries, keys] = rows.map(|row| row.map_err(|error| self.no_memory(&error)));
        Tensor::f_cat(&[queries?, keys?], 0).map_err(|error| self.no_memory(&error))
    }

    /// Cosines and signed sines of every position.
    fn turns(&self) -> std::result::Result<(Tensor, Tensor), LoadError> {
        let rope = &self.config.rope;
        let frequencies = rope.frequencies(self.config.head_dim as usize);
        let scale = rope.attention();
        let (mut cosines, mut sines) = (Vec::new(), Vec::new());
        for position in 0..self.config.max_positions {
            // The angle is rounded as the reference implementation rounds it: at far positions it shows.
            let turn = |frequency: &f64| f64::from(*frequency as f32 * position as f32).sin_cos();
            let row: Vec<(f64, f64)> = frequencies.iter().map(turn).collect();
            cosines.extend(row.iter().chain(&row).map(|(_, cosine)| (cosine * scale) as f32));
            sines.extend(row.iter().map(|(sine, _)| (-sine * scale) as f32));
            sines.extend(row.iter().map(|(sine, _)| (sine * scale) as f32));
        }
        let shape = [self.config.max_positions as i64, self.config.head_dim];
        let table = |values: &[f32]| Tensor::f_from_slice(values).and_then(|values| values.f_view(shape));
        let cosines = table(&cosines).map_err(|error| self.no_memory(&error))?;
        let sines = table(&sines).map_err(|error| self.no_memory(&error))?;
        Ok((self.place(cosines)?, self.place(sines)?))
    }
}

impl Llama {
    pub(super) fn load(
        checkpoint: &Checkpoint<'_>,
        config: Config,
        place: Place,
        (threads, fused): (usize, bool),
    ) -> std::result::Result<Self, LoadError> {
        let fused = fused && place.device == tch::Device::Cpu && place.kind == Kind::Float;
        let weights = Weights {
            checkpoint,
            config: &config,
            place,
        };
        let embedding = weights.tensor("model.embed_tokens.weight", &[config.vocab, config.hidden])?;
        let head = match config.tied {
            true => embedding.shallow_clone(),
            false => weights.tensor("lm_head.weight", &[config.vocab, config.hidden])?,
        };
        let layers = (0..config.layers)
            .map(|number| weights.layer(number))
            .collect::<std::result::Result<_, _>>()?;
        let norm = weights.tensor("model.norm.weight", &[config.hidden])?;
        let (cosines, sines) = weights.turns()?;
        let (caches, block_size) = (Vec::new(), 1);
        Ok(Llama {
            place,
            threads,
            fused,
            embedding,
            layers,
            norm,
            head,
            cosines,
            sines,
            caches,
            block_size,
            left_out: None,
            config,
        })
    }

    fn layout(&self) -> Layout {
        let Config {
            heads,
            kv_heads,
            head_dim,
            window,
            ..
        } = self.config;
        let heads = Heads {
            queries: heads,
            keys: kv_heads,
            size: head_dim,
        };
        Layout {
            block_size: self.block_size,
            heads,
            window,
            place: self.place,
            fused: self.fused,
        }
    }

    fn run(&mut self, feeds: &[Feed<'_>]) -> Result<Logits> {
        let plan = Plan::new(feeds, self.layout())?;
        let mut x = self.embedding.f_index_select(0, &plan.tokens)?;
        x = if self.fused {
            self.layers_fused(x, &plan)?
        } else {
            self.layers_by_torch(x, &plan)?
        };
        if let Some(wanted) = &plan.wanted {
            x = x.f_index_select(0, wanted)?;
        }
        if x.size()[0] == 0 {
            return Ok(Logits::default());
        }
        let x = norm(&x, Some(&self.norm), &self.config, self.config.hidden)?;
        let logits = x.f_linear(&self.head, None::<&Tensor>)?;
        home::bring(&logits, self.left_out.as_ref(), scales(feeds))
    }

    fn layers_by_torch(&mut self, mut x: Tensor, plan: &Plan) -> Result<Tensor> {
        let turns = Turns {
            cosines: self.cosines.f_index_select(0, &plan.positions)?.f_unsqueeze(1)?,
            sines: self.sines.f_index_select(0, &plan.positions)?.f_unsqueeze(1)?,
        };
        for (layer, cache) in self.layers.iter().zip(&mut self.caches) {
            let attended = layer.attend(&x, cache, plan, &turns, &self.config)?;
            layer.out.add_to(&mut x, &attended)?;
            let gated = layer.gated(&x, &self.config)?;
            layer.down.add_to(&mut x, &gated)?;
        }
        Ok(x)
    }

    fn layers_fused(&mut self, mut x: Tensor, plan: &Plan) -> Result<Tensor> {
        let heads = self.layout().heads;
        let eps = self.config.eps as f32;
        let mut normed = x.f_empty_like()?;
        for (layer, cache) in self.layers.iter().zip(&mut self.caches) {
            fused::norm(
                floats(&x),
                floats(&layer.before_attention),
                eps,
                floats_mut(&mut normed),
            );
            let mut rows = layer.qkv.apply(&normed)?;
            let turning = Turning {
                heads,
                cosines: floats(&self.cosines),
                sines: floats(&self.sines),
                positions: &plan.host_positions,
                norm: layer.qk_norm.as_ref().map(floats),
                eps,
            };
            fused::turn(floats_mut(&mut rows), &turning);
            let attended = layer
                .out
                .apply(&plan.attend_fused(cache, &rows, layer.windowed)?)?;
            fused::add(floats_mut(&mut x), floats(&attended));
            fused::norm(
                floats(&x),
                floats(&layer.before_mlp),
                eps,
                floats_mut(&mut normed),
            );
            let both = layer.gate_up.apply(&normed)?;
            let mut gated = Tensor::f_empty([x.size()[0], self.config.ffn], (Kind::Float, tch::Device::Cpu))?;
            fused::gated(floats(&both), self.config.ffn as usize, floats_mut(&mut gated));
            fused::add(floats_mut(&mut x), floats(&layer.down.apply(&gated)?));
        }
        Ok(x)
    }
}

/// Cosines and sines at the fed positions, `[tokens, 1, head size]`.
struct Turns {
    cosines: Tensor,
    sines: Tensor,
}

fn norm(x: &Tensor, scale: Option<&Tensor>, config: &Config, size: i64) -> Result<Tensor> {
    x.f_rms_norm(size, scale, config.eps)
}

impl Layer {
    fn attend(
        &self,
        x: &Tensor,
        cache: &mut Cache,
        plan: &Plan,
        turns: &Turns,
        config: &Config,
    ) -> Result<Tensor> {
        let Config {
            heads,
            kv_heads,
            head_dim,
            ..
        } = *config;
        let tokens = x.size()[0];
        let x = norm(x, Some(&self.before_attention), config, config.hidden)?;
        let qkv = self
            .qkv
            .apply(&x)?
            .f_view([tokens, heads + 2 * kv_heads, head_dim])?;
        let mut qk = qkv.f_narrow(1, 0, heads + kv_heads)?;
        if let Some(scales) = &self.qk_norm {
            qk = norm(&qk, None, config, head_dim)?.f_mul(scales)?;
        }
        // Halves swapped and sines signed: x·cos + swap(x)·sin turns every pair.
        let swapped = qk.f_roll(head_dim / 2, 2)?;
        let turned = qk.f_mul(&turns.cosines)?.f_addcmul_(&swapped, &turns.sines)?;
        let width = kv_heads * head_dim;
        let queries = turned.f_narrow(1, 0, heads)?;
        let keys = turned.f_narrow(1, heads, kv_heads)?.f_reshape([tokens, width])?;
        let values = qkv
            .f_narrow(1, heads + kv_heads, kv_heads)?
            .f_reshape([tokens, width])?;
        plan.attend(cache, &queries, &keys, &values, self.windowed)
    }

    fn gated(&self, x: &Tensor, config: &Config) -> Result<Tensor> {
        let x = norm(x, Some(&self.before_mlp), config, config.hidden)?;
        let both = self.gate_up.apply(&x)?;
        let mut gate = both.f_narrow(1, 0, config.ffn)?.f_silu()?;
        gate.f_mul_(&both.f_narrow(1, config.ffn, config.ffn)?)
    }
}

impl Model for Llama {
    fn vocab_size(&self) -> usize {
        self.config.vocab as usize
    }

    fn max_positions(&self) -> usize {
        self.config.max_positions
    }

    fn cache_bytes_per_token(&self) -> usize {
        let width = (self.config.kv_heads * self.config.head_dim) as usize;
        2 * self.config.layers * width * self.place.kind.elt_size_in_bytes()
    }

    fn create_cache(&mut self, blocks: usize, block_size: usize) -> std::result::Result<(), EngineError> {
        self.caches.clear();
        self.block_size = block_size;
        let slots = (blocks * block_size) as i64;
        let width = self.config.kv_heads * self.config.head_dim;
        for _ in 0..self.config.layers {
            let cache = Cache::new(slots, width, self.place);
            let describe =
                |error| EngineError::Config(format!("no memory for a cache of {slots} positions: {error}"));
            self.caches.push(cache.map_err(describe)?);
        }
        Ok(())
    }

    fn leave_out(&mut self, columns: &[usize]) {
        let columns: Vec<i64> = columns.iter().map(|&column| column as i64).collect();
        // A card that has no room for these will say so when it is asked to compute.
        let sent = Tensor::f_from_slice(&columns).and_then(|columns| columns.f_to_device(self.place.device));
        self.left_out = sent.ok();
    }

    fn forward(&mut self, feeds: &[Feed<'_>]) -> std::result::Result<Logits, EngineError> {
        check_all("feed", feeds, |feed| {
            feed.check(self.block_size, self.config.max_positions)
        })?;
        // Both hold for the calling thread only.
        let _no_grad = tch::no_grad_guard();
        if tch::get_num_threads() != self.threads as i32 {
            tch::set_num_threads(self.threads as i32);
        }
        self.run(feeds)
            .map_err(|error| EngineError::Model(error.to_string()))
    }
    fn move_slots(&mut self, moves: &[SlotMoves<'_>]) -> std::result::Result<(), EngineError> {
        check_all("move", moves, |moves| moves.check(self.block_size))?;
        let rows: Vec<_> = moves
            .iter()
            .flat_map(|moves| moves.rows(self.block_size))
            .collect();
        cache::copy(&mut self.caches, 1, &rows, self.place)
            .map_err(|error| EngineError::Model(error.to_string()))
    }

    fn copy_blocks(&mut self, pairs: &[(u32, u32)]) -> std::result::Result<(), EngineError> {
        let slots = self
            .caches
            .first()
            .map_or(0, |cache| cache.keys.size()[0] as usize);
        check_copies(pairs, slots / self.block_size)?;
        let blocks: Vec<_> = pairs
            .iter()
            .map(|&(from, to)| (from as usize, to as usize))
            .collect();
        cache::copy(&mut self.caches, self.block_size, &blocks, self.place)
            .map_err(|error| EngineError::Model(error.to_string()))
    }
}
