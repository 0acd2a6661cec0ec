//! The products of a pass: the kernel or library that computes each, by the sizes of its matrix and the
//! number of its vectors.
//!
//! | vectors | computed by | in the same launch | columns | rows |
//! |---|---|---|---|---|
//! | 1 and 2 | `gemv.cu` | the norm before, the sum, the gates, or the wanted rows in `f32` | 1024 to 4096 in steps of 1024; for sums also 6144, 8192, 12288, 14336 | even |
//! | 3 to 16 | `skinny.cu` | the sum, or rows in `f32` | 1024 to 4096 in steps of 1024 | multiples of 16 |
//! | more, and all other sizes | the library of the card | the sum, or rows in `f32` | any | any |
//!
//! A matrix of eight bits ([`Rounded`]) is read by the same kernels, compiled for its format. For one and two
//! vectors these compute the same products; otherwise
//!
//! | vectors | computed by | bytes of weights, by number |
//! |---|---|---|
//! | up to 16 | `skinny.cu`; sums over wider rows by several launches, of up to 4096 columns each | 1 |
//! | 17 to 32 | the same, twice | 2 |
//! | more, and sizes that `skinny.cu` lacks | rows are widened to bf16, as many as fit the L2, and the library multiplies | 1, and 4 of the L2 |
//!
//! This is decided product by product: in a model whose inner width no kernel supports, the library computes
//! only that product. Everything that is not part of the launch of a product is a separate launch. Weights
//! are stored in the library's layout, whatever computes the product.

use super::node::{Argument, Node, Place};
use super::shapes::{Format, Gate, MOST_SHARED, Norm, Widen, int, kernel, node};
use super::step::{Output, Product, Step};
use std::ops::RangeInclusive;

/// The number of bytes of the ring of rows of `gemv.cu`.
const RING: usize = 98_304;
/// The numbers of vectors for which `skinny.cu` is used: for fewer, it is slower than `gemv.cu`, and its
/// tiles hold no more.
const SKINNY: RangeInclusive<usize> = 3..=SKINNY_MOST;
const SKINNY_MOST: usize = 16;
/// The widest rows that `skinny.cu` multiplies in one launch.
const SKINNY_WIDEST: usize = 4096;
/// The most vectors for which `skinny.cu` is used with a matrix of eight bits, which it then reads twice:
/// that takes less time than widening it.
const SKINNY_TWICE: usize = 2 * SKINNY_MOST;

/// The storage of the weights of a matrix that is not in bf16: eight bits, with a scale for each row by which
/// its sum is multiplied.
#[derive(Clone, Copy, Debug)]
pub struct Rounded<B> {
    /// The format of the numbers.
    pub format: Format,
    /// `f32` `[rows]`.
    pub scales: Place<B>,
    /// A place of [`Widen::room`] bytes for the rows that are widened for the library.
    pub widened: Place<B>,
}

impl<B: Copy> Rounded<B> {
    /// Returns a product with this matrix by the library: rows are widened group by group, and multiplied.
    fn widened(&self, product: Product<B>) -> Vec<Step<B>> {
        let number = if product.output == Output::Wide { 4 } else { 2 };
        let each = Widen::<B>::rows_at_once(product.columns);
        let pieces = (0..product.rows).step_by(each);
        let steps = pieces.flat_map(|first| {
            let rows = (product.rows - first).min(each);
            let widen = Widen {
                format: self.format,
                weights: product.weights.behind(first * product.columns),
                scales: self.scales.behind(first * 4),
                out: self.widened,
                rows,
                columns: product.columns,
            };
            let multiply = Product {
                weights: self.widened,
                out: product.out.behind(first * number),
                rows,
                ..product
            };
            [Step::Launch(widen.node()), Step::Product(multiply)]
        });
        steps.collect()
    }
}

/// The treatment of the sums of a product for one or two vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Writes them.
    Plain,
    /// Adds them to the values there.
    Add,
    /// Gates the second half of the rows by the first.
    Gate,
    /// Writes them in `f32`.
    Wide,
}

