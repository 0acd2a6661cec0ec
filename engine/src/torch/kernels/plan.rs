//! The pass of a bucket as data: which kernels and products run in which order, on which buffers.
//!
//! ```text
//!   embed ─► x ─┬─ (norm ─► [qkv]) ─► turn ─► attend ─► ([out] ─ +) ─┬─ (norm ─► [gate, up] ─► gate) ─► ([down] ─ +) ─► …
//!               └────────────────────────────────────────────────────┘ └────────────────────────────────────────────────┘
//!   x ─► (norm of the wanted rows ─► [head]) ─► logits in f32        in brackets: a product; in parentheses: one launch, or several
//! ```
//!
//! In a layer of experts the second half is `norm ─► [router] ─► route ─► experts_up ─► experts_down ─► sum_experts`, a launch each, whatever the
//! number of tokens; see [`experts`](super::experts).
//!
//! Who makes a product, and what is in its launch, [`products`](super::products) decides: for one and two tokens a layer is six launches,
//! where the sizes allow it, and for more it is nine.
//!
//! A plan names buffers, not addresses. A [`Launcher`](super::launcher::Launcher) runs it: a card, which captures it as a graph and
//! replays that, or the kernels on the processor in tests (`engine/tests/kernels/plans.rs`, `engine/tests/engine/planned.rs`).

mod shape;

pub use self::shape::{NoPlan, Shape, Unplanned};

use super::experts::{Mixture, Room, Routed};
use super::inputs::{Bucket, Input};
use super::node::{Node, Place};
use super::products::{After, Before, Linear, Rounded};
use super::shapes::{Attend, BLOCK_SIZE, Embed, SPLITS, Turn};
use super::step::Step;

/// A buffer of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Buffer {
    /// What a pass is about; see [`Bucket`].
    Inputs,
    /// Weights of the whole model.
    Model(ModelWeight),
    /// Weights of the layer of this number.
    Layer(usize, LayerWeight),
    /// The scales of the rows of such weights, `f32`, where they are in eight bits.
    ModelScales(ModelWeight),
    /// Those of a layer.
    LayerScales(usize, LayerWeight),
    /// Keys of the layer of this number, `[slots, key heads · size]`.
    Keys(usize),
    /// Its values.
    Values(usize),
    /// What a pass computes on the way.
    Scratch(Scratch),
}

/// Weights of the whole model, bf16 where nothing else is said.
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
    /// Queries, keys and values, one below the other.
    Qkv,
    /// The scales of the norms of heads.
    HeadNorms,
    /// `[hidden, heads · size]`.
    Out,
    /// The scale of the norm before the network.
    InnerNorm,
    /// Gates, and below them what they let through.
    GateUp,
    /// `[hidden, inner]`.
    Down,
    /// `[experts, hidden]`.
    Router,
    /// `[experts, 2 · inner, hidden]`: of each expert gates, and below them what they let through.
    ExpertUps,
    /// `[experts, hidden, inner]`.
    ExpertDowns,
}

/// What a pass computes on the way, in bf16 where nothing else is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scratch {
    /// The rows that layers add to.
    X,
    /// A norm of them.
    Normed,
    /// Queries, keys and values.
    Qkv,
    /// Queries, turned.
    Queries,
    /// What attention finds.
    Attended,
    /// Gates, and what they let through.
    GateUp,
    /// What came through.
    Gated,
    /// What layers with experts compute on the way.
    Experts(Room),
    /// Sums of parts of texts, `f32`. The bytes are those of texts that are all as long as tables allow; what a pass needs is told
    /// by [`Bucket::split_rows`](super::inputs::Bucket::split_rows).
    Parts,
    /// How many parts of a text have come, `i32`: zeros before the first pass.
    Arrived,
    /// The wanted rows behind the last norm.
    Hidden,
    /// `f32` `[rows, vocabulary]`.
    Logits,
    /// Rows of a matrix of eight bits that the library multiplies with.
    Widened,
}

/// A pass of a bucket.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The steps, in order.
    pub steps: Vec<Step<Buffer>>,
    /// Bytes of what is computed on the way.
    pub scratch: Vec<(Scratch, usize)>,
}

fn scratch(part: Scratch) -> Place<Buffer> {
    Place::start(Buffer::Scratch(part))
}

fn weight(weight: ModelWeight) -> Place<Buffer> {
    Place::start(Buffer::Model(weight))
}

impl Plan {
    /// The pass of a model of this shape for a bucket, on a card with so many multiprocessors. With none, the library makes all
    /// products.
    ///
    /// # Errors
    /// All sizes that the kernels do not take.
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

    /// The steps over buffers that begin at these addresses.
    pub fn at(&self, address: impl Fn(&Buffer) -> u64) -> Vec<Step<u64>> {
        self.steps.iter().map(|step| step.at(&address)).collect()
    }

    /// How many launches there are, products counted as one each.
    pub fn launches(&self) -> usize {
        self.steps.len()
    }
}

/// Makes the steps of one shape and bucket.
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

    /// The norm of all rows, with the scale of a layer.
    fn norm(&self, layer: usize, scale: LayerWeight) -> Before<Buffer> {
        Before {
            scale: Place::start(Buffer::Layer(layer, scale)),
            out: scratch(Scratch::Normed),
            wanted: None,
            eps: self.shape.eps,
        }
    }

    /// A product of all rows with a matrix of a layer.
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

    /// How the weights of a matrix are kept, if not in bf16.
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
        // Two launches: of a piece of a prompt all warps are busy, and there may be many.
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

    /// Attention of the sequences that feed a few tokens.
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

    /// The same of the pieces of prompts, which stand behind those sequences.
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

    /// The second half of a layer with experts.
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

    /// The rows that are wanted, if there are any.
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
