//! The small steps between matrix products, on the CPU in f32, without torch.
//!
//! A decoder layer of a small model spends more time in starting torch's operations than in computing them.
//! Here each step is one loop over plain numbers. Products are in [`product`](super::product), attention in
//! [`look`](super::look); the attention of long prompts stays with torch.
//!
//! The loops are written once and compiled twice, for any processor and for those with AVX2 and FMA. Sums run
//! in eight lanes, so the compiler turns them into vector instructions.

use crate::torch::config::Heads;
use tch::{Device, Kind, Tensor};

const LANES: usize = 8;

/// Returns the numbers of a tensor.
pub(crate) fn floats(tensor: &Tensor) -> &[f32] {
    check(tensor);
    // SAFETY: the tensor is a contiguous f32 tensor in memory, which it keeps alive and to which nothing
    // writes meanwhile: all tensors of a pass belong to the one thread that runs it, and those written are
    // borrowed mutably below.
    unsafe { std::slice::from_raw_parts(tensor.data_ptr().cast::<f32>(), tensor.numel()) }
}

/// Returns the numbers of a tensor, for changing them.
pub(crate) fn floats_mut(tensor: &mut Tensor) -> &mut [f32] {
    check(tensor);
    // SAFETY: as above; the callers hold no other view of the same storage while they write.
    unsafe { std::slice::from_raw_parts_mut(tensor.data_ptr().cast::<f32>(), tensor.numel()) }
}

fn check(tensor: &Tensor) {
    let plain = tensor.kind() == Kind::Float && tensor.device() == Device::Cpu && tensor.is_contiguous();
    assert!(
        plain,
        "these loops are for contiguous f32 tensors on the CPU: {tensor:?}"
    );
}

/// Defines a function twice, and calls the faster version that the processor supports.
macro_rules! vectorised {
    ($(#[$doc:meta])* $name:ident => $body:ident($($argument:ident: $kind:ty),* $(,)?)) => {
        $(#[$doc])*
        pub(crate) fn $name($($argument: $kind),*) {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma")]
                fn fast($($argument: $kind),*) {
                    $body::<true>($($argument),*);
                }
                if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                    // SAFETY: the processor has both features.
                    return unsafe { fast($($argument),*) };
                }
            }
            $body::<false>($($argument),*);
        }
    };
}

/// Computes `a * b + c`, in one instruction if there is one.
#[inline(always)]
pub(crate) fn fma<const FMA: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

#[inline(always)]
fn dot<const FMA: bool>(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0; LANES];
    let (a_chunks, b_chunks) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest = a_chunks
        .remainder()
        .iter()
        .zip(b_chunks.remainder())
        .map(|(a, b)| a * b)
        .sum::<f32>();
    for (a, b) in a_chunks.zip(b_chunks) {
        for lane in 0..LANES {
            lanes[lane] = fma::<FMA>(a[lane], b[lane], lanes[lane]);
        }
    }
    lanes.iter().sum::<f32>() + rest
}

/// Computes `e^x` to about one unit in the last place, without branches; for `x` at most 88.
#[inline(always)]
pub(crate) fn exp<const FMA: bool>(x: f32) -> f32 {
    // Adding and subtracting 1.5 · 2^23 rounds to an integer.
    const ROUND: f32 = 12_582_912.0;
    let x = x.max(-87.0);
    let rounded = fma::<FMA>(x, std::f32::consts::LOG2_E, ROUND);
    let whole = rounded - ROUND;
    // ln 2 in two parts, so that the remainder is exact.
    let rest = fma::<FMA>(whole, -0.693_359_4, x);
    let rest = fma::<FMA>(whole, 2.121_944_4e-4, rest);
    let mut sum = 1.987_569_1e-4;
    for coefficient in [
        1.398_199_9e-3,
        8.333_452e-3,
        4.166_579_6e-2,
        1.666_666_5e-1,
        5e-1,
        1.0,
        1.0,
    ] {
        sum = fma::<FMA>(sum, rest, coefficient);
    }
    // The integer is in the lowest bits of `rounded`; a conversion would be done lane by lane.
    f32::from_bits((rounded.to_bits() << 23).wrapping_add(127 << 23)) * sum
}

vectorised! {
    /// Writes the root mean square norm of every row to `out`.
    norm => norm_body(x: &[f32], scale: &[f32], eps: f32, out: &mut [f32])
}

