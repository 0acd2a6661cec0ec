//! Passes by plan: the kernels instead of libtorch.
//!
//! ```text
//!   feeds ─► bucket, inputs ─┬─ too large ─► nothing: the decoder runs the pass by libtorch
//!                            ├─► plan of a size that recurs ─ first ─► its steps are started
//!                            │                              ─ then ──► a graph is captured, and replayed
//!                            └─► plan of a pass with prompts ─► its steps are started, and it is dropped
//! ```
//!
//! Weights, caches and everything else are tensors of the decoder's device; the kernels know their addresses.
//! The intermediate results of passes are in buffers that all buckets share, since passes run one after
//! another. The rows of results are shared too, but a flight may still read them when the next pass starts,
//! for instance when that pass is submitted after draws of the first. So there are two sets of rows, each
//! with a graph of every bucket; the second takes memory when it is first needed. If both are being read, a
//! pass writes to new rows, without a graph. A bucket for which there is no memory, and all larger ones, are
//! left to libtorch.
//!
//! A pass after draws ([`run_after`](Passes::run_after)) finds its tokens in the results of these: one kernel
//! copies them to the inputs before the graph is started.

use super::conversions::failed;
use super::draws::{Drawer, Started};
use super::moving;
use crate::model::{self, flight};
use crate::torch::layers::cache::Cache;
use crate::torch::layers::layer::Layer;
use crate::torch::layers::mlp::Mlp;
use crate::torch::loops::matrix::Matrix;
use crate::torch::passes::{Held, Lease, PassRows, Passes, SharedDrawer};
use lexiform_kernels::inputs::{Bucket, Feed, Input};
use lexiform_kernels::launcher::{Graph, LaunchError, Launcher, SharedLauncher};
use lexiform_kernels::node::Place;
use lexiform_kernels::plan::{Buffer, LayerWeight, ModelWeight, Plan, Scratch, Shape};
use lexiform_kernels::shapes::Take;
use lexiform_kernels::step::Step;
use std::any::Any;
use std::collections::HashMap;
use std::sync::{MutexGuard, PoisonError};
use tch::{Device, Kind, TchError, Tensor};

type Result<T> = std::result::Result<T, TchError>;

/// The passes of a model with its weights and caches, run by a launcher.
pub(super) struct Planned {
    launcher: SharedLauncher,
    shape: Shape,
    device: Device,
    /// The number of blocks of the cache.
    blocks: usize,
    /// Weights, caches, inputs, and the intermediate results of passes.
    buffers: HashMap<Buffer, Tensor>,
    /// The sets of rows that passes write to in turn.
    rows: [PassRows; SETS],
    passes: HashMap<Bucket, Pass>,
    /// Buckets for which there was no memory: they and all larger ones are left to libtorch.
    refused: Vec<Bucket>,
    /// The number of multiprocessors, which is the number of blocks of the project's own product kernels.
    multiprocessors: usize,
    tell: fn(&str),
    /// `true` once it was reported that graphs are not captured.
    has_told: bool,
}

/// The number of sets of rows: those of a pass are read while the next one writes.
const SETS: usize = 2;

/// The pass of a bucket.
struct Pass {
    plan: Plan,
    state: State,
    /// The graph for each set of rows.
    graphs: [Option<Graph>; SETS],
}

/// How a pass without a graph is run.
#[derive(Clone, Copy)]
enum State {
    /// Its steps are started, so that the libraries make their set-up of the first call before anything is
    /// captured.
    New,
    /// It is captured.
    Warm,
    /// Its steps are started, because it cannot be captured or does not recur.
    Started,
}

