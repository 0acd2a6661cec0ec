//! The formats in which llama.cpp stores the weights of a tensor, and the number that each weight of a block
//! represents.
//!
//! ```text
//!   Q4_0, Q5_0, Q8_0   w = d · (q − offset)                     32 weights, one scale in half precision
//!   Q4_1, Q5_1         w = d · q + m                            32 weights, a scale and a minimum
//!   Q2_K, Q4_K, Q5_K   w = (d · scale) · q − (dmin · minimum)   256 weights, scales of 16 or 32 in few bits
//!   Q3_K, Q6_K         w = (d · scale) · q                      256 weights, scales of 16
//!   IQ4_NL, IQ4_XS     w = (d · scale) · table[q]               32 or 256 weights, a table of 16 numbers
//! ```
//!
//! [`BlockFormat::widen`] is the slow and obvious reading. The products of `torch::loops::blocks` read the
//! same numbers in registers and are tested against it, and `engine/tests/engine/gguf.rs` tests it against
//! numbers that the package `gguf` of llama.cpp's authors computed. All products of a scale with a number of
//! few bits are exact in `f32`; where something is added or subtracted, or a third factor is involved, there
//! is one rounding.

use std::fmt;

/// The format of the weights of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum BlockFormat {
    F32,
    F16,
    Bf16,
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q8_0,
    Q2K,
    Q3K,
    Q4K,
    Q5K,
    Q6K,
    Iq4Nl,
    Iq4Xs,
}

/// A format with its name, its number in files, and the weights and bytes of a block.
type FormatRow = (BlockFormat, &'static str, u32, usize, usize);

const FORMATS: [FormatRow; 15] = [
    (BlockFormat::F32, "F32", 0, 1, 4),
    (BlockFormat::F16, "F16", 1, 1, 2),
    (BlockFormat::Bf16, "BF16", 30, 1, 2),
    (BlockFormat::Q4_0, "Q4_0", 2, 32, 18),
    (BlockFormat::Q4_1, "Q4_1", 3, 32, 20),
    (BlockFormat::Q5_0, "Q5_0", 6, 32, 22),
    (BlockFormat::Q5_1, "Q5_1", 7, 32, 24),
    (BlockFormat::Q8_0, "Q8_0", 8, 32, 34),
    (BlockFormat::Q2K, "Q2_K", 10, 256, 84),
    (BlockFormat::Q3K, "Q3_K", 11, 256, 110),
    (BlockFormat::Q4K, "Q4_K", 12, 256, 144),
    (BlockFormat::Q5K, "Q5_K", 13, 256, 176),
    (BlockFormat::Q6K, "Q6_K", 14, 256, 210),
    (BlockFormat::Iq4Nl, "IQ4_NL", 20, 32, 18),
    (BlockFormat::Iq4Xs, "IQ4_XS", 23, 256, 136),
];

/// Formats that llama.cpp supports and this engine does not read, by their numbers.
const OTHERS: [(u32, &str); 19] = [
    (9, "Q8_1"),
    (15, "Q8_K"),
    (16, "IQ2_XXS"),
    (17, "IQ2_XS"),
    (18, "IQ3_XXS"),
    (19, "IQ1_S"),
    (21, "IQ3_S"),
    (22, "IQ2_S"),
    (24, "I8"),
    (25, "I16"),
    (26, "I32"),
    (27, "I64"),
    (28, "F64"),
    (29, "IQ1_M"),
    (34, "TQ1_0"),
    (35, "TQ2_0"),
    (39, "MXFP4"),
    (40, "NVFP4"),
    (41, "Q1_0"),
];

/// The numbers that the indices of IQ4_NL and IQ4_XS represent.
pub(crate) const IQ4_VALUES: [i8; 16] = [
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113,
];

impl fmt::Display for BlockFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.row().1)
    }
}

impl BlockFormat {
    /// Returns all formats.
    #[cfg(test)]
    pub(crate) fn all() -> impl Iterator<Item = BlockFormat> {
        FORMATS.into_iter().map(|row| row.0)
    }

    const fn row(self) -> FormatRow {
        FORMATS[self as usize]
    }

