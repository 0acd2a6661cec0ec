//! The decoder that all families share: it follows a description, and knows no family by name.
//!
//! ```text
//!   tokens ─► embedding (· scale) (+ positions) ─► x
//!   x ─┬─ (norm) ─ q,k,v ─ (q,k norm) ─ (rotate) ─ attend ─ out ─ (norm) ─ + ─► x
//!      └───────────────────────────────────────────────────────────────────┘
//!   x ─┬─ (norm) ─ mlp or experts ─ (norm) ─ + ─► x
//!      └─────────────────────────────────────┘
//!   x ─► norm ─► head ─► (cap) ─► logits            some families lack the steps in parentheses
//! ```
//!
//! Matrices that read the same input are stacked when the model is loaded, so a layer makes four products
//! instead of seven. One pass runs the tokens of all sequences through them together; only attention
//! distinguishes sequences. On the CPU in f32, [`product`](super::loops::product) makes the products, and
//! the loops of [`fused`](super::loops::fused) do everything between them.

mod clasp;
mod lend;
mod lent;
mod skip;
pub(crate) mod states;
mod trial;
pub(crate) mod weights;

pub(super) use self::lent::Lent;
use self::states::{States, Taken};
use self::trial::{By, MOST_OFF};
use self::weights::Weights;
use super::checkpoint::Checkpoint;
use super::config::{self, Config};
use super::crew::Crew;
use super::flight::{Drawing, Rows};
use super::layers::attention::Plan;
use super::layers::cache::{self, Cache};
use super::layers::layer::{Layer, Turns};
use super::layers::layout::Place;
use super::layers::linear::{Linear, Norm};
use super::loops::matrix::Matrix;
use super::options::{LoadOptions, WeightFormat};
use super::passes::{Held, PassRows, Passes, Planner, SharedDrawer};
use crate::error::{EngineError, LoadError};
use crate::model::flight::{self, Flight, Landed};
use crate::model::tree::{check_all, check_copies};
use crate::model::{Feed, Model, SlotMoves, scales};
use std::ops::Range;
use std::sync::Arc;
use tch::{Kind, TchError, Tensor};

type Result<T> = std::result::Result<T, TchError>;

/// A model with its weights and cache.
pub(super) struct Decoder {
    config: Config,
    place: Place,
    threads: usize,
    /// The threads of the engine's own loops, if these compute instead of torch.
    crew: Option<Arc<Crew>>,
    /// `true` if a row has the same bits whatever else is in the pass.
    batch_invariant: bool,
    embedding: Matrix,
    /// The embeddings that are added by position.
    positions: Option<Tensor>,
    layers: Vec<Layer>,
    norm: Norm,
    head: Linear,
    /// Cosines and sines of all positions, for each rope.
    turns: Vec<Turns>,
    caches: Vec<Cache>,
    /// The hidden states that a head reads, if there is one.
    states: Option<States>,
    block_size: usize,
    /// The columns that are not tokens. Rows are measured only if this is known.
    left_out: Option<Tensor>,
    /// `true` if tokens are drawn on the device.
    draws: bool,
    /// Plans passes for the kernels, if there are any.
    planner: Option<Arc<dyn Planner>>,
    /// The passes that the kernels run, once there is a cache.
    planned: Option<Box<dyn Passes>>,
    tell: fn(&str),
}

/// Returns `true` if the engine's own loops compute the passes.
fn computes_by_loops(place: Place, options: &LoadOptions) -> bool {
    options.fused && place.device == tch::Device::Cpu && place.kind == Kind::Float
}

/// Returns the mean bytes that a number of a matrix takes in memory, if the checkpoint stores it in this
/// type.
pub(super) fn bytes_of_weight(
    (stored, in_blocks): (Kind, Option<f64>),
    place: Place,
    options: &LoadOptions,
) -> f64 {
    let by_loops = computes_by_loops(place, options);
    match (options.weights, stored) {
        (WeightFormat::Int8 | WeightFormat::Fp8, _) => 1.0,
        (WeightFormat::Stored, stored) => match in_blocks.filter(|_| by_loops) {
            Some(bytes) => bytes,
            None if by_loops && [Kind::BFloat16, Kind::Half].contains(&stored) => 2.0,
            None => place.kind.elt_size_in_bytes() as f64,
        },
    }
}