/// A product for one or two vectors; see `gemv.cu`.
#[derive(Clone, Copy, Debug)]
pub struct Gemv<B> {
    /// `[rows, columns]`; with gates, the first half of the rows are the gates.
    pub weights: Place<B>,
    /// The storage of the weights, if not bf16.
    pub rounded: Option<Rounded<B>>,
    /// `[vectors, columns]`, or more rows if some of them are wanted.
    pub x: Place<B>,
    /// `[columns]`: the scale of the norm before, if there is one.
    pub scale: Option<Place<B>>,
    /// `i32` `[vectors]`, for rows in `f32`: the rows of `x` that are vectors; those below 0 are left out. If
    /// absent, all rows in order.
    pub wanted: Option<Place<B>>,
    /// `[vectors, columns]`, for rows in `f32`: receives the vectors as they are multiplied.
    pub normed: Option<Place<B>>,
    /// `[vectors, rows]`, or half as many rows with gates.
    pub out: Place<B>,
    /// An even number.
    pub rows: usize,
    /// 1024, 2048, 3072 or 4096; if sums are added also 6144, 8192, 12288 or 14336.
    pub columns: usize,
    /// 1 or 2.
    pub vectors: usize,
    /// The treatment of the sums.
    pub end: End,
    /// The number that the norm adds to the mean of squares.
    pub eps: f32,
    /// The number of blocks: one for each multiprocessor.
    pub blocks: usize,
}

/// Returns the suffix of the names of kernels that read weights in this storage.
fn suffix<B>(rounded: &Option<Rounded<B>>) -> &'static str {
    rounded.as_ref().map_or("", |rounded| rounded.format.suffix())
}

/// Returns the bytes of a weight.
fn bytes<B>(rounded: &Option<Rounded<B>>) -> usize {
    if rounded.is_some() { 1 } else { 2 }
}

impl<B: Copy> Gemv<B> {
    /// Returns the launch; `None` if there is no kernel for these shapes.
    pub fn node(self) -> Option<Node<B>> {
        let end = match self.end {
            End::Plain => "PLAIN",
            End::Add => "ADD",
            End::Gate => "GATE",
            End::Wide => "WIDE",
        };
        let format = suffix(&self.rounded);
        let name = format!("gemv_{}_{}_{end}{format}", self.columns, self.vectors);
        let kernel = kernel(&name).filter(|_| self.rows.is_multiple_of(2) && self.blocks > 0)?;
        let shared = self.shared();
        let arguments = vec![
            self.weights.into(),
            self.x.into(),
            self.scale.into(),
            self.wanted.into(),
            self.normed.into(),
            self.out.into(),
            self.rounded.map(|rounded| rounded.scales).into(),
            int(self.rows),
            Argument::Float(self.eps),
        ];
        (shared <= MOST_SHARED).then(|| node(kernel.name, [self.blocks, 1, 1], shared, arguments))
    }

    /// Returns the bytes of the ring and its barriers, of the sums of the norm, and of the sums of the rows
    /// of a block.
    fn shared(&self) -> usize {
        let warps = match self.columns {
            0..=2048 => 1,
            2049..=4096 => 2,
            4097..=8192 => 4,
            _ => 8,
        };
        let stage = 8 / warps * self.columns * bytes(&self.rounded);
        let stages = RING / stage;
        let rows = 2 * (self.rows / 2).div_ceil(self.blocks);
        stages * stage + stages * 16 + self.vectors * 8 * 4 + rows * warps * self.vectors * 4
    }
}

/// A product for up to sixteen vectors, possibly of only some columns of a matrix; see `skinny.cu`.
#[derive(Clone, Copy, Debug)]
pub struct Skinny<B> {
    /// `[rows, stride]`, from the first of the columns on.
    pub weights: Place<B>,
    /// The storage of the weights, if not bf16.
    pub rounded: Option<Rounded<B>>,
    /// `[vectors, stride]`, from there on.
    pub x: Place<B>,
    /// `[vectors, rows]`.
    pub out: Place<B>,
    /// A multiple of 16.
    pub rows: usize,
    /// 1024, 2048, 3072 or 4096.
    pub columns: usize,
    /// The number of all columns of the matrix.
    pub stride: usize,
    /// 1 to 16.
    pub vectors: usize,
    /// The treatment of the product.
    pub output: Output,
    /// The number of blocks: one for each multiprocessor.
    pub blocks: usize,
}

