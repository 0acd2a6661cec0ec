//! Matrices of eight bits, and their rows in bf16 for products that the library makes.

use crate::torch::kernels::node::{Node, Place};
use crate::torch::kernels::shapes::{int, node};
use crate::torch::kernels::step::{Output, Product, Step};

/// Numbers that are widened at once: 24 MiB in bf16. The L2 of an H100 has 50 MB in two halves, each of which may have a copy of what
/// is read.
const PIECE: usize = 12 << 20;
/// The numbers that a block of `widen_rows` (`small.cu`) widens.
const BLOCK: usize = 8192;

/// What the numbers of a matrix of eight bits are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Whole numbers.
    Int8,
    /// Floating-point numbers, e4m3 ([OCP 8-bit Floating Point Specification](https://www.opencompute.org/documents/ocp-8-bit-floating-point-specification-ofp8-revision-1-0-2023-12-01-pdf-1)).
    Fp8,
}

impl Format {
    /// What the names of its kernels, and of their sources, end with.
    pub(super) fn suffix(self) -> &'static str {
        match self {
            Format::Int8 => "_int8",
            Format::Fp8 => "_fp8",
        }
    }

    /// Whether this source has kernels of another format.
    pub(in crate::torch::kernels) fn is_foreign(format: Option<Self>, source: &str) -> bool {
        let name = source.trim_end_matches(".cu");
        let mut all = [Format::Int8, Format::Fp8].into_iter();
        all.any(|other| name.ends_with(other.suffix()) && format != Some(other))
    }
}

/// How the weights of a matrix are kept that are not in bf16: in eight bits, with a scale for each row that its sum is multiplied with.
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
    pub(super) fn widened(&self, product: Product<B>) -> Vec<Step<B>> {
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

/// Rows of a matrix of eight bits in bf16; see `small.cu`.
#[derive(Clone, Copy, Debug)]
pub struct Widen<B> {
    /// What the numbers are.
    pub format: Format,
    /// `[rows, columns]`.
    pub weights: Place<B>,
    /// `f32` `[rows]`.
    pub scales: Place<B>,
    /// `[rows, columns]`.
    pub out: Place<B>,
    /// Rows.
    pub rows: usize,
    /// A multiple of 8.
    pub columns: usize,
}

impl<B> Widen<B> {
    /// The rows of so many columns that are widened at once.
    fn rows_at_once(columns: usize) -> usize {
        (PIECE / columns.max(1) / 16 * 16).max(16)
    }

    /// Bytes that the rows of a matrix take which are widened at once.
    pub fn room(rows: usize, columns: usize) -> usize {
        rows.min(Self::rows_at_once(columns)) * columns * 2
    }

    /// The launch.
    pub fn node(self) -> Node<B> {
        let name = match self.format {
            Format::Int8 => "widen_int8",
            Format::Fp8 => "widen_fp8",
        };
        let blocks = (self.rows * self.columns).div_ceil(BLOCK);
        let arguments = vec![
            self.weights.into(),
            self.scales.into(),
            self.out.into(),
            int(self.rows),
            int(self.columns),
        ];
        node(name, [blocks, 1, 1], 0, arguments)
    }
}
