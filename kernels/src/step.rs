//! A step of a pass as data: a launch of a kernel, or a product of matrices.

use super::node::{Node, Place};

/// A step of a pass. `B` names buffers in a plan, and is an address once it is known where they lie.
#[derive(Clone, Debug, PartialEq)]
pub enum Step<B> {
    /// A kernel.
    Launch(Node<B>),
    /// A product by the library of the card.
    Product(Product<B>),
}

/// out = x·Wᵀ, in bf16 with sums in `f32`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Product<B> {
    /// `[rows, columns]`.
    pub weights: Place<B>,
    /// `[count, columns]`.
    pub x: Place<B>,
    /// `[count, rows]`, in rows of `stride` numbers.
    pub out: Place<B>,
    /// Rows of the weights.
    pub rows: usize,
    /// Columns of the weights.
    pub columns: usize,
    /// Rows of `x`.
    pub count: usize,
    /// From a row of `out` to the next: as many numbers as the weights have rows, or more.
    pub stride: usize,
    /// What becomes of the product.
    pub output: Output,
}

/// What becomes of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// It is written.
    Plain,
    /// It is added to what is there.
    Sum,
    /// It is written in `f32`.
    Wide,
}

impl<B> Step<B> {
    /// The same step over buffers that begin at these addresses.
    pub fn at(&self, address: impl Fn(&B) -> u64) -> Step<u64> {
        match self {
            Step::Launch(node) => Step::Launch(node.at(address)),
            Step::Product(product) => Step::Product(Product {
                weights: product.weights.at(&address),
                x: product.x.at(&address),
                out: product.out.at(&address),
                rows: product.rows,
                columns: product.columns,
                count: product.count,
                stride: product.stride,
                output: product.output,
            }),
        }
    }
}
