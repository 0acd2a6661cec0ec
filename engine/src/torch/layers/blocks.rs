//! Weights of blocks in registers: what a product reads of each format of [`BlockFormat`], with no copy of the matrix in other numbers.
//!
//! A block is read in groups of 32 weights. What is the same for a group (its scale and its minimum) is read once, and each vector of
//! weights is a few instructions: bytes are widened to integers, four bits become one of sixteen numbers by a table in a register, and the
//! fifth bit, where there is one, comes from a mask. The numbers are those of [`BlockFormat::widen`], bit by bit.

use super::lanes::Lanes;
use crate::gguf::blocks::{BlockFormat, IQ4_VALUES};
use tch::{Kind, TchError, Tensor};

type Result<T> = std::result::Result<T, TchError>;

/// Weights of a group.
pub(super) const GROUP: usize = 32;

/// A matrix in blocks, `[rows, columns]`.
#[derive(Debug)]
pub(crate) struct Blocks {
    pub(crate) format: BlockFormat,
    /// `[rows, bytes of a row]` in `u8`.
    pub(crate) bytes: Tensor,
    pub(crate) columns: usize,
}

impl Blocks {
    /// The rows of a tensor as they are stored.
    pub(crate) fn new(format: BlockFormat, bytes: &[u8], shape: [i64; 2]) -> Result<Self> {
        let bytes = Tensor::f_from_slice(bytes)?.f_view([shape[0], -1])?;
        Ok(Blocks {
            format,
            bytes,
            columns: shape[1] as usize,
        })
    }

    /// The same bytes for another who reads them.
    pub(crate) fn share(&self) -> Self {
        Blocks {
            format: self.format,
            bytes: self.bytes.shallow_clone(),
            columns: self.columns,
        }
    }

    /// These rows, `[n, columns]` in `f32`.
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

    /// So many rows from this one on in numbers of this kind.
    pub(crate) fn widened(&self, first: i64, rows: i64, kind: Kind) -> Result<Tensor> {
        self.rows(first as usize..(first + rows) as usize)?
            .f_to_kind(kind)
    }
}

/// The bytes of a contiguous tensor in memory.
fn bytes_of(tensor: &Tensor, count: usize) -> &[u8] {
    assert!(tensor.kind() == Kind::Uint8 && tensor.is_contiguous() && tensor.numel() == count);
    // SAFETY: the tensor is contiguous, of this many bytes, in memory, and lives as long as the slice.
    unsafe { std::slice::from_raw_parts(tensor.data_ptr().cast::<u8>(), count) }
}

/// What the weights of a group have in common.
#[derive(Clone, Copy)]
pub(super) struct Group {
    /// The scale, and what is added; or the scales of the two halves.
    one: f32,
    other: f32,
    /// The same of the second half, where that has its own.
    second: [f32; 2],
    /// Fifth bits.
    word: u32,
}

/// A format of blocks, as products read it.
///
/// # Safety
/// Of all functions: a block of the format is at the pointer, and the processor has the instructions of `L`.
pub(super) trait Block {
    const FORMAT: BlockFormat;
    const WEIGHTS: usize = Self::FORMAT.weights();
    const BYTES: usize = Self::FORMAT.bytes();

    /// What the weights of the group of this number have in common.
    unsafe fn group<L: Lanes>(block: *const u8, number: usize) -> Group;

    /// The weights of the group from `at` on, a multiple of the lanes.
    unsafe fn weights<L: Lanes>(block: *const u8, number: usize, group: &Group, at: usize) -> L::Vector;
}

#[inline(always)]
const fn group(one: f32, other: f32) -> Group {
    Group {
        one,
        other,
        second: [0.0; 2],
        word: 0,
    }
}

/// # Safety
/// There are two bytes at `at`, and the processor has the instructions of `L`.
#[inline(always)]
unsafe fn half<L: Lanes>(block: *const u8, at: usize) -> f32 {
    // SAFETY: the caller keeps the contract.
    unsafe { L::half(block.add(at).cast::<u16>().read_unaligned()) }
}

