//! The launch parameters of each kernel: its arguments by name, and the grid and shared memory that follow
//! from its shapes.
//!
//! The structs mirror those of the sources, field by field. The launch on the processor
//! (`kernels/tests/kernels`) detects a mismatch in size; the results reveal one in order.

use super::node::{Argument, Kernel, Node, Place};

/// The number of slots of a block of the cache, which is one step of a warp.
pub const BLOCK_SIZE: usize = 16;
/// The most fed tokens of a sequence times the query heads of a key head.
pub const MOST_QUERY_ROWS: usize = 64;
/// The most parts that the keys of a sequence are split into.
pub const SPLITS: usize = 64;
/// The largest width that a norm holds in registers.
pub const MOST_NORM_WIDTH: usize = 8192;
/// The widest row that a draw supports.
pub const MOST_DRAW_WIDTH: usize = 128 * 64 * 32;
/// The bytes of shared memory that a block can have on an H100.
pub const MOST_SHARED: usize = 232_448;
/// The bytes that a draw writes for a row.
pub const DRAWN_BYTES: usize = 56;
/// The bytes of an ask.
pub const ASKED_BYTES: usize = 104;
/// The number of parts in which the tokens of a row are counted if filters cut it.
pub const CUT_PARTS: usize = 512;

/// The number of values that are widened at once: 24 MiB in bf16. The L2 of an H100 has 50 MB in two halves,
/// each of which may have a copy of the data that is read.
const WIDENED: usize = 12 << 20;
/// The number of values that a block of `widen_rows` (`small.cu`) widens.
const WIDENED_BY_BLOCK: usize = 8192;

macro_rules! kernels {
    ($($name:ident $source:literal $threads:literal,)* ; in every format: $($product:ident $of:literal $by:literal,)*) => {
        /// All kernels.
        pub const KERNELS: &[Kernel] = &[
            $(Kernel { name: stringify!($name), source: concat!($source, ".cu"), threads: $threads },)*
            $(
                Kernel { name: stringify!($product), source: concat!($of, ".cu"), threads: $by },
                Kernel { name: concat!(stringify!($product), "_int8"), source: concat!($of, "_int8.cu"), threads: $by },
                Kernel { name: concat!(stringify!($product), "_fp8"), source: concat!($of, "_fp8.cu"), threads: $by },
            )*
        ];
    };
}
kernels! {
    attend_64 "attend" 128,
    attend_128 "attend" 128,
    route_tokens "experts" 256,
    experts_up "experts" 288,
    experts_down "experts" 288,
    sum_experts "experts" 256,
    embed_rows "small" 256,
    take_drawn "small" 128,
    norm_rows "small" 256,
    turn_64 "small" 32,
    turn_128 "small" 32,
    gate_rows "small" 256,
    widen_int8 "small" 256,
    widen_fp8 "small" 256,
    move_rows "small" 128,
    change "draw" 256,
    peaks "draw" 512,
    sums "draw" 128,
    cut "draw" 512,
    draw "draw" 128,
    ; in every format:
    gemv_1024_1_PLAIN "gemv" 288,
    gemv_1024_1_ADD "gemv" 288,
    gemv_1024_1_GATE "gemv" 288,
    gemv_1024_1_WIDE "gemv" 288,
    gemv_2048_1_PLAIN "gemv" 288,
    gemv_2048_1_ADD "gemv" 288,
    gemv_2048_1_GATE "gemv" 288,
    gemv_2048_1_WIDE "gemv" 288,
    gemv_3072_1_PLAIN "gemv" 288,
    gemv_3072_1_ADD "gemv" 288,
    gemv_3072_1_GATE "gemv" 288,
    gemv_3072_1_WIDE "gemv" 288,
    gemv_4096_1_PLAIN "gemv" 288,
    gemv_4096_1_ADD "gemv" 288,
    gemv_4096_1_GATE "gemv" 288,
    gemv_4096_1_WIDE "gemv" 288,
    gemv_6144_1_ADD "gemv" 288,
    gemv_8192_1_ADD "gemv" 288,
    gemv_12288_1_ADD "gemv" 288,
    gemv_14336_1_ADD "gemv" 288,
    gemv_1024_2_PLAIN "gemv" 288,
    gemv_1024_2_ADD "gemv" 288,
    gemv_1024_2_GATE "gemv" 288,
    gemv_1024_2_WIDE "gemv" 288,
    gemv_2048_2_PLAIN "gemv" 288,
    gemv_2048_2_ADD "gemv" 288,
    gemv_2048_2_GATE "gemv" 288,
    gemv_2048_2_WIDE "gemv" 288,
    gemv_3072_2_PLAIN "gemv" 288,
    gemv_3072_2_ADD "gemv" 288,
    gemv_3072_2_GATE "gemv" 288,
    gemv_3072_2_WIDE "gemv" 288,
    gemv_4096_2_PLAIN "gemv" 288,
    gemv_4096_2_ADD "gemv" 288,
    gemv_4096_2_GATE "gemv" 288,
    gemv_4096_2_WIDE "gemv" 288,
    gemv_6144_2_ADD "gemv" 288,
    gemv_8192_2_ADD "gemv" 288,
    gemv_12288_2_ADD "gemv" 288,
    gemv_14336_2_ADD "gemv" 288,
    skinny_1024_8 "skinny" 288,
    skinny_2048_8 "skinny" 288,
    skinny_3072_8 "skinny" 288,
    skinny_4096_8 "skinny" 288,
    skinny_1024_16 "skinny" 288,
    skinny_2048_16 "skinny" 288,
    skinny_3072_16 "skinny" 288,
    skinny_4096_16 "skinny" 288,
}

