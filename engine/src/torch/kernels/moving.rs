//! Stretches of the caches of all layers, copied by one launch of a kernel.

use super::conversions::failed;
use crate::torch::layers::cache::Cache;
use lexiform_kernels::launcher::SharedLauncher;
use lexiform_kernels::moves::Sent;
use lexiform_kernels::node::Place;
use lexiform_kernels::step::Step;
use std::sync::PoisonError;
use tch::{Kind, TchError, Tensor};

type Result<T> = std::result::Result<T, TchError>;

/// Copies stretches of `size` slots in the caches of all layers, from the first of each pair to the second.
/// The copies of a run are made in order, and no run reads or writes what another writes.
pub(super) fn copy(
    launcher: &SharedLauncher,
    caches: &[Cache],
    size: usize,
    runs: &[Vec<(usize, usize)>],
) -> Result<()> {
    let both = caches.iter().flat_map(|cache| [&cache.keys, &cache.values]);
    let addresses: Vec<u64> = both.map(|rows| rows.data_ptr() as u64).collect();
    let (Some(sent), Some(cache)) = (Sent::new(&addresses, runs), caches.first()) else {
        return Ok(());
    };
    let slot = cache.keys.size()[1] as usize * cache.keys.kind().elt_size_in_bytes();
    let there = Tensor::f_empty([sent.bytes.len() as i64], (Kind::Uint8, cache.keys.device()))?;
    let place = Place::start(there.data_ptr() as u64);
    let mut launcher = launcher.lock().unwrap_or_else(PoisonError::into_inner);
    launcher.write(place.address(), &sent.bytes).map_err(failed)?;
    // If torch reuses this memory, it writes to it after the launch.
    let node = sent.node(&place, size * slot);
    launcher.start(&[Step::Launch(node)]).map_err(failed)
}
