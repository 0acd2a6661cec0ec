//! The pass of a bucket as data: the kernels and products in order, on named buffers.
//!
//! ```text
//!   embed ─► x ─┬─ (norm ─► [qkv]) ─► turn ─► attend ─► ([out] ─ +) ─┬─ (norm ─► [gate, up] ─► gate) ─► ([down] ─ +) ─► …
//!               └────────────────────────────────────────────────────┘ └────────────────────────────────────────────────┘
//!   x ─► (norm of the wanted rows ─► [head]) ─► logits in f32        in brackets: a product; in parentheses: one launch, or several
//! ```
//!
//! In a layer of experts the second half is `norm ─► [router] ─► route ─► experts_up ─► experts_down ─►
//! sum_experts`, each a separate launch, whatever the number of tokens; see [`experts`](super::experts).
//!
//! [`products`](super::products) decides which kernel or library computes a product, and what its launch
//! includes: for one and two tokens a layer is six launches, where the sizes allow it, and for more it is
//! nine.
//!
//! A plan names buffers, not addresses. A [`Launcher`](super::launcher::Launcher) runs it: a card, which
//! captures it as a graph and replays that, or in tests the kernels on the processor
//! (`engine/tests/kernels/plans.rs`, `engine/tests/engine/planned.rs`).

use super::experts::{Mixture, Room, Routed};
use super::inputs::{Bucket, Input};
use super::node::{Node, Place};
use super::products::{After, Before, Linear, Rounded};
use super::shapes::{
    Attend, BLOCK_SIZE, Embed, Format, MOST_NORM_WIDTH, MOST_QUERY_ROWS, SPLITS, Turn, Widen,
};
use super::step::Step;
use std::fmt;

/// The sizes of a decoder of the Llama family.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// The width of a token between layers.
    pub hidden: usize,
    /// The inner width after the gate; ignored if all layers have experts.
    pub inner: usize,
    /// The number of query heads.
    pub heads: usize,
    /// The number of key and value heads.
    pub key_heads: usize,
    /// The width of a head.
    pub head_size: usize,
    /// The number of rows of the embedding and of the head.
    pub vocab: usize,
    /// The number that norms add to the mean of squares.
    pub eps: f32,
    /// `true` if queries and keys are normed head by head.
    pub norms_heads: bool,
    /// For each layer, the number of positions that a token sees, including its own; `None` if all.
    pub windows: Vec<Option<usize>>,
    /// The experts of the layers that have experts.
    pub mixture: Option<Mixture>,
    /// The number of slots of a block of the cache.
    pub block_size: usize,
    /// The format of the matrices, including the head, if not bf16.
    pub rounded: Option<Format>,
}

/// The reason why there is no plan for a model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unplanned {
    /// A size that no kernel supports.
    #[error("{what} is {found}; the kernels take {expected}")]
    Size {
        /// The name of the size.
        what: &'static str,
        /// Its value.
        found: usize,
        /// The supported values.
        expected: &'static str,
    },
    /// Something that no kernel computes.
    #[error("the kernels do not compute {0}")]
    Feature(&'static str),
}

/// All reasons why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoPlan(pub Vec<Unplanned>);

impl fmt::Display for NoPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self.0.iter().map(Unplanned::to_string).collect();
        f.write_str(&all.join("; "))
    }
}

impl std::error::Error for NoPlan {}

/// A buffer of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Buffer {
    /// The inputs of a pass; see [`Bucket`].
    Inputs,
    /// Weights of the whole model.
    Model(ModelWeight),
    /// Weights of the layer with this number.
    Layer(usize, LayerWeight),
    /// The scales of the rows of such weights, `f32`, if they are in eight bits.
    ModelScales(ModelWeight),
    /// The scales of the rows of weights of a layer.
    LayerScales(usize, LayerWeight),
    /// The keys of the layer with this number, `[slots, key heads · size]`.
    Keys(usize),
    /// The values of the layer with this number.
    Values(usize),
    /// An intermediate result of a pass.
    Scratch(Scratch),
}