/// Refuses options that only the engine's own loops support, if torch computes, and options that also
/// kernels support, if there are none; `no_kernels` is the reason for that.
fn check(
    place: Place,
    options: &LoadOptions,
    no_kernels: Option<&str>,
) -> std::result::Result<(), LoadError> {
    let rounded = match options.weights {
        WeightFormat::Stored => None,
        WeightFormat::Int8 => Some("weights in int8"),
        WeightFormat::Fp8 => Some("weights in fp8"),
    };
    const LOOPS: &str = "a model that computes in f32 on the CPU, by the engine's own loops";
    const KERNELS: &str = "a model that computes in f32 on the CPU, by the engine's own loops, or one that the kernels for cards run";
    let rounded = rounded
        .filter(|_| no_kernels.is_some())
        .map(|what| (what, KERNELS));
    let invariant = options
        .batch_invariant
        .then_some(("batch-invariant passes", LOOPS));
    match rounded
        .or(invariant)
        .filter(|_| !computes_by_loops(place, options))
    {
        Some((what, needs)) => Err(LoadError::Unavailable {
            what,
            needs,
            found: format!(
                "{:?} on {}{}",
                place.kind,
                options.device,
                no_kernels.unwrap_or_default()
            ),
        }),
        None => Ok(()),
    }
}