    /// Returns the format with this number.
    ///
    /// # Errors
    /// The format is not supported; the message has its name, and the supported formats.
    pub(crate) fn of_number(number: u32) -> Result<Self, String> {
        if let Some(row) = FORMATS.iter().find(|row| row.2 == number) {
            return Ok(row.0);
        }
        let name = OTHERS
            .iter()
            .find(|(other, _)| *other == number)
            .map_or_else(|| format!("number {number}"), |(_, name)| (*name).to_owned());
        let known: Vec<&str> = FORMATS.iter().map(|row| row.1).collect();
        Err(format!(
            "the format {name} is not read; supported are {}",
            known.join(", ")
        ))
    }

    /// Returns the number of weights of a block.
    pub(crate) const fn weights(self) -> usize {
        self.row().3
    }

    /// Returns the number of bytes of a block.
    pub(crate) const fn bytes(self) -> usize {
        self.row().4
    }

    /// Returns the bytes of a tensor of this shape, each of whose rows consists of whole blocks.
    ///
    /// # Errors
    /// A row is not made of whole blocks, or the tensor is too large.
    pub(crate) fn bytes_of(self, shape: &[i64]) -> Result<u64, String> {
        let row = shape.last().copied().unwrap_or(1) as u64;
        let each = self.weights() as u64;
        if !row.is_multiple_of(each) {
            return Err(format!(
                "rows of {row} weights are no whole blocks of {self}, which have {each}"
            ));
        }
        let count = shape
            .iter()
            .try_fold(1_u64, |count, size| count.checked_mul(*size as u64));
        let bytes = count.and_then(|count| (count / each).checked_mul(self.bytes() as u64));
        bytes.ok_or_else(|| format!("the shape {shape:?} has too many weights"))
    }

    /// Appends the weights of whole blocks to `out`.
    pub(crate) fn widen(self, blocks: &[u8], out: &mut Vec<f32>) {
        out.reserve(blocks.len() / self.bytes() * self.weights());
        for block in blocks.chunks_exact(self.bytes()) {
            match self {
                BlockFormat::F32 => out.push(f32::from_le_bytes([block[0], block[1], block[2], block[3]])),
                BlockFormat::F16 => out.push(half(block, 0)),
                BlockFormat::Bf16 => {
                    out.push(f32::from_bits(
                        u32::from(u16::from_le_bytes([block[0], block[1]])) << 16,
                    ));
                }
                BlockFormat::Q4_0 | BlockFormat::Q5_0 | BlockFormat::Q8_0 => scaled(self, block, out),
                BlockFormat::Q4_1 | BlockFormat::Q5_1 => shifted(self, block, out),
                BlockFormat::Q2K => q2(block, out),
                BlockFormat::Q3K => q3(block, out),
                BlockFormat::Q4K | BlockFormat::Q5K => q45(self, block, out),
                BlockFormat::Q6K => q6(block, out),
                BlockFormat::Iq4Nl => {
                    let d = half(block, 0);
                    out.extend(nibbles(&block[2..18]).map(|index| d * f32::from(IQ4_VALUES[index as usize])));
                }
                BlockFormat::Iq4Xs => iq4_xs(block, out),
            }
        }
    }
}

/// Reads the number in half precision at byte `at`.
fn half(bytes: &[u8], at: usize) -> f32 {
    half_to_single(u16::from_le_bytes([bytes[at], bytes[at + 1]]))
}

/// Converts a number in half precision to single precision, exactly.
pub(crate) fn half_to_single(bits: u16) -> f32 {
    let sign = u32::from(bits & 0x8000) << 16;
    let size = u32::from(bits & 0x7fff);
    match size >> 10 {
        // Infinities and NaNs stay as they are.
        0x1f => f32::from_bits(sign | 0x7f80_0000 | (size & 0x3ff) << 13),
        // The exponent bias differs by 112; the product is exact, even for subnormal numbers.
        _ => f32::from_bits(sign | (f32::from_bits(size << 13) * f32::from_bits(0x7780_0000)).to_bits()),
    }
}

/// Returns the lower four bits of all bytes, and then the upper four.
fn nibbles(bytes: &[u8]) -> impl Iterator<Item = u8> + '_ {
    let low = bytes.iter().map(|byte| byte & 15);
    low.chain(bytes.iter().map(|byte| byte >> 4))
}