/// Returns the kernel with this name.
pub fn kernel(name: &str) -> Option<&'static Kernel> {
    KERNELS.iter().find(|kernel| kernel.name == name)
}

/// The format of the numbers of a matrix of eight bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Integers.
    Int8,
    /// Floating-point numbers, e4m3 ([OCP 8-bit Floating Point
    /// Specification](https://www.opencompute.org/documents/ocp-8-bit-floating-point-specification-ofp8-revision-1-0-2023-12-01-pdf-1)).
    Fp8,
}

impl Format {
    /// Returns the suffix of the names of its kernels and of their sources.
    pub(super) fn suffix(self) -> &'static str {
        match self {
            Format::Int8 => "_int8",
            Format::Fp8 => "_fp8",
        }
    }

    /// Returns `true` if this source has kernels of another format.
    pub(super) fn is_foreign(format: Option<Self>, source: &str) -> bool {
        let name = source.trim_end_matches(".cu");
        let mut all = [Format::Int8, Format::Fp8].into_iter();
        all.any(|other| name.ends_with(other.suffix()) && format != Some(other))
    }
}

/// Returns a launch of a kernel in the table.
pub(super) fn node<B>(name: &str, grid: [usize; 3], shared: usize, arguments: Vec<Argument<B>>) -> Node<B> {
    let kernel = kernel(name).unwrap_or_else(|| unreachable!("{name} stands in the table"));
    Node {
        kernel,
        grid: grid.map(|blocks| blocks as u32),
        shared: shared as u32,
        arguments,
    }
}

pub(super) fn int<B>(value: usize) -> Argument<B> {
    Argument::Int(value as i32)
}

