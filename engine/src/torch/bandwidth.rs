//! The speed at which a device reads and copies its memory, which bounds a pass: measured where the model
//! runs, with the same number of threads.
//!
//! A buffer must be larger than all caches, otherwise the caches are measured. Each figure is the median of a
//! few rounds.

use super::device::Device;
use crate::error::LoadError;
use std::time::Instant;
use tch::{Kind, TchError, Tensor};

/// The number of rounds of each measurement.
const ROUNDS: usize = 5;
/// The number of columns of the matrix that is multiplied by a vector.
const COLUMNS: i64 = 4096;

/// The memory bandwidth of a device, in bytes per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bandwidth {
    /// The bandwidth of reading: the faster of a sum over the buffer and of a matrix-vector product with the
    /// buffer as the matrix.
    pub read: f64,
    /// The bandwidth of copying from one buffer to another. Both the bytes read and the bytes written count.
    pub copy: f64,
}

impl Bandwidth {
    /// Measures with buffers of `bytes` bytes, two at a time, and with `threads` threads if the device is the
    /// CPU.
    ///
    /// # Errors
    /// The device cannot be used, or it has no memory for the buffers.
    pub fn measure(device: Device, threads: usize, bytes: usize) -> Result<Self, LoadError> {
        let place = device.open()?;
        if device == Device::Cpu {
            tch::set_num_threads(threads.max(1) as i32);
        }
        let rows = ((bytes / size_of::<f32>()) as i64 / COLUMNS).max(1);
        timed(place, rows).map_err(|error| LoadError::Device {
            device: device.to_string(),
            message: error.to_string(),
        })
    }
}

fn timed(device: tch::Device, rows: i64) -> Result<Bandwidth, TchError> {
    let _no_grad = tch::no_grad_guard();
    let options = (Kind::Float, device);
    // Written to, since otherwise all pages might be the same page of zeros.
    let from = Tensor::f_ones([rows, COLUMNS], options)?;
    let mut to = Tensor::f_ones([rows, COLUMNS], options)?;
    let vector = Tensor::f_ones([COLUMNS], options)?;
    let wait = || {
        if let tch::Device::Cuda(index) = device {
            tch::Cuda::synchronize(index as i64);
        }
    };
    let bytes = (rows * COLUMNS) as f64 * size_of::<f32>() as f64;
    let sum = median(wait, || from.f_sum(Kind::Float).map(|_| ()))?;
    let product = median(wait, || from.f_mv(&vector).map(|_| ()))?;
    let copy = median(wait, || to.f_copy_(&from))?;
    Ok(Bandwidth {
        read: bytes / sum.min(product),
        copy: 2.0 * bytes / copy,
    })
}

/// Returns the median seconds of an action, after one run that is not counted.
fn median(wait: impl Fn(), mut action: impl FnMut() -> Result<(), TchError>) -> Result<f64, TchError> {
    action()?;
    let mut seconds = [0.0; ROUNDS];
    for second in &mut seconds {
        wait();
        let begun = Instant::now();
        action()?;
        wait();
        *second = begun.elapsed().as_secs_f64();
    }
    seconds.sort_unstable_by(f64::total_cmp);
    // A clock may be too coarse for the smallest buffers.
    Ok(seconds[ROUNDS / 2].max(1e-9))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_has_a_speed() {
        let found = Bandwidth::measure(Device::Cpu, 1, 8 << 20).unwrap();
        for speed in [found.read, found.copy] {
            assert!(speed > 1e6 && speed.is_finite(), "{found:?}");
        }
        assert!(Bandwidth::measure(Device::Cuda(99), 1, 8 << 20).is_err());
    }
}