/// Computes `d · (q − offset)`.
fn scaled(format: BlockFormat, block: &[u8], out: &mut Vec<f32>) {
    let d = half(block, 0);
    match format {
        BlockFormat::Q4_0 => out.extend(nibbles(&block[2..18]).map(|q| d * (f32::from(q) - 8.0))),
        BlockFormat::Q5_0 => {
            out.extend(fives(&block[6..22], &block[2..6]).map(|q| d * (f32::from(q) - 16.0)));
        }
        _ => out.extend(block[2..34].iter().map(|q| d * f32::from(*q as i8))),
    }
}

/// Computes `d · q + m`.
fn shifted(format: BlockFormat, block: &[u8], out: &mut Vec<f32>) {
    let (d, m) = (half(block, 0), half(block, 2));
    match format {
        BlockFormat::Q4_1 => out.extend(nibbles(&block[4..20]).map(|q| d * f32::from(q) + m)),
        _ => out.extend(fives(&block[8..24], &block[4..8]).map(|q| d * f32::from(q) + m)),
    }
}

/// Returns numbers of five bits: four bits of each in nibbles, and the fifth bits of all in four bytes.
fn fives<'a>(low: &'a [u8], high: &'a [u8]) -> impl Iterator<Item = u8> + 'a {
    let bit = |number: usize| high[number / 8] >> (number % 8) & 1;
    nibbles(low)
        .enumerate()
        .map(move |(number, low)| low | bit(number) << 4)
}

/// Returns the scale and the minimum number `group` of the eight that Q4_K and Q5_K store in twelve bytes,
/// six bits each.
fn scale_and_minimum(packed: &[u8], group: usize) -> (u8, u8) {
    match group {
        0..4 => (packed[group] & 63, packed[group + 4] & 63),
        _ => (
            packed[group + 4] & 15 | packed[group - 4] >> 6 << 4,
            packed[group + 4] >> 4 | packed[group] >> 6 << 4,
        ),
    }
}

fn q45(format: BlockFormat, block: &[u8], out: &mut Vec<f32>) {
    let (d, minimum) = (half(block, 0), half(block, 2));
    let packed = &block[4..16];
    let (high, low) = match format {
        BlockFormat::Q5K => (Some(&block[16..48]), &block[48..176]),
        _ => (None, &block[16..144]),
    };
    for group in 0..8 {
        let (scale, least) = scale_and_minimum(packed, group);
        let (scale, least) = (d * f32::from(scale), minimum * f32::from(least));
        for number in 0..32 {
            let low = low[group / 2 * 32 + number] >> (4 * (group % 2)) & 15;
            let high = high.map_or(0, |high| high[number] >> group & 1);
            out.push(scale * f32::from(low | high << 4) - least);
        }
    }
}

fn q2(block: &[u8], out: &mut Vec<f32>) {
    let (scales, low) = (&block[..16], &block[16..80]);
    let (d, minimum) = (half(block, 80), half(block, 82));
    for number in 0..256 {
        let scale = scales[number / 16];
        let q = low[number / 128 * 32 + number % 32] >> (2 * (number / 32 % 4)) & 3;
        out.push(d * f32::from(scale & 15) * f32::from(q) - minimum * f32::from(scale >> 4));
    }
}

/// Returns the scale number `group` of the sixteen that Q3_K stores in twelve bytes, six bits each.
fn scale_of_q3(packed: &[u8], group: usize) -> i8 {
    let low = packed[group % 8] >> (4 * (group / 8)) & 15;
    let high = packed[8 + group % 4] >> (2 * (group / 4)) & 3;
    (low | high << 4) as i8 - 32
}

fn q3(block: &[u8], out: &mut Vec<f32>) {
    let (mask, low, packed) = (&block[..32], &block[32..96], &block[96..108]);
    let d = half(block, 108);
    for number in 0..256 {
        let scale = d * f32::from(scale_of_q3(packed, number / 16));
        let q = low[number / 128 * 32 + number % 32] >> (2 * (number / 32 % 4)) & 3;
        let is_whole = mask[number % 32] >> (number / 32) & 1 == 1;
        out.push(scale * (f32::from(q) - if is_whole { 0.0 } else { 4.0 }));
    }
}

