//! Attention of few tokens over the paged cache, on the CPU in f32: keys and values are read in place, and no
//! block is copied, contiguous or not.

use super::layout::Scoring;
use crate::model::tree::Sight;
use crate::torch::config::Heads;
use crate::torch::loops::fused::{exp, limit_body};
use crate::torch::loops::lanes::{Lanes, Plain};
#[cfg(target_arch = "x86_64")]
use crate::torch::loops::lanes::{avx2::Lanes8, avx512::Lanes16};
use std::ops::Range;

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

/// The queries of one sequence, and the cache that they may see.
pub(crate) struct Looking<'a> {
    pub(crate) heads: Heads,
    /// The rows `[queries | keys | values]` of the sequence's fed tokens.
    pub(crate) rows: &'a [f32],
    pub(crate) sight: &'a Sight,
    pub(crate) scoring: Scoring,
    /// The number of positions that a token may see back to.
    pub(crate) window: usize,
    pub(crate) table: &'a [u32],
    pub(crate) block_size: usize,
    /// A row of all key heads for each slot of the cache.
    pub(crate) keys: &'a [f32],
    pub(crate) values: &'a [f32],
}

/// Computes attention of one of a sequence's fed tokens over the cache, for some key heads and the query
/// heads that share them; `out` is the row of those query heads.
pub(crate) fn look(looking: &Looking<'_>, (token, key_heads): (usize, Range<usize>), out: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    {
        if looking.heads.size >= Lanes16::COUNT as i64 && is_x86_feature_detected!("avx512f") {
            // SAFETY: the processor has these instructions.
            return unsafe { by_avx512(looking, (token, key_heads), out) };
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: as above.
            return unsafe { by_avx2(looking, (token, key_heads), out) };
        }
    }
    // SAFETY: every processor has these instructions.
    unsafe { by::<Plain, false>(looking, (token, key_heads), out) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx2,fma")]
fn by_avx512(looking: &Looking<'_>, (token, key_heads): (usize, Range<usize>), out: &mut [f32]) {
    // SAFETY: the caller has checked that the processor has these instructions.
    unsafe { by::<Lanes16, true>(looking, (token, key_heads), out) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn by_avx2(looking: &Looking<'_>, (token, key_heads): (usize, Range<usize>), out: &mut [f32]) {
    // SAFETY: as above.
    unsafe { by::<Lanes8, true>(looking, (token, key_heads), out) }
}

/// # Safety
/// The processor has the instructions of `L` and, if `FMA`, fused ones.
#[inline(always)]
unsafe fn by<L: Lanes, const FMA: bool>(
    looking: &Looking<'_>,
    (token, key_heads): (usize, Range<usize>),
    out: &mut [f32],
) {
    let Heads { queries, keys, size } = looking.heads;
    let (queries, keys, size) = (queries as usize, keys as usize, size as usize);
    let group = queries / keys;
    let row = &looking.rows[token * (queries + 2 * keys) * size..];
    let row = &row[key_heads.start * group * size..key_heads.end * group * size];
    let seen = looking.sight.seen(token, looking.window);
    let first = key_heads.start * size;
    let places: Vec<usize> = seen
        .slots()
        .map(|slot| place(looking, slot, keys * size) + first)
        .collect();
    let mut scores = vec![0.0; key_heads.len() * group * places.len()];
    // SAFETY: the caller keeps the contract.
    unsafe { score::<L>(looking, row, &places, &mut scores) };
    if let Some(cap) = looking.scoring.cap {
        limit_body::<FMA>(&mut scores, cap as f32);
    }
    let heads = out
        .chunks_exact_mut(size)
        .zip(scores.chunks_exact_mut(places.len()));
    for (head, (out, scores)) in heads.enumerate() {
        soften::<FMA>(scores);
        let values = &looking.values[head / group * size..];
        // SAFETY: the caller keeps the contract.
        unsafe { mix::<L>(values, &places, scores, out) };
    }
}

/// Returns where a slot of the sequence begins among rows of `width` numbers.
#[inline(always)]
fn place(looking: &Looking<'_>, slot: usize, width: usize) -> usize {
    let block = looking.table[slot / looking.block_size] as usize * looking.block_size;
    (block + slot % looking.block_size) * width
}

/// Computes the products of query heads with the keys that are seen; a row of them for each query head.
///
/// # Safety
/// As for [`by`].
#[inline(always)]
unsafe fn score<L: Lanes>(looking: &Looking<'_>, query: &[f32], places: &[usize], scores: &mut [f32]) {
    let Heads { queries, keys, size } = looking.heads;
    let (size, group) = (size as usize, (queries / keys) as usize);
    let width = query.len() / group;
    let count = places.len();
    let own_scale = looking.scoring.scale.map(|scale| scale as f32);
    let scale = own_scale.unwrap_or(1.0 / (size as f32).sqrt());
    for (offset, &place) in places.iter().enumerate() {
        let row = &looking.keys[place..][..width];
        let groups = query.chunks_exact(group * size).zip(row.chunks_exact(size));
        for (first, (queries, key)) in groups.enumerate() {
            for (number, query) in queries.chunks_exact(size).enumerate() {
                // SAFETY: the caller keeps the contract.
                let product = unsafe { dot::<L>(query, key) };
                scores[(first * group + number) * count + offset] = scale * product;
            }
        }
    }
}

/// # Safety
/// As for [`by`].
#[inline(always)]
unsafe fn dot<L: Lanes>(a: &[f32], b: &[f32]) -> f32 {
    let whole = a.len() / L::COUNT * L::COUNT;
    let b = &b[..a.len()];
    // SAFETY: all loads are within both slices, and the caller keeps the contract.
    let sum = unsafe {
        let mut sum = L::zero();
        for at in (0..whole).step_by(L::COUNT) {
            sum = L::add_product(L::load(a.as_ptr().add(at)), L::load(b.as_ptr().add(at)), sum);
        }
        L::sum(sum)
    };
    let rest = a[whole..].iter().zip(&b[whole..]).map(|(a, b)| a * b);
    sum + rest.sum::<f32>()
}

/// The number of partial sums that are added in parallel.
const SIDES: usize = 16;

/// Turns scores into weights that sum to one.
#[inline(always)]
fn soften<const FMA: bool>(scores: &mut [f32]) {
    let mut most = [f32::NEG_INFINITY; SIDES];
    let (sixteens, rest) = scores.as_chunks::<SIDES>();
    for scores in sixteens {
        for (most, &score) in most.iter_mut().zip(scores) {
            *most = if score > *most { score } else { *most };
        }
    }
    let most = most.iter().chain(rest).copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sums = [0.0; SIDES];
    let (sixteens, rest) = scores.as_chunks_mut::<SIDES>();
    for scores in sixteens {
        for (sum, score) in sums.iter_mut().zip(scores) {
            *score = exp::<FMA>(*score - most);
            *sum += *score;
        }
    }
    let mut sum: f32 = sums.iter().sum();
    for score in rest {
        *score = exp::<FMA>(*score - most);
        sum += *score;
    }
    let share = 1.0 / sum;
    for score in scores.iter_mut() {
        *score *= share;
    }
}

/// Adds up the values of a head at these places, weighted.
///
/// # Safety
/// As for [`by`].
#[inline(always)]
unsafe fn mix<L: Lanes>(values: &[f32], places: &[usize], weights: &[f32], out: &mut [f32]) {
    let mut first = 0;
    // SAFETY: the caller keeps the contract.
    unsafe {
        while first + 4 * L::COUNT <= out.len() {
            mix_some::<L, 4>(&values[first..], places, weights, &mut out[first..]);
            first += 4 * L::COUNT;
        }
        while first + 2 * L::COUNT <= out.len() {
            mix_some::<L, 2>(&values[first..], places, weights, &mut out[first..]);
            first += 2 * L::COUNT;
        }
        while first + L::COUNT <= out.len() {
            mix_some::<L, 1>(&values[first..], places, weights, &mut out[first..]);
            first += L::COUNT;
        }
    }
    for (number, out) in out.iter_mut().enumerate().skip(first) {
        let weighted = places
            .iter()
            .zip(weights)
            .map(|(place, weight)| values[place + number] * weight);
        *out = weighted.sum();
    }
}

/// Adds up the first `N` vectors of the values at these places, weighted. Places with even and with odd
/// numbers have separate sums, so that a product does not have to wait for the previous one.
///
/// # Safety
/// As for [`by`].
#[inline(always)]
unsafe fn mix_some<L: Lanes, const N: usize>(
    values: &[f32],
    places: &[usize],
    weights: &[f32],
    out: &mut [f32],
) {
    let out = &mut out[..N * L::COUNT];
    let (pairs, last) = places.as_chunks::<2>();
    let (weight_pairs, last_weight) = weights.as_chunks::<2>();
    // SAFETY: all loads and stores are within the slices, and the caller keeps the contract.
    unsafe {
        let (mut even, mut odd) = ([L::zero(); N], [L::zero(); N]);
        for (places, weights) in pairs.iter().zip(weight_pairs) {
            add_weighted::<L, N>(&values[places[0]..], weights[0], &mut even);
            add_weighted::<L, N>(&values[places[1]..], weights[1], &mut odd);
        }
        if let (&[place], &[weight]) = (last, last_weight) {
            add_weighted::<L, N>(&values[place..], weight, &mut even);
        }
        for (at, (even, odd)) in even.into_iter().zip(odd).enumerate() {
            let sum = L::add_product(even, L::splat(1.0), odd);
            L::store(sum, out.as_mut_ptr().add(at * L::COUNT));
        }
    }
}

/// # Safety
/// As for [`by`].
#[inline(always)]
unsafe fn add_weighted<L: Lanes, const N: usize>(value: &[f32], weight: f32, sums: &mut [L::Vector; N]) {
    let value = &value[..N * L::COUNT];
    // SAFETY: all loads are within the slice, and the caller keeps the contract.
    unsafe {
        let weight = L::splat(weight);
        for (at, sum) in sums.iter_mut().enumerate() {
            *sum = L::add_product(weight, L::load(value.as_ptr().add(at * L::COUNT)), *sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Feed;

    /// Returns numbers from -1 to 1, the same in every run.
    fn numbers(count: usize, seed: u64) -> Vec<f32> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let next = |_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % 1999) as f32 / 999.0 - 1.0
        };
        (0..count).map(next).collect()
    }

    /// Computes the same in the slow way, in doubles.
    fn oracle(looking: &Looking<'_>, token: usize, head: usize) -> Vec<f64> {
        let Heads { queries, keys, size } = looking.heads;
        let (queries, keys, size) = (queries as usize, keys as usize, size as usize);
        let query = &looking.rows[token * (queries + 2 * keys) * size + head * size..][..size];
        let key_head = head / (queries / keys) * size;
        let seen: Vec<usize> = looking.sight.seen(token, looking.window).slots().collect();
        let row =
            |of: &[f32], slot: usize| of[place(looking, slot, keys * size) + key_head..][..size].to_vec();
        let product = |slot: &usize| {
            let pairs = row(looking.keys, *slot).into_iter().zip(query);
            let product: f64 = pairs.map(|(key, query)| f64::from(key) * f64::from(*query)).sum();
            let score = product / (size as f64).sqrt();
            looking
                .scoring
                .cap
                .map_or(score, |cap| cap * (score / cap).tanh())
        };
        let weights: Vec<f64> = seen.iter().map(|slot| product(slot).exp()).collect();
        let whole: f64 = weights.iter().sum();
        let mut out = vec![0.0; size];
        for (slot, weight) in seen.iter().zip(&weights) {
            for (out, value) in out.iter_mut().zip(row(looking.values, *slot)) {
                *out += weight / whole * f64::from(value);
            }
        }
        out
    }

    type LookedBy = unsafe fn(&Looking<'_>, (usize, Range<usize>), &mut [f32]);

    fn ways() -> Vec<LookedBy> {
        let mut ways: Vec<LookedBy> = vec![by::<Plain, false>];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                ways.push(by_avx2);
            }
            if is_x86_feature_detected!("avx512f") {
                ways.push(by_avx512);
            }
        }
        ways
    }

    #[test]
    fn every_kind_of_lanes_looks_at_what_is_seen() {
        // Scattered blocks, a text before the feed, a tree after it, and NaN in the slots that no token may
        // see.
        let (table, block_size) = ([3, 0, 5, 1, 6, 2, 7], 8);
        let feed = Feed {
            tokens: &[0; 6],
            start: 41,
            table: &table,
            rows: 6,
            parents: Some(&[0, 1, 1, 0]),
            scale: 1.0,
        };
        let sight = Sight::of(&feed);
        for (heads, cap, window) in [
            ((2, 1, 8), None, usize::MAX),
            ((6, 2, 20), Some(3.0), 17),
            ((8, 4, 32), None, 33),
            ((4, 4, 80), Some(2.0), usize::MAX),
        ] {
            let (queries, keys, size) = heads;
            let width = (keys * size) as usize;
            let mut cached = [numbers(64 * width, 3), numbers(64 * width, 5)];
            for of in &mut cached {
                of[4 * block_size * width..5 * block_size * width].fill(f32::NAN);
            }
            let rows = numbers(6 * ((queries + 2 * keys) * size) as usize, 7);
            let looking = Looking {
                heads: Heads { queries, keys, size },
                rows: &rows,
                sight: &sight,
                scoring: Scoring { scale: None, cap },
                window,
                table: &table,
                block_size,
                keys: &cached[0],
                values: &cached[1],
            };
            for (token, way) in (0..6).flat_map(|token| ways().into_iter().map(move |way| (token, way))) {
                for key_head in 0..keys as usize {
                    let (group, size) = ((queries / keys) as usize, size as usize);
                    let mut out = vec![0.0; group * size];
                    // SAFETY: the test has checked that the processor has the instructions.
                    unsafe { way(&looking, (token, key_head..key_head + 1), &mut out) };
                    let heads = key_head * group..(key_head + 1) * group;
                    let expected = heads.flat_map(|head| oracle(&looking, token, head));
                    for (found, expected) in out.iter().zip(expected) {
                        assert!((f64::from(*found) - expected).abs() < 1e-5, "{found}: {expected}");
                    }
                }
            }
        }
    }
}