/// New memory for a bucket, which replaces smaller pieces.
#[derive(Default)]
struct Grown {
    buffers: Vec<(Buffer, Tensor)>,
    /// The new rows, with the number of their set.
    rows: Option<(usize, PassRows)>,
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
    /// Creates the passes for the tensors of a decoder.
    pub(super) fn new(
        held: &Held<'_>,
        (embedding, head): (&Tensor, &Matrix),
        shape: Shape,
        launcher: SharedLauncher,
    ) -> Result<Self> {
        let (mut buffers, device) = (weights(held, embedding, head)?, embedding.device());
        for (number, cache) in held.caches.iter().enumerate() {
            buffers.insert(Buffer::Keys(number), cache.keys.shallow_clone());
            buffers.insert(Buffer::Values(number), cache.values.shallow_clone());
        }
        let slots = held
            .caches
            .first()
            .map_or(0, |cache| cache.keys.size()[0] as usize);
        let multiprocessors = launcher
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .multiprocessors();
        Ok(Planned {
            rows: [
                PassRows::new(0, &shape, device)?,
                PassRows::new(0, &shape, device)?,
            ],
            blocks: slots / shape.block_size,
            buffers,
            launcher,
            shape,
            device,
            passes: HashMap::new(),
            refused: Vec::new(),
            multiprocessors,
            tell: held.tell,
            has_told: false,
        })
    }

