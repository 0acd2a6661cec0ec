//! Buffers of the kernels, and random numbers to fill them with.

/// Words before and after a buffer, all of whose bits are set: what a kernel reads there is no number,
/// whatever lies in the memory of the process.
const GUARD: usize = 256;

/// Bytes that begin where copies of 16 bytes may.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Memory {
    /// Between two guards.
    words: Vec<u128>,
    len: usize,
}

impl Memory {
    pub(crate) fn of_bytes(bytes: &[u8]) -> Self {
        let word = |chunk: &[u8]| {
            let mut word = [0; 16];
            word[..chunk.len()].copy_from_slice(chunk);
            u128::from_le_bytes(word)
        };
        Self::guarded(bytes.chunks(16).map(word), bytes.len())
    }

    pub(crate) fn zeros(len: usize) -> Self {
        Self::guarded(std::iter::repeat_n(0, len.div_ceil(16)), len)
    }

    fn guarded(words: impl Iterator<Item = u128>, len: usize) -> Self {
        let guard = || std::iter::repeat_n(u128::MAX, GUARD);
        Memory {
            words: guard().chain(words).chain(guard()).collect(),
            len,
        }
    }

    /// Whether nothing was written before or after it.
    #[allow(dead_code, reason = "some programs of tests need it")]
    pub(crate) fn is_within(&self) -> bool {
        let (before, rest) = self.words.split_at(GUARD);
        let guards = before.iter().chain(&rest[rest.len() - GUARD..]);
        guards.copied().all(|word| word == u128::MAX)
    }

    pub(crate) fn bf16(values: &[u16]) -> Self {
        Self::of_bytes(&values.iter().flat_map(|it| it.to_le_bytes()).collect::<Vec<u8>>())
    }

    pub(crate) fn f32(values: &[f32]) -> Self {
        Self::of_bytes(&values.iter().flat_map(|it| it.to_le_bytes()).collect::<Vec<u8>>())
    }

    pub(crate) fn i32(values: &[i32]) -> Self {
        Self::of_bytes(&values.iter().flat_map(|it| it.to_le_bytes()).collect::<Vec<u8>>())
    }

    pub(crate) fn u32(values: &[u32]) -> Self {
        Self::of_bytes(&values.iter().flat_map(|it| it.to_le_bytes()).collect::<Vec<u8>>())
    }

    /// Where it begins.
    pub(crate) fn address(&mut self) -> u64 {
        self.words[GUARD..].as_mut_ptr() as u64
    }

    #[allow(dead_code, reason = "some programs of tests need it")]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let bytes = self.words[GUARD..].iter().flat_map(|word| word.to_le_bytes());
        bytes.take(self.len).collect()
    }

    #[allow(dead_code, reason = "some programs of tests need it")]
    pub(crate) fn to_f32(&self) -> Vec<f32> {
        let bytes = self.bytes();
        let numbers = bytes.chunks_exact(4);
        numbers
            .map(|it| f32::from_le_bytes(it.try_into().unwrap()))
            .collect()
    }
}

/// The number that has these 16 bits.
pub(crate) fn widen(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// The nearest number of bf16, of two the even one.
pub(crate) fn narrow(value: f32) -> u16 {
    let bits = value.to_bits();
    if value.is_nan() {
        return 0x7fc0;
    }
    ((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16
}

/// Random numbers that are the same in every run.
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Chance(seed)
    }

    /// SplitMix64 (Steele, Lea and Flood, 2014).
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.bits() % end as u64) as usize
    }

    fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(crate) fn normal(&mut self) -> f32 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        (radius * (std::f64::consts::TAU * self.uniform()).cos()) as f32
    }

    /// So many normal numbers of this deviation, in bf16.
    pub(crate) fn numbers(&mut self, count: usize, deviation: f32) -> Vec<u16> {
        (0..count).map(|_| narrow(self.normal() * deviation)).collect()
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at + 1));
        }
    }
}
