//! The memory of keys and values, and how they are moved in it.
//!
//! A cache is per layer: a row of all key heads for every slot of every block, and one of values. Moving rows gathers all
//! of them before it writes any, so it does not matter whether a row is both left and taken.

use super::layout::Place;
use tch::{TchError, Tensor};

type Result<T> = std::result::Result<T, TchError>;

/// One layer's cache: a row of all key heads for every slot.
pub(crate) struct Cache {
    pub(crate) keys: Tensor,
    pub(crate) values: Tensor,
}

impl Cache {
    /// So many slots of so many numbers each.
    pub(crate) fn new(slots: i64, width: i64, place: Place) -> Result<Self> {
        let zeros = || Tensor::f_zeros([slots, width], (place.kind, place.device));
        Ok(Cache {
            keys: zeros()?,
            values: zeros()?,
        })
    }

    /// Copies stretches of `size` rows: number `from[i]` to number `to[i]`.
    fn copy(&mut self, size: i64, from: &Tensor, to: &Tensor) -> Result<()> {
        for rows in [&mut self.keys, &mut self.values] {
            let width = rows.size()[1];
            let mut stretches = rows.f_view([-1, size * width])?;
            let _ = stretches.f_index_copy_(0, to, &stretches.f_index_select(0, from)?)?;
        }
        Ok(())
    }
}

/// Copies stretches of `size` rows in the caches of all layers; from the first of each pair to the second.
pub(crate) fn copy(caches: &mut [Cache], size: usize, pairs: &[(usize, usize)], place: Place) -> Result<()> {
    if pairs.is_empty() {
        return Ok(());
    }
    let _no_grad = tch::no_grad_guard();
    let (from, to): (Vec<i64>, Vec<i64>) = pairs.iter().map(|&(from, to)| (from as i64, to as i64)).unzip();
    let sent = Tensor::f_from_slice(&[from, to].concat())?
        .f_to_device(place.device)?
        .f_view([2, -1])?;
    let (from, to) = (sent.f_get(0)?, sent.f_get(1)?);
    caches
        .iter_mut()
        .try_for_each(|cache| cache.copy(size as i64, &from, &to))
}
