//! Which of torch's attention kernels is used.
//!
//! Left to itself torch 2.11 takes cuDNN's on a Hopper card, which builds a plan of some three milliseconds for every
//! shape that it has not seen, in every layer. A text that grows has a new shape with every token: 16 layers and one
//! sequence took 70 ms a token, nearly all of it plans. The memory-efficient kernel takes any shape as it comes, and is
//! therefore named here instead of chosen by torch.

use tch::{Kind, TchError, Tensor};

type Result<T> = std::result::Result<T, TchError>;

/// Rows of a mask begin at multiples of so many numbers, as the kernel reads them 16 bytes at a time, and more for
/// smaller types.
pub(super) const ALIGNED: i64 = 16;

/// Attention of `[sequences, heads, queries, size]` over `[sequences, heads, rows, size]`. The mask, 0 or minus infinity,
/// is `[sequences or 1, 1, queries, rows]`, with rows that begin at multiples of [`ALIGNED`].
pub(super) fn attention(
    queries: &Tensor,
    keys: &Tensor,
    values: &Tensor,
    mask: Option<&Tensor>,
) -> Result<Tensor> {
    let (size, shape) = (queries.size(), keys.size());
    let suits = matches!(queries.kind(), Kind::Float | Kind::Half | Kind::BFloat16) && size[3] % 8 == 0;
    if !(queries.device().is_cuda() && suits) {
        return Tensor::f_scaled_dot_product_attention(queries, keys, values, mask, 0.0, false, None, false);
    }
    let mask = mask
        .map(|mask| mask.f_expand([size[0], size[1], size[2], shape[2]], false))
        .transpose()?;
    let (attended, _, _, _) = Tensor::f_internal_scaled_dot_product_efficient_attention(
        queries,
        keys,
        values,
        mask.as_ref(),
        false,
        0.0,
        false,
        None,
    )?;
    Ok(attended)
}
