//! The products of a pass: which kernel or library makes each, by the sizes of its matrix and the number of
//! its vectors.
//!
//! | vectors | who makes it | in the same launch | columns | rows |
//! |---|---|---|---|---|
//! | 1 and 2 | `gemv.cu` | the norm before, the sum, the gates, or the wanted rows in `f32` | 1024 to 4096 in steps of 1024; for sums also 6144, 8192, 12288, 14336 | even |
//! | 3 to 16 | `skinny.cu` | the sum, or rows in `f32` | 1024 to 4096 in steps of 1024 | multiples of 16 |
//! | more, and all other sizes | the library of the card | the sum, or rows in `f32` | any | any |
//!
//! A matrix of eight bits ([`Rounded`]) is read by the same kernels, compiled for its format. For one and two
//! vectors these make the same products; else
//!
//! | vectors | who makes it | bytes of weights, by number |
//! |---|---|---|
//! | up to 16 | `skinny.cu`; sums over wider rows by several launches, of up to 4096 columns each | 1 |
//! | 17 to 32 | the same, twice | 2 |
//! | more, and what `skinny.cu` does not take | rows are widened to bf16, as many as fit the L2, and the library multiplies | 1, and 4 of the L2 |
//!
//! This is decided product by product: a model whose inner width no kernel takes has that product alone made
//! by the library. What is not in the launch of a product is a launch of its own. Weights lie as the library
//! reads them, whoever multiplies.

use super::node::{Argument, Node, Place};
use super::shapes::{Format, Gate, MOST_SHARED, Norm, Widen, int, kernel, node};
use super::step::{Output, Product, Step};
use std::ops::RangeInclusive;

/// Bytes of the ring of rows of `gemv.cu`.
const RING: usize = 98_304;
/// The numbers of vectors that `skinny.cu` is for: for fewer, it is slower than `gemv.cu`, and its tiles hold
/// no more.
const SKINNY: RangeInclusive<usize> = 3..=SKINNY_MOST;
const SKINNY_MOST: usize = 16;
/// The widest rows that it multiplies in one launch.
const SKINNY_WIDEST: usize = 4096;
/// For how many vectors it reads a matrix of eight bits more than once: twice is less than to widen it, in
/// time.
const SKINNY_TWICE: usize = 2 * SKINNY_MOST;

/// How the weights of a matrix are kept that are not in bf16: in eight bits, with a scale for each row that
/// its sum is multiplied with.
#[derive(Clone, Copy, Debug)]
pub struct Rounded<B> {
    /// What the numbers are.
    pub format: Format,
    /// `f32` `[rows]`.
    pub scales: Place<B>,
    /// [`Widen::room`] bytes, where rows are written that the library is to multiply with.
    pub widened: Place<B>,
}

impl<B: Copy> Rounded<B> {
    /// A product with this matrix by the library: some rows after others are widened, and multiplied.
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

/// What a product for one or two vectors does with its sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Writes them.
    Plain,
    /// Adds them to what is there.
    Add,
    /// Lets the second half of the rows through the gates of the first.
    Gate,
    /// Writes them in `f32`.
    Wide,
}

/// A product for one or two vectors; see `gemv.cu`.
#[derive(Clone, Copy, Debug)]
pub struct Gemv<B> {
    /// `[rows, columns]`; the first half of the rows are gates, if there are gates.
    pub weights: Place<B>,
    /// How the weights are kept, if not in bf16.
    pub rounded: Option<Rounded<B>>,
    /// `[vectors, columns]`, or more rows if some of them are wanted.
    pub x: Place<B>,
    /// `[columns]`: the scale of the norm before, if there is one.
    pub scale: Option<Place<B>>,
    /// `i32` `[vectors]`, of rows in `f32`: which rows of `x` are vectors; those below 0 are left out. All,
    /// in order, if absent.
    pub wanted: Option<Place<B>>,
    /// `[vectors, columns]`, of rows in `f32`: where the vectors are left as they are multiplied.
    pub normed: Option<Place<B>>,
    /// `[vectors, rows]`, half of that behind gates.
    pub out: Place<B>,
    /// Even.
    pub rows: usize,
    /// 1024, 2048, 3072 or 4096; where sums are added also 6144, 8192, 12288 or 14336.
    pub columns: usize,
    /// 1 or 2.
    pub vectors: usize,
    /// What becomes of the sums.
    pub end: End,
    /// What the norm adds to the mean of squares.
    pub eps: f32,
    /// Blocks: one for each multiprocessor.
    pub blocks: usize,
}

