//! A matrix in blocks of few bits, as a file stores it.

use crate::torch::gguf::blocks::BlockFormat;
use tch::{Kind, TchError, Tensor};

type Result<T> = std::result::Result<T, TchError>;

/// A matrix in blocks, `[rows, columns]`.
#[derive(Debug)]
pub(crate) struct Blocks {
    pub(crate) format: BlockFormat,
    /// The blocks, `[rows, bytes of a row]` in `u8`.
    pub(crate) bytes: Tensor,
    pub(crate) columns: usize,
}

impl Blocks {
    /// Creates a matrix from the rows of a tensor as they are stored.
    pub(crate) fn new(format: BlockFormat, bytes: &[u8], shape: [i64; 2]) -> Result<Self> {
        let bytes = Tensor::f_from_slice(bytes)?.f_view([shape[0], -1])?;
        Ok(Blocks {
            format,
            bytes,
            columns: shape[1] as usize,
        })
    }

    /// Returns a copy that shares the bytes.
    pub(crate) fn share(&self) -> Self {
        Blocks {
            format: self.format,
            bytes: self.bytes.shallow_clone(),
            columns: self.columns,
        }
    }

    /// Returns these rows, `[n, columns]` in `f32`.
    pub(crate) fn rows(&self, numbers: impl ExactSizeIterator<Item = usize>) -> Result<Tensor> {
        let each = self.bytes.size()[1] as usize;
        let count = numbers.len() as i64;
        let mut wide = Vec::with_capacity(numbers.len() * self.columns);
        for number in numbers {
            let row = self.bytes.f_get(number as i64)?;
            self.format.widen(bytes_of(&row, each), &mut wide);
        }
        Tensor::f_from_slice(&wide)?.f_view([count, self.columns as i64])
    }

    /// Returns `rows` rows from `first` on, in numbers of this kind.
    pub(crate) fn widened(&self, first: i64, rows: i64, kind: Kind) -> Result<Tensor> {
        self.rows(first as usize..(first + rows) as usize)?
            .f_to_kind(kind)
    }
}

/// Returns the bytes of a contiguous tensor in memory.
fn bytes_of(tensor: &Tensor, count: usize) -> &[u8] {
    assert!(tensor.kind() == Kind::Uint8 && tensor.is_contiguous() && tensor.numel() == count);
    // SAFETY: the tensor is contiguous, of this many bytes, in memory, and lives as long as the slice.
    unsafe { std::slice::from_raw_parts(tensor.data_ptr().cast::<u8>(), count) }
}
