//! The products of a pass: which kernel or library makes each, by the sizes of its matrix and the number of its vectors.
//!
//! | vectors | who makes it | in the same launch | columns | rows |
//! |---|---|---|---|---|
//! | 1 and 2 | `gemv.cu` | the norm before, the sum, the gates, or the wanted rows in `f32` | 1024 to 4096 in steps of 1024; for sums also 6144, 8192, 12288, 14336 | even |
//! | 3 to 16 | `skinny.cu` | the sum, or rows in `f32` | 1024 to 4096 in steps of 1024 | multiples of 16 |
//! | more, and all other sizes | the library of the card | the sum, or rows in `f32` | any | any |
//!
//! This is decided product by product: a model whose inner width no kernel takes has that product alone made by the library. What
//! is not in the launch of a product is a launch of its own. Weights lie as the library reads them, whoever multiplies.

use super::node::{Argument, Node, Place};
use super::shapes::{Gate, MOST_SHARED, Norm, int, kernel, node};
use super::step::{Output, Product, Step};
use std::ops::RangeInclusive;

/// Bytes of the ring of rows of `gemv.cu`.
const RING: usize = 98_304;
/// The numbers of vectors that `skinny.cu` is for: for fewer, it is slower than `gemv.cu`, and its tiles hold no more.
const SKINNY: RangeInclusive<usize> = 3..=16;

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
    /// `[vectors, columns]`, or more rows if some of them are wanted.
    pub x: Place<B>,
    /// `[columns]`: the scale of the norm before, if there is one.
    pub scale: Option<Place<B>>,
    /// `i32` `[vectors]`, of rows in `f32`: which rows of `x` are vectors; those below 0 are left out. All, in order, if absent.
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

impl<B> Gemv<B> {
    /// The launch; `None` if there is no kernel for these shapes.
    pub fn node(self) -> Option<Node<B>> {
        let end = match self.end {
            End::Plain => "PLAIN",
            End::Add => "ADD",
            End::Gate => "GATE",
            End::Wide => "WIDE",
        };
        let name = format!("gemv_{}_{}_{end}", self.columns, self.vectors);
        let kernel = kernel(&name).filter(|_| self.rows.is_multiple_of(2) && self.blocks > 0)?;
        let shared = self.shared();
        let arguments = vec![
            self.weights.into(),
            self.x.into(),
            self.scale.into(),
            self.wanted.into(),
            self.normed.into(),
            self.out.into(),
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
        let stage = 8 / warps * self.columns * 2;
        let stages = RING / stage;
        let rows = 2 * (self.rows / 2).div_ceil(self.blocks);
        stages * stage + stages * 16 + self.vectors * 8 * 4 + rows * warps * self.vectors * 4
    }
}

/// A product for up to sixteen vectors; see `skinny.cu`.
#[derive(Clone, Copy, Debug)]
pub struct Skinny<B> {
    /// `[rows, columns]`.
    pub weights: Place<B>,
    /// `[vectors, columns]`.
    pub x: Place<B>,
    /// `[vectors, rows]`.
    pub out: Place<B>,
    /// A multiple of 16.
    pub rows: usize,
    /// 1024, 2048, 3072 or 4096.
    pub columns: usize,
    /// 1 to 16.
    pub vectors: usize,
    /// What becomes of the product.
    pub output: Output,
    /// Blocks: one for each multiprocessor.
    pub blocks: usize,
}

impl<B> Skinny<B> {
    /// The launch; `None` if there is no kernel for these shapes.
    pub fn node(self) -> Option<Node<B>> {
        let tiles = self.vectors.div_ceil(8);
        let name = format!("skinny_{}_{}", self.columns, 8 * tiles);
        let kernel = kernel(&name).filter(|_| self.rows.is_multiple_of(16) && self.blocks > 0)?;
        let stages = if self.columns * tiles > 4096 { 2 } else { 3 };
        let (ring, x) = (stages * 16 * 1032 * 2, 8 * tiles * (self.columns + 8) * 2);
        let shared = ring + x + 8 * 16 * 8 * tiles * 4 + stages * 16;
        let end = match self.output {
            Output::Plain => 0,
            Output::Sum => 1,
            Output::Wide => 2,
        };
        let arguments = vec![
            self.weights.into(),
            self.x.into(),
            self.out.into(),
            int(self.rows),
            int(self.vectors),
            int(end),
        ];
        Some(node(kernel.name, [self.blocks, 1, 1], shared, arguments))
    }
}

/// The norm before a product.
#[derive(Clone, Copy, Debug)]
pub struct Before<B> {
    /// `[columns]`.
    pub scale: Place<B>,
    /// `[vectors, columns]`: where normed vectors are written if the norm is a launch of its own, or if some rows are wanted.
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
    /// Its second half is let through the gates of the first. Both are written here if that is a launch of its own.
    Gate(Place<B>),
    /// It is written in `f32`.
    Wide,
}

/// A product of a pass with what comes before and after it.
#[derive(Clone, Copy, Debug)]
pub struct Linear<B> {
    /// `[rows, columns]`.
    pub weights: Place<B>,
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
    /// The steps that compute it on a card with so many multiprocessors. With none, products are the library's.
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
        let skinny = SKINNY.contains(&self.vectors).then_some(Skinny {
            weights: product.weights,
            x: product.x,
            out: product.out,
            rows: product.rows,
            columns: product.columns,
            vectors: product.count,
            output: product.output,
            blocks: multiprocessors,
        });
        let multiply = match skinny.and_then(Skinny::node) {
            Some(node) => Step::Launch(node),
            None => Step::Product(product),
        };
        let launches = [norm.map(Step::Launch), Some(multiply), gate.map(Step::Launch)];
        launches.into_iter().flatten().collect()
    }