/// What the names of kernels end with that read weights which are kept so.
fn suffix<B>(rounded: &Option<Rounded<B>>) -> &'static str {
    rounded.as_ref().map_or("", |rounded| rounded.format.suffix())
}

/// Bytes of a weight.
fn bytes<B>(rounded: &Option<Rounded<B>>) -> usize {
    if rounded.is_some() { 1 } else { 2 }
}

impl<B: Copy> Gemv<B> {
    /// The launch; `None` if there is no kernel for these shapes.
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

    /// Bytes of the ring and its barriers, of what the norm sums, and of the sums of the rows of a block.
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

/// A product for up to sixteen vectors, perhaps of some columns of a matrix alone; see `skinny.cu`.
#[derive(Clone, Copy, Debug)]
pub struct Skinny<B> {
    /// `[rows, stride]`, from the first of the columns on.
    pub weights: Place<B>,
    /// How the weights are kept, if not in bf16.
    pub rounded: Option<Rounded<B>>,
    /// `[vectors, stride]`, from there on.
    pub x: Place<B>,
    /// `[vectors, rows]`.
    pub out: Place<B>,
    /// A multiple of 16.
    pub rows: usize,
    /// 1024, 2048, 3072 or 4096.
    pub columns: usize,
    /// All columns of the matrix.
    pub stride: usize,
    /// 1 to 16.
    pub vectors: usize,
    /// What becomes of the product.
    pub output: Output,
    /// Blocks: one for each multiprocessor.
    pub blocks: usize,
}

impl<B: Copy> Skinny<B> {
    /// The launch; `None` if there is no kernel for these shapes.
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

    /// Bytes of the ring and its barriers, of the vectors, and of what eight warps sum.
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
    /// `[vectors, columns]`: where normed vectors are written if the norm is a launch of its own, or if some
    /// rows are wanted.
    pub out: Place<B>,
    /// `i32` `[vectors]`: which rows are vectors; all, in order, if absent.
    pub wanted: Option<Place<B>>,
    /// What is added to the mean of squares.
    pub eps: f32,
}

/// What becomes of a product.
#[derive(Clone, Copy, Debug)]
pub enum After<B> {
    /// It is written.
    Plain,
    /// It is added to what is there.
    Add,
    /// Its second half is let through the gates of the first. Both are written here if that is a launch of
    /// its own.
    Gate(Place<B>),
    /// It is written in `f32`.
    Wide,
}

/// A product of a pass with what comes before and after it.
#[derive(Clone, Copy, Debug)]
pub struct Linear<B> {
    /// `[rows, columns]`.
    pub weights: Place<B>,
    /// How the weights are kept, if not in bf16.
    pub rounded: Option<Rounded<B>>,
    /// `[vectors, columns]`, or all rows of the pass if some of them are wanted.
    pub x: Place<B>,
    /// The norm of `x`, if there is one.
    pub before: Option<Before<B>>,
    /// `[vectors, rows]`, half of that behind gates.
    pub out: Place<B>,
    /// Rows of the weights.
    pub rows: usize,
    /// Columns of the weights.
    pub columns: usize,
    /// Vectors.
    pub vectors: usize,
    /// What becomes of the product.
    pub after: After<B>,
}

impl<B: Copy> Linear<B> {
    /// The steps that compute it on a card with so many multiprocessors. With none, products are the
    /// library's.
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

    /// A product with a matrix in bf16.
    fn multiply(&self, product: Product<B>, multiprocessors: usize) -> Step<B> {
        let launches = SKINNY
            .contains(&self.vectors)
            .then(|| self.skinny(&product, multiprocessors));
        match launches.flatten().as_deref() {
            Some([launch]) => launch.clone(),
            _ => Step::Product(product),
        }
    }

    /// The launches of `skinny.cu` that make a product, if it takes its sizes: one for sixteen vectors and
    /// for as many columns of a matrix of eight bits as it multiplies at once.
    fn skinny(&self, product: &Product<B>, blocks: usize) -> Option<Vec<Step<B>>> {
        let most = if self.rounded.is_some() {
            SKINNY_TWICE
        } else {
            SKINNY_MOST
        };
        // What is written in one go cannot be summed by several launches.
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

    /// The product alone.
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
