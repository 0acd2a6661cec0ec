//! Weights of blocks in registers: the reads of a product from each format of [`BlockFormat`], without a copy
//! of the matrix in other numbers.
//!
//! A block is read in groups of 32 weights. Scales and minimums are read once for all of them, and each
//! vector of weights takes a few instructions: bytes are widened to integers, four bits select one of sixteen
//! numbers from a table in a register, and the fifth bit, if there is one, comes from a mask. The numbers are
//! those of [`BlockFormat::widen`], bit by bit.

use super::lanes::Lanes;
use crate::torch::gguf::blocks::{BlockFormat, IQ4_VALUES};

/// The number of weights of a group.
pub(super) const GROUP: usize = 32;

/// The scale of a group, and the number that is added to each of its weights.
#[derive(Clone, Copy)]
pub(super) struct Line {
    scale: f32,
    least: f32,
}

/// A [`Line`] with the fifth bits of 32 weights.
#[derive(Clone, Copy)]
pub(super) struct Fives {
    line: Line,
    word: u32,
}

/// The scales of `N` groups or halves of groups, and the numbers that are added.
#[derive(Clone, Copy)]
pub(super) struct Lines<const N: usize> {
    scales: [f32; N],
    least: [f32; N],
}

/// A format of blocks, as products read it.
///
/// # Safety
/// For all functions: a block of the format is at the pointer, and the processor has the instructions of `L`.
pub(super) trait Block {
    const FORMAT: BlockFormat;
    const WEIGHTS: usize = Self::FORMAT.weights();
    const BYTES: usize = Self::FORMAT.bytes();
    /// The values that are read once for a block.
    type Scales: Copy;

    unsafe fn scales<L: Lanes>(block: *const u8) -> Self::Scales;

    /// Returns the weights of group `number` from `at` on, a multiple of the lanes.
    unsafe fn weights<L: Lanes>(
        block: *const u8,
        number: usize,
        scales: &Self::Scales,
        at: usize,
    ) -> L::Vector;
}

/// # Safety
/// There are two bytes at `at`, and the processor has the instructions of `L`.
#[inline(always)]
unsafe fn half<L: Lanes>(block: *const u8, at: usize) -> f32 {
    // SAFETY: the caller keeps the contract.
    unsafe { L::half(block.add(at).cast::<u16>().read_unaligned()) }
}

/// Returns integers whose lowest four bits are those of weights. The lower and the upper four bits of the
/// bytes are the first and the second half of a group.
///
/// # Safety
/// There are sixteen bytes, and the processor has the instructions of `L`.
#[inline(always)]
unsafe fn nibbles<L: Lanes>(bytes: *const u8, at: usize) -> L::Ints {
    // SAFETY: the caller keeps the contract.
    unsafe {
        match at < 16 {
            true => L::load_u8(bytes.add(at)),
            false => L::shifted_right(L::load_u8(bytes.add(at - 16)), 4),
        }
    }
}

/// Returns weights of four bits.
///
/// # Safety
/// As [`nibbles`].
#[inline(always)]
unsafe fn four<L: Lanes>(bytes: *const u8, at: usize) -> L::Vector {
    // SAFETY: the caller keeps the contract.
    unsafe { L::floats(L::masked(nibbles::<L>(bytes, at), 15)) }
}

/// Returns weights of five bits: four of `nibbles`, and the fifth of the word.
///
/// # Safety
/// As [`nibbles`].
#[inline(always)]
unsafe fn fives<L: Lanes>(bytes: *const u8, word: u32, at: usize) -> L::Vector {
    // SAFETY: the caller keeps the contract.
    unsafe { L::floats(L::with_fifth(L::masked(nibbles::<L>(bytes, at), 15), word >> at)) }
}

/// Computes `scale · numbers + least`.
///
/// # Safety
/// The processor has the instructions of `L`.
#[inline(always)]
unsafe fn on_line<L: Lanes>(numbers: L::Vector, Line { scale, least }: Line) -> L::Vector {
    // SAFETY: the caller keeps the contract.
    unsafe { L::add_product(numbers, L::splat(scale), L::splat(least)) }
}

