//! The small steps between matrix products, on the CPU in f32, without torch.
//!
//! A decoder layer of a small model spends more time in starting torch's operations than in computing them. Here
//! each step is one loop over plain numbers; matrix products, and attention of long prompts, stay with torch. Attention
//! reads keys and values where they lie in the paged cache: no block is copied, contiguous or not.
//!
//! The loops are written once and compiled twice, for any processor and for those with AVX2 and FMA. Sums run in lanes
//! of eight, so the compiler turns them into vector instructions.

use super::layout::Scoring;
use crate::model::tree::{Seen, Sight};
use crate::torch::config::Heads;
use tch::{Device, Kind, Tensor};

const LANES: usize = 8;

/// The numbers of a tensor.
pub(crate) fn floats(tensor: &Tensor) -> &[f32] {
    check(tensor);
    // SAFETY: the tensor is a contiguous f32 tensor in memory, which it keeps alive and which nobody writes meanwhile:
    // all tensors of a pass belong to the one thread that runs it, and those written are borrowed mutably below.
    unsafe { std::slice::from_raw_parts(tensor.data_ptr().cast::<f32>(), tensor.numel()) }
}

/// The numbers of a tensor, to be changed.
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

/// Defines a function twice and picks the faster version that the processor can run.
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

/// `a * b + c`, in one instruction where there is one.
#[inline(always)]
fn fma<const FMA: bool>(a: f32, b: f32, c: f32) -> f32 {
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

/// `e^x` to about one unit in the last place, without branches; for `x` at most 88.
#[inline(always)]
fn exp<const FMA: bool>(x: f32) -> f32 {
    // Adding and subtracting 1.5 · 2^23 rounds to an integer.
    const ROUND: f32 = 12_582_912.0;
    let x = x.max(-87.0);
    let whole = fma::<FMA>(x, std::f32::consts::LOG2_E, ROUND) - ROUND;
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
    f32::from_bits(((whole as i32 + 127) << 23) as u32) * sum
}

vectorised! {
    /// Root mean square norm of every row, into `out`.
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
    /// Norm of every row by its mean and variance, into `out`; of scales and biases.
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
    /// `x += y`.
    add => add_body(x: &mut [f32], y: &[f32])
}

#[inline(always)]
fn add_body<const FMA: bool>(x: &mut [f32], y: &[f32]) {
    for (x, y) in x.iter_mut().zip(y) {
        *x += y;
    }
}

vectorised! {
    /// `silu(gate) · up` for rows that hold the `width` gates and then the `width` ups.
    gated => gated_body(both: &[f32], width: usize, out: &mut [f32])
}

#[inline(always)]
fn gated_body<const FMA: bool>(both: &[f32], width: usize, out: &mut [f32]) {
    for (row, out) in both.chunks_exact(2 * width).zip(out.chunks_exact_mut(width)) {
        let (gate, up) = row.split_at(width);
        for ((out, &gate), up) in out.iter_mut().zip(gate).zip(up) {
            *out = gate / (1.0 + exp::<FMA>((-gate).min(88.0))) * up;
        }
    }
}

vectorised! {
    /// The same with the approximation of gelu by tanh instead of silu.
    gated_by_gelu => gated_by_gelu_body(both: &[f32], width: usize, out: &mut [f32])
}

#[inline(always)]
fn gated_by_gelu_body<const FMA: bool>(both: &[f32], width: usize, out: &mut [f32]) {
    // 0.5 · (1 + tanh(y)) is 1 / (1 + e^-2y), for y = √(2/π) · (x + 0.044715 · x³).
    const ROOT: f32 = 1.595_769;
    for (row, out) in both.chunks_exact(2 * width).zip(out.chunks_exact_mut(width)) {
        let (gate, up) = row.split_at(width);
        for ((out, &gate), up) in out.iter_mut().zip(gate).zip(up) {
            let twice = ROOT * fma::<FMA>(0.044_715 * gate * gate, gate, gate);
            *out = gate / (1.0 + exp::<FMA>((-twice).min(88.0))) * up;
        }
    }
}

/// What turns queries and keys of one layer.
pub(crate) struct Turning<'a> {
    pub(crate) heads: Heads,
    /// How many dimensions of a head are turned, the first ones; 0 if none.
    pub(crate) width: usize,
    /// `[positions, width]`: cosines, and sines whose first half is negated.
    pub(crate) cosines: &'a [f32],
    pub(crate) sines: &'a [f32],
    /// The position of every token.
    pub(crate) positions: &'a [i64],
    /// The norm of query and key heads, where those are normed.
    pub(crate) norm: Option<HeadNorm<'a>>,
}

/// How query and key heads are normed.
pub(crate) struct HeadNorm<'a> {
    /// One row a head.
    pub(crate) scales: &'a [f32],
    /// Whether all query heads of a token are normed together, and all key heads; else each head is.
    pub(crate) is_shared: bool,
    pub(crate) eps: f32,
}

impl HeadNorm<'_> {
    #[inline(always)]
    fn factor<const FMA: bool>(&self, numbers: &[f32]) -> f32 {
        1.0 / (dot::<FMA>(numbers, numbers) / numbers.len() as f32 + self.eps).sqrt()
    }

    /// Norms the queries and keys of a token that share their norms.
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
    /// Norms (where the model does) and turns the query and key heads of rows `[queries | keys | values]`.
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