impl Decoder {
    /// Loads a model. `no_kernels` is the reason why no kernels will run passes, empty if they were not
    /// requested.
    pub(super) fn load(
        checkpoint: &Checkpoint<'_>,
        config: Config,
        place: Place,
        options: &LoadOptions,
        no_kernels: Option<&str>,
    ) -> std::result::Result<Self, LoadError> {
        check(place, options, no_kernels)?;
        let crew = computes_by_loops(place, options).then(|| Arc::new(Crew::new(options.threads)));
        let weights = Weights::new(checkpoint, &config, place, (crew.clone(), options.weights));
        let names = &config.family.names;
        let (name, _) = weights::embedding(checkpoint, names);
        let shape = [config.vocab, config.hidden];
        let embedding = weights.matrix(&name, shape)?;
        let head = match config.tied {
            true if weights.is_rounded_for_torch() => weights.multiplied(&name, shape)?,
            true => embedding.share(),
            false => weights.multiplied("lm_head.weight", shape)?,
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
            crew,
            batch_invariant: options.batch_invariant,
            embedding,
            positions,
            layers,
            norm,
            head: weights.linear(vec![head], None)?,
            turns,
            caches: Vec::new(),
            states: None,
            block_size: 1,
            left_out: None,
            draws: options.draws.unwrap_or(place.device != tch::Device::Cpu),
            planner: None,
            planned: None,
            tell: options.tell,
            config,
        })
    }

    /// Lets `planner` plan the passes once there is a cache, if the kernels support the model. Decoders that
    /// are made from this one by [`skipping`](Self::skipping) later are planned likewise.
    pub(super) fn planned_by(mut self, planner: Arc<dyn Planner>) -> Self {
        self.planner = Some(planner);
        self
    }

    fn run(&mut self, feeds: &[Feed<'_>]) -> Result<Box<dyn Flight>> {
        match self.run_by_plan(feeds) {
            Ok(Some(flight)) => return Ok(flight),
            Ok(None) => {}
            Err(error) => self.give_up_plans(&error),
        }
        self.run_by_torch(feeds)
    }

    /// Runs a pass by the kernels; `None` if there are none, or if they do not support this pass.
    fn run_by_plan(&mut self, feeds: &[Feed<'_>]) -> Result<Option<Box<dyn Flight>>> {
        let Some(planned) = &mut self.planned else {
            return Ok(None);
        };
        let (rows, drawer) = (planned.run(feeds)?, planned.drawer());
        rows.map(|rows| self.flight_of(rows, drawer, feeds)).transpose()
    }

    /// Runs a pass by the kernels whose tokens come from these draws; `None` also if the draws are not those
    /// of the kernels.
    fn run_after(
        &mut self,
        drawing: &dyn flight::Drawing,
        asks: &[usize],
        feeds: &[Feed<'_>],
    ) -> Result<Option<Box<dyn Flight>>> {
        let Some(planned) = &mut self.planned else {
            return Ok(None);
        };
        let (rows, drawer) = (planned.run_after(drawing, asks, feeds)?, planned.drawer());
        rows.map(|rows| self.flight_of(rows, drawer, feeds)).transpose()
    }

    /// Copies stretches of the caches: by the kernels, while they run passes, or by torch. The copies of a
    /// run are made in order, and no run reads or writes what another writes.
    fn copy(&mut self, size: usize, runs: &[Vec<(usize, usize)>]) -> std::result::Result<(), EngineError> {
        if let Some(planned) = &mut self.planned {
            match planned.copy(&self.caches, size, runs) {
                Ok(()) => return Ok(()),
                Err(error) => self.give_up_plans(&error),
            }
        }
        let states = self.states.as_ref().and_then(States::rows);
        cache::copy(&self.caches, states, (size, &runs.concat()), self.place)
            .map_err(|error| EngineError::Model(error.to_string()))
    }

    /// Gives up the kernels after an error: libtorch runs all passes from now on.
    fn give_up_plans(&mut self, error: &TchError) {
        self.planned = None;
        (self.tell)(&format!("passes are run by libtorch from now on: {error}"));
    }

    /// Runs passes by plan from now on, if there is a planner and the kernels pass their trial.
    fn plan_passes(&mut self) {
        let Some(planner) = &self.planner else {
            return;
        };
        if self.states.is_some() {
            (self.tell)("passes are run by libtorch alone: a head reads the hidden states");
            return;
        }
        let (name, planned) = (planner.name(), planner.plan(&self.held()));
        let told = match planned.and_then(|planned| self.try_kernels(planned, &name)) {
            Ok(()) => format!("passes are run by kernels on {name}"),
            Err(why) => {
                self.planned = None;
                format!("passes are run by libtorch alone: {why}")
            }
        };
        (self.tell)(&told);
    }

    fn held(&self) -> Held<'_> {
        Held {
            config: &self.config,
            kind: self.place.kind,
            block_size: self.block_size,
            embedding: &self.embedding,
            head: &self.head,
            norm: &self.norm.scale,
            layers: &self.layers,
            caches: &self.caches,
            tell: self.tell,
        }
    }

    fn try_kernels(&mut self, planned: Box<dyn Passes>, name: &str) -> std::result::Result<(), String> {
        self.planned = Some(planned);
        let _no_grad = tch::no_grad_guard();
        let mut mlps = self.config.layers.iter().map(|layer| &layer.mlp);
        let slots = self
            .caches
            .first()
            .map_or(0, |cache| cache.keys.size()[0] as usize);
        let room = trial::Room {
            vocab: self.config.vocab as usize,
            positions: slots.min(self.config.max_positions),
            block_size: self.block_size,
            has_experts: mlps.any(|mlp| matches!(mlp, config::Mlp::Experts { .. })),
            is_rounded: matches!(self.head.matrix(), Some(Matrix::Rounded(_))),
        };
        let off = trial::farthest(&room, |by, feeds| match by {
            By::Torch => self.run_by_torch(feeds),
            By::Plan => {
                let flight = self.run_by_plan(feeds)?;
                flight.ok_or_else(|| TchError::Convert("a pass of a few tokens has no plan".to_owned()))
            }
        });
        match off.map_err(|error| error.to_string())? {
            off if off <= MOST_OFF => Ok(()),
            off => Err(format!(
                "on {name}, the kernels compute other rows than libtorch: off by {off:.2} of their size"
            )),
        }
    }

    fn run_by_torch(&mut self, feeds: &[Feed<'_>]) -> Result<Box<dyn Flight>> {
        let plan = Plan::new(feeds, self.layout())?;
        let mut x = self.embed(&plan)?;
        let taken = self.run_layers(&plan, &mut x)?;
        let mut is_normed = false;
        if let Some(states) = &self.states {
            is_normed = states.reads_last();
            x = if is_normed { self.normed(&x)? } else { x };
            states.keep(&plan, taken, &x)?;
        }
        if let Some(wanted) = &plan.wanted {
            x = x.f_index_select(0, wanted)?;
        }
        if x.size()[0] == 0 {
            return Ok(Box::new(Landed::default()));
        }
        let hidden = if is_normed { x } else { self.normed(&x)? };
        let mut logits = self.head.apply(&hidden)?;
        lent::limit(&mut logits, self.config.logit_cap, self.crew.is_some())?;
        Ok(Box::new(Rows {
            logits,
            hidden,
            left_out: self.left_out.as_ref().map(Tensor::shallow_clone),
            scales: scales(feeds),
            drawing: self.drawing(Drawing::Torch),
            lease: None,
        }))
    }

    /// Runs all layers on `x`; returns the inputs of those that a head reads.
    fn run_layers(&mut self, plan: &Plan, x: &mut Tensor) -> Result<Taken> {
        let mut taken = Taken::of(self.states.as_ref());
        let layers = self.layers.iter().zip(&mut self.caches).enumerate();
        if let Some(crew) = &self.crew {
            let mut scratch = x.f_empty_like()?;
            for (number, (layer, cache)) in layers {
                taken.before(number, x)?;
                layer.by_loops(crew, x, cache, plan, &self.turns, &mut scratch)?;
            }
        } else {
            let turns = self.turns.iter().map(|turns| turns.at(&plan.positions));
            let turns = turns.collect::<Result<Vec<_>>>()?;
            for (number, (layer, cache)) in layers {
                taken.before(number, x)?;
                layer.by_torch(x, cache, plan, &turns)?;
            }
        }
        taken.before(self.layers.len(), x)?;
        Ok(taken)
    }

    /// Returns `by` if tokens are drawn on the device and it is known which columns are tokens.
    fn drawing(&self, by: Drawing) -> Drawing {
        match self.draws && self.left_out.is_some() {
            true => by,
            false => Drawing::Off,
        }
    }

    /// Returns the rows of a pass by the kernels, without the padding after them.
    fn flight_of(&self, rows: PassRows, drawer: SharedDrawer, feeds: &[Feed<'_>]) -> Result<Box<dyn Flight>> {
        let scales = scales(feeds);
        if scales.is_empty() {
            return Ok(Box::new(Landed::default()));
        }
        let mut logits = rows.logits.f_narrow(0, 0, scales.len() as i64)?;
        if let Some(columns) = &self.left_out {
            logits = logits.f_index_fill_(1, columns, f64::NEG_INFINITY)?;
        }
        Ok(Box::new(Rows {
            logits,
            hidden: rows.hidden.f_narrow(0, 0, scales.len() as i64)?,
            left_out: self.left_out.as_ref().map(Tensor::shallow_clone),
            scales,
            drawing: self.drawing(Drawing::Kernels(drawer)),
            lease: Some(rows.lease),
        }))
    }

    /// Returns the input of the head.
    fn normed(&self, x: &Tensor) -> Result<Tensor> {
        if self.crew.is_none() {
            return self.norm.apply(x);
        }
        let mut normed = x.f_empty_like()?;
        self.norm.by_loop(x, &mut normed);
        Ok(normed)
    }

    fn embed(&self, plan: &Plan) -> Result<Tensor> {
        // The embeddings may be stored in fewer bits than the pass computes with.
        let mut x = self.embedding.rows(&plan.tokens)?.f_to_kind(self.place.kind)?;
        if let Some(scale) = self.config.embedding_scale {
            // Rounded like the numbers that it multiplies, as in the reference implementation.
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

    fn variance(&self) -> Option<&'static str> {
        (!self.batch_invariant || self.draws).then_some(
            "the model was not loaded to compute in a way that does not depend on what else is in a pass",
        )
    }

    fn cache_bytes_per_token(&self) -> usize {
        let heads = self.config.attention.heads();
        let cached = 2 * self.layers.len() * (heads.keys * heads.size) as usize;
        (cached + self.states_width()) * self.place.kind.elt_size_in_bytes()
    }

    fn create_cache(&mut self, blocks: usize, block_size: usize) -> std::result::Result<(), EngineError> {
        self.planned = None;
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
        if let Some(states) = &mut self.states {
            states.create(slots, self.place).map_err(|error| {
                EngineError::Config(format!(
                    "no memory for hidden states of {slots} positions: {error}"
                ))
            })?;
        }
        self.plan_passes();
        Ok(())
    }

    fn leave_out(&mut self, columns: &[usize]) {
        let columns: Vec<i64> = columns.iter().map(|&column| column as i64).collect();
        // A GPU that has no room for these will report that when it has to compute.
        let sent = Tensor::f_from_slice(&columns).and_then(|columns| columns.f_to_device(self.place.device));
        self.left_out = sent.ok();
    }

    fn states_width(&self) -> usize {
        self.states.as_ref().map_or(0, States::width)
    }

    fn states(&self, table: &[u32], slots: Range<usize>) -> std::result::Result<Vec<f32>, EngineError> {
        match &self.states {
            None => Ok(Vec::new()),
            Some(states) => states
                .read(table, slots, self.block_size)
                .map_err(|error| EngineError::Model(error.to_string())),
        }
    }

    fn submit(&mut self, feeds: &[Feed<'_>]) -> std::result::Result<Box<dyn Flight>, EngineError> {
        check_all("feed", feeds, |feed| {
            feed.check(self.block_size, self.config.max_positions)
        })?;
        // Both apply only to the calling thread.
        let _no_grad = tch::no_grad_guard();
        if tch::get_num_threads() != self.threads as i32 {
            tch::set_num_threads(self.threads as i32);
        }
        self.run(feeds)
            .map_err(|error| EngineError::Model(error.to_string()))
    }

    fn submit_after(
        &mut self,
        drawing: &dyn flight::Drawing,
        asks: &[usize],
        feeds: &[Feed<'_>],
    ) -> std::result::Result<Option<Box<dyn Flight>>, EngineError> {
        check_all("feed", feeds, |feed| {
            feed.check(self.block_size, self.config.max_positions)
        })?;
        let _no_grad = tch::no_grad_guard();
        // A pass that could not be started is fed again, by libtorch.
        let begun = self.run_after(drawing, asks, feeds);
        Ok(begun.unwrap_or_else(|error| {
            self.give_up_plans(&error);
            None
        }))
    }

    fn move_slots(&mut self, moves: &[SlotMoves<'_>]) -> std::result::Result<(), EngineError> {
        check_all("move", moves, |moves| moves.check(self.block_size))?;
        let runs = moves.iter().map(|moves| moves.rows(self.block_size).collect());
        let runs: Vec<Vec<_>> = runs.collect();
        self.copy(1, &runs)
    }

    fn copy_blocks(&mut self, pairs: &[(u32, u32)]) -> std::result::Result<(), EngineError> {
        let slots = self
            .caches
            .first()
            .map_or(0, |cache| cache.keys.size()[0] as usize);
        check_copies(pairs, slots / self.block_size)?;
        let blocks = pairs.iter().map(|&(from, to)| vec![(from as usize, to as usize)]);
        self.copy(self.block_size, &blocks.collect::<Vec<_>>())
    }
}
