//! Passes by plan: the kernels instead of libtorch, for passes of up to 128 tokens.
//!
//! ```text
//!   feeds ─► bucket, inputs ─┬─ fits none (a prompt) ─► nothing: the decoder runs the pass by libtorch
//!                            └─► plan of the bucket ─ first ─► its steps are started
//!                                                   ─ then ──► they are captured as a graph, which is replayed
//! ```
//!
//! Weights, caches and all else are tensors of the decoder's device; the kernels know their addresses. What passes compute on the
//! way lies in buffers that all buckets share, since passes run one after another. So do their rows, which a flight may still
//! read when the next pass comes: that pass then writes rows of its own, without a graph.

use crate::model::Feed;
use crate::torch::config::Config;
use crate::torch::flight::Lease;
use crate::torch::kernels::inputs::{Bucket, split_rows};
use crate::torch::kernels::launcher::{Graph, LaunchError, Launcher, SharedLauncher};
use crate::torch::kernels::plan::{Buffer, LayerWeight, ModelWeight, Plan, Scratch, Shape};
use crate::torch::kernels::step::Step;
use crate::torch::layers::cache::Cache;
use crate::torch::layers::layer::Layer;
use crate::torch::layers::mlp::Mlp;
use std::collections::HashMap;
use std::sync::{MutexGuard, PoisonError};
use tch::{Device, Kind, TchError, Tensor};

type Result<T> = std::result::Result<T, TchError>;

/// What a decoder has, and passes read and write.
pub(super) struct Held<'a> {
    pub(super) config: &'a Config,
    /// `[vocabulary, hidden]`.
    pub(super) embedding: &'a Tensor,
    /// `[vocabulary, hidden]`.
    pub(super) head: &'a Tensor,
    /// The scale of the last norm.
    pub(super) norm: &'a Tensor,
    pub(super) layers: &'a [Layer],
    pub(super) caches: &'a [Cache],
    pub(super) tell: fn(&str),
}

/// The passes of a model with its weights and caches, by a launcher.
pub(super) struct Planned {
    launcher: SharedLauncher,
    shape: Shape,
    device: Device,
    /// Blocks of the cache.
    blocks: usize,
    /// Weights, caches, inputs, and what passes compute on the way.
    buffers: HashMap<Buffer, Tensor>,
    rows: PassRows,
    passes: HashMap<Bucket, Pass>,
    tell: fn(&str),
    /// Whether somebody was told that graphs are not captured.
    has_told: bool,
}

/// The pass of a bucket.
struct Pass {
    plan: Plan,
    state: State,
}

/// How a pass is run.
#[derive(Clone, Copy)]
enum State {
    /// Its steps are started, so that what the libraries set up at their first call is there before anything is captured.
    New,
    /// It is captured next time.
    Warm,
    /// It is replayed.
    Recorded(Graph),
    /// It cannot be captured.
    Started,
}

/// The rows that a pass leaves.
pub(super) struct PassRows {
    /// `[rows, vocabulary]`, `f32`.
    pub(super) logits: Tensor,
    /// `[rows, hidden]`, bf16.
    pub(super) hidden: Tensor,
    /// Held by who still reads them.
    pub(super) lease: Lease,
}

impl PassRows {
    fn new(rows: usize, shape: &Shape, device: Device) -> Result<Self> {
        let (rows, hidden, vocab) = (rows as i64, shape.hidden as i64, shape.vocab as i64);
        Ok(PassRows {
            logits: Tensor::f_empty([rows, vocab], (Kind::Float, device))?,
            hidden: Tensor::f_empty([rows, hidden], (Kind::BFloat16, device))?,
            lease: Lease::default(),
        })
    }

    fn len(&self) -> usize {
        self.logits.size().first().map_or(0, |&rows| rows as usize)
    }

    fn share(&self) -> Self {
        PassRows {
            logits: self.logits.shallow_clone(),
            hidden: self.hidden.shallow_clone(),
            lease: self.lease.clone(),
        }
    }
}

impl Planned {
    /// The passes of what a decoder has.
    pub(super) fn new(held: &Held<'_>, shape: Shape, launcher: SharedLauncher) -> Result<Self> {
        let (mut buffers, device) = (held.weights()?, held.embedding.device());
        for (number, cache) in held.caches.iter().enumerate() {
            buffers.insert(Buffer::Keys(number), cache.keys.shallow_clone());
            buffers.insert(Buffer::Values(number), cache.values.shallow_clone());
        }
        let slots = held
            .caches
            .first()
            .map_or(0, |cache| cache.keys.size()[0] as usize);
        Ok(Planned {
            rows: PassRows::new(0, &shape, device)?,
            blocks: slots / shape.block_size,
            buffers,
            launcher,
            shape,
            device,
            passes: HashMap::new(),
            tell: held.tell,
            has_told: false,
        })
    }

