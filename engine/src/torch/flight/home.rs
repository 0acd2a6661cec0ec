//! Copies logits from the device to host memory.
//!
//! From a GPU they are copied to pinned memory, which libtorch keeps for the next pass, in one copy and with
//! one wait. Ordinary memory takes five times as long, and a new vector for each pass as long again: its
//! pages are new to the process each time.
//!
//! The first things that a draw needs of a row are its largest logit and the sums of its blocks: 128,000
//! exponentials, a millisecond on a CPU and almost nothing on the GPU. So these are copied too, measured in
//! `f64` as the CPU would. Masks are not included: they are applied to blocks where the row is drawn from,
//! and only the blocks that a mask cuts are summed again. Temperatures are included: each row is measured at
//! the scale of its request.

use crate::model::logits::Logits;
use crate::torch::loops::fused::{floats, floats_mut};
use tch::{Device, Kind, TchError, Tensor};

type Result<T> = std::result::Result<T, TchError>;

/// The number of tokens of a block of [`Measured`](lexiform_law::Measured).
const BLOCK: i64 = 32;
/// The number of rows measured at once, so that drafts of many sequences do not take gigabytes in `f64`.
const ROWS: i64 = 64;

/// Copies rows to host memory. From a GPU they come measured, each at its scale, if it is known which columns
/// to leave out; those become minus infinity.
pub(crate) fn bring(logits: &Tensor, left_out: Option<&Tensor>, scales: Vec<f64>) -> Result<Logits> {
    let mut logits = logits.f_to_kind(Kind::Float)?.f_contiguous()?;
    let width = logits.size()[1] as usize;
    let Device::Cuda(index) = logits.device() else {
        return Ok(Logits::new(Floats(logits), width));
    };
    // A copy for which the host does not wait goes to pinned memory.
    let home = |tensor: &Tensor| tensor.f_to_device_(Device::Cpu, tensor.kind(), true, false);
    let Some(columns) = left_out else {
        let logits = home(&logits)?;
        tch::Cuda::synchronize(index as i64);
        return Ok(Logits::new(Floats(logits), width));
    };
    let _ = logits.f_index_fill_(1, columns, f64::NEG_INFINITY)?;
    let (peaks, sums) = measure(&logits, &scales)?;
    let (logits, peaks, sums) = (home(&logits)?, home(&peaks)?, home(&sums)?);
    tch::Cuda::synchronize(index as i64);
    let peaks = floats(&peaks).to_vec();
    Ok(Logits::new(Floats(logits), width).measured(peaks, scales, Doubles(sums)))
}

/// Returns the peak of every row, and the sums of its blocks relative to it and at its scale.
fn measure(logits: &Tensor, scales: &[f64]) -> Result<(Tensor, Tensor)> {
    let (rows, width) = (logits.size()[0], logits.size()[1]);
    let blocks = (width + BLOCK - 1) / BLOCK;
    let peaks = logits.f_amax([1], true)?;
    let scales = Tensor::f_from_slice(scales)?
        .f_to_device(logits.device())?
        .f_view([rows, 1])?;
    let sums = |first: i64| {
        let count = ROWS.min(rows - first);
        let own = peaks.f_narrow(0, first, count)?.f_to_kind(Kind::Double)?;
        let weights = logits
            .f_narrow(0, first, count)?
            .f_to_kind(Kind::Double)?
            .f_sub_(&own)?
            .f_mul_(&scales.f_narrow(0, first, count)?)?
            .f_exp_()?;
        let padded = match blocks * BLOCK - width {
            0 => weights,
            rest => weights.f_constant_pad_nd([0, rest])?,
        };
        padded
            .f_view([count, blocks, BLOCK])?
            .f_sum_dim_intlist(&[2_i64][..], false, Kind::Double)
    };
    let sums = (0..rows)
        .step_by(ROWS as usize)
        .map(sums)
        .collect::<Result<Vec<_>>>()?;
    Ok((peaks, Tensor::f_cat(&sums, 0)?))
}

/// A tensor of `f32` in host memory.
struct Floats(Tensor);

impl AsRef<[f32]> for Floats {
    fn as_ref(&self) -> &[f32] {
        floats(&self.0)
    }
}

impl AsMut<[f32]> for Floats {
    fn as_mut(&mut self) -> &mut [f32] {
        floats_mut(&mut self.0)
    }
}

/// A tensor of `f64` in host memory.
struct Doubles(Tensor);

impl AsRef<[f64]> for Doubles {
    fn as_ref(&self) -> &[f64] {
        let tensor = &self.0;
        let plain = tensor.kind() == Kind::Double && tensor.device() == Device::Cpu && tensor.is_contiguous();
        assert!(plain, "not a contiguous f64 tensor on the CPU: {tensor:?}");
        // SAFETY: the tensor is a contiguous f64 tensor in host memory, which it keeps alive and to which
        // nothing writes: the copy to it has been waited for, and nothing else refers to it.
        unsafe { std::slice::from_raw_parts(tensor.data_ptr().cast::<f64>(), tensor.numel()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lexiform_law::{Allowed, History, Law, Measured, Part, Row, Warper, Warping};

    /// Rows are measured only on GPUs; the operations are the same in host memory.
    #[test]
    fn a_measure_is_that_of_the_law_at_its_scale() {
        let (rows, width) = (3_usize, 1000_usize);
        let numbers: Vec<f32> = (0..rows * width)
            .map(|number| (number * 37 % 1009) as f32 / 50.0)
            .collect();
        let temperatures = [1.0_f32, 0.7, 1.5];
        let warpers = temperatures.map(|temperature| {
            let warping = Warping {
                temperature,
                ..Warping::default()
            };
            Warper::new(warping, Law::Local).unwrap()
        });
        let logits = Tensor::from_slice(&numbers).view([rows as i64, width as i64]);
        let (peaks, sums) = measure(&logits, &warpers.each_ref().map(Warper::scale)).unwrap();
        let (peaks, sums) = (floats(&peaks.contiguous()).to_vec(), Doubles(sums.contiguous()));
        let blocks = width.div_ceil(BLOCK as usize);
        let mask = vec![0x00FF_FF0F; blocks];
        for (number, warper) in warpers.iter().enumerate() {
            let logits = &numbers[number * width..(number + 1) * width];
            let measured = Measured {
                peak: peaks[number],
                scale: warper.scale(),
                sums: &sums.as_ref()[number * blocks..(number + 1) * blocks],
            };
            let plain = warper.row(logits, History::default()).unwrap();
            let row = warper.row_of(logits, Some(measured), History::default()).unwrap();
            assert!((plain.log_probability(5) - row.log_probability(5)).abs() < 1e-12);
            let [one, other] = [&plain, &row].map(|row| row.part(Allowed::Words(&mask)).log_mass());
            assert!((one - other).abs() < 1e-12);
        }
    }
}