/// Bytes whose lower and upper four bits are the first and the second half of a group.
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

/// The five bits of weights: four of `nibbles`, and the fifth of the word.
///
/// # Safety
/// As [`nibbles`].
#[inline(always)]
unsafe fn fives<L: Lanes>(bytes: *const u8, word: u32, at: usize) -> L::Vector {
    // SAFETY: the caller keeps the contract.
    unsafe {
        let low = L::masked(nibbles::<L>(bytes, at), 15);
        let high = L::shifted_left(L::bits(word >> at), 4);
        L::floats(L::either(low, high))
    }
}

/// `scale · numbers + least`.
///
/// # Safety
/// The processor has the instructions of `L`.
#[inline(always)]
unsafe fn on_line<L: Lanes>(numbers: L::Vector, scale: f32, least: f32) -> L::Vector {
    // SAFETY: the caller keeps the contract.
    unsafe { L::add_product(numbers, L::splat(scale), L::splat(least)) }
}

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

// SAFETY of all: the caller keeps the contract of the trait; offsets are those of the format, see `gguf::blocks`.

impl Block for Q4_0 {
    const FORMAT: BlockFormat = BlockFormat::Q4_0;

    #[inline(always)]
    unsafe fn group<L: Lanes>(block: *const u8, _: usize) -> Group {
        let d = unsafe { half::<L>(block, 0) };
        group(d, -8.0 * d)
    }

    #[inline(always)]
    unsafe fn weights<L: Lanes>(block: *const u8, _: usize, group: &Group, at: usize) -> L::Vector {
        unsafe { L::line(nibbles::<L>(block.add(2), at), group.one, group.other) }
    }
}

impl Block for Q4_1 {
    const FORMAT: BlockFormat = BlockFormat::Q4_1;

    #[inline(always)]
    unsafe fn group<L: Lanes>(block: *const u8, _: usize) -> Group {
        unsafe { group(half::<L>(block, 0), half::<L>(block, 2)) }
    }

    #[inline(always)]
    unsafe fn weights<L: Lanes>(block: *const u8, _: usize, group: &Group, at: usize) -> L::Vector {
        unsafe { L::line(nibbles::<L>(block.add(4), at), group.one, group.other) }
    }
}

impl Block for Q5_0 {
    const FORMAT: BlockFormat = BlockFormat::Q5_0;

    #[inline(always)]
    unsafe fn group<L: Lanes>(block: *const u8, _: usize) -> Group {
        unsafe {
            let d = half::<L>(block, 0);
            Group {
                word: block.add(2).cast::<u32>().read_unaligned(),
                ..group(d, -16.0 * d)
            }
        }
    }

    #[inline(always)]
    unsafe fn weights<L: Lanes>(block: *const u8, _: usize, group: &Group, at: usize) -> L::Vector {
        unsafe { on_line::<L>(fives::<L>(block.add(6), group.word, at), group.one, group.other) }
    }
}

impl Block for Q5_1 {
    const FORMAT: BlockFormat = BlockFormat::Q5_1;

    #[inline(always)]
    unsafe fn group<L: Lanes>(block: *const u8, _: usize) -> Group {
        unsafe {
            Group {
                word: block.add(4).cast::<u32>().read_unaligned(),
                ..group(half::<L>(block, 0), half::<L>(block, 2))
            }
        }
    }

    #[inline(always)]
    unsafe fn weights<L: Lanes>(block: *const u8, _: usize, group: &Group, at: usize) -> L::Vector {
        unsafe { on_line::<L>(fives::<L>(block.add(8), group.word, at), group.one, group.other) }
    }
}

impl Block for Q8_0 {
    const FORMAT: BlockFormat = BlockFormat::Q8_0;

    #[inline(always)]
    unsafe fn group<L: Lanes>(block: *const u8, _: usize) -> Group {
        unsafe { group(half::<L>(block, 0), 0.0) }
    }

    #[inline(always)]
    unsafe fn weights<L: Lanes>(block: *const u8, _: usize, group: &Group, at: usize) -> L::Vector {
        unsafe { L::product(L::load_i8(block.add(2 + at).cast()), L::splat(group.one)) }
    }
}

