//! A step of a pass as data: a launch of a kernel, or a product of matrices.

use super::node::{Node, Place};

/// A step of a pass. `B` is a buffer name in a plan, and an address once the buffers are placed.
#[derive(Clone, Debug, PartialEq)]
pub enum Step<B> {
    /// A launch of a kernel.
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
    /// The number of rows of the weights.
    pub rows: usize,
    /// The number of columns of the weights.
    pub columns: usize,
    /// The number of rows of `x`.
    pub count: usize,
    /// The distance from a row of `out` to the next: the number of rows of the weights, or more.
    pub stride: usize,
    /// The treatment of the product.
    pub output: Output,
}

/// The treatment of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// The product is written.
    Plain,
    /// The product is added to the values there.
    Sum,
    /// The product is written in `f32`.
    Wide,
}

impl<B> Step<B> {
    /// Returns this step over buffers that begin at these addresses.
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