/// Weights of the whole model, in bf16 unless stated otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ModelWeight {
    /// `[vocabulary, hidden]`.
    Embedding,
    /// `[vocabulary, hidden]`.
    Head,
    /// The scale of the last norm.
    Norm,
    /// `f32` `[positions, size / 2]`.
    Cosines,
    /// `f32` `[positions, size / 2]`.
    Sines,
}

/// Weights of a layer, in bf16.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LayerWeight {
    /// The scale of the norm before attention.
    AttentionNorm,
    /// Queries, keys and values, stacked.
    Qkv,
    /// The scales of the norms of heads.
    HeadNorms,
    /// `[hidden, heads · size]`.
    Out,
    /// The scale of the norm before the network.
    InnerNorm,
    /// Gates, followed by the values that they gate.
    GateUp,
    /// `[hidden, inner]`.
    Down,
    /// `[experts, hidden]`.
    Router,
    /// `[experts, 2 · inner, hidden]`: for each expert the gates, followed by the values that they gate.
    ExpertUps,
    /// `[experts, hidden, inner]`.
    ExpertDowns,
}

/// An intermediate result of a pass, in bf16 unless stated otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scratch {
    /// The rows that layers add to.
    X,
    /// The rows after a norm.
    Normed,
    /// Queries, keys and values.
    Qkv,
    /// The queries after rotation.
    Queries,
    /// The outputs of attention.
    Attended,
    /// Gates, and the values that they gate.
    GateUp,
    /// The gated values.
    Gated,
    /// An intermediate result of layers with experts.
    Experts(Room),
    /// Sums of parts of texts, `f32`. The size is for texts that are all as long as tables allow;
    /// [`Bucket::split_rows`](super::inputs::Bucket::split_rows) returns what a pass needs.
    Parts,
    /// The number of parts of a text that have arrived, `i32`: zeros before the first pass.
    Arrived,
    /// The wanted rows after the last norm.
    Hidden,
    /// `f32` `[rows, vocabulary]`.
    Logits,
    /// Rows of a matrix of eight bits, widened for the library to multiply.
    Widened,
}

/// A pass of a bucket.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The steps, in order.
    pub steps: Vec<Step<Buffer>>,
    /// The bytes of each intermediate result.
    pub scratch: Vec<(Scratch, usize)>,
}

impl Shape {
    /// Checks whether there are kernels for these sizes.
    ///
    /// # Errors
    /// All sizes that no kernel supports.
    pub fn check(&self) -> Result<(), NoPlan> {
        let is_width = |found: usize| found > 0 && found.is_multiple_of(8);
        let divides = self.key_heads > 0 && self.heads.is_multiple_of(self.key_heads);
        let group = self.heads / self.key_heads.max(1);
        let looks_back = self.windows.iter().flatten().all(|&window| window > 0);
        let (hidden, inner, heads) = (self.hidden, self.inner, self.heads);
        let is_hidden = is_width(hidden) && hidden <= MOST_NORM_WIDTH;
        let sizes = [
            (is_hidden, "hidden", hidden, "a multiple of 8, up to 8192"),
            (
                is_width(inner) || !self.has_dense_layers(),
                "inner",
                inner,
                "a multiple of 8",
            ),
            (
                [64, 128].contains(&self.head_size),
                "head_size",
                self.head_size,
                "64 or 128",
            ),
            (divides && heads > 0, "heads", heads, "a multiple of key_heads"),
            (
                group <= MOST_QUERY_ROWS,
                "query heads of a key head",
                group,
                "up to 64",
            ),
            (self.block_size == BLOCK_SIZE, "block_size", self.block_size, "16"),
            (looks_back, "window", 0, "at least 1"),
        ];
        let wrong = sizes.into_iter().filter(|(holds, ..)| !holds);
        let wrong = wrong.map(|(_, what, found, expected)| (what, found, expected));
        let lacking = self
            .mixture
            .iter()
            .flat_map(|mixture| mixture.lacking(self.hidden));
        let size = |(what, found, expected)| Unplanned::Size {
            what,
            found,
            expected,
        };
        let problems: Vec<Unplanned> = wrong.chain(lacking).map(size).collect();
        match problems.is_empty() {
            true => Ok(()),
            false => Err(NoPlan(problems)),
        }
    }