/// Copies keys and values of rows `[queries | keys | values]` to their slots of the cache.
pub(crate) fn store(rows: &[f32], heads: Heads, slots: &[i64], keys: &mut [f32], values: &mut [f32]) {
    let width = (heads.keys * heads.size) as usize;
    let skipped = (heads.queries * heads.size) as usize;
    for (row, &slot) in rows.chunks_exact(skipped + 2 * width).zip(slots) {
        let place = slot as usize * width..(slot as usize + 1) * width;
        keys[place.clone()].copy_from_slice(&row[skipped..skipped + width]);
        values[place].copy_from_slice(&row[skipped + width..]);
    }
}

/// The queries of one sequence, and what they may look at.
pub(crate) struct Looking<'a> {
    pub(crate) heads: Heads,
    /// The rows `[queries | keys | values]` of the sequence's fed tokens.
    pub(crate) rows: &'a [f32],
    pub(crate) sight: &'a Sight,
    pub(crate) scoring: Scoring,
    /// How far back a token may look.
    pub(crate) window: usize,
    pub(crate) table: &'a [u32],
    pub(crate) block_size: usize,
    pub(crate) keys: &'a [f32],
    pub(crate) values: &'a [f32],
}

vectorised! {
    /// Attention of one sequence's fed tokens over the cache; a row of all heads for each token.
    look => look_body(looking: &Looking<'_>, scores: &mut Vec<f32>, out: &mut [f32])
}

#[inline(always)]
fn look_body<const FMA: bool>(looking: &Looking<'_>, scores: &mut Vec<f32>, out: &mut [f32]) {
    let Heads { queries, keys, size } = looking.heads;
    let (queries, keys, size) = (queries as usize, keys as usize, size as usize);
    let row_width = (queries + 2 * keys) * size;
    for (number, out) in out.chunks_exact_mut(queries * size).enumerate() {
        let row = &looking.rows[number * row_width..][..queries * size];
        let seen = looking.sight.seen(number, looking.window);
        scores.clear();
        scores.resize(queries * seen.len(), 0.0);
        score::<FMA>(looking, row, &seen, scores);
        if let Some(cap) = looking.scoring.cap {
            limit::<FMA>(scores, cap as f32);
        }
        for scores in scores.chunks_exact_mut(seen.len()) {
            soften::<FMA>(scores);
        }
        mix::<FMA>(looking, &seen, scores, out);
    }
}

/// Where a slot of the sequence lies among rows of `width` numbers.
#[inline(always)]
fn place(looking: &Looking<'_>, slot: usize, width: usize) -> std::ops::Range<usize> {
    let block = looking.table[slot / looking.block_size] as usize * looking.block_size;
    let row = block + slot % looking.block_size;
    row * width..(row + 1) * width
}

/// The products of all query heads with the keys that are seen; a row of them for each query head.
#[inline(always)]
fn score<const FMA: bool>(looking: &Looking<'_>, query: &[f32], seen: &Seen<'_>, scores: &mut [f32]) {
    let Heads { queries, keys, size } = looking.heads;
    let (keys, size, group) = (keys as usize, size as usize, (queries / keys) as usize);
    let count = seen.len();
    let own_scale = looking.scoring.scale.map(|scale| scale as f32);
    let scale = own_scale.unwrap_or(1.0 / (size as f32).sqrt());
    for (offset, slot) in seen.slots().enumerate() {
        let row = &looking.keys[place(looking, slot, keys * size)];
        for (number, query) in query.chunks_exact(size).enumerate() {
            let key = &row[number / group * size..][..size];
            scores[number * count + offset] = scale * dot::<FMA>(query, key);
        }
    }
}

/// Scores `x` become `cap · tanh(x / cap)`.
#[inline(always)]
fn limit<const FMA: bool>(scores: &mut [f32], cap: f32) {
    for score in scores.iter_mut() {
        // tanh(y) is 1 - 2 / (e^2y + 1).
        *score = cap - 2.0 * cap / (exp::<FMA>((2.0 / cap * *score).min(88.0)) + 1.0);
    }
}

/// Scores to weights that sum to one.
#[inline(always)]
fn soften<const FMA: bool>(scores: &mut [f32]) {
    let most = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    for score in scores.iter_mut() {
        *score = exp::<FMA>(*score - most);
    }
    let sum: f32 = scores.iter().sum();
    for score in scores.iter_mut() {
        *score /= sum;
    }
}

/// The values that are seen, weighted; a row of all query heads.
#[inline(always)]
fn mix<const FMA: bool>(looking: &Looking<'_>, seen: &Seen<'_>, weights: &[f32], out: &mut [f32]) {
    let Heads { queries, keys, size } = looking.heads;
    let (keys, size, group) = (keys as usize, size as usize, (queries / keys) as usize);
    let count = seen.len();
    out.fill(0.0);
    for (offset, slot) in seen.slots().enumerate() {
        let row = &looking.values[place(looking, slot, keys * size)];
        for (number, out) in out.chunks_exact_mut(size).enumerate() {
            let weight = weights[number * count + offset];
            let value = &row[number / group * size..][..size];
            for (out, value) in out.iter_mut().zip(value) {
                *out = fma::<FMA>(weight, *value, *out);
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