/// Attention over the paged cache; see `attend.cu`.
#[derive(Clone, Copy, Debug)]
pub struct Attend<B> {
    /// `[tokens, heads · size]`.
    pub queries: Place<B>,
    /// `[slots, key heads · size]`.
    pub keys: Place<B>,
    /// `[slots, key heads · size]`.
    pub values: Place<B>,
    /// `[tokens, heads · size]`.
    pub out: Place<B>,
    /// The place for the sums of splits: [`parts_bytes`](Self::parts_bytes) of the
    /// [`split_rows`](Self::split_rows) of all sequences.
    pub parts: Place<B>,
    /// `i32` `[sequences, key heads]`, zeros.
    pub arrived: Place<B>,
    /// `i32` `[sequences, table width]`.
    pub tables: Place<B>,
    /// `i32` `[sequences]`.
    pub starts: Place<B>,
    /// `i32` `[sequences + 1]`.
    pub firsts: Place<B>,
    /// `i32` `[tokens]`.
    pub positions: Place<B>,
    /// `u32` `[tokens]`.
    pub sees: Place<B>,
    /// `i32` `[sequences]`: the number of split rows of the sequences before each.
    pub parts_at: Place<B>,
    /// The width of a head: 64 or 128.
    pub size: usize,
    /// The number of key and value heads.
    pub key_heads: usize,
    /// The number of query heads of each key head.
    pub group: usize,
    /// The number of sequences of the pass.
    pub sequences: usize,
    /// The number of blocks of a row of `tables`.
    pub table_width: usize,
    /// The most tokens that a sequence feeds.
    pub most_fed: usize,
    /// The most parts that the keys of a sequence are split into: [`SPLITS`], or fewer if many sequences feed
    /// much.
    pub most_splits: usize,
    /// The number of positions that a token sees, including its own; `None` if all.
    pub window: Option<usize>,
}

impl<B> Attend<B> {
    /// Returns the bytes of `rows` split rows of every key head.
    pub fn parts_bytes(rows: usize, key_heads: usize, size: usize) -> usize {
        rows * key_heads * (size + 2) * 4
    }

    /// Returns the number of parts, at most `most`, that the kernel splits a text of `slots` slots into.
    pub fn splits(slots: usize, most: usize) -> usize {
        let total = slots.max(1);
        let mut size = 128;
        while size * most.max(1) < total {
            size *= 2;
        }
        total.div_ceil(size)
    }

    /// Returns the rows of sums that a text of `slots` slots leaves for each key head, if its last `fed`
    /// tokens have `group` query heads each: one row for each part, of at most `most` parts, and none if it
    /// is not split.
    pub fn split_rows(slots: usize, fed: usize, group: usize, most: usize) -> usize {
        match Self::splits(slots, most) {
            1 => 0,
            splits => splits * fed * group,
        }
    }

    /// Returns the bytes of the rings of four warps, and of the queries of the largest number of tiles.
    fn shared(&self) -> usize {
        let stages = if self.size == 64 { 4 } else { 3 };
        let tiles = match (self.most_fed * self.group).div_ceil(16) {
            0 | 1 => 1,
            2 => 2,
            _ => 4,
        };
        4 * stages * 2 * 16 * self.size * 2 + tiles * 16 * self.size * 2
    }

    /// Returns the launch.
    pub fn node(self) -> Node<B> {
        let name = if self.size == 64 {
            "attend_64"
        } else {
            "attend_128"
        };
        let splits = Self::splits(self.table_width * BLOCK_SIZE, self.most_splits);
        let (grid, shared) = ([splits, self.key_heads, self.sequences], self.shared());
        let scale = std::f32::consts::LOG2_E / (self.size as f32).sqrt();
        let arguments = vec![
            self.queries.into(),
            self.keys.into(),
            self.values.into(),
            self.out.into(),
            self.parts.into(),
            self.arrived.into(),
            self.tables.into(),
            self.starts.into(),
            self.firsts.into(),
            self.positions.into(),
            self.sees.into(),
            self.parts_at.into(),
            int(self.key_heads),
            int(self.group),
            int(self.table_width),
            int(self.most_splits.max(1)),
            int(self.window.unwrap_or(1 << 30).min(1 << 30)),
            Argument::Float(scale),
        ];
        node(name, grid, shared, arguments)
    }
}