    pub(super) fn launcher(&self) -> SharedLauncher {
        self.launcher.clone()
    }

    /// Runs the pass of these feeds, and says where its rows are: all that it was asked for, and padding behind them. `None` if no
    /// bucket holds it, and then nothing was run.
    pub(super) fn run(&mut self, feeds: &[Feed<'_>]) -> Result<Option<PassRows>> {
        let group = self.shape.group();
        let Some(bucket) = Bucket::of(feeds, group).filter(|_| self.is_known(feeds)) else {
            return Ok(None);
        };
        let Ok(inputs) = bucket.fill(feeds, group) else {
            return Ok(None);
        };
        self.reserve(&bucket)?;
        self.reserve_parts(split_rows(feeds, group))?;
        let is_read = self.rows.lease.is_shared();
        let rows = match is_read {
            true => PassRows::new(bucket.rows, &self.shape, self.device)?,
            false => self.rows.share(),
        };
        let inputs_at = address(&self.buffers, &rows, &Buffer::Inputs);
        self.lock().write(inputs_at, &inputs)?;
        match is_read {
            true => self.start(&bucket, &rows)?,
            false => self.run_as_usual(&bucket, &rows)?,
        }
        Ok(Some(rows))
    }

    /// Whether all tokens and blocks are those of the model. Kernels read what is where they are told to.
    fn is_known(&self, feeds: &[Feed<'_>]) -> bool {
        feeds.iter().all(|feed| {
            let tokens = feed
                .tokens
                .iter()
                .all(|&token| (token as usize) < self.shape.vocab);
            tokens && feed.table.iter().all(|&block| (block as usize) < self.blocks)
        })
    }

    /// Replays the graph of a bucket, or starts its steps where there is none yet or cannot be one.
    fn run_as_usual(&mut self, bucket: &Bucket, rows: &PassRows) -> Result<()> {
        let state = self.passes.get(bucket).map_or(State::New, |pass| pass.state);
        let next = match state {
            State::Recorded(_) | State::Started => state,
            State::New => State::Warm,
            State::Warm => {
                let steps = self.steps(bucket, rows);
                let recorded = self.lock().record(&steps);
                recorded.map_or_else(|error| self.without_graph(&error), State::Recorded)
            }
        };
        if let Some(pass) = self.passes.get_mut(bucket) {
            pass.state = next;
        }
        match next {
            State::Recorded(graph) => Ok(self.lock().replay(graph)?),
            _ => self.start(bucket, rows),
        }
    }

    fn without_graph(&mut self, error: &LaunchError) -> State {
        if !std::mem::replace(&mut self.has_told, true) {
            (self.tell)(&format!(
                "a pass cannot be captured as a graph, so that its kernels are started one by one: {error}"
            ));
        }
        State::Started
    }

    fn start(&self, bucket: &Bucket, rows: &PassRows) -> Result<()> {
        let steps = self.steps(bucket, rows);
        Ok(self.lock().start(&steps)?)
    }

    fn steps(&self, bucket: &Bucket, rows: &PassRows) -> Vec<Step<u64>> {
        let plan = self.passes.get(bucket).map(|pass| &pass.plan);
        plan.map_or(Vec::new(), |plan| {
            plan.at(|buffer| address(&self.buffers, rows, buffer))
        })
    }

    /// Makes the plan of a bucket, and buffers that are large enough for it.
    fn reserve(&mut self, bucket: &Bucket) -> Result<()> {
        if self.passes.contains_key(bucket) {
            return Ok(());
        }
        let plan = Plan::new(&self.shape, bucket).map_err(|why| LaunchError(why.to_string()))?;
        let scratch = plan
            .scratch
            .iter()
            .map(|&(part, bytes)| (Buffer::Scratch(part), bytes));
        for (buffer, bytes) in scratch.chain([(Buffer::Inputs, bucket.bytes())]) {
            let is_apart = matches!(
                buffer,
                Buffer::Scratch(Scratch::Hidden | Scratch::Logits | Scratch::Parts)
            );
            if !is_apart && self.buffers.get(&buffer).is_none_or(|held| held.numel() < bytes) {
                self.forget();
                self.buffers
                    .insert(buffer, new_buffer(buffer, bytes, self.device)?);
            }
        }
        if self.rows.len() < bucket.rows {
            self.forget();
            self.rows = PassRows::new(bucket.rows, &self.shape, self.device)?;
        }
        let state = State::New;
        self.passes.insert(*bucket, Pass { plan, state });
        Ok(())
    }

    /// Makes room for so many split rows, as the texts of passes come to need it.
    fn reserve_parts(&mut self, rows: usize) -> Result<()> {
        let (buffer, bytes) = (
            Buffer::Scratch(Scratch::Parts),
            self.shape.parts_bytes(rows).max(1),
        );
        if self.buffers.get(&buffer).is_none_or(|held| held.numel() < bytes) {
            self.forget();
            let parts = new_buffer(buffer, bytes.next_power_of_two(), self.device)?;
            self.buffers.insert(buffer, parts);
        }
        Ok(())
    }

    /// Drops all graphs: they have the addresses of buffers that are about to be replaced.
    fn forget(&mut self) {
        self.lock().forget();
        for pass in self.passes.values_mut() {
            if let State::Recorded(_) = pass.state {
                pass.state = State::Warm;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Box<dyn Launcher>> {
        self.launcher.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Planned {
    /// Graphs have the addresses of tensors that are freed with this.
    fn drop(&mut self) {
        self.lock().forget();
    }
}

/// Where a buffer begins. All that a plan names is there once its bucket has been reserved.
fn address(buffers: &HashMap<Buffer, Tensor>, rows: &PassRows, buffer: &Buffer) -> u64 {
    let tensor = match buffer {
        Buffer::Scratch(Scratch::Logits) => Some(&rows.logits),
        Buffer::Scratch(Scratch::Hidden) => Some(&rows.hidden),
        _ => buffers.get(buffer),
    };
    tensor.map_or(0, |tensor| tensor.data_ptr() as u64)
}

/// So many bytes. What nobody has written is not a number; counts begin at zero.
fn new_buffer(buffer: Buffer, bytes: usize, device: Device) -> Result<Tensor> {
    let fill = match buffer {
        Buffer::Scratch(Scratch::Arrived) | Buffer::Inputs => 0,
        _ => 0xff,
    };
    Tensor::f_full([bytes as i64], fill, (Kind::Uint8, device))
}

impl Held<'_> {
    /// All weights as the kernels read them; of the one rope, a table in `f32`.
    fn weights(&self) -> Result<HashMap<Buffer, Tensor>> {
        let ropes = &self.config.ropes;
        let turns = ropes
            .first()
            .map_or(Vec::new(), |rope| rope.turns(self.config.max_positions));
        let table = |of: fn(&(f64, f64)) -> f64| {
            let numbers: Vec<f32> = turns.iter().map(|turn| of(turn) as f32).collect();
            Tensor::f_from_slice(&numbers)?.f_to_device(self.embedding.device())
        };
        let mut buffers = HashMap::from([
            (
                Buffer::Model(ModelWeight::Embedding),
                self.embedding.f_contiguous()?,
            ),
            (Buffer::Model(ModelWeight::Head), self.head.f_contiguous()?),
            (Buffer::Model(ModelWeight::Norm), self.norm.f_contiguous()?),
            (Buffer::Model(ModelWeight::Cosines), table(|turn| turn.1)?),
            (Buffer::Model(ModelWeight::Sines), table(|turn| turn.0)?),
        ]);
        for (number, layer) in self.layers.iter().enumerate() {
            for (weight, tensor) in layer_weights(layer) {
                buffers.insert(Buffer::Layer(number, weight), tensor.f_contiguous()?);
            }
        }
        Ok(buffers)
    }
}

fn layer_weights(layer: &Layer) -> Vec<(LayerWeight, &Tensor)> {
    let norms = [
        (LayerWeight::AttentionNorm, &layer.before_attention),
        (LayerWeight::InnerNorm, &layer.before_mlp),
    ];
    let norms = norms
        .into_iter()
        .filter_map(|(weight, norm)| Some((weight, &norm.as_ref()?.scale)));
    let mut weights: Vec<(LayerWeight, &Tensor)> = norms.collect();
    let mut matrices = vec![(LayerWeight::Qkv, &layer.qkv), (LayerWeight::Out, &layer.out)];
    weights.extend(
        layer
            .qk_norm
            .as_ref()
            .map(|norm| (LayerWeight::HeadNorms, &norm.scales)),
    );
    if let Mlp::Dense(dense) = &layer.mlp {
        matrices.extend([(LayerWeight::GateUp, &dense.up), (LayerWeight::Down, &dense.down)]);
    }
    weights.extend(
        matrices
            .into_iter()
            .filter_map(|(weight, matrix)| Some((weight, matrix.weight()?))),
    );
    weights
}
