//! The sizes of a decoder that passes are planned for, and which of them no kernel takes.

use crate::torch::kernels::experts::Mixture;
use crate::torch::kernels::shapes::{Attend, BLOCK_SIZE, Format, MOST_NORM_WIDTH, MOST_QUERY_ROWS, Widen};
use std::fmt;

/// The sizes of a decoder of the Llama family.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// Numbers of a token between layers.
    pub hidden: usize,
    /// Numbers behind the gate; of no account where all layers have experts.
    pub inner: usize,
    /// Heads of queries.
    pub heads: usize,
    /// Heads of keys and values.
    pub key_heads: usize,
    /// Numbers of a head.
    pub head_size: usize,
    /// Rows of the embedding and of the head.
    pub vocab: usize,
    /// What norms add to the mean of squares.
    pub eps: f32,
    /// Whether queries and keys are normed head by head.
    pub norms_heads: bool,
    /// For each layer how many positions a token sees, its own among them; `None` if all.
    pub windows: Vec<Option<usize>>,
    /// The experts of the layers that have some.
    pub mixture: Option<Mixture>,
    /// Slots of a block of the cache.
    pub block_size: usize,
    /// What the matrices are kept in, the head among them, if not in bf16.
    pub rounded: Option<Format>,
}

/// Why there is no plan for a model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unplanned {
    /// A size that no kernel takes.
    #[error("{what} is {found}; the kernels take {expected}")]
    Size {
        /// The size.
        what: &'static str,
        /// What it is.
        found: usize,
        /// What it may be.
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

impl Shape {
    /// Whether there are kernels for these sizes.
    ///
    /// # Errors
    /// All sizes that no kernel takes.
    pub fn check(&self) -> Result<(), NoPlan> {
        let width = |what, found: usize, most: usize, expected| {
            (found == 0 || !found.is_multiple_of(8) || found > most).then_some(Unplanned::Size {
                what,
                found,
                expected,
            })
        };
        let mut problems: Vec<Unplanned> = [
            width(
                "hidden",
                self.hidden,
                MOST_NORM_WIDTH,
                "a multiple of 8, up to 8192",
            ),
            width("inner", self.inner, usize::MAX, "a multiple of 8").filter(|_| self.has_dense_layers()),
        ]
        .into_iter()
        .flatten()
        .collect();
        let mut must = |holds: bool, what, found, expected| {
            if !holds {
                problems.push(Unplanned::Size {
                    what,
                    found,
                    expected,
                });
            }
        };
        must(
            [64, 128].contains(&self.head_size),
            "head_size",
            self.head_size,
            "64 or 128",
        );
        let divides = self.key_heads > 0 && self.heads.is_multiple_of(self.key_heads);
        must(
            divides && self.heads > 0,
            "heads",
            self.heads,
            "a multiple of key_heads",
        );
        let group = self.heads / self.key_heads.max(1);
        must(
            group <= MOST_QUERY_ROWS,
            "query heads of a key head",
            group,
            "up to 64",
        );
        must(self.block_size == BLOCK_SIZE, "block_size", self.block_size, "16");
        must(
            self.windows.iter().flatten().all(|&window| window > 0),
            "window",
            0,
            "at least 1",
        );
        let lacking = self
            .mixture
            .iter()
            .flat_map(|mixture| mixture.lacking(self.hidden));
        problems.extend(lacking.map(|(what, found, expected)| Unplanned::Size {
            what,
            found,
            expected,
        }));
        match problems.is_empty() {
            true => Ok(()),
            false => Err(NoPlan(problems)),
        }
    }

    /// The experts of a layer, if it has some.
    pub(super) fn experts_of(&self, layer: usize) -> Option<&Mixture> {
        self.mixture.as_ref().filter(|mixture| mixture.is_in(layer))
    }

    pub(super) fn has_dense_layers(&self) -> bool {
        self.windows.is_empty() || (0..self.windows.len()).any(|layer| self.experts_of(layer).is_none())
    }

    /// Query heads of each key head.
    pub fn group(&self) -> usize {
        self.heads / self.key_heads
    }

    /// Bytes of so many split rows of every key head.
    pub fn parts_bytes(&self, rows: usize) -> usize {
        Attend::<u64>::parts_bytes(rows, self.key_heads, self.head_size)
    }

    pub(super) fn qkv(&self) -> usize {
        (self.heads + 2 * self.key_heads) * self.head_size
    }

    /// Bytes for rows of any matrix that are widened at once; 0 if weights are in bf16.
    pub(super) fn widened(&self) -> usize {
        let (hidden, inner) = (self.hidden, self.inner);
        let matrices = [
            (self.qkv(), hidden),
            (hidden, self.heads * self.head_size),
            (2 * inner, hidden),
            (hidden, inner),
            (self.vocab, hidden),
        ];
        let room = matrices.map(|(rows, columns)| Widen::<u64>::room(rows, columns));
        self.rounded.map_or(0, |_| room.into_iter().max().unwrap_or(0))
    }
}