impl<const N: usize> Lines<N> {
    #[inline(always)]
    fn line(&self, number: usize) -> Line {
        Line {
            scale: self.scales[number],
            least: self.least[number],
        }
    }
}

/// Reads the scale and the minimum at the start of a block.
///
/// # Safety
/// As [`half`].
#[inline(always)]
unsafe fn line<L: Lanes>(block: *const u8) -> Line {
    // SAFETY: the caller keeps the contract.
    unsafe {
        Line {
            scale: half::<L>(block, 0),
            least: half::<L>(block, 2),
        }
    }
}

/// Reads twelve bytes, which hold numbers of six bits, as words.
///
/// # Safety
/// There are twelve bytes.
#[inline(always)]
unsafe fn words(bytes: *const u8) -> [u32; 3] {
    // SAFETY: the caller keeps the contract.
    unsafe { bytes.cast::<[u32; 3]>().read_unaligned() }.map(u32::from_le)
}

/// Reads the scales and minimums of Q4_K and Q5_K, unpacked four at a time.
///
/// # Safety
/// As for [`Block`].
#[inline(always)]
unsafe fn lines_of_k<L: Lanes>(block: *const u8) -> Lines<8> {
    // SAFETY: the caller keeps the contract; words and bytes have as many bits.
    unsafe {
        let [scales, least, both] = words(block.add(4));
        let (low, six, two) = (0x0f0f_0f0f, 0x3f3f_3f3f, 0x0303_0303);
        let bytes = |first: u32, second: u32| {
            std::mem::transmute::<[u32; 2], [u8; 8]>([first.to_le(), second.to_le()])
        };
        let (d, minimum) = (half::<L>(block, 0), half::<L>(block, 2));
        let of_scales = bytes(scales & six, both & low | (scales >> 6 & two) << 4);
        let of_least = bytes(least & six, both >> 4 & low | (least >> 6 & two) << 4);
        Lines {
            scales: of_scales.map(|scale| d * f32::from(scale)),
            least: of_least.map(|least| -minimum * f32::from(least)),
        }
    }
}

/// The sixteen numbers of IQ4_NL and IQ4_XS.
const TABLE: [f32; 16] = {
    let mut table = [0.0; 16];
    let mut number = 0;
    while number < 16 {
        table[number] = IQ4_VALUES[number] as f32;
        number += 1;
    }
    table
};

pub(super) struct Q4_0;
pub(super) struct Q4_1;
pub(super) struct Q5_0;
pub(super) struct Q5_1;
pub(super) struct Q8_0;
pub(super) struct Q2K;
pub(super) struct Q3K;
pub(super) struct Q4K;
pub(super) struct Q5K;
pub(super) struct Q6K;
pub(super) struct Iq4Nl;
pub(super) struct Iq4Xs;

// SAFETY of all: the caller keeps the contract of the trait; the offsets are those of the format, see
// `gguf::blocks`.

impl Block for Q4_0 {
    const FORMAT: BlockFormat = BlockFormat::Q4_0;
    type Scales = Line;

    #[inline(always)]
    unsafe fn scales<L: Lanes>(block: *const u8) -> Line {
        let scale = unsafe { half::<L>(block, 0) };
        let least = -8.0 * scale;
        Line { scale, least }
    }

    #[inline(always)]
    unsafe fn weights<L: Lanes>(block: *const u8, _: usize, of: &Line, at: usize) -> L::Vector {
        unsafe { on_line::<L>(four::<L>(block.add(2), at), *of) }
    }
}

impl Block for Q4_1 {
    const FORMAT: BlockFormat = BlockFormat::Q4_1;
    type Scales = Line;

    #[inline(always)]
    unsafe fn scales<L: Lanes>(block: *const u8) -> Line {
        unsafe { line::<L>(block) }
    }

    #[inline(always)]
    unsafe fn weights<L: Lanes>(block: *const u8, _: usize, of: &Line, at: usize) -> L::Vector {
        unsafe { on_line::<L>(four::<L>(block.add(4), at), *of) }
    }
}

impl Block for Q5_0 {
    const FORMAT: BlockFormat = BlockFormat::Q5_0;
    type Scales = Fives;

