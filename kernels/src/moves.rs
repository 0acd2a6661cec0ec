//! Moves of stretches of the cache in all layers by one launch: accepted nodes of trees, and blocks of texts
//! that fork.
//!
//! ```text
//!   sent     addresses of the layers' keys and values │ from, to │ from, to │ …     │ first move of each run, and the end
//!   run      one sequence's moves, or one block: made in their order, each thread the same 16 bytes of all of them
//! ```
//!
//! A sequence's nodes move towards its text: slots ascend, and none is before the place of the first. So no
//! move of a run overwrites a stretch that a later one reads, and runs are independent of each other.

use super::node::{Argument, Node, Place};
use super::shapes::kernel;

/// The number of bytes that a thread copies at once.
const CHUNK: usize = 16;
/// The number of threads of a block.
const THREADS: usize = 128;

/// The packed moves, which one copy transfers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sent {
    /// The packed bytes: addresses, moves, firsts.
    pub bytes: Vec<u8>,
    /// The number of caches, of keys and of values.
    pub caches: usize,
    /// The number of runs.
    pub runs: usize,
    /// The number of moves.
    moves: usize,
}

impl Sent {
    /// Packs moves in the caches at these addresses: runs of pairs of stretch numbers, each moved from the
    /// first to the second. Returns `None` if nothing moves.
    pub fn new(caches: &[u64], runs: &[Vec<(usize, usize)>]) -> Option<Self> {
        let runs: Vec<&Vec<(usize, usize)>> = runs.iter().filter(|run| !run.is_empty()).collect();
        if runs.is_empty() || caches.is_empty() {
            return None;
        }
        let mut bytes: Vec<u8> = caches.iter().flat_map(|address| address.to_le_bytes()).collect();
        let mut firsts = vec![0];
        for run in &runs {
            let numbers = run.iter().flat_map(|&(from, to)| [from as u32, to as u32]);
            bytes.extend(numbers.flat_map(u32::to_le_bytes));
            firsts.push(firsts[firsts.len() - 1] + run.len() as u32);
        }
        let moves = firsts[firsts.len() - 1] as usize;
        bytes.extend(firsts.into_iter().flat_map(u32::to_le_bytes));
        Some(Sent {
            bytes,
            caches: caches.len(),
            runs: runs.len(),
            moves,
        })
    }

    /// Returns the launch, if the packed moves are at `sent`; a stretch has `stretch` bytes, a multiple of
    /// 16.
    pub fn node<B: Clone>(&self, sent: &Place<B>, stretch: usize) -> Node<B> {
        let chunks = stretch / CHUNK;
        let behind = |bytes: usize| {
            Argument::At(Place {
                buffer: sent.buffer.clone(),
                offset: sent.offset + bytes,
            })
        };
        let moves = 8 * self.caches;
        Node {
            kernel: kernel("move_rows").unwrap_or_else(|| unreachable!("move_rows stands in the table")),
            grid: [chunks.div_ceil(THREADS), self.caches, self.runs].map(|blocks| blocks as u32),
            shared: 0,
            arguments: vec![
                behind(0),
                behind(moves),
                behind(moves + 8 * self.moves),
                Argument::Int(chunks as i32),
            ],
        }
    }
}
