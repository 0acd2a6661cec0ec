//! The decoder that all families share: it reads a description, and knows none of them by name.
//!
//! ```text
//!   tokens ─► embedding (· scale) (+ positions) ─► x
//!   x ─┬─ (norm) ─ q,k,v ─ (q,k norm) ─ (rotate) ─ attend ─ out ─ (norm) ─ + ─┬─ (norm) ─ mlp or experts ─ (norm) ─ + ─►
//!      └──────────────────────────────────────────────────────────────────────┘ └─────────────────────────────────────┘
//!   x ─► norm ─► head ─► (cap) ─► logits            what is in parentheses, some families have and others have not
//! ```
//!
//! Matrices that read the same input are stacked when the model is loaded, so a layer makes four products instead of
//! seven. One pass runs all sequences' tokens through them together; only attention tells sequences apart. On the CPU
//! in f32, what lies between the products is done by the loops of [`fused`](super::layers::fused).

pub(crate) mod weights;

use self::weights::Weights;
use super::checkpoint::Checkpoint;
use super::config::Config;
use super::flight::Rows;
use super::layers::attention::Plan;
use super::layers::cache::{self, Cache};
use super::layers::layer::{Layer, Turns};
use super::layers::layout::{Layout, Place, Scoring};
use super::layers::linear::Norm;
use super::options::LoadOptions;
use crate::error::{EngineError, LoadError};
use crate::model::flight::{Flight, Landed};
use crate::model::tree::{check_all, check_copies};
use crate::model::{Feed, Model, SlotMoves, scales};
use tch::{Kind, TchError, Tensor};

type Result<T> = std::result::Result<T, TchError>;

/// A model with its weights and cache.
pub(super) struct Decoder {
    config: Config,
    place: Place,
    threads: usize,
    /// Whether loops of our own do what lies between the matrix products.
    fused: bool,
    embedding: Tensor,
    /// What is added to the embeddings at each position.
    positions: Option<Tensor>,
    layers: Vec<Layer>,
    norm: Norm,
    head: Tensor,
    /// Cosines and sines of all positions, for each way to turn.
    turns: Vec<Turns>,
    caches: Vec<Cache>,
    block_size: usize,
    /// Columns that are no tokens. Rows are measured only if this is known.
    left_out: Option<Tensor>,
    /// Whether tokens are drawn on the device.
    draws: bool,
}

impl Decoder {
    pub(super) fn load(
        checkpoint: &Checkpoint<'_>,
        config: Config,
        place: Place,
        options: &LoadOptions,
    ) -> std::result::Result<Self, LoadError> {
        let fused = options.fused && place.device == tch::Device::Cpu && place.kind == Kind::Float;
        let (weights, names) = (Weights::new(checkpoint, &config, place), &config.family.names);
        let (name, _) = weights::embedding(checkpoint, names);
        let embedding = weights.tensor(&name, &[config.vocab, config.hidden])?;
        let head = match config.tied {
            true => embedding.shallow_clone(),
            false => weights.tensor("lm_head.weight", &[config.vocab, config.hidden])?,
        };
        let rows = config.max_positions as i64;
        let positions = names.positions.map(|name| {
            let name = format!("{name}.weight");
            weights.own(&name, &[rows, config.hidden])
        });
        let positions = positions.transpose()?;
        let layers = (0..config.layers.len()).map(|number| weights.layer(number));
        let layers = layers.collect::<std::result::Result<_, _>>()?;
        let norm = weights.norm(names.norm, config.hidden)?;
        let turns = config.ropes.iter().map(|rope| weights.turns(rope));
        let turns = turns.collect::<std::result::Result<_, _>>()?;
        Ok(Decoder {
            place,
            threads: options.threads.max(1),
            fused,
            embedding,
            positions,
            layers,
            norm,
            head,
            turns,
            caches: Vec::new(),
            block_size: 1,
            left_out: None,
            draws: options.draws.unwrap_or(place.device != tch::Device::Cpu),
            config,
        })
    }

    fn layout(&self) -> Layout {
        let attention = &self.config.attention;
        Layout {
            block_size: self.block_size,
            heads: self.config.attention.heads(),
            window: self.config.window,
            scoring: Scoring {
                scale: attention.scale,
                cap: attention.cap,
            },
            place: self.place,
            fused: self.fused,
        }
    }

    fn run(&mut self, feeds: &[Feed<'_>]) -> Result<Box<dyn Flight>> {
        let plan = Plan::new(feeds, self.layout())?;
        let mut x = self.embed(&plan)?;
        if self.fused {
            let mut scratch = x.f_empty_like()?;
            for (layer, cache) in self.layers.iter().zip(&mut self.caches) {
                layer.by_loops(&mut x, cache, &plan, &self.turns, &mut scratch)?;
            }
        } else {
            let turns = self.turns.iter().map(|turns| turns.at(&plan.positions));
            let turns = turns.collect::<Result<Vec<_>>>()?;
            for (layer, cache) in self.layers.iter().zip(&mut self.caches) {
                layer.by_torch(&mut x, cache, &plan, &turns)?;
            }
        }
        if let Some(wanted) = &plan.wanted {
            x = x.f_index_select(0, wanted)?;
        }
        if x.size()[0] == 0 {
            return Ok(Box::new(Landed::default()));
        }
        let hidden = self.norm.apply(&x)?;
        let mut logits = hidden.f_linear(&self.head, None::<&Tensor>)?;
        if let Some(cap) = self.config.logit_cap {
            let _ = logits.f_div_scalar_(cap)?.f_tanh_()?.f_mul_scalar_(cap)?;
        }
        Ok(Box::new(Rows {
            logits,
            hidden,
            left_out: self.left_out.as_ref().map(Tensor::shallow_clone),
            scales: scales(feeds),
            draws: self.draws && self.left_out.is_some(),
        }))
    }

    fn embed(&self, plan: &Plan) -> Result<Tensor> {
        let mut x = self.embedding.f_index_select(0, &plan.tokens)?;
        if let Some(scale) = self.config.embedding_scale {
            // Rounded like the numbers that it multiplies, as the reference implementation has it.
            let scale = Tensor::from(scale).f_to_kind(self.place.kind)?;
            let _ = x.f_mul_scalar_(f64::try_from(scale)?)?;
        }
        if let Some(positions) = &self.positions {
            let _ = x.f_add_(&positions.f_index_select(0, &plan.positions)?)?;
        }
        Ok(x)
    }
}

impl Model for Decoder {
    fn vocab_size(&self) -> usize {
        self.config.vocab as usize
    }

    fn max_positions(&self) -> usize {
        self.config.max_positions
    }

    fn cache_bytes_per_token(&self) -> usize {
        let heads = self.config.attention.heads();
        2 * self.layers.len() * (heads.keys * heads.size) as usize * self.place.kind.elt_size_in_bytes()
    }

    fn create_cache(&mut self, blocks: usize, block_size: usize) -> std::result::Result<(), EngineError> {
        self.caches.clear();
        self.block_size = block_size;
        let slots = (blocks * block_size) as i64;
        let heads = self.config.attention.heads();
        for _ in &self.layers {
            let cache = Cache::new(slots, heads.keys * heads.size, self.place);
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

    fn submit(&mut self, feeds: &[Feed<'_>]) -> std::result::Result<Box<dyn Flight>, EngineError> {
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