    #[inline(always)]
    unsafe fn scales<L: Lanes>(block: *const u8) -> Fives {
        unsafe {
            let scale = half::<L>(block, 0);
            let least = -16.0 * scale;
            Fives {
                line: Line { scale, least },
                word: block.add(2).cast::<u32>().read_unaligned(),
            }
        }
    }

    #[inline(always)]
    unsafe fn weights<L: Lanes>(block: *const u8, _: usize, of: &Fives, at: usize) -> L::Vector {
        unsafe { on_line::<L>(fives::<L>(block.add(6), of.word, at), of.line) }
    }
}

impl Block for Q5_1 {
    const FORMAT: BlockFormat = BlockFormat::Q5_1;
    type Scales = Fives;

    #[inline(always)]
    unsafe fn scales<L: Lanes>(block: *const u8) -> Fives {
        unsafe {
            Fives {
                line: line::<L>(block),
                word: block.add(4).cast::<u32>().read_unaligned(),
            }
        }
    }

    #[inline(always)]
    unsafe fn weights<L: Lanes>(block: *const u8, _: usize, of: &Fives, at: usize) -> L::Vector {
        unsafe { on_line::<L>(fives::<L>(block.add(8), of.word, at), of.line) }
    }
}

impl Block for Q8_0 {
    const FORMAT: BlockFormat = BlockFormat::Q8_0;
    type Scales = f32;

    #[inline(always)]
    unsafe fn scales<L: Lanes>(block: *const u8) -> f32 {
        unsafe { half::<L>(block, 0) }
    }

    #[inline(always)]
    unsafe fn weights<L: Lanes>(block: *const u8, _: usize, scale: &f32, at: usize) -> L::Vector {
        unsafe { L::product(L::load_i8(block.add(2 + at).cast()), L::splat(*scale)) }
    }
}

impl Block for Q2K {
    const FORMAT: BlockFormat = BlockFormat::Q2K;
    type Scales = Lines<16>;

    #[inline(always)]
    unsafe fn scales<L: Lanes>(block: *const u8) -> Lines<16> {
        unsafe {
            let packed = block.cast::<[u8; 16]>().read_unaligned();
            let (d, least) = (half::<L>(block, 80), half::<L>(block, 82));
            Lines {
                scales: packed.map(|scale| d * f32::from(scale & 15)),
                least: packed.map(|scale| -least * f32::from(scale >> 4)),
            }
        }
    }

    #[inline(always)]
    unsafe fn weights<L: Lanes>(block: *const u8, number: usize, of: &Lines<16>, at: usize) -> L::Vector {
        unsafe {
            let bytes = L::load_u8(block.add(16 + number / 4 * 32 + at));
            let q = L::floats(L::masked(L::shifted_right(bytes, 2 * (number % 4) as u32), 3));
            on_line::<L>(q, of.line(2 * number + at / 16))
        }
    }
}

impl Block for Q3K {
    const FORMAT: BlockFormat = BlockFormat::Q3K;
    type Scales = Lines<16>;

    #[inline(always)]
    unsafe fn scales<L: Lanes>(block: *const u8) -> Lines<16> {
        unsafe {
            let [one, other, high] = words(block.add(96));
            let of = |low: u32, shift: u32| low & 0x0f0f_0f0f | (high >> shift & 0x0303_0303) << 4;
            let packed = [of(one, 0), of(other, 2), of(one >> 4, 4), of(other >> 4, 6)];
            let d = half::<L>(block, 108);
            let scales = std::mem::transmute::<[u32; 4], [u8; 16]>(packed.map(u32::to_le));
            let scales = scales.map(|scale| d * f32::from(scale as i8 - 32));
            Lines {
                scales,
                least: scales.map(|scale| -4.0 * scale),
            }
        }
    }

    #[inline(always)]
    unsafe fn weights<L: Lanes>(block: *const u8, number: usize, of: &Lines<16>, at: usize) -> L::Vector {
        unsafe {
            let bytes = L::load_u8(block.add(32 + number / 4 * 32 + at));
            let low = L::masked(L::shifted_right(bytes, 2 * (number % 4) as u32), 3);
            let mask = L::shifted_right(L::load_u8(block.add(at)), number as u32);
            let high = L::shifted_left(L::masked(mask, 1), 2);
            on_line::<L>(L::floats(L::either(low, high)), of.line(2 * number + at / 16))
        }
    }
}

