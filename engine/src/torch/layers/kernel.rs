//! The choice of torch's attention kernel.
//!
//! By default, torch 2.11 takes cuDNN's kernel on a Hopper GPU, which builds a plan of some three
//! milliseconds for every new shape, in every layer. A text that grows has a new shape with every token: 16
//! layers and one sequence took 70 ms a token, nearly all of it plans. The memory-efficient kernel takes any
//! shape without a plan, and is therefore chosen explicitly here.

use super::layout::Scoring;
use tch::{Kind, TchError, Tensor};

type Result<T> = std::result::Result<T, TchError>;

/// The alignment of the rows of a mask, in numbers: the kernel reads them 16 bytes at a time, and more for
/// smaller types.
pub(crate) const ALIGNED: i64 = 16;

/// Computes attention of `[sequences, heads, queries, size]` over `[sequences, heads, rows, size]`. The mask,
/// 0 or minus infinity, is `[sequences or 1, 1, queries, rows]`, with rows that begin at multiples of
/// [`ALIGNED`].
pub(crate) fn attention(
    queries: &Tensor,
    keys: &Tensor,
    values: &Tensor,
    mask: Option<&Tensor>,
    Scoring { scale, cap }: Scoring,
) -> Result<Tensor> {
    if let Some(cap) = cap {
        let scale = scale.unwrap_or_else(|| 1.0 / (queries.size()[3] as f64).sqrt());
        return capped(queries, keys, values, mask, (scale, cap));
    }
    let (size, shape) = (queries.size(), keys.size());
    let suits = matches!(queries.kind(), Kind::Float | Kind::Half | Kind::BFloat16) && size[3] % 8 == 0;
    if !(queries.device().is_cuda() && suits) {
        return Tensor::f_scaled_dot_product_attention(queries, keys, values, mask, 0.0, false, scale, false);
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
        scale,
    )?;
    Ok(attended)
}

/// Computes the same with capped scores, which no kernel of torch supports.
fn capped(
    queries: &Tensor,
    keys: &Tensor,
    values: &Tensor,
    mask: Option<&Tensor>,
    (scale, cap): (f64, f64),
) -> Result<Tensor> {
    let mut scores = queries.f_matmul(&keys.f_transpose(2, 3)?)?;
    let mut scores = scores.f_mul_scalar_(scale / cap)?.f_tanh_()?.f_mul_scalar_(cap)?;
    if let Some(mask) = mask {
        let _ = scores.f_add_(mask)?;
    }
    scores
        .f_softmax(-1, Kind::Float)?
        .f_to_kind(values.kind())?
        .f_matmul(values)
}