impl<B: Copy> Skinny<B> {
    /// Returns the launch; `None` if there is no kernel for these shapes.
    pub fn node(self) -> Option<Node<B>> {
        let tiles = self.vectors.div_ceil(8);
        let name = format!("skinny_{}_{}{}", self.columns, 8 * tiles, suffix(&self.rounded));
        let kernel = kernel(&name).filter(|_| self.rows.is_multiple_of(16) && self.blocks > 0)?;
        let end = match self.output {
            Output::Plain => 0,
            Output::Sum => 1,
            Output::Wide => 2,
        };
        let arguments = vec![
            self.weights.into(),
            self.x.into(),
            self.out.into(),
            self.rounded.map(|rounded| rounded.scales).into(),
            int(self.rows),
            int(self.vectors),
            int(end),
            int(self.stride),
        ];
        Some(node(
            kernel.name,
            [self.blocks, 1, 1],
            self.shared(tiles),
            arguments,
        ))
    }

    /// Returns the bytes of the ring and its barriers, of the vectors, and of the sums of eight warps.
    fn shared(&self, tiles: usize) -> usize {
        let (twice, pitch, x) = match self.rounded {
            None => (1, 1024 * 2 + 16, self.columns + 8),
            Some(_) => (2, 1024 + 32, self.columns + 32),
        };
        let stages = twice * if self.columns * tiles > 4096 { 2 } else { 3 };
        stages * (16 * pitch + 16) + 8 * tiles * x * 2 + 8 * 16 * 8 * tiles * 4
    }
}

/// The norm before a product.
#[derive(Clone, Copy, Debug)]
pub struct Before<B> {
    /// `[columns]`.
    pub scale: Place<B>,
    /// `[vectors, columns]`: receives the normed vectors if the norm is a separate launch, or if some rows
    /// are wanted.
    pub out: Place<B>,
    /// `i32` `[vectors]`: the rows that are vectors; if absent, all in order.
    pub wanted: Option<Place<B>>,
    /// The number that is added to the mean of squares.
    pub eps: f32,
}

/// The treatment of a product.
#[derive(Clone, Copy, Debug)]
pub enum After<B> {
    /// The product is written.
    Plain,
    /// The product is added to the values there.
    Add,
    /// Its second half is gated by the first. If the gate is a separate launch, both halves are written here.
    Gate(Place<B>),
    /// The product is written in `f32`.
    Wide,
}

/// A product of a pass with what comes before and after it.
#[derive(Clone, Copy, Debug)]
pub struct Linear<B> {
    /// `[rows, columns]`.
    pub weights: Place<B>,
    /// The storage of the weights, if not bf16.
    pub rounded: Option<Rounded<B>>,
    /// `[vectors, columns]`, or all rows of the pass if some of them are wanted.
    pub x: Place<B>,
    /// The norm of `x`, if there is one.
    pub before: Option<Before<B>>,
    /// `[vectors, rows]`, or half as many rows with gates.
    pub out: Place<B>,
    /// The number of rows of the weights.
    pub rows: usize,
    /// The number of columns of the weights.
    pub columns: usize,
    /// The number of vectors.
    pub vectors: usize,
    /// The treatment of the product.
    pub after: After<B>,
}

impl<B: Copy> Linear<B> {
    /// Returns the steps that compute it on a card with `multiprocessors` multiprocessors. If it is 0, the
    /// library computes all products.
    pub fn steps(self, multiprocessors: usize) -> Vec<Step<B>> {
        if let Some(fused) = self.gemv(multiprocessors).node() {
            return vec![Step::Launch(fused)];
        }
        let norm = self.before.map(|before| self.norm(before));
        let gate = match self.after {
            After::Gate(rows) => Some(self.gate(rows)),
            _ => None,
        };
        let product = self.product();
        let mut steps: Vec<Step<B>> = norm.map(Step::Launch).into_iter().collect();
        match &self.rounded {
            None => steps.push(self.multiply(product, multiprocessors)),
            Some(rounded) => {
                let launches = self.skinny(&product, multiprocessors);
                steps.extend(launches.unwrap_or_else(|| rounded.widened(product)));
            }
        }
        steps.extend(gate.map(Step::Launch));
        steps
    }