    fn run_fed(&mut self, feeds: &[Feed<'_>], drawn: Option<u64>) -> Result<Option<PassRows>> {
        let group = self.shape.group();
        // One block of a kernel takes the tokens of draws, at most those of the largest size that passes are
        // padded to.
        let serves = |bucket: &Bucket| drawn.is_none() || bucket.is_padded();
        let Some(bucket) = Bucket::of(feeds, group).filter(serves) else {
            return Ok(None);
        };
        let Ok(inputs) = bucket.fill(feeds, group) else {
            return Ok(None);
        };
        let set = self.rows.iter().position(|rows| !rows.lease.is_shared());
        if !self.reserve(&bucket, set, bucket.split_rows(feeds, group))? {
            return Ok(None);
        }
        let rows = match set {
            Some(set) => Some(self.rows[set].share()),
            None => self.new_rows(bucket.rows).ok(),
        };
        // If there is no memory for more rows beside those that are read, the next pass can use those again.
        let Some(rows) = rows else {
            return Ok(None);
        };
        let inputs_at = address(&self.buffers, &rows, &Buffer::Inputs);
        self.lock().write(inputs_at, &inputs).map_err(failed)?;
        if let Some(drawn) = drawn {
            let take = Take {
                drawn: Place::start(drawn),
                tokens: Place {
                    buffer: inputs_at,
                    offset: bucket.offset(Input::Tokens),
                },
                count: feeds.len(),
            };
            self.lock().launch(&take.node()).map_err(failed)?;
        }
        match set {
            Some(set) => self.run_as_usual(&bucket, set, &rows)?,
            None => self.start(&bucket, &rows)?,
        }
        Ok(Some(rows))
    }

    /// Returns `true` if all tokens and blocks exist in the model. Kernels read any address that they are
    /// given.
    fn is_known(&self, feeds: &[Feed<'_>]) -> bool {
        feeds.iter().all(|feed| {
            let tokens = feed
                .tokens
                .iter()
                .all(|&token| (token as usize) < self.shape.vocab);
            tokens && self.has_blocks(feed)
        })
    }

    fn has_blocks(&self, feed: &Feed<'_>) -> bool {
        feed.table.iter().all(|&block| (block as usize) < self.blocks)
    }

    /// Replays the graph of a bucket, or starts its steps if there is no graph.
    fn run_as_usual(&mut self, bucket: &Bucket, set: usize, rows: &PassRows) -> Result<()> {
        let pass = self.passes.get(bucket);
        let known = pass.map_or((State::New, None), |pass| (pass.state, pass.graphs[set]));
        let (state, graph) = match known {
            (State::New, _) => (State::Warm, None),
            (State::Warm, None) => {
                let steps = self.steps(bucket, rows);
                let recorded = self.lock().record(&steps);
                match recorded {
                    Ok(graph) => (State::Warm, Some(graph)),
                    Err(error) => (self.without_graph(&error), None),
                }
            }
            known => known,
        };
        if let Some(pass) = self.passes.get_mut(bucket) {
            (pass.state, pass.graphs[set]) = (state, graph);
        }
        match graph {
            Some(graph) => self.lock().replay(graph).map_err(failed),
            None => self.start(bucket, rows),
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
        self.lock().start(&steps).map_err(failed)
    }

    fn steps(&self, bucket: &Bucket, rows: &PassRows) -> Vec<Step<u64>> {
        let plan = self.passes.get(bucket).map(|pass| &pass.plan);
        plan.map_or(Vec::new(), |plan| {
            plan.at(|buffer| address(&self.buffers, rows, buffer))
        })
    }

    /// Makes the plan of a bucket, and buffers that are large enough for it, with this set of rows and this
    /// many split rows. Returns `false`, and changes nothing, if there is no memory for them; for a new
    /// bucket this is reported once.
    fn reserve(&mut self, bucket: &Bucket, set: Option<usize>, split_rows: usize) -> Result<bool> {
        let set = set.filter(|&set| self.rows[set].len() < bucket.rows);
        if self.passes.contains_key(bucket) {
            // If there is no memory now, there may be for the next pass: it may need fewer splits, and rows
            // that are no longer read.
            let grown = self.allocate(bucket, &[], (set, split_rows));
            return Ok(grown.map(|grown| self.replace(grown)).is_ok());
        }
        let mut refused = self.refused.iter();
        if refused.any(|refused| bucket.is_as_large_as(refused)) {
            return Ok(false);
        }
        let plan = Plan::new(&self.shape, bucket, self.multiprocessors)
            .map_err(|why| failed(LaunchError(why.to_string())))?;
        match self.allocate(bucket, &plan.scratch, (set, split_rows)) {
            Ok(grown) => self.replace(grown),
            Err(error) => {
                self.refuse(bucket, &error);
                return Ok(false);
            }
        }
        self.passes.retain(|other, _| other.is_padded());
        let state = match bucket.is_padded() {
            true => State::New,
            false => State::Started,
        };
        let graphs = [None; SETS];
        let pass = Pass { plan, state, graphs };
        self.passes.insert(*bucket, pass);
        Ok(true)
    }

    /// Allocates what a bucket needs and what does not exist or is too small: buffers, rows of this set, and
    /// split rows.
    fn allocate(
        &self,
        bucket: &Bucket,
        scratch: &[(Scratch, usize)],
        (set, split_rows): (Option<usize>, usize),
    ) -> Result<Grown> {
        // These are rows, or as large as the texts of a pass require.
        let is_apart = |part: &Scratch| matches!(part, Scratch::Hidden | Scratch::Logits | Scratch::Parts);
        let scratch = scratch.iter().filter(|(part, _)| !is_apart(part));
        let scratch = scratch.map(|&(part, bytes)| (Buffer::Scratch(part), roomy(bucket, bytes)));
        let parts = self.shape.parts_bytes(split_rows).max(1).next_power_of_two();
        let others = [
            (Buffer::Inputs, roomy(bucket, bucket.bytes())),
            (Buffer::Scratch(Scratch::Parts), parts),
        ];
        let mut grown = Grown::default();
        for (buffer, bytes) in scratch.chain(others) {
            if self.buffers.get(&buffer).is_none_or(|held| held.numel() < bytes) {
                self.check_room(bytes)?;
                let made = new_buffer(buffer, bytes, self.device)?;
                grown.buffers.push((buffer, made));
            }
        }
        if let Some(set) = set {
            grown.rows = Some((set, self.new_rows(roomy(bucket, bucket.rows))?));
        }
        Ok(grown)
    }

    fn replace(&mut self, grown: Grown) {
        if !grown.buffers.is_empty() || grown.rows.is_some() {
            self.forget();
        }
        self.buffers.extend(grown.buffers);
        if let Some((set, rows)) = grown.rows {
            self.rows[set] = rows;
        }
    }

    fn refuse(&mut self, bucket: &Bucket, error: &TchError) {
        let bucket = least_with_memory_of(bucket);
        self.refused.push(bucket);
        let (tokens, text) = (bucket.tokens, bucket.table_width * self.shape.block_size);
        let why = error.to_string();
        (self.tell)(&format!(
            "there is no memory for passes of {tokens} tokens over texts of up to {text} by plan, so that libtorch runs these and larger \
             ones: {}",
            why.lines().next().unwrap_or_default()
        ));
    }

    fn new_rows(&self, rows: usize) -> Result<PassRows> {
        self.check_room(rows * (self.shape.vocab * 4 + self.shape.hidden * 2))?;
        PassRows::new(rows, &self.shape, self.device)
    }

    fn check_room(&self, bytes: usize) -> Result<()> {
        match self.lock().has_room(bytes) {
            true => Ok(()),
            false => Err(failed(LaunchError(format!("{bytes} bytes are not there")))),
        }
    }

    /// Drops all graphs: they contain the addresses of buffers that are about to be replaced.
    fn forget(&mut self) {
        self.lock().forget();
        for pass in self.passes.values_mut() {
            pass.graphs = [None; SETS];
        }
    }

    fn lock(&self) -> MutexGuard<'_, Box<dyn Launcher>> {
        self.launcher.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Passes for Planned {
    fn run(&mut self, feeds: &[model::Feed<'_>]) -> Result<Option<PassRows>> {
        let feeds: Vec<Feed<'_>> = feeds.iter().map(Feed::from).collect();
        match self.is_known(&feeds) {
            true => self.run_fed(&feeds, None),
            false => Ok(None),
        }
    }

    fn run_after(
        &mut self,
        drawing: &dyn flight::Drawing,
        asks: &[usize],
        feeds: &[model::Feed<'_>],
    ) -> Result<Option<PassRows>> {
        let drawing: &dyn Any = drawing;
        let Some(started) = drawing.downcast_ref::<Started>() else {
            return Ok(None);
        };
        let (drawn, count) = started.at();
        // Below zero, as the kernel knows them.
        let tokens: Vec<[u32; 1]> = asks.iter().map(|&ask| [!(ask as u32)]).collect();
        let are_there = asks.len() == feeds.len() && asks.iter().all(|&ask| ask < count);
        let feeds: Vec<Feed<'_>> = feeds.iter().map(Feed::from).collect();
        let fits = |feed: &Feed<'_>| feed.tokens.len() == 1 && self.has_blocks(feed);
        if !are_there || !feeds.iter().all(fits) {
            return Ok(None);
        }
        let fed = feeds.iter().zip(&tokens);
        let fed = fed.map(|(feed, tokens)| Feed { tokens, ..*feed });
        self.run_fed(&fed.collect::<Vec<_>>(), Some(drawn))
    }

    fn copy(&mut self, caches: &[Cache], size: usize, runs: &[Vec<(usize, usize)>]) -> Result<()> {
        moving::copy(&self.launcher, caches, size, runs)
    }

    fn drawer(&self) -> SharedDrawer {
        Drawer::shared(&self.launcher)
    }
}

impl Drop for Planned {
    /// Drops all graphs: they contain the addresses of tensors that are freed with this.
    fn drop(&mut self) {
        self.lock().forget();
    }
}

/// Returns how much is reserved for a bucket that needs `size`. Graphs are dropped when a buffer grows, so
/// the buffers of passes that are not padded grow by steps.
fn roomy(bucket: &Bucket, size: usize) -> usize {
    match bucket.is_padded() {
        true => size,
        false => size.next_power_of_two(),
    }
}

/// Returns the smallest pass that reserves as much as this one, so that it is not tried again for every size
/// without memory.
fn least_with_memory_of(bucket: &Bucket) -> Bucket {
    let least = |size: usize| size.next_power_of_two() / 2 + 1;
    match bucket.is_padded() {
        true => *bucket,
        false => Bucket {
            tokens: least(bucket.tokens),
            table_width: least(bucket.table_width),
            ..*bucket
        },
    }
}

/// Returns the address of a buffer. All buffers that a plan names exist once its bucket has been reserved.
fn address(buffers: &HashMap<Buffer, Tensor>, rows: &PassRows, buffer: &Buffer) -> u64 {
    let tensor = match buffer {
        Buffer::Scratch(Scratch::Logits) => Some(&rows.logits),
        Buffer::Scratch(Scratch::Hidden) => Some(&rows.hidden),
        _ => buffers.get(buffer),
    };
    tensor.map_or(0, |tensor| tensor.data_ptr() as u64)
}

/// Allocates a buffer. Memory that was not written reads as NaN; counts begin at zero.
fn new_buffer(buffer: Buffer, bytes: usize, device: Device) -> Result<Tensor> {
    let fill = match buffer {
        Buffer::Scratch(Scratch::Arrived) | Buffer::Inputs => 0,
        _ => 0xff,
    };
    Tensor::f_full([bytes as i64], fill, (Kind::Uint8, device))
}

/// Returns all weights as the kernels read them; the table of the one rope is in `f32`.
fn weights(held: &Held<'_>, embedding: &Tensor, head: &Matrix) -> Result<HashMap<Buffer, Tensor>> {
    let ropes = &held.config.ropes;
    let turns = ropes
        .first()
        .map_or(Vec::new(), |rope| rope.turns(held.config.max_positions));
    let table = |of: fn(&(f64, f64)) -> f64| {
        let numbers: Vec<f32> = turns.iter().map(|turn| of(turn) as f32).collect();
        Tensor::f_from_slice(&numbers)?.f_to_device(embedding.device())
    };
    let mut buffers = HashMap::from([
        (Buffer::Model(ModelWeight::Embedding), embedding.f_contiguous()?),
        (Buffer::Model(ModelWeight::Norm), held.norm.f_contiguous()?),
        (Buffer::Model(ModelWeight::Cosines), table(|turn| turn.1)?),
        (Buffer::Model(ModelWeight::Sines), table(|turn| turn.0)?),
    ]);
    let names = (
        Buffer::Model(ModelWeight::Head),
        Buffer::ModelScales(ModelWeight::Head),
    );
    insert(&mut buffers, names, head)?;
    for (number, layer) in held.layers.iter().enumerate() {
        for (weight, tensor) in layer_tensors(layer) {
            buffers.insert(Buffer::Layer(number, weight), tensor.f_contiguous()?);
        }
        for (weight, matrix) in layer_matrices(layer) {
            let names = (Buffer::Layer(number, weight), Buffer::LayerScales(number, weight));
            insert(&mut buffers, names, matrix)?;
        }
    }
    Ok(buffers)
}

/// Inserts a matrix, and the scales of its rows if it has any, under these names.
fn insert(
    buffers: &mut HashMap<Buffer, Tensor>,
    (weights, scales): (Buffer, Buffer),
    matrix: &Matrix,
) -> Result<()> {
    match matrix {
        Matrix::Stored(weight) => {
            buffers.insert(weights, weight.f_contiguous()?);
        }
        Matrix::Rounded(rounded) => {
            buffers.insert(weights, rounded.numbers.f_contiguous()?);
            buffers.insert(scales, rounded.scales.f_contiguous()?);
        }
        Matrix::Blocks(_) | Matrix::Stacked(_) => {
            return Err(TchError::Convert("kernels read no blocks".to_owned()));
        }
    }
    Ok(())
}

/// Returns the weights of a layer that are kept in bf16 whatever the format of its matrices: the scales of
/// its norms, and its experts.
fn layer_tensors(layer: &Layer) -> Vec<(LayerWeight, &Tensor)> {
    let norms = [
        (LayerWeight::AttentionNorm, &layer.before_attention),
        (LayerWeight::InnerNorm, &layer.before_mlp),
    ];
    let norms = norms
        .into_iter()
        .filter_map(|(weight, norm)| Some((weight, &norm.as_ref()?.scale)));
    let heads = layer.qk_norm.as_ref();
    let experts = match &layer.mlp {
        Mlp::Experts(experts) => experts.stacked.as_ref(),
        Mlp::Dense(_) => None,
    };
    let stacked = [LayerWeight::ExpertUps, LayerWeight::ExpertDowns].into_iter();
    norms
        .chain(heads.map(|norm| (LayerWeight::HeadNorms, &norm.scales)))
        .chain(stacked.zip(experts.into_iter().flatten()))
        .collect()
}

fn layer_matrices(layer: &Layer) -> Vec<(LayerWeight, &Matrix)> {
    let mut matrices = vec![(LayerWeight::Qkv, &layer.qkv), (LayerWeight::Out, &layer.out)];
    match &layer.mlp {
        Mlp::Dense(dense) => {
            matrices.extend([(LayerWeight::GateUp, &dense.up), (LayerWeight::Down, &dense.down)]);
        }
        Mlp::Experts(experts) => matrices.push((LayerWeight::Router, &experts.router)),
    }
    let known = matrices.into_iter();
    known
        .filter_map(|(weight, linear)| Some((weight, linear.matrix()?)))
        .collect()
}