fn q6(block: &[u8], out: &mut Vec<f32>) {
    let (low, high, scales) = (&block[..128], &block[128..192], &block[192..208]);
    let d = half(block, 208);
    for number in 0..256 {
        let (half, quarter, place) = (number / 128, number / 32 % 4, number % 32);
        let low = low[half * 64 + quarter % 2 * 32 + place] >> (4 * (quarter / 2)) & 15;
        let high = high[half * 32 + place] >> (2 * quarter) & 3;
        let scale = d * f32::from(scales[number / 16] as i8);
        out.push(scale * (f32::from(low | high << 4) - 32.0));
    }
}

/// Returns the scale number `group` of the eight of IQ4_XS, of six bits each.
fn scale_of_iq4(block: &[u8], group: usize) -> i8 {
    let high = u16::from_le_bytes([block[2], block[3]]) >> (2 * group) & 3;
    let low = block[4 + group / 2] >> (4 * (group % 2)) & 15;
    (low | (high as u8) << 4) as i8 - 32
}

fn iq4_xs(block: &[u8], out: &mut Vec<f32>) {
    let d = half(block, 0);
    for group in 0..8 {
        let scale = d * f32::from(scale_of_iq4(block, group));
        let indices = nibbles(&block[8 + 16 * group..24 + 16 * group]);
        out.extend(indices.map(|index| scale * f32::from(IQ4_VALUES[index as usize])));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_the_table_stand_at_the_numbers_of_their_formats() {
        for (number, row) in FORMATS.iter().enumerate() {
            assert_eq!(row.0 as usize, number);
            assert_eq!(BlockFormat::of_number(row.2), Ok(row.0));
        }
        let refused = BlockFormat::of_number(39).unwrap_err();
        assert!(
            refused.starts_with("the format MXFP4 is not read; supported are F32, F16"),
            "{refused}"
        );
    }

    /// Compares with the numbers that the package `gguf` reads in random blocks of every format, bit by bit:
    /// see `tests/fixtures/make_gguf.py`.
    #[test]
    fn numbers_are_those_that_llama_cpp_reads() {
        let mut rest = &include_bytes!("../../../tests/fixtures/gguf/blocks.bin")[..];
        let mut formats = Vec::new();
        while let Some((length, after)) = rest.split_first() {
            let (name, after) = after.split_at(*length as usize);
            let (count, after) = after.split_at(4);
            let count = u32::from_le_bytes(count.try_into().unwrap()) as usize;
            let format = BlockFormat::all()
                .find(|format| format.to_string().as_bytes() == name)
                .unwrap();
            let (blocks, after) = after.split_at(count * format.bytes());
            let (numbers, after) = after.split_at(4 * count * format.weights());
            let mut found = Vec::new();
            format.widen(blocks, &mut found);
            let numbers = numbers
                .chunks_exact(4)
                .map(|number| f32::from_le_bytes(number.try_into().unwrap()));
            for (at, (found, expected)) in found.iter().zip(numbers).enumerate() {
                let same = found.to_bits() == expected.to_bits() || *found == 0.0 && expected == 0.0;
                assert!(same, "{format}: weight {at} is {found}, and {expected} there");
            }
            formats.push(format);
            rest = after;
        }
        // All formats except plain numbers of four bytes.
        assert_eq!(formats.len() + 1, FORMATS.len());
    }

    #[test]
    fn half_precision_is_widened_exactly() {
        let cases = [
            (0x0000, 0.0),
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x7bff, 65504.0),
            (0x0001, 2.0_f32.powi(-24)),
            (0x03ff, 1023.0 * 2.0_f32.powi(-24)),
            (0x7c00, f32::INFINITY),
            (0xfc00, f32::NEG_INFINITY),
        ];
        for (bits, number) in cases {
            assert_eq!(half_to_single(bits), number, "{bits:#06x}");
        }
        assert!(half_to_single(0x7e00).is_nan());
        assert!(half_to_single(0x8000).is_sign_negative());
    }

    #[test]
    fn a_row_is_whole_blocks() {
        assert_eq!(BlockFormat::Q4K.bytes_of(&[3, 512]), Ok(3 * 2 * 144));
        assert!(
            BlockFormat::Q4K
                .bytes_of(&[3, 288])
                .unwrap_err()
                .contains("which have 256")
        );
        assert!(BlockFormat::F32.bytes_of(&[i64::MAX, i64::MAX]).is_err());
    }
}