#[inline(always)]
fn norm_body<const FMA: bool>(x: &[f32], scale: &[f32], eps: f32, out: &mut [f32]) {
    for (row, out) in x.chunks_exact(scale.len()).zip(out.chunks_exact_mut(scale.len())) {
        let factor = 1.0 / (dot::<FMA>(row, row) / row.len() as f32 + eps).sqrt();
        for ((out, x), scale) in out.iter_mut().zip(row).zip(scale) {
            *out = x * factor * scale;
        }
    }
}

vectorised! {
    /// Writes the norm of every row by its mean and variance to `out`; `weights` are scales and biases.
    layer_norm => layer_norm_body(x: &[f32], weights: (&[f32], &[f32]), eps: f32, out: &mut [f32])
}

#[inline(always)]
fn layer_norm_body<const FMA: bool>(x: &[f32], (scale, bias): (&[f32], &[f32]), eps: f32, out: &mut [f32]) {
    for (row, out) in x.chunks_exact(scale.len()).zip(out.chunks_exact_mut(scale.len())) {
        let mean = row.iter().sum::<f32>() / row.len() as f32;
        for (out, x) in out.iter_mut().zip(row) {
            *out = x - mean;
        }
        let factor = 1.0 / (dot::<FMA>(out, out) / row.len() as f32 + eps).sqrt();
        for ((out, scale), bias) in out.iter_mut().zip(scale).zip(bias) {
            *out = fma::<FMA>(*out * factor, *scale, *bias);
        }
    }
}

vectorised! {
    /// Computes `x += y`.
    add => add_body(x: &mut [f32], y: &[f32])
}

#[inline(always)]
fn add_body<const FMA: bool>(x: &mut [f32], y: &[f32]) {
    for (x, y) in x.iter_mut().zip(y) {
        *x += y;
    }
}

vectorised! {
    /// Computes `silu(gate) · up` for rows that hold the `width` gates and then the `width` ups.
    gated => gated_body(both: &[f32], width: usize, out: &mut [f32])
}

#[inline(always)]
fn gated_body<const FMA: bool>(both: &[f32], width: usize, out: &mut [f32]) {
    for (row, out) in both.chunks_exact(2 * width).zip(out.chunks_exact_mut(width)) {
        let (gate, up) = row.split_at(width);
        for ((out, &gate), up) in out.iter_mut().zip(gate).zip(up) {
            *out = one_silu::<FMA>(gate) * up;
        }
    }
}

#[inline(always)]
fn one_silu<const FMA: bool>(x: f32) -> f32 {
    x / (1.0 + exp::<FMA>((-x).min(88.0)))
}

vectorised! {
    /// Computes `x · sigmoid(x)` in place.
    silu => silu_body(x: &mut [f32])
}

#[inline(always)]
fn silu_body<const FMA: bool>(x: &mut [f32]) {
    for x in x {
        *x = one_silu::<FMA>(*x);
    }
}

vectorised! {
    /// Computes `gelu(gate) · up` like [`gated`], with the approximation of gelu by tanh.
    gated_by_gelu => gated_by_gelu_body(both: &[f32], width: usize, out: &mut [f32])
}

#[inline(always)]
fn gated_by_gelu_body<const FMA: bool>(both: &[f32], width: usize, out: &mut [f32]) {
    for (row, out) in both.chunks_exact(2 * width).zip(out.chunks_exact_mut(width)) {
        let (gate, up) = row.split_at(width);
        for ((out, &gate), up) in out.iter_mut().zip(gate).zip(up) {
            *out = one_gelu::<FMA>(gate) * up;
        }
    }
}

#[inline(always)]
fn one_gelu<const FMA: bool>(x: f32) -> f32 {
    // 0.5 · (1 + tanh(y)) is 1 / (1 + e^-2y), for y = √(2/π) · (x + 0.044715 · x³).
    const ROOT: f32 = 1.595_769;
    let twice = ROOT * fma::<FMA>(0.044_715 * x * x, x, x);
    x / (1.0 + exp::<FMA>((-twice).min(88.0)))
}

vectorised! {
    /// Computes the approximation of gelu by tanh, in place.
    gelu => gelu_body(x: &mut [f32])
}

#[inline(always)]
fn gelu_body<const FMA: bool>(x: &mut [f32]) {
    for x in x {
        *x = one_gelu::<FMA>(*x);
    }
}

vectorised! {
    /// Limits scores `x` to `cap · tanh(x / cap)`, in place.
    limit => limit_body(scores: &mut [f32], cap: f32)
}