    /// Returns the experts of a layer, if it has experts.
    fn experts_of(&self, layer: usize) -> Option<&Mixture> {
        self.mixture.as_ref().filter(|mixture| mixture.is_in(layer))
    }

    fn has_dense_layers(&self) -> bool {
        self.windows.is_empty() || (0..self.windows.len()).any(|layer| self.experts_of(layer).is_none())
    }

    /// Returns the number of query heads of each key head.
    pub fn group(&self) -> usize {
        self.heads / self.key_heads
    }

    /// Returns the bytes of `rows` split rows of every key head.
    pub fn parts_bytes(&self, rows: usize) -> usize {
        Attend::<Buffer>::parts_bytes(rows, self.key_heads, self.head_size)
    }

    fn qkv(&self) -> usize {
        (self.heads + 2 * self.key_heads) * self.head_size
    }

    /// Returns the bytes for rows of any matrix that are widened at once; 0 if weights are in bf16.
    fn widened(&self) -> usize {
        let (hidden, inner) = (self.hidden, self.inner);
        let matrices = [
            (self.qkv(), hidden),
            (hidden, self.heads * self.head_size),
            (2 * inner, hidden),
            (hidden, inner),
            (self.vocab, hidden),
        ];
        let room = matrices.map(|(rows, columns)| Widen::<Buffer>::room(rows, columns));
        self.rounded.map_or(0, |_| room.into_iter().max().unwrap_or(0))
    }
}

fn scratch(part: Scratch) -> Place<Buffer> {
    Place::start(Buffer::Scratch(part))
}

fn weight(weight: ModelWeight) -> Place<Buffer> {
    Place::start(Buffer::Model(weight))
}

impl Plan {
    /// Plans the pass of a model of this shape for a bucket, on a card with `multiprocessors`
    /// multiprocessors. If it is 0, the library computes all products.
    ///
    /// # Errors
    /// All sizes that the kernels do not support.
    pub fn new(shape: &Shape, bucket: &Bucket, multiprocessors: usize) -> Result<Self, NoPlan> {
        shape.check()?;
        let maker = Maker {
            shape,
            bucket,
            multiprocessors,
        };
        let mut steps = vec![Step::Launch(maker.embed())];
        for (layer, &window) in shape.windows.iter().enumerate() {
            steps.extend(maker.attention(layer, window));
            steps.extend(match shape.experts_of(layer) {
                Some(mixture) => maker.experts(layer, mixture),
                None => maker.network(layer),
            });
        }
        steps.extend(maker.head());
        Ok(Plan {
            steps,
            scratch: maker.scratch(),
        })
    }

    /// Returns the steps over buffers that begin at these addresses.
    pub fn at(&self, address: impl Fn(&Buffer) -> u64) -> Vec<Step<u64>> {
        self.steps.iter().map(|step| step.at(&address)).collect()
    }

    /// Returns the number of launches, with products counted as one each.
    pub fn launches(&self) -> usize {
        self.steps.len()
    }
}

/// Builds the steps of one shape and bucket.
struct Maker<'a> {
    shape: &'a Shape,
    bucket: &'a Bucket,
    multiprocessors: usize,
}