/// The rows of a table that tokens name; see `small.cu`.
#[derive(Clone, Copy, Debug)]
pub struct Embed<B> {
    /// `[vocabulary, width]`.
    pub table: Place<B>,
    /// `i32` `[count]`.
    pub tokens: Place<B>,
    /// `[count, width]`.
    pub out: Place<B>,
    /// A multiple of 8.
    pub width: usize,
    /// The number of tokens of the pass.
    pub count: usize,
}

impl<B> Embed<B> {
    /// Returns the launch.
    pub fn node(self) -> Node<B> {
        let arguments = vec![
            self.table.into(),
            self.tokens.into(),
            self.out.into(),
            int(self.width),
        ];
        node("embed_rows", [self.count, 1, 1], 0, arguments)
    }
}

/// A norm of rows by the root of the mean of squares; see `small.cu`.
#[derive(Clone, Copy, Debug)]
pub struct Norm<B> {
    /// `[tokens, width]`.
    pub x: Place<B>,
    /// `[width]`.
    pub scale: Place<B>,
    /// `[count, width]`.
    pub out: Place<B>,
    /// `i32` `[count]`: the rows of `x`; those below 0 are left out. If absent, all in order.
    pub rows: Option<Place<B>>,
    /// A multiple of 8, at most [`MOST_NORM_WIDTH`].
    pub width: usize,
    /// The number of rows of the result.
    pub count: usize,
    /// The number that is added to the mean of squares.
    pub eps: f32,
}

impl<B> Norm<B> {
    /// Returns the launch.
    pub fn node(self) -> Node<B> {
        let arguments = vec![
            self.x.into(),
            self.scale.into(),
            self.out.into(),
            self.rows.into(),
            int(self.width),
            Argument::Float(self.eps),
        ];
        node("norm_rows", [self.count, 1, 1], 32, arguments)
    }
}

/// Rotates queries and keys by their positions, and stores keys and values; see `small.cu`.
#[derive(Clone, Copy, Debug)]
pub struct Turn<B> {
    /// `[count, (heads + 2 · key heads) · size]`.
    pub rows: Place<B>,
    /// `[count, heads · size]`.
    pub queries: Place<B>,
    /// `[slots, key heads · size]`.
    pub keys: Place<B>,
    /// `[slots, key heads · size]`.
    pub values: Place<B>,
    /// `f32` `[positions, size / 2]`.
    pub cosines: Place<B>,
    /// `f32` `[positions, size / 2]`.
    pub sines: Place<B>,
    /// `[heads + key heads, size]`: the scales of the norms of each head, if there are any.
    pub scales: Option<Place<B>>,
    /// `i32` `[count]`.
    pub positions: Place<B>,
    /// `i32` `[count]`; below 0 for rows of padding.
    pub slots: Place<B>,
    /// The width of a head: 64 or 128.
    pub size: usize,
    /// The number of query heads.
    pub heads: usize,
    /// The number of key and value heads.
    pub key_heads: usize,
    /// The number of tokens of the pass.
    pub count: usize,
    /// The number that norms of heads add to the mean of squares.
    pub eps: f32,
}

impl<B> Turn<B> {
    /// Returns the launch.
    pub fn node(self) -> Node<B> {
        let name = if self.size == 64 { "turn_64" } else { "turn_128" };
        let grid = [self.count, self.heads + 2 * self.key_heads, 1];
        let arguments = vec![
            self.rows.into(),
            self.queries.into(),
            self.keys.into(),
            self.values.into(),
            self.cosines.into(),
            self.sines.into(),
            self.scales.into(),
            self.positions.into(),
            self.slots.into(),
            int(self.heads),
            int(self.key_heads),
            Argument::Float(self.eps),
        ];
        node(name, grid, 0, arguments)
    }
}