impl Block for Q4K {
    const FORMAT: BlockFormat = BlockFormat::Q4K;
    type Scales = Lines<8>;

    #[inline(always)]
    unsafe fn scales<L: Lanes>(block: *const u8) -> Lines<8> {
        unsafe { lines_of_k::<L>(block) }
    }

    #[inline(always)]
    unsafe fn weights<L: Lanes>(block: *const u8, number: usize, of: &Lines<8>, at: usize) -> L::Vector {
        unsafe {
            let bytes = L::load_u8(block.add(16 + number / 2 * 32 + at));
            let q = L::masked(L::shifted_right(bytes, 4 * (number % 2) as u32), 15);
            on_line::<L>(L::floats(q), of.line(number))
        }
    }
}

impl Block for Q5K {
    const FORMAT: BlockFormat = BlockFormat::Q5K;
    type Scales = Lines<8>;

    #[inline(always)]
    unsafe fn scales<L: Lanes>(block: *const u8) -> Lines<8> {
        unsafe { lines_of_k::<L>(block) }
    }

    #[inline(always)]
    unsafe fn weights<L: Lanes>(block: *const u8, number: usize, of: &Lines<8>, at: usize) -> L::Vector {
        unsafe {
            let bytes = L::load_u8(block.add(48 + number / 2 * 32 + at));
            let low = L::masked(L::shifted_right(bytes, 4 * (number % 2) as u32), 15);
            let high = L::shifted_right(L::load_u8(block.add(16 + at)), number as u32);
            let high = L::shifted_left(L::masked(high, 1), 4);
            on_line::<L>(L::floats(L::either(low, high)), of.line(number))
        }
    }
}

impl Block for Q6K {
    const FORMAT: BlockFormat = BlockFormat::Q6K;
    type Scales = [f32; 16];

    #[inline(always)]
    unsafe fn scales<L: Lanes>(block: *const u8) -> [f32; 16] {
        unsafe {
            let d = half::<L>(block, 208);
            let packed = block.add(192).cast::<[i8; 16]>().read_unaligned();
            packed.map(|scale| d * f32::from(scale))
        }
    }

    #[inline(always)]
    unsafe fn weights<L: Lanes>(block: *const u8, number: usize, scales: &[f32; 16], at: usize) -> L::Vector {
        unsafe {
            let (part, quarter) = (number / 4, number % 4);
            let low = L::load_u8(block.add(part * 64 + quarter % 2 * 32 + at));
            let low = L::masked(L::shifted_right(low, 4 * (quarter / 2) as u32), 15);
            let high = L::load_u8(block.add(128 + part * 32 + at));
            let high = L::masked(L::shifted_right(high, 2 * quarter as u32), 3);
            let q = L::less(L::either(low, L::shifted_left(high, 4)), 32);
            L::product(L::floats(q), L::splat(scales[2 * number + at / 16]))
        }
    }
}

impl Block for Iq4Nl {
    const FORMAT: BlockFormat = BlockFormat::Iq4Nl;
    type Scales = f32;

    #[inline(always)]
    unsafe fn scales<L: Lanes>(block: *const u8) -> f32 {
        unsafe { half::<L>(block, 0) }
    }

    #[inline(always)]
    unsafe fn weights<L: Lanes>(block: *const u8, _: usize, scale: &f32, at: usize) -> L::Vector {
        unsafe {
            let numbers = L::at(nibbles::<L>(block.add(2), at), &TABLE);
            L::product(numbers, L::splat(*scale))
        }
    }
}

impl Block for Iq4Xs {
    const FORMAT: BlockFormat = BlockFormat::Iq4Xs;
    type Scales = [f32; 8];

    #[inline(always)]
    unsafe fn scales<L: Lanes>(block: *const u8) -> [f32; 8] {
        unsafe {
            let d = half::<L>(block, 0);
            let high = block.add(2).cast::<u16>().read_unaligned();
            let low = block.add(4).cast::<u32>().read_unaligned();
            std::array::from_fn(|number| {
                let scale = low >> (4 * number) & 15 | u32::from(high >> (2 * number) & 3) << 4;
                d * (scale as i32 - 32) as f32
            })
        }
    }