    fn gemv(&self, blocks: usize) -> Gemv<B> {
        let wanted = self.before.and_then(|before| before.wanted);
        Gemv {
            weights: self.weights,
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
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::torch::kernels::shapes::KERNELS;
    use crate::torch::kernels::shapes::tests::most_shared;
    use std::collections::BTreeSet;

    fn gemv(columns: usize, rows: usize, vectors: usize, end: End) -> Gemv<()> {
        let at = Place::start(());
        Gemv {
            weights: at,
            x: at,
            scale: None,
            wanted: None,
            normed: None,
            out: at,
            rows,
            columns,
            vectors,
            end,
            eps: 0.0,
            blocks: 132,
        }
    }

    fn skinny(columns: usize, rows: usize, vectors: usize) -> Skinny<()> {
        let at = Place::start(());
        Skinny {
            weights: at,
            x: at,
            out: at,
            rows,
            columns,
            vectors,
            output: Output::Plain,
            blocks: 132,
        }
    }

    /// Hidden and inner width, rows of queries, keys and values, their columns, and vocabulary of the models that the kernels are for.
    const MODELS: [[usize; 5]; 7] = [
        [1024, 3072, 4096, 2048, 151_936],
        [2048, 6144, 4096, 2048, 151_936],
        [2048, 8192, 3072, 2048, 128_256],
        [2048, 8192, 6144, 2048, 49_152],
        [3072, 8192, 5120, 3072, 128_256],
        [4096, 12_288, 6144, 4096, 151_936],
        [4096, 14_336, 6144, 4096, 128_256],
    ];

    /// Every product of these models has a kernel for one and two vectors, within the shared memory of needs.txt, and every kernel has a
    /// model.
    #[test]
    fn launches_ask_for_no_more_shared_memory_than_the_table_says() {
        let most = most_shared();
        let mut seen = BTreeSet::new();
        let mut check = |node: Node<()>| {
            let (name, most) = (node.kernel.name, most[node.kernel.name]);
            assert!(node.shared <= most, "{name}: {} and {most}", node.shared);
            seen.insert(name);
        };
        for [hidden, inner, qkv, heads, vocab] in MODELS {
            for vectors in [1, 2] {
                for (columns, rows, end) in [
                    (hidden, qkv, End::Plain),
                    (heads, hidden, End::Add),
                    (hidden, 2 * inner, End::Gate),
                    (inner, hidden, End::Add),
                    (hidden, vocab, End::Wide),
                ] {
                    let product = gemv(columns, rows, vectors, end);
                    check(product.node().unwrap_or_else(|| panic!("{columns} {end:?}")));
                }
            }
            for vectors in [3, 8, 9, 16] {
                check(skinny(hidden, qkv, vectors).node().unwrap());
                check(skinny(heads, hidden, vectors).node().unwrap());
            }
        }
        // The sum over 1,024 columns is that of smaller models, whose heads are as wide as they are.
        check(gemv(1024, 1024, 1, End::Add).node().unwrap());
        check(gemv(1024, 1024, 2, End::Add).node().unwrap());
        let is_product = |source: &str| ["gemv.cu", "skinny.cu"].contains(&source);
        let all = KERNELS.iter().filter(|kernel| is_product(kernel.source));
        assert_eq!(seen.len(), all.count());
    }

    #[test]
    fn shapes_without_a_kernel_have_no_launch() {
        for without in [
            gemv(1536, 64, 1, End::Plain),
            gemv(2048, 63, 1, End::Plain),
            gemv(2048, 64, 3, End::Plain),
            gemv(8192, 64, 1, End::Gate),
            Gemv {
                blocks: 0,
                ..gemv(2048, 64, 1, End::Plain)
            },
            // More sums than a block has room for.
            Gemv {
                blocks: 1,
                ..gemv(2048, 128_256, 1, End::Wide)
            },
        ] {
            assert!(without.node().is_none(), "{without:?}");
        }
        for without in [skinny(8192, 64, 8), skinny(2048, 40, 8), skinny(2048, 64, 17)] {
            assert!(without.node().is_none(), "{without:?}");
        }
    }

    /// Which kernels and products a step is, by name.
    fn names(linear: Linear<char>, multiprocessors: usize) -> Vec<&'static str> {
        let name = |step: &Step<char>| match step {
            Step::Launch(node) => node.kernel.name,
            Step::Product(_) => "library",
        };
        linear.steps(multiprocessors).iter().map(name).collect()
    }

    #[test]
    fn a_product_is_made_by_whom_its_sizes_suit() {
        let linear = |columns, rows, vectors, after| Linear {
            weights: Place::start('w'),
            x: Place::start('x'),
            before: Some(Before {
                scale: Place::start('s'),
                out: Place::start('n'),
                wanted: None,
                eps: 1e-5,
            }),
            out: Place::start('o'),
            rows,
            columns,
            vectors,
            after,
        };
        let gate = After::Gate(Place::start('g'));
        for (linear, expected) in [
            (linear(2048, 128, 1, gate), &["gemv_2048_1_GATE"][..]),
            (linear(2048, 128, 2, After::Wide), &["gemv_2048_2_WIDE"]),
            (
                linear(2048, 128, 4, gate),
                &["norm_rows", "skinny_2048_8", "gate_rows"],
            ),
            (
                linear(2048, 128, 16, After::Wide),
                &["norm_rows", "skinny_2048_16"],
            ),
            (
                linear(2048, 128, 24, gate),
                &["norm_rows", "library", "gate_rows"],
            ),
            (linear(2048, 120, 4, After::Plain), &["norm_rows", "library"]),
            (linear(2560, 128, 1, gate), &["norm_rows", "library", "gate_rows"]),
            (linear(8192, 128, 4, After::Add), &["norm_rows", "library"]),
        ] {
            assert_eq!(names(linear, 132), expected, "{linear:?}");
        }
        let alone = linear(2048, 128, 1, gate);
        assert_eq!(names(alone, 0), ["norm_rows", "library", "gate_rows"]);
        // A gate of its own reads what the product wrote, and that what the norm wrote.
        let steps = linear(2560, 128, 1, gate).steps(132);
        let Step::Product(product) = &steps[1] else {
            panic!("{steps:?}");
        };
        assert_eq!((product.x.buffer, product.out.buffer), ('n', 'g'));
    }
}