impl Maker<'_> {
    fn input(&self, part: Input) -> Place<Buffer> {
        Place {
            buffer: Buffer::Inputs,
            offset: self.bucket.offset(part),
        }
    }

    fn scratch(&self) -> Vec<(Scratch, usize)> {
        let (shape, bucket) = (self.shape, self.bucket);
        let rows = |width: usize| bucket.tokens * width * 2;
        let longest = bucket.table_width * BLOCK_SIZE;
        let parts = shape.parts_bytes(Attend::<Buffer>::split_rows(
            longest,
            bucket.tokens,
            shape.group(),
            SPLITS,
        ));
        let inner = if shape.has_dense_layers() { shape.inner } else { 0 };
        let experts = shape.mixture.iter();
        let experts = experts.flat_map(|mixture| mixture.rooms(bucket.tokens, shape.hidden));
        let scratch = [
            (Scratch::X, rows(shape.hidden)),
            (Scratch::Normed, rows(shape.hidden)),
            (Scratch::Qkv, rows(shape.qkv())),
            (Scratch::Queries, rows(shape.heads * shape.head_size)),
            (Scratch::Attended, rows(shape.heads * shape.head_size)),
            (Scratch::GateUp, rows(2 * inner)),
            (Scratch::Gated, rows(inner)),
            (Scratch::Parts, parts),
            (
                Scratch::Arrived,
                bucket.sequences.max(bucket.pieces) * shape.key_heads * 4,
            ),
            (Scratch::Hidden, bucket.rows * shape.hidden * 2),
            (Scratch::Logits, bucket.rows * shape.vocab * 4),
            (Scratch::Widened, shape.widened()),
        ];
        let experts = experts.map(|(room, bytes)| (Scratch::Experts(room), bytes));
        scratch.into_iter().chain(experts).collect()
    }

    fn embed(&self) -> Node<Buffer> {
        Embed {
            table: weight(ModelWeight::Embedding),
            tokens: self.input(Input::Tokens),
            out: scratch(Scratch::X),
            width: self.shape.hidden,
            count: self.bucket.tokens,
        }
        .node()
    }

    /// Returns the norm of all rows, with the scale of a layer.
    fn norm(&self, layer: usize, scale: LayerWeight) -> Before<Buffer> {
        Before {
            scale: Place::start(Buffer::Layer(layer, scale)),
            out: scratch(Scratch::Normed),
            wanted: None,
            eps: self.shape.eps,
        }
    }

    /// Returns the product of all rows with a matrix of a layer.
    fn product(
        &self,
        weights: Buffer,
        (x, columns): (Scratch, usize),
        before: Option<Before<Buffer>>,
        (out, rows): (Scratch, usize),
        after: After<Buffer>,
    ) -> Vec<Step<Buffer>> {
        let linear = Linear {
            weights: Place::start(weights),
            rounded: self.rounded(weights),
            x: scratch(x),
            before,
            out: scratch(out),
            rows,
            columns,
            vectors: match after {
                After::Wide => self.bucket.rows,
                _ => self.bucket.tokens,
            },
            after,
        };
        linear.steps(self.multiprocessors)
    }

    /// Returns the format of the weights of a matrix, if not bf16.
    fn rounded(&self, weights: Buffer) -> Option<Rounded<Buffer>> {
        let scales = match weights {
            Buffer::Model(weight) => Buffer::ModelScales(weight),
            Buffer::Layer(layer, weight) => Buffer::LayerScales(layer, weight),
            _ => return None,
        };
        let rounded = |format| Rounded {
            format,
            scales: Place::start(scales),
            widened: scratch(Scratch::Widened),
        };
        self.shape.rounded.map(rounded)
    }

    fn attention(&self, layer: usize, window: Option<usize>) -> Vec<Step<Buffer>> {
        let shape = self.shape;
        let (hidden, heads) = (shape.hidden, shape.heads * shape.head_size);
        let of = |weight| Buffer::Layer(layer, weight);
        let mut steps = self.product(
            of(LayerWeight::Qkv),
            (Scratch::X, hidden),
            Some(self.norm(layer, LayerWeight::AttentionNorm)),
            (Scratch::Qkv, shape.qkv()),
            After::Plain,
        );
        steps.push(Step::Launch(self.turn(layer)));
        // Two launches: a piece of a prompt occupies all warps, and there may be many pieces.
        let sequences = self.attend(layer, window);
        let pieces = self.attend_pieces(sequences);
        let attend = [sequences, pieces]
            .into_iter()
            .filter(|attend| attend.sequences > 0);
        steps.extend(attend.map(|attend| Step::Launch(attend.node())));
        steps.extend(self.product(
            of(LayerWeight::Out),
            (Scratch::Attended, heads),
            None,
            (Scratch::X, hidden),
            After::Add,
        ));
        steps
    }

    fn turn(&self, layer: usize) -> Node<Buffer> {
        let shape = self.shape;
        let scales = Place::start(Buffer::Layer(layer, LayerWeight::HeadNorms));
        Turn {
            rows: scratch(Scratch::Qkv),
            queries: scratch(Scratch::Queries),
            keys: Place::start(Buffer::Keys(layer)),
            values: Place::start(Buffer::Values(layer)),
            cosines: weight(ModelWeight::Cosines),
            sines: weight(ModelWeight::Sines),
            scales: shape.norms_heads.then_some(scales),
            positions: self.input(Input::Positions),
            slots: self.input(Input::Slots),
            size: shape.head_size,
            heads: shape.heads,
            key_heads: shape.key_heads,
            count: self.bucket.tokens,
            eps: shape.eps,
        }
        .node()
    }

    /// Returns the attention of the sequences that feed a few tokens.
    fn attend(&self, layer: usize, window: Option<usize>) -> Attend<Buffer> {
        let (shape, bucket) = (self.shape, self.bucket);
        Attend {
            queries: scratch(Scratch::Queries),
            keys: Place::start(Buffer::Keys(layer)),
            values: Place::start(Buffer::Values(layer)),
            out: scratch(Scratch::Attended),
            parts: scratch(Scratch::Parts),
            arrived: scratch(Scratch::Arrived),
            tables: self.input(Input::Tables),
            starts: self.input(Input::Starts),
            firsts: self.input(Input::Firsts),
            positions: self.input(Input::Positions),
            sees: self.input(Input::Sees),
            parts_at: self.input(Input::Parts),
            size: shape.head_size,
            key_heads: shape.key_heads,
            group: shape.group(),
            sequences: bucket.sequences,
            table_width: bucket.table_width,
            most_fed: bucket.most_fed,
            most_splits: SPLITS,
            window,
        }
    }

    /// Returns the attention of the pieces of prompts, which come after those sequences.
    fn attend_pieces(&self, sequences: Attend<Buffer>) -> Attend<Buffer> {
        let bucket = self.bucket;
        let behind = |part| Place {
            buffer: Buffer::Inputs,
            offset: bucket.offset_of_pieces(part),
        };
        Attend {
            tables: behind(Input::Tables),
            starts: behind(Input::Starts),
            firsts: behind(Input::Firsts),
            parts_at: behind(Input::Parts),
            sequences: bucket.pieces,
            most_splits: bucket.piece_splits(),
            ..sequences
        }
    }

    fn network(&self, layer: usize) -> Vec<Step<Buffer>> {
        let (hidden, inner) = (self.shape.hidden, self.shape.inner);
        let of = |weight| Buffer::Layer(layer, weight);
        let mut steps = self.product(
            of(LayerWeight::GateUp),
            (Scratch::X, hidden),
            Some(self.norm(layer, LayerWeight::InnerNorm)),
            (Scratch::Gated, 2 * inner),
            After::Gate(scratch(Scratch::GateUp)),
        );
        steps.extend(self.product(
            of(LayerWeight::Down),
            (Scratch::Gated, inner),
            None,
            (Scratch::X, hidden),
            After::Add,
        ));
        steps
    }

    /// Returns the second half of a layer with experts.
    fn experts(&self, layer: usize, mixture: &Mixture) -> Vec<Step<Buffer>> {
        let of = |weight| Place::start(Buffer::Layer(layer, weight));
        let routed = Routed {
            mixture,
            norm: self.norm(layer, LayerWeight::InnerNorm),
            router: of(LayerWeight::Router),
            ups: of(LayerWeight::ExpertUps),
            downs: of(LayerWeight::ExpertDowns),
            slots: self.input(Input::Slots),
            arrived: scratch(Scratch::Arrived),
            x: scratch(Scratch::X),
            room: |room| scratch(Scratch::Experts(room)),
            hidden: self.shape.hidden,
            tokens: self.bucket.tokens,
            multiprocessors: self.multiprocessors,
        };
        routed.steps()
    }

    /// Returns the steps for the wanted rows, if there are any.
    fn head(&self) -> Vec<Step<Buffer>> {
        if self.bucket.rows == 0 {
            return Vec::new();
        }
        let norm = Before {
            scale: weight(ModelWeight::Norm),
            out: scratch(Scratch::Hidden),
            wanted: Some(self.input(Input::Wanted)),
            eps: self.shape.eps,
        };
        self.product(
            Buffer::Model(ModelWeight::Head),
            (Scratch::X, self.shape.hidden),
            Some(norm),
            (Scratch::Logits, self.shape.vocab),
            After::Wide,
        )
    }
}

#[cfg(test)]
mod tests;