    #[inline(always)]
    unsafe fn weights<L: Lanes>(block: *const u8, number: usize, scales: &[f32; 8], at: usize) -> L::Vector {
        unsafe {
            let numbers = L::at(nibbles::<L>(block.add(8 + 16 * number), at), &TABLE);
            L::product(numbers, L::splat(scales[number]))
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns the formats that are read in registers.
    pub(in super::super) fn formats() -> impl Iterator<Item = BlockFormat> {
        BlockFormat::all().filter(|format| format.weights() >= GROUP)
    }

    /// Returns blocks of arbitrary bits, except for their scales, which have usual sizes; the same in every
    /// run.
    pub(in super::super) fn blocks(format: BlockFormat, count: usize, seed: u64) -> Vec<u8> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 20) as u8
        };
        let scales: &[usize] = match format {
            BlockFormat::Q4_1 | BlockFormat::Q5_1 | BlockFormat::Q4K | BlockFormat::Q5K => &[0, 2],
            BlockFormat::Q2K => &[80, 82],
            BlockFormat::Q3K => &[108],
            BlockFormat::Q6K => &[208],
            _ => &[0],
        };
        let mut bytes: Vec<u8> = (0..count * format.bytes()).map(|_| next()).collect();
        for block in bytes.chunks_exact_mut(format.bytes()) {
            for &at in scales {
                // From 2^-7 to 2^-3, of either sign.
                block[at + 1] = block[at + 1] & 0x83 | 0x20 | block[at + 1] >> 3 & 0x0c;
            }
        }
        bytes
    }

    unsafe fn by_lanes<B: Block, L: Lanes>(bytes: &[u8]) -> Vec<f32> {
        let mut wide = vec![0.0; bytes.len() / B::BYTES * B::WEIGHTS];
        let blocks = bytes
            .chunks_exact(B::BYTES)
            .zip(wide.chunks_exact_mut(B::WEIGHTS));
        for (block, wide) in blocks {
            for (number, wide) in wide.chunks_exact_mut(GROUP).enumerate() {
                // SAFETY: the block has this format, and the caller has checked that the processor has the
                // instructions.
                unsafe {
                    let scales = B::scales::<L>(block.as_ptr());
                    for at in (0..GROUP).step_by(L::COUNT) {
                        let weights = B::weights::<L>(block.as_ptr(), number, &scales, at);
                        L::store(weights, wide[at..].as_mut_ptr());
                    }
                }
            }
        }
        wide
    }

    fn check<B: Block>() {
        let bytes = blocks(B::FORMAT, 5, B::FORMAT as u64 + 1);
        let mut expected = Vec::new();
        B::FORMAT.widen(&bytes, &mut expected);
        let mut found = vec![unsafe { by_lanes::<B, super::super::lanes::Plain>(&bytes) }];
        #[cfg(target_arch = "x86_64")]
        {
            use super::super::lanes::{avx2::Lanes8, avx512::Lanes16};
            use super::super::tiles::{has_avx2, has_avx512};
            if has_avx2() {
                found.push(unsafe { by_lanes::<B, Lanes8>(&bytes) });
            }
            if has_avx512() {
                found.push(unsafe { by_lanes::<B, Lanes16>(&bytes) });
            }
        }
        for (way, found) in found.into_iter().enumerate() {
            for (number, (found, expected)) in found.iter().zip(&expected).enumerate() {
                let format = B::FORMAT;
                assert_eq!(found, expected, "{format}, weight {number}, by way {way}");
            }
        }
    }

    #[test]
    fn every_kind_of_lanes_reads_the_numbers_that_blocks_stand_for() {
        check::<Q4_0>();
        check::<Q4_1>();
        check::<Q5_0>();
        check::<Q5_1>();
        check::<Q8_0>();
        check::<Q2K>();
        check::<Q3K>();
        check::<Q4K>();
        check::<Q5K>();
        check::<Q6K>();
        check::<Iq4Nl>();
        check::<Iq4Xs>();
    }
}