    /// Returns the step of a product with a matrix in bf16.
    fn multiply(&self, product: Product<B>, multiprocessors: usize) -> Step<B> {
        let launches = SKINNY
            .contains(&self.vectors)
            .then(|| self.skinny(&product, multiprocessors));
        match launches.flatten().as_deref() {
            Some([launch]) => launch.clone(),
            _ => Step::Product(product),
        }
    }

    /// Returns the launches of `skinny.cu` that compute a product, if it supports the sizes: one for sixteen
    /// vectors and for as many columns of a matrix of eight bits as it multiplies at once.
    fn skinny(&self, product: &Product<B>, blocks: usize) -> Option<Vec<Step<B>>> {
        let most = if self.rounded.is_some() {
            SKINNY_TWICE
        } else {
            SKINNY_MOST
        };
        // A result that is written at once cannot be summed by several launches.
        let is_summed = product.output == Output::Sum && self.rounded.is_some();
        if product.count > most || product.columns > SKINNY_WIDEST && !is_summed {
            return None;
        }
        let number = if product.output == Output::Wide { 4 } else { 2 };
        let runs = (0..product.count).step_by(SKINNY_MOST);
        let parts = runs.flat_map(|first| {
            let columns = (0..product.columns).step_by(SKINNY_WIDEST);
            columns.map(move |column| (first, column))
        });
        let launch = |(first, column): (usize, usize)| {
            let part = Skinny {
                weights: product.weights.behind(column * bytes(&self.rounded)),
                rounded: self.rounded,
                x: product.x.behind((first * product.columns + column) * 2),
                out: product.out.behind(first * product.rows * number),
                rows: product.rows,
                columns: (product.columns - column).min(SKINNY_WIDEST),
                stride: product.columns,
                vectors: (product.count - first).min(SKINNY_MOST),
                output: product.output,
                blocks,
            };
            part.node().map(Step::Launch)
        };
        parts.map(launch).collect()
    }

    fn gemv(&self, blocks: usize) -> Gemv<B> {
        let wanted = self.before.and_then(|before| before.wanted);
        Gemv {
            weights: self.weights,
            rounded: self.rounded,
            x: self.x,
            scale: self.before.map(|before| before.scale),
            wanted,
            normed: self.before.filter(|_| wanted.is_some()).map(|before| before.out),
            out: self.out,
            rows: self.rows,
            columns: self.columns,
            vectors: self.vectors,
            end: match self.after {
                After::Plain => End::Plain,
                After::Add => End::Add,
                After::Gate(_) => End::Gate,
                After::Wide => End::Wide,
            },
            eps: self.before.map_or(0.0, |before| before.eps),
            blocks,
        }
    }

    fn norm(&self, before: Before<B>) -> Node<B> {
        let norm = Norm {
            x: self.x,
            scale: before.scale,
            out: before.out,
            rows: before.wanted,
            width: self.columns,
            count: self.vectors,
            eps: before.eps,
        };
        norm.node()
    }

    fn gate(&self, rows: Place<B>) -> Node<B> {
        let gate = Gate {
            rows,
            out: self.out,
            width: self.rows / 2,
            count: self.vectors,
        };
        gate.node()
    }

    /// Returns the product alone.
    fn product(&self) -> Product<B> {
        let (out, output) = match self.after {
            After::Plain => (self.out, Output::Plain),
            After::Add => (self.out, Output::Sum),
            After::Gate(rows) => (rows, Output::Plain),
            After::Wide => (self.out, Output::Wide),
        };
        Product {
            weights: self.weights,
            x: self.before.map_or(self.x, |before| before.out),
            out,
            rows: self.rows,
            columns: self.columns,
            count: self.vectors,
            output,
            stride: self.rows,
        }
    }
}

#[cfg(test)]
mod tests;