#[inline(always)]
pub(crate) fn limit_body<const FMA: bool>(scores: &mut [f32], cap: f32) {
    for score in scores {
        // tanh(y) is 1 - 2 / (e^2y + 1).
        *score = cap - 2.0 * cap / (exp::<FMA>((2.0 / cap * *score).min(88.0)) + 1.0);
    }
}

/// The parameters for rotating queries and keys of one layer.
pub(crate) struct Turning<'a> {
    pub(crate) heads: Heads,
    /// The number of leading dimensions of a head that are rotated; 0 if none.
    pub(crate) width: usize,
    /// The cosines, `[positions, width]`. The sines have the same shape, with the first half negated.
    pub(crate) cosines: &'a [f32],
    pub(crate) sines: &'a [f32],
    /// The position of every token.
    pub(crate) positions: &'a [i64],
    /// The norm of query and key heads, if the model has one.
    pub(crate) norm: Option<HeadNorm<'a>>,
}

/// The norm of query and key heads.
pub(crate) struct HeadNorm<'a> {
    /// One row per head.
    pub(crate) scales: &'a [f32],
    /// `true` if all query heads of a token are normalised together, and all key heads; otherwise each head
    /// is.
    pub(crate) is_shared: bool,
    pub(crate) eps: f32,
}

impl HeadNorm<'_> {
    #[inline(always)]
    fn factor<const FMA: bool>(&self, numbers: &[f32]) -> f32 {
        1.0 / (dot::<FMA>(numbers, numbers) / numbers.len() as f32 + self.eps).sqrt()
    }

    /// Normalises the queries and keys of a token that share their norms.
    #[inline(always)]
    fn apply_shared<const FMA: bool>(&self, queries_and_keys: &mut [f32], queries: usize) {
        let (queries, keys) = queries_and_keys.split_at_mut(queries);
        let (query_scales, key_scales) = self.scales.split_at(queries.len());
        for (numbers, scales) in [(queries, query_scales), (keys, key_scales)] {
            let factor = self.factor::<FMA>(numbers);
            for (x, scale) in numbers.iter_mut().zip(scales) {
                *x *= factor * scale;
            }
        }
    }
}

vectorised! {
    /// Normalises (if the model does) and rotates the query and key heads of rows
    /// `[queries | keys | values]`.
    turn => turn_body(rows: &mut [f32], turning: &Turning<'_>)
}

#[inline(always)]
fn turn_body<const FMA: bool>(rows: &mut [f32], turning: &Turning<'_>) {
    let Heads { queries, keys, size } = turning.heads;
    let (size, turned) = (size as usize, (queries + keys) as usize);
    let (width, half) = ((turned + keys as usize) * size, turning.width / 2);
    let of_each = turning.norm.as_ref().filter(|norm| !norm.is_shared);
    for (row, &position) in rows.chunks_exact_mut(width).zip(turning.positions) {
        let table = position as usize * turning.width..(position as usize + 1) * turning.width;
        let (cosines, sines) = (&turning.cosines[table.clone()], &turning.sines[table][half..]);
        let row = &mut row[..turned * size];
        if let Some(norm) = turning.norm.as_ref().filter(|norm| norm.is_shared) {
            norm.apply_shared::<FMA>(row, queries as usize * size);
        }
        for (number, head) in row.chunks_exact_mut(size).enumerate() {
            if let Some(norm) = of_each {
                let factor = norm.factor::<FMA>(head);
                for (x, scale) in head.iter_mut().zip(&norm.scales[number * size..]) {
                    *x *= factor * scale;
                }
            }
            let (low, high) = head[..turning.width].split_at_mut(half);
            for ((low, high), (cosine, sine)) in low.iter_mut().zip(high).zip(cosines.iter().zip(sines)) {
                let (a, b) = (*low, *high);
                *low = a * cosine - b * sine;
                *high = b * cosine + a * sine;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials_are_close_to_those_of_the_library() {
        for step in -8700..=8800 {
            let x = step as f32 / 100.0;
            for found in [exp::<false>(x), exp::<true>(x)] {
                assert!(
                    (f64::from(found) / f64::from(x).exp() - 1.0).abs() < 3e-7,
                    "{x}: {found}"
                );
            }
        }
        assert!(exp::<false>(f32::NEG_INFINITY) < 1e-37);
    }

    #[test]
    fn products_of_any_length_are_whole() {
        for length in 0..40 {
            let a: Vec<f32> = (0..length).map(|number| number as f32).collect();
            let expected: f32 = a.iter().map(|number| number * number).sum();
            assert_eq!(dot::<false>(&a, &a), expected);
        }
    }
}
