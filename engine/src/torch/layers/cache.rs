//! The memory of keys and values, and moves within it.
//!
//! Each layer has a cache: a row of all key heads for every slot of every block, and one of values. A move
//! gathers all rows before it writes any, so a row may be both read and written.
//!
//! On a CPU a cache takes memory only when it is used. It may be as large as a quarter of the memory of the
//! machine, while a few clients use little of it; `torch.zeros` would write it all at the start. The system's
//! pages read as zeros until they are written. Attention relies on that: it multiplies the content of masked
//! slots by zero, and a NaN would spoil the sum.

use super::layout::Place;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::ffi::c_void;
use std::io::Error;
use std::ptr::null_mut;
use tch::{Device, TchError, Tensor};

type Result<T> = std::result::Result<T, TchError>;

/// One layer's cache: a row of all key heads for every slot.
pub(crate) struct Cache {
    pub(crate) keys: Tensor,
    pub(crate) values: Tensor,
    /// The memory of both, on a CPU. It is dropped after them, by the order of the fields.
    _pages: Vec<Pages>,
}

/// A row of numbers for every slot, beside the keys and values.
pub(crate) struct SlotRows {
    pub(crate) rows: Tensor,
    /// The memory of the rows, on a CPU. It is dropped after them, by the order of the fields.
    _pages: Option<Pages>,
}

/// Memory of zeros that the system provides page by page, when a page is first written.
struct Pages {
    start: *mut c_void,
    bytes: usize,
}

// SAFETY: only this value owns the pages, and freeing them is all it does; any thread may do that.
unsafe impl Send for Pages {}

impl Pages {
    fn new(bytes: usize) -> Result<Self> {
        // The system cannot map zero bytes.
        let bytes = bytes.max(1);
        let (access, private) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a new mapping at a place that the system chooses overlaps nothing.
        let start = unsafe { mmap_anonymous(null_mut(), bytes, access, private) }.map_err(Error::from)?;
        // A huge page has the rows of thousands of tokens, and each layer would take one for its first token.
        // If the system has no huge pages, the advice is not needed. SAFETY: the range is the mapping above,
        // whose contents this does not change.
        let _ = unsafe { madvise(start, bytes, Advice::LinuxNoHugepage) };
        Ok(Pages { start, bytes })
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the range is a mapping of this value, and the tensors in it are gone: a cache drops them
        // before it.
        let _ = unsafe { munmap(self.start, self.bytes) };
    }
}

impl Cache {
    /// Creates a cache of `slots` slots of `width` numbers each.
    pub(crate) fn new(slots: i64, width: i64, place: Place) -> Result<Self> {
        let keys = SlotRows::new(slots, width, place)?;
        let values = SlotRows::new(slots, width, place)?;
        Ok(Cache {
            keys: keys.rows,
            values: values.rows,
            _pages: keys._pages.into_iter().chain(values._pages).collect(),
        })
    }
}

impl SlotRows {
    /// Creates rows of `width` numbers for `slots` slots.
    pub(crate) fn new(slots: i64, width: i64, place: Place) -> Result<Self> {
        if place.device != Device::Cpu {
            return Ok(SlotRows {
                rows: Tensor::f_zeros([slots, width], (place.kind, place.device))?,
                _pages: None,
            });
        }
        let bytes = (slots * width) as usize * place.kind.elt_size_in_bytes();
        let pages = Pages::new(bytes)?;
        let start = pages.start.cast::<u8>().cast_const();
        // SAFETY: the pages have this many numbers, all zero, and whoever holds the tensor keeps them as long
        // as it. Every reader of it is done before they are dropped: views of it live no longer than a pass.
        let rows =
            unsafe { Tensor::f_from_blob(start, &[slots, width], &[width, 1], place.kind, place.device) }?;
        Ok(SlotRows {
            rows,
            _pages: Some(pages),
        })
    }
}

/// Copies stretches of `size` rows, from number `from[i]` to number `to[i]`.
fn copy_rows(rows: &Tensor, size: i64, from: &Tensor, to: &Tensor) -> Result<()> {
    let width = rows.size()[1];
    let mut stretches = rows.f_view([-1, size * width])?;
    let _ = stretches.f_index_copy_(0, to, &stretches.f_index_select(0, from)?)?;
    Ok(())
}

/// Copies stretches of `size` rows in the caches of all layers, and in the rows beside them, from the first
/// of each pair to the second.
pub(crate) fn copy(
    caches: &[Cache],
    beside: Option<&SlotRows>,
    (size, pairs): (usize, &[(usize, usize)]),
    place: Place,
) -> Result<()> {
    if pairs.is_empty() {
        return Ok(());
    }
    let _no_grad = tch::no_grad_guard();
    let (from, to): (Vec<i64>, Vec<i64>) = pairs.iter().map(|&(from, to)| (from as i64, to as i64)).unzip();
    let sent = Tensor::f_from_slice(&[from, to].concat())?
        .f_to_device(place.device)?
        .f_view([2, -1])?;
    let (from, to) = (sent.f_get(0)?, sent.f_get(1)?);
    let cached = caches.iter().flat_map(|cache| [&cache.keys, &cache.values]);
    cached
        .chain(beside.map(|beside| &beside.rows))
        .try_for_each(|rows| copy_rows(rows, size as i64, &from, &to))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::unix::fs::FileExt;
    use tch::Kind;

    /// Returns how many pages of this memory the system has provided; `None` if it does not report that.
    fn provided(pages: &Pages) -> Option<usize> {
        const PAGE: usize = 4_096;
        let mut entries = vec![0; pages.bytes.div_ceil(PAGE) * 8];
        let first = pages.start.addr() / PAGE * 8;
        let map = File::open("/proc/self/pagemap").ok()?;
        map.read_exact_at(&mut entries, first as u64).ok()?;
        // Bit 62 or 63 of an entry: the page is in memory, or was moved out of it.
        Some(entries.chunks(8).filter(|entry| entry[7] & 0xc0 != 0).count())
    }

    /// Guards against a service that holds gigabytes before the first request.
    #[test]
    fn memory_is_taken_where_it_is_written() {
        let place = Place {
            device: Device::Cpu,
            kind: Kind::Float,
        };
        // A row is half a page.
        let mut cache = Cache::new(8_192, 512, place).expect("a cache");
        let Some(before) = provided(&cache._pages[0]) else {
            println!("skipped: memory_is_taken_where_it_is_written: the system does not tell of pages");
            return;
        };
        assert_eq!(before, 0);
        for (slots, expected) in [([7_i64, 6], 1), ([100, 4_000], 3), ([101, 4_001], 3)] {
            let rows = Tensor::ones([2, 512], (Kind::Float, Device::Cpu));
            let _ = cache.keys.index_copy_(0, &Tensor::from_slice(&slots), &rows);
            assert_eq!(provided(&cache._pages[0]), Some(expected));
        }
        assert_eq!(provided(&cache._pages[1]), Some(0));
        assert_eq!(cache.keys.sum(Kind::Float).double_value(&[]), 6.0 * 512.0);
        assert_eq!(cache.values.sum(Kind::Float).double_value(&[]), 0.0);
        copy(std::slice::from_ref(&cache), None, (16, &[(0, 9)]), place).expect("a copy");
        assert_eq!(
            cache.keys.get(9 * 16 + 7).sum(Kind::Float).double_value(&[]),
            512.0
        );
    }
}
