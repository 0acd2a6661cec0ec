//! Matrices for cases, in bf16 or in eight bits.

use super::Buffers;
use crate::memory::{Chance, Memory, widen};
use lexiform_kernels::node::Place;
use lexiform_kernels::products::Rounded;
use lexiform_kernels::shapes::Format;

/// Random weights, and what they are.
pub(super) struct Weights {
    memory: Memory,
    /// The format, and the scale of each row.
    rounded: Option<(Format, Vec<f32>)>,
    /// Row by row.
    pub(super) numbers: Vec<f64>,
}

/// The number of these bits.
fn number(format: Format, bits: u8) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 3 & 15), f64::from(bits & 7));
    let sign = if bits & 0x80 == 0 { 1.0 } else { -1.0 };
    match (format, exponent) {
        (Format::Int8, _) => f64::from(bits as i8),
        (Format::Fp8, 0) => sign * fraction * 2.0_f64.powi(-9),
        (Format::Fp8, _) => sign * (1.0 + fraction / 8.0) * 2.0_f64.powi(exponent - 7),
    }
}

/// Any bits that are a number, of which every fourth row has only the smallest: subnormal ones, and zeros of
/// both signs.
fn bits(format: Format, row: usize, chance: &mut Chance) -> u8 {
    let bits = chance.below(256) as u8;
    match format {
        Format::Fp8 if row % 4 == 3 => bits & 0x87,
        Format::Fp8 if bits & 0x7f == 0x7f => bits & 0xfe,
        _ => bits,
    }
}

impl Weights {
    /// Weights with a deviation of 0.02, more or less by row in eight bits.
    pub(super) fn random(
        format: Option<Format>,
        (rows, columns): (usize, usize),
        chance: &mut Chance,
    ) -> Self {
        let Some(format) = format else {
            let numbers = chance.numbers(rows * columns, 0.02);
            return Weights {
                memory: Memory::bf16(&numbers),
                rounded: None,
                numbers: numbers.iter().map(|&bits| f64::from(widen(bits))).collect(),
            };
        };
        let bits: Vec<u8> = (0..rows * columns)
            .map(|at| bits(format, at / columns, chance))
            .collect();
        let scale = |row: &[u8]| {
            let square = row.iter().map(|&bits| number(format, bits).powi(2)).sum::<f64>() / columns as f64;
            (0.02 / square.sqrt()) as f32 * (0.5 + chance.below(128) as f32 / 128.0)
        };
        let scales: Vec<f32> = bits.chunks(columns).map(scale).collect();
        let numbers = bits
            .iter()
            .enumerate()
            .map(|(at, &bits)| number(format, bits) * f64::from(scales[at / columns]));
        Weights {
            numbers: numbers.collect(),
            memory: Memory::of_bytes(&bits),
            rounded: Some((format, scales)),
        }
    }

    /// Where they are, and how they are kept.
    pub(super) fn add(self, buffers: &mut Buffers) -> (Place<usize>, Option<Rounded<usize>>) {
        let weights = buffers.add(self.memory);
        let rounded = self.rounded.map(|(format, scales)| Rounded {
            format,
            scales: buffers.add(Memory::f32(&scales)),
            // The kernels of products widen nothing.
            widened: weights,
        });
        (weights, rounded)
    }
}