impl Block for Q2K {
    const FORMAT: BlockFormat = BlockFormat::Q2K;

    #[inline(always)]
    unsafe fn group<L: Lanes>(block: *const u8, number: usize) -> Group {
        unsafe {
            let (d, least) = (half::<L>(block, 80), half::<L>(block, 82));
            let of = |scale: u8| [d * f32::from(scale & 15), -least * f32::from(scale >> 4)];
            let [one, other] = of(*block.add(2 * number));
            Group {
                second: of(*block.add(2 * number + 1)),
                ..group(one, other)
            }
        }
    }

    #[inline(always)]
    unsafe fn weights<L: Lanes>(block: *const u8, number: usize, group: &Group, at: usize) -> L::Vector {
        unsafe {
            let bytes = L::load_u8(block.add(16 + number / 4 * 32 + at));
            let q = L::floats(L::masked(L::shifted_right(bytes, 2 * (number % 4) as u32), 3));
            let [scale, least] = if at < 16 {
                [group.one, group.other]
            } else {
                group.second
            };
            on_line::<L>(q, scale, least)
        }
    }
}

impl Block for Q3K {
    const FORMAT: BlockFormat = BlockFormat::Q3K;

    #[inline(always)]
    unsafe fn group<L: Lanes>(block: *const u8, number: usize) -> Group {
        unsafe {
            let (d, packed) = (half::<L>(block, 108), block.add(96));
            let of = |number: usize| {
                let low = *packed.add(number % 8) >> (4 * (number / 8)) & 15;
                let high = *packed.add(8 + number % 4) >> (2 * (number / 4)) & 3;
                d * f32::from((low | high << 4) as i8 - 32)
            };
            group(of(2 * number), of(2 * number + 1))
        }
    }

    #[inline(always)]
    unsafe fn weights<L: Lanes>(block: *const u8, number: usize, group: &Group, at: usize) -> L::Vector {
        unsafe {
            let bytes = L::load_u8(block.add(32 + number / 4 * 32 + at));
            let low = L::masked(L::shifted_right(bytes, 2 * (number % 4) as u32), 3);
            let mask = L::shifted_right(L::load_u8(block.add(at)), number as u32);
            let high = L::shifted_left(L::masked(mask, 1), 2);
            let scale = if at < 16 { group.one } else { group.other };
            on_line::<L>(L::floats(L::either(low, high)), scale, -4.0 * scale)
        }
    }
}

/// The scale and the minimum of a group of Q4_K and Q5_K.
///
/// # Safety
/// As for [`Block`].
#[inline(always)]
unsafe fn scales_of_k<L: Lanes>(block: *const u8, number: usize) -> Group {
    unsafe {
        let (d, least) = (half::<L>(block, 0), half::<L>(block, 2));
        let packed = |at: usize| *block.add(4 + at);
        let (scale, minimum) = match number {
            0..4 => (packed(number) & 63, packed(number + 4) & 63),
            _ => (
                packed(number + 4) & 15 | packed(number - 4) >> 6 << 4,
                packed(number + 4) >> 4 | packed(number) >> 6 << 4,
            ),
        };
        group(d * f32::from(scale), -least * f32::from(minimum))
    }
}

impl Block for Q4K {
    const FORMAT: BlockFormat = BlockFormat::Q4K;

    #[inline(always)]
    unsafe fn group<L: Lanes>(block: *const u8, number: usize) -> Group {
        unsafe { scales_of_k::<L>(block, number) }
    }

    #[inline(always)]
    unsafe fn weights<L: Lanes>(block: *const u8, number: usize, group: &Group, at: usize) -> L::Vector {
        unsafe {
            let bytes = L::load_u8(block.add(16 + number / 2 * 32 + at));
            L::line(
                L::shifted_right(bytes, 4 * (number % 2) as u32),
                group.one,
                group.other,
            )
        }
    }
}

impl Block for Q5K {
    const FORMAT: BlockFormat = BlockFormat::Q5K;