/// Takes the tokens of a pass from draws; see `small.cu`.
#[derive(Clone, Copy, Debug)]
pub struct Take<B> {
    /// The output of draws, [`DRAWN_BYTES`] a row.
    pub drawn: Place<B>,
    /// `i32` `[count]`: `−1 − row` if the token is to be replaced by the one drawn from a row.
    pub tokens: Place<B>,
    /// The number of tokens of the pass, at most 128.
    pub count: usize,
}

impl<B> Take<B> {
    /// Returns the launch.
    pub fn node(self) -> Node<B> {
        let arguments = vec![self.drawn.into(), self.tokens.into(), int(self.count)];
        node("take_drawn", [1, 1, 1], 0, arguments)
    }
}

/// Applies gates; see `small.cu`.
#[derive(Clone, Copy, Debug)]
pub struct Gate<B> {
    /// `[count, 2 · width]`: gates, then the values that they gate.
    pub rows: Place<B>,
    /// `[count, width]`.
    pub out: Place<B>,
    /// A multiple of 8.
    pub width: usize,
    /// The number of tokens of the pass.
    pub count: usize,
}

impl<B> Gate<B> {
    /// Returns the launch.
    pub fn node(self) -> Node<B> {
        let arguments = vec![self.rows.into(), self.out.into(), int(self.width)];
        node(
            "gate_rows",
            [self.width.div_ceil(2048), self.count, 1],
            0,
            arguments,
        )
    }
}

/// Widens rows of a matrix of eight bits to bf16; see `small.cu`.
#[derive(Clone, Copy, Debug)]
pub struct Widen<B> {
    /// The format of the numbers.
    pub format: Format,
    /// `[rows, columns]`.
    pub weights: Place<B>,
    /// `f32` `[rows]`.
    pub scales: Place<B>,
    /// `[rows, columns]`.
    pub out: Place<B>,
    /// The number of rows.
    pub rows: usize,
    /// A multiple of 8.
    pub columns: usize,
}

impl<B> Widen<B> {
    /// Returns the number of rows of `columns` columns that are widened at once.
    pub(super) fn rows_at_once(columns: usize) -> usize {
        (WIDENED / columns.max(1) / 16 * 16).max(16)
    }

    /// Returns the bytes of the rows of a matrix that are widened at once.
    pub fn room(rows: usize, columns: usize) -> usize {
        rows.min(Self::rows_at_once(columns)) * columns * 2
    }

    /// Returns the launch.
    pub fn node(self) -> Node<B> {
        let name = match self.format {
            Format::Int8 => "widen_int8",
            Format::Fp8 => "widen_fp8",
        };
        let blocks = (self.rows * self.columns).div_ceil(WIDENED_BY_BLOCK);
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

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Returns the bytes of shared memory of each kernel in needs.txt.
    pub(crate) fn most_shared() -> BTreeMap<&'static str, u32> {
        let lines = include_str!("../sources/needs.txt")
            .lines()
            .filter(|line| !line.starts_with('#'));
        let needs = lines.map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let kernel = kernel(words[0]).unwrap();
            assert_eq!(words[1].parse(), Ok(kernel.threads), "{line}");
            (kernel.name, words[3].parse().unwrap())
        });
        needs.collect()
    }

    #[test]
    fn attention_asks_for_no_more_shared_memory_than_the_table_says() {
        let most = most_shared();
        assert_eq!(most.len(), KERNELS.len());
        let at = Place::start(());
        let attend = |size| Attend {
            queries: at,
            keys: at,
            values: at,
            out: at,
            parts: at,
            arrived: at,
            tables: at,
            starts: at,
            firsts: at,
            positions: at,
            sees: at,
            parts_at: at,
            size,
            key_heads: 8,
            group: 4,
            sequences: 64,
            table_width: 512,
            most_splits: SPLITS,
            most_fed: 16,
            window: None,
        };
        for node in [64, 128].map(|size| attend(size).node()) {
            let (name, most) = (node.kernel.name, most[node.kernel.name]);
            assert!(node.shared <= most, "{name}: {} and {most}", node.shared);
        }
    }
}