    #[inline(always)]
    unsafe fn group<L: Lanes>(block: *const u8, number: usize) -> Group {
        unsafe { scales_of_k::<L>(block, number) }
    }

    #[inline(always)]
    unsafe fn weights<L: Lanes>(block: *const u8, number: usize, group: &Group, at: usize) -> L::Vector {
        unsafe {
            let bytes = L::load_u8(block.add(48 + number / 2 * 32 + at));
            let low = L::masked(L::shifted_right(bytes, 4 * (number % 2) as u32), 15);
            let high = L::shifted_right(L::load_u8(block.add(16 + at)), number as u32);
            let high = L::shifted_left(L::masked(high, 1), 4);
            on_line::<L>(L::floats(L::either(low, high)), group.one, group.other)
        }
    }
}

impl Block for Q6K {
    const FORMAT: BlockFormat = BlockFormat::Q6K;

    #[inline(always)]
    unsafe fn group<L: Lanes>(block: *const u8, number: usize) -> Group {
        unsafe {
            let d = half::<L>(block, 208);
            let of = |number: usize| d * f32::from(*block.add(192 + number) as i8);
            group(of(2 * number), of(2 * number + 1))
        }
    }

    #[inline(always)]
    unsafe fn weights<L: Lanes>(block: *const u8, number: usize, group: &Group, at: usize) -> L::Vector {
        unsafe {
            let (part, quarter) = (number / 4, number % 4);
            let low = L::load_u8(block.add(part * 64 + quarter % 2 * 32 + at));
            let low = L::masked(L::shifted_right(low, 4 * (quarter / 2) as u32), 15);
            let high = L::load_u8(block.add(128 + part * 32 + at));
            let high = L::masked(L::shifted_right(high, 2 * quarter as u32), 3);
            let q = L::less(L::either(low, L::shifted_left(high, 4)), 32);
            let scale = if at < 16 { group.one } else { group.other };
            L::product(L::floats(q), L::splat(scale))
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

impl Block for Iq4Nl {
    const FORMAT: BlockFormat = BlockFormat::Iq4Nl;

    #[inline(always)]
    unsafe fn group<L: Lanes>(block: *const u8, _: usize) -> Group {
        unsafe { group(half::<L>(block, 0), 0.0) }
    }

    #[inline(always)]
    unsafe fn weights<L: Lanes>(block: *const u8, _: usize, group: &Group, at: usize) -> L::Vector {
        unsafe {
            let numbers = L::at(nibbles::<L>(block.add(2), at), &TABLE);
            L::product(numbers, L::splat(group.one))
        }
    }
}

impl Block for Iq4Xs {
    const FORMAT: BlockFormat = BlockFormat::Iq4Xs;

    #[inline(always)]
    unsafe fn group<L: Lanes>(block: *const u8, number: usize) -> Group {
        unsafe {
            let high = block.add(2).cast::<u16>().read_unaligned() >> (2 * number) & 3;
            let low = *block.add(4 + number / 2) >> (4 * (number % 2)) & 15;
            let scale = (low | (high as u8) << 4) as i8 - 32;
            group(half::<L>(block, 0) * f32::from(scale), 0.0)
        }
    }

    #[inline(always)]
    unsafe fn weights<L: Lanes>(block: *const u8, number: usize, group: &Group, at: usize) -> L::Vector {
        unsafe {
            let numbers = L::at(nibbles::<L>(block.add(8 + 16 * number), at), &TABLE);
            L::product(numbers, L::splat(group.one))
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Formats that are read in registers.
    pub(in super::super) fn formats() -> impl Iterator<Item = BlockFormat> {
        BlockFormat::all().filter(|format| format.weights() >= GROUP)
    }

    /// Blocks of any bits, but for their scales, which are numbers of a usual size; the same in every run.
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
                // SAFETY: the block is one of this format, and the caller has seen that the processor has the instructions.
                unsafe {
                    let group = B::group::<L>(block.as_ptr(), number);
                    for at in (0..GROUP).step_by(L::COUNT) {
                        let weights = B::weights::<L>(block.as_ptr(), number, &group, at);
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
